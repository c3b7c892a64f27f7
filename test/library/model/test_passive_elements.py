"""Springs, dampers and gravity compensation of descriptions; what does not count is named."""

from __future__ import annotations

import re
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from oracles import relative
from urdf_text import joint, link, robot_xml

from delassus import Robot
from delassus.errors import RobotError
from delassus.model import WORLD, Inertia, Joint, JointKind
from delassus.rbda.dynamics import c_aba
from delassus.rbda.passive import passive_torques
from delassus.rbda.robot_tree import RobotTree

FLAGS = mujoco.mjtDisableBit
BOTH = int(FLAGS.mjDSBL_SPRING | FLAGS.mjDSBL_DAMPER)

ARM = """<mujoco model="arm"><compiler angle="radian"/><worldbody>
  <body name="mount" pos="0 0 1" gravcomp="0.9"><geom size="0.1"/>
  <body name="upper" gravcomp="0.7"><joint name="shoulder" axis="1 2 0" ref="0.4" stiffness="7"
      springref="0.9" damping="0.4" pos="0.1 0 0"/>
    <geom size="0.1" pos="0.3 0.1 0.2"/>
    <body name="box" pos="0.1 0 0.2" euler="0.3 0.4 0" gravcomp="1.3">
      <geom size="0.1" pos="0.2 0 0"/>
    <body name="lower" pos="0.3 0 0" euler="0.5 0 0.1"><joint name="slide" type="slide"
        axis="0 1 1" stiffness="30" springref="-0.1" damping="3"/>
      <joint name="elbow" axis="0 0 1" springdamper="0.2 0.8"/>
      <geom size="0.1" pos="0.1 0.05 0"/></body></body></body></body>
</worldbody>PARTS</mujoco>"""
FREE = ARM.replace('name="mount" pos="0 0 1" gravcomp="0.9">',
                   'name="mount" pos="0 0 1" gravcomp="0.9"><freejoint/>')  # fmt: skip


def compiled(parts: str = "", xml: str = ARM, flags: int = 0) -> Any:
    model = mujoco.MjModel.from_xml_string(xml.replace("PARTS", parts))
    model.opt.disableflags |= flags
    return model


def assert_moves_as_in_mujoco(model: Any, robot: Robot) -> None:
    """Compare passive torques and accelerations; of a free base, in the axes of its body."""
    data, rng, tree = mujoco.MjData(model), np.random.default_rng(1), RobotTree(robot)
    data.qpos[:] = model.qpos0 + rng.uniform(-0.7, 0.7, model.nq)
    free = 6 if robot.base == "floating" else 0
    T, turning = np.eye(model.nv), np.zeros(model.nv)
    if free:
        data.qpos[3:7] /= np.linalg.norm(data.qpos[3:7])
        mujoco.mju_quat2Mat(flat := np.zeros(9), data.qpos[3:7])
        T[:3, :3] = flat.reshape(3, 3)
    rates, torques = rng.normal(size=(2, model.nv))
    turning[:3] = T[:3, :3] @ np.cross(rates[3:6], rates[:3]) if free else 0.0
    data.qvel[:], data.qfrc_applied[:] = T @ rates, T @ torques
    mujoco.mj_forward(model, data)
    assert not data.nefc
    q, _ = robot.q_from_mujoco(model, data.qpos)
    gravity = T[:3, :3].T @ model.opt.gravity if free else model.opt.gravity
    x = {"q": q.tolist(), "rates": rates.tolist(), "gravity": gravity.tolist()}
    motion = tree.motion(x)
    found = np.zeros(model.nv)
    for k, torque in passive_torques(motion).items():
        found[k] = torque
    assert np.linalg.norm(found - T.T @ data.qfrc_passive) <= 1e-11 * np.linalg.norm(found)
    accelerations = np.array(c_aba(motion, torques.tolist()).independent)
    assert relative(accelerations, T.T @ (data.qacc - turning)) < 1e-10


@pytest.mark.parametrize("flags", [0, int(FLAGS.mjDSBL_SPRING), int(FLAGS.mjDSBL_DAMPER), BOTH])
@pytest.mark.parametrize("xml", [ARM, FREE], ids=["fixed", "floating"])
def test_accelerations_and_passive_torques_equal_those_of_mujoco(xml: str, flags: int) -> None:
    model = compiled(xml=xml, flags=flags)
    robot = Robot.from_mujoco(model)
    assert robot.is_passive == (flags != BOTH)
    assert_moves_as_in_mujoco(model, robot)


