"""ROS node that compares published Delassus matrices with those of a simulator or a second node.

With a simulator the node shows a live table on a terminal, otherwise a line per second; with a
second node it logs a line per second and publishes diagnostics.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from delassus_msgs.msg import ActiveContacts, DelassusMatrix
from delassus_msgs_py import MatrixReader, MessageError, active_names
from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.subscription import Subscription

from delassus.errors import InputError, unknown
from delassus_ros.inputs.findings import Reason, names_of
from delassus_ros.monitor.agreement import Agreement
from delassus_ros.monitor.comparison import TOLERANCE, nanoseconds
from delassus_ros.monitor.pair_report import PairReport
from delassus_ros.monitor.view import View, describe_agreement, milliseconds
from delassus_ros.ros.executor import executing
from delassus_ros.ros.program import Program, report

_POLL = 0.002  # s between looks at the queues
_DEPTH = 2000  # messages: two seconds in which the monitor may be busy or not scheduled

REFERENCES = ("simulator", "node")
"""Values of the parameter ``reference_source``."""

_HELP = """\
usage: delassus_monitor [--ros-args ...]

Compares each matrix of delassus_node with the matrix of the simulator, and shows rate, latency,
condition and agreement; or with the matrix of a second node, as delassus_compare does.

subscribes  delassus         delassus_msgs/DelassusMatrix, remapped to the node's
            reference        delassus_msgs/DelassusMatrix, remapped to the simulator's
            active_contacts  delassus_msgs/ActiveContacts
parameters  reference_source simulator, whose matrices have all contacts, or node (simulator)
            tolerance        largest relative error that counts as agreement (1e-9)

SIGINT or SIGTERM ends the program with a summary. Exit status: 0 if matrices came and agreed,
otherwise 1.

example     delassus_monitor --ros-args -r delassus:=delassus_node/delassus \\
                -r reference:=simulator/reference
