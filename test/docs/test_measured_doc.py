"""The page about dynamics from measurements: all that it shows runs, its table is complete."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

from delassus_ros.measured.quantities import Quantity

PAGE = Path(__file__).resolve().parents[2] / "docs" / "measured.md"


def test_what_the_page_shows_runs() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 2
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert names["found"].redundant == 36
    shown = " ".join(line.strip("# ") for line in blocks[1].splitlines() if "# " in line[:6])
    assert names["words"].startswith(shown.partition(", ...")[0]), names["words"]
    system = names["system"]
    assert (system.unknowns, system.equations, system.kind) == (456, 492, "overdetermined")


def test_the_table_has_every_quantity() -> None:
    rows = re.findall(r"^\| `(\w+)\(", PAGE.read_text("utf-8"), re.MULTILINE)
    assert rows == [kind.__name__ for kind in get_args(Quantity)]
