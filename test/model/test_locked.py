"""Joints that are held, and positions by name: the same matrix as Pinocchio's reduced model."""

from __future__ import annotations

import re

import numpy as np
import pytest
import robots
from cluster_robots import random_problem as random_geared
from on_floats import solver_on_floats
from pinocchio_motion import relative

from delassus_ros import Contact, Problem, Robot, algorithms
from delassus_ros.compiler.ir.trace import trace
from delassus_ros.errors import RobotError
from delassus_ros.model import WORLD, Coupling
from delassus_ros.testing import SIMPLE, random_problem

FEET = ("left_sole_link", "right_sole_link")


def matrix(robot: Robot, frames, q: np.ndarray) -> np.ndarray:
    problem = Problem(robot, [Contact(name, name, "surface") for name in frames])
    return solver_on_floats(problem, "ltl").solve(q).matrix


def test_talos_with_locked_arms_is_pinocchios_reduced_model() -> None:
    pin = pytest.importorskip("pinocchio")
    robot = Robot.from_urdf(robots.talos())
    rng = np.random.default_rng(0)
    arms = {
        name: rng.uniform(-1, 1)
        for name in robot.joint_names
        if "arm" in name or "gripper" in name or "head" in name
    }
    locked = robot.lock(arms)
    assert locked.nq == robot.nq - len(arms) and locked.frames.keys() == robot.frames.keys()
    legs = {name: rng.uniform(-1, 1) for name in locked.joint_names}
    G = matrix(locked, FEET, locked.q(legs))

    model = pin.buildModelFromUrdf(str(robots.talos()), pin.JointModelFreeFlyer())
    q = pin.neutral(model)
    for name, value in arms.items():
        q[model.joints[model.getJointId(name)].idx_q] = value
    reduced = pin.buildReducedModel(model, [model.getJointId(name) for name in arms], q)
    data, own = reduced.createData(), pin.neutral(reduced)
    for name, value in legs.items():
        own[reduced.joints[reduced.getJointId(name)].idx_q] = value
    pin.computeJointJacobians(reduced, data, own)
    pin.updateFramePlacements(reduced, data)
    J = np.vstack([
        pin.getFrameJacobian(reduced, data, reduced.getFrameId(name), pin.LOCAL) for name in FEET
    ])  # fmt: skip
    M = pin.crba(reduced, data, own)
    M = np.triu(M) + np.triu(M, 1).T
    assert relative(G, J @ np.linalg.solve(M, J.T)) < 1e-11
    # It compiles in proportion.
    counts = [
        trace(Problem(each, [Contact(f, f, "surface") for f in FEET]), algorithms.get("pv_osim"))
        .operations.total
        for each in (robot, locked)
    ]  # fmt: skip
    # With 19 of 32 joints, and all of those that contacts depend on.
    assert counts[1] < 0.75 * counts[0]


@pytest.mark.parametrize("seed", range(6))
def test_a_held_joint_is_one_of_infinite_armature(seed: int) -> None:
    """On random trees: the limit in which a joint's own inertia keeps it from moving."""
    problem = random_problem(seed, SIMPLE)
    robot = problem.robot
    rng = np.random.default_rng(seed)
    single = [j.name for j in robot.joints if j.kind.nq == 1]
    held = {name: rng.uniform(-1, 1) for name in single[::2]}
    locked = robot.lock(held)
    frames = [name for name, f in locked.frames.items() if f.body != WORLD][:2]
    moving = {name: rng.uniform(-1, 1) for name in locked.joint_names}
    heavy = robot.with_armature(dict.fromkeys(held, 1e12))
    expected = matrix(heavy, frames, heavy.q({**moving, **held}))
    G = matrix(locked, frames, locked.q(moving))
    assert relative(G, expected) < 1e-9


def test_couplings_go_on_with_what_still_moves() -> None:
    for seed in range(12):
        robot = random_geared(seed).robot
        for coupling in robot.couplings:
            names = [name for name, _ in coupling.ratios]
            if len(names) == 2:
                with pytest.raises(RobotError, match=f"leaves joint '{names[1]}' at .*as well"):
                    robot.lock({names[0]: 0.3})
                return
    pytest.fail("no robot with a coupling of two joints")


