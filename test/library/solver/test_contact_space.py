"""Λ, J̄, contact forces, impacts and effective masses: identities, Pinocchio, bad postures."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import robots
from linkages import four_bar
from on_floats import solver_on_floats
from scipy.optimize import brentq
from seeds import but_slow
from small import feed, flat_foot

from delassus import Closure, Contact, DelassusSolver, Problem, Robot, Status, Transform
from delassus.errors import InputError, NumericalError
from delassus.model.spatial import skew
from delassus.samples import random_inputs
from delassus.solver import constrained_dynamics
from delassus.solver.bound import _constrained_code
from delassus.solver.constrained_dynamics import OVERFLOWED, REDUNDANT, SOLVED
from delassus.solver.contact_space import certified_factor, inertia
from delassus.solver.solution import Solution

OUTPUTS = ("J", "MinvJT", "M", "h", "JdotV", "a0", "qdd0")


def quadruped_problem(outputs=OUTPUTS) -> Problem:
    robot = Robot.from_urdf(robots.quadruped())
    return Problem(robot, [Contact(foot, foot) for foot in robots.FEET], outputs=outputs)


def humanoid_problem() -> Problem:
    robot = Robot.from_urdf(robots.talos())
    soles = [Contact(f"{side}_sole_link", f"{side}_sole_link", "surface")
             for side in ("left", "right")]  # fmt: skip
    return Problem(robot, soles, outputs=OUTPUTS)


def arm_problem() -> Problem:
    robot = Robot.from_urdf(robots.panda(), base="fixed")
    return Problem(robot, [Contact("hand", "panda_hand", "surface")], outputs=OUTPUTS)


def solved(problem: Problem, seed: int = 0, **changes) -> tuple[Solution, dict]:
    inputs = {**random_inputs(problem, seed), **changes}
    return solver_on_floats(problem).solve(**inputs), inputs


def close(found, expected, tolerance=1e-10) -> bool:
    return np.linalg.norm(found - expected) <= tolerance * max(1.0, np.linalg.norm(expected))


@pytest.mark.parametrize("make", [quadruped_problem, humanoid_problem, arm_problem])
@pytest.mark.parametrize("seed", range(5))
def test_identities(make, seed) -> None:
    s, _ = solved(make(), seed)
    L, inverse, N = s.inertia(), s.jbar(), s.null_space()
    k = len(L)
    assert close(L @ s.matrix, np.eye(k), 1e-7)
    assert np.array_equal(L, L.T)
    assert close(s.J @ inverse, np.eye(k), 1e-7)
    assert close(s.J @ N, np.zeros_like(s.J), 1e-7)
    response = np.linalg.inv(s.M)
    assert close(N @ response @ N.T, N @ response, 1e-7)
    assert close(s.J @ s.qdd0 + s.JdotV, s.a0)


@pytest.mark.parametrize("make", [quadruped_problem, humanoid_problem, arm_problem])
def test_bias_force_is_what_holds_the_contacts_without_torques(make) -> None:
    n = len(make().velocities)
    s, _ = solved(make(), 3, torques=np.zeros(n))
    assert close(s.bias_force(), -s.inertia() @ s.a0, 1e-8)


class Constrained:
    """The constrained dynamics of Pinocchio, its points held in place."""

    def __init__(self, problem: Problem, inputs: dict) -> None:
        import pinocchio as pin
        from oracles.pinocchio_models import Peer

        peer = Peer(problem)
        self.pin, self.model, self.data, self.index = pin, peer.model, peer.data, peer.indices
        self.q, self.v, self.torques = peer.state(inputs)
        self.frames = [self.model.getFrameId(f"contact {c.name}") for c in problem.contacts]
        self.contacts = pin.StdVec_RigidConstraintModel()
        self.datas = pin.StdVec_RigidConstraintData()
        for number in self.frames:
            frame = self.model.frames[number]
            self.contacts.append(
                pin.RigidConstraintModel(
                    pin.ContactType.CONTACT_3D, self.model, frame.parentJoint, frame.placement,
                    pin.LOCAL,
                )
            )  # fmt: skip
            self.datas.append(self.contacts[-1].createData())
        # Pinocchio 3 does not take the last one.
        given = (self.contacts, self.datas)[: 1 if pin.__version__ < "4" else 2]
        pin.initConstraintDynamics(self.model, self.data, *given)

    def accelerations(self, mu: float) -> np.ndarray:
        """Return the accelerations in our order, with a proximal weight."""
        settings = self.pin.ProximalSettings(1e-14, mu, 1 if mu else 30)
        return self.pin.constraintDynamics(
            self.model, self.data, self.q, self.v, self.torques, self.contacts, self.datas,
            settings,
        )[self.index]  # fmt: skip

    def rates_after(self, restitution: float) -> np.ndarray:
        """Return the velocities after an impact, in our order."""
        settings = self.pin.ProximalSettings(1e-14, 0.0, 30)
        return self.pin.impulseDynamics(
            self.model, self.data, self.q, self.v, self.contacts, self.datas, restitution, settings
        )[self.index]

    def twists(self) -> list:
        """Return the twist of each contact along its axes."""
        pin = self.pin
        pin.forwardKinematics(self.model, self.data, self.q, self.v)
        pin.updateFramePlacements(self.model, self.data)
        return [pin.getFrameVelocity(self.model, self.data, k, pin.LOCAL) for k in self.frames]


@pytest.mark.parametrize("mu", [0.0, 1e-2])
@pytest.mark.parametrize("seed", range(3))
def test_constrained_dynamics_against_pinocchio(mu, seed) -> None:
    problem = quadruped_problem()
    s, inputs = solved(problem, seed)
    theirs = Constrained(problem, inputs)
    expected, twists = theirs.accelerations(mu), theirs.twists()
    # What Pinocchio holds in place is the material point: ω × v comes on top, for which our row's
    # derivative is to make up.
    turning = np.concatenate([np.cross(twist.angular, twist.linear) for twist in twists])
    assert close(s.J @ inputs["rates"], np.concatenate([twist.linear for twist in twists]))
    f = s.forces(-turning, regularization=mu)
    assert close(s.accelerations(f), expected, 1e-8)


@pytest.mark.parametrize("restitution", [0.0, 0.4])
def test_impacts_against_pinocchio(restitution) -> None:
    problem = quadruped_problem()
    s, inputs = solved(problem, 1)
    after = Constrained(problem, inputs).rates_after(restitution)
    found = s.impact(inputs["rates"], restitution)
    assert close(inputs["rates"] + found.rates_change, after, 1e-8)
    assert close(s.J @ (inputs["rates"] + found.rates_change), -restitution * found.velocity, 1e-8)
    assert close(s.M @ found.rates_change, found.torque_impulse, 1e-8)


def test_redundant_points_share_what_is_needed() -> None:
    """Four points on each sole: 24 rows of rank 12; the whole is that of two surfaces."""
    robot = Robot.from_urdf(robots.talos())
    points = [*flat_foot(4, "left_sole_link"), *flat_foot(4, "right_sole_link")]
    redundant, inputs = solved(Problem(robot, points, outputs=OUTPUTS), 2)
    whole = solver_on_floats(humanoid_problem()).solve(**inputs)
    # Surfaces that keep their twist, and the points on them.
    f, expected = redundant.forces(), whole.forces()
    assert close(redundant.accelerations(f), whole.accelerations(expected), 1e-7)
    assert close(redundant.matrix @ f + redundant.a0, np.zeros(24), 1e-6)
    L = redundant.inertia()
    assert np.linalg.matrix_rank(L, tol=1e-8 * np.linalg.norm(L)) == 12
    assert close(redundant.matrix @ L @ redundant.matrix, redundant.matrix, 1e-8)
    with pytest.raises(NumericalError, match="contradict each other"):
        redundant.forces(np.arange(24.0))
    assert np.isfinite(redundant.forces(np.arange(24.0), regularization=1e-3)).all()


def ur5(turned: int, angle: float) -> tuple[Problem, np.ndarray]:
    """Return the arm with one joint at an angle, in a posture that is regular but for that."""
    robot = Robot.from_urdf(robots.example("ur_description/urdf/ur5_robot.urdf"), base="fixed")
    q = np.array([0.3, -1.0, 1.2, -0.5, 0.8, 0.2])
    q[turned] = angle
    return Problem(robot, [Contact("tool", "ee_link", "surface")], outputs=OUTPUTS), q


def shoulder(delta: float) -> tuple[Problem, np.ndarray]:
    """Return the arm with its wrist above the first axis, but for an angle."""
    return ur5(1, singular_shoulder() + delta)


@cache
def singular_shoulder() -> float:
    """Return the angle at which det J of the arm changes its sign."""
    problem, _ = ur5(1, 0.0)
    solver = solver_on_floats(Problem(problem.robot, problem.contacts, outputs=["J"]))

    def determinant(angle: float) -> float:
        J = solver.solve(ur5(1, angle)[1]).J
        assert J is not None
        return float(np.linalg.det(J))

    angles = np.linspace(-3.0, 0.0, 16)
    signs = np.sign([determinant(angle) for angle in angles])
    (k, *_) = np.flatnonzero(signs[1:] != signs[:-1])
    return float(brentq(determinant, angles[k], angles[k + 1], xtol=1e-15))


def stretched(delta: float) -> tuple[Problem, np.ndarray]:
    """Return the Panda with its elbow and wrist all but stretched."""
    problem = arm_problem()
    q = problem.robot.neutral() + 0.3
    q[1:7] = [0.0, 0.0, -delta, 0.0, delta, 0.0]
    return problem, q


def straight_knees(delta: float) -> tuple[Problem, np.ndarray]:
    """Return a humanoid that stands on two feet side by side, its knees all but stretched."""
    problem = humanoid_problem()
    q = problem.robot.neutral()
    for name in ("leg_left_4_joint", "leg_right_4_joint"):
        q[problem.robot.joint_names.index(name)] = delta
    return problem, q


SINGULAR = {
    "UR5, wrist": lambda delta: ur5(4, delta),
    "UR5, elbow": lambda delta: ur5(2, delta),
    "UR5, shoulder": shoulder,
    "Panda, elbow and wrist": stretched,
    "Talos, two feet": straight_knees,
}
ANGLES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6)


@pytest.mark.parametrize("posture", SINGULAR)
@pytest.mark.parametrize("damping", but_slow([1e-3, 1e-2], 1e-2))
def test_selective_damping_bounds_torques_near_singular_postures(posture, damping) -> None:
    """There Λ without it grows without bound; strong directions are as without it."""
    free, bounded = [], []
    for angle in ANGLES:
        problem, q = SINGULAR[posture](angle)
        alone = Problem(problem.robot, problem.contacts, outputs=["J"])
        s = solver_on_floats(alone).solve(q)
        ones, L = np.ones(len(s.matrix)), s.inertia(damping)
        bounded.append(np.linalg.norm(s.J.T @ L @ ones))
        free.append(np.linalg.norm(s.J.T @ s.inertia() @ ones))
        scales = s.scales()
        eigenvalues, V = np.linalg.eigh(s.matrix * np.outer(scales, scales))
        is_strong = eigenvalues > damping * eigenvalues[-1]
        strong = V[:, is_strong]
        expected = strong / eigenvalues[is_strong]
        assert close((L / np.outer(scales, scales)) @ strong, expected, 1e-8)
    assert max(bounded) < 2.0 * bounded[0]
    # A floating base gives way: its G has no direction without motion.
    assert (max(free) > 5.0 * max(bounded)) == (problem.robot.base == "fixed")


def ur10(angle: float) -> Solution:
    robot = Robot.from_urdf(robots.example("ur_description/urdf/ur10_robot.urdf"), base="fixed")
    q = np.array([0.3, -1.0, 1.2, -0.5, angle, 0.2])
    problem = Problem(robot, [Contact("tool", "ee_link", "surface")], outputs=["J"])
    return solver_on_floats(problem).solve(q)


def test_without_damping_lambda_grows_near_a_singular_posture() -> None:
    """No direction is left out: the wrist's was, below some 1e-4 rad."""
    sizes, ones = [], np.ones(6)
    for angle in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6):
        s = ur10(angle)
        sizes.append(np.linalg.norm(s.J.T @ s.inertia() @ ones))
        expected = np.linalg.norm(s.J.T @ np.linalg.solve(s.matrix, ones))
        # An eigenvalue of 1e-10 of the largest is known to some 1e-6 of itself.
        assert sizes[-1] == pytest.approx(expected, rel=1e-4 if angle > 1e-5 else 1.0)
    assert all(5.0 < b / a < 15.0 for a, b in zip(sizes[:3], sizes[1:4], strict=True))
    # Where the eigenvalue is rounding alone, its inverse is large, and no error or silence.
    singular = ur10(0.0)
    assert singular.structural_rank() == 6
    L, regular = singular.inertia(), ur10(0.5).inertia()
    assert np.isfinite(L).all() and np.linalg.norm(L) > 1e6 * np.linalg.norm(regular)


