"""Faults of inputs that docs/reliability.md lists: how each is made, and what the node answers.

A row makes one fault in a tick that works. ``test_fault_table.py`` runs all rows through
the tick, ``test_node.py`` two of them through a node.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from closed_rigs import LEGS
from faults_in_time import (
    ACTIVE,
    DEGRADED,
    FEET,
    INACTIVE,
    INVALID,
    LEVEL,
    MS,
    OK,
    beside,
    in_turn,
    late,
    place,
    shared,
)
from linkages import assembled, reach_of_the_rocker

from delassus_ros.inputs.findings import Reason, Validity

if TYPE_CHECKING:
    from delassus_msgs.msg import ContactDynamics, DelassusMatrix
    from estimator_support import Standing
    from motion_support import MotionRig
    from tick_support import MovingRig, Rig, ScheduleRig

    from delassus_ros.estimator.estimation import LastEstimate


@dataclass(frozen=True)
class Fault:
    """One row.

    Attributes
    ----------
    rig : which tick the fault is made in, see ``test_fault_table.py``.
    topic : topic that the fault is on, before remapping.
    name : unique name.
    act : makes the fault, and returns the message that is published for the next joint state.
    validity, reason : those of the message; None: the joint state is ignored, and none comes.
    words : part of the log line and of the diagnostics.
    """

    rig: str
    topic: str
    name: str
    act: Callable[[Any], Any]
    validity: Validity | None
    reason: Reason
    words: str


def _alone(rig: Rig, *names: str, **options: Any) -> DelassusMatrix | None:
    """Send a joint state when whole ones have been silent for longer than input_timeout."""
    _silent(rig)
    return rig.send(names, **options)


def _silent(rig: Rig, *strangers: str) -> DelassusMatrix | None:
    """Let no joint states come but those of strangers; return what the watch publishes."""
    rig.wait(501)
    rig.touch(*rig.problem.contacts.names)
    if strangers:
        assert rig.send(strangers) is None
    return rig.publish(rig.watch())


def _of_simulation(rig: Rig, at: float) -> DelassusMatrix | None:
    """Send a joint state that is ahead of a clock with steps of 25 ms."""
    rig.tick.inputs.set_clock_step(25 * MS)
    return rig.send(at=at)


def _after_a_jump(rig: Rig) -> DelassusMatrix | None:
    """Send a joint state of an earlier time, after a reset of the simulation."""
    rig.wait(-400)
    rig.tick.clock_jumped()
    rig.touch(*FEET)
    return rig.send()


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


def _touched(rig: Rig, *names: str, **options: Any) -> DelassusMatrix | None:
    """Send a set of contacts, and a joint state."""
    rig.touch(*names, **options)
    return rig.send(at=1)


def _turned(rig: Rig, *orientation: float, **options: object) -> DelassusMatrix | None:
    """Send an odometry, and a joint state."""
    rig.turn(orientation or LEVEL, **options)
    return rig.send(at=1)


def _sensed(rig: Rig, wait: float = 0, **options: bool) -> DelassusMatrix | None:
    """Send a message of an inertial sensor, and a joint state `wait` ms later."""
    rig.imu(LEVEL, frame="base", **options)
    rig.wait(wait)
    return rig.send(at=1)


def _no_clock(rig: Rig, sec: int, nanosec: int) -> DelassusMatrix | None:
    """Send a joint state with a stamp that no clock gives."""
    from rclpy.serialization import deserialize_message, serialize_message
    from sensor_msgs.msg import JointState

    message = deserialize_message(rig.state(stamp=0), JointState)
    message.header.stamp.sec, message.header.stamp.nanosec = sec, nanosec
    return rig.publish(rig.answer(serialize_message(message)))


def _joint_states() -> Iterator[tuple[object, ...]]:
    missing, size = Reason.JOINT_MISSING, Reason.JOINT_SIZE_MISMATCH
    finite, twice = Reason.JOINT_NOT_FINITE, Reason.JOINT_DUPLICATED
    yield (
        "missing", lambda r: _alone(r, *(j for j in r.joints if j != "RF_KFE")), INVALID, missing,
        "the joint state lacks joint 'RF_KFE'; it has 'LF_HAA'",
    )  # fmt: skip
    yield "no joints", lambda r: _alone(r), INVALID, missing, "7 more; it has none"
    for name, act in (
        ("missing", lambda r: r.send(r.joints[1:])),
        ("of another robot", lambda r: r.send(["finger", "thumb"])),
        ("of another robot, no positions", lambda r: r.send(["finger", "thumb"], count=0)),
        ("no positions", lambda r: r.send(count=0)),
        ("a joint twice, no positions", lambda r: r.send([*r.joints, "LF_HAA"], count=0)),
        ("no joints", lambda r: r.send([])),
        ("no names", lambda r: r.send([], count=1)),
    ):
        yield f"{name}, beside whole ones", act, None, Reason.NONE, ""
    yield (
        "no positions", lambda r: _alone(r, *r.joints, count=0), INVALID, size,
        "12 names but 0 positions; the first joint without one is 'LF_HAA'",
    )  # fmt: skip
    yield "silent", _silent, INVALID, Reason.INPUT_STALE, "no joint state any more for 0.501 s"
    yield (
        "silent but for another robot", lambda r: _silent(r, "gripper", "wheel"), INVALID,
        Reason.INPUT_STALE,
        "no joint state any more with joints of the robot for 0.501 s; the joint states have "
        "'gripper', 'wheel'",
    )  # fmt: skip
    yield "a stamp again", lambda r: r.send(), OK, Reason.NONE, ""
    yield "after a jump of the clock", _after_a_jump, OK, Reason.NONE, ""
    yield "30 ms ahead of /clock", lambda r: _of_simulation(r, 30), OK, Reason.NONE, ""
    yield (
        "31 ms ahead of /clock", lambda r: _of_simulation(r, 31), DEGRADED,
        Reason.STAMP_IN_FUTURE, "0.031 s ahead of /clock, which goes on by up to 0.025 s at once",
    )  # fmt: skip
    for value in (1.000001e6, -1e12, 1.7e308):
        yield (
            f"position {value}", lambda r, value=value: _alone(r, *r.joints, LH_HFE=value),
            INVALID, Reason.JOINT_FAR,
            f"the position of joint 'LH_HFE' is {value:.6g}, beyond 1e+06",
        )  # fmt: skip
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
        "the stamps of the joint states jumped back by 0.02 s: a simulation was reset, a clock "
        "was set, or two nodes publish the same joints",
    )  # fmt: skip
    yield (
        "stamp ahead", lambda r: r.send(at=300), DEGRADED, Reason.STAMP_IN_FUTURE,
        "the stamps of the joint states are 0.3 s ahead of this node's clock",
    )  # fmt: skip
    yield (
        "old", lambda r: _old(r, 600), INVALID, Reason.INPUT_STALE,
        "the joint positions are 0.6 s old, at most 0.5 s are allowed (input_timeout); or the "
        "clock of their host is behind",
    )  # fmt: skip
    yield "as old as allowed", lambda r: _old(r, 500), OK, Reason(0), ""
    yield (
        "late without a stamp", lambda r: late(r, lambda: r.send(stamp=0)), INVALID,
        Reason.INPUT_STALE | Reason.STAMP_INVALID,
        "the joint positions have no valid stamp and were sent 0.6 s ago",
    )  # fmt: skip
    yield (
        "sent as long ago as allowed, without a stamp",
        lambda r: late(r, lambda: r.send(stamp=0), 500), DEGRADED, Reason.STAMP_INVALID, "",
    )  # fmt: skip
    for stamp in (
        (5, 2 * 10**9), (5, 10**9), (2**31 - 1, 2**32 - 1), (-(2**31), 0), (-1, 2**32 - 1)
    ):  # fmt: skip
        yield (
            f"stamp {stamp}", lambda r, stamp=stamp: _no_clock(r, *stamp), DEGRADED,
            Reason.STAMP_INVALID, "have no valid stamp",
        )  # fmt: skip
    yield (
        "restarted publisher", lambda r: in_turn(r, lambda r: r.send(), 1, 1, 2, 3, 1, 2, 3), OK,
        Reason.NONE, "",
    )  # fmt: skip
    yield (
        "stamp of simulated time", lambda r: r.send(stamp=12 * 10**9), INVALID,
        Reason.INPUT_STALE | Reason.STAMP_JUMPED_BACK,
        "set use_sim_time on this node if they are of simulated time",
    )  # fmt: skip
    yield (
        "two publishers", lambda r: in_turn(r, lambda r: r.send()), DEGRADED,
        Reason.SOURCES_CONTRADICT, "two publishers of /joint_states send all joints",
    )  # fmt: skip
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


def _of_all_rows(rows: Iterator[tuple[object, ...]]) -> Iterator[tuple[object, ...]]:
    """Return the rows of contacts for matrices of all rows, which need no contacts."""
    for name, act, validity, *rest in rows:
        yield name, act, DEGRADED if validity == INVALID else validity, *rest


def _planned(rig: ScheduleRig, **changes: Any) -> DelassusMatrix:
    """Send a schedule, and a joint state; the schedule before is dropped as well."""
    rig.plan(**changes)
    return rig.ask(None)


def _schedules() -> Iterator[tuple[object, ...]]:
    refused = Reason.NO_CONTACTS_RECEIVED | Reason.CONTACTS_MALFORMED
    for changes, words in (
        ({"times": [0.0, 0.04, 0.02, 0.06]}, "mode 1 begins at 0.04 s and ends at 0.02 s: modes"),
        ({"end": 0.05}, "mode 3 begins at 0.06 s and ends at 0.05 s: modes overlap"),
        ({"times": [0.0, 0.02, 0.02, 0.06]}, "modes overlap"),
        ({"times": [0.0, math.nan, 0.04, 0.06]}, "has time nan s; expected finite times"),
        ({"end": math.inf}, "has time inf s; expected finite times of less than 2^31 s"),
        ({"end": 1e300}, "has time 1e+300 s; expected finite times of less than 2^31 s"),
        ({"times": [-3e9, 0.02, 0.04, 0.06]}, "has time -3e+09 s"),
        ({"times": []}, "has no modes"),
        ({"status": [2]}, "has 1 status values; expected 16, for 4 modes of 4 contacts"),
        ({"status": [4] * 16}, "has status 4; expected one of UNKNOWN=0"),
        ({"names": ["LF", "LF", "LH", "RH"]}, "lists contact 'LF' more than once"),
        ({"at": None}, "has no stamp, from which its times would count"),
    ):
        yield (
            f"schedule {changes}", lambda r, c=changes: _planned(r, **c), INVALID, refused, words,
        )  # fmt: skip
    stale = Reason.NO_CONTACTS_RECEIVED | Reason.CONTACTS_STALE
    long = {"times": [0.0], "end": 10.0, "status": [ACTIVE] * 4}
    for name, act, words in (
        ("ended", _ended_plan, "ended 0.12 s before the joint state"),
        ("begins later", lambda r: _planned(r, at=10), "begins 0.01 s after the joint state"),
        ("late", lambda r: late(r, lambda: _planned(r, **long)), "has come for 0.6 s, at most"),
        ("old", lambda r: (r.plan(**long), r.wait(600), r.ask(None))[2], "has come for 0.6 s"),
    ):
        yield name, act, INVALID, stale, words
    yield "older plan", _overtaken_plan, OK, Reason.NONE, ""


def _ended_plan(rig: ScheduleRig) -> DelassusMatrix:
    """Send a plan of 200 ms ago, which is newer than the one before."""
    rig.wait(300)
    return _planned(rig, at=-200)


def _overtaken_plan(rig: ScheduleRig) -> DelassusMatrix:
    """Send a plan of 20 ms ago without contacts, after a newer one."""
    rig.plan(at=-20, status=[INACTIVE] * 16)
    return rig.ask(("LF", "RH"))


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
        ({"child": "bse"}, "unknown frame 'bse'; did you mean 'base'"),
        ({"child": ""}, "of which link it is: set the parameter orientation.frame to that link"),
    ):
        yield (
            f"odometry {options}", lambda r, o=options: _turned(r, **o), INVALID,
            Reason.ORIENTATION_INVALID, words,
        )  # fmt: skip
    yield (
        "no estimate", lambda r: _sensed(r, unknown=True), INVALID, Reason.ORIENTATION_INVALID,
        "the orientation of the base is refused: the Imu says that it has none",
    )  # fmt: skip
    yield (
        "apart from the joints", lambda r: _sensed(r, 19, unmeasured=True), DEGRADED,
        Reason.ORIENTATION_STALE, "is 0.02 s away from the joint positions, and its source does",
    )  # fmt: skip


_OF_ANY_ROBOT = {
    "position nan", "a joint twice", "no stamp", "stamp back", "stamp ahead", "old",
    "30 ms ahead of /clock", "31 ms ahead of /clock", "after a jump of the clock",
    "of another robot, beside whole ones", "no joints, beside whole ones", "silent",
    "silent but for another robot",
}  # fmt: skip


def _geared() -> Iterator[tuple[object, ...]]:
    """Joint states of a robot with gears and a lift on a four-bar."""
    names = [*LEGS, "LIFT_CRANK"]
    for lacking, words in (
        ("LIFT_CRANK", "loop 'LIFT': none of its joints is measured; measure 1 of"),
        ("LF_KFE", "LF_KFE_GEAR': none of its joints is measured; measure 1"),
    ):
        some = [name for name in names if name != lacking]
        yield (
            f"{lacking} missing", lambda r, some=some: _alone(r, *some), INVALID,
            Reason.JOINT_MISSING, words,
        )  # fmt: skip
    yield from (row for row in _joint_states() if row[0] in _OF_ANY_ROBOT)
    yield (
        "a rotor that contradicts", _turned_rotor, DEGRADED, Reason.LOOP_INCONSISTENT,
        "coupling 'LF_KFE_GEAR': joint 'LF_KFE_ROTOR' is measured 0.3 from where the others",
    )  # fmt: skip


def _turned_rotor(rig: Rig) -> DelassusMatrix | None:
    """Send a joint state whose rotor is not where the joint behind its gear is."""
    turned = rig.truth(rig.now + 501 * MS)["LF_KFE_ROTOR"] + 0.3
    return _alone(rig, *rig.joints, LF_KFE_ROTOR=turned)


def _mirrored(rig: Rig) -> DelassusMatrix | None:
    """Send the positions of the other assembly of a four-bar."""
    coupler, rocker = assembled(rig.truth(rig.now + 501 * MS)["crank"], -1.0)
    return _alone(rig, *rig.joints, coupler=coupler, rocker=rocker)


def _four_bar() -> Iterator[tuple[object, ...]]:
    yield (
        "mirrored", _mirrored, INVALID, Reason.LOOP_WRONG_BRANCH,
        "loop 'knee': closed, but on another branch than the ref",
    )  # fmt: skip
    yield (
        "a joint in no loop missing", lambda r: _alone(r, "crank"), INVALID, Reason.JOINT_MISSING,
        "joint 'arm' is in no loop and must be measured",
    )  # fmt: skip


def _driven() -> Iterator[tuple[object, ...]]:
    """Joint states of the rocker, which does not reach all angles."""
    reach = reach_of_the_rocker()[1]
    yield (
        "out of reach", lambda r: _alone(r, *r.joints, rocker=reach + 0.3), INVALID,
        Reason.LOOP_NOT_CLOSED, "loop 'knee': does not close at the measured positions",
    )  # fmt: skip
    yield (
        "dead point", lambda r: _alone(r, *r.joints, rocker=reach), INVALID,
        Reason.LOOP_SINGULAR, "singular",
    )  # fmt: skip


def _placed(rig: MovingRig, *poses: object, **options: Any) -> DelassusMatrix | None:
    """Send placements, and a joint state."""
    place(rig, *poses, **options)
    return rig.send(at=1)


def _placements() -> Iterator[tuple[object, ...]]:
    here = (0, 0, 0)
    for name, names, poses, words in (
        ("nan", ("rolls",), [((math.nan, 0, 0), LEVEL)],
         "'rolls' is refused: its position is nan, 0, 0; "),
        ("far", ("rolls",), [((0, 2e3, 0), LEVEL)], "is 0, 2000, 0; expected less than 1000 m"),
        ("no rotation", ("slides", "rolls"), [(here, (0, 0, 0, 0.5)), (here, LEVEL)],
         "'slides' is refused: its orientation is 0, 0, 0, 0.5; expected a unit quaternion"),
        ("twice", ("rolls", "rolls"), [(here, LEVEL)] * 2, "'rolls' is listed more than once"),
        ("lengths", ("rolls",), [], "they have 1 names but 0 poses"),
    ):  # fmt: skip
        yield (
            name, lambda r, n=names, p=poses: _placed(r, *p, names=n), INVALID,
            Reason.PLACEMENT_INVALID, words,
        )  # fmt: skip


def _spoilt(rig: MotionRig, field: str, value: float) -> ContactDynamics:
    """Send a joint state with one velocity or effort of joint LF_HFE."""
    values = {"velocity": rig.rates, "effort": rig.efforts}[field].copy()
    values[1] = value
    return beside(rig, **{field: values.tolist()})


def _motion() -> Iterator[tuple[object, ...]]:
    """What is beside the position in joint states."""
    for count in (0, 3):
        yield (
            f"{count} velocities", lambda r, n=count: beside(r, velocity=[0.0] * n), INVALID,
            Reason.VELOCITY_MISSING, "do not have a velocity for each",
        )  # fmt: skip
    for value in (math.nan, math.inf, 2e6):
        yield (
            f"velocity {value}", lambda r, v=value: _spoilt(r, "velocity", v), INVALID,
            Reason.VELOCITY_NOT_FINITE, f"'LF_HFE' is {value:g}",
        )  # fmt: skip
    yield (
        "no efforts", lambda r: beside(r, effort=[]), INVALID, Reason.TORQUE_MISSING,
        "do not have an effort for each",
    )  # fmt: skip
    yield (
        "effort nan", lambda r: _spoilt(r, "effort", math.nan), INVALID, Reason.TORQUE_INVALID,
        "'LF_HFE' is nan",
    )  # fmt: skip


def _beyond_limits() -> Iterator[tuple[object, ...]]:
    """Velocities and efforts of joints with limits of 20 rad/s and 35 N·m; ten times is OK."""
    for field, value, words in (
        ("velocity", 2e5, "the velocity of joint 'LF_HFE' is 200000 rad/s, and at most 200 rad/s"),
        ("effort", -2e11, "the effort of joint 'LF_HFE' is -2e+11 N·m, and at most 350 N·m"),
    ):
        yield (
            f"{field} {value}", lambda r, f=field, v=value: _spoilt(r, f, v), DEGRADED,
            Reason.JOINT_OUTSIDE_LIMITS, words,
        )  # fmt: skip
    yield "velocity 199", lambda r: _spoilt(r, "velocity", 199.0), OK, Reason.NONE, ""
    yield "effort 349", lambda r: _spoilt(r, "effort", 349.0), OK, Reason.NONE, ""
    yield (
        "degrees per second", lambda r: beside(r, velocity=np.degrees(r.rates + 4.0).tolist()),
        DEGRADED, Reason.JOINT_OUTSIDE_LIMITS | Reason.FORCES_STRIKING,
        "(6 more joints likewise): it is in another unit",
    )  # fmt: skip


def _moved(rig: MotionRig, *args: Any, **options: Any) -> ContactDynamics:
    """Send an odometry, and a joint state."""
    rig.odometry(*args, **options)
    return beside(rig)


def _twist() -> Iterator[tuple[object, ...]]:
    yield (
        "twist nan", lambda r: _moved(r, [math.nan, 0, 0, 0, 0, 0]), INVALID,
        Reason.TWIST_INVALID, "the twist of the base is refused: it is nan",
    )  # fmt: skip
    yield (
        "another link's between", lambda r: (r.odometry(child="LF_FOOT"), _moved(r))[1], DEGRADED,
        Reason.SOURCES_CONTRADICT,
        "the orientation of the base was that of frame 'LF_FOOT', and is now that of frame 'base'",
    )  # fmt: skip
    yield (
        "twist along the world's axes", _along_the_world, DEGRADED, Reason.SOURCES_CONTRADICT,
        "moves as if its linear velocity and angular velocity were along the axes of 'odom'; "
        "expected a twist along those of 'base', the child_frame_id of an Odometry",
    )  # fmt: skip


def _along_the_world(rig: MotionRig) -> ContactDynamics:
    """Send odometry of a base that moves, with its twist along the axes of the world."""
    from motion_support import base_at

    for k in range(30):
        rig.wait(100)
        rig.touch(*FEET)
        position, orientation = base_at(0.1 * (k + 1))
        rig.odometry(position=position, orientation=orientation)
    return beside(rig)


def _pushed(rig: MotionRig, *args: Any, **options: Any) -> ContactDynamics:
    """Send torques, and a joint state."""
    rig.torques(*args, **options)
    return beside(rig, effort=[])


def _torques() -> Iterator[tuple[object, ...]]:
    for name, names, efforts, words in (
        ("unknown joint", ["LF_HFF"], [1.0], "unknown joint 'LF_HFF'; did you mean 'LF_HFE'"),
        ("nan", ["LF_HFE"], [math.nan], "'LF_HFE' is nan"),
        ("lengths", ["LF_HFE"], [], "1 names but 0 efforts"),
        ("a joint twice", ["LF_HFE"] * 2, [1.0, 1.0], "more than once"),
        ("beyond any torque", ["LF_HFE"], [2e12], "'LF_HFE' is 2000000000000.0; expected a"),
    ):
        yield (
            name, lambda r, n=names, e=efforts: _pushed(r, n, e), INVALID, Reason.TORQUE_INVALID,
            words,
        )  # fmt: skip
    yield (
        "beyond the limit", lambda r: _pushed(r, ["LF_HFE"], [400.0]), DEGRADED,
        Reason.JOINT_OUTSIDE_LIMITS, "the effort of joint 'LF_HFE' is 400 N·m, and at most 350",
    )  # fmt: skip


def _forces() -> Iterator[tuple[object, ...]]:
    """The shank of two contacts turns, in a rig of :func:`motion_support.contradicting`."""
    yield (
        "contradiction", lambda r: beside(r, velocity=[0.0, 0.0, 2.0, *[0.0] * 9]), DEGRADED,
        Reason.FORCES_INFEASIBLE, "no contact forces obey the law: contacts 'LF', 'RF' cannot be",
    )  # fmt: skip


def _sensor(standing: Standing, send: str, *args: Any, **options: Any) -> LastEstimate:
    """Send good messages of all sensors, then one of a sensor, and a joint state.

    The sensor has sent nothing before, so that no stamp jumps back.
    """
    standing.wait(2)
    standing.sense()
    topic = {"wrench": "wrenches/LF_FOOT"}.get(send, send)
    if not {"stamp", "delay"}.isdisjoint(options):
        standing.estimation.inputs.by_topic[topic].reset()
    if options.get("stamp"):
        options["stamp"] += standing.now
    getattr(standing, send)(*args, **options)
    return standing.joints()


def _sensors(send: str, stale: Reason, invalid: Reason) -> Iterator[tuple[object, ...]]:
    for fault, options, validity, reason, words in (
        ("old", {"stamp": -600 * MS}, INVALID, stale, "0.6 s old, at most 0.5 s are allowed"),
        ("late", {"stamp": 0, "delay": 3500 * MS}, INVALID, stale, "3.5 s"),
        ("stamp ahead", {"stamp": 300 * MS}, DEGRADED, Reason.STAMP_IN_FUTURE, "0.3 s ahead of"),
        ("no stamp", {"stamp": 0}, DEGRADED, Reason.STAMP_INVALID, "without a valid stamp"),
        ("other frame", {"frame": "RF_FOOT"}, INVALID, invalid, "frame 'RF_FOOT', expected '"),
    ):  # fmt: skip
        yield fault, lambda r, o=options: _sensor(r, send, **o), validity, reason, words
    yield (
        "stamp back", lambda r: _older_sensor(r, send), DEGRADED, Reason.STAMP_JUMPED_BACK,
        "jumped back by 0.08 s",
    )  # fmt: skip


def _older_sensor(standing: Standing, send: str) -> LastEstimate:
    """Send a message of 80 ms ago after a newer one, and a joint state."""
    standing.wait(2)
    standing.sense()
    getattr(standing, send)(stamp=standing.now - 80 * MS)
    return standing.joints()


def _wrench() -> Iterator[tuple[object, ...]]:
    yield from _sensors("wrench", Reason.WRENCH_STALE, Reason.WRENCH_INVALID)
    yield (
        "stuck", lambda r: _sensor(r, "wrench", 0.0, 0.0, 0.0), DEGRADED,
        Reason.SENSORS_CONTRADICT,
        "the sensor of LF_FOOT contradicts the other measurements by",
    )  # fmt: skip


def _imu() -> Iterator[tuple[object, ...]]:
    yield from _sensors("imu", Reason.IMU_STALE, Reason.IMU_INVALID)
    yield (
        "no acceleration", lambda r: _sensor(r, "imu", unknown=True), INVALID, Reason.IMU_INVALID,
        "the message says that it has none",
    )  # fmt: skip


def _estimator_base() -> Iterator[tuple[object, ...]]:
    yield (
        "other world", lambda r: _sensor(r, "odometry", "camera_optical_frame"), INVALID,
        Reason.ORIENTATION_INVALID, "it is in frame 'camera_optical_frame', expected 'odom'",
    )  # fmt: skip


def _one_joint(standing: Standing, effort: float = 0.0, velocity: float = 0.0) -> LastEstimate:
    """Send a joint state with the effort or the velocity of one joint far off."""
    standing.wait(2)
    standing.sense()
    is_one = np.arange(12) == 5
    return standing.joints(standing.torques + effort * is_one, velocity * is_one)


def _estimator_joints() -> Iterator[tuple[object, ...]]:
    yield (
        "effort that contradicts", lambda r: _one_joint(r, 60.0), DEGRADED,
        Reason.SENSORS_CONTRADICT, "the effort of joint 'RF_KFE' contradicts",
    )  # fmt: skip
    yield (
        "effort beyond the limit", lambda r: _one_joint(r, 2e11), INVALID,
        Reason.JOINT_OUTSIDE_LIMITS, "the effort of joint 'RF_KFE' is 2e+11 N·m, and at most 350",
    )  # fmt: skip
    yield (
        "velocity beyond the limit", lambda r: _one_joint(r, velocity=201.0), INVALID,
        Reason.JOINT_OUTSIDE_LIMITS, "the velocity of joint 'RF_KFE' is 201 rad/s, and at",
    )  # fmt: skip


FAULTS = [
    Fault(rig, topic, *row)  # type: ignore[arg-type]
    for rig, topic, rows in (
        ("", "joint_states", _joint_states()),
        ("", "active_contacts", _contacts()),
        ("all rows", "active_contacts", _of_all_rows(_contacts())),
        ("schedule", "contact_schedule", _schedules()),
        ("world", "odometry", _odometry()),
        ("geared", "joint_states", _geared()),
        ("four-bar", "joint_states", _four_bar()),
        ("driven rocker", "joint_states", _driven()),
        ("moving contacts", "contact_placements", _placements()),
        ("motion", "joint_states", _motion()),
        ("motion with limits", "joint_states", _beyond_limits()),
        ("motion", "odometry", _twist()),
        ("motion by topic", "joint_torques", _torques()),
        ("motion with forces", "joint_states", _forces()),
        ("estimator", "wrenches/LF_FOOT", _wrench()),
        ("estimator", "imu", _imu()),
        ("estimator", "odometry", _estimator_base()),
        ("estimator", "joint_states", _estimator_joints()),
        *shared(),
        ("all rows", "active_contacts", _of_all_rows(next(shared())[2])),
    )
    for row in rows
]
BY_NAME = {f"{f.rig} {f.topic}: {f.name}".strip(): f for f in FAULTS}
