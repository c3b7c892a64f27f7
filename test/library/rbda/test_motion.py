"""M, h, J̇ẏ and a⁰ against Pinocchio, the equations of Lagrange at 50 digits, and C-RNEA."""

from __future__ import annotations

import cluster_robots
import mpmath
import numpy as np
import pinocchio as pin
import pytest
import robots
from on_floats import DynamicsOnFloats, solver_on_floats
from oracles import relative
from oracles.cases import DOOR, with_outputs
from seeds import but_slow, seeds

import delassus.testing.mpmath_numbers  # noqa: F401 (makes mpmath numbers scalars)
from benchmarks import cases
from benchmarks.cluster_cases import CLUSTER_CASES
from delassus import Contact, DelassusSolver, Problem, Robot, algorithms
from delassus.algorithms import registry
from delassus.closure.samples import closed_inputs
from delassus.dynamics import Dynamics
from delassus.errors import InputError, NumericalError, ProblemError, RobotError
from delassus.model.clusters import clusters_of, velocity_offsets
from delassus.model.robot import JointKind
from delassus.model.spatial import Transform
from delassus.rbda.constraints import loop_jacobian
from delassus.samples import random_inputs
from delassus.testing import random_problem

OUTPUTS = ("J", "JdotV", "M", "MinvJT", "a0", "h")
CLOSED = but_slow(CLUSTER_CASES, "chain24", "chain15", "tello24")


def moved(problem: Problem, inputs: dict, t) -> dict:
    """Inputs a time t later, at the same rates; of a closed robot q̇ = E ẏ."""
    robot, offsets = problem.robot, velocity_offsets(problem.robot)
    q = [mpmath.mpf(float(value)) for value in inputs["q"]]
    later = list(q)
    for cluster in clusters_of(robot):
        E = loop_jacobian(cluster, q)
        if robot.joints[cluster.joints[0]].kind is JointKind.ROOT:
            continue
        for joint, row in zip(cluster.joints, E, strict=True):
            for step in range(robot.joints[joint].kind.nv):
                own = [inputs["rates"][offsets[k] + step] for k in cluster.independent]
                rate = sum((e * mpmath.mpf(float(y)) for e, y in zip(row, own, strict=True)), 0)
                later[robot.q_offsets[joint] + step] += t * rate
    found = {**inputs, "q": later}
    if "base_orientation" in inputs:
        # q ⊗ (ω t / 2, 1) with ω in the root link's axes.
        x, y, z, w = (mpmath.mpf(float(value)) for value in inputs["base_orientation"])
        a, b, c = (t * mpmath.mpf(float(value)) / 2 for value in inputs["rates"][3:6])
        found["base_orientation"] = [
            x + w * a + y * c - z * b, y + w * b + z * a - x * c, z + w * c + x * b - y * a,
            w - x * a - y * b - z * c,
        ]  # fmt: skip
    return found


def exact(problem: Problem, inputs: dict) -> dict[str, np.ndarray]:
    """The outputs at 50 digits."""
    numbers = {
        name: [value if isinstance(value, mpmath.mpf) else mpmath.mpf(float(value))
               for value in np.ravel(np.array(given, dtype=object))]
        for name, given in inputs.items()
    }  # fmt: skip
    found = registry.evaluate(problem, algorithms.get("pv_osimr"), numbers)
    return {name: np.array(rows, dtype=object) for name, rows in found.items()}


