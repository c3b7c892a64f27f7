"""Serialized joint states: the short way gives what the long one does."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import small
from hypothesis import given, settings
from hypothesis import strategies as st
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState

from delassus_ros.inputs.joint_state_bytes import JointStateReader, ReceivedJoints
from delassus_ros.inputs.joints import JointGate
from delassus_ros.ros import messages
from delassus_ros.ros.messages import LARGEST, UnreadableError

TEXT = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=12)
NUMBERS = st.lists(st.floats(), max_size=9)


@st.composite
def joint_states(draw: st.DrawFn) -> JointState:
    state = JointState(
        name=draw(st.lists(TEXT, max_size=9)),
        position=draw(NUMBERS),
        velocity=draw(NUMBERS),
        effort=draw(NUMBERS),
    )
    state.header.frame_id = draw(TEXT)
    return stamped(state, draw)


def stamped(state: JointState, draw: st.DrawFn) -> JointState:
    state.header.stamp.sec = draw(st.integers(-(2**31), 2**31 - 1))
    state.header.stamp.nanosec = draw(st.integers(0, 2**32 - 1))
    return state


def read_parts(state: ReceivedJoints) -> tuple[object, ...]:
    numbers = (state.values, *state.motion)
    return state.sec, state.nanosec, state.names, [row.tobytes() for row in numbers]


def sent_parts(state: JointState) -> tuple[object, ...]:
    stamp = state.header.stamp
    # Bytes, as NaN is not equal to itself.
    numbers = (state.position, state.velocity, state.effort)
    return stamp.sec, stamp.nanosec, list(state.name), [row.tobytes() for row in numbers]


@settings(max_examples=300)
@given(st.data())
def test_what_is_read_is_what_was_sent(data: st.DataObject) -> None:
    reader = JointStateReader()
    for _ in range(3):
        state = data.draw(joint_states())
        for _ in range(3):
            sent = serialize_message(stamped(state, data.draw))
            expected = sent_parts(deserialize_message(sent, JointState))
            assert read_parts(reader.read(sent)) == expected
            count = len(state.position)
            state.position = data.draw(st.lists(st.floats(), min_size=count, max_size=count))


def test_only_what_changed_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = JointStateReader()
    reader.read(serialize_message(JointState(name=["a", "b"], position=[1.0, 2.0])))
    monkeypatch.delattr(messages, "deserialize_message")
    read = reader.read(serialize_message(JointState(name=["a", "b"], position=[3.0, 4.0])))
    assert list(read.values) == [3.0, 4.0]
    with pytest.raises(NameError):
        reader.read(serialize_message(JointState(name=["b", "a"], position=[3.0, 4.0])))


def test_publishers_take_turns_without_being_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = JointStateReader()
    lists = [[f"{name}{k}" for name in "abc"[: k % 3 + 1]] for k in range(8)]
    sent = [JointState(name=names, position=[0.5] * len(names)) for names in lists]
    known = [reader.read(serialize_message(state)).names for state in sent]
    monkeypatch.delattr(messages, "deserialize_message")
    for number in range(3):
        for state, names in zip(sent, known, strict=True):
            state.position = [float(number)] * len(state.name)
            read = reader.read(serialize_message(state))
            assert read.names is names
            assert list(read.values) == list(state.position)


@pytest.mark.parametrize("big", [b"\x00\x00\x00\x00", b"\x00\x07\x00\x00"])
def test_another_encapsulation_goes_the_long_way(monkeypatch, big: bytes) -> None:
    sent = serialize_message(JointState(name=["a"], position=[1.0]))
    reader = JointStateReader()
    reader.read(sent)
    long_way: list[bytes] = []

    def deserialize(data: bytes, kind: type) -> JointState:
        long_way.append(data)
        return JointState()

    monkeypatch.setattr(messages, "deserialize_message", deserialize)
    reader.read(big + sent[4:])
    assert len(long_way) == 1


def test_truncated_bytes_are_refused_or_read_in_full() -> None:
    whole = serialize_message(JointState(name=["a", "bc"], position=[1.0, 2.0]))
    for length in range(len(whole)):
        reader = JointStateReader()
        reader.read(whole)
        try:
            state = reader.read(whole[:length])
        except UnreadableError:
            continue
        assert list(state.values) == [1.0, 2.0]


def padded(data: bytes) -> bytes:
    """Return a joint state whose first name is followed by zeros that its length counts."""
    place = data.index(b"\x03\0\0\0j0\0")
    return data[:place] + b"\x0b\0\0\0j0" + bytes(10) + data[place + 8 :]


DAMAGES = {
    "frame that is no UTF-8": lambda data: data.replace(b"frame", b"fr\xffme"),
    "name that is no UTF-8": lambda data: data.replace(b"stranger", b"st\xc3anger"),
    "name that ends early": lambda data: data.replace(b"stranger", b"st\0anger"),
    "name padded with zeros": padded,
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("first", [0.0, 1.0])
def test_strings_that_are_shorter_than_their_bytes_move_no_position(
    damage: str, first: float
) -> None:
    names = ["stranger", *(f"j{k}" for k in range(12))]
    state = JointState(name=names, position=[first] * 13, velocity=[0.0] * 13, effort=[0.0] * 13)
    state.header.frame_id = "frame"
    reader = JointStateReader()
    for scale in range(3):
        state.position = [first * (scale == 0) + scale * k for k in range(13)]
        data = DAMAGES[damage](serialize_message(state))
        expected = sent_parts(deserialize_message(data, JointState))
        assert read_parts(reader.read(data)) == expected


def test_a_large_one_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    count = LARGEST // 8
    large = serialize_message(JointState(name=["a"], position=[0.0] * count))
    small = serialize_message(JointState(name=["a"], position=[0.0] * (count - 10)))
    reader = JointStateReader()
    assert reader.read(small).values.size == count - 10
    monkeypatch.delattr(messages, "deserialize_message")
    with pytest.raises(UnreadableError, match=f"{len(large)} bytes is not read; at most 131072"):
        reader.read(large)


def test_what_is_remembered_is_bounded() -> None:
    """Publishers may send other names each time, of any length."""
    robot = small.walker()
    reader, gate, q = JointStateReader(), JointGate(robot), np.empty(robot.nq)
    tracemalloc.start()
    try:
        for k in range(70):
            names = [f"{k}{'x' * 999}{n}" for n in range(120)]
            state = JointState(name=names, position=[0.0] * 120)
            read = reader.read(serialize_message(state))
            gate.read(read.names, 0, read.values, 0, q)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 16_000_000
