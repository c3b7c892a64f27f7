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
"""Topics of the matrices by receiver of joint states."""

_DEPTH = 5000  # messages: seconds in which the consumer may not be scheduled
# Best effort, as for a controller: a repeated matrix would come too late, and reliable readers
# cost # the node an acknowledgement per message.
_MATRICES = QoSProfile(depth=_DEPTH, reliability=ReliabilityPolicy.BEST_EFFORT)
_DYNAMICS = "delassus_node/dynamics"
_EVERY = 97  # answers per kept answer, which is recomputed


class SoakNode(Node):
    """Records arrivals, and keeps every :data:`_EVERY`-th answer.

    Parameters
    ----------
    capacity
        Largest number of recorded messages per publisher.
    rows
        Number of rows of the matrices.
    outputs
        Outputs of the node besides matrices; if not empty, an answer is complete with these.
    **node
        Further arguments of `rclpy.node.Node`, such as a context.

    Attributes
    ----------
    arrivals
        Arrivals by receiver of joint states.
    algorithm
        Algorithm of the latest valid matrix of the node; empty before the first.
    names
        Outputs in kept answers.
    peer
        Name of the node that delassus_node is compared with.
    malformed
        Description of the first malformed message, or None.
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
        """Return whether both publishers and the life cycle of the node were found."""
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
        """Return the stamps (n,) and the numbers (n, size) of kept answers."""
        return np.array(self._kept_stamps, dtype=np.int64), np.array(self._kept)

    def _reading(self, reader: Any, take: Callable[[Any, int], None]) -> Callable[[bytes], None]:
        """Return a callback that reads messages and passes on the message and its arrival [ns]."""

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
        """Record an answer, and keep the numbers of every :data:`_EVERY`-th answer."""
        self.arrivals[Receiver.NODE].note(received.stamp, arrival, received.sequence, good)
        self._countdown -= 1
        if self._countdown <= 0 and good:
            self._countdown = _EVERY
            self._kept.append(np.concatenate([block.ravel() for block in blocks]))
            self._kept_stamps.append(received.stamp)
