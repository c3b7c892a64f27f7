"""Finds slips and the worst conditioned stances: ``python -m mining.mine out/*.parquet``.

A foot that carries load and moves along the floor slips. The impulse p that would stop all
contacts at once is in the table, and G p = -J v, so their velocities are as well. Where the
condition number of G is large, one force at the feet moves them far less than another of the same
size. The 2 % worst conditioned stances are found: a share of all, not a limit that is bad by
itself.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pyarrow import parquet

Array = npt.NDArray[np.float64]
SLIP = 0.05
"""Speed along the floor from which on a foot slips [m/s]."""
SHORTEST = 0.012
"""How long it has to last: a foot that lands is not still at once [s]."""
RARE = 0.02
"""Share of all stances that is found for its condition number: the worst."""


@dataclass(frozen=True)
class Event:
    """A finding in a recording.

    Attributes
    ----------
    walk, begin, end : where: name of the table, and times in it [s].
    what : the slipping foot, or the standing feet.
    worst : largest speed [m/s], or condition number.
    """

    walk: str
    begin: float
    end: float
    what: str
    worst: float


@dataclass(frozen=True)
class Walk:
    """The contents of a table.

    Attributes
    ----------
    name, contacts : of the walk, and of its feet.
    time, condition : (N,) [s], and condition numbers, NaN where there is no matrix.
    active, speed : (N, k) which feet stand, and how fast they move along the floor [m/s].
    """

    name: str
    contacts: tuple[str, ...]
    time: Array
    condition: Array
    active: npt.NDArray[np.bool_]
    speed: Array

    @classmethod
    def read(cls, path: Path) -> Walk:
        """Read a table that ``delassus bags`` has written, with matrix and impulse.

        Raises
        ------
        ValueError
            If the rows of its matrices are not along the axes of the world.
        """
        names = ["timestamp", "condition", "active", "matrix", "impulse"]
        table = parquet.read_table(path, columns=names)
        about = json.loads(table.schema.metadata[b"delassus"])
        if about["axes"] != "world":
            raise ValueError(
                f"{path}: the rows of its matrices are along the axes {about['axes']!r}; expected "
                "'world', as speeds along the floor need it: set 'axes: world' in the parameter "
                "file and run `delassus bags` again"
            )
        contacts = tuple(about["contacts"])
        n, m = table.num_rows, 3 * len(contacts)

        def numbers(name: str) -> Array:
            flat = table[name].combine_chunks().flatten().to_numpy(zero_copy_only=False)
            return np.asarray(np.nan_to_num(flat.astype(float)))

        G, p = numbers("matrix").reshape(n, m, m), numbers("impulse").reshape(n, m)
        velocity = -np.einsum("nij,nj->ni", G, p).reshape(n, -1, 3)
        condition = table["condition"].to_numpy().copy()
        condition[condition < 1.0] = np.nan
        return cls(
            path.stem, contacts, table["timestamp"].to_numpy(), condition,
            np.array(table["active"].to_pylist()), np.linalg.norm(velocity[:, :, :2], axis=2),
        )  # fmt: skip

    def slips(self) -> Iterator[Event]:
        """Yield when which foot slips."""
        for number, name in enumerate(self.contacts):
            slides = self.active[:, number] & (self.speed[:, number] > SLIP)
            for first, last in _runs(slides):
                begin, end = self.time[first], self.time[last]
                if end - begin >= SHORTEST:
                    worst = self.speed[first : last + 1, number].max()
                    yield Event(self.name, begin, end, name, float(worst))

    def worse_conditioned(self, limit: float) -> Iterator[Event]:
        """Yield when feet stand so that the condition number is above a limit."""
        for first, last in _runs(self.condition > limit):
            place = first + int(np.nanargmax(self.condition[first : last + 1]))
            feet = "+".join(
                c for c, on in zip(self.contacts, self.active[place], strict=True) if on
            )
            worst = float(self.condition[place])
            yield Event(self.name, self.time[first], self.time[last], feet, worst)


def _runs(marks: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last place of each run of marks."""
    changes = np.flatnonzero(np.diff(marks.astype(int), prepend=0, append=0))
    for first, end in zip(changes[::2], changes[1::2], strict=True):
        yield int(first), int(end) - 1


def mine(paths: Sequence[Path]) -> tuple[list[Event], list[Event], float]:
    """Return slips, the worst conditioned stances, and the condition number they are above."""
    walks = [Walk.read(path) for path in paths]
    conditions = np.concatenate([walk.condition for walk in walks])
    limit = float(np.nanquantile(conditions, 1.0 - RARE))
    slips = [event for walk in walks for event in walk.slips()]
    return slips, [event for walk in walks for event in walk.worse_conditioned(limit)], limit


def main() -> int:
    """Print the worst findings, and the walks with slips."""
    parser = argparse.ArgumentParser(description="Find slips and the worst conditioned stances.")
    parser.add_argument("tables", type=Path, nargs="+", metavar="TABLE.parquet")
    options = parser.parse_args()
    try:
        slips, stances, limit = mine(options.tables)
    except ValueError as error:
        parser.error(str(error))
    walks = {event.walk for event in slips}
    print(f"{len(slips)} slips in {len(walks)} of {len(options.tables)} walks; the fastest:")
    for event in sorted(slips, key=lambda each: -each.worst)[:5]:
        print(f"  {event.walk} {event.begin:6.3f} s {event.what}: {event.worst:.2f} m/s")
    print(f"the {RARE:.0%} worst conditioned stances, with a condition number above {limit:.0f},")
    print(f"in {len(stances)} stretches of time; the worst:")
    for event in sorted(stances, key=lambda each: -each.worst)[:5]:
        print(f"  {event.walk} {event.begin:6.3f} s {event.what}: {event.worst:.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
