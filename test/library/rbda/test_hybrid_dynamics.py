"""Hybrid dynamics and external wrenches: any split of joints, beside Pinocchio."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import robots
from cluster_robots import Builder, random_problem
from on_floats import DynamicsOnFloats
from oracles import GRAVITY
from passive import with_passive
from seeds import seeds

from delassus import Robot
from delassus.dynamics import Dynamics
from delassus.errors import InputError, ProblemError
from delassus.model import WORLD
from delassus.rbda.dynamics import c_aba, c_rnea, hybrid
from delassus.rbda.robot_tree import RobotTree
from delassus.robots.built_in.humanoid import FEET, HANDS, humanoid_urdf
from delassus.testing import random_problem as random_open_problem


def split(tree: RobotTree, rng: np.random.Generator) -> frozenset[int]:
    """Return the indices of some joints' rates; all or none of those that share a loop."""
    own = list(tree.columns_by_joint.values())
    together = tree.velocities.shared
    clustered = {k for columns in together for k in columns}
    groups = [columns for columns in own if not clustered.intersection(columns)] + together
    return frozenset(k for columns in groups if rng.uniform() < 0.5 for k in columns)


@pytest.mark.parametrize("seed", seeds(60, every=5))
@pytest.mark.parametrize("kind", ["geared", "open", "passive"])
def test_any_split_of_joints_completes_a_motion(kind: str, seed: int) -> None:
    """Torques by C-RNEA for random accelerations: of a part of both follows the rest."""
    robot = (random_open_problem if kind == "open" else random_problem)(seed).robot
    robot = with_passive(robot, seed) if kind == "passive" else robot
    tree, rng = RobotTree(robot), np.random.default_rng(seed)
    motion = tree.motion(
        {
            "q": rng.uniform(-1, 1, robot.nq).tolist(),
            "rates": rng.normal(size=tree.size).tolist(),
            "gravity": GRAVITY.tolist(),
        }
    )
    ydd = rng.normal(size=tree.size)
    torques = np.array(c_rnea(motion, motion.accelerations(ydd.tolist())))
    for _ in range(3):
        accelerated = split(tree, rng)
        mask = np.isin(np.arange(tree.size), list(accelerated))
        known = np.where(mask, ydd, torques).tolist()
        found = np.array(hybrid(motion, known, accelerated))
        for part, whole in ((mask, torques), (~mask, ydd)):
            error = np.linalg.norm((found - whole)[part])
            assert error < 1e-9 * (np.linalg.norm(whole) + 1.0), (seed, accelerated)
    everything, nothing = frozenset(range(tree.size)), frozenset()
    assert hybrid(motion, ydd.tolist(), everything) == torques.tolist()
    forward = c_aba(motion, torques.tolist()).independent
    assert hybrid(motion, torques.tolist(), nothing) == forward


BIG = {
    "humanoid": lambda: Robot.from_urdf(humanoid_urdf().encode()),
    "atlas": lambda: Robot.from_urdf(robots.shared("atlas_v5"), passive=False),
    "talos": lambda: Robot.from_urdf(robots.talos(), passive=False),
}
"""Without dampers, which Pinocchio does not count."""


def leaves(robot: Robot, count: int) -> list[str]:
    """Return frames on the last bodies."""
    frames = [frame for frame in robot.frames.values() if frame.body != WORLD]
    by_body = {frame.body: frame.name for frame in frames}
    return [by_body[body] for body in sorted(by_body)][-count:]


@pytest.mark.parametrize("name", BIG)
def test_splits_and_wrenches_of_humanoids_agree_with_pinocchio(name: str) -> None:
    from oracles.pinocchio_models import PinocchioDynamics

    robot = BIG[name]()
    frames = [*FEET.values(), *HANDS.values()] if name == "humanoid" else leaves(robot, 4)
    dynamics = DynamicsOnFloats(robot, frames)
    rng, n = np.random.default_rng(1), dynamics.size
    q = rng.uniform(-1, 1, robot.nq)
    rates, ydd, wrenches = rng.normal(size=n), rng.normal(size=n), rng.normal(size=(4, 6))
    peer, external = PinocchioDynamics(robot, q), dict(zip(frames, wrenches, strict=True))
    expected = peer.inverse(rates, ydd, external)
    found = dynamics.inverse(q, rates, ydd, GRAVITY, wrenches)
    assert np.linalg.norm(found - expected) < 1e-10 * np.linalg.norm(expected)
    free = peer.forward(rates, expected, external)
    found = dynamics.forward(q, rates, expected, GRAVITY, wrenches)
    assert np.linalg.norm(found - free) < 1e-10 * np.linalg.norm(free)
    columns = RobotTree(robot).columns_by_joint
    for _ in range(2):
        accelerated = [joint for joint in dynamics.joints if rng.uniform() < 0.5]
        mask = np.zeros(n, dtype=bool)
        mask[[k for joint in accelerated for k in columns[joint]]] = True
        known = np.where(mask, ydd, expected)
        found = dynamics.hybrid(q, rates, known, accelerated, GRAVITY, wrenches)
        for part, whole in ((mask, expected), (~mask, ydd)):
            assert np.linalg.norm((found - whole)[part]) < 1e-10 * np.linalg.norm(whole)


