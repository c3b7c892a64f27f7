"""The launch files, started as `ros2 launch` does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import robots

launch_pytest = pytest.importorskip(
    "launch_pytest", reason="launch_pytest is not installed (it comes with a ROS distribution)"
)
pytest.importorskip("launch_ros", reason="launch_ros is not installed")
pytest.importorskip("delassus_msgs", reason="the message package delassus_msgs is not installed")

from delassus_msgs.msg import DelassusMatrix  # noqa: E402
from launch import LaunchDescription  # noqa: E402
from launch.actions import IncludeLaunchDescription  # noqa: E402
from launch.launch_description_sources import PythonLaunchDescriptionSource  # noqa: E402
from launch.substitutions import PathJoinSubstitution  # noqa: E402
from launch_pytest.actions import ReadyToTest  # noqa: E402
from launch_ros.substitutions import FindPackageShare  # noqa: E402
from ros_support import Graph, new_domain  # noqa: E402

from delassus_ros import Robot  # noqa: E402

DOMAIN = new_domain()


@pytest.fixture(scope="module", autouse=True)
def own_surroundings() -> Iterator[None]:
    """Let the launched nodes and the tests share a domain of this machine alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
        patch.setenv("ROS_DOMAIN_ID", str(DOMAIN))
        yield


def included(file: str, **arguments: str) -> LaunchDescription:
    path = PathJoinSubstitution([FindPackageShare("delassus_ros"), "launch", file])
    source = PythonLaunchDescriptionSource(path)
    include = IncludeLaunchDescription(source, launch_arguments=arguments.items())
    return LaunchDescription([include, ReadyToTest()])


@launch_pytest.fixture
def node_of_a_file() -> LaunchDescription:
    """delassus_node for a URDF file, with another algorithm than the file's."""
    return included(
        "delassus.launch.py",
        robot_description_file=str(robots.quadruped()),
        algorithm="dense",
    )


@pytest.mark.launch(fixture=node_of_a_file)
def test_delassus_launch_starts_the_node_by_itself(capfd) -> None:
    robot = Robot.from_urdf(robots.quadruped())
    with Graph(capfd, DOMAIN) as graph:
        graph.touch(["LF", "RH"])
        answer = graph.ask_until(
            lambda m: m.validity == DelassusMatrix.VALIDITY_OK,
            robot.joint_names,
            robot.neutral().tolist(),
        )
    assert list(answer.contacts) == ["LF", "RH"]
    assert answer.algorithm == "dense"


@launch_pytest.fixture
def demo() -> LaunchDescription:
    """The whole demo."""
    return included("demo.launch.py")


@pytest.mark.launch(fixture=demo)
def test_demo_launch_publishes_matrices(capfd) -> None:
    pytest.importorskip("mujoco", reason="the physics engine (extra 'sim') is not installed")
    with Graph(capfd, DOMAIN) as graph:
        graph.until(
            lambda: [m for m in graph.matrices if m.validity == DelassusMatrix.VALIDITY_OK],
            "matrix of the demo",
        )
