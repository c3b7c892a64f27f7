"""delassus_node: change of algorithm, lifecycle, parameters."""

from __future__ import annotations

import numpy as np
import pytest
from delassus_msgs.srv import ListAlgorithms
from delassus_msgs_py import matrix_to_numpy
from lifecycle_msgs.msg import State, Transition
from node_support import (
    DEGRADED,
    FEET,
    INVALID,
    OK,
    Manager,
    refused,
    set_parameters,
    solve,
    state_of,
)
from rclpy.exceptions import ParameterException
from ros_support import children, endless, nanoseconds, stamp_of

from delassus import algorithms
from delassus.algorithms import registry
from delassus.algorithms.dense import Dense
from delassus.compiler.runtime import child
from delassus.errors import CompilerError
from delassus_ros.node.contact_parameters import CONTACT_PARAMETERS
from delassus_ros.node.delassus_node import DelassusNode
from delassus_ros.node.parameters import (
    PARAMETERS,
)
from delassus_ros.ros.health import Level

# --- algorithm --------------------------------------------------------------------------------


def test_algorithm_changes_while_running(graph, ready, urdf, robot, q) -> None:
    node = ready()
    already = len(graph.matrices)
    # A kernel to be built, soon; a back end; and one that is there.
    others = [name for name in ("ltl", "pinocchio", "pv_osimr") if name in algorithms.names()]
    for name in others:
        set_parameters(node, algorithm=name)
        answer = graph.ask_until(lambda m, name=name: m.algorithm == name, robot.joint_names, q)
        expected = solve(urdf, q, algorithm=name)
        np.testing.assert_allclose(matrix_to_numpy(answer), expected, rtol=0, atol=1e-14)
        graph.until(lambda: not node._configuration.change.building, "end of the change")
    # No joint state was left without a matrix meanwhile.
    assert {m.validity for m in graph.matrices[already:]} == {OK}
    assert children() == set()


def test_the_algorithm_asked_for_is_reported(graph, start, urdf, robot, q) -> None:
    """An alias at the start, another spelling, and a change between names of one algorithm."""
    node = start(algorithm="C-EFPA", rows="all")
    expected = solve(urdf, q, algorithm="efpa")
    for asked, reported in (
        ("C-EFPA", "c_efpa"), ("efpa", "efpa"), ("PV-OSIMr", "pv_osimr"), ("c_efpa", "c_efpa"),
    ):  # fmt: skip
        set_parameters(node, algorithm=asked)
        graph.ask_until(lambda m, name=reported: m.algorithm == name, robot.joint_names, q)
        graph.until(lambda: not node._configuration.change.building, "end of the change")
        found = matrix_to_numpy(graph.ask(robot.joint_names, q))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
        listed = graph.call(
            ListAlgorithms, "delassus_node/list_algorithms", ListAlgorithms.Request()
        )
        assert listed.active == reported
        assert reported in listed.names
        entries, _ = node._configuration._entries()
        entry = next(each for each in entries if each.name == "algorithm")
        assert (entry.level, entry.message) == (Level.OK, reported)
        assert entry.values == {"algorithm": reported, "wanted": reported}
        assert node.get_parameter("algorithm").value == asked


def test_algorithm_set_while_inactive_is_followed_when_active(graph, start, robot, q) -> None:
    node = start(rows="all")
    node.trigger_deactivate()
    set_parameters(node, algorithm="dense")
    node.trigger_activate()
    graph.ask_until(lambda m: m.algorithm == "dense", robot.joint_names, q)


def test_algorithm_refusals_give_the_reason(graph, start, monkeypatch) -> None:
    node = start()
    reason = refused(node, algorithm="denze")
    assert "unknown algorithm 'denze'; did you mean 'dense'?" in reason
    assert ", ".join(algorithms.names()) in reason
    monkeypatch.setattr(Dense, "supports", lambda self, problem: "it has feet")
    reason = refused(node, algorithm="dense")
    assert reason == "algorithm 'dense' cannot solve this problem: it has feet"
    assert node.get_parameter("algorithm").value == "pv_osimr"


def test_algorithm_choices_are_in_the_descriptor(graph, start) -> None:
    constraints = start().describe_parameter("algorithm").additional_constraints
    names = (*algorithms.names(), *algorithms.aliases())
    assert constraints == f"one of: {', '.join(names)}"


def test_a_failed_build_keeps_the_old_algorithm(graph, start, robot, q, monkeypatch) -> None:
    # Registered here but not in the process that builds, where it is unknown.
    stranger = Dense()
    stranger.name = "stranger"
    monkeypatch.setitem(registry._registry, "stranger", stranger)
    node = start(rows="all")
    set_parameters(node, algorithm="stranger")
    line = graph.wait_for_log("cannot change the algorithm to 'stranger'")
    assert "'pv_osimr' goes on" in line
    assert "unknown algorithm 'stranger'" in line
    assert node.get_parameter("algorithm").value == "pv_osimr"
    assert graph.ask(robot.joint_names, q).algorithm == "pv_osimr"
    assert children() == set()


