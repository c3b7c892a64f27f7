"""The node with robots that have closed loops: from their description, or from a parameter."""

from __future__ import annotations

import numpy as np
import pytest
from delassus_msgs.msg import DelassusMatrix
from delassus_msgs_py import matrix_to_numpy
from node_support import (
    DEGRADED,
    FEET,
    INVALID,
    OK,
    relative_error,
)

from delassus import Contact, DelassusSolver, Problem, Robot
from delassus.closure import Closure
from delassus.robots.built_in import demo_urdf

BELTS = """
couplings:
  - {name: belt, joints: {LF_HFE: 1, LF_KFE: 2}, offset: 0.7}
  - {name: chain, joints: {RH_HFE: 1, RH_KFE: -1}}
"""


def dense(robot: Robot, measured: dict[str, float]) -> np.ndarray:
    """Return the matrix of the feet, with a closure and a solver of its own."""
    problem = Problem(robot, [Contact(foot, f"{foot}_FOOT") for foot in FEET])
    result = Closure(problem).solve(measured)
    assert result.status.is_valid
    return DelassusSolver(problem, "ltl").solve(result.q).matrix


def test_a_description_with_gears_and_a_four_bar(graph, start) -> None:
    text = demo_urdf("geared")
    robot = Robot.from_urdf(text)
    start(robot_description=text, algorithm="pv_osimr")
    graph.touch(FEET)
    legs = [f"{leg}_{joint}" for leg in FEET for joint in ("HAA", "HFE", "KFE")]
    for k, crank in enumerate((0.0, 0.3, -0.4)):
        posture = [0.1, 0.7 + 0.1 * k, -1.4, -0.1, 0.6, -1.2, 0.0, 0.8, -1.5, 0.2, 0.7, -1.3]
        measured = dict(zip([*legs, "LIFT_CRANK"], [*posture, crank], strict=True))
        answer = graph.ask_until(
            lambda m: m.validity == OK, list(measured), list(measured.values())
        )
        assert answer.reasons == 0
        assert relative_error(matrix_to_numpy(answer), dense(robot, measured)) < 1e-9
    # A rotor in the place of the joint that it drives is as good.
    ratio = dict(next(c for c in robot.couplings if c.name == "LF_KFE_GEAR").ratios)
    turned = -ratio["LF_KFE"] * measured["LF_KFE"] / ratio["LF_KFE_ROTOR"]
    rotors = {name: value for name, value in measured.items() if name != "LF_KFE"}
    rotors["LF_KFE_ROTOR"] = turned
    # Other joints that are measured need other code, which a busy machine makes later.
    answer = graph.ask_until(lambda m: m.validity == OK, list(rotors), list(rotors.values()))
    assert relative_error(matrix_to_numpy(answer), dense(robot, measured)) < 1e-9
    both = {**measured, "LF_KFE_ROTOR": turned + 0.5}
    answer = graph.ask_until(lambda m: m.validity == DEGRADED, list(both), list(both.values()))
    assert answer.reasons == DelassusMatrix.REASON_LOOP_INCONSISTENT
    graph.wait_for_log("'LF_KFE_ROTOR' is measured 0.5 from where the others put it")
    few = list(measured)[:-1]
    answer = graph.ask(few, [measured[name] for name in few])
    assert (answer.validity, answer.reasons) == (INVALID, DelassusMatrix.REASON_JOINT_MISSING)
    graph.wait_for_log("loop 'LIFT': none of its joints is measured; measure 1 of")


def test_limits_of_a_follower_are_a_warning(graph, start) -> None:
    """As of a common gripper, whose fingers turn against each other within the same limits."""
    mimic = '<joint name="LF_KFE" type="revolute"><mimic joint="LH_KFE" multiplier="-1"/>'
    text = demo_urdf().replace('<joint name="LF_KFE" type="revolute">', mimic)
    robot = Robot.from_urdf(text)
    assert len(robot.couplings) == 1
    start(robot_description=text)
    graph.touch(FEET)
    measured = {name: -0.5 for name in robot.joint_names if name != "LF_KFE"}
    answer = graph.ask_until(lambda m: m.validity == OK, list(measured), list(measured.values()))
    assert answer.reasons == 0
    assert relative_error(matrix_to_numpy(answer), dense(robot, measured)) < 1e-9
    graph.wait_for_log(
        "joint 'LF_KFE': limits [-2.6, -0.3] are not kept: it follows joint 'LH_KFE', whose "
        "limits put it in [0.3, 2.6]"
    )


@pytest.mark.parametrize("as_file", [False, True])
def test_couplings_by_a_parameter(graph, start, urdf, tmp_path, as_file) -> None:
    path = tmp_path / "loops.yaml"
    path.write_text(BELTS, encoding="utf-8")
    robot = Robot.from_urdf(urdf, loops=BELTS)
    start(algorithm="c_efpa", loops=str(path) if as_file else BELTS)
    graph.touch(FEET)
    measured = {name: 0.1 * k for k, name in enumerate(Closure(robot).independent)}
    answer = graph.ask_until(lambda m: m.validity == OK, list(measured), list(measured.values()))
    assert relative_error(matrix_to_numpy(answer), dense(robot, measured)) < 1e-9
    assert answer.algorithm == "c_efpa"
