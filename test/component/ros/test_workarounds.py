"""Each defect of ROS that the package works around, reproduced without the work-around.

A test that fails here says that the defect is gone: with that version of ROS the work-around of
the same name in ``delassus_ros/ros/`` can go, once no older version is supported.
"""

from __future__ import annotations

import inspect
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import rclpy
from hanging import HANG_S
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from processes import ROOT
from rcl_interfaces.srv import GetParameters
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.lifecycle import LifecycleNode
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions
from ros_domains import new_domain
from std_msgs.msg import String

import delassus
import delassus_ros

GONE = "this defect of ROS is gone: take out the work-around {!r} and this test"


@pytest.fixture(name="context")
def make_context() -> Iterator[Any]:
    context = rclpy.Context()
    rclpy.init(args=[], context=context, domain_id=new_domain())
    yield context
    rclpy.try_shutdown(context=context)


def in_process(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a Python of its own, with a domain of its own."""
    text = textwrap.dedent(code).replace("DOMAIN", str(new_domain()))
    return subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=HANG_S, check=False
    )


@pytest.mark.needs("rclpy.experimental.events_executor")
def test_event_handlers() -> None:
    """An events executor calls a handler that was destroyed: the process ends by a signal."""
    done = in_process(
        """
        import time
        import rclpy
        from rclpy.event_handler import PublisherEventCallbacks
        from rclpy.experimental.events_executor import EventsExecutor
        from std_msgs.msg import String

        rclpy.init(domain_id=DOMAIN)
        node = rclpy.create_node("node")
        executor = EventsExecutor()
        executor.add_node(node)
        callbacks = PublisherEventCallbacks(matched=lambda event: None)
        for _ in range(30):
            publishers = [
                node.create_publisher(String, f"topic{k}", 10, event_callbacks=callbacks)
                for k in range(5)
            ]
            executor.spin_once(timeout_sec=0)
            subscriptions = [
                node.create_subscription(String, f"topic{k}", print, 10) for k in range(5)
            ]
            end = time.monotonic() + 5.0
            while time.monotonic() < end and not all(
                publisher.get_subscription_count() for publisher in publishers
            ):
                time.sleep(0.001)  # discovery runs in threads of the middleware
            for publisher in publishers:
                node.destroy_publisher(publisher)
            for subscription in subscriptions:
                node.destroy_subscription(subscription)
            for _ in range(20):
                executor.spin_once(timeout_sec=0)
        print("survived")
        """
    )
    refused = "InvalidHandle" in done.stderr
    assert refused or done.returncode == -signal.SIGSEGV, GONE.format("event handlers")
    assert "survived" not in done.stdout


def test_late_event(context: Any) -> None:
    """A request that waits when its service is destroyed: the events executor raises."""
    import rclpy.experimental.events_executor as module
    node, peer = (rclpy.create_node(name, context=context) for name in ("node", "peer"))
    executor = module.EventsExecutor(context=context)
    executor.add_node(node)
    try:
        service = node.create_service(GetParameters, "service", lambda request, answer: answer)
        executor.spin_once(timeout_sec=0)
        client = peer.create_client(GetParameters, "service")
        assert client.wait_for_service(HANG_S)
        end = time.monotonic() + HANG_S
        while time.monotonic() < end:
            # A request that comes too late for the destruction is sent again, to a new service.
            client.call_async(GetParameters.Request())
            # The request has to be under way in the middleware when its service is destroyed.
            time.sleep(0.01)
            node.destroy_service(service)
            try:
                for _ in range(10):
                    executor.spin_once(timeout_sec=0)
            except rclpy_implementation.InvalidHandle:
                return
            service = node.create_service(GetParameters, "service", lambda request, answer: answer)
            executor.spin_once(timeout_sec=0)
            assert client.wait_for_service(HANG_S)
    finally:
        executor.shutdown()
        node.destroy_node()
        peer.destroy_node()
    pytest.fail(GONE.format("late event"))


def test_invalid_transition(context: Any) -> None:
    """The callback of a request that the state machine refuses raises: no answer is sent."""
    node = LifecycleNode("node", context=context)
    try:
        wanted = ChangeState.Request(transition=Transition(id=Transition.TRANSITION_ACTIVATE))
        try:
            answer = node._service_change_state.callback(wanted, ChangeState.Response())
        except rclpy_implementation.RCLError:
            return
        pytest.fail(f"{GONE.format('invalid transition')} (the answer is {answer})")
    finally:
        node.destroy_node()
        node._state_machine.destroy_when_not_in_use()


def test_state_machine(context: Any) -> None:
    """A destroyed lifecycle node leaves its state machine, which holds the node's handle."""
    node = LifecycleNode("node", context=context)
    node.destroy_node()
    try:
        with node._state_machine:
            pass
    except rclpy_implementation.InvalidHandle:
        pytest.fail(GONE.format("state machine"))
    node._state_machine.destroy_when_not_in_use()
    with pytest.raises(rclpy_implementation.InvalidHandle), node._state_machine:
        pass


def test_message_information(context: Any) -> None:
    """The events executor passes message and information as one argument."""
    import rclpy.experimental.events_executor as module
    node = rclpy.create_node("node", context=context)
    executor = module.EventsExecutor(context=context)
    executor.add_node(node)
    given: list[tuple[object, ...]] = []

    def callback(*arguments: object) -> None:
        given.append(arguments)

    names = ("message", "information")
    callback.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in names]
    )
    try:
        node.create_subscription(String, "topic", callback, 1)
        publisher = node.create_publisher(String, "topic", 1)
        end = time.monotonic() + HANG_S
        while not given and time.monotonic() < end:
            publisher.publish(String())
            executor.spin_once(timeout_sec=0.05)
    finally:
        executor.shutdown()
        node.destroy_node()
    assert given, "no message"
    assert len(given[0]) == 1, GONE.format("message information")


