"""The loop Jacobian in traces: compiled, vectorised, counted; and the Newton step."""

from __future__ import annotations

import numpy as np
import pytest
from linkages import (
    COUPLER,
    assembled,
    four_bar,
    random_linkage,
    random_pose,
    tied,
)

from delassus import Contact, Problem
from delassus.algorithms import TracedAlgorithm
from delassus.compiler import kernel_for, trace
from delassus.compiler.build import batch_kernel_for
from delassus.model import (
    LoopKind,
)
from delassus.rbda.constraints import loop_jacobian, newton_step
from delassus.scalars.ports import Status


class NineOfE(TracedAlgorithm):
    """Puts the loop Jacobian of a four-bar where G is, for the compiler."""

    name = "nine_of_e"

    def supports(self, problem):
        return None

    def evaluate(self, problem, x):
        E = [row[0] for row in loop_jacobian(tied(problem.robot), x["q"])]
        return {"G": [[1.0, E[1], E[2]], [E[1], 1.0, E[0]], [E[2], E[0], 1.0]]}


@pytest.mark.parametrize("kind", [LoopKind.POINT, LoopKind.WELD])
def test_it_is_compiled_and_vectorised_like_everything_else(kind):
    independent = ("rocker",)
    problem = Problem(four_bar(kind, independent=independent), [Contact("tip", "tip")])
    weld = kind is LoopKind.WELD
    dead = np.arccos((0.35 + COUPLER) / 2 + (1.0 - 0.49) / (2 * (0.35 + COUPLER)))
    cranks = np.concatenate([np.linspace(0.1, 6.0, 20), [dead]])
    Q = np.array([[q, *assembled(q)] for q in cranks])
    Q[-1] = [dead, 0.0, assembled(dead)[1]]
    if weld:
        Q = np.column_stack([Q, Q[:, 0] + Q[:, 1] - Q[:, 2]])
    kernel = kernel_for(problem, NineOfE(), use_cache=False)
    bound = kernel.bind()
    expected = np.full((len(Q), 2), np.nan)
    for q, row in zip(Q, expected, strict=True):
        bound.inputs["q"][...] = q
        if bound.run() == Status.OK:
            row[...] = bound.outputs["G"][0, 1:]
            E = np.array(loop_jacobian(tied(problem.robot), q.tolist()))
            assert np.allclose(row, E[1:3, 0], rtol=1e-12)
    assert bound.run() == Status.SINGULAR_LOOP
    assert np.isfinite(expected[:-1]).all() and np.isnan(expected[-1]).all()
    batch = batch_kernel_for(problem, NineOfE(), use_cache=False)
    out, status = np.empty((len(Q), 9)), np.zeros(len(Q), dtype=np.int32)
    batch.run(Q, out, status, batch.unique, "rows", 2)
    assert status.tolist() == [Status.OK] * (len(Q) - 1) + [Status.SINGULAR_LOOP]
    assert np.allclose(out[:-1, 1:3], expected[:-1], rtol=1e-12)


def test_counts_with_unknown_constants():
    """A generic count keeps lengths and ratios unknown, whatever their values."""
    counts = set()
    for seed in (1, 2):
        problem = Problem(
            four_bar(mount=random_pose(np.random.default_rng(seed))), [Contact("tip", "tip")]
        )
        special, generic = (trace(problem, NineOfE(), generic=g).operations for g in (False, True))
        counts.add(str(generic))
        assert generic.sines_cosines == special.sines_cosines == 6
        assert generic.total >= special.total > 0
    assert len(counts) == 1


def test_newton_step_closes_a_loop():
    robot, cluster, closed = random_linkage(LoopKind.WELD, 23)
    q = closed + np.concatenate([np.zeros(3), np.full(len(closed) - 3, 0.02)])
    gaps = []
    for _ in range(9):
        step = newton_step(cluster, cluster.dependent, q.tolist())
        gaps.append(np.abs(step.residual).max())
        q[list(cluster.dependent)] += step.step
    assert gaps[0] > 1e-3 and gaps[-1] <= 1e-14
    at = next(k for k, gap in enumerate(gaps) if gap < 1e-4)
    assert np.log(gaps[at + 1]) <= 1.6 * np.log(gaps[at]), "faster than linear"
