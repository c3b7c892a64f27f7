"""Table I and figures 3 to 6 of the PV-OSIMr paper: operations, exponents and a plot.

Counts are generic. The paper prints plots, no counts: beside ours stand those of a recount, this
project's own of the authors' released code, ``../shared/oracle/operation_counts.json``. Fitted
exponents are slopes on log axes over the three largest sizes, :func:`benchmarks.scaling.exponent`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from benchmarks import mechanisms, style
from benchmarks.operation_counts import PAPER_NAMES, Row, rows
from benchmarks.pages import Places, Table, table
from benchmarks.papers.kept import Kept, counted
from benchmarks.papers.page import Findings, comparison, percent, published, under_headings
from benchmarks.scaling import exponent
from delassus import Contact, Problem, Transform
from delassus.algorithms import ltl
from delassus.rbda.factored_inertia import factorise, solve_rows
from delassus.rbda.spatial import contact_rows
from delassus.rbda.trees import tree_of
from delassus.scalars.functions import Matrix, is_zero
from delassus.scalars.graph import Graph

ALGORITHMS = ("ltl", "kjr", "efpa", "pv_osim", "pv_osimr")
PLOTTED = ("efpa", "pv_osim", "pv_osimr")
"""Algorithms of figures 3 and 4."""
BRANCHES = (1, 2, 4, 7, 10)
STEMS = (10, 50, 100)
DRAWN = ("ltl", *PLOTTED)
"""Algorithms of figures 5 and 6."""
ATLAS = {
    "Atlas feet 2x6D, K=I6": "two feet, 6D",
    "Atlas feet 2x(4x3D), K=[-skew(p) I] numeric p": "four points\non each foot",
    "Atlas feet+hands 4x6D, K=I6": "feet and\nhands, 6D",
}
"""Labels of figure 5 by name in the recount; section IV-E has the last one in its text."""
_FEET = next(iter(ATLAS))
HANDS = {
    "Shadow hand (fixed forearm, 24 dof) 5x3D, K=[0 I]": "one hand,\nfixed",
    "Atlas + 1 Shadow hand 5x3D, K=[0 I]": "Atlas,\none hand",
    "Atlas + 2 Shadow hands 10x3D, K=[0 I]": "Atlas,\ntwo hands",
    "Atlas + 2 Shadow hands 10x3D + feet 2x6D, K=[0 I], I6": "two hands\nand feet",
}
"""Labels of figure 6 by name in the recount."""
LOOSE_HAND = "Shadow hand (floating forearm, 30 dof) 5x3D, K=[0 I]"
_CLOSE = 0.15
"""Difference of exponents that counts as none."""


@cache
def recounted() -> Mapping[str, Row]:
    """Return the mechanisms of the recount, by name."""
    return {row.name: row for row in rows()}


def _stem(length: int, branches: int) -> str:
    names = (n for n in recounted() if n.startswith(f"stem n={length}, {branches} branches"))
    return next(name for name in names if recounted()[name].group == "stem_rotated")


def _chain(joints: int, where: str) -> str:
    return f"chain floating base + {joints} joints, 6D on {where} K=I6"


def _last(joints: int, links: int) -> Problem:
    return mechanisms.chain(joints, f"last {links} links")


def _at_tip(joints: int, m: int) -> Problem:
    """Return a chain with m / 3 points at different places of its last link."""
    places = np.random.default_rng(0).normal(size=(m // 3, 3))
    contacts = [
        Contact(f"point {k}", f"link{joints}", "point", Transform(np.eye(3), place))
        for k, place in enumerate(places)
    ]
    return Problem(mechanisms.chain(joints, "tip").robot, contacts)


def _dense(problem: Problem) -> Problem:
    """Return the problem with six dense rows in place of each contact."""
    frames = [contact.frame for contact in problem.contacts]
    return Problem(problem.robot, [c for frame in frames for c in mechanisms.dense(frame, 1)])


@dataclass(frozen=True)
class Sweep:
    """Mechanisms of growing size, all algorithms of which are fitted.

    Attributes
    ----------
    name : key of the expected exponents among the published numbers.
    title : of its table.
    variable : what the size is.
    algorithms : those that are counted.
    make : builds the problem of a size.
    sizes : those of the problems.
    recounted : names of the mechanisms of the recount by size; empty where there are none.
    """

    name: str
    title: str
    variable: str
    algorithms: tuple[str, ...]
    make: Callable[[int], Problem]
    sizes: tuple[int, ...]
    recounted: Mapping[int, str]

    def found(self, kept: Kept, algorithm: str) -> dict[int, float]:
        """Return the counts of an algorithm by size."""
        return {size: self._of_size(kept, size, algorithm) for size in self.sizes}

    def _of_size(self, kept: Kept, size: int, algorithm: str) -> int:
        if size in self.recounted:
            return count(kept, self.recounted[size], algorithm)
        key = f"{algorithm}, {self.title}, {self.variable} = {size}"
        return counted(kept, key, partial(self.make, size), algorithm)

    def of_recount(self, algorithm: str) -> dict[int, float]:
        """Return the recount's numbers of an algorithm by size."""
        every = {size: _told(name, (algorithm,)) for size, name in self.recounted.items()}
        return {size: told[algorithm] for size, told in every.items() if told}

    def table(self, kept: Kept) -> Table:
        """Return the table of counts and exponents."""
        limits = published("pv_osimr")["exponents"][self.name]
        rows = []
        for name in self.algorithms:
            found, again = self.found(kept, name), self.of_recount(name)
            told: Sequence[object] = ("", "")
            if name in limits:
                told = limits[name], _verdict(exponent(found) or 0.0, limits[name])
            rows.append((f"`{name}`", *found.values(), _fitted(found), _fitted(again), *told))
        heads = (f"{self.variable} = {size}" for size in self.sizes)
        slopes = ("exponent", "recount", "printed", "verdict")
        return table(("algorithm", *heads, *slopes), rows)


