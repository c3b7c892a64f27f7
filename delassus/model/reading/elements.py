"""The elements, attributes and types of URDF and URDF+ that are read: one table each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from delassus.model.constraints import LoopKind
from delassus.model.joint import JointKind

ENDS = ("predecessor", "successor")
"""Elements of couplings and loops that name the links."""
CLOSURES = ("coupling", "loop")
"""Elements of URDF+ that close the tree."""
READ = ("link", "joint", *CLOSURES)
"""Elements directly under ``<robot>`` that are read; a ``<transmission>`` is kept unchecked."""
VERSIONS = ("1.0", "1.1", "1.2")
"""Versions of URDF that urdfdom reads, the default first; 1.1 brought ``quat_xyzw``."""
MAX_NAME = 1000
"""Most characters of a name."""


@dataclass(frozen=True)
class ReadElement:
    """An element that is read.

    Attributes
    ----------
    texts : attributes that are read as text.
    numbers : attributes that are read as numbers, with how many numbers.
    children : elements that are read inside.
    required : attribute without which the element means nothing.
    """

    texts: tuple[str, ...] = ()
    numbers: Mapping[str, int] = field(default_factory=dict)
    children: tuple[str, ...] = ()
    required: str = ""

    @property
    def attributes(self) -> tuple[str, ...]:
        """All attributes that are read."""
        return (*self.texts, *self.numbers)


ELEMENTS = {
    "link": ReadElement(("name",), children=("inertial",)),
    "inertial": ReadElement(children=("origin", "mass", "inertia")),
    "mass": ReadElement(numbers={"value": 1}, required="value"),
    "inertia": ReadElement(
        numbers=dict.fromkeys(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), 1),
    ),
    "joint": ReadElement(
        ("name", "type", "independent"),
        children=("origin", "parent", "child", "axis", "limit", "mimic", "dynamics"),
    ),
    "origin": ReadElement(numbers={"xyz": 3, "rpy": 3, "quat_xyzw": 4}),
    "parent": ReadElement(("link",), required="link"),
    "child": ReadElement(("link",), required="link"),
    "axis": ReadElement(numbers={"xyz": 3}, required="xyz"),
    # Those of effort and, of URDF 1.2, acceleration, deceleration and jerk change no matrix.
    "limit": ReadElement(numbers={"lower": 1, "upper": 1}),
    "dynamics": ReadElement(numbers={"damping": 1, "friction": 1}),
    "mimic": ReadElement(("joint",), {"multiplier": 1, "offset": 1}, required="joint"),
    # Published couplings have a type, "rolling", which does not change the equation.
    "coupling": ReadElement(("name", "type"), children=(*ENDS, "ratio")),
    "loop": ReadElement(("name", "type"), children=(*ENDS, "axis")),
    "predecessor": ReadElement(("link",), children=("origin",), required="link"),
    "successor": ReadElement(("link",), children=("origin",), required="link"),
    "ratio": ReadElement(numbers={"value": 1}, required="value"),
}
"""The elements that are read, by tag."""

FIXED = "fixed"
"""The joint type that moves nothing."""
JOINT_TYPES = {
    "revolute": JointKind.REVOLUTE,
    "continuous": JointKind.REVOLUTE,
    "prismatic": JointKind.PRISMATIC,
    "planar": JointKind.PLANAR,
    "floating": JointKind.FLOATING,
}
"""Kind of the moving joint types of URDF."""
LOOP_TYPES = {
    "revolute": LoopKind.HINGE,
    "continuous": LoopKind.HINGE,
    "prismatic": LoopKind.SLIDER,
    "planar": LoopKind.PLANAR,
    "fixed": LoopKind.WELD,
    "spherical": LoopKind.POINT,
    "universal": LoopKind.POINT,
}
"""Kind of the loop types of URDF+: the motion that a joint of that type would allow. The types
``spherical`` and ``universal`` are additions to URDF+, which does not know the order of the axes
of a universal joint."""
