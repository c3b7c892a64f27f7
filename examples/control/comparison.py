"""Contact forces that a controller predicts, against those of the plant."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import partial

import numpy as np
from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message

from delassus_ros.ros.messages import stamp_in

from .node import PREDICTED_FORCE, Array
from .prediction import off_by

_QUEUE = QoSProfile(depth=1000)
_KEPT = 1000  # instants whose simulated forces wait for a prediction: 2 s at 500 Hz


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
        # By contact and instant: serialized forces of the next instant, and predictions for it.
        self._next: dict[str, OrderedDict[int, bytes]] = {name: OrderedDict() for name in contacts}
        self._waiting: dict[tuple[str, int], bytes] = {}
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
        kept = self._next[name]
        kept[before] = data
        if len(kept) > _KEPT:
            kept.popitem(last=False)

    def _on_predicted(self, name: str, data: bytes) -> None:
        # Topics arrive in any order: the pair is made when the next prediction arrives.
        self._compare()
        self._waiting[name, stamp_in(data)] = data

    def _compare(self) -> None:
        for (name, stamp), data in list(self._waiting.items()):
            simulated = self._next[name].get(stamp)
            if simulated is not None:
                self._pairs.append((_force(data), _force(simulated)))
            if simulated is not None or stamp < min(self._next[name], default=stamp):
                del self._waiting[name, stamp]

    def figures(self) -> list[str]:
        """Return the figures of the whole run, a line each."""
        self._compare()
        if not self._pairs:
            return ["no force predicted by G could be compared with a simulated force"]
        predicted, simulated = np.array(self._pairs).swapaxes(0, 1)
        return [f"{off_by(predicted, simulated)} in {len(predicted)} samples"]


def _force(data: bytes) -> Array:
    f = deserialize_message(data, WrenchStamped).wrench.force
    return np.array([f.x, f.y, f.z])
