"""What the node is configured to compute and how it works, read from plain parameter values.

Knows no ROS.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from delassus_ros.closure import Closure
from delassus_ros.conditioning.monitor import ConditionSettings, Damping
from delassus_ros.contacts import MOVING, Contact, ContactSet
from delassus_ros.errors import ContactError, InputError, RobotError, unknown
from delassus_ros.model import Robot, Transform
from delassus_ros.model.robot import Base
from delassus_ros.node.inputs.contact_estimator import ContactEstimator, ObserverSettings
from delassus_ros.node.inputs.motion import MotionInput
from delassus_ros.node.inputs.orientation import OrientationInput
from delassus_ros.node.reasons import Limits
from delassus_ros.node.system.realtime import RealtimeSettings
from delassus_ros.problem import AXES, Axes, Problem


@dataclass(frozen=True)
class Setting:
    """One parameter: all that there is to say of it.

    Attributes
    ----------
    default : its value if it is not given; of the parameter's type.
    description : what it does, in a sentence or two.
    low, high : the range of a number, both ends included; None for others.
    least : smallest number but 0, where 0 stands for none, and others can be too small to work.
    choices : the values of a text.
    holds : of a list: ``"names"``, ``"numbers"`` or ``"whole numbers"``.
    live : it may be set in any state of the node, and takes effect from the next instant on;
        others are read when the node is configured.
    """

    default: Any
    description: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    least: float = 0.0
    holds: str = ""
    live: bool = False

    @property
    def range(self) -> str:
        """Return the range in words; empty if there is none."""
        if self.low is None or self.high is None:
            return ""
        none = "0, or " if self.least else ""
        return f"{none}{self.least or self.low:g} to {self.high:g}"

    def check(self, name: str, value: Any) -> None:
        """Refuse a number out of range, or another text than the choices.

        Raises
        ------
        InputError
            It is; names the parameter.
        """
        if self.choices and value not in self.choices:
            raise InputError(unknown(name, str(value), self.choices, plural=name))
        if self.holds == "whole numbers" and any(each < 0 for each in value):
            raise InputError(f"parameter {name!r} is {list(value)}; expected numbers from 0 on")
        if self.low is None or self.high is None:
            return
        # Written so that NaN is refused.
        if not self.low <= value <= self.high or (self.least and 0 != value < self.least):
            raise InputError(f"parameter {name!r} is {value}; expected {self.range}")


INVERSES = {"Lambda", "Jbar"}
"""Outputs that are computed from the matrix."""
BESIDE = ("a0", "JdotV", "qdd0", "J", "MinvJT", "h", "M", "Lambda", "Jbar")
"""What may come beside the matrix, in the order of ContactDynamics."""
TORQUES = ("effort", "zero", "topic")
COMPUTED: Mapping[str, Setting] = {
    "robot_description": Setting(
        "",
        "URDF of the robot (XML text). If empty, it is taken from the topic robot_description. "
        "May change while the node runs; one that turns out bad is set back.",
        live=True,
    ),
    "base": Setting(
        "floating",
        "How the root link is held: free in all six directions, or fixed to the world.",
        choices=("floating", "fixed"),
    ),
    "axes": Setting(
        "contact",
        "Axes of the rows: those of each contact's own frame, or those of the world, which with "
        "a floating base needs its orientation (orientation.*).",
        choices=AXES,
    ),
    "rows": Setting(
        "active",
        "Which contacts a matrix holds: the active ones, or all of them, in messages of fixed "
        "size.",
        choices=("active", "all"),
    ),
    "algorithm": Setting(
        "pv_osimr",
        "Algorithm that computes the matrix; may change while the node runs.",
        live=True,
    ),
    "fallback": Setting(
        "",
        "Algorithm that computes a matrix where the configured one fails; the message says so. "
        "Empty: none, such an instant is INVALID.",
    ),
    "outputs": Setting(
        ("G",),
        "What is computed: G, the matrix, always, and what ~/dynamics has beside it: a0, JdotV, "
        "qdd0, J, MinvJT, h, M, Lambda, Jbar.",
        holds="names",
    ),
    "torques": Setting(
        "effort",
        "Joint torques that a0 and qdd0 are under: the efforts of the joint states, none, or "
        "those of the topic joint_torques (sensor_msgs/JointState).",
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
        "What says which contacts are active: the topic active_contacts, or the force at them, "
        "told from efforts, rates and the base's motion, and published on ~/contacts.",
        choices=("topic", "force"),
    ),
    "contacts.estimated": Setting(
        (), "With source force: contacts that may touch. All if empty.", holds="names"
    ),
    "contacts.force_on": Setting(
        ObserverSettings.force_on,
        "With source force: normal force from which on a contact is active [N].",
        0.0, 1e5,
    ),
    "contacts.force_off": Setting(
        ObserverSettings.force_off,
        "With source force: normal force below which it is not active any more [N].",
        0.0, 1e5,
    ),
    "contacts.gain": Setting(
        ObserverSettings.gain,
        "With source force: forces follow with a delay of its inverse, and noise grows with it "
        "[1/s].",
        1.0, 1e4,
    ),
    "armature.names": Setting(
        (), "Joints with a rotor inertia, which the URDF does not say.", holds="names"
    ),
    "armature.values": Setting(
        (),
        "Rotor inertia seen at each joint of armature.names [kg m^2, or kg].",
        holds="numbers",
    ),
    "lock.names": Setting(
        (), "Joints that are held: the robot is computed as if they did not move.", holds="names"
    ),
    "lock.values": Setting(
        (), "Position of each joint of lock.names [rad, m].", holds="numbers"
    ),
    "loops": Setting(
        "",
        "Loops, couplings and rotors that the URDF cannot say: path of a YAML file, or its text.",
    ),
    "reference.names": Setting(
        (), "Joints whose positions say on which branch the loops close.", holds="names"
    ),
    "reference.values": Setting(
        (), "Positions of the joints of reference.names [rad or m].", holds="numbers"
    ),
    "orientation.source": Setting(
        "odometry",
        "Where the orientation of a floating base comes from, with world axes or outputs of "
        "motion, and its twist: the topic odometry (nav_msgs/Odometry) or imu (sensor_msgs/Imu).",
        choices=("odometry", "imu"),
    ),
    "orientation.frame": Setting(
        "",
        "Link whose orientation it is, fixed to the root link. Empty: the one that the messages "
        "name; one that names none is refused.",
    ),
    "orientation.world_frame": Setting(
        "odom",
        "Frame along whose axes the rows are; an odometry has to be in it. An Imu does not say "
        "what it is relative to: the matrices are labelled with this frame, whatever that is.",
    ),
    "orientation.timeout": Setting(
        0.1, "Age of the orientation above which the answer is INVALID [s]. 0: never.", 0.0, 60.0
    ),
}  # fmt: skip
"""Parameters of what is computed, by name, those of single contacts apart."""
OF_CONTACT: Mapping[str, Setting] = {
    "frame": Setting("", "Link of the robot that the contact is fixed to."),
    "kind": Setting(
        "point",
        "Rows of the contact: 3 linear, 3 linear and 3 angular, or those of selection.",
        choices=("point", "surface", "selection"),
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
        (), "Rows of a (k, 6) matrix, linear first, for kind 'selection'.", holds="numbers"
    ),
    "moving": Setting(
        "nothing",
        "What of the placement comes by the topic contact_placements, for contacts that roll or "
        "touch anywhere: its position, or its pose.",
        choices=MOVING,
    ),
}  # fmt: skip
"""Parameters of a contact, each after ``contacts.<name>.``."""
AUTOSTART = "autostart"
OPERATION: Mapping[str, Setting] = {
    AUTOSTART: Setting(
        False, "Configure and activate by itself, once there is a robot description."
    ),
    "max_skew": Setting(
        Limits.max_skew,
        "How far stamps of joint states that complete each other may be apart, and how far they "
        "may be ahead of the node's clock, with simulated time beyond a step of /clock [s].",
        0.0, 1.0, live=True,
    ),
    "input_timeout": Setting(
        Limits.input_timeout,
        "Age of the joint positions above which the answer is INVALID; INVALID or a matrix is "
        "said at least as often [s]. 0: never, unless joint states make no matrix for 1 s.",
        0.0, 60.0, live=True,
    ),
    "contacts_timeout": Setting(
        Limits.contacts_timeout,
        "Age of the set of active contacts above which the answer is INVALID, with all rows "
        "DEGRADED [s], and of the place of an active one that moves; publishers repeat them at 10 "
        "Hz or more, with a new stamp. 0: never.",
        0.0, 60.0, live=True,
    ),
    "conditioning.characteristic_length": Setting(
        ConditionSettings.characteristic_length,
        "Weighs angular against linear rows where matrices are judged [m]: half a foot's "
        "length, say.",
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
        "A matrix gets better again below a threshold divided by this.",
        1.0, 100.0, live=True,
    ),
    "damping.mode": Setting(
        ConditionSettings.damping.name.lower(),
        "What is added to the matrix: nothing, the same to the whole diagonal, or as much as "
        "weak directions need. It is always reported.",
        choices=tuple(mode.name.lower() for mode in Damping), live=True,
    ),
    "damping.ratio": Setting(
        ConditionSettings.damping_ratio,
        "Amount of uniform damping, and the smallest eigenvalue that selective damping leaves, "
        "both as a fraction of the largest eigenvalue.",
        1e-12, 0.5, live=True,
    ),
    "deadline": Setting(
        0.0,
        "Time since the node took a joint state up after which its matrix is an overrun, "
        "which is counted and reported [s]. 0: none.",
        0.0, 10.0, live=True,
    ),
    "diagnostics_period": Setting(
        1.0,
        "Time between two diagnostics [s]: 0.05 or more, or 0 for none.",
        0.0, 60.0, least=0.05, live=True,
    ),
    "rate": Setting(
        0.0,
        "Matrices per second, each of the newest joint state at that instant: 0.001 or more. 0: "
        "one for each joint state, as soon as it comes.",
        0.0, 10000.0, least=0.001,
    ),
    "realtime.priority": Setting(
        0,
        "SCHED_FIFO priority of all threads of the process while the node is active; 0: normal "
        "scheduling. Needs permission; without, the node says so and goes on.",
        0, 99,
    ),
    "realtime.cpus": Setting(
        (),
        "Numbers of the processors that the process is kept to while the node is active; all if "
        "empty.",
        holds="whole numbers",
    ),
    "realtime.lock_memory": Setting(
        False,
        "Lock all memory of the process into RAM while the node is active. Needs permission.",
    ),
    "realtime.wakeup_latency": Setting(
        -1,
        "Longest time that idle processors of the machine may take to wake up while the node is "
        "active [us]; 0 keeps them awake, which costs power; -1: as the system is set. Needs "
        "permission.",
        -1, 10000,
    ),
    "realtime.hold_garbage": Setting(
        True,
        "Collect Python's garbage only between joint states while the node is active.",
    ),
}  # fmt: skip
"""Parameters of how the node works, by name."""
PARAMETERS: Mapping[str, Setting] = {**COMPUTED, **OPERATION}
RCLPYS = ("qos_overrides.", "use_sim_time", "start_type_description_service")
"""Beginnings of parameters that are rclpy's."""


