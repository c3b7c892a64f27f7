"""Contact forces: the laws, against public problems and a library that nobody here wrote."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import robots
from friction import pinocchio_forces, public, random_problem, residual, standing
from hypothesis import given
from hypothesis import strategies as st
from robots import LEGS

from delassus import Contact, DelassusSolver, InputError, Problem, Robot
from delassus.contact_forces import ForceSolver, ForceStatus, cones, iteration, solve_contacts
from delassus.contact_forces.machine_code import BUDGET
from delassus.contacts import cone_axes, direction

LAWS = ("coulomb", "convex")
PUBLIC = (
    "BoxesStack1-i100000-32", "Confeti-ex13-4contact", "FC3D_Example1", "OneObject-i100000-316",
    "Rover1039", "Rover1040", "Rover11035", "Rover3865", "Rover4396", "Rover4493", "Rover4609",
)  # fmt: skip


@pytest.mark.parametrize("name", PUBLIC)
def test_public_problems(name: str) -> None:
    W, q, mu = public(name)
    found = solve_contacts(W, q, friction=mu, law="coulomb")
    assert found.status == ForceStatus.SOLVED
    assert residual(W, q, mu, found.forces) <= 1e-10
    assert sum(found.steps) <= BUDGET


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("friction", [0.0, 0.3, 1.2])
def test_forces_obey_their_law(law: Any, friction: float) -> None:
    mu = np.full(4, friction)
    regimes = set()
    for seed in range(30):
        G, a0 = random_problem(seed)
        found = ForceSolver(["point"] * 4, friction, law=law).solve(G, a0)
        assert found.status == ForceStatus.SOLVED and found.law == law
        assert residual(G, a0, mu, found.forces, law) <= 2e-10
        np.testing.assert_allclose(found.accelerations, G @ found.forces + a0, atol=1e-12)
        for f, u in zip(
            found.forces.reshape(-1, 3), found.accelerations.reshape(-1, 3), strict=True
        ):
            pushes, slides = f[2] > 1e-9, np.hypot(u[0], u[1]) > 1e-9
            regimes.add((bool(pushes), bool(slides)))
    assert {(False, True), (True, True)} <= regimes
    assert friction == 0.0 or (True, False) in regimes


def test_the_laws_differ_where_a_contact_slides() -> None:
    G, a0 = np.diag([1.0, 1.0, 1.0]), np.array([-5.0, 0.0, -1.0])
    coulomb = solve_contacts(G, a0, friction=0.5, law="coulomb")
    np.testing.assert_allclose(coulomb.forces, [0.5, 0.0, 1.0], atol=1e-9)
    convex = solve_contacts(G, a0, friction=0.5, law="convex")
    assert convex.accelerations[2] == pytest.approx(0.5 * -convex.accelerations[0], rel=1e-9)


def test_as_pinocchio_has_it() -> None:
    for seed in range(5):
        G, a0 = random_problem(seed)
        peer = pinocchio_forces(G, a0, 0.6)
        found = solve_contacts(G, a0, friction=0.6, law="coulomb")
        np.testing.assert_allclose(found.forces, peer, atol=1e-6 * np.abs(peer).max())


@given(st.integers(0, 2**32 - 1), st.floats(-3, 3), st.floats(0, 5), st.sampled_from(LAWS))
def test_solved_is_never_wrong(seed: int, decades: float, friction: float, law: Any) -> None:
    random = np.random.default_rng(seed)
    G, a0 = random_problem(seed, rank=random.choice([6, 12, 18]))
    scales = np.repeat(10.0 ** random.uniform(-abs(decades), abs(decades), 4), 3)
    G, a0 = G * np.outer(scales, scales), a0 * scales
    found = solve_contacts(G, a0, friction=friction, law=law)
    assert sum(found.steps) <= BUDGET and np.isfinite(found.forces).all()
    if found.status == ForceStatus.SOLVED:
        assert residual(G, a0, np.full(4, friction), found.forces, law) <= 1e-9


def test_the_iteration_as_python_gives_the_same() -> None:
    for seed, law, speed in (
        (0, "coulomb", 0.0), (1, "convex", 0.0), (3, "coulomb", 0.0), (3, "coulomb", 1.0),
    ):  # fmt: skip
        G, a0 = random_problem(seed, contacts=2, rank=5)
        v = speed * np.array([0.6, 0.8, 0.0, 0.0, 0.0, 0.0])
        solver = ForceSolver(["point", "point"], 0.4, law=law)  # type: ignore[arg-type]
        found = solver.solve(G, a0, velocities=v)
        rows = solver.rows
        f, out, info = np.zeros(6), np.zeros((2, 6)), np.zeros(cones.INFO)
        status = iteration.solve(
            6, 6, 2, LAWS.index(law), BUDGET, 1e-10, rows.cones, rows.friction, np.zeros(2),
            rows.starts, rows.columns, rows.weights, np.full(cones.SPEEDS, 0.1), G.ravel(), a0, v,
            np.zeros(6), f, *out, np.zeros(6), info, np.zeros(iteration.work_size(6, 6)),
        )  # fmt: skip
        assert status == found.status == ForceStatus.SOLVED
        np.testing.assert_allclose(G @ f, G @ found.forces, atol=1e-8)
        np.testing.assert_allclose(out, [f, G @ f + a0], atol=1e-12)


def test_a_surface_is_its_four_corners() -> None:
    random = np.random.default_rng(5)
    J = random.normal(size=(12, 20))
    G, a0 = J @ J.T, random.normal(size=12)
    a0[[2, 8]] -= 9.0
    found = solve_contacts(G, a0, friction=0.7, kinds="surface", dimensions=(0.2, 0.1))
    assert found.status == ForceStatus.SOLVED and found.law == "coulomb"
    corners = found.cone_forces.reshape(2, 4, 3)
    at = np.array([[0.1, 0.05, 0], [0.1, -0.05, 0], [-0.1, 0.05, 0], [-0.1, -0.05, 0]])
    for wrench, forces in zip(found.forces.reshape(2, 6), corners, strict=True):
        np.testing.assert_allclose(wrench[:3], forces.sum(axis=0), atol=1e-9)
        np.testing.assert_allclose(wrench[3:], np.cross(at, forces).sum(axis=0), atol=1e-9)
        assert (np.hypot(forces[:, 0], forces[:, 1]) <= 0.7 * forces[:, 2] + 1e-9).all()


def test_single_rows() -> None:
    G = np.array([[2.0, 0.5], [0.5, 1.0]])
    held = solve_contacts(G, [1.0, -1.0], friction=0.0, kinds="bilateral")
    np.testing.assert_allclose(held.forces, np.linalg.solve(G, [-1.0, 1.0]), atol=1e-9)
    pushed = solve_contacts(G, [1.0, -1.0], friction=0.0, kinds="unilateral")
    np.testing.assert_allclose(pushed.forces, [0.0, 1.0], atol=1e-9)


@pytest.mark.parametrize(("kind", "sign"), [("bilateral", 1.0), ("unilateral", -1.0)])
def test_a_contradiction_is_named(kind: Any, sign: float) -> None:
    G = np.eye(3)
    G[0, 2] = G[2, 0] = sign
    a0 = [-1.0, 0.3, 1.0 if sign > 0 else -1.0]
    found = solve_contacts(G, a0, friction=0.0, kinds=kind)
    assert found.status == ForceStatus.INFEASIBLE
    assert found.contradiction == (0, 2)


def test_no_numbers_no_forces() -> None:
    G, a0 = random_problem(0)
    for wrong in (np.nan, np.inf):
        a0[3] = wrong
        found = solve_contacts(G, a0, friction=0.5)
        assert found.status == ForceStatus.NOT_FINITE
        assert not found.forces.any() and found.residual == -1.0
        assert np.isnan(found.accelerations).all()


@pytest.mark.parametrize("kind", ["point", "unilateral", "bilateral"])
@pytest.mark.parametrize("law", ["auto", *LAWS])
def test_rows_that_nothing_moves(kind: Any, law: Any) -> None:
    rows = 3 if kind == "point" else 1
    falls = np.array([0.3, 0.2, -1.0])[-rows:]
    for G in (np.zeros((rows, rows)), np.diag([0.0] * rows + [2.0])):
        rest = [-1.0] * (len(G) - rows)
        kinds = [kind, *["unilateral"] * len(rest)]
        found = solve_contacts(G, [*falls, *rest], friction=0.5, kinds=kinds, law=law)
        assert found.status == ForceStatus.INFEASIBLE and np.isfinite(found.forces).all()
        rises = np.abs(falls) if kind != "bilateral" else np.zeros(rows)
        found = solve_contacts(G, [*rises, *rest], friction=0.5, kinds=kinds, law=law)
        assert found.status == ForceStatus.SOLVED
        np.testing.assert_allclose(found.forces, [0.0] * rows + [0.5] * len(rest), atol=1e-9)


@pytest.mark.parametrize("law", LAWS)
def test_contacts_without_friction_lift_off_straight(law: Any) -> None:
    found = solve_contacts(np.eye(3), [0.0, 0.0, 1.0], friction=0.0, law=law)
    assert found.status == ForceStatus.SOLVED and found.residual == 0.0
    assert not found.forces.any()


def test_singular_blocks_are_not_solved_by_overflow() -> None:
    """Forces grew to 1e276 here, and the accelerations, updated along with them, were lost."""
    J = np.array([[4.71], [3.26], [-0.358]])
    a0 = [5482.59, 3797.963, -417.374]
    found = solve_contacts(J @ J.T, a0, friction=3.082, law="coulomb")
    assert np.isfinite(found.forces).all()
    if found.status == ForceStatus.SOLVED:
        assert residual(J @ J.T, np.array(a0), np.array([3.082]), found.forces) <= 1e-9


def test_auto_is_another_name_of_coulomb() -> None:
    G, a0 = random_problem(0)
    twice = np.vstack([np.eye(12), np.eye(12)])
    for H, a in ((G, a0), (twice @ G @ twice.T, twice @ a0)):
        found = solve_contacts(H, a, friction=0.5, law="auto")
        assert found.law == "coulomb" and found.status == ForceStatus.SOLVED
        assert found.forces.tobytes() == solve_contacts(H, a, friction=0.5).forces.tobytes()


def test_a_start_nearby_saves_steps_and_history_changes_no_bit() -> None:
    G, a0 = random_problem(2)
    solver = ForceSolver(["point"] * 4, 0.6)
    cold = solver.solve(G, a0)
    warm = solver.solve(G, a0 * 1.0001, start=cold.cone_forces)
    assert warm.status == ForceStatus.SOLVED and sum(warm.steps) <= sum(cold.steps)
    assert solver.solve(G, a0).forces.tobytes() == cold.forces.tobytes()


def test_a_budget_bounds_the_steps() -> None:
    G, a0 = random_problem(7, contacts=8, rank=12)
    for budget in (1, 2, 5, 20):
        found = solve_contacts(G, a0, friction=1.0, law="coulomb", tolerance=1e-15, budget=budget)
        assert sum(found.steps) <= budget


@pytest.mark.parametrize("law", LAWS)
def test_derivatives_are_those_of_differences(law: Any) -> None:
    compared = 0
    solver = ForceSolver(["point"] * 4, 0.5, law=law, tolerance=1e-13)
    for seed in range(40):
        random = np.random.default_rng(seed)
        G, a0 = random_problem(seed)
        found = solver.solve(G, a0)
        if found.status != ForceStatus.SOLVED:
            continue
        derivative = solver.derivative(found)
        if derivative.margin < 1e-3:
            continue
        da, dG, h = random.normal(size=12), random.normal(size=(12, 12)), 1e-6
        dG += dG.T
        for change, first, second in (
            (derivative.H @ da, (G, a0 + h * da), (G, a0 - h * da)),
            (derivative.H @ dG @ found.forces, (G + h * dG, a0), (G - h * dG, a0)),
        ):
            difference = (solver.solve(*first).forces - solver.solve(*second).forces) / (2 * h)
            size = max(np.abs(difference).max(), 1e-3)
            np.testing.assert_allclose(change, difference, atol=5e-7 * size)
        # Of the earlier problem, though the solver has solved others since.
        assert solver.derivative(found).H.tobytes() == derivative.H.tobytes()
        compared += 1
    assert compared >= 20
    with pytest.raises(InputError, match="forces are of another solver; expected a result of th"):
        ForceSolver(["point"] * 4, 0.4, law=law).derivative(found)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"friction": -0.1}, r"friction is -0.1; expected coefficients of 0 to 10000"),
        ({"friction": [0.5, np.inf], "kinds": ["point"] * 2}, "friction is inf; expected coeff"),
        ({"friction": 1e7}, r"friction is 1e\+07; expected coefficients of 0 to 10000"),
        ({"friction": 0.5j}, "friction is 0.5j; expected numbers"),
        ({"friction": [0.1, 0.2]}, r"friction has shape \(2,\); expected a number or one per"),
        ({"friction": 0.5, "kinds": "surface"}, "a0 has 3 rows; expected a multiple of 6"),
        ({"friction": 0.5, "kinds": "points"}, "unknown kind 'points'; expected one of point"),
        ({"friction": 0.5, "kinds": ["poin"]}, "contact 0 is of kind 'poin'; expected one of"),
        ({"friction": 0.5, "normals": "x"}, "normals are 'x'; expected one per contact, 1"),
        ({"friction": 0.5, "normals": ["up"]}, "unknown normal 'up'; normals: x, y, z, -x"),
        (
            {"friction": 0.5, "kinds": ["unilateral"] * 3, "normals": ["z", "x", "z"]},
            "normal of contact 1 is 'x'; a unilateral has 'z' alone",
        ),
        ({"friction": 0.5, "law": "ncp"}, "unknown law 'ncp'; expected one of auto, coulomb"),
        (
            {"friction": 0.5, "compliance": -1},
            "compliance is -1; expected numbers of 0 or more",
        ),
        ({"friction": 0.5, "compliance": np.inf}, "compliance is inf; .* 0 or more, but finite"),
        ({"friction": 0.5, "budget": -1}, "budget is -1; expected a whole number, at least 0"),
        ({"friction": 0.5, "budget": 2**31}, "budget is 2147483648; .*, at most 2147483647"),
        ({"friction": 0.5, "budget": 2**63}, "budget is 9223372036854775808; expected a whole"),
        ({"friction": 0.5, "budget": 1.0}, "budget is 1.0; expected a whole number"),
        ({"friction": 0.5, "tolerance": np.inf}, "tolerance is inf; expected a residual above 0"),
        ({"friction": 0.5, "tolerance": 1.0}, "tolerance is 1; expected a residual above 0"),
        ({"friction": 0.5, "tolerance": 0.0}, "tolerance is 0; expected a residual above 0"),
        ({"friction": 0.5, "tolerance": np.nan}, "tolerance is nan; expected a residual above 0"),
        (
            {"friction": 0.5, "kinds": ["surface"], "dimensions": (np.inf, 0.1)},
            r"contact 0 is a surface and has dimensions \[inf 0.1\]; expected length and width",
        ),
        ({"friction": 0.5, "kinds": 3}, "kinds must be a list of names, got 3"),
        ({"friction": 0.5, "normals": 3}, "normals are 3; expected one per contact, 1"),
        ({"friction": 0.5, "restitution": 1.5}, "restitution is 1.5; expected numbers of 0 to 1"),
        ({"friction": 0.5, "restitution": [0, 1]}, "restitution has shape .*; expected a number"),
        ({"friction": 0.5, "surface_cone": "box"}, "unknown surface_cone 'box'; expected one of"),
        ({"friction": 0.5, "start": [1.0]}, r"start has shape \(1,\); expected \(3,\)"),
        ({"friction": 0.5, "kinds": ["point", "point"]}, r"expected \(6, 6\) and \(6,\)"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        solve_contacts(np.eye(3), -np.ones(3), **arguments)


def _one_free_row() -> tuple[np.ndarray, np.ndarray]:
    """Return a point that a bar carries along y and z and nothing along x."""
    J = np.array([[0.0, 0.0], [1.0, 0.2], [0.2, 1.0]])
    return J @ J.T, J @ np.array([0.4, -2.0])


def test_any_compliance_is_solved_where_g_is_singular() -> None:
    G, a0 = _one_free_row()
    for law in LAWS:
        for compliance in (0.0, 1e-12, 1e-8, 1e-6, 1e-4, 0.01):
            found = solve_contacts(G, a0, friction=0.5, compliance=compliance, law=law)
            assert found.status == ForceStatus.SOLVED and found.law == law
            soft = G + compliance * np.eye(3)
            assert residual(soft, a0, np.array([0.5]), found.forces, law) <= 2e-10


def test_a_surface_needs_dimensions() -> None:
    with pytest.raises(InputError, match="contact 0 is a surface and has no dimensions"):
        solve_contacts(np.eye(6), np.ones(6), friction=0.5, kinds="surface")


@pytest.mark.parametrize("normal", ["x", "y", "-x", "-y", "-z", (0.36, 0.48, -0.8)])
def test_a_normal_turns_the_cone(normal: Any) -> None:
    axes = np.kron(np.eye(4), cone_axes(normal))
    for seed in range(3):
        G, a0 = random_problem(seed)
        # The same contacts with rows along the axes of their cones.
        turned = solve_contacts(axes @ G @ axes.T, axes @ a0, friction=0.6)
        found = solve_contacts(G, a0, friction=0.6, normals=[normal] * 4)
        assert found.status == turned.status == ForceStatus.SOLVED
        np.testing.assert_allclose(found.forces, axes.T @ turned.forces, atol=1e-8)
        np.testing.assert_allclose(found.cone_forces, turned.forces, atol=1e-8)
        assert (found.forces.reshape(4, 3) @ direction(normal) >= -1e-9).all()


def test_solvers_are_kept_by_all_digits_of_their_arguments() -> None:
    G, a0 = random_problem(0)
    soft = np.full(4, 1.0), np.full(4, 1.0 + 1e-12)
    first, second = (solve_contacts(G, a0, friction=0.5, compliance=R).forces for R in soft)
    assert first.tobytes() != second.tobytes()
    up = [("z", "z", "-x", np.array([0.0, tilt, 0.8])) for tilt in (0.6, 0.6 + 1e-12)]
    first, second = (solve_contacts(G, a0, friction=0.5, normals=n).forces for n in up)
    assert first.tobytes() != second.tobytes()


class _ShortText:
    """Numbers whose text has four digits of the first and the last, as that of a tensor."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.values if dtype is None else self.values.astype(dtype)

    def __repr__(self) -> str:
        first, *_, last = self.values.ravel()
        return f"[{first:.4f} … {last:.4f}]"


