"""Dynamics from whatever is measured: quantities, the system that ties them, and its solution."""

from delassus_ros.measured.quantities import (
    Accelerometer,
    ExternalWrench,
    JointAcceleration,
    JointTorque,
    Measurement,
    Resting,
)
from delassus_ros.measured.sparse_dynamics import Estimate, SparseDynamics, UnobservableError

__all__ = [
    "Accelerometer",
    "Estimate",
    "ExternalWrench",
    "JointAcceleration",
    "JointTorque",
    "Measurement",
    "Resting",
    "SparseDynamics",
    "UnobservableError",
]
