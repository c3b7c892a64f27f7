"""A robot on two wheels, as URDF."""

from __future__ import annotations

from urdf_text import link, robot_xml, shape, straight

RADIUS = 0.12
SPIN = (
    '<inertial><origin xyz="0 0.02 0"/><mass value="1.5"/>'
    '<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.02"/></inertial>'
)


def wheeled(name: str = "wheel") -> str:
    """Return a robot on two wheels at the ends of its legs, whose inertia is that of wheels."""
    parts = [link("trunk")]
    for side, y in (("left", 0.2), ("right", -0.2)):
        rim = shape(f'<cylinder radius="{RADIUS}" length="0.05"/>', "0 0.02 0").replace(
            "<origin ", '<origin rpy="1.5707963267948966 0 0" '
        )
        wheel = f"{side}_{name}"
        parts += [
            link(f"{side}_leg"), link(wheel, SPIN).replace("</link>", f"{rim}</link>"),
            straight(f"{side}_hip", "trunk", f"{side}_leg", f"0 {y} 0", "0 1 0"),
            straight(f"{side}_axle", f"{side}_leg", wheel, "0 0 -0.4", "0 1 0"),
        ]  # fmt: skip
    return robot_xml(*parts)
