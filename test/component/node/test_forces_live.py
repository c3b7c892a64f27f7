"""The node with contact forces: topic, parameters that change, service, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
from delassus_msgs.msg import ContactDynamics
from delassus_msgs.srv import Compute
from delassus_msgs_py import ReceivedDynamics, dynamics_to_numpy
from node_support import FEET, OK, Start, refused, set_parameters
from ros_support import Graph, stamp_of

from delassus import Contact, DelassusSolver, Problem, Robot, Solution
from delassus.contact_forces import ForceStatus

CONES = {"LF": {"friction": 0.3}, "RF": {"normal": "-z"}}
GRAVITY = np.array([0.0, 0.0, -9.81])
STILL: dict[str, Any] = {"slip_speed": 100.0, "leave_speed": 100.0, "strike_speed": 100.0}
"""Thresholds below which contacts of random velocities are at rest."""


def solution(urdf: str, inputs: dict[str, Any], active: tuple[str, ...] = FEET) -> Solution:
    robot = Robot.from_urdf(urdf, base="fixed")
    contacts = [Contact(foot, f"{foot}_FOOT", **CONES.get(foot, {})) for foot in FEET]
    return DelassusSolver(Problem(robot, contacts, outputs=["a0"])).solve(active=active, **inputs)


def test_forces_on_topic_and_by_service(graph: Graph, start: Start, urdf, q) -> None:
    beside: list[ContactDynamics] = []
    graph.peer.create_subscription(ContactDynamics, "delassus_node/dynamics", beside.append, 100)
    node = start(
        outputs=["forces"], base="fixed", torques="zero", contacts__LF__friction=0.3,
        contacts__RF__normal="-z", friction=0.8, **STILL,
    )  # fmt: skip
    graph.touch(FEET)
    names = Robot.from_urdf(urdf).joint_names
    rates = np.random.default_rng(1).uniform(-2, 2, len(names))
    inputs = {"q": q, "rates": rates, "torques": np.zeros(len(names)), "gravity": GRAVITY}

    def answered() -> ReceivedDynamics:
        matrix = graph.ask(names, q, velocity=rates.tolist())
        stamp = stamp_of(matrix)
        graph.until(lambda: any(stamp_of(m) == stamp for m in beside), "message beside the matrix")
        return dynamics_to_numpy(next(m for m in beside if stamp_of(m) == stamp))

    graph.ask_until(lambda m: m.validity == OK, names, q)
    s = solution(urdf, inputs)
    found = answered()
    assert (found.validity, found.forces_validity, found.contacts) == (OK, OK, FEET)
    assert found.friction.tolist() == [0.3, 0.8, 0.8, 0.8]
    assert found.normals.tolist() == [[0, 0, 1], [0, 0, -1], [0, 0, 1], [0, 0, 1]]
    expected = s.contact_forces(0.8, **STILL)
    assert expected.status == ForceStatus.SOLVED and np.abs(expected.forces).max() > 0.1
    size = np.abs(expected.forces).max()
    # It may begin with the forces of a tick without velocities.
    np.testing.assert_allclose(found.forces, expected.forces, rtol=0, atol=1e-6 * size)

    request = Compute.Request(
        joints=list(names), positions=q, which_contacts=Compute.Request.CONTACTS_LISTED,
        contacts=["RF", "LH"], joint_velocities=rates.tolist(),
    )  # fmt: skip

    def computed() -> ReceivedDynamics:
        answer = graph.compute(request)
        assert answer.success, answer.message
        return dynamics_to_numpy(answer.dynamics)

    few = solution(urdf, inputs, ("RF", "LH"))
    for friction, law, speeds, status in (
        (0.8, "auto", STILL, ForceStatus.SOLVED),
        (0.1, "convex", {**STILL, "slip_speed": 0.05}, ForceStatus.SOLVED),
        (0.1, "convex", {**STILL, "strike_speed": 1e-3}, ForceStatus.STRIKING),
        (0.1, "convex", {**STILL, "leave_speed": 1e-3}, ForceStatus.SOLVED),
    ):
        values = {"friction": friction, "law": law, **speeds}
        set_parameters(node, **values)
        answer, expected = computed(), few.contact_forces(friction, law=law, **speeds)
        assert expected.status == status
        assert answer.forces_status == getattr(ContactDynamics, f"FORCES_{status.name}")
        if status == ForceStatus.SOLVED:
            assert answer.forces.tobytes() == expected.forces.tobytes()
        else:
            assert np.isnan(answer.forces).all()
        assert answer.forces_residual == expected.residual
        assert answer.friction.tolist() == [friction] * 2
    set_parameters(node, **STILL)
    found, expected = answered(), s.contact_forces(0.1, law="convex", **STILL)
    assert (found.forces_law, found.friction.tolist()) == (
        ContactDynamics.LAW_CONVEX, [0.3, 0.1, 0.1, 0.1],
    )  # fmt: skip
    np.testing.assert_allclose(found.forces, expected.forces, rtol=0, atol=1e-6 * size)

    for name, value, words in (
        ("friction", -0.1, "friction out of range Min: 0.0, Max: 100.0"),
        ("friction", float("nan"), "friction out of range Min: 0.0, Max: 100.0"),
        ("law", "ncp", "unknown law 'ncp'; law: auto, coulomb, convex"),
        ("slip_speed", -0.1, "slip_speed out of range Min: 0.0, Max: 1000.0"),
        ("contacts.LF.friction", 0.9, "can be set only while the node is unconfigured"),
    ):
        assert words in refused(node, **{name: value})


def test_the_corners_of_a_surface_hold_its_wrench(graph: Graph, start: Start, urdf, q) -> None:
    start(
        outputs=["forces"], base="fixed", torques="zero", contacts__LH__kind="surface",
        contacts__LH__dimensions=[0.2, 0.1],
    )  # fmt: skip
    robot = Robot.from_urdf(urdf, base="fixed")
    request = Compute.Request(
        joints=list(robot.joint_names), positions=q, contacts=["LH"],
        which_contacts=Compute.Request.CONTACTS_LISTED,
    )  # fmt: skip
    found = dynamics_to_numpy(graph.compute(request).dynamics)
    sole = Contact("LH", "LH_FOOT", "surface", friction=0.6, dimensions=(0.2, 0.1))
    zeros = np.zeros(robot.nq)
    s = DelassusSolver(Problem(robot, [sole], outputs=["a0"])).solve(
        q, rates=zeros, torques=zeros, gravity=GRAVITY
    )
    expected = s.contact_forces()
    assert found.forces_status - 1 == expected.status == ForceStatus.SOLVED
    assert expected.forces.any()
    np.testing.assert_allclose(found.forces, expected.forces, atol=1e-6)
