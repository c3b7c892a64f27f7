"""Published robots: masses, frames and mass matrix as Pinocchio's own URDF reader has them."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
import robots
from on_floats import matrix_at
from oracles import columns_of, relative, symmetric
from oracles.pinocchio_models import of_pinocchio
from oracles.textbook import frame_poses, mass_matrix, random_q
from urdf_text import joint, link, robot_xml

from delassus import Closure
from delassus.errors import RobotError
from delassus.model import JointKind, Robot
from delassus.model.robot import Base

ROBOTS: dict[str, tuple[Callable[[], str | Path], Base]] = {
    **{name: (load, base) for name, (load, base, _) in robots.TEN.items()},
    "panda with free fingers": (robots.panda, "fixed"),
    "tiago": (lambda: robots.example("tiago_description/robots/tiago.urdf"), "floating"),
    "human": (lambda: robots.example("human_description/robots/human.urdf"), "floating"),
    **{
        name: (functools.partial(robots.shared, name), base)
        for name, base in (
            ("shadow_hand_right", "fixed"), ("epr_digit_like_2legs", "floating"),
            ("grbda_mini_cheetah_approximate", "fixed"),
            ("grbda_mit_humanoid_approximate", "fixed"),
        )
    },
}  # fmt: skip
TOLERANCE = 1e-12
AS_PRINTED = 1e-10
"""Against Pinocchio where it takes multiples of π/2 as they are printed, and we as they are."""


@pytest.mark.parametrize("name", ROBOTS)
def test_agrees_with_pinocchio(name: str) -> None:
    load, base = ROBOTS[name]
    assert_agrees_with_pinocchio(load(), base)


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_every_kind_of_joint_agrees_with_pinocchio(base: Base) -> None:
    limit = '<limit lower="-1" upper="1" effort="1" velocity="1"/>'
    text = robot_xml(
        *(link(name) for name in "abcdefg"),
        joint("turn", "a", "b", "revolute", '<axis xyz="1 2 -3"/>' + limit),
        joint("spin", "b", "c", "continuous", '<axis xyz="-1 0.5 0.2"/>'),
        joint("weld", "c", "g", "fixed", ""),
        joint("slide", "g", "d", "prismatic", '<axis xyz="0.3 -1 2"/>' + limit),
        joint("plane", "d", "e", "planar", '<axis xyz="0 0 1"/>'),
        joint("free", "e", "f", "floating", ""),
    )
    assert_agrees_with_pinocchio(text, base)


def assert_agrees_with_pinocchio(source: str | Path, base: Base) -> None:
    """Compare with what Pinocchio reads, from the text as it is and with exact angles."""
    robot = Robot.from_urdf(source, base)
    text = source.read_text(encoding="utf-8") if isinstance(source, Path) else source
    assert_same_robot(robot, pinocchio_model(with_exact_angles(text), base), TOLERANCE)
    assert_same_robot(robot, pinocchio_model(text, base), AS_PRINTED)


def with_exact_angles(text: str) -> str:
    """Return URDF text with multiples of π/2 in origins to 17 digits."""

    def exact(printed: re.Match[str]) -> str:
        angle = float(printed[0])
        multiple = round(angle / (np.pi / 2)) * np.pi / 2
        return repr(multiple) if abs(angle - multiple) < 2e-11 else printed[0]

    return re.sub(r'rpy="[^"]*"', lambda found: re.sub(r"-?\d+\.\d{9,}", exact, found[0]), text)


def pinocchio_model(text: str, base: Base) -> pin.Model:
    """Return the model that Pinocchio reads from URDF text."""
    if base == "floating":
        return pin.buildModelFromXML(text, pin.JointModelFreeFlyer(), "root")
    return pin.buildModelFromXML(text)


def assert_same_robot(robot: Robot, model: pin.Model, tolerance: float) -> None:
    """Compare names, masses, link poses and the mass matrix at random configurations."""
    assert set(model.names) - {"universe"} == {item.name for item in robot.joints}
    assert robot.nv == model.nv
    their_links = [frame.name for frame in model.frames if frame.type == pin.FrameType.BODY]
    assert sorted(robot.frames) == sorted(their_links)
    for i, item in enumerate(robot.joints):
        their_mass = model.inertias[model.getJointId(item.name)].mass
        assert robot.bodies[i].inertia.mass == pytest.approx(their_mass, rel=1e-14)

    data = model.createData()
    rng = np.random.default_rng(7)
    order = pinocchio_order(model, robot)
    for _ in range(3):
        q = random_q(robot, rng)
        theirs = pinocchio_q(model, robot, q)
        pin.framesForwardKinematics(model, data, theirs)
        for frame, pose in frame_poses(robot, q).items():
            oracle = data.oMf[model.getFrameId(frame, pin.FrameType.BODY)]
            assert np.abs(pose.rotation - oracle.rotation).max() < tolerance, frame
            assert np.abs(pose.translation - oracle.translation).max() < tolerance, frame
        expected = symmetric(pin.crba(model, data, theirs))[np.ix_(order, order)]
        # Each entry against the joints it couples: fingers count as much as legs.
        scale = np.sqrt(np.diag(expected))
        difference = (mass_matrix(robot, q) - expected) / np.outer(scale, scale)
        assert np.abs(difference).max() < tolerance


def pinocchio_q(model: pin.Model, robot: Robot, q: np.ndarray) -> np.ndarray:
    """Return the same configuration in Pinocchio's order; a free-flyer at the identity."""
    theirs = pin.neutral(model)
    for item, offset in zip(robot.joints, robot.q_offsets, strict=True):
        their = model.joints[model.getJointId(item.name)]
        entries = q[offset : offset + item.kind.nq]
        if item.kind is JointKind.REVOLUTE and their.nq == 2:
            entries = np.array([np.cos(entries[0]), np.sin(entries[0])])
        elif item.kind is JointKind.PLANAR:
            entries = np.array([*entries[:2], np.cos(entries[2]), np.sin(entries[2])])
        theirs[their.idx_q : their.idx_q + len(entries)] = entries
    return theirs


