"""Parameters of how the node works: their ranges, what they are turned into, what contradicts."""

from __future__ import annotations

import math

import pytest

from delassus.conditioning.monitor import ConditionSettings, Damping
from delassus.errors import InputError
from delassus_ros.node.parameters import (
    OPERATION_PARAMETERS,
    Operation,
)
from delassus_ros.ros.realtime import RealtimeSettings

pytestmark = pytest.mark.needs("rclpy", "delassus_msgs")

RANGES = [(name, s) for name, s in OPERATION_PARAMETERS.items() if s.low is not None]


def test_defaults_are_those_of_what_they_are_turned_into() -> None:
    operation = Operation.from_parameters({})
    assert operation.limits.condition == ConditionSettings()
    assert operation.realtime == RealtimeSettings()
    assert (operation.deadline, operation.rate) == (math.inf, 0.0)


def test_zero_means_never() -> None:
    never = dict.fromkeys(("input_timeout", "contacts_timeout", "deadline"), 0.0)
    operation = Operation.from_parameters(never)
    limits = operation.limits
    assert limits.input_timeout == limits.contacts_timeout == operation.deadline == math.inf


def test_each_value_arrives() -> None:
    operation = Operation.from_parameters(
        {
            "max_skew": 0.1,
            "input_timeout": 0.2,
            "contacts_timeout": 0.3,
            "conditioning.characteristic_length": 0.4,
            "conditioning.weak": 50.0,
            "conditioning.singular": 6000.0,
            "conditioning.hysteresis": 7.0,
            "damping.mode": "selective",
            "damping.ratio": 0.08,
            "deadline": 0.9,
            "diagnostics_period": 10.0,
            "rate": 110.0,
            "realtime.priority": 12,
            "realtime.cpus": [0, 1],
            "realtime.lock_memory": True,
            "realtime.hold_garbage": False,
            "realtime.wakeup_latency": 3,
        }
    )
    limits, condition = operation.limits, operation.limits.condition
    assert (limits.max_skew, limits.input_timeout, limits.contacts_timeout) == (0.1, 0.2, 0.3)
    assert (condition.characteristic_length, condition.weak) == (0.4, 50.0)
    assert (condition.singular, condition.hysteresis) == (6000.0, 7.0)
    assert (condition.damping, condition.damping_ratio) == (Damping.SELECTIVE, 0.08)
    assert (operation.deadline, operation.diagnostics_period, operation.rate) == (0.9, 10.0, 110.0)
    assert operation.realtime == RealtimeSettings(12, (0, 1), True, False, 3)


@pytest.mark.parametrize(("name", "setting"), RANGES, ids=[name for name, _ in RANGES])
def test_ranges_are_kept_and_the_parameter_is_named(name, setting) -> None:
    Operation.from_parameters({name: setting.default})
    beyond = [setting.low - 1, setting.high + 1]
    if isinstance(setting.default, float):
        beyond += [math.nan, math.inf, -math.inf]
    for value in beyond:
        with pytest.raises(InputError, match=f"parameter '{name}' is .*; expected "):
            Operation.from_parameters({name: value})


@pytest.mark.parametrize(("name", "least"), [("diagnostics_period", 0.05), ("rate", 0.001)])
def test_what_is_too_small_to_work_is_refused_but_none_is_not(name, least) -> None:
    for value in (0.0, least):
        assert getattr(Operation.from_parameters({name: value}), name) == value
    high = OPERATION_PARAMETERS[name].high
    words = f"parameter '{name}' is .*; expected 0, or {least:g} to {high:g}"
    for value in (0.99 * least, 1e-12, 1e-300, 5e-324):
        with pytest.raises(InputError, match=words):
            Operation.from_parameters({name: value})


def test_what_contradicts_is_refused_with_both_values() -> None:
    with pytest.raises(InputError, match="thresholds out of order: weak is 1e\\+06, singular"):
        Operation.from_parameters({"conditioning.weak": 1e6})


def test_unknown_choices_and_processors_are_named() -> None:
    with pytest.raises(InputError, match="unknown damping.mode 'uniforn'; did you mean"):
        Operation.from_parameters({"damping.mode": "uniforn"})
    with pytest.raises(InputError, match="'realtime.cpus' is \\[-1\\]"):
        Operation.from_parameters({"realtime.cpus": [-1]})
