"""Figures of performance: each stands in its page, and those of README are all listed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.cases import AbsentError
from benchmarks.claims import MEASURES, Statement, report, statements
from benchmarks.measure import is_cpp
from benchmarks.pages import row, tables
from benchmarks.targets import Claim, speeds

ROOT = Path(__file__).resolve().parents[2]
REPORT = ROOT / "docs" / "benchmarks" / "README.md"
FIGURE = re.compile(r"\d[\d.]*(?: to [\d.]+)? (?:times|µs|us|ms|s|%|seconds)\b|a microsecond")
"""Figures of performance as README writes them; durations of a demo are none."""


def plain(text: str) -> str:
    """Return a text with single spaces, without emphasis."""
    return " ".join(text.replace("**", "").split())


@pytest.mark.parametrize("statement", statements(), ids=lambda s: f"{s.file}: {s.text[:40]}")
def test_a_statement_stands_in_its_page_with_its_figure(statement: Statement) -> None:
    page = plain((ROOT / statement.file).read_text(encoding="utf-8"))
    assert page.count(plain(statement.text)) == 1, (
        f"{statement.file} does not say {statement.text!r} once: change benchmarks/claims.yaml as "
        "well, after measuring"
    )
    assert bool(statement.measure) != bool(statement.command), "either measured here or elsewhere"
    assert not statement.measure or statement.measure in MEASURES
    figures = {float(each) for each in re.findall(r"\d+(?:\.\d+)?", statement.text)}
    if figures:
        assert {statement.high, statement.low} - {0.0} <= figures


def test_every_figure_of_readme_is_listed() -> None:
    page = plain((ROOT / "README.md").read_text(encoding="utf-8"))
    for statement in statements():
        if statement.file == "README.md":
            page = page.replace(plain(statement.text), "")
    found = FIGURE.findall(page)
    assert not found, f"benchmarks/claims.yaml lacks these figures of README.md: {found}"


def test_the_pages_have_the_speeds_of_the_table() -> None:
    """README, home page and report say the same, and it follows from the table of the report."""
    (table,) = tables(REPORT, "claims")
    claims = [Claim(*row[:4], None) for row in table.rows]
    expected = speeds(claims, "AMD EPYC, AVX-512")
    for page in ("README.md", "docs/index.md", "docs/benchmarks/README.md"):
        text = re.sub(r" \(\[benchmarks\]\([^)]*\)\)", "", (ROOT / page).read_text("utf-8"))
        assert plain(text).count(expected) == 1, page
    assert "| processor | AMD EPYC, " in REPORT.read_text(encoding="utf-8")


def test_the_rows_of_readme_are_those_of_the_table() -> None:
    (table,) = tables(REPORT, "glance")
    readme = (ROOT / "README.md").read_text("utf-8")
    rows = re.findall(r"^\|.*, m=\d+ \|.*\|$", readme, re.MULTILINE)
    assert len(rows) == 4 and {*rows} <= {row(cells) for cells in table.rows}


def test_the_first_table_has_the_medians_of_the_times() -> None:
    (glance,), (warm,) = tables(REPORT, "glance"), tables(REPORT, "warm")
    for label, ours, peer, times in glance.rows:
        at = warm.column("").index(label)
        medians = {
            name: float(warm.column(name)[at].partition(" / ")[2])
            for name in warm.head
            if is_cpp(name)
        }
        assert len(medians) == 4 and min(medians.values()) == float(peer)
        assert warm.column("auto")[at].endswith(f" / {ours}")
        assert warm.column("**best C++ / auto**")[at].endswith(f" / {times}")


def test_the_list_says_what_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> float:
        raise AbsentError("no such robot")

    monkeypatch.setitem(MEASURES, "fast", lambda: 1.1)
    monkeypatch.setitem(MEASURES, "slow", lambda: 2.0)
    monkeypatch.setitem(MEASURES, "absent", absent)
    lines = report(
        [
            Statement("a.md", "takes 1 us", 1.0, measure="fast", tolerance=0.2),
            Statement("a.md", "takes 1 us", 1.0, measure="slow", tolerance=0.2),
            Statement("a.md", "takes 1 us", 1.0, measure="absent"),
            Statement("a.md", "2 to 3 times", 3.0, 2.0, command="make bench"),
        ]
    )
    assert lines == [
        "holds: stated 1, measured 1.1 (a.md: takes 1 us)",
        "DOES NOT HOLD: stated 1, measured 2 (a.md: takes 1 us)",
        "not tried: stated 1, no such robot (a.md: takes 1 us)",
        "not tried: stated 2 to 3, run: make bench (a.md: 2 to 3 times)",
    ]
