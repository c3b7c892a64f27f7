"""docs/task_inertia.md: its examples run, and its calls give what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import robots

from delassus_ros import Contact, Problem, Robot, Status
from delassus_ros.samples import random_inputs

PAGE = Path(__file__).resolve().parents[2] / "docs" / "task_inertia.md"


def test_the_examples_run(tmp_path: Path, monkeypatch) -> None:
    first, second = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    (tmp_path / "talos.urdf").write_bytes(robots.talos().read_bytes())
    monkeypatch.chdir(tmp_path)
    outputs = ["J", "MinvJT", "h", "JdotV", "a0", "qdd0"]
    problem = Problem(Robot.from_urdf("talos.urdf"), [Contact("a", "base_link")], outputs=outputs)
    names: dict = {**random_inputs(problem, 0), "given": ("left", "right")}
    exec(first, names)
    held = names["held"]
    names["solver"] = names["DelassusSolver"](names["problem"])
    exec(second, names)
    # The bound solver has no rates, torques and gravity.
    assert names["view"].status is Status.NOT_FINITE
    assert held.inertia().shape == (6, 6) and held.given == names["given"]
    assert np.isfinite(held.a0).all()
