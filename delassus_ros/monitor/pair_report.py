"""The comparison of two nodes as ROS messages: errors of pairs, and diagnostics once a second."""

from __future__ import annotations

from delassus_msgs_py import ReceivedMatrix
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from std_msgs.msg import Float64

from delassus_ros.monitor.pairs import Pairs
from delassus_ros.ros.diagnostics import Entry, to_message
from delassus_ros.ros.health import Level
from delassus_ros.ros.timers import STEADY

_REPORT_PERIOD_S = 1.0


class PairReport(Pairs):
    """Compares received matrices of two nodes, and reports the comparison.

    Parameters
    ----------
    tolerance : largest relative error that counts as agreement.
    """

    def __init__(self, node: Node, tolerance: float) -> None:
        super().__init__(tolerance)
        self._node = node
        self._reported = (0, 0, 0)
        self._errors = node.create_publisher(Float64, "~/relative_error", 10)
        self._diagnostics = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
        node.create_timer(_REPORT_PERIOD_S, self.report, clock=STEADY)

    def receive(self, side: int, received: ReceivedMatrix) -> None:
        """Add a message of the first (0) or the second (1) node."""
        relative = self.add(side, received)
        if relative is not None:
            self._errors.publish(Float64(data=relative))

    def report(self) -> None:
        """Log and publish the present statistics."""
        counts = (self.compared, self.disagreed, self.one_sided)
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
        node = self._node
        node.get_logger().info(f"{message}; {self.words()}")
        entry = Entry("agreement", level, message, self.values())
        stamp = node.get_clock().now().to_msg()
        self._diagnostics.publish(to_message([entry], stamp, node.get_fully_qualified_name()))