def test_only_the_structure_of_contacts_leaves_directions_out() -> None:
    """Three points of a tool near the singular wrist: six of nine directions are its own."""
    robot = Robot.from_urdf(robots.example("ur_description/urdf/ur10_robot.urdf"), base="fixed")
    places = ((0.1, 0, 0), (0, 0.1, 0), (0, 0, 0.1))
    points = [Contact(f"p{k}", "ee_link", placement=Transform(translation=np.array(xyz)))
              for k, xyz in enumerate(places)]  # fmt: skip
    solver = solver_on_floats(Problem(robot, points, outputs=["J"]))
    whole = solver_on_floats(Problem(robot, [Contact("t", "ee_link", "surface")], outputs=["J"]))
    for angle in (0.5, 1e-3, 1e-4):
        q = np.array([0.3, -1.0, 1.2, -0.5, angle, 0.2])
        s, of_whole = solver.solve(q), whole.solve(q)
        assert s.structural_rank() == 6 and of_whole.structural_rank() == 6
        assert solver.solve(q, active=["p1"]).structural_rank() == 3
        # Of points with one wrench together, and of that wrench: the same torques.
        wrench = np.array([1.0, -2.0, 0.5, 0.1, 0.3, -0.2])
        maps = np.vstack([np.hstack([np.eye(3), -skew(np.array(xyz))]) for xyz in places])
        held = s.J.T @ s.inertia() @ maps @ wrench
        expected = of_whole.J.T @ of_whole.inertia() @ wrench
        assert close(held, expected, 1e-4)


