"""Pages of ``make papers``: their numbers are those of today's methods, their reading holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.cases import BESIDE
from benchmarks.papers import __main__ as papers

PAGES = Path(__file__).resolve().parents[2] / "docs" / "papers"


def tables(name: str) -> list[list[str]]:
    """Return the cells of the rows of a page's tables."""
    lines = (PAGES / f"{name}.md").read_text("utf-8").splitlines()
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines if line[:1] == "|"]


def test_a_quick_run_gives_rows_of_the_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not BESIDE.is_dir():
        pytest.skip("no ../shared/robots beside the repository")
    monkeypatch.setattr(papers, "KEPT", tmp_path / "kept.json")
    monkeypatch.setattr("sys.argv", ["papers", "--quick", "--output", str(tmp_path)])
    papers.main()
    assert not (tmp_path / "kept.json").exists()
    for name in ("clusters", "efpa"):
        whole = (PAGES / f"{name}.md").read_text("utf-8").splitlines()
        rows = [line for line in (tmp_path / f"{name}.md").read_text("utf-8").splitlines() if line]
        assert len(rows) > 20
        assert not set(rows) - set(whole)


def test_results_are_kept_until_the_run_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "build" / "kept.json"
    assert papers.Kept(path).of("a", lambda: 1) == 1
    kept = papers.Kept(path)
    assert kept.of("a", lambda: 2) == 1
    kept.end()
    assert papers.Kept(path).of("a", lambda: 3) == 3


def test_the_reading_of_the_efpa_paper_holds() -> None:
    rows = [row for row in tables("efpa") if len(row) == 8 and row[1].isdigit()]
    assert len(rows) == 2 * len(papers.asimo.VARIANTS)
    for _, ltl, efpa, kjr, pv_osim, pv_osimr, first, second in rows:
        assert max(int(pv_osim), int(pv_osimr)) < int(efpa) < int(kjr)
        assert float(first) == round(int(ltl) / int(efpa), 2)
        assert float(second) == round(int(kjr) / int(efpa), 2)
    general, others = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    for group in (general, others):
        ratios = {row[0]: float(row[6]) for row in group}
        base = ratios["hands and feet"]
        assert abs(ratios["two more arms and legs, hands and feet"] / base - 1.0) < 0.05
        assert ratios["arms of 10 and legs of 9 joints, hands and feet"] > 1.1 * base
        assert ratios["hands of four fingers with 3 joints each, hands and feet"] > 1.3 * base
    assert float(general[0][6]) < 1.0 < float(others[0][6])


def test_the_reading_of_the_cluster_paper_holds() -> None:
    rows = [row for row in tables("clusters") if row[1].startswith("`")]
    robot, relative = "", {}
    for name, method, _, share, _, _ in rows:
        robot = name or robot
        if share:
            relative[robot, method.strip("`")] = float(share[:-2].replace("−", "-"))
    for name in papers.ROBOTS.values():
        chain = name.endswith("chain 12")
        assert (relative[name, "projected"] == 0.0) if chain else relative[name, "projected"] > 5.0
        assert relative[name, "lagrange"] > relative[name, "projection"] > 10.0
    assert relative["Mini Cheetah", "approximate"] == 0.0
    assert abs(relative["MIT Humanoid", "approximate"]) < 2.0


@pytest.mark.parametrize(
    ("printed", "found", "expected"),
    [(30.0, 40.0, "reproduces"), (80.0, 30.0, "same sign"), (-41.0, 0.0, "does not")],
)
def test_verdicts(printed: float, found: float, expected: str) -> None:
    assert papers.verdict(printed, found) == expected
