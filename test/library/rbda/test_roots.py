"""Trees of floating robots from other roots: the same G, in contact and in world axes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import mpmath
import numpy as np
import pytest
import robots
from on_floats import flat
from oracles import paper_library
from seeds import seeds

from benchmarks import operation_counts
from delassus import Contact, DelassusSolver, Problem, Robot, algorithms
from delassus.algorithms.ltl import ltl
from delassus.algorithms.pv_osimr import pv_osimr
from delassus.algorithms.registry import DelassusFunction
from delassus.compiler.ir.trace import trace
from delassus.errors import AlgorithmError, RobotError
from delassus.model import JointKind
from delassus.problem import AXES, Axes
from delassus.rbda.roots import possible_roots, rerooted
from delassus.rbda.spatial import contact_rows
from delassus.rbda.trees import roots_of, tree_of
from delassus.samples import random_inputs
from delassus.scalars.graph import CONSTANT
from delassus.scalars.ports import Inputs
from delassus.testing.random_trees import SIMPLE, random_contacts, random_robot, set_moving

TOLERANCE = 1e-11
"""Largest relative difference of G from one root to another [1]."""


def matrix(problem: Problem, root: int, x: Inputs, function: DelassusFunction) -> np.ndarray:
    tree = tree_of(problem, root)
    return np.array(function(tree, contact_rows(problem, tree, x), x), dtype=float)


def worst(problem: Problem, function: DelassusFunction = pv_osimr, every: int = 1) -> float:
    """Return the largest relative difference of G between the base and its other roots."""
    x = flat(random_inputs(problem, 0))
    expected = matrix(problem, 0, x, function)
    roots = roots_of(problem)
    assert roots[0] == 0
    assert len(roots) > 1
    found = [matrix(problem, root, x, function) for root in roots[1::every]]
    return max(float(np.linalg.norm(G - expected) / np.linalg.norm(expected)) for G in found)


@pytest.mark.parametrize("seed", seeds(30, every=7))
def test_random_trees_have_the_same_matrix_from_every_root(seed: int) -> None:
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, SIMPLE, floating=True)
    contacts = set_moving(rng, random_contacts(rng, robot))
    assert worst(Problem(robot, contacts, AXES[seed % 2])) < TOLERANCE


@cache
def atlas_with_a_hand() -> Problem:
    if not operation_counts.RECOUNT.is_file():
        pytest.skip("no ../shared/oracle/operation_counts.json beside the repository")
    name = "Atlas + 1 Shadow hand 5x3D, K=[0 I]"
    return next(row for row in operation_counts.rows() if row.name == name).make()


def legged(file: Callable[[], object], *feet: str) -> Problem:
    robot = Robot.from_urdf(file())
    return Problem(robot, [Contact(foot, foot, "surface") for foot in feet], "world")


PUBLISHED = {
    "quadruped": lambda: legged(robots.quadruped, "LF_FOOT", "RH_FOOT"),
    "atlas": lambda: legged(lambda: robots.shared("atlas_v5"), "l_foot", "r_foot", "l_hand"),
    "talos": lambda: legged(robots.talos, "left_sole_link", "right_sole_link"),
    "go1": lambda: legged(lambda: robots.shared("go1_unitree"), "FL_foot", "RR_foot"),
    "atlas with a hand": atlas_with_a_hand,
}


@pytest.mark.parametrize(
    ("name", "every"),
    [("quadruped", 1), ("atlas", 6), ("talos", 6), ("go1", 3), ("atlas with a hand", 11)],
)
def test_published_robots_have_the_same_matrix_from_some_roots(name: str, every: int) -> None:
    assert worst(PUBLISHED[name](), every=every) < TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_robots_have_the_same_matrix_from_every_root(name: str) -> None:
    assert worst(PUBLISHED[name]()) < TOLERANCE


@pytest.mark.slow
def test_light_roots_are_exact_in_50_digits() -> None:
    """A fingertip as root loses digits of a float, which is why it is none; the tree is exact."""
    problem = atlas_with_a_hand()
    roots = possible_roots(problem.robot)
    light = [root for root in roots if root not in roots_of(problem)]
    assert len(light) > 10
    with mpmath.workdps(50):
        x = {"q": [mpmath.mpf(value) for value in flat(random_inputs(problem, 0))["q"]]}

        def exact(root: int) -> mpmath.matrix:
            tree = tree_of(problem, root)
            return mpmath.matrix(pv_osimr(tree, contact_rows(problem, tree, x), x))

        expected = exact(0)
        for root in light[::4]:
            # The constants of the trees are floats, each rounded on its own.
            assert mpmath.mnorm(exact(root) - expected) < 1e-11 * mpmath.mnorm(expected)


@pytest.mark.parametrize("function", [pv_osimr, ltl])
@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("name", ["mini_cheetah_4ee", "mit_humanoid_1ee", "tello_with_arms_1ee"])
def test_roots_beyond_and_inside_of_clusters(
    name: str, axes: Axes, function: DelassusFunction
) -> None:
    given = paper_library.problem_of(name)
    problem = Problem(given.robot, given.contacts, axes)
    assert worst(problem, function, every=3) < TOLERANCE


def test_the_base_comes_last_where_it_is_reversed() -> None:
    """Joints keep name, position and armature; the free joint moves the root."""
    robot = Robot.from_urdf(robots.quadruped()).with_armature({"LF_KFE": 0.3})
    foot = robot.frames["LF_FOOT"].body
    turned = rerooted(robot, foot)
    assert turned.robot.joints[0].kind is JointKind.ROOT
    assert turned.robot.bodies[0].name == robot.bodies[foot].name
    assert sorted(turned.robot.joint_names) == sorted(robot.joint_names)
    by_name = {joint.name: joint for joint in turned.robot.joints}
    assert by_name["LF_KFE"].armature == 0.3
    knee = next(joint for joint in robot.joints if joint.name == "LF_KFE")
    assert by_name["LF_KFE"].axis.tolist() == (-knee.axis).tolist()
    total = sum(body.inertia.mass for body in robot.bodies)
    assert sum(body.inertia.mass for body in turned.robot.bodies) == pytest.approx(total)


def test_a_planar_joint_is_not_reversed() -> None:
    rng = np.random.default_rng(5)
    robot = random_robot(rng, (JointKind.PLANAR,), floating=True)
    assert possible_roots(robot) == [0]
    with pytest.raises(RobotError, match="planar; expected revolute or prismatic"):
        rerooted(robot, 1)


@pytest.fixture(scope="module")
def standing() -> Problem:
    robot = Robot.from_urdf(robots.quadruped())
    feet = [Contact(f, f, "point") for f in ("LF_FOOT", "RF_FOOT", "LH_FOOT")]
    return Problem(robot, feet, outputs=("G", "J", "MinvJT", "M"))


@pytest.mark.parametrize("name", ["pv_osim", "pv_osimr", "ltl", "efpa", "kjr", "elimination"])
def test_algorithms_take_a_root(standing: Problem, name: str) -> None:
    """G is that of the base; columns of the other outputs are the base's twist."""
    from_root = algorithms.get(f"{name}@LF_FOOT")
    assert from_root.supports(standing) is None
    x = flat(random_inputs(standing, 1))
    expected = algorithms.registry.evaluate(standing, algorithms.get("pv_osimr"), x)
    found = algorithms.registry.evaluate(standing, from_root, x)
    for output in ("G", "J", "MinvJT", "M"):
        assert np.allclose(found[output], expected[output], rtol=1e-11, atol=1e-11), output


