"""Severity of diagnostics, and health of the topics of a node; without rclpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from delassus.errors import listed


class Level(IntEnum):
    """Severity; the values of ``diagnostic_msgs/DiagnosticStatus``."""

    OK = 0
    WARN = 1
    ERROR = 2
    STALE = 3


@dataclass(frozen=True)
class Mismatch:
    """Endpoints of a topic with an incompatible QoS.

    Attributes
    ----------
    nodes : full names of the nodes of these endpoints, sorted; empty while none is known.
    """

    policies: Sequence[str]
    nodes: Sequence[str] = ()

    @property
    def nodes_text(self) -> str:
        """Return the names of the nodes in words; ``one`` if none is known."""
        return listed("node", self.nodes) if self.nodes else "one"


@dataclass(frozen=True)
class InputHealth:
    """Health of an input topic, for diagnostics.

    Attributes
    ----------
    name : data of the topic in words, e.g. ``"joint states"``.
    topic : full name of the topic.
    age : age of the latest input [s]; NaN without an input or while the clock has no time.
    silence : time since the last message, whether used or not [s]; NaN as for `age`.
    timeout : age and silence above which the input is too old [s].
    received : whether a message has come since the node was activated.
    warning : fault of the latest message, in words; empty for none.
    counts : further numbers by their names in words.
    """

    name: str
    topic: str
    publishers: int
    age: float
    silence: float
    timeout: float
    received: bool
    warning: str = ""
    incompatible: Mismatch | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
