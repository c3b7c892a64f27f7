"""Constraints that close loops in a robot's tree: couplings, loops and functions.

All are constraints on q of the spanning tree; see :class:`Coupling`, :class:`Loop` and
:class:`FunctionConstraint`.
"""

from __future__ import annotations

import dis
import hashlib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from numbers import Real
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from delassus.arguments import instance, names, number, shown, text, whole
from delassus.errors import RobotError, unknown
from delassus.model.joint import INDEX
from delassus.model.spatial import Array, Transform, checked

COUPLING = "Coupling('belt', (('motor', -1.0), ('knee', 2.0)))"
LOOP = "Loop('bar', LoopKind.POINT, 0, 1)"
FUNCTION = "FunctionConstraint('cam', ('motor', 'valve'), function, rows=1)"
"""Calls that make constraints, for messages."""


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

    Raises
    ------
    RobotError
        If the name is no text, the ratios are no pairs of different joints and finite numbers
        other than 0, or the offset is no finite number.
    """

    name: str
    ratios: tuple[tuple[str, float], ...]
    offset: float = 0.0

    def __post_init__(self) -> None:
        what = f"coupling {self.name!r}"
        text(f"{what}: its name", self.name, COUPLING, RobotError)
        pairs = _pairs(what, self.ratios)
        joints = [joint for joint, _ in pairs]
        if not joints or len(set(joints)) < len(joints):
            raise RobotError(f"{what} is between joints {joints}; expected different ones")
        ratios = [(joint, number(f"{what}: a factor", each, RobotError)) for joint, each in pairs]
        for joint, factor in ratios:
            if not np.isfinite(factor) or factor == 0.0:
                raise RobotError(
                    f"{what}: the factor of joint {joint!r} is {factor}; expected a finite number "
                    "other than 0"
                )
        offset = number(f"{what}: the offset", self.offset, RobotError)
        if not np.isfinite(offset):
            raise RobotError(f"{what}: the offset {offset} is not finite")
        object.__setattr__(self, "ratios", tuple(ratios))
        object.__setattr__(self, "offset", offset)

    def to_bytes(self) -> bytes:
        """Return canonical bytes."""
        return f"coupling\0{self.name}\0{self.ratios!r}\0{self.offset!r}\0".encode()


def _pairs(what: str, ratios: object) -> list[tuple[str, object]]:
    """Return the ratios of a coupling as pairs of a name and a value; refuse anything else."""
    wrong = RobotError(
        f"{what}: its ratios are {shown(ratios)}; expected pairs of a joint and its factor: write "
        f"{COUPLING}"
    )
    if isinstance(ratios, (str, Mapping)) or not isinstance(ratios, Iterable):
        raise wrong
    try:
        pairs = [(joint, factor) for joint, factor in ratios]
    except (TypeError, ValueError) as reason:
        raise wrong from reason
    if not all(isinstance(joint, str) for joint, _ in pairs):
        raise wrong
    return pairs


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
    axis : (3,) unit vector in both loop frames, for kinds with an axis.

    Raises
    ------
    RobotError
        If the name is no text, the kind no LoopKind, an end no whole number, a placement no
        Transform, both ends are on one body, or the axis is not a unit vector.
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
        text(f"{what}: its name", self.name, LOOP, RobotError)
        instance(f"{what}: kind", self.kind, LoopKind, "LoopKind.POINT", RobotError)
        for end in ("predecessor", "successor"):
            body = whole(f"{what}: {end}", getattr(self, end), INDEX, RobotError)
            object.__setattr__(self, end, body)
            name = f"{end}_placement"
            instance(f"{what}: {name}", getattr(self, name), Transform, "Transform()", RobotError)
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
class RowLoop:
    """A loop that is closed by rows of the Delassus matrix instead of a cluster.

    Attributes
    ----------
    name : of the loop.
    predecessor, successor : names of the frames at its ends.
    selection : (k, 6) independent rows of the motion of the successor in the predecessor, linear
        first; (0, 6) where other loops imply all rows.
    loop : the loop, as a robot with clusters has it.
    """

    name: str
    predecessor: str
    successor: str
    selection: Array
    loop: Loop

    def to_bytes(self) -> bytes:
        """Return canonical bytes of the rows."""
        head = f"row loop\0{self.name}\0{self.predecessor}\0{self.successor}\0"
        return head.encode() + self.selection.tobytes()


@dataclass(frozen=True, eq=False)
class FunctionConstraint:
    """A constraint between joints that is given as a function over scalars.

    The function takes a list of scalars and returns a list; it may use ``+ - * /`` and the
    functions of :mod:`delassus.scalars.functions`, and must not branch on a value. It is
    differentiated and compiled like an algorithm. The result of an implicit function should change
    by about 1 per rad or m: below 1e-6 the dependent joints count as undetermined.

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
        defaults or of numbers and tables of its module that it uses: when a function that it
        calls changes, or a value in another module.

    Raises
    ------
    RobotError
        If the name is no text, the joints are no lists of names, rows or version no whole numbers,
        a joint is given twice, the numbers do not fit, or the function is no plain
        function, has no source text or depends on variables of an enclosing function or on
        objects of its module, so that compiled kernels could not tell it from another.
    """

    name: str
    joints: tuple[str, ...]
    function: Callable[[list[Any]], Sequence[Any]]
    rows: int
    dependent: tuple[str, ...] = ()
    version: int = 1
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        what = f"constraint {self.name!r}"
        text(f"{what}: its name", self.name, FUNCTION, RobotError)
        for each in ("joints", "dependent"):
            listed = names(f"{what}: {each}", getattr(self, each), RobotError)
            object.__setattr__(self, each, listed)
        tied = list(self.tied)
        if not self.joints or len(set(tied)) < len(tied):
            raise RobotError(f"{what} is between joints {tied}; expected different ones")
        for each in ("rows", "version"):
            size = whole(f"{what}: {each}", getattr(self, each), "a whole number", RobotError)
            object.__setattr__(self, each, size)
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
            if self.function.__code__.co_filename == "<string>":
                # From Python 3.13 on that may be the text of `python -c`.
                raise OSError("it was made from a text")
            source = inspect.getsource(self.function)
        except (OSError, TypeError) as error:
            raise RobotError(
                f"constraint {self.name!r}: the source text of its function cannot be read "
                f"({error}); define it in a file"
            ) from error
        given = (self.function.__defaults__, self.function.__kwdefaults__)
        defaults = _in_full(f"{what}: a default value of its function", given)
        used = _content(what, self.function.__code__, self.function.__globals__)
        content = "\0".join((source, defaults, used)).encode()
        object.__setattr__(self, "digest", hashlib.sha256(content).hexdigest())

    @property
    def tied(self) -> tuple[str, ...]:
        """All joints of the constraint: inputs of the function, then the dependent joints."""
        return (*self.joints, *self.dependent)

    def to_bytes(self) -> bytes:
        """Return canonical bytes: names, version and a digest of the function."""
        names = f"{self.joints!r}\0{self.dependent!r}\0{self.rows}"
        return f"function\0{self.name}\0{names}\0{self.version}\0{self.digest}\0".encode()


def _content(what: str, code: CodeType, module: Mapping[str, Any]) -> str:
    """Return the byte code of a function, and the values of its module that the function uses.

    Two lambdas of one line have the same source text.
    """
    used = {
        each.argval: _in_full(f"{what}: {each.argval!r}, which its function uses,", value)
        for each in dis.get_instructions(code)
        if each.opname == "LOAD_GLOBAL" and (value := module.get(each.argval)) is not None
    }
    constants = [
        _content(what, each, module) if isinstance(each, CodeType) else repr(each)
        for each in code.co_consts
    ]
    return repr((code.co_code, code.co_names, constants, used))


def _in_full(what: str, value: Any) -> str:
    """Return numbers and tables of numbers as unambiguous text, code as its name."""
    # Numbers of numpy before those of Python, whose text they may share.
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biuf":
        return f"{value.dtype.str}{value.shape}{value.tobytes().hex()}"
    if value is None or isinstance(value, (Real, str)):
        return repr(value)
    if isinstance(value, ModuleType):
        return value.__name__
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(_in_full(what, each) for each in value)})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(_in_full(what, pair) for pair in value.items())}}}"
    raise RobotError(
        f"{what} is {shown(value)}; expected numbers, or tuples, lists, arrays or mappings of "
        "them: a change of anything else would not be noticed"
    )


def check_constraints(
    single: Sequence[str],
    bodies: int,
    couplings: Sequence[Coupling],
    loops: Sequence[Loop],
    functions: Sequence[FunctionConstraint],
) -> None:
    """Refuse constraints between joints or on bodies that do not exist.

    Parameters
    ----------
    single : names of the joints with one degree of freedom; only these can be constrained.
    bodies : number of bodies.

    Raises
    ------
    RobotError
        Names the constraint.
    """
    named = [
        (f"coupling {coupling.name!r}", [name for name, _ in coupling.ratios])
        for coupling in couplings
    ]
    named += [(f"constraint {function.name!r}", list(function.tied)) for function in functions]
    known = set(single)
    for what, tied in named:
        for name in tied:
            if name not in known:
                raise RobotError(f"{what}: {unknown('joint', name, single)}")
    for loop in loops:
        for body in (loop.predecessor, loop.successor):
            # -1 is the world.
            if not -1 <= body < bodies:
                raise RobotError(
                    f"loop {loop.name!r}: there is no body {body}, only {bodies} bodies"
                )
