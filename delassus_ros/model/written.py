"""Numbers as XML and YAML write them.

Python reads more: ``2_0`` as 20, and the digits of every script.
"""

from __future__ import annotations

import re

_NUMBER = re.compile(
    r"[-+]?((\.[0-9]+|[0-9]+(\.[0-9]*)?)(e[-+]?[0-9]+)?|inf|infinity|nan)",
    re.ASCII | re.IGNORECASE,
)
_SPACE = " \t\r\n"
_SHOWN = 40


def number(text: str) -> float:
    """Return the number that a text is, white space around it allowed; it may be infinite or NaN.

    Raises
    ------
    ValueError
        If it is none; the message says so.
    """
    word = text.strip(_SPACE)
    if not _NUMBER.fullmatch(word):
        raise ValueError(f"{word[:_SHOWN]!r} is not a number")
    return float(word)


def numbers_in(text: str) -> list[float]:
    """Return the numbers in a text, with white space between them.

    Raises
    ------
    ValueError
        If one of the words is no number; the message says which.
    """
    return [number(word) for word in re.split(f"[{_SPACE}]+", text.strip(_SPACE)) if word]
