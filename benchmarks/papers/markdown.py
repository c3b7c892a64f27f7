"""Lines of Markdown tables, and numbers as the pages write them."""

from __future__ import annotations

from collections.abc import Iterable


def percent(value: float) -> str:
    """Return a signed share [%]."""
    return f"{value:+.1f} %".replace("-", "−")


def comparison(first: float, second: float) -> str:
    """Return two numbers and how much more the first is."""
    return f"{number(first)} / {number(second)}, {percent(100.0 * (first / second - 1.0))}"


def number(value: float) -> str:
    """Return a number without digits that it does not have."""
    return f"{value:.0f}" if value == int(value) else f"{value:g}"


def table(heads: Iterable[str], words: int = 1) -> list[str]:
    """Return the first lines of a table, whose columns after the first `words` are numbers."""
    names = list(heads)
    return [f"| {' | '.join(names)} |", "|" + "---|" * words + "---:|" * (len(names) - words)]


def row(cells: Iterable[object]) -> str:
    """Return a line of a table."""
    return f"| {' | '.join(map(str, cells))} |"