def _verdict(fitted: float, limit: float) -> str:
    """Return whether an exponent is that of the printed complexity."""
    if abs(fitted - limit) <= _CLOSE:
        return "reproduces"
    return "below the limit" if fitted < limit else "does not"


def _fitted(points: dict[int, float]) -> str:
    slope = exponent(points)
    return "" if slope is None else f"{slope:.2f}"


_SQRT = {16: 4, 32: 6, 64: 8, 128: 11}
_ALL = (8, 16, 32, 64)


SWEEPS = (
    Sweep(
        "n", "Table I: over n, stems with two branches at each end, m = 24", "stem", ALGORITHMS,
        lambda n: mechanisms.stem(n, 2, rotated=True), (16, 32, 64, 128), {},
    ),
    Sweep(
        "m", "Table I: over m, 16 links, all contacts on the last one", "m", ALGORITHMS,
        lambda m: _at_tip(16, m), (24, 48, 96, 192), {},
    ),
    Sweep(
        "sqrt", "Figure 4(a): 6D contacts on the last √n of n links", "n", ALGORITHMS[1:],
        lambda n: _last(n, _SQRT[n]), tuple(_SQRT),
        {n: _chain(n, f"last {k} links") for n, k in _SQRT.items()},
    ),
    Sweep(
        "all", "Figure 4(b): a 6D contact on each of n links", "n", ALGORITHMS[1:],
        lambda n: mechanisms.chain(n, "every moving link"), _ALL,
        {n: _chain(n, "every moving link") for n in _ALL},
    ),
    Sweep(
        "all", "Figure 4(b) with six dense rows on each of n links", "n", ALGORITHMS[1:],
        lambda n: _dense(mechanisms.chain(n, "every moving link")), _ALL[:-1], {},
    ),
)  # fmt: skip


def count(kept: Kept, name: str, algorithm: str, generic: bool = True) -> int:
    """Return our count of a mechanism of the recount."""
    key = f"{algorithm} of {name}" + ("" if generic else ", specialised")
    return counted(kept, key, recounted()[name].make, algorithm, generic)


def compared(kept: Kept, name: str, first: str, second: str, specialised: bool = True) -> str:
    """Return two algorithms on a mechanism: recount, ours generic and ours specialised."""
    told = _told(name, (first, second))
    words = [f"{comparison(*told.values())} recount"] if len(told) == 2 else []
    for generic in (True, False)[: 1 + specialised]:
        both = (count(kept, name, each, generic) for each in (first, second))
        kind = "generic" if generic else "specialised"
        words.append(f"{comparison(*both)} {kind}")
    return "; ".join(words)


def is_plotted(name: str, algorithm: str) -> bool:
    """Return whether figures 3 and 4 have the count of a mechanism of the recount."""
    stems = {_stem(length, branches) for branches in BRANCHES for length in STEMS}
    return (name in stems and algorithm in PLOTTED) or any(
        name in sweep.recounted.values() and algorithm in sweep.algorithms for sweep in SWEEPS
    )


