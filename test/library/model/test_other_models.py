"""Robots from Pinocchio and MuJoCo models: the same matrix as theirs, and as that of the URDF."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import robots
from mujoco_scenes import FOUR_BAR, compiled
from on_floats import matrix, matrix_at, solver_on_floats
from oracles import relative
from oracles.mujoco_models import of_mujoco
from oracles.pinocchio_models import of_pinocchio
from seeds import but_slow
from urdf_text import joint, link, robot_xml

from delassus import Closure, Contact, Problem, Robot
from delassus.errors import RobotError
from delassus.model import JointKind


def leaves(robot: Robot) -> list[str]:
    """Return a frame on each body that carries no other."""
    parents = {joint.parent for joint in robot.joints}
    frames = {f.body: name for name, f in robot.frames.items()}
    return [frames[i] for i in range(len(robot.joints)) if i not in parents and i in frames]


NAMES = ("quadruped", "talos", "solo12", "anymal", "ur5", "atlas")
ROBOTS = {name: robots.TEN[name][:2] for name in NAMES} | {"panda": (robots.panda, "fixed")}


@pytest.mark.parametrize("name", ROBOTS)
def test_a_pinocchio_model_is_the_robot_of_its_urdf(name: str) -> None:
    import pinocchio as pin
    load, base = ROBOTS[name]
    source = load()
    text = source if isinstance(source, str) else source.read_text(encoding="utf-8")
    root = (pin.JointModelFreeFlyer(),) if base == "floating" else ()
    model = pin.buildModelFromXML(text, *root)
    robot = Robot.from_pinocchio(model)
    own = Robot.from_urdf(text.encode(), base)
    assert robot.base == base
    assert set(robot.joint_names) == set(own.joint_names)
    frames = leaves(own)[:4]
    assert set(frames) <= robot.frames.keys()
    rng = np.random.default_rng(0)
    for _ in range(3):
        positions = {name: rng.uniform(-1, 1) for name in own.joint_names}
        expected = of_pinocchio(model, frames, positions)
        assert relative(matrix(robot, frames, positions), expected) < 1e-11
        assert relative(matrix(own, frames, positions), expected) < 1e-10


@pytest.mark.parametrize("make", ["buildSampleModelHumanoid", "buildSampleModelManipulator"])
def test_pinocchios_own_samples(make: str) -> None:
    import pinocchio as pin
    model = getattr(pin, make)()
    robot = Robot.from_pinocchio(model)
    frames = leaves(robot)[:3]
    rng = np.random.default_rng(1)
    positions = {name: rng.uniform(-1, 1) for name in robot.joint_names}
    expected = of_pinocchio(model, frames, positions)
    assert relative(matrix(robot, frames, positions), expected) < 1e-11


def test_a_pinocchio_joint_without_counterpart_is_named() -> None:
    import pinocchio as pin
    model = pin.Model()
    inner = pin.JointModelComposite()
    inner.addJoint(pin.JointModelRX())
    outer = pin.JointModelComposite()
    outer.addJoint(inner)
    j = model.addJoint(0, outer, pin.SE3.Identity(), "hip")
    model.appendBodyToJoint(j, pin.Inertia.Random(), pin.SE3.Identity())
    with pytest.raises(RobotError, match="joint 'hip_1' is a JointModelComposite, which has no"):
        Robot.from_pinocchio(model)


@pytest.mark.parametrize("name", but_slow(["talos", "solo12", "ur5", "atlas"], "atlas"))
def test_a_urdf_that_mujoco_compiles_is_the_robot_of_that_urdf(name: str, tmp_path: Path) -> None:
    import mujoco
    from urdf_text import without_geometry

    load, _ = ROBOTS[name]
    text = without_geometry(load().read_text(encoding="utf-8"))
    spec = mujoco.MjSpec.from_string(text)
    spec.compiler.fusestatic, spec.compiler.discardvisual = False, False
    spec.compiler.balanceinertia = False
    model = spec.compile()
    # MuJoCo welds the root link to the world.
    own, robot = Robot.from_urdf(text.encode(), "fixed"), Robot.from_mujoco(model)
    frames = [name for name in leaves(own) if name in robot.frames][:4]
    assert frames
    rng = np.random.default_rng(0)
    for _ in range(3):
        positions = {name: rng.uniform(-1, 1) for name in own.joint_names}
        expected = of_mujoco(model, frames, positions)
        assert relative(matrix(robot, frames, positions), expected) < 1e-10
        assert relative(matrix(own, frames, positions), expected) < 1e-10


@pytest.mark.parametrize("name", but_slow(["talos", "solo12", "ur5", "atlas"], "atlas"))
def test_urdf_pinocchio_and_mujoco_agree(name: str) -> None:
    """By URDF, Pinocchio and MuJoCo, with positions that the helpers take there."""
    import mujoco
    import pinocchio as pin
    from urdf_text import without_geometry

    text = without_geometry(ROBOTS[name][0]().read_text(encoding="utf-8"))
    spec = mujoco.MjSpec.from_string(text)
    spec.compiler.fusestatic = spec.compiler.balanceinertia = False
    compiled, model = spec.compile(), pin.buildModelFromXML(text)
    own, second, third = (
        Robot.from_urdf(text.encode(), "fixed"),
        Robot.from_pinocchio(model),
        Robot.from_mujoco(compiled),
    )
    frames = [each for each in leaves(own) if each in third.frames][:4]
    rng = np.random.default_rng(0)
    for _ in range(3):
        q = rng.uniform(-1, 1, own.nq)
        by_pinocchio, _ = second.q_from_pinocchio(model, own.q_to_pinocchio(model, q))
        by_mujoco, _ = third.q_from_mujoco(compiled, own.q_to_mujoco(compiled, q))
        G = matrix_at(own, frames, q)
        assert relative(matrix_at(second, frames, by_pinocchio), G) < 1e-11
        assert relative(matrix_at(third, frames, by_mujoco), G) < 1e-11


SCENE = """
<mujoco model="scene"><compiler angle="radian"/><worldbody>
  <body name="base" pos="0 0 1"><freejoint name="float"/>
    <inertial pos="0.01 0 0" mass="5" diaginertia="0.1 0.2 0.15"/>
    <body name="thigh" pos="0.1 0 -0.1" euler="0 0.2 0.1">
      <joint name="yaw" axis="0 0 1" pos="0.02 0 0.01" armature="0.05" ref="0.3"/>
      <joint name="slide" type="slide" axis="1 0 1"/>
      <joint name="pitch" axis="0 1 0" pos="0 0.03 0" range="-1 1" limited="true"/>
      <inertial pos="0 0 -0.2" mass="2" diaginertia="0.02 0.03 0.01"/>
      <body name="shin" pos="0 0 -0.4"><joint name="knee" axis="0 1 0"/>
        <inertial pos="0.02 0 -0.15" mass="1" fullinertia="0.02 0.02 0.01 0.001 0 0.002"/>
        <body name="toe" pos="0 0 -0.3">
          <inertial pos="0 0 0" mass="0.2" diaginertia="1e-3 1e-3 1e-3"/>
          <site name="tip" pos="0.05 0 0" euler="0.3 0 0"/></body>
      </body></body>
    <body name="arm" pos="-0.1 0 0"><joint name="shoulder" axis="1 0 0"/>
      <inertial pos="0 0 -0.1" mass="1" diaginertia="0.01 0.01 0.01"/>
      <site name="hand" pos="0 0 -0.3"/></body>
  </body></worldbody>EQUALITIES</mujoco>
