"""Write the data set, and the page about solvers: ``python -m benchmarks.contact_problems``."""

from __future__ import annotations

import importlib.util
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks import pages
from benchmarks.arguments import add_output, parser_of
from benchmarks.contact_problems.fuzz import Findings, fuzz
from benchmarks.contact_problems.generator import ContactProblem, problems
from benchmarks.contact_problems.measure import PUBLIC, measured
from benchmarks.contact_problems.page import places
from benchmarks.contact_problems.solutions import solutions
from benchmarks.contact_problems.writers import write_fclib, write_parquet

_ROOT = Path(__file__).resolve().parents[2]
_PUBLIC_FOLDER = _ROOT.parent / "shared" / "contact_problems"
_COUNT, _QUICK_COUNT = 2000, 100
_FUZZED, _QUICK_FUZZED = 200_000, 5000
_started = time.perf_counter()


def public_problems() -> list[ContactProblem]:
    """Return the public problems that stand beside the repository, none where they do not."""
    found = []
    for path in sorted(_PUBLIC_FOLDER.glob("*.npz")):
        file = np.load(path)
        rows = np.add.outer(3 * np.arange(len(file["mu"])), [1, 2, 0]).ravel()
        names = tuple(str(c) for c in range(len(file["mu"])))
        W, mu = file["W"][np.ix_(rows, rows)], file["mu"].astype(float)
        found.append(ContactProblem(PUBLIC, path.stem, names, W, file["q"][rows], mu))
    return found


def _say(text: str) -> None:
    print(f"[{time.perf_counter() - _started:5.0f} s] {text}", flush=True)


def main() -> int:
    """Run; return the exit status: 1 if a SOLVED was wrong."""
    parser = parser_of(".contact_problems", __doc__)
    parser.add_argument(
        "--quick", action="store_true",
        help="100 problems, and a page in the folder of the data set, as a test of the benchmark",
    )  # fmt: skip
    add_output(parser, _ROOT / "build" / "contact_problems", "the folder of the data set")
    parser.add_argument(
        "--fuzz", type=int, metavar="N",
        help=f"number of fuzzed problems (default: {_FUZZED}; with --quick {_QUICK_FUZZED})",
    )  # fmt: skip
    arguments = parser.parse_args()
    quick, folder = arguments.quick, arguments.output
    folder.mkdir(parents=True, exist_ok=True)
    solved = solutions(problems(_QUICK_COUNT if quick else _COUNT))
    write_parquet(folder / "contact_problems.parquet", solved)
    if importlib.util.find_spec("h5py") is None:
        _say("no HDF5: h5py is not installed")
    else:
        (folder / "fclib").mkdir(exist_ok=True)
        for number, item in enumerate(solved):
            name = f"{item.problem.family.replace(' ', '_')}_{number:04d}.hdf5"
            write_fclib(folder / "fclib" / name, item)
    _say(f"{len(solved)} problems in {folder}")
    outcomes = measured([*(item.problem for item in solved), *public_problems()], _say)
    path = folder / "contact_problems.md"
    if not quick:
        path = _ROOT / "docs" / "benchmarks" / "contact_problems.md"
    text, findings = "benchmarks/contact_problems", Findings()
    pages.write(path, text, places(solved, outcomes, findings))
    fuzzed = arguments.fuzz
    if fuzzed is None:
        fuzzed = _QUICK_FUZZED if quick else _FUZZED
    _say(f"{path}; {fuzzed} fuzzed problems")
    if fuzzed:
        findings = fuzz(0, fuzzed)
        pages.write(path, text, places(solved, outcomes, findings))
    _say("done")
    if wrong := findings.wrong + findings.not_finite + findings.over_budget:
        print(f"fuzzed problems with wrong results: {wrong[:20]}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
