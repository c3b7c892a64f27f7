"""Dynamics from measured quantities: the quantities, their linear system, and its solution."""

from delassus.measured.observability import UnobservableError
from delassus.measured.quantities import (
    Accelerometer,
    ExternalWrench,
    ForceTorqueSensor,
    JointAcceleration,
    JointTorque,
    Measurement,
    Resting,
)
from delassus.measured.sparse_dynamics import Estimate, SparseDynamics

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
