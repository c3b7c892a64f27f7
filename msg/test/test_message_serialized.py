"""Numbers changed in the bytes of a message are those that a reader finds."""

from __future__ import annotations

import array

import numpy as np
import pytest
from delassus_msgs.msg import DelassusMatrix
from delassus_msgs_py import MessageError, SerializedMessage
from delassus_msgs_py.cdr import fields_of
from delassus_msgs_py.serialized import check_layout
from rclpy.serialization import deserialize_message, serialize_message

FIELDS = {
    "stamp": ("header.stamp.sec", "header.stamp.nanosec"),
    "number": ("sequence", "contacts_stamp.sec"),
    "times": ("compute_time", "input_age"),
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
    wire = SerializedMessage(DelassusMatrix(), {"number": ["sequence"]}, ("matrix",))
    assert wire.arrays["matrix"].size == 0
    assert len(deserialize_message(wire.to_bytes(), DelassusMatrix).matrix) == 0


@pytest.mark.parametrize("name", ["axis", "algorithm", "header.stamp"])
def test_a_field_that_is_no_number_is_refused(name: str) -> None:
    with pytest.raises(MessageError, match=f"no place of {name} in its bytes; numbers: header.st"):
        SerializedMessage(DelassusMatrix(), {"group": [name]})
    with pytest.raises(MessageError, match=f"{name} is no array of float64 in its bytes"):
        SerializedMessage(DelassusMatrix(), {}, (name,))


def test_another_layout_of_the_middleware_is_noticed(monkeypatch) -> None:
    fields = list(fields_of(DelassusMatrix))
    names = [field.path for field in fields]
    rank, structural = names.index("rank"), names.index("structural_rank")
    fields[rank], fields[structural] = fields[structural], fields[rank]
    for name in ("cdr", "serialized"):
        monkeypatch.setattr(f"delassus_msgs_py.{name}.fields_of", lambda kind: fields)
    check_layout.cache_clear()
    try:
        with pytest.raises(MessageError, match="laid out in another way: .*rank is not"):
            SerializedMessage(DelassusMatrix(), FIELDS)
    finally:
        check_layout.cache_clear()


def test_bytes_of_another_encoding_are_refused(monkeypatch) -> None:
    check_layout(DelassusMatrix)
    monkeypatch.setattr(
        "delassus_msgs_py.serialized.serialize_message",
        lambda message: b"\0\7" + serialize_message(message)[2:],
    )
    with pytest.raises(MessageError, match="laid out in another way: not plain little-endian CDR"):
        SerializedMessage(DelassusMatrix(), FIELDS)


def test_numbers_that_are_no_neighbours_are_refused() -> None:
    apart = ["sequence", "compute_time"]
    with pytest.raises(MessageError, match="compute_time does not follow the one before it"):
        SerializedMessage(DelassusMatrix(), {"apart": apart})


def test_gaps_that_alignment_asks_for_are_skipped() -> None:
    group = ["validity", "reasons", "conditioning", "rank", "damping_mode", "damping"]
    with pytest.raises(MessageError, match="damping_mode does not follow"):
        SerializedMessage(DelassusMatrix(), {"apart": group})
    group = [
        "validity", "reasons", "conditioning", "rank", "structural_rank", "condition",
        "damping_mode", "damping",
    ]  # fmt: skip
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
    fields = {group: [name] for group, name in names.items()}
    for length in range(300):
        msg = DelassusMatrix(algorithm="a" * (length % 9), contacts=["c" * (length % 7)])
        wire = SerializedMessage(msg, fields)
        for name, value in (("one", 1), ("two", 2), ("three", 1)):
            wire.set(name, value)
        read = deserialize_message(wire.to_bytes(), DelassusMatrix)
        assert (read.validity, read.conditioning, read.damping_mode) == (1, 2, 1)


def test_a_message_is_serialized_once_for_all_of_its_places(monkeypatch) -> None:
    """A matrix of other contacts is to be there within a tick."""
    check_layout(DelassusMatrix)
    calls = []

    def counted(message: object) -> bytes:
        calls.append(message)
        data: bytes = serialize_message(message)
        return data

    monkeypatch.setattr("delassus_msgs_py.serialized.serialize_message", counted)
    fields = {**FIELDS, "state": ("validity", "reasons")}
    SerializedMessage(DelassusMatrix(), fields)
    assert len(calls) == 1
