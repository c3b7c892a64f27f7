"""Parameters of delassus_node: one field of a dataclass each, with default, range and text.

Knows no ROS.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from delassus.closure import Closure
from delassus.conditioning.monitor import ConditionSettings, Damping
from delassus.contacts import ContactSet
from delassus.errors import ContactError, InputError, RobotError, unknown
from delassus.model import Robot
from delassus.model.robot import LOOPS_AS, Base
from delassus.outputs import needed_outputs, secondary_outputs
from delassus.problem import AXES, Axes, Problem
from delassus.solver.friction import ForceSettings
from delassus_ros.inputs.contact_estimator import ContactEstimator, ObserverSettings
from delassus_ros.inputs.limits import ORIENTATION_TIMEOUT_S, Limits
from delassus_ros.inputs.motion import MotionInput
from delassus_ros.inputs.orientation import OrientationInput
from delassus_ros.node.contact_parameters import CONTACT_PARAMETERS, contact_of, finite_triple
from delassus_ros.ros.realtime import RealtimeSettings
from delassus_ros.ros.setting import (
    RCLPY_PREFIXES,
    Setting,
    by_joint,
    field_values,
    parameter,
    part_of,
    settings_by_name,
)

TORQUES = ("effort", "zero", "topic")


def _or_never(name: str, time: float) -> float:
    """Return a time [s]; infinite for 0."""
    return time or math.inf


def _damping(name: str, mode: str) -> Damping:
    return Damping[mode.upper()]


def _secondary(name: str, outputs: Iterable[str]) -> tuple[str, ...]:
    """Return the outputs that are published besides G; refuse unknown ones."""
    known = secondary_outputs()
    for output in outputs:
        if output not in ("G", *known):
            raise InputError(f"parameter {name!r}: {unknown('output', output, ('G', *known))}")
    return tuple(output for output in known if output in outputs)


@dataclass(frozen=True)
class Settings:
    """Parameters of the computation: of robot, contacts, outputs and their inputs.

    Attributes
    ----------
    contacts : the contacts, in the order of their rows.
    outputs : names of the secondary outputs, in the order of ~/dynamics.
    observer : thresholds and gain of the contact estimator; None for contacts of a topic.
    armature : rotor inertia by joint name [kg·m² or kg].
    lock : positions of locked joints, by name [rad, m].
    reference : joint positions [rad, m] on the branch on which the loops close.
    orientation_timeout : age above which an orientation is too old [s]; infinite for never.
    """

    contacts: ContactSet
    robot_description: str = parameter(
        "",
        "URDF or MJCF of the robot (XML text). If empty, the topic robot_description is used. May "
        "change while the node runs; an unusable description is set back.",
        live=True,
    )
    base: Base = parameter(
        "floating",
        "Base of the robot: the root link is free in all six directions, or fixed to the world.",
        choices=("floating", "fixed"),
    )
    axes: Axes = parameter(
        "contact",
        "Axes of the rows: those of the contact's frame, or those of the world, for which a "
        "floating base needs an orientation (orientation.*).",
        choices=AXES,
    )
    rows: str = parameter(
        "active",
        "Contacts of a matrix: the active ones, or all, in messages of fixed size.",
        choices=("active", "all"),
    )
    algorithm: str = parameter(
        "pv_osimr",
        "Algorithm that computes the matrix; may change while the node runs.",
        live=True,
    )
    fallback: str = parameter(
        "",
        "Algorithm that replaces the configured one if that fails; the message has a reason for "
        "it. Empty: no replacement, the answer is INVALID.",
    )
    outputs: tuple[str, ...] = parameter(
        ("G",),
        "Outputs: the matrix G, always, and secondary outputs on ~/dynamics: "
        f"{', '.join(secondary_outputs())}.",
        holds="names", make=_secondary,
    )
    torques: str = parameter(
        "effort",
        "Joint torques of a0 and qdd0: the efforts of the joint states, zero, or the efforts of "
        "the topic joint_torques (sensor_msgs/JointState).",
        choices=TORQUES,
    )
    gravity: tuple[float, ...] = parameter(
        (0.0, 0.0, -9.81),
        "Acceleration of gravity along the axes of the world, of a fixed base those of its root "
        "link: x, y, z [m/s^2].",
        holds="numbers", make=finite_triple,
    )
    contact_names: tuple[str, ...] = parameter(
        (),
        "Names of all contacts that may ever be active, in the order of their rows.",
        holds="names", name="contacts.names",
    )
    contact_source: str = parameter(
        "topic",
        "Source of the active contacts: the topic active_contacts, an estimate of the contact "
        "forces from efforts, rates and the base's motion, published on ~/contacts, or the "
        "schedule of a planner on the topic contact_schedule.",
        choices=("topic", "force", "schedule"), name="contacts.source",
    )
    estimated: tuple[str, ...] = parameter(
        (),
        "With source force: contacts that may become active. If empty, all on one frame.",
        holds="names", name="contacts.estimated",
    )
    force_on: float = parameter(
        ObserverSettings.force_on,
        "With source force: normal force above which a contact becomes active [N].",
        0.0, 1e5, name="contacts.force_on",
    )
    force_off: float = parameter(
        ObserverSettings.force_off,
        "With source force: normal force below which a contact becomes inactive [N].",
        0.0, 1e5, name="contacts.force_off",
    )
    gain: float = parameter(
        ObserverSettings.gain,
        "With source force: gain of the observer [1/s]. Forces follow with a delay of 1/gain; "
        "noise grows with the gain.",
        1.0, 1e4, name="contacts.gain",
    )
    armature_names: tuple[str, ...] = parameter(
        (), "Joints with a rotor inertia, which the URDF lacks.", holds="names",
        name="armature.names",
    )
    armature_values: tuple[float, ...] = parameter(
        (),
        "Rotor inertias seen at the joints of armature.names [kg m^2, or kg].",
        holds="numbers", name="armature.values",
    )
    lock_names: tuple[str, ...] = parameter(
        (),
        "Locked joints, by name or pattern: the robot is computed as if they did not move.",
        holds="names", name="lock.names",
    )
    lock_values: tuple[float, ...] = parameter(
        (), "Positions of the joints of lock.names [rad, m].", holds="numbers",
        name="lock.values",
    )
    loops: str = parameter(
        "",
        "Loops, couplings and rotors, which a URDF cannot describe: path of a YAML file, or its "
        "text.",
    )
    loops_as: str = parameter(
        "clusters",
        "How loops are closed: by clusters of joints; by rows, which are eliminated from the "
        "matrix; or, for the matrix alone, as needs fewest operations.",
        choices=LOOPS_AS,
    )
    passive: bool = parameter(
        True,
        "Whether outputs of motion count the dampers of joints in the robot description.",
    )
    reference_names: tuple[str, ...] = parameter(
        (), "Joints whose positions select the branch on which loops close.", holds="names",
        name="reference.names",
    )
    reference_values: tuple[float, ...] = parameter(
        (), "Positions of the joints of reference.names [rad or m].", holds="numbers",
        name="reference.values",
    )
    orientation_source: str = parameter(
        "odometry",
        "Source of the orientation and twist of a floating base, with world axes or outputs of "
        "motion: the topic odometry (nav_msgs/Odometry) or imu (sensor_msgs/Imu).",
        choices=("odometry", "imu"), name="orientation.source",
    )
    orientation_frame: str = parameter(
        "",
        "Link of the orientation, which joints may carry on the root link. Empty: the link that "
        "the messages name; a message without a name is refused.",
        name="orientation.frame",
    )
    orientation_world_frame: str = parameter(
        "odom",
        "Frame of the rows; odometry has to be relative to it. Messages of an Imu do not name "
        "their reference: matrices are labelled with this frame without a check.",
        name="orientation.world_frame",
    )
    orientation_timeout: float = parameter(
        ORIENTATION_TIMEOUT_S,
        "Age of the orientation above which answers are INVALID [s]. 0: never.", 0.0, 60.0,
        name="orientation.timeout", make=_or_never,
    )
    observer: ObserverSettings | None = field(init=False)
    armature: Mapping[str, float] = field(init=False)
    lock: Mapping[str, float] = field(init=False)
    reference: Mapping[str, float] = field(init=False)

    def __post_init__(self) -> None:
        """Raise RobotError or InputError for values that do not fit together."""
        vars(self).update(
            observer=part_of(ObserverSettings, self) if self.contact_source == "force" else None,
            armature=by_joint("armature", self.armature_names, self.armature_values),
            lock=by_joint("lock", self.lock_names, self.lock_values),
            reference=by_joint("reference", self.reference_names, self.reference_values),
        )

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Settings:
        """Read settings from parameter values by full name; absent ones have their defaults.

        Raises
        ------
        InputError
            For a value out of range or an unknown choice; names the parameter.
        ContactError
            If there is no contact, or a contact lacks a parameter; names the parameter.
        RobotError
            If armature.names and armature.values do not belong together, or those of lock or
            reference.
        """
        values = field_values(cls, parameters)
        names = values["contact_names"]
        if not names:
            raise ContactError(
                "parameter 'contacts.names' is empty; list the contacts in it, in the order of "
                "their rows, and give each a 'contacts.<name>.frame'"
            )
        return cls(contacts=ContactSet(contact_of(name, parameters) for name in names), **values)

    @property
    def scheduled(self) -> bool:
        """Whether the active contacts are those of the schedule on the topic contact_schedule."""
        return self.contact_source == "schedule"

    def problem(self, description: str | bytes) -> Problem:
        """Return the problem of a robot's description, the text of URDF or MJCF.

        Raises
        ------
        RobotError, ContactError
            If the robot cannot be read or the contacts do not fit it.
        InputError
            If active contacts are estimated from forces, and a contact moves.
        """
        moving = [contact.name for contact in self.contacts if contact.moving != "nothing"]
        if moving and self.observer is not None:
            raise InputError(
                f"contacts.source is 'force', which needs contacts that stay where they are, but "
                f"'contacts.{moving[0]}.moving' is set; leave that out, or set 'contacts.source' "
                "to 'topic'"
            )
        robot = Robot.from_description(
            description, self.base, self.armature, self.loops or None, self.loops_as, self.lock,
            self.passive,
        )  # fmt: skip
        return Problem(robot, self.contacts, axes=self.axes, outputs=needed_outputs(self.outputs))

    def motion(self, problem: Problem, base: OrientationInput | None) -> MotionInput | None:
        """Return the input of velocities and torques; None if no output needs them."""
        if not self._moves(problem):
            return None
        return MotionInput(problem, self.torques, self.gravity, base, Limits.input_timeout)

    def estimator(
        self, problem: Problem, base: OrientationInput | None
    ) -> ContactEstimator | None:
        """Return the contact estimator; None for contacts of the topic.

        Raises
        ------
        InputError
            If a contact has fewer than three rows, or a name is unknown.
        """
        if self.observer is None:
            return None
        return ContactEstimator(problem, self.observer, self.estimated, self.gravity, base)

    def _moves(self, problem: Problem) -> bool:
        return any(port.name == "rates" for port in problem.inputs)

    def closure(self, problem: Problem) -> Closure | None:
        """Return the closure that computes joints that are not measured; None for open chains.

        The code for measured independent joints is compiled, or loaded from the cache.

        Raises
        ------
        RobotError
            If a loop does not close at the reference or is singular there, or if there is a
            reference but no loop or coupling.
        """
        if not problem.robot.clustered.is_closed:
            if self.reference:
                raise RobotError(
                    "parameter 'reference.names' is given, but robot "
                    f"{problem.robot.name!r} has no loops or couplings; leave it out, or say "
                    "with 'loops' what closes"
                )
            return None
        closure = Closure(problem, self.reference)
        closure.bind(closure.independent)
        return closure

    def layout_digest_text(self, problem: Problem) -> str:
        """Return a text of all settings, besides the problem, on which matrices depend."""
        found: list[object] = [sorted(self.reference.items())]
        if problem.axes == "world" and problem.robot.base == "floating":
            found += [self.orientation_source, self.orientation_frame]
        return repr(found)

    def orientation(self, problem: Problem) -> OrientationInput | None:
        """Return the input of the base's orientation and twist; None if they are not needed.

        Raises
        ------
        InputError
            If orientation.frame does not exist or a joint of several freedoms carries it,
            orientation.world_frame is empty, or outputs need the linear velocity and the source
            is an Imu.
        """
        if problem.robot.base != "floating":
            return None
        if problem.axes != "world" and not self._moves(problem) and self.observer is None:
            return None
        if self.observer is not None and self.orientation_source == "imu":
            raise InputError(
                "contacts.source is 'force', which needs the linear velocity of the base, and an "
                "Imu does not tell it: set 'orientation.source' to 'odometry'"
            )
        # Rates of the base are along the axes of the root link, which turn: v̇ = a − ω × v. In the
        # world's axes a0 does not depend on v.
        needing = ["h", "qdd0", "JdotV", *(["a0"] if problem.axes == "contact" else [])]
        moved = [name for name in needing if name in needed_outputs(self.outputs)]
        if moved and self.orientation_source == "imu":
            axes = ", or 'axes' to 'world'" if moved == ["a0"] else ""
            raise InputError(
                f"output {moved[0]!r} needs the linear velocity of the base, and an Imu does not "
                f"tell it: set 'orientation.source' to 'odometry'{axes}"
            )
        if not self.orientation_world_frame:
            raise InputError(
                "orientation.world_frame is empty; expected the name of the frame along whose "
                "axes the rows are, as odometry messages have it (header.frame_id)"
            )
        return OrientationInput(
            problem.robot,
            self.orientation_frame,
            self.orientation_world_frame,
            self.orientation_timeout,
            self.orientation_source,
        )


@dataclass(frozen=True)
class Operation:
    """Parameters of the operation: limits, rate, reports, real-time use.

    Attributes
    ----------
    input_timeout, contacts_timeout, deadline : times [s]; infinite for none.
    limits : limits of the inputs and thresholds of the matrices.
    realtime : requests to the system while the node is active.
    """

    autostart: bool = parameter(
        False, "Configure and activate the node as soon as a robot description exists.",
    )
    max_skew: float = parameter(
        Limits.max_skew,
        "Largest difference between stamps of partial joint states that are merged, and largest "
        "distance of a stamp ahead of the node's clock, to which a step of /clock is added [s].",
        0.0, 1.0, live=True,
    )
    input_timeout: float = parameter(
        Limits.input_timeout,
        "Age of the joint positions above which answers are INVALID [s]; a message is published "
        "at least once per this time. 0: never, unless joint states give no matrix for 1 s.",
        0.0, 60.0, live=True, make=_or_never,
    )
    contacts_timeout: float = parameter(
        Limits.contacts_timeout,
        "Age of the set of active contacts above which answers are INVALID, with all rows "
        "DEGRADED [s], and age of placements of active contacts above which answers are INVALID; "
        "publishers repeat both at 10 Hz or more, with a new stamp. 0: never.",
        0.0, 60.0, live=True, make=_or_never,
    )
    characteristic_length: float = parameter(
        ConditionSettings.characteristic_length,
        "Weight of angular against linear rows in the condition of matrices [m], e.g. half the "
        "length of a foot.",
        1e-4, 10.0, live=True, name="conditioning.characteristic_length",
    )
    weak: float = parameter(
        ConditionSettings.weak,
        "Condition number at which a matrix becomes WEAK.",
        1.0, 1e10, live=True, name="conditioning.weak",
    )
    singular: float = parameter(
        ConditionSettings.singular,
        "Condition number at which a matrix becomes SINGULAR; more than weak times hysteresis.",
        1.0, 1e10, live=True, name="conditioning.singular",
    )
    hysteresis: float = parameter(
        ConditionSettings.hysteresis,
        "Factor between a threshold and the condition number below which its effect ends.",
        1.0, 100.0, live=True, name="conditioning.hysteresis",
    )
    damping: Damping = parameter(
        ConditionSettings.damping.name.lower(),
        "Damping that is added to the matrix: none, the same amount to the whole diagonal, or the "
        "amount that weak directions need. The damping is always reported.",
        choices=tuple(mode.name.lower() for mode in Damping), live=True,
        name="damping.mode", make=_damping,
    )
    damping_ratio: float = parameter(
        ConditionSettings.damping_ratio,
        "Amount of uniform damping, and the smallest eigenvalue that selective damping leaves, "
        "both as a fraction of the largest eigenvalue.",
        1e-12, 0.5, live=True, name="damping.ratio",
    )
    friction: float = parameter(
        Limits().forces.friction,
        "Coefficient of friction of contacts that have none, for the output forces.",
        0.0, 100.0, live=True,
    )
    law: str = parameter(
        Limits().forces.law,
        "Law of the output forces: coulomb (a contact that slides does not lift off), or its "
        "convex neighbour. auto is another name of coulomb.",
        choices=("auto", "coulomb", "convex"), live=True,
    )
    slip_speed: float = parameter(
        Limits().forces.slip_speed,
        "Velocity along the surface above which a contact slides, for the output forces [m/s]; "
        "more than the noise of a stance foot's velocity. A slower contact is at rest.",
        0.0, 1e3, live=True,
    )
    leave_speed: float = parameter(
        Limits().forces.leave_speed,
        "Velocity away from the surface above which a contact has no force [m/s].",
        0.0, 1e3, live=True,
    )
    strike_speed: float = parameter(
        Limits().forces.strike_speed,
        "Velocity towards the surface above which a contact strikes: forces are INVALID [m/s].",
        0.0, 1e3, live=True,
    )
    deadline: float = parameter(
        0.0,
        "Time from the arrival of a joint state after which its matrix is an overrun, which is "
        "counted and reported [s]. 0: no deadline.",
        0.0, 10.0, live=True, make=_or_never,
    )
    diagnostics_period: float = parameter(
        1.0,
        "Time between two diagnostics [s]: 0.05 or more, or 0 for no diagnostics.",
        0.0, 60.0, least=0.05, live=True,
    )
    rate: float = parameter(
        0.0,
        "Matrices per second, always of the newest joint state: 0.001 or more. 0: a matrix for "
        "every joint state, at its arrival.",
        0.0, 10000.0, least=0.001,
    )
    priority: int = parameter(
        0,
        "SCHED_FIFO priority of all threads of the process while the node is active; 0: normal "
        "scheduling. Needs permission; without it, the node logs the refusal and goes on.",
        0, 99, name="realtime.priority",
    )
    processors: tuple[int, ...] = parameter(
        (),
        "Numbers of the processors of the process while the node is active; all if empty.",
        holds="whole numbers", name="realtime.cpus",
    )
    lock_memory: bool = parameter(
        False,
        "Lock all memory of the process into RAM while the node is active. Needs permission.",
        name="realtime.lock_memory",
    )
    wakeup_latency: int = parameter(
        -1,
        "Longest time that idle processors of the machine may take to wake up while the node is "
        "active [us]; 0 keeps them awake, which costs power; -1: setting of the system. Needs "
        "permission.",
        -1, 10000, name="realtime.wakeup_latency",
    )
    hold_garbage: bool = parameter(
        True,
        "Collect Python's garbage only between joint states while the node is active.",
        name="realtime.hold_garbage",
    )
    condition: ConditionSettings = field(init=False)
    forces: ForceSettings = field(init=False)
    limits: Limits = field(init=False)
    realtime: RealtimeSettings = field(init=False)

    def __post_init__(self) -> None:
        """Raise InputError for values that do not fit together."""
        try:
            condition = part_of(ConditionSettings, self)
        except InputError as error:
            raise InputError(f"parameters 'conditioning.*' and 'damping.*': {error}") from error
        vars(self).update(condition=condition, forces=part_of(ForceSettings, self))
        vars(self).update(limits=part_of(Limits, self), realtime=part_of(RealtimeSettings, self))

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Operation:
        """Read parameter values by full name; absent ones have their defaults.

        Raises
        ------
        InputError
            For a value out of range, an unknown choice, or inconsistent values;
            names the parameter.
        """
        return cls(**field_values(cls, parameters))


AUTOSTART = "autostart"
OPERATION_PARAMETERS = settings_by_name(Operation)
PARAMETERS: Mapping[str, Setting] = {**settings_by_name(Settings), **OPERATION_PARAMETERS}
"""Parameters of the node by name, without those of single contacts."""


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
