"""Benchmarks: what runs beside its peers, and what is counted beside the papers."""