@pytest.mark.parametrize("kind", [CompilerError, OSError])
def test_whatever_fails_when_a_build_starts_reverts_the_parameter(
    graph, start, monkeypatch, kind
) -> None:
    def fail(*_: object) -> None:
        # Made here: an error that pytest keeps would keep the node, by its traceback.
        raise kind("no more of it")

    node = start(rows="all")
    monkeypatch.setattr("delassus_ros.node.configuration.make_solver", fail)
    set_parameters(node, algorithm="dense")
    line = graph.wait_for_log("cannot change the algorithm to 'dense', 'pv_osimr' goes on")
    assert "no more of it" in line
    assert node.get_parameter("algorithm").value == "pv_osimr"


# --- lifecycle and parameters -----------------------------------------------------------------


def test_contacts_from_before_a_pause_are_not_used(graph, ready, robot, q) -> None:
    node = ready()
    node.trigger_deactivate()
    # Nobody repeats the set: the publisher has gone meanwhile.
    graph.peer.destroy_publisher(graph.contacts)
    graph.until(lambda: not node.count_publishers("/active_contacts"), "end of the publisher")
    node.trigger_activate()
    answer = graph.ask(robot.joint_names, q)
    assert answer.validity == INVALID
    assert answer.reasons == answer.REASON_NO_CONTACTS_RECEIVED
    assert nanoseconds(answer.contacts_stamp) == 0


def test_lists_of_integers_are_lists_of_numbers(graph, start) -> None:
    """As YAML has them: [0, 0, 1] is not a list of floating-point numbers there."""
    node = start(
        contacts__LF__kind="selection",
        contacts__LF__selection=[0, 0, 1, 0, 0, 0],
        contacts__RF__xyz=[0, 0, 1],
        armature__names=["LF_HAA", "RF_HAA"],
        armature__values=[1, 2],
    )
    assert state_of(node) == "active"
    problem = node._configuration.computation.problem
    left, right = problem.contacts[:2]
    assert left.selection.tolist() == [[0.0, 0.0, 1.0, 0.0, 0.0, 0.0]]
    assert right.placement.translation.tolist() == [0.0, 0.0, 1.0]
    armature = {joint.name: joint.armature for joint in problem.robot.joints}
    assert (armature["LF_HAA"], armature["RF_HAA"]) == (1.0, 2.0)
    descriptor = node.describe_parameter("contacts.LF.selection")
    assert "integers" in descriptor.additional_constraints


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("kind", "pont", "unknown contacts.toe.kind 'pont'; did you mean 'point'?"),
        ("kind", 3, "'contacts.toe.kind' is 3; expected text"),
        ("moving", "on", "unknown contacts.toe.moving 'on'"),
        ("frame", True, "'contacts.toe.frame' is True; expected text"),
        ("xyz", "up", "'contacts.toe.xyz' is 'up'; expected a list of numbers"),
        ("selection", 1.5, "'contacts.toe.selection' is 1.5; expected a list of numbers"),
    ],
)
def test_a_contact_that_was_given_badly_cannot_be_listed_later(
    graph, start, key, value, words
) -> None:
    node = start(autostart=False, **{f"contacts__toe__{key}": value})
    reason = refused(node, contacts__names=["LF", "toe"])
    name = f"contacts.toe.{key}"
    assert reason.startswith("contact 'toe' cannot be listed, as the node was started")
    assert f"a bad {name!r}: " in reason
    assert words in reason
    assert node.get_parameter("contacts.names").value == list(FEET)
    assert not node.has_parameter(name)
    set_parameters(node, contacts__names=["LF", "heel"])


def test_what_was_given_for_a_contact_counts_once_it_is_listed(graph, start) -> None:
    node = start(autostart=False, contacts__toe__kind="surface", contacts__toe__xyz=[0, 0, 1])
    set_parameters(node, contacts__names=["LF", "toe"])
    assert node.get_parameter("contacts.toe.kind").value == "surface"
    assert list(node.get_parameter("contacts.toe.xyz").value) == [0, 0, 1]


def test_a_node_without_autostart_says_what_it_waits_for(graph, start) -> None:
    node = start(autostart=False)
    assert state_of(node) == "unconfigured"
    graph.wait_for_log("unconfigured, waiting for a lifecycle manager; autostart: true configures")


