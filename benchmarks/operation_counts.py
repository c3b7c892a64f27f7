"""Table of operation counts beside a recount: ``python -m benchmarks.operation_counts``.

The recount, ``../shared/oracle/operation_counts.json``, is this project's own count of the code
that the authors of PV-OSIMr released; they printed no counts. Each of its rows is counted with
each algorithm, up to a size of the problem. The table is written to
``docs/benchmarks/operation_counts.md``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from benchmarks import mechanisms as make
from benchmarks import ours, pages
from benchmarks.arguments import add_output, parser_of
from benchmarks.pages import Places, table
from delassus import Problem, Robot
from delassus.model.robot import Base

ROOT = Path(__file__).resolve().parents[1]
RECOUNT = ROOT.parent / "shared" / "oracle" / "operation_counts.json"
ROBOTS = ROOT.parent / "shared" / "robots"
OUTPUT = ROOT / "docs" / "benchmarks" / "operation_counts.md"
PAPER_NAMES = {"pv_osimr": "PV-OSIMr", "pv_osim": "PV-OSIM", "efpa": "EFPA", "ltl": "LTL"}
ALGORITHMS = ("ltl", "efpa", "pv_osim", "pv_osimr", "kjr", "auto")
LARGEST = 700_000
"""Numbers of the recount above which no count of ours is made: it takes minutes."""
GOAL = 0.8
"""Specialised counts relative to the recount's; counts above this are listed."""


@dataclass(frozen=True)
class Row:
    """A row of the recount.

    Attributes
    ----------
    group : ``"robots"``, ``"stem_rotated"``, ``"stem"`` or ``"chain"``.
    name : of the mechanism.
    recount : counts by the papers' names of the algorithms.
    make : builds the problem.
    """

    group: str
    name: str
    recount: dict[str, int]
    make: Callable[[], Problem]


@cache
def robot(name: str, base: Base = "floating") -> Robot:
    """Return a robot of ../shared/robots."""
    return Robot.from_urdf(
        ROBOTS / f"{name}.urdf", base="fixed" if base == "fixed" else "floating"
    )


def atlas(hands: int) -> Robot:
    """Return Atlas with Shadow hands on its wrists."""
    result = robot("atlas_v5")
    for side in ("l", "r")[:hands]:
        hand = robot("shadow_hand_right", "fixed")
        result = make.mounted(result, hand, f"{side}_hand", f"{side}_")
    return result


@cache
def talos() -> Robot | None:
    """Return Talos with its grippers' joints, mimicking ones freed; None where it is absent."""
    try:
        package = distribution("example-robot-data")
    except PackageNotFoundError:
        return None
    folder = "cmeel.prefix/share/example-robot-data/robots/talos_data/robots"
    path = Path(str(package.locate_file(f"{folder}/talos_full_v2.urdf")))
    return Robot.from_urdf(re.sub(r"<mimic[^>]*/>", "", path.read_text(encoding="utf-8")))


def robot_problem(name: str) -> Problem | None:
    """Return the problem of a row of the group "robots"; None where it is not described."""
    feet, hands = ("l_foot", "r_foot"), ("l_hand", "r_hand")
    go1 = ("FL_foot", "FR_foot", "RL_foot", "RR_foot")
    tips = make.fingertips
    simple: dict[str, Callable[[], Problem]] = {
        "Atlas feet 2x6D, K=I6": lambda: Problem(atlas(0), make.surfaces(feet)),
        "Atlas feet 2x(4x3D), K=[-skew(p) I] numeric p": lambda: Problem(
            atlas(0), [c for foot in feet for c in make.corners(foot)]
        ),
        "Atlas feet+hands 4x6D, K=I6": lambda: Problem(atlas(0), make.surfaces(feet + hands)),
        "Atlas feet 2x6D, K dense symbolic": lambda: dense(feet, 1),
        "Atlas feet 2x12D, K dense symbolic": lambda: dense(feet, 2),
        "Atlas feet+hands 4x6D, K dense symbolic": lambda: dense(feet + hands, 1),
        "Shadow hand (fixed forearm, 24 dof) 5x3D": lambda: Problem(
            robot("shadow_hand_right", "fixed"), tips()
        ),
        "Shadow hand (floating forearm, 30 dof) 5x3D": lambda: Problem(
            robot("shadow_hand_right"), tips()
        ),
        "Atlas + 1 Shadow hand 5x3D": lambda: Problem(atlas(1), tips("l_rh_")),
        "Atlas + 2 Shadow hands 10x3D": lambda: Problem(atlas(2), tips("l_rh_") + tips("r_rh_")),
        "Atlas + 2 Shadow hands 10x3D + feet 2x6D": lambda: Problem(
            atlas(2), tips("l_rh_") + tips("r_rh_") + make.surfaces(feet)
        ),
        "Go1 (altered) 4x3D feet, K=[0 I]": lambda: Problem(
            robot("go1_unitree"), make.points(go1)
        ),
        "Go1 (altered) 4x6D feet, K=I6": lambda: Problem(robot("go1_unitree"), make.surfaces(go1)),
    }
    if name.startswith("Talos"):
        full = talos()
        soles = ("leg_left_6_link", "leg_right_6_link")
        ends = ("arm_left_7_link", "arm_right_7_link") if "hands" in name else ()
        return Problem(full, make.surfaces(soles + ends)) if full is not None else None
    placed = ", K=[-skew(p) I]" in name and "Atlas feet" not in name
    key = name if name in simple else re.sub(r", K=\[.*", "", name)
    if key not in simple:
        return None
    problem = simple[key]()
    return make.moved(problem) if placed else problem


