"""Moving contacts: the right matrix from every algorithm, and what it costs."""

from __future__ import annotations

import numpy as np
import pytest
import robots
from cluster_robots import kkt
from cluster_robots import random_problem as random_closed_problem
from moving import LEGS, definition, feet, flat, jacobian
from on_floats import solver_on_floats
from rigid_body import mass_matrix

from delassus_ros import Contact, DelassusSolver, Problem, Robot, Transform, algorithms
from delassus_ros.algorithms import TracedAlgorithm
from delassus_ros.algorithms.registry import evaluate
from delassus_ros.compiler.build import checked_positions
from delassus_ros.compiler.ir.trace import trace
from delassus_ros.compiler.passes.limbs import limb_groups
from delassus_ros.compiler.passes.vectorize import vectorized
from delassus_ros.samples import random_inputs
from delassus_ros.solver.inputs import PLACEMENTS
from delassus_ros.testing import ALL, SIMPLE, random_problem
from delassus_ros.testing.conformance import fixed_there, placements_of, relative_error
from delassus_ros.testing.random_trees import set_moving

TOLERANCE = 1e-10
TRACED = [n for n in algorithms.names() if isinstance(algorithms.get(n), TracedAlgorithm)]


@pytest.mark.parametrize("name", TRACED)
def test_random_trees_on_floats(name: str) -> None:
    """Against the definition in numpy; fewer where the algorithm searches before it computes."""
    algorithm = algorithms.get(name)
    count = {"auto": 6, "elimination": 2}.get(name, 10)
    worst = (0.0, "")
    for seed in range(count):
        for axes in ("contact", "world"):
            kinds = ALL if seed % 3 == 0 else SIMPLE
            problem = random_problem(seed, kinds, axes, moving=True)
            x = random_inputs(problem, seed)
            G = np.array(algorithm.evaluate(problem, flat(x))["G"], dtype=float)
            error = relative_error(problem, G, definition(problem, x))
            worst = max(worst, (error, f"seed {seed}, {axes} axes"))
    assert worst[0] < TOLERANCE, worst


@pytest.mark.parametrize("axes", [pytest.param("contact", marks=pytest.mark.slow), "world"])
@pytest.mark.parametrize("name", algorithms.names())
def test_compiled_random_trees(name: str, axes: str) -> None:
    """With all of J and M⁻¹Jᵀ where the algorithm has them."""
    back_end = name not in TRACED
    problem = random_problem(15, SIMPLE, axes, largest=8, moving=True)
    outputs = {"G"} if back_end else {"G", "J", "MinvJT"}
    problem = Problem(problem.robot, problem.contacts, axes, outputs)
    x = random_inputs(problem, 1)
    solution = DelassusSolver(problem, name).solve(
        x["q"], base_orientation=x.get("base_orientation"), **placements_of(problem, x)
    )
    assert relative_error(problem, solution.matrix, definition(problem, x)) < TOLERANCE
    if not back_end:
        size = np.linalg.norm(solution.matrix)
        assert np.linalg.norm(solution.J @ solution.MinvJT - solution.matrix) < TOLERANCE * size


@pytest.mark.parametrize("name", ["auto", "efpa", "pv_osimr", "ltl"])
def test_random_closed_robots(name: str) -> None:
    """Gears, belts and differentials, against the dense equations of contacts fixed there."""
    algorithm = algorithms.get(name)
    for seed in range(5 if name == "auto" else 20):
        closed = random_closed_problem(seed)
        contacts = set_moving(np.random.default_rng(seed), closed.contacts)
        problem = Problem(closed.robot, contacts, closed.axes)
        x = random_inputs(problem, seed)
        G = np.array(algorithm.evaluate(problem, flat(x))["G"], dtype=float)
        there = {port: values for port, values in x.items() if port not in PLACEMENTS}
        expected = kkt(fixed_there(problem, x), there)
        assert np.linalg.norm(G - expected) < 1e-9 * np.linalg.norm(expected), seed


def test_j_and_the_response_of_random_trees() -> None:
    for seed in range(30):
        for axes in ("contact", "world"):
            tree = random_problem(seed, SIMPLE, axes, moving=True)
            problem = Problem(tree.robot, tree.contacts, axes, {"J", "MinvJT"})
            x = random_inputs(problem, seed)
            out = evaluate(problem, algorithms.get("pv_osimr"), flat(x))
            J, W = (np.array(out[name], dtype=float) for name in ("J", "MinvJT"))
            expected = jacobian(problem, x)
            M = mass_matrix(problem.robot, x["q"])
            if problem.robot.base == "floating":
                # Outputs have the base's twist linear first.
                order = [3, 4, 5, 0, 1, 2, *range(6, problem.robot.nv)]
                expected, M = expected[:, order], M[np.ix_(order, order)]
            assert np.linalg.norm(J - expected) < TOLERANCE * np.linalg.norm(expected), seed
            assert np.linalg.norm(M @ W - J.T) < 1e-9 * np.linalg.norm(J), seed


