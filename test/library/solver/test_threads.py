"""Public classes in two threads: docstrings say who may share an object, and it is shared."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from threading import Barrier
from typing import Any

import numpy as np
import pytest
from friction import feet_problem, random_problem, standing_inputs
from linkages import REFERENCE, four_bar
from robots import LEGS

import delassus
from delassus import (
    CenterOfMass,
    CentroidalMomentum,
    Closure,
    Contact,
    ContactSet,
    DelassusSolver,
    ForceSolver,
    Problem,
    RelativeContact,
    Robot,
    Transform,
    WeightedSum,
    solve_contacts,
)
from delassus.dynamics import Dynamics
from delassus.gradients import Gradients
from delassus.measured import JointAcceleration, JointTorque, Measurement, SparseDynamics
from delassus.robots.built_in import demo_urdf

KINDS = [
    kind
    for name in delassus.__all__
    if isinstance(kind := getattr(delassus, name), type)
    and not issubclass(kind, (Exception, Enum))
]
"""Classes of the public surface; errors and enumerations are no one's state."""
CALLS, ROUNDS, WAIT_S = 24, 4, 60.0
"""Different calls of a thread, how often it repeats them, and how long it waits for the other."""

Call = Callable[[int], list[Any]]


def _solution(problem: Problem, k: int) -> tuple[DelassusSolver, dict[str, Any]]:
    inputs = standing_inputs(problem)
    inputs["q"] = np.asarray(inputs["q"]) + 0.01 * k
    return DelassusSolver(problem), inputs


def solver() -> Call:
    problem = feet_problem()
    shared, inputs = _solution(problem, 0)

    def call(k: int) -> list[Any]:
        s = shared.solve(**{**inputs, "q": inputs["q"] + 0.01 * k}, active=LEGS[k % 3 :])
        return [s.matrix, *s.secondary.values()]

    return call


def batches() -> Call:
    shared, inputs = _solution(feet_problem(), 0)
    n = 40
    many = {name: np.tile(values, (n, 1)) for name, values in inputs.items() if name != "q"}

    def call(k: int) -> list[Any]:
        Q = inputs["q"] + 0.01 * k + np.linspace(0.0, 0.1, n)[:, None]
        found = shared.solve_batch(Q, LEGS[k % 3 :], threads=1 + k % 2, **many)
        return [found.matrix, found.contact_forces(0.1 + 0.1 * (k % 5)).forces]

    return call


def results() -> Call:
    """Return a call of the methods of one solution and of one batch."""
    shared, inputs = _solution(feet_problem(), 0)
    s = shared.solve(**inputs)
    batch = shared.solve_batch(
        inputs["q"][None], **{name: x[None] for name, x in _arrays(inputs).items()}
    )

    def call(k: int) -> list[Any]:
        forces = s.contact_forces(0.1 + 0.1 * (k % 5))
        start = s.contact_forces(0.3, start=forces)
        many = batch.contact_forces(0.1 + 0.1 * (k % 5))
        held = s.task(LEGS[k % 4], LEGS[k % 4 + 1 :])
        return [forces.forces, start.forces, many.forces, s.inertia(), held.inertia()]

    return call


def _arrays(inputs: dict[str, Any]) -> dict[str, np.ndarray]:
    return {name: np.asarray(values) for name, values in inputs.items() if name != "q"}


def forces() -> Call:
    shared = ForceSolver(["point"] * 4, 0.5)
    problems = [random_problem(seed) for seed in range(CALLS)]

    def call(k: int) -> list[Any]:
        # Of 40 calls in two threads, one had forces of the other thread before there was a lock.
        first, *others = (shared.solve(*problems[k]) for _ in range(20))
        margin = shared.derivative(first).margin
        kept = solve_contacts(*problems[k], friction=0.1 + 0.1 * (k % 5))
        many = shared.solve_batch(*(np.array([x, 2.0 * x]) for x in problems[k]))
        return [first.forces, *(x.forces for x in others), margin, kept.forces, many.forces]

    return call


def closure() -> Call:
    shared = Closure(four_bar(), REFERENCE)
    return lambda k: [shared.solve({"crank": 0.6 + 0.01 * k}).q]


