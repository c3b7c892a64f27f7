"""Text for terminals: control characters of names and messages are escaped.

Names come from robot descriptions, topics and recordings. Without escapes, their control
characters could move the cursor, set the title or hide lines of the terminal.
"""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

_OBEYED = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
"""Categories of Unicode characters that move, hide or reorder text, or are unassigned."""


def visible(text: str, kept: str = "") -> str:
    r"""Return text with control characters escaped, as ``\x1b`` or ``\u202e``.

    The escapes are valid in Python and in double-quoted text of YAML.

    Parameters
    ----------
    kept : characters that are not escaped, such as a line break.
    """
    if text.isprintable():
        return text
    return "".join(
        character
        if character in kept or unicodedata.category(character) not in _OBEYED
        else _escape(ord(character))
        for character in text
    )


def visible_json(text: str) -> str:
    """Return JSON with control characters escaped as JSON prescribes."""
    if text.isprintable():
        return text
    return "".join(
        "".join(f"\\u{unit:04x}" for unit in _utf_16(character))
        if character != "\n" and unicodedata.category(character) in _OBEYED
        else character
        for character in text
    )


def _escape(code: int) -> str:
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _utf_16(character: str) -> list[int]:
    data = character.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(data[k : k + 2], "big") for k in range(0, len(data), 2)]


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
