"""Compiled inverse, forward and hybrid dynamics of robots with gears and loops; loop rates."""

from delassus_ros.dynamics.dynamics import FUNCTIONS, GRAVITY, Dynamics
from delassus_ros.dynamics.identifiable import IdentifiableParameters
from delassus_ros.dynamics.loop_rates import LoopRates

__all__ = ["FUNCTIONS", "GRAVITY", "Dynamics", "IdentifiableParameters", "LoopRates"]
