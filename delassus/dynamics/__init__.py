"""Compiled inverse, forward and hybrid dynamics of robots with gears and loops; loop rates."""

from delassus.dynamics.dynamics import FUNCTIONS, GRAVITY, Dynamics
from delassus.dynamics.identifiable import IdentifiableParameters
from delassus.dynamics.loop_rates import LoopRates

__all__ = ["FUNCTIONS", "GRAVITY", "Dynamics", "IdentifiableParameters", "LoopRates"]
