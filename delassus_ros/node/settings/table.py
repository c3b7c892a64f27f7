"""The table of the node's parameters, by name: type, default, range, description.

Knows no ROS.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from delassus_ros.conditioning.monitor import ConditionSettings, Damping
from delassus_ros.contacts import MOVING
from delassus_ros.errors import unknown
from delassus_ros.inputs.contact_estimator import ObserverSettings
from delassus_ros.inputs.limits import ORIENTATION_TIMEOUT_S, Limits
from delassus_ros.model.robot import LOOPS_AS
from delassus_ros.outputs import secondary_outputs
from delassus_ros.problem import AXES
from delassus_ros.ros.setting import RCLPY_PREFIXES, Setting

TORQUES = ("effort", "zero", "topic")
PROBLEM_PARAMETERS: Mapping[str, Setting] = {
    "robot_description": Setting(
        "",
        "URDF of the robot (XML text). If empty, the topic robot_description is used. May change "
        "while the node runs; an unusable URDF is set back.",
        live=True,
    ),
    "base": Setting(
        "floating",
        "Base of the robot: the root link is free in all six directions, or fixed to the world.",
        choices=("floating", "fixed"),
    ),
    "axes": Setting(
        "contact",
        "Axes of the rows: those of the contact's frame, or those of the world, for which a "
        "floating base needs an orientation (orientation.*).",
        choices=AXES,
    ),
    "rows": Setting(
        "active",
        "Contacts of a matrix: the active ones, or all, in messages of fixed size.",
        choices=("active", "all"),
    ),
    "algorithm": Setting(
        "pv_osimr",
        "Algorithm that computes the matrix; may change while the node runs.",
        live=True,
    ),
    "fallback": Setting(
        "",
        "Algorithm that replaces the configured one if that fails; the message has a reason for "
        "it. Empty: no replacement, the answer is INVALID.",
    ),
    "outputs": Setting(
        ("G",),
        "Outputs: the matrix G, always, and secondary outputs on ~/dynamics: "
        f"{', '.join(secondary_outputs())}.",
        holds="names",
    ),
    "torques": Setting(
        "effort",
        "Joint torques of a0 and qdd0: the efforts of the joint states, zero, or the efforts of "
        "the topic joint_torques (sensor_msgs/JointState).",
        choices=TORQUES,
    ),
    "gravity": Setting(
        (0.0, 0.0, -9.81),
        "Acceleration of gravity along the axes of the world, of a fixed base those of its root "
        "link: x, y, z [m/s^2].",
        holds="numbers",
    ),
    "contacts.names": Setting(
        (),
        "Names of all contacts that may ever be active, in the order of their rows.",
        holds="names",
    ),
    "contacts.source": Setting(
        "topic",
        "Source of the active contacts: the topic active_contacts, an estimate of the contact "
        "forces from efforts, rates and the base's motion, published on ~/contacts, or the "
        "schedule of a planner on the topic contact_schedule.",
        choices=("topic", "force", "schedule"),
    ),
    "contacts.estimated": Setting(
        (),
        "With source force: contacts that may become active. If empty, all on one frame.",
        holds="names",
    ),
    "contacts.force_on": Setting(
        ObserverSettings.force_on,
        "With source force: normal force above which a contact becomes active [N].",
        0.0, 1e5,
    ),
    "contacts.force_off": Setting(
        ObserverSettings.force_off,
        "With source force: normal force below which a contact becomes inactive [N].",
        0.0, 1e5,
    ),
    "contacts.gain": Setting(
        ObserverSettings.gain,
        "With source force: gain of the observer [1/s]. Forces follow with a delay of 1/gain; "
        "noise grows with the gain.",
        1.0, 1e4,
    ),
    "armature.names": Setting(
        (), "Joints with a rotor inertia, which the URDF lacks.", holds="names"
    ),
    "armature.values": Setting(
        (),
        "Rotor inertias seen at the joints of armature.names [kg m^2, or kg].",
        holds="numbers",
    ),
    "lock.names": Setting(
        (),
        "Locked joints, by name or pattern: the robot is computed as if they did not move.",
        holds="names",
    ),
    "lock.values": Setting(
        (), "Positions of the joints of lock.names [rad, m].", holds="numbers"
    ),
    "loops": Setting(
        "",
        "Loops, couplings and rotors, which a URDF cannot describe: path of a YAML file, or its "
        "text.",
    ),
    "loops_as": Setting(
        "clusters",
        "How loops are closed: by clusters of joints; by rows, which are eliminated from the "
        "matrix; or, for the matrix alone, as needs fewest operations.",
        choices=LOOPS_AS,
    ),
    "passive": Setting(
        True,
        "Whether outputs of motion count the dampers of joints in the robot description.",
    ),
    "reference.names": Setting(
        (), "Joints whose positions select the branch on which loops close.", holds="names"
    ),
    "reference.values": Setting(
        (), "Positions of the joints of reference.names [rad or m].", holds="numbers"
    ),
    "orientation.source": Setting(
        "odometry",
        "Source of the orientation and twist of a floating base, with world axes or outputs of "
        "motion: the topic odometry (nav_msgs/Odometry) or imu (sensor_msgs/Imu).",
        choices=("odometry", "imu"),
    ),
    "orientation.frame": Setting(
        "",
        "Link of the orientation, which joints may carry on the root link. Empty: the link that "
        "the messages name; a message without a name is refused.",
    ),
    "orientation.world_frame": Setting(
        "odom",
        "Frame of the rows; odometry has to be relative to it. Messages of an Imu do not name "
        "their reference: matrices are labelled with this frame without a check.",
    ),
    "orientation.timeout": Setting(
        ORIENTATION_TIMEOUT_S,
        "Age of the orientation above which answers are INVALID [s]. 0: never.", 0.0, 60.0,
    ),
}  # fmt: skip
"""Parameters of the problem, by name, without the parameters of single contacts."""
CONTACT_PARAMETERS: Mapping[str, Setting] = {
    "frame": Setting("", "Link of the robot that the contact is fixed to."),
    "kind": Setting(
        "point",
        "Rows of the contact: 3 linear, 3 linear and 3 angular, those of selection, or, relative, "
        "those of the motion of second_frame in frame: selection, or all 6. weighted_sum: the sum "
        "of the twists of frames, times weights: selection, or 3 linear. center_of_mass and "
        "centroidal_momentum: 3 and 6 rows of the whole robot, without a frame.",
        choices=(
            "point", "surface", "selection", "relative", "weighted_sum", "center_of_mass",
            "centroidal_momentum",
        ),
    ),
    "second_frame": Setting("", "Second link of a contact of kind 'relative'."),
    "frames": Setting(
        (), "Links of a contact of kind 'weighted_sum'; the first has its axes.", holds="names"
    ),
    "weights": Setting(
        (), "Weight of each of the frames, for kind 'weighted_sum'.", holds="numbers"
    ),
    "xyz": Setting(
        (0.0, 0.0, 0.0),
        "Position of the contact in its frame: x, y, z [m].",
        holds="numbers",
    ),
    "rpy": Setting(
        (0.0, 0.0, 0.0),
        "Orientation of the contact in its frame: roll, pitch, yaw [rad].",
        holds="numbers",
    ),
    "selection": Setting(
        (),
        "Rows of a (k, 6) matrix, linear first, for kinds 'selection', 'relative' and "
        "'weighted_sum'.",
        holds="numbers",
    ),
    "moving": Setting(
        "nothing",
        "Part of the placement that comes on the topic contact_placements, for contacts that roll "
        "or touch at any point: the position, or the pose.",
        choices=MOVING,
    ),
    "friction": Setting(
        -1.0,
        "Coefficient of friction of a point or surface, for the output forces. -1: that of the "
        "parameter friction.",
        -1.0, 100.0,
    ),
    "normal": Setting(
        "z",
        "Direction in which a point pushes, for the output forces: x, y, z, -x, -y, -z, along the "
        "axes of the rows, or three numbers, as '0 0.6 0.8'.",
    ),
    "dimensions": Setting(
        (),
        "Length along x and width along y of a surface, for the output forces [m].",
        holds="numbers",
    ),
}  # fmt: skip
"""Parameters of a contact, by the name after ``contacts.<name>.``."""
AUTOSTART = "autostart"
OPERATION_PARAMETERS: Mapping[str, Setting] = {
    AUTOSTART: Setting(
        False, "Configure and activate the node as soon as a robot description exists."
    ),
    "max_skew": Setting(
        Limits.max_skew,
        "Largest difference between stamps of partial joint states that are merged, and largest "
        "distance of a stamp ahead of the node's clock, to which a step of /clock is added [s].",
        0.0, 1.0, live=True,
    ),
    "input_timeout": Setting(
        Limits.input_timeout,
        "Age of the joint positions above which answers are INVALID [s]; a message is published "
        "at least once per this time. 0: never, unless joint states give no matrix for 1 s.",
        0.0, 60.0, live=True,
    ),
    "contacts_timeout": Setting(
        Limits.contacts_timeout,
        "Age of the set of active contacts above which answers are INVALID, with all rows "
        "DEGRADED [s], and age of placements of active contacts above which answers are INVALID; "
        "publishers repeat both at 10 Hz or more, with a new stamp. 0: never.",
        0.0, 60.0, live=True,
    ),
    "conditioning.characteristic_length": Setting(
        ConditionSettings.characteristic_length,
        "Weight of angular against linear rows in the condition of matrices [m], e.g. half the "
        "length of a foot.",
        1e-4, 10.0, live=True,
    ),
    "conditioning.weak": Setting(
        ConditionSettings.weak,
        "Condition number at which a matrix becomes WEAK.",
        1.0, 1e10, live=True,
    ),
    "conditioning.singular": Setting(
        ConditionSettings.singular,
        "Condition number at which a matrix becomes SINGULAR; more than weak times hysteresis.",
        1.0, 1e10, live=True,
    ),
    "conditioning.hysteresis": Setting(
        ConditionSettings.hysteresis,
        "Factor between a threshold and the condition number below which its effect ends.",
        1.0, 100.0, live=True,
    ),
    "damping.mode": Setting(
        ConditionSettings.damping.name.lower(),
        "Damping that is added to the matrix: none, the same amount to the whole diagonal, or the "
        "amount that weak directions need. The damping is always reported.",
        choices=tuple(mode.name.lower() for mode in Damping), live=True,
    ),
    "damping.ratio": Setting(
        ConditionSettings.damping_ratio,
        "Amount of uniform damping, and the smallest eigenvalue that selective damping leaves, "
        "both as a fraction of the largest eigenvalue.",
        1e-12, 0.5, live=True,
    ),
    "friction": Setting(
        Limits().forces.friction,
        "Coefficient of friction of contacts that have none, for the output forces.",
        0.0, 100.0, live=True,
    ),
    "law": Setting(
        Limits().forces.law,
        "Law of the output forces: coulomb (a contact that slides does not lift off), or its "
        "convex neighbour. auto is another name of coulomb.",
        choices=("auto", "coulomb", "convex"), live=True,
    ),
    "slip_speed": Setting(
        Limits().forces.slip_speed,
        "Velocity along the surface above which a contact slides, for the output forces [m/s]; "
        "more than the noise of a stance foot's velocity. A slower contact is at rest.",
        0.0, 1e3, live=True,
    ),
    "leave_speed": Setting(
        Limits().forces.leave_speed,
        "Velocity away from the surface above which a contact has no force [m/s].",
        0.0, 1e3, live=True,
    ),
    "strike_speed": Setting(
        Limits().forces.strike_speed,
        "Velocity towards the surface above which a contact strikes: forces are INVALID [m/s].",
        0.0, 1e3, live=True,
    ),
    "deadline": Setting(
        0.0,
        "Time from the arrival of a joint state after which its matrix is an overrun, which is "
        "counted and reported [s]. 0: no deadline.",
        0.0, 10.0, live=True,
    ),
    "diagnostics_period": Setting(
        1.0,
        "Time between two diagnostics [s]: 0.05 or more, or 0 for no diagnostics.",
        0.0, 60.0, least=0.05, live=True,
    ),
    "rate": Setting(
        0.0,
        "Matrices per second, always of the newest joint state: 0.001 or more. 0: a matrix for "
        "every joint state, at its arrival.",
        0.0, 10000.0, least=0.001,
    ),
    "realtime.priority": Setting(
        0,
        "SCHED_FIFO priority of all threads of the process while the node is active; 0: normal "
        "scheduling. Needs permission; without it, the node logs the refusal and goes on.",
        0, 99,
    ),
    "realtime.cpus": Setting(
        (),
        "Numbers of the processors of the process while the node is active; all if empty.",
        holds="whole numbers",
    ),
    "realtime.lock_memory": Setting(
        False,
        "Lock all memory of the process into RAM while the node is active. Needs permission.",
    ),
    "realtime.wakeup_latency": Setting(
        -1,
        "Longest time that idle processors of the machine may take to wake up while the node is "
        "active [us]; 0 keeps them awake, which costs power; -1: setting of the system. Needs "
        "permission.",
        -1, 10000,
    ),
    "realtime.hold_garbage": Setting(
        True,
        "Collect Python's garbage only between joint states while the node is active.",
    ),
}  # fmt: skip
"""Parameters of the operation: limits, rate, real-time use, reports."""
PARAMETERS: Mapping[str, Setting] = {**PROBLEM_PARAMETERS, **OPERATION_PARAMETERS}


def setting_of(name: str) -> Setting | None:
    """Return the setting of a parameter by full name, also of a contact; None if unknown."""
    if name.startswith("contacts.") and name not in PARAMETERS:
        return CONTACT_PARAMETERS.get(name.rpartition(".")[2])
    return PARAMETERS.get(name)


def known_parameters(contacts: Iterable[str]) -> tuple[str, ...]:
    """Return the names of all parameters of a node with these contacts."""
    of_contacts = (f"contacts.{name}.{key}" for name in contacts for key in CONTACT_PARAMETERS)
    return (*PARAMETERS, *of_contacts)


def misspelt(names: Iterable[str], contacts: Iterable[str]) -> list[str]:
    """Return error texts for full names that are no parameters of the node, sorted by name."""
    known = dict.fromkeys(known_parameters(contacts))
    return [
        unknown("parameter", name, known)
        for name in sorted(names)
        if name not in known and not name.startswith(RCLPY_PREFIXES)
    ]
