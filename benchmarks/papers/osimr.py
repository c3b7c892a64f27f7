"""Table I and figures 3 to 6 of the PV-OSIMr paper: operations, exponents and a plot.

Counts are generic; published ones are those counted again from the authors' implementation, of
``../shared/oracle/operation_counts.json``. Fitted exponents are slopes on log axes over the three
largest sizes, :func:`benchmarks.scaling.exponent`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from matplotlib.figure import Figure

from benchmarks import mechanisms
from benchmarks.operation_counts import PAPER_NAMES, Row, rows
from benchmarks.pages import row, table_head
from benchmarks.papers import counts, style
from benchmarks.papers.claim import DEPENDS, DOES_NOT, REPRODUCES, Claim
from benchmarks.papers.kept import Kept
from benchmarks.papers.markdown import comparison
from benchmarks.papers.page import Part, published
from benchmarks.scaling import exponent
from delassus_ros import Contact, Problem, Transform

ALGORITHMS = ("ltl", "kjr", "efpa", "pv_osim", "pv_osimr")
PLOTTED = ("efpa", "pv_osim", "pv_osimr")
"""Algorithms of figures 3 and 4."""
BRANCHES = (1, 2, 4, 7, 10)
STEMS = (10, 50, 100)
ATLAS = (
    "Atlas feet 2x6D, K=I6", "Atlas feet 2x(4x3D), K=[-skew(p) I] numeric p",
    "Atlas feet+hands 4x6D, K=I6",
)  # fmt: skip
"""Rows of figure 5, as published; section IV-E has the last one in its text."""
DRAWN = ("ltl", *PLOTTED)
"""Algorithms of figures 5 and 6."""
HANDS = (
    "Shadow hand (fixed forearm, 24 dof) 5x3D, K=[0 I]", "Atlas + 1 Shadow hand 5x3D, K=[0 I]",
    "Atlas + 2 Shadow hands 10x3D, K=[0 I]",
    "Atlas + 2 Shadow hands 10x3D + feet 2x6D, K=[0 I], I6",
)  # fmt: skip
"""Rows of figure 6, as published."""
LABELS = {
    "Figure 5 and section IV-E: Atlas": dict(
        zip(("two feet, 6D", "four points\non each foot", "feet and\nhands, 6D"), ATLAS,
            strict=True)
    ),
    "Figure 6: Shadow hands": dict(
        zip(("one hand,\nfixed", "Atlas,\none hand", "Atlas,\ntwo hands",
             "two hands\nand feet"), HANDS, strict=True)
    ),
}  # fmt: skip
"""Names of figures 5 and 6 by title and label."""
_CLOSE = 0.15
"""Difference of exponents that counts as none."""


@cache
def recounted() -> Mapping[str, Row]:
    """Return the mechanisms that were counted again, by name."""
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
    recounted : names of the published mechanisms by size; empty where there are none.
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
        key = f"{algorithm}, {self.name}, {self.variable} = {size}"
        return int(kept.of(key, partial(self._count, size, algorithm)))

    def _count(self, size: int, algorithm: str) -> int:
        return counts.of_algorithm(self.make(size), algorithm)

    def counted_again(self, algorithm: str) -> dict[int, float]:
        """Return the published counts of an algorithm by size."""
        paper = PAPER_NAMES.get(algorithm, "")
        at = {size: recounted()[name].published for size, name in self.recounted.items()}
        return {size: float(entry[paper]) for size, entry in at.items() if paper in entry}

    def lines(self, kept: Kept) -> Iterator[str]:
        """Yield the lines of the table."""
        limits = published("pv_osimr")["exponents"][self.name]
        yield from ("", f"## {self.title}", "")
        heads = (f"{self.variable} = {size}" for size in self.sizes)
        slopes = ("exponent", "counted again", "printed", "verdict")
        yield from table_head(("algorithm", *heads, *slopes))
        for name in self.algorithms:
            found, again = self.found(kept, name), self.counted_again(name)
            limit = limits.get(name)
            words = "" if limit is None else _verdict(exponent(found) or 0.0, limit)
            yield row(
                (f"`{name}`", *found.values(), _fitted(found), _fitted(again),
                 "" if limit is None else limit, words)
            )  # fmt: skip


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
)  # fmt: skip


def count(kept: Kept, name: str, algorithm: str, generic: bool = True) -> int:
    """Return our count of a mechanism that was counted again."""
    return int(
        kept.of(
            f"{algorithm} of {name}" + ("" if generic else ", specialised"),
            lambda: counts.of_algorithm(recounted()[name].make(), algorithm, generic),
        )
    )


def compared(kept: Kept, name: str, first: str, second: str, specialised: bool = True) -> str:
    """Return two algorithms on a mechanism: counted again, ours generic and ours specialised."""
    again = recounted()[name].published
    told = {each: again.get(PAPER_NAMES.get(each, "")) for each in (first, second)}
    words = []
    if None not in told.values():
        words.append(f"{comparison(*map(float, told.values()))} counted again")  # type: ignore
    for generic in (True, False)[: 1 + specialised]:
        both = (count(kept, name, each, generic) for each in (first, second))
        kind = "generic" if generic else "specialised"
        words.append(f"{comparison(*both)} {kind}")
    return "; ".join(words)


def is_plotted(name: str, algorithm: str) -> bool:
    """Return whether figures 3 and 4 have the count of a mechanism that was counted again."""
    stems = {_stem(length, branches) for branches in BRANCHES for length in STEMS}
    return (name in stems and algorithm in PLOTTED) or any(
        name in sweep.recounted.values() and algorithm in sweep.algorithms for sweep in SWEEPS
    )


def _told(name: str, algorithms: tuple[str, ...]) -> dict[str, float]:
    """Return the counts of the released implementation."""
    again = recounted()[name].published
    known = {algorithm: again.get(PAPER_NAMES[algorithm]) for algorithm in algorithms}
    return {algorithm: float(count) for algorithm, count in known.items() if count is not None}


def _found(kept: Kept, name: str, algorithms: tuple[str, ...]) -> dict[str, float]:
    """Return our counts."""
    return {algorithm: count(kept, name, algorithm) for algorithm in algorithms}


def _order(values: Mapping[str, float]) -> list[list[str]]:
    """Return the names by ascending value, equal ones together."""
    return [
        [name for name, value in values.items() if value == each]
        for each in sorted(set(values.values()))
    ]


def _compared(kept: Kept, label: str, name: str, algorithms: tuple[str, ...]) -> Iterator[str]:
    """Yield a row with ours beside the released implementation's counts."""
    found, told = _found(kept, name, algorithms), _told(name, algorithms)
    cells = [f"{found[each]} of {told[each]:.0f}" for each in algorithms]
    best = ", ".join(f"`{each}`" for each in _order(found)[0])
    same = _order(found) == _order(told)
    yield row((label, *cells, best, "reproduces" if same else "does not"))


