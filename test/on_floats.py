"""Solvers that run an algorithm on floats: for tests of formulas, which need no machine code.

Fresh machine code is compared with the same algorithm on floats whenever a kernel is built, and
``test/compiler`` compares both, so that an oracle that agrees with one agrees with the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from delassus import Contact, DelassusSolver, Problem, Robot, algorithms
from delassus.algorithms.registry import NumericAlgorithm, TracedAlgorithm, evaluate
from delassus.compiler import kernel_for
from delassus.dynamics import GRAVITY
from delassus.dynamics.methods import recursive_forward, recursive_inverse
from delassus.model.spatial import Array
from delassus.rbda.dynamics import hybrid
from delassus.rbda.robot_tree import RobotTree
from delassus.rbda.tree import Tree
from delassus.scalars.ports import Arrays, Status


class OnFloats(NumericAlgorithm):
    """A traced algorithm that is run on floats at each call."""

    def __init__(self, traced: TracedAlgorithm) -> None:
        self.traced, self.name = traced, traced.name

    def supports(self, problem: Problem) -> str | None:
        """Return the traced algorithm's reason for refusal; see the base class."""
        return self.traced.supports(problem)

    def prepare(self, problem: Problem) -> Callable[[Arrays, Arrays], Status]:
        """Return what runs it; see the base class."""

        def compute(inputs: Arrays, outputs: Arrays) -> Status:
            found = evaluate(problem, self.traced, flat(inputs))
            for name, array in outputs.items():
                array[...] = found[name]
            return Status.OK

        return compute


def flat(inputs: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return inputs as the flat lists that algorithms take."""
    return {name: np.ravel(values).tolist() for name, values in inputs.items()}


def outputs_on_floats(
    problem: Problem, algorithm: str, inputs: Mapping[str, Any], tree: Tree | None = None
) -> dict[str, Array]:
    """Return the outputs of a traced algorithm, by name."""
    traced = algorithms.get(algorithm)
    assert isinstance(traced, TracedAlgorithm)
    found = evaluate(problem, traced, flat(inputs), tree)
    return {name: np.array(values, dtype=float) for name, values in found.items()}


def solver_on_floats(problem: Problem, algorithm: str = "pv_osimr") -> DelassusSolver:
    """Return a solver of a problem that runs a traced algorithm on floats."""
    traced = algorithms.get(algorithm)
    assert isinstance(traced, TracedAlgorithm)
    kernel = kernel_for(problem, OnFloats(traced))
    return DelassusSolver(problem, algorithm, prebuilt=kernel)


def matrix(robot: Robot, frames: Sequence[str], positions: dict[str, float]) -> np.ndarray:
    """Return G of surface contacts at frames; the loops must be closed."""
    return matrix_at(robot, frames, robot.q(positions))


def matrix_at(robot: Robot, frames: Sequence[str], q, algorithm: str = "pv_osimr") -> np.ndarray:
    """Return G of surface contacts at frames; the loops must be closed."""
    problem = Problem(robot, [Contact(name, name, "surface") for name in frames])
    return solver_on_floats(problem, algorithm).solve(q, check=True).matrix


class DynamicsOnFloats:
    """Inverse, forward and hybrid dynamics of a robot as ``Dynamics`` has them, on floats."""

    def __init__(self, robot: Robot, wrenches: Sequence[str] = ()) -> None:
        self._tree = RobotTree(robot, tuple(wrenches))
        self.joints, self.size = self._tree.joints, self._tree.size

    def inverse(self, q, rates, accelerations, gravity=GRAVITY, wrenches=None) -> Array:
        """Return the torques that a motion needs."""
        given = self._given(q, rates, gravity, wrenches, accelerations=accelerations)
        return np.array(recursive_inverse(self._tree, given))

    def forward(self, q, rates, torques, gravity=GRAVITY, wrenches=None) -> Array:
        """Return the accelerations that torques cause."""
        given = self._given(q, rates, gravity, wrenches, torques=torques)
        return np.array(recursive_forward(self._tree, given))

    def hybrid(self, q, rates, known, accelerated, gravity=GRAVITY, wrenches=None) -> Array:
        """Return the unknown torques and accelerations; those of `accelerated` are known."""
        columns = self._tree.columns_by_joint
        indices = frozenset(k for joint in accelerated for k in columns[joint])
        motion = self._tree.motion(self._given(q, rates, gravity, wrenches))
        return np.array(hybrid(motion, np.ravel(known).tolist(), indices))

    @staticmethod
    def _given(q, rates, gravity, wrenches, **others) -> dict[str, list[float]]:
        given = {"q": q, "rates": rates, "gravity": gravity, **others}
        if wrenches is not None:
            given["wrenches"] = wrenches
        return flat(given)
