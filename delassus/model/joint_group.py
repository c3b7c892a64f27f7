"""The joints of a cluster with the constraints between them, before its coordinates are known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from delassus.model.constraints import Coupling, FunctionConstraint, Loop
from delassus.model.mechanism import Mechanism
from delassus.model.spatial import Array

Constraint = Coupling | Loop | FunctionConstraint
WORDS: dict[type[Constraint], str] = {
    Coupling: "coupling",
    Loop: "loop",
    FunctionConstraint: "constraint",
}
"""Words for the constraints in messages, in the order of their rows."""


def joints_of(robot: Mechanism, loop: Loop) -> list[int]:
    """Return the joints, increasing, that move the ends of a loop against each other.

    These are the joints on the two branches from the nearest common ancestor of the ends: the
    predecessor's branch down and the successor's up.
    """
    return sorted(set(robot.path(loop.predecessor)) ^ set(robot.path(loop.successor)))


@dataclass(frozen=True, eq=False)
class JointGroup:
    """The joints of a cluster with the constraints between them.

    Attributes
    ----------
    joints : joint (= body) indices, increasing: parents come first.
    couplings, loops, functions : the constraints between its joints.
    """

    robot: Mechanism
    joints: tuple[int, ...]
    couplings: tuple[Coupling, ...] = ()
    loops: tuple[Loop, ...] = ()
    functions: tuple[FunctionConstraint, ...] = ()

    @property
    def is_ordinary(self) -> bool:
        """Whether the group is one joint without constraints."""
        return not (self.couplings or self.loops or self.functions)

    @property
    def constraint_names(self) -> tuple[str, ...]:
        """Names of the constraints, for messages."""
        return tuple(constraint.name for constraint in self._constraints)

    @property
    def _constraints(self) -> list[Constraint]:
        return [*self.couplings, *self.loops, *self.functions]

    @property
    def columns(self) -> dict[str, int]:
        """Column of each joint, by name, in the matrices of the cluster."""
        return {self.robot.joints[joint].name: i for i, joint in enumerate(self.joints)}

    @property
    def entries(self) -> list[int]:
        """Entry of q of each joint."""
        return [self.robot.q_offsets[joint] for joint in self.joints]

    @property
    def is_linear(self) -> NDArray[np.bool_]:
        """Per joint, whether the joint is neither in a loop nor an input of a function.

        The derivative of the constraints by the position of such a joint, for instance of a geared
        rotor, is the same in every configuration.
        """
        curved = {joint for loop in self.loops for joint in joints_of(self.robot, loop)}
        inputs = {name for function in self.functions for name in function.joints}
        return np.array(
            [
                joint not in curved and self.robot.joints[joint].name not in inputs
                for joint in self.joints
            ]
        )

    def names(self, joints: Iterable[int]) -> str:
        """Return the names of joints, quoted, for messages."""
        return ", ".join(repr(self.robot.joints[joint].name) for joint in joints) or "none"

    def described(self) -> str:
        """Return the constraints by name, for messages."""
        parts = []
        for kind, word in WORDS.items():
            names = [repr(each.name) for each in self._constraints if isinstance(each, kind)]
            if names:
                parts.append(f"{word}{'s' if len(names) > 1 else ''} {', '.join(names)}")
        return " and ".join(parts)

    def blocks(self) -> list[tuple[str, slice]]:
        """Return each coupling, loop and function, as in messages, with its rows."""
        counts = [1] * len(self.couplings) + [loop.kind.rows for loop in self.loops]
        counts += [function.rows for function in self.functions]
        blocks, first = [], 0
        for constraint, rows in zip(self._constraints, counts, strict=True):
            what = f"{WORDS[type(constraint)]} {constraint.name!r}"
            blocks.append((what, slice(first, first + rows)))
            first += rows
        return blocks

    @property
    def row_names(self) -> list[str]:
        """The constraint of each row, as in messages."""
        return [what for what, rows in self.blocks() for _ in range(rows.stop - rows.start)]

    def factors(self, coupling: Coupling) -> list[float]:
        """Return the factor of each joint in a coupling; 0 of joints that are not in it."""
        factors = dict(coupling.ratios)
        return [factors.get(self.robot.joints[joint].name, 0.0) for joint in self.joints]

    def coupling_rows(self) -> Array:
        """Return a row per coupling: its factors, the largest 1, then its constant part; in SI."""
        rows = np.array([[*self.factors(each), each.offset] for each in self.couplings])
        rows = rows.reshape(-1, len(self.joints) + 1)
        return np.asarray(rows / np.abs(rows[:, :-1]).max(axis=1, keepdims=True))
