"""The arm example: force and path on two surfaces, through a singularity of the wrist."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from hanging import HANG_S
from operational_space import simulate
from operational_space.law import Rows, Task, Tool, torques, touchdown_speed
from operational_space.wiping import CENTRE, Kinematics, Surface
from seeds import but_slow

from delassus import DelassusSolver
from delassus.robots.built_in.arm import TOOL, arm_urdf

GRAVITY = [0.0, 0.0, -9.81]


@pytest.fixture(name="runs", scope="module")
def make_runs() -> dict[str, simulate.Record]:
    return {name: simulate.run(surface) for name, surface in simulate.SURFACES.items()}


@pytest.mark.parametrize("surface", simulate.SURFACES)
@pytest.mark.parametrize("phase", ["circle", "tilt"])
def test_force_and_path(runs: dict[str, simulate.Record], surface: str, phase: str) -> None:
    record = runs[surface]
    on = record.during(phase)
    felt, off = np.array(record.felt)[on], np.array(record.off)[on]
    assert on.sum() > 1000
    assert np.sqrt(np.mean((felt - 20.0) ** 2)) < 0.05 * 20.0
    assert off.max() < 2e-3
    assert record.phase[-1] == "done"
    predicted, simulated = np.array(record.predicted)[on], np.array(record.simulated)[on]
    size = (simulated**2).sum()
    assert ((predicted - simulated) ** 2).sum() < 0.1**2 * size
    # Friction is a part of it: without it the error is larger.
    upright = predicted - 0.0
    upright[:, :2] = 0.0
    assert phase == "tilt" or ((upright - simulated) ** 2).sum() > 0.15**2 * size
    assert sum("predicted by G with friction" in line for line in simulate.report(record)) == 1


@pytest.mark.parametrize("surface", simulate.SURFACES)
def test_the_wrist_goes_through_its_singularity_with_bounded_torques(
    runs: dict[str, simulate.Record], surface: str
) -> None:
    record = runs[surface]
    tilted = record.during("tilt")
    wrist = np.array(record.wrist)[tilted]
    assert wrist.min() < -0.5 and wrist.max() > 0.5
    assert np.abs(record.torques)[tilted].max() < 40.0


@pytest.mark.parametrize("surface", but_slow([*simulate.SURFACES], [*simulate.SURFACES][1]))
def test_without_damping_the_singularity_takes_large_torques(surface: str) -> None:
    free = simulate.run(simulate.SURFACES[surface], damping=0.0)
    # Beyond what any drive of the arm can give.
    assert np.abs(free.torques).max() > 120.0


def test_a_lower_impulse_is_a_slower_touchdown(runs: dict[str, simulate.Record]) -> None:
    def touchdown(record: simulate.Record) -> float:
        first = int(np.flatnonzero(record.during("settle"))[0])
        return max(record.speed[first - 100 : first])

    gentle = simulate.run(simulate.SURFACES["flat"], 6.0, impulse=0.05)
    assert touchdown(runs["flat"]) == pytest.approx(3.0 * touchdown(gentle), rel=0.1)


def instant(seed: int) -> tuple[Rows, Tool, dict[str, np.ndarray], DelassusSolver]:
    random = np.random.default_rng(seed)
    solver = DelassusSolver(simulate.problem(arm_urdf()))
    q = np.array([0.0, 0.55, 1.75, 0.0, 0.85, 0.0]) + random.uniform(-0.3, 0.3, 6)
    v = random.uniform(-1, 1, 6)
    s = solver.solve(q, rates=v, gravity=GRAVITY)
    rows = Rows(s.matrix, s.inertia(), s.output("J"), s.jbar(), s.output("JdotV"), s.output("h"))
    return rows, Kinematics(arm_urdf(), TOOL).tool(q, v), {"q": q, "v": v}, solver


@pytest.mark.parametrize("seed", range(5))
def test_the_tool_accelerates_as_wanted(seed: int) -> None:
    """By Pinocchio, under the torques of the law: place and pointing, along the world's axes."""
    rows, tool, state, _ = instant(seed)
    random = np.random.default_rng(seed + 100)
    wanted = random.uniform(-2, 2, 6)
    command = torques(rows, tool, Task(wanted, np.zeros(6), random.uniform(-1, 1, 6)))
    model = pin.buildModelFromXML(arm_urdf())
    model.armature = np.full(6, simulate.ARMATURE)
    data, frame = model.createData(), model.getFrameId(TOOL)
    a = pin.aba(model, data, state["q"], state["v"], command)
    pin.forwardKinematics(model, data, state["q"], state["v"], a)
    axes = pin.LOCAL_WORLD_ALIGNED
    found = pin.getFrameClassicalAcceleration(model, data, frame, axes).vector
    np.testing.assert_allclose(found[:3], wanted[:3], atol=1e-9)
    # But for spinning about the way that it points.
    across = (tool.rotation.T @ (found[3:] - wanted[3:]))[:2]
    np.testing.assert_allclose(across, 0.0, atol=1e-9)


