"""Contacts that move on their links: their places come by topic, each with an age of its own."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from delassus_msgs.msg import (
    ContactPlacements,
    ContactSchedule,
    DelassusMatrix,
)
from delassus_msgs.srv import Compute
from delassus_msgs_py import matrix_to_numpy
from diagnostic_msgs.msg import DiagnosticArray
from node_support import DEGRADED, FEET, INVALID, OK, Start, relative_error, set_parameters
from ros_support import LATCHED, Graph
from tick_support import MovingRig, moving_contacts, placed, said

from delassus import Contact, DelassusSolver, Problem, Robot
from delassus_ros.inputs.findings import Reason
from delassus_ros.inputs.limits import Limits
from delassus_ros.inputs.placements import PlacementInput

TURN = np.array([0.1, -0.5, 0.3, 0.8]) / np.linalg.norm([0.1, -0.5, 0.3, 0.8])


@pytest.fixture(scope="module", name="solver")
def make_solver() -> DelassusSolver:
    return DelassusSolver(moving_contacts())


def test_each_matrix_has_the_contacts_where_they_are(solver) -> None:
    """The rig holds every one against the dense reference at those places."""
    rig = MovingRig(solver)
    rig.touch("rolls", "slides", "stays")
    assert said(rig.send()) == (INVALID, Reason.PLACEMENT_MISSING)
    words = "contact 'rolls' is active and moves, and its placement has not come yet"
    assert words in rig.warnings[-1][1]
    rig.place("rolls", [0.01, 0.0, -0.02])
    assert said(rig.send()) == (INVALID, Reason.PLACEMENT_MISSING)
    rig.place("slides", [0.0, 0.03, 0.01], TURN)
    first = rig.send()
    assert said(first) == (OK, Reason.NONE)
    # As a foot rolls on.
    for k in range(5):
        rig.wait(1.0)
        rig.place("rolls", [0.01 + 0.004 * k, 0.0, -0.02 + 0.002 * k])
        rolled = rig.send()
        assert said(rolled) == (OK, Reason.NONE)
    assert rolled is not None and first is not None
    assert relative_error(matrix_to_numpy(rolled), matrix_to_numpy(first)) > 1e-3


def test_contacts_that_are_not_active_need_no_place(solver) -> None:
    rig = MovingRig(solver)
    rig.positions, rig.turns = {}, {}
    rig.touch("stays")
    assert said(rig.send()) == (OK, Reason.NONE)
    rig.touch("stays", "slides")
    assert said(rig.send()) == (INVALID, Reason.PLACEMENT_MISSING)


def test_another_algorithm_takes_the_places_over(solver) -> None:
    rig = MovingRig(solver)
    rig.touch("rolls")
    rig.place("rolls", [0.03, 0.01, -0.02])
    assert said(rig.send()) == (OK, Reason.NONE)
    rig.tick.set_solver(DelassusSolver(rig.problem, "efpa"))
    assert said(rig.send()) == (OK, Reason.NONE)


def test_publishers_of_different_placements_accepted(solver) -> None:
    """Whatever the numbers of their messages."""
    rig = MovingRig(solver)
    rig.positions, rig.turns = {"rolls": [0.01, 0.0, 0.0], "slides": [0.0, 0.0, 0.01]}, {}

    def send(name: str, count: int) -> tuple[int, int]:
        rig.wait(5.0)
        rig.touch("rolls", "slides")
        message = placed([name], [rig.positions[name]], stamp=rig.now)
        rig.read("contact_placements", message, 0, count)
        answer = rig.send()
        assert answer is not None
        return said(answer)

    send("rolls", 500)
    for k in range(1, 5):
        assert send("slides", k) == (OK, Reason.NONE)
        assert send("rolls", 500 + k) == (OK, Reason.NONE)
    # Doubt about a placement counts while its contact is active.
    send("rolls", 1)
    assert send("rolls", 505) == (DEGRADED, Reason.SOURCES_CONTRADICT)
    rig.touch("slides")
    assert said(rig.send()) == (OK, Reason.NONE)


def test_contacts_that_do_not_move_are_passed_over_by_name(solver) -> None:
    rig = MovingRig(solver)
    rig.touch("rolls")
    rig.positions, rig.turns = {"rolls": [0.0, 0.0, 0.01]}, {}
    both = placed(["stays", "rolls"], [[1, 1, 1], [0.0, 0.0, 0.01]], stamp=rig.now)
    rig.read("contact_placements", both)
    assert said(rig.send()) == (OK, Reason.NONE)
    text = "placement of unknown moving contact 'stays'; moving contacts: rolls, slides"
    assert text in rig.warnings[-1][1]


def test_orientations_count_where_rows_are_along_contacts_alone() -> None:
    inputs = PlacementInput(moving_contacts("world"))
    assert inputs.accept(placed(["slides"], [[0, 0, 0]], [[0, 0, 0, 0]]), 10**18) is None
    arrays = {"contact_positions": np.ones((2, 3))}
    inputs.write(arrays)
    assert not arrays["contact_positions"].any()


def test_another_pipeline_knows_where_contacts_are_and_how_old_that_is(solver) -> None:
    rig = MovingRig(solver, limits=Limits(contacts_timeout=0.1))
    rig.place("rolls", [0.0, 0.02, 0.01])
    rig.wait(80.0)
    after = MovingRig(solver, limits=Limits(contacts_timeout=0.1))
    after.now, after.positions, after.turns = rig.now, rig.positions, rig.turns
    after.tick.begin()
    after.tick.take_over(rig.tick)
    after.touch("rolls")
    assert said(after.send()) == (OK, Reason.NONE)
    after.wait(30.0)
    assert said(after.send()) == (INVALID, Reason.PLACEMENT_STALE)
    after.tick.limits = Limits(contacts_timeout=0.3)
    assert said(after.send()) == (OK, Reason.NONE)


def test_with_all_rows_the_active_contacts_count(solver) -> None:
    rig = MovingRig(solver, all_rows=True)
    rig.positions, rig.turns = {}, {}
    rig.touch("stays")
    assert said(rig.send()) == (OK, Reason.NONE)
    rig.touch("stays", "rolls")
    assert said(rig.send()) == (INVALID, Reason.PLACEMENT_MISSING)


def rolling(robot: Robot) -> DelassusSolver:
    contacts = [Contact(foot, f"{foot}_FOOT") for foot in FEET[1:]]
    first = Contact("LF", "LF_FOOT", moving="position")
    return DelassusSolver(Problem(robot, [first, *contacts]), "dense")


def test_a_rolling_foot_live(graph: Graph, start: Start, robot: Robot, q: list[float]) -> None:
    """By topic, with diagnostics, another algorithm, the service, and after a pause."""
    reports: list[DiagnosticArray] = []
    graph.peer.create_subscription(DiagnosticArray, "/diagnostics", reports.append, 10)
    # Of a driver, which may be best effort.
    places = graph.peer.create_publisher(ContactPlacements, "contact_placements", 10)
    node = start(contacts__LF__moving="position", diagnostics_period=0.05)
    graph.touch(FEET)
    answer = graph.ask_until(lambda m: m.reasons == Reason.PLACEMENT_MISSING, robot.joint_names, q)
    assert answer.validity == INVALID

    def said_of_places(words: str) -> bool:
        entries = [s for r in reports for s in r.status if s.name.endswith("contact placements")]
        return any(words in entry.message for entry in entries)

    graph.until(lambda: said_of_places("nothing has come on /contact_placements"), "diagnostics")
    graph.until(lambda: places.get_subscription_count(), "subscription")
    expected = rolling(robot)
    for position in ([0.004, 0.0, -0.018], [0.008, 0.0, -0.016]):

        def moved(position: list[float] = position) -> Any:
            places.publish(placed(["LF"], [position], stamp=time.time_ns()))
            answer = graph.ask(robot.joint_names, q)
            G = expected.solve(q, contact_positions={"LF": position}).matrix
            right = answer.validity == OK and relative_error(matrix_to_numpy(answer), G) < 1e-10
            return right or None

        graph.until(moved, "matrix of the foot there")
    graph.until(lambda: said_of_places("in time"), "diagnostics")
    request = Compute.Request(joints=list(robot.joint_names), positions=q)
    request.which_contacts = Compute.Request.CONTACTS_ALL
    request.placements = placed(["LF"], [[0.05, 0.0, 0.0]])
    answer = graph.compute(request)
    G = expected.solve(q, contact_positions={"LF": [0.05, 0.0, 0.0]}).matrix
    assert answer.success, answer.message
    assert relative_error(matrix_to_numpy(answer.matrix), G) < 1e-10
    request.placements = placed(["RF"], [[0.05, 0.0, 0.0]])
    answer = graph.compute(request)
    assert not answer.success
    assert "contact 'RF' has moving='nothing'" in answer.message
    request.placements = placed(["LF", "LF"], [[0.05, 0.0, 0.0]] * 2)
    assert graph.compute(request).message == "placements list a contact more than once"
    assert node.count_subscribers("contact_placements") == 1
    assert DEGRADED not in {message.validity for message in graph.matrices}


def test_placements_and_a_schedule_outlive_a_change_of_the_robot(
    graph: Graph, start: Start, urdf: str, robot: Robot, q: list[float]
) -> None:
    """With a finite timeout, as by default; neither is sent again after the change."""
    place = [0.02, 0.01, -0.018]
    places = graph.peer.create_publisher(ContactPlacements, "contact_placements", 10)
    schedules = graph.peer.create_publisher(ContactSchedule, "contact_schedule", LATCHED)
    schedule = ContactSchedule(names=list(FEET), times=[0.0], end=1e6, status=[2] * len(FEET))
    schedule.header.stamp.sec = int(time.time()) - 1
    schedules.publish(schedule)
    node = start(
        contacts__LF__moving="position", contacts__source="schedule", contacts_timeout=60.0
    )

    def is_placed(answer: DelassusMatrix) -> bool:
        if answer.reasons & Reason.PLACEMENT_MISSING:
            places.publish(placed(["LF"], [place], stamp=time.time_ns()))
        return bool(answer.validity == OK)

    first = graph.ask_until(is_placed, robot.joint_names, q)
    other = urdf.replace('mass value="', 'mass value="1', 1)
    set_parameters(node, robot_description=other)
    answer = graph.ask_until(lambda m: m.layout_id != first.layout_id, robot.joint_names, q)
    assert said(answer) == (OK, Reason.NONE), node._configuration.computation.tick.last.text
    expected = rolling(Robot.from_urdf(other)).solve(q, contact_positions={"LF": place}).matrix
    assert relative_error(matrix_to_numpy(answer), expected) < 1e-10
