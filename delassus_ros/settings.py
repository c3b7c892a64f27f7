"""What the node is configured to compute, read from plain parameter values; knows no ROS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from delassus_ros.contacts import MOVING, Contact, ContactSet
from delassus_ros.errors import ContactError, ProblemError, RobotError, unknown
from delassus_ros.model import Robot, Transform
from delassus_ros.model.robot import Base
from delassus_ros.problem import AXES, Axes, Problem

DEFAULTS: Mapping[str, Any] = {
    "robot_description": "",
    "base": "floating",
    "axes": "contact",
    "rows": "active",
    "algorithm": "pv_osimr",
    "contacts.names": (),
    "armature.names": (),
    "armature.values": (),
}
"""Parameters that are not of a single contact."""
CONTACT_DEFAULTS: Mapping[str, Any] = {
    "frame": "",
    "kind": "point",
    "xyz": (0.0, 0.0, 0.0),
    "rpy": (0.0, 0.0, 0.0),
    "selection": (),
    "moving": "nothing",
}
"""Parameters of a contact, each after ``contacts.<name>.``."""
CHOICES: Mapping[str, tuple[str, ...]] = {
    "base": ("floating", "fixed"),
    "axes": AXES,
    "rows": ("active", "all"),
}
KINDS = ("point", "surface", "selection")
CONTACT_CHOICES: Mapping[str, tuple[str, ...]] = {"kind": KINDS, "moving": MOVING}
"""Values of a contact's parameters that have a fixed number of them."""


@dataclass(frozen=True)
class Settings:
    """The node's parameters, checked one by one.

    Attributes
    ----------
    robot_description : URDF text; empty if it comes on the topic.
    base, axes : as in :class:`~delassus_ros.problem.Problem`.
    rows : ``"active"``, or ``"all"`` for matrices of every contact, whether active or not.
    algorithm : name of the algorithm to begin with.
    contacts : the contacts, in the order of their rows.
    armature : rotor inertia by joint name [kg·m² or kg].
    """

    robot_description: str
    base: Base
    axes: Axes
    rows: str
    algorithm: str
    contacts: ContactSet
    armature: Mapping[str, float]

    @classmethod
    def from_parameters(cls, given: Mapping[str, Any]) -> Settings:
        """Read settings from parameter values by full name; what is absent has its default.

        Raises
        ------
        ProblemError
            For an unknown base, axes or rows.
        ContactError
            If there is no contact, or one is not described in full; names the parameter.
        RobotError
            If armature.names and armature.values do not belong together.
        """
        values = {**DEFAULTS, **given}
        for name, choices in CHOICES.items():
            if values[name] not in choices:
                raise ProblemError(unknown(name, str(values[name]), choices, plural=name))
        if not values["contacts.names"]:
            raise ContactError(
                "parameter 'contacts.names' is empty; list the contacts in it, in the order of "
                "their rows, and give each a 'contacts.<name>.frame'"
            )
        return cls(
            robot_description=values["robot_description"],
            base=cast(Base, values["base"]),
            axes=cast(Axes, values["axes"]),
            rows=values["rows"],
            algorithm=values["algorithm"],
            contacts=ContactSet(_contact(name, values) for name in values["contacts.names"]),
            armature=_armature(values["armature.names"], values["armature.values"]),
        )

    def problem(self, urdf: str | bytes) -> Problem:
        """Return the problem for a robot given as URDF text.

        Raises
        ------
        RobotError, ContactError
            If the robot cannot be read or the contacts do not fit it.
        ProblemError
            For world axes with a floating base, and for moving contacts: the orientation of the
            base and the placements of contacts are not inputs of the node.
        """
        moving = [contact.name for contact in self.contacts if contact.moving != "nothing"]
        if moving:
            raise ProblemError(
                f"parameter 'contacts.{moving[0]}.moving' needs the placement of the contact at "
                "run time, which this version of the node has no input for; set it to 'nothing', "
                "or use the library or an exported kernel"
            )
        if self.axes == "world" and self.base == "floating":
            raise ProblemError(
                "axes 'world' with base 'floating' needs the orientation of the base, which "
                "this version of the node has no input for; set axes to 'contact', or base to "
                "'fixed'"
            )
        # Bytes, as text that does not look like XML would be taken for the path of a file.
        text = urdf.encode() if isinstance(urdf, str) else urdf
        robot = Robot.from_urdf(text, base=self.base, armature=self.armature)
        return Problem(robot, self.contacts, axes=self.axes)


def _contact(name: str, values: Mapping[str, Any]) -> Contact:
    """Return the contact that the parameters ``contacts.<name>.*`` describe."""
    own = {
        key: values.get(f"contacts.{name}.{key}", default)
        for key, default in CONTACT_DEFAULTS.items()
    }
    if not own["frame"]:
        raise ContactError(
            f"contact {name!r}: parameter 'contacts.{name}.frame' is not set; it names the link "
            "that the contact is fixed to"
        )
    for key, choices in CONTACT_CHOICES.items():
        if own[key] not in choices:
            raise ContactError(f"contact {name!r}: {unknown(key, own[key], choices, 'choices')}")
    selection = list(own["selection"])
    if own["kind"] == "selection":
        if not selection or len(selection) % 6:
            raise ContactError(
                f"contact {name!r}: parameter 'contacts.{name}.selection' has {len(selection)} "
                "values; expected the rows of a (k, 6) matrix, one after the other"
            )
        kind: Any = np.reshape(np.array(selection, dtype=np.float64), (-1, 6))
    elif selection:
        raise ContactError(
            f"contact {name!r}: parameter 'contacts.{name}.selection' is given, but its kind is "
            f"{own['kind']!r}; set the kind to 'selection' or leave the selection out"
        )
    else:
        kind = own["kind"]
    placement = Transform.from_xyz_rpy(_triple(name, "xyz", own), _triple(name, "rpy", own))
    return Contact(name, own["frame"], kind, placement, own["moving"])


def _triple(contact: str, key: str, values: Mapping[str, Any]) -> list[float]:
    triple = [float(value) for value in values[key]]
    if len(triple) != 3 or not np.isfinite(triple).all():
        raise ContactError(
            f"contact {contact!r}: parameter 'contacts.{contact}.{key}' is {triple}; expected 3 "
            "finite numbers"
        )
    return triple


def _armature(names: Sequence[str], values: Sequence[float]) -> dict[str, float]:
    if len(names) != len(values):
        raise RobotError(
            f"parameter 'armature.names' has {len(names)} entries but 'armature.values' has "
            f"{len(values)}; expected one value for each joint"
        )
    if len(set(names)) != len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise RobotError(f"parameter 'armature.names' has joint {twice!r} more than once")
    return {name: float(value) for name, value in zip(names, values, strict=True)}
