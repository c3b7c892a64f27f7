"""ROS node that compares the matrices of two nodes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from delassus_msgs.msg import DelassusMatrix
from delassus_msgs_py import MatrixReader, MessageError
from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from std_msgs.msg import Float64

from delassus_ros.monitor.checked import TOLERANCE, checked_matrix_of
from delassus_ros.monitor.pairs import NodeAnswer, Pairs
from delassus_ros.ros.diagnostics import Entry, Level, to_message
from delassus_ros.ros.executor import executing
from delassus_ros.ros.program import Program, report
from delassus_ros.ros.timers import STEADY

_REPORT_PERIOD_S = 1.0  # s between reports
_DEPTH = 2000  # messages: two seconds in which the node may be busy or not scheduled

_HELP = """\
usage: delassus_compare [--ros-args ...]

Compares the Delassus matrices that two nodes publish for the same joint states.

subscribes  first, second     delassus_msgs/DelassusMatrix, remapped to the nodes'
publishes   /diagnostics      diagnostic_msgs/DiagnosticArray, once a second
            ~/relative_error  std_msgs/Float64, for each pair: norm(second - first) / norm(first)
parameters  tolerance         largest relative error that counts as agreement (1e-9)

SIGINT or SIGTERM ends the program with a summary. Exit status: 0 if matrices were compared and
agreed, otherwise 1.

example     delassus_compare --ros-args -r first:=a/delassus -r second:=b/delassus
"""


class CompareNode(Node):
    """Receives the matrices of two nodes, and reports their agreement.

    Parameters
    ----------
    **options
        Further arguments of `rclpy.node.Node`, such as a context.

    Attributes
    ----------
    pairs
        Statistics of the comparison.
    malformed
        Description of the first malformed message, or None.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("delassus_compare", **options)
        tolerance = self.declare_parameter(
            "tolerance",
            TOLERANCE,
            ParameterDescriptor(
                description="Largest relative error (Frobenius) that counts as agreement.",
                floating_point_range=[FloatingPointRange(from_value=0.0, to_value=1.0)],
                read_only=True,
            ),
        ).value
        self.pairs = Pairs(tolerance)
        self.malformed: str | None = None
        self._reported = (0, 0, 0)
        self._errors = self.create_publisher(Float64, "~/relative_error", 10)
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self._readers = (MatrixReader(), MatrixReader())
        for side, topic in enumerate(("first", "second")):
            callback = functools.partial(self._on_matrix, side)
            self.create_subscription(
                DelassusMatrix, topic, callback, QoSProfile(depth=_DEPTH), raw=True
            )
        self.create_timer(_REPORT_PERIOD_S, self.report, clock=STEADY)

    def report(self) -> None:
        """Log and publish the present statistics."""
        pairs = self.pairs
        counts = (pairs.compared, pairs.disagreed, pairs.one_sided)
        compared, disagreed, one_sided = (
            now - before for now, before in zip(counts, self._reported, strict=True)
        )
        self._reported = counts
        if disagreed or one_sided:
            level, message = Level.ERROR, "the two disagree"
        elif not compared:
            level, message = Level.STALE, "nothing to compare"
        else:
            level, message = Level.OK, "the two agree"
        self.get_logger().info(f"{message}; {pairs.words()}")
        values = {
            "first algorithm": pairs.algorithms[0],
            "second algorithm": pairs.algorithms[1],
            "pairs compared": str(pairs.compared),
            "pairs that disagree": str(pairs.disagreed),
            "worst relative error": f"{pairs.worst:.3e}",
            "pairs with one matrix only": str(pairs.one_sided),
            "pairs of different contacts": str(pairs.unlike),
            "first without counterpart": str(pairs.unpaired[0]),
            "second without counterpart": str(pairs.unpaired[1]),
            "first compute time [s]": f"{pairs.compute_time(0):.3e}",
            "second compute time [s]": f"{pairs.compute_time(1):.3e}",
        }
        entry = Entry("agreement", level, message, values)
        stamp = self.get_clock().now().to_msg()
        self._diagnostics.publish(to_message([entry], stamp, self.get_fully_qualified_name()))

    def faults(self) -> list[str]:
        """Return descriptions of faults; empty if all matrices agree."""
        faults = self.pairs.faults()
        if self.malformed:
            faults.append(f"malformed message: {self.malformed}")
        return faults

    def _on_matrix(self, side: int, data: bytes) -> None:
        try:
            received = self._readers[side].read(data)
        except MessageError as error:
            self.malformed = self.malformed or str(error)
            return
        stamp, contacts_stamp = received.stamp, received.contacts_stamp
        if received.validity == DelassusMatrix.VALIDITY_INVALID:
            self.pairs.add(side, NodeAnswer(stamp, contacts_stamp, None))
            return
        sample, seconds = checked_matrix_of(received), received.compute_time
        answer = NodeAnswer(stamp, contacts_stamp, sample, received.algorithm, seconds)
        relative = self.pairs.add(side, answer)
        if relative is not None:
            self._errors.publish(Float64(data=relative))


def _run(node: CompareNode, stopping: Callable[[], bool]) -> int:
    """Compare until `stopping`; return 0 if matrices were compared and agreed, else 1."""
    with executing([node]) as executor:
        while not stopping():
            executor.spin_once(timeout_sec=0.1)
    return report(node.pairs.words(), node.faults())


main = Program("delassus_compare", CompareNode, _run, _HELP)

if __name__ == "__main__":
    main.end_process()
