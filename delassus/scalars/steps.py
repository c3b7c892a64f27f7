"""Steps: the repeated parts of long algorithms.

A function marked :func:`step` is called directly on numbers and in the trace of a small system. In
the trace of a large system a step is traced once per shape of its arguments, and further calls of
that shape are entries of a table; see :mod:`delassus.scalars.routines`. The result of a step
must depend only on its arguments: lists, tuples and objects with slots, of scalars and of values
that are known when the kernel is made. Texts among the arguments may only be used in messages:
calls that differ in texts share a trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

Recorder = Callable[[Callable[..., Any], tuple[Any, ...]], Any]
"""Takes a step and its arguments, and returns its result."""

BLOCK = 6
"""Rows and columns of the blocks of large matrices that are computed by steps."""

_recorder: ContextVar[Recorder | None] = ContextVar("recorder of steps", default=None)


def step(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a function of positional arguments as a step."""

    @wraps(function)
    def call(*arguments: P.args, **keywords: P.kwargs) -> R:
        if keywords:
            raise TypeError(f"step {function.__name__!r} takes no keyword arguments")
        recorder = _recorder.get()
        if recorder is None:
            return function(*arguments, **keywords)
        result: R = recorder(function, arguments)
        return result

    return call


@contextmanager
def recorded(recorder: Recorder | None) -> Iterator[None]:
    """Pass the calls of steps to `recorder`; with None, call steps directly."""
    token = _recorder.set(recorder)
    try:
        yield
    finally:
        _recorder.reset(token)


def blocks(size: int) -> list[slice]:
    """Return slices of `size` rows: blocks where steps are recorded, else one slice."""
    if _recorder.get() is None:
        return [slice(0, size)]
    return [slice(first, first + BLOCK) for first in range(0, size, BLOCK)]
