"""Another robot description while delassus_node runs: the robot changes, the node goes on."""

from __future__ import annotations

import gc
import itertools
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import robots
from delassus_msgs_py import matrix_to_numpy
from hanging import HANG_S
from node_support import (
    DEGRADED,
    FEET,
    INVALID,
    OK,
    refused,
    relative_error,
    set_parameters,
    solve,
    state_of,
)
from rclpy.parameter import Parameter
from ros_support import children, endless, stamp_of

from delassus import Problem, algorithms
from delassus.compiler.runtime import child
from delassus.robots.built_in import demo_urdf
from delassus_ros.node.computation import Computation
from delassus_ros.node.parameters import Settings


def heavier(urdf: str, factor: float, name: str = "heavier") -> str:
    """Return the quadruped with a heavier trunk, under another name."""
    mass = 'mass value="'
    before, _, after = urdf.partition(mass)
    value, quote, rest = after.partition('"')
    changed = f"{before}{mass}{factor * float(value)}{quote}{rest}"
    return changed.replace('name="delassus_quadruped"', f'name="{name}"', 1)


def follow(graph, robot, q, layout_id: str):
    """Return the first answer with another layout than this one."""
    return graph.ask_until(
        lambda m: m.layout_id != layout_id and m.validity == OK, robot.joint_names, q
    )


@pytest.fixture(name="described")
def make_described(graph, start, urdf) -> Callable[..., Any]:
    """Return a function that starts a node whose robot comes by the topic."""

    def described(**changes: Any) -> Any:
        node = start(robot_description="", **changes)
        graph.describe(urdf)
        graph.until(lambda: state_of(node) == "active", "activation")
        return node

    return described


def first_of_all_feet(graph, robot, q) -> Any:
    """Return the first valid matrix."""
    graph.touch(FEET)
    return graph.ask_until(lambda m: m.validity == OK, robot.joint_names, q)


def test_another_robot_by_topic(graph, described, urdf, robot, q) -> None:
    node = described()
    first = first_of_all_feet(graph, robot, q)
    already = len(graph.layouts)
    other = heavier(urdf, 3.0)
    graph.describe(other)
    answer = follow(graph, robot, q, first.layout_id)
    assert relative_error(matrix_to_numpy(answer), solve(other, q)) < 1e-12
    assert relative_error(matrix_to_numpy(answer), solve(urdf, q)) > 1e-3
    # The layout came first, the latched contacts came again, and counting went on.
    graph.until(lambda: len(graph.layouts) > already, "layout")
    assert graph.layouts[-1].layout_id == answer.layout_id
    assert answer.sequence > first.sequence
    line = graph.wait_for_log("robot description changed from that of delassus_quadruped")
    assert "heavier: 12 joints, 4 contacts (12 rows)" in line
    assert state_of(node) == "active"
    assert children() == set()


@pytest.mark.parametrize("active", [True, False])
def test_robots_that_were_given_up_for_others_are_let_go_without_joint_states(
    graph, described, urdf, active
) -> None:
    """No matrix is published, after which each would be taken; each is of many megabytes."""
    node = described()
    if not active:
        node.trigger_deactivate()
    for k in range(6):
        other = urdf.replace("<robot", f"<!-- {k} --><robot", 1)
        graph.describe(other)
        configuration = node._configuration
        graph.until(lambda: configuration.computation.description == other, "robot")  # noqa: B023
    gc.collect()
    living = [each for each in gc.get_objects() if type(each) is Computation]
    assert configuration.computation in living
    assert len(living) <= 2


def test_another_robot_by_parameter_and_with_another_algorithm(
    graph, start, urdf, robot, q
) -> None:
    node = start()
    first = first_of_all_feet(graph, robot, q)
    other = heavier(urdf, 2.0)
    set_parameters(node, robot_description=other, algorithm="dense")
    answer = follow(graph, robot, q, first.layout_id)
    assert answer.algorithm == "dense"
    assert relative_error(matrix_to_numpy(answer), solve(other, q)) < 1e-12
    # And back; the algorithm is kept.
    set_parameters(node, robot_description=urdf)
    answer = follow(graph, robot, q, answer.layout_id)
    assert (answer.layout_id, answer.algorithm) == (first.layout_id, "dense")


