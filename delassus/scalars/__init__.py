"""Scalars: the numbers of algorithms, floats or symbols, and the expression graph of symbols."""
