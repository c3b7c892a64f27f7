"""Text with its control characters escaped.

Names come from robot descriptions, topics and recordings. Without escapes, their control
characters could move the cursor of a terminal, set its title or hide lines.
"""

from __future__ import annotations

import unicodedata

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
