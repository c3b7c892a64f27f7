"""Judging matrices tick by tick: exact, estimated, with hysteresis; damping that says so."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import robots
import small
from flat_foot import flat_foot
from hypothesis import example, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from delassus_ros import Contact, DelassusSolver, Problem, Robot
from delassus_ros.conditioning.monitor import (
    Conditioning,
    ConditionMonitor,
    ConditionSettings,
    Damping,
)
from delassus_ros.conditioning.structural_rank import generic_matrices, row_scales
from delassus_ros.errors import InputError

FEET = ("LF", "RF", "LH", "RH")


@pytest.fixture(name="solver", scope="module")
def make_solver() -> DelassusSolver:
    robot = Robot.from_urdf(robots.quadruped())
    return DelassusSolver(Problem(robot, [Contact(foot, f"{foot}_FOOT") for foot in FEET]))


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
    assert seen.exact
    assert (seen.rank, seen.structural_rank) == (12, 12)
    assert seen.smallest == pytest.approx(eigenvalues[0], rel=1e-9)
    assert seen.largest == pytest.approx(eigenvalues[-1], rel=1e-12)
    assert seen.condition == pytest.approx(np.linalg.cond(G), rel=1e-9)
    assert seen.conditioning is Conditioning.OK
    assert seen.matrix is G
    assert (seen.damping_mode, seen.damping) == (Damping.NONE, 0.0)


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


def follow(solver, monitor, steps: int) -> tuple[list[float], int]:
    """Return the relative errors of the smallest eigenvalue and the number of exact ticks."""
    scales = row_scales(solver.problem.contacts, monitor.settings.characteristic_length)
    products = np.outer(scales, scales)
    errors, exact = [], 0
    for G in motion(solver, steps):
        seen = monitor.examine(G)
        eigenvalues = np.linalg.eigvalsh(G * products)
        at = eigenvalues.size - seen.structural_rank
        errors.append(abs(seen.smallest / eigenvalues[at] - 1))
        assert seen.largest == pytest.approx(eigenvalues[-1], rel=1e-3)
        assert seen.rank == seen.structural_rank
        exact += seen.exact
        monitor.refresh()
    return errors, exact


def test_estimate_follows_a_moving_robot(solver, monitor) -> None:
    errors, exact = follow(solver, monitor, 800)
    assert exact <= 8
    assert np.percentile(errors, 99) < 0.005
    assert max(errors) < 0.02


@pytest.mark.parametrize("kind", ["points", "surfaces"])
def test_estimate_follows_a_humanoid(kind) -> None:
    robot = Robot.from_urdf(robots.talos())
    frames = ("left_sole_link", "right_sole_link", "gripper_left_base_link",
              "gripper_right_base_link")  # fmt: skip
    contacts = [Contact(frame, frame, "surface") for frame in frames]
    if kind == "points":
        contacts = flat_foot(4, frames[0]) + flat_foot(4, frames[1])
    solver = DelassusSolver(Problem(robot, contacts))
    monitor = ConditionMonitor(solver.problem, generic_matrices(solver))
    errors, exact = follow(solver, monitor, 400)
    assert exact <= 8
    assert np.percentile(errors, 99) < 0.005
    assert max(errors) < 0.03


def test_without_refresh_the_estimate_renews_itself(solver, monitor) -> None:
    """The error stays bounded; more ticks are exact, as many as it takes."""
    errors, exact = [], 0
    for G in motion(solver, 400, step=5e-3):
        seen = monitor.examine(G)
        errors.append(abs(seen.smallest / np.linalg.eigvalsh(G)[0] - 1))
        exact += seen.exact
    assert 5 < exact < 390
    assert max(errors) < 0.031


def test_jump_of_posture_is_noticed(solver, monitor) -> None:
    for seed in range(20):
        G = next(motion(solver, 1, seed=seed))
        seen = monitor.examine(G)
        assert seen.smallest == pytest.approx(np.linalg.eigvalsh(G)[0], rel=0.1)


# Two small eigenvalues change their order on the diagonal by what the large one adds there.
@example(seed=3742, m=3, rank=3, decades=6.0, groups=3, speed=1e-3, refresh=False)
@examples(deadline=None, max_examples=100)
@given(
    seed=st.integers(0, 2**32 - 1),
    m=st.integers(1, 12),
    rank=st.integers(1, 12),
    decades=st.floats(0.0, 7.0),
    groups=st.integers(1, 12),
    speed=st.sampled_from([0.0, 1e-6, 1e-3, 1e-2, 0.1, 1.0]),
    refresh=st.booleans(),
)
def test_estimate_is_right_or_not_used(seed, m, rank, decades, groups, speed, refresh) -> None:
    """Any spectrum, equal eigenvalues and null spaces that turn included, at any speed."""
    rng = np.random.default_rng(seed)
    rank = min(rank, m)
    levels = 10.0 ** -np.sort(rng.uniform(0, decades, min(groups, rank)))
    roots = np.sqrt(np.resize(levels, rank))
    contacts = [Contact(f"c{i}", "foot0", np.eye(6)[2:3]) for i in range(m)]
    problem = Problem(small.walker(legs=1), contacts)
    V = np.linalg.qr(rng.normal(size=(m, m)))[0]
    generic = (V[:, :rank] @ V[:, :rank].T)[np.newaxis]
    monitor = ConditionMonitor(problem, generic)
    spin = rng.normal(size=(m, m))
    spin = speed * (spin - spin.T)
    turn = np.linalg.solve(np.eye(m) + spin, np.eye(m) - spin)
    for _ in range(12):
        A = V[:, :rank] * roots
        G = A @ A.T
        seen = monitor.examine(G)
        expected = np.linalg.eigvalsh(G)
        assert seen.structural_rank == rank
        assert seen.largest == pytest.approx(expected[-1], rel=0.03)
        assert seen.smallest == pytest.approx(expected[m - rank], rel=0.03, abs=1e-13)
        if refresh:
            monitor.refresh()
        V = turn @ V


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
    assert seen.exact
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
        seen = monitor.examine(of_condition(condition), exact=True)
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
    assert not monitor.refresh()
    assert monitor.examine(next(motion(solver, 1))).conditioning is Conditioning.OK


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
            monitor.refresh()
            assert monitor.examine(G).conditioning is Conditioning.OK
        else:
            expected = np.linalg.eigvalsh(np.asarray(kind, dtype=float))
            assert monitor.examine(kind, exact=True).largest == pytest.approx(expected[-1])
            assert type(monitor.examine(kind).matrix) is np.ndarray
            monitor.refresh()


def test_no_contact_is_nothing_to_judge(monitor) -> None:
    monitor.activate(())
    seen = monitor.examine(np.empty((0, 0)))
    assert seen.conditioning is Conditioning.UNKNOWN
    assert (seen.rank, seen.structural_rank, seen.condition) == (0, 0, -1.0)
    assert not monitor.refresh()


def test_wrong_size_and_unknown_contact(monitor) -> None:
    with pytest.raises(InputError, match=r"shape \(3, 3\), expected \(12, 12\)"):
        monitor.examine(np.eye(3))
    with pytest.raises(InputError, match="matrix is 'G'; expected numbers"):
        monitor.examine("G")
    with pytest.raises(InputError, match="unknown contact 'LX'"):
        monitor.activate(("LX",))
    assert monitor.examine(np.eye(12)).structural_rank == 12


def test_refresh_when_it_is_time(solver, monitor) -> None:
    assert not monitor.refresh()
    monitor.settings = ConditionSettings(refresh_every=4)
    renewed = []
    for _ in range(9):
        monitor.examine(next(motion(solver, 1)))
        renewed.append(monitor.refresh())
    assert renewed == [False, False, False, True, False, False, True, False, False]


def test_estimating_keeps_no_memory(solver, monitor) -> None:
    matrices = [G.copy() for G in motion(solver, 4, step=1e-5)]
    for G in matrices:
        monitor.examine(G)
    monitor.settings = ConditionSettings(refresh_every=1000)
    traced = []
    tracemalloc.start()
    try:
        for _ in range(5):
            for _ in range(100):
                for G in matrices:
                    monitor.examine(G)
            traced.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.reset_peak()
        monitor.examine(matrices[0])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # What is kept is kept in each round; other threads of the process may keep something once.
    assert np.diff(traced).min() < 1000
    # Less than one matrix of 12 x 12.
    assert peak - traced[-1] < 1000


def test_values_are_those_of_the_message() -> None:
    messages = pytest.importorskip(
        "delassus_msgs.msg", reason="needs the built package delassus_msgs"
    )
    for kind, prefix in ((Conditioning, "CONDITIONING"), (Damping, "DAMPING")):
        for member in kind:
            assert getattr(messages.DelassusMatrix, f"{prefix}_{member.name}") == member
