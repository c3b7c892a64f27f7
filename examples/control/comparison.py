"""Contact forces that a controller predicts, against those of the plant."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message

from delassus_ros.monitor.pairing import Instants
from delassus_ros.ros.messages import stamp_in

from .node import PREDICTED_FORCE, Array
from .prediction import off_by

_QUEUE = QoSProfile(depth=1000)
_MOST = 1000  # instants whose forces wait for the prediction: 2 s at 500 Hz


class ForceComparison:
    """Compares each predicted force with the simulated force of the next instant.

    A force that is predicted under the torques of an instant acts from that instant on; the plant
    publishes the force at the end of the period.

    Parameters
    ----------
    node : to subscribe with.
    controller : name of the controller's node.
    contacts : names of the contacts.
    """

    def __init__(self, node: Node, controller: str, contacts: Sequence[str]) -> None:
        self._newest = dict.fromkeys(contacts, 0)
        # Serialized messages; "simulated" is the force of the next instant.
        self._instants: dict[str, Instants[str, bytes]] = {
            name: Instants(("simulated", "predicted"), _MOST) for name in contacts
        }
        self._pairs: list[tuple[Array, Array]] = []
        for topic, take in (
            ("plant/contact_force", self._on_simulated),
            (f"{controller}/{PREDICTED_FORCE}", self._on_predicted),
        ):
            for name in contacts:
                node.create_subscription(
                    WrenchStamped, f"{topic}/{name}", partial(take, name), _QUEUE, raw=True
                )

    def _on_simulated(self, name: str, data: bytes) -> None:
        stamp, before = stamp_in(data), self._newest[name]
        if stamp <= before:
            # The plant repeats an instant whose command is late.
            return
        self._newest[name] = stamp
        self._add(name, before, "simulated", data)

    def _on_predicted(self, name: str, data: bytes) -> None:
        self._add(name, stamp_in(data), "predicted", data)

    def _add(self, name: str, stamp: int, part: str, data: bytes) -> None:
        both = self._instants[name].add(stamp, part, data)
        if both is not None:
            self._pairs.append((_force(both["predicted"]), _force(both["simulated"])))

    def figures(self) -> list[str]:
        """Return the figures of the whole run, a line each."""
        if not self._pairs:
            return ["no force predicted by G could be compared with a simulated force"]
        predicted, simulated = np.array(self._pairs).swapaxes(0, 1)
        return [f"{off_by(predicted, simulated)} in {len(predicted)} samples"]


def _force(data: bytes) -> Array:
    f = deserialize_message(data, WrenchStamped).wrench.force
    return np.array([f.x, f.y, f.z])
