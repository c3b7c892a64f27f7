"""LLVM IR as text."""
