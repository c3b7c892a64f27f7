"""Words about names that do not exist, in messages that may come at any rate."""

from __future__ import annotations

from collections.abc import Collection

from delassus_ros.errors import unknown
from delassus_ros.node.joint_names import LONGEST

_MOST = 64
"""Names that a similar one is looked for, ever: it takes a millisecond, and whoever publishes may
send others with each message."""


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
        name = name[:LONGEST]
        text = self._words.get(name)
        if text is None and len(self._words) < _MOST:
            text = self._words[name] = unknown(self._what, name, self._known)
        return f"unknown {self._what} {name!r}" if text is None else text
