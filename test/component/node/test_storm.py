"""Everything at once: each matrix that says OK is right for the robot that it says it is of."""

from __future__ import annotations

import itertools
import random
import time
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pinocchio
import pytest
from delassus_msgs.msg import DelassusMatrix, Layout
from delassus_msgs.srv import Compute
from delassus_msgs_py import matrix_to_numpy
from hanging import HANG_S
from node_support import (
    FEET,
    INVALID,
    OK,
)
from processes import node_program
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from rclpy.serialization import deserialize_message, serialize_message
from ros_support import LATCHED, stamp_of
from sensor_msgs.msg import JointState

from delassus import Contact, ContactSet, Problem, Robot
from delassus_ros.node.matrix import make_layout
from delassus_ros.node.parameters import Settings

RATE = 500.0
LEAST = 200
"""Number of matrices that are OK before a storm ends."""
ALGORITHMS = ("efpa", "ltl", "kjr", "pv_osim", "pv_osimr", "dense", "nonsense")


class Twin:
    """A robot as Pinocchio has it.

    Parameters
    ----------
    urdf : its description.
    """

    def __init__(self, urdf: str) -> None:
        self.model = pinocchio.buildModelFromXML(urdf, pinocchio.JointModelFreeFlyer())
        self.data = self.model.createData()
        robot = Robot.from_urdf(urdf.encode())
        self.names = robot.joint_names
        self.places = [self.model.joints[self.model.getJointId(n)].idx_q for n in self.names]
        self.frames = {foot: self.model.getFrameId(f"{foot}_FOOT") for foot in FEET}
        given = {
            "contacts.names": list(FEET),
            **{f"contacts.{foot}.frame": f"{foot}_FOOT" for foot in FEET},
        }
        contacts = ContactSet(Contact(foot, f"{foot}_FOOT") for foot in FEET)
        problem = Problem(robot, contacts)
        more = Settings.from_parameters(given).layout_digest_text(problem)
        self.layout_id = make_layout(problem, Layout().header.stamp, more=more).layout_id

    def matrix(self, positions: dict[str, float], contacts: list[str]) -> np.ndarray:
        """Return J inv(M) J^T from Pinocchio's own Jacobians and mass matrix."""
        model, data = self.model, self.data
        q = pinocchio.neutral(model)
        for name, place in zip(self.names, self.places, strict=True):
            q[place] = positions[name]
        pinocchio.computeJointJacobians(model, data, q)
        pinocchio.updateFramePlacements(model, data)
        local = pinocchio.ReferenceFrame.LOCAL
        J = np.empty((0, model.nv))
        for contact in contacts:
            own = pinocchio.getFrameJacobian(model, data, self.frames[contact], local)
            J = np.vstack([J, own[:3]])
        M = pinocchio.crba(model, data, q)
        M = np.triu(M) + np.triu(M, 1).T
        return J @ np.linalg.solve(M, J.T)


def positions_at(stamp: int, names) -> dict[str, float]:
    """Return where the joints are at a time [ns]."""
    t = 1e-9 * (stamp % 10**12)
    return {name: 0.7 * float(np.sin(3.0 * t + 1.7 * k)) for k, name in enumerate(names)}


def joint_state(stamp: int, names, chance: random.Random) -> bytes:
    """Return a serialized joint state, in any order, with strangers and bytes that are no text."""
    positions = positions_at(stamp, names)
    order = list(names)
    if chance.random() < 0.3:
        chance.shuffle(order)
    if chance.random() < 0.2:
        order.insert(chance.randrange(len(order)), "stranger")
    state = JointState(name=order, position=[positions.get(name, 0.3) for name in order])
    state.header.frame_id = chance.choice(["", "base", "frame"])
    state.header.stamp.sec, state.header.stamp.nanosec = divmod(stamp, 10**9)
    data = serialize_message(state)
    if chance.random() < 0.2:
        data = data.replace(b"frame", b"fr\xffme").replace(b"stranger", b"st\xc3ang\0r")
    return data


