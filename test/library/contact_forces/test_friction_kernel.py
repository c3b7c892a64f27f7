"""The benchmark of contact forces in machine code runs, and all its forces are solved."""

from __future__ import annotations

import shutil

import pytest

from delassus.contact_forces.machine_code import BUDGET

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed"),
]


@pytest.mark.parametrize("law", ["coulomb", "convex"])
@pytest.mark.parametrize("name", ["quadruped walks, m = 6 to 12", "humanoid sways on two soles"])
def test_sequences_are_solved(name: str, law: str) -> None:
    from benchmarks.friction_kernel import measured

    times = measured(name, law, 1e-6, ticks=40, repetitions=1)
    assert times.solved == 1.0 and times.steps.max() <= BUDGET
    assert len(times.kernel) == len(times.both) == 40
    assert (times.kernel > 0).all() and (times.both > 0).all()
