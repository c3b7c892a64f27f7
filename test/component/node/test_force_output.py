"""Contact forces beside each matrix: those of the library, and never OK unless SOLVED."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import robots
from allocated import allocated
from delassus_msgs.msg import ContactDynamics
from delassus_msgs_py import DynamicsReader, dynamics_to_numpy, matrix_to_numpy
from friction import pinocchio_forces
from motion_support import FEET, POINTS, TURNED, MotionRig, contradicting
from on_floats import solver_on_floats
from rclpy.serialization import serialize_message
from tick_support import DEGRADED, INVALID, MS, OK

from delassus import Contact, DelassusSolver, InputError, Problem, Robot
from delassus.contact_forces import ForceSolver, ForceStatus
from delassus.model.spatial import rotation_from_quaternion
from delassus.solver.friction import ForceSettings, new_solver
from delassus_ros.inputs.findings import Reason
from delassus_ros.inputs.limits import Limits
from delassus_ros.node import forces as module
from delassus_ros.node.forces import ForceOutput

STILL: dict[str, Any] = {"slip_speed": 1e3, "leave_speed": 1e3, "strike_speed": 1e3}
"""Thresholds below which contacts of a rig, whose velocities are random, are at rest."""
FRICTION = Limits().forces.friction


def compiled(forces: ForceSettings | None = None, **options: Any) -> MotionRig:
    """Return a rig whose matrices have the bits of `DelassusSolver`; contacts are at rest."""
    limits = Limits(forces=ForceSettings(**STILL) if forces is None else forces)
    return MotionRig(is_compiled=True, limits=limits, **options)


def tick(rig: MotionRig, *active: str, **changes: Any) -> list[Any]:
    """Send contacts, an odometry and a joint state of the next millisecond."""
    rig.now += MS
    rig.touch(*active)
    if rig.problem.robot.base == "floating":
        rig.odometry()
    return rig.send(**changes)


@pytest.mark.parametrize("law", ["auto", "coulomb", "convex"])
@pytest.mark.parametrize("slip_speed", [0.1, 1e3])
def test_forces_are_those_of_the_library_bit_for_bit(law: Any, slip_speed: float) -> None:
    """Also where contacts slide, come and go, and begin with the forces of the tick before."""
    speeds = {**STILL, "slip_speed": slip_speed}
    rig = compiled(ForceSettings(0.3, law, **speeds), outputs=["forces"])
    solver, before = DelassusSolver(rig.problem), None
    for step, active in enumerate((FEET, FEET, FEET[1:], ("LF", "RH"), FEET)):
        rig.q = rig.q + 0.01 * step
        matrix, dynamics = tick(rig, *active)
        s = solver.solve(active=active, **rig.inputs())
        before = s.contact_forces(0.3, law=law, start=before, **speeds)
        assert before.status == ForceStatus.SOLVED
        found = dynamics_to_numpy(dynamics)
        assert found.forces is not None and found.contacts == active
        assert matrix_to_numpy(matrix).tobytes() == s.matrix.tobytes()
        assert found.forces.tobytes() == before.forces.tobytes()
        assert found.forces_residual == before.residual <= 1e-10
        assert (found.validity, found.forces_validity) == (OK, OK)
        assert found.forces_status == ContactDynamics.FORCES_SOLVED
        expected = {"coulomb": ContactDynamics.LAW_COULOMB, "convex": ContactDynamics.LAW_CONVEX}
        assert found.forces_law == expected[before.law]
        assert found.friction is not None and found.friction.tolist() == [0.3] * len(active)
        assert found.normals is not None and found.normals.tolist() == [[0, 0, 1]] * len(active)


def test_forces_go_on_by_name() -> None:
    """Two contacts after two others: neither begins with forces that it did not have."""
    rig = compiled(outputs=["forces"])
    tick(rig, "LF", "RF")
    found = dynamics_to_numpy(tick(rig, "RF", "LH")[1])
    s = DelassusSolver(rig.problem).solve(active=("LF", "RF"), **rig.inputs())
    before = s.contact_forces(FRICTION, **STILL)
    s = DelassusSolver(rig.problem).solve(active=("RF", "LH"), **rig.inputs())
    expected = s.contact_forces(FRICTION, start=before, **STILL)
    assert found.forces.tobytes() == expected.forces.tobytes()
    # A start by place has other bits.
    before.contacts = ("RF", "LH")
    wrong = s.contact_forces(FRICTION, start=before, **STILL)
    assert wrong.forces.tobytes() != expected.forces.tobytes()


def test_forces_agree_with_pinocchio() -> None:
    rig = compiled(outputs=["forces", "a0"])
    matrix, dynamics = rig.send()
    found, G = dynamics_to_numpy(dynamics), matrix_to_numpy(matrix)
    assert np.linalg.cond(G) < 1e4 and found.forces_law == ContactDynamics.LAW_COULOMB
    peer = pinocchio_forces(G, found.a0, FRICTION)
    np.testing.assert_allclose(found.forces, peer, rtol=0, atol=1e-6 * np.abs(peer).max())
    assert (np.abs(peer.reshape(4, 3)).max(axis=1) > 1.0).any()


def test_contacts_have_friction_and_normals_of_their_own() -> None:
    contacts = (
        Contact("LF", "LF_FOOT", friction=0.2, normal="-z"), *POINTS[1:3],
        Contact("RH", "RH_FOOT", normal=(0.0, 0.6, 0.8)),
    )  # fmt: skip
    rig = compiled(outputs=["forces"], contacts=contacts)
    _, dynamics = rig.send()
    found = dynamics_to_numpy(dynamics)
    expected = DelassusSolver(rig.problem).solve(**rig.inputs()).contact_forces(0.6, **STILL)
    assert found.forces.tobytes() == expected.forces.tobytes()
    assert found.friction.tolist() == [0.2, 0.6, 0.6, 0.6]
    assert found.normals.tolist() == [[0, 0, -1], [0, 0, 1], [0, 0, 1], [0, 0.6, 0.8]]


def test_friction_and_law_change_between_two_ticks() -> None:
    rig, reader = compiled(outputs=["forces"]), DynamicsReader()
    solver = DelassusSolver(rig.problem)
    for friction, law in ((0.6, "auto"), (0.2, "auto"), (0.2, "convex"), (0.0, "coulomb")):
        settings = ForceSettings(friction, law, **STILL)  # type: ignore[arg-type]
        rig.tick.limits = replace(rig.tick.limits, forces=settings)
        _, dynamics = tick(rig, *FEET)
        found = reader.read(serialize_message(dynamics))
        assert found.friction.tolist() == [friction] * 4
        s = solver.solve(**rig.inputs()).contact_forces(friction, law=law, **STILL)
        assert s.status == ForceStatus.SOLVED
        np.testing.assert_allclose(found.forces, s.forces, atol=1e-6 * np.abs(s.forces).max())
        by_foot = found.forces.reshape(4, 3)
        sideways = np.hypot(by_foot[:, 0], by_foot[:, 1])
        assert (sideways <= friction * by_foot[:, 2] + 1e-9).all()


def test_forces_of_all_rows_are_those_of_the_contacts_that_touch() -> None:
    rig = compiled(outputs=["forces"], all_rows=True)
    solver = DelassusSolver(rig.problem)
    for active in (FEET, ("RF", "LH"), ()):
        rig.tick.clock_jumped()
        _, dynamics = tick(rig, *active)
        found = dynamics_to_numpy(dynamics)
        assert (found.contacts, found.forces_validity) == (FEET, OK)
        expected = np.zeros(12)
        if active:
            rows = [
                r for k, foot in enumerate(FEET) if foot in active for r in range(3 * k, 3 * k + 3)
            ]
            s = solver.solve(active=active, **rig.inputs())
            expected[rows] = s.contact_forces(0.6, **STILL).forces
        assert found.forces.tobytes() == expected.tobytes()
    # Too old: nothing tells which contacts touch.
    rig.now += 600 * MS
    rig.odometry()
    _, dynamics = rig.send()
    found = dynamics_to_numpy(dynamics)
    assert (found.validity, Reason(found.reasons)) == (DEGRADED, Reason.CONTACTS_STALE)
    assert found.forces_validity == INVALID and np.isnan(found.forces).all()
    assert (found.forces_status, found.forces_residual) == (ContactDynamics.FORCES_NONE, -1.0)


def test_without_contacts_there_is_nothing_to_push() -> None:
    rig = compiled(outputs=["forces"])
    rig.touch()
    found = dynamics_to_numpy(rig.send()[1])
    assert (found.validity, found.forces_validity, found.forces) == (OK, OK, None)


@pytest.mark.parametrize(
    ("options", "status", "validity", "reason"),
    [
        ({"budget": 1}, ForceStatus.FAILED, INVALID, Reason.FORCES_NOT_CONVERGED),
        (
            {"tolerance": 1e-300}, ForceStatus.INACCURATE, DEGRADED, Reason.FORCES_INACCURATE,
        ),
    ],
)  # fmt: skip
def test_what_is_not_solved_is_not_ok(
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any],
    status: ForceStatus,
    validity: int,
    reason: Reason,
) -> None:
    def hasty(problem: Problem, active: Any, friction: Any, given: Any) -> ForceSolver:
        return new_solver(problem, active, friction, {**given, **options})

    monkeypatch.setattr(module, "new_solver", hasty)
    rig = compiled(outputs=["forces", "a0"])
    matrix, dynamics = rig.send()
    found = dynamics_to_numpy(dynamics)
    assert (matrix.validity, found.validity) == (OK, DEGRADED)
    assert (found.forces_validity, Reason(found.reasons)) == (validity, reason)
    assert found.forces_status == getattr(ContactDynamics, f"FORCES_{status.name}")
    assert np.isnan(found.forces).all() == (validity == INVALID)
    assert np.isfinite(found.a0).all()
    dynamics = rig.tick.dynamics
    reasons, text = dynamics.reasons, dynamics.text
    assert reasons == reason and f"residual {found.forces_residual:.3g}, law coulomb" in text
    assert ("forces", text) in rig.warnings


def test_doubtful_motion_makes_doubtful_forces() -> None:
    rig = compiled(outputs=["forces"])
    rig.send()
    # Other positions at the same stamp are those of a second publisher.
    rig.q = rig.q + 0.1
    matrix, dynamics = rig.send()
    assert (matrix.validity, dynamics.validity) == (DEGRADED, DEGRADED)
    assert dynamics.forces_validity == DEGRADED
    assert dynamics.forces_status == ContactDynamics.FORCES_SOLVED


def test_every_status_is_said() -> None:
    """Statuses of the library and of the message have the same names."""
    statuses = {status.name for status in ForceStatus} - {"REFUSED"}  # of wrong arguments
    constants = {
        name for name in dir(ContactDynamics) if re.fullmatch("FORCES_[A-Z]+(_FINITE)?", name)
    }
    assert constants == {"FORCES_NONE", *(f"FORCES_{name}" for name in statuses)}
    assert ContactDynamics().forces_status == ContactDynamics.FORCES_NONE
    assert ContactDynamics().forces_validity == INVALID


def test_numbers_that_are_not_finite_give_no_forces() -> None:
    robot = Robot.from_urdf(robots.unlimited())
    problem = Problem(robot, [Contact("LF", "LF_FOOT")], outputs=["a0"])
    zeros, g = np.zeros(18), [0, 0, -9.81]
    s = solver_on_floats(problem).solve(robot.neutral(), rates=zeros, torques=zeros, gravity=g)
    s.secondary["a0"][1] = np.nan
    forces = ForceOutput(problem).solve(s, None, ForceSettings())
    assert forces.finding is not None and forces.finding.reason == Reason.RESULT_NOT_FINITE
    assert forces.numbers(False)[1:3] == (INVALID, ContactDynamics.FORCES_NOT_FINITE)
    assert np.isnan(forces.forces).all()


def test_a_contradiction_is_over_at_once() -> None:
    """A contradiction leaves all but the forces alone; the table of faults has its words."""
    rig = contradicting()
    good = dynamics_to_numpy(rig.good())
    assert (good.validity, good.forces_validity) == (OK, OK)
    rig.wait(1)
    found = dynamics_to_numpy(rig.send(velocity=[0.0, 0.0, 2.0, *[0.0] * 9])[1])
    assert (found.validity, found.forces_validity) == (DEGRADED, INVALID)
    assert found.forces_status == ContactDynamics.FORCES_INFEASIBLE
    assert np.isnan(found.forces).all() and np.isfinite(found.a0).all()
    rig.wait(1)
    again = dynamics_to_numpy(rig.good())
    # Nothing of the fault is left: the bits are those of a first solve.
    assert again.forces.tobytes() == good.forces.tobytes()


def test_a_clock_that_jumps_ends_what_forces_begin_with() -> None:
    rig = compiled(outputs=["forces"])
    first, q = dynamics_to_numpy(rig.send()[1]), rig.q
    rig.q = q + 0.1
    tick(rig, *FEET)
    rig.q = q
    warm = dynamics_to_numpy(tick(rig, *FEET)[1])
    assert warm.forces.tobytes() != first.forces.tobytes()
    rig.tick.clock_jumped()
    again = dynamics_to_numpy(tick(rig, *FEET)[1])
    assert again.forces.tobytes() == first.forces.tobytes()


def test_contact_axes_need_no_other_numbers() -> None:
    """Along the axes of the contacts the normal is the contact's own z."""
    rig = MotionRig("contact", outputs=["forces"], limits=Limits(forces=ForceSettings(**STILL)))
    found = dynamics_to_numpy(rig.send()[1])
    gravity = rotation_from_quaternion(TURNED).T @ [0.0, 0.0, -9.81]
    s = solver_on_floats(rig.problem).solve(**{**rig.inputs(), "gravity": gravity})
    np.testing.assert_allclose(found.forces, s.contact_forces(0.6, **STILL).forces, atol=1e-6)


