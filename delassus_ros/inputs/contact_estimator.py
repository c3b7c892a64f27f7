"""Active contacts without sensors: forces from efforts, rates and the base's motion.

Without contact forces the velocities would change by q̈⁰, under torques and gravity; contact forces
f make up the difference, G f = J (ẏ̇ − q̈⁰). How velocities change from one joint state to the next
is noisy, so that the difference is filtered, as in an observer of the momentum: A. De Luca and
R. Mattone, "Actuator failure detection and isolation using generalized momenta", ICRA 2003. Knows
no ROS.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from delassus.contacts import ContactSet
from delassus.errors import InputError, unknown
from delassus.measured.rate_change import LONGEST_PAUSE, RateChange
from delassus.model.spatial import Array
from delassus.problem import Problem
from delassus.scalars.ports import Status
from delassus.solver.contact_space import inertia
from delassus.solver.solver import DelassusSolver
from delassus_ros.inputs.findings import Finding, Reason
from delassus_ros.inputs.limits import Limits
from delassus_ros.inputs.motion import MotionInput
from delassus_ros.inputs.orientation import OrientationInput

INACTIVE, ACTIVE = 1, 2
"""Values of ``ActiveContacts.status``."""
_LINEAR = 3
_ORIENTATION = "base_orientation"


@dataclass(frozen=True)
class ObserverSettings:
    """Thresholds and gain of the contact estimator.

    Attributes
    ----------
    force_on, force_off : normal force above which a contact becomes active, and below which it
        becomes inactive [N].
    gain : gain of the observer [1/s]; forces follow with a delay of 1/gain.
    """

    force_on: float = 12.0
    force_off: float = 6.0
    gain: float = 400.0

    def __post_init__(self) -> None:
        """Raise InputError if force_off is not below force_on."""
        if not 0.0 <= self.force_off < self.force_on:
            raise InputError(
                f"contacts.force_off is {self.force_off} N and contacts.force_on {self.force_on} "
                "N; expected less than that, and 0 or more"
            )


class ContactEstimator:
    """Estimates the forces at all contacts of a problem, and which contacts are active.

    The normal of a contact is the axis of its third row: the z axis of the contact with axes
    ``"contact"``, the vertical with ``"world"``.

    Parameters
    ----------
    names : contacts that may become active; if empty, all that are on one frame.
    gravity : (3,), as for :class:`~delassus_ros.inputs.motion.MotionInput`.
    base : orientation and twist of a floating base; None for a fixed base.

    Attributes
    ----------
    contacts : the k contacts that may become active.
    forces : (m,) forces at these contacts, in the units of their rows; NaN before the first
        estimate.
    touches : (k,) whether the contacts are active.
    stamp : stamp of the joint state of the estimate [ns]; 0 if it has none.

    Raises
    ------
    InputError
        If a contact has fewer than three rows or is not on one frame, or a name is unknown.
    """

    def __init__(
        self,
        problem: Problem,
        settings: ObserverSettings,
        names: Sequence[str],
        gravity: tuple[float, ...],
        base: OrientationInput | None,
    ) -> None:
        known = problem.contacts.names
        for name in names:
            if name not in known:
                raise InputError(f"contacts.estimated: {unknown('contact', name, known)}")
        contacts = ContactSet(
            c for c in problem.contacts if (c.name in names if names else len(c.ends) == 1)
        )
        for contact in contacts:
            if len(contact.ends) != 1:
                raise InputError(
                    f"contact {contact.name!r} is of kind {contact.kind_name!r}, which touches "
                    "nothing: leave it out of contacts.estimated"
                )
            if contact.rows < _LINEAR:
                raise InputError(
                    f"contact {contact.name!r} has {contact.rows} rows; with contacts.source "
                    "'force' a contact needs three linear ones, the third along the normal"
                )
        observed = Problem(problem.robot, contacts, problem.axes, ("J", "qdd0"))
        self.motion = MotionInput(observed, "effort", gravity, base, math.inf)
        self._base = base if problem.axes == "world" else None
        self.contacts, self._settings = contacts, settings
        self._bound = DelassusSolver(observed).bind()
        self._change = RateChange()
        self._scales = self._bound.solution.scales()
        self._normals = [offset + 2 for offset in contacts.row_offsets[:-1]]
        self.forces = np.full(contacts.rows, np.nan)
        self.touches = np.zeros(len(contacts), dtype=np.bool_)
        self.reset()

    def reset(self) -> None:
        """Return to the state before the first joint state, e.g. after a jump of the clock."""
        self.stamp = 0
        self._change.reset()
        self._error: Array | None = None
        self.touches[:] = False
        self.forces[:] = np.nan

    def wrenches(self) -> Array:
        """Return forces [N] and moments [N·m] of the contacts, along the rows' axes (k, 6)."""
        rows = np.split(self.forces, self.contacts.row_offsets[1:-1])
        return np.array(
            [contact.selection.T @ row for contact, row in zip(self.contacts, rows, strict=True)]
        )

    @property
    def is_known(self) -> bool:
        """Whether there is an estimate."""
        return self._error is not None

    @property
    def status(self) -> list[int]:
        """Status of the contacts: ACTIVE or INACTIVE."""
        return [ACTIVE if touches else INACTIVE for touches in self.touches.tolist()]

    @property
    def probability(self) -> Array:
        """Probability that a contact is active (k,): its normal force between the thresholds."""
        on, off = self._settings.force_on, self._settings.force_off
        share = (self.forces[self._normals] - 0.5 * (on + off)) / (0.25 * (on - off))
        return np.asarray(1.0 / (1.0 + np.exp(-np.clip(share, -50.0, 50.0))))

    def update(
        self,
        q: Array,
        stamp: int,
        now: int,
        max_skew: float = Limits.max_skew,
        clock_step: int = 0,
    ) -> Finding | None:
        """Update the estimate by a joint state, whose velocities and efforts :attr:`motion` has.

        Parameters
        ----------
        q : (nq,) positions.

        Returns
        -------
        None, or why there is no estimate; :attr:`doubt` is a reason to doubt an estimate.
        """
        inputs: Mapping[str, Array] = self._bound.inputs
        inputs["q"][...] = q
        finding = self.motion.write(stamp, now, inputs, max_skew, clock_step)
        finding = finding or self.motion.implausible
        if finding is None and self._base is not None:
            finding = self._base.fault(now)
            self._base.write(stamp, inputs[_ORIENTATION], q)
        if finding is None and stamp <= 0:
            finding = Finding(
                Reason.STAMP_INVALID,
                "contacts are not estimated from joint states without a stamp",
            )
        if finding is None and self._bound.solve().status is not Status.OK:
            text = "contact forces cannot be computed at this configuration"
            finding = Finding(Reason.SOLVER_FAILED, text)
        if finding is not None:
            self.reset()
            return finding
        return self._observe(inputs["rates"], stamp)

    @property
    def doubt(self) -> Finding | None:
        """Reason to doubt the latest estimate; None for no doubt."""
        return self.motion.doubt

    def _observe(self, rates: Array, stamp: int) -> Finding | None:
        """Compare velocities with those of the previous joint state; return why not."""
        solution = self._bound.solution
        if stamp == self.stamp and self._error is not None:
            # The same instant once more: no new information.
            return None
        self.stamp = stamp
        change, passed = self._change.add(stamp, rates), self._change.span
        if change is None:
            self._error = None
            self.touches[:] = False
            self.forces[:] = np.nan
            return Finding(
                Reason.NO_CONTACTS_RECEIVED,
                "contacts are estimated from the change of velocities between two joint states, "
                "and "
                + (
                    f"the latest two are {passed:.4g} s apart, at most {LONGEST_PAUSE:g} s are "
                    "allowed"
                    if passed > 0.0
                    else "the first has just come"
                ),
            )
        found = change - solution.output("qdd0")
        if self._error is None:
            self._error = found
        else:
            step = passed * self._settings.gain
            self._error = self._error + step / (1.0 + step) * (found - self._error)
        Lambda = inertia(solution.matrix, self._scales, 0.0)
        self.forces[...] = Lambda @ (solution.output("J") @ self._error)
        normal = self.forces[self._normals]
        threshold = np.where(self.touches, self._settings.force_off, self._settings.force_on)
        self.touches[...] = normal > threshold
        return None
