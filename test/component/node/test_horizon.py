"""delassus_node: matrices of predicted states, equal to single requests to the last bit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from delassus_msgs.msg import ActiveContacts, PredictedMatrices, PredictedStates
from delassus_msgs.srv import Compute, ComputeHorizon
from delassus_msgs_py import dynamics_to_numpy, matrix_to_numpy
from extremes import numbers_in
from geometry_msgs.msg import Quaternion, Twist
from node_support import FEET, INVALID, OK, start_node
from ros_support import Domain

from delassus import Robot

INACTIVE, ACTIVE, SLIPPING = (
    ActiveContacts.INACTIVE, ActiveContacts.ACTIVE, ActiveContacts.SLIPPING
)  # fmt: skip
COUNT = 5


def horizon(robot: Robot) -> tuple[PredictedStates, list[Compute.Request]]:
    """Return states whose joints move and whose contacts change, and the single requests."""
    rng = np.random.default_rng(2)
    n = len(robot.joint_names)
    q, v, torques = (rng.uniform(-0.5, 0.5, (COUNT, n)) for _ in range(3))
    turns = rng.normal(size=(COUNT, 4))
    turns /= np.linalg.norm(turns, axis=1, keepdims=True)
    status = rng.choice([INACTIVE, ACTIVE, SLIPPING], (COUNT, len(FEET)))
    status[0] = ACTIVE
    status[1] = INACTIVE
    states = PredictedStates(
        times=[0.02 * k for k in range(COUNT)], joints=list(robot.joint_names),
        positions=q.ravel().tolist(), contacts=list(FEET), status=status.ravel().tolist(),
        joint_velocities=v.ravel().tolist(), joint_torques=torques.ravel().tolist(),
    )  # fmt: skip
    states.header.stamp.sec, states.header.frame_id = 7, "plan"
    requests = []
    for k in range(COUNT):
        x, y, z, w = turns[k].tolist()
        twist = Twist()
        twist.linear.x, twist.angular.z = 0.1 * k, 0.2
        states.base_orientations.append(Quaternion(x=x, y=y, z=z, w=w))
        states.base_twists.append(twist)
        touching = [f for f, s in zip(FEET, status[k], strict=True) if s != INACTIVE]
        requests.append(
            Compute.Request(
                joints=list(robot.joint_names), positions=q[k].tolist(), contacts=touching,
                which_contacts=Compute.Request.CONTACTS_LISTED, joint_velocities=v[k].tolist(),
                joint_torques=torques[k].tolist(), base_orientation=states.base_orientations[k],
                base_twist=twist,
            )
        )  # fmt: skip
    return states, requests


def parts(matrices: PredictedMatrices) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return G, a0 and Λ of each state."""
    found = []
    square, line = 0, 0
    for k in matrices.rows:
        G, Lambda = (
            np.array(each[square : square + k * k]).reshape(k, k)
            for each in (matrices.matrix, matrices.inertia)
        )
        found.append((G, np.array(matrices.free_acceleration[line : line + k]), Lambda))
        square, line = square + k * k, line + k
    assert square == len(matrices.matrix) == len(matrices.inertia)
    assert line == len(matrices.free_acceleration)
    return found


class Computing(Domain):
    """A node with a0 and Λ, whose services all tests of this file ask."""

    def __init__(self, urdf: str) -> None:
        super().__init__()
        self.node = start_node(self, urdf, outputs=["a0", "Lambda"])

    def __call__(self, kind: Any, name: str, request: Any) -> Any:
        """Ask a service of the node, and return its answer."""
        return self.call(kind, f"delassus_node/{name}", request)


@pytest.fixture(name="asked", scope="module")
def make_asked(urdf: str) -> Iterator[Computing]:
    with Computing(urdf) as computing:
        yield computing


