"""Forces on what rolls without slip: the point that touches accelerates, by −ω × ṗ."""

from __future__ import annotations

import numpy as np
import pytest

from delassus import Contact, DelassusSolver, Problem, Robot

RADIUS, SPEED, MASS, SPIN = 0.3, 10.0, 1.0, 0.04
"""Of the wheel, its rate [rad/s] and its inertia about the axle."""
WHEEL = f"""<robot name="wheel"><link name="rim"><inertial><mass value="{MASS}"/>
<inertia ixx="0.02" ixy="0" ixz="0" iyy="{SPIN}" iyz="0" izz="0.02"/></inertial></link></robot>"""


@pytest.mark.parametrize("axes", ["contact", "world"])
@pytest.mark.parametrize("torque", [0.0, 0.5])
def test_a_wheel_that_rolls_carries_its_weight(axes: str, torque: float) -> None:
    """Turned by some angle, and pushed forward by what a motor takes to speed it up."""
    robot = Robot.from_urdf(WHEEL)
    contact = Contact("ground", "rim", moving="position")
    problem = Problem(robot, [contact], axes=axes, outputs=["a0", "qdd0", "MinvJT"])
    angle = 0.7
    c, s = np.cos(angle), np.sin(angle)
    R = np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])
    omega, place = np.array([0.0, SPEED, 0.0]), np.array([0.0, 0.0, -RADIUS])
    world = axes == "world"
    turned = {"base_orientation": [0.0, np.sin(angle / 2), 0.0, np.cos(angle / 2)]}
    gravity = np.array([0.0, 0.0, -9.81])
    solution = DelassusSolver(problem).solve(
        [],
        rates=[*(R.T @ -np.cross(omega, place)), *omega],
        torques=[0.0, 0.0, 0.0, 0.0, torque, 0.0],
        gravity=gravity if world else R.T @ gravity,
        contact_positions={"ground": R.T @ place},
        **(turned if world else {}),
    )
    rows = np.eye(3) if world else R.T
    wander = -np.cross(omega, place)
    forces = solution.forces(acceleration=rows @ -np.cross(omega, wander))
    # From M a = f_x and I ω̇ = τ − r f_x with a = r ω̇.
    push = MASS * RADIUS * torque / (SPIN + MASS * RADIUS**2)
    np.testing.assert_allclose(rows.T @ forces, [push, 0.0, 9.81 * MASS], rtol=1e-12, atol=1e-11)
    spin = solution.accelerations(forces)[4]
    assert spin == pytest.approx(push / MASS / RADIUS, rel=1e-10, abs=1e-11)
    held = rows.T @ solution.forces()
    np.testing.assert_allclose(held[2], (9.81 - SPEED**2 * RADIUS) * MASS, rtol=1e-12)
