"""A reader of bytes says what the message says, whatever came before."""

from __future__ import annotations

import array
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from delassus_msgs.msg import DelassusMatrix
from delassus_msgs_py import MatrixReader, MessageError, ReceivedMatrix, SerializedMessage, memory
from delassus_msgs_py import matrix_reader as module
from rclpy.serialization import deserialize_message, serialize_message


def make_message(contacts: tuple[str, ...] = ("LF", "hand"), seed: int = 1) -> DelassusMatrix:
    """Return a message whose every number depends on the seed."""
    random = np.random.default_rng(seed)
    m = 3 * len(contacts)
    msg = DelassusMatrix(
        layout_id="abc", sequence=2**40 + seed, contacts=contacts, kinds=["point"] * len(contacts),
        status=[seed % 4] * len(contacts), row_offsets=range(0, m + 1, 3), axes=seed % 2,
        validity=DelassusMatrix.VALIDITY_OK, reasons=seed << 33, conditioning=seed % 4, rank=seed,
        structural_rank=m, condition=random.random(), damping_mode=seed % 3,
        damping=random.random(), algorithm="pv_osimr", compute_time=random.random(),
        input_age=-random.random(),
    )  # fmt: skip
    msg.matrix = array.array("d", random.random(m * m))
    msg.header.stamp.sec, msg.header.stamp.nanosec = -seed, 999_999_999 - seed
    msg.contacts_stamp.sec, msg.contacts_stamp.nanosec = seed, 7 * seed
    return msg


def check(received: ReceivedMatrix, msg: DelassusMatrix) -> None:
    expected = ReceivedMatrix.of(msg)
    for name in ReceivedMatrix.__slots__:
        np.testing.assert_array_equal(getattr(received, name), getattr(expected, name), name)
    assert received.matrix.shape == expected.matrix.shape


@pytest.mark.parametrize("frame", ["", "a", "ab", "abc", "base_link", "überall"])
@pytest.mark.parametrize("contacts", [("LF",), ("LF", "right hand", "x"), ()])
def test_what_is_read_is_what_the_message_says(frame: str, contacts: tuple[str, ...]) -> None:
    reader = MatrixReader()
    for seed in range(1, 5):
        msg = make_message(contacts, seed)
        msg.header.frame_id = frame
        check(reader.read(serialize_message(msg)), msg)