def descriptions() -> Call:
    """Return a call of what describes a problem: made anew of shared parts, and shared."""
    robot = feet_problem().robot
    contacts = ContactSet([
        *(Contact(foot, f"{foot}_FOOT", friction=0.5) for foot in LEGS),
        RelativeContact("pair", "LF_FOOT", "RF_FOOT"),
        WeightedSum("middle", {"LF_FOOT": 0.5, "RH_FOOT": 0.5}),
        CenterOfMass("com"), CentroidalMomentum("momentum"),
    ])  # fmt: skip
    shared = Problem(robot, contacts, outputs=["J"])
    pose = Transform.from_xyz_rpy((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))

    def call(k: int) -> list[Any]:
        own = Problem(robot, contacts, outputs=["J", *(["M"] if k % 2 else [])])
        digests = [own.digest, shared.digest, Problem(robot, list(contacts)).digest]
        numbers = np.array([int(digest[:12], 16) for digest in digests])
        q = robot.q({"LF_HFE": 0.01 * k})
        moved = (pose @ pose.inverse()).translation
        return [numbers, q, shared.rates(robot.v({"LF_HFE": 0.1 * k})), moved]

    return call


def states() -> Call:
    """Return a call that converts states of two models, whose maps a robot keeps."""
    import pinocchio as pin
    urdf = demo_urdf()
    models = [pin.buildModelFromXML(urdf, pin.JointModelFreeFlyer()) for _ in range(2)]
    robot = Robot.from_pinocchio(models[0])

    def call(k: int) -> list[Any]:
        model = models[k % 2]
        q = robot.q_to_pinocchio(model, np.full(robot.nq, 0.01 * k))
        return [q, robot.q_from_pinocchio(model, q)[0], robot.v_to_pinocchio(model, q, q[1:])]

    return call


def dynamics() -> Call:
    robot = feet_problem().robot
    shared = Dynamics(robot)
    n = shared.size

    def call(k: int) -> list[Any]:
        q, rates = np.full(robot.nq, 0.01 * k), np.full(n, 0.1 * k)
        return [shared.inverse(q, rates, rates), shared.forward(q, rates, rates)]

    return call


def gradients() -> Call:
    robot = feet_problem().robot
    shared = Gradients(Problem(robot, [Contact("LF", "LF_FOOT")]))
    return lambda k: [shared.vjp({"G": np.eye(3)}, np.full(robot.nq, 0.01 * k))["q"]]


def measured() -> Call:
    robot = four_bar()
    names = Dynamics(robot).joints
    known = [Measurement(JointAcceleration(name)) for name in names]
    shared = SparseDynamics(robot, known, [JointTorque(name) for name in names])
    closed = Closure(robot, REFERENCE)
    positions = [closed.solve({"crank": 0.6 + 0.01 * k}).q for k in range(CALLS)]

    def call(k: int) -> list[Any]:
        values = {measurement.quantity: [0.1 * k] for measurement in known}
        return list(shared.solve(positions[k], [0.1 * k] * len(names), values).values.values())

    return call


SHARED: dict[str, tuple[Callable[[], Call], str]] = {
    "solver": (solver, "DelassusSolver"),
    "batches": (batches, "DelassusSolver BatchSolution BatchContactForces"),
    "results": (results, "Solution BatchSolution ContactForces"),
    "forces": (forces, "ForceSolver ContactForces BatchContactForces"),
    "closure": (closure, "Closure"),
    "descriptions": (
        descriptions,
        "CenterOfMass CentroidalMomentum Contact ContactSet Problem RelativeContact Robot "
        "Transform WeightedSum",
    ),
    "states": (states, "Robot"),
    "dynamics": (dynamics, "Dynamics"),
    "gradients": (gradients, "Gradients"),
    "measured": (measured, "SparseDynamics"),
}
"""Calls on shared objects, and the classes of these."""


@pytest.fixture
def frequent_switches() -> Iterator[None]:
    """Let the interpreter change threads as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_docstrings_say_who_may_share_an_object(kind: type) -> None:
    said = " ".join((kind.__doc__ or "").split())
    is_shared = "hread-safe" in said or "hreads may share" in said
    covered = any(kind.__name__ in classes.split() for _, classes in SHARED.values())
    assert is_shared == covered and (is_shared or "one per thread" in said)


@pytest.mark.parametrize("name", SHARED)
def test_two_threads_have_the_results_of_one(name: str, frequent_switches: None) -> None:
    call = SHARED[name][0]()
    expected = [call(k) for k in range(CALLS)]
    begin = Barrier(2)

    def work(order: range) -> None:
        begin.wait(WAIT_S)
        for k in (*order,) * ROUNDS:
            for ours, theirs in zip(call(k), expected[k], strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(work, order) for order in (range(CALLS), range(CALLS)[::-1])]:
            done.result()
