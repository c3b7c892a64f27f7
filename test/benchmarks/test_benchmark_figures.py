"""Figures of the benchmarks show the numbers of the tables beside them, and can be read."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from PIL import Image

from benchmarks import pages, plots
from benchmarks.pages import Table, table, tables
from delassus.drawing.figures import SERIES

DOCS = Path(__file__).resolve().parents[2] / "docs"
WARM = table(
    ("", "auto", "CasADi", "C++ crba", "C++ other", "**best C++ / auto**"),
    [
        ("Panda, hand 6D, m=6", "0.1 / 0.2", "0.3 / 0.4", "3 / 5", "4 / 4.5", "30 / 22"),
        ("Talos, 2 feet 6D, m=12", "0.5 / 0.6", "–", "7 / 8", "–", "14 / 13"),
    ],
)
GROWTH = table(
    ("joints of a chain", "auto, operations", "auto, µs", "peer, µs"),
    [(8, 100, 0.2, 3), (16, 200, 0.4, "–"), ("exponent", "1.00", "1.00", "–")],
)


def shown(name: str) -> list[Table]:
    page, place, _ = plots.FIGURES[name]
    return tables(plots.FOLDER / page, place)


def drawn(figure) -> list[dict[str, tuple[list[float], list[float]]]]:
    """Return what each of the axes shows: x and y by label."""
    return [
        {line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines}
        for axes in figure.axes
    ]


def test_times_are_the_medians_of_the_table_and_of_the_best_route() -> None:
    nan = pytest.approx(float("nan"), nan_ok=True)
    expected = {
        "ours, auto": [0.2, 0.6],
        "CasADi": [0.4, nan],
        "Pinocchio C++, best": [4.5, 8.0],
    }
    (robots,) = drawn(plots.robots([WARM]))
    assert {name: x for name, (x, _) in robots.items()} == expected
    (rows,) = drawn(plots.rows([WARM]))
    assert {name: y for name, (_, y) in rows.items()} == expected
    assert all(x == [6, 12] for x, _ in rows.values())


def test_growth_shows_counts_beside_times_with_their_exponents() -> None:
    counts, times = drawn(plots.growths([GROWTH]))
    assert counts == {"auto: exponent 1.00": ([8, 16], [100.0, 200.0])}
    nan = pytest.approx(float("nan"), nan_ok=True)
    assert times["auto: exponent 1.00"] == ([8, 16], [0.2, 0.4])
    assert times["peer: exponent –"] == ([8, 16], [3.0, nan])


@pytest.mark.parametrize("name", plots.FIGURES)
def test_figures_are_of_the_tables_beside_them(name: str) -> None:
    """`python -m benchmarks.plots` draws them anew."""
    page, _, _ = plots.FIGURES[name]
    assert f"({name}.png)" in (plots.FOLDER / page).read_text(encoding="utf-8")
    with Image.open(plots.FOLDER / f"{name}.png") as figure:
        assert figure.info["Comment"] == plots.digest(shown(name)), f"draw {name}.png anew"


@pytest.mark.parametrize("name", plots.FIGURES)
def test_words_of_figures_do_not_overlap(name: str) -> None:
    figure = plots.FIGURES[name][2](shown(name))
    figure.draw_without_rendering()
    boxes = {}
    for axes in figure.axes:
        for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            within = sorted((low, high))
            labels = [
                tick.label1
                for tick in axis.get_major_ticks()
                if within[0] <= tick.get_loc() <= within[1]
            ]
            for text in filter(lambda text: text.get_text(), [axis.label, *labels]):
                boxes[id(text), text.get_text()] = text.get_window_extent()
    assert len(boxes) > 8
    for (one, first), (other, second) in itertools.combinations(boxes.items(), 2):
        assert not first.overlaps(second), (one[1], other[1])
    for (_, words), box in boxes.items():
        assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1, words


def test_a_page_without_tables_has_no_figures(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    results = pages.read(plots.FOLDER / page.name)
    pages.write(page, "benchmarks/README", results | {"warm": [], "growth": []})
    assert plots.write(page) == []
    pages.write(page, "benchmarks/README", results | {"warm": [WARM], "growth": [GROWTH]})
    written = plots.write(page)
    assert [path.name for path in written] == ["robots.png", "rows.png", "growth.png"]
    with Image.open(written[0]) as figure:
        assert "Talos, 2 feet 6D, m=12" in figure.info["Description"].splitlines()


def test_series_differ_without_colour() -> None:
    styles = [(str(style["linestyle"]), style["marker"]) for style in SERIES]
    assert len(set(styles)) == len(styles) == len({line for line, _ in styles})


def test_pictures_are_small() -> None:
    """Plots are PNG with a palette; SVG has the few lines of diagrams and of a terminal."""
    for file in DOCS.rglob("*.png"):
        assert file.stat().st_size < (180_000 if file.name == "view.png" else 60_000), file
    for file in DOCS.rglob("*.svg"):
        assert file.stat().st_size < 60_000 and len(file.read_bytes().splitlines()) < 100, file
