"""Every reader of bytes says what the middleware says of them, every writer what it is given."""

from __future__ import annotations

import array
import itertools
import math
import random
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from delassus_msgs.msg import DelassusMatrix, Layout, Summary
from delassus_msgs_py import (
    MatrixReader,
    MessageError,
    ReceivedMatrix,
    SerializedMessage,
)
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState

from delassus.conditioning.monitor import Conditioning, Damping, Examination
from delassus_ros.inputs.findings import Reason
from delassus_ros.inputs.joint_state_bytes import JointStateReader
from delassus_ros.node.matrix import (
    _CHANGING,
    SummaryOutput,
)
from delassus_ros.ros.messages import UnreadableError

CASES = [2_000, pytest.param(60_000, marks=pytest.mark.slow)]
SEEDS = itertools.count(1)
NAMES = ["LF", "RF_KFE", "hand", "a", "", "überall", "left_leg_joint_with_a_long_name"]
NUMBERS = [0.0, -0.0, 1.0, 0.5, math.pi, math.nan, math.inf, 1e-300, 3e8]


def payload(chance: random.Random, count: int) -> list[float]:
    """Return numbers as bytes are most easily mistaken: all zero, all equal, or any."""
    kind = chance.randrange(4)
    if kind == 0:
        return [0.0] * count
    if kind == 1:
        return [chance.choice(NUMBERS)] * count
    return [chance.choice(NUMBERS) if kind == 2 else chance.gauss(0, 1) for _ in range(count)]


def stamped(message: Any, chance: random.Random) -> Any:
    message.header.frame_id = chance.choice(NAMES)
    message.header.stamp.sec = chance.choice([0, 1, -1, chance.getrandbits(31)])
    message.header.stamp.nanosec = chance.getrandbits(32)
    return message


def joint_state(chance: random.Random) -> JointState:
    count = chance.randrange(5)
    state = JointState(name=[chance.choice(NAMES) for _ in range(count)])
    for field in ("position", "velocity", "effort"):
        some = chance.choice([count, count, 0, chance.randrange(4)])
        setattr(state, field, payload(chance, some))
    return stamped(state, chance)


