"""Judging matrices tick by tick, with hysteresis; damping that says so."""

from __future__ import annotations

import numpy as np
import pytest
import robots
import small
from hypothesis import given
from hypothesis import strategies as st
from small import flat_foot

from delassus import Contact, DelassusSolver, Problem, Robot, Transform
from delassus.conditioning.monitor import (
    Conditioning,
    ConditionMonitor,
    ConditionSettings,
    Damping,
    condition_of,
    scaled_eigenvalues,
)
from delassus.contacts import row_scales
from delassus.errors import InputError
from delassus.model import WORLD, Body, Frame, Inertia, Joint, JointKind
from delassus.solver.structural_rank import generic_matrices


@pytest.fixture(name="solver", scope="module")
def make_solver() -> DelassusSolver:
    robot = Robot.from_urdf(robots.quadruped())
    return DelassusSolver(Problem(robot, [Contact(foot, f"{foot}_FOOT") for foot in robots.LEGS]))


@pytest.fixture(name="monitor")
def make_monitor(solver) -> ConditionMonitor:
    return ConditionMonitor(solver.problem, generic_matrices(solver))


def of_spectrum(eigenvalues, seed: int = 0) -> np.ndarray:
    """A symmetric matrix with these eigenvalues."""
    eigenvalues = np.asarray(eigenvalues, dtype=float)
    n = eigenvalues.size
    V = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0]
    G = (V * eigenvalues) @ V.T
    return (G + G.T) / 2


def of_condition(condition: float, m: int = 12) -> np.ndarray:
    return of_spectrum(np.geomspace(1.0 / condition, 1.0, m))


def motion(solver, steps: int, seed: int = 3, step: float = 1e-3, amplitude: float = 0.5):
    """Matrices of a robot whose joints swing at 0.5 to 2 Hz, one every `step` seconds."""
    rng = np.random.default_rng(seed)
    nq = solver.problem.robot.nq
    start, phase = rng.uniform(-0.8, 0.8, nq), rng.uniform(0, 6, nq)
    omega = 2 * np.pi * rng.uniform(0.5, 2.0, nq)
    bound = solver.bind()
    for i in range(steps):
        bound.inputs["q"][...] = start + amplitude * np.sin(omega * i * step + phase)
        yield bound.solve().matrix


def test_first_matrix_is_examined_exactly(solver, monitor) -> None:
    G = next(motion(solver, 1))
    seen = monitor.examine(G)
    eigenvalues = np.linalg.eigvalsh(G)
    assert (seen.rank, seen.structural_rank) == (12, 12)
    assert seen.smallest == pytest.approx(eigenvalues[0], rel=1e-9)
    assert seen.largest == pytest.approx(eigenvalues[-1], rel=1e-12)
    assert seen.condition == pytest.approx(np.linalg.cond(G), rel=1e-9)
    assert seen.conditioning is Conditioning.OK
    assert seen.matrix is G
    assert (seen.damping_mode, seen.damping) == (Damping.NONE, 0.0)


def test_condition_numbers_of_many_matrices_are_those_of_the_monitor(monitor) -> None:
    """Infinite from 1e10 on, where the rank is lower."""
    matrices = np.array([of_condition(c) for c in (1.0, 1e3, 0.9e10, 1.1e10, 1e13)])
    found = condition_of(scaled_eigenvalues(matrices, np.ones(12)))
    expected = [monitor.examine(G).condition for G in matrices]
    assert np.isinf(found).tolist() == [False, False, False, True, True]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_surfaces_are_judged_with_their_length() -> None:
    solver = DelassusSolver(small.problem())
    settings = ConditionSettings(characteristic_length=0.3)
    monitor = ConditionMonitor(solver.problem, generic_matrices(solver), settings)
    monitor.activate(("c0", "c2"))
    G = solver.solve(np.array([0.3, -0.2, 0.9]), active=("c0", "c2")).matrix
    assert monitor.examine(G).condition == pytest.approx(np.linalg.cond(G), rel=1e-9)
    monitor.activate(("c1",))
    G = solver.solve(np.array([0.3, -0.2, 0.9]), active=("c1",)).matrix
    S = row_scales(solver.problem.contacts, 0.3)[3:9]
    seen = monitor.examine(G)
    assert seen.structural_rank == 6
    assert seen.largest == pytest.approx(np.linalg.eigvalsh(G * np.outer(S, S))[-1], rel=1e-9)
    before = seen.condition
    monitor.settings = ConditionSettings(characteristic_length=3.0)
    assert monitor.examine(G).condition != pytest.approx(before, rel=0.1)


