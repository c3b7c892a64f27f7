"""C headers of exported code: one frame, templates, and declarations of data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from delassus.model.ranges import FARTHEST
from delassus.model.spatial import UNIT_QUATERNION_TOLERANCE
from delassus.scalars.ports import Port, Status, block_size, places
from delassus.version import __version__

_STATUSES = (
    Status.OK,
    Status.NOT_POSITIVE_DEFINITE,
    Status.NOT_FINITE,
    Status.SINGULAR_LOOP,
    Status.NOT_CLOSED,
    Status.TOO_FAR,
    Status.NOT_UNIT,
)
"""Statuses that compiled kernels return; only back ends return the remaining ones."""


COMPILED_BY = f"compiled by delassus {__version__}"


def framed(
    guard: str, about: Sequence[str], body: Sequence[str], includes: Sequence[str] = ("stdint.h",)
) -> str:
    """Return a header.

    Parameters
    ----------
    guard : macro that is defined once the header is included.
    about : lines of the comment at the top.
    body : lines of declarations.
    includes : headers of the C library that the declarations need.
    """
    comment_lines, declarations = "\n   ".join(about), "\n".join(body)
    needed = "\n".join(f"#include <{header}>" for header in includes)
    return f"""\
/* {comment_lines} */
#ifndef {guard}
#define {guard}

{needed}

#ifdef __cplusplus
extern "C" {{
#endif

{declarations}

#ifdef __cplusplus
}}
#endif

#endif /* {guard} */
"""


def filled(template: str, values: Mapping[str, object]) -> str:
    """Return a text in which every ``@WORD@`` is replaced by the value of the word."""
    return re.sub(r"@([A-Z_]+)@", lambda word: str(values[word[1]]), template)


def statuses(prefix: str) -> list[str]:
    """Return the enumerators of what kernels and functions return."""
    return [
        "/* What the kernel returns; the output is valid only after OK. NOT_CLOSED: a coupling of",
        "   joints does not hold at q. Loops are not looked at: q has to close them. TOO_FAR: a",
        f"   position is beyond {FARTHEST:g} rad or m. NOT_UNIT: the norm of a quaternion is off",
        f"   1 by more than {UNIT_QUATERNION_TOLERANCE:g}. NOT_FINITE: of inputs or results. */",
        "enum {",
        *(f"  {prefix}_{status.name} = {status.value}," for status in _STATUSES),
        "};",
    ]


def ports(
    prefix: str, inputs: Sequence[Port], outputs: Sequence[Port], work_size: int
) -> list[str]:
    """Return enumerators of a function: offset and size of each port, sizes of the blocks."""
    lines = []
    for side, block in (("IN", inputs), ("OUT", outputs)):
        for port, place in places(block):
            label, size = f"{prefix}_{side}_{port.name.upper()}", port.size
            lines.append(f"  {label} = {place.start}, /* {port.name}: first of {size} doubles */")
            lines.append(f"  {label}_SIZE = {size},")
        lines.append(f"  {prefix}_{side}_SIZE = {block_size(block)},")
    return [*lines, f"  {prefix}_WORK_SIZE = {work_size}, /* doubles of scratch */"]


def constants(kind: str, name: str, values: Sequence[object]) -> str:
    """Return the definition of an array of numbers or, of ``char *const``, of strings."""
    words = ", ".join(c_string(v) if isinstance(v, str) else repr(v) for v in values) or "0"
    # C has no empty arrays.
    return f"static const {kind} {name}[{max(len(values), 1)}] = {{{words}}};"


def c_string(text: str) -> str:
    """Return a string literal of C, whatever the text has."""
    escaped = re.sub(r'[\\"?]|[^\x20-\x7e]', lambda found: _octal(found[0]), text)
    return f'"{escaped}"'


def _octal(character: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in character.encode())


def comment(text: str) -> str:
    """Return text that cannot end the comment it stands in."""
    return re.sub(r"[^\x20-\x7e]|\*/|/\*", "?", text)