def _head(title: str, algorithms: tuple[str, ...]) -> list[str]:
    names = [f"`{name}`" for name in algorithms]
    return ["", f"## {title}", "", *table_head(("mechanism", *names, "cheapest", "order"))]


def _complexities() -> Iterator[str]:
    heads = table_head(("algorithm", "printed"), None)
    yield from ("## Table I: complexities as printed", "", *heads)
    printed: Mapping[str, str] = published("pv_osimr")["complexities"]
    yield from (row((f"`{name}`", text)) for name, text in printed.items())


def parts(kept: Kept, quick: bool) -> Mapping[str, list[Part]]:
    """Return the parts of the page; a quick run has one mechanism of figures 3, 5 and 6 each."""
    few = 1 if quick else None
    sweeps: list[Part] = [_complexities, *(partial(each.lines, kept) for each in SWEEPS)]
    stems = [(length, branches) for branches in BRANCHES for length in STEMS]
    figure_3 = "Figure 3: stems with branches of 7 links, a 6D contact at each tip"
    found: list[Part] = [partial(_head, figure_3, PLOTTED)]
    for length, branches in stems[:few]:
        label = f"stem {length}, branches {branches}"
        found.append(partial(_compared, kept, label, _stem(length, branches), PLOTTED))
    for title, chosen in (("Figure 5: Atlas", ATLAS), ("Figure 6: Shadow hands", HANDS)):
        found.append(partial(_head, title, DRAWN))
        found += [partial(_compared, kept, name, name, DRAWN) for name in list(chosen)[:few]]
    return {"tables": [*([] if quick else sweeps), *found]}


def _share(kept: Kept, name: str, first: str, second: str) -> float:
    """Return how much more operations the first takes than the second [%], generic."""
    return 100.0 * (count(kept, name, first) / count(kept, name, second) - 1.0)


def claims(kept: Kept) -> list[Claim]:
    """Return the paper's claims with the counts of a whole run."""
    return [*_claims_of_scaling(kept), *_claims_of_robots(kept)]


