"""The examples in ROS: plant, delassus_node and controller in lockstep: load does not matter.

Nobody waits for the test itself, which may hear of a moment late, or not at all: what is asserted
of a moment goes by stamps.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hanging import HANG_S

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")
pytest.importorskip("mujoco", reason="the physics engine (extra 'sim') is not installed")
pytest.importorskip("pinocchio", reason="needs Pinocchio")
pytest.importorskip("daqp", reason="the extra 'examples' is not installed")
pytest.importorskip("delassus_msgs", reason="the message package delassus_msgs is not installed")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))

import rclpy  # noqa: E402
from control.run import commands  # noqa: E402
from delassus_msgs.msg import ActiveContacts, DelassusMatrix, EstimatedContacts  # noqa: E402
from geometry_msgs.msg import WrenchStamped  # noqa: E402
from nav_msgs.msg import Odometry  # noqa: E402
from rcl_interfaces.srv import SetParameters  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_sensor_data  # noqa: E402
from ros_domains import new_domain  # noqa: E402
from ros_support import stamp_of  # noqa: E402
from std_msgs.msg import String  # noqa: E402

from delassus_ros.processes import Programs  # noqa: E402
from delassus_ros.sim import demo_urdf  # noqa: E402
from delassus_ros.sim.demo import demo_environment  # noqa: E402
from delassus_ros.sim.plant_node import RECORDED  # noqa: E402

UP, DOWN = ActiveContacts.INACTIVE, ActiveContacts.ACTIVE
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class Scene:
    """The three processes, and what they publish."""

    def __init__(
        self, example: str, plant: list[str], controller: list[str], node: Sequence[str] = ()
    ) -> None:
        environment = {**os.environ, "ROS_DOMAIN_ID": str(new_domain())}
        environment = demo_environment(environment)
        root = str(EXAMPLES.parent)
        environment["PYTHONPATH"] = os.pathsep.join(
            [str(EXAMPLES), root, environment.get("PYTHONPATH", "")]
        )
        environment["OPENBLAS_NUM_THREADS"] = "1"
        programs = commands(EXAMPLES / example, f"{example}.node", plant, node, controller)
        self.children = Programs(programs, environment)
        self.context = rclpy.Context()
        self._domain = int(environment["ROS_DOMAIN_ID"])
        self.odometry: list[Odometry] = []
        self.matrices: list[DelassusMatrix] = []
        self.forces: list[WrenchStamped] = []
        self.told: list[EstimatedContacts] = []
        self.felt: list[ActiveContacts] = []

    def __enter__(self) -> Scene:
        self.children.__enter__()
        rclpy.init(args=[], context=self.context, domain_id=self._domain)
        self.node = rclpy.create_node("watcher", context=self.context, enable_rosout=False)
        self._executor = rclpy.executors.SingleThreadedExecutor(context=self.context)
        self._executor.add_node(self.node)
        for kind, topic, store in (
            (Odometry, "odometry", self.odometry),
            (DelassusMatrix, "delassus_node/delassus", self.matrices),
            (WrenchStamped, "plant/contact_force/tool", self.forces),
            (EstimatedContacts, "delassus_node/contacts", self.told),
            (ActiveContacts, "active_contacts", self.felt),
        ):
            self.node.create_subscription(kind, topic, store.append, qos_profile_sensor_data)
        return self

    def __exit__(self, *error: Any) -> None:
        self.node.destroy_node()
        self._executor.shutdown()
        rclpy.try_shutdown(context=self.context)
        self.children.__exit__(*error)

    def until(self, condition: Callable[[], Any], what: str) -> Any:
        deadline = time.monotonic() + HANG_S
        while not (value := condition()):
            if time.monotonic() > deadline or self.children.dead():
                pytest.fail(f"no {what}\n{self.children.report()}")
            self._executor.spin_once(timeout_sec=0.1)
        return value

    def said(self, words: str) -> bool:
        return words in self.children["controller"].tail(200)

    def now(self) -> float:
        """Return the simulated time [s]: that of a matrix which was not waiting to be heard."""
        enough = len(self.matrices) + 2 * qos_profile_sensor_data.depth
        self.until(lambda: len(self.matrices) > enough, "matrices")
        return 1e-9 * stamp_of(self.matrices[-1])

    def go_on(self, seconds: float) -> None:
        end = self.now() + seconds
        self.until(lambda: 1e-9 * stamp_of(self.matrices[-1]) > end, f"{seconds} s more")

    def uses(self, algorithm: str) -> None:
        """Wait for a matrix by this algorithm."""
        # Topics are discovered one by one, some only while it walks.
        self.until(
            lambda: self.matrices and self.matrices[-1].algorithm == algorithm,
            f"matrix by {algorithm}",
        )

    def heights(self) -> list[float]:
        """Return how high the base was [m], but for the first tenth of a second."""
        self.until(lambda: len(self.odometry) > 100, "odometry")
        return [m.pose.pose.position.z for m in self.odometry[50:]]

    def lasting(self, heard: list[Any], wanted: dict[str, int], seconds: float) -> Any:
        """Wait for these states of contacts, and until they have lasted; return the newest."""

        def lasts() -> Any:
            for message in reversed(heard):
                if dict(zip(message.names, message.status, strict=True)) != wanted:
                    return None
                if 1e-9 * (stamp_of(heard[-1]) - stamp_of(message)) >= seconds:
                    return heard[-1]
            return None

        return self.until(lasts, f"{wanted} for {seconds} s")


@pytest.fixture(name="walk")
def make_walk() -> Iterator[Scene]:
    with Scene("whole_body_control", ["joint_friction:=0.1", "velocity_noise:=0.02"], []) as scene:
        yield scene


def test_it_goes_on_while_algorithm_and_description_change(walk: Scene) -> None:
    walk.until(lambda: walk.said("squat"), "squat")
    change = walk.node.create_client(SetParameters, "delassus_node/set_parameters")
    walk.until(change.service_is_ready, "service")
    wanted = Parameter("algorithm", value="efpa").to_parameter_msg()
    future = change.call_async(SetParameters.Request(parameters=[wanted]))
    walk.until(future.done, "answer")
    walk.uses("efpa")
    # The same robot with a heavier head: another layout.
    described = walk.node.create_publisher(String, "robot_description", LATCHED)
    heavier = demo_urdf().replace('<mass value="0.35"/>', '<mass value="0.36"/>')
    before = walk.matrices[-1].layout_id
    described.publish(String(data=heavier))
    walk.until(lambda: walk.matrices[-1].layout_id != before, "matrix of the other robot")
    walk.go_on(0.5)
    assert min(walk.heights()) > 0.24, walk.children.report()
    assert walk.matrices[-1].validity == DelassusMatrix.VALIDITY_OK


FORCE = ["contacts.source:=force", "contacts.estimated:=[LF, RF, LH, RH]"]


@pytest.mark.slow
def test_it_walks_without_contact_sensors() -> None:
    rough = ["joint_friction:=0.1", "velocity_noise:=0.02", "base_noise:=0.01"]
    with Scene("whole_body_control", rough, [], FORCE) as walk:
        walk.until(lambda: walk.said("lift the left fore foot"), "lifted foot")
        latest = walk.lasting(walk.told, {"LF": UP, "RF": DOWN, "LH": DOWN, "RH": DOWN}, 0.4)
        by_name = dict(zip(latest.names, latest.wrenches, strict=True))
        carried = sum(wrench.force.z for wrench in by_name.values())
        assert carried == pytest.approx(129.0, rel=0.1)
        assert latest.probability[list(latest.names).index("LF")] < 0.1
        assert min(walk.heights()) > 0.24
        # Nobody listens to the floor's own sensors.
        assert not any(
            "delassus_node" in info.node_name
            for info in walk.node.get_subscriptions_info_by_topic("/active_contacts")
        )


def test_thresholds_and_gain_of_contact_forces() -> None:
    """Standing on four feet: with a threshold above their load none touches."""
    limits = ["contacts.force_on:=90.0", "contacts.force_off:=80.0", "contacts.gain:=50.0"]
    with Scene("whole_body_control", [], [], [*FORCE, *limits]) as walk:
        walk.until(lambda: len(walk.told) > 50, "contacts")
        assert set(walk.told[-1].status) == {UP}
        loads = [wrench.force.z for wrench in walk.told[-1].wrenches]
        assert all(10.0 < load < 80.0 for load in loads), loads


@pytest.fixture(name="arm")
def make_arm() -> Iterator[Scene]:
    drives = ["on_silence:=hold", "holding:=3000.0", "braking:=60.0", "armature:=0.05"]
    plant = ["robot:=arm", "friction:=0.2", *drives]
    with Scene("operational_space", plant, ["surface:=flat"]) as scene:
        yield scene


@pytest.mark.slow
def test_the_arm_presses_through_the_node(arm: Scene) -> None:
    arm.until(lambda: arm.said("circle"), "circle")
    arm.until(lambda: arm.forces, "forces")
    began = arm.now()
    arm.go_on(1.0)
    forces = [m.wrench.force.z for m in arm.forces if began < 1e-9 * stamp_of(m) < began + 1.0]
    assert sum(forces) / len(forces) == pytest.approx(20.0, abs=0.5)
    assert max(m.wrench.force.z for m in arm.forces) < 40.0


@pytest.mark.slow
def test_the_humanoid_stands_on_one_foot_through_the_node(tmp_path: Path) -> None:
    recording = tmp_path / "postures.npy"
    drives = ["joint_friction:=0.3", "velocity_noise:=0.01", f"record:={recording}"]
    with Scene("balance", ["robot:=humanoid", *drives], []) as scene:
        scene.until(lambda: scene.said("shift left"), "shift")
        change = scene.node.create_client(SetParameters, "delassus_node/set_parameters")
        scene.until(change.service_is_ready, "service")
        wanted = Parameter("algorithm", value="ltl").to_parameter_msg()
        change.call_async(SetParameters.Request(parameters=[wanted]))
        scene.uses("ltl")
        scene.lasting(scene.felt, {"left_foot": DOWN, "right_foot": UP}, 0.5)
        assert scene.matrices[-1].algorithm == "ltl"
        assert min(scene.heights()) > 0.68
        assert {m.child_frame_id for m in scene.odometry[:5]} == {"pelvis"}
    postures = np.load(recording)
    assert postures.shape[1] == 37 and len(postures) > 5.0 / RECORDED
    assert (np.diff(postures[:, :2], axis=0) != 0.0).any()
