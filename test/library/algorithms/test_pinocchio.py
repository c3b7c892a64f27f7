"""The back end of Pinocchio on what its models are particular about."""

from __future__ import annotations

import numpy as np
import pytest

from delassus import Contact, DelassusSolver, Problem, Robot

pytestmark = pytest.mark.needs("pinocchio")

URDF = """<robot name="pendulum">
  <link name="base"><inertial><mass value="5"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="rod"><inertial><origin xyz="0.13 0.27 -0.31"/><mass value="{mass}"/>
    <inertia ixx="{own}" iyy="{own}" izz="{own}" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="pivot" type="continuous">
    <parent link="base"/><child link="rod"/><axis xyz="0 0 1"/></joint>
</robot>"""


@pytest.mark.parametrize(("mass", "own"), [(2.3, 0.0), (2.3, 1e-8), (1.7, 1e-6), (1.7, 1e-3)])
def test_masses_like_points_away_from_the_joint(mass: float, own: float) -> None:
    """Rounding in the inertia about their centre is as large as the inertia."""
    robot = Robot.from_urdf(URDF.format(mass=mass, own=own))
    problem = Problem(robot, [Contact("tip", "rod", "surface")])
    found, expected = (
        DelassusSolver(problem, name).solve([0.3]).matrix for name in ("pinocchio", "pv_osimr")
    )
    assert np.linalg.norm(found - expected) <= 1e-12 * np.linalg.norm(expected)
