"""What closes loops in a robot's tree of joints: couplings of joints and loops between bodies.

Both are constraints on q of the spanning tree; see :class:`Coupling` and :class:`Loop`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from delassus_ros.errors import RobotError
from delassus_ros.model.spatial import Array, Transform, frozen


@dataclass(frozen=True)
class Coupling:
    """A linear constraint between joints: Σ ratio · q + offset = 0.

    Gears, belts, mimic joints and linear differentials are couplings; their loop Jacobian is
    constant.

    Attributes
    ----------
    name : for messages.
    ratios : joint name and its factor, in the units of the joints; none of the factors is 0.
    offset : the constant part.
    """

    name: str
    ratios: tuple[tuple[str, float], ...]
    offset: float = 0.0

    def __post_init__(self) -> None:
        names = [name for name, _ in self.ratios]
        if not names or len(set(names)) < len(names):
            raise RobotError(
                f"coupling {self.name!r} is between joints {names}; expected different ones"
            )
        for joint, ratio in self.ratios:
            if not np.isfinite(ratio) or ratio == 0.0:
                raise RobotError(
                    f"coupling {self.name!r}: the factor of joint {joint!r} is {ratio}; "
                    "expected a finite number other than 0"
                )
        if not np.isfinite(self.offset):
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
        object.__setattr__(self, "axis", frozen(self.axis, (3,)))
        if self.predecessor == self.successor:
            raise RobotError(f"loop {self.name!r} is between a body and itself")
        if not abs(float(np.linalg.norm(self.axis)) - 1.0) <= 1e-9:
            raise RobotError(f"loop {self.name!r}: axis {self.axis} must be a unit vector")

    def to_bytes(self) -> bytes:
        """Return canonical bytes."""
        head = f"loop\0{self.name}\0{self.kind.label}\0{self.predecessor}\0{self.successor}\0"
        placements = self.predecessor_placement.to_bytes() + self.successor_placement.to_bytes()
        return head.encode() + placements + self.axis.tobytes()
