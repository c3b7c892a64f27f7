"""Every parameter that the node declares changes what it computes or how it behaves."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import robots
from node_support import refused, set_parameters
from on_floats import solver_on_floats
from rcl_interfaces.msg import ParameterType
from rcl_interfaces.srv import GetParameters
from rclpy.parameter import Parameter
from tick_support import sensed

from delassus.errors import DelassusError
from delassus_ros.node.delassus_node import DelassusNode
from delassus_ros.node.parameters import Settings

TESTS = Path(__file__).resolve().parents[2]
DAMPED = robots.unlimited().replace('<limit effort', '<dynamics damping="0.1"/><limit effort')
COUPLING = "couplings: [{name: gear, joints: {LF_HFE: 1, LF_KFE: 2}}]"
NOW = 10**18
S = 10**9

COMPUTED: dict[str, tuple[dict[str, Any], Any]] = {
    "base": ({}, "fixed"),
    "axes": ({}, "world"),
    "contacts.names": ({}, ["RH", "LF"]),
    "contacts.LF.frame": ({}, "LF_SHANK"),
    "contacts.LF.kind": ({}, "surface"),
    "contacts.LF.second_frame": ({"contacts.LF.kind": "relative"}, "RF_FOOT"),
    "contacts.LF.frames": (
        {
            "contacts.LF.frame": "",
            "contacts.LF.kind": "weighted_sum",
            "contacts.LF.frames": ["LF_FOOT", "RH_FOOT"],
            "contacts.LF.weights": [0.5, 0.5],
        },
        ["LF_FOOT", "RF_FOOT"],
    ),
    "contacts.LF.weights": (
        {
            "contacts.LF.frame": "",
            "contacts.LF.kind": "weighted_sum",
            "contacts.LF.frames": ["LF_FOOT", "RH_FOOT"],
            "contacts.LF.weights": [0.5, 0.5],
        },
        [0.25, 0.75],
    ),
    "contacts.LF.xyz": ({}, [0.0, 0.1, 0.0]),
    "contacts.LF.rpy": ({}, [0.0, 0.5, 0.0]),
    "contacts.LF.selection": (
        {"contacts.LF.kind": "selection", "contacts.LF.selection": [0, 0, 1, 0, 0, 0]},
        [1, 0, 0, 0, 0, 0],
    ),
    "armature.names": ({"armature.names": ["LF_KFE"], "armature.values": [0.3]}, ["RH_KFE"]),
    "armature.values": ({"armature.names": ["LF_KFE"], "armature.values": [0.3]}, [0.5]),
    "lock.names": ({"lock.names": ["LF_KFE"], "lock.values": [0.3]}, ["RH_KFE"]),
    "lock.values": ({"lock.names": ["LF_KFE"], "lock.values": [0.3]}, [0.5]),
    "loops": ({}, COUPLING),
    "passive": ({}, False),
    "reference.names": ({"loops": COUPLING}, ["LF_HFE"]),
    "reference.values": (
        {"loops": COUPLING, "reference.names": ["LF_HFE"], "reference.values": [0.0]},
        [0.0, 1.0],
    ),
    "orientation.frame": ({"axes": "world"}, "imu_link"),
    "orientation.world_frame": ({"axes": "world"}, "map"),
    "orientation.timeout": ({"axes": "world"}, 0.4),
}
"""Per parameter the others that it needs, and another value of it."""

SHOWN = {
    "loops_as": "test_several_links_live.py::test_loops_by_rows",
    "contacts.LF.moving": "test_placement_input.py::test_a_rolling_foot_live",
    "contacts.LF.friction": "test_forces_live.py::test_forces_on_topic_and_by_service",
    "contacts.LF.normal": "test_forces_live.py::test_forces_on_topic_and_by_service",
    "contacts.LF.dimensions": (
        "test_forces_live.py::test_the_corners_of_a_surface_hold_its_wrench"
    ),
    "friction": "test_forces_live.py::test_forces_on_topic_and_by_service",
    "law": "test_forces_live.py::test_forces_on_topic_and_by_service",
    "slip_speed": "test_forces_live.py::test_forces_on_topic_and_by_service",
    "leave_speed": "test_forces_live.py::test_forces_on_topic_and_by_service",
    "strike_speed": "test_forces_live.py::test_forces_on_topic_and_by_service",
    "contacts.source": "test_walk_ros.py::test_it_walks_without_contact_sensors",
    "contacts.estimated": "test_walk_ros.py::test_it_walks_without_contact_sensors",
    "contacts.force_on": "test_walk_ros.py::test_thresholds_and_gain_of_contact_forces",
    "contacts.force_off": "test_walk_ros.py::test_thresholds_and_gain_of_contact_forces",
    "contacts.gain": "test_walk_ros.py::test_thresholds_and_gain_of_contact_forces",
    "outputs": "test_dynamics_live.py::test_beside_each_matrix_comes_the_rest",
    "torques": "test_dynamics_live.py::test_torques_by_topic",
    "gravity": "test_dynamics_live.py::test_torques_by_topic",
    "autostart": "test_node.py::test_description_by_topic_starts_the_node",
    "robot_description": (
        "test_description_change.py::test_another_robot_by_parameter_and_with_another_algorithm"
    ),
    "rows": "test_node.py::test_all_rows_are_of_fixed_size_and_need_no_contacts",
    "algorithm": "test_lifecycle.py::test_algorithm_changes_while_running",
    "fallback": "test_faults.py::test_a_fallback_stands_in",
    "orientation.source": "test_orientation.py::test_imu_at_a_link_of_its_own",
    "max_skew": "test_live.py::test_max_skew",
    "input_timeout": "test_live.py::test_input_timeout_says_that_joint_states_have_stopped",
    "contacts_timeout": "test_live.py::test_contacts_timeout",
    "conditioning.characteristic_length": "test_live.py::test_characteristic_length",
    "conditioning.weak": "test_live.py::test_thresholds_and_hysteresis",
    "conditioning.singular": "test_live.py::test_thresholds_and_hysteresis",
    "conditioning.hysteresis": "test_live.py::test_thresholds_and_hysteresis",
    "damping.mode": "test_live.py::test_damping",
    "damping.ratio": "test_live.py::test_damping",
    "deadline": "test_live.py::test_deadline",
    "diagnostics_period": "test_live.py::test_diagnostics_period",
    "rate": "test_live.py::test_rate",
    "realtime.priority": "test_transitions.py::test_priority_of_all_threads_while_active",
    "realtime.cpus": "test_transitions.py::test_processors_and_locked_memory_while_active",
    "realtime.lock_memory": "test_transitions.py::test_processors_and_locked_memory_while_active",
    "realtime.wakeup_latency": "test_transitions.py::test_processors_stay_awake_while_active",
    "realtime.hold_garbage": "test_live.py::test_hold_garbage",
}
"""Per parameter the test that shows in a running node what it does."""


def outcome(parameters: dict[str, Any]) -> list[Any]:
    """Return what is computed with these parameters, or the words of the refusal."""
    given = {
        "contacts.names": ["LF", "RH"],
        "contacts.LF.frame": "LF_FOOT",
        "contacts.RH.frame": "RH_FOOT",
        **parameters,
    }
    try:
        settings = Settings.from_parameters(given)
        problem = settings.problem(DAMPED)
        closure = settings.closure(problem)
        orientation = settings.orientation(problem)
    except DelassusError as error:
        return [str(error)]
    q = np.random.default_rng(3).uniform(-1.0, 1.0, problem.robot.nq)
    found: list[Any] = [problem.contacts.names, problem.robot.is_passive]
    if closure is not None:
        q = closure.solve(dict.fromkeys(closure.independent, 0.3)).q
    options = {}
    if orientation is not None:
        # Turned about x, 0.2 s old, of a frame that is named in the message.
        base = np.zeros(4)
        turned = (0.6, 0.0, 0.0, 0.8)
        for world in ("odom", "map"):
            warning = orientation.accept(sensed(turned, NOW, "base", world), NOW)
            found.append(warning and warning.text)
        orientation.accept(sensed(turned, NOW, "base", rates=None), NOW)
        orientation.write(NOW, base)
        late = orientation.fault(NOW + S // 5)
        found += [late and late.text, base.tolist()]
        options["base_orientation"] = base
    matrix = solver_on_floats(problem, "ltl").solve(q, **options).matrix
    return [*found, np.round(matrix, 9).tolist()]


@pytest.mark.parametrize("name", COMPUTED)
def test_it_changes_what_is_computed(name) -> None:
    others, value = COMPUTED[name]
    assert outcome(others) != outcome({**others, name: value})


def test_all_parameters_are_shown_to_do_something(start) -> None:
    node = start(autostart=False)
    rclpys = ("qos_overrides", "use_sim_time", "start_type_description_service")
    names = {name for name in node.list_parameters([], 0).names if not name.startswith(rclpys)}
    # Those of the other contacts are as those of the first.
    names = {name for name in names if not name.startswith(("contacts.R", "contacts.LH"))}
    assert names == set(COMPUTED) | set(SHOWN)
    assert not set(COMPUTED) & set(SHOWN)
    for test in SHOWN.values():
        name, _, function = test.partition("::")
        (file,) = TESTS.rglob(name)
        tree = ast.parse(file.read_text(encoding="utf-8"))
        assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def made(graph, folder: Path, text: str) -> DelassusNode:
    """Return a node that is made with a parameter file."""
    file = folder / "parameters.yaml"
    file.write_text(f"/**: {{ros__parameters: {{{text}}}}}")
    arguments = ["--ros-args", "--params-file", str(file)]
    return graph.add(DelassusNode(context=graph.context, cli_args=arguments))


def test_an_empty_list_at_the_start_is_an_empty_list(graph, tmp_path) -> None:
    """ROS reads it as a parameter without a value."""
    empty = "realtime.cpus: [], armature.names: [], armature.values: [], reference.names: []"
    node = made(graph, tmp_path, f"{empty}, rate: 3.0, contacts.names: [], other_plugins: []")
    assert node.get_parameter("rate").value == 3.0
    for name in ("realtime.cpus", "armature.names", "armature.values", "contacts.names"):
        assert not node.get_parameter_or(name).value, name
    graph.wait_for_log("unknown parameter 'other_plugins'")
    set_parameters(node, realtime__cpus=[0])
    # As `ros2 param set` sends it.
    none = Parameter("realtime.cpus", Parameter.Type.BOOL_ARRAY, [])
    assert node.set_parameters([none])[0].successful
    assert list(node.get_parameter("realtime.cpus").value) == []
    assert node.get_parameter("realtime.cpus").type_ == Parameter.Type.INTEGER_ARRAY


def test_an_empty_place_of_a_contact_is_refused_with_its_name(graph, tmp_path) -> None:
    node = made(graph, tmp_path, "contacts: {names: [a], a: {frame: b, xyz: [], selection: []}}")
    node.trigger_configure()
    graph.wait_for_log("'contacts.a.xyz' is []; expected 3 finite numbers")


def test_an_integer_is_taken_for_a_floating_point_number(graph, tmp_path) -> None:
    node = made(graph, tmp_path, "rate: 500, orientation.timeout: 0")
    assert repr(node.get_parameter("rate").value) == "500.0"
    assert repr(node.get_parameter("orientation.timeout").value) == "0.0"
    set_parameters(node, input_timeout=0, realtime__priority=1)
    assert repr(node.get_parameter("input_timeout").value) == "0.0"
    assert repr(node.get_parameter("realtime.priority").value) == "1"
    assert "out of range" in refused(node, rate=20000)
    assert refused(node, realtime__priority=1.0)


@pytest.mark.parametrize("overrides", [[], ["-p", "armature.names:=[]"]])
def test_all_parameters_can_be_asked_for_at_once(graph, overrides: list[str]) -> None:
    """As `ros2 param dump` does: to one without a value rclpy answers nothing of any."""
    arguments = ["--ros-args", "-p", "contacts.names:=[LF]", *overrides]
    node = graph.add(DelassusNode(context=graph.context, cli_args=arguments))
    names = list(node._parameters)
    request = GetParameters.Request(names=names)
    values = graph.call(GetParameters, "delassus_node/get_parameters", request).values
    assert len(values) == len(names) > 40
    assert all(value.type != ParameterType.PARAMETER_NOT_SET for value in values)


def test_a_misspelt_key_of_a_contact_is_refused(graph, tmp_path) -> None:
    """It would go active with three rows instead of six."""
    contact = "{frame: LF_FOOT, knd: surface}"
    node = made(graph, tmp_path, f"contacts: {{names: [a, a.b], a: {contact}}}")
    node.trigger_configure()
    line = graph.wait_for_log("cannot configure: contact 'a'")
    assert "unknown parameter 'knd'; did you mean 'kind'? parameters: frame, kind, s" in line


def test_contacts_with_dots_in_their_names_are_no_misspelt_keys(graph, tmp_path) -> None:
    robot = robots.quadruped()
    contacts = "{names: [a, a.b], a: {frame: LF_FOOT}, a.b: {frame: RF_FOOT, kind: surface}}"
    node = made(graph, tmp_path, f"contacts: {contacts}")
    set_parameters(node, robot_description=robot.read_text())
    node.trigger_configure()
    graph.wait_for_log("2 contacts (9 rows)")


def test_an_unknown_parameter_is_named_in_the_answer(graph, start) -> None:
    start(autostart=False)
    first, second = graph.set_parameters(algoritm="efpa", max_skew=0.25)
    assert not first.successful and second.successful
    assert first.reason.startswith("unknown parameter 'algoritm'; did you mean 'algorithm'?")
