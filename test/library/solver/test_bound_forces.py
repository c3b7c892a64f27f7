"""Contact forces of a bound solver: the bits of a solution's, warm across switches, by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from friction import feet_problem, standing_inputs
from robots import LEGS
from small import feed

from delassus import (
    BoundSolver,
    ContactForces,
    DelassusSolver,
    ForceStatus,
    NumericalError,
    Problem,
    Status,
)

WALK = (LEGS, ("LF", "RH"), ("RH", "LF", "RF"), (), ("RF", "LH"), LEGS, LEGS)


def _bound() -> tuple[BoundSolver, Any]:
    problem = feet_problem()
    inputs = standing_inputs(problem)
    bound = feed(DelassusSolver(problem).bind(), inputs)
    return bound, inputs


def _tick(bound: BoundSolver, inputs: Any, active: Sequence[str], seed: int) -> None:
    """Solve on these feet, with torques by seed under which some of them slide."""
    torques = bound.inputs["torques"]
    torques[6:] = np.random.default_rng(seed).normal(scale=15.0, size=len(torques) - 6)
    bound.activate(active)
    bound.solve(np.asarray(inputs["q"]))


def _same(a: ContactForces, b: ContactForces) -> bool:
    arrays = ("forces", "accelerations", "cone_forces", "record")
    return (a.status, a.contacts, *(getattr(a, name).tobytes() for name in arrays)) == (
        b.status, b.contacts, *(getattr(b, name).tobytes() for name in arrays)
    )  # fmt: skip


@pytest.mark.parametrize("law", ["coulomb", "convex", "auto"])
def test_a_walk_has_the_bits_of_its_solutions(law: Any) -> None:
    bound, inputs = _bound()
    mu = dict(zip(LEGS, (0.3, 0.4, 0.5, 0.6), strict=True))
    bound.set_friction(mu, law=law)
    before: ContactForces | None = None
    steps = []
    for tick, active in enumerate(WALK):
        _tick(bound, inputs, active, tick)
        found = bound.contact_forces()
        solution = bound.solution.copy()
        expected = solution.contact_forces(mu, law=law, start=before)
        assert found.status == ForceStatus.SOLVED and set(found.contacts) == set(active)
        assert _same(found, expected)
        before = found.copy()
        assert _same(bound.contact_forces(warm=False), solution.contact_forces(mu, law=law))
        steps.append(sum(bound.contact_forces().steps))  # begins with what it ends with
        before = bound.contact_forces().copy()
    assert max(steps) <= 1


def test_bits_depend_on_the_last_forces_and_not_on_earlier_calls() -> None:
    histories: list[list[Sequence[str]]] = [[], [("LF",), ("RF", "RH")], [LEGS, ("LH",), LEGS]]
    results = []
    for history in histories:
        bound, inputs = _bound()
        bound.set_friction(0.4)
        for tick, active in enumerate(history):
            _tick(bound, inputs, active, 10 + tick)
            bound.contact_forces()
        _tick(bound, inputs, ("RH", "LF", "RF"), 1)
        bound.contact_forces(warm=False)
        _tick(bound, inputs, LEGS, 2)
        results.append(bound.contact_forces().copy())
    assert _same(results[0], results[1]) and _same(results[0], results[2])


def test_a_contact_that_comes_back_begins_with_0() -> None:
    bound, inputs = _bound()
    bound.set_friction(0.4)
    for active in (LEGS, ("LF",), LEGS):
        _tick(bound, inputs, active, 3)
        found = bound.contact_forces().copy()
    alone = bound.solution.copy()
    alone_forces = found
    _tick(bound, inputs, ("LF",), 3)
    one = bound.solution.contact_forces(0.4)
    again = alone.contact_forces(0.4, start=one)
    np.testing.assert_allclose(again.forces, alone_forces.forces, atol=1e-6)
    start = one.start(LEGS, alone_forces.cone_offsets)
    assert start[:3].any() and not start[3:].any()


def test_the_same_object_each_time() -> None:
    bound, inputs = _bound()
    bound.set_friction(0.4)
    _tick(bound, inputs, LEGS, 0)
    first = bound.contact_forces()
    kept = first.copy()
    _tick(bound, inputs, LEGS, 1)
    assert bound.contact_forces() is first
    assert kept.forces.tobytes() != first.forces.tobytes()


@pytest.mark.parametrize("active", [None, LEGS[:2]])
def test_no_forces_before_the_first_matrix(active: Any) -> None:
    outputs = ["a0", "qdd0", "J", "MinvJT", "h", "JdotV"]
    problem = feet_problem()
    bound = DelassusSolver(Problem(problem.robot, problem.contacts, "world", outputs)).bind()
    if active is not None:
        feed(bound, standing_inputs(problem))
        assert bound.solve().status is Status.OK
        # Another set of contacts has no matrix yet.
        bound.activate(active)
    bound.set_friction(0.4)
    forces, motion, task = bound.contact_forces(), bound.constrained_dynamics(), bound.task("LF")
    assert forces.status == ForceStatus.NOT_FINITE and not forces.forces.any()
    assert motion.status is Status.NOT_FINITE and np.isnan(motion.forces).all()
    assert np.isnan(task.compute().matrix).all() and task.status is Status.NOT_FINITE
    with pytest.raises(NumericalError, match="there is no matrix: the status is NOT_FINITE"):
        bound.solution.inertia()


def test_no_matrix_no_forces_and_no_start() -> None:
    bound, inputs = _bound()
    bound.set_friction(0.4)
    _tick(bound, inputs, LEGS, 0)
    good = bound.contact_forces(warm=False).copy()
    bound.inputs["q"][3] = np.nan
    bound.solve()
    bad = bound.contact_forces()
    assert bad.status == ForceStatus.NOT_FINITE and not bad.forces.any()
    assert np.isnan(bad.accelerations).all()
    _tick(bound, inputs, LEGS, 0)
    assert _same(bound.contact_forces(), good)


def test_options_per_contact_follow_the_contacts() -> None:
    bound, inputs = _bound()
    R = np.array([0.1, 0.2, 0.3, 0.4])
    bound.set_friction([0.3, 0.4, 0.5, 0.6], compliance=R)
    _tick(bound, inputs, ("RH", "RF"), 0)
    assert bound.solution.contacts == ("RF", "RH")
    expected = bound.solution.contact_forces([0.4, 0.6], compliance=[0.2, 0.4])
    assert _same(bound.contact_forces(), expected)