def _told(name: str, algorithms: tuple[str, ...]) -> dict[str, float]:
    """Return the recount's numbers, of those algorithms that the released code has."""
    again = recounted()[name].recount
    papers = {algorithm: PAPER_NAMES.get(algorithm, "") for algorithm in algorithms}
    return {each: float(again[paper]) for each, paper in papers.items() if paper in again}


def _found(kept: Kept, name: str, algorithms: tuple[str, ...]) -> dict[str, float]:
    """Return our counts."""
    return {algorithm: count(kept, name, algorithm) for algorithm in algorithms}


def _order(values: Mapping[str, float]) -> list[list[str]]:
    """Return the names by ascending value, equal ones together."""
    return [
        [name for name, value in values.items() if value == each]
        for each in sorted(set(values.values()))
    ]


def _beside(
    kept: Kept, mechanisms: Iterable[tuple[str, str]], algorithms: tuple[str, ...]
) -> Table:
    """Return a table of ours beside the recount's numbers.

    Parameters
    ----------
    mechanisms : labels, and names in the recount.
    """
    rows = []
    for label, name in mechanisms:
        found, told = _found(kept, name, algorithms), _told(name, algorithms)
        cells = [f"{found[each]} of {told[each]:.0f}" for each in algorithms]
        order = _order(found)
        best = ", ".join(f"`{each}`" for each in order[0])
        rows.append((label, *cells, best, "reproduces" if order == _order(told) else "does not"))
    names = [f"`{name}`" for name in algorithms]
    return table(("mechanism", *names, "cheapest", "order"), rows)


def places(kept: Kept, quick: bool) -> Places:
    """Return the results of the page; a quick run has one mechanism of figures 3, 5 and 6 each."""
    few = 1 if quick else None
    stems = [(n, k) for k in BRANCHES for n in STEMS][:few]
    atlas, hands = ([(name, name) for name in list(each)[:few]] for each in (ATLAS, HANDS))
    complexities = published("pv_osimr")["complexities"]
    sections = {
        "Table I: complexities as printed": table(
            ("algorithm", "printed"), ((f"`{name}`", text) for name, text in complexities.items()),
            None,
        ),
        "Figure 2 of the preprint: matrices of LTL, Atlas with 6D on both feet": _nonzeros(),
        **{sweep.title: sweep.table(kept) for sweep in ([] if quick else SWEEPS)},
        "Figure 3: stems with branches of 7 links, a 6D contact at each tip": _beside(
            kept, [(f"stem {n}, branches {k}", _stem(n, k)) for n, k in stems], PLOTTED
        ),
        "Figure 5: Atlas": _beside(kept, atlas, DRAWN),
        "Figure 6: Shadow hands": _beside(kept, hands, DRAWN),
    }  # fmt: skip
    return {"tables": under_headings(sections)}


class Patterns(NamedTuple):
    """Where the matrices of LTL have entries that are not zero, as arrays of bool.

    Attributes
    ----------
    matrices : by name.
    branches : where branches let L have entries.
    joints : of the columns.
    """

    matrices: dict[str, np.ndarray]
    branches: np.ndarray
    joints: list[str]


def patterns(problem: Problem) -> Patterns:
    """Return the patterns of M, L, J and Y of a problem."""
    graph, tree = Graph(), tree_of(problem)
    x = graph.input_block(problem.inputs)
    M, J, freedoms = ltl.projected(tree, contact_rows(problem, tree, x), x)
    L, _ = factorise(M, freedoms.names)
    Y = [solve_rows(L, row) for row in J]
    lower, whole = np.tril(_nonzero(M)), range(len(M))
    found = {"M": lower | lower.T, "L": np.tril(_nonzero(L)), "J": _nonzero(J), "Y": _nonzero(Y)}
    branches = [[j in (i, *freedoms.ancestors(i)) for j in whole] for i in whole]
    return Patterns(found, np.array(branches), freedoms.names)


def _nonzero(A: Matrix) -> np.ndarray:
    return np.array([[not is_zero(value) for value in row] for row in A])


def _nonzeros() -> Table:
    matrices = patterns(recounted()[_FEET].make()).matrices
    rows = ((name, *A.shape, A.sum(), f"{100.0 * (1.0 - A.mean()):.0f} %")
            for name, A in matrices.items())  # fmt: skip
    return table(("matrix", "rows", "columns", "nonzeros", "zeros"), rows)


