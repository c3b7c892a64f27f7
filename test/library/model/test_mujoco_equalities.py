"""Equalities of MuJoCo as loops, couplings and held joints: the same matrix as MuJoCo's."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from mujoco_scenes import CONNECT, FRAMES, WELD, closed_matrix, compiled, scene
from oracles import relative
from oracles.mujoco_models import of_mujoco

from delassus import Robot
from delassus.errors import RobotError
from delassus.model import LoopKind


def text(*values: object) -> str:
    return " ".join(f"{x:.17g}" for each in values for x in np.ravel(each))


def relative_pose(model: object, first: str, second: str) -> tuple[np.ndarray, np.ndarray]:
    """Return where body `second` is in `first` at qpos0: rotation and position."""
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    one, two = data.body(first), data.body(second)
    R = one.xmat.reshape(3, 3).T
    return R @ two.xmat.reshape(3, 3), R @ (two.xpos - one.xpos)


def quaternion(rotation: np.ndarray) -> np.ndarray:
    found = np.zeros(4)
    mujoco.mju_mat2Quat(found, rotation.ravel())
    return found


def as_in_mujoco(xml: str, tolerance: float = 1e-9, **moved: float) -> Robot:
    """Return the robot of a scene, whose matrix is MuJoCo's, with joints moved from qpos0."""
    model = compiled(xml)
    robot = Robot.from_mujoco(model)
    qpos = model.qpos0.copy()
    for name, more in moved.items():
        qpos[model.joint(name).qposadr[0]] += more
    expected = of_mujoco(model, FRAMES, {}, qpos)
    assert relative(closed_matrix(robot, model), expected) < tolerance
    return robot


@pytest.mark.parametrize(
    ("equality", "kind"),
    [
        (WELD, LoopKind.WELD),
        (CONNECT, LoopKind.POINT),
        (WELD.replace("ANCHOR", 'anchor="0.1 0.2 -0.1" torquescale="0"'), LoopKind.POINT),
    ],
)
def test_loops_of_bodies(equality: str, kind: LoopKind) -> None:
    assert [loop.kind for loop in as_in_mujoco(scene(2, equality)).loops] == [kind]


def test_a_weld_has_its_own_pose() -> None:
    R, p = relative_pose(compiled(scene(3, "")), "b5", "b10")
    anchor = np.array([0.3, -0.2, 0.5])
    # Quaternions need no unit norm.
    pose = text(p + R @ anchor, 2.0 * quaternion(R))
    weld = f'<weld body1="b5" body2="b10" anchor="{text(anchor)}" relpose="{pose}"/>'
    as_in_mujoco(scene(3, weld))


@pytest.mark.parametrize(
    ("equality", "kind"),
    [
        ('<weld site1="one" site2="two"/>', LoopKind.WELD),
        ('<connect site1="one" site2="two"/>', LoopKind.POINT),
        ('<weld site1="one" site2="two" torquescale="0"/>', LoopKind.POINT),
    ],
)
def test_loops_of_sites_are_between_these(equality: str, kind: LoopKind) -> None:
    R, p = relative_pose(compiled(scene(4, "")), "b10", "b5")
    place, turn = np.array([0.1, -0.3, 0.2]), np.array([0.5, 0.5, -0.5, 0.5])
    about = np.zeros(9)
    mujoco.mju_quat2Mat(about, turn)
    there = f'pos="{text(p + R @ place)}" quat="{text(quaternion(R @ about.reshape(3, 3)))}"'
    xml = scene(4, equality)
    for body, site in (
        ("b5", f'<site name="one" pos="{text(place)}" quat="{text(turn)}"/>'),
        ("b10", f'<site name="two" {there}/>'),
    ):
        xml = xml.replace(f'<site name="s{body[1:]}"', f'{site}<site name="s{body[1:]}"')
    assert [loop.kind for loop in as_in_mujoco(xml).loops] == [kind]


def test_equalities_that_are_not_active_are_none() -> None:
    asleep = 'active="false"'
    joints = f'<joint joint1="j1" joint2="j2" {asleep}/><joint joint1="jo" {asleep}/>'
    robot = as_in_mujoco(scene(6, WELD.replace("ANCHOR", asleep) + joints), 1e-10)
    assert not robot.is_closed and "jo" in robot.joint_names