def test_jump_of_posture_is_noticed(solver, monitor) -> None:
    for seed in range(20):
        G = next(motion(solver, 1, seed=seed))
        seen = monitor.examine(G)
        assert seen.smallest == pytest.approx(np.linalg.eigvalsh(G)[0], rel=1e-9)


@given(
    seed=st.integers(0, 2**32 - 1),
    m=st.integers(1, 12),
    rank=st.integers(1, 12),
    decades=st.floats(0.0, 7.0),
    groups=st.integers(1, 12),
)
def test_any_spectrum(seed, m, rank, decades, groups) -> None:
    """Equal eigenvalues and those that are zero by structure included."""
    rng = np.random.default_rng(seed)
    rank = min(rank, m)
    levels = 10.0 ** -np.sort(rng.uniform(0, decades, min(groups, rank)))
    V = np.linalg.qr(rng.normal(size=(m, m)))[0][:, :rank]
    A = V * np.sqrt(np.resize(levels, rank))
    seen = monitor_of(rank, m, V @ V.T).examine(A @ A.T)
    assert seen.rank == seen.structural_rank == rank
    assert seen.largest == pytest.approx(levels[0], rel=1e-9)
    assert seen.smallest == pytest.approx(levels[-1], rel=1e-6)


def monitor_of(rank: int, m: int, generic: np.ndarray | None = None) -> ConditionMonitor:
    """For m rows with this structural rank."""
    contacts = [Contact(f"c{i}", "foot0", np.eye(6)[2:3]) for i in range(m)]
    if generic is None:
        A = np.random.default_rng(0).normal(size=(m, rank))
        generic = A @ A.T
    problem = Problem(small.walker(legs=1), contacts)
    return ConditionMonitor(problem, generic[np.newaxis])


def test_redundant_points_are_not_singular() -> None:
    solver = DelassusSolver(Problem(small.walker(), flat_foot(4)))
    monitor = ConditionMonitor(solver.problem, generic_matrices(solver))
    seen = monitor.examine(solver.solve(np.array([0.3, -0.2, 0.9])).matrix)
    assert (seen.rank, seen.structural_rank) == (6, 6)
    assert seen.conditioning is Conditioning.OK
    assert seen.condition < 1e4


def test_posture_that_loses_rank_is_singular() -> None:
    """A massless_problem's arm reaches nowhere when it is pulled in."""
    problem = small.massless_problem()
    solver = DelassusSolver(Problem(problem.robot, [Contact("tip", "tip", np.eye(6)[:2])]))
    monitor = ConditionMonitor(solver.problem, generic_matrices(solver))
    assert monitor.examine(solver.solve([0.3, 0.5]).matrix).conditioning is Conditioning.OK
    G = of_spectrum([0.0, 1.0])
    seen = monitor.examine(G)
    assert seen.conditioning is Conditioning.SINGULAR
    assert (seen.rank, seen.structural_rank) == (1, 2)
    assert seen.condition == np.inf
    seen = monitor.examine(np.zeros((2, 2)))
    assert (seen.conditioning, seen.rank) == (Conditioning.SINGULAR, 0)


def test_thresholds_have_hysteresis(monitor) -> None:
    ok, weak, singular = Conditioning.OK, Conditioning.WEAK, Conditioning.SINGULAR
    monitor.settings = ConditionSettings(weak=1e3, singular=1e6, hysteresis=2.0)
    sequence = [
        (900, ok), (1100, weak), (900, weak), (510, weak), (490, ok), (900, ok),
        (9e5, weak), (1.1e6, singular), (9e5, singular), (5.1e5, singular), (4.9e5, weak),
        (2e6, singular), (510, weak), (2e6, singular), (400, ok),
    ]  # fmt: skip
    for condition, expected in sequence:
        seen = monitor.examine(of_condition(condition))
        assert seen.condition == pytest.approx(condition, rel=1e-6)
        assert seen.conditioning is expected, condition


def test_judgement_starts_anew_with_other_contacts(monitor) -> None:
    monitor.settings = ConditionSettings(weak=1e3)
    assert monitor.examine(of_condition(1100)).conditioning is Conditioning.WEAK
    monitor.activate(("LF",))
    assert monitor.examine(of_condition(900, m=3)).conditioning is Conditioning.OK


