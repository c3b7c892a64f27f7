"""A tick of the quadruped with outputs of motion, without a node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import robots
from delassus_msgs.msg import ContactDynamics, DelassusMatrix
from nav_msgs.msg import Odometry
from on_floats import solver_on_floats
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState
from tick_support import MS, START, Rig, to_message

from delassus import Contact, DelassusSolver, Problem, Robot
from delassus.model.spatial import Transform, rotation_from_quaternion
from delassus.outputs import needed_outputs, secondary_outputs
from delassus.robots.built_in import demo_urdf
from delassus.solver.friction import ForceSettings
from delassus_ros.inputs.limits import Limits
from delassus_ros.inputs.motion import MotionInput
from delassus_ros.inputs.orientation import OrientationInput
from delassus_ros.node.dynamics import DynamicsOutput
from delassus_ros.node.matrix import make_layout

FEET = ("LF", "RF", "LH", "RH")
SECONDARY = tuple(secondary_outputs())
STILL = Limits(forces=ForceSettings(slip_speed=1e3, leave_speed=1e3, strike_speed=1e3))
"""Forces of contacts at rest, whatever the rates."""
POINTS = tuple(Contact(foot, frame=f"{foot}_FOOT") for foot in FEET)
TURNED = np.array([0.1, -0.2, 0.3, np.sqrt(1.0 - 0.14)])
TWIST = np.array([0.3, -0.1, 0.2, 0.4, -0.5, 0.6])


class MotionRig(Rig):
    """A tick of the quadruped with secondary outputs; velocities and efforts are random.

    Parameters
    ----------
    outputs : the secondary outputs.
    contacts : the contacts, by default a point per foot; their names are those of the feet.
    all_rows : put all contacts into every matrix.
    urdf : description of the quadruped, by default with joints without limits of motion.
    """

    def __init__(
        self,
        axes: str = "world",
        torques: str = "effort",
        base: str = "floating",
        algorithm: str = "pv_osimr",
        frame: str = "",
        limits: Limits | None = None,
        outputs: Sequence[str] = SECONDARY,
        contacts: Sequence[Contact] = POINTS,
        all_rows: bool = False,
        is_compiled: bool = False,
        urdf: str | None = None,
    ) -> None:
        robot = Robot.from_urdf(urdf or robots.unlimited(), base=base)
        problem = Problem(robot, contacts, axes=axes, outputs=needed_outputs(outputs))
        source = OrientationInput(robot, frame, "odom") if base == "floating" else None
        motion = MotionInput(problem, torques, (0.0, 0.0, -9.81), source, 0.5)
        solver = DelassusSolver if is_compiled else solver_on_floats
        layout = make_layout(problem, to_message(START), "odom")
        super().__init__(
            solver(problem, algorithm), limits=limits, all_rows=all_rows, orientation=source,
            motion=motion, secondary=DynamicsOutput(problem, layout, outputs),
        )  # fmt: skip
        random = np.random.default_rng(3)
        n = len(self.joints)
        self.q, self.rates = random.uniform(-1, 1, n), random.uniform(-2, 2, n)
        self.efforts = random.uniform(-20, 20, n)
        self.touch(*FEET)
        if base == "floating":
            self.odometry()

    def odometry(
        self,
        twist: Sequence[float] = TWIST,
        child: str = "base",
        at: float | None = 0.0,
        position: Sequence[float] = (0.0, 0.0, 0.0),
        orientation: Sequence[float] = tuple(TURNED),
    ) -> None:
        """Send an odometry stamped `at` ms from now, without a stamp if None."""
        message = Odometry(child_frame_id=child)
        message.header.frame_id = "odom"
        if at is not None:
            message.header.stamp = to_message(self.now + round(at * MS))
        p, o, t = message.pose.pose.position, message.pose.pose.orientation, message.twist.twist
        p.x, p.y, p.z = map(float, position)
        o.x, o.y, o.z, o.w = map(float, orientation)
        t.linear.x, t.linear.y, t.linear.z = map(float, twist[:3])
        t.angular.x, t.angular.y, t.angular.z = map(float, twist[3:])
        self.read("odometry", message)

    def good(self) -> ContactDynamics:
        """Send good messages of all inputs; return what comes beside the matrix."""
        self.touch(*FEET)
        if self.problem.robot.base == "floating":
            self.odometry()
        if "joint_torques" in self.healths():
            self.torques()
        self.matrix, dynamics = self.send()
        return dynamics

    @property
    def text(self) -> str:
        """What is wrong, in words."""
        return self.tick.dynamics.text

    def torques(self, names: Sequence[str] | None = None, efforts: Any = None, at: Any = 0.0):
        """Send torques of the topic stamped `at` ms from now, without a stamp if None."""
        message = torques_of(self, names, efforts)
        if at is not None:
            message.header.stamp = to_message(self.now + round(at * MS))
        self.read("joint_torques", message)

    def send(self, part: slice = slice(None), **changes: Any) -> list[Any]:
        """Send a joint state; return matrix and what comes beside it."""
        message = JointState(
            name=self.joints[part], position=self.q[part], velocity=self.rates[part],
            effort=self.efforts[part],
        )  # fmt: skip
        for field, values in changes.items():
            setattr(message, field, values)
        message.header.stamp = to_message(self.now)
        data = self.answer(serialize_message(message))
        if data is None:
            return []
        matrix = deserialize_message(data, DelassusMatrix)
        dynamics = deserialize_message(self.following["~/dynamics"], ContactDynamics)
        assert (dynamics.sequence, dynamics.header) == (matrix.sequence, matrix.header)
        assert dynamics.layout_id == matrix.layout_id == self.layout.layout_id
        return [matrix, dynamics]

    def inputs(self, twist: Sequence[float] = TWIST, **changes: Any) -> dict[str, np.ndarray]:
        """Return the inputs of what was sent, for a solver or a peer."""
        floating = self.problem.robot.base == "floating"
        efforts = changes.get("efforts", self.efforts)
        found = {"q": self.q, "rates": self.rates, "torques": efforts}
        gravity = np.array([0.0, 0.0, -9.81])
        if floating:
            found["rates"] = np.r_[twist, self.rates]
            found["torques"] = np.r_[np.zeros(6), efforts]
            if self.problem.axes == "world":
                found["base_orientation"] = TURNED
            else:
                gravity = rotation_from_quaternion(TURNED).T @ gravity
        return {**found, "gravity": gravity}


def limited() -> MotionRig:
    """Return a rig whose joints have limits, within which they are."""
    rig = MotionRig("contact", urdf=demo_urdf())
    rig.q = np.tile([0.0, 0.7, -1.4], 4)
    return rig


def contradicting() -> MotionRig:
    """Return a rig with two contacts of one shank that can push it along its axis, apart.

    Where the shank turns, the two points accelerate towards each other, and no force changes that.
    The rig is at rest, as contacts that turn count as well; its second contact is above its first.
    """
    places = ((-0.2, "-z"), (-0.1, "z"))
    one_shank = [
        Contact(name, "LF_SHANK", "point", Transform.from_xyz_rpy((0, 0, z)), normal=normal)
        for name, (z, normal) in zip(FEET[:2], places, strict=True)
    ]
    rig = MotionRig(
        base="fixed", torques="zero", outputs=["a0", "forces"],
        contacts=(*one_shank, *POINTS[2:]), limits=STILL,
    )  # fmt: skip
    rig.q = np.tile([0.0, 0.7, -0.7], 4)
    rig.rates = np.zeros(len(rig.joints))
    return rig


def base_at(seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """Return position and orientation of a base whose TWIST along the world's axes is constant."""
    rates = TWIST[3:]
    speed = float(np.linalg.norm(rates))
    turn = np.sin(0.5 * speed * seconds) / speed * rates
    w, v0, w0 = np.cos(0.5 * speed * seconds), TURNED[:3], TURNED[3]
    vector = w * v0 + w0 * turn + np.cross(turn, v0)
    return TWIST[:3] * seconds, np.array([*vector, w * w0 - turn @ v0])


def torques_of(rig: MotionRig, names=None, efforts=None) -> JointState:
    return JointState(
        name=rig.joints if names is None else names,
        effort=rig.efforts if efforts is None else efforts,
    )
