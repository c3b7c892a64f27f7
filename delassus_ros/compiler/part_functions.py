"""The functions of a program's parts, in one module or two, and what calls them in turn."""

from __future__ import annotations

from delassus_ros.compiler.ir import pointer
from delassus_ros.compiler.parts import Part
from delassus_ros.compiler.writer import KernelWriter, head


def part_functions(
    parts: list[Part],
    name: str,
    configurations: int = 1,
    apart: int = 0,
    public: bool | None = None,
) -> tuple[list[str], list[str]]:
    """Return the functions of a program's parts, and the names of all parts, in their order.

    Parameters
    ----------
    name : of the part, if there is one only; else what their names begin with.
    configurations : see :class:`~delassus_ros.compiler.writer.KernelWriter`.
    apart : how many parts come before these, see :func:`parts_apart`.
    public : of a part that is the only one, see :meth:`KernelWriter.text`.
    """
    if len(parts) == 1 and not apart:
        return [KernelWriter(parts[0], configurations).text(name, public=public)], [name]
    names = [f"{name}_part{k}" for k in range(apart + len(parts))]
    texts = [
        KernelWriter(part, configurations).text(each, part is parts[-1])
        for part, each in zip(parts, names[apart:], strict=True)
    ]
    return texts, names


def in_turn(names: list[str], name: str, public: bool = True) -> str:
    """Return the function that calls the parts of a program for one configuration."""
    p = pointer()
    calls = [f"  call void @{each}({p} %in, {p} %out, {p} %work)" for each in names[:-1]]
    calls += [
        f"  %status = call i32 @{names[-1]}({p} %in, {p} %out, {p} %work)",
        "  ret i32 %status",
    ]
    begin = head(name, 1, returns=True, public=public)
    return "\n".join([begin, "entry:", *calls, "}"])


def parts_apart(
    parts: list[Part], name: str, configurations: int = 1
) -> tuple[list[str], list[str]]:
    """Return the functions of a program's first parts, and how another module declares them."""
    names = [f"{name}_part{k}" for k in range(len(parts))]
    texts = [
        KernelWriter(part, configurations).text(each, last=False, public=True)
        for part, each in zip(parts, names, strict=True)
    ]
    p = pointer()
    return texts, [f"declare void @{each}({p}, {p}, {p})" for each in names]
