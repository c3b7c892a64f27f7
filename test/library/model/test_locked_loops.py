"""Closed mechanisms of which joints are held, or that are taken apart: as MuJoCo has them."""

from __future__ import annotations

import pytest
from mujoco_scenes import CONNECT, FOUR_BAR, FRAMES, WELD, closed_matrix, compiled, scene
from on_floats import matrix_at
from oracles import relative
from oracles.mujoco_models import of_mujoco

from delassus import Closure, Robot
from delassus.errors import RobotError
from delassus.model import WORLD

pytestmark = pytest.mark.needs("mujoco")


@pytest.mark.parametrize("equality", [WELD, CONNECT])
def test_a_loop_goes_on_between_what_its_ends_are_part_of(equality: str) -> None:
    xml = scene(0, equality)
    held = ("j5", "j10", "j3")
    model, expected = compiled(xml), of_mujoco(compiled(xml, held), FRAMES, {})
    at = {name: float(model.qpos0[model.joint(name).qposadr[0]]) for name in held}
    robot = Robot.from_mujoco(model).lock(at)
    assert relative(closed_matrix(robot, model), expected) < 1e-9


@pytest.mark.parametrize("equality", [WELD, CONNECT])
def test_a_limb_with_a_loop_is_a_robot_of_its_own(equality: str) -> None:
    xml = scene(1, equality)
    model, expected = compiled(xml), of_mujoco(compiled(xml, ("jo",)), FRAMES, {})
    limb = Robot.from_mujoco(model).subtree("jb")
    (loop,) = limb.loops
    assert [limb.bodies[k].name for k in (loop.predecessor, loop.successor)] == ["b5", "b10"]
    assert relative(closed_matrix(limb, model), expected) < 1e-9


def test_a_closed_mechanism_is_held_where_it_closes() -> None:
    model = compiled(FOUR_BAR)
    robot = Robot.from_mujoco(model)
    closure = Closure(robot, reference=dict.fromkeys(robot.joint_names, 0.0))
    closed = closure.solve({"a": 0.3, "turn": 0.4})
    at = dict(zip(robot.joint_names, closed.q.tolist(), strict=True))
    held = {name: at[name] for name in "abc"}
    stiff = robot.lock(held)
    assert stiff.joint_names == ("turn",) and not stiff.loops
    G = matrix_at(stiff, ["tool"], [0.4])
    expected = of_mujoco(compiled(FOUR_BAR, ("a",)), ["tool"], {**held, "turn": 0.4})
    assert relative(G, expected) < 1e-10
    with pytest.raises(RobotError, match=r"loop 'pin' is off by 0.0\d+ \[rad, m\] at the"):
        robot.lock({**held, "c": held["c"] + 0.1})
    on_world = robot.lock({"turn": 0.0})
    assert on_world.joints[0].parent == WORLD and not on_world.lock(held).loops
