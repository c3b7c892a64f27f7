"""Log lines of the control loop: as rclpy's loggers write them, without what those cost."""

from __future__ import annotations

from pathlib import Path

import pytest
from node_support import (
    set_parameters,
)
from rcl_interfaces.msg import Log
from rclpy.impl import rcutils_logger
from rclpy.logging import LoggingSeverity
from rclpy.node import Node

from delassus_ros.ros import logs as loop_log
from delassus_ros.ros.logs import LoopLog


@pytest.fixture(name="speaker")
def make_speaker(graph) -> Node:
    return graph.add(Node("speaker", namespace="hall", context=graph.context))


@pytest.mark.parametrize("quick", [True, False])
def test_lines_have_level_name_and_place(graph, speaker, monkeypatch, quick) -> None:
    if not quick:
        monkeypatch.setattr(loop_log, "_write", None)
    heard: list[Log] = []
    speaker.create_subscription(Log, "/rosout", heard.append, 10)
    log = LoopLog(speaker.get_logger())

    def said() -> bool:
        log.info("all is well")
        log.warning("something is odd: 100 %s")
        log.error("gone\x1b[2J\n\tnow")
        return len(heard) >= 3

    graph.until(said, "lines on /rosout")
    lines = {line.msg: line for line in heard}
    texts = "all is well", "something is odd: 100 %s", "gone\\x1b[2J\n\tnow"
    assert [(lines[text].level, lines[text].name) for text in texts] == [
        (20, "hall.speaker"), (30, "hall.speaker"), (40, "hall.speaker"),
    ]  # fmt: skip
    if quick:
        first = said.__code__.co_firstlineno + 1
        assert [(lines[text].function, lines[text].line - first) for text in texts] == [
            ("said", 0), ("said", 1), ("said", 2),
        ]  # fmt: skip
        assert {Path(line.file) for line in heard} == {Path(__file__)}
    graph.wait_for_log(texts[1])


def test_lines_below_the_level_are_not_written(graph, speaker) -> None:
    logger = speaker.get_logger()
    logger.set_level(LoggingSeverity.ERROR)
    log = LoopLog(logger)
    log.info("quiet one")
    log.warning("quiet two")
    log.error("loud")
    graph.wait_for_log("loud")
    assert not [line for line in graph.log if "quiet" in line]


def test_a_change_of_the_algorithm_does_not_look_for_the_source_of_its_line(
    graph, ready, robot, q, monkeypatch
) -> None:
    node = ready()

    def slow(*_: object) -> None:
        raise AssertionError("rclpy looks for the caller")

    monkeypatch.setattr(rcutils_logger, "CallerId", slow)
    set_parameters(node, algorithm="efpa")
    graph.ask_until(lambda m: m.algorithm == "efpa", robot.joint_names, q)
    graph.wait_for_log("algorithm changed from 'pv_osimr' to 'efpa'")
    # Nor does a warning of what comes in.
    graph.ask(robot.joint_names, [float("nan")] * len(q))
    graph.wait_for_log("is nan")