def _of_patterns() -> Findings:
    found, branches, joints = patterns(recounted()[_FEET].make())
    moved = (found[each].any(axis=0) for each in "JY")
    idle = [{joint for joint, some in zip(joints, each, strict=True) if not some}
            for each in moved]  # fmt: skip
    others = {name for name in joints if "leg" not in name and name != "root"}
    holds = bool((found["L"] <= branches).all() and (np.tril(found["M"]) <= branches).all())
    yield (
        "patterns", holds and idle == [others, others],
        f"no other entry of M and L; {len(others)} columns of J and Y, those of torso, neck and "
        "arms, are zero",
    )  # fmt: skip


def _share(kept: Kept, name: str, first: str, second: str) -> float:
    """Return how much more operations the first takes than the second [%], generic."""
    return 100.0 * (count(kept, name, first) / count(kept, name, second) - 1.0)


def findings(kept: Kept) -> Findings:
    """Yield what a whole run finds of the paper's claims."""
    yield from _of_patterns()
    yield from _of_scaling(kept)
    yield from _of_robots(kept)


def _of_scaling(kept: Kept) -> Findings:
    over_n, over_m, root, every, dense = SWEEPS
    fits = {
        sweep.name: {each: exponent(sweep.found(kept, each)) or 0.0 for each in sweep.algorithms}
        for sweep in SWEEPS[:-1]
    }
    limits = published("pv_osimr")["exponents"]
    above = [
        name for sweep in (over_n, over_m) for name, fitted in fits[sweep.name].items()
        if fitted > limits[sweep.name][name] + _CLOSE
    ]  # fmt: skip
    within = "at most the printed exponents, over n and over m"
    yield "complexities", not above, ", ".join(above) or within
    one = [_stem(n, 1) for n in STEMS]
    yield "one branch", *_equal(kept, one, "different counts")
    cheaper = [
        f"stem {n}, {k} branches" for k in BRANCHES for n in STEMS
        if count(kept, _stem(n, k), "pv_osim") > count(kept, _stem(n, k), "efpa")
    ]  # fmt: skip
    exceeding = f"PV-OSIM exceeds EFPA with {', '.join(cheaper) or 'none'}"
    yield "stems", len(cheaper) < 4, exceeding
    pv_osimr, efpa, pv_osim = (fits[root.name][each] for each in ("pv_osimr", "efpa", "pv_osim"))
    sloped = abs(pv_osimr - 1.0) < _CLOSE < efpa - 1.0
    yield "root of the links", sloped, f"{pv_osimr:.2f}; {efpa:.2f}; {pv_osim:.2f}"
    efpa, pv_osimr = (fits[every.name][each] for each in ("efpa", "pv_osimr"))
    yield "all links", abs(efpa - pv_osimr) < _CLOSE, f"{efpa:.2f}, {pv_osimr:.2f}"
    found = "; ".join(
        f"{n} links: {compared(kept, name, 'pv_osimr', 'efpa', specialised=False)}"
        for n, name in every.recounted.items()
    )
    shares = [_share(kept, name, "pv_osimr", "efpa") for name in every.recounted.values()]
    by_size = {name: dense.found(kept, name) for name in ("kjr", "pv_osimr", "efpa")}
    ratios = {n: by_size["pv_osimr"][n] / by_size["efpa"][n] for n in dense.sizes}
    listed = "; ".join(
        f"{n} links: {comparison(by_size['pv_osimr'][n], by_size['efpa'][n])} generic"
        for n in dense.sizes
    )
    dearer = [100.0 * (by_size["kjr"][n] / by_size["pv_osimr"][n] - 1.0) for n in dense.sizes]
    more = f"{percent(min(dearer))} to {percent(max(dearer))}"
    size, largest = list(every.recounted.items())[-1]
    kjr = comparison(*(count(kept, largest, each) for each in ("kjr", "pv_osimr")))
    depends = max(ratios.values()) < 0.95 and "the rows of the contacts"
    yield (
        "faster on all links", max(shares) <= -5.0 or depends,
        f"K = 1₆: {found}. Six dense rows: {listed}",
        {"kjr": f"{kjr} with {size} links", "more": more},
    )  # fmt: skip


def _equal(kept: Kept, mechanisms: Sequence[str], otherwise: str) -> tuple[bool, str]:
    """Return whether PV-OSIM and PV-OSIMr need equal operations, also in words."""
    same = all(
        count(kept, name, "pv_osim") == count(kept, name, "pv_osimr") for name in mechanisms
    )
    return same, "equal counts" if same else otherwise


