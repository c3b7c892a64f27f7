"""The progress line of a run."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TextIO

_REFRESH = 0.2  # s between changes of the line on a terminal
_LINE = 5.0  # s between lines elsewhere


class Progress:
    """A line that is rewritten on a terminal; otherwise a line every five seconds.

    Parameters
    ----------
    stream : where to; standard output by default.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stdout if stream is None else stream
        self._moves = self._stream.isatty()
        self._period = _REFRESH if self._moves else _LINE
        self._due = time.monotonic() + self._period
        self._open = False

    @property
    def due(self) -> bool:
        """Whether it is time for another :meth:`show`."""
        return time.monotonic() >= self._due

    def show(self, text: str) -> None:
        """Show a text."""
        self._due = time.monotonic() + self._period
        if self._moves:
            # A line that is wrapped could not be overwritten.
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(f"\r\x1b[K{text[:width]}")
            self._open = True
        else:
            self._stream.write(f"{text}\n")
        self._stream.flush()

    def close(self) -> None:
        """End the line, so that further output follows below."""
        if self._open:
            self._stream.write("\n")
            self._stream.flush()
            self._open = False
