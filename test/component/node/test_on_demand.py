"""Questions about other configurations and algorithms."""

from __future__ import annotations

import numpy as np
import pytest
import small
from linkages import REFERENCE, assembled, four_bar, geared_chain

from delassus import Contact, DelassusSolver, Problem, Robot, algorithms
from delassus.closure import Closure
from delassus.conditioning.monitor import Conditioning, ConditionSettings, Damping
from delassus.errors import InputError
from delassus.model import Frame, Transform
from delassus.solver.structural_rank import generic_matrices
from delassus_ros.inputs.closed_joints import BoundClosures
from delassus_ros.inputs.findings import Reason
from delassus_ros.node.on_demand import Motion, OnDemand
from delassus_ros.node.services import list_algorithms

Q = np.array([0.3, -0.8, 1.2])
NAMES = ["hip2", "extra", "hip0", "hip1"]
POSITIONS = [1.2, 9.0, 0.3, -0.8]


@pytest.fixture(name="solver", scope="module")
def make_solver() -> DelassusSolver:
    return DelassusSolver(small.problem())


@pytest.fixture(name="on_demand")
def make_on_demand(solver) -> OnDemand:
    settings = ConditionSettings(damping=Damping.UNIFORM, hysteresis=5.0)
    return OnDemand(solver, generic_matrices(solver), settings)


def test_matrix_of_other_contacts_and_positions(solver, on_demand) -> None:
    for active in (("c0", "c2"), ("c1",), ("c0", "c1", "c2")):
        answer = on_demand.compute(NAMES, POSITIONS, active)
        solution, seen = answer.solution, answer.examination
        assert answer.findings.reasons is Reason.NONE
        expected = solver.solve(Q, active).matrix
        assert np.array_equal(solution.matrix, expected)
        assert seen.matrix is solution.matrix
        assert (seen.damping_mode, seen.damping) == (Damping.NONE, 0.0)
        assert seen.rank == seen.structural_rank == np.linalg.matrix_rank(expected)


def test_no_contact(on_demand) -> None:
    answer = on_demand.compute(NAMES, POSITIONS, ())
    assert answer.solution.matrix.shape == (0, 0)
    assert answer.examination.conditioning is Conditioning.UNKNOWN


def test_the_stream_is_not_disturbed(solver, on_demand) -> None:
    stream = solver.bind()
    stream.inputs["q"][...] = 0.5
    stream.activate(("c1",))
    before = stream.solve().matrix.copy()
    on_demand.compute(NAMES, POSITIONS, ("c0", "c2"))
    assert stream.inputs["q"].tolist() == [0.5] * 3
    assert stream.solution.contacts == ("c1",)
    assert np.array_equal(stream.solution.matrix, before)


@pytest.mark.parametrize(
    ("names", "positions", "active", "words"),
    [
        (["hip0", "hip1"], [0, 0], ["c0"], "lacks joint 'hip2'; it has 'hip0', 'hip1'"),
        ([], [], ["c0"], "lacks joints 'hip0', 'hip1', 'hip2'; it has none"),
        (["hip0", "hip1", "hip2"], [0, 0], ["c0"], "3 names but 2 positions"),
        (["hip0", "hip1", "hip2"], [0, np.nan, 0], ["c0"], "'hip1' is nan"),
        (["hip0", "hip1", "hip2", "hip0"], [0, 0, 0, 0], ["c0"], "'hip0' more than once"),
        (NAMES, POSITIONS, ["c9"], "unknown contact 'c9'"),
        (NAMES, POSITIONS, ["c0", "c0"], "given twice"),
    ],
)
def test_bad_questions(on_demand, names, positions, active, words) -> None:
    with pytest.raises(InputError, match=words):
        on_demand.compute(names, positions, active)


def test_orientation_is_passed_on() -> None:
    solver = DelassusSolver(small.problem(axes="world"))
    on_demand = OnDemand(solver, generic_matrices(solver), ConditionSettings())
    turned = (0.5, 0.5, 0.5, 0.5)
    motion = Motion((), (), (0.0,) * 6, turned)
    solution = on_demand.compute(NAMES, POSITIONS, ["c0"], motion).solution
    assert np.array_equal(solution.matrix, solver.solve(Q, ["c0"], turned).matrix)
    with pytest.raises(InputError, match="base_orientation"):
        on_demand.compute(NAMES, POSITIONS, ["c0"])


def test_algorithms_with_reasons(monkeypatch) -> None:
    monkeypatch.setattr(algorithms, "unavailable", lambda: {"absent": "needs a package"})
    problem = small.problem()
    found = {each.name: each.reason for each in list_algorithms(problem)}
    assert list(found) == sorted(found)
    assert found["absent"] == "needs a package"
    assert found["dense"] == ""
    known = {*algorithms.names(), *algorithms.aliases()}
    assert set(found) == known | {"absent"}
    for name in known:
        assert found[name] == (algorithms.get(name).supports(problem) or "")
    assert {each.reason for each in list_algorithms(None)} == {"", "needs a package"}


