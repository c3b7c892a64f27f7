"""The robot: a tree of joints and bodies with named frames, and what closes it."""

from delassus_ros.model.constraints import Coupling, Loop, LoopKind
from delassus_ros.model.robot import WORLD, Body, Frame, Joint, JointKind, Robot
from delassus_ros.model.spatial import Inertia, Transform

__all__ = [
    "WORLD",
    "Body",
    "Coupling",
    "Frame",
    "Inertia",
    "Joint",
    "JointKind",
    "Loop",
    "LoopKind",
    "Robot",
    "Transform",
]
