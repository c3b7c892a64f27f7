"""Springs, dampers and gravity compensation for any robot of the tests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from delassus import Robot
from delassus.model import Inertia
from delassus.model.joint import SINGLE


def with_passive(robot: Robot, seed: int) -> Robot:
    """Return a robot with random passive elements at most joints and bodies."""
    rng = np.random.default_rng(seed)
    joints, bodies = [], []
    for joint in robot.joints:
        if joint.kind in SINGLE:
            values = rng.uniform((0.0, -1.0, 0.0), (30.0, 1.0, 5.0)) * (rng.random(3) < 0.8)
            law = dict(zip(("stiffness", "spring_reference", "damping"), values, strict=True))
            joint = replace(joint, **law)
        joints.append(joint)
    for body in robot.bodies:
        share = rng.uniform(-0.5, 1.5) * (rng.random() < 0.8)
        held = Inertia(share * body.inertia.mass, share * body.inertia.moment)
        bodies.append(replace(body, compensated=held))
    found = robot.replaced(joints=joints, bodies=bodies)
    assert found.is_passive
    return found
