"""Faults of age, stamps, order and publishers, which all inputs share, as rows of the fault table.

Beside them stand the constants of all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from delassus_ros.inputs.findings import Reason, Validity

if TYPE_CHECKING:
    from delassus_msgs.msg import ContactDynamics
    from motion_support import MotionRig
    from tick_support import MovingRig, Rig

FEET = ("LF", "RF", "LH", "RH")
OK, DEGRADED, INVALID = Validity.OK, Validity.DEGRADED, Validity.INVALID
INACTIVE, ACTIVE = 1, 2
MS = 1_000_000
LEVEL = (0.0, 0.0, 0.0, 1.0)


def place(
    rig: MovingRig, *poses: object, names: tuple[str, ...] = ("rolls",), at: float | None = 0.0
) -> None:
    """Send placements, of which there may be less than names."""
    from tick_support import placed

    positions = [pose[0] for pose in poses]  # type: ignore[index]
    stamp = 0 if at is None else rig.now + round(at * MS)
    message = placed(names, positions, [pose[1] for pose in poses], stamp)  # type: ignore[index]
    rig.read("contact_placements", message)


def beside(rig: MotionRig, **changes: Any) -> ContactDynamics:
    """Send a joint state; the matrix is as good as before."""
    before = rig.matrix
    matrix, dynamics = rig.send(**changes)
    assert (matrix.validity, matrix.reasons, matrix.matrix) == (OK, 0, before.matrix)
    if dynamics.validity == INVALID:
        assert all(not len(getattr(dynamics, f)) for f in ("jacobian", "mass_matrix", "contacts"))
    return dynamics


def _as_sent(rig: Any, send: Callable[[], Any], sent: int = 0, count: int = 0) -> Any:
    """Send messages as at another time [ns], or as those of this number of a publisher."""
    read = rig.read
    rig.tick.system_now = lambda: rig.now
    rig.read = lambda topic, message: read(topic, message, sent, count)
    found = send()
    rig.read = read
    return found


def late(rig: Any, send: Callable[[], Any], ms: int = 600) -> Any:
    """Send messages that waited in the middleware."""
    return _as_sent(rig, send, sent=rig.now - ms * MS)


def in_turn(rig: Any, send: Callable[[Any], Any], *counts: int) -> Any:
    """Send messages as those of these numbers; by default as two publishers that take turns.

    Return what the last one gives.
    """
    for count in counts or (7, 8, 700, 9, 701):
        rig.wait(1)
        found = _as_sent(rig, lambda: send(rig), count=count)
    return found


HOUR = 3_600_000  # ms


def _set_back(rig: Any, send: Callable[[Any, float | None], object]) -> None:
    """Send a message at a time to which the clock has to come again."""
    rig.wait(HOUR)
    send(rig, None)
    rig.wait(-HOUR)


def _before_time(rig: Any, send: Callable[[Any, float | None], object]) -> None:
    """Send a message while the clock of a simulation has no time yet."""
    now, rig.now = rig.now, 0
    rig.tick.clock_jumped()
    send(rig, None)
    rig.now = now


def _in_time(
    send: Callable[[Any, float | None], object],
    answer: Callable[[Any], Any],
    subject: str,
    missing: Reason,
    stale: Reason,
    rest: Callable[[Any], object],
    older: Callable[[Any], object] | None = None,
    needs_stamp: bool = True,
    old: str = "or the clock of their host is behind",
) -> Iterator[tuple[object, ...]]:
    """Faults of every input besides joint states.

    `send` sends a message stamped so many ms from now, or without a stamp; `rest` sends all other
    inputs; `older` sends a message of 80 ms ago whose content must not count.
    """

    def after(first: Callable[[Any], object]) -> Callable[[Any], Any]:
        return lambda r: (first(r), answer(r))[1]

    stamps = f"the stamps of {subject}"
    yield (
        "no stamp", after(lambda r: send(r, None)), DEGRADED if needs_stamp else OK,
        Reason.STAMP_INVALID if needs_stamp else Reason.NONE,
        f"{subject} came without a valid stamp" if needs_stamp else "",
    )  # fmt: skip
    ahead = f"{stamps} are 0.05 s ahead of this node's clock"
    yield (
        "stamp ahead", after(lambda r: send(r, 50)), DEGRADED, Reason.STAMP_IN_FUTURE, ahead
    )  # fmt: skip
    yield (
        "stamp ahead, used later", after(lambda r: (send(r, 50), r.wait(60))), DEGRADED,
        Reason.STAMP_IN_FUTURE, ahead,
    )  # fmt: skip
    yield (
        "stamp back", after(older or (lambda r: send(r, -80))), DEGRADED,
        Reason.STAMP_JUMPED_BACK, f"{stamps} jumped back by 0.08 s",
    )  # fmt: skip
    yield "old", after(lambda r: (r.wait(900), rest(r), send(r, -600))), INVALID, stale, old
    yield "late", after(lambda r: late(r, lambda: send(r, None))), INVALID, stale, " 0.6 s"

    def silent(first: Callable[[Any], object]) -> Callable[[Any], Any]:
        return after(lambda r: (first(r), r.wait(600), rest(r)))

    def used(first: Callable[..., None]) -> Callable[[Any], Any]:
        """A message counts as new at its first use, and grows old from then on."""

        def act(rig: Any) -> None:
            first(rig, send)
            rest(rig)
            assert answer(rig).validity != INVALID

        return silent(act)

    yield "silent", silent(lambda r: send(r, None)), INVALID, stale, " 0.6 s"
    yield (
        "silent, stamp ahead", silent(lambda r: send(r, 1000)), INVALID,
        stale | (Reason.NONE if needs_stamp else Reason.STAMP_IN_FUTURE), " 0.6 s",
    )  # fmt: skip
    yield "clock set back", used(_set_back), INVALID, stale, " 0.6 s"
    yield "before the clock began", used(_before_time), INVALID, stale, " 0.6 s"
    yield (
        "clock jumped", after(lambda r: (r.tick.clock_jumped(), rest(r))), INVALID, missing,
        "contact 'rolls'" if missing is Reason.PLACEMENT_MISSING else " arrived yet",
    )  # fmt: skip
    for at, validity, reason, words in (
        (30, OK, Reason.NONE, ""),
        (31, DEGRADED, Reason.STAMP_IN_FUTURE,
         f"{stamps} are 0.031 s ahead of /clock, which goes on by up to 0.025 s at once"),
    ):  # fmt: skip
        yield (
            f"{at} ms ahead of /clock",
            after(lambda r, at=at: (r.tick.inputs.set_clock_step(25 * MS), send(r, at))),
            validity, reason, words,
        )  # fmt: skip
    yield (
        "two publishers", after(lambda r: in_turn(r, lambda r: send(r, 0))), DEGRADED,
        Reason.SOURCES_CONTRADICT, f" send {subject}, and nothing tells which of them is right",
    )  # fmt: skip
    yield (
        "restarted publishers",
        after(lambda r: in_turn(r, lambda r: send(r, 0), 1, 1, 2, 3, 1, 2, 3)), OK, Reason.NONE,
        "",
    )  # fmt: skip


def _older_set(rig: Rig) -> None:
    """Send an older set of contacts, which must not replace the newer one."""
    touching, status = rig.touching, rig.status
    rig.touch("LF", at=-80)
    rig.touching, rig.status = touching, status


def shared() -> Iterator[tuple[str, str, Iterator[tuple[object, ...]]]]:
    """Yield rig, topic and rows."""
    here = (0, 0, 0.01), LEVEL
    yield "", "active_contacts", _in_time(
        lambda r, at: r.touch(*FEET, at=at), lambda r: r.send(at=1), "the set of active contacts",
        Reason.NO_CONTACTS_RECEIVED, Reason.CONTACTS_STALE, lambda r: None, _older_set,
        needs_stamp=False,
        old="the set of active contacts is 0.6 s old by its stamp; or the clock of their host",
    )  # fmt: skip
    yield "world", "odometry", _in_time(
        lambda r, at: r.turn(LEVEL, at=at), lambda r: r.send(at=1), "the orientation of the base",
        Reason.ORIENTATION_MISSING, Reason.ORIENTATION_STALE, lambda r: r.touch(*FEET),
    )  # fmt: skip
    yield "moving contacts", "contact_placements", _in_time(
        lambda r, at: place(r, here, at=at), lambda r: r.send(at=1),
        "the placements of contact 'rolls'", Reason.PLACEMENT_MISSING, Reason.PLACEMENT_STALE,
        lambda r: (r.touch("rolls", "slides", "stays"), place(r, here, names=("slides",))),
        lambda r: place(r, ((0.5, 0, 0), LEVEL), at=-80), old="is 0.6 s old, at most 0.5 s",
    )  # fmt: skip
    yield "motion", "odometry", _in_time(
        lambda r, at: r.odometry(at=at), beside, "the orientation of the base",
        Reason.ORIENTATION_MISSING, Reason.ORIENTATION_STALE, lambda r: r.touch(*FEET),
    )  # fmt: skip
    yield "motion by topic", "joint_torques", _in_time(
        lambda r, at: r.torques(at=at), lambda r: beside(r, effort=[]), "the torques",
        Reason.TORQUE_MISSING, Reason.TORQUE_STALE, lambda r: (r.touch(*FEET), r.odometry()),
    )  # fmt: skip
