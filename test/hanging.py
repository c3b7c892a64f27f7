"""How long a test waits before a program counts as hanging."""

from __future__ import annotations

HANG_S = 900.0
"""Limit of every wait of a test [s]: no verdict depends on the speed of the machine."""
