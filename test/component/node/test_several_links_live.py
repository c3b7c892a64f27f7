"""The node with rows of several links: contacts of several frames, of the robot, and of loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from delassus_msgs.msg import ContactDynamics, DelassusMatrix, Layout
from delassus_msgs_py import dynamics_to_numpy, matrix_to_numpy
from node_support import FEET, OK, relative_error
from on_floats import solver_on_floats
from ros_support import LATCHED, stamp_of

from delassus import (
    CenterOfMass,
    CentroidalMomentum,
    Contact,
    Problem,
    RelativeContact,
    Robot,
    WeightedSum,
)
from delassus.closure import Closure
from delassus.dynamics import LoopRates
from delassus.robots.built_in import demo_urdf

OUTPUTS = ["J", "MinvJT", "JdotV", "a0"]


def dynamics_of(graph, stamp: int, received: list[ContactDynamics]) -> ContactDynamics:
    """Return the message beside the matrix of a stamp."""

    def found() -> Any:
        return next((m for m in received if stamp_of(m) == stamp and m.validity == OK), None)

    return graph.until(found, "message beside the matrix")


def valid_matrix(graph, active, names, positions, velocities) -> DelassusMatrix:
    """Return the valid matrix of these contacts and joint positions."""

    def found() -> Any:
        answer = graph.ask(list(names), list(positions), velocity=list(velocities))
        return answer if answer.validity == OK and tuple(answer.contacts) == active else None

    return graph.until(found, f"matrix of {active}")


def test_contacts_of_several_frames_and_of_the_robot(graph, start, urdf) -> None:
    layouts: list[Layout] = []
    received: list[ContactDynamics] = []
    graph.peer.create_subscription(Layout, "delassus_node/layout", layouts.append, LATCHED)
    graph.peer.create_subscription(ContactDynamics, "delassus_node/dynamics", received.append, 100)
    contacts = [
        Contact("LF", "LF_FOOT"),
        RelativeContact("grip", "LH_FOOT", "RH_FOOT", "surface"),
        WeightedSum("middle", {"LF_FOOT": 0.5, "RF_FOOT": 0.5}),
        CenterOfMass("com"),
        CentroidalMomentum("momentum"),
    ]
    parameters: dict[str, Any] = {
        "contacts__names": [contact.name for contact in contacts],
        "contacts__grip__kind": "relative",
        "contacts__grip__frame": "LH_FOOT",
        "contacts__grip__second_frame": "RH_FOOT",
        "contacts__middle__kind": "weighted_sum",
        "contacts__middle__frames": ["LF_FOOT", "RF_FOOT"],
        "contacts__middle__weights": [0.5, 0.5],
        "contacts__com__kind": "center_of_mass",
        "contacts__momentum__kind": "centroidal_momentum",
    }
    start(outputs=OUTPUTS, base="fixed", torques="zero", algorithm="auto", **parameters)
    robot = Robot.from_urdf(urdf, base="fixed")
    problem = Problem(robot, contacts, outputs=OUTPUTS)
    rng = np.random.default_rng(2)
    q, rates = rng.uniform(-0.6, 0.6, robot.nq), rng.uniform(-1.0, 1.0, robot.nq)
    solver = solver_on_floats(problem)
    for active in (problem.contacts.names, ("grip", "com")):
        graph.touch(active)
        answer = valid_matrix(graph, active, robot.joint_names, q.tolist(), rates.tolist())
        expected = solver.solve(
            q, active, rates=rates, torques=np.zeros(robot.nq), gravity=(0.0, 0.0, -9.81)
        )
        assert relative_error(matrix_to_numpy(answer), expected.matrix) < 1e-11
        kinds = {contact.name: contact.kind_name for contact in contacts}
        assert list(answer.kinds) == [kinds[name] for name in active]
        dynamics = dynamics_to_numpy(dynamics_of(graph, stamp_of(answer), received))
        for name in OUTPUTS:
            found = getattr(dynamics, name)
            assert relative_error(found, getattr(expected, name)) < 1e-10, name
    layout = graph.until(lambda: layouts and layouts[-1], "layout")
    assert list(layout.frames) == ["LF_FOOT", "LH_FOOT RH_FOOT", "LF_FOOT RF_FOOT", "", ""]


@pytest.mark.parametrize(
    ("loops_as", "algorithm", "outputs"),
    [("rows", "c_efpa", OUTPUTS), ("cheapest", "auto", ["G"])],
)
def test_loops_by_rows(graph, start, loops_as, algorithm, outputs) -> None:
    """A four-bar beside gears: its dependent joints are not measured."""
    text = demo_urdf("geared")
    clustered = Robot.from_urdf(text, base="fixed")
    robot = clustered.with_loops_as(loops_as)
    assert loops_as != "rows" or robot.row_loops
    received: list[ContactDynamics] = []
    graph.peer.create_subscription(ContactDynamics, "delassus_node/dynamics", received.append, 100)
    start(
        robot_description=text, base="fixed", torques="zero", loops_as=loops_as,
        algorithm=algorithm, outputs=outputs, contacts__LF__frame="LIFT_TOOL",
    )  # fmt: skip
    contacts = [Contact("LF", "LIFT_TOOL"), *(Contact(foot, f"{foot}_FOOT") for foot in FEET[1:])]
    graph.touch(FEET)
    closure = Closure(robot)
    measured = dict.fromkeys(closure.independent, 0.2)
    rates = dict.fromkeys(closure.independent, 0.5)
    answer = valid_matrix(graph, FEET, measured, measured.values(), rates.values())
    problem = Problem(clustered, contacts, outputs=outputs)
    q = closure.solve(measured).q
    state: dict[str, Any] = {}
    if outputs != ["G"]:
        velocities = LoopRates(clustered).independent(list(rates), list(rates.values()), q)
        n = len(problem.velocities)
        state = {"rates": velocities, "torques": np.zeros(n), "gravity": (0.0, 0.0, -9.81)}
    expected = solver_on_floats(problem).solve(q, **state)
    assert relative_error(matrix_to_numpy(answer), expected.matrix) < 1e-9
    if outputs != ["G"]:
        dynamics = dynamics_to_numpy(dynamics_of(graph, stamp_of(answer), received))
        assert relative_error(dynamics.a0, expected.a0) < 1e-9
        of_all = LoopRates(robot).independent(list(rates), list(rates.values()), q)
        assert len(of_all) > len(problem.velocities)
        assert relative_error(dynamics.J @ of_all, expected.J @ state["rates"]) < 1e-9