CHANGES: dict[str, Callable[[DelassusMatrix], Any]] = {
    "frame": lambda msg: setattr(msg.header, "frame_id", "odom"),
    "layout": lambda msg: setattr(msg, "layout_id", "abd"),
    "name": lambda msg: setattr(msg, "contacts", ["LF", "hane"]),
    "kind": lambda msg: setattr(msg, "kinds", ["point", "other"]),
    "status": lambda msg: setattr(msg, "status", [1, 0]),
    "rows": lambda msg: setattr(msg, "row_offsets", [0, 2, 6]),
    "axes": lambda msg: setattr(msg, "axes", 0),
    "algorithm": lambda msg: setattr(msg, "algorithm", "efpa"),
    "a longer algorithm": lambda msg: setattr(msg, "algorithm", "an algorithm of somebody else"),
    "validity": lambda msg: setattr(msg, "validity", DelassusMatrix.VALIDITY_DEGRADED),
    "NaN": lambda msg: setattr(msg, "condition", float("nan")),
    "NaN in the matrix": lambda msg: msg.matrix.__setitem__(0, float("nan")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_any_change_is_seen(change: str) -> None:
    reader = MatrixReader()
    msg = make_message()
    check(reader.read(serialize_message(msg)), msg)
    CHANGES[change](msg)
    msg.sequence += 1
    for _ in range(2):
        check(reader.read(serialize_message(msg)), msg)
    again = make_message()
    again.sequence += 2
    check(reader.read(serialize_message(again)), again)


def test_a_message_is_converted_once_for_each_set_of_contacts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    converted = []

    def count(data: bytes, kind: type) -> Any:
        converted.append(kind)
        return deserialize_message(data, kind)

    monkeypatch.setattr(memory, "deserialize_message", count)
    reader = MatrixReader()
    wires = []
    for contacts in (("LF",), ("LF", "RF"), ("RF",)):
        msg = make_message(contacts)
        wires.append(SerializedMessage(msg, {"number": ["sequence"]}, ("matrix",)))
    for sequence in range(9):
        wire = wires[sequence % 3]
        wire.set("number", sequence)
        wire.arrays["matrix"][...] = sequence
        received = reader.read(wire.to_bytes())
        assert received.sequence == sequence
        assert (received.matrix == sequence).all()
    assert len(converted) == 3


def test_bytes_between_the_fields_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """A middleware may leave in them what was there before."""
    msg = make_message()
    msg.header.frame_id = "ab"
    data = serialize_message(msg)
    # Encapsulation (4), stamp (8), length of the frame (4), its 3 bytes, and one in between.
    assert data[16:19] == b"ab\0"
    reader = MatrixReader()
    reader.read(data)
    monkeypatch.setattr(memory, "deserialize_message", None)
    check(reader.read(data[:19] + bytes([data[19] ^ 255]) + data[20:]), msg)


def test_a_matrix_outlives_the_next_message() -> None:
    reader = MatrixReader()
    first = reader.read(serialize_message(make_message(seed=1))).matrix
    reader.read(serialize_message(make_message(seed=2)))
    np.testing.assert_array_equal(first, ReceivedMatrix.of(make_message(seed=1)).matrix)
    with pytest.raises(ValueError, match="read-only"):
        first[0, 0] = 1.0


def test_an_invalid_message_has_no_matrix() -> None:
    msg = make_message(())
    msg.validity = DelassusMatrix.VALIDITY_INVALID
    assert MatrixReader().read(serialize_message(msg)).matrix.shape == (0, 0)


def test_a_message_that_contradicts_itself_is_refused_whatever_came_before() -> None:
    reader = MatrixReader()
    msg = make_message()
    for _ in range(2):
        check(reader.read(serialize_message(msg)), msg)
        wrong = make_message()
        wrong.validity = DelassusMatrix.VALIDITY_INVALID
        with pytest.raises(MessageError, match="is INVALID"):
            reader.read(serialize_message(wrong))
        wrong.validity = 77
        with pytest.raises(MessageError, match="has the validity 77; expected INVALID=0, DEGR"):
            reader.read(serialize_message(wrong))
        assert not reader.fresh(0.0)
        wrong = make_message()
        wrong.row_offsets = [0, 3, 7]
        with pytest.raises(MessageError, match="expected 49"):
            reader.read(serialize_message(wrong))


@pytest.mark.parametrize("size", [0, 3, 40, -30, -8])
def test_bytes_that_were_cut_off_are_refused(size: int) -> None:
    reader = MatrixReader()
    data = serialize_message(make_message())
    reader.read(data)
    with pytest.raises(MessageError, match="bytes are no DelassusMatrix"):
        reader.read(data[:size])


def big_endian(msg: DelassusMatrix) -> bytes:
    """Return the serialized message as a machine of the other byte order writes it."""
    out = bytearray()

    def put(code: str, *values: float) -> None:
        for value in values:
            out.extend(bytes(-len(out) % struct.calcsize(code)))
            out.extend(struct.pack(">" + code, value))

    def text(value: str) -> None:
        put("I", len(value.encode()) + 1)
        out.extend(value.encode() + b"\0")

    put("i", msg.header.stamp.sec)
    put("I", msg.header.stamp.nanosec)
    text(msg.header.frame_id)
    text(msg.layout_id)
    put("Q", msg.sequence)
    put("i", msg.contacts_stamp.sec)
    put("I", msg.contacts_stamp.nanosec)
    for names in (msg.contacts, msg.kinds):
        put("I", len(names))
        for name in names:
            text(name)
    for code, values in (("B", msg.status), ("I", msg.row_offsets)):
        put("I", len(values))
        put(code, *values)
    put("B", msg.axes)
    put("I", len(msg.matrix))
    put("d", *msg.matrix)
    put("B", msg.validity)
    put("Q", msg.reasons)
    put("B", msg.conditioning)
    put("i", msg.rank, msg.structural_rank)
    put("d", msg.condition)
    put("B", msg.damping_mode)
    put("d", msg.damping)
    text(msg.algorithm)
    put("d", msg.compute_time, msg.input_age)
    return b"\0\0\0\0" + bytes(out)


def test_big_endian_messages_are_read_the_long_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine's middleware writes little-endian ones; the first bytes tell."""
    reader = MatrixReader()
    msg = make_message()
    reader.read(serialize_message(msg))
    data = big_endian(msg)
    for _ in range(2):
        check(reader.read(data), msg)
    monkeypatch.setattr(memory, "deserialize_message", None)
    check(reader.read(serialize_message(msg)), msg)
    with pytest.raises(TypeError):
        reader.read(data)


@pytest.mark.parametrize("name", [b"\xffv_osimr", b"pv\0osimr", b"pv_osim\0"])
def test_a_damaged_name_is_read_as_ever(name: bytes) -> None:
    reader = MatrixReader()
    data = serialize_message(make_message())
    reader.read(data)
    damaged = data.replace(b"pv_osimr", name)
    expected = deserialize_message(damaged, DelassusMatrix)
    for _ in range(3):
        check(reader.read(damaged), expected)
        check(reader.read(data), make_message())


def test_a_refused_message_leaves_what_was_read() -> None:
    reader = MatrixReader()
    reader.read(serialize_message(make_message(seed=1)))
    before = reader.read(serialize_message(make_message(seed=1)))
    with pytest.raises(MessageError):
        reader.read(serialize_message(make_message(seed=2))[:-8])
    check(before, make_message(seed=1))


def test_status_and_order_cost_no_conversion(monkeypatch: pytest.MonkeyPatch) -> None:
    """Feet slip and stick all the time; the sets of contacts that come often stay in front."""
    reader = MatrixReader()
    messages = [make_message(names) for names in (("LF",), ("LF", "RF"), ("RF", "LF"))]
    for msg in messages:
        reader.read(serialize_message(msg))
    monkeypatch.setattr(memory, "deserialize_message", None)
    for k in range(12):
        msg = messages[k % 3]
        msg.status = [k % 4] * len(msg.contacts)
        check(reader.read(serialize_message(msg)), msg)


def test_the_sets_that_come_often_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = MatrixReader()
    often = make_message(("often",))
    for k in range(200):
        reader.read(serialize_message(make_message((f"contact{k}",))))
        check(reader.read(serialize_message(often)), often)
    monkeypatch.setattr(memory, "deserialize_message", None)
    check(reader.read(serialize_message(often)), often)


def of_layout(layout: str, sequence: int) -> bytes:
    msg = make_message()
    msg.layout_id, msg.sequence = layout, sequence
    return serialize_message(msg)


def test_two_robots_on_a_topic_are_not_mixed_up() -> None:
    """One of them is followed, and the other one refused, whoever speaks how often."""
    reader = MatrixReader()
    followed, refused = set(), 0
    for k in range(100):
        for layout, sequence in (("one", 1000 + k), ("other", 50 + 2 * k)):
            try:
                followed.add(reader.read(of_layout(layout, sequence)).layout_id)
            except MessageError as error:
                refused += 1
                assert "layout 'other'" in str(error) and "'one' is followed" in str(error)
    assert (followed, refused) == ({"one"}, 100)
    # Whoever has read the layout of the other one may follow that.
    reader.layout_id = "other"
    assert reader.read(of_layout("other", 300)).layout_id == "other"
    with pytest.raises(MessageError, match="'one'"):
        reader.read(of_layout("one", 299))


def test_a_node_that_changes_its_robot_is_followed() -> None:
    reader = MatrixReader()
    for sequence, layout in enumerate(["one", "one", "other", "other", "one"], 7):
        assert reader.read(of_layout(layout, sequence)).layout_id == layout
    # Started anew with the same robot, it counts from 1.
    assert reader.read(of_layout("one", 1)).sequence == 1


def test_what_is_of_the_present_is_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = {"monotonic_ns": 10**15, "time_ns": 10**18}
    for name in clock:
        monkeypatch.setattr(module.time, name, lambda name=name: clock[name])
    reader = MatrixReader()
    assert not reader.fresh(1e9)
    msg = make_message()

    def read(age: float = 0.0, validity: int = DelassusMatrix.VALIDITY_OK) -> None:
        stamp = clock["time_ns"] - round(1e9 * age)
        msg.header.stamp.sec, msg.header.stamp.nanosec = divmod(stamp, 10**9)
        msg.validity = validity
        msg.matrix = array.array("d", bytes(8 * 36 * (validity != 0)))
        reader.read(serialize_message(msg))

    read(age=0.04)
    assert reader.fresh(0.05) and not reader.fresh(0.03)
    # Silence.
    for name in clock:
        clock[name] += 20_000_000
    assert reader.fresh(0.07) and not reader.fresh(0.05)
    # A matrix that was on its way for long, and one that comes after a pause of this process.
    read(age=0.2)
    assert not reader.fresh(0.1)
    # A clock of another kind: simulated time.
    assert reader.fresh(0.1, now=clock["time_ns"] - 150_000_000)
    clock["monotonic_ns"] += 200_000_000
    assert not reader.fresh(0.1, now=clock["time_ns"] - 150_000_000)
    read(validity=DelassusMatrix.VALIDITY_DEGRADED)
    assert reader.fresh(0.1)
    read(validity=DelassusMatrix.VALIDITY_INVALID)
    assert not reader.fresh(0.1)
    msg.header.stamp.sec = msg.header.stamp.nanosec = 0
    msg.validity, msg.matrix = DelassusMatrix.VALIDITY_OK, array.array("d", bytes(8 * 36))
    reader.read(serialize_message(msg))
    assert reader.fresh(0.1)


def test_a_large_message_is_refused_in_words() -> None:
    with pytest.raises(MessageError, match="16777217 bytes is not read; at most 16777216"):
        MatrixReader().read(bytes(memory.LARGEST + 1))


def test_what_is_remembered_is_bounded() -> None:
    reader = MatrixReader()
    for k in range(20):
        contacts = tuple(f"{k} {n}" for n in range(150))
        reader.read(serialize_message(make_message(contacts)))
    kept = reader._memory
    assert 1 < len(kept._known) < 20
    assert kept._kept == sum(size for _, size in kept._known) <= 1 << 24
