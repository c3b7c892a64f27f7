"""What became of a request to the operating system."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """What became of a request.

    Attributes
    ----------
    done : it was done, or there was nothing to do.
    text : what was done, or why not and what would help, in a sentence.
    """

    done: bool
    text: str
