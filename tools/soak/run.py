"""A soak run: its processes, their commands, and the measurements.

Run and publisher share a file in memory instead of messages. On request, the algorithm of the node
is changed throughout the run.
"""

from __future__ import annotations

import gc
import math
import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from delassus.errors import DelassusError
from delassus.programs.processes import Command, Programs
from delassus_ros.monitor.latency import Percentiles
from delassus_ros.sim.demo import demo_environment

from .accounting import STRETCH, MatrixGaps, NodeCounts, account
from .control import Control, PublisherCommand, Receiver
from .humanoid import CONTACTS, problem, recomputed
from .verdict import EndedReaders, Result

_CYCLE = {Receiver.NODE: 8.0, Receiver.ECHO: 2.0}  # s, in turn
_TOOLS = Path(__file__).resolve().parents[1]
_START_LIMIT = 60.0  # s until both nodes answer
_QUIET = 0.3  # s without arrivals, after which all messages have arrived
_TURN = sum(_CYCLE.values())
_COUNTS = re.compile(
    r"inactive: published (\d+) matrices and (\d+) times INVALID; (\d+) joint states were"
)


class SoakError(DelassusError):
    """The run could not be made or finished."""


def node_arguments(more: Sequence[str] = (), outputs: Sequence[str] = ()) -> list[str]:
    """Return the ROS arguments of delassus_node for the humanoid, with outputs besides G."""
    parameters = {"autostart": "true", "contacts.names": f"[{', '.join(CONTACTS)}]"}
    for name, frame in CONTACTS.items():
        parameters[f"contacts.{name}.frame"] = frame
        parameters[f"contacts.{name}.kind"] = "surface"
    if outputs:
        parameters["outputs"] = f"[{', '.join(outputs)}]"
        # The publisher may be late by more than odometries may be old by default.
        parameters["orientation.timeout"] = "1.0"
    settings = [word for item in parameters.items() for word in ("-p", "{}:={}".format(*item))]
    return ["--ros-args", *settings, *more]


def commands(
    control: Path,
    rate: float,
    more: Sequence[str] = (),
    readers: Path | None = None,
    outputs: Sequence[str] = (),
) -> list[Command]:
    """Return the commands of the run's processes, without the consumer.

    Parameters
    ----------
    control
        File of commands to the publisher.
    rate, more
        As in :func:`soak.__main__.run`.
    readers
        File with counts of killed readers; None without further readers.
    outputs
        Outputs of the node besides G. If not empty, the peer is a node with only G.
    """

    def module(name: str, *arguments: str) -> list[str]:
        return [sys.executable, "-m", name, *arguments]

    peer = module("soak.echo")
    if outputs:
        names = ["-r", "__node:=echo", "-r", "joint_states:=echo/joint_states"]
        peer = module("delassus_ros.node.main", *node_arguments(more), *names)
    return [
        Command("delassus_node", module("delassus_ros.node.main", *node_arguments(more, outputs))),
        Command("echo", peer),
        Command("publisher", module("soak.publisher", str(control), repr(rate))),
        *([] if readers is None else [Command("readers", module("soak.readers", str(readers)))]),
    ]


def node_counts(output: str) -> NodeCounts:
    """Return the counts that the node logged when it was deactivated.

    Raises
    ------
    SoakError
        The node did not log its counts.
    """
    found = _COUNTS.findall(output)
    if not found:
        raise SoakError(f"delassus_node has not said what it published; it said:\n{output}")
    return NodeCounts(*map(int, found[-1]))


def ended_readers(file: Path) -> EndedReaders:
    """Return the counts of ended readers from their file."""
    text = file.read_text(encoding="utf-8") if file.exists() else "0 0 0"
    return EndedReaders(*map(int, text.split()))


