"""Summaries as plotters read them."""

from __future__ import annotations

import math

import delassus_msgs.msg as messages
import numpy as np
import pytest

from delassus.conditioning.monitor import Conditioning, Damping, Examination

if not hasattr(messages, "Summary"):
    pytest.skip(
        "the built package delassus_msgs is older than its source", allow_module_level=True
    )

from rclpy.serialization import deserialize_message

from delassus_ros.inputs.findings import Reason
from delassus_ros.node.matrix import SummaryOutput


def layout(frame: str = ""):
    message = messages.Layout()
    message.header.frame_id = frame
    return message


def seen(**changes) -> Examination:
    values = {
        "conditioning": Conditioning.WEAK, "rank": 9, "structural_rank": 10, "largest": 12.5,
        "smallest": 0.001, "condition": 12500.0, "matrix": np.eye(12),
        "damping_mode": Damping.SELECTIVE, "damping": 0.25,
    }  # fmt: skip
    return Examination(**{**values, **changes})


def read(data: bytes):
    return deserialize_message(data, messages.Summary)


@pytest.mark.parametrize("frame", ["", "a", "odom", "base_link", "x" * 37])
def test_every_field_arrives(frame) -> None:
    output = SummaryOutput(layout(frame), 0.1)
    reasons = Reason.DAMPED | Reason.ILL_CONDITIONED
    message = read(
        output.fill(
            (1700000000, 999_999_999), 2**40, 2, reasons, 12, seen(), (1e-5, -0.25, 3e-4),
            (2**35, 2, 3, 4),
        )
    )  # fmt: skip
    assert (message.header.frame_id, message.header.stamp.sec) == (frame, 1700000000)
    assert message.header.stamp.nanosec == 999_999_999
    assert (message.sequence, message.validity, message.reasons) == (2**40, 2, int(reasons))
    assert message.conditioning == messages.DelassusMatrix.CONDITIONING_WEAK
    assert (message.rows, message.rank, message.structural_rank) == (12, 9, 10)
    assert (message.largest_eigenvalue, message.smallest_eigenvalue) == (12.5, 0.001)
    assert (message.condition, message.characteristic_length) == (12500.0, 0.1)
    assert message.exact is True
    assert message.damping_mode == messages.DelassusMatrix.DAMPING_SELECTIVE
    assert (message.damping, message.compute_time) == (0.25, 1e-5)
    assert (message.input_age, message.latency) == (-0.25, 3e-4)
    counts = message.published, message.invalid, message.superseded, message.overruns
    assert counts == (2**35, 2, 3, 4)


def test_instant_without_a_matrix() -> None:
    output = SummaryOutput(layout(), 0.1)
    output.fill((1, 2), 1, 2, Reason.NONE, 12, seen(), (0.1, 0.2, 0.3), (1, 0, 0, 0))
    message = read(
        output.fill(
            (1, 2), 2, 0, Reason.JOINT_MISSING, 0, None, (0.0, math.nan, 0.1), (1, 1, 0, 0)
        )
    )
    assert (message.validity, message.reasons) == (0, 64)
    assert (message.rank, message.structural_rank, message.condition) == (-1, -1, -1.0)
    assert (message.largest_eigenvalue, message.smallest_eigenvalue) == (-1.0, -1.0)
    assert (message.conditioning, message.exact, message.damping) == (0, False, 0.0)
    assert math.isnan(message.input_age)


def test_unknown_condition_and_infinite_one() -> None:
    output = SummaryOutput(layout(), 0.1)
    rest = (0.0, 0.0, 0.0), (0, 0, 0, 0)
    unknown = seen(conditioning=Conditioning.UNKNOWN, condition=-1.0, largest=math.nan, rank=0)
    message = read(output.fill((0, 0), 1, 2, Reason.NONE, 0, unknown, *rest))
    assert (message.largest_eigenvalue, message.condition, message.rank) == (-1.0, -1.0, 0)
    message = read(output.fill((0, 0), 1, 2, Reason.NONE, 0, seen(condition=math.inf), *rest))
    assert message.condition == math.inf
