"""A tick of a whole-body controller: matrices and quadratic program, beside a tick with Pinocchio.

``python -m benchmarks.whole_body`` times the example examples/whole_body_control and writes
``docs/benchmarks/whole_body.md``. The peer takes M, h, J and J̇q̇ by Pinocchio's calls and solves
for accelerations, forces and torques at a time, as legged_control and TSID do.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks import outputs, pages
from benchmarks.arguments import output_of
from benchmarks.compare import compare, from_python
from benchmarks.pages import Places, made_on, times_by_case
from benchmarks.pinocchio_peer import pinocchio
from benchmarks.timing import Timing
from delassus import DelassusSolver, Problem
from delassus.model.spatial import Array
from delassus.robots.built_in import demo_urdf
from delassus.samples import random_inputs
from delassus_ros.sim.quadruped import POSTURE

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

from control.kinematics import Kinematics, State  # noqa: E402
from whole_body_control.example import EXAMPLE  # noqa: E402
from whole_body_control.gait import LEGS  # noqa: E402
from whole_body_control.qp import Wanted, Weights, full, reduced  # noqa: E402

OUTPUT = Path(__file__).parents[1] / "docs" / "benchmarks" / "whole_body.md"
_POOL = 16
_STANDS = {"four feet": [True] * 4, "two feet": [True, False, False, True]}


def states(count: int) -> list[State]:
    """Return states near standing."""
    random, pin = np.random.default_rng(0), pinocchio()
    found = []
    for _ in range(count):
        q = np.array(list(POSTURE.values())) + random.uniform(-0.2, 0.2, len(POSTURE))
        turned = pin.Quaternion(pin.exp3(random.uniform(-0.2, 0.2, 3))).coeffs()
        rates, twist = random.uniform(-1, 1, len(q)), random.uniform(-0.5, 0.5, 6)
        found.append(State(q, rates, np.array([0.0, 0.0, 0.3]), turned, twist, [True] * 4))
    return found


def by_library(urdf: str) -> Callable[[State], tuple[Array, Array, Array]]:
    """Return what gives G, a0 and the joints' part of M⁻¹ Jᵀ, in one call of a kernel."""
    bound = DelassusSolver(EXAMPLE.problem(urdf)).bind()
    inputs = bound.inputs
    inputs["gravity"], inputs["torques"] = [0.0, 0.0, -9.81], np.zeros(18)
    rates, orientation = inputs["rates"], inputs["base_orientation"]

    def matrices(state: State) -> tuple[Array, Array, Array]:
        rates[:6], rates[6:] = state.twist, state.velocity
        orientation[:] = state.orientation
        s = bound.solve(state.q)
        return s.matrix, s.output("a0"), s.output("MinvJT")[6:].T

    return matrices


def by_pinocchio(urdf: str) -> Callable[[State], tuple[Array, Array, Array, Array]]:
    """Return what gives M, h, J and J̇q̇ of trunk and feet, by Pinocchio's calls from Python."""
    pin = pinocchio()
    kinematics = Kinematics(urdf, [f"{leg}_FOOT" for leg in LEGS], list(POSTURE))
    model, data = kinematics.model, kinematics.data
    order = np.array([*range(6), *kinematics.v_places])
    places = np.ix_(order, order)
    still, axes = np.zeros(model.nv), pin.LOCAL_WORLD_ALIGNED
    frames = [(model.getFrameId("base"), 6), *((frame, 3) for frame in kinematics.frames)]

    def matrices(state: State) -> tuple[Array, Array, Array, Array]:
        q, v = kinematics.configuration(state)
        M = pin.crba(model, data, q)
        h = pin.nle(model, data, q, v)[order]
        pin.forwardKinematics(model, data, q, v, still)
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        J = [pin.getFrameJacobian(model, data, frame, axes)[:rows] for frame, rows in frames]
        bias = [
            pin.getFrameClassicalAcceleration(model, data, frame, axes).vector[:rows]
            for frame, rows in frames
        ]
        return M[places], h, np.vstack(J)[:, order], np.concatenate(bias)

    return matrices


def ticks(seconds: float) -> dict[str, dict[str, Timing]]:
    """Time the matrices, and per stance the whole ticks, each in one run; by what is timed.

    Raises
    ------
    WrongResultError
        If the two ways give other torques.
    """
    urdf = demo_urdf()
    own, theirs = by_library(urdf), by_pinocchio(urdf)
    pool = states(_POOL)
    matrices = {"ours": from_python(own, pool), "peer": from_python(theirs, pool)}
    found = {"matrices alone": compare("matrices", matrices, seconds)}
    for name, stands in _STANDS.items():
        feet = np.zeros((4, 3))
        wanted = Wanted(np.zeros(6), feet, stands, 129.0 / sum(stands), np.full(12, 35.0))
        weights = Weights()

        def small(state: State, wanted: Wanted = wanted, weights: Weights = weights) -> Array:
            return reduced(*own(state), wanted, weights).torques

        def large(state: State, wanted: Wanted = wanted, weights: Weights = weights) -> Array:
            return full(*theirs(state), wanted, weights).torques

        programs = {
            "ours": from_python(small, pool, lambda torques: [torques]),
            "peer": from_python(large, pool, lambda torques: [torques]),
        }
        found[f"whole tick, {name}"] = compare(name, programs, seconds, 1e-8, range(_POOL))
    return found


def in_c(seconds: float) -> dict[str, Timing]:
    """Time the matrices called in C, along the axes of the contacts; empty without a compiler."""
    own = EXAMPLE.problem(demo_urdf())
    own = Problem(own.robot, own.contacts, outputs=("a0", "MinvJT"))
    pool = [random_inputs(own, seed) for seed in range(_POOL)]
    given = {name: np.array([one[name] for one in pool]) for name in ("q", "rates", "torques")}
    times, _ = outputs.in_c("quadruped", own, given, seconds)
    return times


def places(times: dict[str, dict[str, Timing]], kernels: dict[str, Timing]) -> Places:
    """Return the results of the page by place."""
    robot, beside = {"our quadruped, trunk and feet": kernels}, "better route / kernel"
    return {
        "run": made_on(),
        "times": times_by_case(times, "from Python", "peer / ours"),
        "kernels": times_by_case(robot, "matrices in C", beside) if kernels else "",
    }


def main() -> None:
    """Time everything and write the page."""
    output = output_of("whole_body", __doc__, OUTPUT)
    pages.write(output, "benchmarks/whole_body", places(ticks(2.0), in_c(1.0)))
    print(output)


if __name__ == "__main__":
    main()
