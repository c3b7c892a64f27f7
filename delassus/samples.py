"""Random inputs of a problem, for tests and self checks."""

from __future__ import annotations

import random

import numpy as np

from delassus.model.couplings import follow
from delassus.model.spatial import Array
from delassus.problem import Problem


def random_inputs(problem: Problem, seed: int) -> dict[str, Array]:
    """Return random valid inputs: entries within ±π [rad, m], unit quaternions.

    Dependent joints of couplings have the positions that the couplings determine.
    """
    # Importing numpy.random would take a third of the time to a kernel from the cache.
    rng = random.Random(seed)
    inputs = {
        port.name: np.array([rng.uniform(-np.pi, np.pi) for _ in range(port.size)]).reshape(
            port.shape
        )
        for port in problem.inputs
    }
    for name in ("base_orientation", "contact_orientations"):
        if name in inputs:
            inputs[name] /= np.linalg.norm(inputs[name], axis=-1, keepdims=True)
    robot = problem.robot
    for joint, offset in zip(robot.joints, robot.q_offsets, strict=True):
        if joint.kind.nq == 7:
            quaternion = inputs["q"][offset + 3 : offset + 7]
            quaternion /= np.linalg.norm(quaternion)
    follow(robot, inputs["q"], ())
    return inputs
