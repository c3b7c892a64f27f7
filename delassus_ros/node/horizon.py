"""Matrices of predicted states: a service and a topic that take a horizon in one message."""

from __future__ import annotations

import traceback
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
from delassus_msgs.msg import ActiveContacts, DelassusMatrix, PredictedMatrices, PredictedStates
from delassus_msgs.srv import ComputeHorizon
from geometry_msgs.msg import Quaternion, Twist
from rclpy.lifecycle import LifecycleNode

from delassus.errors import DelassusError, InputError, unknown
from delassus.model.spatial import Array
from delassus_ros.node.dynamics import blocks_of
from delassus_ros.node.on_demand import Answer, Motion
from delassus_ros.node.services import ComputeService, answered
from delassus_ros.ros.arrival import LATEST_S, TIMES
from delassus_ros.ros.topics import LATEST

MOST_STATES = 1000
"""Most states in one message: some tenths of a second, in which joint states wait."""
STATES = "predicted_states"
_TOUCHING = (ActiveContacts.ACTIVE, ActiveContacts.SLIPPING)
_BLOCKS = {"a0": "free_acceleration", "Lambda": "inertia"}
"""Field of the message by output."""


class Horizon:
    """``~/compute_horizon`` and the topic ``predicted_states``, from configure to cleanup.

    Each state is computed as ``~/compute`` computes it; a state that cannot be computed leaves the
    remaining ones as they are.
    """

    def __init__(
        self,
        node: LifecycleNode,
        warn: Callable[[str, str], object],
        compute: ComputeService,
    ) -> None:
        self._node, self._warn, self._compute = node, warn, compute
        answer = answered("horizon", warn, self._answer)
        self._service = node.create_service(ComputeHorizon, "~/compute_horizon", answer)
        self._publisher = node.create_publisher(PredictedMatrices, "~/predicted_matrices", 1)
        self._subscription = node.create_subscription(
            PredictedStates, STATES, self._on_states, LATEST
        )

    def close(self) -> None:
        """End service and topics."""
        self._node.destroy_subscription(self._subscription)
        self._node.destroy_publisher(self._publisher)
        self._node.destroy_service(self._service)

    def _answer(self, request: Any, response: Any) -> None:
        response.matrices = self.compute(request.states)

    def _on_states(self, message: PredictedStates) -> None:
        try:
            self._publisher.publish(self.compute(message))
        except DelassusError as error:
            self._warn("horizon", f"{STATES}: {error}; there is no answer")
        except Exception:
            self._warn("fault of horizon", f"a fault of this program:\n{traceback.format_exc()}")

    def compute(self, states: PredictedStates) -> PredictedMatrices:
        """Return the matrices of all states.

        Raises
        ------
        InputError
            If arrays do not fit together, there are too many states, times are not finite or
            descend, or a contact is unknown or listed twice; names the field.
        """
        computation = self._compute.computation
        count = len(states.times)
        rows = _Rows(states, count, computation.problem.contacts.names)
        outputs = [name for name in _BLOCKS if name in computation.secondary]
        found = PredictedMatrices(
            header=states.header,
            times=states.times,
            layout_id=computation.layout.layout_id,
            algorithm=computation.tick.algorithm,
        )
        blocks: dict[str, list[Array]] = {"matrix": [], **{_BLOCKS[n]: [] for n in outputs}}
        validity, reasons, faults, sizes = [], [], [], []
        for k in range(count):
            try:
                answer = self._one(rows, k)
            except DelassusError as error:
                validity.append(DelassusMatrix.VALIDITY_INVALID)
                reasons.append(0)
                faults.append(str(error))
                sizes.append(0)
                continue
            solution = answer.solution
            blocks["matrix"].append(solution.matrix)
            length = self._compute.condition.characteristic_length
            values = blocks_of(solution, solution.matrix, outputs, length)
            for name in outputs:
                blocks[_BLOCKS[name]].append(values[name])
            validity.append(int(answer.findings.validity))
            reasons.append(int(answer.findings.reasons))
            faults.append("")
            sizes.append(len(solution.matrix))
        found.validity, found.reasons, found.faults, found.rows = validity, reasons, faults, sizes
        for name, arrays in blocks.items():
            flat = [np.ascontiguousarray(block).ravel() for block in arrays]
            data = np.concatenate(flat).tobytes() if flat else b""
            setattr(found, name, array("d", data))
        return found

    def _one(self, rows: _Rows, k: int) -> Answer:
        """Return the matrix of state k."""
        motion = Motion.of(
            rows.of(rows.velocities, k), rows.of(rows.torques, k), rows.twists[k],
            rows.orientations[k],
        )  # fmt: skip
        compute = self._compute.answering().compute
        return compute(rows.joints, rows.positions[k], rows.active(k), motion)


