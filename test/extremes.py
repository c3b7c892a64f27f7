"""Every number of a message, and the ends of its type."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from numbers import Real
from typing import Any

import numpy as np

_KIND = re.compile(r"(?:sequence<)?(u?int|float)(\d*)")
_STAMP = {"sec": "int32", "nanosec": "uint32"}


def numbers_in(message: Any) -> Iterator[tuple[Callable[[Any], None], Any, Sequence[Any]]]:
    """Yield for every number of a message how to set it, its value, and the ends of its type.

    Of an array, the first entry alone. The message is one of ROS, or a stand-in for one.
    """
    of_ros = getattr(message, "get_fields_and_field_types", None)
    fields = _STAMP | dict.fromkeys(vars(message), "") if of_ros is None else of_ros()
    for name, kind in fields.items():
        value = getattr(message, name, None)
        has_entries = isinstance(value, (list, array, np.ndarray)) and len(value) > 0
        first = value[0] if has_entries else value
        if isinstance(first, Real) and not isinstance(first, bool):
            put = partial(value.__setitem__, 0) if has_entries else partial(setattr, message, name)
            yield put, first, _ends(_KIND.match(kind))
        elif hasattr(first, "__dict__") or hasattr(first, "get_fields_and_field_types"):
            yield from numbers_in(first)


def _ends(kind: re.Match[str] | None) -> Sequence[Any]:
    if kind is None or kind[1] == "float":
        largest = 1e300 if kind is None else 3e38
        return math.nan, math.inf, -math.inf, largest, -largest, 1e-300
    size = 2 ** int(kind[2])
    return (0, 1, size - 1) if kind[1] == "uint" else (-size // 2, -1, 0, 1, size // 2 - 1)
