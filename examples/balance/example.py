"""The balancing humanoid: its contacts, its controller and its limits."""

from __future__ import annotations

from control.standing import StandingExample

from delassus import Contact
from delassus.robots.built_in.humanoid import FEET

from .controller import Controller, predicted_wrenches
from .poses import TIMETABLE
from .qp import Matrices

_JOINTS = ("hip_yaw", "hip_roll", "thigh", "shank", "ankle", "foot")

EXAMPLE = StandingExample(
    name="balance_controller",
    robot="humanoid",
    contacts=tuple(
        Contact(name, frame, "surface") for name, frame in {"pelvis": "pelvis", **FEET}.items()
    ),
    outputs=("M", "h", "J", "JdotV"),
    matrices=Matrices,
    controller=Controller,
    timetable=TIMETABLE,
    predict=predicted_wrenches,
    torque_limit=200.0,
    tracked="centre of mass",
    largest_error=0.02,  # pushes make some 3 mm
    lowest=0.6,
    upright=0.8,
    shown_feet=tuple(FEET),
    shown_joints=tuple(f"left_{joint}_joint" for joint in _JOINTS),
)
