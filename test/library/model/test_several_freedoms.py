"""Ball, universal, helical and composite joints of Pinocchio and MuJoCo, in every output."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from on_floats import solver_on_floats
from oracles import relative
from oracles.other_velocities import Library, Mujoco, Pinocchio, expected

from delassus import Contact, DelassusSolver, Problem, Robot
from delassus.closure import Closure
from delassus.errors import NumericalError, RobotError
from delassus.model.chains import LEAST_DISTANCE, at_singular_angle, ball_joints
from delassus.model.constraints import Loop, LoopKind
from delassus.outputs import kernel_outputs

GRAVITY = np.array([0.4, -0.7, -9.7])


def assert_same_outputs(library: Library, frames: list[str], q, base=None) -> None:
    """Compare every output with the library's at random rates and torques."""
    robot = library.robot
    contacts = [Contact(f, f, "surface") for f in frames]
    axes = "contact" if base is None else "world"
    problem = Problem(robot, contacts, axes=axes, outputs=set(kernel_outputs()))
    rng = np.random.default_rng(0)
    n = len(problem.velocities)
    rates, torques = rng.uniform(-1, 1, n), rng.uniform(-1, 1, n)
    wanted = expected(library, problem, q, base, rates, torques, GRAVITY)
    turn = {} if base is None else {"base_orientation": base[3:]}
    solution = solver_on_floats(problem).solve(
        q, rates=rates, torques=torques, gravity=GRAVITY, check=True, **turn
    )
    found = {name: relative(solution.output(name), value) for name, value in wanted.items()}
    assert max(found.values()) < 1e-10, found


def placed(rng) -> object:
    return pin.SE3(pin.exp3(rng.uniform(-1, 1, 3)), rng.uniform(-0.3, 0.3, 3))


def unit(rng) -> np.ndarray:
    axis = rng.normal(size=3)
    return axis / np.linalg.norm(axis)


def composite(*joints) -> object:
    found = pin.JointModelComposite()
    for joint, placement in joints:
        found.addJoint(joint, placement)
    return found


def machine(root: str | None) -> object:
    """Return a tree with a joint of every kind, on a root of this kind."""
    rng = np.random.default_rng(7)
    model = pin.Model()

    def add(parent, joint, name) -> int:
        number = model.addJoint(parent, joint, placed(rng), name)
        lever, inertia = rng.uniform(-0.1, 0.1, 3), np.diag(rng.uniform(0.02, 0.03, 3))
        model.appendBodyToJoint(number, pin.Inertia(1.0, lever, inertia), pin.SE3.Identity())
        return number

    turn = {"zyx": pin.JointModelSphericalZYX, "ball": pin.JointModelSpherical}
    trunk = 0
    if root == "free":
        trunk = add(0, pin.JointModelFreeFlyer(), "trunk")
        model.jointPlacements[trunk].setIdentity()
    elif root is not None:
        parts = (pin.JointModelTranslation(), placed(rng)), (turn[root](), placed(rng))
        trunk = add(0, composite(*parts), "trunk")
        model.jointPlacements[trunk].setIdentity()
    first = unit(rng)
    second = np.cross(first, unit(rng))
    universal = pin.JointModelUniversal(first, second / np.linalg.norm(second))
    cross = add(trunk, universal, "cross")
    add(cross, pin.JointModelSpherical(), "hand")
    screw = add(trunk, pin.JointModelHelicalUnaligned(unit(rng), 0.2), "screw")
    add(screw, pin.JointModelSphericalZYX(), "wrist")
    stage = add(trunk, pin.JointModelTranslation(), "stage")
    several = composite(
        (pin.JointModelRevoluteUnaligned(unit(rng)), placed(rng)),
        (pin.JointModelSpherical(), placed(rng)),
        (pin.JointModelHX(0.1), placed(rng)),
        (pin.JointModelPrismaticUnaligned(unit(rng)), placed(rng)),
    )
    add(stage, several, "arm")
    for name in ("hand", "wrist", "arm"):
        number = model.getJointId(name)
        model.addFrame(pin.Frame(f"{name}_tip", number, placed(rng), pin.FrameType.OP_FRAME))
    return model


@pytest.mark.parametrize("root", [None, "free", "zyx", "ball"])
def test_every_output_of_every_joint_of_pinocchio(root: str | None) -> None:
    model = machine(root)
    robot = Robot.from_pinocchio(model)
    assert robot.base == ("fixed" if root is None else "floating")
    frames = ["hand_tip", "wrist_tip", "arm_tip"]
    rng = np.random.default_rng(3)
    free = {name: rng.uniform(-1, 1) for name in robot.joint_names if "_slide" not in name}
    q = robot.q(free)
    base = None if root is None else pin.SE3ToXYZQUAT(placed(rng))
    assert_same_outputs(Pinocchio(robot, model), frames, q, base)


