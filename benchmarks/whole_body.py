"""A tick of a whole-body controller: matrices and quadratic program, beside a tick with Pinocchio.

``python -m benchmarks.whole_body`` times the example examples/whole_body_control and writes
``docs/benchmarks/whole_body.md``. The peer takes M, h, J and J̇q̇ by Pinocchio's calls and solves
for accelerations, forces and torques at a time, as legged_control and TSID do.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks import machine, ours, pinocchio_cpp, timing
from benchmarks.arguments import output_of
from benchmarks.cases import AbsentError
from benchmarks.pinocchio_model import PinocchioProblem, pinocchio
from benchmarks.timing import Timing, measure, python
from delassus_ros import DelassusSolver, Problem
from delassus_ros.model.spatial import Array
from delassus_ros.samples import random_inputs
from delassus_ros.sim import demo_urdf
from delassus_ros.sim.quadruped import POSTURE

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

from control.kinematics import Kinematics, State  # noqa: E402
from whole_body_control.gait import LEGS  # noqa: E402
from whole_body_control.qp import Wanted, Weights, full, reduced  # noqa: E402
from whole_body_control.simulate import problem  # noqa: E402

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
    bound = DelassusSolver(problem(urdf)).bind()
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


def from_python(seconds: float) -> tuple[dict[str, Timing], dict[str, dict[str, Timing]]]:
    """Time the matrices, and per stance the programs and whole ticks, all in one run each.

    Raises
    ------
    ValueError
        If the two ways give other torques.
    """
    urdf = demo_urdf()
    own, theirs = by_library(urdf), by_pinocchio(urdf)
    pool = states(_POOL)
    matrices = measure({"ours": python(own, pool), "Pinocchio": python(theirs, pool)}, seconds)
    programs = {}
    for name, stands in _STANDS.items():
        feet = np.zeros((4, 3))
        wanted = Wanted(np.zeros(6), feet, stands, 129.0 / sum(stands), np.full(12, 35.0))
        weights = Weights()

        def small(state: State, wanted: Wanted = wanted, weights: Weights = weights) -> Array:
            return reduced(*own(state), wanted, weights).torques

        def large(state: State, wanted: Wanted = wanted, weights: Weights = weights) -> Array:
            return full(*theirs(state), wanted, weights).torques

        for state in pool:
            error = np.abs(small(state) - large(state)).max()
            if not error < 1e-6:
                raise ValueError(f"{name}: torques differ by {error:.1e} N m")
        programs[name] = measure(
            {"ours": python(small, pool), "peer": python(large, pool)}, seconds
        )
    return matrices, programs


def in_c(seconds: float) -> dict[str, Timing]:
    """Time the matrices called in C, along the axes of the contacts; empty without a compiler."""
    try:
        library = pinocchio_cpp.compilation().library()
    except AbsentError as error:
        print(f"no kernels: {error}")
        return {}
    own = problem(demo_urdf())
    own = Problem(own.robot, own.contacts, outputs=("a0", "MinvJT"))
    theirs = PinocchioProblem(own)
    pool = [random_inputs(own, seed) for seed in range(_POOL)]
    for inputs in pool:
        inputs["gravity"] = np.array([0.0, 0.0, -9.81])
    block = np.array([np.concatenate([one[p.name] for p in own.inputs]) for one in pool])
    stated = np.hstack(
        [
            theirs.configurations(np.array([one["q"] for one in pool])),
            *(
                theirs.motion(np.array([one[name] for one in pool]))
                for name in ("rates", "torques")
            ),
        ]
    )
    mine, rows = ours.build(own, "pv_osimr", np.ascontiguousarray(block)), own.contacts.rows
    kernel = timing.Routine(
        mine.routine.address, mine.routine.inputs, rows, mine.routine.work,
        keep=mine.routine.keep, size=sum(port.size for port in own.outputs),
    )  # fmt: skip
    routines = pinocchio_cpp.all_outputs(library, theirs, rows, np.ascontiguousarray(stated))
    for name, each in routines.items():
        error = np.linalg.norm(each.matrix(0) - kernel.matrix(0)) / np.linalg.norm(
            kernel.matrix(0)
        )
        if not error < 1e-9:
            raise ValueError(f"{name}: differs by {error:.1e}")
    samplers = {"kernel": timing.warm(kernel)}
    samplers |= {name: timing.warm(each) for name, each in routines.items()}
    return measure(samplers, seconds)


def page(
    matrices: dict[str, Timing], programs: dict[str, dict[str, Timing]], kernels: dict[str, Timing]
) -> Iterator[str]:
    """Yield the lines of the page."""
    yield "# Benchmark: a tick of a whole-body controller"
    yield ""
    yield "Written by `python -m benchmarks.whole_body`: the quadruped of `make walk`, 18 rows of"
    yield "trunk and feet. *Ours* is G, a⁰ and M⁻¹Jᵀ by one call, and the program for the feet's"
    yield "forces; the *peer* M, h, J and J̇q̇ by Pinocchio's calls, and the program for"
    yield "accelerations, forces and torques at a time. Both are solved by DAQP and give the same"
    yield "torques to 1e-6."
    yield "Minimum / median [us], contenders in turns."
    yield ""
    yield from (f"- {line}" for line in (machine.processor(), machine.versions()))
    yield ""
    yield "| from Python | ours | peer | peer / ours |"
    yield "|---|---|---|---|"
    named = {"matrices alone": dict(zip(("ours", "peer"), matrices.values(), strict=True))}
    named |= {f"whole tick, {name}": times for name, times in programs.items()}
    for name, times in named.items():
        ratio = times["peer"].median / times["ours"].median
        yield f"| {name} | {_shown(times['ours'])} | {_shown(times['peer'])} | {ratio:.1f} |"
    if kernels:
        yield ""
        yield "| matrices in C | kernel | dense | sparse | better route / kernel |"
        yield "|---|---|---|---|---|"
        own, *others = kernels.values()
        best = min(each.median for each in others)
        cells = " | ".join(_shown(each) for each in kernels.values())
        yield f"| our quadruped, trunk and feet | {cells} | {best / own.median:.1f} |"
        yield ""
        yield "Pinocchio in C++ as in [all outputs](outputs.md), with its two factorisations."
    yield ""


def _shown(time: Timing) -> str:
    return f"{1e6 * time.minimum:.2f} / {1e6 * time.median:.2f}"


def main() -> None:
    """Time everything and write the page."""
    output = output_of("whole_body", __doc__, OUTPUT)
    matrices, programs = from_python(2.0)
    output.write_text("\n".join(page(matrices, programs, in_c(1.0))), encoding="utf-8")
    print(output)


if __name__ == "__main__":
    main()