"""


def scene(parts: str = "", beside: str = "") -> Any:
    """Return the compiled scene with further parts, and bodies beside the robot."""
    text = SCENE.replace("EQUALITIES", parts)
    return compiled(text.replace("</worldbody>", f"{beside}</worldbody>"))


def test_bodies_with_several_joints_references_and_free_bases() -> None:
    model = scene()
    robot = Robot.from_mujoco(model)
    assert robot.name == "scene" and robot.base == "floating"
    assert robot.joint_names == ("yaw", "slide", "pitch", "knee", "shoulder")
    assert [joint.kind for joint in robot.joints][2] is JointKind.PRISMATIC
    pitch = next(joint for joint in robot.joints if joint.name == "pitch")
    assert (pitch.lower, pitch.upper) == (-1.0, 1.0)
    rng = np.random.default_rng(0)
    for _ in range(3):
        positions = {name: rng.uniform(-1, 1) for name in robot.joint_names}
        frames = ["tip", "hand", "shin"]
        expected = of_mujoco(model, frames, positions)
        assert relative(matrix(robot, frames, positions), expected) < 1e-10


def test_a_joint_equality_is_a_coupling() -> None:
    equalities = (
        '<equality><joint name="gear" joint1="knee" joint2="yaw" polycoef="0.1 -2 0 0 0"/>'
        "</equality>"
    )
    model = scene(equalities)
    robot = Robot.from_mujoco(model)
    (gear,) = robot.couplings
    assert gear.name == "gear" and dict(gear.ratios) == {"knee": 1.0, "yaw": 2.0}
    rng = np.random.default_rng(1)
    positions = {name: rng.uniform(-1, 1) for name in robot.joint_names}
    # MuJoCo: knee - 0 = 0.1 - 2 (yaw - 0.3).
    positions["knee"] = 0.1 - 2.0 * (positions["yaw"] - 0.3)
    off = gear.offset + sum(ratio * positions[name] for name, ratio in gear.ratios)
    assert abs(off) < 1e-14
    frames = ["tip", "hand"]
    expected = of_mujoco(model, frames, positions)
    assert relative(matrix(robot, frames, positions), expected) < 1e-9


def test_a_tendon_equality_is_a_coupling_of_all_of_its_joints() -> None:
    parts = (
        '<tendon><fixed name="sum"><joint joint="knee" coef="1"/><joint joint="pitch" coef="0.5"/>'
        '</fixed></tendon><equality><tendon name="wire" tendon1="sum" polycoef="0.2 0 0 0 0"/>'
        "</equality>"
    )
    model = scene(parts)
    robot = Robot.from_mujoco(model)
    (wire,) = robot.couplings
    assert dict(wire.ratios) == {"knee": 1.0, "pitch": 0.5} and wire.offset == -0.2
    positions = {"knee": 0.4, "pitch": -0.4, "yaw": 0.7, "slide": 0.1, "shoulder": -0.3}
    expected = of_mujoco(model, ["tip", "hand"], positions)
    assert relative(matrix(robot, ["tip", "hand"], positions), expected) < 1e-9


@pytest.mark.needs("mujoco")
def test_a_connect_is_a_loop() -> None:
    model = compiled(FOUR_BAR)
    robot = Robot.from_mujoco(model)
    assert [loop.name for loop in robot.loops] == ["pin"]
    zero = dict.fromkeys(robot.joint_names, 0.0)
    closed = Closure(robot, reference=zero).solve({"a": 0.3, "turn": -0.2})
    assert closed.status.is_valid
    positions = dict(zip(robot.joint_names, closed.q.tolist(), strict=True))
    expected = of_mujoco(model, ["tool"], positions)
    assert relative(matrix(robot, ["tool"], positions), expected) < 1e-9


LIMIT = '<axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="1" velocity="1"/>'
MIMIC = robot_xml(
    link("world", ""), link("a"), link("b"), joint("j1", "world", "a", inside=LIMIT),
    joint("j2", "a", "b", inside=f'{LIMIT}<mimic joint="j1" multiplier="-2" offset="0.3"/>'),
)  # fmt: skip


def test_a_mimic_joint_of_pinocchio_is_a_coupling() -> None:
    import pinocchio as pin
    model = pin.buildModelFromXML(MIMIC, mimic=True)
    robot = Robot.from_pinocchio(model)
    (mimics,) = robot.couplings
    assert dict(mimics.ratios) == {"j2": 1.0, "j1": 2.0} and mimics.offset == -0.3
    q, base = robot.q_from_pinocchio(model, [0.4])
    assert base is None and robot.joint_names == ("j1", "j2")
    np.testing.assert_allclose(q, [0.4, -0.5])
    np.testing.assert_array_equal(robot.q_to_pinocchio(model, q), [0.4])
    np.testing.assert_array_equal(robot.v_from_pinocchio(model, [0.4], [1.5]), [1.5, -3.0])
    np.testing.assert_array_equal(robot.v_to_pinocchio(model, [0.4], [1.5, -3.0]), [1.5])
    data, own = model.createData(), np.array([0.4])
    pin.computeJointJacobians(model, data, own)
    pin.updateFramePlacements(model, data)
    J = pin.getFrameJacobian(model, data, model.getFrameId("b"), pin.LOCAL).reshape(6, 1)
    expected = J @ J.T / float(np.squeeze(pin.crba(model, data, own)))
    for read in (robot, Robot.from_urdf(MIMIC.encode(), "fixed")):
        assert relative(matrix_at(read, ["b"], q), expected) < 1e-12


def contact_velocity(robot: Robot, frame: str, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return the twist (6,) of a frame in its own axes, linear first, by the robot's J."""
    problem = Problem(robot, [Contact(frame, frame, "surface")], outputs=["J"])
    return solver_on_floats(problem).solve(q).J @ v


