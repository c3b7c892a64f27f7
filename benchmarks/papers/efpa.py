"""Figures 5 and 6 of the EFPA paper: operations on a humanoid, by two cost models.

P. Wensing, R. Featherstone, D. E. Orin, "A Reduced-Order Recursive Algorithm for the Computation
of the Operational-Space Inertia Matrix", 2012, section V and appendix. Counts of our algorithms
are generic. The paper's model counts each spatial operation of EFPA and of RJKA, on matrices
without zeros: :mod:`benchmarks.papers.cost_model`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from matplotlib.figure import Figure

from benchmarks import ours, style, timing
from benchmarks.cases import pool
from benchmarks.pages import Places, Table, table
from benchmarks.papers import asimo, cost_model, stages
from benchmarks.papers.asimo import AXES, HANDS_AND_FEET, VARIANTS
from benchmarks.papers.kept import Kept, counted
from benchmarks.papers.osimr import count, recounted
from benchmarks.papers.page import Findings, published, under_headings
from delassus import Problem
from delassus.algorithms import ltl
from delassus.algorithms.counting import OperationCounter
from delassus.rbda.factored_inertia import factorise, products, solve_rows, substituted
from delassus.rbda.tree import Tree
from delassus.rbda.trees import tree_of
from delassus.scalars.functions import Matrix
from delassus.scalars.ports import Inputs

ALGORITHMS = ("ltl", "efpa", "kjr", "pv_osim", "pv_osimr")
_SHORT = dict(zip(AXES, ("(general axes)", "(D.–H.)", "(right angles)"), strict=True))
"""Choices of axes in claims."""
BOTH = ("efpa", "efpa_strict")
MODEL = "EFPA, the paper's cost model"
RJKA = "RJKA, the paper's cost model"
MODELS = {MODEL: cost_model.efpa, RJKA: cost_model.rjka}
DH = "as of Denavit and Hartenberg"
ROBOTS = (
    "Go1 (altered) 4x3D feet, K=[0 I]", "Go1 (altered) 4x6D feet, K=I6", "Atlas feet 2x6D, K=I6",
    "Atlas feet+hands 4x6D, K=I6",
)  # fmt: skip
"""Robots of the table of both forms."""
_, _, _TIPS, _LIMBS, _MORE, _FINGERS, _ON_FOOT = VARIANTS
_SECONDS = 1.0
"""Duration of the measurement of a robot's times [s]."""


def _count(kept: Kept, name: str, axes: str, algorithm: str, tools: bool = False) -> int:
    humanoid, ends, _ = VARIANTS[name]
    where = ", end effectors' own axes" if tools else ""
    key = f"{algorithm} of {name}, {axes}{where}"
    return counted(kept, key, partial(humanoid.problem, ends, axes, tools), algorithm)


def _stages(kept: Kept, algorithm: str, axes: str, tools: bool) -> dict[str, int]:
    found: dict[str, int] = kept.of(
        f"stages of {algorithm}, {axes}, {tools}",
        lambda: stages.stages(
            VARIANTS[HANDS_AND_FEET].humanoid.problem("hf", axes, tools), algorithm
        ),
    )
    return found


def _modelled(name: str, model: str = MODEL) -> int:
    humanoid, ends, _ = VARIANTS[name]
    return sum(MODELS[model](humanoid.problem(ends, DH)).values())


def _with_responses(axes: str) -> list[int]:
    """Return the operations of G and M⁻¹Jᵀ for hands and feet, of which J̄ follows: SFA, EFPA."""
    problem = VARIANTS[HANDS_AND_FEET].humanoid.problem("hf", axes)
    both = Problem(problem.robot, problem.contacts, problem.axes, ("G", "MinvJT"))
    sfa = OperationCounter(problem, tree_of(problem), generic=True)(_sfa_with_response)
    return [sfa, ours.operations(both, "efpa", generic=True).total]


