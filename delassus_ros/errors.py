"""Every error this package raises on purpose.

All derive from :class:`DelassusError`. A message names the offending thing, says what was
expected and lists what exists, so that it can be acted on without reading the code.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class DelassusError(Exception):
    """Base of all errors raised by this package."""


class RobotError(DelassusError):
    """The robot description cannot be read or is not physical; names the link or joint."""


class GeometryError(DelassusError):
    """A pose that is no rigid transform; says what was given."""


class ContactError(DelassusError):
    """A contact does not fit the robot or the contact set; names the contact."""


class ProblemError(DelassusError):
    """Axes or outputs that do not exist, or a combination that makes no sense."""


class AlgorithmError(DelassusError):
    """An unknown algorithm, or one that refuses the problem; carries its reason."""


class InputError(DelassusError):
    """A run-time input (configuration, active contacts) of wrong shape, name or value."""


_LENGTH, _COMPARED = 80, 1000
"""Longer names have no similar one, and of more names the others are not looked at."""


class NumericalError(DelassusError):
    """The matrix cannot be computed at this configuration; says at which joint and why."""


class CompilerError(DelassusError):
    """Code generation or loading of compiled code failed."""


def unknown(what: str, name: str, existing: Iterable[str], plural: str | None = None) -> str:
    """Return the message for an unknown name, with the closest existing one.

    Parameters
    ----------
    what : kind of thing, e.g. ``"frame"``.
    name : the name that was asked for.
    existing : the names that exist.
    plural : plural of `what`, where adding an s does not make it.
    """
    names = list(existing)
    # Looking is quadratic in lengths, and both may come from the network.
    near = [each for each in names if abs(len(each) - len(name)) < _LENGTH][:_COMPARED]
    close = difflib.get_close_matches(name, near, n=1) if len(name) < _LENGTH else []
    hint = f"; did you mean {close[0]!r}?" if close else ";"
    shown = ", ".join(names[:40]) + (f", … ({len(names)} in all)" if len(names) > 40 else "")
    return f"unknown {what} {name!r}{hint} {plural or what + 's'}: {shown or 'none'}"
