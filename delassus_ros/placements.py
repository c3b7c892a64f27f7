"""The check of what is given for moving contacts, by the contacts' names."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from delassus_ros.arguments import numbers
from delassus_ros.errors import InputError, unknown
from delassus_ros.model.spatial import Array
from delassus_ros.problem import Port, Problem

PLACEMENTS = ("contact_positions", "contact_orientations")
"""Inputs that are given by contact."""
UNIT_TOLERANCE = 1e-3
"""How far the norm of a quaternion may be from 1."""


class PlacementCheck:
    """Turns positions or orientations by contact into one array, or refuses them.

    A contact that is not named is at its own placement.

    Parameters
    ----------
    problem : whose contacts move.
    port : ``contact_positions`` or ``contact_orientations``.
    """

    def __init__(self, problem: Problem, port: Port) -> None:
        self._port = port.name
        self._contacts = problem.contacts
        self._unit = port.name == "contact_orientations"
        names = problem.turning if self._unit else problem.moving
        self._index = {name: i for i, name in enumerate(names)}
        self._own = problem.placements[port.name]
        self._width = port.shape[1]

    def single(self, given: Mapping[str, ArrayLike] | None) -> Array:
        """Return the placements of one configuration, (contacts, width).

        Raises
        ------
        InputError
            For a contact that is unknown or does not move so, values of wrong shape or not
            finite, or a quaternion that is not of unit norm.
        """
        block = np.array(self._own)
        for name, values in self._named(given).items():
            what, array = self._numbers(name, values)
            if array.shape != (self._width,):
                raise InputError(f"{what} has shape {array.shape}, expected ({self._width},)")
            if not np.isfinite(array).all():
                raise InputError(f"{what} is {array.tolist()}, expected finite numbers")
            if self._unit:
                check_unit(what, array[:, np.newaxis], "")
            block[self._index[name]] = array
        return block

    def batch(self, given: Mapping[str, ArrayLike] | None, count: int, columns: bool) -> Array:
        """Return the placements of `count` configurations, (count, contacts · width).

        Entries that are not finite pass: they show in the status of their configuration.

        Parameters
        ----------
        columns : the configurations are columns instead of rows, given and returned.

        Raises
        ------
        InputError
            As in :meth:`single`; (width,) is for all configurations.
        """
        block = np.empty((count, *self._own.shape))
        block[:] = self._own
        for name, values in self._named(given).items():
            what, array = self._numbers(name, values)
            if array.ndim == 2 and columns:
                array = array.T
            if array.shape not in ((self._width,), (count, self._width)):
                many = (self._width, count) if columns else (count, self._width)
                shape = array.T.shape if columns else array.shape
                raise InputError(f"{what} has shape {shape}, expected ({self._width},) or {many}")
            if self._unit:
                where = "configuration {}: " if array.ndim == 2 else ""
                check_unit(what, np.atleast_2d(array).T, where)
            block[:, self._index[name]] = array
        # Not -1: of an empty batch any number of columns would do.
        flat = block.reshape(count, self._own.size)
        return np.ascontiguousarray(flat.T) if columns else flat

    def _named(self, given: Mapping[str, ArrayLike] | None) -> Mapping[str, ArrayLike]:
        """Return what is given, once every name in it is right."""
        if given is None:
            return {}
        if not isinstance(given, Mapping):
            raise InputError(
                f"{self._port} must be a mapping from names of contacts to lists of "
                f"{self._width} numbers, got {type(given).__name__}"
            )
        for name in given:
            if name in self._index:
                continue
            if name not in self._contacts.names:
                raise InputError(f"{self._port}: {unknown('contact', name, self._index)}")
            contact = self._contacts[self._contacts.names.index(name)]
            raise InputError(
                f"{self._port}: contact {name!r} has moving={contact.moving!r}; contacts with "
                f"this input: {', '.join(self._index)}"
            )
        return given

    def _numbers(self, name: str, values: ArrayLike) -> tuple[str, Array]:
        """Return what to call the values of a contact, and the values."""
        what = f"{self._port}[{name!r}]"
        return what, numbers(what, values, f"{self._width} numbers")


def check_unit(what: str, quaternions: Array, where: str) -> None:
    """Refuse quaternions (4, N) whose norm is not 1; entries that are not finite pass.

    Parameters
    ----------
    where : takes the number of the configuration.
    """
    # Of large entries it is infinite.
    with np.errstate(over="ignore"):
        norms = np.linalg.norm(quaternions, axis=0)
    off = np.abs(norms - 1.0) > UNIT_TOLERANCE
    if not off.any():
        return
    wrong = np.flatnonzero(off & np.isfinite(quaternions).all(axis=0))
    if wrong.size:
        raise InputError(
            f"{where.format(wrong[0])}{what} has norm {norms[wrong[0]]:.4g}, expected a unit "
            "quaternion x, y, z, w"
        )
