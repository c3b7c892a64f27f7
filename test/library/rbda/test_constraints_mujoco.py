"""K, E and closed positions against MuJoCo's equality constraints."""

from __future__ import annotations

import numpy as np
import pytest
from linkages import assembled, four_bar, random_linkage, random_pose, tied
from oracles.mujoco_models import MujocoModel, acceptable

from delassus import Robot
from delassus.closure import Closure, ClosureStatus
from delassus.model import WORLD, Coupling, Joint, JointKind, Loop, LoopKind, Transform
from delassus.rbda.constraints import constraint_jacobian, loop_jacobian


def at(model: MujocoModel, q) -> tuple[np.ndarray, float]:
    """Return MuJoCo's constraint Jacobian and the largest gap of a loop [m]."""
    model.move(np.asarray(q))
    return model.K, model.gap()


def model_of(robot: Robot) -> MujocoModel:
    """Return MuJoCo's model, whose equality constraints do not depend on inertias."""
    return MujocoModel(acceptable(robot))


def difference(K: np.ndarray, other: np.ndarray) -> float:
    """Return how much the row spaces differ."""
    assert np.linalg.matrix_rank(K, tol=1e-9) == np.linalg.matrix_rank(other, tol=1e-9)
    ours, theirs = np.linalg.pinv(K, rcond=1e-9) @ K, np.linalg.pinv(other, rcond=1e-9) @ other
    return float(np.abs(ours - theirs).max())


@pytest.mark.parametrize("kind", [LoopKind.POINT, LoopKind.WELD])
@pytest.mark.parametrize("seed", range(5))
def test_spatial_loops(kind, seed):
    robot, cluster, q = random_linkage(kind, 200 + seed)
    rows, gap = at(model_of(robot), q)
    assert gap <= 1e-12
    K = np.array(constraint_jacobian(cluster, q.tolist()))
    assert difference(K, rows[:, 1:]) <= 1e-9
    E = np.array(loop_jacobian(cluster, q.tolist()))
    assert np.abs(rows[:, 1:] @ E).max() <= 1e-11 * np.abs(E).max()


@pytest.mark.parametrize("kind", [LoopKind.POINT, LoopKind.WELD])
@pytest.mark.parametrize("length", [0.3, 4.0])
def test_prismatic_joints_that_follow(kind, length):
    """Their columns have constants, oblique and small beside the others: not every one a pivot."""
    for seed in range(40):
        slides = (3, 4, kind.rows + 2)[: 2 + seed % 2]
        robot, cluster, q = random_linkage(kind, 300 + seed, slides=slides, length=length)
        rows, gap = at(model_of(robot), q)
        assert gap <= 1e-11 * length / 0.3
        E = np.array(loop_jacobian(cluster, q.tolist()))
        assert np.abs(rows[:, 1:] @ E).max() <= 1e-10 * np.abs(rows).max() * np.abs(E).max()


def test_a_geared_four_bar_that_closure_closed():
    """Loop and gear in one cluster, mounted anywhere; positions from the motor alone."""
    gear = Coupling("gear", (("motor", -1.0), ("crank", 9.0)), 0.2)
    robot = four_bar(
        mount=random_pose(np.random.default_rng(3)),
        couplings=(gear,),
        extra=(Joint("motor", JointKind.REVOLUTE, WORLD),),
        independent=("motor",),
    )
    reference = {"crank": 0.8, "motor": 7.4, "coupler": assembled(0.8)[0]}
    closure = Closure(robot, reference)
    model = model_of(robot)
    for crank in np.linspace(-3.0, 3.0, 20):
        result = closure.solve({"motor": 9.0 * crank + 0.2})
        assert result.status is ClosureStatus.OK
        rows, gap = at(model, result.q)
        assert gap <= 1e-11
        coupled = dict(zip(robot.joint_names, result.q, strict=True))
        assert abs(9.0 * coupled["crank"] + 0.2 - coupled["motor"]) <= 1e-11
        E = np.array(loop_jacobian(tied(robot), result.q.tolist()))
        assert np.abs(rows @ E).max() <= 1e-12 * np.abs(E).max()
        assert np.linalg.matrix_rank(rows, tol=1e-9) == 3 == len(E) - E.shape[1]


def test_loops_through_the_world():
    robot, cluster, q = random_linkage(LoopKind.POINT, 7)
    (loop,) = robot.loops
    model = model_of(robot)
    model.move(q)
    site = model.data.site(f"{loop.name} 0 {loop.predecessor}")
    here = Transform(site.xmat.reshape(3, 3), site.xpos)
    to_world = Loop(
        "anchor", LoopKind.WELD, loop.predecessor, WORLD, loop.predecessor_placement, here
    )
    path = [0, *range(1, loop.predecessor + 1)]
    tied_down = Robot("r", robot.joints, robot.bodies, [], (), [to_world])
    rows, gap = at(model_of(tied_down), q)
    assert gap <= 1e-12
    from delassus.model import Cluster

    whole = Cluster(tied_down, tuple(path), loops=(to_world,))
    K = np.array(constraint_jacobian(whole, q.tolist()))
    assert difference(K, rows[:, path]) <= 1e-9