@pytest.mark.needs("mujoco")
@pytest.mark.parametrize("kind", ["point", "surface"])
@pytest.mark.parametrize("moving", ["position", "pose"])
def test_the_quadruped_agrees_with_mujoco_and_pinocchio(moving: str, kind: str) -> None:
    problem = feet(moving=moving, kind=kind)
    solver = solver_on_floats(problem)
    for seed in range(3):
        x = random_inputs(problem, seed)
        G = solver.solve(x["q"], **placements_of(problem, x)).matrix
        there = fixed_there(problem, x)
        if "pinocchio" in algorithms.names():
            expected = DelassusSolver(there, "pinocchio").solve(x["q"]).matrix
            assert relative_error(problem, G, expected) < TOLERANCE
    from mujoco_oracle import delassus

    assert relative_error(problem, G, delassus(there, x["q"])) < TOLERANCE


def test_rolling_feet_follow_mujoco_s_own_contacts() -> None:
    """One kernel for all of MuJoCo's contact points and axes while the robot sways."""
    import mujoco

    from delassus_ros.sim.quadruped import stepping_quadruped

    model = stepping_quadruped()._model
    model.opt.solver = mujoco.mjtSolver.mjSOL_PGS
    model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    data = mujoco.MjData(model)
    data.qpos[7:] = data.ctrl[:] = (0.0, 0.7, -1.4) * 4
    data.qpos[2] = 0.5
    for _ in range(2000):  # drop it on its feet and let it settle
        mujoco.mj_step(model, data)
    robot = Robot.from_urdf(robots.quadruped())
    solvers = {
        axes: DelassusSolver(
            Problem(robot, [Contact(leg, f"{leg}_FOOT", "point", moving="pose") for leg in LEGS],
                    axes)
        )
        for axes in ("contact", "world")
    }  # fmt: skip
    seen = []
    for step in range(5):
        data.ctrl[:] = np.array((0.0, 0.7, -1.4) * 4) + 0.03 * np.sin(2.0 * step + np.arange(12))
        for _ in range(100):
            mujoco.mj_step(model, data)
        mujoco.mj_forward(model, data)
        positions, turns, rows, frames = {}, {}, {}, {}
        for k in range(data.ncon):
            found = data.contact[k]
            body = max(model.geom_bodyid[found.geom1], model.geom_bodyid[found.geom2])
            leg = model.body(body).name.partition("_")[0]
            # Rows of contact.frame are the contact's axes in the world.
            frames[leg] = found.frame.reshape(3, 3)
            foot = model.body(f"{leg}_FOOT").id
            world = Transform(data.xmat[foot].reshape(3, 3), data.xpos[foot])
            place = world.inverse() @ Transform(frames[leg].T, found.pos)
            positions[leg], turns[leg] = place.translation, place.quaternion()
            rows[leg] = list(range(found.efc_address, found.efc_address + 3))
        active = tuple(leg for leg in LEGS if leg in rows)
        assert len(active) >= 2
        seen.append(positions[active[0]])
        q = np.array([data.joint(name).qpos[0] for name in robot.joint_names])
        order = [row for leg in active for row in rows[leg]]
        full = data.efc_AR.reshape(data.nefc, data.nefc) - np.diag(data.efc_R)
        expected = full[np.ix_(order, order)]
        solution = solvers["contact"].solve(
            q, active, contact_positions=positions, contact_orientations=turns
        )
        size = np.linalg.norm(expected)
        assert np.linalg.norm(solution.matrix - expected) < TOLERANCE * size
        w, *xyz = data.qpos[3:7]
        world_axes = solvers["world"].solve(q, active, [*xyz, w], positions).matrix
        T = np.zeros((len(order), len(order)))
        for k, leg in enumerate(active):
            T[3 * k : 3 * k + 3, 3 * k : 3 * k + 3] = frames[leg]
        assert np.linalg.norm(T @ world_axes @ T.T - expected) < TOLERANCE * size
    assert np.ptp(seen, axis=0).max() > 1e-4, "the foot did not roll"


