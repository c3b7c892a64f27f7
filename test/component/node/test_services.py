"""delassus_node: matrices on demand and the list of algorithms, beside the stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from delassus_msgs.msg import DelassusMatrix
from delassus_msgs.srv import Compute, ListAlgorithms
from delassus_msgs_py import matrix_to_numpy
from node_support import (
    FEET,
    INVALID,
    OK,
    relative_error,
    set_parameters,
    solve,
    start_node,
)
from ros_support import Domain

from delassus import Contact, DelassusSolver, Problem, Robot, algorithms
from delassus.algorithms.dense import Dense
from delassus.closure import Closure
from delassus.robots.built_in import demo_urdf

PRESENT, LISTED, ALL = (
    Compute.Request.CONTACTS_PRESENT,
    Compute.Request.CONTACTS_LISTED,
    Compute.Request.CONTACTS_ALL,
)


@pytest.fixture(name="call")
def make_call(graph):
    """Return a function that asks the node and returns its answer."""

    def call(request: Any) -> Any:
        if isinstance(request, Compute.Request):
            return graph.compute(request)
        return graph.call(ListAlgorithms, "delassus_node/list_algorithms", request)

    return call


@pytest.fixture(name="asked", scope="module")
def make_asked(urdf: str) -> Iterator[Domain]:
    """Yield the domain of an active node, which tests only ask."""
    with Domain() as domain:
        start_node(domain, urdf)
        yield domain


def request(robot, q, which=ALL, contacts=()) -> Compute.Request:
    return Compute.Request(
        joints=list(robot.joint_names),
        positions=list(q),
        which_contacts=which,
        contacts=list(contacts),
    )


def test_compute_of_all_and_of_listed_contacts(start, call, urdf, robot, q) -> None:
    node = start()
    answer = call(request(robot, q))
    assert answer.success, answer.message
    message = answer.matrix
    assert relative_error(matrix_to_numpy(message), solve(urdf, q)) < 1e-12
    assert (message.validity, message.sequence, message.damping) == (OK, 0, 0.0)
    assert list(message.contacts) == list(FEET)
    assert (message.rank, message.structural_rank) == (12, 12)
    assert message.layout_id == node._configuration.computation.layout.layout_id
    eigenvalues = np.linalg.eigvalsh(matrix_to_numpy(message))
    assert answer.largest_eigenvalue == pytest.approx(eigenvalues[-1], rel=1e-9)
    assert answer.smallest_eigenvalue == pytest.approx(eigenvalues[0], rel=1e-9)
    assert message.condition == pytest.approx(eigenvalues[-1] / eigenvalues[0], rel=1e-9)
    answer = call(request(robot, q, LISTED, ["RH", "LF"]))
    # In the order of the layout.
    assert list(answer.matrix.contacts) == ["LF", "RH"]
    expected = solve(urdf, q, ("LF", "RH"))
    assert relative_error(matrix_to_numpy(answer.matrix), expected) < 1e-12


def test_compute_of_the_present_contacts_needs_some(graph, start, call, urdf, robot, q) -> None:
    node = start()
    answer = call(request(robot, q, PRESENT))
    assert not answer.success
    assert "there is no present set of active contacts" in answer.message
    graph.touch(("LF", "RF"))
    graph.ask_until(lambda m: m.validity == OK, robot.joint_names, q)
    answer = call(request(robot, q, PRESENT))
    assert answer.success, answer.message
    expected = solve(urdf, q, ("LF", "RF"))
    assert relative_error(matrix_to_numpy(answer.matrix), expected) < 1e-12
    # They may be others by now: the node does not hear of them.
    node.trigger_deactivate()
    answer = call(request(robot, q, PRESENT))
    assert not answer.success
    assert "or the node is not active" in answer.message


def test_the_stream_is_not_disturbed(graph, start, call, urdf, robot, q) -> None:
    start()
    graph.touch(FEET)
    first = graph.ask_until(lambda m: m.validity == OK, robot.joint_names, q)
    other = [-0.5 * each for each in q]
    assert call(request(robot, other, LISTED, ["RF"])).success
    answer = graph.ask(robot.joint_names, q)
    assert answer.sequence > first.sequence
    assert list(answer.contacts) == list(FEET)
    np.testing.assert_array_equal(matrix_to_numpy(answer), matrix_to_numpy(first))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"joints": ["LF_HAA"], "positions": [0.0]}, "lacks joints"),
        ({"positions": [0.0]}, "12 names but 1 positions"),
        ({"positions": [float("nan")] * 12}, "position of joint"),
        ({"which_contacts": LISTED, "contacts": ["LX"]}, "'LX'"),
        ({"which_contacts": 9}, "which_contacts is 9; expected CONTACTS_PRESENT (0)"),
    ],
)
def test_what_cannot_be_computed_is_answered_in_words(asked, robot, q, change, words) -> None:
    question = request(robot, q)
    for name, value in change.items():
        setattr(question, name, value)
    answer = asked.compute(question)
    assert not answer.success
    assert words in answer.message
    assert (answer.matrix.validity, len(answer.matrix.matrix)) == (INVALID, 0)


def test_a_fault_of_the_program_is_answered(graph, start, call, robot, q, monkeypatch) -> None:
    node = start()
    service = node._configuration._compute
    with monkeypatch.context() as patch:
        patch.setattr(service, "_message", lambda answer: 1 / 0)
        answer = call(request(robot, q))
    assert not answer.success
    assert answer.message == "a fault of the node: ZeroDivisionError: division by zero"
    graph.wait_for_log("a fault of this program:")
    assert call(request(robot, q)).success


def test_a_closed_robot_needs_the_joints_that_others_follow_from(start, call) -> None:
    text = demo_urdf("geared")
    node = start(robot_description=text, algorithm="pv_osimr")
    problem = Problem(Robot.from_urdf(text), [Contact(foot, f"{foot}_FOOT") for foot in FEET])
    closure = Closure(problem)
    given = {name: -0.4 if "KFE" in name else 0.3 for name in closure.independent}
    full = closure.solve(given)
    expected = DelassusSolver(problem, "ltl").solve(full.q).matrix

    def asked(positions: dict[str, float]) -> Any:
        return call(
            Compute.Request(
                joints=list(positions), positions=list(positions.values()), which_contacts=ALL
            )
        )

    everything = dict(zip(problem.robot.joint_names, full.q.tolist(), strict=True))
    for positions in (given, everything):
        answer = asked(positions)
        assert answer.success, answer.message
        assert (answer.matrix.validity, answer.matrix.reasons) == (OK, 0)
        assert relative_error(matrix_to_numpy(answer.matrix), expected) < 1e-9
    answer = asked({**everything, "LF_KFE_ROTOR": 0.0})
    assert answer.success, answer.message
    assert answer.matrix.validity == DelassusMatrix.VALIDITY_DEGRADED
    assert answer.matrix.reasons == DelassusMatrix.REASON_LOOP_INCONSISTENT
    assert relative_error(matrix_to_numpy(answer.matrix), expected) < 1e-9
    others = [name for name in everything if name.endswith("_ROTOR")]
    rotors = {name: everything[name] for name in [*others, "LIFT_ROCKER"]}
    answer = asked(rotors)
    assert (answer.matrix.validity, answer.matrix.reasons) == (OK, 0)
    assert relative_error(matrix_to_numpy(answer.matrix), expected) < 1e-7
    # Also after the thresholds have changed, with which another solver is set.
    set_parameters(node, conditioning__weak=1e5)
    assert asked(rotors).success
    few = {name: value for name, value in given.items() if name != "LF_KFE"}
    answer = asked(few)
    assert not answer.success
    assert "'LF_KFE_GEAR'" in answer.message


def test_thresholds_hold_on_demand_and_damping_does_not(start, call, urdf, robot, q) -> None:
    node = start()
    changes = {"conditioning.weak": 1.5, "damping.mode": "uniform", "damping.ratio": 0.1}
    set_parameters(node, **changes)
    answer = call(request(robot, q)).matrix
    assert answer.conditioning == DelassusMatrix.CONDITIONING_WEAK
    assert answer.reasons == DelassusMatrix.REASON_ILL_CONDITIONED
    assert relative_error(matrix_to_numpy(answer), solve(urdf, q)) < 1e-12


def test_compute_follows_the_algorithm(graph, start, call, robot, q) -> None:
    node = start(rows="all")
    assert call(request(robot, q)).matrix.algorithm == "pv_osimr"
    set_parameters(node, algorithm="dense")
    graph.wait_for_log("algorithm changed from 'pv_osimr' to 'dense'")
    assert call(request(robot, q)).matrix.algorithm == "dense"


def test_world_axes_take_the_orientation_of_the_request(start, call, robot, urdf, q) -> None:
    start(axes="world")
    question = request(robot, q)
    answer = call(question)
    assert answer.success, answer.message
    upright = matrix_to_numpy(answer.matrix)
    o = question.base_orientation
    o.x, o.y, o.z, o.w = 0.0, 0.0, float(np.sin(0.3)), float(np.cos(0.3))
    turned = matrix_to_numpy(call(question).matrix)
    c, s = np.cos(0.6), np.sin(0.6)
    R = np.kron(np.eye(4), [[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    assert relative_error(turned, R @ upright @ R.T) < 1e-12
    assert not np.allclose(turned, upright)
    o.w = 0.0
    answer = call(question)
    assert not answer.success
    assert "base_orientation" in answer.message


def test_list_of_algorithms_in_every_state(graph, start, call, monkeypatch) -> None:
    node = start(autostart=False)
    answer = call(ListAlgorithms.Request())
    assert answer.active == ""
    assert {*algorithms.names(), *algorithms.aliases()} <= set(answer.names)
    assert list(answer.names) == sorted(answer.names)
    node.trigger_configure()
    monkeypatch.setattr(Dense, "supports", lambda self, problem: "it has feet")
    answer = call(ListAlgorithms.Request())
    assert answer.active == "pv_osimr"
    found = dict(zip(answer.names, zip(answer.applicable, answer.reasons, strict=True),
                     strict=True))  # fmt: skip
    assert found["dense"] == (False, "it has feet")
    assert found["pv_osimr"] == (True, "")
    node.trigger_cleanup()
    assert call(ListAlgorithms.Request()).active == ""
    assert [s.srv_name for s in node.services if s.srv_name.endswith("/compute")] == []