def storm(graph, urdf: str, seconds: float, algorithms: Sequence[str] = ALGORITHMS) -> None:
    chance = random.Random(7)
    mass = 'mass value="'
    variants = [urdf.replace(mass, mass + digit, 1) for digit in ("", "1", "2")]
    twins = [Twin(variant) for variant in variants]
    by_layout = {twin.layout_id: twin for twin in twins}
    assert len(by_layout) == len(variants)
    names = twins[0].names
    arguments = ["-p", "autostart:=true", "-p", f"contacts.names:=[{', '.join(FEET)}]"]
    for foot in FEET:
        arguments += ["-p", f"contacts.{foot}.frame:={foot}_FOOT"]
    received: list[bytes] = []
    graph.peer.create_subscription(
        DelassusMatrix, "delassus_node/delassus", received.append, 5000, raw=True
    )
    layouts: list[Layout] = []
    graph.peer.create_subscription(Layout, "delassus_node/layout", layouts.append, LATCHED)
    setting = graph.peer.create_client(SetParameters, "delassus_node/set_parameters")
    asking = graph.peer.create_client(Compute, "delassus_node/compute")
    everything = Compute.Request.CONTACTS_ALL
    answers = []
    with node_program(*arguments, domain=graph.domain) as node:
        graph.describe(variants[0])
        node.wait_for("active: from ")
        graph.until(lambda: setting.service_is_ready() and asking.service_is_ready(), "services")

        def set_parameter(name: str, value: object) -> None:
            parameter = Parameter(name, value=value).to_parameter_msg()
            setting.call_async(SetParameters.Request(parameters=[parameter]))

        seen = 0
        descriptions = itertools.cycle(variants[1:] + variants[:1])
        due = {"contacts": 0.0, "algorithm": 0.5, "robot": 1.0, "limits": 0.3, "question": 0.2}
        period = {
            "contacts": 0.03, "algorithm": 0.25, "robot": 0.7, "limits": 0.2, "question": 0.1
        }  # fmt: skip
        begin = tick = time.monotonic()
        used: Counter[str] = Counter()
        looked = 0
        # Long enough to see robot and algorithm change, however busy the machine.
        while (
            (now := time.monotonic()) - begin < seconds
            or len(layouts) < 4 or len(used) < 2 or used.total() < LEAST
        ):  # fmt: skip
            assert now - begin < seconds + HANG_S, node.output
            for what in [what for what, at in due.items() if now - begin >= at]:
                due[what] = now - begin + period[what]
                if what == "contacts":
                    graph.touch(chance.sample(FEET, chance.randrange(5)))
                elif what == "algorithm":
                    set_parameter("algorithm", chance.choice(algorithms))
                elif what == "robot":
                    # Mostly once the last one is there, as one that comes sooner replaces it.
                    if len(layouts) > seen or chance.random() < 0.1:
                        seen = len(layouts)
                        graph.describe(next(descriptions))
                elif what == "limits":
                    set_parameter(
                        *chance.choice(
                            [("conditioning.weak", 10.0 ** chance.randrange(2, 6)),
                             ("max_skew", 0.001 * chance.randrange(1, 9)), ("max_skew", -1.0),
                             ("input_timeout", 0.1 * chance.randrange(1, 9)), ("nothing", 1)]
                        )
                    )  # fmt: skip
                # The service keeps ten that wait; of more some are never answered.
                elif sum(not future.done() for _, future in answers) < 5:
                    stamp = chance.getrandbits(60)
                    request = Compute.Request(
                        joints=list(names), positions=list(positions_at(stamp, names).values()),
                        which_contacts=everything,
                    )  # fmt: skip
                    answers.append((stamp, asking.call_async(request)))
            newest = [deserialize_message(data, DelassusMatrix) for data in received[looked:]]
            looked = len(received)
            used.update(message.algorithm for message in newest if message.validity == OK)
            graph.joints.publish(joint_state(time.time_ns(), names, chance))
            tick = max(tick + 1.0 / RATE, time.monotonic() + 0.5 / RATE)
            graph.spin(tick)
        graph.until(lambda: all(future.done() for _, future in answers), "answers")
        assert node.stop() == 0
    check(received, by_layout)
    for stamp, future in answers:
        response = future.result()
        if response.success:
            check_matrix(response.matrix, by_layout, stamp)
    assert sum(future.result().success for _, future in answers) > len(answers) // 2


def check(received: list[bytes], by_layout: dict[str, Twin]) -> None:
    """Every OK matrix is right for its layout, and between two robots there is an INVALID."""
    messages = [deserialize_message(data, DelassusMatrix) for data in received]
    good = [m for m in messages if m.validity == OK]
    assert len(good) >= LEAST
    for message in good:
        check_matrix(message, by_layout, stamp_of(message))
    swaps = 0
    for before, after in itertools.pairwise(messages):
        if before.layout_id != after.layout_id:
            swaps += 1
            assert after.validity == INVALID
            assert after.reasons & DelassusMatrix.REASON_ROBOT_CHANGED
    assert swaps and len({m.layout_id for m in good}) > 1
    assert len({m.algorithm for m in good}) > 1
    sequences = [m.sequence for m in messages]
    assert sequences == sorted(sequences)


def check_matrix(message: DelassusMatrix, by_layout: dict[str, Twin], stamp: int) -> None:
    twin = by_layout[message.layout_id]
    expected = twin.matrix(positions_at(stamp, twin.names), list(message.contacts))
    found = matrix_to_numpy(message)
    assert found.shape == expected.shape
    assert np.linalg.norm(found - expected) <= 1e-10 * np.linalg.norm(expected)


def test_a_short_storm(graph, urdf) -> None:
    storm(graph, urdf, 6.0, ("efpa", "pv_osimr", "nonsense"))


@pytest.mark.slow
def test_a_storm_of_three_minutes(graph, urdf) -> None:
    storm(graph, urdf, 180.0)