def test_states_of_pinocchio_go_there_and_back() -> None:
    """Of a free base, an unbounded joint and a planar one."""
    import pinocchio as pin
    model = pin.Model()
    rng = np.random.default_rng(2)
    parent = 0
    for name, kind in (
        ("root_joint", pin.JointModelFreeFlyer()), ("wheel", pin.JointModelRUBY()),
        ("table", pin.JointModelPlanar()),
    ):  # fmt: skip
        pose = pin.SE3.Random() if parent else pin.SE3.Identity()
        parent = model.addJoint(parent, kind, pose, name)
        model.appendBodyToJoint(parent, pin.Inertia.Random(), pin.SE3.Identity())
        model.addBodyFrame(f"link{parent}", parent, pin.SE3.Random(), 0)
    robot = Robot.from_pinocchio(model)
    q = pin.randomConfiguration(model, -np.ones(model.nq), np.ones(model.nq))
    v = rng.normal(size=model.nv)
    own, base = robot.q_from_pinocchio(model, q)
    np.testing.assert_allclose(base, q[:7])
    np.testing.assert_allclose(robot.q_to_pinocchio(model, own, base), q, atol=1e-14)
    data = model.createData()
    pin.forwardKinematics(model, data, q, v)
    rates = robot.v_from_pinocchio(model, q, v)
    np.testing.assert_allclose(robot.v_to_pinocchio(model, q, rates), v, atol=1e-14)
    for frame in ("link1", "link2", "link3"):
        twist = pin.getFrameVelocity(model, data, model.getFrameId(frame), pin.LOCAL)
        found = contact_velocity(robot, frame, own, rates)
        np.testing.assert_allclose(found, twist.vector, atol=1e-12)
    with pytest.raises(RobotError, match=r"q has shape \(3,\); expected \(13,\)"):
        robot.q_from_pinocchio(model, np.zeros(3))
    with pytest.raises(RobotError, match=r"v has shape \(3,\); expected \(10,\)"):
        robot.v_from_pinocchio(model, q, np.zeros(3))
    other = Robot.from_urdf(robots.quadruped())
    with pytest.raises(RobotError, match="the model has no joint 'LF_HAA' .* it has: root_joint"):
        other.q_from_pinocchio(model, q)