def _sfa_with_response(tree: Tree, K: dict[int, Matrix], x: Inputs) -> Matrix:
    """Return the rows of G, then those of (M⁻¹Jᵀ)ᵀ by the factors that G has."""
    M, J, freedoms = ltl.projected(tree, K, x)
    L, D_inverse = factorise(M, freedoms.names)
    Y = [solve_rows(L, row) for row in J]
    scaled = ([y * d for y, d in zip(row, D_inverse, strict=True)] for row in Y)
    return products(Y, D_inverse) + [substituted(L, row) for row in scaled]


def _robot() -> Table:
    printed = published("efpa")
    base, more = (VARIANTS[name].humanoid.problem("hf", DH) for name in (HANDS_AND_FEET, _MORE))
    (h_zeros, j_zeros), (more_zeros, _) = asimo.zeros(base), asimo.zeros(more)
    rows: list[tuple[object, ...]] = [
        ("bodies", len(base.robot.joints), printed["bodies"]),
        ("freedoms", base.robot.nv, printed["freedoms"]),
    ]
    for what, found, key in (
        ("mass matrix", h_zeros, "zeros of H"), ("Jacobian", j_zeros, "zeros of J"),
        ("mass matrix, two more arms and legs", more_zeros, "zeros of H, two more arms and legs"),
    ):  # fmt: skip
        rows.append((f"zeros of the {what}", f"{found:.1f} %", f"{printed[key]} %"))
    return table(("", "here", "printed"), rows)


def _bars(kept: Kept, choices: Iterable[str] = AXES) -> dict[str, dict[str, int]]:
    problem = VARIANTS[HANDS_AND_FEET].humanoid.problem("hf", DH)
    found = {name: model(problem) for name, model in MODELS.items()}
    for axes in choices:
        for algorithm in ("efpa", "kjr", "ltl"):
            found[f"`{algorithm}`, {axes}"] = _stages(kept, algorithm, axes, True)
    return found


def _breakdown(kept: Kept, axes: Iterable[str]) -> Table:
    rows = (
        (label, *(found.get(name, 0) for name in stages.NAMES), sum(found.values()))
        for label, found in _bars(kept, axes).items()
    )
    return table(("algorithm, axes of the joints", *stages.NAMES, "sum"), rows)


def _operations(kept: Kept, axes: str, names: Iterable[str]) -> Table:
    rows = []
    for name in names:
        found = [_count(kept, name, axes, each) for each in ALGORITHMS]
        ratios = (f"{_ratio(kept, name, axes, each):.2f}" for each in ("ltl", "kjr"))
        rows.append((name, *found, *ratios))
    heads = (*(f"`{each}`" for each in ALGORITHMS), "LTL / EFPA", "KJR / EFPA")
    return table(("robot, operational space", *heads), rows)


def _by_models(kept: Kept, names: Iterable[str]) -> Table:
    rows = []
    for name in names:
        found = [_modelled(name, model) for model in MODELS]
        sfa = _count(kept, name, DH, "ltl", True)
        ratios = _by_model(kept, name), _modelled(name, RJKA) / _modelled(name)
        rows.append((name, *found, sfa, *(f"{ratio:.2f}" for ratio in ratios)))
    heads = (*MODELS, "`ltl`", "LTL / EFPA", "RJKA / EFPA")
    return table(("robot, operational space", *heads), rows)


def _forms(kept: Kept) -> Table:
    rows = []
    for name in ROBOTS:
        found = {each: count(kept, name, each) for each in BOTH}
        times: dict[str, float] = kept.of(f"times of EFPA, {name}", partial(_times, name))
        ratios = [f"{each['efpa_strict'] / each['efpa']:.2f}" for each in (found, times)]
        microseconds = (f"{1e6 * times[each]:.3f}" for each in BOTH)
        rows.append((name, *found.values(), ratios[0], *microseconds, ratios[1]))
    heads = (*(f"`{each}`" for each in BOTH), "strict / efpa")
    return table(("robot", *heads, *(f"`{each}` [µs]" for each in BOTH), heads[-1]), rows)