def test_what_is_no_list_of_numbers_is_refused(graph, start) -> None:
    node = start(autostart=False)
    for name in ("contacts.LF.xyz", "contacts.LF.selection", "armature.values"):
        for value in ("up", 3.0, ["a"]):
            reason = refused(node, **{name: value})
            assert f"{name!r} is {value!r}; expected a list of numbers" in reason
        set_parameters(node, **{name: [1, 2, 3]})
    with pytest.raises(ParameterException, match=r"contacts\.LF\.xyz"):
        start(contacts__LF__xyz="up")


@pytest.mark.parametrize(
    ("autostart", "wanted", "words"),
    [
        (True, {"id": 3}, "transition 3: in the state 'active' there are: deactivate, shutdown"),
        (True, {"id": 6}, "transition 6: in the state 'active'"),
        (True, {"id": 250}, "transition 250: in the state 'active'"),
        (True, {"label": "cleanup"}, "transition 'cleanup': in the state 'active'"),
        (True, {"label": 200 * "x"}, f"transition '{100 * 'x'}': in the state 'active'"),
        (True, {"label": "fly", "id": 4}, "transition 'fly': in the state 'active'"),
        (False, {"id": 3}, "transition 3: in the state 'unconfigured' there are: configure, "),
        (False, {"id": 4}, "transition 4: in the state 'unconfigured'"),
    ],
)
def test_a_transition_that_the_state_lacks_is_refused(
    graph, start, robot, q, autostart, wanted, words
) -> None:
    """And nothing else happens: rclpy alone would end the node."""
    node = start(autostart=autostart)
    manager = Manager(graph)
    before = state_of(node)
    assert not manager.change(**wanted)
    graph.wait_for_log(f"refused the {words}")
    assert state_of(node) == before
    if autostart:
        graph.touch(FEET)
        graph.ask_until(lambda m: m.validity == OK, robot.joint_names, q)
    assert manager.change(label="shutdown")
    assert state_of(node) == "finalized"
    assert not manager.change(**wanted)


def entities(node: DelassusNode) -> tuple[list[str], ...]:
    """Return the topics and timers of a node, to compare."""
    return (
        sorted(publisher.topic_name for publisher in node.publishers),
        sorted(subscription.topic_name for subscription in node.subscriptions),
        [str(timer) for timer in node.timers],
    )


def test_lifecycle_walk_leaves_nothing_behind(
    graph, start, robot, q, monkeypatch, tmp_path_factory
) -> None:
    node = start(autostart=False, rows="all")
    manager = Manager(graph)
    unconfigured = entities(node)
    assert manager.state() == State.PRIMARY_STATE_UNCONFIGURED
    layouts = 0
    for _ in range(2):
        assert manager.change(Transition.TRANSITION_CONFIGURE)
        assert manager.state() == State.PRIMARY_STATE_INACTIVE
        inactive = entities(node)
        graph.move(robot.joint_names, q)
        for _ in range(2):
            assert manager.change(Transition.TRANSITION_ACTIVATE)
            assert manager.state() == State.PRIMARY_STATE_ACTIVE
            assert graph.ask(robot.joint_names, q).validity == DEGRADED
            layouts += 1
            graph.until(lambda n=layouts: len(graph.layouts) >= n, "layout")
            # Deactivated while a kernel is being built.
            monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("empty")))
            with monkeypatch.context() as patch:
                patch.setattr(child, "command", endless)
                set_parameters(node, algorithm="dense")
                graph.until(children, "process that builds")
            assert manager.change(Transition.TRANSITION_DEACTIVATE)
            assert children() == set()
            assert entities(node) == inactive
            set_parameters(node, algorithm="pv_osimr")
        assert manager.change(Transition.TRANSITION_CLEANUP)
        assert manager.state() == State.PRIMARY_STATE_UNCONFIGURED
        assert entities(node) == unconfigured
    assert len({layout.layout_id for layout in graph.layouts}) == 1
    assert manager.change(Transition.TRANSITION_CONFIGURE)
    assert manager.change(Transition.TRANSITION_ACTIVATE)
    assert manager.change(Transition.TRANSITION_ACTIVE_SHUTDOWN)
    assert manager.state() == State.PRIMARY_STATE_FINALIZED
    publishers, subscriptions, timers = entities(node)
    assert publishers == unconfigured[0]
    assert subscriptions == [name for name in unconfigured[1] if name != "/robot_description"]
    assert timers == []


def test_an_inactive_node_is_silent(graph, start, robot, q) -> None:
    node = start(rows="all")
    graph.ask(robot.joint_names, q)
    node.trigger_deactivate()
    graph.wait_for_log("inactive: published ")
    already = len(graph.matrices)
    for _ in range(5):
        graph.move(robot.joint_names, q)
    node.trigger_activate()
    # What was said while it was inactive stays unanswered.
    stamp = graph.move(robot.joint_names, q)
    graph.until(lambda: len(graph.matrices) > already, "answer")
    assert [stamp_of(m) for m in graph.matrices[already:]] == [stamp]
    assert node._configuration.computation.tick.superseded == 0


