"""The page about controllers: all that it shows runs, and its table is of all outputs."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from delassus_ros.problem import OUTPUTS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "controllers.md"


def test_what_the_page_shows_runs() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 7
    names: dict[str, object] = {}
    has_messages = importlib.util.find_spec("delassus_msgs") is not None
    for block in blocks:
        if "delassus_msgs_py" in block and not has_messages:
            continue
        exec(compile(block, str(PAGE), "exec"), names)


def test_the_table_has_every_output_with_its_inputs() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert {name for name, _ in rows} == set(OUTPUTS)
