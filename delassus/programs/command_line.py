"""Values of command lines, for the argument ``type`` of :mod:`argparse`."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass

from delassus.model.reading.numbers import number


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


@dataclass(frozen=True)
class Whole:
    """Reader of whole numbers.

    Attributes
    ----------
    least, most : range of the numbers.
    """

    least: int
    most: int

    def __call__(self, text: str) -> int:
        """Return a number of the range.

        Raises
        ------
        ArgumentTypeError
            For other texts.
        """
        digits = text.isascii() and text.isdecimal() and len(text) <= len(str(self.most))
        if not digits or not self.least <= int(text) <= self.most:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a whole number from {self.least} to {self.most}"
            )
        return int(text)


def _value(text: str) -> float:
    try:
        return number(text)
    except ValueError:
        return math.nan