class _Rows:
    """The arrays of a message, checked and by state."""

    def __init__(self, states: PredictedStates, count: int, known: tuple[str, ...]) -> None:
        if count > MOST_STATES:
            raise InputError(f"there are {count} states; expected at most {MOST_STATES}")
        self.joints = list(states.joints)
        self.contacts = list(states.contacts)
        for name in self.contacts:
            if name not in known:
                raise InputError(unknown("contact", name, known))
            if self.contacts.count(name) > 1:
                raise InputError(f"contact {name!r} is listed more than once")
        times = states.times
        wrong = next((time for time in times if not abs(time) < LATEST_S), None)
        if wrong is not None:
            raise InputError(f"times has {wrong:g} s; {TIMES}")
        for k, (before, after) in enumerate(zip(times, times[1:], strict=False), 1):
            if after < before:
                raise InputError(
                    f"times: state {k} at {after:.6g} s is before the state at {before:.6g} s; "
                    "expected times that do not descend"
                )
        joints = len(self.joints)
        self.positions = _array("positions", states.positions, count, joints)
        self.velocities = _optional("joint_velocities", states.joint_velocities, count, joints)
        self.torques = _optional("joint_torques", states.joint_torques, count, joints)
        self._status = _array("status", states.status, count, len(self.contacts)).astype(int)
        self.orientations = _one_per_state(
            "base_orientations", states.base_orientations, count, Quaternion
        )
        self.twists = _one_per_state("base_twists", states.base_twists, count, Twist)

    @staticmethod
    def of(values: Array | None, k: int) -> Any:
        """Return the entries of state k; none without values."""
        return () if values is None else values[k]

    def active(self, k: int) -> list[str]:
        """Return the contacts that touch in state k.

        InputError is raised if the status of a contact is UNKNOWN, or no status.
        """
        touching = []
        for name, status in zip(self.contacts, self._status[k].tolist(), strict=True):
            if status == ActiveContacts.UNKNOWN:
                raise InputError(f"contact {name!r} is UNKNOWN in this state")
            if status not in (ActiveContacts.INACTIVE, *_TOUCHING):
                raise InputError(f"contact {name!r} has status {status}; expected 0 to 3")
            if status in _TOUCHING:
                touching.append(name)
        return touching


def _array(what: str, values: Any, count: int, size: int) -> Array:
    """Return values as (count, size)."""
    found = np.asarray(values, dtype=np.float64)
    if found.size != count * size:
        raise InputError(
            f"{what} has {found.size} entries; expected {count * size}, {size} for each of "
            f"{count} states"
        )
    return found.reshape(count, size)


def _optional(what: str, values: Any, count: int, size: int) -> Array | None:
    return _array(what, values, count, size) if len(values) else None


def _one_per_state(what: str, values: Any, count: int, kind: type) -> list[Any]:
    """Return a message per state; default messages if there are none."""
    if len(values) not in (0, count):
        raise InputError(f"{what} has {len(values)} entries; expected {count} or none")
    return list(values) or [kind()] * count
