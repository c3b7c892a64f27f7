"""Questions about other configurations and algorithms."""

from __future__ import annotations

import numpy as np
import pytest
import small

from delassus_ros import DelassusSolver, algorithms
from delassus_ros.conditioning import Conditioning, ConditionSettings, Damping
from delassus_ros.errors import InputError
from delassus_ros.node.on_demand import OnDemand, list_algorithms
from delassus_ros.structural_rank import generic_matrices

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
        solution, seen = on_demand.compute(NAMES, POSITIONS, active)
        expected = solver.solve(Q, active).matrix
        assert np.array_equal(solution.matrix, expected)
        assert seen.exact and seen.matrix is solution.matrix
        assert (seen.damping_mode, seen.damping) == (Damping.NONE, 0.0)
        assert seen.rank == seen.structural_rank == np.linalg.matrix_rank(expected)


def test_no_contact(on_demand) -> None:
    solution, seen = on_demand.compute(NAMES, POSITIONS, ())
    assert solution.matrix.shape == (0, 0)
    assert seen.conditioning is Conditioning.UNKNOWN


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
    turned = [0.5, 0.5, 0.5, 0.5]
    solution, _ = on_demand.compute(NAMES, POSITIONS, ["c0"], turned)
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
    for name in algorithms.names():
        assert found[name] == (algorithms.get(name).supports(problem) or "")
    assert {each.reason for each in list_algorithms(None)} == {"", "needs a package"}
