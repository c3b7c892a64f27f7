"""Placements of contacts that move on their links, with an age per contact.

Knows no ROS: names, positions and quaternions x, y, z, w go in.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from delassus.errors import SAID, UnknownNames
from delassus.model.spatial import Array
from delassus.problem import Problem
from delassus_ros.inputs.findings import Finding, Reason, doubtful
from delassus_ros.inputs.input import Faults, Input, Latest, Words, shown, stamp_in
from delassus_ros.inputs.sources import PublisherWatch, two_publishers
from delassus_ros.ros.health import InputHealth

FARTHEST = 1e3
"""Largest distance of a contact from the origin of its link [m]."""
_UNIT_TOLERANCE = 1e-3
_POSITIONS, _ORIENTATIONS = "contact_positions", "contact_orientations"


_WORDS = Words(
    "contact placements", "the placements of contacts", "are", "contacts_timeout",
    "no placements of contacts have arrived yet",
)  # fmt: skip
_FAULTS = Faults(Reason.PLACEMENT_MISSING, Reason.PLACEMENT_INVALID, Reason.PLACEMENT_STALE)


class _Known(Latest):
    """Age, order and publishers of a contact's placements, and why the latest was refused."""

    __slots__ = ("publishers", "refusal")

    def __init__(self) -> None:
        super().__init__()
        self.refusal = ""
        self.publishers = PublisherWatch()

    def restart(self, now: int) -> None:
        """See :meth:`Latest.restart`."""
        super().restart(now)
        self.publishers.reset()


