"""Common part of the launch files of controllers: three nodes on the plant's clock."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, ExecuteProcess, OpaqueFunction, Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from delassus_ros.sim.clock import USE_SIM_TIME, of_plant, realtime_argument

# Matrices of some rows are no work for threads, which would only take the processors away.
_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1"}


def pushes() -> tuple[DeclareLaunchArgument, ParameterValue]:
    """Return the argument ``push_every``, and its value as a parameter of the plant."""
    argument = DeclareLaunchArgument(
        "push_every", default_value="0.0", description="Time between pushes [s]; 0: none."
    )
    value = ParameterValue(LaunchConfiguration("push_every"), value_type=float)
    return argument, value


def scene(
    folder: Path,
    arguments: Sequence[DeclareLaunchArgument],
    plant: Mapping[str, Any],
    own: Sequence[Any] = (),
) -> LaunchDescription:
    """Return plant, delassus_node and controller; all end when one does.

    The argument ``realtime`` chooses between lockstep and the machine's clock, for all of them.

    Parameters
    ----------
    folder : of the example: node.yaml and the controller's module ``node``.
    arguments : of the launch file, besides.
    plant : parameters of the plant.
    own : further arguments of the controller, behind ``--ros-args``.
    """
    common: dict[str, Any] = {
        "additional_env": _ENVIRONMENT, "on_exit": Shutdown(), "output": "screen",
    }  # fmt: skip

    def simulated(context: Any) -> list[Node]:
        """Return the plant, once the value of the argument is known."""
        realtime = LaunchConfiguration("realtime").perform(context) == "true"
        parameters = [{**plant, **of_plant(realtime)}]
        return [
            Node(
                package="delassus_ros",
                executable="delassus_plant",
                parameters=parameters,
                **common,
            )
        ]

    follow = [word for name in USE_SIM_TIME for word in ("-p", f"{name}:=true")]
    if "friction" in plant:
        # The controller predicts forces with the friction of the plant.
        follow += ["-p", f"friction:={plant['friction']}"]
    return LaunchDescription(
        [
            DeclareLaunchArgument(**realtime_argument()),
            *arguments,
            OpaqueFunction(function=simulated),
            Node(
                package="delassus_ros",
                executable="delassus_node",
                parameters=[str(folder / "node.yaml"), USE_SIM_TIME],
                **common,
            ),
            ExecuteProcess(
                cmd=[sys.executable, "-m", f"{folder.name}.node", "--ros-args", *follow, *own],
                cwd=str(folder.parent),
                **common,
            ),
        ]
    )
