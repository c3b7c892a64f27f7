"""Requests to change the state of the node that its state does not allow."""

from __future__ import annotations

from typing import Any

from rclpy.lifecycle import LifecycleNode

from delassus_ros.node.joint_names import LONGEST
from delassus_ros.node.loop_log import LoopLog
from delassus_ros.node.throttle import Throttle


def refuse_impossible_changes(node: LifecycleNode) -> None:
    """Answer requests for transitions that the present state lacks; say which ones it has.

    rclpy raises where the executor spins, so that whoever asked waits for ever.
    """
    service = node._service_change_state
    change = service.callback
    warn = Throttle(LoopLog(node.get_logger()).warning)

    def answer(request: Any, response: Any) -> Any:
        machine = node._state_machine
        possible = {number: label for number, label, *_ in machine.available_transitions}
        wanted = request.transition
        # A label goes before the number, as in rclpy.
        known = wanted.label in possible.values() if wanted.label else wanted.id in possible
        if known:
            return change(request, response)
        warn(
            "transition",
            f"refused the transition {wanted.label[:LONGEST] or wanted.id!r}: "
            f"in the state {machine.current_state[1]!r} there are: {', '.join(possible.values())}",
        )
        response.success = False
        return response

    service.callback = answer
