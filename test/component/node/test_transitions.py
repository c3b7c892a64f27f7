"""delassus_node in a process of its own: it ends cleanly in every state; real-time use."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import robots
from lifecycle_msgs.msg import Transition
from node_support import Manager
from processes import Program, node_program, python, wait_until
from ros_support import Graph
from seeds import but_slow

CONFIG = Path(__file__).resolve().parents[3] / "config" / "quadruped.yaml"
FEET = ["LF", "RF", "LH", "RH"]
SIGNALS = [signal.SIGINT, signal.SIGTERM]
ARGUMENTS = ["--params-file", str(CONFIG)]


CONFIGURE, ACTIVATE = Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE


def unconfigured(graph: Graph, node: Program, manager: Manager) -> None:
    """Nothing has happened yet."""


def configuring(graph: Graph, node: Program, manager: Manager) -> None:
    """On its way: the kernel is being made, or was just made."""
    manager.begin(CONFIGURE)
    for _ in range(3):
        graph.executor.spin_once(timeout_sec=0.01)


def inactive(graph: Graph, node: Program, manager: Manager) -> None:
    assert manager.change(CONFIGURE)


def activating(graph: Graph, node: Program, manager: Manager) -> None:
    assert manager.change(CONFIGURE)
    manager.begin(ACTIVATE)


def active(graph: Graph, node: Program, manager: Manager) -> None:
    assert manager.change(CONFIGURE)
    assert manager.change(ACTIVATE)
    robot = robots.quadruped()
    names = [f"{foot}_{joint}" for foot in FEET for joint in ("HAA", "HFE", "KFE")]
    graph.touch(FEET)
    graph.ask(names, [0.1] * 12)
    assert robot.exists()
    for _ in range(20):
        graph.move(names, [0.1] * 12)


def deactivating(graph: Graph, node: Program, manager: Manager) -> None:
    active(graph, node, manager)
    manager.begin(Transition.TRANSITION_DEACTIVATE)


def cleaned_up(graph: Graph, node: Program, manager: Manager) -> None:
    assert manager.change(CONFIGURE)
    assert manager.change(Transition.TRANSITION_CLEANUP)


def finalized(graph: Graph, node: Program, manager: Manager) -> None:
    assert manager.change(CONFIGURE)
    assert manager.change(Transition.TRANSITION_INACTIVE_SHUTDOWN)


STATES = [
    unconfigured, configuring, inactive, activating, active, deactivating, cleaned_up, finalized
]  # fmt: skip
State = Callable[[Graph, Program, Manager], None]


def end_in(graph: Graph, state: State, number: int) -> None:
    graph.describe(robots.unlimited())
    with node_program(*ARGUMENTS, "-p", "autostart:=false", domain=graph.domain) as node:
        manager = Manager(graph)
        manager.state()
        state(graph, node, manager)
        assert node.stop(number) == 0, node.output
        assert "Traceback" not in node.output
        assert "terminate called" not in node.output


@pytest.mark.parametrize(
    ("state", "number"),
    # In turn: both in each state, and those between states, are in the long run.
    [
        pytest.param(
            state,
            number,
            id=state.__name__,
            marks=[pytest.mark.slow] if state.__name__.endswith("ing") else [],
        )
        for state, number in zip(STATES, itertools.cycle(SIGNALS))
    ],
)
def test_signals_end_the_node_cleanly_in_every_state(graph, state, number) -> None:
    end_in(graph, state, number)


@pytest.mark.slow
@pytest.mark.parametrize("number", SIGNALS, ids=["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("state", STATES, ids=[state.__name__ for state in STATES])
def test_a_hundred_signals_in_every_state(capfd, state, number) -> None:
    for _ in range(100):
        with Graph(capfd) as graph:
            end_in(graph, state, number)


# --- real time --------------------------------------------------------------------------------


def threads(pid: int) -> list[int]:
    return [int(entry.name) for entry in Path(f"/proc/{pid}/task").iterdir()]


@contextlib.contextmanager
def configured(graph: Graph, parameter: str) -> Iterator[tuple[Program, Manager]]:
    """A node with this parameter that waits to be activated."""
    graph.describe(robots.unlimited())
    arguments = [*ARGUMENTS, "-p", "autostart:=false", "-p", parameter]
    with node_program(*arguments, domain=graph.domain) as node:
        manager = Manager(graph)
        manager.state()
        assert manager.change(CONFIGURE)
        yield node, manager


@pytest.mark.usefixtures("fifo")
def test_priority_of_all_threads_while_active(graph) -> None:
    with configured(graph, "realtime.priority:=7") as (node, manager):
        assert manager.change(ACTIVATE)

        def policies() -> set[tuple[int, int]]:
            return {
                (
                    os.sched_getscheduler(thread) & ~os.SCHED_RESET_ON_FORK,
                    os.sched_getparam(thread).sched_priority,
                )
                for thread in threads(node.process.pid)
            }

        assert len(threads(node.process.pid)) > 3
        assert policies() == {(os.SCHED_FIFO, 7)}
        assert "real-time priority 7 (SCHED_FIFO)" in node.output
        assert manager.change(Transition.TRANSITION_DEACTIVATE)
        assert policies() == {(os.SCHED_OTHER, 0)}
        assert node.stop() == 0, node.output


def test_processors_and_locked_memory_while_active(graph) -> None:
    graph.describe(robots.unlimited())
    first = min(os.sched_getaffinity(0))
    arguments = [*ARGUMENTS, "-p", f"realtime.cpus:=[{first}]", "-p", "realtime.lock_memory:=true"]
    with node_program(*arguments, domain=graph.domain) as node:
        node.wait_for("active: from ")
        pid = node.process.pid
        assert {frozenset(os.sched_getaffinity(t)) for t in threads(pid)} == {frozenset([first])}
        status = Path(f"/proc/{pid}/status").read_text()
        locked = int(next(w for w in status.splitlines() if w.startswith("VmLck")).split()[1])
        assert locked > 1000 or "memory not locked: " in node.output
        assert node.stop() == 0, node.output


def test_processors_stay_awake_while_active(graph) -> None:
    with configured(graph, "realtime.wakeup_latency:=0") as (node, manager):

        def limited() -> bool:
            links = set()
            for file in Path(f"/proc/{node.process.pid}/fd").iterdir():
                # It may have been closed meanwhile.
                with contextlib.suppress(FileNotFoundError):
                    links.add(os.readlink(file))
            return "/dev/cpu_dma_latency" in links

        assert not limited()
        assert manager.change(ACTIVATE)
        node.wait_for("active: from ")
        assert limited() or "processors may sleep deeply: " in node.output
        assert manager.change(Transition.TRANSITION_DEACTIVATE)
        assert not limited()
        assert node.stop() == 0, node.output


def storm(node: Program) -> None:
    """Send signals of both kinds, one after the other, until a node has ended."""
    numbers = itertools.cycle(SIGNALS)

    def send() -> None:
        node.process.send_signal(next(numbers))
        # Else this loop takes the processor that the node needs to end.
        time.sleep(0.0005)

    wait_until(node.fault, "end of the node", report=node.report, idle=send)


@pytest.mark.parametrize("times", [3, pytest.param(40, marks=pytest.mark.slow)])
@pytest.mark.parametrize("program", but_slow(["node.main", "programs"], "node.main"))
def test_a_storm_of_signals_ends_an_active_node_cleanly(graph, program, times) -> None:
    """As where a terminal, ros2 launch and a supervisor all want it to end."""
    begin = ["-m", "delassus_ros.node.main"]
    if program == "programs":
        begin = ["-c", "import sys; from delassus_ros.commands import node; sys.exit(node())"]
    graph.describe(robots.unlimited())
    for _ in range(times):
        with python(*begin, "--ros-args", *ARGUMENTS, domain=graph.domain) as node:
            node.wait_for("active: from ")
            storm(node)
            assert node.process.returncode == 0, node.output
            assert "Traceback" not in node.output
