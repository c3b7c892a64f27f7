"""Inputs and outputs of algorithms by port, and the status of a kernel call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Inputs: TypeAlias = Mapping[str, Sequence[Any]]
"""Input ports by name: flat lists of scalars."""
Outputs: TypeAlias = dict[str, Any]
"""Output ports by name: lists of rows of scalars."""
Arrays: TypeAlias = Mapping[str, NDArray[np.float64]]
"""Inputs or outputs of one configuration as arrays, by port name, in the shape of the port."""


@dataclass(frozen=True)
class Port:
    """A named input or output of a kernel: a row-major block of doubles.

    Attributes
    ----------
    name : ``"q"``, ``"base_orientation"``, ``"contact_positions"``, ``"G"``, …
    shape : shape of the block.
    """

    name: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of doubles."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count


def block_size(ports: Iterable[Port]) -> int:
    """Return the number of doubles of a block that holds ports side by side."""
    return sum(port.size for port in ports)


def places(ports: Iterable[Port]) -> Iterator[tuple[Port, slice]]:
    """Yield each port with its place in a block that holds ports side by side."""
    start = 0
    for port in ports:
        yield port, slice(start, start + port.size)
        start += port.size


def views(block: Any, ports: Iterable[Port]) -> dict[str, Any]:
    """Return the part of each port of a block (…, size) by name, in the port's shape."""
    return {
        port.name: block[..., place].reshape((*block.shape[:-1], *port.shape))
        for port, place in places(ports)
    }


class Status(IntEnum):
    """Outcome of a kernel call; everything but OK means that the outputs are not valid."""

    OK = 0
    NOT_POSITIVE_DEFINITE = 1
    """A joint-space inertia or a pivot of the base is not positive, or M is singular at the angle
    of a ball joint."""
    NOT_FINITE = 2
    """The result is not finite: an input is NaN or infinite, the computation overflowed, or
    nothing was computed yet."""
    FAILED = 3
    """The back end raised an error, which is in the log. Compiled kernels never return FAILED."""
    SINGULAR_LOOP = 4
    """A closed loop is singular: its dependent joints do not follow from the independent ones."""
    NOT_CLOSED = 5
    """A coupling does not hold at q: a joint's position contradicts the joints coupled to it."""
    TOO_FAR = 6
    """A position is beyond 10⁶ rad or m, where sums of angles are rounded by more than 1e-10."""
    NOT_UNIT = 7
    """The norm of a quaternion differs from 1 by more than 0.001."""