def test_the_description_in_use_with_another_algorithm(graph, start, urdf, robot, q) -> None:
    node = start(rows="all")
    first = graph.ask(robot.joint_names, q)
    set_parameters(node, robot_description=urdf, algorithm="dense")
    answer = graph.ask_until(lambda m: m.algorithm == "dense", robot.joint_names, q)
    assert answer.layout_id == first.layout_id


def test_an_inactive_node_changes_as_well(graph, start, urdf, robot, q) -> None:
    node = start(rows="all")
    first = graph.ask(robot.joint_names, q)
    node.trigger_deactivate()
    set_parameters(node, robot_description=heavier(urdf, 2.0))
    graph.wait_for_log("robot description changed")
    node.trigger_activate()
    answer = graph.ask(robot.joint_names, q)
    assert answer.layout_id != first.layout_id


def test_an_algorithm_that_comes_with_a_robot_outlives_an_activation(graph, start, urdf) -> None:
    """While that robot is in the making, the one in use may not even suit the algorithm."""
    node = start(algorithm="pv_osimr", robot_description=demo_urdf("geared"))
    node.trigger_deactivate()
    together(node, urdf, "ltl")
    assert node._configuration.change.building
    node.trigger_activate()
    line = graph.wait_for_log("robot description changed from that of")
    assert "ltl" in line
    assert present(node) == (urdf, "ltl")
    assert not [line for line in graph.log if "cannot change the algorithm" in line]


def test_simulated_time_that_stands_still_is_not_waited_for(graph, start, urdf) -> None:
    """No message of the clock has come: a simulator is paused, or is to be started later."""
    node = start(use_sim_time=True)
    assert node.get_clock().now().nanoseconds == 0
    set_parameters(node, robot_description=heavier(urdf, 4.0))
    graph.wait_for_log("robot description changed from that of delassus_quadruped")
    assert node._configuration.computation.problem.robot.name == "heavier"


@pytest.mark.parametrize("way", ["topic", "parameter"])
@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda urdf: "<robot", "XML"),
        (lambda urdf: urdf.replace("LF_FOOT", "LF_HOOF"), "unknown frame 'LF_FOOT'"),
    ],
)
def test_a_bad_description_leaves_the_old_robot(
    graph, described, urdf, robot, q, way, spoil, words
) -> None:
    node = described()
    first = first_of_all_feet(graph, robot, q)
    if way == "topic":
        graph.describe(spoil(urdf))
    else:
        # It is read beside the stream; the answer is that it will be.
        other = Parameter("robot_description", value=spoil(urdf))
        assert node.set_parameters([other])[0].successful
        assert node.get_parameter("robot_description").value == spoil(urdf)
    line = graph.wait_for_log("cannot change the robot description, delassus_quadruped goes on")
    assert words in line
    assert words in node._configuration.change.failures["robot_description"]
    assert node.get_parameter("robot_description").value == ""
    answer = graph.ask(robot.joint_names, q)
    assert (answer.layout_id, answer.validity) == (first.layout_id, OK)
    np.testing.assert_array_equal(matrix_to_numpy(answer), matrix_to_numpy(first))
    # A good one mends it.
    graph.describe(heavier(urdf, 2.0))
    follow(graph, robot, q, first.layout_id)


@pytest.mark.parametrize("active", [True, False])
def test_description_without_xml_refused_at_once(start, urdf, active) -> None:
    node = start(autostart=active)
    unused = "'robot_description' cannot be used: "
    for description, begin, words in (
        (" \n", unused, "the URDF is empty"),
        ("nonsense", unused, "'nonsense' is not how XML starts; expected the text of a URDF"),
        ("package://robot/robot.urdf", unused, ""),
        ("{robot: 1}", unused, ""),
        ("<" * 9 * 2**20, unused, "the XML is larger than 8388608 bytes"),
        (5, "Wrong parameter type", ""),
    ):
        reason = refused(node, robot_description=description)
        assert reason.startswith(begin) and words in reason
        assert node.get_parameter("robot_description").value == urdf
        assert not active or not node._configuration.change.building


