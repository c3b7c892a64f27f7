"""Positions by name: joints that follow, joints with several numbers, and what is said of them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import robots
from linkages import four_bar, robot_of
from on_floats import matrix_at
from oracles import relative, symmetric
from test_ranges import PRISMATIC, REVOLUTE, chain

from delassus import Closure, DelassusWarning, Robot
from delassus.errors import RobotError
from delassus.model import WORLD, Coupling, Joint, JointKind


def gripper() -> Robot:
    return chain(
        ("driver", REVOLUTE, -1.0, 1.0),
        ("follower", REVOLUTE, -1.0, 1.0),
        ("finger", PRISMATIC, 0.0, 0.04),
        couplings=[
            Coupling("mimic", (("follower", 1.0), ("driver", 2.0)), -0.1),
            Coupling("screw", (("finger", 1.0), ("follower", -0.01))),
        ],
    )


def test_followers_go_where_couplings_put_them() -> None:
    robot = gripper()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert robot.q({"driver": 0.4}) == pytest.approx([0.4, -0.7, -0.007])
        # By the name of a follower: then its driver follows.
        assert robot.q({"finger": 0.003}) == pytest.approx([-0.1, 0.3, 0.003])
        # Nothing is named: offsets count all the same, and so does the default.
        assert robot.q({}) == pytest.approx([0.0, 0.1, 0.001])
        assert robot.q({}, default=0.2) == pytest.approx([0.2, -0.3, -0.003])
        assert robot.q({"driver": 0.4, "follower": -0.7}) == pytest.approx([0.4, -0.7, -0.007])


def test_the_panda_by_the_name_of_its_driver() -> None:
    """Both fingers open: with the second one shut G was 0.9 % off, as Pinocchio tells."""
    import pinocchio as pin
    text = robots.example("panda_description/urdf/panda.urdf").read_text()
    robot = Robot.from_urdf(text, "fixed")
    assert [c.name for c in robot.couplings]
    first, second = "panda_finger_joint1", "panda_finger_joint2"
    q = robot.q({first: 0.04, "panda_joint4": -1.5})
    assert q[robot.joint_names.index(second)] == pytest.approx(0.04)
    G = matrix_at(robot, ["panda_leftfinger"], q)
    model = pin.buildModelFromXML(text)
    data = model.createData()
    at = {name: model.joints[model.getJointId(name)].idx_q for name in robot.joint_names}
    own = pin.neutral(model)
    for name, value in zip(robot.joint_names, q, strict=True):
        own[at[name]] = value
    frame = model.getFrameId("panda_leftfinger")
    pin.computeAllTerms(model, data, own, np.zeros(model.nv))
    J = pin.computeFrameJacobian(model, data, own, frame, pin.LOCAL)
    M = symmetric(data.M)
    # As one motion: the second finger moves as the first does.
    E = np.zeros((model.nv, model.nv - 1))
    rows = [model.joints[model.getJointId(n)].idx_v for n in robot.joint_names]
    free = [r for n, r in zip(robot.joint_names, rows, strict=True) if n != second]
    for k, row in enumerate(free):
        E[row, k] = 1.0
    E[rows[robot.joint_names.index(second)], free.index(rows[robot.joint_names.index(first)])] = 1
    expected = J @ E @ np.linalg.solve(E.T @ M @ E, E.T @ J.T)
    assert relative(G, expected) < 1e-10


def test_a_differential_is_known_by_either_side() -> None:
    couplings = [
        Coupling("pitch", (("pitch", 2.0), ("left", -1.0), ("right", -1.0))),
        Coupling("roll", (("roll", 2.0), ("left", -1.0), ("right", 1.0))),
    ]
    wrist = chain(
        *((n, REVOLUTE, -9.0, 9.0) for n in ("left", "right", "pitch", "roll")),
        couplings=couplings,
    )
    assert wrist.q({"left": 0.5, "right": 0.1}) == pytest.approx([0.5, 0.1, 0.3, 0.2])
    assert wrist.q({"pitch": 0.3, "roll": 0.2}) == pytest.approx([0.5, 0.1, 0.3, 0.2])


def test_positions_off_a_coupling_warned_of_and_kept() -> None:
    with pytest.warns(DelassusWarning, match="do not fit: coupling 'mimic' is off by 0.25 at "
                                             "'follower': -0.2, 'driver': 0.4"):  # fmt: skip
        q = gripper().q({"driver": 0.4, "follower": -0.2})
    assert q[:2].tolist() == [0.4, -0.2]


@pytest.mark.parametrize("loops_as", ["clusters", "rows"])
def test_open_loop_warned_of_with_its_remedy(loops_as: str) -> None:
    robot = four_bar().with_loops_as(loops_as)
    assert bool(robot.row_loops) == (loops_as == "rows")
    closure = Closure(robot)
    (crank,) = closure.independent
    away = float(closure.reference[robot.joint_names.index(crank)]) + 0.2
    with pytest.warns(
        DelassusWarning, match=r"loop .*: not closed by Robot.q, a gap of .*Closure\("
    ):
        robot.q({crank: away})
    closed = dict(zip(robot.joint_names, closure.solve({crank: away}).q.tolist(), strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        robot.q(closed)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("shoulder", 90.0, r"'shoulder' is 90 rad, and its limits are -3 and 3; .*np.deg2rad"),
        ("shoulder", -40.0, "'shoulder' is -40 rad"),
        ("lift", 35.0, "'lift' is 35 m, and its limits are 0 and 0.4$"),
    ],
)
def test_positions_outside_limits_warned_of(name, value, words) -> None:
    arm = chain(("shoulder", REVOLUTE, -3.0, 3.0), ("lift", PRISMATIC, 0.0, 0.4))
    with pytest.warns(DelassusWarning, match=words) as told:
        arm.q({name: value})
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Nobody named these, and limits of templates are none.
        arm.q({}, default=35.0)
        chain(("shoulder", REVOLUTE, 0.0, 0.0)).q({"shoulder": 90.0})


def mobile() -> Robot:
    joints = [
        Joint("base", JointKind.PLANAR, WORLD),
        Joint("hip", REVOLUTE, 0),
        Joint("pack", JointKind.FLOATING, 1),
    ]
    return robot_of(joints)


def test_planar_and_floating_joints_go_by_name() -> None:
    robot = mobile()
    pack = [0.1, 0.2, 0.3, 0.0, 0.6, 0.0, 0.8]
    q = robot.q({"pack": pack, "base": (1.0, 2.0, 0.5), "hip": 0.7}, default=9.0)
    assert q.tolist() == [1.0, 2.0, 0.5, 0.7, *pack]
    v = robot.v({"base": [1, 2, 3], "pack": np.arange(6.0)}, default=0.5)
    assert v.tolist() == [1.0, 2.0, 3.0, 0.5, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    for given, words in (
        ({"base": 1.0}, r"positions of joint 'base' has shape \(\); expected \(3,\), x, y \[m\]"),
        ({"pack": pack[:6]}, r"has shape \(6,\); expected \(7,\), x, y, z \[m\], unit quatern"),
        ({"pack": [*pack[:6], 0.0]}, "quaternion in positions of joint 'pack' has norm 0.6; e"),
        ({"hip": [1.0, 2.0]}, "positions of joint 'hip' is .*; expected a number"),
        ({"knee": 1.0}, "unknown joint 'knee'.*; in the order of q: base, hip, pack"),
    ):
        with pytest.raises(RobotError, match=words):
            robot.q(given)


def test_positions_without_names_are_told_what_they_are() -> None:
    robot = gripper()
    with pytest.raises(RobotError, match=r"positions is \[0.1, 0.2, 0.3\]; expected numbers by "
                       r"joint: write \{'driver': 0.1\}; these 3 numbers are q itself, in the "
                       "order driver, follower, finger"):  # fmt: skip
        robot.q([0.1, 0.2, 0.3])  # type: ignore[arg-type]
    with pytest.raises(RobotError, match=r"'driver': 0.1\}; the joints are driver, follower, fi"):
        robot.q(np.zeros(2))  # type: ignore[arg-type]
    with pytest.raises(RobotError, match="positions is 'hip=1'; expected numbers by joint"):
        robot.q("hip=1")  # type: ignore[arg-type]