def test_a_coupling_of_three_keeps_its_other_two() -> None:
    robot = random_problem(1, SIMPLE).robot
    first, second, third = [j.name for j in robot.joints if j.kind.nq == 1][:3]
    geared = robot.with_constraints([Coupling("c", ((first, 1.0), (second, 2.0), (third, -1.0)))])
    (left,) = geared.lock({second: 0.25}).couplings
    assert left.ratios == ((first, 1.0), (third, -1.0)) and left.offset == 0.5
    with pytest.raises(RobotError, match="coupling 'c' is off by 1"):
        geared.lock({first: 0.5, second: 0.25, third: 0.0})
    assert not geared.lock({first: -0.5, second: 0.25, third: 0.0}).couplings


def test_positions_by_name_and_what_is_wrong_with_them() -> None:
    robot = Robot.from_urdf(robots.quadruped())
    q = robot.q({"LF_KFE": -1.4}, default=0.1)
    assert q[robot.joint_names.index("LF_KFE")] == -1.4 and q[0] == 0.1
    with pytest.raises(RobotError, match=r"unknown joint 'knee'.*in the order of q: LF_HAA, LF"):
        robot.q({"knee": 1.0})
    with pytest.raises(RobotError, match="default is 'a'; expected a number"):
        robot.q({}, default="a")  # type: ignore[arg-type]
    with pytest.raises(RobotError, match="default is None; expected a number"):
        robot.v({}, default=None)  # type: ignore[arg-type]
    with pytest.raises(RobotError, match="lock: unknown joint 'knee'"):
        robot.lock({"knee": 1.0})
    with pytest.raises(RobotError, match="lock: joint 'root' is root"):
        robot.lock({"root": 1.0})
    with pytest.raises(RobotError, match="position of joint 'LF_KFE' is nan"):
        robot.lock({"LF_KFE": float("nan")})


def test_what_a_coupling_advises_holds() -> None:
    robot = random_problem(1, SIMPLE).robot
    first, second = [j.name for j in robot.joints if j.kind.nq == 1][:2]
    ratio = 0.333333333
    geared = robot.with_constraints([Coupling("c", ((second, 1.0), (first, -ratio)), -0.1)])
    with pytest.raises(RobotError, match=f"leaves joint '{second}' at .*as well") as caught:
        geared.lock({first: 0.7})
    advised = re.search(r" at (\S+);", str(caught.value))
    assert advised is not None and float(advised[1]) == pytest.approx(0.7 * ratio + 0.1, abs=1e-15)
    assert not geared.lock({first: 0.7, second: float(advised[1])}).couplings
    with pytest.raises(RobotError, match="coupling 'c' is off by -0.1"):
        geared.lock({first: 0.7, second: 0.7 * ratio})


def test_stated_coordinates_that_are_held_are_none() -> None:
    robot = random_problem(1, SIMPLE).robot
    first, second = [j.name for j in robot.joints if j.kind.nq == 1][:2]
    stated = robot.with_constraints(independent=[first, second])
    assert stated.lock({first: 0.3}).independent == (second,)
    assert stated.subtree(second).independent == (second,)


def test_a_limb_alone_is_the_robot_with_its_trunk_held() -> None:
    robot = Robot.from_urdf(robots.quadruped(), "fixed")
    leg = robot.subtree("RF_HAA")
    assert leg.joint_names == ("RF_HAA", "RF_HFE", "RF_KFE")
    q = np.random.default_rng(0).uniform(-1, 1, 12)
    own = q[[robot.joint_names.index(name) for name in leg.joint_names]]
    G, expected = matrix(leg, ["RF_FOOT"], own), matrix(robot, ["RF_FOOT"], q)
    assert relative(G, expected) < 1e-12
    with pytest.raises(RobotError, match="subtree: unknown joint 'leg'"):
        robot.subtree("leg")
    with pytest.raises(RobotError, match="subtree: the joint is None; expected text"):
        robot.subtree(None)  # type: ignore[arg-type]
    tied = robot.with_constraints([Coupling("c", (("RF_KFE", 1.0), ("LF_KFE", -1.0)))])
    with pytest.raises(RobotError, match="'c' is between what joint 'RF_HAA' carries and the"):
        tied.subtree("RF_HAA")