def pinocchio_order(model: pin.Model, robot: Robot) -> np.ndarray:
    """Return for each of our velocities its index in Pinocchio's."""
    order = np.empty(robot.nv, dtype=int)
    for name, columns in columns_of(robot).items():
        their = model.joints[model.getJointId(name)]
        count = columns.stop - columns.start
        # Six freedoms: angular first here, linear first there.
        inner = [3, 4, 5, 0, 1, 2] if count == 6 else range(count)
        order[columns] = [their.idx_v + i for i in inner]
    return order


def test_inertia_of_a_published_robot_is_refused_by_name() -> None:
    with pytest.raises(RobotError, match="link 'body': the inertia of the body .* semidefinite"):
        Robot.from_urdf(robots.example("romeo_description/urdf/romeo_laas_small.urdf"))


def test_fingers_without_inertia_are_refused_with_what_cures_them() -> None:
    path = robots.example("romeo_description/urdf/romeo.urdf")
    with pytest.raises(RobotError, match="moves no inertia; .* or joint 'LHand' an armature"):
        Robot.from_urdf(path)
    robot = Robot.from_urdf(path, armature={"LHand": 1e-4, "RHand": 1e-4})
    # Pinocchio reads its mimic joints as free ones alone. Without inertia they move nothing else.
    model = pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
    for name in list(model.names)[2:]:
        if re.search("Hand|Finger|Thumb", name):
            model.armature[model.joints[model.getJointId(name)].idx_v] = 1e-4
    q = Closure(robot).reference.copy()
    moved = ("LShoulderPitch", "LKneePitch", "LElbowYaw")
    arms = [robot.joint_names.index(name) for name in moved]
    q[arms] = 0.3, 0.5, -0.4
    feet = ["l_ankle", "r_ankle", "l_wrist"]
    positions = dict(zip(robot.joint_names, q.tolist(), strict=True))
    expected = of_pinocchio(model, feet, positions)
    assert relative(matrix_at(robot, feet, q), expected) < 1e-10
