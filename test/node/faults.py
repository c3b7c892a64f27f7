"""Faults of inputs that docs/reliability.md lists: how each is made, and what the node answers.

A row makes one fault in a pipeline that works. ``test_node_fault_table.py`` runs all rows through
the pipeline, ``test_node.py`` two of them through a node.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from delassus_ros.node.reasons import Reason, Validity

if TYPE_CHECKING:
    from delassus_msgs.msg import DelassusMatrix
    from pipeline_support import Rig

FEET = ("LF", "RF", "LH", "RH")
OK, DEGRADED, INVALID = Validity.OK, Validity.DEGRADED, Validity.INVALID
INACTIVE, ACTIVE = 1, 2
LEVEL = (0.0, 0.0, 0.0, 1.0)


@dataclass(frozen=True)
class Fault:
    """One row.

    Attributes
    ----------
    topic : topic that the fault is on, before remapping.
    name : unique name.
    act : makes the fault, and returns the message that is published for the next joint state.
    validity, reason : those of the message.
    words : part of the log line and of the diagnostics.
    """

    topic: str
    name: str
    act: Callable[[Rig], DelassusMatrix | None]
    validity: Validity
    reason: Reason
    words: str


def _alone(rig: Rig, *names: str, **options: int) -> DelassusMatrix | None:
    """Send a joint state when whole ones have been silent for longer than input_timeout."""
    rig.wait(501)
    rig.touch(*FEET)
    return rig.send(names, **options)


def _apart(rig: Rig) -> DelassusMatrix | None:
    """Send halves of the joints 30 ms apart."""
    front, hind = rig.joints[:5], rig.joints[5:]
    for names in (front, hind):
        _alone(rig, *names)
        rig.send(front if names is hind else hind)
    rig.wait(50)
    rig.send(front, at=-30)
    return rig.send(hind)


def _old(rig: Rig, age: float) -> DelassusMatrix | None:
    """Send a joint state whose stamp is `age` ms old and newer than the one before."""
    rig.wait(900)
    rig.touch(*FEET)
    return rig.send(at=-age)


def _touched(rig: Rig, *names: str, status: list[int] | None = None) -> DelassusMatrix | None:
    """Send a set of contacts, and a joint state."""
    rig.touch(*names, status=status)
    return rig.send(at=1)


def _turned(rig: Rig, *orientation: float, **options: object) -> DelassusMatrix | None:
    """Send an odometry, and a joint state."""
    rig.turn(orientation or LEVEL, **options)
    return rig.send(at=1)


def _sensed(rig: Rig) -> DelassusMatrix | None:
    """Send a message of an inertial sensor without an estimate, and a joint state."""
    rig.imu(LEVEL, unknown=True)
    return rig.send(at=1)


def _joint_states() -> Iterator[tuple[object, ...]]:
    missing, size = Reason.JOINT_MISSING, Reason.JOINT_SIZE_MISMATCH
    finite, twice = Reason.JOINT_NOT_FINITE, Reason.JOINT_DUPLICATED
    yield (
        "missing", lambda r: _alone(r, *(j for j in r.joints if j != "RF_KFE")), INVALID, missing,
        "the joint state lacks joint 'RF_KFE'; it has 'LF_HAA'",
    )  # fmt: skip
    yield "no joints", lambda r: _alone(r), INVALID, missing, "7 more; it has none"
    yield (
        "no names", lambda r: _alone(r, count=1), INVALID, missing,
        "has 1 positions but no names, so nothing tells whose they are",
    )  # fmt: skip
    for value in (math.nan, math.inf, -math.inf):
        yield (
            f"position {value}", lambda r, value=value: r.send(LH_HFE=value), INVALID, finite,
            f"the position of joint 'LH_HFE' is {value}; expected finite numbers",
        )  # fmt: skip
    yield "NaN of another robot", lambda r: r.send([*r.joints, "x"], x=math.nan), OK, Reason(0), ""
    yield (
        "one position too few", lambda r: r.send(count=11), INVALID, size,
        "12 names but 11 positions; the first joint without one is 'RH_KFE'",
    )  # fmt: skip
    yield "too few", lambda r: r.send(count=5), INVALID, size, "without one is 'RF_KFE'"
    yield "too many", lambda r: r.send(count=13), INVALID, size, "12 names but 13 positions"
    yield (
        "a joint twice", lambda r: r.send([*r.joints, "LF_HAA"]), INVALID, twice,
        "the joint state has joint 'LF_HAA' more than once",
    )  # fmt: skip
    yield "others twice", lambda r: r.send([*r.joints, "x", "x"]), OK, Reason(0), ""
    yield (
        "no stamp", lambda r: r.send(stamp=0), DEGRADED, Reason.STAMP_INVALID,
        "joint states have no valid stamp: age and order cannot be told",
    )  # fmt: skip
    yield (
        "stamp back", lambda r: r.send(at=-20), DEGRADED, Reason.STAMP_JUMPED_BACK,
        "the stamps of the joint states jumped back by 0.02 s: a simulation was reset",
    )  # fmt: skip
    yield (
        "stamp ahead", lambda r: r.send(at=300), DEGRADED, Reason.STAMP_IN_FUTURE,
        "the stamps of the joint states are 0.3 s ahead of this node's clock",
    )  # fmt: skip
    yield (
        "old", lambda r: _old(r, 600), INVALID, Reason.INPUT_STALE,
        "the joint positions are 0.6 s old, at most 0.5 s are allowed (input_timeout)",
    )  # fmt: skip
    yield "as old as allowed", lambda r: _old(r, 500), OK, Reason(0), ""
    yield (
        "parts apart", _apart, INVALID, Reason.INPUT_SKEWED,
        "came 30 ms older than the rest; at most 5 ms are allowed (max_skew)",
    )  # fmt: skip


def _contacts() -> Iterator[tuple[object, ...]]:
    malformed, unknown = Reason.CONTACTS_MALFORMED, Reason.UNKNOWN_CONTACT
    yield (
        "a contact twice", lambda r: _touched(r, "LF", "LF"), INVALID, Reason.DUPLICATE_CONTACT,
        "contact 'LF' is listed more than once",
    )  # fmt: skip
    yield (
        "lengths", lambda r: _touched(r, "LF", "RF", status=[ACTIVE]), INVALID, malformed,
        "has 2 names but 1 status values; it is refused",
    )  # fmt: skip
    yield (
        "status", lambda r: _touched(r, "LF", "RF", status=[ACTIVE, 7]), INVALID, malformed,
        "contact 'RF' has status 7; expected one of",
    )  # fmt: skip
    yield (
        "unknown, touches", lambda r: _touched(r, "LF", "LFF"), DEGRADED, unknown,
        "unknown contact 'LFF'; did you mean 'LF'? contacts: LF, RF, LH, RH (the matrix lacks its",
    )  # fmt: skip
    yield (
        "unknown", lambda r: _touched(r, "LF", "arm", status=[ACTIVE, INACTIVE]), OK, unknown,
        "unknown contact 'arm'; contacts: LF, RF, LH, RH (ignored, as it is not active)",
    )  # fmt: skip
    yield "none touches", lambda r: _touched(r), OK, Reason.NONE, ""


def _odometry() -> Iterator[tuple[object, ...]]:
    for orientation, words in (
        ((0, 0, 0, 0), "its quaternion is zero: the publisher has not set it"),
        ((0, 0, 0, 1.002), "has norm 1.002; expected 1"),
        ((0, 0, 0, math.nan), "has norm nan"),
        ((math.inf, 0, 0, 1), "has norm inf"),
        ((1e200, 0, 0, 0), "has norm 1e+200"),
        ((1.2e154, 1.2e154, 0, 0), "has norm 1.69"),
    ):
        yield (
            f"quaternion {orientation}", lambda r, o=orientation: _turned(r, *o), INVALID,
            Reason.ORIENTATION_INVALID, words,
        )  # fmt: skip
    for options, words in (
        ({"frame": "map"}, "it is in frame 'map', expected 'odom' (orientation.world_frame)"),
        ({"frame": ""}, "does not say in which frame it is (header.frame_id); expected 'odom'"),
        ({"child": "LF_FOOT"}, "frame 'LF_FOOT' can move on the root link"),
        ({"child": "bse"}, "unknown frame 'bse'; did you mean 'base'"),
        ({"child": ""}, "of which link it is: set the parameter orientation.frame to that link"),
    ):
        yield (
            f"odometry {options}", lambda r, o=options: _turned(r, **o), INVALID,
            Reason.ORIENTATION_INVALID, words,
        )  # fmt: skip
    yield (
        "no estimate", _sensed, INVALID, Reason.ORIENTATION_INVALID,
        "the orientation of the base is refused: the Imu says that it has none",
    )  # fmt: skip


FAULTS = [
    Fault(topic, *row)  # type: ignore[arg-type]
    for topic, rows in (
        ("joint_states", _joint_states()),
        ("active_contacts", _contacts()),
        ("odometry", _odometry()),
    )
    for row in rows
]
BY_NAME = {f"{fault.topic}: {fault.name}": fault for fault in FAULTS}
