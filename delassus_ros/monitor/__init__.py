"""Comparison of a node's matrices with those of a simulator or of another node."""