def matrix(chance: random.Random) -> DelassusMatrix:
    contacts = [f"{chance.choice(NAMES)}{k}" for k in range(chance.randrange(4))]
    rows = chance.choice([1, 3])
    m = rows * len(contacts)
    msg = DelassusMatrix(
        layout_id=chance.choice(["", "abc", "0123456789abcdef"]), sequence=chance.getrandbits(40),
        contacts=contacts, kinds=[chance.choice(["point", "surface"]) for _ in contacts],
        status=[chance.randrange(4) for _ in contacts], row_offsets=range(0, m + 1, rows),
        axes=chance.randrange(2), validity=chance.randrange(3), reasons=chance.getrandbits(40),
        conditioning=chance.randrange(4), rank=chance.randrange(-1, 9), structural_rank=m,
        condition=chance.choice(NUMBERS), damping_mode=chance.randrange(3),
        damping=chance.choice(NUMBERS), algorithm=chance.choice(["", "efpa", "pv_osimr"]),
        compute_time=chance.random(), input_age=chance.choice(NUMBERS),
    )  # fmt: skip
    msg.matrix = array.array("d", payload(chance, m * m))
    return stamped(msg, chance)


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Return bytes as no publisher should send them, but as one can."""
    out = bytearray(data)
    if not out:
        return data
    kind = chance.randrange(9)
    place = chance.randrange(len(out))
    if kind == 0:
        out[place] = chance.getrandbits(8)
    elif kind == 1:
        del out[place:]
    elif kind == 2:
        out += bytes(chance.randrange(1, 12))
    elif kind == 3:
        # Text that is no UTF-8, or ends early.
        letters = [k for k in range(4, len(out)) if chr(out[k]).isalpha()] or [place]
        # Padding is whatever memory held: however many there are, this takes the same of chance.
        out[letters[int(chance.random() * len(letters))]] = chance.choice([0, 0x80, 0xC3, 0xFF])
    elif kind == 4:
        # A count or length that is a little off.
        place -= place % 4
        if place + 4 <= len(out):
            (count,) = struct.unpack_from("<I", out, place)
            struct.pack_into("<I", out, place, (count + chance.choice([-1, 1, 4])) % 2**32)
    elif kind == 5:
        out[place : place + 4] = chance.choice([b"\0\0\0\0", b"\xff\xff\xff\xff"])
    elif kind == 6:
        out[:4] = chance.choice([b"\0\0\0\0", b"\0\1\0\3", b"\0\2\0\0", b"\0\7\0\0"])
    elif kind == 7:
        # A string padded with zeros, which are part of its length.
        place -= place % 4
        if place + 4 <= len(out):
            (count,) = struct.unpack_from("<I", out, place)
            if 0 < count < 64 and place + 4 + count <= len(out):
                end = place + 4 + count
                end += -end % 4
                struct.pack_into("<I", out, place, count + 4)
                out[end:end] = b"\0\0\0\0"
    else:
        out[place:place] = bytes(8)
    return bytes(out)


def is_same(found: Any, expected: Any) -> bool:
    if isinstance(expected, (float, np.ndarray)):
        return np.array_equal(found, expected, equal_nan=True)
    return bool(found == expected)


def cases(count: int, make: Callable[[random.Random], Any]) -> Any:
    """Yield serialized messages, some twice, some damaged, as from a few publishers at a time."""
    chance = random.Random(next(SEEDS))
    publishers: list[Any] = []
    for _ in range(count):
        if len(publishers) < 4 or chance.random() < 0.1:
            publishers = [*publishers[-5:], make(chance)]
        message = chance.choice(publishers)
        data = serialize_message(message)
        kind = chance.randrange(4)
        if kind == 0:
            # Other numbers behind the same names, as the next message of this publisher.
            for field in ("position", "matrix"):
                if hasattr(message, field):
                    old = getattr(message, field)
                    setattr(message, field, array.array("d", payload(chance, len(old))))
            data = serialize_message(message)
        elif kind == 1:
            data = damaged(data, chance)
        elif kind == 2:
            data = damaged(damaged(data, chance), chance)
        yield data


@pytest.mark.parametrize("count", CASES)
def test_joint_states(count: int) -> None:
    reader = JointStateReader()
    read = refused = 0
    for data in cases(count, joint_state):
        try:
            message = deserialize_message(data, JointState)
        except RuntimeError:
            refused += 1
            with pytest.raises(UnreadableError):
                reader.read(data)
            continue
        read += 1
        state, stamp = reader.read(data), message.header.stamp
        assert (state.sec, state.nanosec) == (stamp.sec, stamp.nanosec), data
        assert state.names == list(message.name), data
        assert state.values.tobytes() == message.position.tobytes(), data
        velocities, efforts = state.motion
        assert velocities.tobytes() == message.velocity.tobytes(), data
        assert efforts.tobytes() == message.effort.tobytes(), data
    # Both happen, or nothing is shown.
    assert read > count // 2 and refused > count // 100


@pytest.mark.parametrize("count", CASES)
def test_matrices(count: int) -> None:
    reader = MatrixReader()
    read = refused = 0
    for data in cases(count, matrix):
        try:
            expected = ReceivedMatrix.of(deserialize_message(data, DelassusMatrix))
        except (RuntimeError, MessageError):
            refused += 1
            reader.layout_id = None
            with pytest.raises(MessageError):
                reader.read(data)
            continue
        read += 1
        # Whatever robot it is of.
        reader.layout_id = None
        found = reader.read(data)
        for name in ReceivedMatrix.__slots__:
            assert is_same(getattr(found, name), getattr(expected, name)), (name, data)
    assert read > count // 4 and refused > count // 100


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_what_is_written_into_matrices(count: int) -> None:
    chance = random.Random(next(SEEDS))
    for _ in range(count):
        msg = matrix(chance)
        wire = SerializedMessage(msg, _CHANGING, ("matrix",))
        # Twice: what was written before must not show.
        for _ in range(2):
            new = matrix(chance)
            stamps = [(each.sec, each.nanosec) for each in (new.header.stamp, new.contacts_stamp)]
            wire.set("stamp", *stamps[0])
            wire.set("number", new.sequence, *stamps[1])
            judged = [
                "validity", "reasons", "conditioning", "rank", "structural_rank", "condition",
                "damping_mode", "damping",
            ]  # fmt: skip
            wire.set("judgement", *(getattr(new, name) for name in judged))
            wire.set("times", new.compute_time, new.input_age)
            values = payload(chance, len(msg.matrix))
            wire.arrays["matrix"][...] = values
            found = deserialize_message(wire.to_bytes(), DelassusMatrix)
            for name in [*judged, "sequence", "compute_time", "input_age"]:
                assert is_same(getattr(found, name), getattr(new, name)), name
            pair = found.header.stamp, found.contacts_stamp
            assert [(each.sec, each.nanosec) for each in pair] == stamps
            assert is_same(np.array(found.matrix), np.array(values))
            kept = ["layout_id", "contacts", "kinds", "status", "row_offsets", "axes", "algorithm"]
            for name in kept:
                assert list(np.atleast_1d(getattr(found, name))) == list(
                    np.atleast_1d(getattr(msg, name))
                ), name
            assert found.header.frame_id == msg.header.frame_id


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_what_is_written_into_joint_states(count: int) -> None:
    chance = random.Random(next(SEEDS))
    for _ in range(count):
        state = joint_state(chance)
        stamp = {"stamp": ("header.stamp.sec", "header.stamp.nanosec")}
        wire = SerializedMessage(state, stamp, ("position",))
        values, seconds = payload(chance, len(state.position)), chance.getrandbits(31)
        wire.set("stamp", seconds, 7)
        wire.arrays["position"][...] = values
        found = deserialize_message(wire.to_bytes(), JointState)
        assert (found.header.stamp.sec, found.header.stamp.nanosec) == (seconds, 7)
        assert is_same(np.array(found.position), np.array(values))
        assert list(found.name) == list(state.name)
        assert found.velocity.tobytes() == state.velocity.tobytes()
        assert found.effort.tobytes() == state.effort.tobytes()


@pytest.mark.parametrize("count", [1_000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_what_is_written_into_summaries(count: int) -> None:
    chance = random.Random(next(SEEDS))
    for _ in range(count // 10):
        layout = Layout()
        layout.header.frame_id = chance.choice(NAMES)
        output = SummaryOutput(layout, 0.25)
        for _ in range(10):
            numbers = payload(chance, 7)
            seen = Examination(
                matrix=np.eye(2), conditioning=Conditioning.WEAK, rank=chance.randrange(9),
                structural_rank=4, largest=numbers[0], smallest=numbers[1],
                condition=abs(numbers[2]),
                damping_mode=Damping.UNIFORM, damping=numbers[3],
            )  # fmt: skip
            sequence, reasons = chance.getrandbits(60), Reason(chance.getrandbits(30))
            counts = [chance.getrandbits(40) for _ in range(4)]
            data = output.fill(
                (chance.getrandbits(30), 5), sequence, 2, reasons, 6, seen, tuple(numbers[4:7]),
                tuple(counts),
            )  # fmt: skip
            found = deserialize_message(data, Summary)
            assert found.header.frame_id == layout.header.frame_id
            assert (found.sequence, found.reasons, found.rank) == (sequence, reasons, seen.rank)
            assert [found.published, found.invalid, found.superseded, found.overruns] == counts
            for name, value in zip(
                ["largest_eigenvalue", "smallest_eigenvalue", "damping", "compute_time",
                 "input_age", "latency"],
                [numbers[0], numbers[1], *numbers[3:7]],
                strict=True,
            ):  # fmt: skip
                if not math.isnan(seen.condition):
                    assert is_same(getattr(found, name), value), name
