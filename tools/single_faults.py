"""Put single faults into the product, one at a time, and check that the tests find each of them.

``make faults`` tries all rows of ``single_faults.yaml``, ``make faults ARGS=age`` those of a kind
or with a word in their name. The package in the checkout is left alone: the tests import a copy.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

ROOT = Path(__file__).resolve().parents[1]
TABLE = Path(__file__).with_suffix(".yaml")
LONGEST_RUN_S = 600
"""The tests of one fault are ended after this time; a fault that makes them hang is found."""
_PASSED, _FAILED = 0, 1
"""Exit codes of pytest; all other ones mean that no test ran."""


@dataclass(frozen=True)
class Fault:
    """One row of the table.

    Attributes
    ----------
    name : unique name.
    kind : formula, sign, index, unit, QoS, age, cache key, emitter, tracer, gate …
    file : path of the source, from the root of the checkout.
    old : text that stands exactly once in the file.
    new : text in its place.
    tests : ids of tests or of files of tests, separated by spaces; at least one test fails.
    """

    name: str
    kind: str
    file: str
    old: str
    new: str
    tests: str

    def put_into(self, source: str) -> str:
        """Return a source with the fault in it.

        Raises
        ------
        ValueError
            The text to replace does not stand exactly once in the source.
        """
        found = source.count(self.old)
        if found != 1:
            raise ValueError(
                f"{self.name}: {self.old!r} stands {found} times in {self.file}; expected once"
            )
        return source.replace(self.old, self.new)


def faults() -> list[Fault]:
    """Return the rows of the table."""
    return [Fault(**row) for row in yaml.safe_load(TABLE.read_text(encoding="utf-8"))]


def run_tests(tests: Iterable[str], fault: Fault | None = None) -> tuple[int, list[str]]:
    """Run tests on a copy of the packages.

    Parameters
    ----------
    tests : ids of pytest.
    fault : put into the copy; None: the copy is as the packages.

    Returns
    -------
    The exit code of pytest, and the ids of tests that failed: with a fault, the first one alone.
    The exit code is that of failed tests if they did not end within :data:`LONGEST_RUN_S`.
    """
    with TemporaryDirectory(prefix="single_fault_") as folder:
        copy = Path(folder)
        for package in ("delassus", "delassus_ros"):
            shutil.copytree(
                ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__")
            )
        if fault is not None:
            path = copy / fault.file
            path.write_text(fault.put_into(path.read_text(encoding="utf-8")), encoding="utf-8")
        # Not `python -m pytest`, which would import the package of the checkout. The caches of
        # kernels and bytecode are of this run alone.
        command = [
            str(Path(sys.executable).parent / "pytest"), "-n0", "-q", "-o",
            f"cache_dir={copy / 'cache'}", *(["-x"] if fault is not None else []), *tests,
        ]  # fmt: skip
        surroundings = {**os.environ, "PYTHONPATH": str(copy), "TMPDIR": str(copy)}
        limit = None if fault is None else LONGEST_RUN_S
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=surroundings, timeout=limit, capture_output=True, text=True
            )
        except subprocess.TimeoutExpired:
            return _FAILED, [f"no end within {LONGEST_RUN_S} s"]
    lines = done.stdout.splitlines()
    failed = [line.split(" - ")[0] for line in lines if line.startswith(("FAILED", "ERROR"))]
    return done.returncode, [line.split(maxsplit=1)[1] for line in failed]


def result_of(fault: Fault) -> str:
    """Return ``found`` with the test that found a fault, or that none did."""
    code, failed = run_tests(fault.tests.split(), fault)
    if code == _FAILED:
        return f"found: {failed[0] if failed else 'a test failed'}"
    return "NOT FOUND" if code == _PASSED else f"NO TEST RAN: exit code {code} of pytest"


def main(arguments: Sequence[str] | None = None) -> int:
    """Try faults, print a line for each, and return 1 if the tests missed one."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument(
        "words",
        nargs="*",
        metavar="WORD",
        help="kind, or word of the name, of a fault (default: all faults)",
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count(), help="faults tried at the same time"
    )
    options = parser.parse_args(arguments)
    table = faults()
    chosen = [
        fault
        for fault in table
        if not options.words or not {fault.kind, *fault.name.split()}.isdisjoint(options.words)
    ]
    if not chosen:
        kinds = ", ".join(sorted({fault.kind for fault in table}))
        parser.error(f"no fault has one of these words as its kind or in its name; kinds: {kinds}")
    tests = dict.fromkeys(test for fault in chosen for test in fault.tests.split())
    code, failed = run_tests(tests)
    if code != _PASSED:
        print(f"Without a fault, pytest ends with exit code {code}: {', '.join(failed)}")
        return 1
    missed = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for fault, result in zip(chosen, pool.map(result_of, chosen), strict=True):
            missed += not result.startswith("found")
            print(f"{fault.kind:12} {fault.name:50} {result}", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} single faults found")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