@pytest.mark.parametrize("good", [True, False])
@pytest.mark.parametrize("state", ["active", "inactive"])
def test_a_description_by_parameter_is_read_once_beside_the_stream(
    graph, start, urdf, robot, q, monkeypatch, state, good
) -> None:
    node = start(rows="all")
    first = graph.ask(robot.joint_names, q)
    if state == "inactive":
        node.trigger_deactivate()
    threads, release = [], threading.Event()
    problem = Settings.problem

    def read(settings: Settings, text: str) -> Problem:
        threads.append(threading.current_thread())
        if threads[-1] is not threading.main_thread():
            assert release.wait(HANG_S)
        return problem(settings, text)

    monkeypatch.setattr(Settings, "problem", read)
    other = heavier(urdf, 2.0) if good else heavier(urdf, 2.0).replace("LF_FOOT", "LF_HOOF")
    set_parameters(node, robot_description=other)
    graph.until(lambda: threads, "begin of the reading")
    if state == "active":
        # As long as it takes, the present one goes on.
        for _ in range(5):
            answer = graph.ask(robot.joint_names, q)
            assert (answer.layout_id, answer.validity) == (first.layout_id, DEGRADED)
    assert node._configuration.change.building
    release.set()
    graph.until(lambda: not node._configuration.change.building, "end of the change")
    name = node._configuration.computation.problem.robot.name
    assert name == ("heavier" if good else "delassus_quadruped")
    assert node.get_parameter("robot_description").value == (other if good else urdf)
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()


def test_a_bad_description_and_its_algorithm_are_set_back(graph, start, urdf, monkeypatch) -> None:
    """The algorithm goes with neither: that is found with the description."""
    node = start()
    efpa = algorithms.get("efpa")
    monkeypatch.setattr(efpa, "supports", lambda p: "it has a mood")
    together(node, heavier(urdf, 2.0), "efpa")
    line = graph.wait_for_log("cannot change the robot description, delassus_quadruped goes on")
    assert "algorithm 'efpa' cannot solve this problem: it has a mood" in line
    assert present(node) == (urdf, "pv_osimr")
    # One that there is not is refused at once, with the description.
    reason = refused(node, robot_description=heavier(urdf, 3.0), algorithm="denze")
    assert "unknown algorithm 'denze'; did you mean 'dense'?" in reason
    assert present(node) == (urdf, "pv_osimr")


def test_a_description_whose_build_fails_reverts_the_parameter(
    graph, start, urdf, robot, q, monkeypatch
) -> None:
    node = start(rows="all")
    first = graph.ask(robot.joint_names, q)
    with monkeypatch.context() as patch:
        # The child cannot start Python.
        patch.setattr("sys.executable", "/bin/false")
        other = heavier(urdf, 7.0)
        set_parameters(node, robot_description=other)
        line = graph.wait_for_log("cannot change the robot description, delassus_quadruped goes")
    assert "exit status 1" in line
    assert node.get_parameter("robot_description").value == urdf
    assert graph.ask(robot.joint_names, q).layout_id == first.layout_id
    assert children() == set()


def together(node, description: str, algorithm: str) -> None:
    """Set both parameters."""
    set_parameters(node, robot_description=description, algorithm=algorithm)


def present(node) -> tuple[str, str]:
    return node.get_parameter("robot_description").value, node.get_parameter("algorithm").value


