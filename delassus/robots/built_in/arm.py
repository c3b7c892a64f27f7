"""A generated arm of six joints with a spherical wrist and a ball as tool."""

from __future__ import annotations

from xml.etree import ElementTree

from delassus.robots.built_in.urdf_text import add_box, add_frame, add_revolute

TOOL = "tool"
"""Link at the centre of the ball, z out of the flange."""
RADIUS = 0.02  # m, of the ball
_AXES = {"y": "0 1 0", "z": "0 0 1"}
# Axis, height above the previous joint [m], length [m] and mass [kg] of the link, effort [N m].
_JOINTS = (
    ("z", 0.16, 0.18, 3.8, 120.0),
    ("y", 0.18, 0.40, 5.5, 120.0),
    ("y", 0.40, 0.20, 2.7, 90.0),
    ("z", 0.20, 0.19, 1.7, 40.0),
    ("y", 0.19, 0.08, 1.4, 40.0),
    ("z", 0.08, 0.06, 0.4, 20.0),
)
_WIDTH = 0.10  # m, of all links
_TOOL_LENGTH = 0.10  # m, from the last joint to the ball's centre


def arm_urdf() -> str:
    """Return the arm's URDF: joints joint_1 to joint_6, links base, link_1 to link_6 and tool."""
    robot = ElementTree.Element("robot", name="delassus_arm")
    ElementTree.SubElement(robot, "link", name="base")
    before = "base"
    for k, (axis, height, length, mass, effort) in enumerate(_JOINTS, start=1):
        name = f"link_{k}"
        limits = {"lower": "-2.9", "upper": "2.9", "effort": str(effort), "velocity": "3"}
        add_revolute(robot, f"joint_{k}", before, name, f"0 0 {height}", _AXES[axis], limits)
        add_box(robot, name, (_WIDTH, _WIDTH, length), mass, 0.5 * length)
        before = name
    tool = add_frame(robot, "tool_joint", before, TOOL, f"0 0 {_TOOL_LENGTH}")
    collision = ElementTree.SubElement(tool, "collision")
    geometry = ElementTree.SubElement(collision, "geometry")
    ElementTree.SubElement(geometry, "sphere", radius=str(RADIUS))
    return ElementTree.tostring(robot, encoding="unicode")


if __name__ == "__main__":
    print(arm_urdf())
