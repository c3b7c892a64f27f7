"""Pages of ``make papers``: their numbers are those of today's methods, their reading holds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from paper_tables import by_heading, method_rows
from PIL import Image

from benchmarks import style
from benchmarks.cases import BESIDE
from benchmarks.mechanisms import Links, rotation, stem, surfaces
from benchmarks.ours import operations as operations_of
from benchmarks.pages import Table, read, tables
from benchmarks.papers import __main__ as papers
from benchmarks.papers import asimo, kept, matrix_aba, nori, osimr, stages
from benchmarks.papers.kept import Kept
from benchmarks.papers.page import DEPENDS, DOES_NOT, REPRODUCES, Claim, published, summary
from benchmarks.scaling import exponent
from delassus import Problem
from delassus.algorithms.pv_osimr import joining_nodes, wide_nodes
from delassus.measured.system import System
from delassus.model import WORLD
from delassus.rbda.trees import tree_of

PAGES = Path(__file__).resolve().parents[2] / "docs" / "papers"


def rows_of(name: str) -> list[list[str]]:
    """Return the rows of the tables that stand below headings on a page."""
    return [row for table in by_heading(PAGES / f"{name}.md").values() for row in table.rows]


def test_a_quick_run_gives_rows_of_the_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not BESIDE.is_dir():
        pytest.skip("no ../shared/robots beside the repository")
    monkeypatch.setattr(papers, "KEPT", tmp_path / "kept.json")
    monkeypatch.setattr("sys.argv", ["papers", "--quick", "--output", str(tmp_path)])
    assert papers.main() == 0
    assert not (tmp_path / "kept.json").exists()
    for page in papers.ALL:
        assert set(read(tmp_path / f"{page.name}.md")) == set(read(PAGES / f"{page.name}.md"))
        whole = (PAGES / f"{page.name}.md").read_text("utf-8").splitlines()
        written = (tmp_path / f"{page.name}.md").read_text("utf-8")
        assert not re.search(r"\{\w+\}", written), "a place of the text is left"
        rows = [line for line in written.splitlines() if line[:1] == "|"]
        assert len(rows) > (4 if page in papers.PAPERS else 1)
        # Orders of other libraries change with their versions, and times with each run.
        if page.name not in ("nori", "clusters"):
            assert not set(rows) - set(whole), page.name
    quick, known = (method_rows(folder / "clusters.md") for folder in (tmp_path, PAGES))
    assert {robot for _, robot, _ in quick} == {"Mini Cheetah"}
    for key, row in quick.items():
        assert (row.operations, row.relative) == (known[key].operations, known[key].relative)


def test_an_interrupted_run_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(papers, "KEPT", tmp_path / "kept.json")
    page = papers.Page(
        "nori", lambda kept, _: {"tables": [kept.of("a", a), *stop()], **dict.fromkeys(
            ("summary", "claims", "counters"), []
        )}
    )
    computed = []

    def a() -> str:
        computed.append("a")
        return "counted"

    def stop() -> Iterable[str]:
        if len(computed) == 1:
            computed.append("stopped")
            raise KeyboardInterrupt
        return []

    monkeypatch.setattr(papers, "ALL", (page,))
    monkeypatch.setattr("sys.argv", ["papers", "--quick", "--output", str(tmp_path)])
    assert papers.main() == 130 and "continues" in capsys.readouterr().out
    assert papers.main() == 0
    assert computed == ["a", "stopped"]
    assert "counted" in (tmp_path / "nori.md").read_text("utf-8")


def test_results_are_kept_until_the_run_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "build" / "kept.json"
    assert Kept(path).of("a", lambda: 1) == 1
    assert Kept(path).of("a", lambda: 2) == 1
    # Results of other sources are none of this run.
    monkeypatch.setattr(kept, "sources", lambda: "others")
    assert Kept(path).of("a", lambda: 3) == 3
    last = Kept(path)
    last.end()
    assert Kept(path).of("a", lambda: 4) == 4


def test_the_bar_shows_the_finished_share_on_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    results = Kept(tmp_path / "kept.json")
    results.done, results.parts = 3, 4
    results.of("a robot", lambda: 1)
    shown = capsys.readouterr().err
    assert f"{'█' * 15}{'░' * 5}  75 %  a robot" in shown


def test_the_pages_say_by_which_run_they_were_written() -> None:
    for page in papers.PAPERS:
        text = (PAGES / f"{page.name}.md").read_text("utf-8")
        assert re.search(r"wrote this page: \d{4}-\d\d-\d\d, .* cores, Python ", text), page.name
        assert "**Verdict**: of " in text and "(verdicts.md)" in text


def test_every_claim_is_in_the_summary() -> None:
    """Nothing is left out, and the numbers of verdicts are those of the claims."""
    verdicts = PAGES / "verdicts.md"
    every, (numbers,) = tables(verdicts, "claims"), tables(verdicts, "summary")
    for page, table, row in zip(papers.PAPERS, every, numbers.rows, strict=True):
        assert [table] == tables(PAGES / f"{page.name}.md", "claims")
        assert len(table.rows) >= 4
        claims = [Claim(*cells) for cells in table.rows]
        assert all(each.verdict.startswith((REPRODUCES, DEPENDS, DOES_NOT)) for each in claims)
        assert read(PAGES / f"{page.name}.md")["summary"] == [summary(claims)]
        counts = [
            sum(each.verdict.startswith(verdict) for each in claims)
            for verdict in (REPRODUCES, DEPENDS, DOES_NOT)
        ]
        assert row[1:] == [str(number) for number in (len(claims), *counts)]


def test_known_differences_are_told() -> None:
    """Each with the printed number and ours, whatever a filter would leave out."""
    text = (PAGES / "verdicts.md").read_text("utf-8")
    for printed in ("+19.9 %", "−34 %; −24 %", "−1.5 %", "significantly more efficient"):
        assert printed in text
    verdicts = {
        claim.partition(":")[2].strip(): verdict
        for table in tables(PAGES / "verdicts.md", "claims")
        for claim, _, _, verdict, _ in table.rows
    }
    assert verdicts["PV-OSIMr remains significantly faster than EFPA"] == (
        "depends on the rows of the contacts"
    )
    assert verdicts["feet and hands: PV-OSIM needs fewer operations than PV-OSIMr"].startswith(
        DEPENDS
    )
    assert verdicts["SFA needs 78 percent of the operations of EFPA for hands and feet"] == (
        "depends on the cost model and the axes"
    )


def test_all_counts_above_the_released_implementation_s_are_told() -> None:
    """Generic and specialised, of all mechanisms; those of test_operation_counts among them."""
    (above,) = tables(PAGES / "verdicts.md", "above")
    told = {(name, algorithm.strip("`")) for name, algorithm, *_ in above.rows}
    (short,) = read(PAGES.parent / "benchmarks" / "operation_counts.md")["short"]
    listed = re.findall(r"^- 1\.\d+: (.*), (\w+)$", str(short), re.MULTILINE)
    assert len(listed) > 3 and set(listed) <= told
    both = re.findall(r"(\d+) / (\d+), ([+−][\d.]+) %", str(above))
    assert len(both) > len(told)
    for ours, theirs, share in both:
        assert round(100.0 * (int(ours) / int(theirs) - 1.0), 1) == float(share.replace("−", "-"))


@pytest.mark.parametrize(("page", "number"), [("efpa", 2), ("pv_osimr", 3), ("nori", 1)])
def test_figures_have_axes_units_and_legends_in_words(page: str, number: int) -> None:
    text = (PAGES / f"{page}.md").read_text("utf-8")
    names = re.findall(r"!\[[^\]]{20,}\]\((\w+\.png)\)", text)
    assert len(names) == number
    for name in names:
        with Image.open(PAGES / name) as drawing:
            words = drawing.info["Description"].splitlines()
        assert any("operations" in word for word in words), name
        assert any(word.startswith("legend: ") for word in words), name


def test_bars_and_curves_differ_without_colour() -> None:
    hatching = [fill["hatch"] for fill in style._FILLS]
    assert len(set(hatching)) == len(hatching)
    for what in ("linestyle", "marker"):
        assert len({str(each[what]) for each in style.STYLES.values()}) == len(style.STYLES)


# --- EFPA -------------------------------------------------------------------------------------


def test_the_reading_of_the_efpa_paper_holds() -> None:
    rows = [row for row in rows_of("efpa") if len(row) == 8 and row[1].isdigit()]
    number = len(asimo.VARIANTS)
    assert len(rows) == len(asimo.AXES) * number
    for _, ltl, by_efpa, kjr, pv_osim, pv_osimr, first, second in rows:
        assert max(int(pv_osim), int(pv_osimr)) < int(by_efpa)
        assert float(first) == round(int(ltl) / int(by_efpa), 2)
        assert float(second) == round(int(kjr) / int(by_efpa), 2)
    groups = [rows[k : k + number] for k in range(0, len(rows), number)]
    for group in groups:
        ratios = {row[0]: float(row[6]) for row in group}
        base = ratios["hands and feet"]
        assert abs(ratios["two more arms and legs, hands and feet"] / base - 1.0) < 0.05
        assert ratios["arms of 10 and legs of 9 joints, hands and feet"] > 1.1 * base
        assert ratios["hands of four fingers with 3 joints each, hands and feet"] > 1.3 * base
    general, dh, right = (float(group[0][6]) for group in groups)
    assert general < dh < 1.0 < right
    models = [row for row in rows_of("efpa") if row[0] in asimo.VARIANTS and len(row) == 6]
    assert len(models) == number and models[0][4] == "0.78"
    for _, by_efpa, rjka, ltl, first, second in models:
        assert float(first) == round(int(ltl) / int(by_efpa), 2)
        assert float(second) == round(int(rjka) / int(by_efpa), 2) > 1.0


@pytest.mark.parametrize("algorithm", ["efpa", "kjr", "ltl"])
def test_stages_add_up_to_the_algorithm(algorithm: str) -> None:
    problem = asimo.Humanoid(arm=3, leg=2).problem("hf", "general", tools=True)
    found = stages.stages(problem, algorithm)
    assert set(found) <= set(stages.NAMES) and min(found.values()) > 0
    assert sum(found.values()) == operations_of(problem, algorithm, generic=True).total


# --- Nori --------------------------------------------------------------------------------------


@pytest.mark.parametrize("links", [3, 8])
def test_the_matrix_form_of_the_articulated_body_algorithm_solves_the_system(links: int) -> None:
    case = nori.CASES[0]
    robot = nori.chain(links, case.taper)
    system = System(robot, [*case.known(links), *case.wanted(links)])
    found = matrix_aba.triangular(system)
    size, n = len(found.D), system.spanning.size
    T = found.T
    assert T.shape == (size, size + n)
    assert np.abs(np.triu(T[:, n:], 1)).max() < 1e-12 * np.abs(T).max()
    torques = np.random.default_rng(links).normal(size=n)
    right = -(found.W_L @ found.b)[found.rows] - T[:, :n] @ torques
    solution = np.zeros(size + n)
    for k in range(size):  # forward substitution
        solution[n + k] = (right[k] - T[k, n : n + k] @ solution[n : n + k]) / T[k, n + k]
    solution[:n] = torques
    ordered = np.zeros(size + n)
    ordered[found.columns] = solution
    d = found.W_R @ ordered
    assert np.abs(found.D @ d + found.b).max() < 1e-11 * np.abs(d).max()


def test_the_reading_of_nori_s_paper_holds() -> None:
    found = by_heading(PAGES / "nori.md")
    forward, inverse, cells = (
        {int(row[0]): dict(zip(table.head, map(int, row), strict=True)) for row in table.rows}
        for table in (found[f"{case.figure}: {case.title}"] for case in nori.CASES)
    )
    assert all(found[nori.FACTORS] == 0 for found in inverse.values())
    fewer = [n for n, found in forward.items() if found[nori.UMFPACK] < found[nori.ABA]]
    assert fewer == [2, 4]
    assert forward[30][matrix_aba.SUBSTITUTION] < forward[30][nori.ABA]
    assert forward[30][matrix_aba.PRODUCTS] > forward[30][nori.ABA]
    assert all(found[nori.KERNEL] < found[nori.UMFPACK] for n, found in cells.items() if n > 8)
    (counters,) = tables(PAGES / "nori.md", "counters")
    for figure, links, theirs, every, formula in counters.rows:
        assert int(theirs) < int(every)
        if figure == "Figure 1" and links != "2":
            assert int(theirs) < int(formula) < int(every)


def test_both_counters_on_a_matrix_by_hand() -> None:
    A = np.array([[2.0, 4.0, 0.0], [1.0, 5.0, 3.0], [6.0, 0.0, 1.0]])
    # Pivots 2 and 3: columns (0.5, 3) and (-4), rows (4, 0) and (3); both are full in one place.
    solution = 2 * (3 + 2 + 3) + 2 * 3
    found = nori.counters(A, without_units=False)
    assert found == {
        nori.COUNTER: (2 + 2 * 1) + (1 + 2 * 1) + solution,
        nori.UPDATES: (2 + 2 * 2) + (1 + 2 * 1) + solution,
    }
    # Four entries differ from 1 and as many from −1.
    assert nori.counters(A, without_units=True)[nori.COUNTER] == found[nori.COUNTER] - 8
    np.testing.assert_array_equal(A[0], [2.0, 4.0, 0.0])


# --- PV-OSIMr -----------------------------------------------------------------------------------


def test_the_reading_of_the_pv_osimr_paper_holds() -> None:
    found = by_heading(PAGES / "pv_osimr.md")
    over_n, over_m, root, every, dense = (fits(found[sweep.title]) for sweep in osimr.SWEEPS)
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
    last = {name: row[0] for name, row in dense.items()}
    assert last["pv_osimr"] < 0.8 * last["efpa"] < last["kjr"] < 1.2 * last["efpa"]
    stems = {row[0]: counts_of(row[1:4]) for row in rows_of("pv_osimr") if row[0][:5] == "stem "}
    assert len(stems) == len(osimr.STEMS) * len(osimr.BRANCHES)
    assert {name for name, (efpa, pv, _) in stems.items() if pv > efpa} == {
        "stem 50, branches 10", "stem 100, branches 10"
    }  # fmt: skip
    for name, (_, pv_osim, pv_osimr) in stems.items():
        assert (pv_osimr == pv_osim) if name.endswith(" 1") else (pv_osimr < pv_osim)

    robots = {
        row[0]: counts_of(row[1:5])
        for row in rows_of("pv_osimr")
        if row[0] in (*osimr.ATLAS, *osimr.HANDS)
    }
    feet, points, _ = (robots[name] for name in osimr.ATLAS)
    hand, *mounted = (robots[name] for name in osimr.HANDS)
    assert feet[3] == feet[2] < min(feet[:2]) and points[2] > 1.199 * points[3]
    assert max(hand[0], hand[2]) < hand[3] < hand[1]
    for ltl, by_efpa, pv_osim, pv_osimr in mounted:
        assert 0.66 * pv_osim < pv_osimr < pv_osim < by_efpa < ltl


def test_both_forms_of_pv_osimr_have_the_same_nodes_on_the_page() -> None:
    problems = [sweep.make(sweep.sizes[0]) for sweep in osimr.SWEEPS]
    problems += [stem(10, branches, rotated=True) for branches in osimr.BRANCHES]
    if BESIDE.is_dir():
        problems += [osimr.recounted()[name].make() for name in (*osimr.ATLAS, *osimr.HANDS)]
    trees = [tree_of(problem) for problem in problems]
    assert all(wide_nodes(tree) == joining_nodes(tree) for tree in trees)
    assert any(wide_nodes(tree) for tree in trees)


def test_patterns_of_a_fork_by_hand() -> None:
    """A stem with two tips, one of which has a contact."""
    build = Links(floating=False)
    turn, at = rotation((1.0, 0.0, 0.0), 1.0), np.array([1.0, 0.0, 0.0])
    stem_end = build.chain(WORLD, 1, turn, at)
    tips = [build.chain(stem_end, 1, turn, k * at) for k in (1.0, 2.0)]
    found = osimr.patterns(Problem(build.robot("fork"), surfaces([f"link{tips[0]}"])))
    expected = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 1]], bool)
    np.testing.assert_array_equal(found.matrices["M"], expected)
    np.testing.assert_array_equal(found.matrices["L"], np.tril(expected))
    np.testing.assert_array_equal(found.branches, np.tril(expected))
    for name in "JY":
        np.testing.assert_array_equal(found.matrices[name].any(axis=0), [True, True, False])


def fits(table: Table) -> dict[str, tuple[int, float, str, str]]:
    """Return the last count, both fits and what is printed, by algorithm.

    The fit is that of the counts of the row.
    """
    sizes = [int(cell.partition("= ")[2]) for cell in table.head[1:-4]]
    found = {}
    for name, *numbers, fit, again, told, _ in table.rows:
        points = dict(zip(sizes, map(float, numbers), strict=True))
        assert f"{exponent(points):.2f}" == fit
        found[name.strip("`")] = (int(numbers[-1]), float(fit), again, told)
    return found


def counts_of(cells: list[str]) -> list[int]:
    """Return our counts of the cells "ours of published"."""
    return [int(cell.partition(" of ")[0]) for cell in cells]


def test_published_numbers_have_a_source() -> None:
    text = (Path(papers.__file__).with_name("published.yaml")).read_text("utf-8")
    for paper in ("clusters", "efpa", "pv_osimr"):
        assert re.search(rf"^{paper}:\n  # [A-Z]\. ", text, re.MULTILINE), paper
    assert json.dumps(published("efpa"))
