"""Errors of this package, its warning, and texts about unknown names.

All errors derive from :class:`DelassusError`. A message names the offending thing, what was
expected and what exists, so that a user can act on it without reading the code.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Sequence

from delassus.visible import visible


class DelassusError(Exception):
    """Base of all errors raised by this package."""


class DelassusWarning(UserWarning):
    """A result may not be the intended one: implausible positions, loops left open."""


class RobotError(DelassusError):
    """The robot description is unreadable or not physical; names the link or joint."""


class GeometryError(DelassusError):
    """A pose is no rigid transform; contains the refused value."""


class ContactError(DelassusError):
    """A contact does not fit the robot or the contact set; names the contact."""


class ProblemError(DelassusError):
    """Axes or outputs do not exist, or their combination makes no sense."""


class AlgorithmError(DelassusError):
    """An algorithm is unknown, or refuses the problem; contains the reason."""


class InputError(DelassusError):
    """A run-time input (configuration, active contacts) has a wrong shape, name or value."""


_LENGTH, _COMPARED = 80, 1000
"""Limits for suggestions: length of a name [characters], and number of existing names compared."""


class NumericalError(DelassusError):
    """The matrix cannot be computed at this configuration; names the joint and the reason."""


class CompilerError(DelassusError):
    """Code generation or loading of compiled code failed."""


NAMED = 5
"""Number of names in a message about many."""
SAID = 100
"""Length up to which names from messages are shown [characters]."""
_LOOKED_FOR = 64
"""Suggestions are computed for at most this many names (about 1 ms each): a publisher may send new
names with every message."""
_ALL = 12
"""Number of existing names up to which all of them are listed."""


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
    name : the unknown name.
    existing : the names that exist.
    plural : plural of `what`, if it is not `what` with an s.
    also : further existing names, which may be suggested but are not listed.
    """
    names = list(existing)
    # The comparison is quadratic in the lengths, and both names may come from the network.
    near = [word for word in (*names, *also) if abs(len(word) - len(name)) < _LENGTH][:_COMPARED]
    spelled = {folded(word): word for word in reversed(near)}
    close = difflib.get_close_matches(folded(name), spelled, n=1) if len(name) < _LENGTH else []
    hint = f"; did you mean {spelled[close[0]]!r}?" if close else ";"
    some = names if len(names) <= _ALL else names[:NAMED]
    shown = visible(", ".join(some)) or "none"
    more = f" and {len(names) - NAMED} more" if len(names) > _ALL else ""
    return f"unknown {what} {name!r}{hint} {plural or what + 's'}: {shown}{more}"


class UnknownNames:
    """Texts about unknown names; the suggestion is computed once per name, for a few names.

    Parameters
    ----------
    what : kind of thing, e.g. ``"contact"``.
    known : the names that exist.
    """

    def __init__(self, what: str, known: Collection[str]) -> None:
        self._what, self._known = what, known
        self._words: dict[str, str] = {}

    def words(self, name: str) -> str:
        """Return the text about an unknown name; the text of a name does not change."""
        name = name[:SAID]
        text = self._words.get(name)
        if text is None and len(self._words) < _LOOKED_FOR:
            text = self._words[name] = unknown(self._what, name, self._known)
        return f"unknown {self._what} {name!r}" if text is None else text