@pytest.mark.skipif(not hasattr(compiled(), "actuator_damping"), reason="MuJoCo before 4")
def test_damping_of_actuators_counts_at_their_joints() -> None:
    motors = (
        '<actuator><motor joint="shoulder" gear="-3" damping="0.2"/>'
        '<motor jointinparent="elbow" gear="2" damping="0.1"/></actuator>'
    )
    model = compiled(motors)
    assert_moves_as_in_mujoco(model, Robot.from_mujoco(model))


def test_a_robot_without_passive_elements_has_the_bytes_of_one_that_never_had_any() -> None:
    bare = re.sub(r'(stiffness|springref|damping|springdamper|gravcomp)="[^"]*"', "", ARM)
    expected = Robot.from_mujoco(compiled(xml=bare)).to_bytes()
    robot = Robot.from_mujoco(compiled())
    assert robot.to_bytes() != expected
    assert robot.without_passive().to_bytes() == expected
    assert Robot.from_mujoco(compiled(), passive=False).to_bytes() == expected


def test_springs_of_locked_joints_are_gone_and_their_bodies_stay_compensated() -> None:
    # springdamper is stiffness and damping by the inertia that the model has at the joint.
    xml = ARM.replace('springdamper="0.2 0.8"', 'stiffness="3" damping="0.2"')
    held = '<equality><joint joint1="slide" polycoef="0.2 0 0 0 0"/></equality>'
    welded = re.sub(r'<joint name="slide".*?/>', "", xml, flags=re.DOTALL)
    # 0.2 m along the slide, in the axes of the box.
    welded = welded.replace('pos="0.3 0 0" euler="0.5 0 0.1"', 'pos="POS" euler="0.5 0 0.1"')
    model = compiled(xml=xml)
    data = mujoco.MjData(model)
    data.joint("slide").qpos[0] = 0.2
    mujoco.mj_kinematics(model, data)
    box, lower = model.body("box").id, model.body("lower").id
    offset = data.xmat[box].reshape(3, 3).T @ (data.xpos[lower] - data.xpos[box])
    welded = welded.replace("POS", " ".join(map(str, offset)))
    robot = Robot.from_mujoco(compiled(xml=xml))
    for locked in (robot.lock({"slide": 0.2}), Robot.from_mujoco(compiled(held, xml))):
        assert_moves_as_in_mujoco(compiled(xml=welded), locked)
    assert [each.is_passive for each in robot.subtree("slide").joints] == [True, True]


# --- what does not count ------------------------------------------------------------------------

