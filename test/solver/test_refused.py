"""Inputs that no matrix must come of: open couplings, far positions, what overflows, no floats.

Each by one configuration, by a bound solver and by a batch, of compiled code and of a back end.
"""

from __future__ import annotations

from fractions import Fraction
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import robots
import small

from delassus_ros import Closure, Contact, DelassusSolver, Problem, Robot, Status
from delassus_ros.arguments import as_numbers
from delassus_ros.compiler.ir.input_rules import InputRules
from delassus_ros.contacts import ContactSet
from delassus_ros.doors.batch_function import BatchFunction
from delassus_ros.dynamics import Dynamics, LoopRates
from delassus_ros.errors import InputError, NumericalError
from delassus_ros.measured import JointAcceleration, JointTorque, Measurement, SparseDynamics
from delassus_ros.model import JointKind
from delassus_ros.model.couplings import coupling_rows, open_coupling
from delassus_ros.samples import random_inputs
from delassus_ros.testing.random_trees import ALL, random_problem

LEG = Path(__file__).resolve().parents[2] / "docs" / "geared_leg.urdf"
MOTION = ("h", "a0", "qdd0", "JdotV", "MinvJT", "J", "M")
ALGORITHMS = ("ltl", "pv_osimr", "pinocchio")


def leg() -> Robot:
    """Return a leg of four joints, each with a gear to its motor."""
    return Robot.from_urdf(LEG, base="fixed")


def quadruped_problem(outputs=MOTION) -> Problem:
    robot = Robot.from_urdf(robots.quadruped())
    return Problem(robot, [Contact(foot, foot) for foot in robots.FEET], outputs=outputs)


def ways(problem: Problem, algorithm: str, **inputs):
    """Yield a status and a matrix of these inputs, each way that there is."""
    solver = DelassusSolver(problem, algorithm)
    bound = solver.bind()
    for name, values in inputs.items():
        bound.inputs[name] = values
    s = bound.solve()
    yield s.status, s.matrix.copy()
    if set(inputs) == {"q"}:
        s = bound.solve(np.array(inputs["q"]))
        yield s.status, s.matrix.copy()
    if algorithm != "pinocchio":
        good = random_inputs(problem, 0)
        for count in (1, 21):  # One vector, and some with another configuration in each lane.
            for k in {0, count - 1}:
                rows = {name: [values.ravel()] * count for name, values in good.items()}
                for name, values in inputs.items():
                    rows[name][k] = np.ravel(values)
                stacked = {name: np.array(values) for name, values in rows.items()}
                batch = solver.solve_batch(stacked.pop("q"), **stacked)
                others = np.delete(batch.status, k)
                assert not others.any()
                yield Status(batch.status[k]), batch.matrix[k]
                none = solver.solve_batch(np.array(rows["q"]), active=(), **stacked)
                if batch.status[k] in (Status.NOT_CLOSED, Status.TOO_FAR):
                    assert none.status[k] == batch.status[k]


@pytest.mark.parametrize("algorithm", ["ltl", "efpa", "pv_osimr", "auto"])
def test_a_follower_that_does_not_follow(algorithm) -> None:
    robot = leg()
    problem = Problem(robot, [Contact("sole", "sole", "surface")])
    row = coupling_rows(robot)[0]
    names = [coupling.name for coupling in robot.couplings]
    joint, motor = (robot.joint_names[entry] for entry in row.entries)
    q = robot.q({joint: 0.4})
    solver = DelassusSolver(problem, algorithm)
    right = solver.solve(q).matrix
    left = q.copy()
    left[robot.joint_names.index(motor)] = 0.0
    # As measured in single precision it will do.
    assert solver.solve(q.astype(np.float32)).status is Status.OK
    assert np.linalg.norm(right) > 0.0
    words = rf"the robot: coupling '{names[0]}' is off by .* at .*'{joint}': 0.4.*; Robot.q\(posit"
    with pytest.raises(InputError, match=words):
        solver.solve(left)
    found = list(ways(problem, algorithm, q=left))
    assert len(found) > 4
    for status, matrix in found:
        assert status is Status.NOT_CLOSED and np.isnan(matrix).all()


