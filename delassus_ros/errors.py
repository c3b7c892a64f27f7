"""Every error this package raises on purpose, and its warning.

All errors derive from :class:`DelassusError`. A message names the offending thing, says what was
expected and lists what exists, so that it can be acted on without reading the code.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Sequence

from delassus_ros.terminal import visible


class DelassusError(Exception):
    """Base of all errors raised by this package."""


class DelassusWarning(UserWarning):
    """What was done may not be what was meant: positions that cannot be, loops left open."""


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


NAMED = 5
"""Names of many that are said."""
SAID = 100
"""Characters of a name from a message that are said."""
_LOOKED_FOR = 64
"""Names that a similar one is looked for, ever: it takes a millisecond, and whoever publishes may
send others with each message."""
_ALL = 12
"""Names that exist up to which all of them are said."""


def listed(what: str, names: Sequence[str]) -> str:
    """Return e.g. ``joints 'a', 'b' and 7 more``."""
    plural = "s" if what and len(names) > 1 else ""
    shown = ", ".join(repr(name[:SAID]) for name in names[:NAMED]) or "none"
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{what}{plural} {shown}{more}".strip()


def folded(name: str) -> str:
    """Return a name in lower case with underscores: equal for spellings of the same name."""
    return name.casefold().replace("-", "_")


def unknown(
    what: str,
    name: str,
    existing: Iterable[str],
    plural: str | None = None,
    also: Iterable[str] = (),
) -> str:
    """Return the message for an unknown name, with the closest existing one.

    Parameters
    ----------
    what : kind of thing, e.g. ``"frame"``.
    name : the name that was asked for.
    existing : the names that exist.
    plural : plural of `what`, where adding an s does not make it.
    also : more names that exist, which may be the closest one but are not listed.
    """
    names = list(existing)
    # Looking is quadratic in lengths, and both may come from the network.
    near = [each for each in (*names, *also) if abs(len(each) - len(name)) < _LENGTH][:_COMPARED]
    spelled = {folded(each): each for each in reversed(near)}
    close = difflib.get_close_matches(folded(name), spelled, n=1) if len(name) < _LENGTH else []
    hint = f"; did you mean {spelled[close[0]]!r}?" if close else ";"
    some = names if len(names) <= _ALL else names[:NAMED]
    shown = visible(", ".join(some)) or "none"
    more = f" and {len(names) - NAMED} more" if len(names) > _ALL else ""
    return f"unknown {what} {name!r}{hint} {plural or what + 's'}: {shown}{more}"


class UnknownNames:
    """Says what does not exist; a similar name is looked for once for each of a few names.

    Parameters
    ----------
    what : kind of thing, e.g. ``"contact"``.
    known : the names that exist.
    """

    def __init__(self, what: str, known: Collection[str]) -> None:
        self._what, self._known = what, known
        self._words: dict[str, str] = {}

    def words(self, name: str) -> str:
        """Return what there is to say about a name, the same each time."""
        name = name[:SAID]
        text = self._words.get(name)
        if text is None and len(self._words) < _LOOKED_FOR:
            text = self._words[name] = unknown(self._what, name, self._known)
        return f"unknown {self._what} {name!r}" if text is None else text
