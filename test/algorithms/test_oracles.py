"""PV-OSIMr against what nobody here wrote: Pinocchio, MuJoCo, and 50 digits of mpmath."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import robots

from delassus_ros import Contact, DelassusSolver, Problem, Robot, Transform, algorithms
from delassus_ros.samples import random_inputs
from delassus_ros.testing import random_problem
from delassus_ros.testing.conformance import relative_error, textbook

TOLERANCE = 1e-10
COMPILED_TREES = 6


@dataclass(frozen=True)
class Case:
    robot: Robot
    source: Path | str
    problem: Problem


def case(name: str) -> Case:
    source, base, kind, frames = {
        "quadruped": (
            robots.quadruped, "floating", "point", ("LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT"),
        ),
        "panda": (robots.panda, "fixed", "surface", ("panda_hand",)),
        "solo12": (
            robots.solo12, "floating", "point", ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"),
        ),
        "anymal": (
            robots.anymal, "floating", "point", ("LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT"),
        ),
        "talos": (
            robots.talos, "floating", "surface", ("left_sole_link", "right_sole_link"),
        ),
    }[name]  # fmt: skip
    path = source()
    robot = Robot.from_urdf(path, base=base)
    # Placements off the frames' origins, so that both blocks of the transform matter.
    placement = Transform.from_xyz_rpy((0.02, -0.01, 0.03), (0.1, -0.2, 0.3))
    contacts = [Contact(frame, frame, kind, placement) for frame in frames]
    return Case(robot, path, Problem(robot, contacts))


ROBOTS = ("quadruped", "panda", "solo12", "anymal", "talos")


def configurations(problem: Problem, count: int) -> list[np.ndarray]:
    return [random_inputs(problem, seed)["q"] for seed in range(count)]


@pytest.mark.parametrize("name", ROBOTS)
def test_agrees_with_pinocchio_reading_the_same_urdf(name):
    import pinocchio as pin
    this = case(name)
    text = this.source if isinstance(this.source, str) else this.source.read_text()
    root = [pin.JointModelFreeFlyer()] if this.robot.base == "floating" else []
    model = pin.buildModelFromXML(text, *root)
    data = model.createData()
    solver = DelassusSolver(this.problem)
    for q in configurations(this.problem, 5):
        pin_q = pin.neutral(model)
        for joint, value in zip(this.robot.joint_names, q, strict=True):
            index = model.getJointId(joint)
            start = model.idx_qs[index]
            pin_q[start : start + model.nqs[index]] = (
                [value] if model.nqs[index] == 1 else [np.cos(value), np.sin(value)]
            )
        upper = np.triu(pin.crba(model, data, pin_q))
        mass_matrix = upper + np.triu(upper, 1).T
        pin.computeJointJacobians(model, data, pin_q)
        rows = []
        for contact in this.problem.contacts:
            frame = model.frames[model.getFrameId(contact.frame)]
            pose = frame.placement * pin.SE3(
                np.array(contact.placement.rotation), np.array(contact.placement.translation)
            )
            joint_rows = pin.getJointJacobian(model, data, frame.parentJoint, pin.LOCAL)
            rows.append((pose.toActionMatrixInverse() @ joint_rows)[: contact.rows])
        J = np.vstack(rows)
        expected = J @ np.linalg.solve(mass_matrix, J.T)
        assert relative_error(this.problem, solver.solve(q).matrix, expected) < TOLERANCE


@pytest.mark.needs("mujoco")
@pytest.mark.parametrize("name", ROBOTS)
def test_agrees_with_mujoco(name):
    from mujoco_oracle import delassus

    this = case(name)
    solver = DelassusSolver(this.problem)
    for q in configurations(this.problem, 2):
        expected = delassus(this.problem, q)
        assert relative_error(this.problem, solver.solve(q).matrix, expected) < TOLERANCE


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("algorithm", [n for n in algorithms.names() if n != "dense"])
def test_agrees_with_the_definition(name, algorithm):
    this = case(name)
    solver = DelassusSolver(this.problem, algorithm)
    for q in configurations(this.problem, 2):
        expected = textbook(this.problem, {"q": q})
        assert relative_error(this.problem, solver.solve(q).matrix, expected) < TOLERANCE


def mass_matrix_condition(problem: Problem, q: np.ndarray) -> float:
    from rigid_body import mass_matrix

    return float(np.linalg.cond(mass_matrix(problem.robot, q)))


@pytest.mark.parametrize("name", ROBOTS)
def test_error_against_50_digits_is_rounding(name):
    """‖ΔG‖ / ‖G‖ <= c·u·cond(M): nothing but rounding, amplified by the problem itself."""
    import delassus_ros.testing.mpmath_numbers as reference
    this = case(name)
    solver = DelassusSolver(this.problem)
    q = configurations(this.problem, 1)[0]
    # The definition in the robot's own frames, not the algorithm under test.
    exact = reference.evaluate(this.problem, algorithms.get("dense"), {"q": q})["G"]
    expected = np.array([[float(value) for value in row] for row in exact])
    error = relative_error(this.problem, solver.solve(q).matrix, expected)
    unit_roundoff = 2.0**-53
    assert error < 100 * unit_roundoff * mass_matrix_condition(this.problem, q)
    assert error < TOLERANCE


@pytest.mark.needs("mujoco")
def test_random_trees_compiled():
    from mujoco_oracle import delassus

    for seed in range(COMPILED_TREES):
        problem = random_problem(seed)
        solver = DelassusSolver(problem)
        q = random_inputs(problem, seed)["q"]
        expected = delassus(problem, q)
        assert relative_error(problem, solver.solve(q).matrix, expected) < TOLERANCE, seed


def test_agrees_with_efc_AR_at_mujoco_s_own_contacts():
    """A robot standing in MuJoCo: its constraint-space inertia, at its points and axes."""
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
    mujoco.mj_forward(model, data)
    robot = Robot.from_urdf(robots.quadruped())
    assert data.ncon >= 3
    contacts, rows = [], []
    for k in range(data.ncon):
        found = data.contact[k]
        assert found.dim == 3
        body = max(model.geom_bodyid[found.geom1], model.geom_bodyid[found.geom2])
        world = Transform(data.xmat[body].reshape(3, 3), data.xpos[body])
        # Rows of contact.frame are the contact's axes in the world: normal, two tangents.
        at = Transform(found.frame.reshape(3, 3).T, found.pos)
        contacts.append(Contact(f"c{k}", model.body(body).name, "point", world.inverse() @ at))
        rows += range(found.efc_address, found.efc_address + 3)
    q = np.array([data.joint(name).qpos[0] for name in robot.joint_names])
    full = data.efc_AR.reshape(data.nefc, data.nefc) - np.diag(data.efc_R)
    problem = Problem(robot, contacts)
    G = DelassusSolver(problem).solve(q).matrix
    assert relative_error(problem, G, full[np.ix_(rows, rows)]) < TOLERANCE
