"""The check of run-time inputs, the same for one configuration and for many."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from delassus_ros.arguments import as_numbers
from delassus_ros.errors import InputError
from delassus_ros.model.robot import JointKind
from delassus_ros.model.spatial import Array
from delassus_ros.placements import PLACEMENTS, PlacementCheck, check_unit
from delassus_ros.problem import Port, Problem

Given: TypeAlias = Mapping[str, Any]
"""What a caller gives per input: numbers (for :data:`PLACEMENTS` by contact) or None."""


class InputCheck:
    """Turns what a caller gives into arrays for the ports of a problem, or refuses it.

    Parameters
    ----------
    problem : whose inputs are checked.
    """

    def __init__(self, problem: Problem) -> None:
        self._ports = problem.inputs
        self._names = tuple(port.name for port in self._ports)
        self._robot = robot = problem.robot
        self._axes = problem.axes
        self._placements = {
            port.name: PlacementCheck(problem, port)
            for port in self._ports
            if port.name in PLACEMENTS
        }
        # Where an input holds quaternions, each with what to call it.
        self._quaternions = {
            "base_orientation": [(0, "base_orientation")],
            "q": [
                (offset + 3, f"q[{offset + 3}:{offset + 7}] (joint {joint.name!r})")
                for joint, offset in zip(robot.joints, robot.q_offsets, strict=True)
                if joint.kind is JointKind.FLOATING
            ],
        }

    def single(self, given: Given) -> dict[str, Array]:
        """Return the inputs of one configuration by name; not copied where that is possible.

        Raises
        ------
        InputError
            For a missing or superfluous input, one of wrong shape or with entries that are not
            finite, or a quaternion that is not of unit norm.
        """
        self._check_names(given)
        arrays = {}
        for port in self._ports:
            if port.name in self._placements:
                arrays[port.name] = self._placements[port.name].single(given.get(port.name))
                continue
            array = self.shaped(port, given[port.name])
            # On few numbers faster than numpy.
            if not all(map(math.isfinite, array.tolist())):
                k = int(np.flatnonzero(~np.isfinite(array))[0])
                joint = f" (joint {self._joint_of(k)!r})" if port.name == "q" else ""
                raise InputError(
                    f"{port.name}[{k}]{joint} is {array[k]}, expected a finite number"
                )
            for what, quaternions in self._unit(port, array[:, np.newaxis]):
                check_unit(what, quaternions, "")
            arrays[port.name] = array
        return arrays

    def shaped(self, port: Port, values: ArrayLike | None) -> Array:
        """Return the values of one port, not looking at what they are.

        Raises
        ------
        InputError
            If there are none, or they are not numbers of the port's shape.
        """
        array = _numbers(port, values, f"({port.size},)")
        if array.shape != port.shape:
            names = ", ".join(self._robot.joint_names)
            order = f"; joints: {names}" if port.name == "q" else ""
            raise _wrong_shape(port, array, f"({port.size},){order}")
        return array

    def batch(self, given: Given, columns: bool) -> Array:
        """Return all ports of N configurations side by side, contiguous; copied only if needed.

        Entries that are not finite pass: they show in the status of their configuration.

        Parameters
        ----------
        columns : the configurations are columns, (size, N), instead of rows, (N, size).

        Raises
        ------
        InputError
            For a missing or superfluous input, one of wrong shape, different numbers of
            configurations, or a quaternion that is not of unit norm.
        """
        self._check_names(given)
        axis = 0 if columns else 1
        arrays: list[Array] = []
        for port in self._ports:
            if port.name in self._placements:
                check, count = self._placements[port.name], arrays[0].shape[1 - axis]
                arrays.append(check.batch(given.get(port.name), count, columns))
                continue
            expected = f"({port.size}, N)" if columns else f"(N, {port.size})"
            array = np.ascontiguousarray(_numbers(port, given[port.name], expected))
            if array.ndim != 2 or array.shape[axis] != port.size:
                raise _wrong_shape(port, array, expected)
            for what, quaternions in self._unit(port, array if columns else array.T):
                check_unit(what, quaternions, "configuration {}: ")
            arrays.append(array)
        counts = {array.shape[1 - axis] for array in arrays}
        if len(counts) > 1:
            raise InputError(f"inputs differ in the number of configurations: {sorted(counts)}")
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=axis)

    def _check_names(self, given: Given) -> None:
        for name, values in given.items():
            if values is not None and name not in self._names:
                raise InputError(
                    f"input {name!r} is not used by this problem; inputs: "
                    + ", ".join(self._names) + self._missing(name)
                )  # fmt: skip

    def _missing(self, name: str) -> str:
        """Return why a problem has no input for placements, if that is what `name` is."""
        if name not in PLACEMENTS:
            return ""
        if name == "contact_orientations" and self._axes == "world":
            return "; rows in world axes do not depend on it"
        moving = "'position' or 'pose'" if name == "contact_positions" else "'pose'"
        return f"; no contact has moving={moving}"

    def _unit(self, port: Port, array: Array) -> list[tuple[str, Array]]:
        """Return an input's quaternions, (4, N) each, of an array (entries, N)."""
        return [(what, array[first : first + 4]) for first, what in self._quaternions[port.name]]

    def _joint_of(self, q_index: int) -> str:
        robot = self._robot
        named = [
            (o, j.name) for o, j in zip(robot.q_offsets, robot.joints, strict=True) if j.kind.nq
        ]
        return [name for offset, name in named if offset <= q_index][-1]


def _numbers(port: Port, values: ArrayLike | None, shape: str) -> Array:
    if values is None:
        raise InputError(f"input {port.name!r} is missing; it has shape {shape}")
    try:
        return as_numbers(values)
    except (TypeError, ValueError) as error:
        text = f"input {port.name!r} must be numbers of shape {shape}: {error}"
        raise InputError(text) from error


def _wrong_shape(port: Port, array: Array, expected: str) -> InputError:
    return InputError(f"input {port.name!r} has shape {array.shape}, expected {expected}")
