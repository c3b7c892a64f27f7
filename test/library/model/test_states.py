"""States to and from Pinocchio's and MuJoCo's models: the base, names, and what does not fit."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from mujoco_scenes import compiled
from on_floats import matrix_at
from oracles import relative
from oracles.mujoco_models import of_mujoco
from urdf_text import joint, link, robot_xml

from delassus import Robot
from delassus.errors import RobotError

WALKER = robot_xml(
    link("trunk"), link("leg"), joint("hip", "trunk", "leg", "continuous", '<axis xyz="0 1 0"/>'),
    head='name="walker"',
)  # fmt: skip
SCENE = """<mujoco><worldbody>
  <body name="ball"><freejoint name="ball"/><geom size="0.1"/></body>
  <body name="trunk"><freejoint/><geom size="0.1"/>
    <body name="pack"><geom size="0.02" pos="0 0 0.1"/>
      <body name="leg" pos="0.2 0 0"><joint name="hip" axis="0 1 0"/>
        <geom size="0.05" pos="0.2 0 0"/></body></body></body></worldbody></mujoco>"""
TRUNK = [1.0, 2.0, 3.0, 0.5, 0.5, -0.5, 0.5]
"""A pose as MuJoCo has it, quaternion w, x, y, z."""


def test_the_base_is_the_free_joint_that_carries_the_robot() -> None:
    model = compiled(SCENE)
    robot = Robot.from_urdf(WALKER)
    qpos = np.array([9.0, 9.0, 9.0, 1.0, 0.0, 0.0, 0.0, *TRUNK, 0.7])
    q, base = robot.q_from_mujoco(model, qpos)
    assert q.tolist() == [0.7] and base is not None
    assert base.tolist() == [1.0, 2.0, 3.0, 0.5, -0.5, 0.5, 0.5]
    back = robot.q_to_mujoco(model, q, base)
    assert back[7:].tolist() == qpos[7:].tolist() and back[:7].tolist() == model.qpos0[:7].tolist()
    qvel = np.arange(1.0, 14.0)
    v = robot.v_from_mujoco(model, qpos, qvel)
    assert v[3:].tolist() == [10.0, 11.0, 12.0, 13.0]
    np.testing.assert_allclose(robot.v_to_mujoco(model, qpos, v)[6:], qvel[6:], atol=1e-14)
    # A trunk alone, by the name of its link.
    _, base = robot.lock({"hip": 0.0}).q_from_mujoco(model, qpos)
    assert base is not None and base[:3].tolist() == TRUNK[:3]


def test_a_base_that_floats_in_the_robot_alone_is_refused() -> None:
    robot = Robot.from_urdf(WALKER)
    welded = compiled(SCENE.replace("<freejoint/>", ""))
    words = "'walker' has a floating base; .* free joint .* carries joint 'hip'; .* joints: ball"
    for convert in (
        lambda: robot.q_from_mujoco(welded, welded.qpos0),
        lambda: robot.q_to_mujoco(welded, robot.neutral()),
        lambda: robot.v_from_mujoco(welded, welded.qpos0, np.zeros(welded.nv)),
        lambda: robot.v_to_mujoco(welded, welded.qpos0, np.zeros(7)),
    ):
        with pytest.raises(RobotError, match=words):
            convert()
    trunk = robot.lock({"hip": 0.0})
    with pytest.raises(RobotError, match=r"free joint of the model of one of \['trunk', 'leg'\]"):
        trunk.q_from_mujoco(welded, welded.qpos0)


def test_the_free_flyer_of_pinocchio_is_the_one_that_carries_the_robot() -> None:
    import pinocchio as pin
    robot = Robot.from_urdf(WALKER)
    model = pin.Model()
    ball = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "ball")
    trunk = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "float")
    hip = model.addJoint(trunk, pin.JointModelRUBY(), pin.SE3.Identity(), "hip")
    for j in (ball, trunk, hip):
        model.appendBodyToJoint(j, pin.Inertia.Random(), pin.SE3.Identity())
    model.addBodyFrame("trunk", trunk, pin.SE3.Identity(), 0)
    q = pin.randomConfiguration(model, -np.ones(model.nq), np.ones(model.nq))
    own, base = robot.q_from_pinocchio(model, q)
    assert base is not None and base.tolist() == q[7:14].tolist()
    back = robot.q_to_pinocchio(model, own, base)
    np.testing.assert_allclose(back[7:], q[7:], atol=1e-15)
    assert robot.v_from_pinocchio(model, q, np.arange(13.0)).tolist() == list(range(6, 13))
    _, base = robot.lock({"hip": 0.0}).q_from_pinocchio(model, q)
    assert base is not None and base.tolist() == q[7:14].tolist()
    welded = pin.buildModelFromXML(WALKER)
    with pytest.raises(RobotError, match="carries joint 'hip'; its free joints: none"):
        robot.q_from_pinocchio(welded, pin.neutral(welded))
    planar = pin.buildModelFromXML(WALKER, pin.JointModelPlanar())
    with pytest.raises(RobotError, match="carries joint 'hip'; its free joints: none"):
        robot.v_from_pinocchio(planar, pin.neutral(planar), np.zeros(planar.nv))


@pytest.mark.parametrize(
    ("joint", "words"),
    [
        ('type="slide" axis="0 1 0"', r"is revolute .* mjJNT_SLIDE with axis \[0.0, 1.0, 0.0\]"),
        ('axis="0 -1 0"', r"axis \[0.0, 1.0, 0.0\], .* mjJNT_HINGE with axis \[0.0, -1.0, 0.0\]"),
    ],
)
def test_a_joint_of_mujoco_that_moves_otherwise_is_refused(joint: str, words: str) -> None:
    model = compiled(SCENE.replace('axis="0 1 0"', joint))
    with pytest.raises(RobotError, match=words):
        Robot.from_urdf(WALKER).q_from_mujoco(model, model.qpos0)


def hip(kind: str, axis: str) -> str:
    """Return the URDF of the walker with a hip of another kind."""
    limit = '<limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
    text = WALKER.replace("continuous", kind).replace('"0 1 0"', f'"{axis}"')
    return text.replace("</joint>", limit)


@pytest.mark.parametrize(
    ("kind", "axis"), [("planar", "1 0 0"), ("prismatic", "0 1 0"), ("revolute", "0 0 1")]
)
def test_a_joint_of_pinocchio_that_moves_otherwise_is_refused(kind: str, axis: str) -> None:
    """Of a planar joint Pinocchio takes the plane of x and y, whatever the URDF says."""
    import pinocchio as pin
    model = pin.buildModelFromXML(hip("planar", "1 0 0"))
    robot = Robot.from_urdf(hip(kind, axis), "fixed")
    with pytest.raises(RobotError, match=f"joint 'hip' of the robot is {kind} .*JointModelPlanar"):
        robot.q_from_pinocchio(model, pin.neutral(model))
    same = Robot.from_urdf(hip("planar", "0 0 1"), "fixed")
    assert same.q_from_pinocchio(model, pin.neutral(model))[0].tolist() == [0.0, 0.0, 0.0]


UNNAMED = """<mujoco><worldbody><body><freejoint/><geom size="0.1"/>
  <body pos="0.1 0 0"><joint axis="0 1 0"/><joint name="root" axis="1 0 0"/>
    <geom size="0.1" pos="0.1 0.1 0"/>
    <body name="body2" pos="0.3 0 0"><joint name="joint1" axis="0 0 1"/>
      <geom size="0.1" pos="0.1 0 0"/></body></body></body></worldbody></mujoco>"""


def test_quaternions_of_mujoco_come_with_unit_norm() -> None:
    """What is taken from one function is what the others expect."""
    box = "<body><freejoint/><geom size='0.1'/></body>"
    model = compiled(f"<mujoco><worldbody>{box}</worldbody></mujoco>")
    robot = Robot.from_mujoco(model)
    q, base = robot.q_from_mujoco(model, [1, 2, 3, 0, 0, 2, 0])
    assert base is not None and base.tolist() == [1, 2, 3, 0, 1, 0, 0]
    assert robot.q_to_mujoco(model, q, base).tolist() == [1, 2, 3, 0, 0, 1, 0]


def test_a_model_that_grew_is_looked_at_anew() -> None:
    """What was found for a model is kept for the next state."""
    import pinocchio as pin
    model = pin.Model()
    model.appendBodyToJoint(
        model.addJoint(0, pin.JointModelRZ(), pin.SE3.Identity(), "hip"),
        pin.Inertia.Random(), pin.SE3.Identity(),
    )  # fmt: skip
    robot = Robot.from_pinocchio(model)
    assert robot.q_from_pinocchio(model, [0.3])[0].tolist() == [0.3]
    other = pin.Model()
    other.addJoint(0, pin.JointModelRY(), pin.SE3.Identity(), "knee")
    other.addJoint(1, pin.JointModelRZ(), pin.SE3.Identity(), "hip")
    assert robot.q_from_pinocchio(other, [0.1, 0.4])[0].tolist() == [0.4]
    model.addJoint(1, pin.JointModelRX(), pin.SE3.Identity(), "knee")
    assert robot.q_from_pinocchio(model, [0.5, 0.1])[0].tolist() == [0.5]
    assert robot.q_from_pinocchio(other, [0.1, 0.4])[0].tolist() == [0.4]


def test_unnamed_parts_called_by_their_number() -> None:
    import mujoco
    model = compiled(UNNAMED)
    robot = Robot.from_mujoco(model)
    assert [j.name for j in robot.joints] == ["root_joint", "joint1_", "root", "joint1"]
    assert [b.name for b in robot.bodies] == ["body1", "body2_", "body2_", "body2"]
    assert {"body1", "body2_", "body2"} <= robot.frames.keys()
    data = mujoco.MjData(model)
    data.qpos[:] = np.random.default_rng(0).uniform(-1, 1, model.nq)
    mujoco.mj_normalizeQuat(model, data.qpos)
    q, base = robot.q_from_mujoco(model, data.qpos)
    np.testing.assert_array_equal(q, data.qpos[7:])
    np.testing.assert_array_equal(robot.q_to_mujoco(model, q, base), data.qpos)
    expected = of_mujoco(model, ["body2"], {}, data.qpos)
    assert relative(matrix_at(robot, ["body2"], q), expected) < 1e-12


def test_mimics_of_unbounded_joints_follow_the_angle() -> None:
    import pinocchio as pin
    mimic = '<mimic joint="hip" multiplier="-2" offset="0.3"/>'
    ankle = joint("ankle", "leg", "foot", "continuous", f'<axis xyz="0 0.6 0.8"/>{mimic}')
    urdf = WALKER.replace("</robot>", f"{link('foot')}{ankle}</robot>")
    model = pin.buildModelFromXML(urdf, mimic=True)
    robot = Robot.from_pinocchio(model)
    theirs = np.array([np.cos(2.4), np.sin(2.4)])
    q, _ = robot.q_from_pinocchio(model, theirs)
    np.testing.assert_allclose(q, [2.4, -4.5], rtol=1e-14)
    np.testing.assert_allclose(robot.q_to_pinocchio(model, q), theirs, rtol=1e-14)
    assert robot.v_from_pinocchio(model, theirs, [1.5]).tolist() == [1.5, -3.0]
    data = model.createData()
    pin.computeJointJacobians(model, data, theirs)
    pin.updateFramePlacements(model, data)
    J = pin.getFrameJacobian(model, data, model.getFrameId("foot"), pin.LOCAL).reshape(6, 1)
    expected = J @ J.T / float(np.squeeze(pin.crba(model, data, theirs)))
    assert relative(matrix_at(robot, ["foot"], q), expected) < 1e-12
    still = pin.buildModelFromXML(urdf.replace('multiplier="-2"', 'multiplier="0"'), mimic=True)
    with pytest.raises(RobotError, match="'ankle' mimics another with multiplier 0"):
        Robot.from_pinocchio(still)


@pytest.mark.parametrize(
    ("base", "words"),
    [
        ([1, 2, 3], r"base has shape \(3,\); expected \(7,\), x, y, z and a quaternion"),
        (np.eye(4), r"base has shape \(4, 4\)"),
        (3.0, r"base has shape \(\)"),
        ("here", "base is 'here'; expected numbers"),
        ([1, 2, 3, 0, 0, 0, 5], r"base\[3:7\] has norm 5; expected a unit quaternion x, y, z, w"),
        ([0, 0, 0, np.nan, 0, 0, 1], r"base\[3:7\] has norm nan"),
    ],
)
def test_a_base_that_is_no_pose_is_refused(base: Any, words: str) -> None:
    import pinocchio as pin
    robot, model = Robot.from_urdf(WALKER), compiled(SCENE)
    other = pin.buildModelFromXML(WALKER, pin.JointModelFreeFlyer())
    with pytest.raises(RobotError, match=words):
        robot.q_to_mujoco(model, [0.0], base)
    with pytest.raises(RobotError, match=words):
        robot.q_to_pinocchio(other, [0.0], base)
    with pytest.raises(RobotError, match="base is given, but the base of robot 'walker' is fixed"):
        fixed = pin.buildModelFromXML(WALKER)
        Robot.from_urdf(WALKER, "fixed").q_to_pinocchio(fixed, [0.0], [0, 0, 0, 0, 0, 0, 1])


HELD = """<mujoco><worldbody><body name="a"><joint name="base" axis="0 0 1"/><geom size="0.1"/>
  <body name="b" pos="0.3 0 0"><joint name="elbow" axis="0 1 0" ref="22.91831180523293"/>
    <geom size="0.1"/><body name="c" pos="0.3 0 0"><joint name="wrist" axis="0 1 0"/>
      <geom size="0.1"/></body></body></body></worldbody><equality>
  <joint joint1="elbow" polycoef="0.25 0 0 0 0"/>
  <joint joint1="wrist" joint2="elbow" polycoef="0.1 2 0 0 0"/></equality></mujoco>"""
"""An elbow, 0.4 rad where the model is as written, held at 0.65 rad, and a wrist that follows."""


def test_joints_that_an_equality_holds_are_there() -> None:
    model = compiled(HELD)
    robot = Robot.from_mujoco(model)
    assert robot.joint_names == ("base",)
    qpos = robot.q_to_mujoco(model, [0.3])
    np.testing.assert_allclose(qpos, [0.3, 0.65, 0.6], atol=1e-12)
    assert robot.q_from_mujoco(model, qpos)[0].tolist() == [0.3]
    # Equalities of a simulator are soft.
    assert robot.v_from_mujoco(model, qpos + 0.01, [1.0, 0.0, 0.0]).tolist() == [1.0]
    for entry, held, words in ((1, "elbow", "0.4.*this joint at 0.65"), (2, "wrist", "0.35")):
        wrong = qpos.copy()
        wrong[entry] -= 0.25
        refused = rf"qpos\[{entry}\] \(joint '{held}'\) is {words}"
        for convert in (
            lambda at: robot.q_from_mujoco(model, at),
            lambda at: robot.v_from_mujoco(model, at, np.zeros(3)),
            lambda at: robot.v_to_mujoco(model, at, np.zeros(1)),
        ):
            with pytest.raises(RobotError, match=refused):
                convert(wrong)
    # No equality is active: the joints belong to the robot, or are locked by the user's choice.
    free = compiled(HELD.replace("<joint joint1", '<joint active="false" joint1'))
    whole = Robot.from_mujoco(free)
    assert whole.q_from_mujoco(free, [0.3, 0.4, 0.0])[0].tolist() == [0.3, 0.4, 0.0]
    locked = whole.lock({"elbow": 0.2, "wrist": -0.1})
    np.testing.assert_allclose(locked.q_to_mujoco(free, [0.3]), [0.3, 0.2, -0.1], atol=1e-15)
    assert locked.q_from_mujoco(free, [0.3, 0.4, 0.0])[0].tolist() == [0.3]


def test_joints_that_are_locked_are_there_in_pinocchio() -> None:
    import pinocchio as pin
    model = pin.buildModelFromXML(WALKER, pin.JointModelFreeFlyer())
    q = Robot.from_urdf(WALKER).lock({"hip": 0.3}).q_to_pinocchio(model, [])
    np.testing.assert_allclose(q[7:], [np.cos(0.3), np.sin(0.3)], rtol=1e-15)


def _with_quaternions() -> tuple[Any, Robot]:
    """Return a model with a free-flyer, a planar joint, a ball and an unbounded joint."""
    import pinocchio as pin
    model, parent = pin.Model(), 0
    for name, kind in (
        ("root", pin.JointModelFreeFlyer()), ("slides", pin.JointModelPlanar()),
        ("ball", pin.JointModelSpherical()), ("wheel", pin.JointModelRUBY()),
    ):  # fmt: skip
        parent = model.addJoint(parent, kind, pin.SE3.Identity(), name)
        model.appendBodyToJoint(parent, pin.Inertia.Random(), pin.SE3.Identity())
    return model, Robot.from_pinocchio(model)


@pytest.mark.parametrize(
    ("entries", "joint", "meant"),
    [
        (slice(3, 7), "root", "a unit quaternion x, y, z, w"),
        (slice(9, 11), "slides", "cosine and sine of an angle"),
        (slice(11, 15), "ball", "a unit quaternion x, y, z, w"),
        (slice(15, 17), "wheel", "cosine and sine of an angle"),
    ],
)
def test_numbers_of_pinocchio_that_are_no_rotation_are_refused(
    entries: slice, joint: str, meant: str
) -> None:
    model, robot = _with_quaternions()
    import pinocchio as pin
    q = pin.randomConfiguration(model, -np.ones(model.nq), np.ones(model.nq))
    still = np.zeros(model.nv)
    ours = robot.v_from_pinocchio(model, q, still)
    for values, norm in (
        (1.0, r"[12](\.414)?"), (0.0, "0"), (np.nan, "nan"), (1e200, r"[12]\S*e\+200"),
    ):  # fmt: skip
        wrong = q.copy()
        wrong[entries] = values
        where = rf"q\[{entries.start}:{entries.stop}\] \(joint '{joint}'\)"
        words = f"{where} has norm ({norm}).*; expected {meant}"
        for convert in (
            lambda at: robot.q_from_pinocchio(model, at),
            lambda at: robot.v_from_pinocchio(model, at, still),
            lambda at: robot.v_to_pinocchio(model, at, ours),
        ):
            with pytest.raises(RobotError, match=words):
                convert(wrong)


def test_states_and_models_of_the_wrong_kind_are_refused() -> None:
    import mujoco
    import pinocchio as pin
    robot, model = Robot.from_urdf(WALKER), compiled(SCENE)
    zero = np.zeros(model.nq)
    words = re.escape("qpos[10:14] (joint 'root') has norm 0; expected a quaternion w, x, y, z")
    with pytest.raises(RobotError, match=words):
        robot.q_from_mujoco(model, zero)
    with pytest.raises(RobotError, match=words):
        robot.v_from_mujoco(model, zero, np.zeros(model.nv))
    other = pin.buildModelFromXML(WALKER)
    with pytest.raises(RobotError, match="model is <.*expected a MjModel"):
        robot.q_from_mujoco(mujoco.MjData(model), zero)
    with pytest.raises(RobotError, match="(?s)model is .*expected a MjModel"):
        robot.v_to_mujoco(other, zero, zero)
    with pytest.raises(RobotError, match="(?s)model is .*expected a Model: write pinocchio.build"):
        robot.q_from_pinocchio(model, zero)
