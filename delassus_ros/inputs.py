"""The check of run-time inputs, the same for one configuration and for many."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from delassus_ros.errors import InputError
from delassus_ros.model.robot import JointKind
from delassus_ros.model.spatial import Array
from delassus_ros.problem import Port, Problem

_UNIT_TOLERANCE = 1e-3


class InputCheck:
    """Turns what a caller gives into arrays for the ports of a problem, or refuses it.

    Parameters
    ----------
    problem : whose inputs are checked.
    """

    def __init__(self, problem: Problem) -> None:
        self._ports = problem.inputs
        self._robot = robot = problem.robot
        # Where an input holds quaternions, each with what to call it.
        self._quaternions = {
            "base_orientation": [(0, "base_orientation")],
            "q": [
                (offset + 3, f"q[{offset + 3}:{offset + 7}] (joint {joint.name!r})")
                for joint, offset in zip(robot.joints, robot.q_offsets, strict=True)
                if joint.kind is JointKind.FLOATING
            ],
        }

    def single(self, given: Mapping[str, ArrayLike | None]) -> dict[str, Array]:
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
            array = _numbers(port, given[port.name], f"({port.size},)")
            if array.shape != port.shape:
                names = ", ".join(self._robot.joint_names)
                order = f"; joints: {names}" if port.name == "q" else ""
                raise _wrong_shape(port, array, f"({port.size},){order}")
            if not np.isfinite(array).all():
                k = int(np.flatnonzero(~np.isfinite(array))[0])
                joint = f" (joint {self._joint_of(k)!r})" if port.name == "q" else ""
                raise InputError(
                    f"{port.name}[{k}]{joint} is {array[k]}, expected a finite number"
                )
            for what, norms in self._norms(port, array):
                _check_unit(what, norms[np.newaxis], "")
            arrays[port.name] = array
        return arrays

    def batch(self, given: Mapping[str, ArrayLike | None], columns: bool) -> Array:
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
        arrays = []
        for port in self._ports:
            expected = f"({port.size}, N)" if columns else f"(N, {port.size})"
            array = np.ascontiguousarray(_numbers(port, given[port.name], expected))
            if array.ndim != 2 or array.shape[axis] != port.size:
                raise _wrong_shape(port, array, expected)
            for what, norms in self._norms(port, array if columns else array.T):
                _check_unit(what, norms, "configuration {}: ")
            arrays.append(array)
        counts = {array.shape[1 - axis] for array in arrays}
        if len(counts) > 1:
            raise InputError(f"inputs differ in the number of configurations: {sorted(counts)}")
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=axis)

    def _check_names(self, given: Mapping[str, ArrayLike | None]) -> None:
        names = [port.name for port in self._ports]
        for name, values in given.items():
            if values is not None and name not in names:
                raise InputError(
                    f"input {name!r} is not used by this problem; inputs: {', '.join(names)}"
                )

    def _norms(self, port: Port, array: Array) -> list[tuple[str, Array]]:
        """Return the norms of an input's quaternions, whose entries follow the first axis."""
        return [
            (what, np.asarray(np.linalg.norm(array[first : first + 4], axis=0)))
            for first, what in self._quaternions[port.name]
        ]

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
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"input {port.name!r} must be numbers of shape {shape}") from error


def _wrong_shape(port: Port, array: Array, expected: str) -> InputError:
    return InputError(f"input {port.name!r} has shape {array.shape}, expected {expected}")


def _check_unit(what: str, norms: Array, where: str) -> None:
    """Refuse norms (N,) that are not 1; `where` takes the number of the configuration."""
    wrong = np.flatnonzero((np.abs(norms - 1.0) > _UNIT_TOLERANCE) & np.isfinite(norms))
    if wrong.size:
        raise InputError(
            f"{where.format(wrong[0])}{what} has norm {norms[wrong[0]]:.4g}, expected a unit "
            "quaternion x, y, z, w"
        )
