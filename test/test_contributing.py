"""The example of CONTRIBUTING.md is an algorithm."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from small import problem

from delassus_ros import DelassusSolver
from delassus_ros.algorithms import registry

PAGE = Path(__file__).parents[1] / "CONTRIBUTING.md"


def test_the_example_computes_the_matrix(monkeypatch) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    registry.names()
    monkeypatch.setattr(registry, "_registry", dict(registry._registry))
    exec(example, {"__name__": "my_package.my_algorithm"})
    this = problem(axes="world")
    q = [*np.linspace(-1.0, 1.0, this.robot.nq)]
    orientation = np.array([0.5, 0.5, -0.5, 0.5])
    found, expected = (
        DelassusSolver(this, name).solve(q, base_orientation=orientation).matrix
        for name in ("my_algorithm", "dense")
    )
    assert np.linalg.norm(found - expected) < 1e-13 * np.linalg.norm(expected)
