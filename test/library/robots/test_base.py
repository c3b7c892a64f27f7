"""Bases of robots: those of published descriptions, by names and limbs."""

from __future__ import annotations

import robots

from delassus.model.reading.xml import parse_xml
from delassus.robots.base import base_of

FIXED = {
    "TwoDofs", "allegro_left_hand", "allegro_right_hand", "baxter", "double_pendulum",
    "double_pendulum_continuous", "double_pendulum_simple", "finger_edu", "kinova", "panda",
    "panda_collision", "pr2", "so100", "so101", "talos_left_arm", "tiago", "tiago_dual",
    "tiago_no_hand", "tiago_pro", "ur10_joint_limited_robot", "ur10_robot", "ur3_gripper",
    "ur3_joint_limited_robot", "ur3_robot", "ur5_gripper", "ur5_joint_limited_robot",
    "ur5_robot", "xarm7", "z1",
}  # fmt: skip
"""Published robots with one limb, with arms and no legs, and on wheels."""
FLYING = {"borinot_flying_arm_2", "hextilt_flying_arm_5"}
"""Arms on drones, which nothing in their description says."""


def test_arms_are_fixed_and_what_walks_floats() -> None:
    folder = robots.example("panda_description/urdf/panda.urdf").parents[2]
    documents = {path.stem: parse_xml(path) for path in folder.glob("**/*.urdf")}
    found = {name for name, document in documents.items() if base_of(document).base == "fixed"}
    assert found == (FIXED | FLYING) & documents.keys()
    assert {"panda", "ur5_robot", "xarm7"} <= found < documents.keys()
