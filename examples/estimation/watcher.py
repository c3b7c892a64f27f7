"""Compares estimates with the simulator's state at the same instant."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from control.floating import StandingWatcher
from control.kinematics import Array, Kinematics, State
from delassus_msgs.msg import Estimate
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from delassus.recent import Recent
from delassus_ros.ros.messages import stamp_in

_QUEUE = QoSProfile(depth=1000)
_EVERY = 5
"""Of so many estimates one is looked at: the watcher must not slow down what it watches."""
_KEPT = 400
"""Messages of a topic that wait for their estimate."""
_SETTLED = 0.5
"""Time until the robot has come to rest on its feet [s]."""
_LIMIT = 0.2


class EstimateWatcher(StandingWatcher):
    """Records errors of estimated foot forces, also in units of their deviations.

    Parameters
    ----------
    feet : names of contacts, and their frames, in the order of the estimator.
    lowest, upright : see :class:`control.floating.StandingWatcher`.
    save : file for the compared data, NumPy's .npz; None for no file.

    Attributes
    ----------
    compared : per estimate its stamp, by foot errors and true forces (3 each), by foot squared
        errors in deviations, and the force on the trunk.
    """

    def __init__(
        self, feet: dict[str, str], lowest: float, upright: float, save: Path | None
    ) -> None:
        super().__init__(
            "estimate_watcher", lowest, upright, what="estimates", kind=Estimate,
            chain=("joint_states", "delassus_estimator/estimate"),
        )  # fmt: skip
        self._feet, self._save = feet, save
        self._kinematics: Kinematics | None = None
        # By the bytes of the stamp.
        self._joints: Recent[bytes, bytes] = Recent(_KEPT)
        self._bases: Recent[bytes, bytes] = Recent(_KEPT)
        self._truth: list[Recent[bytes, bytes]] = [Recent(_KEPT) for _ in feet]
        self.compared: list[Array] = []
        self._invalid = self._estimates = 0
        self._times: list[float] = []
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.create_subscription(String, "robot_description", self._on_description, latched)
        sources = [(Odometry, "odometry", self._bases)]
        for name, truth in zip(feet, self._truth, strict=True):
            sources.append((WrenchStamped, f"plant/contact_force/{name}", truth))
        for kind, topic, kept in sources:
            # In their bytes: most are never looked at.
            keep = partial(self._keep, kept)
            self.create_subscription(kind, topic, keep, _QUEUE, raw=True)

    def _on_description(self, message: String) -> None:
        self._urdf = message.data

    def _keep(self, kept: Recent[bytes, bytes], data: bytes) -> None:
        # By the stamp, which follows the encapsulation.
        kept.put(data[4:12], data)

    def on_joints(self, data: bytes, sent: int, count: int) -> None:
        """Note a joint state, and keep it."""
        super().on_joints(data, sent, count)
        self._keep(self._joints, data)

    def on_answer(self, data: bytes, sent: int, count: int) -> None:
        """Note an estimate, and hold it against the truth now and then."""
        self.answers.answer(stamp_in(data), sent)
        self._estimates += 1
        if self._estimates % _EVERY or self.answers.seconds < _SETTLED:
            return
        stamp, sources = data[4:12], (self._joints, self._bases, *self._truth)
        if all(stamp in each for each in sources):
            self._compare(deserialize_message(data, Estimate), *(each[stamp] for each in sources))

    def _compare(self, message: Estimate, joints: bytes, base: bytes, *truth: bytes) -> None:
        if message.validity == Estimate.VALIDITY_INVALID:
            self._invalid += 1
            return
        self._times.append(message.compute_time)
        axes = self._axes(joints, base)
        off, forces = np.zeros((2, len(truth), 3))
        squares = np.zeros(len(truth))
        n = len(message.frames)
        covariances = np.array(message.wrench_covariances).reshape(n, 6, 6)[:, :3, :3]
        for k, R in enumerate(axes):
            wrench = deserialize_message(truth[k], WrenchStamped).wrench
            forces[k] = R.T @ _vector(wrench.force)
            off[k] = _vector(message.wrenches[k].force) - forces[k]
            squares[k] = off[k] @ np.linalg.solve(covariances[k], off[k])
        stamp = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec
        trunk = _vector(message.wrenches[-1].force)
        self.compared.append(
            np.concatenate([[stamp], off.ravel(), forces.ravel(), squares, trunk])
        )

    def _axes(self, joints: bytes, base: bytes) -> Sequence[Array]:
        """Return rotations of the feet's frames in the world."""
        state = deserialize_message(joints, JointState)
        odometry = deserialize_message(base, Odometry)
        if self._kinematics is None:
            self._kinematics = Kinematics(self._urdf, [*self._feet.values()], state.name)
        o = odometry.pose.pose.orientation
        q = np.array(state.position)
        self._kinematics.update(
            State(q, 0.0 * q, np.zeros(3), np.array([o.x, o.y, o.z, o.w]), np.zeros(6), ())
        )
        return [self._kinematics.data.oMf[i].rotation.copy() for i in self._kinematics.frames]

    @property
    def _shares(self) -> tuple[float, float]:
        """Error over force, both rms, and mean squared error over its variance."""
        rows, n = np.array(self.compared), len(self._feet)
        off, forces = rows[:, 1 : 1 + 3 * n], rows[:, 1 + 3 * n : 1 + 6 * n]
        share = np.sqrt((off**2).mean() / (forces**2).mean())
        return float(share), float(rows[:, 1 + 6 * n : 1 + 7 * n].mean() / 3.0)

    def line(self) -> str:
        """Return where it is, and how well forces are told."""
        told = f", forces told to {100 * self._shares[0]:.1f} %" if self.compared else ""
        return super().line() + told

    def figures(self) -> list[str]:
        """Return the figures of the whole run."""
        found = super().figures()
        if self.compared:
            share, squares = self._shares
            times = 1e6 * np.quantile(self._times, [0.5, 0.99])
            found.append(
                f"forces of the feet {100 * share:.1f} % off (rms), {squares:.2f} of their "
                f"variance; {times[0]:.0f} us each (99 %: {times[1]:.0f}); {self._invalid} INVALID"
            )
        if self._save and self.compared:
            np.savez(self._save, rows=np.array(self.compared), feet=list(self._feet))
        return found

    def faults(self) -> list[str]:
        """Say so if it fell, or if forces were told badly or not at all."""
        found = super().faults()
        if not self.compared:
            found.append("no estimate could be compared")
        elif self._shares[0] > _LIMIT:
            found.append(
                f"forces are {100 * self._shares[0]:.0f} % off; expected {100 * _LIMIT:.0f} %"
            )
        return found


def _vector(v: Any) -> Array:
    return np.array([v.x, v.y, v.z])
