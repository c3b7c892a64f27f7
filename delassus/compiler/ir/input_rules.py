"""The rules for the inputs of a kernel: finite, near, unit quaternions, couplings that hold.

:meth:`InputRules.statuses` applies them to arrays, for back ends;
:mod:`delassus.compiler.codegen.input_checks` writes them into compiled kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from delassus.model.chains import BallJoint, ball_joints
from delassus.model.couplings import TOLERANCE, CouplingRow, coupling_rows
from delassus.model.ranges import FARTHEST
from delassus.model.robot import JointKind, Robot
from delassus.model.spatial import UNIT_QUATERNION_TOLERANCE, Array
from delassus.scalars.ports import Port, Status, block_size, places

NORM_MIDDLE = 1.0 + UNIT_QUATERNION_TOLERANCE**2
NORM_RANGE = 2.0 * UNIT_QUATERNION_TOLERANCE
"""The square of a unit quaternion's norm differs from :data:`NORM_MIDDLE` by at most this."""


@dataclass(frozen=True)
class InputRules:
    """What the numbers of an input block have to be.

    Attributes
    ----------
    size : how many there are, all of which must be finite.
    first, count : which of them are positions, of which none may be beyond
        :data:`~delassus.model.ranges.FARTHEST`.
    couplings : rows over the positions that must hold.
    quaternions : first entries of quaternions, which must have unit norm.
    balls : ball joints that must not be at their singular angle. In compiled kernels this check is
        part of the traced program.
    """

    size: int
    first: int = 0
    count: int = 0
    couplings: tuple[CouplingRow, ...] = ()
    balls: tuple[BallJoint, ...] = ()
    quaternions: tuple[int, ...] = ()

    @classmethod
    def of(cls, ports: Sequence[Port], robot: Robot | None = None) -> InputRules:
        """Return the rules of an input block; positions are what the port ``q`` holds.

        Parameters
        ----------
        robot : whose couplings must hold, and whose ball joints and floating joints count.
        """
        size, first, count = block_size(ports), 0, 0
        quaternions: list[int] = []
        for port, place in places(ports):
            if port.name == "q":
                first, count = place.start, port.size
            elif port.name in ("base_orientation", "contact_orientations"):
                quaternions += range(place.start, place.stop, 4)
        if robot is None:
            return cls(size, first, count, quaternions=tuple(quaternions))
        quaternions += (
            first + offset + 3
            for joint, offset in zip(robot.joints, robot.q_offsets, strict=True)
            if count and joint.kind is JointKind.FLOATING
        )
        return cls(
            size, first, count, coupling_rows(robot), tuple(ball_joints(robot)),
            tuple(quaternions),
        )  # fmt: skip

    def statuses(self, inputs: Array) -> NDArray[np.int32]:
        """Return a status for each row of an array (N, size)."""
        found = np.zeros(len(inputs), dtype=np.int32)
        q = inputs[:, self.first : self.first + self.count]
        # Comparisons with NaN are false; the last line sets the status of such rows.
        with np.errstate(invalid="ignore", over="ignore"):
            for ball in self.balls:
                angles = q[:, ball.position]
                singular = ball.margin(np.sin(angles), np.cos(angles)) <= 0.0
                found[singular] = Status.NOT_POSITIVE_DEFINITE
            for row in self.couplings:
                factors = np.array(row.factors)
                terms = q[:, row.entries] * factors
                size = 1.0 + abs(row.offset) + np.abs(terms).sum(axis=1)
                is_open = np.abs(terms.sum(axis=1) + row.offset) > TOLERANCE * size
                found[is_open] = Status.NOT_CLOSED
            for k in self.quaternions:
                squares = (inputs[:, k : k + 4] ** 2).sum(axis=1)
                found[np.abs(squares - NORM_MIDDLE) > NORM_RANGE] = Status.NOT_UNIT
            found[(np.abs(q) > FARTHEST).any(axis=1)] = Status.TOO_FAR
        found[~np.isfinite(inputs).all(axis=1)] = Status.NOT_FINITE
        return found
