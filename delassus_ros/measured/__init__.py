"""Dynamics from measured quantities: the quantities, their linear system, and its solution."""

from delassus_ros.measured.observability import UnobservableError
from delassus_ros.measured.quantities import (
    Accelerometer,
    ExternalWrench,
    ForceTorqueSensor,
    JointAcceleration,
    JointTorque,
    Measurement,
    Resting,
)
from delassus_ros.measured.sparse_dynamics import Estimate, SparseDynamics

__all__ = [
    "Accelerometer",
    "Estimate",
    "ExternalWrench",
    "ForceTorqueSensor",
    "JointAcceleration",
    "JointTorque",
    "Measurement",
    "Resting",
    "SparseDynamics",
    "UnobservableError",
]