@dataclass(frozen=True)
class Settings:
    """The node's parameters, checked one by one.

    Attributes
    ----------
    robot_description : URDF text; empty if it comes on the topic.
    base, axes : as in :class:`~delassus_ros.problem.Problem`.
    rows : ``"active"``, or ``"all"`` for matrices of every contact, whether active or not.
    algorithm : name of the algorithm to begin with.
    outputs : names of what is computed besides the matrix, in the order of ~/dynamics.
    torques : where joint torques come from, of :data:`TORQUES`.
    gravity : (3,) [m/s²] in the world's axes.
    contacts : the contacts, in the order of their rows.
    observer : thresholds and gain where forces say which contacts are active; else None.
    estimated : contacts that may be active then; all if empty.
    armature : rotor inertia by joint name [kg·m² or kg].
    lock : positions of joints that are held, by name [rad, m].
    fallback : name of the algorithm that stands in for one that fails; empty for none.
    loops : loops, couplings and rotors that the URDF cannot say: path of a YAML file, or its
        text; empty for none.
    reference : joint positions [rad, m] on the branch on which the loops close.
    orientation_source : ``"odometry"`` or ``"imu"``: where the orientation of a floating base
        comes from with world axes.
    orientation_frame : frame of that source; empty to go by its messages.
    orientation_world_frame : frame along whose axes the rows are then.
    orientation_timeout : age above which an orientation is too old [s]; infinite for never.
    """

    robot_description: str
    base: Base
    axes: Axes
    rows: str
    algorithm: str
    outputs: tuple[str, ...]
    torques: str
    gravity: tuple[float, ...]
    contacts: ContactSet
    observer: ObserverSettings | None
    estimated: tuple[str, ...]
    armature: Mapping[str, float]
    lock: Mapping[str, float]
    fallback: str
    loops: str
    reference: Mapping[str, float]
    orientation_source: str
    orientation_frame: str
    orientation_world_frame: str
    orientation_timeout: float

    @classmethod
    def from_parameters(cls, given: Mapping[str, Any]) -> Settings:
        """Read settings from parameter values by full name; what is absent has its default.

        Raises
        ------
        InputError
            For a value out of range or an unknown choice; names the parameter.
        ContactError
            If there is no contact, or one is not described in full; names the parameter.
        RobotError
            If armature.names and armature.values do not belong together, or those of lock or
            reference.
        """
        values = _checked(COMPUTED, given)
        if not values["contacts.names"]:
            raise ContactError(
                "parameter 'contacts.names' is empty; list the contacts in it, in the order of "
                "their rows, and give each a 'contacts.<name>.frame'"
            )
        return cls(
            robot_description=values["robot_description"],
            base=cast(Base, values["base"]),
            axes=cast(Axes, values["axes"]),
            rows=values["rows"],
            algorithm=values["algorithm"],
            outputs=_outputs(values["outputs"]),
            torques=values["torques"],
            gravity=_finite_triple("gravity", values["gravity"]),
            contacts=ContactSet(_contact(name, values) for name in values["contacts.names"]),
            observer=_observer(values) if values["contacts.source"] == "force" else None,
            estimated=tuple(values["contacts.estimated"]),
            armature=by_joint("armature", values),
            lock=by_joint("lock", values),
            fallback=values["fallback"],
            loops=values["loops"],
            reference=by_joint("reference", values),
            orientation_source=values["orientation.source"],
            orientation_frame=values["orientation.frame"],
            orientation_world_frame=values["orientation.world_frame"],
            orientation_timeout=values["orientation.timeout"] or math.inf,
        )

    def problem(self, urdf: str | bytes) -> Problem:
        """Return the problem for a robot given as URDF text.

        Raises
        ------
        RobotError, ContactError
            If the robot cannot be read or the contacts do not fit it.
        InputError
            If contacts are told by forces, and one of them moves.
        """
        moving = [contact.name for contact in self.contacts if contact.moving != "nothing"]
        if moving and self.observer is not None:
            raise InputError(
                f"contacts.source is 'force', which needs contacts that stay where they are, but "
                f"'contacts.{moving[0]}.moving' is set; leave that out, or set 'contacts.source' "
                "to 'topic'"
            )
        # Bytes, as text that does not look like XML would be taken for the path of a file.
        text = urdf.encode() if isinstance(urdf, str) else urdf
        robot = Robot.from_urdf(
            text, base=self.base, armature=self.armature, loops=self.loops or None
        )
        robot = robot.lock(self.lock) if self.lock else robot
        return Problem(robot, self.contacts, axes=self.axes, outputs=self._needed_outputs)

    @property
    def _needed_outputs(self) -> set[str]:
        """Outputs of the kernel, from which all others follow."""
        needed = set(self.outputs) - INVERSES
        return needed | {"MinvJT"} if "Jbar" in self.outputs else needed

    def motion(self, problem: Problem, base: OrientationInput | None) -> MotionInput | None:
        """Return what takes velocities and torques; None where no output needs them.

        Parameters
        ----------
        base : of :meth:`orientation`.
        """
        if not self._moves(problem):
            return None
        return MotionInput(problem, self.torques, self.gravity, base, Limits.input_timeout)

    def estimator(
        self, problem: Problem, base: OrientationInput | None
    ) -> ContactEstimator | None:
        """Return what tells contacts from forces; None where a topic does.

        Parameters
        ----------
        base : of :meth:`orientation`.

        Raises
        ------
        InputError
            If a contact has fewer than three rows, or there is none of a name.
        """
        if self.observer is None:
            return None
        return ContactEstimator(problem, self.observer, self.estimated, self.gravity, base)

    def _moves(self, problem: Problem) -> bool:
        return any(port.name == "rates" for port in problem.inputs)

    def closure(self, problem: Problem) -> Closure | None:
        """Return what finds the positions of joints that are not measured; None for open chains.

        What it takes where the independent joints are measured is compiled, or found in the
        cache.

        Raises
        ------
        RobotError
            If a loop does not close at the reference or is singular there, or if there is a
            reference but no loop or coupling.
        """
        if not problem.robot.is_closed:
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

    def besides_the_problem(self, problem: Problem) -> str:
        """Return, as text, what matrices depend on besides the problem and the inputs."""
        found: list[object] = [sorted(self.reference.items())]
        if problem.axes == "world" and problem.robot.base == "floating":
            found += [self.orientation_source, self.orientation_frame]
        return repr(found)

    def orientation(self, problem: Problem) -> OrientationInput | None:
        """Return the input for the base's orientation and twist; None where they do not matter.

        Raises
        ------
        InputError
            If orientation.frame does not exist or can move on the root link,
            orientation.world_frame is empty, or outputs need more than an Imu tells.
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
        # Rates of the base are along its own axes, which turn: v̇ = a − ω × v. In the world's axes
        # a0 does not depend on v.
        needing = ["h", "qdd0", "JdotV", *(["a0"] if problem.axes == "contact" else [])]
        moved = [name for name in needing if name in self.outputs]
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


def _contact(name: str, values: Mapping[str, Any]) -> Contact:
    """Return the contact that the parameters ``contacts.<name>.*`` describe."""
    own = {
        key: values.get(f"contacts.{name}.{key}", setting.default)
        for key, setting in OF_CONTACT.items()
    }
    if not own["frame"]:
        raise ContactError(
            f"contact {name!r}: parameter 'contacts.{name}.frame' is not set; it names the link "
            "that the contact is fixed to"
        )
    for key, setting in OF_CONTACT.items():
        if setting.choices and own[key] not in setting.choices:
            words = unknown(key, own[key], setting.choices, "choices")
            raise ContactError(f"contact {name!r}: {words}")
    selection = list(own["selection"])
    if own["kind"] == "selection":
        if not selection or len(selection) % 6:
            raise ContactError(
                f"contact {name!r}: parameter 'contacts.{name}.selection' has {len(selection)} "
                "values; expected the rows of a (k, 6) matrix, one after the other"
            )
        kind: Any = np.reshape(np.array(selection, dtype=np.float64), (-1, 6))
    elif selection:
        raise ContactError(
            f"contact {name!r}: parameter 'contacts.{name}.selection' is given, but its kind is "
            f"{own['kind']!r}; set the kind to 'selection' or leave the selection out"
        )
    else:
        kind = own["kind"]
    placement = Transform.from_xyz_rpy(_triple(name, "xyz", own), _triple(name, "rpy", own))
    return Contact(name, own["frame"], kind, placement, own["moving"])


def _triple(contact: str, key: str, values: Mapping[str, Any]) -> tuple[float, ...]:
    try:
        return _finite_triple(f"contacts.{contact}.{key}", values[key])
    except InputError as error:
        raise ContactError(f"contact {contact!r}: {error}") from error


def _finite_triple(name: str, values: Iterable[Any]) -> tuple[float, ...]:
    triple = tuple(float(value) for value in values)
    if len(triple) != 3 or not np.isfinite(triple).all():
        raise InputError(f"parameter {name!r} is {list(triple)}; expected 3 finite numbers")
    return triple


def _observer(values: Mapping[str, Any]) -> ObserverSettings:
    names = ("force_on", "force_off", "gain")
    return ObserverSettings(**{name: values[f"contacts.{name}"] for name in names})


def _outputs(names: Iterable[str]) -> tuple[str, ...]:
    """Return what is published besides G; refuse what there is not."""
    for name in names:
        if name not in ("G", *BESIDE):
            raise InputError(f"parameter 'outputs': {unknown('output', name, ('G', *BESIDE))}")
    wanted = set(names)
    return tuple(name for name in BESIDE if name in wanted)


def by_joint(name: str, values: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers that a pair of parameters gives to joints."""
    joints: Sequence[str] = values[f"{name}.names"]
    numbers: Sequence[float] = values[f"{name}.values"]
    if len(joints) != len(numbers):
        raise RobotError(
            f"parameter '{name}.names' has {len(joints)} entries but '{name}.values' has "
            f"{len(numbers)}; expected one value for each joint"
        )
    if len(set(joints)) != len(joints):
        twice = next(joint for i, joint in enumerate(joints) if joint in joints[:i])
        raise RobotError(f"parameter '{name}.names' has joint {twice!r} more than once")
    return {joint: float(number) for joint, number in zip(joints, numbers, strict=True)}


