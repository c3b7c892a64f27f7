"""docs/reliability.md names tests and reasons that exist, and the limits that hold."""

from __future__ import annotations

import ast
import math
import re
from functools import cache
from pathlib import Path

import pytest
from faults import FAULTS, Fault
from soak.__main__ import _parser
from soak.verdict import Limits

ROOT = Path(__file__).resolve().parents[2]

TEXT = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")


def named_tests(text: str) -> list[tuple[str, str]]:
    """Return file and name of each test that a text names."""
    return re.findall(r"`(test_\w+\.py)::(test_\w+)`", text)


@cache
def functions(file: str) -> dict[str, str]:
    """Return the functions of a test file, each with its source."""
    (path,) = (ROOT / "test").rglob(file)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {function.name: ast.unparse(function) for function in found}


def test_the_tests_exist() -> None:
    named = set(named_tests(TEXT))
    assert len(named) > 20
    for file, test in sorted(named):
        assert test in functions(file), f"{file} has no {test}"


def test_the_validity_is_that_of_the_tests() -> None:
    """Where a test asserts a pair of validity and reason, the line of the page says the same."""
    lines = 0
    for line in TEXT.splitlines():
        cells = line.split(" | ")
        cell = cells[2] if len(cells) == 4 else ""
        reasons = re.findall(r"[A-Z]+(?:_[A-Z]+)+", cell)
        source = "\n".join(functions(file)[test] for file, test in named_tests(line))
        asserted = {
            validity
            for reason in reasons
            for validity in re.findall(rf"(OK|INVALID|DEGRADED), Reason\.{reason}\b", source)
        }
        assert asserted <= set(re.findall(r"OK|INVALID|DEGRADED", cell)), line
        lines += bool(asserted)
    assert lines > 8


@pytest.mark.parametrize("fault", [each for each in FAULTS if each.reason], ids=lambda f: f.name)
def test_every_row_of_the_table_of_faults_is_on_the_page(fault: Fault) -> None:
    found = [
        cells
        for cells in (line.split(" | ") for line in TEXT.splitlines())
        if len(cells) == 4 and "`test_fault_table.py::test_fault`" in cells[3]
    ]
    expected = {fault.validity.name, *str(fault.reason.name).split("|")}
    assert any(expected <= words(cells[2]) for cells in found)


def words(text: str) -> set[str]:
    return set(re.findall(r"[A-Z_]+", text))


def test_the_reasons_exist() -> None:
    messages = [
        (ROOT / "msg" / "msg" / f"{name}.msg").read_text(encoding="utf-8")
        for name in ("DelassusMatrix", "ContactDynamics", "Estimate")
    ]
    known = set(re.findall(r"REASON_(\w+)=", "".join(messages)))
    named = {
        word
        for cell in re.findall(r"\| ([^|]*(?:INVALID|DEGRADED)[^|]*) \|", TEXT)
        for word in re.findall(r"[A-Z]+(?:_[A-Z]+)+", cell)
    }
    assert len(named) > 8
    assert named <= known


def test_the_commands_at_length_find_tests() -> None:
    names = [
        node.name
        for file in (ROOT / "test" / "node").rglob("test_*.py")
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
        and any("slow" in ast.unparse(decorator) for decorator in node.decorator_list)
    ]
    commands = re.findall(r"`make test-all ARGS=\"-k (\w+)\"`", TEXT)
    assert len(commands) >= 5
    for command in commands:
        assert [name for name in names if command in name], command


def test_the_limits_of_the_soak_run_are_the_defaults() -> None:
    options = vars(_parser().parse_args([]))
    for name, default in vars(Limits()).items():
        (row,) = [line for line in TEXT.splitlines() if f"`--{name}`" in line]
        assert ("none" if math.isinf(default) else f"{default:g}") in row, row
        assert options[name] == default
