"""Joints that are held, and positions by name: the same matrix as Pinocchio's reduced model."""

from __future__ import annotations

import numpy as np
import pytest
import robots
from on_floats import matrix_at
from oracles import relative
from oracles.pinocchio_models import of_pinocchio
from urdf_text import joint, link, robot_xml

from delassus import Contact, Problem, Robot, algorithms
from delassus.compiler.ir.trace import trace
from delassus.errors import RobotError
from delassus.model import WORLD, Coupling
from delassus.testing import SIMPLE, random_problem

FEET = ("left_sole_link", "right_sole_link")


def test_talos_with_locked_arms_is_pinocchios_reduced_model() -> None:
    import pinocchio as pin
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
    G = matrix_at(locked, FEET, locked.q(legs))

    model = pin.buildModelFromUrdf(str(robots.talos()), pin.JointModelFreeFlyer())
    q = pin.neutral(model)
    for name, value in arms.items():
        q[model.joints[model.getJointId(name)].idx_q] = value
    reduced = pin.buildReducedModel(model, [model.getJointId(name) for name in arms], q)
    assert relative(G, of_pinocchio(reduced, list(FEET), legs)) < 1e-11
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
    expected = matrix_at(heavy, frames, heavy.q({**moving, **held}))
    G = matrix_at(locked, frames, locked.q(moving))
    assert relative(G, expected) < 1e-9


def test_joints_coupled_to_locked_ones_locked() -> None:
    """Two gears in a row: the third joint follows the first by way of the second."""
    robot = random_problem(1, SIMPLE).robot
    first, second, third = [j.name for j in robot.joints if j.kind.nq == 1][:3]
    geared = robot.with_constraints([
        Coupling("gear", ((third, 1.0), (second, -2.0))),
        Coupling("belt", ((second, 1.0), (first, -0.5)), -0.1),
    ])  # fmt: skip
    locked = geared.lock({first: 0.7})
    assert not locked.couplings and {first, second, third}.isdisjoint(locked.joint_names)
    expected = robot.lock({first: 0.7, second: 0.45, third: 0.9})
    frame = next(name for name, each in locked.frames.items() if each.body != WORLD)
    q = np.random.default_rng(0).uniform(-1, 1, locked.nq)
    assert relative(matrix_at(locked, [frame], q), matrix_at(expected, [frame], q)) < 1e-12


@pytest.mark.parametrize(
    ("lock", "held"),
    [
        ({"*_KFE": -1.0}, {"LF_KFE": -1.0, "RF_KFE": -1.0, "LH_KFE": -1.0, "RH_KFE": -1.0}),
        ({"[LR]F_HAA": 0.1, "LF_HAA": 0.2}, {"LF_HAA": 0.2, "RF_HAA": 0.1}),
    ],
)
def test_a_pattern_locks_all_joints_that_fit(lock: dict, held: dict) -> None:
    robot = Robot.from_urdf(robots.quadruped())
    expected = robot.lock(held).to_bytes()
    assert robot.lock(lock).to_bytes() == expected
    assert Robot.from_urdf(robots.quadruped(), lock=lock).to_bytes() == expected
    assert not robot.lock({"*": -0.4}).joint_names
    with pytest.raises(RobotError, match=r"lock: unknown joint '\*_knee'.*LF_HAA"):
        robot.lock({"*_knee": 0.0})


def test_a_robot_is_judged_with_its_joints_locked() -> None:
    """Fingers without inertia, a mimic of no joint, a statement that nothing determines."""
    inside = '<axis xyz="0 0 1"/>{}'
    text = robot_xml(
        link("palm"), link("tip", ""), link("thumb"), link("tool"),
        joint("finger", "palm", "tip"),
        joint("thumb", "palm", "thumb", inside=inside.format('<mimic joint="lost"/>')),
        joint("tool", "palm", "tool").replace("name=", 'independent="false" name=', 1),
    )  # fmt: skip
    lock: dict[str, float] = {}
    for name, words in (
        ("thumb", "'thumb': <mimic>: unknown joint 'lost'.* or lock it: lock={'thumb': 0.0}, on "),
        ("tool", "'tool' is independent=\"false\", but no loop"),
        ("finger", "'tip': no inertia .* or lock the joint: .* --lock finger=0"),
    ):
        with pytest.raises(RobotError, match=words):
            Robot.from_urdf(text, lock=lock)
        lock[name] = 0.1
    robot = Robot.from_urdf(text, lock=lock, armature={"thumb": 0.1})
    assert robot.joint_names == () and robot.frames.keys() == {"palm", "tip", "thumb", "tool"}
    with pytest.raises(RobotError, match="lock: unknown joint 'finger_1'"):
        Robot.from_urdf(text, lock={"finger_1": 0.0})


def test_romeo_with_locked_hands_is_pinocchios_reduced_model() -> None:
    import pinocchio as pin
    file = robots.example("romeo_description/urdf/romeo.urdf")
    with pytest.raises(RobotError, match=r"moves no inertia; .* --lock LHand=0"):
        Robot.from_urdf(file, "fixed")
    robot = Robot.from_urdf(file, "fixed", lock={"?Hand": 0.0})
    model = pin.buildModelFromUrdf(str(file))
    held = [i for i, name in enumerate(model.names) if i and name not in robot.joint_names]
    assert len(held) == 24
    reduced = pin.buildReducedModel(model, held, pin.neutral(model))
    values = np.random.default_rng(2).uniform(-1, 1, robot.nq)
    positions = dict(zip(robot.joint_names, values, strict=True))
    frames = ["l_wrist", "r_sole"]
    found = matrix_at(robot, frames, robot.q(positions))
    assert relative(found, of_pinocchio(reduced, frames, positions)) < 1e-11


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
    G, expected = matrix_at(leg, ["RF_FOOT"], own), matrix_at(robot, ["RF_FOOT"], q)
    assert relative(G, expected) < 1e-12
    with pytest.raises(RobotError, match="subtree: unknown joint 'leg'"):
        robot.subtree("leg")
    with pytest.raises(RobotError, match="subtree: the joint is None; expected text"):
        robot.subtree(None)  # type: ignore[arg-type]
    tied = robot.with_constraints([Coupling("c", (("RF_KFE", 1.0), ("LF_KFE", -1.0)))])
    with pytest.raises(RobotError, match="'c' is between what joint 'RF_HAA' carries and the"):
        tied.subtree("RF_HAA")
