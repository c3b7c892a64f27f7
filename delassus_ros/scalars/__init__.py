"""Scalars: what algorithms compute with, floats or symbols, and the graph that symbols make."""
