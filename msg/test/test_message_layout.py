"""The layout computed from a message type finds every field where the middleware writes it."""

from __future__ import annotations

import functools
import importlib
import math
import random
from typing import Any

import pytest
from delassus_msgs_py.cdr import TEXT, Field, MessageLayout, NotPlainError, fields_of
from rclpy.serialization import serialize_message

KINDS = [
    "delassus_msgs/ActiveContacts", "delassus_msgs/ContactDynamics",
    "delassus_msgs/ContactPlacements", "delassus_msgs/DelassusMatrix", "delassus_msgs/Estimate",
    "delassus_msgs/EstimatedContacts", "delassus_msgs/Layout", "delassus_msgs/Summary",
    "diagnostic_msgs/DiagnosticArray", "nav_msgs/Odometry", "sensor_msgs/Imu",
    "sensor_msgs/JointState", "sensor_msgs/PointCloud2", "std_msgs/Bool", "std_msgs/String",
]  # fmt: skip
TEXTS = ["", "a", "ab", "LF_FOOT", "überall", "a name that is rather long"]


def kind_of(name: str) -> Any:
    package, part = name.split("/")
    module = pytest.importorskip(f"{package}.msg", reason=f"needs {package}")
    return getattr(module, part)


def value(field: Field, chance: random.Random) -> Any:
    """Return a random number or text."""
    if field.code == TEXT:
        return chance.choice(TEXTS)
    if field.code == "?":
        return chance.random() < 0.5
    if field.code == "c":
        return bytes([chance.randrange(256)])
    if field.code == "d":
        return chance.choice([0.0, -1.5, math.inf, chance.gauss(0, 1)])
    if field.code == "f":
        return float(chance.randrange(1000))
    bits = {"b": 8, "B": 8, "h": 16, "H": 16, "i": 32, "I": 32, "q": 64, "Q": 64}[field.code]
    low = -(2 ** (bits - 1)) if field.code.islower() else 0
    return chance.randrange(low, low + 2**bits)


def set_all(message: Any, fields: tuple[Field, ...], chance: random.Random) -> None:
    """Set every field of a message at random."""
    for field in fields:
        *owners, name = field.path.split(".")
        owner = functools.reduce(getattr, owners, message)
        if field.single:
            setattr(owner, name, value(field, chance))
            continue
        count = chance.randrange(4) if field.length < 0 else field.length
        if not field.parts:
            setattr(owner, name, [value(field, chance) for _ in range(count)])
            continue
        text = type(owner).get_fields_and_field_types()[name]
        package, part = text.removeprefix("sequence<").removesuffix(">").split("/")
        elements = [
            getattr(importlib.import_module(f"{package}.msg"), part)() for _ in range(count)
        ]
        for element in elements:
            set_all(element, field.parts, chance)
        setattr(owner, name, elements)


def check(
    message: Any, fields: tuple[Field, ...], prefix: str, layout: MessageLayout, data: bytes
) -> int:
    """Compare every field with the layout; return how many there were."""
    count = 0
    for field in fields:
        found = functools.reduce(getattr, field.path.split("."), message)
        path = prefix + field.path
        if field.parts:
            for k, element in enumerate(found):
                count += check(element, field.parts, f"{path}[{k}].", layout, data)
            continue
        count += 1
        expected = found if field.single else list(found)
        if field.code == TEXT:
            assert layout.texts[path] == expected
            continue
        form, offset = layout.group([path])
        numbers = form.unpack_from(data, offset) if layout.places[path].length else ()
        assert (numbers[0] if field.single else list(numbers)) == expected, path
    return count


@pytest.mark.parametrize("name", KINDS)
def test_every_field_is_where_the_middleware_writes_it(name: str) -> None:
    kind, chance = kind_of(name), random.Random(name)
    for _ in range(60):
        message = kind()
        set_all(message, fields_of(kind), chance)
        data = serialize_message(message)
        layout = MessageLayout(kind, data)
        assert check(message, fields_of(kind), "", layout, data) > 0
        # A message with the same lengths and other numbers has its fields in the same places.
        constant = layout.constant(layout.places)
        assert constant.fits(data)
        for path, place in layout.places.items():
            if place.length:
                changed = bytearray(data)
                changed[place.offset] ^= 1
                assert constant.fits(bytes(changed))
                kept = layout.constant(layout.places.keys() - {path})
                assert kept.fits(data) and not kept.fits(bytes(changed)), path
        assert not constant.fits(data + b"\0") and not constant.fits(data[:-1])


@pytest.mark.parametrize("name", KINDS)
def test_damaged_bytes_are_refused_by_one_error(name: str) -> None:
    kind, chance = kind_of(name), random.Random(name)
    read = refused = 0
    for _ in range(400):
        message = kind()
        set_all(message, fields_of(kind), chance)
        data = bytearray(serialize_message(message))
        place = chance.randrange(4, len(data))
        if chance.random() < 0.5:
            del data[place:]
        else:
            data[place] = chance.choice([0, 1, 0x80, 0xFF])
        try:
            layout = MessageLayout(kind, bytes(data))
        except NotPlainError:
            refused += 1
            continue
        read += 1
        sizes = {"d": 8, "Q": 8, "q": 8, "i": 4, "I": 4, "f": 4, "h": 2, "H": 2}
        for offset, code, count in layout.places.values():
            assert 4 <= offset <= offset + count * sizes.get(code, 1) <= len(data)
    assert refused > 20 and (read or name.startswith("std_msgs"))


def test_numbers_of_a_group_are_neighbours() -> None:
    kind = kind_of("delassus_msgs/DelassusMatrix")
    layout = MessageLayout(kind, serialize_message(kind(algorithm="abc")))
    form, _ = layout.group(["validity", "reasons", "conditioning", "rank"])
    assert form.size in (1 + 7 + 8 + 1 + 3 + 4, 1 + 3 + 8 + 1 + 3 + 4)
    with pytest.raises(ValueError, match="rank does not follow"):
        layout.group(["validity", "rank"])
    with pytest.raises(KeyError, match="nothing"):
        layout.group(["nothing"])


def test_a_count_without_elements_ends_soon() -> None:
    """Four bytes from the network may promise four thousand million elements."""
    kind = kind_of("delassus_msgs/ContactPlacements")
    data = bytearray(serialize_message(kind()))
    for place in range(4, len(data) - 3, 4):
        damaged = data[:place] + b"\xff\xff\xff\xff" + data[place + 4 :]
        try:
            MessageLayout(kind, bytes(damaged))
        except NotPlainError:
            continue
        assert place < 12  # the stamp


@pytest.mark.parametrize("head", [b"\0\0\0\0", b"\0\7\0\0", b"\0", b""])
def test_another_encoding_is_refused(head: bytes) -> None:
    kind = kind_of("std_msgs/Bool")
    with pytest.raises(NotPlainError, match="not plain little-endian CDR"):
        MessageLayout(kind, head + serialize_message(kind())[4:] if head else head)
