"""Pages of ``make papers``: their numbers are those of today's methods, their reading holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.cases import BESIDE
from benchmarks.mechanisms import stem
from benchmarks.papers import __main__ as papers
from benchmarks.papers import osimr
from benchmarks.papers.kept import Kept
from benchmarks.scaling import exponent
from delassus_ros.algorithms.pv_osimr import joining_nodes, wide_nodes
from delassus_ros.rbda.trees import tree_of

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
    for name in ("clusters", "efpa", "pv_osimr"):
        whole = (PAGES / f"{name}.md").read_text("utf-8").splitlines()
        rows = [line for line in (tmp_path / f"{name}.md").read_text("utf-8").splitlines() if line]
        assert len(rows) > 20
        assert not set(rows) - set(whole)


def test_results_are_kept_until_the_run_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "build" / "kept.json"
    assert Kept(path).of("a", lambda: 1) == 1
    kept = Kept(path)
    assert kept.of("a", lambda: 2) == 1
    kept.end()
    assert Kept(path).of("a", lambda: 3) == 3


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


def test_the_reading_of_the_pv_osimr_paper_holds() -> None:
    page = (PAGES / "pv_osimr.md").read_text("utf-8")
    over_n, over_m, root, every = (fits(page, sweep.title) for sweep in osimr.SWEEPS)
    for table in (over_n, over_m):
        assert set(table) == set(osimr.ALGORITHMS)
        assert all(0.0 < found <= float(told) for _, found, _, told in table.values())
    assert [name for name, row in over_n.items() if row[1] > 1.0] == ["ltl"]
    for name, apart in (("pv_osimr", 0.1), ("efpa", 0.1)):
        assert abs(root[name][1] - float(root[name][3])) < apart
    for table in (root, every):
        _, found, again, limit = table["pv_osim"]
        assert max(found, float(again)) < float(limit) - 0.3
    assert abs(every["efpa"][1] - every["pv_osimr"][1]) <= 0.1
    last = {name: row[0] for name, row in every.items()}
    assert abs(last["pv_osimr"] / last["efpa"] - 1.0) < 0.015
    assert abs(last["kjr"] / last["efpa"] - 0.5) < 0.02

    stems = {row[0]: counts_of(row[1:4]) for row in tables("pv_osimr") if row[0][:5] == "stem "}
    assert len(stems) == len(osimr.STEMS) * len(osimr.BRANCHES)
    assert {name for name, (efpa, pv, _) in stems.items() if pv > efpa} == {
        "stem 50, branches 10", "stem 100, branches 10"
    }  # fmt: skip
    for name, (_, pv_osim, pv_osimr) in stems.items():
        assert (pv_osimr == pv_osim) if name.endswith(" 1") else (pv_osimr < pv_osim)

    robots = {
        row[0]: counts_of(row[1:5])
        for row in tables("pv_osimr")
        if row[0] in (*osimr.ATLAS, *osimr.HANDS)
    }
    feet, points, _ = (robots[name] for name in osimr.ATLAS)
    hand, *mounted = (robots[name] for name in osimr.HANDS)
    assert feet[3] == feet[2] < min(feet[:2]) and points[2] > 1.199 * points[3]
    assert max(hand[0], hand[2]) < hand[3] < hand[1]
    for ltl, efpa, pv_osim, pv_osimr in mounted:
        assert 0.66 * pv_osim < pv_osimr < pv_osim < efpa < ltl


def test_both_forms_of_pv_osimr_have_the_same_nodes_on_the_page() -> None:
    problems = [sweep.make(sweep.sizes[0]) for sweep in osimr.SWEEPS]
    problems += [stem(10, branches, rotated=True) for branches in osimr.BRANCHES]
    if BESIDE.is_dir():
        problems += [osimr.published()[name].make() for name in (*osimr.ATLAS, *osimr.HANDS)]
    trees = [tree_of(problem) for problem in problems]
    assert all(wide_nodes(tree) == joining_nodes(tree) for tree in trees)
    assert any(wide_nodes(tree) for tree in trees)


def fits(page: str, title: str) -> dict[str, tuple[int, float, str, str]]:
    """Return the last count, both fits and what is printed, by algorithm, of a table.

    The fit is that of the counts of the row.
    """
    lines = page.partition(f"## {title}\n")[2].partition("\n## ")[0].splitlines()
    head, _, *rows = (
        [c.strip() for c in line[1:-1].split("|")] for line in lines if line[:1] == "|"
    )
    sizes = [int(cell.partition("= ")[2]) for cell in head[1:-3]]
    found = {}
    for name, *counts, fit, again, told in rows:
        points = dict(zip(sizes, map(float, counts), strict=True))
        assert f"{exponent(points):.2f}" == fit
        found[name.strip("`")] = (int(counts[-1]), float(fit), again, told)
    return found


def counts_of(cells: list[str]) -> list[int]:
    """Return our counts of the cells "ours of published"."""
    return [int(cell.partition(" of ")[0]) for cell in cells]


@pytest.mark.parametrize(
    ("printed", "found", "expected"),
    [(30.0, 40.0, "reproduces"), (80.0, 30.0, "same sign"), (-41.0, 0.0, "does not")],
)
def test_verdicts(printed: float, found: float, expected: str) -> None:
    assert papers.verdict(printed, found) == expected