def test_a_root_in_the_name_of_the_algorithm_is_compiled_and_cached(standing: Problem) -> None:
    problem = Problem(standing.robot, standing.contacts)
    q = random_inputs(problem, 3)["q"]
    expected = DelassusSolver(problem).solve(q).matrix
    solver = DelassusSolver(problem, "PV-OSIMr@LF_FOOT")
    assert solver.algorithm == "pv_osimr@LF_FOOT"
    assert np.allclose(solver.solve(q).matrix, expected, rtol=1e-12)
    assert solver.operations != DelassusSolver(problem).operations
    at_base = DelassusSolver(problem, "pv_osimr@base")
    assert at_base.operations == DelassusSolver(problem).operations
    assert solver.generic_operations is not None
    again = DelassusSolver(problem, "c_pv_osimr@LF_FOOT")
    assert again.solve(q).matrix.tolist() == solver.solve(q).matrix.tolist()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pv_osimr@LF_FOT", "unknown frame 'LF_FOT'; did you mean 'LF_FOOT'"),
        ("dense@LF_FOOT", "'dense' takes no root"),
        ("auto@LF_FOOT", "'auto' takes no root"),
        ("pv_osmr@LF_FOOT", "unknown algorithm 'pv_osmr'"),
    ],
)
def test_refused_roots(standing: Problem, name: str, message: str) -> None:
    with pytest.raises(AlgorithmError, match=message):
        DelassusSolver(standing, name)


def test_a_fixed_base_is_the_root() -> None:
    robot = Robot.from_urdf(robots.quadruped(), base="fixed")
    problem = Problem(robot, [Contact("foot", "LF_FOOT")])
    with pytest.raises(AlgorithmError, match="fixed base: the world is the root"):
        DelassusSolver(problem, "ltl@LF_FOOT")


def test_a_generic_trace_from_a_root_knows_no_number(standing: Problem) -> None:
    problem = Problem(standing.robot, standing.contacts, "world")
    generic = trace(problem, algorithms.get("pv_osimr@LF_FOOT"), generic=True)
    nodes = [generic.graph.nodes[k] for k in generic.live]
    constants = {abs(node[1]) for node in nodes if node[0] == CONSTANT}
    assert constants <= {0.0, 0.5, 1.0, 2.0}, constants
    assert tree_of(problem) is tree_of(problem, 0)
