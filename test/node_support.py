"""Fixtures and helpers for tests of delassus_node in this process, with the quadruped."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import robots
from delassus_msgs.msg import DelassusMatrix
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from ros_support import Domain, Graph, overrides

from delassus import Contact, DelassusSolver, Problem, Robot
from delassus_ros.node.delassus_node import DelassusNode
from delassus_ros.ros.logs import Throttle

FEET = ("LF", "RF", "LH", "RH")
OK, DEGRADED = DelassusMatrix.VALIDITY_OK, DelassusMatrix.VALIDITY_DEGRADED
INVALID = DelassusMatrix.VALIDITY_INVALID

Start = Callable[..., DelassusNode]


@pytest.fixture(scope="module", autouse=True)
def own_surroundings() -> Iterator[None]:
    """Keep to this machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
        yield


@pytest.fixture(name="graph")
def make_graph(capfd: pytest.CaptureFixture[str]) -> Iterator[Graph]:
    with Graph(capfd) as graph:
        yield graph


@pytest.fixture(name="urdf", scope="module")
def make_urdf() -> str:
    return robots.unlimited()


@pytest.fixture(name="robot", scope="module")
def make_robot(urdf: str) -> Robot:
    return Robot.from_urdf(urdf)


@pytest.fixture(name="q")
def make_q(robot: Robot) -> list[float]:
    return np.random.default_rng(5).uniform(-1, 1, robot.nq).tolist()


@pytest.fixture
def no_second_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no period of the log end during a test, however slow the machine is."""
    of_all = Throttle.__init__

    def frozen(self: Throttle, write: Callable[[str], object]) -> None:
        of_all(self, write, clock=lambda: 100.0)

    monkeypatch.setattr(Throttle, "__init__", frozen)


@pytest.fixture(name="start")
def make_start(graph: Graph, urdf: str) -> Start:
    """Return a function that makes a node of the quadruped and starts it."""
    return functools.partial(start_node, graph, urdf)


def start_node(
    graph: Domain, urdf: str, namespace: str = "", feet: Sequence[str] = FEET, **changes: Any
) -> DelassusNode:
    """Make a node of the quadruped with these feet as contacts, and start it.

    In the names of other parameters two underscores stand for a dot.
    """
    parameters = {
        "autostart": True,
        "robot_description": urdf,
        "contacts.names": list(feet),
        # The tests say once what touches, and do not repeat it; and a busy machine may hold
        # them up between two joint states.
        "contacts_timeout": 0.0,
        "input_timeout": 0.0,
        # Else each start and stop looks at all that the tests' process has, for 0.1 s or more.
        "realtime.hold_garbage": False,
        **{f"contacts.{foot}.frame": f"{foot}_FOOT" for foot in feet},
        **_dotted(changes),
    }
    node = DelassusNode(
        context=graph.context, namespace=namespace, parameter_overrides=overrides(parameters)
    )
    graph.add(node)
    node.start()
    return node


@pytest.fixture(name="ready")
def make_ready(graph: Graph, start: Start, robot: Robot, q: list[float]) -> Start:
    """Return a function that starts a node, and waits for its matrix of all feet."""

    def ready(**changes: Any) -> DelassusNode:
        node = start(**changes)
        graph.touch(FEET)
        graph.ask_until(lambda m: m.validity == OK, robot.joint_names, q)
        return node

    return ready


class Manager:
    """Drives delassus_node through its services, as a lifecycle manager does."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def state(self) -> int:
        """Return the id of the state, once answers arrive."""
        answer = self._graph.call(GetState, "delassus_node/get_state", GetState.Request())
        return int(answer.current_state.id)

    def change(self, id: int = 0, label: str = "") -> bool:
        """Ask for a transition by its id or its label; return whether the node made it."""
        answer = self.begin(id, label)
        self._graph.until(answer.done, "answer to a change of state")
        return bool(answer.result().success)

    def begin(self, id: int = 0, label: str = "") -> Any:
        """Ask for a transition, and return the future of the answer.

        It is asked for once: a repeated request would be another transition.
        """
        client = self._graph.ready_client(ChangeState, "delassus_node/change_state")
        return client.call_async(ChangeState.Request(transition=Transition(id=id, label=label)))


def solve(
    urdf: str, q: list[float], active: tuple[str, ...] = FEET, algorithm: str = "dense"
) -> np.ndarray:
    """Return the matrix of the quadruped's feet, computed without the node.

    By default from its definition, with a factorised mass matrix, which the node does not have.
    """
    return _solver(urdf, algorithm).solve(q, active=active).matrix


@functools.lru_cache(maxsize=16)
def _solver(urdf: str, algorithm: str) -> DelassusSolver:
    contacts = [Contact(foot, frame=f"{foot}_FOOT") for foot in FEET]
    return DelassusSolver(Problem(Robot.from_urdf(urdf), contacts), algorithm)


def relative_error(matrix: np.ndarray, expected: np.ndarray) -> float:
    return float(np.linalg.norm(matrix - expected) / np.linalg.norm(expected))


def set_parameters(node: DelassusNode, **values: Any) -> None:
    """Set parameters together, which must be accepted; two underscores stand for a dot."""
    result = node.set_parameters_atomically(overrides(_dotted(values)))
    assert result.successful, result.reason


def refused(node: DelassusNode, **values: Any) -> str:
    """Return the reason for which parameters that are set together are refused."""
    result = node.set_parameters_atomically(overrides(_dotted(values)))
    assert not result.successful, values
    return str(result.reason)


def _dotted(values: dict[str, Any]) -> dict[str, Any]:
    return {name.replace("__", "."): value for name, value in values.items()}


def state_of(node: DelassusNode) -> str:
    return str(node._state_machine.current_state[1])


def set_when_joined(
    monkeypatch: pytest.MonkeyPatch, thread: threading.Thread, event: threading.Event
) -> None:
    """Have an event set when somebody waits for a thread, and not before."""
    join = thread.join

    def joined(timeout: float | None = None) -> None:
        event.set()
        join(timeout)

    monkeypatch.setattr(thread, "join", joined)