def with_tip(robot: Robot) -> Robot:
    """Return the robot with a frame on its last link."""
    last = len(robot.joints) - 2
    tip = Frame("tip", last, Transform.from_xyz_rpy((0.3, 0.0, 0.0), (0.0, 0.0, 0.0)))
    return Robot(robot.name, robot.joints, robot.bodies, [tip], couplings=robot.couplings)


def four_bar_on_demand(algorithm: str = "pv_osimr") -> OnDemand:
    problem = Problem(four_bar(), [Contact("tip", "tip", np.eye(2, 6))])
    solver, closure = DelassusSolver(problem, algorithm), Closure(problem, REFERENCE)
    generic = generic_matrices(solver)
    return OnDemand(solver, generic, ConditionSettings(), BoundClosures(closure))


def test_other_measured_joints_give_the_same_matrix() -> None:
    on_demand = four_bar_on_demand()
    crank = 0.9
    expected = on_demand.compute(["crank"], [crank], ["tip"]).solution.matrix
    for _ in range(2):
        found = on_demand.compute(["rocker"], [assembled(crank)[1]], ["tip"]).solution.matrix
        assert np.linalg.norm(found - expected) < 1e-7 * np.linalg.norm(expected)


def test_closures_are_bound_once_per_set_of_joints(monkeypatch) -> None:
    """A failure is not kept: the next call tries again."""
    closures = BoundClosures(Closure(four_bar(), REFERENCE))
    with monkeypatch.context() as patch:
        patch.setattr(Closure, "bind", lambda closure, joints: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            closures.of(("rocker",))
    bound = closures.of(("rocker",))
    assert bound.names == ("rocker",)
    assert closures.of(("rocker",)) is bound
    with pytest.raises(InputError, match="unknown joint 'anchor'"):
        closures.of(("anchor",))


def test_the_joints_of_a_loop_follow_from_the_given_ones() -> None:
    on_demand = four_bar_on_demand()
    exact = DelassusSolver(on_demand._solver.problem, "ltl")
    for crank in (0.9, 0.3, 2.0):
        coupler, rocker = assembled(crank)
        expected = exact.solve([crank, coupler, rocker]).matrix
        for names, positions in (
            (["crank"], [crank]),
            (["rocker", "other", "crank", "coupler"], [rocker, 7.0, crank, coupler]),
        ):
            answer = on_demand.compute(names, positions, ["tip"])
            assert answer.findings.reasons is Reason.NONE
            error = np.linalg.norm(answer.solution.matrix - expected)
            assert error < 1e-7 * np.linalg.norm(expected)


def test_positions_that_do_not_close_are_no_answer() -> None:
    on_demand = four_bar_on_demand()
    crank = 0.9
    coupler, rocker = assembled(crank)
    # Elsewhere than the crank puts it: the matrix is that of the crank, with care.
    answer = on_demand.compute(["crank", "rocker"], [crank, rocker + 0.4], ["tip"])
    assert answer.findings.reasons is Reason.LOOP_INCONSISTENT
    good = on_demand.compute(["crank"], [crank], ["tip"])
    assert np.array_equal(answer.solution.matrix, good.solution.matrix)
    mirrored = assembled(crank, -1.0)
    for names, positions, words in (
        (["crank", "coupler", "rocker"], [crank, *mirrored], "another branch than the reference"),
        (["other"], [1.0], "loop 'knee': none of its joints is measured"),
        (["crank"], [np.nan], "joint 'crank' is nan"),
        (["crank", "rocker"], [crank], "2 names but 1 positions"),
    ):
        with pytest.raises(InputError, match=words):
            on_demand.compute(names, positions, ["tip"])
    # A question leaves nothing behind.
    again = on_demand.compute(["crank"], [crank], ["tip"])
    assert np.array_equal(again.solution.matrix, good.solution.matrix)


def test_an_approximation_is_said() -> None:
    robot = geared_chain(2, floating=False)
    problem = Problem(with_tip(robot), [Contact("tip", "tip", np.eye(2, 6))])
    closure = Closure(problem)
    for algorithm, reasons in (
        ("pv_osimr", Reason.NONE), ("reflected_inertia", Reason.APPROXIMATE_ALGORITHM)
    ):  # fmt: skip
        solver = DelassusSolver(problem, algorithm)
        generic = generic_matrices(solver)
        on_demand = OnDemand(solver, generic, ConditionSettings(), BoundClosures(closure))
        answer = on_demand.compute(["link0", "link1"], [0.3, -0.8], ["tip"])
        assert answer.findings.reasons is reasons
