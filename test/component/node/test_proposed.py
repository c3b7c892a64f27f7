"""From a URDF to a node that publishes OK: what `delassus config` proposes, unchanged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import robots
from cli_support import output
from delassus_msgs_py import matrix_to_numpy
from node_support import OK, relative_error, state_of
from ros_support import Graph, overrides
from seeds import but_slow

from delassus import DelassusSolver
from delassus_ros.node.delassus_node import DelassusNode
from delassus_ros.verbs.parameter_files import settings_of


@pytest.mark.parametrize("name", but_slow(list(robots.TEN), "talos", *list(robots.TEN)[3:]))
def test_a_node_of_what_is_proposed_publishes_ok(
    name: str, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    load, base, _ = robots.TEN[name]
    urdf, file = load(), tmp_path / "my_robot.yaml"
    file.write_text(output(capfd, "config", str(urdf), "--base", base))
    text = urdf.read_text(encoding="utf-8")
    problem = settings_of(str(file)).problem(text)
    q = np.random.default_rng(0).uniform(-0.5, 0.5, problem.robot.nq)
    single = [joint for joint in problem.robot.joints if joint.kind.nq == 1]
    q = np.clip(q, [joint.lower for joint in single], [joint.upper for joint in single])
    expected = DelassusSolver(problem, "dense").solve(q).matrix
    with Graph(capfd) as graph:
        node = DelassusNode(
            context=graph.context,
            cli_args=["--ros-args", "--params-file", str(file)],
            parameter_overrides=overrides({"robot_description": text, "contacts_timeout": 0.0}),
        )
        graph.add(node)
        node.start()
        assert state_of(node) == "active"
        graph.touch(problem.contacts.names)
        message = graph.ask_until(
            lambda m: m.validity == OK, list(problem.robot.joint_names), q.tolist()
        )
        assert tuple(message.contacts) == problem.contacts.names
        assert relative_error(matrix_to_numpy(message), expected) < 1e-10
