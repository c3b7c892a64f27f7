"""Small URDFs as text, for the tests of the reader."""

from __future__ import annotations

import re

INERTIAL = (
    '<inertial><origin xyz="0.1 0.02 -0.03" rpy="0.3 -0.2 0.1"/><mass value="1.5"/>'
    '<inertia ixx="0.02" ixy="0.001" ixz="0" iyy="0.03" iyz="0.002" izz="0.04"/></inertial>'
)


def inertial(mass: float, origin: str = "", **moments: object) -> str:
    """Return an inertial element; moments that are not given are zero."""
    values = dict.fromkeys(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), "0") | moments
    written = " ".join(f'{name}="{value}"' for name, value in values.items())
    return f'<inertial>{origin}<mass value="{mass}"/><inertia {written}/></inertial>'


def coupling(name: str, predecessor: str, successor: str, ratio: float = 6.0) -> str:
    """Return a coupling of the joints between two links."""
    return (
        f'<coupling name="{name}"><predecessor link="{predecessor}"/>'
        f'<successor link="{successor}"/><ratio value="{ratio}"/></coupling>'
    )


def link(name: str, inertial: str = INERTIAL) -> str:
    """Return a link."""
    return f'<link name="{name}">{inertial}</link>'


def joint(
    name: str, parent: str, child: str, kind: str = "revolute", inside: str = '<axis xyz="0 0 1"/>'
) -> str:
    """Return a joint whose origin has no special structure."""
    return (
        f'<joint name="{name}" type="{kind}"><origin xyz="0.1 -0.2 0.3" rpy="0.4 0.5 -0.6"/>'
        f'<parent link="{parent}"/><child link="{child}"/>{inside}</joint>'
    )


def limb(name: str, inside: str = "", *fixed: str) -> str:
    """Return a link that moves on the trunk, with further links fixed to it."""
    parts = [link(name).replace("</link>", f"{inside}</link>"), joint(name, "trunk", name)]
    parts += [link(end) + joint(f"{end}_weld", name, end, "fixed", "") for end in fixed]
    return "".join(parts)


def shape(kind: str, xyz: str = "0 0 0") -> str:
    """Return a collision shape of a link."""
    return f"<collision><origin xyz='{xyz}'/><geometry>{kind}</geometry></collision>"


def straight(
    name: str, parent: str, child: str, xyz: str, axis: str = "0 0 1", more: str = "",
    kind: str = "continuous",
) -> str:  # fmt: skip
    """Return a joint without limits, whose axes are those of its parent unless `more` turns it."""
    return (
        f'<joint name="{name}" type="{kind}"><origin xyz="{xyz}" {more}/><axis xyz="{axis}"/>'
        f'<parent link="{parent}"/><child link="{child}"/></joint>'
    )


def robot_xml(*parts: str, head: str = 'name="test"') -> str:
    """Return a URDF of these parts; `head` are the attributes of the robot."""
    return f"<robot {head}>{''.join(parts)}</robot>"


def without_geometry(text: str) -> str:
    """Return a URDF without its shapes, whose meshes may be absent."""
    for element in ("visual", "collision"):
        text = re.sub(rf"<{element}\b.*?</{element}>", "", text, flags=re.DOTALL)
    return re.sub(r"<mimic[^>]*/>|<transmission\b.*?</transmission>", "", text, flags=re.DOTALL)