def test_a_horizon_is_single_requests_to_the_last_bit(asked, robot) -> None:
    states, requests = horizon(robot)
    answer = asked(ComputeHorizon, "compute_horizon", ComputeHorizon.Request(states=states))
    assert answer.success, answer.message
    matrices = answer.matrices
    assert matrices.header == states.header and matrices.times == states.times
    layout = asked.node._configuration.computation.layout
    assert matrices.layout_id == layout.layout_id and matrices.algorithm == "pv_osimr"
    assert list(matrices.validity) == [OK] * COUNT and not any(matrices.faults)
    for request, (G, a0, Lambda) in zip(requests, parts(matrices), strict=True):
        single = asked(Compute, "compute", request)
        assert single.success, single.message
        assert np.array_equal(G, matrix_to_numpy(single.matrix))
        dynamics = dynamics_to_numpy(single.dynamics)
        if len(G):
            assert np.array_equal(a0, dynamics.a0) and np.array_equal(Lambda, dynamics.Lambda)
    # The topic answers alike.
    answers: list[PredictedMatrices] = []
    asked.peer.create_subscription(
        PredictedMatrices, "delassus_node/predicted_matrices", answers.append, 1
    )
    publisher = asked.peer.create_publisher(PredictedStates, "predicted_states", 1)

    def came() -> bool:
        publisher.publish(states)
        return bool(answers)

    asked.until(came, "predicted matrices")
    assert answers[0] == matrices


def test_a_state_that_is_not_known_has_no_matrix_and_the_others_have(asked, robot) -> None:
    states, _ = horizon(robot)
    n, feet = len(robot.joint_names), len(FEET)
    states.positions[2 * n] = float("nan")
    states.status[3 * feet + 1] = ActiveContacts.UNKNOWN
    states.base_orientations[4].w += 1.0
    answer = asked(ComputeHorizon, "compute_horizon", ComputeHorizon.Request(states=states))
    assert answer.success
    matrices = answer.matrices
    assert list(matrices.validity) == [OK, OK, INVALID, INVALID, INVALID]
    assert list(matrices.rows) == [12, 0, 0, 0, 0]
    assert f"{robot.joint_names[0]!r}" in matrices.faults[2]
    assert matrices.faults[3] == f"contact {FEET[1]!r} is UNKNOWN in this state"
    assert "base_orientation" in matrices.faults[4]
    parts(matrices)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("contacts", ["LF", "LF", "LH", "RH"], "contact 'LF' is listed more than once"),
        ("contacts", ["LF", "RF", "LH", "RX"], "unknown contact 'RX'; contacts: LF, RF"),
        ("status", [2], "status has 1 entries; expected 20, 4 for each of 5 states"),
        ("positions", [0.1], "positions has 1 entries; expected 60, 12 for each of 5 states"),
        ("joint_velocities", [0.1], "joint_velocities has 1 entries; expected 60"),
        ("base_twists", [Twist()], "base_twists has 1 entries; expected 5 or none"),
        ("times", [0.0] * 1001, "there are 1001 states; expected at most 1000"),
        ("times", [0.0, 0.1, float("nan"), 0.3, 0.4], "times has nan s; expected finite times of"),
        ("times", [0.0, 0.1, 0.2, 0.3, float("inf")], "times has inf s; expected finite times of"),
        ("times", [0.0, 0.1, 0.2, 0.3, 1e300], "times has 1e+300 s; expected finite times of"),
        ("times", [0.0, 0.1, 0.1, 0.05, 0.2], "state 3 at 0.05 s is before the state at 0.1 s"),
    ],
)
def test_messages_that_contradict_themselves_are_refused(
    asked, robot, field: str, value: Any, words: str
) -> None:
    states, _ = horizon(robot)
    setattr(states, field, value)
    answer = asked(ComputeHorizon, "compute_horizon", ComputeHorizon.Request(states=states))
    assert not answer.success and words in answer.message


def test_no_number_of_a_request_is_a_fault_of_the_node(asked, robot) -> None:
    """Each number at the ends of its type; numbers without a matrix are refused in words."""
    states, requests = horizon(robot)
    for kind, name, request in (
        (ComputeHorizon, "compute_horizon", ComputeHorizon.Request(states=states)),
        (Compute, "compute", requests[0]),
    ):
        for put, before, ends in numbers_in(request):
            for end in ends:
                put(end)
                answer = asked(kind, name, request)
                assert answer.success or answer.message
                assert "a fault of the node" not in answer.message
            put(before)
        assert asked(kind, name, request).success
