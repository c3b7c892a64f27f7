"""Numbers as XML and YAML write them, checked: how many, finite, of sensible size.

Python reads more: ``2_0`` as 20, and the digits of every script.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from delassus.errors import RobotError
from delassus.model.spatial import Array

MAX_NUMBER = 1e9
"""Largest length [m], angle [rad], mass [kg] or inertia [kg·m²] accepted: beyond it, sums
and products over a tree could overflow, and no robot comes near."""
_NUMBER = re.compile(
    r"[-+]?((\.[0-9]+|[0-9]+(\.[0-9]*)?)(e[-+]?[0-9]+)?|inf|infinity|nan)",
    re.ASCII | re.IGNORECASE,
)
_SPACE = " \t\r\n"
MOST_SHOWN = 40


def number(text: str) -> float:
    """Return the number that a text is, white space around it allowed; it may be infinite or NaN.

    Raises
    ------
    ValueError
        If it is none; the message says so.
    """
    word = text.strip(_SPACE)
    if not _NUMBER.fullmatch(word):
        raise ValueError(f"{word[:MOST_SHOWN]!r} is not a number")
    return float(word)


def numbers_in(text: str) -> list[float]:
    """Return the numbers in a text, with white space between them.

    Raises
    ------
    ValueError
        If one of the words is no number; the message says which.
    """
    return [number(word) for word in re.split(f"[{_SPACE}]+", text.strip(_SPACE)) if word]


def counted_numbers(text: str, count: int, what: str) -> list[float]:
    """Return `count` numbers written in an attribute; they may be infinite or NaN.

    Raises
    ------
    RobotError
        If a word is no number, or there are more or fewer; begins with `what`.
    """
    try:
        found = numbers_in(text)
    except ValueError as error:
        raise RobotError(f"{what}: {error}") from error
    if len(found) != count:
        raise RobotError(_miscounted(what, count, len(found)))
    return found


def floats(text: str, count: int, what: str) -> Array:
    """Return `count` finite numbers of sensible size, written in an attribute or element.

    Raises
    ------
    RobotError
        As for :func:`counted_numbers` and :func:`numbers`.
    """
    return numbers(counted_numbers(text, count, what), count, what)


def numbers(values: Iterable[float], count: int, what: str) -> Array:
    """Return `count` finite numbers of sensible size as an array (count,).

    Raises
    ------
    RobotError
        If there are more or fewer, or one is NaN or beyond :data:`MAX_NUMBER`.
    """
    array = np.array(list(values), dtype=np.float64)
    if array.shape != (count,):
        raise RobotError(_miscounted(what, count, array.size))
    # Written so that NaN fails as well.
    if not np.all(np.abs(array) <= MAX_NUMBER):
        shown = " ".join(f"{value:g}" for value in array)
        raise RobotError(
            f"{what}: numbers must be finite and at most {MAX_NUMBER:g} in SI units, got {shown}"
        )
    return array


def _miscounted(what: str, expected: int, found: int) -> str:
    return f"{what}: expected {expected} number{'' if expected == 1 else 's'}, got {found}"


def check_direction(axis: Array, what: str, written: str = "<axis xyz>") -> float:
    """Return the length of an axis (3,); refuse one without a direction.

    Parameters
    ----------
    written : where the file has the axis, for the message.

    Raises
    ------
    RobotError
        If all components are zero or nearly so.
    """
    length = float(np.linalg.norm(axis))
    if length < 1.0 / MAX_NUMBER:
        raise RobotError(f"{what}: the axis must not be zero; give its direction in {written}")
    return length
