"""Torque-controlled robots: quadrupeds, a humanoid, an arm over a table or a cylinder."""

from __future__ import annotations

from typing import Any

from delassus.errors import InputError, unknown
from delassus.robots.built_in import ROBOTS as DEMO_ROBOTS
from delassus.robots.built_in import demo_urdf, humanoid
from delassus.robots.built_in.arm import TOOL, arm_urdf
from delassus_ros.sim.plant import Floor, Plant, PlantSettings
from delassus_ros.sim.quadruped import FEET, POSTURE

ROBOTS = ("quadruped", "geared", "humanoid", "arm", "arm_on_cylinder")
OWN: dict[str, dict[str, Any]] = {"humanoid": {"holding": 1500.0, "braking": 30.0}}
"""Settings by robot that differ from the defaults, for robots of another weight."""


def make_plant(robot: str, settings: PlantSettings | None = None) -> Plant:
    """Return a robot of :data:`ROBOTS` on its floor; with the robot's settings by default."""
    if robot not in ROBOTS:
        raise InputError(unknown("robot", robot, ROBOTS))
    settings = PlantSettings(**OWN.get(robot, {})) if settings is None else settings
    if robot in DEMO_ROBOTS:
        return Plant(demo_urdf(robot), FEET, POSTURE, settings)
    if robot == "humanoid":
        return Plant(humanoid.humanoid_urdf(), humanoid.FEET, humanoid.POSTURE, settings)
    radius = 0.5 if robot == "arm_on_cylinder" else 0.0
    # Soft, as the ball of an arm hops on stiff floors.
    floor = Floor(height=0.2, radius=radius, x=0.55, softness=0.05)
    posture = {"joint_2": 0.55, "joint_3": 1.75, "joint_5": 0.85}
    return Plant(arm_urdf(), {TOOL: TOOL}, posture, settings, False, floor)
