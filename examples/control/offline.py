"""Command line of the examples in one process: figures, a plot and a film of a run."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path

from .film import SUFFIXES, Film, film_file


def parser(description: str, seconds: float | None = None) -> argparse.ArgumentParser:
    """Return one with what all runs may be told; how long, and a seed, where a time is given."""
    made = argparse.ArgumentParser(description=description)
    if seconds is not None:
        made.add_argument("--seconds", type=float, default=seconds)
        made.add_argument("--seed", type=int, default=0)
    made.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw the run")
    made.add_argument(
        "--film", type=film_file, metavar="FILE", help=f"{', '.join(SUFFIXES)} (a strip)"
    )
    return made


def show(
    options: argparse.Namespace,
    run: Callable[[Film | None], Iterable[str]],
    draw: Callable[[Path], None],
) -> None:
    """Run, print the figures, and write the plot and the film that are wanted.

    Parameters
    ----------
    options : of :func:`parser`.
    run : lets a film look at the robot in each tick; returns figures, a line each.
    draw : writes the plot.
    """
    film = Film() if options.film else None
    for line in run(film):
        print(line)
    if film is not None:
        film.save(options.film)
    if options.plot:
        draw(options.plot)