class _Run:
    """A run: its nodes, the consumer, and the measurements."""

    def __init__(
        self,
        children: Programs,
        control: Control,
        node: Any,
        spin: Callable[[], None],
        proceed: Callable[[], bool],
        swapper: Swapper,
    ) -> None:
        self._swapper = swapper
        self._children = children
        self._control = control
        self._node = node
        self._spin = spin
        self._proceed = proceed
        self._loaded = {Receiver.NODE: children["delassus_node"], Receiver.ECHO: children["echo"]}
        self._busy = dict.fromkeys(Receiver, 0.0)
        self._wall = dict.fromkeys(Receiver, 0.0)
        self._memory: list[float] = []

    def wait(self, condition: Callable[[], Any], what: str, limit: float) -> None:
        """Process messages until a condition holds."""
        deadline = time.monotonic() + limit
        while not condition():
            if time.monotonic() > deadline:
                raise SoakError(f"no {what} within {limit:g} s\n{self._children.report()}")
            if not self._proceed():
                raise SoakError(f"interrupted while waiting for: {what}")
            self._spin()
            self._check()

    def connect(self) -> None:
        """Wait until both nodes answer: afterwards no message may be lost by discovery."""
        self.wait(lambda: self._node.connected() and self._control.ready, "nodes", _START_LIMIT)
        for target in Receiver:
            self._control.order(PublisherCommand.PROBE, target)
            name = f"valid answer of the {target.name.lower()}"
            self.wait(self._node.arrivals[target].any_good, name, _START_LIMIT)
            self.drain()

    def block(self, target: Receiver, seconds: float) -> None:
        """Send to one of the two nodes for a time [s]."""
        child = self._loaded[target]
        begin, used = time.monotonic(), child.processor_time()
        self._control.order(PublisherCommand.SEND, target)
        while time.monotonic() < begin + seconds and self._proceed():
            self._spin()
            if target is Receiver.NODE:
                self._swapper.look()
            self._check()
        self._wall[target] += time.monotonic() - begin
        self._swapper.pause()
        self.drain()
        # Including the remaining work, which belongs to these joint states.
        self._busy[target] += child.processor_time() - used
        if target is Receiver.NODE:
            self._memory.append(child.memory())

    def drain(self) -> None:
        """Stop sending, and process the remaining messages."""
        self._control.order(PublisherCommand.WAIT, Receiver.NODE)
        counts: list[int] = []
        changed = time.monotonic()
        while time.monotonic() < changed + _QUIET:
            before = counts
            counts = [arrivals.count for arrivals in self._node.arrivals.values()]
            if counts != before:
                changed = time.monotonic()
            self._spin()

    def reset(self) -> None:
        """End the warm-up: processor time, memory and swaps count from here on."""
        self._swapper.restart()
        self._memory = self._memory[-1:]
        for target in Receiver:
            self._busy[target] = self._wall[target] = 0.0

    def finish(self) -> NodeCounts:
        """Deactivate the node, and return the counts that it logs."""
        # Interrupted runs have an account as well.
        self._proceed = lambda: True
        future = self._node.deactivate()
        self.wait(future.done, "answer to the request to deactivate", _START_LIMIT)
        return node_counts(self._children["delassus_node"].tail())

    def result(
        self, rate: float, begin: int, counts: NodeCounts, readers: EndedReaders | None
    ) -> Result:
        """Return the results, with times from a stamp [ns] on."""
        arrivals = self._node.arrivals
        load = {target: self._busy[target] / max(self._wall[target], 1e-9) for target in Receiver}
        sent = {target: self._control.sent(target) for target in Receiver}
        stamps, kept = self._node.kept()
        checked, wrong = recomputed(sent[Receiver.NODE], stamps, kept, self._node.names)
        # Without the warm-up.
        counted = {target: stamps[stamps >= begin] for target, stamps in sent.items()}
        node_gaps, echo_gaps = (
            MatrixGaps.of(counted[target], arrivals[target], _QUIET, self._swapper.marks)
            for target in (Receiver.NODE, Receiver.ECHO)
        )
        return Result(
            rate=rate,
            sent_rate=len(counted[Receiver.NODE]) / max(self._wall[Receiver.NODE], 1e-9),
            account=account(sent[Receiver.NODE], arrivals[Receiver.NODE], counts),
            node=Percentiles.of(arrivals[Receiver.NODE].latency(begin)),
            echo=Percentiles.of(arrivals[Receiver.ECHO].latency(begin)),
            cpu=load[Receiver.NODE],
            echo_cpu=load[Receiver.ECHO],
            memory=(self._memory[0], self._memory[-1]),
            checked=checked,
            wrong=wrong,
            node_gaps=node_gaps,
            echo_gaps=echo_gaps,
            changes=self._swapper.count if self._swapper.is_used else None,
            readers=readers,
            peer=self._node.peer,
        )

    def progress(self, begin: int) -> str:
        """Return a line of progress, with times from a stamp [ns] on."""
        arrivals = self._node.arrivals
        node = Percentiles.of(arrivals[Receiver.NODE].latency(begin))
        echo = Percentiles.of(arrivals[Receiver.ECHO].latency(begin))
        return f"node {node.words()}; {self._node.peer} {echo.words()}; {self._memory[-1]:.1f} MB"

    def _check(self) -> None:
        gone = self._children.dead()
        if gone:
            names = ", ".join(f"{child.name} (status {child.status})" for child in gone)
            raise SoakError(f"ended by itself: {names}\n{self._children.report()}")
        if self._node.malformed:
            raise SoakError(f"a message contradicts itself: {self._node.malformed}")
        if self._swapper.refusal:
            raise SoakError(f"the algorithm is not changed: {self._swapper.refusal}")


