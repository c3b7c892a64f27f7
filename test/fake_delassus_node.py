"""A stand-in for delassus_node: passes the simulator's reference on, with faults on request."""

from __future__ import annotations

import argparse
import sys

import numpy as np
import rclpy
from delassus_msgs.msg import ActiveContacts, DelassusMatrix
from delassus_msgs_py import active_names, matrix_to_numpy, numpy_to_matrix
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile


class FakeNode(Node):
    """Answer every reference with the matrix of the active contacts."""

    def __init__(self, fault: str, after: int) -> None:
        super().__init__("delassus_node")
        self.fault = fault
        self.after = after
        self.count = 0
        self.lost = 0
        self.contacts: ActiveContacts | None = None
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.publisher = self.create_publisher(DelassusMatrix, "~/delassus", 10)
        self.create_subscription(ActiveContacts, "active_contacts", self.on_contacts, latched)
        self.create_subscription(DelassusMatrix, "simulator/reference", self.on_reference, 10)

    def on_contacts(self, message: ActiveContacts) -> None:
        """Keep the set."""
        self.contacts = message

    def on_reference(self, reference: DelassusMatrix) -> None:
        """Publish the answer, with a fault if one is requested."""
        self.count += 1
        spoil = self.fault if self.count > self.after else ""
        if spoil == "die":
            print("the fake node dies on purpose", file=sys.stderr, flush=True)
            raise SystemExit(3)
        if spoil == "silent":
            return
        # More than a busy machine's middleware loses of the references, by which it is noticed.
        if spoil == "lossy" and self.count % 5 == 0:
            self.lost += 1
            return
        answer = DelassusMatrix()
        answer.header = reference.header
        # A gap where a reference did not arrive, as a node that counts superseded ones has.
        answer.sequence = reference.sequence - self.lost
        if self.contacts is None or spoil == "invalid":
            answer.reasons = DelassusMatrix.REASON_NOT_CONFIGURED
            self.publisher.publish(answer)
            return
        answer.validity = DelassusMatrix.VALIDITY_OK
        answer.contacts_stamp = self.contacts.header.stamp
        active = active_names(self.contacts)[: 1 if spoil == "wrong-set" else None]
        rows = [3 * reference.contacts.index(name) + k for name in active for k in range(3)]
        answer.contacts = list(active)
        answer.kinds = ["point"] * len(active)
        answer.status = [2] * len(active)
        answer.row_offsets = [3 * i for i in range(len(active) + 1)]
        matrix = np.array(matrix_to_numpy(reference)[np.ix_(rows, rows)])
        if spoil == "wrong":
            matrix *= 1.0 + 1e-8
        numpy_to_matrix(answer, matrix)
        self.publisher.publish(answer)


def main() -> int:
    """Run until told to stop."""
    parser = argparse.ArgumentParser()
    faults = ("", "die", "silent", "invalid", "wrong", "wrong-set", "lossy")
    parser.add_argument("--fault", choices=faults, default="")
    parser.add_argument("--after", type=int, default=0)
    options = parser.parse_args()
    rclpy.init(args=[])
    executor = SingleThreadedExecutor()
    executor.add_node(FakeNode(options.fault, options.after))
    try:
        while rclpy.ok():
            executor.spin_once(timeout_sec=0.25)
    except (KeyboardInterrupt, ExternalShutdownException):
        return 0
    finally:
        rclpy.try_shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
