"""Entry points of the commands, which check required packages before a program is imported."""

from __future__ import annotations

import signal
import sys
from functools import partial
from importlib import import_module

from delassus.programs.entry import command
from delassus.programs.needs import missing
from delassus.programs.stopping import StopRequest
from delassus.programs.terminal import discard_output
from delassus_ros.ros.needs import ROS, missing_ros


def _node(program: str, module: str) -> int:
    """Run the ``main`` of a module with a ROS node; return the exit status."""
    fault = missing_ros(program, *ROS) or missing(program, "threadpoolctl")
    if fault is not None:
        print(fault, file=sys.stderr)
        return 1
    try:
        try:
            run = import_module(module).main
        except ModuleNotFoundError as error:
            # A further package of ROS, such as sensor_msgs, of which a distribution has all.
            fault = missing_ros(program, str(error.name).partition(".")[0])
            if fault is None:
                raise
            print(fault, file=sys.stderr)
            return 1
        # Signals may come several times, from the terminal, ros2 launch and a supervisor, also
        # while the interpreter shuts down and the program does not handle them any more.
        with StopRequest(last=True):
            status: int = run()
        return status
    except KeyboardInterrupt:
        # While modules are imported.
        return 128 + signal.SIGINT
    except BrokenPipeError:
        discard_output()
        return 0


delassus = partial(command, "delassus_ros.verbs.main")
adapter = partial(_node, "delassus_adapter", "delassus_ros.adapter.node")
compare = partial(_node, "delassus_compare", "delassus_ros.monitor.compare_node")
estimator = partial(_node, "delassus_estimator", "delassus_ros.estimator.node")
markers = partial(_node, "delassus_markers", "delassus_ros.markers.marker_node")
monitor = partial(_node, "delassus_monitor", "delassus_ros.monitor.monitor_node")
node = partial(_node, "delassus_node", "delassus_ros.node.main")
plant = partial(_node, "delassus_plant", "delassus_ros.sim.plant_node")
simulator = partial(_node, "delassus_simulator", "delassus_ros.sim.simulator_node")
