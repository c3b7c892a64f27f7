"""Closed mechanisms of which joints are held, or that are taken apart: as MuJoCo has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from other_models import of_mujoco
from pinocchio_motion import relative

from delassus_ros import Closure, Contact, DelassusSolver, Problem, Robot
from delassus_ros.errors import RobotError
from delassus_ros.model import WORLD

mujoco = pytest.importorskip("mujoco")

FRAMES = ["s2", "s7"]
WELD, CONNECT = (f'<{kind} body1="b5" body2="b10" ANCHOR/>' for kind in ("weld", "connect"))


def scene(seed: int, equality: str) -> str:
    """Return two limbs, j0 to j5 and j6 to j10, on a base, their ends tied; and another joint."""
    rng = np.random.default_rng(seed)

    def drawn(count: int) -> str:
        return " ".join(f"{x:.6f}" for x in rng.uniform(-1, 1, count))

    def limb(numbers: range) -> str:
        text = ""
        for i in numbers:
            text += (
                f'<body name="b{i}" pos="{drawn(3)}" quat="{drawn(4)}"><joint name="j{i}" '
                f'axis="{drawn(3)}" pos="{drawn(3)}" ref="{rng.uniform(-1, 1):.3f}"/>'
                f'<geom type="box" size=".1 .2 .15" pos="{drawn(3)}"/>'
                f'<site name="s{i}" pos="{drawn(3)}" quat="{drawn(4)}"/>'
            )
        return text + "</body>" * len(numbers)

    tied = equality.replace("ANCHOR", f'anchor="{drawn(3)}"')
    return f"""<mujoco><compiler angle="radian"/><worldbody>
      <body name="other"><joint name="jo"/><geom size=".1" pos="0 .2 0"/></body>
      <body name="base"><joint name="jb" axis="{drawn(3)}"/><geom size=".1" pos=".3 .2 .1"/>
      {limb(range(6))}{limb(range(6, 11))}</body></worldbody>
      <equality>{tied}HELD</equality></mujoco>"""


def compiled(xml: str, held: tuple[str, ...] = ()) -> Any:
    """Return MuJoCo's model, with joints held by equalities."""
    locks = "".join(f'<joint joint1="{name}" polycoef="0 0 0 0 0"/>' for name in held)
    return mujoco.MjModel.from_xml_string(xml.replace("HELD", locks))


def closed_matrix(robot: Robot, model: Any) -> np.ndarray:
    q, _ = robot.q_from_mujoco(model, model.qpos0)
    problem = Problem(robot, [Contact(name, name, "surface") for name in FRAMES])
    return DelassusSolver(problem, "ltl", cache=False).solve(q, check=True).matrix


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


FOUR_BAR = """
<mujoco model="four_bar"><worldbody>
  <body name="foot"><joint name="turn"/><geom size="0.1" pos="0.1 0 0"/>
    <body name="crank"><joint name="a" axis="0 1 0"/><geom size="0.1" pos="0.1 0 0"/>
      <body name="coupler" pos="0.2 0 0"><joint name="b" axis="0 1 0"/>
        <geom size="0.1" pos="0.2 0 0"/><site name="tool" pos="0.2 0 0.1"/></body></body>
    <body name="rocker" pos="0.3 0 -0.2"><joint name="c" axis="0 1 0"/>
      <geom size="0.1" pos="0 0 0.1"/></body></body></worldbody>
  <equality><connect name="pin" body1="coupler" body2="rocker" anchor="0.35 0 0"/>HELD
  </equality></mujoco>"""


def test_a_closed_mechanism_is_held_where_it_closes() -> None:
    model = compiled(FOUR_BAR)
    robot = Robot.from_mujoco(model)
    closure = Closure(robot, reference=dict.fromkeys(robot.joint_names, 0.0))
    closed = closure.solve({"a": 0.3, "turn": 0.4})
    at = dict(zip(robot.joint_names, closed.q.tolist(), strict=True))
    held = {name: at[name] for name in "abc"}
    stiff = robot.lock(held)
    assert stiff.joint_names == ("turn",) and not stiff.loops
    problem = Problem(stiff, [Contact("tool", "tool", "surface")])
    G = DelassusSolver(problem, cache=False).solve([0.4]).matrix
    expected = of_mujoco(compiled(FOUR_BAR, ("a",)), ["tool"], {**held, "turn": 0.4})
    assert relative(G, expected) < 1e-10
    with pytest.raises(RobotError, match=r"loop 'pin' is off by 0.0\d+ \[rad, m\] at the"):
        robot.lock({**held, "c": held["c"] + 0.1})
    on_world = robot.lock({"turn": 0.0})
    assert on_world.joints[0].parent == WORLD and not on_world.lock(held).loops
