"""Products with derivatives, compiled: both modes, differences, batches, recipes."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import robots
from oracles import paper_library
from passive import with_passive
from small import contacts, walker

from delassus import Contact, DelassusSolver, Problem, Robot, algorithms
from delassus.algorithms.registry import evaluate
from delassus.compiler.build import shortest
from delassus.compiler.export import export
from delassus.compiler.ir.trace import trace
from delassus.errors import InputError, ProblemError
from delassus.gradients import Gradients
from delassus.samples import random_inputs

FEET = contacts(("point", "surface"))
OUTPUTS = ("a0", "h")
SPRUNG = with_passive(walker(legs=2), 0)


@pytest.fixture(scope="module")
def moving() -> Gradients:
    return Gradients(Problem(SPRUNG, FEET, "world", OUTPUTS))


def random_seeds(gradients: Gradients, seed: int) -> tuple[dict, dict]:
    rng = np.random.default_rng(seed)
    problem = gradients.problem
    cotangents = {port.name: rng.normal(size=port.shape) for port in problem.outputs}
    shape = {"gravity": 3}
    n = len(problem.velocities)
    return cotangents, {v: rng.normal(size=shape.get(v, n)) for v in gradients.variables}


def test_forward_and_reverse_mode_are_transposes(moving: Gradients) -> None:
    cotangents, tangents = random_seeds(moving, 0)
    inputs = random_inputs(moving.problem, 0)
    forward, reverse = moving.jvp(tangents, **inputs), moving.vjp(cotangents, **inputs)
    one = sum(float(np.sum(cotangents[name] * forward[name])) for name in cotangents)
    two = sum(float(np.sum(tangents[name] * reverse[name])) for name in tangents)
    assert one == pytest.approx(two, rel=1e-10)
    plain = DelassusSolver(moving.problem).solve(**inputs)
    for name in moving.problem.outputs:
        values = plain.output(name.name)
        np.testing.assert_allclose(forward.outputs[name.name], values, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(reverse.outputs[name.name], values, rtol=1e-9, atol=1e-9)


OTHERS = [pytest.param(name, marks=pytest.mark.slow) for name in ("qdd0", "JdotV", "MinvJT")]


@pytest.mark.parametrize("output", ["G", *OUTPUTS, *OTHERS])
@pytest.mark.parametrize("variable", ["q", "rates", "torques", "gravity"])
def test_jacobians_against_differences(moving: Gradients, output: str, variable: str) -> None:
    if output not in ("G", *OUTPUTS):
        outputs = {output, *OUTPUTS}  # for the same inputs
        moving = Gradients(Problem(SPRUNG, FEET, "world", outputs))
    problem, inputs = moving.problem, random_inputs(moving.problem, 2)
    solver, step = DelassusSolver(problem), 1e-5
    n = 3 if variable == "gravity" else len(problem.velocities)
    needed = {port.name for port in moving.solver(output).problem.inputs}
    if variable not in needed:
        with pytest.raises(InputError, match=f"output '{output}' does not depend on"):
            moving.jacobian(output, variable, **inputs)
        return
    found = moving.jacobian(output, variable, **inputs)
    for k in range(n):
        sides = []
        for sign in (1.0, -1.0):
            at = {name: np.array(values) for name, values in inputs.items()}
            if variable != "q":
                at[variable][k] += sign * step
            elif k >= 6:
                at["q"][k - 6] += sign * step
            elif k >= 3:
                at["base_orientation"] = turned(at["base_orientation"], k - 3, sign * step)
            sides.append(solver.solve(**at).output(output))
        expected = (sides[0] - sides[1]) / (2 * step)
        scale = max(1.0, np.abs(found).max())
        np.testing.assert_allclose(found[..., k], expected, rtol=1e-6, atol=3e-7 * scale)


def turned(quaternion: np.ndarray, axis: int, angle: float) -> np.ndarray:
    """Return a quaternion x, y, z, w turned about an axis of the body."""
    x, y, z, w = quaternion
    s, c = np.sin(angle / 2), np.cos(angle / 2)
    a, b, d = s * np.eye(3)[axis]
    return np.array(
        [w * a + x * c + y * d - z * b, w * b - x * d + y * c + z * a,
         w * d + x * b - y * a + z * c, w * c - x * a - y * b - z * d]
    )  # fmt: skip


def test_jvp_and_vjp_of_G_are_those_of_the_closed_form() -> None:
    gradients = Gradients(Problem(walker(legs=2), FEET))
    inputs = random_inputs(gradients.problem, 1)
    dG = gradients.matrix(**inputs)
    cotangents, tangents = random_seeds(gradients, 1)
    G_bar, direction = cotangents["G"], tangents["q"]
    np.testing.assert_allclose(
        gradients.jvp(tangents, **inputs)["G"], np.tensordot(direction, dG, 1), atol=1e-10
    )
    np.testing.assert_allclose(
        gradients.vjp(cotangents, **inputs)["q"], np.tensordot(dG, G_bar, 2), atol=1e-10
    )
    active = gradients.matrix(**inputs, active=("c1",))
    assert np.array_equal(active, dG[:, 3:, 3:])
    bound = gradients.solver("dG").bind()
    bound.activate(("c1",))
    assert np.array_equal(bound.solve(inputs["q"]).output("dG"), active)


def test_batches_are_single_calls(moving: Gradients) -> None:
    samples = [random_inputs(moving.problem, seed) for seed in range(5)]
    many = {name: np.stack([sample[name] for sample in samples]) for name in samples[0]}
    cotangents, tangents = random_seeds(moving, 3)
    reverse, forward = moving.vjp(cotangents, **many), moving.jvp(tangents, **many)
    for k, sample in enumerate(samples):
        one, two = moving.vjp(cotangents, **sample), moving.jvp(tangents, **sample)
        for name in moving.variables:
            np.testing.assert_allclose(reverse[name][k], one[name], rtol=1e-9, atol=1e-9)
        for name in two.products:
            np.testing.assert_allclose(forward[name][k], two[name], rtol=1e-9, atol=1e-9)


def test_kernels_of_a_loop() -> None:
    """One independent joint; the closed form is tested in test/library/rbda/test_gradient.py."""
    state = next(iter(paper_library.states("urdf_four_bar")))
    problem = paper_library.problem_of("urdf_four_bar", state)
    q = paper_library.positions("urdf_four_bar", state)
    gradients, m = Gradients(problem), problem.contacts.rows
    algorithm = algorithms.get("pv_osimr")
    expected = evaluate(gradients.solver("dG").problem, algorithm, {"q": q.tolist()})["dG"]
    found = gradients.matrix(q)
    assert found.shape == (1, m, m)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    product = gradients.vjp({"G": np.ones((m, m))}, q)["q"]
    np.testing.assert_allclose(product, [found.sum()], rtol=1e-9)


def test_products_beside_the_closed_form_leave_for_c() -> None:
    problem = Problem(walker(legs=2), FEET, outputs=["dG", "q_bar", "G_dot"])
    exported = export(problem, "pv_osimr", "walker")
    for word in ("WALKER_OUT_DG_SIZE = 648", "WALKER_OUT_Q_BAR_SIZE = 8", "WALKER_IN_G_BAR_SIZE"):
        assert word in exported.header


@pytest.mark.parametrize("algorithm", ["pv_osimr", "auto"])
@pytest.mark.parametrize("feet", [1, 2, 4])
def test_vjp_costs_at_most_five_times_G(feet: int, algorithm: str) -> None:
    """The root that auto chooses is that of the matrix without derivatives."""
    robot = Robot.from_urdf(robots.quadruped())
    legs = [Contact(leg, f"{leg}_FOOT") for leg in robots.LEGS[:feet]]
    chosen = algorithms.get(algorithm)
    counts = [
        shortest(Problem(robot, legs, outputs=outputs), chosen)[1].operations.total
        for outputs in (("G",), ("G", "q_bar"), ("G", "G_dot"))
    ]
    assert counts[1] < 3.5 * counts[0] and counts[2] < 4 * counts[0]


def test_vjp_costs_at_most_five_times_G_with_rotors() -> None:
    problem = paper_library.problem_of("mini_cheetah_4ee")
    robot, feet, algorithm = problem.robot, problem.contacts, algorithms.get("pv_osimr")
    G, product = (
        trace(Problem(robot, feet, outputs=outputs), algorithm).operations.total
        for outputs in (("G",), ("G", "q_bar"))
    )
    assert product < 3.5 * G


def test_recipes() -> None:
    """Gradients of scalars of G by their cotangents, against differences."""
    gradients = Gradients(Problem(walker(legs=2), FEET))
    q = random_inputs(gradients.problem, 5)["q"]
    d, b = np.eye(9)[1] * 0.6 + np.eye(9)[2] * 0.8, np.arange(1.0, 10.0)
    c, R = np.linspace(-1, 1, 9), 0.1 * np.eye(9)

    def smallest(G):
        # Of the first contact: the eight freedoms do not move nine rows.
        values, vectors = np.linalg.eigh(G[:3, :3])
        bar = np.zeros((9, 9))
        bar[:3, :3] = np.outer(vectors[:, 0], vectors[:, 0])
        return values[0], bar

    def mass(G):
        return 1.0 / (d @ G @ d), -np.outer(d, d) / (d @ G @ d) ** 2

    def force(G):
        f, g = np.linalg.solve(G + R, b), np.linalg.solve(G + R, c)
        return c @ f, -np.outer(g, f)

    def log_det(G):
        return np.linalg.slogdet(G + R)[1], np.linalg.inv(G + R)

    solver = DelassusSolver(gradients.problem)
    for scalar in (smallest, mass, force, log_det):
        G_bar = scalar(solver.solve(q).matrix)[1]
        found = gradients.vjp({"G": G_bar}, q)["q"][6:]
        for k in range(len(q)):
            step = 1e-6 * np.eye(len(q))[k]
            sides = [scalar(solver.solve(q + s * step).matrix)[0] for s in (1, -1)]
            assert found[k] == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-5, abs=1e-6)


def test_what_is_wrong_is_named(moving: Gradients) -> None:
    inputs = random_inputs(moving.problem, 0)
    with pytest.raises(InputError, match="unknown output 'a1'"):
        moving.vjp({"a1": 1.0}, **inputs)
    with pytest.raises(InputError, match="unknown input 'p'"):
        moving.jvp({"p": 1.0}, **inputs)
    with pytest.raises(InputError, match="'G_bar' has shape"):
        moving.vjp({"G": np.zeros(3)}, **inputs)
    with pytest.raises(InputError, match="unknown product 'tau'"):
        moving.vjp({}, **inputs)["tau"]
    with pytest.raises(ProblemError, match="outputs G, dG; expected none of derivatives"):
        Gradients(Problem(walker(legs=2), FEET, outputs=["dG"]))
    again = pickle.loads(pickle.dumps(Gradients(Problem(walker(legs=2), FEET))))
    assert again.problem == Problem(walker(legs=2), FEET)
