"""The immutable robot: what it refuses, its sizes, its bytes."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from urdf_text import joint, link, robot_xml

from delassus.errors import RobotError
from delassus.model import WORLD, Body, Frame, Inertia, Joint, JointKind, Robot, Transform
from delassus.model.mechanism import builds_of

UNIT = Inertia(1.0, np.zeros(3), np.eye(3))


def chain(*kinds: JointKind) -> Robot:
    """Return joints j0, j1, … one on the other, with a frame tip on the last body."""
    joints = [Joint(f"j{i}", kind, i - 1) for i, kind in enumerate(kinds)]
    bodies = [Body(f"b{i}", UNIT) for i in range(len(kinds))]
    return Robot("chain", joints, bodies, [Frame("tip", len(kinds) - 1, Transform())])


def test_sizes_offsets_and_names() -> None:
    robot = chain(JointKind.ROOT, JointKind.REVOLUTE, JointKind.FLOATING, JointKind.PLANAR)
    assert (robot.nq, robot.nv) == (11, 16)
    assert robot.q_offsets == (0, 0, 1, 8)
    assert robot.joint_names == ("j1", "j2", "j3")
    assert robot.base == "floating"
    assert chain(JointKind.REVOLUTE).base == "fixed"
    assert "joints 'j1', 'j2', 'j3', frames=1" in repr(robot)
    assert robot.neutral().tolist() == [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]


def test_is_immutable() -> None:
    robot = chain(JointKind.REVOLUTE)
    with pytest.raises(FrozenInstanceError):
        robot.joints[0].armature = 1.0  # type: ignore[misc]
    with pytest.raises(TypeError):
        robot.frames["new"] = Frame("new", 0, Transform())  # type: ignore[index]
    with pytest.raises(AttributeError):
        robot.nq = 3  # type: ignore[misc]


A, B = Joint("a", JointKind.REVOLUTE, WORLD), Body("b", UNIT)
TIP = Frame("f", 0, Transform())
ON_A = [A, Joint("a", JointKind.REVOLUTE, 0)]
BEFORE = "joint 'a': parent body .* must come before body 0"


@pytest.mark.parametrize(
    ("joints", "bodies", "frames", "words"),
    [
        ([A], [], [], "1 joints but 0 bodies"),
        *(([replace(A, parent=parent)], [B], [], BEFORE) for parent in (-2, 0, 1)),
        (ON_A, [B, Body("c", UNIT)], [], "joint 'a' appears twice"),
        ([A], [B], [TIP, TIP], "frame 'f' appears twice"),
        *(
            ([A], [B], [replace(TIP, body=body)], f"frame 'f': there is no body {body}")
            for body in (-2, 1)
        ),
        (
            [A, Joint("root", JointKind.ROOT, 0)], [B, Body("c", UNIT)], [],
            "joint 'root': a free-flyer must be the first joint",
        ),
    ],
)  # fmt: skip
def test_robot_refused(joints, bodies, frames, words: str) -> None:
    with pytest.raises(RobotError, match=words):
        Robot("r", joints, bodies, frames)


@pytest.mark.parametrize(
    ("name", "placement", "words"),
    [
        (3, Transform(), "frame 3: its name is 3; expected text: write Frame"),
        ("tip\udc80", Transform(), r"its name is 'tip\\udc80'; expected text that is valid UTF-8"),
        ("tip", None, "frame 'tip': placement is None; expected a Transform: write Frame"),
    ],
)
def test_frame_refused(name, placement, words) -> None:
    with pytest.raises(RobotError, match=words):
        Frame(name, 0, placement)


def test_armature_returns_another_robot() -> None:
    robot = chain(JointKind.REVOLUTE, JointKind.PRISMATIC)
    armed = robot.with_armature({"j1": 0.25})
    assert [joint.armature for joint in armed.joints] == [0.0, 0.25]
    assert [joint.armature for joint in robot.joints] == [0.0, 0.0]
    assert list(armed.frames) == list(robot.frames)


@pytest.mark.parametrize(
    ("armature", "words"),
    [
        ({"j9": 0.1}, "unknown joint 'j9'; joints: j1, j2"),
        ({"j1": -0.1}, "joint 'j1': armature must be finite and >= 0, got -0.1"),
        ({"j1": np.nan}, "joint 'j1': armature must be finite and >= 0, got nan"),
        ({"j2": 0.1}, "joint 'j2': armature is defined for revolute and prismatic"),
        ({"j0": 0.1}, "joint 'j0': armature is defined for .* this one is root"),
    ],
)
def test_armature_refusals(armature: dict[str, float], words: str) -> None:
    robot = chain(JointKind.ROOT, JointKind.REVOLUTE, JointKind.PLANAR)
    with pytest.raises(RobotError, match=words):
        robot.with_armature(armature)


def test_bytes_change_with_all_that_moves_the_matrix_and_with_nothing_else() -> None:
    joint = Joint("a", JointKind.REVOLUTE, WORLD)
    body = Body("b", UNIT)
    frame = Frame("tip", 0, Transform())
    plain = Robot("r", [joint], [body], [frame]).to_bytes()
    limited = Robot("s", [replace(joint, upper=1.0)], [replace(body, name="c")], [frame])
    assert limited.to_bytes() == plain
    variants = [
        Robot("r", [replace(joint, axis=np.array([0, 1, 0]))], [body], [frame]),
        Robot("r", [replace(joint, kind=JointKind.PRISMATIC)], [body], [frame]),
        Robot("r", [replace(joint, armature=0.5)], [body], [frame]),
        Robot("r", [joint], [replace(body, inertia=Inertia(2.0))], [frame]),
        Robot("r", [joint], [body], [replace(frame, body=WORLD)]),
        Robot("r", [joint], [body], [replace(frame, placement=Transform.from_xyz_rpy((1, 0, 0)))]),
    ]
    assert len({plain, *(variant.to_bytes() for variant in variants)}) == 7


def test_changed_and_copied_robots_keep_their_class() -> None:
    """Also a class that derives from Robot; a pickle holds the arguments of the constructor."""
    robot = Limb.from_urdf(robot_xml(link("a"), link("b"), joint("j", "a", "b")))
    others = [
        robot.with_armature({"j": 0.1}),
        robot.with_constraints(),
        robot.lock({"j": 0.2}),
        robot.subtree("j"),
        pickle.loads(pickle.dumps(robot)),
        copy.deepcopy(robot),
    ]
    assert {type(other) for other in (robot, *others)} == {Limb}
    assert {other.to_bytes() for other in others[-2:]} == {robot.to_bytes()}
    assert repr(robot).startswith("Limb('test', base='floating', joint 'j', frames=2, hash=")


class Limb(Robot):
    """A robot of a class of its own, which pickle finds by name."""


def test_subtrees_of_one_build_share_a_number() -> None:
    """Body 0 carries three bodies with two children each: (R, P), (P, R) and (R, P)."""
    R, P = JointKind.REVOLUTE, JointKind.PRISMATIC
    kinds = [(JointKind.ROOT, WORLD)]
    for first, second in ((R, P), (P, R), (R, P)):
        hub = len(kinds)
        kinds += [(R, 0), (first, hub), (second, hub)]
    joints = [Joint(f"j{i}", kind, parent) for i, (kind, parent) in enumerate(kinds)]
    marks = [0] * len(joints)
    builds = builds_of(joints, marks)
    assert builds[1] == builds[7] != builds[4]
    assert len(set(builds)) == 5
    unordered = builds_of(joints, marks, ordered=False)
    assert unordered[1] == unordered[4] == unordered[7]
    # The mark of a leaf tells its whole limb from the other limbs.
    marks[8] = 1
    builds = builds_of(joints, marks, ordered=False)
    assert builds[1] == builds[4] != builds[7]