def test_the_structural_rank_of_closed_robots() -> None:
    robot = four_bar()
    frame = list(robot.frames)[-1]
    solver = DelassusSolver(Problem(robot, [Contact("c", frame, "surface")], outputs=["J"]))
    s = solver.solve(Closure(robot).reference)
    assert s.structural_rank() == 1 == np.linalg.matrix_rank(s.J, tol=1e-9)
    assert close(s.matrix @ s.inertia() @ s.matrix, s.matrix, 1e-9)
    assert s.copy().structural_rank() == 1
    # Made by hand: nothing tells.
    alone = Solution(np.eye(3), Status.OK, ("a",), (0, 3), "mine", 0.0)
    assert alone.structural_rank() == 3 and close(alone.inertia(), np.eye(3))


def test_four_points_on_a_foot_are_inverted_in_their_six_directions() -> None:
    robot = Robot.from_urdf(robots.talos())
    solver = solver_on_floats(Problem(robot, flat_foot(4, "left_sole_link")))
    for damping in (1e-3, 1e-2):
        for seed in range(5):
            s = solver.solve(random_inputs(solver.problem, seed)["q"])
            G, plain, damped = s.matrix, s.inertia(), s.inertia(damping)
            assert np.linalg.matrix_rank(G, tol=1e-9 * np.linalg.norm(G)) == 6
            assert close(G @ plain @ G, G, 1e-8)
            assert np.linalg.eigvalsh(damped)[-1] <= 1.01 / (damping * np.linalg.norm(G, 2))