@pytest.mark.parametrize(
    ("equalities", "held"),
    [
        # Where it was written, and by how much more; of higher terms MuJoCo takes none then.
        (
            '<joint joint1="j3" polycoef="0.5 1 2 0 0"/>'
            '<joint joint1="j7" joint2="j1" polycoef="-0.2 0 0 0 0"/>',
            {"j3": 0.5, "j7": -0.2},
        ),
        # What is tied to a joint that is held is held, too.
        (
            '<joint joint1="j4" joint2="j3" polycoef="0.1 2 0 0 0"/>'
            '<joint joint1="j7" joint2="j4" polycoef="-0.2 -1 0 0 0"/>'
            '<joint joint1="j3" polycoef="0.5 0 0 0 0"/>',
            {"j3": 0.5, "j4": 0.1 + 2 * 0.5, "j7": -0.2 - 1.1},
        ),
    ],
)
def test_an_equality_of_one_joint_holds_it(equalities: str, held: dict[str, float]) -> None:
    robot = as_in_mujoco(scene(7, equalities), 1e-10, **held)
    assert held.keys().isdisjoint(robot.joint_names) and not robot.is_closed


def test_equalities_that_hold_a_joint_at_two_places_are_refused() -> None:
    once = '<joint joint1="j3" polycoef="0.5 0 0 0 0"/>'
    with pytest.raises(RobotError, match=r"hold joint 'j3' at different places: .* off by 0\.1"):
        Robot.from_mujoco(compiled(scene(7, once + once.replace("0.5", "0.4"))))
    assert "j3" not in Robot.from_mujoco(compiled(scene(7, once + once))).joint_names
    tied = '<joint joint1="j4" joint2="j3" polycoef="0 2 0 0 0"/>'
    with pytest.raises(RobotError, match=r"lock: coupling 'equality2' is off by -0\.5"):
        Robot.from_mujoco(compiled(scene(7, once + once.replace("j3", "j4") + tied)))


def test_a_tendon_is_as_long_as_it_was_written() -> None:
    """Its joints have references, so that its length there is not zero."""
    xml = scene(8, '<tendon tendon1="cable" polycoef="0.3 0 0 0 0"/>')
    cable = (
        '<tendon><fixed name="cable"><joint joint="j1" coef="2"/><joint joint="j2" coef="-0.5"/>'
        "</fixed></tendon><equality>"
    )
    model = compiled(xml.replace("<equality>", cable))
    (coupling,) = Robot.from_mujoco(model).couplings
    data = mujoco.MjData(model)
    written = dict(zip(("j1", "j2"), (0.4, -0.9), strict=True))
    for name, value in written.items():
        data.qpos[model.joint(name).qposadr[0]] = value
    mujoco.mj_forward(model, data)
    off = coupling.offset + sum(ratio * written[name] for name, ratio in coupling.ratios)
    assert off == pytest.approx(data.efc_pos[0], abs=1e-14) and abs(off) > 0.1


MOCAP = """<mujoco><worldbody><body name="hand" mocap="true" pos="1 0 0"/>
  <body name="box" pos="1 0 0"><JOINT/><geom size="0.1"/>
    <body name="lid"><joint name="lid" axis="0 1 0"/><geom size="0.1" pos="0.2 0 0"/></body></body>
  </worldbody><equality><weld name="grip" body1="lid" body2="hand"/></equality></mujoco>"""


def test_a_weld_of_what_floats_to_a_mocap_body_is_refused() -> None:
    floating = MOCAP.replace("JOINT", "freejoint")
    with pytest.raises(RobotError, match="equality 'grip' ties what floats to 'hand', a mocap"):
        Robot.from_mujoco(floating)
    asleep = Robot.from_mujoco(floating.replace('body2="hand"', 'body2="hand" active="false"'))
    assert not asleep.loops
    # On the world it holds the body where the mocap body was written.
    (loop,) = Robot.from_mujoco(MOCAP.replace("JOINT", 'joint name="turn"')).loops
    assert loop.name == "grip"
