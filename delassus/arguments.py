"""Checks of arguments for the right types: objects, numbers and names."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from delassus.errors import DelassusError, InputError

_T = TypeVar("_T")
_SHOWN = 60
"""Most characters of a value in a message."""
_EXACT = 2**53
"""Largest integer up to which a float represents all integers."""
LARGEST_COUNT = 2**31 - 1
"""Largest count: machine code adds counts without an overflow."""
_NUMBERS = "biufO"
"""Kinds of numpy: truth values, integers and floats, and objects, which may be numbers."""


def instance(
    what: str, value: object, kind: type[_T], write: str, error: type[DelassusError]
) -> _T:
    """Check the class of a value and return it.

    Parameters
    ----------
    what : name of the value in messages.
    write : the call that makes one, for the message.
    error : class of the error.

    Raises
    ------
    DelassusError
        If the value is of another kind.
    """
    if not isinstance(value, kind):
        raise error(f"{what} is {shown(value)}; expected a {kind.__name__}: write {write}")
    return value


def instances(
    what: str, value: object, kind: type[_T], write: str, error: type[DelassusError]
) -> tuple[_T, ...]:
    """Check the class of the entries of a list and return them as a tuple.

    Parameters
    ----------
    what : name of the list in messages.
    write : the call that makes an entry, for the message.
    error : class of the error.

    Raises
    ------
    DelassusError
        If the value is not a list, or an entry is of another class.
    """
    expected = f"expected a list of {kind.__name__}: write [{write}]"
    if not isinstance(value, Iterable) or isinstance(value, (str, Mapping)):
        raise error(f"{what} is {shown(value)}; {expected}")
    listed = tuple(value)
    for entry in listed:
        if not isinstance(entry, kind):
            raise error(f"{what} has {shown(entry)} in it; {expected}")
    return listed


def numbers(
    what: str,
    values: object,
    expected: str = "numbers",
    error: type[DelassusError] = InputError,
) -> NDArray[np.float64]:
    """Return values as an array; not copied where that is possible.

    Parameters
    ----------
    what : name of the values in messages.
    expected : description of valid values, for the message.
    error : class of the error.

    Raises
    ------
    DelassusError
        If they are not numbers, or their lists differ in length.
    """
    try:
        return as_numbers(values)
    except (TypeError, ValueError) as reason:
        raise error(f"{what} is {shown(values)}; expected {expected}") from reason


def sized(
    what: str, values: object, size: int, whose: str, error: type[DelassusError]
) -> NDArray[np.float64]:
    """Return `size` numbers as an array.

    Parameters
    ----------
    whose : owner of the numbers, for the message.

    Raises
    ------
    DelassusError
        If the values are not numbers, or their count differs from `size`.
    """
    found = numbers(what, values, error=error)
    if found.shape != (size,):
        raise error(f"{what} has shape {found.shape}; expected ({size},), {whose}")
    return found


def as_numbers(values: object) -> NDArray[np.float64]:
    """Return values as an array; not copied where that is possible.

    Unlike numpy, it makes no numbers of text and None, and drops no imaginary parts, no masks and
    no digits of integers.

    Raises
    ------
    TypeError, ValueError
        If they are not numbers that a float holds, some are masked, or their lists differ in
        length.
    """
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values
    # By its attributes, not by its class, whose module numpy imports late.
    if isinstance(values, np.ndarray) and np.any(getattr(values, "mask", False)):
        raise TypeError("some of them are masked")
    array = np.asarray(values)
    if array.dtype.kind == "O":
        if not all(isinstance(entry, Real) for entry in array.flat):
            raise TypeError("some of them are no numbers")
        if any(isinstance(entry, int) and abs(entry) > _EXACT for entry in array.flat):
            raise ValueError("some of them are integers beyond 2**53, which a float rounds")
    if array.dtype.kind not in _NUMBERS and array.size:
        raise TypeError(f"they are {'text' if array.dtype.kind in 'US' else array.dtype.name}")
    # Not by abs(), of which the smallest integer has none.
    if array.dtype.kind in "iu" and ((array > _EXACT) | (array < -_EXACT)).any():
        raise ValueError("some of them are integers beyond 2**53, which a float rounds")
    try:
        return array.astype(np.float64, copy=False)
    except OverflowError as error:
        raise ValueError("some of them are too large") from error


def number(what: str, value: object, error: type[DelassusError] = InputError) -> float:
    """Return one number, which may be infinite or NaN.

    Raises
    ------
    DelassusError
        If the value is of another kind.
    """
    array = numbers(what, value, "a number", error)
    if array.ndim:
        raise error(f"{what} is {shown(value)}; expected a number")
    return float(array)


def quaternion(values: Any) -> Any:
    """Return the quaternion x, y, z, w of a scipy Rotation, and other values unchanged.

    A Rotation is known by its method ``as_quat``: scipy is not imported.
    """
    if type(values) is np.ndarray or not hasattr(values, "as_quat"):
        return values
    return values.as_quat()


def rotation_matrix(values: Any) -> Any:
    """Return the matrix (3, 3) of a scipy Rotation, and other values unchanged."""
    if type(values) is np.ndarray or not hasattr(values, "as_matrix"):
        return values
    return values.as_matrix()


def by_joint(what: str, values: object, error: type[DelassusError]) -> dict[str, float]:
    """Check a mapping from names of joints to numbers and return it.

    Raises
    ------
    DelassusError
        If the value is not a mapping to numbers; names the joint.
    """
    if not isinstance(values, Mapping):
        raise error(f"{what} is {shown(values)}; expected numbers by joint: write {{'knee': 0.1}}")
    found = {}
    for name, value in values.items():
        found[name] = number(f"{what} of joint {name!r}", value, error)
    return found


def names(
    what: str, value: Iterable[str], error: type[DelassusError] = InputError
) -> tuple[str, ...]:
    """Return names; a text is refused, whose letters would be taken for them.

    Raises
    ------
    DelassusError
        If the value is not a list of texts.
    """
    if isinstance(value, str):
        raise error(f"{what} must be a list of names: write [{value!r}]")
    try:
        # Faster than to ask whether it is an Iterable.
        entries = iter(value)
    except TypeError as reason:
        raise error(f"{what} must be a list of names, got {shown(value)}") from reason
    listed = tuple(entries)
    for name in listed:
        if not isinstance(name, str):
            raise error(f"{what} must be a list of names, got {shown(name)} in it")
    return listed


def text(what: str, value: object, write: str, error: type[DelassusError]) -> str:
    """Return a text that has bytes, which are part of a kernel's key.

    Parameters
    ----------
    what : name of the value in messages.
    write : the call that has one, for the message.
    error : class of the error.

    Raises
    ------
    DelassusError
        If the value is not text, not valid UTF-8, or has a zero character.
    """
    if not isinstance(value, str):
        raise error(f"{what} is {shown(value)}; expected text: write {write}")
    try:
        value.encode()
    except UnicodeEncodeError as reason:
        raise error(f"{what} is {shown(value)}; expected text that is valid UTF-8") from reason
    # It stands between the parts of a key.
    if "\0" in value:
        raise error(f"{what} is {shown(value)}; expected text without zero characters")
    return value


def whole(what: str, value: object, expected: str, error: type[DelassusError] = InputError) -> int:
    """Return a whole number; 1.0 is none.

    Parameters
    ----------
    what : name of the value in messages.
    expected : description of valid values, for the message.
    error : class of the error.

    Raises
    ------
    DelassusError
        If the value is of another kind.
    """
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError as reason:
        raise error(f"{what} is {shown(value)}; expected {expected}") from reason


def count(
    what: str, value: object, error: type[DelassusError] = InputError, least: int = 1
) -> int:
    """Return a whole number from `least` to :data:`LARGEST_COUNT`.

    Raises
    ------
    DelassusError
        If the value is of another kind, or out of range.
    """
    expected = f"a whole number, at least {least}"
    number = whole(what, value, expected, error)
    if number > LARGEST_COUNT:
        expected = f"a whole number, at most {LARGEST_COUNT}"
    if not least <= number <= LARGEST_COUNT:
        raise error(f"{what} is {shown(value)}; expected {expected}")
    return number


def shown(value: object) -> str:
    """Return a value for a message, in one line; long ones are shortened."""
    text = " ".join(repr(value).split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
