"""A minute at 1 kHz: every joint state is accounted for, and memory stays flat."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import rclpy
from hanging import HANG_S
from ros_domains import new_domain

from delassus.programs.processes import Programs
from delassus_ros.monitor.monitor_node import MonitorNode
from delassus_ros.sim import demo

pytestmark = pytest.mark.needs("mujoco")

_SECONDS = 60.0
_WARM = 20.0  # s until caches and queues have their final size
_GROWTH = 2.0  # MB
_POLL = 0.002  # s


@pytest.fixture(name="monitor")
def make_monitor(monkeypatch: pytest.MonkeyPatch) -> Iterator[MonitorNode]:
    """Return a monitor in a domain that is given to child processes as well."""
    monkeypatch.setenv("ROS_DOMAIN_ID", str(new_domain()))
    for name, value in demo.demo_environment(os.environ).items():
        monkeypatch.setenv(name, value)
    context = rclpy.Context()
    rclpy.init(args=[], context=context)
    monitor = MonitorNode(demo._TOPICS, context=context)
    yield monitor
    monitor.destroy_node()
    rclpy.shutdown(context=context)


def resident(pid: int) -> float:
    """Memory of a process, MB (Linux)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return float(line.split()[1]) / 1024.0
    return pytest.fail(f"process {pid} has no VmRSS")


@pytest.mark.slow
def test_a_minute_at_full_rate(monitor: MonitorNode, capsys: pytest.CaptureFixture[str]) -> None:
    agreement = monitor.agreement
    with Programs(demo.demo_commands(demo.find_config()), os.environ) as children:
        (pid,) = [child.pid for child in children._programs if child.name == "delassus_node"]

        def watch(seconds: float) -> None:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                assert not children.dead(), children.report()
                monitor.poll()
                # In real time, at the simulator's rate: without a pause the monitor takes a core.
                time.sleep(_POLL)

        start = time.monotonic()
        while not agreement.compared:
            assert time.monotonic() < start + HANG_S, children.report()
            watch(0.1)
        watch(_WARM)
        warm = resident(pid)
        watch(_SECONDS - _WARM)
        end = resident(pid)
    latency = agreement.latency()
    answered = agreement.matrices + agreement.invalid.total()
    with capsys.disabled():
        print(
            f"\n{answered} answers, {agreement.skipped} superseded, {agreement.unanswered} "
            f"unanswered; latency p50 {1e3 * latency.p50:.3f} ms, p99 {1e3 * latency.p99:.3f} ms; "
            f"memory {warm:.1f} MB, then {end:.1f} MB"
        )
    # By the stamps of the publisher: what has no answer is one that the node counts.
    assert monitor.faults() == []
    assert agreement.unanswered <= agreement.skipped
    assert end - warm < _GROWTH
    # Both at the simulator's rate, but for what a busy machine costs it.
    assert answered + agreement.skipped > 0.5 * 1000.0 * _SECONDS
