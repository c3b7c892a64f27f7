"""Sizes of the processors that code is written for."""

WIDEST = 8
"""Doubles in the widest vector register, of 512 bits; the code generator splits wider vectors."""
CACHE_LINE_BYTES = 64
"""Bytes that a processor moves at a time between its caches."""