class Tied(Pinocchio):
    """A model of which the frames ``tip`` and ``rod_end`` are at one point."""

    def constraints(self, x):
        tip, end = (self.jacobian(x, frame, "world")[:3] for frame in ("tip", "rod_end"))
        return tip - end


def rig(joint) -> object:
    """Return two links with a tip, on a rod whose other end is this joint on the ground."""
    model = pin.Model()

    def add(parent, joint, place, name, lever) -> int:
        number = model.addJoint(parent, joint, pin.SE3(np.eye(3), np.array(place)), name)
        inertia = pin.Inertia(1.0, np.array(lever), np.diag([0.02, 0.03, 0.025]))
        model.appendBodyToJoint(number, inertia, pin.SE3.Identity())
        return number

    first = add(0, pin.JointModelRY(), [0.0, 0.0, 0.0], "hip", [0.01, 0.02, -0.2])
    axis = np.array([0.1, 0.99, -0.05])
    second = pin.JointModelRevoluteUnaligned(axis / np.linalg.norm(axis))
    shin = add(first, second, [0.05, 0.0, -0.4], "knee", [0.0, 0.01, -0.1])
    rod = add(0, joint, [0.3, 0.1, 0.05], "rod", [-0.1, 0.0, -0.3])
    for name, body, place in (("tip", shin, [0.1, 0.02, -0.3]), ("rod_end", rod, None)):
        # The frames are at one point where all positions are zero.
        given = [0.05 + 0.1 - 0.3, 0.02 - 0.1, -0.4 - 0.3 - 0.05] if place is None else place
        pose = pin.SE3(pin.exp3(np.array([0.3, -0.2, 0.5])), np.array(given))
        model.addFrame(pin.Frame(name, body, pose, pin.FrameType.OP_FRAME))
    return model


@pytest.mark.parametrize("kind", ["ball", "zyx", "universal", "composite"])
def test_every_output_of_a_loop_of_pinocchio(kind: str) -> None:
    x, y, _ = np.eye(3)
    joint = {
        "ball": pin.JointModelSpherical(),
        "zyx": pin.JointModelSphericalZYX(),
        "universal": pin.JointModelUniversal(x, y),
        "composite": composite(
            (pin.JointModelRX(), pin.SE3.Identity()), (pin.JointModelRY(), pin.SE3.Identity())
        ),
    }[kind]
    model = rig(joint)
    tree = Robot.from_pinocchio(model)
    # Pinocchio's largest number is no limit.
    assert all(joint.lower == -np.inf and joint.upper == np.inf for joint in tree.joints)
    tip, end = tree.frames["tip"], tree.frames["rod_end"]
    loop = Loop("tie", LoopKind.POINT, tip.body, end.body, tip.placement, end.placement)
    robot = tree.replaced(loops=[loop])
    spin = {"ball": {"rod_Z": 0.3}, "zyx": {"rod_Z": 0.3}}.get(kind, {})
    closed = Closure(robot).solve({"hip": 0.15, **spin})
    assert closed.residual < 1e-11
    assert_same_outputs(Tied(robot, model), ["tip", "rod_end"], np.array(closed.q))


@pytest.mark.parametrize("root", [None, "zyx", "ball"])
def test_states_of_pinocchio_go_there_and_back(root: str | None) -> None:
    model = machine(root)
    robot = Robot.from_pinocchio(model)
    rng = np.random.default_rng(5)
    x = pin.integrate(model, pin.neutral(model), rng.uniform(-1, 1, model.nv))
    u = rng.uniform(-1, 1, model.nv)
    q, base = robot.q_from_pinocchio(model, x)
    back = robot.q_to_pinocchio(model, q, base)
    data, other = model.createData(), model.createData()
    pin.framesForwardKinematics(model, data, x)
    pin.framesForwardKinematics(model, other, back)
    for first, second in zip(data.oMf, other.oMf, strict=True):
        assert np.abs(first.homogeneous - second.homogeneous).max() < 1e-12
    v = robot.v_from_pinocchio(model, x, u)
    assert np.abs(robot.v_to_pinocchio(model, x, v) - u).max() < 1e-12


