"""The node's launch file under launch_pytest, as a ROS package tests what it starts."""

from __future__ import annotations

from collections.abc import Iterator

import launch_pytest
import numpy as np
import pytest
import robots

if pytest.version_tuple >= (8, 4):
    # Seen with launch_pytest 3.4.3: it looks for the attribute _pytestfixturefunction.
    pytest.skip("launch_pytest needs a pytest older than 8.4", allow_module_level=True)

from delassus_msgs.msg import DelassusMatrix
from delassus_msgs_py import matrix_to_numpy
from launch import LaunchDescription
from launch.actions import RegisterEventHandler
from launch.event_handlers import OnProcessExit
from launch_support import included
from ros_domains import new_domain
from ros_support import Graph

from delassus import Contact, DelassusSolver, Problem, Robot

DOMAIN = new_domain()
FEET = ("LF", "RF", "LH", "RH")


@pytest.fixture(scope="module", autouse=True)
def own_surroundings() -> Iterator[None]:
    """Let the launched node and the test share a domain of this machine alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
        patch.setenv("ROS_DOMAIN_ID", str(DOMAIN))
        yield


@pytest.fixture(name="ended")
def make_ended() -> list[int]:
    """Return the exit statuses of launched processes, which the launch adds to."""
    return []


@launch_pytest.fixture
def node(ended: list[int]) -> LaunchDescription:
    arguments = {"robot_description_file": str(robots.quadruped()), "autostart": "true"}
    description = included("delassus.launch.py", **arguments)
    told = OnProcessExit(on_exit=lambda event, _: ended.append(event.returncode))
    description.add_action(RegisterEventHandler(told))
    return description


@pytest.mark.launch(fixture=node)
def test_the_algorithm_is_swapped_and_the_node_ends(capfd, ended: list[int]) -> Iterator[None]:
    robot = Robot.from_urdf(robots.quadruped())
    problem = Problem(robot, [Contact(foot, f"{foot}_FOOT") for foot in FEET])
    q = np.random.default_rng(5).uniform(-1, 1, robot.nq).tolist()
    with Graph(capfd, DOMAIN) as graph:
        graph.fault = lambda: f"the node has ended, status {ended[0]}" if ended else None

        def is_of(algorithm: str, answer: DelassusMatrix) -> bool:
            # The set of contacts is repeated, as it becomes too old while a machine is busy.
            graph.touch(FEET)
            valid = answer.validity == DelassusMatrix.VALIDITY_OK
            return valid and answer.algorithm == algorithm

        for algorithm in ("pv_osimr", "c_efpa", "dense"):
            results = graph.set_parameters(algorithm=algorithm)
            assert [each.successful for each in results] == [True]
            found = graph.ask_until(
                lambda answer, name=algorithm: is_of(name, answer), robot.joint_names, q
            )
            expected = DelassusSolver(problem, algorithm).solve(q).matrix
            np.testing.assert_allclose(matrix_to_numpy(found), expected, rtol=0, atol=1e-12)
        assert list(found.contacts) == list(FEET)
        assert ended == []
    yield
    # Launch has told the node to end, and waited for it.
    assert ended == [0]
