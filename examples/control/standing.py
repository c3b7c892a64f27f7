"""What an example of a standing robot consists of: its contacts, its controller and its limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from delassus import Contact, Problem, Robot

from .kinematics import State

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Command:
    """A command to the drives, with its reasons.

    Attributes
    ----------
    torques : (n,) [N m].
    forces : forces or wrenches of the feet that the controller wants (k, rows) [N], [N m]; NaN
        without a solution.
    place, wanted : of the tracked point: measured and wanted position (3,) [m].
    feet : positions of the feet (k, 3) [m].
    bears : which feet are to bear (k,).
    act : name of the present entry of the timetable.
    """

    torques: Array
    forces: Array
    place: Array
    wanted: Array
    feet: Array
    bears: Sequence[bool]
    act: str


class Controller(Protocol):
    """Controller of a standing robot.

    Attributes
    ----------
    unsolved : ticks without a solution.
    """

    unsolved: int

    def command(self, state: State, given: Any, dt: float) -> Command:
        """Return the command for an instant, `dt` after the one before [s]."""


@dataclass(frozen=True)
class StandingExample:
    """A robot with a free base that stands by the forces of its feet, and its controller.

    Attributes
    ----------
    name : of the controller's ROS node.
    robot : name of the robot of ``delassus_plant``.
    contacts : trunk and feet, in the order of the rows.
    outputs : outputs of delassus_node besides G, in the order of the arguments of `matrices`.
    matrices : makes the argument `given` of :meth:`Controller.command` of G and the outputs.
    controller : makes the controller of the text of the description, names of the joints, largest
        torques (n,) [N m] and timetable.
    timetable : entries in turn.
    predict : from the matrices, torques, touching feet and coefficient of friction to the forces
        or wrenches of the feet (k, rows) [N], [N m].
    torque_limit : of all drives of the ROS node, by default [N m].
    tracked : name of the tracked point.
    largest_error : of the tracked point, rms [m]; more is a fault of a demo.
    lowest, upright : height of the base [m] and cosine of its tilt at which the robot has fallen.
    shown_feet, shown_joints : feet whose normal forces and joints whose torques the figure shows.
    """

    name: str
    robot: str
    contacts: tuple[Contact, ...]
    outputs: tuple[str, ...]
    matrices: Callable[..., Any]
    controller: Callable[[str, Sequence[str], Array, Sequence[Any]], Controller]
    timetable: Sequence[Any]
    predict: Callable[[Any, Array, Sequence[bool], float], Array]
    torque_limit: float
    tracked: str
    largest_error: float
    lowest: float
    upright: float
    shown_feet: tuple[str, ...]
    shown_joints: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the contacts."""
        return tuple(contact.name for contact in self.contacts)

    @property
    def feet(self) -> tuple[str, ...]:
        """Names of the feet, the contacts after the trunk."""
        return self.names[1:]

    def problem(self, urdf: str, armature: float = 0.0) -> Problem:
        """Return the problem of delassus_node, along the axes of the world.

        Parameters
        ----------
        urdf : text of the description.
        armature : reflected inertia of each rotor at its joint [kg m²].
        """
        plain = Robot.from_urdf(urdf.encode())
        robot = Robot.from_urdf(urdf.encode(), armature=dict.fromkeys(plain.joint_names, armature))
        return Problem(robot, self.contacts, axes="world", outputs=self.outputs)
