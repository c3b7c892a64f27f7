"""The benchmark of all outputs: Pinocchio's part computes what ours does."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import cases, outputs
from benchmarks.pinocchio_peer import PinocchioProblem
from delassus import DelassusSolver, Problem

pytestmark = pytest.mark.needs("pinocchio")

CASE = next(case for case in cases.CASES if case.name == "quadruped")


def test_both_compute_the_same() -> None:
    problem = CASE.load()
    theirs = PinocchioProblem(problem)
    q = cases.pool(problem, 1)
    n = theirs.model.nv
    still = np.zeros(n)
    theirs.model.gravity.linear = np.array([0.0, 0.0, -9.81])
    found = outputs.peer(theirs, still, still).outputs(theirs.configurations(q)[0])
    own = Problem(problem.robot, problem.contacts, outputs=outputs.ALL)
    s = DelassusSolver(own).solve(q[0], rates=still, torques=still, gravity=[0.0, 0.0, -9.81])
    # Contacts in the same order; joints depth first, which they are here.
    np.testing.assert_allclose(found[0], s.matrix, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found[1], s.J, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(np.ravel(found[5][:, :3]), s.a0, rtol=1e-9, atol=1e-9)