def test_the_law_in_cpp_moves_the_arm_alike(tmp_path: Path) -> None:
    """Built as its comment says; the same torques in each tick of a run, and nothing allocated."""
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    root = Path(__file__).resolve().parents[3]
    comment = (root / "examples" / "cpp" / "arm.cpp").read_text().partition("#include")[0]
    lines = [line[5:] for line in comment.splitlines() if line[:5] == "//   "]
    python = shlex.quote(sys.executable)
    lines[0] = lines[0].replace("python", python, 1)
    lines[1] = lines[1].replace("delassus", f"{python} -m delassus_ros.verbs.main", 1)
    for folder in ("delassus", "delassus_ros", "examples"):
        (tmp_path / folder).symlink_to(root / folder)
    path = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        ["sh", "-ec", "\n".join(lines)],
        cwd=tmp_path, capture_output=True, text=True, timeout=HANG_S,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    undefined = subprocess.run(
        ["nm", "-u", tmp_path / "arm"], capture_output=True, text=True, check=True
    ).stdout
    assert "read" in undefined
    assert not re.search(r"\b(_Zn[wa]|malloc|calloc|realloc)", undefined)
    program, errors = simulate.Program(str(tmp_path / "arm")), []

    def both(state: np.ndarray, rows: Rows, tool: Tool, task: Task) -> np.ndarray:
        found, expected = program(state, rows, tool, task), torques(rows, tool, task)
        errors.append(np.linalg.norm(found - expected) / np.linalg.norm(expected))
        return found

    try:
        record = simulate.run(simulate.SURFACES["flat"], law=both)
    finally:
        program.close()
    assert record.phase[-1] == "done" and len(errors) > 5000
    assert max(errors) < 1e-9


def test_what_a_touchdown_costs() -> None:
    """The impulse of a plastic impact at that speed, by the library's impact map."""
    rows, tool, state, solver = instant(2)
    normal = np.array([0.0, 0.0, 1.0])
    speed = touchdown_speed(rows, tool, normal, 0.15)
    n = tool.rotation.T @ normal
    assert (0.15 * (n @ rows.G[:3, :3] @ n)) == pytest.approx(speed)
    assert touchdown_speed(rows, tool, normal, 0.15, 1.0) == pytest.approx(0.5 * speed)
    s = solver.solve(state["q"], rates=state["v"], gravity=GRAVITY)
    assert s.effective_mass(TOOL, [*n, 0.0, 0.0]) * speed == pytest.approx(0.15)


@pytest.mark.parametrize("surface", simulate.SURFACES.values())
def test_places_above_a_surface(surface: Surface) -> None:
    top, normal = surface.at(float(CENTRE[0]), 0.3)
    np.testing.assert_allclose(top, [CENTRE[0], 0.3, 0.22])
    np.testing.assert_allclose(normal, [0.0, 0.0, 1.0])
    place, normal = surface.at(float(CENTRE[0]) + 0.05, 0.0)
    other, _ = surface.at(float(CENTRE[0]) + 0.05 + 1e-6, 0.0)
    assert abs(normal @ (other - place)) < 1e-11
    assert np.linalg.norm(normal) == pytest.approx(1.0)
