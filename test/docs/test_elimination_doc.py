"""The page about algorithms as orders of elimination: its orders give G, its table is counted."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from seeds import but_slow

from benchmarks import cases
from delassus_ros import DelassusSolver, algorithms
from delassus_ros.algorithms.counting import OperationCounter
from delassus_ros.algorithms.elimination import JointPlaces, delassus
from delassus_ros.algorithms.ltl import ltl
from delassus_ros.algorithms.pv_osim import pv_osim
from delassus_ros.compiler.ir.trace import trace
from delassus_ros.rbda.trees import tree_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "elimination.md"
ORDERS = ("pv_osim", "ltl", "efpa", "kjr", "pv_osimr")


def test_each_order_on_the_page_gives_the_same_matrix() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    G = DelassusSolver(names["problem"]).solve(names["x"]["q"]).matrix
    for name in ORDERS:
        np.testing.assert_allclose(names[name], G, rtol=0, atol=1e-12 * np.abs(G).max())


def table() -> dict[str, list[int]]:
    rows = re.findall(r"^\| .*\(`(\w+)`\) \|(.*)\|$", PAGE.read_text("utf-8"), re.MULTILINE)
    return {name: [int(value) for value in numbers.split("|")] for name, numbers in rows}


ROBOTS = but_slow(cases.CASES, "talos42", "atlas42")


@pytest.mark.parametrize("case", ROBOTS, ids=lambda case: case.name)
def test_the_table_has_what_is_counted(case: cases.Case) -> None:
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
