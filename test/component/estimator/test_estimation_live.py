"""The estimator beside the simulator: forces of feet, while the robot is pushed, with noise."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import rclpy
from estimation.__main__ import programs_of
from estimation.watcher import EstimateWatcher
from processes import wait_until
from ros_domains import new_domain

from delassus.programs.processes import Programs
from delassus_ros.sim.demo import demo_environment

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"

COMPARED = 200


def test_forces_of_feet_are_told_beside_the_simulators(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = demo_environment({**os.environ, "ROS_DOMAIN_ID": str(new_domain())})
    root = str(EXAMPLES.parent)
    environment["PYTHONPATH"] = os.pathsep.join(
        [str(EXAMPLES), root, environment.get("PYTHONPATH", "")]
    )
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    saved = tmp_path / "compared.npz"
    with Programs(programs_of(200, ["push_every:=0.5"], []), environment) as children:
        rclpy.init(args=[])
        watcher = EstimateWatcher(
            {name: f"{name}_FOOT" for name in ("LF", "RF", "LH", "RH")}, 0.15, 0.7, saved
        )
        try:
            wait_until(
                lambda: len(watcher.compared) >= COMPARED,
                "estimates to compare",
                lambda: "a program has ended" if children.dead() else None,
                children.report,
                lambda: rclpy.spin_once(watcher, timeout_sec=0.1),
            )
            figures, faults = watcher.figures(), watcher.faults()
        finally:
            watcher.destroy_node()
            rclpy.try_shutdown()
    assert not faults
    assert "0 INVALID" in figures[-1]
    rows = np.load(saved)["rows"]
    squares = rows[:, 25:29].ravel() / 3.0
    # Chi squared of three freedoms each, in units of its mean: noise is what it is said to be.
    assert 0.6 < squares.mean() < 1.6
    off, forces = rows[:, 1:13], rows[:, 13:25]
    assert np.sqrt((off**2).mean() / (forces**2).mean()) < 0.1