def test_a_base_of_known_acceleration_is_that_of_a_robot_on_rails() -> None:
    """A floating base that is carried, beside the same robot with its base fixed."""
    urdf = humanoid_urdf().encode()
    floating, fixed = Dynamics(Robot.from_urdf(urdf)), Dynamics(Robot.from_urdf(urdf, "fixed"))
    rng = np.random.default_rng(0)
    q, rates, torques = (rng.normal(size=fixed.size) for _ in range(3))
    known, still = np.r_[np.zeros(6), torques], np.r_[np.zeros(6), rates]
    found = floating.hybrid(q, still, known, floating.joints[:1])
    expected = fixed.forward(q, rates, torques)
    assert np.linalg.norm(found[6:] - expected) < 1e-10 * np.linalg.norm(expected)
    wrench = floating.inverse(q, still, np.r_[np.zeros(6), expected])[:6]
    assert np.linalg.norm(found[:6] - wrench) < 1e-10 * np.linalg.norm(wrench)


def test_at_both_ends_it_costs_what_inverse_and_forward_dynamics_do() -> None:
    dynamics = Dynamics(Robot.from_urdf(humanoid_urdf().encode()))
    parts = ("shoulder", "arm", "wrist", "hand")
    arms = [name for name in dynamics.joints if any(part in name for part in parts)]

    def operations(accelerated: list[str]) -> int:
        return dynamics._hybrid(dynamics._indices(accelerated)).operations.total

    every, none = operations([*dynamics.joints]), operations([])
    assert every == dynamics.operations("inverse").total
    assert none == dynamics.operations("forward").total
    assert every < operations(arms) < none


def test_what_cannot_be_asked_is_said() -> None:
    build = Builder(3)
    build.differential(WORLD)
    dynamics = Dynamics(build.robot())
    one, other = dynamics.joints
    q, two = np.zeros(build.robot().nq), np.zeros(2)
    with pytest.raises(InputError, match=f"share a loop or coupling.*not .'{one}'. alone"):
        dynamics.hybrid(q, two, two, [one])
    assert dynamics.hybrid(q, two, two, [one, other]).shape == (2,)
    with pytest.raises(InputError, match="accelerated: unknown joint 'knee'"):
        dynamics.hybrid(q, two, two, ["knee"])
    with pytest.raises(InputError, match="write"):
        dynamics.hybrid(q, two, two, one)
    with pytest.raises(InputError, match=r"make it with wrenches="):
        dynamics.inverse(q, two, two, wrenches=np.zeros((1, 6)))
    with pytest.raises(ProblemError, match="wrenches: unknown frame 'hand'"):
        Dynamics(build.robot(), wrenches=["hand"])


def test_wrenches_are_none_by_default_and_kept_by_copies() -> None:
    dynamics = Dynamics(Robot.from_urdf(humanoid_urdf().encode()), wrenches=["left_palm"])
    rng = np.random.default_rng(5)
    q, rates, ydd = rng.normal(size=30), rng.normal(size=36), rng.normal(size=36)
    without = dynamics.inverse(q, rates, ydd)
    np.testing.assert_array_equal(
        without, dynamics.inverse(q, rates, ydd, wrenches=np.zeros((1, 6)))
    )
    copy = pickle.loads(pickle.dumps(dynamics))
    assert copy.wrenches == ("left_palm",)
    pushed = copy.inverse(q, rates, ydd, wrenches=[[1.0, 2.0, 3.0, 0.1, 0.2, 0.3]])
    assert np.linalg.norm(pushed - without) > 1.0
    with pytest.raises(InputError, match=r"'wrenches' has shape \(5,\), expected \(1, 6\)"):
        copy.inverse(q, rates, ydd, wrenches=np.zeros(5))
