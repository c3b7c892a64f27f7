"""The pages about papers: comparisons are of the tables, titles are those of CITATION.cff."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

from benchmarks import operation_counts, pages
from delassus.algorithms.pv_osimr import pv_osimr

ROOT = Path(__file__).resolve().parents[2]
VERDICTS = ROOT / "docs" / "papers" / "verdicts.md"
COUNTS = ROOT / "docs" / "benchmarks" / "operation_counts.md"
CLUSTERS = ROOT / "docs" / "benchmarks" / "clusters.md"
PV_OSIMR = ROOT / "docs" / "papers" / "pv_osimr.md"
NUMBER = r"\d+(?:\.\d+)?"
COMPARISON = re.compile(rf"({NUMBER}) /\s+({NUMBER}), ([+−]{NUMBER})(?:\s%|$)", re.MULTILINE)


def comparisons(text: str) -> list[tuple[str, str, float]]:
    """Return the comparisons of a page: two numbers, and how much more the first is [%]."""
    found = COMPARISON.findall(text)
    return [(a, b, float(percent.replace("−", "-"))) for a, b, percent in found]


def rows(page: Path) -> list[set[str]]:
    """Return the numbers of each row of the tables of a page."""
    lines = [pages.row(cells) for place in pages.read(page)
             for table in pages.tables(page, place) for cells in table.rows]  # fmt: skip
    return [set(re.findall(rf"(?<![\w.]){NUMBER}(?![\w.])", line)) for line in lines]


def test_the_comparisons_are_those_of_the_tables() -> None:
    text = VERDICTS.read_text(encoding="utf-8")
    found = comparisons(text)
    # No comparison is written otherwise, but those that are printed alone.
    assert len(found) == len(re.findall(rf"{NUMBER} /\s+{NUMBER}", text)) > 50
    tables = rows(COUNTS) + rows(CLUSTERS)
    # Counts that the table of operation counts leaves out are on the paper's own page.
    large = {number for page in (COUNTS, PV_OSIMR) for row in rows(page) for number in row}
    # Dense rows are counted for the paper alone: a column of its page for each size.
    tables += [
        set(column)
        for table in pages.tables(PV_OSIMR, "tables")
        for column in zip(*table.rows, strict=True)
    ]
    for a, b, percent in found:
        assert round(100.0 * (float(a) / float(b) - 1.0), 1) == percent, (a, b)
        if min(int(float(a)), int(float(b))) > operation_counts.LARGEST:
            assert {a, b} <= large, (a, b)
        else:
            assert any({a, b} <= row for row in tables), f"{a} and {b} are in no row of the tables"


def test_the_table_counts_every_mechanism_of_the_recount() -> None:
    if not operation_counts.RECOUNT.is_file():
        pytest.skip("no ../shared/oracle/operation_counts.json beside the repository")
    tables = pages.tables(COUNTS, "tables")
    counted = {name: cells for table in tables for name, *cells in table.rows}
    assert set(counted) == {row.name for row in operation_counts.rows()}
    for row in operation_counts.rows():
        for name, paper in operation_counts.PAPER_NAMES.items():
            theirs = row.recount.get(paper)
            if theirs is not None and theirs <= operation_counts.LARGEST:
                cell = counted[row.name][operation_counts.ALGORITHMS.index(name)]
                assert re.match(rf"\d+ / \d+ of {theirs} ", cell), (row.name, name)


def test_what_pv_osimr_is_said_to_be_tells_of_its_nodes() -> None:
    line = (pv_osimr.__doc__ or "").partition("\n")[0]
    assert "fewer nodes than Algorithm 3 where at most six rows meet" in line


def titles() -> dict[str, list[str]]:
    """Return the titles of the references by the family name of their first author."""
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8").partition("references:")[2]
    entry = r"title: (.*)\n +authors:\n +- \{family-names: ([^,]+),"
    found = defaultdict(list)
    for title, author in re.findall(entry, text):
        found[author].append(title.strip('"'))
    return found


AUTHORS = r"((?:(?:and )?(?:[A-Z]\.\s?)*[A-Z][\w-]+(?:,|(?= and))\s+)+)"
CITED = [re.compile(AUTHORS + form) for form in (r"\"([^\"]+)\"", r"\*([^*]+)\*")]


def test_the_titles_of_papers_are_those_of_the_references() -> None:
    """In docstrings and on pages; the words before a colon are enough."""
    known = titles()
    assert len(known) >= 6
    folders = ("delassus", "delassus_ros", "benchmarks", "docs", "examples", "test")
    every = [file for folder in folders for file in (ROOT / folder).rglob("*.*")]
    files = [file for file in every if file.suffix in (".py", ".md")]
    checked, wrong = 0, []
    for file in files:
        text = file.read_text(encoding="utf-8")
        for authors, title in (each for form in CITED for each in form.findall(text)):
            first = authors.split(",")[0].split()[-1].rpartition(".")[2]
            if first not in known:
                continue
            checked += 1
            said = " ".join(title.split()).rstrip(",.").casefold()
            full = [each.casefold() for each in known[first]]
            if not any(said in (each, each.partition(":")[0]) for each in full):
                wrong.append(f"{file.relative_to(ROOT)}: {first}, {title!r}")
    assert checked > 20
    assert wrong == []
