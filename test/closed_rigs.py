"""Pipelines of robots with closed loops: the geared demo robot, and a four-bar alone."""

from __future__ import annotations

import math

import numpy as np
from linkages import REFERENCE, assembled, four_bar
from tick_support import START, Rig, swing

from delassus import Contact, DelassusSolver, Problem, Robot
from delassus.closure import Closure
from delassus.model import Body, Inertia, Joint, JointKind
from delassus.robots.built_in import demo_urdf

FEET = ("LF", "RF", "LH", "RH")
LEGS = [f"{leg}_{joint}" for leg in FEET for joint in ("HAA", "HFE", "KFE")]
LIFT = ["LIFT_CRANK", "LIFT_COUPLER", "LIFT_ROCKER"]


class Geared:
    """The geared demo robot, moving inside its limits."""

    def __init__(self) -> None:
        self.robot = Robot.from_urdf(demo_urdf("geared"))
        problem = Problem(self.robot, [Contact(foot, f"{foot}_FOOT") for foot in FEET])
        self.problem = problem
        self.solver = DelassusSolver(problem, "pv_osimr")
        self.closure = Closure(problem)
        # Another one than the tick's, which starts each time from the last of these.
        self._other = Closure(problem)
        joints = {joint.name: joint for joint in self.robot.joints}
        self._middle = {
            name: 0.5 * (joints[name].lower + joints[name].upper)
            for name in self.closure.independent
        }

    def truth(self, stamp: int) -> dict[str, float]:
        return dict(zip(self.robot.joint_names, self.full(stamp), strict=True))

    def full(self, stamp: int) -> list[float]:
        around = swing(self.closure.independent)(stamp)
        independent = {name: self._middle[name] + 0.5 * around[name] for name in around}
        result = self._other.solve(independent)
        assert result.status.is_valid
        return result.q.tolist()

    def rig(self, **options) -> Rig:
        rig = Rig(self.solver, self.truth, self.full, closure=Closure(self.problem), **options)
        rig.touch(*FEET)
        return rig


class Bar:
    """A four-bar on its own, whose joints are known in closed form."""

    def __init__(self, **options) -> None:
        robot = four_bar(**options)
        heavy = Inertia.from_com(2.0, (0.1, 0.0, 0.05), np.diag([0.02, 0.03, 0.04]))
        arm = Joint("arm", JointKind.REVOLUTE, 1)
        robot = Robot(
            "four_bar", [*robot.joints, arm], [*robot.bodies, Body("arm", heavy)],
            list(robot.frames.values()), robot.couplings, robot.loops,
            options.get("independent", ("crank",)),
        )  # fmt: skip
        self.problem = Problem(robot, [Contact("tip", "tip", np.eye(2, 6))])
        self.solver = DelassusSolver(self.problem, "pv_osimr")

    def truth(self, stamp: int) -> dict[str, float]:
        crank = 0.8 + 0.2 * math.sin(3e-9 * (stamp - START))
        coupler, rocker = assembled(crank)
        return {"crank": crank, "coupler": coupler, "rocker": rocker, "arm": crank - 0.3}

    def rig(self) -> Rig:
        closure = Closure(self.problem, REFERENCE)
        rig = Rig(self.solver, self.truth, closure=closure)
        rig.touch("tip")
        return rig