def _checked(settings: Mapping[str, Setting], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by name; what is absent has its default.

    Those of single contacts are passed on as they are.
    """
    values = dict(given)
    for name, setting in settings.items():
        values[name] = given.get(name, setting.default)
        setting.check(name, values[name])
    return values


@dataclass(frozen=True)
class Operation:
    """How the node works.

    Attributes
    ----------
    limits : of the inputs, and thresholds and damping.
    deadline : from when a joint state is taken up to its matrix [s]; infinite for none.
    rate : matrices per second; 0 for one at each joint state.
    realtime : what is asked of the operating system.
    diagnostics_period : [s]; 0 for no diagnostics.
    """

    limits: Limits
    deadline: float
    rate: float
    realtime: RealtimeSettings
    diagnostics_period: float

    @classmethod
    def from_parameters(cls, given: Mapping[str, Any]) -> Operation:
        """Read parameter values by full name; what is absent has its default.

        Raises
        ------
        InputError
            For a value out of range, an unknown choice, or values that contradict each other;
            names the parameter.
        """
        values = _checked(OPERATION, given)
        return cls(
            limits=Limits(
                max_skew=values["max_skew"],
                input_timeout=values["input_timeout"] or math.inf,
                contacts_timeout=values["contacts_timeout"] or math.inf,
                condition=_condition(values),
            ),
            deadline=values["deadline"] or math.inf,
            rate=values["rate"],
            realtime=RealtimeSettings(
                priority=values["realtime.priority"],
                processors=tuple(values["realtime.cpus"]),
                lock_memory=values["realtime.lock_memory"],
                hold_garbage=values["realtime.hold_garbage"],
                wakeup_latency=values["realtime.wakeup_latency"],
            ),
            diagnostics_period=values["diagnostics_period"],
        )


def _condition(values: Mapping[str, Any]) -> ConditionSettings:
    try:
        return ConditionSettings(
            characteristic_length=values["conditioning.characteristic_length"],
            weak=values["conditioning.weak"],
            singular=values["conditioning.singular"],
            hysteresis=values["conditioning.hysteresis"],
            damping=Damping[values["damping.mode"].upper()],
            damping_ratio=values["damping.ratio"],
        )
    except InputError as error:
        raise InputError(f"parameters 'conditioning.*' and 'damping.*': {error}") from error


def misspelt(given: Iterable[str], contacts: Iterable[str]) -> list[str]:
    """Return what to say of each name that is not a parameter of the node, sorted.

    Parameters
    ----------
    given : names of parameters.
    contacts : names of the contacts, which have parameters each.
    """
    of_contacts = [f"contacts.{name}.{key}" for name in contacts for key in OF_CONTACT]
    known = dict.fromkeys((*PARAMETERS, *of_contacts))
    return [
        unknown("parameter", name, known)
        for name in sorted(given)
        if name not in known and not name.startswith(RCLPYS)
    ]
