"""Every output of the algorithms beside oracles: a table of robots, algorithms and tolerances.

A new robot, output, algorithm or oracle is a row. Nothing is built before a test runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from on_floats import outputs_on_floats
from oracles import cases, paper_library, relative, textbook
from oracles.cases import PLANAR, Inputs, Robots, Trees

from delassus import DelassusSolver, Problem, algorithms
from delassus.algorithms import TracedAlgorithm
from delassus.model import JointKind
from delassus.solver.inputs import PLACEMENTS
from delassus.testing import ALL, SIMPLE
from delassus.testing.conformance import fixed_there, relative_error

ALGORITHMS = algorithms.names()
TRACED = tuple(n for n in ALGORITHMS if isinstance(algorithms.get(n), TracedAlgorithm))
PUBLISHED = ("efpa", "kjr", "ltl", "pv_osim", "pv_osimr")
SEARCHING = ("auto", "elimination")
STRICT = ("efpa_strict", "pv_osimr_strict")
CLUSTERS = ("auto", "efpa", "pv_osimr", "ltl")
ROUTES = ("pv_osimr", "ltl")
"""Routes to further outputs: by sweeps, and from the factors of M."""
G, EVERYTHING = {"G": 1e-10}, {"G": 1e-9, "J": 1e-9, "MinvJT": 1e-9}
OF_TREES = {"G": 1e-10, "J": 1e-10, "MinvJT": 1e-9}
MOTION = dict.fromkeys(("J", "JdotV", "M", "MinvJT", "a0", "h"), 1e-10)
IN_MUJOCO = dict.fromkeys(("J", "JdotV", "M", "a0", "h", "qdd0"), 1e-10)
RIGID = (JointKind.REVOLUTE, JointKind.PRISMATIC)
BOTH = ("contact", "world")
ROBOTS = ("quadruped", "panda", "solo12", "anymal", "talos")
COMPARED = ("panda", "ur5", "quadruped", "solo12", "anymal", "go1", "talos", "talos24", "atlas",
            "atlas24", "g1")  # fmt: skip


@dataclass(frozen=True)
class Row:
    """Cells of the matrix: algorithms × keys of a case × outputs, beside one oracle.

    Attributes
    ----------
    case : returns problems and inputs of a key and outputs; see `oracles.cases`.
    tolerance : largest relative error by output.
    keys, slow : names, each a test, or seeds, all in one test; `slow` run by `make test-all`.
    compiled : by machine code instead of floats.
    others : outputs that the oracle does not have, held against G by identities.
    some : algorithms may refuse the problems.
    all_slow : algorithms that only `make test-all` runs.
    """

    name: str
    case: Callable[[Any, Sequence[str]], cases.Pairs]
    oracle: str
    algorithms: tuple[str, ...]
    tolerance: Mapping[str, float]
    keys: tuple[Any, ...] = (0,)
    slow: tuple[Any, ...] = ()
    compiled: bool = False
    all_slow: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    some: bool = False

    def __hash__(self) -> int:
        return hash(self.name)


def seeds(stop: int, every: int, start: int = 0) -> dict[str, tuple[int, ...]]:
    """Return every so many seeds as keys of a row, and the others as slow ones."""
    often = tuple(range(start, stop, every))
    return {"keys": often, "slow": tuple(k for k in range(start, stop) if k not in often)}


TREES = (
    ("plain trees", Trees(), 0, 100),
    ("trees of all joints", Trees((ALL,)), 100, 150),
    ("trees with world axes", Trees((ALL,), ("world",)), 150, 200),
)
DEFINITION = "textbook.outputs"
PINOCCHIO = "pinocchio_models.outputs"
MUJOCO = "mujoco_models.outputs"
PAPER = "paper_library.outputs"
ROWS = (
    # Open trees by the definition in numpy.
    *(
        Row(name, case, DEFINITION, (*PUBLISHED, "pinocchio"), G, **seeds(stop, 10, start))
        for name, case, start, stop in TREES
    ),
    *(
        Row(f"{name}, searched", case, DEFINITION, SEARCHING, G, **seeds(stop, 40, start))
        for name, case, start, stop in TREES
    ),
    Row("compiled trees", Trees(), DEFINITION, (*PUBLISHED, *SEARCHING), G, (3,), compiled=True),
    Row("compiled trees with world axes", Trees((ALL,), ("world",)), DEFINITION,
        (*PUBLISHED, *SEARCHING), G, (11,), compiled=True),
    Row("outputs of trees", Trees(), DEFINITION, ROUTES, OF_TREES, tuple(range(40))),
    Row("outputs of planar trees", Trees((PLANAR,)), DEFINITION, ROUTES, OF_TREES,
        tuple(range(40))),
    Row("outputs with world axes", Trees((PLANAR,), ("world",)), DEFINITION, ROUTES,
        OF_TREES, tuple(range(20))),
    Row("compiled outputs", Trees((PLANAR,), largest=8, inputs=3), DEFINITION,
        ("dense", "pv_osimr", "ltl", "auto"), OF_TREES, (12,), compiled=True),
    Row("moving contacts", Trees((ALL, SIMPLE, SIMPLE), BOTH, moving=True), DEFINITION,
        tuple(n for n in TRACED if n not in SEARCHING), G, tuple(range(10))),
    Row("moving contacts, searched", Trees((ALL, SIMPLE, SIMPLE), BOTH, moving=True), DEFINITION,
        ("auto",), G, tuple(range(6))),
    Row("moving contacts, eliminated", Trees((ALL, SIMPLE, SIMPLE), BOTH, moving=True),
        DEFINITION, ("elimination",), G, (0, 1)),
    Row("outputs of moving contacts", Trees(axes=BOTH, moving=True), DEFINITION, ROUTES,
        OF_TREES, tuple(range(30))),
    Row("compiled moving contacts", Trees(axes=("world",), moving=True, largest=8, inputs=1),
        DEFINITION, TRACED, OF_TREES, (15,), compiled=True),
    Row("compiled moving contacts, own axes", Trees(moving=True, largest=8, inputs=1),
        DEFINITION, TRACED, OF_TREES, (), (15,), compiled=True),
    Row("moving contacts of Pinocchio", Trees(axes=("world",), moving=True, largest=8, inputs=1),
        DEFINITION, ("pinocchio",), G, (15,), compiled=True),
    Row("moving contacts of Pinocchio, own axes", Trees(moving=True, largest=8, inputs=1),
        DEFINITION, ("pinocchio",), G, (), (15,), compiled=True),
    Row("robots", Robots((0, 1)), DEFINITION, tuple(n for n in ALGORITHMS if n != "dense"), G,
        ROBOTS, compiled=True),
    # Open robots by other libraries.
    Row("robots in Pinocchio", Robots((0, 1, 2, 3, 4)), PINOCCHIO, ("pv_osimr",), G, ROBOTS,
        compiled=True),
    Row("robots in MuJoCo", Robots((0, 1)), MUJOCO, ("pv_osimr",), G, ROBOTS, compiled=True),
    Row("trees in MuJoCo", Trees(), MUJOCO, ("pv_osimr",), G, tuple(range(6)), compiled=True),
    Row("moving feet in Pinocchio", cases.moving_feet, PINOCCHIO, ("pv_osimr",), G,
        ("position point", "position surface", "pose point", "pose surface")),
    Row("moving feet in MuJoCo", cases.moving_feet, MUJOCO, ("pv_osimr",), G,
        ("position point", "position surface", "pose point", "pose surface")),
    Row("velocities of Pinocchio", cases.two_feet, PINOCCHIO, ("pv_osimr",),
        {"J": 1e-13, "MinvJT": 1e-11}, ("surface",), compiled=True),
    Row("motion of robots", cases.compared, PINOCCHIO, ROUTES, MOTION, COMPARED,
        ("talos42", "atlas42")),
    Row("compiled motion", cases.two_feet, PINOCCHIO,
        tuple(n for n in TRACED if n != "reflected_inertia"), MOTION, ("point",), compiled=True),
    Row("motion of trees", Trees((RIGID,), BOTH), PINOCCHIO, ROUTES, MOTION,
        **seeds(50, 6)),
    Row("motion of trees in MuJoCo", Trees((RIGID,), ("world",)), MUJOCO, ROUTES,
        IN_MUJOCO, **seeds(30, 6)),
    Row("motion of passive trees in MuJoCo", Trees((RIGID,), ("world",), passive=True), MUJOCO,
        ROUTES, IN_MUJOCO, **seeds(30, 6)),
    Row("motion of robots in MuJoCo", cases.standing, MUJOCO, ROUTES, IN_MUJOCO,
        ("floating", "fixed", "talos")),
    Row("motion of a tree beside a robot", cases.mujoco_doors, MUJOCO, ROUTES, IN_MUJOCO),
    # Closed robots.
    Row("closed trees", cases.closed_trees, DEFINITION, CLUSTERS[1:], {"G": 1e-9},
        tuple(range(25)), tuple(range(25, 100))),
    Row("compiled closed trees", cases.closed_trees, DEFINITION, CLUSTERS, {"G": 1e-9},
        (3, 8, 19), compiled=True),
    Row("outputs of closed trees", cases.closed_trees, DEFINITION, ROUTES,
        {"G": 1e-9, "J": 1e-10, "MinvJT": 1e-9}, tuple(range(20)), tuple(range(20, 60))),
    Row("moving contacts of closed trees", cases.moving_closed_trees, DEFINITION, CLUSTERS[1:],
        {"G": 1e-9}, tuple(range(20))),
    Row("moving contacts of closed trees, searched", cases.moving_closed_trees, DEFINITION,
        ("auto",), {"G": 1e-9}, tuple(range(5))),
    Row("belt", cases.belt, DEFINITION, CLUSTERS, G),
    Row("gears of an ordinary tree", cases.three_gears, DEFINITION, PUBLISHED, G),
    Row("compiled gears", cases.three_gears, DEFINITION, CLUSTERS, OF_TREES, compiled=True),
    Row("oblique slides", cases.oblique_slides, "textbook.definition", CLUSTERS, {"G": 1e-13}),
    Row("digit-like robot", cases.digit_like, DEFINITION, CLUSTERS, EVERYTHING,
        all_slow=("efpa", "ltl")),
    Row("gears of the paper", cases.printed, PAPER, CLUSTERS, EVERYTHING | G,
        paper_library.CONSTANT),
    Row("loops of the paper", cases.printed, PAPER, CLUSTERS, EVERYTHING, paper_library.VARYING),
    Row("URDF+ of the paper", cases.printed_urdf, PAPER, CLUSTERS, {"G": 1e-9},
        tuple(paper_library.FILES)),
    Row("functions of Tello", cases.printed_tello, PAPER, CLUSTERS, {"G": 1e-9},
        ("tello_with_arms_1ee",)),
    Row("geared demo in MuJoCo", cases.geared_demo, MUJOCO, CLUSTERS, EVERYTHING),
    Row("gears of the paper in MuJoCo", cases.acceptable_paper, MUJOCO, CLUSTERS, EVERYTHING,
        ("mini_cheetah_4ee", "mit_humanoid_1ee", "chain_PBT_4")),
    Row("linkages in MuJoCo", cases.linkages, MUJOCO, CLUSTERS, EVERYTHING,
        tuple(cases.PARALLELOGRAMS)),
    Row("closed trees in MuJoCo", cases.acceptable_trees, MUJOCO, CLUSTERS, EVERYTHING,
        tuple(range(4)), tuple(range(4, 25))),
    # Rows of several links.
    Row("rows of several links", cases.rows_of_several_links, "textbook.definition",
        (*PUBLISHED, *SEARCHING, *STRICT), G, **seeds(100, 75), others=("J", "MinvJT", "M")),
    Row("rows of the whole robot", cases.rows_of_the_whole_robot, "textbook.definition",
        (*PUBLISHED, *SEARCHING, *STRICT, "ltl@f1"), G, **seeds(24, 12),
        others=("J", "MinvJT", "M"), some=True),
    Row("rows of the whole robot on the world", cases.rows_of_the_whole_robot_on_the_world,
        "textbook.definition", (*PUBLISHED, *SEARCHING, *STRICT), G, **seeds(24, 12),
        some=True),
)  # fmt: skip


def cells() -> Iterator[Any]:
    """Yield a parameter for each row, algorithm and name, or all seeds."""
    for row in ROWS:
        for algorithm in row.algorithms:
            if algorithm == "pinocchio" and algorithm not in ALGORITHMS:
                continue
            for keys, slow in ((row.keys, algorithm in row.all_slow), (row.slow, True)):
                named = bool(keys) and isinstance(keys[0], str)
                for group in ([(key,) for key in keys] if named else [keys] if keys else []):
                    parts = row.name, algorithm, group[0] if named else "more" if slow else ""
                    label = "-".join(filter(None, parts)).replace(" ", "_").replace(",", "")
                    marks = [pytest.mark.slow] if slow else []
                    yield pytest.param(row, algorithm, group, id=label, marks=marks)


@lru_cache(maxsize=4)
def expected_of(row: Row, key: Any) -> list[tuple[Problem, Inputs, dict[str, np.ndarray]]]:
    """Return problems, inputs and the oracle's outputs; algorithms of a row share them."""
    module, _, function = row.oracle.partition(".")
    oracle = getattr(import_module(f"oracles.{module}"), function)
    found = []
    for k, (problem, inputs) in enumerate(row.case(key, (*row.tolerance, *row.others))):
        if row.oracle == PAPER:
            found.append((problem, inputs, oracle(problem, key, k)))
            continue
        there, given = problem, inputs
        if problem.moving and row.oracle != DEFINITION:
            there = fixed_there(problem, inputs)
            given = {name: array for name, array in inputs.items() if name not in PLACEMENTS}
        found.append((problem, inputs, oracle(there, given)))
    return found


