"""Launch files of the package, for tests that start them."""

from __future__ import annotations

from launch import LaunchDescription
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import PathJoinSubstitution
from launch_ros.substitutions import FindPackageShare


def included(file: str, **arguments: str) -> LaunchDescription:
    """Return a description that includes an installed launch file.

    Parameters
    ----------
    file : name of the launch file.
    **arguments : of the launch file.
    """
    path = PathJoinSubstitution([FindPackageShare("delassus_ros"), "launch", file])
    source = PythonLaunchDescriptionSource(path)
    include = IncludeLaunchDescription(source, launch_arguments=arguments.items())
    return LaunchDescription([include])
