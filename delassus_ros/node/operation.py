"""How the node works, beside what it computes: limits, timing, real-time use; knows no ROS."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from delassus_ros.conditioning import ConditionSettings, Damping
from delassus_ros.errors import InputError, unknown
from delassus_ros.node.pipeline import Limits
from delassus_ros.node.realtime import RealtimeSettings


@dataclass(frozen=True)
class Setting:
    """One parameter.

    Attributes
    ----------
    default : its value if it is not given; of the parameter's type.
    description : what it does, in a sentence or two.
    low, high : the range of a number, both ends included; None for others.
    choices : the values of a text.
    live : it may be set in any state of the node, and takes effect from the next instant on;
        others are read when the node is configured.
    """

    default: Any
    description: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    live: bool = True


SETTINGS: Mapping[str, Setting] = {
    "max_skew": Setting(
        0.005,
        "How far stamps of joint states that complete each other may be apart, and how far they "
        "may be ahead of the node's clock [s].",
        0.0, 1.0,
    ),
    "input_timeout": Setting(
        0.5,
        "Age of the joint positions from which on the answer is INVALID; after so long without "
        "any, INVALID is said once [s]. 0: never.",
        0.0, 60.0,
    ),
    "contacts_timeout": Setting(
        0.5,
        "Time without a set of active contacts from which on the answer is INVALID [s]; "
        "publishers repeat it at 10 Hz or more. 0: never.",
        0.0, 60.0,
    ),
    "conditioning.characteristic_length": Setting(
        0.1,
        "Weighs angular against linear rows where matrices are judged [m]: half a foot's "
        "length, say.",
        1e-4, 10.0,
    ),
    "conditioning.weak": Setting(
        1e4, "Condition number from which on a matrix is WEAK.", 1.0, 1e10
    ),
    "conditioning.singular": Setting(
        1e6,
        "Condition number from which on a matrix is SINGULAR; more than weak times hysteresis.",
        1.0, 1e10,
    ),
    "conditioning.hysteresis": Setting(
        2.0, "A matrix gets better again below a threshold divided by this.", 1.0, 100.0
    ),
    "damping.mode": Setting(
        "none",
        "What is added to the matrix: nothing, the same to the whole diagonal, or as much as "
        "weak directions need. It is always reported.",
        choices=tuple(mode.name.lower() for mode in Damping),
    ),
    "damping.ratio": Setting(
        1e-4,
        "Amount of uniform damping, and the smallest eigenvalue that selective damping leaves, "
        "both as a fraction of the largest eigenvalue.",
        1e-12, 0.5,
    ),
    "deadline": Setting(
        0.0,
        "Time from the arrival of a joint state from which on its matrix is an overrun, which "
        "is counted and reported [s]. 0: none.",
        0.0, 10.0,
    ),
    "diagnostics_period": Setting(
        1.0, "Time between two diagnostics, on the node's clock [s]. 0: none.", 0.0, 60.0
    ),
    "rate": Setting(
        0.0,
        "Matrices per second, each of the newest joint state at that instant. 0: one for each "
        "joint state, as soon as it comes.",
        0.0, 10000.0, live=False,
    ),
    "realtime.priority": Setting(
        0,
        "SCHED_FIFO priority of all threads of the process while the node is active; 0: normal "
        "scheduling. Needs permission; without, the node says so and goes on.",
        0, 99, live=False,
    ),
    "realtime.cpus": Setting(
        (),
        "Numbers of the processors that the process is kept to while the node is active; all if "
        "empty.",
        live=False,
    ),
    "realtime.lock_memory": Setting(
        False,
        "Lock all memory of the process into RAM while the node is active. Needs permission.",
        live=False,
    ),
    "realtime.hold_garbage": Setting(
        True,
        "Collect Python's garbage only between joint states while the node is active.",
        live=False,
    ),
}  # fmt: skip
"""All of these parameters by name."""


@dataclass(frozen=True)
class Operation:
    """How the node works.

    Attributes
    ----------
    limits : of the inputs, and thresholds and damping.
    deadline : from the arrival of an input to its matrix [s]; infinite for none.
    rate : matrices per second; 0 for one at each joint state.
    realtime : what is asked of the operating system.
    diagnostics_period : [s]; 0 for no diagnostics.
    """

    limits: Limits
    deadline: float
    rate: float
    realtime: RealtimeSettings
    diagnostics_period: float

    @classmethod
    def from_parameters(cls, given: Mapping[str, Any]) -> Operation:
        """Read parameter values by full name; what is absent has its default.

        Raises
        ------
        InputError
            For a value out of range, an unknown choice, or values that contradict each other;
            names the parameter.
        """
        values = {name: given.get(name, each.default) for name, each in SETTINGS.items()}
        for name, value in values.items():
            _check(name, value, SETTINGS[name])
        return cls(
            limits=Limits(
                max_skew=values["max_skew"],
                input_timeout=values["input_timeout"] or math.inf,
                contacts_timeout=values["contacts_timeout"] or math.inf,
                condition=_condition(values),
            ),
            deadline=values["deadline"] or math.inf,
            rate=values["rate"],
            realtime=RealtimeSettings(
                priority=values["realtime.priority"],
                processors=tuple(values["realtime.cpus"]),
                lock_memory=values["realtime.lock_memory"],
                hold_garbage=values["realtime.hold_garbage"],
            ),
            diagnostics_period=values["diagnostics_period"],
        )


def _check(name: str, value: Any, setting: Setting) -> None:
    if setting.choices and value not in setting.choices:
        raise InputError(f"parameter {name!r}: {unknown('choice', value, setting.choices)}")
    low, high = setting.low, setting.high
    # Written so that NaN is refused.
    if low is not None and high is not None and not low <= value <= high:
        raise InputError(f"parameter {name!r} is {value}; expected {low:g} to {high:g}")
    if name == "realtime.cpus" and any(cpu < 0 for cpu in value):
        raise InputError(f"parameter {name!r} is {list(value)}; expected numbers from 0 on")


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
