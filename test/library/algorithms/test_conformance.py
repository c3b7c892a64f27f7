"""Every registered algorithm, third parties' included, runs the conformance suite."""

from __future__ import annotations

from functools import lru_cache

import pytest

from delassus import DelassusSolver, Problem, algorithms
from delassus.algorithms.registry import Algorithm
from delassus.testing import CHECKS, conformance


@lru_cache(maxsize=64)
def kept(problem: Problem, name: str, algorithm: Algorithm) -> DelassusSolver:
    """Return a solver whose kernel is kept from one run to the next.

    The suite compiles anew, as it cannot know of which sources an algorithm is made; those of
    this package are part of the cache's keys.
    """
    return DelassusSolver(problem, name)


@pytest.fixture(autouse=True)
def kernels_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conformance, "_compiled", kept)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", algorithms.names())
@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_conformance(name, check, every, monkeypatch):
    """On every third problem: both kinds of axes and of joints, and moving contacts."""
    some = conformance._all_problems()[::every]
    monkeypatch.setattr(conformance, "_all_problems", lambda: some)
    check(name)