def test_states_of_mujoco_go_there_and_back() -> None:
    """Of a free base, and of a body that floats beside the robot, whose twist is in v."""
    import mujoco
    free = '<body name="ball"><freejoint name="roll"/><geom size="0.1"/></body>'
    model = scene(beside=free)
    robot = Robot.from_mujoco(model)
    rng = np.random.default_rng(0)
    data = mujoco.MjData(model)
    data.qpos[:] = rng.uniform(-1, 1, model.nq)
    mujoco.mj_normalizeQuat(model, data.qpos)
    data.qvel[:] = rng.normal(size=model.nv)
    mujoco.mj_forward(model, data)
    q, base = robot.q_from_mujoco(model, data.qpos)
    assert base is not None
    np.testing.assert_array_equal(base[3:], data.qpos[[4, 5, 6, 3]])
    assert q[robot.joint_names.index("knee")] == data.qpos[model.joint("knee").qposadr[0]]
    np.testing.assert_array_equal(robot.q_to_mujoco(model, q, base), data.qpos)
    v = robot.v_from_mujoco(model, data.qpos, data.qvel)
    np.testing.assert_allclose(robot.v_to_mujoco(model, data.qpos, v), data.qvel, atol=1e-14)
    tree = Robot.from_mujoco(scene())
    for name in ("toe", "arm", "base", "ball"):
        angular_first = np.zeros(6)
        kind, number = mujoco.mjtObj.mjOBJ_XBODY, model.body(name).id
        mujoco.mj_objectVelocity(model, data, kind, number, angular_first, 1)
        expected = np.concatenate([angular_first[3:], angular_first[:3]])
        found = v[-6:] if name == "ball" else contact_velocity(tree, name, q[:5], v[:11])
        np.testing.assert_allclose(found, expected, atol=1e-12)
    with pytest.raises(RobotError, match="qvel has shape"):
        robot.v_from_mujoco(model, data.qpos, np.zeros(2))
    with pytest.raises(RobotError, match="qpos has shape"):
        robot.v_to_mujoco(model, np.zeros(2), v)


