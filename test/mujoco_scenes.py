"""Random limbs in MuJoCo with tied ends, and the equivalent robots at qpos0."""

from __future__ import annotations

from typing import Any

import numpy as np
from on_floats import matrix_at

from delassus import Robot

FRAMES = ["s2", "s7"]
WELD, CONNECT = (f'<{kind} body1="b5" body2="b10" ANCHOR/>' for kind in ("weld", "connect"))


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
"""A four-bar on a foot that turns."""


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
    import mujoco

    locks = "".join(f'<joint joint1="{name}" polycoef="0 0 0 0 0"/>' for name in held)
    return mujoco.MjModel.from_xml_string(xml.replace("HELD", locks))


def closed_matrix(robot: Robot, model: Any) -> np.ndarray:
    qpos = model.qpos0.copy()
    for name, value in robot.locked.items():
        qpos[model.joint(name).qposadr[0]] = value
    q, _ = robot.q_from_mujoco(model, qpos)
    return matrix_at(robot, FRAMES, q, "ltl")