def _claims_of_scaling(kept: Kept) -> Iterator[Claim]:
    over_n, over_m, root, every = SWEEPS
    fits = {
        sweep.name: {each: exponent(sweep.found(kept, each)) or 0.0 for each in sweep.algorithms}
        for sweep in SWEEPS
    }
    limits = published("pv_osimr")["exponents"]
    above = [
        name for sweep in (over_n, over_m) for name, fitted in fits[sweep.name].items()
        if fitted > limits[sweep.name][name] + _CLOSE
    ]  # fmt: skip
    yield Claim(
        "table I: complexities in n and m", "exponents 1 to 3",
        "at most the printed exponents, over n and over m" if not above else ", ".join(above),
        DOES_NOT if above else REPRODUCES,
        "terms that do not grow keep fitted exponents below the limits",
    )  # fmt: skip
    one = [_stem(n, 1) for n in STEMS]
    same = all(count(kept, n, "pv_osim") == count(kept, n, "pv_osimr") for n in one)
    yield Claim(
        "section IV-B, figure 3: no difference between PV-OSIMr and PV-OSIM with one branch", "",
        "equal counts" if same else "different counts", REPRODUCES if same else DOES_NOT, "",
    )  # fmt: skip
    cheaper = [
        f"stem {n}, {k} branches" for k in BRANCHES for n in STEMS
        if count(kept, _stem(n, k), "pv_osim") > count(kept, _stem(n, k), "efpa")
    ]  # fmt: skip
    yield Claim(
        "section IV-B, figure 3: EFPA is more expensive than both for nearly all mechanisms", "",
        f"PV-OSIM exceeds EFPA with {', '.join(cheaper) or 'none'}",
        REPRODUCES if len(cheaper) < 4 else DOES_NOT, "",
    )  # fmt: skip
    slopes = fits[root.name]
    off = abs(slopes["pv_osimr"] - 1.0)
    yield Claim(
        "section IV-B, figure 4(a): PV-OSIMr has the slope of n, EFPA a higher slope",
        "1; 1.5; PV-OSIM 2",
        f"{slopes['pv_osimr']:.2f}; {slopes['efpa']:.2f}; {slopes['pv_osim']:.2f}",
        REPRODUCES if off < _CLOSE < slopes["efpa"] - 1.0 else DOES_NOT,
        "PV-OSIM stays below its limit at these sizes, in the released implementation as well",
    )  # fmt: skip
    slopes = fits[every.name]
    apart = abs(slopes["efpa"] - slopes["pv_osimr"])
    yield Claim(
        "section IV-B, figure 4(b): on all links EFPA and PV-OSIMr have the same slope",
        "2", f"{slopes['efpa']:.2f}, {slopes['pv_osimr']:.2f}",
        REPRODUCES if apart < _CLOSE else DOES_NOT,
        "the text has PV-OSIMr scale cubically as well; PV-OSIM is meant",
    )  # fmt: skip
    links = [every.recounted[n] for n in every.sizes]
    shares = [_share(kept, name, "pv_osimr", "efpa") for name in links]
    found = "; ".join(
        f"{n} links: {compared(kept, name, 'pv_osimr', 'efpa', specialised=False)}"
        for n, name in zip(every.sizes, links, strict=True)
    )
    last = {each: every.found(kept, each)[every.sizes[-1]] for each in every.algorithms}
    yield Claim(
        "section IV-B, figure 4(b): PV-OSIMr remains significantly faster than EFPA",
        "a plot", found,
        DOES_NOT if max(shares) > -5.0 else REPRODUCES,
        "both grow with the square of the rows and differ by a constant factor; KJR, which the "
        "paper does not count, is cheaper than both: "
        f"{comparison(last['kjr'], last['pv_osimr'])} with {every.sizes[-1]} links",
    )  # fmt: skip


