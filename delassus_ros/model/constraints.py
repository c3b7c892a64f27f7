"""What closes loops in a robot's tree of joints: couplings, loops and functions.

All are constraints on q of the spanning tree; see :class:`Coupling`, :class:`Loop` and
:class:`FunctionConstraint`.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from numbers import Real
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from delassus_ros.arguments import number, shown, text
from delassus_ros.errors import RobotError
from delassus_ros.model.spatial import Array, Transform, checked


@dataclass(frozen=True)
class Coupling:
    """A linear constraint between joints: Σ ratio · q + offset = 0.

    Gears, belts, mimic joints and linear differentials are couplings; their loop Jacobian is
    constant.

    Attributes
    ----------
    name : for messages.
    ratios : joint name and its factor, in the units of the joints; none of the factors is 0.
        Where independent coordinates are not stated, the first joint is dependent.
    offset : the constant part.
    """

    name: str
    ratios: tuple[tuple[str, float], ...]
    offset: float = 0.0

    def __post_init__(self) -> None:
        what = f"coupling {self.name!r}"
        text(f"{what}: its name", self.name, "Coupling('belt', …)", RobotError)
        names = [name for name, _ in self.ratios]
        if not names or len(set(names)) < len(names):
            raise RobotError(
                f"coupling {self.name!r} is between joints {names}; expected different ones"
            )
        for joint, ratio in self.ratios:
            if not np.isfinite(number(f"{what}: a factor", ratio, RobotError)) or ratio == 0.0:
                raise RobotError(
                    f"coupling {self.name!r}: the factor of joint {joint!r} is {ratio}; "
                    "expected a finite number other than 0"
                )
        if not np.isfinite(number(f"{what}: the offset", self.offset, RobotError)):
            raise RobotError(f"coupling {self.name!r}: the offset {self.offset} is not finite")

    def to_bytes(self) -> bytes:
        """Return canonical bytes."""
        return f"coupling\0{self.name}\0{self.ratios!r}\0{self.offset!r}\0".encode()


class LoopKind(Enum):
    """Which motion a loop leaves between its two frames, and how many rows close it."""

    POINT = ("point", 3)
    """Origins coincide: a ball joint (spherical, universal)."""
    HINGE = ("hinge", 5)
    """Origins coincide and the axes agree; free rotation about the axis."""
    SLIDER = ("slider", 5)
    """Orientations agree; free translation along the axis."""
    PLANAR = ("planar", 3)
    """The planes normal to the axes coincide; free translation in and rotation on them."""
    WELD = ("weld", 6)
    """The frames coincide."""

    def __init__(self, label: str, rows: int) -> None:
        self.label = label
        self.rows = rows


@dataclass(frozen=True, eq=False)
class Loop:
    """A closure between two frames on bodies of the tree.

    Attributes
    ----------
    name : for messages.
    kind : see :class:`LoopKind`.
    predecessor, successor : index of a body, or WORLD.
    predecessor_placement, successor_placement : pose of the loop's frame on each body.
    axis : (3,) unit vector in both loop frames, for the kinds that have one.

    Raises
    ------
    RobotError
        If both ends are on one body, or the axis is not a unit vector.
    """

    name: str
    kind: LoopKind
    predecessor: int
    successor: int
    predecessor_placement: Transform = field(default_factory=Transform)
    successor_placement: Transform = field(default_factory=Transform)
    axis: Array = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))

    def __post_init__(self) -> None:
        what = f"loop {self.name!r}"
        text(f"{what}: its name", self.name, "Loop('bar', …)", RobotError)
        object.__setattr__(self, "axis", checked(f"{what}: axis", self.axis, (3,), RobotError))
        if self.predecessor == self.successor:
            raise RobotError(f"loop {self.name!r} is between a body and itself")
        if not abs(float(np.linalg.norm(self.axis)) - 1.0) <= 1e-9:
            raise RobotError(f"loop {self.name!r}: axis {self.axis} must be a unit vector")

    def to_bytes(self) -> bytes:
        """Return canonical bytes."""
        head = f"loop\0{self.name}\0{self.kind.label}\0{self.predecessor}\0{self.successor}\0"
        placements = self.predecessor_placement.to_bytes() + self.successor_placement.to_bytes()
        return head.encode() + placements + self.axis.tobytes()


@dataclass(frozen=True, eq=False)
class FunctionConstraint:
    """A constraint between joints that is given as a function over scalars.

    The function takes a list of scalars and returns a list; it may use ``+ - * /`` and the
    functions of :mod:`delassus_ros.algorithms.scalars`, and must not branch on a value. It is
    differentiated and compiled like an algorithm.

    Attributes
    ----------
    name : for messages.
    joints : revolute or prismatic joints whose positions the function takes, in this order.
    function : *implicit*: the positions of `joints` → `rows` numbers, all 0 where the
        constraint holds. *Explicit*, with `dependent`: the positions of `joints` → those of
        `dependent`.
    rows : how many numbers the function returns.
    dependent : joints whose positions an explicit function returns; empty for implicit ones.
    version : raise it when results change without a change of the function itself, of its
        defaults or of numbers of its module that it uses, as when a function that it calls
        changes.

    Raises
    ------
    RobotError
        If a joint is given twice, the numbers do not fit, or the function is no plain function,
        has no source text or depends on variables of an enclosing function, so that compiled
        kernels could not tell it from another.
    """

    name: str
    joints: tuple[str, ...]
    function: Callable[[list[Any]], Sequence[Any]]
    rows: int
    dependent: tuple[str, ...] = ()
    version: int = 1
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        what = f"constraint {self.name!r}: its name"
        text(what, self.name, "FunctionConstraint('cam', …)", RobotError)
        names = [*self.joints, *self.dependent]
        if not self.joints or len(set(names)) < len(names):
            raise RobotError(
                f"constraint {self.name!r} is between joints {names}; expected different ones"
            )
        if self.rows < 1 or (self.dependent and self.rows != len(self.dependent)):
            raise RobotError(
                f"constraint {self.name!r} has {self.rows} rows and {len(self.dependent)} "
                "dependent joints; expected at least one row, and one for each dependent joint"
            )
        if not isinstance(self.function, FunctionType):
            raise RobotError(
                f"constraint {self.name!r}: its function is {shown(self.function)}; expected a "
                "plain function, with no object whose values may change"
            )
        if self.function.__closure__:
            raise RobotError(
                f"constraint {self.name!r}: its function uses variables of an enclosing "
                "function; make them constants of its module"
            )
        try:
            source = inspect.getsource(self.function)
        except (OSError, TypeError) as error:
            raise RobotError(
                f"constraint {self.name!r}: the source text of its function cannot be read "
                f"({error}); define it in a file"
            ) from error
        defaults = repr((self.function.__defaults__, self.function.__kwdefaults__))
        used = _content(self.function.__code__, self.function.__globals__)
        content = "\0".join((source, defaults, used)).encode()
        object.__setattr__(self, "digest", hashlib.sha256(content).hexdigest())

    def to_bytes(self) -> bytes:
        """Return canonical bytes: names, version and a digest of the function."""
        names = f"{self.joints!r}\0{self.dependent!r}\0{self.rows}"
        return f"function\0{self.name}\0{names}\0{self.version}\0{self.digest}\0".encode()


def _content(code: CodeType, module: Mapping[str, Any]) -> str:
    """Return what a function does, and the numbers of its module that it uses.

    Source text alone does not tell two lambdas of one line apart.
    """
    found = {name: module.get(name) for name in code.co_names}
    used = {name: value for name, value in found.items() if isinstance(value, Real)}
    constants = [
        _content(each, module) if isinstance(each, CodeType) else repr(each)
        for each in code.co_consts
    ]
    return repr((code.co_code, code.co_names, constants, used))