def test_a_build_that_fails_reverts_the_algorithm_as_well(
    graph, start, urdf, robot, q, monkeypatch
) -> None:
    """One that only the other robot goes with."""
    efpa = algorithms.get("efpa")
    monkeypatch.setattr(
        efpa, "supports", lambda p: "it is light" if "heavier" not in p.robot.name else None
    )
    node = start(rows="all")
    first = graph.ask(robot.joint_names, q)
    with monkeypatch.context() as patch:
        patch.setattr("sys.executable", "/bin/false")
        together(node, heavier(urdf, 8.0), "efpa")
        assert present(node) == (heavier(urdf, 8.0), "efpa")
        graph.wait_for_log("cannot change the robot description, delassus_quadruped goes on")
    assert present(node) == (urdf, "pv_osimr")
    answer = graph.ask(robot.joint_names, q)
    assert (answer.layout_id, answer.algorithm) == (first.layout_id, "pv_osimr")
    assert not [line for line in graph.log if "cannot be set back" in line]


def test_an_algorithm_set_while_a_build_fails_stays(
    graph, start, urdf, robot, q, monkeypatch
) -> None:
    node = start(rows="all")
    for name in ("dense", "pv_osimr"):
        set_parameters(node, algorithm=name)
        graph.ask_until(lambda m, name=name: m.algorithm == name, robot.joint_names, q)
    with monkeypatch.context() as patch:
        patch.setattr("sys.executable", "/bin/false")
        together(node, heavier(urdf, 9.0), "efpa")
        # That of the present robot is in the cache.
        set_parameters(node, algorithm="dense")
        graph.wait_for_log("cannot change the robot description, delassus_quadruped goes on")
    assert present(node) == (urdf, "dense")
    graph.ask_until(lambda m: m.algorithm == "dense", robot.joint_names, q)


def test_algorithms_set_while_a_robot_is_built_follow_the_robot(
    graph, start, urdf, robot, q, monkeypatch, tmp_path
) -> None:
    """However quickly they are set: the build of the robot is not begun again."""
    tmp_path.chmod(0o700)
    node = start()
    first = first_of_all_feet(graph, robot, q)
    # An empty one, so that building takes a while.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    other, algorithms = heavier(urdf, 4.5), itertools.cycle(("dense", "pv_osimr"))
    set_parameters(node, robot_description=other)

    def is_followed() -> bool:
        set_parameters(node, algorithm=next(algorithms))
        graph.move(robot.joint_names, q)
        return graph.matrices[-1].layout_id != first.layout_id

    graph.until(is_followed, "matrix of the other robot")
    set_parameters(node, algorithm="dense")
    answer = graph.ask_until(
        lambda m: m.validity == OK and m.algorithm == "dense", robot.joint_names, q
    )
    assert answer.layout_id != first.layout_id
    assert relative_error(matrix_to_numpy(answer), solve(other, q)) < 1e-12
    assert present(node) == (other, "dense")


def test_the_algorithm_of_a_change_that_is_taken_back_is_used(
    graph, start, urdf, robot, q, monkeypatch, tmp_path
) -> None:
    tmp_path.chmod(0o700)
    node = start(rows="all")
    first = graph.ask(robot.joint_names, q)
    # An empty one, so that building takes a while.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    together(node, heavier(urdf, 5.5), "dense")
    assert graph.ask(robot.joint_names, q).algorithm == "pv_osimr"
    set_parameters(node, robot_description=urdf)
    answer = graph.ask_until(lambda m: m.algorithm == "dense", robot.joint_names, q)
    assert answer.layout_id == first.layout_id
    assert present(node) == (urdf, "dense")


