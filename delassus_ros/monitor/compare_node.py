"""The program delassus_compare: the monitor with a second node as reference."""

from __future__ import annotations

from functools import partial

from delassus_ros.monitor.monitor_node import MonitorNode, run
from delassus_ros.ros.program import Program

_HELP = """\
usage: delassus_compare [--ros-args ...]

Compares the Delassus matrices that two nodes publish for the same joint states: delassus_monitor
with reference_source:=node.

subscribes  first, second     delassus_msgs/DelassusMatrix, remapped to the nodes'
publishes   /diagnostics      diagnostic_msgs/DiagnosticArray, once a second
            ~/relative_error  std_msgs/Float64, for each pair: norm(second - first) / norm(first)
parameters  reference_source  node
            tolerance         largest relative error that counts as agreement (1e-9)

SIGINT or SIGTERM ends the program with a summary. Exit status: 0 if matrices were compared and
agreed, otherwise 1.

example     delassus_compare --ros-args -r first:=a/delassus -r second:=b/delassus
"""

_TOPICS = {"reference": "first", "delassus": "second"}
_make = partial(MonitorNode, _TOPICS, name="delassus_compare", source="node")
main = Program("delassus_compare", _make, run, _HELP)

if __name__ == "__main__":
    main.end_process()