def test_each_coupling_is_looked_at_and_its_rounding_allowed() -> None:
    robot = leg()
    solver = DelassusSolver(Problem(robot, [Contact("sole", "sole")]), "pv_osimr")
    bound = solver.bind()
    rng = np.random.default_rng(0)
    for row in coupling_rows(robot):
        for _ in range(5):
            q = random_inputs(solver.problem, int(rng.integers(1000)))["q"]
            assert bound.solve(q).status is Status.OK and not open_coupling(robot, q.tolist())
            entry = row.entries[int(rng.integers(len(row.entries)))]
            for share, status in ((0.5, Status.OK), (1.5, Status.NOT_CLOSED)):
                moved = q.copy()
                factor = row.factors[row.entries.index(entry)]
                moved[entry] += share * row.allowed(q.tolist()) / factor
                assert bound.solve(moved).status is status
                assert bool(open_coupling(robot, moved.tolist())) == (status is not Status.OK)
    # Turned far, where rounding in single precision is more than a millionth of a radian.
    far = robot.q({robot.joint_names[coupling_rows(robot)[0].entries[0]]: 3e3})
    assert bound.solve(far.astype(np.float32).astype(float)).status is Status.OK
    assert open_coupling(robot, [np.nan] * robot.nq)


@pytest.mark.parametrize("algorithm", ["pv_osimr", "pinocchio"])
@pytest.mark.parametrize("port", ["base_orientation", "q", "contact_orientations"])
def test_quaternions_of_another_norm_have_a_status(port: str, algorithm: str) -> None:
    turning = port == "contact_orientations"
    problem = random_problem(16, moving=True) if turning else random_problem(2, ALL, "world")
    bound = DelassusSolver(problem, algorithm).bind()
    rules = InputRules.of(problem.inputs, problem.robot)
    batch = BatchFunction(problem).forward
    good = random_inputs(problem, 0)
    joints = zip(problem.robot.joints, problem.robot.q_offsets, strict=True)
    first = next((at + 3 for joint, at in joints if joint.kind is JointKind.FLOATING), 0)
    for factor, status in (
        (0.0, Status.NOT_UNIT), (1 - 1.1e-3, Status.NOT_UNIT), (1 - 0.9e-3, Status.OK),
        (1 + 0.9e-3, Status.OK), (1 + 1.1e-3, Status.NOT_UNIT), (2.0, Status.NOT_UNIT),
        (np.nan, Status.NOT_FINITE),
    ):  # fmt: skip
        for name, values in good.items():
            bound.inputs[name] = values
        turn = bound.inputs[port].reshape(-1)[first if port == "q" else 0 :][:4]
        turn *= factor
        block = np.concatenate([values.ravel() for values in bound.inputs.values()])
        s = bound.solve()
        assert s.status is status and bool(np.isnan(s.matrix).all()) == (status is not Status.OK)
        assert rules.statuses(block[np.newaxis]).tolist() == [status]
        # Machine code of several configurations at once, of which one is wrong.
        rows = np.tile(np.concatenate([values.ravel() for values in good.values()]), (9, 1))
        rows[4] = block
        found = np.empty((9, batch.size_out))
        batch(rows, found)
        assert np.isnan(found).any(axis=1).tolist() == [k == 4 and bool(status) for k in range(9)]


def test_rules_of_arrays_are_those_of_machine_code() -> None:
    robot = leg()
    problem = Problem(robot, [Contact("sole", "sole")])
    rules, solver = InputRules.of(problem.inputs, robot), DelassusSolver(problem)
    rng = np.random.default_rng(1)
    Q = np.array([random_inputs(problem, k)["q"] for k in range(400)])
    for q in Q[:300]:
        k = int(rng.integers(robot.nq))
        q[k] = rng.choice([q[k] * (1 + 10.0 ** -rng.integers(3, 9)), np.nan, np.inf, -3e6, 1e300])
    statuses = rules.statuses(Q)
    assert set(statuses.tolist()) >= {0, Status.NOT_CLOSED, Status.TOO_FAR, Status.NOT_FINITE}
    assert np.array_equal(solver.solve_batch(Q).status, statuses)
    bound = solver.bind()
    assert [int(bound.solve(q).status) for q in Q] == statuses.tolist()


def test_tables_of_calls_look_at_the_same(monkeypatch) -> None:
    """Large systems are compiled in another way, which small ones are made to take here."""
    monkeypatch.setattr("delassus_ros.scalars.routines._LARGE", 0)
    robot = leg()
    problem = Problem(robot, [Contact("sole", "sole")], outputs=["h"])
    solver = DelassusSolver(problem, "pv_osimr")
    bound, good = solver.bind(), random_inputs(problem, 0)
    for moved, value, status in (
        (0, 0.0, Status.OK), (0, 0.2, Status.NOT_CLOSED), (0, 3e6, Status.TOO_FAR),
        (0, np.inf, Status.NOT_FINITE), (0, 0.0, Status.OK),
    ):  # fmt: skip
        inputs = {name: values.copy() for name, values in good.items()}
        inputs["q"][moved] += value
        for name, values in inputs.items():
            bound.inputs[name] = values
        assert bound.solve().status is status
        batch = solver.solve_batch([inputs.pop("q")] * 9, **inputs)
        assert set(batch.status.tolist()) == {int(status)}
    bound.inputs["rates"] = 1e200 * np.ones(4)
    assert bound.solve().status is Status.NOT_FINITE


