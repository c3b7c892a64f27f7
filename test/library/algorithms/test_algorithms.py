"""The published algorithms and `auto` against the definition, and against each other."""

from __future__ import annotations

import numpy as np
import pytest
from on_floats import flat

from delassus import Contact, DelassusSolver, Problem, algorithms
from delassus.algorithms import auto
from delassus.algorithms.auto import Route, decide, estimates
from delassus.algorithms.pv_osimr import wide_nodes
from delassus.compiler.ir.trace import trace
from delassus.model import WORLD, Body, Frame, Joint, JointKind, Robot, Transform
from delassus.rbda import trees
from delassus.rbda.factored_inertia import factorise
from delassus.rbda.joint_space import Freedoms, composite_rigid_bodies
from delassus.rbda.spatial import JointTransform, contact_rows
from delassus.samples import random_inputs
from delassus.testing import random_problem
from delassus.testing.conformance import relative_error, textbook
from delassus.testing.random_trees import random_inertia

NAMES = ("auto", "efpa", "elimination", "kjr", "ltl", "pv_osim", "pv_osimr")
TOLERANCE = 1e-10


def many_contacts(seed: int) -> Problem:
    """Two arms on a trunk of three links, contacts on every link, several on some."""
    rng = np.random.default_rng(seed)
    parents = [WORLD, 0, 1, 2, 3, 4, 2, 6, 7]
    joints = [Joint("root", JointKind.ROOT, WORLD)]
    for i, parent in enumerate(parents[1:], start=1):
        place = Transform.from_xyz_rpy(rng.uniform(-0.3, 0.3, 3), rng.uniform(-3, 3, 3))
        joints.append(Joint(f"j{i}", JointKind.REVOLUTE, parent, place))
    bodies = [Body(f"b{i}", random_inertia(rng)) for i in range(len(joints))]
    frames = [Frame(f"f{i}", i, Transform()) for i in range(len(joints))]
    contacts = [Contact(f"s{i}", f"f{i}", "surface") for i in range(len(joints))]
    contacts += [Contact(f"p{i}", f"f{i}", "point") for i in (2, 5, 5 + 3)]
    return Problem(Robot("two arms", joints, bodies, frames), contacts)


def decisions() -> list[frozenset[int]]:
    """Random choices of nodes, nested and merged."""
    rng = np.random.default_rng(5)
    links = np.arange(1, 9)
    chosen = [frozenset[int](), frozenset(range(1, 9))]
    return chosen + [frozenset(int(i) for i in links[rng.random(8) < 0.5]) for _ in range(30)]


def test_every_decision_gives_the_same_matrix() -> None:
    problem = many_contacts(0)
    x = flat(random_inputs(problem, 0))
    expected = textbook(problem, {k: np.array(v) for k, v in x.items()})
    tree = trees.tree_of(problem)
    for decision in decisions():
        for spreads in (False, True):
            route = Route(nodes=decision, spreads=spreads)
            G = np.array(route(tree, contact_rows(problem, tree, x), x))
            assert relative_error(problem, G, expected) < TOLERANCE, route
            assert np.array_equal(G, G.T), route


def test_contacts_of_other_trees_do_not_couple() -> None:
    """A fixed base carries independent trees; `auto` takes a route for each."""
    rng = np.random.default_rng(1)
    joints, frames = [], []
    for limb, kind in enumerate((JointKind.REVOLUTE, JointKind.PRISMATIC, JointKind.FLOATING)):
        joints.append(Joint(f"a{limb}", kind, WORLD))
        joints.append(Joint(f"b{limb}", JointKind.REVOLUTE, 2 * limb))
        frames.append(Frame(f"f{limb}", 2 * limb + 1, Transform()))
    bodies = [Body(joint.name, random_inertia(rng)) for joint in joints]
    robot = Robot("three", joints, bodies, frames)
    problem = Problem(robot, [Contact(f"c{k}", f"f{k}", "point") for k in (2, 0, 1)])
    x = flat(random_inputs(problem, 2))
    expected = textbook(problem, {k: np.array(v) for k, v in x.items()})
    for name in NAMES:
        G = np.array(algorithms.get(name).evaluate(problem, x)["G"])
        assert np.abs(G - expected).max() < TOLERANCE * np.abs(expected).max(), name
        assert not G[:3, 3:].any() and not G[3:6, 6:].any(), name
    assert [sorted(contacts) for contacts, _ in decide(problem, False).routes] == [[1], [2], [0]]