@pytest.mark.parametrize("end", ["taken back", "refused"])
def test_an_algorithm_in_the_making_outlives_a_robot_that_does_not_come(
    graph, described, urdf, robot, q, monkeypatch, tmp_path, end
) -> None:
    tmp_path.chmod(0o700)
    node = described(rows="all")
    first = graph.ask(robot.joint_names, q)
    # An empty one, so that building takes a while.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    set_parameters(node, algorithm="efpa")
    if end == "taken back":
        graph.describe(heavier(urdf, 6.5))
        graph.until(lambda: node._configuration.change.building, "begin of the change")
        graph.describe(urdf)
    else:
        graph.describe("<robot")
        graph.wait_for_log("cannot change the robot description, delassus_quadruped goes on")
    answer = graph.ask_until(lambda m: m.algorithm == "efpa", robot.joint_names, q)
    assert answer.layout_id == first.layout_id
    assert present(node) == ("", "efpa")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        # Not even looked at closely, so that the parameter stays.
        ("quadruped.urdf", "'robot_description' cannot be set back to what is in use: "),
        # Read in its turn.
        ("<robot", "cannot change the robot description, delassus_quadruped goes on: broken XML"),
    ],
)
def test_what_cannot_be_set_back_is_said(graph, described, urdf, monkeypatch, text, words) -> None:
    """The description by topic, which was in use, has become a bad one meanwhile."""
    node = described()
    monkeypatch.setattr("sys.executable", "/bin/false")
    change = node._configuration.change
    with monkeypatch.context() as patch:
        # Not to fail before the other description has come.
        patch.setattr(change._handover, "poll", lambda: None)
        set_parameters(node, robot_description=heavier(urdf, 8.5))
        graph.describe(text)
        graph.until(lambda: node._description.text == text, "description")
    graph.until(lambda: change._handover.poll() or not change.building, "end of the change")
    graph.wait_for_log(words)
    assert not change.building
    assert "robot_description" in change.failures
    assert node._configuration.computation.problem.robot.name == "delassus_quadruped"
    # A good one mends it.
    graph.describe(urdf)
    graph.until(lambda: node._description.text == urdf, "description")
    set_parameters(node, robot_description="")
    assert not change.failures
    assert state_of(node) == "active"


def test_an_empty_description_is_that_of_the_topic(graph, start, urdf, robot, q) -> None:
    node = start(rows="all")
    first = graph.ask(robot.joint_names, q)
    words = "'robot_description' is empty, and nothing has come on /robot_description"
    assert refused(node, robot_description="") == words
    other = heavier(urdf, 2.0)
    graph.describe(other)
    graph.until(lambda: node._description.text == other, "description")
    # The parameter goes first.
    assert graph.ask(robot.joint_names, q).layout_id == first.layout_id
    set_parameters(node, robot_description="")
    graph.ask_until(lambda m: m.layout_id != first.layout_id, robot.joint_names, q)


def test_a_change_that_is_taken_back_leaves_nothing(
    graph, start, urdf, robot, q, monkeypatch, tmp_path
) -> None:
    tmp_path.chmod(0o700)
    node = start(rows="all")
    first = graph.ask(robot.joint_names, q)
    timers = len(list(node.timers))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(child, "command", endless)
    set_parameters(node, robot_description=heavier(urdf, 5.0))
    graph.until(lambda: len(children()) == 1, "process that builds")
    set_parameters(node, robot_description=urdf)
    graph.until(lambda: not children(), "end of the process")
    assert len(list(node.timers)) == timers
    assert graph.ask(robot.joint_names, q).layout_id == first.layout_id
    # Cleaned up while it is built.
    set_parameters(node, robot_description=heavier(urdf, 6.0))
    graph.until(lambda: len(children()) == 1, "process that builds")
    node.trigger_deactivate()
    node.trigger_cleanup()
    assert children() == set()


