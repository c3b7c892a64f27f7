"""Page of orders of elimination: operation counts of its table."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest
from seeds import but_slow

from benchmarks import cases
from delassus import algorithms
from delassus.algorithms.counting import OperationCounter
from delassus.algorithms.elimination import JointPlaces, delassus
from delassus.algorithms.ltl import ltl
from delassus.algorithms.pv_osim import pv_osim
from delassus.compiler.ir.trace import trace
from delassus.rbda.trees import tree_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "elimination.md"


def table() -> dict[str, list[int]]:
    rows = re.findall(r"^\| .*\(`(\w+)`\) \|(.*)\|$", PAGE.read_text("utf-8"), re.MULTILINE)
    return {name: [int(value) for value in numbers.split("|")] for name, numbers in rows}


ROBOTS = but_slow(cases.CASES, "talos42", "atlas42")


@pytest.mark.parametrize("case", ROBOTS, ids=lambda case: case.name)
def test_operation_counts_of_table(case: cases.Case) -> None:
    try:
        problem = case.load()
    except cases.AbsentError as reason:
        pytest.skip(str(reason))
    tree = tree_of(problem)
    count = OperationCounter(problem, tree, generic=False)
    orders = JointPlaces.pv_osim(tree), JointPlaces.ltl(tree)
    first, second = (count(partial(delassus, order=order)) for order in orders)
    found, auto = (
        trace(problem, algorithms.get(name)).operations.total for name in ("elimination", "auto")
    )
    shown = table()[case.name]
    assert shown == [count(pv_osim), first, count(ltl), second, found, auto]
