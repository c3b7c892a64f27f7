"""What a Pinocchio model says beyond a tree: the robot has it, or it is refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from on_floats import matrix
from oracles import relative
from oracles.pinocchio_models import of_pinocchio

from delassus import Robot
from delassus.errors import RobotError


def chain(*kinds: Any) -> Any:
    """Return a chain of these joints, j0, j1, and so on, with a frame l0, l1, on each body."""
    model, above = pin.Model(), 0
    for k, kind in enumerate(kinds):
        above = model.addJoint(above, kind, pin.SE3.Random(), f"j{k}")
        model.appendBodyToJoint(above, pin.Inertia.Random(), pin.SE3.Identity())
        model.addBodyFrame(f"l{k}", above, pin.SE3.Random(), 0)
    return model


def test_armatures_and_limits_are_those_of_the_model() -> None:
    model = chain(pin.JointModelRX(), pin.JointModelPY())
    model.armature = np.array([0.3, 0.7])
    model.lowerPositionLimit = np.array([-0.5, -0.2])
    model.upperPositionLimit = np.array([1.5, 0.4])
    robot = Robot.from_pinocchio(model)
    assert [joint.armature for joint in robot.joints] == [0.3, 0.7]
    assert [(j.lower, j.upper) for j in robot.joints] == [(-0.5, 1.5), (-0.2, 0.4)]
    positions = {"j0": 0.8, "j1": -0.1}
    expected = of_pinocchio(model, ["l1"], positions)
    assert relative(matrix(robot, ["l1"], positions), expected) < 1e-11


def test_rotors_are_the_armature_of_joints_without() -> None:
    model = chain(pin.JointModelRX(), pin.JointModelRY())
    model.armature = np.array([0.0, 0.7])
    model.rotorInertia, model.rotorGearRatio = np.array([0.01, 0.01]), np.array([10.0, 20.0])
    robot = Robot.from_pinocchio(model)
    assert [joint.armature for joint in robot.joints] == [1.0, 0.7]
    # Which Pinocchio itself leaves out.
    model.armature = np.array([1.0, 0.7])
    expected = of_pinocchio(model, ["l1"], {"j0": 0.3, "j1": 0.2})
    assert relative(matrix(robot, ["l1"], {"j0": 0.3, "j1": 0.2}), expected) < 1e-11


@pytest.mark.parametrize("kind", ["JointModelFreeFlyer", "JointModelPlanar"])
def test_an_armature_of_several_freedoms_is_refused(kind: str) -> None:
    model = chain(getattr(pin, kind)(), pin.JointModelRX())
    last = np.eye(model.nv)[-1]
    model.armature = 0.5 * last
    assert [joint.armature for joint in Robot.from_pinocchio(model).joints] == [0.0, 0.5]
    model.armature = np.full(model.nv, 0.5)
    with pytest.raises(RobotError, match=f"joint 'j0' is a {kind} with armature .0.5, 0.5"):
        Robot.from_pinocchio(model)


def test_frames_of_one_name_are_all_there() -> None:
    model = chain(pin.JointModelRX(), pin.JointModelRY())
    place = pin.SE3.Random()
    for kind, pose in ((pin.FrameType.OP_FRAME, place), (pin.FrameType.SENSOR, pin.SE3.Random())):
        model.addFrame(pin.Frame("l1", 2, 0, pose, kind))
    robot = Robot.from_pinocchio(model)
    assert set(robot.frames) == {"l0", "l1", "l1/op_frame", "l1/sensor"}
    assert np.array_equal(robot.frames["l1/op_frame"].placement.rotation, place.rotation)
    model.addFrame(pin.Frame("tool", 2, 0, place, pin.FrameType.OP_FRAME))
    positions = {"j0": 0.3, "j1": 0.2}
    expected = of_pinocchio(model, ["tool"], positions)
    assert relative(matrix(robot, ["l1/op_frame"], positions), expected) < 1e-11


def test_a_wrapper_stands_for_its_model() -> None:
    model = chain(pin.JointModelRX(), pin.JointModelRY())
    wrapper = pin.RobotWrapper(model)
    robot = Robot.from_pinocchio(wrapper)
    assert robot.to_bytes() == Robot.from_pinocchio(model).to_bytes()
    q, v = [0.1, 0.2], [0.3, 0.4]
    assert robot.q_from_pinocchio(wrapper, q)[0].tolist() == q
    assert robot.q_to_pinocchio(wrapper, q).tolist() == q
    assert robot.v_from_pinocchio(wrapper, q, v).tolist() == v
    assert robot.v_to_pinocchio(wrapper, q, v).tolist() == v


@pytest.mark.parametrize(
    "given", [None, "robot.urdf", chain().createData()], ids=["nothing", "path", "data"]
)
def test_other_than_model_refused(given: object) -> None:
    with pytest.raises(RobotError, match="model is .*; expected a Model: write pinocchio.build"):
        Robot.from_pinocchio(given)