def replace_under_load(graph, start, urdf, robot, q, times: int) -> None:
    """Every matrix is that of the robot whose layout it names; nothing is published between."""
    # A word about silence, when the machine pauses, has no stamp.
    node = start(contacts_timeout=0.5, input_timeout=10.0)
    graph.ask_touching(FEET, robot.joint_names, q)
    variants = [heavier(urdf, factor, f"r{factor:g}") for factor in (1.5, 2.5)]
    expected = {}
    already = len(graph.matrices)
    for _, variant in zip(range(times), itertools.cycle(variants), strict=False):
        before = graph.matrices[-1].layout_id
        set_parameters(node, robot_description=variant)
        deadline = time.monotonic() + HANG_S
        while graph.matrices[-1].layout_id == before or graph.matrices[-1].validity != OK:
            assert time.monotonic() < deadline, graph.log
            graph.touch(FEET)
            graph.move(robot.joint_names, q)
            # One event each, of which the two messages make about five.
            for _ in range(10):
                graph.executor.spin_once(timeout_sec=0.0005)
        expected[graph.matrices[-1].layout_id] = solve(variant, q)
    seen = 0
    for message in graph.matrices[already:]:
        assert message.validity in (OK, INVALID)
        if message.validity == INVALID:
            assert not message.matrix
        elif message.layout_id in expected:
            seen += 1
            error = relative_error(matrix_to_numpy(message), expected[message.layout_id])
            assert error < 1e-12
    assert seen >= times
    stamps = [stamp_of(message) for message in graph.matrices[already:]]
    assert stamps == sorted(stamps)


def test_descriptions_replaced_under_load(graph, start, urdf, robot, q) -> None:
    replace_under_load(graph, start, urdf, robot, q, times=4)


@pytest.mark.slow
def test_many_descriptions_replaced_under_load(graph, start, urdf, robot, q) -> None:
    replace_under_load(graph, start, urdf, robot, q, times=200)


def describe_in_a_row(graph, described, urdf, robot, q, times: int) -> None:
    """Send a description every 0.3 s; the last is in use at the end, and no build goes on.

    Every matrix is right for the robot whose layout it names, those of robots in between as well.
    """
    node = described(input_timeout=10.0)
    first = first_of_all_feet(graph, robot, q)
    already, layouts = len(graph.matrices), len(graph.layouts)
    others = [heavier(urdf, 1.5 + 0.01 * k, f"number_{k}") for k in range(times)]
    due = time.monotonic()
    for other in others:
        graph.describe(other)
        due += 0.3
        while (rest := due - time.monotonic()) > 0.0:
            graph.move(robot.joint_names, q)
            graph.executor.spin_once(timeout_sec=min(rest, 0.02))
    sent = time.monotonic()
    configuration = node._configuration
    graph.until(lambda: configuration.computation.description == others[-1], "last robot")
    took = time.monotonic() - sent
    answer = follow(graph, robot, q, first.layout_id)
    assert relative_error(matrix_to_numpy(answer), solve(others[-1], q)) < 1e-12
    graph.until(lambda: not configuration.change.building and not children(), "end of builds")
    # Nothing that was on its way comes behind it.
    assert graph.ask(robot.joint_names, q).layout_id == answer.layout_id
    assert configuration.computation.problem.robot.name == f"number_{times - 1}"
    names = {layout.layout_id: layout.robot for layout in graph.layouts}
    robots_by_name = {"delassus_quadruped": urdf} | {
        f"number_{k}": other for k, other in enumerate(others)
    }
    checked = 0
    for message in graph.matrices[already:]:
        if message.validity != INVALID and message.matrix:
            expected = solve(robots_by_name[names[message.layout_id]], q)
            assert relative_error(matrix_to_numpy(message), expected) < 1e-12
            checked += 1
    print(f"\n{times} descriptions, {len(graph.layouts) - layouts} robots were in use after the "
          f"first; the last one {took:.2f} s after it was sent; {checked} matrices are right")
    assert checked > times


def test_of_descriptions_in_a_row_the_last_comes(graph, described, urdf, robot, q) -> None:
    describe_in_a_row(graph, described, urdf, robot, q, times=10)


@pytest.mark.slow
def test_of_descriptions_for_twenty_seconds_the_last_comes(
    graph, described, urdf, robot, q
) -> None:
    describe_in_a_row(graph, described, urdf, robot, q, times=67)


def test_the_demo_robot_has_a_trunk_to_make_heavier() -> None:
    urdf = robots.unlimited()
    assert heavier(urdf, 2.0) != urdf
    assert 'name="heavier"' in heavier(urdf, 2.0)
