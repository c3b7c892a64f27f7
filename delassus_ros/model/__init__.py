"""The robot: a tree of joints and bodies with named frames."""

from delassus_ros.model.robot import WORLD, Body, Frame, Joint, JointKind, Robot
from delassus_ros.model.spatial import Inertia, Transform

__all__ = ["WORLD", "Body", "Frame", "Inertia", "Joint", "JointKind", "Robot", "Transform"]
