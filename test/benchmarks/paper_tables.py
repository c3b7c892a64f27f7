"""Tables II to IV of the cluster paper's page, read back."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class MethodRow(NamedTuple):
    """A method of a robot in a table.

    Attributes
    ----------
    operations : of a call; None if the method refuses the robot.
    relative, slower, printed : how much more than the reference by operations, by time, and as
        printed [%]; None where there is none.
    verdict : of the row.
    """

    operations: int | None
    relative: float | None
    slower: float | None
    printed: float | None
    verdict: str


def method_rows(page: Path) -> dict[tuple[str, str, str], MethodRow]:
    """Return the rows by table, robot and method."""
    found, table, robot = {}, "", ""
    for line in page.read_text("utf-8").splitlines():
        if line.startswith("### Table "):
            table = line.split()[2]
        cells = [cell.strip() for cell in line[1:-1].split("|")]
        if line[:1] != "|" or len(cells) != 8 or cells[1][:1] != "`":
            continue
        robot = cells[0] or robot
        count = int(cells[2]) if cells[2].isdigit() else None
        shares = (_share(cells[3]), _share(cells[5]), _share(cells[6]))
        found[table, robot, cells[1].strip("`")] = MethodRow(count, *shares, cells[7])
    return found


def _share(text: str) -> float | None:
    return float(text[:-2].replace("−", "-")) if text[-1:] == "%" else None