def assert_consistent(problem: Problem, inputs: dict[str, np.ndarray]) -> None:
    """Hold derivatives of J and M along the motion, at 50 digits, against what is computed."""
    solver = solver_on_floats(problem)
    solution = solver.solve(**inputs)
    with mpmath.workdps(50):
        t = mpmath.mpf(10) ** -20
        before, after = (exact(problem, moved(problem, inputs, s)) for s in (-t, t))
        rates = np.array([mpmath.mpf(float(v)) for v in inputs["rates"]], dtype=object)
        J_dot = (after["J"] - before["J"]) / (2 * t)
        M_dot = (after["M"] - before["M"]) / (2 * t)
        JdotV = (J_dot @ rates).astype(float)
        power = float(rates @ M_dot @ rates / 2)
    assert relative(solution.JdotV, JdotV) < 1e-9
    assert relative(solution.v, solution.J @ inputs["rates"]) < 1e-9
    still = solver.solve(**{**inputs, "gravity": np.zeros(3)})
    # Bias forces do no work but what the kinetic energy gains as the inertia changes.
    size = np.linalg.norm(inputs["rates"]) * np.linalg.norm(still.h)
    assert abs(inputs["rates"] @ still.h - power) <= 1e-9 * size
    assert relative(solution.M @ solution.MinvJT, solution.J.T) < 1e-9
    free = np.linalg.solve(solution.M, inputs["torques"] - solution.h)
    assert relative(solution.a0, solution.J @ free + solution.JdotV) < 1e-8


@pytest.mark.parametrize("seed", seeds(30))
def test_random_trees_at_50_digits(seed) -> None:
    problem = with_outputs(random_problem(seed, largest=8), OUTPUTS)
    assert_consistent(problem, random_inputs(problem, seed))


@pytest.mark.parametrize("seed", seeds(50))
def test_random_cluster_trees(seed) -> None:
    problem = with_outputs(cluster_robots.random_problem(seed), OUTPUTS)
    (inputs,) = closed_inputs(problem, 1, seed)
    assert_consistent(problem, inputs)
    assert_same_as_recursive(problem, inputs)


def assert_same_as_recursive(problem: Problem, inputs: dict[str, np.ndarray]) -> None:
    """Hold them against C-RNEA and C-ABA, which work on the spanning tree with its rotors."""
    solution = solver_on_floats(problem).solve(**inputs)
    dynamics = DynamicsOnFloats(problem.robot)
    q, rates, gravity = inputs["q"], inputs["rates"], inputs["gravity"]
    if "base_orientation" in inputs:
        # There it is in the axes of the root link.
        gravity = pin.Quaternion(inputs["base_orientation"]).toRotationMatrix().T @ gravity
    zero = np.zeros(dynamics.size)
    assert relative(solution.h, dynamics.inverse(q, rates, zero, gravity)) < 1e-9
    columns = [dynamics.inverse(q, zero, e, np.zeros(3)) for e in np.eye(dynamics.size)]
    assert relative(solution.M, np.transpose(columns)) < 1e-9
    free = dynamics.forward(q, rates, inputs["torques"], gravity)
    assert relative(solution.a0, solution.J @ free + solution.JdotV) < 1e-9


@pytest.mark.parametrize("case", CLOSED, ids=lambda case: case.name)
def test_closed_robots(case) -> None:
    try:
        closed = case.load()
    except cases.AbsentError as error:
        pytest.skip(str(error))
    problem = with_outputs(closed.problem, OUTPUTS)
    inputs = {**random_inputs(problem, 4), "q": closed.pool(1)[0]}
    assert_same_as_recursive(problem, inputs)


def test_material_accelerations_do_not_depend_on_the_axes() -> None:
    """In contact axes, which turn, they are a0 + ω × v; so are those of moving contacts."""
    robot = Robot.from_urdf(robots.quadruped())
    aside = Transform.from_xyz_rpy((0.1, 0, 0), (1, 2, 3))
    feet = [
        Contact("LF", "LF_FOOT"), Contact("RF", "RF_FOOT", moving="position"),
        Contact("LH", "LH_FOOT", "surface", placement=aside),
    ]  # fmt: skip
    world = Problem(robot, feet, "world", outputs=["a0"])
    contact = Problem(robot, feet, "contact", outputs=["a0"])
    inputs = random_inputs(world, 3)
    inputs["base_orientation"] = np.array([0.0, 0.0, 0.0, 1.0])
    inputs["contact_positions"] = {"RF": inputs["contact_positions"][0]}
    expected = solver_on_floats(world).solve(**inputs)
    del inputs["base_orientation"]
    found = solver_on_floats(contact).solve(**inputs)
    material = found.a0 + found.turning
    for first in (0, 3, 6, 9):
        rows = slice(first, first + 3)
        for own, other in ((material, expected.a0), (found.v, expected.v)):
            assert np.linalg.norm(own[rows]) == pytest.approx(np.linalg.norm(other[rows]))
    assert np.abs(found.turning[:9]).min() > 0.0 and not found.turning[9:].any()
    assert "turning" not in expected.secondary