def _claims_of_robots(kept: Kept) -> Iterator[Claim]:
    feet, points, more = ATLAS
    hand, *mounted = HANDS
    equal = count(kept, feet, "pv_osim") == count(kept, feet, "pv_osimr")
    yield Claim(
        "section IV-C, figure 5(a): no difference between PV-OSIM and PV-OSIMr on two feet", "",
        "equal counts" if equal else compared(kept, feet, "pv_osim", "pv_osimr"),
        REPRODUCES if equal else DOES_NOT, "",
    )  # fmt: skip
    yield Claim(
        "section IV-C: both significantly outperform EFPA and LTL", "a plot",
        f"PV-OSIMr / EFPA on two feet: {compared(kept, feet, 'pv_osimr', 'efpa')}",
        REPRODUCES if _share(kept, feet, "pv_osimr", "efpa") < -10.0 else DOES_NOT, "",
    )  # fmt: skip
    dense = "Atlas feet 2x12D, K dense symbolic"
    yield Claim(
        "section IV-C, figure 5(b): four points on each foot: PV-OSIM needs more than PV-OSIMr",
        "+19.9 %", compared(kept, points, "pv_osim", "pv_osimr"),
        DEPENDS + "the rows of the contacts",
        "the paper does not give the rows; with dense rows the two are "
        f"{compared(kept, dense, 'pv_osim', 'pv_osimr', specialised=False)}; with the places of "
        "the points folded (specialised) ours comes close to the printed figure",
    )  # fmt: skip
    cheap = count(kept, hand, "ltl") < count(kept, hand, "efpa")
    yield Claim(
        "section IV-D, figure 6(a): LTL is cheaper than EFPA on the hand alone", "a plot",
        compared(kept, hand, "ltl", "efpa"), REPRODUCES if cheap else DOES_NOT, "",
    )  # fmt: skip
    loose = "Shadow hand (floating forearm, 30 dof) 5x3D, K=[0 I]"
    yield Claim(
        "section IV-D, figure 6(a): PV-OSIMr is significantly more efficient than the other "
        "algorithms on the hand alone", "a plot", compared(kept, hand, "pv_osim", "pv_osimr"),
        DOES_NOT if _share(kept, hand, "pv_osim", "pv_osimr") < 0.0 else REPRODUCES,
        "all 15 rows meet at the palm, and only the two joints of the wrist lie between the palm "
        "and the forearm: there updates of rank one are cheaper than a node, as section IV-E has "
        f"it. With a floating forearm: {compared(kept, loose, 'pv_osim', 'pv_osimr', False)}",
    )  # fmt: skip
    best = min(mounted, key=lambda name: _share(kept, name, "pv_osimr", "pv_osim"))
    two = HANDS[2]
    yield Claim(
        "section IV-D: up to 34 % fewer operations than PV-OSIM (24 % in the conclusions)",
        "−34 %; −24 %", compared(kept, best, "pv_osimr", "pv_osim"),
        DOES_NOT if _share(kept, best, "pv_osimr", "pv_osim") > -33.0 else REPRODUCES,
        "the printed figure may be the additional operations of PV-OSIM, which are "
        f"{compared(kept, best, 'pv_osim', 'pv_osimr', specialised=False)} with one hand and "
        f"{compared(kept, two, 'pv_osim', 'pv_osimr', specialised=False)} with two; there "
        f"PV-OSIMr takes {compared(kept, two, 'pv_osimr', 'pv_osim', specialised=False)}",
    )  # fmt: skip
    dense = "Atlas feet+hands 4x6D, K dense symbolic"
    yield Claim(
        "section IV-E: feet and hands: PV-OSIM needs fewer operations than PV-OSIMr", "−1.5 %",
        compared(kept, more, "pv_osim", "pv_osimr"), DEPENDS + "the rows of the contacts",
        f"with dense rows {compared(kept, dense, 'pv_osim', 'pv_osimr', specialised=False)}. Link "
        "frames and symmetric updates take operations from both algorithms, but none from the two "
        "steps of rank six that PV-OSIMr adds at a node, so the difference weighs more here",
    )  # fmt: skip


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
            style.marks(ax, again, style.STYLES[name], f"{name}, counted again")
        ax.set_title("1 branch" if branches == 1 else f"{branches} branches")
        ax.set_xlabel("links of the stem")
        style.thousands(ax)
    places[-1].axis("off")
    handles, labels = places[0].get_legend_handles_labels()
    places[-1].legend(handles, labels, loc="center", frameon=False)
    return drawn


def _scaling(kept: Kept) -> Figure:
    drawn, places = style.figure(1, 2, (10.0, 4.6))
    for ax, sweep in zip(places, SWEEPS[2:], strict=True):
        for name in sweep.algorithms:
            ours, again = sweep.found(kept, name), sweep.counted_again(name)
            label = f"{name}, exponent {_fitted(ours)}"
            style.curve(ax, ours, label, style.STYLES[name])
            style.marks(ax, again, style.STYLES[name])
        ax.set_title(sweep.title.partition(": ")[2], fontsize=10)
        style.sizes(ax, sweep.sizes, "links n")
        ax.legend(title="hollow: counted again", fontsize="small")
    return drawn


def _robots(kept: Kept) -> Figure:
    drawn, places = style.figure(1, 2, (11.0, 4.6))
    for ax, (title, labels) in zip(places, LABELS.items(), strict=True):
        ours = {label: _found(kept, name, DRAWN) for label, name in labels.items()}
        again = {label: _told(name, DRAWN) for label, name in labels.items()}
        style.bars(ax, ours, again)
        ax.set_ylim(top=1.35 * ax.get_ylim()[1])  # room for the legend
        ax.set_title(title)
        ax.legend(title="diamonds: counted again", fontsize="small")
    return drawn
