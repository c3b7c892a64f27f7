"""Output of programs to terminals: escaped text, control codes, a reader that has ended."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from delassus.visible import visible


class _Shown:
    """A stream that escapes control characters of all text written to it."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write text; line breaks and tabulators are not escaped."""
        self.stream.write(visible(text, "\n\t"))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write lines."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def shown_output() -> Iterator[None]:
    """Escape control characters on standard output and standard error while the block runs."""
    before = sys.stdout, sys.stderr
    # Python has no stream where the shell has closed it, as by `>&-`.
    streams = (open(os.devnull, "w") if stream is None else stream for stream in before)
    sys.stdout, sys.stderr = (cast(TextIO, _Shown(stream)) for stream in streams)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def discard_output() -> None:
    """Write all further output nowhere, once the reader of a pipe (head, less) has ended."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def control(codes: str, stream: TextIO) -> None:
    """Write control codes for the terminal."""
    (stream.stream if isinstance(stream, _Shown) else stream).write(codes)


def replace_line(text: str) -> None:
    """Write text over the line of standard error that the cursor is in."""
    control("\r\033[K", sys.stderr)
    sys.stderr.write(visible(text))
    sys.stderr.flush()
