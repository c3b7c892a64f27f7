"""The example of CONTRIBUTING.md is an algorithm."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from small import problem

from delassus_ros import DelassusSolver
from delassus_ros.algorithms import registry
from delassus_ros.testing import CHECKS

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"


@pytest.fixture
def name(monkeypatch) -> str:
    """Register what the page shows, as a reader would."""
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    registry.names()
    monkeypatch.setattr(registry, "_registry", dict(registry._registry))
    exec(example, {"__name__": "my_package.my_algorithm"})
    return "my_algorithm"


def test_the_example_computes_the_matrix(name) -> None:
    this = problem(axes="world")
    q = [*np.linspace(-1.0, 1.0, this.robot.nq)]
    orientation = np.array([0.5, 0.5, -0.5, 0.5])
    found, expected = (
        DelassusSolver(this, each).solve(q, base_orientation=orientation).matrix
        for each in (name, "dense")
    )
    assert np.linalg.norm(found - expected) < 1e-13 * np.linalg.norm(expected)


@pytest.mark.slow
def test_the_example_passes_the_conformance_suite(name) -> None:
    for check in CHECKS:
        check(name)
