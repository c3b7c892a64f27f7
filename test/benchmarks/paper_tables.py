"""Tables of the papers' pages by heading, and the methods of tables II to IV."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from benchmarks import pages
from benchmarks.pages import Table


def by_heading(page: Path) -> dict[str, Table]:
    """Return the tables of a page that stand below a heading of their own."""
    blocks = pages.read(page)["tables"]
    return {
        str(heading).lstrip("# "): table
        for heading, table in zip(blocks, blocks[1:], strict=False)
        if isinstance(table, Table)
    }


class MethodRow(NamedTuple):
    """A method of a robot in a table.

    Attributes
    ----------
    operations : of a call.
    relative, printed : how much more than the reference by operations, and as printed [%]; None
        where there is none.
    verdict : of the row.
    """

    operations: int
    relative: float | None
    printed: float | None
    verdict: str


def method_rows(page: Path) -> dict[tuple[str, str, str], MethodRow]:
    """Return the rows by table, robot and method."""
    found, robot = {}, ""
    for heading, table in by_heading(page).items():
        if not heading.startswith("Table "):
            continue
        for label, method, operations, relative, _, _, printed, verdict in table.rows:
            robot = label or robot
            key = heading.split()[1], robot, method.strip("`")
            found[key] = MethodRow(int(operations), _share(relative), _share(printed), verdict)
    return found


def _share(text: str) -> float | None:
    return float(text[:-2].replace("−", "-")) if text[-1:] == "%" else None
