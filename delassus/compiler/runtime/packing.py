"""Several byte strings as one, each with its length before it."""

from __future__ import annotations

import struct


def pack(*parts: bytes) -> bytes:
    """Return parts as one payload, each with its length before it."""
    return b"".join(struct.pack("<Q", len(part)) + part for part in parts)


def unpack(payload: bytes) -> list[bytes]:
    """Return the parts of a payload made by :func:`pack`.

    Raises
    ------
    ValueError
        If the lengths do not add up.
    """
    parts, start = [], 0
    while start < len(payload):
        if start + 8 > len(payload):
            raise ValueError("truncated length")
        (length,) = struct.unpack_from("<Q", payload, start)
        start += 8
        if start + length > len(payload):
            raise ValueError("truncated part")
        parts.append(payload[start : start + length])
        start += length
    return parts