def test_slow_log(context: Any) -> None:
    """A log line looks for its caller with Python's inspect module, which reads the source."""
    node = rclpy.create_node("node", context=context)
    called: set[str] = set()

    def note(frame: Any, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_filename == inspect.__file__:
            called.add(frame.f_code.co_name)

    log = node.get_logger()
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        log.info("a line")
    finally:
        sys.setprofile(before)
        node.destroy_node()
    assert "findsource" in called, GONE.format("slow log")


def test_shared_profile(context: Any) -> None:
    """An override of QoS is written into the profile of the caller, who may use it again."""
    override = Parameter("qos_overrides./topic.subscription.depth", value=7)
    node = rclpy.create_node("node", context=context, parameter_overrides=[override])
    profile = QoSProfile(depth=1)
    options = QoSOverridingOptions.with_default_policies()
    node.create_subscription(String, "topic", print, profile, qos_overriding_options=options)
    node.destroy_node()
    assert profile.depth == 7, GONE.format("shared profile")


def test_nameless_override(context: Any) -> None:
    """The error about an override of QoS does not name the parameter."""
    name = "qos_overrides./topic.subscription.reliability"
    override = Parameter(name, value="nonsense")
    node = rclpy.create_node("node", context=context, parameter_overrides=[override])
    options = QoSOverridingOptions.with_default_policies()
    with pytest.raises(Exception, match="nonsense") as caught:
        node.create_subscription(String, "topic", print, 1, qos_overriding_options=options)
    node.destroy_node()
    assert name not in str(caught.value), GONE.format("nameless override")


def test_private_overrides(context: Any) -> None:
    """A node has no public way to the parameters that it was given."""
    public = [name for name in dir(Node) if "override" in name and not name.startswith("_")]
    assert not public, GONE.format("private overrides")
    node = rclpy.create_node(
        "node", context=context, parameter_overrides=[Parameter("a", value=1)]
    )
    assert node._parameter_overrides["a"].value == 1
    node.destroy_node()


def test_every_workaround_is_listed() -> None:
    """The comments of the package, the table in CONTRIBUTING.md and the tests here agree."""
    package = Path(delassus_ros.__file__).parent
    files = [*package.rglob("*.py"), *Path(delassus.__file__).parent.rglob("*.py")]
    commented = set()
    for path in files:
        for name in re.findall(
            r"# Work-around \(([a-z -]+)\): ", path.read_text(encoding="utf-8")
        ):
            assert path.parent == package / "ros", path
            commented.add(name)
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = page.partition("## Work-arounds")[2].partition("\n## ")[0]
    row = r"^\| ([a-z -]+) \| .+ \| .+ \| `test_workarounds.py::(\w+)` \|$"
    rows = re.findall(row, section, re.MULTILINE)
    assert rows and {name for name, _ in rows} == commented
    tests = Path(__file__).read_text(encoding="utf-8")
    for name, test in rows:
        assert test == f"test_{re.sub('[ -]', '_', name)}" and f"def {test}(" in tests