TENDON = '<tendon><fixed name="rope" STIFF><joint joint="elbow" coef="1"/></fixed></tendon>'
BALL = '<body name="b"><joint name="ball" type="ball" SPRING/><geom size="0.1"/></body>'


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('name="elbow"', 'name="elbow" frictionloss="0.1"', "dry friction of joint 'elbow'"),
        ("PARTS", TENDON.replace("STIFF", 'stiffness="3"'), "and friction of tendon 'rope'"),
        ("PARTS", TENDON.replace("STIFF", 'damping="3"'), "and friction of tendon 'rope'"),
        ("PARTS", TENDON.replace("STIFF", 'frictionloss="3"'), "friction of tendon 'rope'"),
        (
            "PARTS", '<actuator><position joint="elbow" kp="3"/></actuator>',
            r"forces by position or rate \(servo, muscle\) of actuator 'actuator0'",
        ),
        ("PARTS", '<option density="1.2" wind="0 1 0"/>', "medium by option 'density'"),
        ("PARTS", '<option viscosity="1e-5"/>', "medium by option 'viscosity'"),
        *(
            (
                "<worldbody>", f"<worldbody>{BALL.replace('SPRING', spring)}",
                "stiffness and damping of ball or free joint 'ball'",
            )
            for spring in ('stiffness="2"', 'damping="2"')
        ),
        ('damping="3"', 'damping="3 0.1"', "damping beyond the linear term of joint 'slide'"),
        ('stiffness="30"', 'stiffness="30 0.1"', "beyond the linear term, .* of joint 'slide'"),
    ],
)  # fmt: skip
def test_forces_of_mjcf_that_do_not_count_are_named(
    old: str, new: str, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    if " 0.1" in new and not hasattr(compiled(), "jnt_stiffnesspoly"):
        pytest.skip("MuJoCo before 4")
    assert ARM.count(old) == 1
    model = compiled(xml=ARM.replace(old, new))
    Robot.from_mujoco(model)
    head = "robot 'arm': free accelerations and bias forces do not count "
    (message,) = caplog.messages
    assert re.fullmatch(f"{head}.*{words}", message)
    caplog.clear()
    Robot.from_mujoco(model, passive=False)
    Robot.from_mujoco(compiled())
    assert not caplog.messages


DYNAMICS = '<axis xyz="0 0 1"/><dynamics damping="0.3" friction="0.2"/>'
URDF = robot_xml(
    link("base"), link("a"), link("b"), joint("first", "base", "a", inside=DYNAMICS),
    joint("plane", "a", "b", "planar", inside=DYNAMICS),
)  # fmt: skip


def test_damping_of_urdf_counts_and_friction_is_named(caplog: pytest.LogCaptureFixture) -> None:
    robot = Robot.from_urdf(URDF, "fixed")
    assert [each.damping for each in robot.joints] == [0.3, 0.0]
    assert caplog.messages == [
        "robot 'test': free accelerations and bias forces do not count dry friction of joints "
        "'first', 'plane'; damping of joint with several freedoms 'plane'"
    ]
    caplog.clear()
    plain = re.sub(r"<dynamics[^>]*/>", "", URDF)
    expected = Robot.from_urdf(plain, "fixed").to_bytes()
    assert Robot.from_urdf(URDF, "fixed", passive=False).to_bytes() == expected
    Robot.from_urdf(robot_xml(link("a"), link("b"), joint("weld", "a", "b", "fixed", DYNAMICS)))
    assert not caplog.messages


@pytest.mark.parametrize(
    ("dynamics", "words"),
    [
        ('<dynamics damping="much"/>', "joint 'first': <dynamics damping=…>"),
        ('<dynamics damping="inf"/>', "joint 'first': damping"),
        ('<dynamics friction="1 2"/>', "joint 'first': <dynamics friction=…>"),
        ('<dynamics dampin="1"/>', "<dynamics dampin=…> is not read; did you mean damping=…"),
        ('<dynamic damping="1"/>', "<dynamic> is not read; did you mean <dynamics>"),
        ("<dynamics/><dynamics/>", "joint 'first': <dynamics> appears 2 times"),
    ],
)
def test_bad_dynamics_of_urdf_are_refused(dynamics: str, words: str) -> None:
    text = URDF.replace('<dynamics damping="0.3" friction="0.2"/>', dynamics, 1)
    with pytest.raises(RobotError, match=words):
        Robot.from_urdf(text, "fixed")


@pytest.mark.parametrize("passive", [False, True])
def test_dampers_of_pinocchio_count_on_request(passive: bool) -> None:
    model = pin.Model()
    for k, kind in enumerate((pin.JointModelRX(), pin.JointModelPY())):
        model.addJoint(k, kind, pin.SE3.Identity(), f"j{k}")
        model.appendBodyToJoint(k + 1, pin.Inertia.Random(), pin.SE3.Identity())
    model.damping = np.array([0.3, 0.7])
    robot = Robot.from_pinocchio(model, passive) if passive else Robot.from_pinocchio(model)
    assert [each.damping for each in robot.joints] == ([0.3, 0.7] if passive else [0.0, 0.0])


def test_other_readers_of_one_urdf_agree_on_damping() -> None:
    text = robot_xml(link("a"), link("b"), joint("j", "a", "b", "continuous", DYNAMICS))
    by_pinocchio = Robot.from_pinocchio(pin.buildModelFromXML(text), passive=True)
    for robot in (Robot.from_urdf(text, "fixed"), by_pinocchio, Robot.from_mujoco(text)):
        assert [each.damping for each in robot.joints] == [0.3]


# --- data ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["stiffness", "spring_reference", "damping"])
def test_springs_are_finite_and_of_single_joints(name: str) -> None:
    with pytest.raises(RobotError, match=f"joint 'j': {name} is nan; expected a finite number"):
        Joint("j", JointKind.REVOLUTE, WORLD, **{name: np.nan})
    if name != "spring_reference":
        with pytest.raises(RobotError, match="for revolute and prismatic joints, this one is pl"):
            Joint("j", JointKind.PLANAR, WORLD, **{name: 1.0})


def test_each_passive_value_changes_the_bytes() -> None:
    robot = Robot.from_urdf(URDF, "fixed")
    first, *rest = robot.joints
    found = {robot.to_bytes()}
    for change in ({"stiffness": 1.0}, {"spring_reference": 1.0}, {"damping": 1.0}):
        changed = Joint(**{**vars(first), **change})
        found.add(robot.replaced(joints=[changed, *rest]).to_bytes())
    body, *others = robot.bodies
    held = type(body)(body.name, body.inertia, Inertia(1.0))
    found.add(robot.replaced(bodies=[held, *others]).to_bytes())
    assert len(found) == 5