def computed(problem: Problem, name: str, inputs: Inputs, compiled: bool) -> dict[str, np.ndarray]:
    """Return the outputs by an algorithm, on floats or by machine code."""
    if not compiled and isinstance(algorithms.get(name), TracedAlgorithm):
        return outputs_on_floats(problem, name, inputs)
    bound = DelassusSolver(problem, name).bind()
    for port, values in inputs.items():
        bound.inputs[port][...] = values
    solution = bound.solve()
    names = [port.name for port in problem.outputs]
    return {output: np.array(solution.output(output)) for output in names} | solution.secondary


def errors(
    problem: Problem, found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]
) -> dict[str, float]:
    """Return relative errors by output, of G also by contact pairs, and those of identities."""
    off = {output: relative(found[output], expected[output]) for output in found if
           output in expected}  # fmt: skip
    if "G" in expected:
        off["G"] = relative_error(problem, found["G"], expected["G"])
    if "a0" in found and "material" in expected:
        material = found["a0"] + found.get("turning", 0.0)
        off["a0"] = max(relative(material, expected["material"]), off["a0"])
    if {"J", "MinvJT"} <= found.keys():
        product = relative(found["J"] @ found["MinvJT"], found["G"])
        off["G"] = max(off.get("G", 0.0), product)
        M = expected.get("M", found.get("M"))
        if M is not None:
            off["MinvJT"] = max(
                off.get("MinvJT", 0.0), relative(M @ found["MinvJT"], found["J"].T)
            )
    return off