def test_an_open_robot_has_no_couplings_to_look_at() -> None:
    problem = quadruped_problem(())
    assert InputRules.of(problem.inputs, problem.robot).couplings == ()


def test_loops_are_looked_at_where_that_is_asked_for() -> None:
    from linkages import four_bar

    robot = four_bar()
    solver = DelassusSolver(Problem(robot, [Contact("c", next(iter(robot.frames)))], axes="world"))
    closed = Closure(robot).reference
    assert solver.solve(closed, check=True).status is Status.OK
    with pytest.raises(InputError, match="q does not close the robot: loop"):
        solver.solve(closed + 0.01, check=True)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("far", [1e15, -1.0000001e6, 1e300])
def test_positions_so_far_that_angles_are_rounded(algorithm, far) -> None:
    if algorithm == "pinocchio":
        import_module("pinocchio")
    problem = Problem(small.walker(), small.contacts())
    q = np.array([0.3, -0.2, far])
    with pytest.raises(InputError, match=r"q\[2\] \(joint 'hip2'\) is .*, beyond 1e\+06 rad or m"):
        DelassusSolver(problem, algorithm).solve(q)
    found = list(ways(problem, algorithm, q=q))
    assert {status for status, _ in found} == {Status.TOO_FAR}
    assert all(np.isnan(matrix).all() for _, matrix in found)


def test_positions_near_the_bound_are_right() -> None:
    """All angles of a chain are added: G is Pinocchio's, to the rounding of 10⁶ rad."""
    import pinocchio as pin
    text = robots.panda()
    robot = Robot.from_urdf(text, "fixed")
    rng = np.random.default_rng(3)
    q = rng.uniform(-1.0, 1.0, robot.nq) + 999_999.0 * rng.choice([-1.0, 1.0], robot.nq)
    for name in ("panda_finger_joint1", "panda_finger_joint2"):
        q[robot.joint_names.index(name)] = 0.01
    G = DelassusSolver(Problem(robot, [Contact("hand", "panda_hand", "surface")])).solve(q).matrix
    model = pin.buildModelFromXML(text)
    data, own = model.createData(), pin.neutral(model)
    for name, value in zip(robot.joint_names, q, strict=True):
        own[model.joints[model.getJointId(name)].idx_q] = value
    pin.computeAllTerms(model, data, own, np.zeros(model.nv))
    frame = model.getFrameId("panda_hand")
    J = pin.computeFrameJacobian(model, data, own, frame, pin.LOCAL)
    M = np.triu(data.M) + np.triu(data.M, 1).T
    expected = J @ np.linalg.solve(M, J.T)
    assert np.linalg.norm(G - expected) < 1e-8 * np.linalg.norm(expected)


@pytest.mark.parametrize("algorithm", ["ltl", "pv_osimr"])
@pytest.mark.parametrize("name", ["rates", "torques", "gravity"])
def test_what_overflows_is_never_ok(algorithm, name) -> None:
    problem = quadruped_problem()
    inputs = random_inputs(problem, 0)
    large = {**inputs, name: 1e308 * np.sign(inputs[name])}
    if name == "rates":
        large[name] = 1e200 * np.ones(len(inputs[name]))
    with pytest.raises(NumericalError):
        DelassusSolver(problem, algorithm).solve(**large)
    for status, matrix in ways(problem, algorithm, **large):
        assert status is Status.NOT_FINITE and np.isnan(matrix).all()


@pytest.mark.parametrize("outputs", [("h",), ("a0",), ("qdd0",), ("JdotV",), ("h", "a0")])
def test_each_output_is_looked_at(outputs) -> None:
    problem = quadruped_problem(outputs)
    solver, inputs = DelassusSolver(problem), random_inputs(problem, 0)
    bound = solver.bind()
    for name, values in inputs.items():
        bound.inputs[name] = values
    assert bound.solve().status is Status.OK
    bound.inputs["rates"] = 1e200 * np.ones(18)
    assert bound.solve().status is Status.NOT_FINITE
    for name in outputs:
        assert np.isnan(bound.solution.output(name)).all()


