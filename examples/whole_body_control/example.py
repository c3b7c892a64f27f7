"""The walking quadruped: its contacts, its controller and its limits."""

from __future__ import annotations

from control.standing import StandingExample

from delassus import Contact

from .controller import Controller, Rows, predicted_forces
from .gait import LEGS, TIMETABLE

EXAMPLE = StandingExample(
    name="whole_body_controller",
    robot="quadruped",
    contacts=(
        Contact("trunk", "base", "surface"),
        *(Contact(leg, f"{leg}_FOOT") for leg in LEGS),
    ),
    outputs=("a0", "MinvJT"),
    matrices=Rows,
    controller=Controller,
    timetable=TIMETABLE,
    predict=predicted_forces,
    torque_limit=35.0,
    tracked="trunk",
    largest_error=0.04,  # pushes make some 9 mm
    lowest=0.15,
    upright=0.7,
    shown_feet=("LF",),
    shown_joints=tuple(f"LF_{joint}" for joint in ("HAA", "HFE", "KFE")),
)
