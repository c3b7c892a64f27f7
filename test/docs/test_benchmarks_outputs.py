"""The benchmark of all outputs: it runs, and Pinocchio's part computes what ours does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import cases, outputs
from benchmarks.pinocchio_model import PinocchioProblem
from benchmarks.timing import Timing
from delassus_ros import DelassusSolver, Problem

pytest.importorskip("pinocchio", reason="needs Pinocchio")
CASE = next(case for case in cases.CASES if case.name == "quadruped")


def test_the_page_has_a_row_of_each_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> None:
        raise cases.AbsentError("no compiler")

    # It takes a minute.
    monkeypatch.setattr(outputs.pinocchio_cpp, "compilation", absent)
    result = outputs.measured(CASE, 0.001)
    assert (result.kernels, result.code_size) == ({}, 0)
    assert [row.count("|") for row in rows_of(result)] == [5, 10]
    kernels = {"kernel": Timing(1e-6, 2e-6), "dense": Timing(7e-6, 9e-6)}
    kernels["sparse"] = Timing(6e-6, 8e-6)
    counts, in_c, _ = rows_of(replace(result, kernels=kernels, code_size=2048))
    assert "(1.00)" in counts
    assert in_c.endswith("| 1.00 / 2.00 | 7.00 / 9.00 | 6.00 / 8.00 | 4.0 | 2 KiB, 1 B/ns |")


def rows_of(result: outputs.Result) -> list[str]:
    text = "\n".join(outputs.page([result]))
    return [line for line in text.splitlines() if line.startswith(f"| {CASE.label} |")]


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