def test_contact_forces_that_overflow() -> None:
    problem = quadruped_problem()
    solver, inputs = DelassusSolver(problem), random_inputs(problem, 0)
    bound = solver.bind()
    for name, values in inputs.items():
        bound.inputs[name] = values
    bound.solve()
    s = solver.solve(**inputs)
    assert bound.constrained_dynamics(1.0).status is Status.OK
    found = bound.constrained_dynamics(1.7e308)
    assert found.status is Status.NOT_FINITE
    assert np.isnan(found.forces).all() and np.isnan(found.accelerations).all()
    assert bound.constrained_dynamics(1.0).status is Status.OK
    large = np.full(12, 1e308)
    for call, what in (
        (lambda: s.forces(1.7e308), "contact forces"),
        (lambda: s.accelerations(large), "the accelerations"),
        (lambda: s.impact(np.full(18, 1e308)), "the velocities of the contacts"),
    ):
        with pytest.raises(NumericalError, match=f"{what} would not be finite"):
            call()


def test_redundant_contact_forces_that_overflow() -> None:
    from small import flat_foot

    robot = Robot.from_urdf(robots.quadruped())
    problem = Problem(robot, ContactSet(flat_foot(4, "LF_FOOT")), outputs=MOTION)
    solver, inputs = DelassusSolver(problem), random_inputs(problem, 0)
    bound = solver.bind()
    for name, values in inputs.items():
        bound.inputs[name] = values
    bound.solve()
    assert bound.constrained_dynamics(1e250).status is not Status.OK
    with pytest.raises(NumericalError):
        solver.solve(**inputs).forces(1e250)


def test_dynamics_look_at_the_same() -> None:
    robot = leg()
    dynamics = Dynamics(robot)
    q, rest = robot.neutral(), np.zeros(dynamics.size)
    assert np.isfinite(dynamics.inverse(q, rest, rest)).all()
    away = q.copy()
    away[0] += 0.3
    far = robot.q({name: 2e6 for name in dynamics.joints})
    for call in (dynamics.inverse, dynamics.forward):
        with pytest.raises(NumericalError, match="not closed: coupling '.*' is off by"):
            call(away, rest, rest)
        with pytest.raises(NumericalError, match="too far"):
            call(far, rest, rest)
        with pytest.raises(NumericalError, match="not finite"):
            call(q, rest + 1e200, rest)
    with pytest.raises(NumericalError, match="not closed"):
        LoopRates(robot).jacobian(away)
    measured = SparseDynamics(
        robot,
        [Measurement(JointAcceleration(name), 0.1) for name in dynamics.joints],
        [JointTorque(name) for name in dynamics.joints],
    )
    values = {JointAcceleration(name): 0.0 for name in dynamics.joints}
    assert measured.solve(q, rest, values).values
    for at, rates, words in ((away, rest, "not closed: coupling"), (far, rest, "too far"),
                             (q, rest + 1e200, "not finite")):  # fmt: skip
        with pytest.raises(NumericalError, match=words):
            measured.solve(at, rates, values)
    with pytest.raises(InputError, match="expected numbers"):
        measured.solve(q, rest, {**values, JointAcceleration(dynamics.joints[0]): 1j})


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.array([1 + 2j, 0, 0]), "they are complex128"),
        ([1j, 0.0, 0.0], "they are complex128"),
        (np.array([1j, 0, 0], dtype=object), "no numbers"),
        ([2**62, 0, 0], r"integers beyond 2\*\*53"),
        (np.array([-(2**63), 0, 0]), r"integers beyond 2\*\*53"),
        (np.array([2**64 - 1, 0, 0], dtype=np.uint64), r"integers beyond 2\*\*53"),
        (np.array([2**70, 0, 0], dtype=object), r"integers beyond 2\*\*53"),
    ],
)
def test_what_a_float_does_not_hold_is_refused(values, words) -> None:
    problem = Problem(small.walker(), small.contacts())
    solver = DelassusSolver(problem)
    bound = solver.bind()
    for call in (
        lambda: solver.solve(values),
        lambda: bound.solve(values),
        lambda: solver.solve_batch([values]),
        lambda: bound.inputs.__setitem__("q", values),
    ):
        with pytest.raises(InputError) as raised:
            call()
        import re

        told = f"{raised.value} {raised.value.__cause__}"
        assert re.search(words, told)


def test_what_a_float_holds_is_taken() -> None:
    assert as_numbers([2**53, -(2**53)]).tolist() == [2.0**53, -(2.0**53)]
    assert as_numbers([Fraction(1, 2), True]).tolist() == [0.5, 1.0]
