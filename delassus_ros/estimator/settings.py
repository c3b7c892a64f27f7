"""Settings of the estimator, read from plain parameter values.

Knows no ROS.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from delassus.errors import InputError, ProblemError
from delassus.measured import (
    Accelerometer,
    ExternalWrench,
    JointAcceleration,
    JointTorque,
    Measurement,
    SparseDynamics,
)
from delassus.measured.quantities import Quantity
from delassus.model import Robot
from delassus.model.clusters import velocity_offsets
from delassus.model.robot import Base
from delassus_ros.ros.setting import (
    Setting,
    by_joint,
    field_values,
    parameter,
    settings_by_name,
)

FORCE, MOMENT = (0, 1, 2), (3, 4, 5)
_SMALLEST, _LARGEST = 1e-6, 1e9


@dataclass(frozen=True)
class Pushed:
    """A frame at which the surroundings may push; its parameters are ``wrenches.<name>.*``."""

    name: str
    frame: str = parameter("", "Frame of the wrench; empty: the frame with the wrench's name.")
    kind: str = parameter(
        "point",
        "Kind of the wrench: a force at the frame's origin, or any wrench.",
        choices=("point", "surface"),
    )
    sensor: bool = parameter(
        False,
        "Whether a sensor measures the wrench: geometry_msgs/WrenchStamped on wrenches/<name>, "
        "along the axes of the frame.",
    )
    force_sigma: float = parameter(
        2.0, "Standard deviation of the sensor's forces [N].", _SMALLEST, _LARGEST,
    )
    moment_sigma: float = parameter(
        0.2, "Standard deviation of the sensor's moments [N m].", _SMALLEST, _LARGEST,
    )

    @property
    def quantities(self) -> tuple[ExternalWrench, ...]:
        """Quantities that the sensor of the frame measures: forces, and moments if present."""
        force = ExternalWrench(self.frame, FORCE)
        return (force, ExternalWrench(self.frame, MOMENT)) if self.kind == "surface" else (force,)

    def known(self) -> list[Measurement]:
        """Return the known quantities of the wrench."""
        found = []
        if self.sensor:
            sigmas = self.force_sigma, self.moment_sigma
            found += [Measurement(q, s) for q, s in zip(self.quantities, sigmas, strict=False)]
        if self.kind == "point":
            found.append(Measurement(ExternalWrench(self.frame, MOMENT), value=0.0))
        return found


@dataclass(frozen=True)
class EstimatorSettings:
    """Parameters of the estimator.

    Attributes
    ----------
    pushed : frames at which the surroundings may push.
    armature : rotor inertia by joint name [kg·m² or kg].
    """

    pushed: tuple[Pushed, ...]
    robot_description: str = parameter(
        "", "URDF or MJCF of the robot (XML text). If empty, the topic robot_description is used.",
    )
    base: Base = parameter(
        "floating",
        "Base of the robot: the root link is free in all six directions, or fixed to the world.",
        choices=("floating", "fixed"),
    )
    autostart: bool = parameter(False, "Configure and activate without a lifecycle manager.")
    effort_sigma: float = parameter(
        1.0,
        "Standard deviation of the efforts of joint states as torques of the joints [N m, N]; 0: "
        "efforts are not used.",
        0.0, _LARGEST, least=_SMALLEST, name="effort.sigma",
    )
    acceleration_sigma: float = parameter(
        5.0,
        "Standard deviation of joint accelerations as differences of rates [rad/s^2, m/s^2].",
        _SMALLEST, _LARGEST, name="acceleration.sigma",
    )
    base_sigma: float = parameter(
        2.0,
        "Standard deviation of the base's acceleration [m/s^2, rad/s^2].",
        _SMALLEST, _LARGEST, name="acceleration.base_sigma",
    )
    window: float = parameter(
        0.01, "Time between the two rates of an acceleration, their difference [s].", 0.0, 1.0,
        name="acceleration.window",
    )
    world_frame: str = parameter(
        "odom",
        "Reference frame of a floating base's odometry (header.frame_id), with the z axis up. "
        "Empty: any.",
        name="orientation.world_frame",
    )
    imu_frame: str = parameter(
        "", "Frame of an inertial sensor on the topic imu (sensor_msgs/Imu); empty: no sensor.",
        name="imu.frame",
    )
    imu_sigma: float = parameter(
        0.3, "Standard deviation of the sensor's accelerations [m/s^2].", _SMALLEST, _LARGEST,
        name="imu.sigma",
    )
    wrench_names: tuple[str, ...] = parameter(
        (), "Names of external wrenches, e.g. at feet and hands.", holds="names",
        name="wrenches.names",
    )
    armature_names: tuple[str, ...] = parameter(
        (), "Joints with a rotor inertia, which the URDF lacks.", holds="names",
        name="armature.names",
    )
    armature_values: tuple[float, ...] = parameter(
        (), "Rotor inertias seen at the joints of armature.names [kg m^2, kg].", holds="numbers",
        name="armature.values",
    )
    passive: bool = parameter(
        True, "Whether the dampers of joints in the robot description count.",
    )
    rate: float = parameter(
        0.0, "Most estimates per second; 0: one for every joint state.", 0.0, 1e4, least=0.1,
    )
    input_timeout: float = parameter(0.5, "Age above which an input is too old [s].", 1e-4, 1e6)
    diagnostics_period: float = parameter(1.0, "Time between two diagnostics [s].", 0.01, 1e4)
    armature: Mapping[str, float] = field(init=False)

    def __post_init__(self) -> None:
        """Raise RobotError if armature.names and armature.values do not belong together."""
        armature = by_joint("armature", self.armature_names, self.armature_values)
        vars(self).update(armature=armature)

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> EstimatorSettings:
        """Read settings from parameter values by full name; absent ones have their defaults.

        Raises
        ------
        InputError
            For a value out of range, an unknown choice, or a duplicate name.
        RobotError
            If armature.names and armature.values do not belong together.
        """
        values = field_values(cls, parameters)
        names = values["wrench_names"]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"parameter 'wrenches.names' has {twice!r} twice")
        pushed = tuple(_pushed(name, parameters) for name in names)
        for k, entry in enumerate(pushed):
            for other in pushed[:k]:
                if other.frame == entry.frame:
                    raise InputError(
                        f"parameters 'wrenches.{other.name}.frame' and 'wrenches.{entry.name}"
                        f".frame' are both {entry.frame!r}; expected a frame for each wrench"
                    )
        return cls(pushed=pushed, **values)

    def robot(self, description: str) -> Robot:
        """Return the robot of a description.

        Raises
        ------
        RobotError
            If the robot cannot be used, or a joint of armature.names is unknown.
        """
        return Robot.from_description(
            description, self.base, self.armature, passive=self.passive
        )

    def system(self, robot: Robot) -> SparseDynamics:
        """Return the system of equations with the known and wanted quantities of a robot.

        Raises
        ------
        UnobservableError
            If the known quantities do not determine the wanted ones; names the open direction.
        ProblemError
            If a frame is unknown.
        """
        pushed = (place.frame for place in self.pushed)
        for frame in (*pushed, *filter(None, [self.imu_frame])):
            if frame not in robot.frames:
                raise ProblemError(robot.unknown_frame(frame))
        joints = joints_of(robot)
        # In the order of the rates: all accelerations, then torques.
        known: list[Measurement] = []
        if robot.base == "floating":
            base, *joints = joints
            known.append(Measurement(JointAcceleration(base), self.base_sigma))
        known += [Measurement(JointAcceleration(j), self.acceleration_sigma) for j in joints]
        if self.effort_sigma:
            known += [Measurement(JointTorque(joint), self.effort_sigma) for joint in joints]
        if self.imu_frame:
            known.append(Measurement(Accelerometer(self.imu_frame), self.imu_sigma))
        wanted: list[Quantity] = [JointTorque(joint) for joint in joints]
        for place in self.pushed:
            known += place.known()
            wanted.append(ExternalWrench(place.frame))
        return SparseDynamics(robot, known, wanted)


def joints_of(robot: Robot) -> list[str]:
    """Return the joints with independent rates; a floating base comes first."""
    return [robot.joints[i].name for i in velocity_offsets(robot)]


PARAMETERS = settings_by_name(EstimatorSettings)
OF_WRENCH = settings_by_name(Pushed)
"""Parameters of a wrench, by the name after ``wrenches.<name>.``."""


def _pushed(name: str, parameters: Mapping[str, Any]) -> Pushed:
    values = field_values(Pushed, parameters, f"wrenches.{name}.")
    return Pushed(name=name, **{**values, "frame": values["frame"] or name})


def parameters_of(names: Iterable[str]) -> dict[str, Setting]:
    """Return the parameters of wrenches with these names, by full name."""
    return {
        f"wrenches.{name}.{key}": setting for name in names for key, setting in OF_WRENCH.items()
    }