def _times(name: str) -> dict[str, float]:
    """Return the least times of both forms' kernels in warm caches [s], taken in turns."""
    problem = recounted()[name].make()
    inputs = pool(problem, 64)
    routines = {
        each: timing.warm(ours.build(problem, each, inputs, use_cache=False).routine)
        for each in BOTH
    }
    return {each: time.minimum for each, time in timing.measure(routines, _SECONDS).items()}


def places(kept: Kept, quick: bool) -> Places:
    """Return the results of the page by place; a quick run has one variant and no robot."""
    few = 1 if quick else None
    names, axes = list(VARIANTS)[:few], list(AXES)[:few]
    sections = {
        "Figure 4: the robot": _robot(),
        "Figure 5: cost breakdown for hands and feet": _breakdown(kept, axes),
        **{f"Figure 6: operations, axes {each}": _operations(kept, each, names) for each in axes},
        "Figure 6: the paper's cost model": _by_models(kept, names),
    }
    if not quick:
        sections["The privileged child: both forms of EFPA"] = _forms(kept)
    return {"tables": under_headings(sections), "future": "" if quick else _future(kept)}


def _ratio(kept: Kept, name: str, axes: str, first: str, second: str = "efpa") -> float:
    return _count(kept, name, axes, first) / _count(kept, name, axes, second)


def _each(kept: Kept, name: str, first: str, second: str = "efpa") -> str:
    """Return a ratio for all choices of axes."""
    return ", ".join(
        f"{_ratio(kept, name, axes, first, second):.2f} {_SHORT[axes]}" for axes in AXES
    )


def _by_model(kept: Kept, name: str) -> float:
    return _count(kept, name, DH, "ltl", True) / _modelled(name)


def findings(kept: Kept) -> Findings:
    """Yield what a whole run finds of the paper's claims."""
    printed, base = published("efpa"), HANDS_AND_FEET
    h_zeros, j_zeros = asimo.zeros(VARIANTS[base].humanoid.problem("hf", DH))
    as_printed = (round(h_zeros), int(j_zeros)) == (56, 67)
    yield "zeros", as_printed, f"{h_zeros:.1f} %, {j_zeros:.1f} %"
    told, by_model = printed["LTL / EFPA, hands and feet"], _by_model(kept, base)
    by_ours = f"{_each(kept, base, 'ltl')} by our counts"
    yield (
        "SFA", abs(by_model - told) < 0.01 and "the cost model and the axes",
        f"{by_model:.2f} by the paper's cost model; {by_ours}",
    )  # fmt: skip
    by_paper = [_modelled(name, RJKA) / _modelled(name) for name in VARIANTS]
    ratios = {axes: [_ratio(kept, name, axes, "kjr") for name in VARIANTS] for axes in AXES}
    spans = ", ".join(f"{_span(found)} {_SHORT[axes]}" for axes, found in ratios.items())
    yield (
        "RJKA", min(by_paper) > 1.0,
        f"{_span(by_paper)} by the paper's cost model; KJR / EFPA {spans} by our counts",
    )  # fmt: skip
    lower = all(
        _ratio(kept, name, axes, "ltl") > _ratio(kept, base, axes, "ltl")
        for name in (_FINGERS, _LIMBS) for axes in AXES
    )  # fmt: skip
    yield (
        "more joints", lower,
        f"LTL / EFPA {_each(kept, _LIMBS, 'ltl')} with longer limbs, "
        f"{_each(kept, _FINGERS, 'ltl')} with four fingers",
    )  # fmt: skip
    more = _by_model(kept, _MORE)
    yield (
        "more limbs", abs(more / by_model - 1.0) < 0.05,
        f"{by_model:.2f} → {more:.2f} by the paper's cost model; "
        f"{_each(kept, base, 'ltl')} → {_each(kept, _MORE, 'ltl')} by our counts",
    )  # fmt: skip
    before, after = (_modelled(name, RJKA) / _count(kept, name, DH, "ltl", True)
                     for name in (base, _MORE))  # fmt: skip
    both = {axes: [_ratio(kept, name, axes, "kjr", "ltl") for name in (base, _MORE)]
            for axes in AXES}  # fmt: skip
    words = ", ".join(f"{_grown(*each)} {_SHORT[axes]}" for axes, each in both.items())
    yield (
        "RJKA, more limbs", after / before > 1.5,
        f"{_grown(before, after)} by the paper's cost model; KJR / LTL {words} by our counts",
    )  # fmt: skip
    then = {}
    for axes in AXES:
        sfa, by_efpa = kept.of(f"G and M⁻¹Jᵀ, {axes}", partial(_with_responses, axes))
        then[axes] = sfa / by_efpa
    listed = ", ".join(f"{ratio:.2f} {_SHORT[axes]}" for axes, ratio in then.items())
    yield (
        "J̄", all(then[axes] < min(0.9, _ratio(kept, base, axes, "ltl")) for axes in AXES),
        f"SFA / EFPA {_each(kept, base, 'ltl')} for Λ⁻¹, {listed} for Λ⁻¹ and H⁻¹Jᵀ",
    )  # fmt: skip


