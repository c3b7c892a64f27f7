"""The node's parameters by name, and which ones it does not have; knows no ROS."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from delassus_ros.conditioning import ConditionSettings, Damping
from delassus_ros.errors import InputError, unknown
from delassus_ros.node.records import Limits
from delassus_ros.node.settings import CONTACT_DEFAULTS, DEFAULTS

AUTOSTART = "autostart"
RCLPYS = ("qos_overrides.", "use_sim_time", "start_type_description_service")
"""Beginnings of parameters that are rclpy's."""


@dataclass(frozen=True)
class Setting:
    """One parameter.

    Attributes
    ----------
    default : its value if it is not given; of the parameter's type.
    description : what it does, in a sentence or two.
    low, high : the range of a number, both ends included; None for others.
    least : smallest number but 0, where 0 stands for none, and others can be too small to work.
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
    least: float = 0.0

    @property
    def range(self) -> str:
        """Return the range in words; empty if there is none."""
        if self.low is None or self.high is None:
            return ""
        none = "0, or " if self.least else ""
        return f"{none}{self.least or self.low:g} to {self.high:g}"

    def check(self, name: str, value: Any) -> None:
        """Refuse a number out of range.

        Raises
        ------
        InputError
            It is; names the parameter.
        """
        if self.low is None or self.high is None:
            return
        # Written so that NaN is refused.
        if not self.low <= value <= self.high or (self.least and 0 != value < self.least):
            raise InputError(f"parameter {name!r} is {value}; expected {self.range}")


SETTINGS: Mapping[str, Setting] = {
    "max_skew": Setting(
        Limits.max_skew,
        "How far stamps of joint states that complete each other may be apart, and how far they "
        "may be ahead of the node's clock, with simulated time beyond a step of /clock [s].",
        0.0, 1.0,
    ),
    "input_timeout": Setting(
        Limits.input_timeout,
        "Age of the joint positions above which the answer is INVALID; INVALID or a matrix is "
        "said at least as often [s]. 0: never, unless joint states make no matrix for 1 s.",
        0.0, 60.0,
    ),
    "contacts_timeout": Setting(
        Limits.contacts_timeout,
        "Age of the set of active contacts above which the answer is INVALID, with all rows "
        "DEGRADED [s]; publishers repeat it at 10 Hz or more, with a new stamp. 0: never.",
        0.0, 60.0,
    ),
    "conditioning.characteristic_length": Setting(
        ConditionSettings.characteristic_length,
        "Weighs angular against linear rows where matrices are judged [m]: half a foot's "
        "length, say.",
        1e-4, 10.0,
    ),
    "conditioning.weak": Setting(
        ConditionSettings.weak, "Condition number at which a matrix becomes WEAK.", 1.0, 1e10
    ),
    "conditioning.singular": Setting(
        ConditionSettings.singular,
        "Condition number at which a matrix becomes SINGULAR; more than weak times hysteresis.",
        1.0, 1e10,
    ),
    "conditioning.hysteresis": Setting(
        ConditionSettings.hysteresis,
        "A matrix gets better again below a threshold divided by this.",
        1.0, 100.0,
    ),
    "damping.mode": Setting(
        ConditionSettings.damping.name.lower(),
        "What is added to the matrix: nothing, the same to the whole diagonal, or as much as "
        "weak directions need. It is always reported.",
        choices=tuple(mode.name.lower() for mode in Damping),
    ),
    "damping.ratio": Setting(
        ConditionSettings.damping_ratio,
        "Amount of uniform damping, and the smallest eigenvalue that selective damping leaves, "
        "both as a fraction of the largest eigenvalue.",
        1e-12, 0.5,
    ),
    "deadline": Setting(
        0.0,
        "Time since the node took a joint state up after which its matrix is an overrun, "
        "which is counted and reported [s]. 0: none.",
        0.0, 10.0,
    ),
    "diagnostics_period": Setting(
        1.0,
        "Time between two diagnostics [s]: 0.05 or more, or 0 for none.",
        0.0, 60.0, least=0.05,
    ),
    "rate": Setting(
        0.0,
        "Matrices per second, each of the newest joint state at that instant: 0.001 or more. 0: "
        "one for each joint state, as soon as it comes.",
        0.0, 10000.0, live=False, least=0.001,
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
    "realtime.wakeup_latency": Setting(
        -1,
        "Longest time that idle processors of the machine may take to wake up while the node is "
        "active [us]; 0 keeps them awake, which costs power; -1: as the system is set. Needs "
        "permission.",
        -1, 10000, live=False,
    ),
    "realtime.hold_garbage": Setting(
        True,
        "Collect Python's garbage only between joint states while the node is active.",
        live=False,
    ),
}  # fmt: skip
"""Parameters of how the node works, by name."""


def misspelt(given: Iterable[str], contacts: Iterable[str]) -> list[str]:
    """Return what to say of each name that is not a parameter of the node, sorted.

    Parameters
    ----------
    given : names of parameters.
    contacts : names of the contacts, which have parameters each.
    """
    of_contacts = [f"contacts.{name}.{key}" for name in contacts for key in CONTACT_DEFAULTS]
    known = dict.fromkeys((AUTOSTART, *DEFAULTS, *SETTINGS, *of_contacts))
    return [
        unknown("parameter", name, known)
        for name in sorted(given)
        if name not in known and not name.startswith(RCLPYS)
    ]
