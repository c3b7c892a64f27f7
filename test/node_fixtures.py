"""A graph of ROS nodes, a robot and a node that is started: what most tests of the node have.

Without ROS they skip by themselves, each file with the reason.
"""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from processes import may_use_fifo

if find_spec("rclpy") is not None and find_spec("delassus_msgs") is not None:
    from node_support import (  # noqa: F401
        make_graph,
        make_q,
        make_ready,
        make_robot,
        make_start,
        make_urdf,
        no_second_line,
        own_surroundings,
    )


@pytest.fixture
def fifo() -> None:
    """Skip a test of real-time priorities where this user may not use them."""
    if not may_use_fifo():
        pytest.skip("this user may not use SCHED_FIFO")
