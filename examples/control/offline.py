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
        made.add_argument(
            "--seconds", type=float, default=seconds, help="simulated time [s] (%(default)g)"
        )
        made.add_argument("--seed", type=int, default=0)
    made.add_argument(
        "--plot", type=Path, metavar="FILE.png", help="figure of the run that is written"
    )
    made.add_argument(
        "--film",
        type=film_file,
        metavar="FILE",
        help=f"film that is written: {', '.join(SUFFIXES)} (a strip)",
    )
    return made


def show(
    options: argparse.Namespace,
    figures: Iterable[str],
    film: Film | None,
    draw: Callable[[Path], None],
) -> None:
    """Print the figures of a run, a line each, and write the film and the plot that are wanted."""
    for line in figures:
        print(line)
    if film is not None:
        film.save(options.film)
    if options.plot:
        draw(options.plot)