def _of_robots(kept: Kept) -> Findings:
    feet, points, more = ATLAS
    hand, *mounted = HANDS

    def ours(name: str, first: str = "pv_osim", second: str = "pv_osimr") -> str:
        return compared(kept, name, first, second)

    def generic(name: str, first: str = "pv_osim", second: str = "pv_osimr") -> str:
        return compared(kept, name, first, second, specialised=False)

    yield "two feet", *_equal(kept, [feet], ours(feet))
    outperforms = _share(kept, feet, "pv_osimr", "efpa") < -10.0
    on_feet = f"PV-OSIMr / EFPA on two feet: {ours(feet, 'pv_osimr', 'efpa')}"
    yield "both outperform", outperforms, on_feet
    rows, dense = "the rows of the contacts", generic("Atlas feet 2x12D, K dense symbolic")
    yield "four points", rows, ours(points), {"dense": dense}
    largest = [max(recounted()[name].recount.values()) for name in (hand, LOOSE_HAND)]
    ticks = {"fixed": str(largest[0]), "floating": str(largest[1])}
    yield (
        "LTL on the hand", "the mechanism",
        f"fixed forearm: {ours(hand, 'ltl', 'efpa')}. Floating forearm: "
        f"{generic(LOOSE_HAND, 'ltl', 'efpa')}", ticks,
    )  # fmt: skip
    both = f"fixed forearm: {ours(hand)}. Floating forearm: {generic(LOOSE_HAND)}"
    yield "the hand", "the mechanism", both, ticks
    best = min(mounted, key=lambda name: _share(kept, name, "pv_osimr", "pv_osim"))
    fewer = _share(kept, best, "pv_osimr", "pv_osim") <= -33.0
    words = {
        "one": generic(best), "two": generic(mounted[1]),
        "less": generic(mounted[1], "pv_osimr", "pv_osim"),
    }  # fmt: skip
    yield "fewer operations", fewer, ours(best, "pv_osimr", "pv_osim"), words
    dense = generic("Atlas feet+hands 4x6D, K dense symbolic")
    yield "feet and hands", rows, ours(more), {"dense": dense}


def figures(kept: Kept) -> Mapping[str, Figure]:
    """Return the plots of figures 3, 4, 5 and 6, from counts that are kept."""
    return {
        "pv_osimr_stems": _stems(kept),
        "pv_osimr_scaling": _scaling(kept),
        "pv_osimr_robots": _robots(kept),
    }


def _stems(kept: Kept) -> Figure:
    drawn, places = style.figure(2, 3, (10.0, 6.2))
    for ax, branches in zip(places, BRANCHES, strict=False):
        for name in PLOTTED:
            ours = {n: _found(kept, _stem(n, branches), (name,))[name] for n in STEMS}
            again = {n: _told(_stem(n, branches), (name,))[name] for n in STEMS}
            style.curve(ax, ours, f"{name}, ours", style.STYLES[name])
            style.marks(ax, again, style.STYLES[name], f"{name}, recount")
        ax.set_title("1 branch" if branches == 1 else f"{branches} branches")
        ax.set_xlabel("links of the stem")
        style.thousands(ax)
    places[-1].axis("off")
    handles, labels = places[0].get_legend_handles_labels()
    places[-1].legend(handles, labels, loc="center", frameon=False)
    return drawn


def _scaling(kept: Kept) -> Figure:
    drawn, places = style.figure(1, 2, (10.0, 4.6))
    for ax, sweep in zip(places, SWEEPS[2:4], strict=True):
        for name in sweep.algorithms:
            ours, again = sweep.found(kept, name), sweep.of_recount(name)
            label = f"{name}, exponent {_fitted(ours)}"
            style.curve(ax, ours, label, style.STYLES[name])
            style.marks(ax, again, style.STYLES[name])
        ax.set_title(sweep.title.partition(": ")[2], fontsize=10)
        style.sizes(ax, sweep.sizes, "links n")
        ax.legend(title="hollow: recount", fontsize="small")
    return drawn


def _robots(kept: Kept) -> Figure:
    drawn, places = style.figure(1, 2, (11.0, 4.6))
    titles = {"Figure 5 and section IV-E: Atlas": ATLAS, "Figure 6: Shadow hands": HANDS}
    for ax, (title, labels) in zip(places, titles.items(), strict=True):
        ours = {label: _found(kept, name, DRAWN) for name, label in labels.items()}
        again = {label: _told(name, DRAWN) for name, label in labels.items()}
        style.bars(ax, ours, again)
        ax.set_ylim(top=1.35 * ax.get_ylim()[1])  # room for the legend
        ax.set_title(title)
        ax.legend(title="diamonds: recount", fontsize="small")
    return drawn
