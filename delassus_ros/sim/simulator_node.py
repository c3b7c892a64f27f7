"""ROS node that simulates a demo quadruped in real time and publishes a robot's topics.

The node runs the plant with servos that follow a gait, and publishes MuJoCo's matrix in addition
to joint states.
"""

from __future__ import annotations

import array
from typing import TYPE_CHECKING

from delassus_msgs.msg import ActiveContacts, DelassusMatrix
from delassus_msgs_py import SerializedMessage

from delassus_ros.errors import InputError, unknown
from delassus_ros.ros.program import Program
from delassus_ros.sim import ROBOTS
from delassus_ros.sim.plant_node import STAMP, PlantNode, run_plant

if TYPE_CHECKING:
    from delassus_ros.sim.plant import Plant, Sensed, Truth
    from delassus_ros.sim.reference import FloatArray

_REFERENCE = {
    **STAMP,
    "number": ("sequence", "contacts_stamp.sec", "contacts_stamp.nanosec"),
}
_EXTRA_JOINT = "gripper"  # not in the URDF: consumers have to pick their joints by name

_HELP = """\
usage: delassus_simulator [--ros-args ...]

Simulates a small robot in MuJoCo, in real time, and publishes the topics of a robot.

publishes   joint_states        sensor_msgs/JointState
            active_contacts     delassus_msgs/ActiveContacts (latched)
            robot_description   std_msgs/String (latched)
            ~/reference         delassus_msgs/DelassusMatrix, computed by MuJoCo
            ~/odometry, ~/contact_force/<contact>: with the parameter truth
            /clock              rosgraph_msgs/Clock: in lockstep
subscribes  delassus_node/delassus
                                delassus_msgs/DelassusMatrix: in lockstep
parameters  robot               quadruped (the default) or geared
            rate                joint states per second, a divisor of 1000 (1000)
            reference           publish ~/reference (true)
            truth               publish quantities without a sensor on a robot (false)
            lockstep            publish /clock, which stands still until a matrix has answered
                                each joint state (false)
            slack, answers, view, record, push_every, push_force: see delassus_plant --help

example     delassus_simulator --ros-args -p robot:=geared
"""


class SimulatorNode(PlantNode):
    """Publish joint states, active contacts, the robot description and the reference matrix.

    Joints are in alphabetical order, not in the order of the URDF, with one joint that is not part
    of the robot, as from a joint_state_broadcaster with more hardware than one robot.
    """

    world = "world"

    def __init__(self) -> None:
        self._truth: Truth | None = None
        super().__init__("simulator", rate=1000)
        text = "Publish the physics engine's own matrix of all feet on ~/reference."
        self._wants_reference = self._read("reference", True, text)
        self._sequence = 0
        if self._wants_reference:
            self._make_reference()

    def _make_plant(self) -> Plant:
        # Imported here, as the module needs the physics engine, which main checks first.
        from delassus_ros.sim.quadruped import stepping_quadruped

        text = "Publish the base on ~/odometry, the floor's forces on ~/contact_force/<contact>."
        self._tells_truth = self._read("truth", False, text)
        self.odometry = "~/odometry" if self._tells_truth else None
        robot = self._read("robot", ROBOTS[0], f"One of {', '.join(ROBOTS)}.")
        if robot not in ROBOTS:
            raise InputError(unknown("robot", str(robot), ROBOTS))
        return stepping_quadruped(robot)

    def message_joints(self) -> list[str]:
        """Return the names of the joints in a joint state."""
        return sorted([*self.plant.joint_names, _EXTRA_JOINT])

    def sense(self) -> Sensed:
        """Return the state, with the truth of one instant; compute the state's reference."""
        if self._wants_reference:
            self._matrix[...] = self.plant.reference_all()
        if not self._tells_truth:
            return self.plant.sense()
        self._truth = self.plant.truth()
        return self._truth

    def wrenches(self) -> FloatArray:
        """Return the floor's forces and moments on the feet at the present positions (k, 6)."""
        return self.plant.contact_wrenches() if self._truth is None else self._truth.wrenches

    def _make_reference(self) -> None:
        names = self.plant.contact_names
        m = 3 * len(names)
        message = DelassusMatrix()
        message.contacts = list(names)
        message.kinds = ["point"] * len(names)
        message.status = [ActiveContacts.ACTIVE] * len(names)
        message.row_offsets = [3 * i for i in range(len(names) + 1)]
        message.axes = DelassusMatrix.AXES_CONTACT
        message.validity = DelassusMatrix.VALIDITY_OK
        message.input_age = float("nan")
        message.algorithm = "mujoco"
        message.matrix = array.array("d", bytes(8 * m * m))
        self._references = self.create_publisher(DelassusMatrix, "~/reference", 10)
        self._reference = SerializedMessage(message, _REFERENCE, ("matrix",))
        self._matrix = self._reference.arrays["matrix"].reshape(m, m)

    def tick(self) -> None:
        """Publish the reference of the last tick, simulate one period and publish its end."""
        # At the next tick, as work right after a joint state delays the nodes that wait for it.
        if self._wants_reference and self._sequence:
            self._references.publish(self._reference.to_bytes())
        super().tick()
        self._sequence += 1
        if self._wants_reference:
            self._reference.set("stamp", *divmod(self._stamp, 10**9))
            stamp = divmod(self._contacts_stamp, 10**9)
            self._reference.set("number", self._sequence, *stamp)


main = Program("delassus_simulator", SimulatorNode, run_plant, _HELP, ("mujoco",))

if __name__ == "__main__":
    main.end_process()