@pytest.mark.parametrize("axes", ["contact", "world"])
def test_error_against_50_digits_is_rounding(axes: str) -> None:
    import delassus_ros.testing.mpmath_numbers as reference
    problem = feet(axes, "pose", "surface")
    x = random_inputs(problem, 4)
    exact = {
        name: np.array(reference.evaluate(problem, algorithms.get(name), x)["G"])
        for name in ("dense", "pv_osimr")
    }
    difference = np.max(np.abs(exact["pv_osimr"] - exact["dense"]))
    # Two algorithms on 50 digits differ by what doubles round in the robot's constants.
    assert difference < 1e-11 * np.max(np.abs(exact["dense"]))
    expected = exact["dense"].astype(float)
    bound = solver_on_floats(problem).bind()
    for name, values in x.items():
        bound.inputs[name][...] = values
    error = relative_error(problem, bound.solve().matrix, expected)
    condition = float(np.linalg.cond(mass_matrix(problem.robot, x["q"])))
    assert error < 100 * 2.0**-53 * condition
    assert error < TOLERANCE


SLOW = pytest.param("elimination", marks=pytest.mark.slow)


@pytest.mark.parametrize("name", ["ltl", "kjr", "efpa", SLOW, "pv_osim", "pv_osimr"])
@pytest.mark.parametrize("generic", [False, True], ids=["specialised", "generic"])
def test_a_moving_contact_costs_its_own_rows_only(name: str, generic: bool) -> None:
    """Beside a contact that is fixed at no special place: the change of frame and a product."""

    def count(axes: str, moving: str, kind: str) -> int:
        problem = feet(axes, moving, kind)
        return trace(problem, algorithms.get(name), generic).operations.total

    for kind in ("point", "surface"):
        fixed = count("contact", "nothing", kind)
        # Per contact: R p + o (18), p × d of three axes (27), and what lay in a plane by design.
        assert count("contact", "position", kind) - fixed <= 4 * 80
        # Besides: the rotation of a quaternion (28), its product with the frame's (45), and rows
        # without a zero.
        assert count("contact", "pose", kind) - fixed <= 4 * 170
        # In world axes there are no contact axes to compute, so it may cost less.
        in_world = count("world", "nothing", kind)
        assert count("world", "position", kind) - in_world <= 4 * 18
        assert count("world", "pose", kind) - in_world <= 4 * 18


def test_a_moving_contact_along_its_frame_keeps_the_zeros_of_its_rows() -> None:
    robot = Robot.from_urdf(robots.quadruped())

    def count(moving: str) -> int:
        contacts = [Contact(leg, f"{leg}_FOOT", moving=moving) for leg in LEGS]
        return trace(Problem(robot, contacts), algorithms.get("pv_osimr")).operations.total

    assert count("position") - count("nothing") <= 4 * 20


@pytest.mark.parametrize(
    ("name", "specialised", "generic"),
    [
        ("ltl", 3532, 3510), ("kjr", 6726, 6818), ("efpa", 4119, 4119),
        ("pv_osim", 3147, 3147), ("pv_osimr", 3147, 3147),
    ],
)  # fmt: skip
def test_fixed_contacts_cost_what_they_did_before_there_were_moving_ones(
    name: str, specialised: int, generic: int
) -> None:
    robot = Robot.from_urdf(robots.quadruped())
    problem = Problem(robot, [Contact(leg, f"{leg}_FOOT") for leg in LEGS])
    algorithm = algorithms.get(name)
    assert trace(problem, algorithm).operations.total <= specialised
    assert trace(problem, algorithm, generic=True).operations.total <= generic


@pytest.mark.parametrize("axes", ["contact", "world"])
def test_limbs_with_moving_contacts_run_in_lanes(axes: str) -> None:
    problem = feet(axes, "pose")
    (group,) = limb_groups(problem)
    start = 12 if axes == "contact" else 16
    places = [{start + 3 * k, start + 3 * k + 2} for k in range(4)]
    assert all(any(place <= inputs for inputs in group.inputs) for place in places)
    if axes == "contact":
        assert sorted(len(inputs) for inputs in group.inputs) == [10] * 4
    program = vectorized(
        problem, trace(problem, algorithms.get("pv_osimr")), checked_positions(problem)
    )
    assert sum(i.kind == "mul" and i.width == 4 for i in program.instructions) > 200


def test_limbs_whose_contacts_move_differently_are_not_alike() -> None:
    robot = Robot.from_urdf(robots.quadruped())
    kinds = ("nothing", "position", "pose", "nothing")
    contacts = [Contact(leg, f"{leg}_FOOT", moving=m) for leg, m in zip(LEGS, kinds, strict=True)]
    groups = limb_groups(Problem(robot, contacts))
    assert max(len(group.inputs) for group in groups) == 2
