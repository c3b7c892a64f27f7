"""docs/reliability.md has every reason and the words of the node; the limits of the soak run."""

from __future__ import annotations

import math

import pytest
from soak.__main__ import _parser
from soak.verdict import Limits

from delassus_ros.inputs.findings import Reason
from scripts.reliability import PAGE, ROW, filled

TEXT = PAGE.read_text(encoding="utf-8")


def test_each_reason_has_a_row_with_a_remedy() -> None:
    rows = ROW.findall(TEXT)
    assert sorted(name for name, *_ in rows) == sorted(str(each.name) for each in Reason if each)
    assert all(len(cell) > 1 for row in rows for cell in row), rows


@pytest.mark.needs("rclpy", "delassus_msgs")
def test_words_are_those_of_the_fault_table() -> None:
    assert filled(TEXT) == TEXT, "python scripts/reliability.py writes the page"


def test_limits_of_the_soak_run_are_the_defaults() -> None:
    lines = (PAGE.parent / "howto" / "real_time.md").read_text(encoding="utf-8").splitlines()
    options = vars(_parser().parse_args([]))
    for name, default in vars(Limits()).items():
        (row,) = [line for line in lines if line.endswith(f"| `--{name}` |")]
        assert ("none" if math.isinf(default) else f"{default:g}") in row, row
        assert options[name] == default