def test_contacts_that_strike_or_jam_have_no_forces() -> None:
    """The thresholds may change between two ticks."""
    rig = compiled(ForceSettings(**{**STILL, "strike_speed": 0.1}), outputs=["forces", "a0"])
    rig.rates = -2.0 * rig.rates
    matrix, dynamics = rig.send()
    found = dynamics_to_numpy(dynamics)
    s = DelassusSolver(rig.problem).solve(**rig.inputs())
    striking = [foot for foot, v in zip(FEET, s.v[2::3], strict=True) if v < -0.1]
    assert striking and (matrix.validity, found.validity) == (OK, DEGRADED)
    assert (found.forces_validity, Reason(found.reasons)) == (INVALID, Reason.FORCES_STRIKING)
    assert found.forces_status == ContactDynamics.FORCES_STRIKING
    assert np.isnan(found.forces).all() and np.isfinite(found.a0).all()
    text = rig.tick.dynamics.text
    assert text.startswith("no finite contact forces, see contact_impulses: contact")
    assert all(foot in text for foot in striking)
    for settings, reason in (
        (ForceSettings(**STILL), Reason.NONE),
        (ForceSettings(20.0, **{**STILL, "slip_speed": 0.1}), Reason.FORCES_JAMMED),
    ):
        rig.tick.limits = replace(rig.tick.limits, forces=settings)
        found = dynamics_to_numpy(tick(rig, *FEET)[1])
        assert Reason(found.reasons) == reason
    assert found.forces_status == ContactDynamics.FORCES_JAMMED and np.isnan(found.forces).all()


