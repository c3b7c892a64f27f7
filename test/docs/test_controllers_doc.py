"""The page about controllers: all that it shows runs, and its table is of all outputs."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from delassus_ros import Solution
from delassus_ros.outputs import OUTPUTS, kernel_outputs

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "controllers.md"
METHODS = {"Λ": "inertia", "J̄": "jbar", "null spaces": "null_space", "impacts": "impact"}
"""What other pages say that the page has, with the method of a solution that returns it."""


def test_what_the_page_shows_runs() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 7
    names: dict[str, object] = {}
    has_messages = importlib.util.find_spec("delassus_msgs") is not None
    for block in blocks:
        if "delassus_msgs_py" in block and not has_messages:
            continue
        exec(compile(block, str(PAGE), "exec"), names)


def test_the_table_has_every_output_with_its_shape_and_inputs() -> None:
    row = r"^\| `(\w+)` \| ([kn × ]+) \| [^|]* \|([^|]*)\|$"
    rows = re.findall(row, PAGE.read_text("utf-8"), re.MULTILINE)
    assert {name for name, _, _ in rows} == set(kernel_outputs())
    for name, shape, needs in rows:
        output = OUTPUTS[name]
        assert shape.split(" × ") == list(output.axes.replace("m", "k")), name
        # External wrenches have a paragraph of their own.
        assert re.findall(r"\w+", needs) == [i for i in output.needs if i != "wrenches"], name


def test_what_other_pages_promise_is_a_method_of_a_solution() -> None:
    for page in (DOCS.parent / "README.md", DOCS / "tutorials" / "a_controller.md"):
        text = page.read_text(encoding="utf-8")
        found = r"\b(Λ, J̄, .*?)(?: come from the same call|\.$)"
        (promised,) = re.findall(found, text, re.MULTILINE)
        names = re.split(r", | and ", promised)
        assert names == list(METHODS), page
    assert all(callable(getattr(Solution, method)) for method in METHODS.values())
