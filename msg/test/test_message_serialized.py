"""Numbers changed in the bytes of a message are those that a reader finds."""

from __future__ import annotations

import array

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy)")
pytest.importorskip("delassus_msgs", reason="needs the built package delassus_msgs")

from delassus_msgs.msg import DelassusMatrix
from delassus_msgs_py import MessageError, SerializedMessage
from rclpy.serialization import deserialize_message, serialize_message

FIELDS = {
    "stamp": {"header.stamp.sec": "i", "header.stamp.nanosec": "I"},
    "number": {"sequence": "Q", "contacts_stamp.sec": "i"},
    "times": {"compute_time": "d", "input_age": "d"},
}


@pytest.mark.parametrize("frame", ["", "a", "ab", "abc", "a longer name"])
@pytest.mark.parametrize("m", [1, 3, 12])
def test_changed_numbers_are_read_and_all_else_is_kept(frame: str, m: int) -> None:
    msg = DelassusMatrix(
        contacts=["LF"], kinds=["point"], status=[2], row_offsets=[0, m], algorithm="pv_osimr"
    )
    msg.header.frame_id = frame
    msg.matrix = array.array("d", range(m * m))
    before = serialize_message(msg)
    wire = SerializedMessage(msg, FIELDS, ("matrix",))
    unchanged = deserialize_message(before, DelassusMatrix)
    assert msg == unchanged == deserialize_message(wire.to_bytes(), DelassusMatrix)
    wire.set("stamp", -5, 999_999_999)
    wire.set("number", 2**63, 7)
    wire.set("times", 1e-6, -0.25)
    wire.arrays["matrix"][...] = np.arange(m * m) + 0.5
    expected = deserialize_message(before, DelassusMatrix)
    expected.header.stamp.sec, expected.header.stamp.nanosec = -5, 999_999_999
    expected.contacts_stamp.sec, expected.sequence = 7, 2**63
    expected.compute_time, expected.input_age = 1e-6, -0.25
    expected.matrix = array.array("d", np.arange(m * m) + 0.5)
    assert deserialize_message(wire.to_bytes(), DelassusMatrix) == expected


def test_an_empty_array_stays_empty() -> None:
    wire = SerializedMessage(DelassusMatrix(), {"number": {"sequence": "Q"}}, ("matrix",))
    assert wire.arrays["matrix"].size == 0
    assert len(deserialize_message(wire.to_bytes(), DelassusMatrix).matrix) == 0


def test_a_field_that_is_not_one_number_of_its_own_is_refused() -> None:
    """Two bytes are written, of which the field has one."""
    with pytest.raises(MessageError, match="no place of axes in its bytes"):
        SerializedMessage(DelassusMatrix(), {"axes": {"axes": "H"}})


def test_numbers_that_are_no_neighbours_are_refused() -> None:
    apart = {"sequence": "Q", "compute_time": "d"}
    with pytest.raises(MessageError, match="compute_time does not follow the one before it"):
        SerializedMessage(DelassusMatrix(), {"apart": apart})


def test_gaps_that_alignment_asks_for_are_skipped() -> None:
    codes = {"validity": "B", "reasons": "Q", "conditioning": "B", "rank": "i", "condition": "d"}
    group = {**codes, "damping_mode": "B", "damping": "d"}
    del group["condition"]
    with pytest.raises(MessageError, match="damping_mode does not follow"):
        SerializedMessage(DelassusMatrix(), {"apart": group})
    group = {
        "validity": "B", "reasons": "Q", "conditioning": "B", "rank": "i", "structural_rank": "i",
        "condition": "d", "damping_mode": "B", "damping": "d",
    }  # fmt: skip
    values = (2, 2**40 + 5, 1, -3, 2**20, 1e4, 2, 0.25)
    for length in range(9):
        msg = DelassusMatrix(algorithm="a" * length, contacts=["c" * length], status=[2] * length)
        wire = SerializedMessage(msg, {"judgement": group})
        wire.set("judgement", *values)
        for name, value in zip(group, values, strict=True):
            setattr(msg, name, value)
        assert deserialize_message(wire.to_bytes(), DelassusMatrix) == msg


def test_what_older_messages_left_between_fields_is_no_place() -> None:
    """Memory is used again: bytes that belong to no field may be any that were a pattern."""
    names = {"one": "validity", "two": "conditioning", "three": "damping_mode"}
    fields = {group: {name: "B"} for group, name in names.items()}
    for length in range(300):
        msg = DelassusMatrix(algorithm="a" * (length % 9), contacts=["c" * (length % 7)])
        wire = SerializedMessage(msg, fields)
        for name, value in (("one", 1), ("two", 2), ("three", 1)):
            wire.set(name, value)
        read = deserialize_message(wire.to_bytes(), DelassusMatrix)
        assert (read.validity, read.conditioning, read.damping_mode) == (1, 2, 1)


def test_a_message_is_serialized_a_few_times_for_all_of_its_places(monkeypatch) -> None:
    """A matrix of other contacts is to be there within a tick."""
    calls = []

    def counted(message: object) -> bytes:
        calls.append(message)
        data: bytes = serialize_message(message)
        return data

    monkeypatch.setattr("delassus_msgs_py.serialized.serialize_message", counted)
    fields = {**FIELDS, "state": {"validity": "B", "reasons": "Q"}}
    SerializedMessage(DelassusMatrix(), fields)
    assert len(calls) <= 4
