"""The EFPA paper's cost model: its operations are printed, or those of our spatial algebra."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.mechanisms import Links, rotation, surfaces
from benchmarks.papers import asimo, cost_model, efpa, stages
from delassus import Problem, algorithms
from delassus.algorithms.registry import evaluate
from delassus.rbda.spatial import JointTransform, SpatialInertia, contact_rows
from delassus.rbda.tree import Link, Turn
from delassus.rbda.trees import tree_of
from delassus.scalars.counts import operations
from delassus.scalars.graph import Graph


def on_full_matrices(
    link: Link, function: Callable[[JointTransform, Callable[[], Any]], Any]
) -> tuple[int, int]:
    """Return multiplications and additions of a spatial operation on matrices of unknowns."""
    graph = Graph()
    number = iter(range(10**6))

    def unknown() -> Any:
        return graph.input(next(number))

    x = {"q": [unknown() for _ in range(link.q_index + 1)]}
    turns = tuple(Turn(t.axis, graph.parameter(), graph.parameter()) for t in link.turns)
    offset = [graph.parameter() if value else 0.0 for value in link.offset]
    moved = Link(**{**link.__dict__, "turns": turns, "offset": offset})
    result = function(JointTransform(moved, x), unknown)
    rows = result.matrix() if isinstance(result, SpatialInertia) else result
    outputs = [graph.index_of(value) for row in rows for value in row]
    found = operations(graph, graph.live(outputs))
    return found.multiplications, found.additions


def congruence(t: JointTransform, unknown: Callable[[], Any], axis: int) -> list[list[Any]]:
    """Return the upper half of X Λ⁻¹ Xᵀ without row and column of the joint's axis."""
    whole: list[list[Any]] = [[0.0] * 6 for _ in range(6)]
    for r in range(6):
        for s in range(r, 6):
            whole[r][s] = whole[s][r] = unknown()
    half = np.array([t.motion_to_child(column) for column in whole], object).T
    full = [t.motion_to_child(row) for row in half.tolist()]
    kept = [r for r in range(6) if r != axis]
    return [[full[min(r, s)][max(r, s)] for s in kept] for r in kept]


def test_the_model_s_operations_of_any_joint_are_those_of_our_spatial_algebra() -> None:
    """The printed ones of the privileged child, too, but for a product less per block."""
    problem = asimo.Humanoid().problem("hf", efpa.DH)
    tree = tree_of(problem)
    privileged = next(
        link for link in tree.links
        if link.parent == 0 and not link.turns and not any(link.offset)
    )  # fmt: skip
    general = next(
        link for link in tree.links if len(link.turns) == 1 and np.count_nonzero(link.offset) == 2
    )

    def articulated(unknown: Callable[[], Any], axis: int) -> SpatialInertia:
        m: list[list[Any]] = [[0.0] * 6 for _ in range(6)]
        for i in range(6):
            for j in range(i, 6):
                m[i][j] = m[j][i] = 0.0 if axis in (i, j) else unknown()
        return SpatialInertia(
            [r[:3] for r in m[:3]], [r[3:] for r in m[:3]], [r[3:] for r in m[3:]]
        )

    for link, which in ((general, 0), (privileged, 1)):
        axis = link.axis
        inertia = on_full_matrices(
            link, lambda t, u, a=axis: t.inertia_to_parent(articulated(u, a))
        )
        carried = on_full_matrices(
            link, lambda t, u: [t.motion_to_child([u() for _ in range(6)]) for _ in range(6)]
        )
        propagated = on_full_matrices(
            link,
            lambda t, u, a=axis: [
                t.force_to_parent([0.0 if k == a else u() for k in range(6)]) for _ in range(6)
            ],
        )
        congruent = on_full_matrices(link, lambda t, u, a=axis: congruence(t, u, a))
        if which == 0:
            assert sum(congruent) == cost_model.CONGRUENT[0]
        assert sum(carried) == cost_model.CARRIED[which]
        assert sum(propagated) == cost_model.PROPAGATED[which]
        # The paper forms s² and s c once: four products and one sum less than here.
        assert sum(inertia) - cost_model.TO_PARENT[which] == (0 if which == 0 else 5)


def test_the_cost_model_is_the_printed_one_on_a_chain_by_hand() -> None:
    """Torso, one arm of two joints, one end effector: all terms of the appendix."""
    build = Links()
    tip = build.chain(0, 2, rotation((1.0, 0.0, 0.0), 1.0), np.array([1.0, 0.0, 0.0]))
    found = cost_model.efpa(Problem(build.robot("arm"), surfaces([f"link{tip}"])))
    assert found[stages.INERTIAS] == 231 + (6 + 30 + 156 + 21) + (6 + 30 + 47 + 15)
    assert found[stages.PROPAGATORS] == (60 + 186) + (60 + 72)
    assert found[stages.DIAGONAL] == (396 - 72) + (60 + 192 + 12) + (60 + 72 + 12) + 274
    assert found[stages.CROSS] == 0


def test_the_paper_s_rjka_on_a_fork_by_hand() -> None:
    """Two arms of one joint on a stem of one, each pair with a recursion of its own."""
    build = Links()
    turn, at = rotation((1.0, 0.0, 0.0), 1.0), np.array([1.0, 0.0, 0.0])
    stem = build.chain(0, 1, turn, at)
    tips = [build.chain(stem, 1, turn, k * at) for k in (1.0, 2.0, 3.0)]
    problem = Problem(build.robot("fork"), surfaces([f"link{tip}" for tip in tips]))
    found = cost_model.rjka(problem)
    assert found[stages.INERTIAS] == cost_model.efpa(problem)[stages.INERTIAS]
    assert found[stages.DIAGONAL] == (117 + 55) + 3 * (293 + 55) + 3 * 274
    assert found[stages.CROSS] == 3 * (504 + 2 * (192 + 60))


def test_rows_of_sfa_for_the_pseudo_inverse_are_those_of_the_definition() -> None:
    problem = asimo.Humanoid(arm=2, leg=1, fingers=()).problem("hf", "general")
    both = Problem(problem.robot, problem.contacts, problem.axes, ("G", "MinvJT"))
    x = {"q": np.random.default_rng(0).uniform(-1.0, 1.0, problem.robot.nq).tolist()}
    tree = tree_of(problem)
    rows = efpa._sfa_with_response(tree, contact_rows(problem, tree, x), x)
    expected = evaluate(both, algorithms.get("efpa"), x)
    m = problem.contacts.rows
    np.testing.assert_allclose(rows[:m], expected["G"], rtol=1e-9, atol=1e-12)
    # The tree has the base's twist, and the signs of joints, in axes of its own.
    joints = np.abs(np.transpose(rows[m:])[6:]), np.abs(expected["MinvJT"][6:])
    np.testing.assert_allclose(*joints, rtol=1e-9, atol=1e-12)