def _span(values: Iterable[float]) -> str:
    every = list(values)
    return f"{min(every):.2f} to {max(every):.2f}"


def _grown(before: float, after: float) -> str:
    return f"{100.0 * (after / before - 1.0):+.0f} %"


def _future(kept: Kept) -> Table:
    """Return the table of the paper's future work."""
    numbers = "; ".join(
        f"{words}: {_count(kept, name, DH, 'efpa')} → {_count(kept, name, DH, 'pv_osimr')} "
        "operations"
        for words, name in (("forefingers, thumbs and feet", _TIPS), ("one foot fixed", _ON_FOOT))
    )
    return table(("in the paper", "here"), [
        ("propagators of end effectors with a common support chain have much common structure",
         f"done by PV-OSIMr, whose nodes propagate six rows once ({numbers})"),
        ("the dynamically consistent pseudo-inverse J̄",
         "done: `solution.jbar()`, from M⁻¹Jᵀ and Λ ([library](../library.md))"),
        ("closed-chain operational dynamics",
         "done: `c_efpa` over clusters ([closed loops](../clusters.md)), and loops as rows"),
    ], 2)  # fmt: skip


def figures(kept: Kept) -> Mapping[str, Figure]:
    """Return figures 5 and 6."""
    return {"efpa_breakdown": _figure_5(kept), "efpa_variants": _figure_6(kept)}


def _figure_5(kept: Kept) -> Figure:
    drawn, (ax,) = style.figure(1, 1, (9.5, 4.8))
    short = {"general": "general axes", DH: "D.–H. axes"}
    every = _bars(kept)
    bars = {name.replace(", the paper's cost model", "\npaper's model"): every[name]
            for name in MODELS}  # fmt: skip
    for label, found in every.items():
        algorithm, _, axes = label.partition(", ")
        if algorithm[0] == "`":
            name = {"efpa": "EFPA", "kjr": "KJR", "ltl": "SFA"}[algorithm.strip("`")]
            bars[f"{name}\n{short.get(axes, 'right angles')}"] = found
    style.stacked(ax, bars)
    ax.tick_params(axis="x", labelsize=7)
    ax.legend(loc="upper left")
    low, high = ax.get_ylim()
    ax.set_ylim(low, 1.25 * high)
    return drawn


def _figure_6(kept: Kept) -> Figure:
    drawn, places = style.figure(2, 1, (9.5, 8.0))
    names = {
        "ltl": "SFA (ltl)",
        "efpa": "EFPA (efpa)",
        "kjr": "KJR (kjr)",
        "pv_osimr": "PV-OSIMr",
    }
    for ax, axes in zip(
        places, (DH, "as of Denavit and Hartenberg, at right angles"), strict=True
    ):
        style.bars(
            ax,
            {
                variant.label: {names[each]: _count(kept, name, axes, each) for each in names}
                for name, variant in VARIANTS.items()
            },
        )
        ax.set_title(f"axes {axes}")
    places[0].legend()
    return drawn
