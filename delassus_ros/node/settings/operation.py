"""Settings of the operation, read from plain parameter values: limits, rate, real-time use.

Knows no ROS.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from delassus_ros.conditioning.monitor import ConditionSettings, Damping
from delassus_ros.errors import InputError
from delassus_ros.inputs.limits import Limits
from delassus_ros.node.settings.table import OPERATION_PARAMETERS
from delassus_ros.ros.realtime import RealtimeSettings
from delassus_ros.ros.setting import parse_all
from delassus_ros.solver.friction import ForceSettings


@dataclass(frozen=True)
class Operation:
    """Settings of the operation.

    Attributes
    ----------
    deadline : longest time from a joint state to its matrix [s]; infinite for none.
    rate : matrices per second [1/s]; 0 for a matrix at every joint state.
    diagnostics_period : time between two diagnostics [s]; 0 for no diagnostics.
    """

    limits: Limits
    deadline: float
    rate: float
    realtime: RealtimeSettings
    diagnostics_period: float

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Operation:
        """Read parameter values by full name; absent ones have their defaults.

        Raises
        ------
        InputError
            For a value out of range, an unknown choice, or inconsistent values;
            names the parameter.
        """
        values = parse_all(OPERATION_PARAMETERS, parameters)
        return cls(
            limits=Limits(
                max_skew=values["max_skew"],
                input_timeout=values["input_timeout"] or math.inf,
                contacts_timeout=values["contacts_timeout"] or math.inf,
                condition=_condition(values),
                forces=ForceSettings(
                    values["friction"], values["law"], values["slip_speed"],
                    values["leave_speed"], values["strike_speed"],
                ),
            ),
            deadline=values["deadline"] or math.inf,
            rate=values["rate"],
            realtime=RealtimeSettings(
                priority=values["realtime.priority"],
                processors=values["realtime.cpus"],
                lock_memory=values["realtime.lock_memory"],
                hold_garbage=values["realtime.hold_garbage"],
                wakeup_latency=values["realtime.wakeup_latency"],
            ),
            diagnostics_period=values["diagnostics_period"],
        )


def _condition(values: Mapping[str, Any]) -> ConditionSettings:
    try:
        return ConditionSettings(
            characteristic_length=values["conditioning.characteristic_length"],
            weak=values["conditioning.weak"],
            singular=values["conditioning.singular"],
            hysteresis=values["conditioning.hysteresis"],
            damping=Damping[values["damping.mode"].upper()],
            damping_ratio=values["damping.ratio"],
        )
    except InputError as error:
        raise InputError(f"parameters 'conditioning.*' and 'damping.*': {error}") from error