def test_wide_nodes_are_where_more_than_six_rows_meet() -> None:
    problem = many_contacts(0)
    # Every trunk and arm link but the tips carries six rows and passes on six more; one tip
    # carries a surface and a point.
    assert wide_nodes(trees.tree_of(problem)) == {1, 2, 3, 4, 5, 6, 7, 8}
    few = Problem(problem.robot, [Contact("a", "f5", "point"), Contact("b", "f8", "point")])
    assert wide_nodes(trees.tree_of(few)) == frozenset()


def test_ltl_factors_keep_the_sparsity_of_branches() -> None:
    problem = many_contacts(0)
    tree = trees.tree_of(problem)
    x = flat(random_inputs(problem, 4))
    freedoms = Freedoms.of(tree)
    M = composite_rigid_bodies(tree, freedoms, [JointTransform(link, x) for link in tree.links])
    L, D_inverse = factorise(M, freedoms.names)
    unit = np.tril(np.array(L), -1) + np.eye(len(M))
    full = np.array(M) + np.tril(np.array(M), -1).T
    assert np.allclose(unit.T @ np.diag(1.0 / np.array(D_inverse)) @ unit, full, rtol=1e-12)
    # Velocities 8 to 10 are the first arm's, 11 to 13 the second's.
    assert not full[11:, 8:11].any()
    assert not unit[11:, 8:11].any()
    assert (unit[8:11, :6] != 0.0).all() and (unit[11:, :6] != 0.0).all()


def test_a_body_that_no_contact_depends_on_costs_nothing() -> None:
    problem = many_contacts(0)
    loose = Problem(problem.robot, [Contact("trunk", "f0", "surface")])
    for name in NAMES:
        operations = DelassusSolver(loose, name).operations
        assert operations is not None and operations.square_roots == 0


@pytest.mark.parametrize("name", ["kjr", "pv_osim", "pv_osimr"])
def test_long_chains_need_no_deep_recursion(name: str) -> None:
    joints = [Joint("root", JointKind.ROOT, WORLD)]
    for i in range(1, 400):
        place = Transform(np.eye(3), np.array([0.1, 0.0, 0.0]))
        joints.append(Joint(f"j{i}", JointKind.REVOLUTE, i - 1, place, np.eye(3)[i % 3]))
    inertia = random_inertia(np.random.default_rng(0))
    bodies = [Body(f"b{i}", inertia) for i in range(len(joints))]
    frames = [Frame(f"f{i}", i, Transform()) for i in range(len(joints))]
    contacts = [Contact(f"c{i}", f"f{i}", "surface") for i in (*range(250, 264), 399)]
    problem = Problem(Robot("chain", joints, bodies, frames), contacts)
    x = flat(random_inputs(problem, 0))
    G = np.array(algorithms.get(name).evaluate(problem, x)["G"])
    efpa = np.array(algorithms.get("efpa").evaluate(problem, x)["G"])
    assert relative_error(problem, G, efpa) < 1e-9


def test_auto_knows_numbers_from_unknowns_whatever_is_cached(monkeypatch) -> None:
    """Threads that begin together have trees of their own; only one of them is kept."""
    seen = []

    def rows(*arguments):
        trees._cached_tree.cache_clear()
        return contact_rows(*arguments)

    def decided(problem: Problem, generic: bool, rooted: bool):
        seen.append(generic)
        return decide(problem, generic, rooted)

    monkeypatch.setattr(auto, "contact_rows", rows)
    monkeypatch.setattr(auto, "decide", decided)
    problem = random_problem(3)
    algorithms.get("auto").evaluate(problem, flat(random_inputs(problem, 0)))
    assert seen == [False]
    trace(problem, algorithms.get("auto"), generic=True)
    assert seen == [False, True]


def test_estimates_take_every_row_of_contacts_on_one_link() -> None:
    robot = random_problem(2).robot
    frame = next(name for name, frame in robot.frames.items() if frame.body == 1)
    tree = trees.tree_of(Problem(robot, [Contact("p", frame), Contact("s", frame, "surface")]))
    (link,) = set(tree.link_of.values())
    assert estimates(tree)["efpa"] == 60.0 * 9 * len(tree.path(link)) + 6.0 * 9**2