def test_uniform_damping_is_on_the_whole_diagonal(solver, monitor) -> None:
    monitor.settings = ConditionSettings(damping=Damping.UNIFORM, damping_ratio=0.01)
    for G in motion(solver, 5):
        before = G.copy()
        seen = monitor.examine(G)
        assert seen.damping == pytest.approx(0.01 * seen.largest)
        assert np.array_equal(seen.matrix, before + seen.damping * np.eye(12))
        assert np.array_equal(G, before)
        assert seen.damping_mode is Damping.UNIFORM
        # The judgement is about G before damping.
        assert seen.condition == pytest.approx(np.linalg.cond(before), rel=0.05)


def test_selective_damping_raises_weak_directions_alone(monitor) -> None:
    monitor.settings = ConditionSettings(damping=Damping.SELECTIVE, damping_ratio=1e-3)
    spectrum = [1e-9, 1e-5, 5e-4, *np.geomspace(2e-3, 1, 9)]
    G = of_spectrum(spectrum)
    seen = monitor.examine(G)
    assert seen.damping == pytest.approx(1e-3, rel=1e-5)
    eigenvalues, V = np.linalg.eigh(G)
    damped = (V * np.maximum(eigenvalues, 1e-3)) @ V.T
    assert np.allclose(seen.matrix, damped, rtol=0, atol=1e-14)
    assert np.array_equal(seen.matrix, seen.matrix.T)
    assert np.linalg.cond(seen.matrix) == pytest.approx(1e3, rel=1e-9)


def test_selective_damping_leaves_a_good_matrix_alone(solver, monitor) -> None:
    monitor.settings = ConditionSettings(damping=Damping.SELECTIVE, damping_ratio=1e-5)
    for G in motion(solver, 5):
        seen = monitor.examine(G)
        assert seen.matrix is G
        assert (seen.damping_mode, seen.damping) == (Damping.SELECTIVE, 0.0)


def test_selective_damping_makes_redundant_surfaces_invertible() -> None:
    contacts = [*flat_foot(4), Contact("same", "foot1", "surface")]
    solver = DelassusSolver(Problem(small.walker(), contacts))
    settings = ConditionSettings(damping=Damping.SELECTIVE, damping_ratio=1e-4)
    monitor = ConditionMonitor(solver.problem, generic_matrices(solver), settings)
    G = solver.solve(np.array([0.3, -0.2, 0.9])).matrix
    S = row_scales(solver.problem.contacts, settings.characteristic_length)
    seen = monitor.examine(G)
    damped = np.linalg.eigvalsh(seen.matrix * np.outer(S, S))
    undamped = np.linalg.eigvalsh(G * np.outer(S, S))
    assert damped == pytest.approx(np.maximum(undamped, 1e-4 * undamped[-1]), rel=1e-8)
    assert seen.conditioning is Conditioning.OK


def test_damping_is_continuous_where_a_direction_becomes_weak(monitor) -> None:
    monitor.settings = ConditionSettings(damping=Damping.SELECTIVE, damping_ratio=1e-3)
    above, below = (
        monitor.examine(of_spectrum([value, *[1.0] * 11])).matrix.copy()
        for value in (1.000001e-3, 0.999999e-3)
    )
    assert np.abs(above - below).max() < 1e-8


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("after", [0, 3])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_matrix_without_numbers_is_unknown(solver, monitor, bad, after) -> None:
    for G in motion(solver, after):
        monitor.examine(G)
    broken = next(motion(solver, 1)).copy()
    broken[3, 5] = broken[5, 3] = bad
    seen = monitor.examine(broken)
    assert seen.conditioning is Conditioning.UNKNOWN
    assert (seen.rank, seen.condition) == (-1, -1.0)
    assert np.isnan(seen.smallest) and np.isnan(seen.largest)
    assert monitor.examine(next(motion(solver, 1))).conditioning is Conditioning.OK


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
    singular = 0
    for rate in (200, 30, 20, 10):
        for _ in range(5):
            still = [*rng.uniform(-1, 1, 2), rng.choice([0.03, 0.05, 0.1])]
            monitor.activate(("small", "big"))
            phase, frequency = rng.uniform(0, 6.28, 3), 2 * np.pi * rng.uniform(0.3, 1.0, 3)
            swing = np.array([1.5, 1.2, rng.choice([0.01, 0.05])])
            for k in range(min(4 * rate, 120)):
                q = np.r_[still, swing * np.sin(frequency * k / rate + phase)]
                G = solver.solve(q).matrix
                seen = monitor.examine(G)
                eigenvalues = np.linalg.eigvalsh(G)
                if eigenvalues[0] < 1e-6 * eigenvalues[-1]:
                    singular += 1
                    assert seen.conditioning is not Conditioning.OK
                    assert (seen.damping > 0) == (mode is not Damping.NONE)
    assert singular > 10


