"""How the results of a part are stored: lanes side by side as vectors.

Most entries of G are lanes of vectors. Lanes side by side that are entries of one row are
stored at once, as a vector. In the other half of the symmetric matrix they are a column: there,
lanes of the vectors of two rows are entries side by side, and are stored in pairs.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from delassus.compiler.ir.program import CACHE_LINE_BYTES, EXTRACT, Part


@dataclass(frozen=True)
class Run:
    """Lanes of a value that are entries of the output block, each after the one before.

    Attributes
    ----------
    value : position of the value.
    lane, count : the first lane, and how many there are.
    entry : that of the first lane.
    """

    value: int
    lane: int
    count: int
    entry: int


@dataclass
class Zip:
    """Pairs of entries, the first ones from one vector and the second ones from another.

    Attributes
    ----------
    values : positions of both vectors, of one width.
    entries : lane of both, and entry of the first.
    """

    values: tuple[int, int]
    entries: list[tuple[int, int]] = field(default_factory=list)


Piece = Run | Zip

_LINE_DOUBLES = CACHE_LINE_BYTES // 8
"""Doubles in a line of the cache. Pairs stored across two lines made a kernel of 42 rows 5 %
slower."""


def _in_a_line(entry: int, count: int) -> bool:
    return entry % _LINE_DOUBLES + count <= _LINE_DOUBLES


def pieces(part: Part) -> dict[int, list[Piece]]:
    """Return what to store of the outputs of a part, by the position after which it is there."""
    code = part.program.instructions
    # Per value what its lanes are; a scalar has one.
    lanes: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for k, entry in part.outputs:
        instruction = code[k]
        if instruction.kind == EXTRACT:
            lanes[instruction.operands[0]].append((entry, instruction.lanes[0]))
        else:
            lanes[k].append((entry, 0))
    found: dict[int, list[Piece]] = defaultdict(list)
    single: dict[int, tuple[int, int]] = {}
    for value, members in lanes.items():
        for run in _runs(value, sorted(members)):
            if run.count > 1:
                found[value].append(run)
            else:
                single[run.entry] = value, run.lane
    zips: dict[tuple[int, int], Zip] = {}
    paired: set[int] = set()
    for entry in sorted(single):
        (value, lane), (other, its_lane) = single[entry], single.get(entry + 1, (-1, -1))
        if entry in paired:
            continue
        alike = lane == its_lane and 1 < code[value].width == code[other].width
        if alike and _in_a_line(entry, 2):
            pair = zips.setdefault((value, other), Zip((value, other)))
            pair.entries.append((lane, entry))
            paired |= {entry, entry + 1}
        else:
            found[value].append(Run(value, lane, 1, entry))
    for pair in zips.values():
        found[max(pair.values)].append(pair)
    return found


def _runs(value: int, members: list[tuple[int, int]]) -> list[Run]:
    """Return runs of two, four and so on lanes, and single ones, from entries with their lanes."""
    runs = []
    start = 0
    while start < len(members):
        entry, lane = members[start]
        count = 1
        while members[start + count : start + count + 1] == [(entry + count, lane + count)]:
            count += 1
        # Of a vector register there are halves and quarters, beginning at their own size.
        while count & (count - 1) or lane % count or not _in_a_line(entry, count):
            count -= 1
        runs.append(Run(value, lane, count, entry))
        start += count
    return runs