def test_names_of_the_parts() -> None:
    robot = Robot.from_pinocchio(machine(None))
    assert robot.joint_names == (
        "cross_1", "cross_2", "hand_X", "hand_Y", "hand_Z", "screw_slide", "screw", "wrist_Z",
        "wrist_Y", "wrist_X", "stage_PX", "stage_PY", "stage_PZ", "arm_1", "arm_2_X", "arm_2_Y",
        "arm_2_Z", "arm_3_slide", "arm_3", "arm_4",
    )  # fmt: skip
    q = robot.q({"screw": 0.5, "arm_3": -1.0})
    by_name = dict(zip(robot.joint_names, q, strict=True))
    assert by_name["screw_slide"] == pytest.approx(0.1)
    assert by_name["arm_3_slide"] == pytest.approx(-0.1)
    assert "screw" in Problem(robot, [Contact("c", "hand_tip")]).velocities


def test_armatures_of_single_freedoms_are_kept_those_of_balls_are_refused() -> None:
    model = pin.Model()
    j = model.addJoint(0, pin.JointModelUniversal(np.eye(3)[0], np.eye(3)[1]), pin.SE3(1), "u")
    k = model.addJoint(j, pin.JointModelSpherical(), pin.SE3(1), "b")
    for number in (j, k):
        model.appendBodyToJoint(number, pin.Inertia(1.0, np.zeros(3), np.eye(3)), pin.SE3(1))
    model.armature = np.array([0.1, 0.2, 0, 0, 0])
    joints = Robot.from_pinocchio(model).joints
    assert [joint.armature for joint in joints] == [0.1, 0.2, 0, 0, 0]
    model.armature = np.array([0.1, 0.2, 0, 0.3, 0])
    with pytest.raises(RobotError, match="'b' is a JointModelSpherical with armature .* to 0"):
        Robot.from_pinocchio(model)


def test_rates_at_a_right_angle_are_refused_in_words() -> None:
    model = machine(None)
    robot = Robot.from_pinocchio(model)
    q = robot.q({"hand_Y": np.pi / 2})
    x = robot.q_to_pinocchio(model, q)
    with pytest.raises(RobotError, match=r"'hand' is a chain .* second angle is 90°"):
        robot.v_from_pinocchio(model, x, np.ones(model.nv))


# --- MuJoCo -------------------------------------------------------------------------------------


SCENE = """
<mujoco model="scene"><option><flag contact="disable"/></option><worldbody>
  <body name="trunk"><freejoint name="float"/><geom size="0.2 0.1 0.1" type="box"/>
    <body name="thigh" pos="0.2 0.1 0"><joint name="hip" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.03"/>
      <body name="foot" pos="0 0 -0.3" euler="20 0 30">
        <joint name="ankle" type="ball" pos="0.02 0 0.01"/>
        <geom type="box" size="0.1 0.05 0.02" pos="0.03 0 0"/></body></body></body>
  <body name="lamp" pos="1 0 2" euler="0 30 0"><joint name="hook" type="ball" pos="0 0 0.1"/>
    <geom type="box" size="0.1 0.2 0.3" pos="0.1 0 -0.3"/></body>
</worldbody></mujoco>
"""


def test_a_scene_with_a_foreign_ball_joint() -> None:
    model = mujoco.MjModel.from_xml_string(SCENE)
    robot = Robot.from_mujoco(model)
    assert robot.base == "floating"
    rng = np.random.default_rng(2)
    x = rng.normal(size=model.nq)
    x[7:8] = 0.3
    q, base = robot.q_from_mujoco(model, x)
    assert_same_outputs(Mujoco(robot, model), ["foot", "lamp"], q, base)
    u = rng.normal(size=model.nv)
    v = robot.v_from_mujoco(model, x, u)
    assert np.abs(robot.v_to_mujoco(model, x, v) - u).max() < 1e-12
    back = robot.q_to_mujoco(model, q, base)
    for start in (3, 8, 12):
        first, second = x[start : start + 4] / np.linalg.norm(x[start : start + 4]), back[start:]
        assert abs(abs(first @ second[:4]) - 1.0) < 1e-12