@pytest.mark.parametrize("kind", [memoryview, _ShortText, np.asarray])
@pytest.mark.parametrize("name", ["friction", "compliance", "dimensions", "normals"])
def test_solvers_are_kept_by_values(name: str, kind: Any) -> None:
    G, a0 = random_problem(0)
    values, kinds = {
        "friction": (np.full(4, 0.3), ["point"] * 4),
        "compliance": (np.full(4, 0.3), ["point"] * 4),
        "dimensions": (np.full((2, 2), 0.3), ["surface"] * 2),
        "normals": (np.tile([0.0, 0.3, 0.9], (4, 1)), ["point"] * 4),
    }[name]
    options: dict[str, Any] = {"friction": 0.5, "kinds": kinds, name: values}
    given = [kind(row) for row in values] if name == "normals" else kind(values)
    # The same object, in whose memory other numbers are written.
    solve_contacts(G, a0, **{**options, name: given})
    values.ravel()[1:-1] += 1e-6
    found = solve_contacts(G, a0, **{**options, name: given})
    fresh = ForceSolver(**{**options, name: values}).solve(G, a0)
    assert found.forces.tobytes() == fresh.forces.tobytes()


def test_forces_of_a_solution() -> None:
    s = standing(LEGS)
    found = s.contact_forces(0.7)
    assert found.status == ForceStatus.SOLVED and found.contacts == s.contacts
    mu = np.full(4, 0.7)
    assert residual(s.matrix, s.a0, mu, found.forces) <= 1e-10
    by_name = s.contact_forces({"LF": 0.7, "RF": 0.7, "LH": 0.7, "RH": 0.7})
    assert by_name.forces.tobytes() == found.forces.tobytes()


