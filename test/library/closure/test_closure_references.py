"""Closure on published robots: the reference library's, and the Digit-like one."""

from __future__ import annotations

import numpy as np
import pytest
import robots
from linkages import robot_of
from oracles import paper_library

from delassus import Robot
from delassus.closure import Closure, ClosureStatus
from delassus.model import WORLD, Joint, JointKind, LoopKind
from delassus.rbda.constraints import residual
from delassus.testing.tello import differential, hip_differential


def _ordinary(robot: Robot):
    from delassus.model.clusters import clusters_of

    return [cluster for cluster in clusters_of(robot) if cluster.is_ordinary]


@pytest.mark.parametrize("name", ["four_bar", "planar_leg_linkage"])
def test_the_states_of_the_reference_library(name):
    states = paper_library.data(f"urdf_{name}")
    robot = Robot.from_urdf(robots.shared(f"grbda_{name}"), base="fixed")
    bodies = {body["name"]: body["q_index"] for body in states["bodies"]}
    order = [bodies[body.name] for body in robot.bodies]
    independent = [j.name for j in robot.joints if j.name in robot.independent]
    outside = [robot.joints[c.joints[0]].name for c in _ordinary(robot)]
    for state in states["states"]:
        q = dict(zip(robot.joint_names, np.array(state["q_span"])[order], strict=True))
        # The reference on the state's own side of the flat configuration.
        start = {name: 0.9 * value for name, value in q.items()}
        result = Closure(robot, start).solve({name: q[name] for name in independent + outside})
        assert result.status is ClosureStatus.OK
        assert np.abs(result.q - list(q.values())).max() <= 1e-9


def test_functions_close_like_loops():
    """Tello's hip: from its motors, and from its links; states of the reference library."""
    states = paper_library.data("tello_with_arms_1ee")
    names = ("rotor1", "rotor2", "link1", "link2")
    joints = [Joint(name, JointKind.REVOLUTE, WORLD) for name in names]
    functions = [differential("hip", names)]
    robot = robot_of(joints, functions=functions, independent=names[:2])
    closure = Closure(robot, {"link1": 0.0, "link2": 0.0})
    assert np.abs(hip_differential(closure.reference.tolist())).max() <= 1e-12
    for state in states["states"]:
        for cluster in states["clusters"]:
            if not cluster["name"].endswith("hip-differential"):
                continue
            q = np.array(
                [state["q_span"][states["bodies"][i]["q_index"]] for i in cluster["bodies"]]
            )
            for measured in (names[:2], names[2:]):
                given = {name: q[names.index(name)] for name in measured}
                result = closure.solve(given)
                if result.status is ClosureStatus.OK:
                    assert np.abs(hip_differential(result.q.tolist())).max() <= 1e-12
                    assert result.q[[names.index(n) for n in measured]].tolist() == list(
                        given.values()
                    )
                else:
                    assert result.status is ClosureStatus.UNREACHABLE
        near = Closure(robot, dict(zip(names, q + [0.02, -0.02, 0.01, 0.01], strict=True)))
        result = near.solve(dict(zip(names[:2], q[:2], strict=True)))
        assert result.status is ClosureStatus.OK
        assert np.abs(result.q - q).max() <= 1e-9


def _index(robot: Robot, name: str) -> int:
    return next(i for i, joint in enumerate(robot.joints) if joint.name == name)


def test_the_digit_like_robot_closes_its_six_loops():
    urdf = robots.shared("epr_digit_like_2legs")
    robot = Robot.from_urdf(urdf, loops=urdf.with_suffix(".yaml"))
    assert len(robot.loops) == 6 and {loop.kind for loop in robot.loops} == {LoopKind.WELD}
    closure = Closure(robot)
    motors = [name for name in robot.joint_names if name.startswith("motor")]
    assert len(motors) == 12
    bound = closure.bind(motors)
    start = closure.reference[[robot.q_offsets[_index(robot, name)] for name in motors]]
    assert np.abs(start).max() <= 0.5
    from delassus.model.clusters import clusters_of

    rng = np.random.default_rng(6)
    closed = 0
    for _ in range(60):
        bound.measured[...] = start + rng.uniform(-0.2, 0.2, 12)
        status = bound.solve()
        if status is not ClosureStatus.OK:
            # The ankles' push rods do not reach everything.
            assert status is ClosureStatus.UNREACHABLE
            continue
        closed += 1
        assert bound.residual <= 1e-10
        for cluster in clusters_of(robot):
            if not cluster.is_ordinary:
                assert np.abs(residual(cluster, bound.q.tolist())).max() <= 1e-10
    assert closed >= 30