@pytest.mark.parametrize(("row", "algorithm", "keys"), list(cells()))
def test_outputs(row: Row, algorithm: str, keys: tuple[Any, ...]) -> None:
    """The worst key of each output is named."""
    worst: dict[str, tuple[float, str]] = {}
    for key in keys:
        for problem, inputs, expected in expected_of(row, key):
            assert row.tolerance.keys() <= expected.keys()
            reason = algorithms.get(algorithm).supports(problem)
            if row.some and reason is not None:
                pytest.skip(reason)
            assert reason is None
            found = computed(problem, algorithm, inputs, row.compiled)
            assert np.array_equal(found["G"], found["G"].T), key
            for output, error in errors(problem, found, expected).items():
                worst[output] = max(worst.get(output, (0.0, "")), (error, str(key)))
    assert row.tolerance.keys() <= worst.keys()
    most = max(row.tolerance.values())
    assert not {
        output: (error, key) for output, (error, key) in worst.items()
        if not error < row.tolerance.get(output, most)
    }  # fmt: skip


@pytest.mark.parametrize("name", [*ROBOTS, "moving, contact axes", "moving, world axes"])
def test_error_against_50_digits_is_rounding(name: str) -> None:
    """‖ΔG‖ / ‖G‖ <= c·u·cond(M): nothing but rounding, amplified by the problem itself."""
    if name in ROBOTS:
        ((problem, inputs),) = Robots((0,))(name, ("G",))
    else:
        problem = cases.feet("world" if "world" in name else "contact", "pose", "surface")
        ((problem, inputs),) = cases.inputs_of(problem, [4])
    expected = textbook.exact(problem, inputs)["G"]
    found = computed(problem, "pv_osimr", inputs, compiled=name in ROBOTS)["G"]
    error = relative_error(problem, found, expected)
    condition = float(np.linalg.cond(textbook.mass_matrix(problem.robot, inputs["q"])))
    assert error < min(100 * 2.0**-53 * condition, 1e-10)
