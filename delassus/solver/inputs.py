"""Checks of run-time inputs, for single configurations and batches, and arrays of inputs.

Values assigned to an input of a bound solver are copied into the input's array.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from delassus.arguments import as_numbers, numbers, quaternion
from delassus.errors import InputError, unknown
from delassus.model.couplings import open_coupling
from delassus.model.ranges import FARTHEST
from delassus.model.robot import JointKind
from delassus.model.spatial import UNIT_QUATERNION_TOLERANCE, Array
from delassus.problem import Problem
from delassus.scalars.ports import Port
from delassus.solver import remedies

Given: TypeAlias = Mapping[str, Any]
"""Values per input: numbers (for :data:`PLACEMENTS` by contact) or None."""


class InputCheck:
    """Converts arguments of a call to arrays for the ports of a problem, or raises.

    Parameters
    ----------
    problem : the problem whose inputs are checked.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem, self._ports = problem, problem.inputs
        self._names = tuple(port.name for port in self._ports)
        self._robot = robot = problem.robot
        first = ("q", "base_orientation", *PLACEMENTS)
        self._for_all = tuple(name for name in self._names if name not in first)
        self._placements = {
            port.name: PlacementCheck(problem, port)
            for port in self._ports
            if port.name in PLACEMENTS
        }
        # Per input: first entries of quaternions, with names for messages.
        self._quaternions = {
            "base_orientation": [(0, "base_orientation")],
            "q": [
                (offset + 3, f"q[{offset + 3}:{offset + 7}] (joint {joint.name!r})")
                for joint, offset in zip(robot.joints, robot.q_offsets, strict=True)
                if joint.kind is JointKind.FLOATING
            ],
        }

    def single(self, values: Given) -> dict[str, Array]:
        """Return the inputs of one configuration by name; copied only if needed.

        Raises
        ------
        InputError
            For a missing or superfluous input, an input of wrong shape or with entries that are
            not finite, or a quaternion that is not of unit norm. Far positions and couplings that
            do not hold set the kernel's status; :meth:`refuse_positions` names them.
        """
        self._check_names(values)
        arrays = {}
        for port in self._ports:
            if port.name in self._placements:
                arrays[port.name] = self._placements[port.name].single(values.get(port.name))
                continue
            array = self.shaped(port, self._as_array(port, values.get(port.name)))
            # For few numbers faster than numpy.
            if not all(map(math.isfinite, array.ravel().tolist())):
                k = int(np.flatnonzero(~np.isfinite(array))[0])
                joint = f" (joint {self._joint_of(k)!r})" if port.name == "q" else ""
                raise InputError(
                    f"{port.name}[{k}]{joint} is {array.ravel()[k]}, expected a finite number"
                )
            for what, quaternions in self._unit(port, array[:, np.newaxis]):
                check_unit(what, quaternions, "")
            arrays[port.name] = array
        return arrays

    def refuse_positions(self, q: Array) -> None:
        """Refuse positions for which a kernel returns TOO_FAR or NOT_CLOSED, by name.

        Raises
        ------
        InputError
            If a position is beyond :data:`~delassus.model.ranges.FARTHEST`, or a coupling does
            not hold; names the entry and its excess.
        """
        far = np.flatnonzero(np.abs(q) > FARTHEST)
        if far.size:
            k = int(far[0])
            raise InputError(
                f"q[{k}] (joint {self._joint_of(k)!r}) is {q[k]:.6g}, beyond {FARTHEST:g} rad or "
                "m, where sums of angles are rounded; home the joint, or take whole turns off"
            )
        words = open_coupling(self._robot, q.tolist())
        if words:
            raise InputError(
                f"q does not close the robot: {words}; Robot.q(positions by joint) puts joints "
                "where couplings do, Closure(robot).solve closes loops, too"
            )

    def _as_array(self, port: Port, values: Any) -> Any:
        """Convert a Rotation, and wrenches by frame: missing frames have zero wrenches."""
        if port.name == "base_orientation":
            return quaternion(values)
        if port.name != "wrenches" or not isinstance(values, Mapping):
            return values
        block, frames = np.zeros(port.shape), self._problem.wrenches
        for name, wrench in values.items():
            if name not in frames:
                raise InputError(f"wrenches: {unknown('frame', str(name), frames)}")
            what = f"wrenches[{name!r}]"
            six = numbers(what, wrench, "6 numbers")
            if six.shape != (6,):
                raise InputError(f"{what} has shape {six.shape}, expected (6,): force and moment")
            block[frames.index(name)] = six
        return block

    def shaped(self, port: Port, values: ArrayLike | None) -> Array:
        """Return the values of one port; the shape is checked, the range is not.

        Raises
        ------
        InputError
            If the values are missing, or not numbers of the port's shape.
        """
        array = self._numbers(port, values, f"({port.size},)")
        if array.shape != port.shape:
            raise self._wrong_shape(port, array, f"({port.size},)", many=False)
        return array

    def _numbers(self, port: Port, values: ArrayLike | None, shape: str) -> Array:
        if values is None:
            reason = remedies.of_missing(self._problem, port)
            raise InputError(f"input {port.name!r} is missing; it has shape {shape}{reason}")
        try:
            return as_numbers(values)
        except (TypeError, ValueError) as error:
            write = remedies.of_mapping(self._problem, port, values)
            text = f"input {port.name!r} must be numbers of shape {shape}: {error}{write}"
            raise InputError(text) from error

    def _wrong_shape(self, port: Port, array: Array, expected: str, many: bool) -> InputError:
        remedy = remedies.of_shape(self._problem, port, array.shape, many)
        return InputError(
            f"input {port.name!r} has shape {array.shape}, expected {expected}{remedy}"
        )

    def batch(self, given: Given, columns: bool) -> Array:
        """Return all ports of N configurations side by side, contiguous; copied only if needed.

        Entries that are not finite or too far, and couplings that do not hold, are accepted and
        set the status of their configuration.

        Parameters
        ----------
        columns : the configurations are columns, (size, N), instead of rows, (N, size).

        Raises
        ------
        InputError
            For a missing or superfluous input, an input of wrong shape, different numbers of
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
            values = self._as_array(port, given.get(port.name))
            if columns and values is not given.get(port.name) and port.name == "base_orientation":
                values = values.T
            array = np.ascontiguousarray(self._numbers(port, values, expected))
            if array.ndim > 2 and not columns and array.shape[1:] == port.shape:
                array = array.reshape(len(array), port.size)
            if arrays and port.name in self._for_all and array.shape == port.shape:
                array = array.ravel()
                count = arrays[0].shape[1 - axis]
                shape = (port.size, count) if columns else (count, port.size)
                array = np.ascontiguousarray(
                    np.broadcast_to(array[:, None] if columns else array, shape)
                )
            if array.ndim != 2 or array.shape[axis] != port.size:
                raise self._wrong_shape(port, array, expected, many=True)
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
        """Return the reason why a problem lacks the placement input `name`."""
        if name not in PLACEMENTS:
            return ""
        if name == "contact_orientations" and self._problem.axes == "world":
            return "; rows in world axes do not depend on it"
        moving = "'position' or 'pose'" if name == "contact_positions" else "'pose'"
        return f"; no contact has moving={moving}"

    def _unit(self, port: Port, array: Array) -> list[tuple[str, Array]]:
        """Return the quaternions (4, N) of an input from its array (entries, N)."""
        places = self._quaternions.get(port.name, ())
        return [(what, array[first : first + 4]) for first, what in places]

    def _joint_of(self, q_index: int) -> str:
        robot = self._robot
        named = [
            (o, j.name) for o, j in zip(robot.q_offsets, robot.joints, strict=True) if j.kind.nq
        ]
        return [name for offset, name in named if offset <= q_index][-1]


PLACEMENTS = ("contact_positions", "contact_orientations")
"""Inputs that are mappings by contact."""


class PlacementCheck:
    """Converts positions or orientations by contact to one array, or raises.

    Contacts that are not named keep the placement of the contact set.

    Parameters
    ----------
    problem : the problem whose contacts move.
    port : ``contact_positions`` or ``contact_orientations``.
    """

    def __init__(self, problem: Problem, port: Port) -> None:
        self._problem, self._place, self._port = problem, port, port.name
        self._contacts = problem.contacts
        self._unit = port.name == "contact_orientations"
        self._index = {name: i for i, name in enumerate(problem.placed[port.name])}
        self._own = problem.placements[port.name]
        self._width = port.shape[1]

    def single(self, given: Mapping[str, ArrayLike] | None) -> Array:
        """Return the placements of one configuration, (contacts, width).

        Raises
        ------
        InputError
            For a contact that is unknown or lacks this input, values of wrong shape or not finite,
            or a quaternion that is not of unit norm.
        """
        placements: Array = self._read(given, None, False)[0]
        return placements

    def batch(self, given: Mapping[str, ArrayLike] | None, count: int, columns: bool) -> Array:
        """Return the placements of `count` configurations, (count, contacts · width).

        Entries that are not finite are accepted and set the status of their configuration.

        Parameters
        ----------
        columns : configurations are columns instead of rows of arguments and result.

        Raises
        ------
        InputError
            As in :meth:`single`; values of shape (width,) hold for all configurations.
        """
        # Not reshape(count, -1): for an empty batch the number of columns is ambiguous.
        flat = self._read(given, count, columns).reshape(count, self._own.size)
        return np.ascontiguousarray(flat.T) if columns else flat

    def _read(
        self, given: Mapping[str, ArrayLike] | None, count: int | None, columns: bool
    ) -> Array:
        """Return placements (count, contacts, width); one configuration if count is None."""
        width = self._width
        block = np.empty((1 if count is None else count, *self._own.shape))
        block[:] = self._own
        for name, values in self._named(given).items():
            what = f"{self._port}[{name!r}]"
            values = quaternion(values) if self._unit else values
            array = numbers(what, values, f"{width} numbers")
            shape = array.shape
            many = "" if count is None else f" or {(width, count) if columns else (count, width)}"
            if count is not None and array.ndim == 2 and columns:
                array = array.T
            if array.shape != (width,) and (count is None or array.shape != (count, width)):
                remedy = remedies.of_shape(self._problem, self._place, shape, count is not None)
                raise InputError(f"{what} has shape {shape}, expected ({width},){many}{remedy}")
            if count is None and not np.isfinite(array).all():
                raise InputError(f"{what} is {array.tolist()}, expected finite numbers")
            if self._unit:
                where = "configuration {}: " if array.ndim == 2 else ""
                check_unit(what, np.atleast_2d(array).T, where)
            block[:, self._index[name]] = array
        return block

    def _named(self, given: Mapping[str, ArrayLike] | None) -> Mapping[str, ArrayLike]:
        """Return the placements by contact after a check of the names."""
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
                raise InputError(f"{self._port}: {self._contacts.unknown(name, self._index)}")
            contact = self._contacts[self._contacts.names.index(name)]
            raise InputError(
                f"{self._port}: contact {name!r} has moving={contact.moving!r}; contacts with "
                f"this input: {', '.join(self._index)}"
            )
        return given


def check_unit(what: str, quaternions: Array, where: str) -> None:
    """Refuse quaternions (4, N) whose norm is not 1; entries that are not finite are accepted.

    Parameters
    ----------
    where : format of the place in messages, for the number of the configuration.
    """
    # The norm of large entries overflows to infinity.
    with np.errstate(over="ignore"):
        norms = np.linalg.norm(quaternions, axis=0)
    off = np.abs(norms - 1.0) > UNIT_QUATERNION_TOLERANCE
    if not off.any():
        return
    wrong = np.flatnonzero(off & np.isfinite(quaternions).all(axis=0))
    if wrong.size:
        raise InputError(
            f"{where.format(wrong[0])}{what} has norm {norms[wrong[0]]:.4g}, expected a unit "
            "quaternion x, y, z, w"
        )


class UnknownInputError(InputError, KeyError):
    """Error for an unknown name of an input."""

    def __str__(self) -> str:
        """Return the message, without the quotes that a KeyError adds."""
        return InputError.__str__(self)


class InputArrays(Mapping[str, Array]):
    """Arrays that a kernel reads, by name.

    ``arrays[name] = values`` is ``arrays[name][...] = values``: an array in the kernel's memory is
    never replaced by another array, which the kernel would not read.

    Parameters
    ----------
    what : name of the arrays in messages.
    kind : kind of the named objects, e.g. ``"contact"``.
    arrays : the arrays by name.
    """

    __slots__ = ("_arrays", "_kind", "_what")

    def __init__(self, what: str, kind: str, arrays: Mapping[str, Array]) -> None:
        self._what, self._kind = what, kind
        self._arrays = dict(arrays)

    def __getitem__(self, name: str) -> Array:
        """Return the array of a name.

        Raises
        ------
        UnknownInputError
            For an unknown name; also a KeyError.
        """
        try:
            return self._arrays[name]
        except KeyError:
            raise UnknownInputError(self._unknown(name)) from None

    def __setitem__(self, name: str, values: ArrayLike) -> None:
        """Copy numbers of the array's shape into the array.

        Raises
        ------
        InputError
            For an unknown name, or values that are not numbers of this shape. Numbers that are
            not finite set the status of the next solve.
        """
        if name not in self._arrays:
            raise UnknownInputError(self._unknown(name))
        array = self._arrays[name]
        what = f"{self._what}[{name!r}]"
        source = numbers(what, quaternion(values), f"numbers of shape {array.shape}")
        if source.shape != array.shape:
            raise InputError(f"{what} has shape {source.shape}, expected {array.shape}")
        array[...] = source

    def _unknown(self, name: object) -> str:
        return f"{self._what}: {unknown(self._kind, str(name), self._arrays)}"

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        return repr(self._arrays)