def test_a_certificate_needs_no_eigenvalues_and_never_lies() -> None:
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(500):
        V = np.linalg.qr(rng.normal(size=(12, 12)))[0]
        eigenvalues = 10.0 ** -rng.uniform(0, 6, 12)
        G = (V * eigenvalues) @ V.T
        certain = certified_factor((G + G.T) / 2, 1e-4) is not None
        hits += certain
        if certain:
            assert eigenvalues.min() >= 1e-4 * eigenvalues.max()
    assert hits > 5
    solver = solver_on_floats(quadruped_problem(()))
    for seed in range(50):
        G = solver.solve(random_inputs(solver.problem, seed)["q"]).matrix
        found = inertia(G, np.ones(12), 1e-4)
        assert close(found @ G, np.eye(12), 1e-8)


def test_effective_mass_of_free_and_of_locked_joints() -> None:
    problem = quadruped_problem()
    s, inputs = solved(problem, 4)
    d = np.array([0.0, 0.0, 2.0])
    free = s.effective_mass("LF_FOOT", d)
    assert free == pytest.approx(1.0 / s.matrix[2, 2])
    whole = s.effective_mass("LF_FOOT", d, locked=True)
    # The same of a body that has the inertia of all links as they are.
    body = s.J[:3, :6] @ np.linalg.solve(s.M[:6, :6], s.J[:3, :6].T)
    assert whole == pytest.approx(1.0 / body[2, 2], rel=1e-9)
    assert free < whole < s.M[0, 0] * (1 + 1e-9)


def test_without_contacts_there_is_nothing() -> None:
    problem = quadruped_problem()
    inputs = random_inputs(problem, 0)
    s = solver_on_floats(problem).solve(**inputs, active=())
    assert s.inertia().shape == (0, 0) and s.forces().shape == (0,)
    assert np.array_equal(s.null_space(), np.eye(18))
    assert np.array_equal(s.accelerations([]), s.qdd0)


