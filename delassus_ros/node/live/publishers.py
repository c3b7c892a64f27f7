"""Publishers of the node from configure to cleanup, except diagnostics."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from delassus_msgs.msg import (
    ContactDynamics,
    DelassusMatrix,
    EstimatedContacts,
    Layout,
    Summary,
)
from geometry_msgs.msg import Wrench
from rclpy.lifecycle import LifecycleNode, LifecyclePublisher

from delassus_ros.node.live.pipeline import Pipeline
from delassus_ros.node.outputs.matrix import SummaryOutput
from delassus_ros.ros.arrival import write_stamp
from delassus_ros.ros.qos import OUTPUTS, advertise
from delassus_ros.ros.timers import STEADY
from delassus_ros.ros.topics import LATCHED

_LOOK_PERIOD_S = 0.5
"""Time between checks for subscribers of the summaries [s]."""


class Outputs:
    """The publishers of matrices, secondary outputs, summaries and the layout.

    Parameters
    ----------
    node : the node that publishes.
    warn : takes the kind of a warning and its text.
    layout : meaning of the rows.
    characteristic_length : length of the condition settings [m].
    secondary : whether secondary outputs are published.
    estimates : whether the active contacts are estimated from forces.

    Attributes
    ----------
    summarized : whether the summaries have a subscriber, at most 0.5 s ago.
    topics, topic : full names of all topics, and of the topic of the matrices.
    """

    def __init__(
        self,
        node: LifecycleNode,
        warn: Callable[[str, str], object],
        layout: Layout,
        characteristic_length: float,
        secondary: bool = False,
        estimates: bool = False,
    ) -> None:
        self.summarized = False
        self._open = True
        self._node = node
        self._warn = warn
        self._layout = layout
        self._summary = SummaryOutput(layout, characteristic_length)
        # If one publisher fails, the ones before it are destroyed.
        with ExitStack() as undo:
            self._matrices = advertise(node, DelassusMatrix, "~/delassus", OUTPUTS)
            undo.callback(node.destroy_lifecycle_publisher, self._matrices)
            self._layouts = advertise(node, Layout, "~/layout", LATCHED)
            undo.callback(node.destroy_lifecycle_publisher, self._layouts)
            self._summaries = advertise(node, Summary, "~/summary", OUTPUTS)
            undo.callback(node.destroy_lifecycle_publisher, self._summaries)
            publishers = [self._matrices, self._layouts, self._summaries]
            self._secondary: LifecyclePublisher | None = None
            if secondary:
                self._secondary = advertise(node, ContactDynamics, "~/dynamics", OUTPUTS)
                undo.callback(node.destroy_lifecycle_publisher, self._secondary)
                publishers.append(self._secondary)
            self._contacts: LifecyclePublisher | None = None
            if estimates:
                self._contacts = advertise(node, EstimatedContacts, "~/contacts", OUTPUTS)
                undo.callback(node.destroy_lifecycle_publisher, self._contacts)
                publishers.append(self._contacts)
            self.topics = [str(publisher.topic_name) for publisher in publishers]
            self.topic = self.topics[0]
            # The number of subscribers is read by a timer: reading takes too long for a tick.
            timer = node.create_timer(_LOOK_PERIOD_S, self._look, clock=STEADY)
            undo.callback(node.destroy_timer, timer)
            self._look()
            self._undo = undo.pop_all()

    def close(self) -> None:
        """Destroy the publishers."""
        self._open = False
        self._undo.close()

    def set_layout(self, layout: Layout, characteristic_length: float) -> None:
        """Use another layout or length from now on; the caller publishes a new layout."""
        self._layout = layout
        self._summary = SummaryOutput(layout, characteristic_length)

    def publish_layout(self) -> None:
        """Publish the layout, latched: it holds from now on."""
        self._layout.header.stamp = self._node.get_clock().now().to_msg()
        self._layouts.publish(self._layout)

    def publish(self, matrix: bytes) -> None:
        """Publish a serialized DelassusMatrix."""
        self._send(self._matrices, matrix)

    def publish_secondary(self, pipeline: Pipeline) -> None:
        """Publish the secondary outputs of the matrix that was published last, if any."""
        if self._contacts is not None and pipeline.estimator is not None:
            self._publish_contacts(self._contacts, pipeline)
        if self._secondary is not None:
            message = pipeline.secondary_outputs()
            if message is not None:
                self._send(self._secondary, message)

    def _publish_contacts(self, publisher: LifecyclePublisher, pipeline: Pipeline) -> None:
        estimator = pipeline.estimator
        if estimator is None or not estimator.is_known:
            return
        message = EstimatedContacts(
            names=estimator.contacts.names, status=estimator.status,
            probability=estimator.probability.tolist(),
        )  # fmt: skip
        write_stamp(message.header.stamp, estimator.stamp)
        message.header.frame_id = self._layout.header.frame_id
        for values in estimator.wrenches().tolist():
            wrench = Wrench()
            force, torque = wrench.force, wrench.torque
            force.x, force.y, force.z, torque.x, torque.y, torque.z = values
            message.wrenches.append(wrench)
        self._send(publisher, message)

    def _look(self) -> None:
        # The event may have been in the executor's queue when the publishers were destroyed.
        self.summarized = self._open and self._summaries.get_subscription_count() > 0

    def summarize(self, pipeline: Pipeline, latency: float, overruns: int) -> None:
        """Publish the summary of the last message, if the summaries have a subscriber.

        Parameters
        ----------
        pipeline : pipeline of the message.
        latency : time from the input to the publication [s]; -1 without an input.
        overruns : number of overruns so far.
        """
        if not self.summarized:
            return
        last = pipeline.last
        summary = self._summary.fill(
            divmod(last.stamp_ns, 1_000_000_000), pipeline.sequence, last.validity, last.reasons,
            last.rows, last.examination, (last.compute_time, last.age, latency),
            (pipeline.published, pipeline.refused, pipeline.superseded, overruns),
        )  # fmt: skip
        self._send(self._summaries, summary)

    def _send(self, publisher: LifecyclePublisher, message: bytes | EstimatedContacts) -> None:
        try:
            publisher.publish(message)
        except RuntimeError as error:
            # A signal may shut ROS down at any time; the message is then not needed.
            if self._node.context.ok():
                self._warn("publish", f"a message on {publisher.topic_name} is lost: {error}")