def measure(
    folder: Path,
    seconds: float,
    rate: float,
    proceed: Callable[[], bool],
    more: Sequence[str],
    swap: Sequence[str],
    kill_readers: bool,
    outputs: Sequence[str] = (),
) -> Result:
    """Make one run, and return its results.

    Parameters
    ----------
    folder
        Empty folder, for the file of commands to the publisher.
    seconds, rate, more, swap, kill_readers, outputs
        As in :func:`soak.__main__.run`.
    proceed
        Returns whether to continue; called several times per second.

    Raises
    ------
    SoakError
        If the run could not be made or finished.
    """
    # Imported here, as these modules need ROS, which the command has checked by now, and as the
    # import is slow and must follow the installation of signal handlers.
    from delassus_ros.ros.executor import executing
    from delassus_ros.ros.program import ros

    from .consumer import SoakNode

    environment = demo_environment(os.environ)
    paths = [str(_TOOLS), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    os.environ.update(environment)
    capacity = int(1.1 * seconds * rate) + 10_000
    control = Control(folder / "control", capacity)
    readers = folder / "readers" if kill_readers else None
    processes = commands(folder / "control", rate, more, readers, outputs)
    rows = problem().contacts.rows
    busy = ", ".join(f"{load:.2f}" for load in os.getloadavg())
    print(
        f"{seconds:g} s at {rate:g} Hz, m = {rows}, in ROS domain {environment['ROS_DOMAIN_ID']}; "
        f"{os.cpu_count()} processors, load average {busy}",
        flush=True,
    )
    with Programs(processes, environment) as children, ros([]):
        node = SoakNode(capacity, rows, outputs)
        with executing([node]) as executor:
            one = _Run(
                children,
                control,
                node,
                lambda: executor.spin_once(timeout_sec=0.05),
                proceed,
                Swapper(node, swap),
            )
            one.connect()
            gc.freeze()
            begin = _cycles(one, seconds, proceed)
            counts = one.finish()
    if control.late:
        print(f"the publisher moved its schedule {control.late} times: the machine was too busy")
    ended = None if readers is None else ended_readers(readers)
    return one.result(rate, begin, counts, ended)


def _cycles(one: _Run, seconds: float, proceed: Callable[[], bool]) -> int:
    """Send to node and echo node in turn; return the stamp [ns] at which the warm-up ended."""
    start = time.monotonic()
    begin = time.time_ns()
    total = max(round(seconds / _TURN), 1)
    warm = max(total // 10, 1) if total > 1 else 0
    for cycle in range(total):
        for target, share in _CYCLE.items():
            one.block(target, share / _TURN * seconds / total)
            if not proceed():
                return begin
        print(f"{time.monotonic() - start:.0f} s: {one.progress(begin)}", flush=True)
        if cycle + 1 == warm:
            begin = time.time_ns()
            one.reset()
    return begin


_CHANGE_LIMIT = 30.0  # s until a requested change is in use
_PAUSE_S = 0.2
"""Time between two changes [s]: a change loads a kernel, some 7 ms of processor time."""


class Swapper:
    """Requests the next algorithm when a matrix shows the last change and a pause is over.

    Parameters
    ----------
    node
        The consumer, a :class:`~soak.consumer.SoakNode`.
    algorithms
        Names to switch between, including the node's first algorithm; empty for no switches.
    pause
        Time between two requests [s].

    Attributes
    ----------
    count
        Number of observed changes.
    marks
        Begin of counting, and instants of every further :data:`STRETCH` changes [ns].
    refusal
        Reason why a change failed; empty if all changes succeeded.
    """

    def __init__(self, node: Any, algorithms: Sequence[str], pause: float = _PAUSE_S) -> None:
        self.restart()
        self._pause, self._next = pause, 0.0
        self.refusal = ""
        self._node = node
        self._names = list(algorithms)
        self._wanted = ""
        self._answer: Any = None
        self._latest = math.inf

    @property
    def is_used(self) -> bool:
        """Whether the algorithm is changed in this run."""
        return bool(self._names)

    def restart(self) -> None:
        """Restart counting."""
        self.count = 0
        self.marks = [time.time_ns()]

    def pause(self) -> None:
        """Stop waiting for a change, as no matrices come for a while."""
        self._latest = math.inf

    def look(self) -> None:
        """Request the next change, if the last change has been observed."""
        present = self._node.algorithm
        if not self._names or not present or not self._is_accepted():
            return
        if not self._wanted:
            if present in self._names:
                self.refusal = f"it computes with {present!r} already"
                return
            self._names.append(present)
        elif present != self._wanted:
            self._wait()
            return
        elif time.monotonic() < self._next:
            return
        else:
            self.count += 1
            if self.count % STRETCH == 0:
                self.marks.append(time.time_ns())
        self._wanted = self._names[0]
        self._names.append(self._names.pop(0))
        self._answer = self._node.set_algorithm(self._wanted)
        self._next = time.monotonic() + self._pause
        self._latest = math.inf

    def _is_accepted(self) -> bool:
        """Return whether no answer is pending; store the reason of a refusal."""
        if self._answer is None:
            return True
        if not self._answer.done():
            self._wait()
            return False
        (result,) = self._answer.result().results
        self.refusal = self.refusal or result.reason
        self._answer = None
        return True

    def _wait(self) -> None:
        now = time.monotonic()
        self._latest = min(self._latest, now + _CHANGE_LIMIT)
        if now >= self._latest:
            limit = f"{_CHANGE_LIMIT:g} s"
            self.refusal = f"{self._wanted!r} is not in use {limit} after it was asked for"
