"""Nori's last problem, torques from load cells at both ends of a chain; and its page."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks.papers import nori
from delassus.dynamics import GRAVITY, Dynamics
from delassus.errors import ProblemError
from delassus.measured import (
    ExternalWrench,
    ForceTorqueSensor,
    JointAcceleration,
    JointTorque,
    Measurement,
    SparseDynamics,
)

PAGE = Path(__file__).resolve().parents[3] / "docs" / "papers" / "nori.md"
CELLS = nori.CASES[2]


@pytest.mark.parametrize("links", [8, 16, 30])
def test_torques_follow_from_load_cells_with_four_accelerations_unknown(links: int) -> None:
    robot = nori.chain(links, 1.0)
    rng = np.random.default_rng(links)
    q, rates, ydd, wrench = (rng.uniform(-1, 1, size) for size in (links, links, links, 6))
    torques = Dynamics(robot, wrenches=["tip"]).inverse(q, rates, ydd, wrenches=wrench)
    first, tip = ForceTorqueSensor("first"), ExternalWrench("tip")
    moved = {JointAcceleration(f"joint{k}"): ydd[k] for k in range(links)}
    felt = SparseDynamics(robot, [*map(Measurement, moved), Measurement(tip)], [first])
    foot = felt.solve(q, rates, {**moved, tip: wrench}).values[first]
    values = {**moved, ForceTorqueSensor("first", (0, 1, 2, 3, 4)): foot[:5]}
    values[ExternalWrench("tip", (0, 1, 2, 3, 4))] = wrench[:5]
    known = CELLS.known(links)
    system = SparseDynamics(
        robot, [Measurement(each) for each in known], [*CELLS.wanted(links), tip]
    )
    assert system.kind == "square"
    found = system.solve(q, rates, {each: values[each] for each in known})
    mine = np.array([found.values[JointTorque(f"joint{k}")][0] for k in range(links)])
    assert np.linalg.norm(mine - torques) < 1e-8 * np.linalg.norm(torques)
    assert found.values[tip][5] == pytest.approx(wrench[5], abs=1e-7 * np.linalg.norm(torques))


def test_the_problem_as_it_is_written_has_four_equations_too_many() -> None:
    robot = nori.chain(8, 1.0)
    exact = [Measurement(each) for each in (*nori._accelerations(range(8)), *CELLS.known(8)[-2:])]
    with pytest.raises(ProblemError, match="exact measurements are redundant by 4 numbers"):
        SparseDynamics(robot, exact, CELLS.wanted(8))


@pytest.mark.parametrize("links", [2, 5, 12, 30])
def test_inverse_and_forward_dynamics_of_chains_agree_with_pinocchio(links: int) -> None:
    from oracles.pinocchio_models import PinocchioDynamics

    robot = nori.chain(links)
    rng = np.random.default_rng(links)
    q, rates, ydd = rng.uniform(-3, 3, links), rng.normal(size=links), rng.normal(size=links)
    peer = PinocchioDynamics(robot, q, GRAVITY)
    torques = peer.inverse(rates, ydd)
    accelerations = [JointAcceleration(f"joint{k}") for k in range(links)]
    efforts = [JointTorque(f"joint{k}") for k in range(links)]
    scale = np.linalg.norm(torques)
    inverse = SparseDynamics(robot, map(Measurement, accelerations), efforts)
    found = inverse.solve(q, rates, dict(zip(accelerations, ydd, strict=True)))
    off = [found.values[each][0] for each in efforts] - torques
    assert np.linalg.norm(off) < 1e-10 * scale
    forward = SparseDynamics(robot, map(Measurement, efforts), accelerations)
    moved = forward.solve(q, rates, dict(zip(efforts, torques, strict=True))).values
    # M of a tapered chain is ill-conditioned: what counts is that its torques are right.
    again = np.array([moved[each][0] for each in accelerations])
    assert np.linalg.norm(peer.inverse(rates, again) - torques) < 1e-10 * scale


@pytest.mark.parametrize("number", [0, 1, 2])
def test_the_page_has_what_is_counted(number: int) -> None:
    case = nori.CASES[number]
    title = f"\n## {case.figure}: {case.title}\n"
    section = PAGE.read_text("utf-8").partition(title)[2].partition("\n## ")[0]
    names = re.findall(r"^\| N \| (.*) \|$", section, re.MULTILINE)[0].split(" | ")
    for links in case.sizes[2:4]:
        row = re.findall(rf"^\| {links} \| (.*) \|$", section, re.MULTILINE)[0].split(" | ")
        shown = dict(zip(names, map(int, row), strict=True))
        counted = nori.operations(case, links)
        assert counted.keys() <= shown.keys()
        for name, count in counted.items():
            # What other libraries choose may change with their versions.
            tolerance = 0.0 if not name.startswith("LU") else 0.2
            assert count == pytest.approx(shown[name], rel=tolerance, abs=0), name
