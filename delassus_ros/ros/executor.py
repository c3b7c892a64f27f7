"""The executor of a node's program, and the loop that runs it until it is time to stop."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node

from delassus_ros.ros.logs import Throttle
from delassus_ros.ros.rclpy_nodes import EventlessNode

# Work-around (late event): https://github.com/ros2/rclpy/pull/1150 mended the same defect of the
# remaining executors; seen with the events executor of rclpy 7.1.6.
InvalidHandle = rclpy_implementation.InvalidHandle
"""Raised for an event in the executor's queue whose entity, e.g. a service, was destroyed."""


def make_executor(node: Node) -> Executor:
    """Return the events executor, or SingleThreadedExecutor if rclpy lacks it."""
    try:
        from rclpy.experimental.events_executor import EventsExecutor
    except ImportError:
        node.get_logger().warning(
            "this rclpy has no events executor; SingleThreadedExecutor is used, with more latency"
        )
        return SingleThreadedExecutor(context=node.context)
    return EventsExecutor(context=node.context)


@contextmanager
def executing(nodes: Sequence[Node]) -> Iterator[Executor]:
    """Provide an executor with some nodes of one context; destroy both after the block."""
    executor = make_executor(nodes[0])
    try:
        for node in nodes:
            executor.add_node(node)
        yield executor
    finally:
        # In this order: with rclpy 7.1.6 an events executor that is destroyed with a node in it
        # has aborted the process.
        executor.shutdown()
        for node in nodes:
            node.destroy_node()


def spin(nodes: Sequence[Node], stopping: Callable[[], bool]) -> None:
    """Run nodes in the calling thread until a stop is requested; then destroy them.

    Nodes of this package configure and activate themselves if their parameter ``autostart`` is
    true. A fault in a callback is logged, and ends neither the loop nor a node.

    Parameters
    ----------
    nodes : at least one node, all of one context.
    stopping : returns whether to stop; called several times per second. The loop also ends with
        the context.
    """
    log = nodes[0].get_logger()
    say = Throttle(lambda text: log.error(text))
    with executing(nodes) as executor:
        for node in nodes:
            if isinstance(node, EventlessNode):
                node.stopping = stopping
                node.start()
        # Not spin(), which would not call stopping().
        while nodes[0].context.ok() and not stopping():
            try:
                executor.spin_once(timeout_sec=0.25)
            except InvalidHandle:
                log.debug("an event is left out: a transition has destroyed what it is for")
            except Exception:
                # Callbacks that do not handle faults themselves: diagnostics, parameters.
                say("fault", f"a fault of this program, which goes on:\n{traceback.format_exc()}")


def run_until_stopped(node: Node, stopping: Callable[[], bool]) -> int:
    """Run one node with :func:`spin`; return the exit status 0."""
    spin([node], stopping)
    return 0
