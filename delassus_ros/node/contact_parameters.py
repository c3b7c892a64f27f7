"""Parameters of a contact, ``contacts.<name>.*``, and the contact that they describe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from delassus.contacts import (
    MOVING,
    CenterOfMass,
    CentroidalMomentum,
    Contact,
    RelativeContact,
    WeightedSum,
)
from delassus.errors import ContactError, InputError
from delassus.model import Transform
from delassus.model.reading.numbers import numbers_in
from delassus_ros.ros.setting import Setting, parse_all

CONTACT_PARAMETERS: Mapping[str, Setting] = {
    "frame": Setting("", "Link of the robot that the contact is fixed to."),
    "kind": Setting(
        "point",
        "Rows of the contact: 3 linear, 3 linear and 3 angular, those of selection, or, relative, "
        "those of the motion of second_frame in frame: selection, or all 6. weighted_sum: the sum "
        "of the twists of frames, times weights: selection, or 3 linear. center_of_mass and "
        "centroidal_momentum: 3 and 6 rows of the whole robot, without a frame.",
        choices=(
            "point", "surface", "selection", "relative", "weighted_sum", "center_of_mass",
            "centroidal_momentum",
        ),
    ),
    "second_frame": Setting("", "Second link of a contact of kind 'relative'."),
    "frames": Setting(
        (), "Links of a contact of kind 'weighted_sum'; the first has its axes.", holds="names"
    ),
    "weights": Setting(
        (), "Weight of each of the frames, for kind 'weighted_sum'.", holds="numbers"
    ),
    "xyz": Setting(
        (0.0, 0.0, 0.0),
        "Position of the contact in its frame: x, y, z [m].",
        holds="numbers",
    ),
    "rpy": Setting(
        (0.0, 0.0, 0.0),
        "Orientation of the contact in its frame: roll, pitch, yaw [rad].",
        holds="numbers",
    ),
    "selection": Setting(
        (),
        "Rows of a (k, 6) matrix, linear first, for kinds 'selection', 'relative' and "
        "'weighted_sum'.",
        holds="numbers",
    ),
    "moving": Setting(
        "nothing",
        "Part of the placement that comes on the topic contact_placements, for contacts that roll "
        "or touch at any point: the position, or the pose.",
        choices=MOVING,
    ),
    "friction": Setting(
        -1.0,
        "Coefficient of friction of a point or surface, for the output forces. -1: that of the "
        "parameter friction.",
        -1.0, 100.0,
    ),
    "normal": Setting(
        "z",
        "Direction in which a point pushes, for the output forces: x, y, z, -x, -y, -z, along the "
        "axes of the rows, or three numbers, as '0 0.6 0.8'.",
    ),
    "dimensions": Setting(
        (),
        "Length along x and width along y of a surface, for the output forces [m].",
        holds="numbers",
    ),
}  # fmt: skip
"""Parameters of a contact, by the name after ``contacts.<name>.``."""


def contact_of(name: str, parameters: Mapping[str, Any]) -> Contact:
    """Return the contact that the parameters ``contacts.<name>.*`` describe.

    Raises
    ------
    ContactError
        If a parameter is missing, out of range, or belongs to another kind; names it.
    """
    try:
        values = parse_all(CONTACT_PARAMETERS, parameters, f"contacts.{name}.")
    except InputError as error:
        raise ContactError(f"contact {name!r}: {error}") from error
    kind = values["kind"]
    taken = _PARAMETERS_OF.get(kind, _OF_ONE_FRAME)
    for key, setting in CONTACT_PARAMETERS.items():
        if values[key] != setting.default and key not in ("kind", *taken):
            have = ", ".join(taken) or "none, as it is of the whole robot"
            raise ContactError(
                f"contact {name!r}: parameter 'contacts.{name}.{key}' is given, but its kind is "
                f"{kind!r}; parameters of this kind: {have}"
            )
    if kind in _OF_THE_ROBOT:
        return _OF_THE_ROBOT[kind](name)
    first = taken[0]
    if not values[first]:
        raise ContactError(
            f"contact {name!r}: parameter 'contacts.{name}.{first}' is not set; it names the "
            + ("link that the contact is fixed to" if first == "frame" else "links of the sum")
        )
    rows: Any = {"relative": "surface", "weighted_sum": "point"}.get(kind, kind)
    selection = values["selection"]
    if selection or kind == "selection":
        if not selection or len(selection) % 6:
            raise ContactError(
                f"contact {name!r}: parameter 'contacts.{name}.selection' has {len(selection)} "
                "values; expected the rows of a (k, 6) matrix, one after the other"
            )
        rows = np.reshape(np.array(selection, dtype=np.float64), (-1, 6))
    if kind == "weighted_sum":
        return WeightedSum(name, _weights(name, values), rows)
    placement = Transform.from_xyz_rpy(_triple(name, "xyz", values), _triple(name, "rpy", values))
    if kind == "relative":
        return RelativeContact(name, values["frame"], values["second_frame"], rows, placement)
    friction, dimensions = values["friction"], values["dimensions"]
    return Contact(
        name, values["frame"], rows, placement, values["moving"],
        friction=None if friction == _OF_NODE else friction,
        normal=_normal(values["normal"]),
        dimensions=dimensions or None,
    )  # fmt: skip


def _weights(name: str, values: Mapping[str, Any]) -> dict[str, float]:
    """Return the weights of the frames of a sum, by frame."""
    frames, weights = values["frames"], values["weights"]
    if len(frames) != len(weights) or len(set(frames)) < len(frames):
        raise ContactError(
            f"contact {name!r}: parameter 'contacts.{name}.frames' is {list(frames)} and "
            f"'contacts.{name}.weights' is {list(weights)}; expected one weight for each of "
            "several different frames"
        )
    return dict(zip(frames, weights, strict=True))


_OF_ONE_FRAME = (
    "frame", "xyz", "rpy", "moving", "friction", "normal", "dimensions"
)  # fmt: skip
_PARAMETERS_OF: Mapping[str, tuple[str, ...]] = {
    "selection": (*_OF_ONE_FRAME, "selection"),
    "relative": ("frame", "second_frame", "selection", "xyz", "rpy"),
    "weighted_sum": ("frames", "weights", "selection"),
    "center_of_mass": (),
    "centroidal_momentum": (),
}
"""Parameters of a contact by kind, besides the kind; points and surfaces have the former ones."""
_OF_THE_ROBOT = {kind.label: kind for kind in (CenterOfMass, CentroidalMomentum)}
"""Kinds of rows of the whole robot."""
_OF_NODE = -1.0
"""Value of ``contacts.<name>.friction`` that stands for the parameter ``friction``."""


def _normal(text: str) -> str | list[float]:
    """Return the normal of a text: the name of an axis, or three numbers."""
    try:
        return numbers_in(text)
    except ValueError:
        return text


def _triple(contact: str, key: str, values: Mapping[str, Any]) -> tuple[float, ...]:
    try:
        return finite_triple(f"contacts.{contact}.{key}", values[key])
    except InputError as error:
        raise ContactError(f"contact {contact!r}: {error}") from error


def finite_triple(name: str, values: tuple[float, ...]) -> tuple[float, ...]:
    """Return three finite numbers; InputError names the parameter of other values."""
    if len(values) != 3 or not np.isfinite(values).all():
        raise InputError(f"parameter {name!r} is {list(values)}; expected 3 finite numbers")
    return values
