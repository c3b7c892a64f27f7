"""Helpers for tests with ROS: separate graphs, waiting for what nodes say."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing import resource_tracker
from typing import Any

import pytest
import rclpy
from delassus_msgs.msg import ActiveContacts, DelassusMatrix, Layout
from delassus_msgs.srv import Compute
from processes import children_of, wait_until
from rcl_interfaces.msg import SetParametersResult
from rcl_interfaces.srv import SetParameters
from rclpy.experimental import EventsExecutor
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.time import Time
from ros_domains import new_domain
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)

_ERRORS = 2
_LOG_LINE = re.compile(r"\[[A-Z]+\] \[[0-9.]+\] \[[^]]*\]: (.*)")


def overrides(parameters: Mapping[str, Any]) -> list[Parameter]:
    """Return parameters as a node wants them at its start."""
    return [Parameter(name, value=value) for name, value in parameters.items()]


class Domain:
    """A ROS context in a domain of its own, with an executor and a peer of the tested nodes.

    Attributes
    ----------
    peer : the node of the test.
    fault : returns the reason to stop waiting, or None; called while waiting.
    report : returns what the failure of a wait quotes.

    Parameters
    ----------
    domain : ROS domain; one of its own by default.
    """

    def __init__(self, domain: int | None = None) -> None:
        self.context = rclpy.Context()
        self.domain = new_domain() if domain is None else domain
        rclpy.init(args=[], context=self.context, domain_id=self.domain)
        self.executor = EventsExecutor(context=self.context)
        self.nodes: list[Any] = []
        self.fault: Callable[[], str | None] = lambda: None
        self.report: Callable[[], str] = lambda: ""
        self.peer = rclpy.create_node("peer", context=self.context, enable_rosout=False)
        self.add(self.peer)
        self._clients: dict[str, Any] = {}

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        for node in self.nodes:
            self.executor.remove_node(node)
            node.destroy_node()
        self.executor.shutdown()
        rclpy.try_shutdown(context=self.context)

    def add(self, node: Any) -> Any:
        """Run a node with the others; destroyed with them."""
        self.nodes.append(node)
        self.executor.add_node(node)
        return node

    def spin(self, due: float) -> None:
        """Handle events until a time of ``time.monotonic`` [s], and some even if it is over.

        Two messages make about five events. A test that publishes at a rate which the machine
        does not reach would else hear nothing, and never end.
        """
        for _ in range(10):
            self.executor.spin_once(timeout_sec=0.0)
        while (rest := due - time.monotonic()) > 0.0:
            self.executor.spin_once(timeout_sec=rest)

    def until(self, condition: Callable[[], Any], what: str) -> Any:
        """Spin until a condition holds and return its value; see `wait_until`."""

        def idle() -> None:
            self.executor.spin_once(timeout_sec=0.02)

        return wait_until(condition, what, self.fault, self.report, idle)

    def ready_client(self, kind: type, service: str) -> Any:
        """Return the client of a service, once that is there."""
        if service not in self._clients:
            self._clients[service] = self.peer.create_client(kind, service)
        client = self._clients[service]
        self.until(client.service_is_ready, f"service {service}")
        return client

    def call(self, kind: type, service: str, request: Any) -> Any:
        """Ask a service and return its answer.

        The first answer may get lost, as who answers may not know yet where it goes: the request
        is repeated each second.
        """
        client = self.ready_client(kind, service)
        futures: list[Any] = []
        again = 0.0

        def answered() -> Any:
            nonlocal again
            if time.monotonic() > again:
                again = time.monotonic() + 1.0
                futures.append(client.call_async(request))
            return next((future for future in futures if future.done()), None)

        return self.until(answered, f"answer of {service}").result()

    def compute(self, request: Compute.Request) -> Compute.Response:
        """Ask delassus_node for a matrix, and return its answer."""
        return self.call(Compute, "delassus_node/compute", request)

    def set_parameters(self, **values: Any) -> list[SetParametersResult]:
        """Set parameters of delassus_node by its service, and return the results."""
        changes = [change.to_parameter_msg() for change in overrides(values)]
        request = SetParameters.Request(parameters=changes)
        return self.call(SetParameters, "delassus_node/set_parameters", request).results


@contextlib.contextmanager
def node_in_own_domain(make: Callable[[], Any]) -> Iterator[Any]:
    """Make a node of rclpy's default context; both are ended with the block.

    The node's ends would else stay in the graph until it is collected.
    """
    rclpy.init(args=[], domain_id=new_domain())
    node = make()
    try:
        yield node
    finally:
        node.destroy_node()
        rclpy.try_shutdown()


class Graph(Domain):
    """A domain of delassus_node: its inputs are published, and what it says is kept.

    Attributes
    ----------
    joints, contacts, descriptions : publishers of the inputs.
    matrices, layouts : what was received so far, oldest first.
    log : lines that nodes logged so far, without severity and time.

    Parameters
    ----------
    capture : pytest's ``capfd``, by which the log of this process, too, goes to a file.
    domain : ROS domain; one of its own by default.
    """

    def __init__(self, capture: pytest.CaptureFixture[str], domain: int | None = None) -> None:
        super().__init__(domain)
        self.matrices: list[DelassusMatrix] = []
        self.layouts: list[Layout] = []
        # Looked at in place: where it is asked for, pytest reads the file and then empties it, and
        # what another thread writes in between is lost.
        assert stat.S_ISREG(os.fstat(_ERRORS).st_mode), f"{capture} captures no file descriptor"
        self._log: list[str] = []
        self._file, self._read = 0, 0
        self.report = lambda: "\n".join(self.log)
        self._stamp = 0
        self.joints = self.peer.create_publisher(JointState, "joint_states", 100)
        self.contacts = self.peer.create_publisher(ActiveContacts, "active_contacts", LATCHED)
        self.descriptions = self.peer.create_publisher(String, "robot_description", LATCHED)
        self.peer.create_subscription(
            DelassusMatrix, "delassus_node/delassus", self.matrices.append, 100
        )
        self.peer.create_subscription(Layout, "delassus_node/layout", self.layouts.append, LATCHED)

    def describe(self, urdf: str) -> None:
        """Publish a robot description."""
        self.descriptions.publish(String(data=urdf))

    def touch(
        self, names: Sequence[str], status: Sequence[int] | None = None, stamp: int | None = None
    ) -> int:
        """Publish a set of contacts, ACTIVE unless said otherwise; return its stamp [ns].

        The stamp is that of now, or a given one of simulated time.
        """
        message = ActiveContacts(names=list(names))
        message.status = [ActiveContacts.ACTIVE] * len(names) if status is None else list(status)
        self._stamp_next(message, stamp)
        self.contacts.publish(message)
        return self._stamp

    def move(
        self, names: Sequence[str], positions: Sequence[float], stamp: int | None = None,
        **others: Any,
    ) -> int:  # fmt: skip
        """Publish one joint state; return its stamp [ns], that of now or a given one."""
        message = JointState(name=list(names), position=list(positions), **others)
        self._stamp_next(message, stamp)
        self.joints.publish(message)
        return self._stamp

    def ask(self, names: Sequence[str], positions: Sequence[float], **others: Any) -> Any:
        """Publish a joint state and return the answer to it.

        Best effort may lose one, above all before discovery is complete: it is sent again.
        """
        stamps = set()
        again = 0.0

        def answer() -> Any:
            nonlocal again
            if time.monotonic() > again:
                again = time.monotonic() + 0.5
                stamps.add(self.move(names, positions, **others))
            return next((m for m in reversed(self.matrices) if stamp_of(m) in stamps), None)

        return self.until(answer, "answer to a joint state")

    def ask_until(
        self, condition: Callable[[Any], bool], names: Sequence[str], positions: Sequence[float]
    ) -> Any:
        """Ask again and again until a condition holds for the answer; return it."""
        answers: list[Any] = []

        def expected() -> bool:
            answers.append(self.ask(names, positions))
            return condition(answers[-1])

        wait_until(
            expected,
            "such an answer",
            report=lambda: f"the last one: {answers[-1]}",
            # A process that builds a kernel at low priority wants to get on, too.
            idle=lambda: self.spin(time.monotonic() + 0.02),
        )
        return answers[-1]

    def ask_touching(
        self, contacts: Sequence[str], names: Sequence[str], positions: Sequence[float]
    ) -> Any:
        """Ask for these contacts until the answer is OK; return it.

        They are published again behind each answer, lest they be too old by the next one.
        """

        def is_ok(answer: DelassusMatrix) -> bool:
            self.touch(contacts)
            return bool(answer.validity == DelassusMatrix.VALIDITY_OK)

        return self.ask_until(is_ok, names, positions)

    def wait_for_log(self, words: str) -> str:
        """Return the first log line with these words, once it has come."""

        def found() -> str | None:
            return next((line for line in self.log if words in line), None)

        return str(self.until(found, f"log line with {words!r}"))

    def _stamp_next(self, message: Any, stamp: int | None = None) -> None:
        self._stamp = max(time.time_ns(), self._stamp + 1) if stamp is None else stamp
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(self._stamp, 10**9)

    @property
    def log(self) -> list[str]:
        """The lines so far, without their times."""
        file = os.fstat(_ERRORS)
        # Behind the fixtures pytest takes another file; asked for what it captured, it empties it.
        if file.st_ino != self._file or file.st_size < self._read:
            self._file, self._read = file.st_ino, 0
        size = file.st_size - self._read
        lines, end, _ = os.pread(_ERRORS, size, self._read).rpartition(b"\n")
        self._read += len(lines) + len(end)
        for line in lines.decode(errors="replace").splitlines():
            match = _LOG_LINE.fullmatch(line)
            self._log.append(match.group(1) if match else line)
        return self._log


def graph_of_programs(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Graph]:
    """Yield a graph whose domain the programs that a test starts are in as well; a fixture."""
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    with Graph(capfd) as graph:
        monkeypatch.setenv("ROS_DOMAIN_ID", str(graph.domain))
        yield graph


def nanoseconds(stamp: Any) -> int:
    """Return a time of a message [ns]."""
    return int(stamp.sec) * 10**9 + int(stamp.nanosec)


def stamp_of(message: Any) -> int:
    """Return the stamp of a message with a header [ns]."""
    return nanoseconds(message.header.stamp)


class SimulatedTime:
    """The clock of a simulation in which a node runs."""

    def __init__(self, graph: Domain, node: Any) -> None:
        self._graph, self._node = graph, node
        self._publisher = graph.peer.create_publisher(Clock, "/clock", 10)

    def publish(self, instant: int) -> None:
        """Publish a time [ns] once."""
        self._publisher.publish(Clock(clock=Time(nanoseconds=instant).to_msg()))

    def run_to(self, instant: int) -> None:
        """Publish a time [ns] until the node has it."""

        def arrived() -> bool:
            self.publish(instant)
            return bool(self._node.get_clock().now().nanoseconds == instant)

        self._graph.until(arrived, "simulated time")


def children() -> set[int]:
    """Return the ids of the child processes of this process (Linux)."""
    # Python's own, which it keeps to its end where worker processes were begun.
    tracker = getattr(resource_tracker._resource_tracker, "_pid", None)
    return set(children_of("self")) - {tracker}


def endless(*_: str) -> list[str]:
    """Return a command in place of that which builds kernels; it is there when it is looked for.

    ``sleep`` adds up its arguments, of which the number of a file descriptor is one more.
    """
    return ["sleep", "300"]
