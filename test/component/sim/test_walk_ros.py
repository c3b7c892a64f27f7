"""The examples in ROS: plant, delassus_node and controller in lockstep: load does not matter.

Nobody waits for the test itself, which may hear of a moment late, or not at all: what is asserted
of a moment goes by stamps.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from control.run import commands
from delassus_msgs.msg import ActiveContacts, DelassusMatrix, EstimatedContacts
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.qos import qos_profile_sensor_data
from ros_support import LATCHED, Domain, stamp_of
from std_msgs.msg import String

from delassus.programs.processes import Programs
from delassus.robots.built_in import demo_urdf
from delassus_ros.sim.demo import demo_environment
from delassus_ros.sim.plant_node import RECORDED

pytestmark = pytest.mark.needs("pinocchio", "daqp")

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"

UP, DOWN = ActiveContacts.INACTIVE, ActiveContacts.ACTIVE


class Scene(Domain):
    """The three processes, and what they publish."""

    def __init__(
        self, example: str, plant: list[str], controller: list[str], node: Sequence[str] = ()
    ) -> None:
        super().__init__()
        environment = demo_environment({**os.environ, "ROS_DOMAIN_ID": str(self.domain)})
        environment["PYTHONPATH"] = os.pathsep.join(
            [str(EXAMPLES), str(EXAMPLES.parent), environment.get("PYTHONPATH", "")]
        )
        environment["OPENBLAS_NUM_THREADS"] = "1"
        programs = commands(EXAMPLES / example, f"{example}.node", plant, node, controller)
        self.children = Programs(programs, environment)
        self.fault = lambda: "a program has ended" if self.children.dead() else None
        self.report = self.children.report
        self.odometry: list[Odometry] = []
        self.matrices: list[DelassusMatrix] = []
        self.forces: list[WrenchStamped] = []
        self.told: list[EstimatedContacts] = []
        self.felt: list[ActiveContacts] = []
        for kind, topic, store in (
            (Odometry, "odometry", self.odometry),
            (DelassusMatrix, "delassus_node/delassus", self.matrices),
            (WrenchStamped, "plant/contact_force/tool", self.forces),
            (EstimatedContacts, "delassus_node/contacts", self.told),
            (ActiveContacts, "active_contacts", self.felt),
        ):
            self.peer.create_subscription(kind, topic, store.append, qos_profile_sensor_data)

    def __enter__(self) -> Scene:
        self.children.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self.children.__exit__(*error)

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
    walk.set_parameters(algorithm="efpa")
    walk.uses("efpa")
    # The same robot with a heavier head: another layout.
    described = walk.peer.create_publisher(String, "robot_description", LATCHED)
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
            for info in walk.peer.get_subscriptions_info_by_topic("/active_contacts")
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
        scene.set_parameters(algorithm="ltl")
        scene.uses("ltl")
        scene.lasting(scene.felt, {"left_foot": DOWN, "right_foot": UP}, 0.5)
        assert scene.matrices[-1].algorithm == "ltl"
        assert min(scene.heights()) > 0.68
        assert {m.child_frame_id for m in scene.odometry[:5]} == {"pelvis"}
    postures = np.load(recording)
    assert postures.shape[1] == 37 and len(postures) > 5.0 / RECORDED
    assert (np.diff(postures[:, :2], axis=0) != 0.0).any()