def test_contacts_have_friction_of_their_own() -> None:
    plain = standing(LEGS)
    s = standing(LEGS, LF={"friction": 0.2}, RH={"friction": 0.9})
    assert s.matrix.tobytes() == plain.matrix.tobytes()
    expected = plain.contact_forces([0.2, 0.5, 0.5, 0.9])
    assert s.contact_forces(0.5).forces.tobytes() == expected.forces.tobytes()
    by_name = s.contact_forces({"RF": 0.5, "LH": 0.5})
    assert by_name.forces.tobytes() == expected.forces.tobytes()
    # Coefficients per contact stand instead of those of the contacts.
    other = s.contact_forces([0.7] * 4)
    assert other.forces.tobytes() == plain.contact_forces(0.7).forces.tobytes()
    assert s.contact_forces({leg: 0.7 for leg in LEGS}).forces.tobytes() == other.forces.tobytes()
    with pytest.raises(InputError, match=r"friction lacks contacts 'RF', 'LH': Contact\(…, fr"):
        s.contact_forces()
    three = standing(["LF", "RF", "LH"], **{leg: {"friction": 0.4} for leg in LEGS})
    same = standing(["LF", "RF", "LH"]).contact_forces(0.4)
    assert three.contact_forces().forces.tobytes() == same.forces.tobytes()


