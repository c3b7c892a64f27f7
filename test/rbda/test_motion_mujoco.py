"""M, h, J, J̇ẏ and ÿ against MuJoCo, whose free joint counts its linear velocity in the world."""

from __future__ import annotations

import numpy as np
import pytest
import robots
from on_floats import solver_on_floats
from seeds import seeds

mujoco = pytest.importorskip("mujoco", reason="needs MuJoCo")

from mujoco_oracle import model_of, set_positions, wxyz  # noqa: E402
from passive import with_passive  # noqa: E402
from pinocchio_motion import relative  # noqa: E402

from delassus_ros import Contact, Problem, Robot  # noqa: E402
from delassus_ros.dynamics import Dynamics  # noqa: E402
from delassus_ros.errors import ProblemError, RobotError  # noqa: E402
from delassus_ros.model.robot import JointKind  # noqa: E402
from delassus_ros.samples import random_inputs  # noqa: E402
from delassus_ros.testing import random_problem  # noqa: E402

OUTPUTS = ("J", "JdotV", "M", "a0", "h", "qdd0")
KINDS = (JointKind.REVOLUTE, JointKind.PRISMATIC)


def rotation_of(quaternion: np.ndarray) -> np.ndarray:
    found = np.zeros(9)
    mujoco.mju_quat2Mat(found, np.roll(quaternion, 1))
    return found.reshape(3, 3)


def by_mujoco(problem: Problem, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the outputs with world axes, in the velocities of this package."""
    robot = problem.robot
    model = model_of(robot)
    model.opt.gravity[:] = inputs["gravity"]
    data = mujoco.MjData(model)
    set_positions(data, robot, inputs["q"])
    T = np.eye(model.nv)
    first = {joint.name: model.joint(joint.name).dofadr[0] for joint in robot.joints}
    order = np.concatenate(
        [np.arange(first[j.name], first[j.name] + j.kind.nv) for j in robot.joints]
    )
    rates = np.zeros(model.nv)
    rates[order] = inputs["rates"]
    turning = np.zeros(model.nv)  # Ṫ ẏ
    if robot.base == "floating":
        R = rotation_of(inputs["base_orientation"])
        root = robot.joints[0].name
        data.joint(root).qpos[3:] = wxyz(R)
        at = slice(first[root], first[root] + 3)
        T[at, at] = R
        v, w = np.split(rates[first[root] : first[root] + 6], 2)
        turning[at] = R @ np.cross(w, v)
    data.qvel[:] = T @ rates
    torques = np.zeros(model.nv)
    torques[order] = inputs["torques"]
    data.qfrc_applied[:] = T @ torques
    mujoco.mj_forward(model, data)
    M = np.zeros((model.nv, model.nv))
    for column, unit in zip(M, np.eye(model.nv), strict=True):
        mujoco.mj_mulM(model, data, column, unit)
    J, JdotV = [], []
    for contact in problem.contacts:
        frame = robot.frames[contact.frame]
        pose = frame.placement @ contact.placement
        body = model.body(f"body{frame.body}").id
        turn = data.xmat[body].reshape(3, 3)
        point = data.xpos[body] + turn @ pose.translation
        rows, moving = np.zeros((6, model.nv)), np.zeros((6, model.nv))
        mujoco.mj_jac(model, data, rows[:3], rows[3:], point, body)
        mujoco.mj_jacDot(model, data, moving[:3], moving[3:], point, body)
        J.append(contact.selection @ rows)
        JdotV.append(contact.selection @ (moving @ data.qvel + rows @ turning))
    M_own = (T.T @ M @ T)[np.ix_(order, order)]
    h = (T.T @ (M @ turning + data.qfrc_bias - data.qfrc_passive))[order]
    J_own, bias = (np.vstack(J) @ T)[:, order], np.concatenate(JdotV)
    free = np.linalg.solve(M_own, inputs["torques"] - h)
    assert not data.nefc
    qdd0 = (T.T @ (data.qacc - turning))[order]
    found = {"M": M_own, "h": h, "J": J_own, "JdotV": bias, "qdd0": qdd0}
    return {**found, "a0": J_own @ free + bias}


def assert_agrees(problem: Problem, seed: int, tolerance: float) -> None:
    world = Problem(problem.robot, problem.contacts, "world", OUTPUTS)
    inputs = random_inputs(world, seed)
    solution = solver_on_floats(world).solve(**inputs)
    for name, expected in by_mujoco(world, inputs).items():
        assert relative(solution.output(name), expected) < tolerance, name


@pytest.mark.parametrize("passive", [False, True])
@pytest.mark.parametrize("seed", seeds(30))
def test_random_trees(seed: int, passive: bool) -> None:
    problem = random_problem(seed, KINDS, "world")
    robot = with_passive(problem.robot, seed) if passive else problem.robot
    assert_agrees(Problem(robot, problem.contacts), seed, 1e-10)


@pytest.mark.parametrize("base", ["floating", "fixed"])
def test_the_quadruped(base: str) -> None:
    robot = Robot.from_urdf(robots.quadruped(), base=base)
    contacts = [Contact(f"{foot}_FOOT", f"{foot}_FOOT") for foot in ("LF", "RF", "LH", "RH")]
    assert_agrees(Problem(robot, contacts), 3, 1e-10)


def test_a_humanoid_on_two_soles() -> None:
    robot = Robot.from_urdf(robots.talos())
    soles = [f"{side}_sole_link" for side in ("left", "right")]
    assert_agrees(Problem(robot, [Contact(s, s, "surface") for s in soles]), 4, 1e-10)


DOOR = """<mujoco><worldbody>
  <body name="trunk"><freejoint/><geom type="box" size="0.1 0.2 0.3" pos="0.1 0 0"/>
    <body name="leg" pos="0.1 0.2 0.3"><joint name="hip" axis="0 1 0" armature="0.1"/>
      <geom size="0.1" pos="0.1 0 0"/></body></body>
  <body name="door" pos="1 1 0" quat="1 2 3 4"><joint name="hinge" axis="0 1 0"/>
    <geom type="box" size="0.1 0.2 0.3" pos="0.1 0 0"/>
    <body name="bolt" pos="0.2 0 0"><joint name="slide" type="slide" axis="0 1 1"/>
      <geom size="0.05"/></body></body></worldbody></mujoco>"""


def test_another_tree_on_the_world_has_gravity_in_world_axes_alone() -> None:
    robot = Robot.from_mujoco(mujoco.MjModel.from_xml_string(DOOR))
    contacts = [Contact(each, each) for each in ("leg", "bolt")]
    assert_agrees(Problem(robot, contacts), 5, 1e-10)
    assert Problem(robot, contacts, outputs=["J", "JdotV", "M", "MinvJT"]).axes == "contact"
    for output in ("a0", "h", "qdd0"):
        with pytest.raises(ProblemError, match=f"{output!r} needs gravity.*'hinge' is on the wor"):
            Problem(robot, contacts, outputs=[output])
    with pytest.raises(RobotError, match="joint 'hinge' is on the world beside the floating base"):
        Dynamics(robot)
    alone = Problem(robot.subtree("hinge"), contacts[1:], outputs=["a0"])
    assert [port.name for port in alone.inputs] == ["q", "rates", "torques", "gravity"]
