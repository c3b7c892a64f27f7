"""Values of command lines, for the argument ``type`` of :mod:`argparse`."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

from delassus_ros.model.reading.numbers import number


def positive(text: str) -> float:
    """Return a finite number above 0.

    Raises
    ------
    ArgumentTypeError
        For other texts.
    """
    value = _value(text)
    if not 0.0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return value


def duration(text: str) -> float:
    """Return a time above 0 [s]; it may be infinite.

    Raises
    ------
    ArgumentTypeError
        For other texts.
    """
    value = _value(text)
    if not value > 0.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of seconds")
    return value


def whole(least: int, most: int) -> Callable[[str], int]:
    """Return the reader of whole numbers of a range, which raises an ArgumentTypeError."""

    def read(text: str) -> int:
        digits = text.isascii() and text.isdecimal() and len(text) <= len(str(most))
        if not digits or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a whole number from {least} to {most}"
            )
        return int(text)

    return read


def _value(text: str) -> float:
    try:
        return number(text)
    except ValueError:
        return math.nan
