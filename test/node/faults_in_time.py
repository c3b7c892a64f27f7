"""Faults of age, stamps, order and publishers, which all inputs share, as rows of the fault table.

Beside them stand the constants of all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from delassus_ros.node.reasons import Reason, Validity

if TYPE_CHECKING:
    from delassus_msgs.msg import ContactDynamics
    from motion_support import MotionRig
    from pipeline_support import MovingRig, Rig

FEET = ("LF", "RF", "LH", "RH")
OK, DEGRADED, INVALID = Validity.OK, Validity.DEGRADED, Validity.INVALID
INACTIVE, ACTIVE = 1, 2
MS = 1_000_000
LEVEL = (0.0, 0.0, 0.0, 1.0)


def place(
    rig: MovingRig, *poses: object, names: tuple[str, ...] = ("rolls",), at: float | None = 0.0
) -> None:
    """Send placements, of which there may be less than names."""
    from pipeline_support import placed

    positions = [pose[0] for pose in poses]  # type: ignore[index]
    stamp = 0 if at is None else rig.now + round(at * MS)
    message = placed(names, positions, [pose[1] for pose in poses], stamp)  # type: ignore[index]
    rig.pipeline.read("contact_placements", message)


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
    pipeline = rig.pipeline
    read, touch, answer = pipeline.read, pipeline.set_contacts, pipeline.answer
    pipeline.system_now = lambda: rig.now
    pipeline.read = lambda topic, message: read(topic, message, sent, count)
    pipeline.set_contacts = lambda message: touch(message, sent, count)
    pipeline.answer = lambda data: answer(data, sent, count)
    found = send()
    pipeline.read, pipeline.set_contacts, pipeline.answer = read, touch, answer
    return found


def late(rig: Any, send: Callable[[], Any]) -> Any:
    """Send messages that waited for 0.6 s in the middleware."""
    return _as_sent(rig, send, sent=rig.now - 600 * MS)


def in_turn(rig: Any, send: Callable[[Any], Any]) -> Any:
    """Send messages as two publishers in turn; return what the last one gives."""
    for count in (7, 8, 700, 9, 701):
        rig.wait(1)
        found = _as_sent(rig, lambda: send(rig), count=count)
    return found


def _in_time(
    send: Callable[[Any, float | None], object],
    answer: Callable[[Any], Any],
    subject: str,
    stale: Reason,
    rest: Callable[[Any], object],
    older: Callable[[Any], object] | None = None,
    needs_stamp: bool = True,
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
    yield (
        "old", after(lambda r: (r.wait(900), rest(r), send(r, -600))), INVALID, stale, "0.6 s old"
    )  # fmt: skip
    yield "late", after(lambda r: late(r, lambda: send(r, None))), INVALID, stale, " 0.6 s"
    yield (
        "two publishers", after(lambda r: in_turn(r, lambda r: send(r, 0))), DEGRADED,
        Reason.SOURCES_CONTRADICT, f" send {subject}, and nothing tells which of them is right",
    )  # fmt: skip


def _older_set(rig: Rig) -> None:
    """Send an older set of contacts, which must not replace the newer one."""
    rig.touch("LF", at=-80)
    rig.touching = FEET


def shared() -> Iterator[tuple[str, str, Iterator[tuple[object, ...]]]]:
    """Yield rig, topic and rows."""
    here = (0, 0, 0.01), LEVEL
    yield "", "active_contacts", _in_time(
        lambda r, at: r.touch(*FEET, at=at), lambda r: r.send(at=1), "the set of active contacts",
        Reason.CONTACTS_STALE, lambda r: None, _older_set, needs_stamp=False,
    )  # fmt: skip
    yield "world", "odometry", _in_time(
        lambda r, at: r.turn(LEVEL, at=at), lambda r: r.send(at=1), "the orientation of the base",
        Reason.ORIENTATION_STALE, lambda r: r.touch(*FEET),
    )  # fmt: skip
    yield "moving contacts", "contact_placements", _in_time(
        lambda r, at: place(r, here, at=at), lambda r: r.send(at=1),
        "the placements of contact 'rolls'", Reason.PLACEMENT_STALE,
        lambda r: (r.touch("rolls", "slides", "stays"), place(r, here, names=("slides",))),
        lambda r: place(r, ((0.5, 0, 0), LEVEL), at=-80),
    )  # fmt: skip
    yield "motion", "odometry", _in_time(
        lambda r, at: r.odometry(at=at), beside, "the orientation of the base",
        Reason.ORIENTATION_STALE, lambda r: r.touch(*FEET),
    )  # fmt: skip
    yield "motion by topic", "joint_torques", _in_time(
        lambda r, at: r.torques(at=at), lambda r: beside(r, effort=[]), "the torques",
        Reason.TORQUE_STALE, lambda r: (r.touch(*FEET), r.odometry()),
    )  # fmt: skip