def test_velocities_by_name() -> None:
    robot = Robot.from_urdf(robots.quadruped())
    v = robot.v({"LF_KFE": 2.0}, twist=[1, 2, 3, 4, 5, 6])
    assert v.shape == (18,) and v[:6].tolist() == [1, 2, 3, 4, 5, 6]
    assert v[6 + robot.joint_names.index("LF_KFE")] == 2.0 and abs(v[6:]).sum() == 2.0
    assert robot.v({}, default=0.5).tolist() == [0.0] * 6 + [0.5] * 12
    with pytest.raises(RobotError, match="unknown joint 'LF_KNEE'.*in the order of v: LF_HAA, LF"):
        robot.v({"LF_KNEE": 1.0})
    fixed = Robot.from_urdf(robots.quadruped(), "fixed")
    with pytest.raises(RobotError, match="twist is given, but the base of robot .* is fixed"):
        fixed.v({}, twist=np.zeros(6))
    with pytest.raises(RobotError, match=r"twist has shape \(3,\); expected \(6,\)"):
        robot.v({}, twist=[1, 2, 3])


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (
            '<equality><joint name="cam" joint1="knee" joint2="yaw" polycoef="0 1 0.5 0 0"/>'
            "</equality>",
            "equality 'cam' is a polynomial; expected a linear one",
        ),
        (
            '<tendon><fixed name="sum" armature="0.1"><joint joint="knee" coef="1"/></fixed>'
            "</tendon>",
            "tendon 'sum' has an armature",
        ),
    ],
)
def test_parts_of_mujoco_refused(parts: str, words: str) -> None:
    model = scene(parts)
    with pytest.raises(RobotError, match=words):
        Robot.from_mujoco(model)
