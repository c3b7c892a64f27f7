"""A generated humanoid of 30 joints: two legs with box-shaped soles, a waist, two arms."""

from __future__ import annotations

from xml.etree import ElementTree

from delassus.robots.built_in.urdf_text import add_box, add_frame, add_revolute

FEET = {"left_foot": "left_sole", "right_foot": "right_sole"}
"""Contacts of the feet and their frames, under the ankles, x forward and z up."""
HANDS = {"left_hand": "left_palm", "right_hand": "right_palm"}
POSTURE = {
    f"{side}_{joint}_joint": angle
    for side in ("left", "right")
    for joint, angle in (
        ("thigh", -0.4), ("shank", 0.8), ("ankle", -0.4), ("shoulder", 0.15), ("forearm", -0.6),
    )
}  # fmt: skip
"""Joint positions of the standing robot with bent knees [rad]; other joints are at zero."""
SOLE = (0.22, 0.10)
"""Length and width of a sole, centred at its frame [m]."""

_Part = tuple[str, str, tuple[float, float, float], tuple[float, float, float], float]
_THICKNESS = 0.02  # m, of a sole
_LIMITS = {"lower": "-2.5", "upper": "2.5", "effort": "200", "velocity": "20"}
_AXES = {"roll": "1 0 0", "pitch": "0 1 0", "yaw": "0 0 1"}

# Joint, axis, position in the parent body [m], size of the box below the joint [m], mass [kg].
_WAIST: tuple[_Part, ...] = (
    ("waist_yaw", "yaw", (0.0, 0.0, 0.08), (0.10, 0.10, 0.04), 1.0),
    ("waist_roll", "roll", (0.0, 0.0, 0.04), (0.10, 0.10, 0.04), 1.0),
    ("torso", "pitch", (0.0, 0.0, 0.04), (0.18, 0.28, 0.44), 14.0),
)
_HEAD: tuple[_Part, ...] = (("head", "yaw", (0.0, 0.0, 0.46), (0.14, 0.14, 0.20), 3.0),)
_LEG: tuple[_Part, ...] = (
    ("hip_yaw", "yaw", (0.0, 0.10, -0.05), (0.09, 0.09, 0.06), 1.2),
    ("hip_roll", "roll", (0.0, 0.0, -0.04), (0.09, 0.09, 0.06), 1.2),
    ("thigh", "pitch", (0.0, 0.0, -0.04), (0.11, 0.11, 0.34), 5.0),
    ("shank", "pitch", (0.0, 0.0, -0.36), (0.09, 0.09, 0.34), 3.2),
    ("ankle", "pitch", (0.0, 0.0, -0.36), (0.06, 0.06, 0.04), 0.6),
    ("foot", "roll", (0.0, 0.0, -0.02), (0.22, 0.10, 0.05), 1.1),
)
_ARM: tuple[_Part, ...] = (
    ("shoulder", "pitch", (0.0, 0.18, 0.40), (0.08, 0.08, 0.06), 0.9),
    ("shoulder_roll", "roll", (0.0, 0.04, 0.0), (0.08, 0.08, 0.06), 0.9),
    ("upper_arm", "yaw", (0.0, 0.0, -0.05), (0.08, 0.08, 0.22), 1.8),
    ("forearm", "pitch", (0.0, 0.0, -0.24), (0.07, 0.07, 0.18), 1.2),
    ("wrist", "yaw", (0.0, 0.0, -0.20), (0.05, 0.05, 0.04), 0.4),
    ("wrist_roll", "roll", (0.0, 0.0, -0.03), (0.05, 0.05, 0.04), 0.4),
    ("hand", "pitch", (0.0, 0.0, -0.03), (0.05, 0.09, 0.12), 0.6),
)


def humanoid_urdf() -> str:
    """Return the humanoid's URDF: the root is pelvis, joints are named after the moved links."""
    robot = ElementTree.Element("robot", name="delassus_humanoid")
    add_box(robot, "pelvis", (0.16, 0.22, 0.12), 8.0, 0.0)
    torso = _chain(robot, "pelvis", "", _WAIST, upwards=True)
    _chain(robot, torso, "", _HEAD, upwards=True)
    for side in ("left", "right"):
        foot = _chain(robot, "pelvis", side, _LEG)
        _sole(add_frame(robot, f"{side}_sole_joint", foot, f"{side}_sole", "0.03 0 -0.05"))
        hand = _chain(robot, torso, side, _ARM)
        add_frame(robot, f"{side}_palm_joint", hand, f"{side}_palm", "0 0 -0.12")
    return ElementTree.tostring(robot, encoding="unicode")


def _chain(
    robot: ElementTree.Element,
    parent: str,
    side: str,
    parts: tuple[_Part, ...],
    upwards: bool = False,
) -> str:
    """Append a chain of bodies; return the name of the last body."""
    for name, axis, (x, y, z), size, mass in parts:
        link = f"{side}_{name}" if side else name
        place = f"{x} {-y if side == 'right' else y} {z}"
        add_revolute(robot, f"{link}_joint", parent, link, place, _AXES[axis], _LIMITS)
        add_box(robot, link, size, mass, 0.5 * size[2] if upwards else -0.5 * size[2])
        parent = link
    return parent


def _sole(link: ElementTree.Element) -> None:
    """Give a link a flat box whose lower side touches the floor."""
    collision = ElementTree.SubElement(link, "collision")
    ElementTree.SubElement(collision, "origin", xyz=f"0 0 {0.5 * _THICKNESS}")
    geometry = ElementTree.SubElement(collision, "geometry")
    ElementTree.SubElement(geometry, "box", size=f"{SOLE[0]} {SOLE[1]} {_THICKNESS}")


if __name__ == "__main__":
    print(humanoid_urdf())
