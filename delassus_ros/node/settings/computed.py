"""Settings of the computation, read from plain parameter values.

Knows no ROS.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from delassus_ros.closure import Closure
from delassus_ros.contacts import (
    CenterOfMass,
    CentroidalMomentum,
    Contact,
    ContactSet,
    RelativeContact,
    WeightedSum,
)
from delassus_ros.errors import ContactError, InputError, RobotError, unknown
from delassus_ros.inputs.contact_estimator import ContactEstimator, ObserverSettings
from delassus_ros.inputs.limits import Limits
from delassus_ros.inputs.motion import MotionInput
from delassus_ros.inputs.orientation import OrientationInput
from delassus_ros.model import Robot, Transform
from delassus_ros.model.reading.numbers import numbers_in
from delassus_ros.model.robot import Base
from delassus_ros.node.settings.table import (
    CONTACT_PARAMETERS,
    PROBLEM_PARAMETERS,
)
from delassus_ros.outputs import needed_outputs, secondary_outputs
from delassus_ros.problem import Axes, Problem
from delassus_ros.ros.setting import by_joint, parse_all


@dataclass(frozen=True)
class Settings:
    """The node's parameters, checked one by one.

    Attributes
    ----------
    robot_description : URDF text; empty for the text of the topic.
    base, axes : as in :class:`~delassus_ros.problem.Problem`.
    rows : ``"active"``, or ``"all"`` for matrices of every contact, whether active or not.
    algorithm : name of the algorithm to begin with.
    outputs : names of the secondary outputs, in the order of ~/dynamics.
    torques : source of the joint torques, of :data:`TORQUES`.
    gravity : (3,) [m/s²] in the world's axes.
    contacts : the contacts, in the order of their rows.
    observer : thresholds and gain of the contact estimator; None for contacts of the topic.
    scheduled : whether the active contacts are those of the schedule on the topic
        contact_schedule.
    estimated : contacts that the estimator may make active; all if empty.
    armature : rotor inertia by joint name [kg·m² or kg].
    lock : positions of locked joints, by name [rad, m].
    fallback : name of the algorithm that replaces one that fails; empty for none.
    loops : loops, couplings and rotors that a URDF cannot describe: path of a YAML file, or its
        text; empty for none.
    loops_as : how loops are closed; see :meth:`Robot.with_loops_as
        <delassus_ros.model.robot.Robot.with_loops_as>`.
    passive : whether dampers of joints count.
    reference : joint positions [rad, m] on the branch on which the loops close.
    orientation_source : source of a floating base's orientation: ``"odometry"`` or ``"imu"``.
    orientation_frame : frame of that source; empty for the frame of its messages.
    orientation_world_frame : frame of the rows with world axes.
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
    scheduled: bool
    estimated: tuple[str, ...]
    armature: Mapping[str, float]
    lock: Mapping[str, float]
    fallback: str
    loops: str
    loops_as: str
    passive: bool
    reference: Mapping[str, float]
    orientation_source: str
    orientation_frame: str
    orientation_world_frame: str
    orientation_timeout: float

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
        values = parse_all(PROBLEM_PARAMETERS, parameters)
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
            contacts=ContactSet(_contact(name, parameters) for name in values["contacts.names"]),
            observer=_observer(values) if values["contacts.source"] == "force" else None,
            scheduled=values["contacts.source"] == "schedule",
            estimated=values["contacts.estimated"],
            armature=by_joint("armature", values),
            lock=by_joint("lock", values),
            fallback=values["fallback"],
            loops=values["loops"],
            loops_as=values["loops_as"],
            passive=values["passive"],
            reference=by_joint("reference", values),
            orientation_source=values["orientation.source"],
            orientation_frame=values["orientation.frame"],
            orientation_world_frame=values["orientation.world_frame"],
            orientation_timeout=values["orientation.timeout"] or math.inf,
        )

    def problem(self, urdf: str | bytes) -> Problem:
        """Return the problem of a robot's URDF text.

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
        # As bytes: a text that does not look like XML would be read as the path of a file.
        text = urdf.encode() if isinstance(urdf, str) else urdf
        robot = Robot.from_urdf(
            text, self.base, self.armature, self.loops or None, loops_as=self.loops_as,
            lock=self.lock, passive=self.passive,
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

    def besides_the_problem(self, problem: Problem) -> str:
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


def _contact(name: str, parameters: Mapping[str, Any]) -> Contact:
    """Return the contact that the parameters ``contacts.<name>.*`` describe."""
    try:
        values = parse_all(CONTACT_PARAMETERS, parameters, f"contacts.{name}.")
    except InputError as error:
        raise ContactError(f"contact {name!r}: {error}") from error
    kind = values["kind"]
    taken = _PARAMETERS_OF.get(kind, _OF_ONE_FRAME)
    for key, setting in CONTACT_PARAMETERS.items():
        if values[key] != setting.default and key not in ("kind", *taken):
            have = ", ".join(taken) or "none, as it is of the whole robot"
            raise ContactError(
                f"contact {name!r}: parameter 'contacts.{name}.{key}' is given, but its kind is "
                f"{kind!r}; parameters of this kind: {have}"
            )
    if kind in _OF_THE_ROBOT:
        return _OF_THE_ROBOT[kind](name)
    first = taken[0]
    if not values[first]:
        raise ContactError(
            f"contact {name!r}: parameter 'contacts.{name}.{first}' is not set; it names the "
            + ("link that the contact is fixed to" if first == "frame" else "links of the sum")
        )
    rows: Any = {"relative": "surface", "weighted_sum": "point"}.get(kind, kind)
    selection = values["selection"]
    if selection or kind == "selection":
        if not selection or len(selection) % 6:
            raise ContactError(
                f"contact {name!r}: parameter 'contacts.{name}.selection' has {len(selection)} "
                "values; expected the rows of a (k, 6) matrix, one after the other"
            )
        rows = np.reshape(np.array(selection, dtype=np.float64), (-1, 6))
    if kind == "weighted_sum":
        return WeightedSum(name, _weights(name, values), rows)
    placement = Transform.from_xyz_rpy(_triple(name, "xyz", values), _triple(name, "rpy", values))
    if kind == "relative":
        return RelativeContact(name, values["frame"], values["second_frame"], rows, placement)
    friction, dimensions = values["friction"], values["dimensions"]
    return Contact(
        name, values["frame"], rows, placement, values["moving"],
        friction=None if friction == _OF_NODE else friction,
        normal=_normal(values["normal"]),
        dimensions=dimensions or None,
    )  # fmt: skip


def _weights(name: str, values: Mapping[str, Any]) -> dict[str, float]:
    """Return the weights of the frames of a sum, by frame."""
    frames, weights = values["frames"], values["weights"]
    if len(frames) != len(weights) or len(set(frames)) < len(frames):
        raise ContactError(
            f"contact {name!r}: parameter 'contacts.{name}.frames' is {list(frames)} and "
            f"'contacts.{name}.weights' is {list(weights)}; expected one weight for each of "
            "several different frames"
        )
    return dict(zip(frames, weights, strict=True))


_OF_ONE_FRAME = (
    "frame", "xyz", "rpy", "moving", "friction", "normal", "dimensions"
)  # fmt: skip
_PARAMETERS_OF: Mapping[str, tuple[str, ...]] = {
    "selection": (*_OF_ONE_FRAME, "selection"),
    "relative": ("frame", "second_frame", "selection", "xyz", "rpy"),
    "weighted_sum": ("frames", "weights", "selection"),
    "center_of_mass": (),
    "centroidal_momentum": (),
}
"""Parameters of a contact by kind, besides the kind; points and surfaces have the former ones."""
_OF_THE_ROBOT = {kind.label: kind for kind in (CenterOfMass, CentroidalMomentum)}
"""Kinds of rows of the whole robot."""
_OF_NODE = -1.0
"""Value of ``contacts.<name>.friction`` that stands for the parameter ``friction``."""


def _normal(text: str) -> str | list[float]:
    """Return the normal of a text: the name of an axis, or three numbers."""
    try:
        return numbers_in(text)
    except ValueError:
        return text


def _triple(contact: str, key: str, values: Mapping[str, Any]) -> tuple[float, ...]:
    try:
        return _finite_triple(f"contacts.{contact}.{key}", values[key])
    except InputError as error:
        raise ContactError(f"contact {contact!r}: {error}") from error


def _finite_triple(name: str, values: tuple[float, ...]) -> tuple[float, ...]:
    if len(values) != 3 or not np.isfinite(values).all():
        raise InputError(f"parameter {name!r} is {list(values)}; expected 3 finite numbers")
    return values


def _observer(values: Mapping[str, Any]) -> ObserverSettings:
    names = ("force_on", "force_off", "gain")
    return ObserverSettings(**{name: values[f"contacts.{name}"] for name in names})


def _outputs(names: Iterable[str]) -> tuple[str, ...]:
    """Return the outputs that are published besides G; refuse unknown ones."""
    known = secondary_outputs()
    for name in names:
        if name not in ("G", *known):
            raise InputError(f"parameter 'outputs': {unknown('output', name, ('G', *known))}")
    wanted = set(names)
    return tuple(name for name in known if name in wanted)
