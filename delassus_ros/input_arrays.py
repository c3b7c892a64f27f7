"""The arrays of a bound solver's inputs, by name: what is assigned to one is copied into it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from numpy.typing import ArrayLike

from delassus_ros.arguments import numbers
from delassus_ros.errors import InputError, unknown
from delassus_ros.model.spatial import Array


class UnknownInputError(InputError, KeyError):
    """There is no input of this name."""

    def __str__(self) -> str:
        """Return the message, of which a KeyError would show the quotes."""
        return InputError.__str__(self)


class InputArrays(Mapping[str, Array]):
    """Arrays that a kernel reads, by name.

    ``arrays[name] = values`` does the same as ``arrays[name][...] = values``: an array in the
    kernel's memory is never replaced by another one, which the kernel would not see.

    Parameters
    ----------
    what : what to call them, in messages.
    kind : what a name stands for, e.g. ``"contact"``.
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
            If there is none; a KeyError as well.
        """
        try:
            return self._arrays[name]
        except KeyError:
            raise UnknownInputError(self._unknown(name)) from None

    def __setitem__(self, name: str, values: ArrayLike) -> None:
        """Copy numbers of the array's shape into it.

        Raises
        ------
        InputError
            For an unknown name, or what is not numbers of this shape. Numbers that are not
            finite show in the status of the next solve.
        """
        if name not in self._arrays:
            raise UnknownInputError(self._unknown(name))
        array = self._arrays[name]
        what = f"{self._what}[{name!r}]"
        given = numbers(what, values, f"numbers of shape {array.shape}")
        if given.shape != array.shape:
            raise InputError(f"{what} has shape {given.shape}, expected {array.shape}")
        array[...] = given

    def _unknown(self, name: object) -> str:
        return f"{self._what}: {unknown(self._kind, str(name), self._arrays)}"

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        return repr(self._arrays)
