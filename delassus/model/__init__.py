"""The robot: a tree of joints and bodies with named frames, and what closes it."""

from delassus.model.clusters import Cluster, clusters_of
from delassus.model.constraints import Coupling, FunctionConstraint, Loop, LoopKind
from delassus.model.robot import WORLD, Body, Frame, Joint, JointKind, Robot
from delassus.model.spatial import Inertia, Transform

__all__ = [
    "WORLD",
    "Body",
    "Cluster",
    "Coupling",
    "Frame",
    "FunctionConstraint",
    "Inertia",
    "Joint",
    "JointKind",
    "Loop",
    "LoopKind",
    "Robot",
    "Transform",
    "clusters_of",
]
