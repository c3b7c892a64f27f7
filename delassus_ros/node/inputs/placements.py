"""Where contacts are that move on their links, each with an age of its own.

Knows no ROS: names, positions and quaternions x, y, z, w go in. Stamps and times are integers, ns.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np

from delassus_ros.errors import SAID, UnknownNames
from delassus_ros.model.spatial import Array
from delassus_ros.node.inputs.arrival import Arrival
from delassus_ros.node.reasons import Complaint, InputHealth, Reason
from delassus_ros.problem import Problem

FARTHEST = 1e3
"""No contact is further from the origin of its link [m]."""
_UNIT_TOLERANCE = 1e-3
_POSITIONS, _ORIENTATIONS = "contact_positions", "contact_orientations"


@dataclass(slots=True)
class _Known:
    """What is known of a contact: whether it has a place, and since when."""

    refusal: str = ""
    stamp: int = 0
    arrival: Arrival = field(default_factory=Arrival)


class PlacementInput:
    """The latest placements of the moving contacts of a problem.

    A message that contradicts itself is refused: contacts that it lists have no placement until
    the next good one.

    Parameters
    ----------
    problem : has moving contacts.
    timeout : age after which a placement is too old [s]; infinite for never. It counts from its
        stamp, and without one from when it was sent.

    Attributes
    ----------
    timeout : as given.
    """

    def __init__(self, problem: Problem, timeout: float = math.inf) -> None:
        self.timeout = timeout
        self._row = {name: k for k, name in enumerate(problem.moving)}
        self._turned_row = {name: k for k, name in enumerate(problem.turning)}
        self._strangers = UnknownNames("moving contact", self._row)
        self._own = problem.placements
        self.forget()

    def forget(self) -> None:
        """Have no placements, as before the first message."""
        self._values = {name: np.array(values) for name, values in self._own.items()}
        self._known: dict[str, _Known] = {}
        self._text = ""
        self._latest = Arrival()

    def restart(self, now: int) -> None:
        """Let the present placements count as new, as when the clock was set."""
        self._latest.restart(now)
        for known in self._known.values():
            known.stamp = 0
            known.arrival.restart(now)

    def adopt(self, other: PlacementInput) -> None:
        """Take over what another one knows of contacts of the same names; they get no younger."""
        for ports, row, others in (
            (_POSITIONS, self._row, other._row),
            (_ORIENTATIONS, self._turned_row, other._turned_row),
        ):
            for name in row.keys() & others.keys() & other._known.keys():
                self._values[ports][row[name]] = other._values[ports][others[name]]
                self._known[name] = deepcopy(other._known[name])
        self._latest = deepcopy(other._latest)

    def read(
        self,
        names: Sequence[str],
        positions: Sequence[Sequence[float]],
        orientations: Sequence[Sequence[float]],
        now: int,
        stamp: int = 0,
        delay: int = 0,
    ) -> Complaint | None:
        """Take placements of the contacts that are named.

        Parameters
        ----------
        positions, orientations : one each per name: x, y, z [m] and x, y, z, w in the frame that
            the contact is fixed to.
        now : time of the node's clock; 0 while that has no time yet.
        stamp : their stamp; 0 or less if they have none.
        delay : how long before they were sent.

        Returns
        -------
        None, or what is wrong. Contacts that do not move are passed over.
        """
        self._latest.note(now, delay)
        refusal = self._refusal(names, positions, orientations)
        strangers = [name for name in names if name not in self._row]
        for name in names:
            if name in self._row:
                known = self._known.setdefault(name, _Known())
                known.refusal, known.stamp = refusal, max(stamp, 0)
                known.arrival.note(now, delay)
        self._text = refusal
        if refusal:
            return Complaint(Reason.PLACEMENT_INVALID, refusal)
        for name, position, turn in zip(names, positions, orientations, strict=True):
            if name in self._row:
                self._values[_POSITIONS][self._row[name]] = position
            if name in self._turned_row:
                unit = np.array(turn) / math.hypot(*turn)
                self._values[_ORIENTATIONS][self._turned_row[name]] = unit
        if strangers:
            self._text = f"placement of {self._strangers.words(strangers[0])}; it is ignored"
            return Complaint(Reason.UNKNOWN_CONTACT, self._text)
        return None

    def complaint(self, active: Iterable[str], now: int) -> Complaint | None:
        """Return why there is no matrix of the active contacts, or None if there is one."""
        for name in active:
            if name not in self._row:
                continue
            known = self._known.get(name)
            if known is None:
                return Complaint(
                    Reason.PLACEMENT_MISSING,
                    f"contact {name!r} is active and moves, and nothing has said yet where it is",
                )
            if known.refusal:
                return Complaint(Reason.PLACEMENT_INVALID, known.refusal)
            if not known.arrival.within(1e9 * self.timeout, now, known.stamp):
                return Complaint(
                    Reason.PLACEMENT_STALE,
                    f"the placement of contact {name!r} is "
                    f"{known.arrival.age(now, known.stamp):.4g} s old, at most {self.timeout:g} s "
                    "are allowed (contacts_timeout); who publishes it has to repeat it at 10 Hz "
                    "or more, with a new stamp each time",
                )
        return None

    def write(self, inputs: Mapping[str, Array]) -> None:
        """Write all placements to the inputs of a kernel; those that are missing as configured."""
        for name, values in self._values.items():
            inputs[name][...] = values

    def health(self, now: int) -> InputHealth:
        """Return what is known of them, but for their topic."""
        ages = [known.arrival.age(now, known.stamp) for known in self._known.values()]
        silence = self._latest.age(now)
        received = self._latest.since(now) is not None
        refusals = [known.refusal for known in self._known.values() if known.refusal]
        absent = [name for name in self._row if name not in self._known]
        text = self._text or (refusals[0] if refusals else "")
        if received and not text and absent:
            text = f"nothing has said where contact {absent[0]!r} is"
        return InputHealth(
            "contact placements", "", 0, max(ages, default=silence), silence, self.timeout,
            received, text,
        )  # fmt: skip

    def _refusal(
        self,
        names: Sequence[str],
        positions: Sequence[Sequence[float]],
        orientations: Sequence[Sequence[float]],
    ) -> str:
        """Return why placements are refused; empty if they are not."""
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
        shown = ", ".join(f"{value:.6g}" for value in values)
        return (
            f"the placement of contact {name!r} is refused: its {what} is {shown}; expected "
            f"{expected}"
        )