LEG = """
<mujoco model="leg"><option><flag contact="disable"/></option>
<default><geom type="capsule" size="0.02" density="1000"/></default><worldbody>
  <body name="thigh" pos="0 0 1"><joint name="hip" axis="0 1 0"/>
    <geom fromto="0 0 0 0.02 0 -0.3"/>
    <body name="rod" pos="0.05 0.04 -0.02"><joint name="rod_ball" type="ball"/>
      <geom fromto="0 0 0 -0.12 -0.01 -0.5" size="0.01"/></body>
    <body name="shin" pos="0.02 0 -0.3"><joint name="knee" axis="0 1 0"/>
      <geom fromto="0 0 0 0.05 0 -0.25"/>
      <body name="tarsus" pos="0.05 0 -0.25"><joint name="tarsus_joint" axis="0.1 1 0"/>
        <geom fromto="0 0 0 -0.15 0.02 0.05"/>
        <body name="spring" pos="-0.1 0.02 0.04"><joint name="heel_spring" axis="0 1 0.1"/>
          <geom fromto="0 0 0 -0.04 0.01 0.01"/></body>
        <body name="toe" pos="0.1 0 -0.2"><joint name="toe_joint" axis="0 1 0"/>
          <geom fromto="0 0 0 0.1 0 0"/></body></body></body></body>
</worldbody><equality><connect body1="rod" body2="spring" anchor="-0.12 -0.01 -0.5"/></equality>
</mujoco>
"""
"""A leg as Cassie's: the rod ends at the heel spring, and turns freely about its own axis."""


def test_a_leg_with_a_ball_joint_in_its_rod() -> None:
    model = mujoco.MjModel.from_xml_string(LEG)
    robot = Robot.from_mujoco(model)
    assert {f"rod_ball_{axis}" for axis in "XYZ"} <= set(robot.joint_names)
    measured = {"hip": 0.2, "knee": 0.15, "tarsus_joint": -0.1, "toe_joint": 0.4}
    closed = Closure(robot).solve({**measured, "rod_ball_Z": 0.3})
    assert closed.residual < 1e-11
    q = np.array(closed.q)
    assert_same_outputs(Mujoco(robot, model), ["rod", "tarsus", "toe"], q)


def test_a_ball_at_its_singular_angle_is_named() -> None:
    """By the error of solve, of any algorithm; outside of 0.6° G is as exact as the page says."""
    model = mujoco.MjModel.from_xml_string(SCENE)
    robot = Robot.from_mujoco(model)
    problem = Problem(robot, [Contact("foot", "foot", "surface")])
    library = Mujoco(robot, model)
    rng = np.random.default_rng(0)
    for algorithm, most in (("pv_osimr", 1e-10), ("auto", 5e-9)):
        solver = solver_on_floats(problem, algorithm)
        for first, third in rng.uniform(-2.0, 2.0, (10, 2)):
            at = np.arccos(LEAST_DISTANCE) - 1e-4
            q = robot.q({"ankle_X": first, "ankle_Y": at, "ankle_Z": third})
            x = library.positions(q, np.r_[np.zeros(6), 1.0])
            J = library.jacobian(x, "foot", "contact")
            G = J @ np.linalg.solve(library.mass(x), J.T)
            assert np.linalg.norm(solver.solve(q).matrix - G) < most * np.linalg.norm(G)
    words = r"joints 'ankle_X', 'ankle_Y' and 'ankle_Z' are the chain .*: turn the frame"
    for algorithm in ("ltl", "pinocchio"):
        solver = DelassusSolver(problem, algorithm)
        for off in (0.0, 1e-6, 0.9 * LEAST_DISTANCE):
            for side in (1.0, -1.0):
                q = robot.q({"ankle_X": 0.3, "ankle_Y": side * (np.pi / 2 - off)})
                with pytest.raises(NumericalError, match=words):
                    solver.solve(q)
        solver.solve(robot.q({"ankle_Y": np.pi / 2 - 1.1 * LEAST_DISTANCE}))
    assert at_singular_angle(ball_joints(robot), robot.q({"ankle_Y": 0.5})) == ""


def test_an_armature_of_a_ball_joint_is_refused_with_the_way_out() -> None:
    text = SCENE.replace('name="hook" type="ball"', 'name="hook" type="ball" armature="0.1"')
    with pytest.raises(RobotError, match="'hook' is a ball joint with an armature of 0.1.*'0'"):
        Robot.from_mujoco(mujoco.MjModel.from_xml_string(text))


def test_a_robot_whose_chain_is_no_ball_is_refused() -> None:
    model = mujoco.MjModel.from_xml_string(SCENE)
    robot = Robot.from_mujoco(model)
    joints = list(robot.joints)
    i = robot.joint_names.index("hook_Y") + 1
    joints[i] = replace(joints[i], axis=np.array([0.0, 0.6, 0.8]))
    with pytest.raises(RobotError, match="'hook' of the model is a ball joint; expected three"):
        robot.replaced(joints=joints).q_from_mujoco(model, model.qpos0)