def test_fixed_parameters_change_only_while_unconfigured(graph, start, robot, q) -> None:
    node = start(rows="all")
    for name, value in (
        ("rows", "active"),
        ("base", "fixed"),
        ("contacts.LF.kind", "surface"),
        ("contacts.names", ["LF"]),
        ("fallback", "dense"),
        ("orientation.timeout", 1.0),
        ("rate", 100.0),
        ("realtime.priority", 1),
    ):
        reason = refused(node, algorithm="dense", **{name: value})
        assert f"{name!r} can be set only while the node is unconfigured" in reason
        assert "clean up" in reason
    # Refused as a whole: the algorithm did not change either.
    assert node.get_parameter("algorithm").value == "pv_osimr"
    node.trigger_deactivate()
    node.trigger_cleanup()
    set_parameters(node, contacts__names=["LH", "NEW"])
    set_parameters(node, contacts__NEW__frame="RF_FOOT")
    set_parameters(node, contacts__NEW__kind="surface")
    node.trigger_configure()
    node.trigger_activate()
    answer = graph.ask_until(lambda m: len(m.contacts) == 2, robot.joint_names, q)
    assert list(answer.contacts) == ["LH", "NEW"]
    assert list(answer.row_offsets) == [0, 3, 9]


def test_bad_values_refused_while_unconfigured(start) -> None:
    node = start(autostart=False)
    for name, value, words in (
        ("base", "flying", "unknown base 'flying'"),
        ("rows", "some", "unknown rows 'some'; rows: active, all"),
        ("contacts.LF.kind", "flat", "unknown contacts.LF.kind 'flat'"),
        ("contacts.LF.moving", "on", "unknown contacts.LF.moving 'on'"),
        ("algorithm", "magic", "unknown algorithm 'magic'"),
        ("base", 3, "Wrong parameter type"),
        ("autostart", True, "read-only"),
    ):
        assert words in refused(node, **{name: value})


def test_parameters_cannot_be_deleted(start) -> None:
    """Nobody could set one again."""
    node = start(autostart=False)
    place = "contacts.LF.xyz", [0.0, 0.0, 0.1]
    for name, value in (place, place, ("contacts.LF.selection", [0, 0, 1, 0, 0, 0])):
        # Together with others, these are refused, too.
        reason = refused(node, rate=5.0, **{name: None})
        assert reason.startswith(f"{name!r} cannot be deleted; ")
        set_parameters(node, **{name: value})
        assert list(node.get_parameter(name).value) == value
    assert node.get_parameter("rate").value == 0.0


def test_to_list_a_contact_takes_no_longer_among_many(start, monkeypatch) -> None:
    """Counted are the values that are read; the callbacks of other parameters come in between."""
    node = start(autostart=False)
    read: list[str] = []
    get = node.get_parameter_or
    monkeypatch.setattr(node, "get_parameter_or", lambda name: [read.append(name), get(name)][1])

    def listed(count: int) -> float:
        names = [f"c{count}_{k}" for k in range(count)]
        read.clear()
        set_parameters(node, contacts__names=names)
        assert node.has_parameter(f"contacts.{names[-1]}.xyz")
        return len(read) / count

    few, many = listed(10), listed(40)
    assert many <= few


def test_every_parameter_is_described(start) -> None:
    node = start(autostart=False)
    names = node.list_parameters([], 0).names
    own = [name for name in names if not name.startswith(("qos_overrides", "use_sim", "start_"))]
    assert len(own) == len(PARAMETERS) + len(CONTACT_PARAMETERS) * len(FEET)
    for name in own:
        assert node.describe_parameter(name).description, name


def test_misspelt_parameters_are_named(graph, start) -> None:
    start(contacts__LF__fram="LF_FOOT", algoritm="dense", autostart=False)
    line = graph.wait_for_log("unknown parameter 'algoritm'")
    assert "did you mean 'algorithm'?" in line
    assert "it is ignored" in line
    assert "did you mean 'contacts.LF.frame'?" in graph.wait_for_log("'contacts.LF.fram'")


def test_log_lines_of_configuring_and_activating(graph, start) -> None:
    start()
    line = graph.wait_for_log("delassus_quadruped: ")
    assert "12 joints, 4 contacts (12 rows), pv_osimr, " in line
    assert " operations, ready in " in line
    line = graph.wait_for_log("active: from ")
    assert line == "active: from /active_contacts and /joint_states to /delassus_node/delassus"