def quadruped(*outputs: str, axes="contact") -> Problem:
    robot = Robot.from_urdf(robots.quadruped())
    return Problem(robot, [Contact(f, f"{f}_FOOT") for f in ("LF", "RF", "LH")], axes, outputs)


def test_inputs_are_there_only_where_asked_for() -> None:
    def names(*outputs: str) -> list[str]:
        return [port.name for port in quadruped(*outputs).inputs]

    assert names("J", "M", "MinvJT") == ["q"]
    assert names("JdotV") == ["q", "rates"]
    assert names("h") == ["q", "rates", "gravity"]
    assert names("a0") == ["q", "rates", "torques", "gravity"]


def test_one_that_is_missing_or_wrong_is_named() -> None:
    problem = quadruped("a0", "JdotV")
    solver, inputs = DelassusSolver(problem), random_inputs(problem, 0)
    for name in ("rates", "torques", "gravity"):
        with pytest.raises(InputError, match=f"input {name!r} is missing; it has shape"):
            solver.solve(**{**inputs, name: None})
        with pytest.raises(InputError, match=rf"{name}\[1\] is nan, expected a finite number"):
            solver.solve(**{**inputs, name: np.r_[0.0, np.nan, inputs[name][2:]]})
    words = r"'rates' has shape \(12,\), expected \(18,\); velocities: root \(6\), LF_HAA, "
    with pytest.raises(InputError, match=words):
        solver.solve(**{**inputs, "rates": np.zeros(12)})
    with pytest.raises(InputError, match="input 'rates' is not used by this problem"):
        DelassusSolver(quadruped("J")).solve(inputs["q"], rates=inputs["rates"])


def test_a_bound_solver_tells_of_inputs_that_were_forgotten() -> None:
    problem = quadruped("a0", "h", "M")
    bound, inputs = DelassusSolver(problem).bind(), random_inputs(problem, 0)
    for name, values in inputs.items():
        assert bound.solve().status.name == "NOT_FINITE"
        assert np.isnan(bound.solution.h).all() and np.isnan(bound.solution.M).all()
        bound.inputs[name] = values
    assert bound.solve().status.name == "OK"
    expected = DelassusSolver(problem).solve(**inputs)
    for name in ("a0", "h", "M"):
        assert np.array_equal(getattr(bound.solution, name), getattr(expected, name))


def test_contacts_in_another_order_have_their_own_rows() -> None:
    problem = quadruped(*OUTPUTS)
    solver, inputs = DelassusSolver(problem), random_inputs(problem, 5)
    whole, some = solver.solve(**inputs), solver.solve(**inputs, active=("LH", "LF"))
    rows = [0, 1, 2, 6, 7, 8]  # in the order of the problem
    assert np.array_equal(some.a0, whole.a0[rows])
    assert np.array_equal(some.JdotV, whole.JdotV[rows])
    assert np.array_equal(some.J, whole.J[rows])
    assert np.array_equal(some.MinvJT, whole.MinvJT[:, rows])
    assert np.array_equal(some.M, whole.M) and np.array_equal(some.h, whole.h)


