"""docs/reliability.md names tests and reasons that exist, and the limits that hold."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from delassus_ros.sim.soak import _parser
from delassus_ros.sim.soak_books import Limits

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")


def test_the_tests_exist() -> None:
    named = set(re.findall(r"`(test_\w+\.py)::(test_\w+)`", TEXT))
    assert len(named) > 20
    for file, test in sorted(named):
        tree = ast.parse((ROOT / "test" / file).read_text(encoding="utf-8"))
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert test in functions, f"{file} has no {test}"


def test_the_reasons_exist() -> None:
    message = (ROOT / "msg" / "msg" / "DelassusMatrix.msg").read_text(encoding="utf-8")
    known = set(re.findall(r"REASON_(\w+)=", message))
    named = {
        word
        for cell in re.findall(r"\| ([^|]*(?:INVALID|DEGRADED)[^|]*) \|", TEXT)
        for word in re.findall(r"[A-Z]+(?:_[A-Z]+)+", cell)
    }
    assert len(named) > 8
    assert named <= known


def test_the_limits_of_the_soak_run_are_the_defaults() -> None:
    options = vars(_parser().parse_args([]))
    for name, default in vars(Limits()).items():
        (row,) = [line for line in TEXT.splitlines() if f"`--{name}`" in line]
        assert f"{default:g}" in row, row
        assert options[name] == default
