"""A generated arm of six joints with a spherical wrist and a ball as tool."""

from __future__ import annotations

from xml.etree import ElementTree

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
        joint = ElementTree.SubElement(robot, "joint", name=f"joint_{k}", type="revolute")
        ElementTree.SubElement(joint, "parent", link=before)
        ElementTree.SubElement(joint, "child", link=name)
        ElementTree.SubElement(joint, "origin", xyz=f"0 0 {height}", rpy="0 0 0")
        ElementTree.SubElement(joint, "axis", xyz=_AXES[axis])
        limits = {"lower": "-2.9", "upper": "2.9", "effort": str(effort), "velocity": "3"}
        ElementTree.SubElement(joint, "limit", limits)
        _box(robot, name, length, mass)
        before = name
    joint = ElementTree.SubElement(robot, "joint", name="tool_joint", type="fixed")
    ElementTree.SubElement(joint, "parent", link=before)
    ElementTree.SubElement(joint, "child", link=TOOL)
    ElementTree.SubElement(joint, "origin", xyz=f"0 0 {_TOOL_LENGTH}", rpy="0 0 0")
    tool = ElementTree.SubElement(robot, "link", name=TOOL)
    collision = ElementTree.SubElement(tool, "collision")
    geometry = ElementTree.SubElement(collision, "geometry")
    ElementTree.SubElement(geometry, "sphere", radius=str(RADIUS))
    return ElementTree.tostring(robot, encoding="unicode")


def _box(robot: ElementTree.Element, name: str, length: float, mass: float) -> None:
    """Append a homogeneous box that stands on its joint."""
    link = ElementTree.SubElement(robot, "link", name=name)
    inertial = ElementTree.SubElement(link, "inertial")
    ElementTree.SubElement(inertial, "origin", xyz=f"0 0 {0.5 * length}", rpy="0 0 0")
    ElementTree.SubElement(inertial, "mass", value=str(mass))
    across, along = mass / 12.0 * (_WIDTH**2 + length**2), mass / 6.0 * _WIDTH**2
    moments = {"ixx": across, "iyy": across, "izz": along, "ixy": 0.0, "ixz": 0.0, "iyz": 0.0}
    values = {name: repr(value) for name, value in moments.items()}
    ElementTree.SubElement(inertial, "inertia", values)
    visual = ElementTree.SubElement(link, "visual")
    ElementTree.SubElement(visual, "origin", xyz=f"0 0 {0.5 * length}", rpy="0 0 0")
    geometry = ElementTree.SubElement(visual, "geometry")
    ElementTree.SubElement(geometry, "box", size=f"{_WIDTH} {_WIDTH} {length}")


if __name__ == "__main__":
    print(arm_urdf())
