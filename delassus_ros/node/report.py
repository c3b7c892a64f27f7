"""Diagnostics at a low rate, whether the node is active or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from time import perf_counter
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import QoSProfile

from delassus_ros.node.algorithm_change import AlgorithmChange
from delassus_ros.node.clocks import steady
from delassus_ros.node.computation import Computation
from delassus_ros.node.description_change import DescriptionChange
from delassus_ros.node.diagnostics import (
    Entry,
    InputHealth,
    Level,
    of_algorithm,
    of_input,
    of_matrix,
    of_timing,
    qos_mismatch,
    to_message,
)
from delassus_ros.node.joint_names import listed
from delassus_ros.node.mismatches import Mismatches
from delassus_ros.node.outputs import Outputs
from delassus_ros.node.stream import Stream

_QOS = QoSProfile(depth=10)


class Report:
    """Publishes ``/diagnostics``, with times by the node's clock.

    Parameters
    ----------
    node : the node that reports.
    period : between two reports [s], whatever the node's clock does; 0 for none.
    entries : returns what to say, and the name of the robot.
    """

    def __init__(
        self,
        node: LifecycleNode,
        period: float,
        entries: Callable[[], tuple[list[Entry], str]],
    ) -> None:
        self._node = node
        self._entries = entries
        self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", _QOS)
        self._timer: Any = None
        self.set_period(period)

    def set_period(self, period: float) -> None:
        """Report at another period from now on; 0 for not at all."""
        self._end_timer()
        if period > 0:
            self._timer = self._node.create_timer(period, self._report, clock=steady())

    def close(self) -> None:
        """End the reports."""
        self._end_timer()
        self._node.destroy_publisher(self._publisher)

    def _end_timer(self) -> None:
        if self._timer is not None:
            self._node.destroy_timer(self._timer)
            self._timer = None

    def _report(self) -> None:
        if self._timer is None:
            # The executor had it in its queue when the timer ended.
            return
        entries, robot = self._entries()
        stamp = self._node.get_clock().now().to_msg()
        message = to_message(entries, stamp, self._node.get_fully_qualified_name(), robot)
        try:
            self._publisher.publish(message)
        except RuntimeError:
            # A signal may shut ROS down at any time; then nobody misses this message.
            if self._node.context.ok():
                raise


class Account:
    """What there is to say about a node that is configured.

    Parameters
    ----------
    node : the node.
    mismatches : knows whose QoS does not match.
    stream : receives and answers.
    outputs : publish.
    description : follows the robot description.
    """

    def __init__(
        self,
        node: LifecycleNode,
        mismatches: Mismatches,
        stream: Stream,
        outputs: Outputs,
        description: DescriptionChange,
    ) -> None:
        self._node = node
        self._mismatches = mismatches
        self._stream = stream
        self._outputs = outputs
        self._description = description
        self.restart()

    def restart(self) -> None:
        """Begin anew, as the counts of the stream do when the node is activated."""
        self._overruns = self._missed = 0

    def entries(self, computation: Computation, change: AlgorithmChange) -> list[Entry]:
        """Return the entries of a moment."""
        found: list[Entry] = []
        if self._stream.active:
            found += self._of_inputs(computation)
            last = computation.pipeline.last
            found.append(
                of_matrix(last.validity, last.reasons, last.text, last.rows, last.examination)
            )
            found.append(self._of_timing())
        else:
            found.append(Entry("matrix", Level.OK, "the node is not active"))
        found += [
            of_algorithm(
                computation.pipeline.algorithm,
                change.configured,
                self._node.get_parameter("algorithm").value,
                change.building,
                "the robot that is being built" if self._description.building else "activation",
                change.failure,
            ),
            self._of_robot(computation),
            self._of_outputs(),
        ]
        return found

    def _of_inputs(self, computation: Computation) -> Iterator[Entry]:
        pipeline, stream = computation.pipeline, self._stream
        pairs: list[tuple[InputHealth | None, Any]] = [
            (pipeline.joints_health(), stream.joint_states),
            (pipeline.contacts_health(), stream.contacts),
            (pipeline.orientation_health(), stream.orientations),
        ]
        for health, subscription in pairs:
            if health is not None and subscription is not None:
                topic = subscription.topic_name
                yield of_input(
                    replace(
                        health,
                        topic=topic,
                        publishers=self._node.count_publishers(topic),
                        incompatible=self._mismatches.at(topic),
                    )
                )

    def _of_timing(self) -> Entry:
        stream, timing = self._stream, self._stream.timing
        overruns, missed = timing.overruns - self._overruns, stream.missed - self._missed
        self._overruns, self._missed = timing.overruns, stream.missed
        rate = timing.rate(perf_counter())
        return of_timing(timing, rate, overruns, missed, stream.realtime)

    def _of_robot(self, computation: Computation) -> Entry:
        robot, change = computation.problem.robot.name, self._description
        if change.failure:
            text = f"{robot} goes on, the new description is refused: {change.failure}"
            return Entry("robot", Level.WARN, text)
        text = f"{robot}; another one is being built" if change.building else robot
        return Entry("robot", Level.OK, text)

    def _of_outputs(self) -> Entry:
        outputs = self._outputs
        complaints = [
            f"a subscriber of {qos_mismatch(topic, 'publisher', mismatch)}"
            for topic in outputs.topics
            if (mismatch := self._mismatches.at(topic)) is not None
        ]
        late = outputs.missed_deadlines
        if late:
            complaints.append(f"{late} times later than the deadline that the QoS offers")
        values = {"topic": outputs.topic, "missed deadlines": str(late)}
        level = Level.WARN if complaints else Level.OK
        others = self._others(outputs.topic)
        if others:
            level = Level.ERROR
            complaints.insert(
                0,
                f"{listed('node', others)} publishes on {outputs.topic}, too: readers cannot tell "
                "whose matrices they get; end it, or remap one of the two",
            )
        return Entry("output", level, "; ".join(complaints) or "offered", values)

    def _others(self, topic: str) -> list[str]:
        """Return the full names of other nodes that publish on a topic of this one's."""
        node = self._node
        if node.count_publishers(topic) <= 1:
            return []
        found = [
            f"{each.node_namespace.rstrip('/')}/{each.node_name}"
            for each in node.get_publishers_info_by_topic(topic)
        ]
        # Another one may have the same name.
        if node.get_fully_qualified_name() in found:
            found.remove(node.get_fully_qualified_name())
        return sorted(found)