def test_with_an_imu_contacts_are_at_rest() -> None:
    """An Imu does not tell the linear velocity of the base."""
    rig = compiled(ForceSettings(), outputs=["forces"])
    s = DelassusSolver(rig.problem).solve(**rig.inputs())
    found = ForceOutput(rig.problem, is_moving=False).solve(s, None, ForceSettings())
    at_rest = s.contact_forces(FRICTION, **STILL)
    assert found.validity == OK and found.forces.tobytes() == at_rest.forces.tobytes()


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (np.eye(2, 6), "contact 'LF' is of kind 'selection'; friction needs points and surfaces"),
        ("surface", "contact 'LF' is a surface and has no dimensions; expected length and width"),
    ],
)
def test_contacts_without_a_law_are_refused(kind: Any, words: str) -> None:
    robot = Robot.from_urdf(robots.unlimited())
    problem = Problem(robot, [Contact("LF", "LF_FOOT", kind)], outputs=["a0"])
    with pytest.raises(InputError, match=words):
        ForceOutput(problem)


def test_forces_allocate_no_more_tick_by_tick() -> None:
    rig = compiled(outputs=["forces"])
    sets = [FEET, ("LF", "RH"), FEET[1:]]

    def ticks(count: int) -> None:
        for k in range(count):
            _, dynamics = tick(rig, *sets[k // 5 % 3])
            assert dynamics.forces_validity == OK

    ticks(360)
    before = allocated()
    ticks(300)
    # One array that a tick keeps, of twelve numbers, would be 300 times 96 bytes.
    assert allocated() - before < 20_000
