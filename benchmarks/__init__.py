"""Benchmarks: times against peer libraries, and operation counts against the papers."""
