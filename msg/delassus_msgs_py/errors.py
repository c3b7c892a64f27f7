"""The error of this package."""

from __future__ import annotations


class MessageError(ValueError):
    """A message contradicts itself, or does not hold what was asked of it."""