@pytest.mark.parametrize("layout", ["rows", "columns"])
@pytest.mark.parametrize("active", [None, ("LH", "LF"), ()])
def test_batches_have_them_too(layout, active) -> None:
    problem = quadruped(*OUTPUTS)
    solver = DelassusSolver(problem)
    many = [random_inputs(problem, seed) for seed in range(21)]
    gravity = many[0]["gravity"]
    stacked = {
        name: np.array([inputs[name] for inputs in many]) for name in ("q", "rates", "torques")
    }
    stacked["rates"][7, 3] = np.nan
    if layout == "columns":
        stacked = {name: np.ascontiguousarray(values.T) for name, values in stacked.items()}
    q = stacked.pop("q")
    results = [
        solver.solve_batch(
            q, active, threads, layout=layout, gravity=gravity, **stacked
        )
        for threads in (1, 2)
    ]  # fmt: skip
    found = results[0]
    assert np.flatnonzero(found.status).tolist() == [7]
    # In other places of a batch, and so in other lanes of a vector.
    axis = 1 if layout == "columns" else 0
    moved = {name: np.roll(values, 5, axis) for name, values in stacked.items()}
    turned = solver.solve_batch(
        np.roll(q, 5, axis), active, layout=layout, gravity=gravity, **moved
    )
    for name in (*OUTPUTS, "matrix"):
        array, other = getattr(found, name), getattr(turned, name)
        back = np.roll(other, -5, -1 if layout == "columns" else 0)
        assert np.array_equal(array, back, equal_nan=True), name
    for name in (*OUTPUTS, "matrix"):
        array = getattr(found, name)
        assert np.array_equal(array, getattr(results[1], name), equal_nan=True)
        array = np.moveaxis(array, -1, 0) if layout == "columns" else array
        assert np.isnan(array[7]).all()
        for k in (0, 6, 8, 20):
            inputs = {**many[k], "gravity": gravity}
            expected = getattr(solver.solve(**inputs, active=active), name)
            assert array[k].shape == expected.shape
            np.testing.assert_allclose(array[k], expected, rtol=1e-9, atol=1e-9)


def test_a_batch_writes_g_where_it_is_told_to() -> None:
    problem = quadruped("a0")
    solver, inputs = DelassusSolver(problem), random_inputs(problem, 1)
    out = np.empty((9, 9, 9))
    q = np.tile(inputs.pop("q"), (9, 1))
    found = solver.solve_batch(q, out=out, **inputs)
    assert found.matrix is out
    assert np.array_equal(out[4], out[0]) and found.a0.shape == (9, 9)


def test_a_mass_matrix_that_is_not_positive_is_said_with_its_joint() -> None:
    import small

    problem = with_outputs(small.massless_problem(), ("h", "a0"))
    inputs = {**random_inputs(problem, 0), "q": np.array([0.3, 0.0])}
    with pytest.raises(NumericalError, match="joint"):
        DelassusSolver(problem).solve(**inputs)


def assert_wrenches_act_as_contacts_do(problem: Problem, frames: list[str], seed: int) -> None:
    """A wrench at a frame is what the force of a contact there would be."""
    robot, rng = problem.robot, np.random.default_rng(seed)
    outputs = ("a0", "h", "qdd0", "J", "MinvJT")
    loaded = Problem(robot, problem.contacts, "contact", outputs, wrenches=frames)
    there = Problem(robot, [Contact(f, f, "surface") for f in frames], "contact", outputs)
    (inputs,) = closed_inputs(loaded, 1, seed)
    assert inputs["wrenches"].shape == (len(frames), 6)
    solver = solver_on_floats(loaded)
    without = solver.solve(**{**inputs, "wrenches": {}})
    found = solver.solve(**inputs)
    others = {name: values for name, values in inputs.items() if name != "wrenches"}
    at = solver_on_floats(there).solve(**others)
    w = inputs["wrenches"].ravel()
    assert relative(found.h, without.h - at.J.T @ w) < 1e-9
    assert relative(found.qdd0, without.qdd0 + at.MinvJT @ w) < 1e-9
    assert relative(found.a0, without.a0 + without.J @ at.MinvJT @ w) < 1e-9
    some = dict.fromkeys(rng.permutation(frames), np.zeros(6))
    some[frames[0]] = inputs["wrenches"][0]
    one = np.zeros_like(inputs["wrenches"])
    one[0] = inputs["wrenches"][0]
    by_name = solver.solve(**{**inputs, "wrenches": some})
    assert np.array_equal(by_name.h, solver.solve(**{**inputs, "wrenches": one}).h)


