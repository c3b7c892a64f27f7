"""Docstrings of this package for Sphinx: entries have a description, and types are annotations.

Numpy's style reads ``name : words`` as a name and its type. In this package the words after the
colon are the description, as the signature has the type, and a section ``Returns`` is a text.
"""

from __future__ import annotations

import re

_DESCRIBED = ("Parameters", "Attributes", "Other Parameters")
_ENTRY = re.compile(r"(\S[^:]*?) : (.*)")


def described(lines: list[str]) -> list[str]:
    """Return a docstring with the description of each entry below its name."""
    found: list[str] = []
    section, names = "", [""]
    text: list[str] = []

    def end_entry() -> None:
        """Write an entry, once for each of its names."""
        for name in names if text else ():
            found.extend([name, *text])
        text.clear()

    for k, line in enumerate(lines):
        below = lines[k + 1] if k + 1 < len(lines) else ""
        if line and re.fullmatch(r"-+", below):
            end_entry()
            section = line.strip()
            # Two blank lines end a section; napoleon would read each line of the text as a type.
            found += ["", "", ":returns:"] if section == "Returns" else [line]
        elif section == "Returns":
            if not re.fullmatch(r"-+", line):
                found.append(f"    {line}" if line else line)
        elif section in _DESCRIBED and (entry := _ENTRY.fullmatch(line)):
            end_entry()
            names = entry[1].split(", ")
            text.append(f"    {entry[2]}")
        elif text and line.startswith(" "):
            text.append(line)
        else:
            end_entry()
            found.append(line)
    end_entry()
    return found


def short_types(
    app: object, what: str, name: str, obj: object, options: object, signature: str, result: str
) -> tuple[str, str]:
    """Return a signature with aliases of types by their names.

    Sphinx 9.0 shows an alias in a union as ``TypeAliasForwardRef('ArrayLike')``.
    """
    return tuple(
        re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text) if text else text
        for text in (signature, result)
    )


def rewrite(
    app: object, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Rewrite a docstring in place, before napoleon reads it."""
    lines[:] = described(lines)