def test_contacts_have_normals_of_their_own() -> None:
    down = standing(LEGS, LF={"normal": "-z"}).contact_forces(0.7)
    assert down.status == ForceStatus.SOLVED
    assert down.forces[2] <= 0.0 <= down.forces[5]


def test_surfaces_have_dimensions_of_their_own() -> None:
    robot = Robot.from_urdf(robots.quadruped())
    sole = Contact("LF", "LF_FOOT", "surface", friction=0.5, dimensions=(0.2, 0.1))
    bare = Contact("LF", "LF_FOOT", "surface")
    q = robot.q({"LF_HFE": 0.7, "LF_KFE": -1.4})
    given = {"rates": np.zeros(18), "torques": np.zeros(18), "gravity": [0, 0, -9.81]}
    s, plain = (
        DelassusSolver(Problem(robot, [contact], outputs=["a0"])).solve(q, **given)
        for contact in (sole, bare)
    )
    found, same = s.contact_forces(), plain.contact_forces(0.5, dimensions=(0.2, 0.1))
    assert found.forces.any() and found.forces.tobytes() == same.forces.tobytes()
    with pytest.raises(InputError, match="contact 'LF' is a surface and has no dimensions"):
        plain.contact_forces(0.5)


def test_friction_is_no_part_of_a_kernel() -> None:
    robot = Robot.from_urdf(robots.quadruped())
    plain, rough = (Problem(robot, [Contact("LF", "LF_FOOT", friction=mu)]) for mu in (None, 0.5))
    assert plain.canonical_bytes == rough.canonical_bytes
    assert plain != rough and rough == Problem(robot, [Contact("LF", "LF_FOOT", friction=0.5)])


def test_forces_go_on_by_name_when_contacts_change() -> None:
    four, three = standing(LEGS), standing(["RF", "LH", "RH"])
    before = four.contact_forces(0.7)
    start = before.start(three.contacts, (0, 3, 6, 9))
    np.testing.assert_array_equal(start, before.cone_forces[3:])
    warm, cold = three.contact_forces(0.7, start=before), three.contact_forces(0.7)
    np.testing.assert_allclose(warm.forces, cold.forces, atol=1e-6)
    back = four.contact_forces(0.7, start=warm)
    np.testing.assert_allclose(back.forces, before.forces, atol=1e-6)


def test_a_solution_names_what_friction_lacks() -> None:
    s = standing(["LF", "RH"])
    with pytest.raises(InputError, match="friction lacks contact 'RH'"):
        s.contact_forces({"LF": 0.5})
