"""The consumer of the soak run: takes the matrices of the node and of the echo node."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from delassus_msgs.msg import ContactDynamics, DelassusMatrix
from delassus_msgs_py import (
    DynamicsReader,
    MatrixReader,
    MessageError,
    ReceivedDynamics,
    ReceivedMatrix,
)
from delassus_msgs_py.dynamics import BLOCKS
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.srv import SetParameters
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, ReliabilityPolicy

from .accounting import Arrivals
from .control import Receiver

TOPICS = {Receiver.NODE: "delassus_node/delassus", Receiver.ECHO: "echo/delassus"}
"""Where the matrices of each come from."""

_DEPTH = 5000  # messages: seconds in which the consumer may not be scheduled
# As a controller takes them: a matrix that would have to be sent again comes too late, and whoever
# asks for that costs the node an acknowledgement for each.
_MATRICES = QoSProfile(depth=_DEPTH, reliability=ReliabilityPolicy.BEST_EFFORT)
_DYNAMICS = "delassus_node/dynamics"
_EVERY = 97  # of so many answers one is kept, to be recomputed


class SoakNode(Node):
    """Note what arrives, and keep a matrix now and then.

    Parameters
    ----------
    capacity
        Most messages that can be noted of each.
    rows
        Number of rows of the matrices.
    outputs
        What the node has beside them; with any, an answer is there when these are.
    **node
        Further arguments of `rclpy.node.Node`, such as a context.

    Attributes
    ----------
    arrivals
        What has come from each.
    algorithm
        Algorithm of the latest valid matrix of the node; empty before the first.
    names
        Outputs that are kept of an answer.
    peer
        What the node is compared with.
    malformed
        The first message that contradicts itself, in words, or None.
    """

    def __init__(self, capacity: int, rows: int, outputs: Sequence[str] = (), **node: Any) -> None:
        super().__init__("soak", start_parameter_services=False, enable_rosout=False, **node)
        self.arrivals = {target: Arrivals(capacity) for target in Receiver}
        secondary = tuple(name for name in BLOCKS if name in outputs)
        self.names = secondary or ("G",)
        self.peer = "G alone" if secondary else "echo"
        self._kept: list[npt.NDArray[np.float64]] = []
        self._kept_stamps: list[int] = []
        self._countdown = _EVERY
        self.algorithm = ""
        self.malformed: str | None = None
        self._on_matrix = self._reading(MatrixReader(), self._take_matrix)
        self._on_echo = self._reading(MatrixReader(), self._take_echo)
        on_dynamics = self._reading(DynamicsReader(), self._take_dynamics)
        inputs = [
            (DelassusMatrix, TOPICS[Receiver.NODE], self._on_matrix),
            (DelassusMatrix, TOPICS[Receiver.ECHO], self._on_echo),
            *([(ContactDynamics, _DYNAMICS, on_dynamics)] if secondary else []),
        ]
        self._inputs = [
            self.create_subscription(kind, topic, callback, _MATRICES, raw=True)
            for kind, topic, callback in inputs
        ]
        self._change = self.create_client(ChangeState, "delassus_node/change_state")
        self._set = self.create_client(SetParameters, "delassus_node/set_parameters")

    def connected(self) -> bool:
        """Whether the publishers of both, and the life cycle of the node, were found."""
        found = [self.count_publishers(subscription.topic_name) for subscription in self._inputs]
        services = (self._change, self._set)
        return all(found) and all(client.service_is_ready() for client in services)

    def deactivate(self) -> Any:
        """Ask the node to deactivate; return the future of its answer."""
        transition = Transition(id=Transition.TRANSITION_DEACTIVATE)
        return self._change.call_async(ChangeState.Request(transition=transition))

    def set_algorithm(self, name: str) -> Any:
        """Ask the node to change its algorithm; return the future of its answer."""
        parameter = Parameter("algorithm", value=name).to_parameter_msg()
        return self._set.call_async(SetParameters.Request(parameters=[parameter]))

    def kept(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return the stamps (n,) and the numbers (n, size) of the answers kept."""
        return np.array(self._kept_stamps, dtype=np.int64), np.array(self._kept)

    def _reading(
        self, reader: Any, take: Callable[[Any, int], None]
    ) -> Callable[[bytes], None]:
        """Return a callback that reads messages and passes them on with their arrival [ns]."""

        def callback(data: bytes) -> None:
            try:
                received = reader.read(data)
            except MessageError as error:
                self.malformed = self.malformed or str(error)
                return
            take(received, time.time_ns())

        return callback

    def _take_matrix(self, received: ReceivedMatrix, arrival: int) -> None:
        good = received.validity == DelassusMatrix.VALIDITY_OK
        if good:
            self.algorithm = received.algorithm
        if self.names == ("G",):
            self._note(received, arrival, good, [received.matrix])

    def _take_dynamics(self, received: ReceivedDynamics, arrival: int) -> None:
        good = received.validity == ContactDynamics.VALIDITY_OK
        blocks = [getattr(received, name) for name in self.names] if good else []
        self._note(received, arrival, good, blocks)

    def _take_echo(self, received: ReceivedMatrix, arrival: int) -> None:
        good = received.validity == DelassusMatrix.VALIDITY_OK
        self.arrivals[Receiver.ECHO].note(received.stamp, arrival, received.sequence, good)

    def _note(
        self,
        received: ReceivedMatrix | ReceivedDynamics,
        arrival: int,
        good: bool,
        blocks: list[npt.NDArray[np.float64]],
    ) -> None:
        """Note an answer, and keep its numbers now and then."""
        self.arrivals[Receiver.NODE].note(received.stamp, arrival, received.sequence, good)
        self._countdown -= 1
        if self._countdown <= 0 and good:
            self._countdown = _EVERY
            self._kept.append(np.concatenate([block.ravel() for block in blocks]))
            self._kept_stamps.append(received.stamp)
