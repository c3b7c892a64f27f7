"""What an estimate of eigenvalues promises, against LAPACK on sequences made to break it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import robots
import small
from flat_foot import flat_foot
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from delassus_ros import Contact, DelassusSolver, Problem, Robot, Transform
from delassus_ros.conditioning.monitor import (
    Conditioning,
    ConditionMonitor,
    ConditionSettings,
    Damping,
)
from delassus_ros.conditioning.structural_rank import generic_matrices, row_scales
from delassus_ros.model import WORLD, Body, Frame, Inertia, Joint, JointKind

STEPS = (1e-4, 1e-3, 3e-3, 0.01, 0.02, 0.05, 0.1, 0.3, 3.0)
WITHIN = 1.03 * (1 + 1e-6)
"""What is proven, with some room for rounding."""


def judge(monitor: ConditionMonitor, G: np.ndarray, scales: np.ndarray) -> bool:
    """Examine a matrix; return whether it was estimated, which has to be within the bounds."""
    seen = monitor.examine(G)
    eigenvalues = np.linalg.eigvalsh(G * np.outer(scales, scales))
    smallest = eigenvalues[eigenvalues.size - seen.structural_rank]
    condition = eigenvalues[-1] / smallest if smallest > 0 else np.inf
    if not seen.exact:
        assert 1 / WITHIN <= seen.largest / eigenvalues[-1] <= 1 + 1e-9
        assert 1 / WITHIN <= seen.smallest / smallest <= WITHIN
        assert WITHIN**-2 <= seen.condition / condition <= WITHIN
    if seen.conditioning is Conditioning.OK:
        assert condition < WITHIN**2 * monitor.settings.weak
    return not seen.exact


def random_walk(solver, seed: int, step: float, count: int) -> Iterator[np.ndarray]:
    """Matrices of a robot whose joints take random steps [rad]."""
    rng = np.random.default_rng(seed)
    q = rng.uniform(-1.5, 1.5, solver.problem.robot.nq)
    bound = solver.bind()
    for _ in range(count):
        q += step * rng.normal(size=q.size)
        bound.inputs["q"][...] = q
        yield bound.solve().matrix


def quadruped() -> Problem:
    robot = Robot.from_urdf(robots.quadruped())
    return Problem(robot, [Contact(foot, f"{foot}_FOOT") for foot in ("LF", "RF", "LH", "RH")])


def redundant() -> Problem:
    return Problem(small.walker(), [*flat_foot(4), Contact("other", "foot0", "surface")])


def humanoid() -> Problem:
    robot = Robot.from_urdf(robots.talos())
    return Problem(robot, flat_foot(4, "left_sole_link") + flat_foot(4, "right_sole_link"))


@pytest.mark.parametrize("make", [quadruped, redundant, humanoid])
@pytest.mark.parametrize("refresh", [True, False])
def test_random_walks(make, refresh) -> None:
    solver = DelassusSolver(make())
    scales = row_scales(solver.problem.contacts, 0.1)
    generic = generic_matrices(solver)
    used = {}
    for step in STEPS:
        monitor = ConditionMonitor(solver.problem, generic)
        used[step] = 0
        for seed in range(6):
            for G in random_walk(solver, seed, step, 60):
                used[step] += judge(monitor, G, scales)
                if refresh:
                    monitor.refresh()
    assert used[1e-4] > 270


def two_arms() -> Problem:
    """A light arm and a heavy one on a fixed torso, three joints each, a point on each hand."""
    joints, bodies, frames = [], [], []
    for name, y, mass, length in (("small", 0.3, 0.5, 0.2), ("big", -0.3, 20.0, 0.6)):
        first = len(joints)
        for k, (axis, x) in enumerate((((0, 0, 1), 0), ((0, 1, 0), 0), ((0, 1, 0), length))):
            place = Transform(translation=np.array([x, 0.0 if k else y, 0.0]))
            joints.append(
                Joint(f"{name}{k}", JointKind.REVOLUTE, first + k - 1 if k else WORLD, place,
                      np.array(axis, dtype=float))
            )  # fmt: skip
            turn = mass * np.diag([0.002, length**2 / 12, length**2 / 12])
            tube = Inertia.from_com(mass, (length / 2, 0, 0), turn)
            hub = Inertia.from_com(0.1 * mass, (0, 0, 0), 0.002 * mass * np.eye(3))
            bodies.append(Body(f"{name}{k}", tube if k else hub))
        frames.append(Frame(name, first + 2, Transform(translation=np.array([length, 0, 0]))))
    robot = Robot("two_arms", joints, bodies, frames)
    return Problem(robot, [Contact("small", "small"), Contact("big", "big")], axes="world")


@pytest.mark.parametrize("mode", Damping)
def test_a_stretched_arm_is_seen_beside_another(mode) -> None:
    """The heavy arm swings through where it is straight, seen seldom; the other is still."""
    solver = DelassusSolver(two_arms())
    settings = ConditionSettings(damping=mode)
    monitor = ConditionMonitor(solver.problem, generic_matrices(solver), settings)
    rng = np.random.default_rng(0)
    ones, singular = np.ones(6), 0
    for rate in (200, 30, 20, 10):
        for _ in range(5):
            still = [*rng.uniform(-1, 1, 2), rng.choice([0.03, 0.05, 0.1])]
            monitor.activate(("small", "big"))
            phase, frequency = rng.uniform(0, 6.28, 3), 2 * np.pi * rng.uniform(0.3, 1.0, 3)
            swing = np.array([1.5, 1.2, rng.choice([0.01, 0.05])])
            for k in range(min(4 * rate, 120)):
                q = np.r_[still, swing * np.sin(frequency * k / rate + phase)]
                G = solver.solve(q).matrix
                judge(monitor, G, ones)
                seen = monitor.examine(G)
                eigenvalues = np.linalg.eigvalsh(G)
                if eigenvalues[0] < 1e-6 * eigenvalues[-1]:
                    singular += 1
                    assert seen.conditioning is not Conditioning.OK
                    assert (seen.damping > 0) == (mode is not Damping.NONE)
                monitor.refresh()
    assert singular > 10


def monitor_of(rank: int, m: int, settings: ConditionSettings | None = None) -> ConditionMonitor:
    """For m rows with this structural rank."""
    contacts = [Contact(f"c{i}", "foot0", np.eye(6)[2:3]) for i in range(m)]
    A = np.random.default_rng(0).normal(size=(m, rank))
    problem = Problem(small.walker(legs=1), contacts)
    return ConditionMonitor(problem, (A @ A.T)[np.newaxis], settings)


@pytest.mark.parametrize("coupling", [0.3, 0.45, 0.49, 0.4999, 0.5])
def test_three_rows_may_be_singular_together_though_no_two_are(coupling) -> None:
    monitor = monitor_of(6, 6)
    D = np.diag([1.0, 0.9, 0.004, 0.01, 0.01, 0.01])
    T = D.copy()
    block = T[3:, 3:]
    block[...] = 0.01 * ((1 + coupling) * np.eye(3) - coupling)
    monitor.examine(D)
    judge(monitor, T, np.ones(6))
    monitor.activate(monitor._active)
    for _ in range(3):
        monitor.examine(D)
        monitor.refresh()
    judge(monitor, T, np.ones(6))


def test_neighbours_of_the_weakest_row_amplify_its_shift() -> None:
    monitor = monitor_of(5, 5)
    D = np.diag([0.001, 0.01, 0.01, 0.01, 1.0])
    T = D.copy()
    T[1:4, 1:4] = 0.01 * (1.35 * np.eye(3) - 0.35)
    T[0, 1:4] = T[1:4, 0] = 2.8e-4
    monitor.examine(D)
    judge(monitor, T, np.ones(5))


@pytest.mark.parametrize("hidden", [0.05, 0.3])
def test_what_is_no_zero_by_structure_after_all(hidden) -> None:
    monitor = monitor_of(3, 5)
    monitor.examine(REDUNDANT)
    T = REDUNDANT.copy()
    T[:2, :2] = hidden * np.eye(2)
    judge(monitor, T, np.ones(5))


@examples(deadline=None, max_examples=300)
@given(
    seed=st.integers(0, 2**32 - 1),
    m=st.integers(2, 14),
    zeros=st.integers(0, 6),
    decades=st.floats(0.0, 8.0),
    levels=st.integers(1, 5),
    size=st.floats(-4.0, 0.2),
    kind=st.sampled_from(
        ["beside the weakest", "all alike", "random", "one row", "few", "graded"]
    ),
)
def test_adversarial_matrices(seed, m, zeros, decades, levels, size, kind) -> None:
    """A diagonal, whose eigenvectors are known, and then whatever beside it.

    What lies below the structural rank is no zero here, and must not be taken for one either.
    """
    rng = np.random.default_rng(seed)
    zeros = min(zeros, m - 1)
    diagonal = 10.0 ** -rng.choice(rng.uniform(0, decades, levels), m)
    diagonal[:zeros] = 0.0
    E = rng.normal(size=(m, m))
    if kind == "beside the weakest":
        # Hidden from the weakest row, weak ones are together weaker still.
        alike = zeros + 1 + np.arange(m - zeros - 1)
        diagonal[zeros], diagonal[alike] = 0.003, 0.01
        diagonal[-1] = 1.0
        E = np.zeros((m, m))
        E[np.ix_(alike[:-1], alike[:-1])] = -1.0 / max(alike.size - 1.5, 1.0)
    elif kind == "all alike":
        E = -np.ones((m, m)) / m
    elif kind == "one row":
        E[1:] = 0.0
    elif kind == "few":
        E[rng.uniform(size=(m, m)) < 0.7] = 0.0
    scale = np.sqrt(np.maximum(diagonal, 1e-3 * diagonal[diagonal > 0].min()))
    if kind != "graded":
        E *= np.outer(scale, scale)
    E = 10.0**size * np.minimum(diagonal.max(), 1.0) * np.triu(E, 1)
    D, order = np.diag(diagonal), rng.permutation(m)
    monitor = monitor_of(m - zeros, m)
    monitor.examine(D)
    assert monitor.examine(D).structural_rank == m - zeros
    for amount in (1.0, -1.0, 0.5):
        T = D + amount * (E + E.T)
        judge(monitor, T, np.ones(m))
        monitor.activate(monitor._active)
        monitor.examine(D[np.ix_(order, order)])
        judge(monitor, T[np.ix_(order, order)], np.ones(m))


@pytest.mark.parametrize("size", [1e-200, 1e-160, 1e160])
def test_squares_that_vanish_prove_nothing(size) -> None:
    monitor = monitor_of(3, 3)
    monitor.examine(size * np.eye(3))
    T = size * (1.5 * np.eye(3) - 0.5)
    assert monitor.examine(T).conditioning is Conditioning.SINGULAR


REDUNDANT = np.diag([0.0, 0.0, 0.1, 0.2, 1.0])
WORSE = np.diag([0.0, 1e-7, 0.1, 0.2, 1.0])


def test_a_rank_above_the_structural_one_raises_it() -> None:
    monitor = monitor_of(3, 5)
    seen = monitor.examine(REDUNDANT)
    assert (seen.rank, seen.structural_rank) == (3, 3)
    assert seen.conditioning is Conditioning.OK
    seen = monitor.examine(WORSE, exact=True)
    assert (seen.rank, seen.structural_rank) == (4, 4)
    assert seen.condition == pytest.approx(1e7)
    assert seen.conditioning is Conditioning.SINGULAR
    # For good, also where others were active, or other settings are in force, in the meantime.
    monitor.activate(("c0",))
    monitor.settings = ConditionSettings(weak=1e3)
    monitor.activate(tuple(f"c{i}" for i in range(5)))
    seen = monitor.examine(REDUNDANT)
    assert (seen.rank, seen.structural_rank, seen.condition) == (3, 4, np.inf)
    assert monitor.examine(np.eye(5)).structural_rank == 5


@pytest.mark.parametrize("refresh", [True, False])
@pytest.mark.parametrize("damping", Damping)
def test_estimates_do_not_hide_a_rank_for_long(refresh, damping) -> None:
    """They show no eigenvalue that is zero by structure, but eigenvectors are renewed."""
    monitor = monitor_of(3, 5, ConditionSettings(refresh_every=4, damping=damping))
    for _ in range(3):
        monitor.examine(REDUNDANT)
    seen = []
    for _ in range(7):
        result = monitor.examine(WORSE)
        seen.append(result.conditioning)
        assert result.rank <= result.structural_rank
        if refresh:
            monitor.refresh()
            assert result.rank <= result.structural_rank
    assert set(seen[4:]) == {Conditioning.SINGULAR}