@pytest.mark.parametrize("size", [1e-200, 1e-160, 1e160])
def test_a_singular_matrix_of_any_size(size) -> None:
    monitor = monitor_of(3, 3)
    T = size * (1.5 * np.eye(3) - 0.5)
    assert monitor.examine(T).conditioning is Conditioning.SINGULAR


REDUNDANT = np.diag([0.0, 0.0, 0.1, 0.2, 1.0])
WORSE = np.diag([0.0, 1e-7, 0.1, 0.2, 1.0])


def test_a_rank_above_the_structural_one_raises_it() -> None:
    monitor = monitor_of(3, 5)
    seen = monitor.examine(REDUNDANT)
    assert (seen.rank, seen.structural_rank) == (3, 3)
    assert seen.conditioning is Conditioning.OK
    seen = monitor.examine(WORSE)
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


def test_lists_are_matrices_too(monitor) -> None:
    G = of_condition(20.0)
    assert monitor.examine(G.tolist()).condition == pytest.approx(20.0)


@pytest.mark.parametrize("mode", Damping)
def test_matrices_of_extreme_size_are_judged(monitor, mode) -> None:
    monitor.settings = ConditionSettings(damping=mode)
    with np.errstate(over="ignore", invalid="ignore"):
        for size in (1e-200, 1e200):
            for _ in range(3):
                assert monitor.examine(size * np.eye(12)).condition == pytest.approx(1.0)


class Table(np.ndarray):
    """A subclass of the usual array."""


@pytest.mark.parametrize("after", [0, 3])
@pytest.mark.parametrize("mode", Damping)
def test_matrices_of_other_kinds_are_judged_or_refused(solver, mode, after) -> None:
    G = next(motion(solver, 1)).copy()
    whole = (1e4 * G).astype(int)
    good = [
        whole, whole.astype(object), G.astype(np.float32), np.asfortranarray(G), G > -1,
        G.astype(">f8"), G.view(Table), np.ma.masked_greater(G, np.inf), G[::-1, ::-1],
    ]  # fmt: skip
    holes = np.ma.masked_greater(G, G.mean())
    bad = [G + 0j, G + 1j, G.astype(str), np.where(G > 0, G, None), holes, G.astype("M8[s]")]
    for kind in (*good, *bad):
        settings = ConditionSettings(damping=mode)
        monitor = ConditionMonitor(solver.problem, generic_matrices(solver), settings)
        for _ in range(after):
            monitor.examine(G)
        if any(kind is each for each in bad):
            with pytest.raises(InputError, match="(?s)^matrix is .*; expected numbers"):
                monitor.examine(kind)
            assert monitor.examine(G).conditioning is Conditioning.OK
        else:
            expected = np.linalg.eigvalsh(np.asarray(kind, dtype=float))
            assert monitor.examine(kind).largest == pytest.approx(expected[-1])
            assert type(monitor.examine(kind).matrix) is np.ndarray


def test_no_contact_is_nothing_to_judge(monitor) -> None:
    monitor.activate(())
    seen = monitor.examine(np.empty((0, 0)))
    assert seen.conditioning is Conditioning.UNKNOWN
    assert (seen.rank, seen.structural_rank, seen.condition) == (0, 0, -1.0)


def test_wrong_size_and_unknown_contact(monitor) -> None:
    with pytest.raises(InputError, match=r"shape \(3, 3\), expected \(12, 12\)"):
        monitor.examine(np.eye(3))
    with pytest.raises(InputError, match="matrix is 'G'; expected numbers"):
        monitor.examine("G")
    with pytest.raises(InputError, match="unknown contact 'LX'"):
        monitor.activate(("LX",))
    assert monitor.examine(np.eye(12)).structural_rank == 12


def test_values_are_those_of_the_message() -> None:
    import delassus_msgs.msg as messages
    for kind, prefix in ((Conditioning, "CONDITIONING"), (Damping, "DAMPING")):
        for member in kind:
            assert getattr(messages.DelassusMatrix, f"{prefix}_{member.name}") == member
