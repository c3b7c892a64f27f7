"""Runs the node in a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import rclpy
from rclpy.exceptions import ParameterException
from rclpy.executors import ExternalShutdownException
from rclpy.experimental.events_executor import EventsExecutor
from rclpy.utilities import ok, try_shutdown

from delassus_ros.node.delassus_node import DelassusNode


def main(args: Sequence[str] | None = None) -> int:
    """Run the node until it is told to stop; return the exit status."""
    rclpy.init(args=None if args is None else list(args))
    try:
        _run(DelassusNode())
    except (KeyboardInterrupt, ExternalShutdownException):
        return 0
    except ParameterException as error:
        print(f"delassus_node: {error}", file=sys.stderr)
        return 1
    except RuntimeError:
        # A signal shuts ROS down also in the middle of a callback, which then may fail in many
        # ways. All other errors are real ones.
        if ok():
            raise
    finally:
        try_shutdown()
    return 0


def _run(node: DelassusNode) -> None:
    """Run the node until ROS is shut down; then destroy it."""
    executor = EventsExecutor()
    try:
        executor.add_node(node)
        node.start()
        # Not spin(): that of the events executor does not return when the process is told to
        # stop.
        while ok():
            executor.spin_once(timeout_sec=0.25)
    finally:
        # In this order: an events executor that is destroyed with a node still in it aborts.
        executor.shutdown()
        node.destroy_node()


if __name__ == "__main__":
    sys.exit(main())
