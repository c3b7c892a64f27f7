"""The table of single faults is true, and the script puts a fault into a copy of the package."""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
import single_faults
from single_faults import Fault, faults

ROOT = Path(__file__).resolve().parents[2]

KINDS = {
    "formula", "sign", "index", "unit", "QoS", "age", "cache key", "emitter", "tracer", "gate",
    "skew", "limits", "sources", "layout", "contacts", "placements", "orientation", "motion",
    "torques", "settings", "estimator", "recordings", "friction", "stamps", "order", "publishers",
    "input", "findings",
}  # fmt: skip


@cache
def functions_of(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.name)
def test_the_text_stands_once_and_the_tests_exist(fault: Fault) -> None:
    source = (ROOT / fault.file).read_text(encoding="utf-8")
    broken = fault.put_into(source)
    assert broken != source
    compile(broken, fault.file, "exec")
    for test in fault.tests.split():
        file, _, name = test.partition("::")
        name = name.partition("[")[0]
        assert not name or name in functions_of(file), test


def test_there_are_faults_of_every_kind() -> None:
    table = faults()
    assert len(table) >= 40
    assert {fault.kind for fault in table} == KINDS
    assert max(Counter(fault.name for fault in table).values()) == 1


def test_a_text_that_does_not_stand_once_is_named() -> None:
    fault = Fault("unit", "unit", "x.py", "1e-9", "1e-6", "test_x.py")
    with pytest.raises(ValueError, match="unit: '1e-9' stands 2 times in x.py; expected once"):
        fault.put_into("1e-9 * 1e-9")


def test_a_fault_is_found_in_a_copy_alone(capsys: pytest.CaptureFixture[str]) -> None:
    (fault,) = (fault for fault in faults() if fault.name == "time between two rates")
    source = (ROOT / fault.file).read_text(encoding="utf-8")
    assert single_faults.main(["rates"]) == 0
    assert "found: test/library/measured/test_rate_change.py::" in capsys.readouterr().out
    assert (ROOT / fault.file).read_text(encoding="utf-8") == source
    harmless = Fault(
        "none", "none", fault.file, fault.old, f"{fault.old}  # as before", fault.tests
    )
    assert single_faults.result_of(harmless) == "NOT FOUND"
