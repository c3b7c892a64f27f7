"""Numbers as the pages of papers write them."""

from __future__ import annotations


def percent(value: float) -> str:
    """Return a signed share [%]."""
    return f"{value:+.1f} %".replace("-", "−")


def comparison(first: float, second: float) -> str:
    """Return two numbers and how much more the first is."""
    return f"{number(first)} / {number(second)}, {percent(100.0 * (first / second - 1.0))}"


def number(value: float) -> str:
    """Return a number without digits that it does not have."""
    return f"{value:.0f}" if value == int(value) else f"{value:g}"