@pytest.mark.parametrize("seed", seeds(10, every=3))
def test_external_wrenches_on_random_robots(seed) -> None:
    for problem in (random_problem(seed), cluster_robots.random_problem(seed)):
        bodies = [f for f in problem.robot.frames.values() if f.body >= 0]
        frames = [bodies[k].name for k in {0, len(bodies) // 2, len(bodies) - 1}]
        assert_wrenches_act_as_contacts_do(problem, frames, seed)


def test_wrenches_in_batches_and_bad_ones() -> None:
    robot = Robot.from_urdf(robots.quadruped())
    feet = [Contact(f, f"{f}_FOOT") for f in ("LF", "RF")]
    problem = Problem(robot, feet, outputs=["a0"], wrenches=["LH_FOOT", "RH_FOOT"])
    assert problem != Problem(robot, feet, outputs=["a0"])
    # Where no output depends on them they are no input.
    assert [p.name for p in Problem(robot, feet, wrenches=["LH_FOOT"]).inputs] == ["q"]
    solver, inputs = DelassusSolver(problem), random_inputs(problem, 0)
    expected = solver.solve(**inputs).a0
    q = np.tile(inputs.pop("q"), (9, 1))
    for wrenches in (inputs["wrenches"], np.tile(inputs["wrenches"].ravel(), (9, 1))):
        found = solver.solve_batch(q, **{**inputs, "wrenches": wrenches})
        np.testing.assert_allclose(found.a0, np.tile(expected, (9, 1)), rtol=1e-9)
    for wrenches, words in (
        ({"LX": np.zeros(6)}, "wrenches: unknown frame 'LX'"),
        ({"LH_FOOT": np.zeros(3)}, r"wrenches\['LH_FOOT'\] has shape \(3,\), expected \(6,\)"),
        (np.zeros((1, 6)), r"input 'wrenches' has shape \(1, 6\)"),
        (np.full((2, 6), np.inf), r"wrenches\[0\] is inf, expected a finite number"),
    ):
        with pytest.raises(InputError, match=words):
            solver.solve(q[0], **{**inputs, "wrenches": wrenches})
    for wrenches, words in (
        (["LX"], "wrenches: unknown frame 'LX'"),
        (["LF_FOOT", "LF_FOOT"], "wrenches: a frame is named twice"),
    ):
        with pytest.raises(ProblemError, match=words):
            Problem(robot, feet, outputs=["a0"], wrenches=wrenches)


@pytest.mark.needs("mujoco")
def test_a_tree_beside_the_robot_has_gravity_in_world_axes_alone() -> None:
    robot = Robot.from_mujoco(DOOR)
    contacts = [Contact(each, each) for each in ("leg", "bolt")]
    assert Problem(robot, contacts, outputs=["J", "JdotV", "M", "MinvJT"]).axes == "contact"
    for output in ("a0", "h", "qdd0"):
        with pytest.raises(ProblemError, match=f"{output!r} needs gravity.*'hinge' is on the wor"):
            Problem(robot, contacts, outputs=[output])
    with pytest.raises(RobotError, match="joint 'hinge' is on the world beside the floating base"):
        Dynamics(robot)
    alone = Problem(robot.subtree("hinge"), contacts[1:], outputs=["a0"])
    assert [port.name for port in alone.inputs] == ["q", "rates", "torques", "gravity"]