"""


class MonitorNode(Node):
    """Computes statistics of received matrices, references and sets of contacts.

    With a simulator the node receives messages by `poll` and belongs to no executor: so messages
    have the time at which the middleware received them, and the time to draw a view does not count
    as latency. With a second node an executor spins it. The program delassus_compare alone logs to
    ``/rosout`` and offers parameter services.

    Parameters
    ----------
    remap
        Topic names by the names ``delassus``, ``reference``, ``active_contacts``.

    Attributes
    ----------
    pairs
        Comparison with a second node, or None.
    """

    def __init__(
        self,
        remap: dict[str, str] | None = None,
        name: str = "delassus_monitor",
        source: str = REFERENCES[0],
        **node: Any,
    ) -> None:
        spun = source == "node"
        super().__init__(name, start_parameter_services=spun, enable_rosout=spun, **node)
        described = partial(ParameterDescriptor, read_only=True)
        source = self.declare_parameter(
            "reference_source", source, described(description="simulator or node.")
        ).value
        if source not in REFERENCES:
            raise InputError(unknown("reference_source", source, REFERENCES))
        tolerance = self.declare_parameter(
            "tolerance",
            TOLERANCE,
            described(
                description="Largest relative error (Frobenius) that counts as agreement.",
                floating_point_range=[FloatingPointRange(from_value=0.0, to_value=1.0)],
            ),
        ).value
        self.agreement = Agreement(tolerance)
        self.pairs = PairReport(self, tolerance) if source == "node" else None
        self.malformed: str | None = None
        self._simulated: bool = self.get_parameter("use_sim_time").value
        names = remap or {}
        many = QoSProfile(depth=_DEPTH)
        latched = QoSProfile(depth=_DEPTH, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        # In this order, so that a matrix follows its reference and its set.
        sources: list[tuple[str, type, QoSProfile, Callable[[Any, int], None]]] = [
            ("active_contacts", ActiveContacts, latched, self._on_contacts),
            ("reference", DelassusMatrix, many, self._on_reference),
            ("delassus", DelassusMatrix, many, self._on_matrix),
        ]
        if self.pairs is not None:
            # The first node tells which contacts are active.
            del sources[0]
        self._references, self._matrices = MatrixReader(), MatrixReader()
        self._sources: list[tuple[Subscription, Callable[[Any, int], None]]] = []
        for topic, kind, qos, handler in sources:
            name = names.get(topic, topic)
            # Matrices stay serialized: deserializing would take most of the monitor's time.
            callback = _ignore if self.pairs is None else partial(self._receive, handler)
            subscription = self.create_subscription(
                kind, name, callback, qos, raw=kind is DelassusMatrix
            )
            self._sources.append((subscription, handler))

    def poll(self) -> None:
        """Take and process all messages that have arrived."""
        for subscription, handler in self._sources:
            with subscription.handle:
                while True:
                    taken = subscription.handle.take_message(
                        subscription.msg_type, subscription.raw
                    )
                    if taken is None:
                        break
                    message, info = taken
                    # Middlewares without arrival times set them to zero.
                    arrival = info["received_timestamp"] or self.get_clock().now().nanoseconds
                    self._receive(handler, message, arrival)

    def _receive(
        self, handler: Callable[[Any, int], None], message: object, arrival: int = 0
    ) -> None:
        try:
            handler(message, arrival)
        except MessageError as error:
            self.malformed = self.malformed or str(error)

    def faults(self) -> list[str]:
        """Return descriptions of faults of the run; empty without faults."""
        faults = (self.agreement if self.pairs is None else self.pairs).faults()
        if self.malformed:
            faults.append(f"malformed message: {self.malformed}")
        if self.pairs is None and self.agreement.matrices == 0:
            faults += self._silence()
        return faults

    def summary(self) -> str:
        """Return the figures of the whole run in one line."""
        if self.pairs is not None:
            return self.pairs.words()
        agreement = self.agreement
        latency = agreement.latency()
        sizes = ", ".join(f"{m} ({n} times)" for m, n in sorted(agreement.sizes.items()))
        return (
            f"{agreement.matrices} matrices, of m = {sizes or '-'}; "
            f"latency p50 {milliseconds(latency.p50)}, p99 {milliseconds(latency.p99)}; "
            f"{describe_agreement(agreement)}; {agreement.unanswered} joint states unanswered, "
            f"{agreement.skipped} skipped; {self._invalid()}"
        )

    def _invalid(self) -> str:
        """Return the number of INVALID messages, with their reasons."""
        if not self.agreement.invalid:
            return "0 INVALID"
        found = self.agreement.invalid.items()
        parts = [f"{names_of(Reason(reasons))}: {n}" for reasons, n in found]
        return f"{self.agreement.invalid.total()} INVALID ({', '.join(parts)})"

    def _silence(self) -> list[str]:
        """Return descriptions of the topics' publishers, for a run without a matrix."""
        seen = [
            f"{self.count_publishers(subscription.topic_name)} on {subscription.topic_name}"
            for subscription, _ in self._sources
        ]
        return [f"publishers: {', '.join(seen)}", self._invalid()]

    def _on_contacts(self, message: ActiveContacts, _arrival: int) -> None:
        self.agreement.add_contacts(nanoseconds(message.header.stamp), active_names(message))

    def _on_reference(self, data: bytes, _arrival: int) -> None:
        received = self._references.read(data)
        if self.pairs is not None:
            self.pairs.receive(0, received)
        else:
            self.agreement.add_reference(received)

    def _on_matrix(self, data: bytes, arrival: int) -> None:
        received = self._matrices.read(data)
        if self.pairs is not None:
            self.pairs.receive(1, received)
            return
        # Arrivals are in system time, which differs from the time of simulated stamps.
        latency = math.nan if self._simulated else 1e-9 * (arrival - received.stamp)
        self.agreement.add(received, latency)


def _ignore(_message: object) -> None:
    """Ignore a message: the required callback of a subscription that is polled."""


def watch(node: MonitorNode, proceed: Callable[[], bool]) -> None:
    """Poll and draw.

    Parameters
    ----------
    proceed
        Returns whether to continue; called some hundred times per second.
    """
    with View(node.agreement) as view:
        while proceed():
            node.poll()
            view.update()
            time.sleep(_POLL)


def run(node: MonitorNode, stopping: Callable[[], bool]) -> int:
    """Watch until `stopping`; return 0 if matrices arrived and agreed, else 1."""
    if node.pairs is None:
        watch(node, lambda: not stopping())
    else:
        with executing([node]) as executor:
            while not stopping():
                executor.spin_once(timeout_sec=0.1)
    return report(node.summary(), node.faults())


# Without a terminal the output are plain lines.
main = Program("delassus_monitor", MonitorNode, run, _HELP, terminal_needs=("rich",))

if __name__ == "__main__":
    main.end_process()
