"""Helpers for tests with ROS: separate graphs, waiting with a limit, child processes."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing import resource_tracker
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
from hanging import HANG_S

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")
pytest.importorskip("delassus_msgs", reason="the message package delassus_msgs is not installed")

import rclpy  # noqa: E402
from child_processes import children_of  # noqa: E402
from delassus_msgs.msg import ActiveContacts, DelassusMatrix, Layout  # noqa: E402
from rclpy.experimental import EventsExecutor  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402
from rclpy.qos import DurabilityPolicy, QoSProfile  # noqa: E402
from ros_domains import new_domain  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import String  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)

_ERRORS = 2
_LOG_LINE = re.compile(r"\[[A-Z]+\] \[[0-9.]+\] \[[^]]*\]: (.*)")


def overrides(parameters: Mapping[str, Any]) -> list[Parameter]:
    """Return parameters as a node wants them at its start."""
    return [Parameter(name, value=value) for name, value in parameters.items()]


class Graph:
    """A ROS context in a domain of its own, with an executor and a peer of the tested node.

    Attributes
    ----------
    peer : publishes joint states, contacts and descriptions, and receives what the node says.
    matrices, layouts : what was received so far, oldest first.
    log : lines that nodes logged so far, without severity and time.
    fault : returns the reason to stop waiting, or None; called while waiting.

    Parameters
    ----------
    capture : pytest's ``capfd``, by which the log of this process, too, goes to a file.
    domain : ROS domain; one of its own by default.
    """

    def __init__(self, capture: pytest.CaptureFixture[str], domain: int | None = None) -> None:
        self.context = rclpy.Context()
        self.domain = new_domain() if domain is None else domain
        rclpy.init(args=[], context=self.context, domain_id=self.domain)
        self.executor = EventsExecutor(context=self.context)
        self.nodes: list[Any] = []
        self.matrices: list[DelassusMatrix] = []
        self.layouts: list[Layout] = []
        # Looked at in place: where it is asked for, pytest reads the file and then empties it, and
        # what another thread writes in between is lost.
        assert stat.S_ISREG(os.fstat(_ERRORS).st_mode), f"{capture} captures no file descriptor"
        self._log: list[str] = []
        self._file, self._read = 0, 0
        self.fault: Callable[[], str | None] = lambda: None
        self.peer = rclpy.create_node("peer", context=self.context, enable_rosout=False)
        self.add(self.peer)
        self._stamp = 0
        self._joints = self.peer.create_publisher(JointState, "joint_states", 100)
        self._contacts = self.peer.create_publisher(ActiveContacts, "active_contacts", LATCHED)
        self._descriptions = self.peer.create_publisher(String, "robot_description", LATCHED)
        self.peer.create_subscription(
            DelassusMatrix, "delassus_node/delassus", self.matrices.append, 100
        )
        self.peer.create_subscription(Layout, "delassus_node/layout", self.layouts.append, LATCHED)

    def __enter__(self) -> Graph:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
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

    def until(self, condition: Callable[[], Any], what: str, limit: float = HANG_S) -> Any:
        """Spin until a condition holds and return its value; fail the test after the limit."""
        deadline = time.monotonic() + limit
        while not (value := condition()):
            if time.monotonic() > deadline:
                log = "\n".join(self.log)
                pytest.fail(f"no {what} within {limit:g} s; log of the node:\n{log}")
            self._look(what)
            self.executor.spin_once(timeout_sec=0.02)
        return value

    def _look(self, what: str) -> None:
        fault = self.fault()
        if fault is not None:
            pytest.fail(f"no {what}: {fault}")

    def call(self, client: Any, request: Any) -> Any:
        """Ask a service until it answers, and return that.

        The first answer may get lost, as who answers may not know yet where it goes.
        """
        self.until(client.service_is_ready, f"service {client.srv_name}")
        futures: list[Any] = []
        again = 0.0

        def answered() -> Any:
            nonlocal again
            if time.monotonic() > again:
                again = time.monotonic() + 1.0
                futures.append(client.call_async(request))
            return next((future for future in futures if future.done()), None)

        return self.until(answered, f"answer of {client.srv_name}").result()

    def describe(self, urdf: str) -> None:
        """Publish a robot description."""
        self._descriptions.publish(String(data=urdf))

    def touch(self, names: Sequence[str], status: Sequence[int] | None = None) -> int:
        """Publish a set of contacts, ACTIVE unless said otherwise; return its stamp [ns]."""
        message = ActiveContacts(names=list(names))
        message.status = [ActiveContacts.ACTIVE] * len(names) if status is None else list(status)
        self._stamp_next(message)
        self._contacts.publish(message)
        return self._stamp

    def move(self, names: Sequence[str], positions: Sequence[float], **others: Any) -> int:
        """Publish one joint state and return its stamp [ns]."""
        message = JointState(name=list(names), position=list(positions), **others)
        self._stamp_next(message)
        self._joints.publish(message)
        return self._stamp

    def ask(self, names: Sequence[str], positions: Sequence[float], **others: Any) -> Any:
        """Publish a joint state and return the answer to it.

        Best effort may lose one, above all before discovery is complete: it is sent again.
        """
        deadline = time.monotonic() + HANG_S
        stamps = set()
        while time.monotonic() < deadline:
            stamps.add(self.move(names, positions, **others))
            again = time.monotonic() + 0.5
            while time.monotonic() < again:
                for message in reversed(self.matrices):
                    if stamp_of(message) in stamps:
                        return message
                self._look("answer to a joint state")
                self.executor.spin_once(timeout_sec=0.02)
        log = "\n".join(self.log)
        return pytest.fail(f"no answer to a joint state within {HANG_S:g} s; log:\n{log}")

    def ask_until(
        self, condition: Callable[[Any], bool], names: Sequence[str], positions: Sequence[float]
    ) -> Any:
        """Ask again and again until a condition holds for the answer; return it."""
        deadline = time.monotonic() + HANG_S
        while time.monotonic() < deadline:
            answer = self.ask(names, positions)
            if condition(answer):
                return answer
            # A process that builds a kernel at low priority wants to get on, too.
            self.spin(time.monotonic() + 0.02)
        return pytest.fail(f"not the expected answer within {HANG_S:g} s; the last one: {answer}")

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

    def _stamp_next(self, message: Any) -> None:
        self._stamp = max(time.time_ns(), self._stamp + 1)
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


def stamp_of(message: Any) -> int:
    """Return the stamp of a message with a header [ns]."""
    stamp = message.header.stamp
    return int(stamp.sec) * 10**9 + int(stamp.nanosec)


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


class NodeProcess:
    """delassus_node in a process of its own; ended, by its id, with the block.

    Parameters
    ----------
    arguments : after ``--ros-args``.
    domain : ROS domain.
    environment : variables besides those of this process.
    begin : what Python runs.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        domain: int,
        environment: Mapping[str, str] | None = None,
        begin: Sequence[str] = ("-m", "delassus_ros.node.main"),
    ) -> None:
        self._file = tempfile.TemporaryFile()
        command = [sys.executable, *begin, "--ros-args", *arguments]
        path = os.pathsep.join(p for p in (str(ROOT), os.environ.get("PYTHONPATH", "")) if p)
        self.process = subprocess.Popen(
            command,
            env={
                **os.environ,
                "PYTHONPATH": path,
                "ROS_DOMAIN_ID": str(domain),
                **(environment or {}),
            },
            stdin=subprocess.DEVNULL,
            stdout=self._file,
            stderr=subprocess.STDOUT,
        )

    def __enter__(self) -> NodeProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._file.close()

    @property
    def output(self) -> str:
        """Output of the process so far, stdout and stderr together."""
        # Without a seek, as the process writes where this one's place in the file is.
        size = os.fstat(self._file.fileno()).st_size
        return os.pread(self._file.fileno(), size, 0).decode(errors="replace")

    def wait_for(self, words: str) -> None:
        """Wait until the output has these words; fail the test if they do not come."""
        deadline = time.monotonic() + HANG_S
        while words not in self.output:
            if self.process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"no {words!r} in the output of the node:\n{self.output}")
            time.sleep(0.01)

    def stop(self, number: int = signal.SIGINT) -> int:
        """Send a signal and return the exit status; fail the test if the process stays."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        """Return the exit status once it has ended; fail the test if it does not."""
        try:
            return self.process.wait(HANG_S)
        except subprocess.TimeoutExpired:
            return int(pytest.fail(f"the node did not end; its output:\n{self.output}"))