@pytest.mark.parametrize("active", [robots.FEET, ("LH_FOOT",), ("RF_FOOT", "LF_FOOT"), ()])
@pytest.mark.parametrize(
    ("make", "solver_of"),
    [(quadruped_problem, DelassusSolver), (humanoid_problem, solver_on_floats)],
)
def test_constrained_dynamics_in_machine_code(make, solver_of, active) -> None:
    problem = make()
    names = problem.contacts.names
    active = tuple(names[k] for k, foot in enumerate(robots.FEET[: len(names)]) if foot in active)
    solver = solver_of(problem)
    bound = solver.bind()
    bound.activate(active)
    k = bound.solution.row_offsets[-1]
    rng = np.random.default_rng(0)
    for seed in range(5):
        inputs = random_inputs(problem, seed)
        feed(bound, inputs)
        bound.solve()
        s = solver.solve(**inputs, active=active)
        for a, R in ((0.0, 0.0), (rng.normal(size=k), 0.0), (1.0, rng.uniform(0, 0.1, k))):
            found = bound.constrained_dynamics(a, R)
            assert found.status.name == "OK"
            assert close(found.forces, s.forces(a, R), 1e-9)
            assert close(found.accelerations, s.accelerations(s.forces(a, R)), 1e-9)
    again = bound.constrained_dynamics()
    assert again is found and close(again.forces, s.forces(a, R), 1e-9)
    # With other contacts it begins anew.
    bound.activate(names[:1])
    bound.solve()
    assert close(
        bound.constrained_dynamics().forces,
        solver.solve(**inputs, active=names[:1]).forces(),
        1e-9,
    )


def test_constrained_dynamics_as_python_and_as_machine_code() -> None:
    """One source: the outcome is the same, and numbers differ by rounding."""
    rng = np.random.default_rng(3)
    k, n = 5, 8
    compiled = _constrained_code().calls["constrained_dynamics"]
    for rows, factor, expected in ((k, 1.0, SOLVED), (2, 1.0, REDUNDANT), (k, 1e300, OVERFLOWED)):
        J = rng.normal(size=(k, rows)) @ rng.normal(size=(rows, n))
        known = [J @ J.T / factor, np.zeros(k), factor * rng.normal(size=k), rng.normal(size=k),
                 rng.normal(size=(n, k)), rng.normal(size=n)]  # fmt: skip
        found = []
        for is_compiled in (True, False):
            results = [np.zeros((k, k)), np.zeros(k), np.zeros(n)]
            binding = np.array([k, n, *(block.ctypes.data for block in (*known, *results))])
            if is_compiled:
                outcome = compiled(binding.ctypes.data)
            else:
                with np.errstate(all="ignore"):
                    outcome = constrained_dynamics.constrained_dynamics(binding)
            found.append((outcome, results))
        assert found[0][0] == found[1][0] == expected
        if expected == SOLVED:
            for ours, python in zip(found[0][1], found[1][1], strict=True):
                np.testing.assert_allclose(ours, python, rtol=1e-10, atol=1e-13)
            f, G, free = found[0][1][1], known[0], known[5]
            np.testing.assert_allclose(G @ f, known[2] - known[3], rtol=1e-9, atol=1e-11)
            np.testing.assert_allclose(found[0][1][2], free + known[4] @ f, rtol=1e-12)


def test_a_bound_solver_with_redundant_contacts_and_without_a_matrix() -> None:
    robot = Robot.from_urdf(robots.talos())
    problem = Problem(robot, flat_foot(4, "left_sole_link"), outputs=OUTPUTS)
    solver, inputs = solver_on_floats(problem), random_inputs(problem, 2)
    bound = solver.bind()
    bound.solve()
    found = bound.constrained_dynamics()
    assert found.status.name == "NOT_FINITE" and np.isnan(found.forces).all()
    feed(bound, inputs)
    bound.solve()
    found = bound.constrained_dynamics()
    s = solver.solve(**inputs)
    assert found.status.name == "OK" and close(found.forces, s.forces())
    found = bound.constrained_dynamics(np.arange(12.0))
    assert found.status.name == "NOT_POSITIVE_DEFINITE" and np.isnan(found.accelerations).all()
    assert bound.constrained_dynamics(0.0).status.name == "OK"
    with pytest.raises(InputError, match=r"acceleration has shape \(3,\), expected \(12,\)"):
        bound.constrained_dynamics(np.zeros(3))
    for R in (-1.0, np.nan, np.inf):
        with pytest.raises(InputError, match=f"regularization is {R} in a row; expected 0 or mo"):
            bound.constrained_dynamics(regularization=R)
    lacking = solver_on_floats(quadruped_problem(("a0",))).bind()
    with pytest.raises(InputError, match="this needs the output 'qdd0'"):
        lacking.constrained_dynamics()