class PlacementInput(Input):
    """The latest placements of the moving contacts of a problem.

    Several publishers may send placements of different contacts; two publishers of one contact
    are a reason for doubt. A placement older than the present one of its contact is ignored. A
    message that contradicts itself is refused: its contacts have no placement until the next good
    message.

    Parameters
    ----------
    timeout : age above which a placement is too old [s]; infinite for never. The age counts from
        the stamp, or from the time of sending where the message has no stamp.
    """

    topic = "contact_placements"

    def __init__(self, problem: Problem, timeout: float = math.inf) -> None:
        self._row = {name: k for k, name in enumerate(problem.moving)}
        self._turned_row = {name: k for k, name in enumerate(problem.turning)}
        self._unknown_names = UnknownNames("moving contact", self._row)
        self._configured = problem.placements
        super().__init__(_WORDS, _FAULTS, timeout)

    def reset(self) -> None:
        """Return to the state before the first message."""
        super().reset()
        self._values = {name: np.array(values) for name, values in self._configured.items()}
        self._known: dict[str, _Known] = {}
        self._text, self._count = "", 0

    def restart(self, now: int) -> None:
        """Count the ages of the present placements from now on, e.g. after the clock was set."""
        self.latest.restart(now)
        for known in self._known.values():
            known.restart(now)

    def adopt(self, other: PlacementInput) -> None:
        """Copy the placements of contacts of the same names, with their ages, from `other`."""
        for ports, row, others in (
            (_POSITIONS, self._row, other._row),
            (_ORIENTATIONS, self._turned_row, other._turned_row),
        ):
            for name in row.keys() & others.keys() & other._known.keys():
                self._values[ports][row[name]] = other._values[ports][others[name]]
                self._known[name] = deepcopy(other._known[name])
        self.latest = deepcopy(other.latest)

    def note_publisher(self, now: int, count: int) -> None:
        """Note the count of the next message; see :meth:`Input.note_publisher`.

        The count belongs to all contacts that the message lists.
        """
        self._count = count

    def accept(self, message: Any, now: int, delay: int = 0) -> Finding | None:
        """Accept a delassus_msgs/ContactPlacements; see :meth:`Input.accept`.

        Contacts that do not move are ignored.
        """
        names, stamp = message.names, stamp_in(message)
        positions, orientations = places_of(message)
        self.latest.note(stamp, now, delay)
        refusal = self._refusal(names, positions, orientations)
        unknown = [name for name in names if name not in self._row]
        taken = []
        for k, name in enumerate(names):
            if name in self._row:
                known = self._known.setdefault(name, _Known())
                if not refusal:
                    known.publishers.note(now, self._count)
                if known.overtaken(stamp, now):
                    continue
                known.note(stamp, now, delay)
                known.refusal = refusal
                if not refusal:
                    known.accept()
                    taken.append(k)
        self._text = refusal
        if refusal:
            return Finding(Reason.PLACEMENT_INVALID, refusal)
        for k in taken:
            name, turn = names[k], orientations[k]
            self._values[_POSITIONS][self._row[name]] = positions[k]
            if name in self._turned_row:
                unit = np.array(turn) / math.hypot(*turn)
                self._values[_ORIENTATIONS][self._turned_row[name]] = unit
        if unknown:
            self._text = f"placement of {self._unknown_names.words(unknown[0])}; it is ignored"
            return Finding(Reason.UNKNOWN_CONTACT, self._text)
        return None

    def fault_of(self, active: Iterable[str], now: int) -> Finding | None:
        """Return why placements of active contacts are unusable, or None if all are usable."""
        for name in active:
            if name not in self._row:
                continue
            known = self._known.get(name)
            if known is None:
                return Finding(
                    Reason.PLACEMENT_MISSING,
                    f"contact {name!r} is active and moves, and its placement has not come yet",
                )
            if known.refusal:
                return Finding(Reason.PLACEMENT_INVALID, known.refusal)
            if not known.within(self.timeout, now):
                return Finding(
                    Reason.PLACEMENT_STALE,
                    f"the placement of contact {name!r} is "
                    f"{known.age(now):.4g} s old, at most {self.timeout:g} s "
                    "are allowed (contacts_timeout); its publisher has to repeat it at 10 Hz or "
                    "more, always with a new stamp",
                )
        return None

    def doubt_of(
        self, active: Iterable[str], now: int, max_skew: float, clock_step: int
    ) -> Finding | None:
        """Return why placements of the active contacts are in doubt, or None."""
        for name in active:
            known = self._known.get(name)
            if known is None:
                continue
            subject = f"the placements of contact {name!r}"
            if known.publishers.two(now):
                text = two_publishers(self.full_topic or self.topic, subject)
                return doubtful(Reason.SOURCES_CONTRADICT, text, subject)
            found = known.doubt(subject, now, max_skew, clock_step, self.needs_stamp)
            if found is not None:
                return found
        return None

    def doubt(
        self, now: int, max_skew: float, clock_step: int = 0, stamp: int = 0
    ) -> Finding | None:
        """Return why placements of any contact are in doubt, or None; see :meth:`Input.doubt`."""
        return self.doubt_of(self._known, now, max_skew, clock_step)

    def write(self, inputs: Mapping[str, Array]) -> None:
        """Write all placements to the inputs of a kernel; missing ones as configured."""
        for name, values in self._values.items():
            inputs[name][...] = values

    def health(self, now: int) -> InputHealth:
        """Return the health of the placements, without the name of their topic."""
        latest = self.latest
        ages = [known.age(now) for known in self._known.values()]
        silence, received = latest.silence(now), latest.received
        refusals = [known.refusal for known in self._known.values() if known.refusal]
        absent = [name for name in self._row if name not in self._known]
        text = self._text or (refusals[0] if refusals else "")
        if received and not text and absent:
            text = f"no placement of contact {absent[0]!r} has come"
        return InputHealth(
            self.words.name, "", 0, max(ages, default=silence), silence, self.timeout,
            received, text,
        )  # fmt: skip

    def _refusal(
        self,
        names: Sequence[str],
        positions: Sequence[Sequence[float]],
        orientations: Sequence[Sequence[float]],
    ) -> str:
        """Return why placements are refused; empty if they are accepted."""
        if len(names) != len(positions):
            return (
                f"placements of contacts are refused: they have {len(names)} names but "
                f"{len(positions)} poses"
            )
        if len(set(names)) < len(names):
            twice = next(name for k, name in enumerate(names) if name in names[:k])
            return (
                f"placements of contacts are refused: {twice[:SAID]!r} is listed more than once"
            )
        for name, position, turn in zip(names, positions, orientations, strict=True):
            # Written so that NaN is refused.
            if name in self._row and not math.hypot(*position) <= FARTHEST:
                return self._refused(name, "position", position, f"less than {FARTHEST:g} m")
            if name in self._turned_row and not abs(math.hypot(*turn) - 1.0) <= _UNIT_TOLERANCE:
                return self._refused(name, "orientation", turn, "a unit quaternion x, y, z, w")
        return ""

    def _refused(self, name: str, what: str, values: Sequence[float], expected: str) -> str:
        return (
            f"the placement of contact {name!r} is refused: its {what} is {shown(values)}; "
            f"expected {expected}"
        )


def places_of(message: Any) -> tuple[list[list[float]], list[list[float]]]:
    """Return positions x, y, z and quaternions x, y, z, w of a delassus_msgs/ContactPlacements."""
    positions = [pose.position for pose in message.poses]
    turns = [pose.orientation for pose in message.poses]
    return [[p.x, p.y, p.z] for p in positions], [[o.x, o.y, o.z, o.w] for o in turns]