def dense(frames: tuple[str, ...], count: int) -> Problem:
    """Return Atlas with dense rows on some links."""
    return Problem(atlas(0), [c for frame in frames for c in make.dense(frame, count)])


def rows() -> Iterator[Row]:
    """Yield the rows of the recount that can be built.

    Raises
    ------
    FileNotFoundError
        If the recount or the robots are not beside the repository.
    """
    data: dict[str, Any] = json.loads(RECOUNT.read_text(encoding="utf-8"))
    for group in ("robots", "stem_rotated", "stem", "chain"):
        for name, entry in data[group].items():
            counts = {paper: entry[paper] for paper in PAPER_NAMES.values() if paper in entry}
            if group == "robots":
                problem = robot_problem(name)
                if problem is None or problem.robot.nv != entry["dof"]:
                    continue
                yield Row(group, name, counts, partial(_given, problem))
            elif group == "chain":
                joints, where = re.findall(r"\+ (\d+) joints, 6D (?:on|at) (.*) K=I6", name)[0]
                yield Row(group, name, counts, partial(make.chain, int(joints), where))
            else:
                length, branches = map(int, re.findall(r"n=(\d+), (\d+) branches", name)[0])
                turned = group == "stem_rotated"
                yield Row(group, name, counts, partial(make.stem, length, branches, turned))


def _given(problem: Problem) -> Problem:
    return problem


def is_counted(row: Row, name: str, largest: int) -> bool:
    """Return whether an algorithm is counted on a row, as its count is at most about `largest`.

    Where the recount has none, LTL is expected to need as many operations as the most expensive
    algorithm of the row, the others as many as the cheapest.
    """
    theirs = row.recount.get(PAPER_NAMES.get(name, ""))
    if theirs is None:
        theirs = (max if name == "ltl" else min)(row.recount.values())
    return theirs <= largest


def places(largest: int) -> Places:
    """Return the results of the page, with a dash for counts of more than about `largest`."""
    tables: dict[str, list[list[str]]] = {}
    short: list[tuple[float, str]] = []
    for row in rows():
        problem = row.make()
        cells = [row.name]
        for name in ALGORITHMS:
            theirs = row.recount.get(PAPER_NAMES.get(name, ""))
            if not is_counted(row, name, largest):
                cells.append("–" if theirs is None else f"– of {theirs}")
                continue
            generic = ours.operations(problem, name, generic=True).total
            specialised = ours.operations(problem, name).total
            cell = f"{generic} / {specialised}"
            if theirs is not None:
                ratio = specialised / theirs
                cell += f" of {theirs} ({generic / theirs:.2f} / {ratio:.2f})"
                if ratio > GOAL:
                    short.append((ratio, f"{row.name}, {name}"))
            cells.append(cell)
        print(*cells, sep=" | ", flush=True)
        tables.setdefault(row.group, []).append(cells)
    head = ("mechanism", *ALGORITHMS)
    listed = (f"- {ratio:.3f}: {where}" for ratio, where in sorted(short, reverse=True))
    return {
        "largest": LARGEST, "goal": GOAL, "short": "\n".join(listed),
        "tables": [[f"## {group}", table(head, lines, None)] for group, lines in tables.items()],
    }  # fmt: skip


def main() -> None:
    """Print the table and write it to the documentation."""
    parser = parser_of(".operation_counts", __doc__)
    parser.add_argument(
        "--largest",
        type=int,
        default=LARGEST,
        help="largest count [operations] of the recount in a counted row (default: %(default)s)",
    )
    add_output(parser, OUTPUT)
    arguments = parser.parse_args()
    if not RECOUNT.is_file():
        parser.error(
            f"the recount is not here: this benchmark compares with {RECOUNT.name} in "
            f"{RECOUNT.parent}, a folder that is not part of this repository"
        )
    pages.write(arguments.output, "benchmarks/operation_counts", places(arguments.largest))


if __name__ == "__main__":
    main()
