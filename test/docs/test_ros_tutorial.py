"""Tutorial "Your robot in ROS": its command and programs run beside one node."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import robots
import yaml
from processes import node_program, python
from ros_support import graph_of_programs

from delassus import Contact, DelassusSolver, Problem, Robot
from delassus_ros.verbs.main import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tutorials" / "your_robot_in_ros.md"


make_graph = pytest.fixture(name="graph")(graph_of_programs)


def test_tutorial_programs_print_matrix(graph, tmp_path, capfd) -> None:
    text = PAGE.read_text()
    gait, controller = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    robot = Robot.from_urdf(robots.quadruped())
    q = robot.q({"LF_HAA": 0.1, "LF_HFE": 0.5, "LF_KFE": -1.3})
    assert main(["config", str(robots.quadruped())]) == 0
    (tmp_path / "my_robot.yaml").write_text(capfd.readouterr().out)
    # As delassus.launch.py does, with the description from the file that it is given.
    added = {"robot_description": robots.quadruped().read_text()}
    (tmp_path / "launch.yaml").write_text(yaml.safe_dump({"/**": {"ros__parameters": added}}))
    files = (str(tmp_path / name) for name in ("my_robot.yaml", "launch.yaml"))
    arguments = [word for file in files for word in ("--params-file", file)]
    matrix = re.compile(r"\(3, 3\) \[\[([^)]*?)\]\]")
    with (
        node_program(*arguments, domain=graph.domain) as node,
        python("-c", gait),
        python("-c", controller) as heard,
    ):
        graph.fault = node.fault

        def has_heard() -> re.Match[str] | None:
            graph.move(robot.joint_names, q.tolist())
            return matrix.search(heard.output)

        printed = graph.until(has_heard, "matrix in the tutorial's controller")[1]
    expected = DelassusSolver(Problem(robot, [Contact("LF_FOOT", "LF_FOOT")])).solve(q)
    numbers = [float(number) for number in printed.replace("[", " ").replace("]", " ").split()]
    np.testing.assert_allclose(numbers, expected.matrix.ravel(), rtol=1e-6, atol=1e-7)
