"""ContactDynamics to numpy and back, and read from its bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from delassus_msgs.msg import ContactDynamics
from delassus_msgs_py import (
    DynamicsReader,
    MessageError,
    ReceivedDynamics,
    SerializedMessage,
    dynamics_to_numpy,
    memory,
    numpy_to_dynamics,
)
from delassus_msgs_py.dynamics import BLOCKS
from rclpy.serialization import deserialize_message, serialize_message

VELOCITIES = ["root"] * 6 + ["hip", "knee"]


def make_message(
    contacts: Sequence[str] = ("LF", "hand"), seed: int = 1, names: Sequence[str] = tuple(BLOCKS)
) -> tuple[ContactDynamics, dict[str, np.ndarray]]:
    """Return a message whose every number depends on the seed, and its blocks."""
    random = np.random.default_rng(seed)
    sizes = {"m": 3 * len(contacts), "n": len(VELOCITIES)}
    msg = ContactDynamics(
        layout_id="abc", sequence=2**40 + seed, validity=ContactDynamics.VALIDITY_OK,
        reasons=seed << 33, contacts=list(contacts), row_offsets=range(0, sizes["m"] + 1, 3),
        axes=1, velocities=VELOCITIES,
    )  # fmt: skip
    msg.header.stamp.sec, msg.header.stamp.nanosec = seed, 999_999_999 - seed
    blocks = {name: random.random([sizes[x] for x in BLOCKS[name][1]]) for name in names}
    numpy_to_dynamics(msg, blocks)
    if "forces" in blocks:
        msg.friction, msg.normals = [0.1 * seed] * len(contacts), [0.0, 0.6, 0.8] * len(contacts)
        msg.forces_residual, msg.forces_validity = 1e-11 * seed, ContactDynamics.VALIDITY_OK
        msg.forces_status = ContactDynamics.FORCES_SOLVED
        msg.forces_law = ContactDynamics.LAW_COULOMB
    return msg, blocks


def check(received: ReceivedDynamics, msg: ContactDynamics) -> None:
    expected = dynamics_to_numpy(msg)
    for name in ReceivedDynamics.__slots__:
        np.testing.assert_array_equal(getattr(received, name), getattr(expected, name), name)


@pytest.mark.parametrize("names", [tuple(BLOCKS), ("a0", "M"), ("Lambda",), ()])
def test_a_round_trip_keeps_every_bit(names: tuple[str, ...]) -> None:
    msg, blocks = make_message(names=names)
    received = deserialize_message(serialize_message(msg), ContactDynamics)
    assert received == msg
    found = dynamics_to_numpy(received)
    for name in BLOCKS:
        np.testing.assert_array_equal(getattr(found, name), blocks.get(name))
    assert found.stamp == 1_999_999_998 and found.velocities == tuple(VELOCITIES)


def test_forces_have_friction_normals_and_a_validity_of_their_own() -> None:
    msg, blocks = make_message(seed=3)
    reader = DynamicsReader()
    for seed, status in ((3, "SOLVED"), (4, "INACCURATE"), (5, "FAILED")):
        later, blocks = make_message(seed=seed)
        later.friction = msg.friction
        later.forces_status = getattr(ContactDynamics, f"FORCES_{status}")
        later.forces_validity = 5 - seed
        found = reader.read(serialize_message(later))
        assert found.forces is not None and found.normals is not None
        assert found.friction is not None and found.friction.tolist() == [0.1 * 3] * 2
        np.testing.assert_array_equal(found.forces, blocks["forces"])
        assert found.normals.tolist() == [[0.0, 0.6, 0.8]] * 2
        assert (found.forces_residual, found.forces_validity) == (1e-11 * seed, 5 - seed)
        assert found.forces_status == later.forces_status
        assert found.forces_law == ContactDynamics.LAW_COULOMB
        check(found, later)
    assert len(reader._memory._known) == 1
    unfilled = dynamics_to_numpy(ContactDynamics())
    assert (unfilled.forces, unfilled.friction, unfilled.forces_residual) == (None, None, -1.0)
    assert unfilled.forces_validity == ContactDynamics.VALIDITY_INVALID


def test_blocks_cannot_be_written_to_by_accident() -> None:
    found = dynamics_to_numpy(make_message()[0])
    assert found.M is not None
    with pytest.raises(ValueError, match="read-only"):
        found.M[0, 0] = 1.0


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda m: setattr(m, "jacobian", [0.0] * 47), "47 values of jacobian; expected 6 . 8"),
        (lambda m: setattr(m, "row_offsets", [0, 6]), "2 row_offsets; expected 3"),
        (lambda m: setattr(m, "row_offsets", [0, 6, 6]), "expected them to ascend from 0"),
        (lambda m: setattr(m, "validity", 77), "validity 77; expected INVALID=0, DEGRADED=1 or"),
        (lambda m: setattr(m, "validity", 0), "INVALID .* but has 6 values of free_acceleration"),
        (lambda m: setattr(m, "velocities", []), "free_joint_acceleration"),
        (lambda m: setattr(m, "forces", [0.0] * 5), "5 values of forces; expected 6 or none"),
        (lambda m: setattr(m, "friction", [0.1]), "1 values of friction; expected 2, as it has 2"),
        (lambda m: setattr(m, "normals", [0.0] * 2), "2 values of normals; expected 6, as it has"),
        (lambda m: setattr(m, "forces_validity", 77), "of its forces, has the validity 77; expe"),
        (lambda m: setattr(m, "validity", 1), "validity 1, and its forces have 2; expected no be"),
    ],
)
def test_contradictions_are_named(spoil: Callable[[Any], None], words: str) -> None:
    msg, _ = make_message()
    spoil(msg)
    with pytest.raises(MessageError, match=words):
        dynamics_to_numpy(msg)
    with pytest.raises(MessageError, match=words):
        DynamicsReader().read(serialize_message(msg))


def test_blocks_of_other_shapes_are_refused() -> None:
    msg, _ = make_message()
    with pytest.raises(MessageError, match=r"'h' has shape \(7,\); expected \(8,\)"):
        numpy_to_dynamics(msg, {"h": np.zeros(7)})
    with pytest.raises(MessageError, match="no block 'G'; blocks: a0, JdotV"):
        numpy_to_dynamics(msg, {"G": np.zeros((6, 6))})


@pytest.mark.parametrize("frame", ["", "a", "ab", "abc", "odom", "überall"])
@pytest.mark.parametrize("contacts", [("LF",), ("LF", "right hand", "x"), ()])
def test_what_is_read_is_what_the_message_says(frame: str, contacts: tuple[str, ...]) -> None:
    reader = DynamicsReader()
    for seed in range(1, 5):
        msg, _ = make_message(contacts, seed, names=("a0", "J", "M") if contacts else ("M",))
        msg.header.frame_id = frame
        check(reader.read(serialize_message(msg)), msg)


CHANGES: dict[str, Callable[[ContactDynamics], Any]] = {
    "frame": lambda msg: setattr(msg.header, "frame_id", "odom"),
    "layout": lambda msg: setattr(msg, "layout_id", "abd"),
    "contact": lambda msg: setattr(msg, "contacts", ["LF", "hane"]),
    "velocity": lambda msg: setattr(msg, "velocities", [*VELOCITIES[:-1], "kner"]),
    "rows": lambda msg: setattr(msg, "row_offsets", [0, 2, 6]),
    "axes": lambda msg: setattr(msg, "axes", 0),
    "validity": lambda msg: setattr(msg, "validity", ContactDynamics.VALIDITY_DEGRADED),
    "a block less": lambda msg: setattr(msg, "mass_matrix", []),
    "two of equal size": lambda msg: (
        setattr(msg, "response", []), setattr(msg, "jbar", msg.jacobian)
    ),
    "NaN": lambda msg: msg.jacobian.__setitem__(0, float("nan")),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_any_change_is_seen(change: str) -> None:
    reader = DynamicsReader()
    msg, _ = make_message(names=("a0", "J", "MinvJT", "M"))
    check(reader.read(serialize_message(msg)), msg)
    CHANGES[change](msg)
    for _ in range(2):
        check(reader.read(serialize_message(msg)), msg)
    again, _ = make_message(names=("a0", "J", "MinvJT", "M"), seed=9)
    check(reader.read(serialize_message(again)), again)


def test_a_message_is_converted_once_for_each_set_of_contacts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    converted = []

    def count(data: bytes, kind: type) -> Any:
        converted.append(kind)
        return deserialize_message(data, kind)

    monkeypatch.setattr(memory, "deserialize_message", count)
    reader, wires = DynamicsReader(), []
    for contacts in (("LF",), ("LF", "RF"), ("RF",)):
        msg, _ = make_message(contacts)
        wires.append(SerializedMessage(msg, {"number": {"sequence": "Q"}}, ("bias_force",)))
    for sequence in range(9):
        wire = wires[sequence % 3]
        wire.set("number", sequence)
        wire.arrays["bias_force"][...] = sequence
        received = reader.read(wire.to_bytes())
        assert received.sequence == sequence and received.h is not None
        assert (received.h == sequence).all()
    assert len(converted) == 3


def test_an_invalid_one_has_no_blocks_and_is_not_taken_for_a_valid_one() -> None:
    reader = DynamicsReader()
    msg, _ = make_message()
    reader.read(serialize_message(msg))
    empty = ContactDynamics(reasons=1 << 32, sequence=7)
    received = reader.read(serialize_message(empty))
    assert (received.sequence, received.reasons, received.M) == (7, 1 << 32, None)
    check(reader.read(serialize_message(msg)), msg)


@pytest.mark.parametrize("seed", range(40))
def test_spoilt_bytes_are_refused_or_read_as_the_middleware_does(seed: int) -> None:
    reader, random = DynamicsReader(), np.random.default_rng(seed)
    msg, _ = make_message()
    data = bytearray(serialize_message(msg))
    reader.read(bytes(data))
    place = int(random.integers(4, len(data)))
    if seed % 4 == 0:
        spoilt = bytes(data[:place])
    else:
        struct.pack_into("<B", data, place, int(random.integers(256)))
        spoilt = bytes(data)
    try:
        received = reader.read(spoilt)
    except MessageError:
        return
    check(received, deserialize_message(spoilt, ContactDynamics))
