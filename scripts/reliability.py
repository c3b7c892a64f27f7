"""Write validity and words of the fault table of the tests into the tables of docs/reliability.md.

The faults are made, and the words are those of the node. A reason that no row of the fault table
has keeps the text of the page. Causes and remedies are written on the page.
"""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reliability.md"
MOST_WORDS = 2
"""Number of examples of words for a reason, each of another input."""
LONGEST = 140
"""Number of characters of an example."""
ROW = re.compile(r"^\| ([A-Z_]+) \| (.*) \| (.*) \| (.*) \| (.*) \|$", re.MULTILINE)
"""Reason, validity, cause, words and remedy."""


def words_of(fault: Any) -> str:
    """Make a fault and return the words of the node, cut after a word."""
    (file,) = (ROOT / "test").rglob("test_*fault_table.py")
    rig = import_module(file.stem).RIGS[fault.rig]()
    rig.good()
    fault.act(rig)
    text = next(line for line in rig.text.splitlines() if fault.words in line)
    return text if len(text) <= LONGEST else text[:LONGEST].rpartition(" ")[0] + " …"


def cells() -> dict[str, tuple[str, str]]:
    """Return validity and words by the name of the reason."""
    from faults import FAULTS

    from delassus_ros.inputs.findings import Reason

    found = {}
    for reason in Reason:
        rows = [row for row in FAULTS if row.reason == reason and row.validity is not None]
        if reason and rows:
            first: dict[str, Any] = {}
            for row in rows:
                first.setdefault(row.topic, row)
            words = [f"`{words_of(row)}`" for row in [*first.values()][:MOST_WORDS]]
            validities = sorted({row.validity for row in rows})
            found[str(reason.name)] = " or ".join(v.name for v in validities), ", ".join(words)
    return found


def filled(page: str) -> str:
    """Return the page with the cells of the fault table."""
    found = cells()

    def row(match: re.Match[str]) -> str:
        name, validity, cause, words, remedy = match.groups()
        validity, words = found.get(name, (validity, words))
        return f"| {name} | {validity} | {cause} | {words} | {remedy} |"

    return ROW.sub(row, page)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "test"))
    import_module("conftest")  # which adds the folders of the tests
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
