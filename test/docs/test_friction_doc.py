"""The page about contact forces: what it shows runs, and its tables are complete."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

from delassus_ros.contact_forces import ForceStatus
from delassus_ros.contact_forces.machine_code import BUDGET
from delassus_ros.contact_forces.rows import Kind

PAGE = Path(__file__).resolve().parents[2] / "docs" / "friction.md"


def test_what_the_page_shows_runs() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(block, str(PAGE), "exec"), names)
    assert names["found"].law == "coulomb"
    # The robot falls freely but for its feet, which carry it.
    assert (names["found"].forces.reshape(4, 3)[:, 2] > 0).all()


def test_the_tables_are_complete() -> None:
    text = PAGE.read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    assert rows == [*get_args(Kind), *(status.name for status in ForceStatus)]
    assert f"at most {BUDGET} steps" in text
