"""The SROS2 policy: of the form that sros2 wants, and just what the nodes really have."""

from __future__ import annotations

import copy
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib import import_module

import pytest
from processes import ROOT, ros_program, wait_until

POLICY = ROOT / "config" / "security" / "policy.xml"
OTHERS = {
    "/odometry", "/imu", "/joint_torques", "/contact_placements", "/contact_schedule"
}  # fmt: skip
"""Inputs that the demo does not have, with its axes and outputs."""
NODES = ("delassus_node", "simulator", "delassus_monitor")

# What sros2's schema of version 0.2.0 says, in few words.
ELEMENTS = {"topics": "topic", "services": "service", "actions": "action"}
QUALIFIERS = {
    "topics": {"publish", "subscribe"},
    "services": {"reply", "request"},
    "actions": {"call", "execute"},
}
CHILDREN = {"policy": {"enclaves"}, "enclaves": {"enclave"}, "enclave": {"profiles"}}
CHILDREN |= {"profiles": {"profile", "metadata"}, "profile": set(ELEMENTS)}
CHILDREN |= {many: {one} for many, one in ELEMENTS.items()}
REQUIRED = {"policy": {"version"}, "enclave": {"path"}, "profile": {"ns", "node"}}
OPTIONAL = {"profiles": {"type"}} | QUALIFIERS


def schema_faults(policy: ElementTree.Element) -> list[str]:
    """Return what sros2's schema would say against a policy."""
    faults = []
    if policy.tag != "policy" or policy.get("version") != "0.2.0":
        faults.append("not a policy of version 0.2.0")
    for element in policy.iter():
        name, given = element.tag, set(element.attrib)
        faults += [f"{name} lacks {lacking}" for lacking in REQUIRED.get(name, set()) - given]
        known = REQUIRED.get(name, set()) | OPTIONAL.get(name, set())
        faults += [f"{name} has {other}" for other in given - known]
        children = [child.tag for child in element]
        allowed = CHILDREN.get(name, set())
        faults += [f"{child} in {name}" for child in children if child not in allowed]
        if allowed and name != "profile" and not children:
            faults.append(f"{name} is empty")
        if not allowed and not (element.text or "").strip():
            faults.append(f"{name} is empty")
        for qualifier in given & QUALIFIERS.get(name, set()):
            if element.get(qualifier) not in ("ALLOW", "DENY"):
                faults.append(f"{name} has {qualifier}={element.get(qualifier)}")
    return faults


def allowed(node: str) -> dict[str, set[str]]:
    """Return the full names that the policy allows a node, by what it may do with them."""
    policy = ElementTree.parse(POLICY).getroot()
    (profile,) = policy.findall(f".//enclave[@path='/delassus/{node}']/profiles/profile")
    namespace = profile.attrib["ns"].rstrip("/")
    own = f"{namespace}/{profile.attrib['node']}"
    found: dict[str, set[str]] = {}
    for group in profile:
        for qualifier, rule in group.attrib.items():
            assert rule == "ALLOW"
            for expression in group:
                name = str(expression.text)
                full = own + name[1:] if name[0] == "~" else f"{namespace}/{name}"
                full = name if name[0] == "/" else full
                names = found.setdefault(qualifier, set())
                assert full not in names, f"{full} is listed twice for {node}"
                names.add(full)
    return found


def beyond(names: dict[str, set[str]], others: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the names that others do not have."""
    found = {key: many - others.get(key, set()) for key, many in names.items()}
    return {key: many for key, many in found.items() if many}


# --- the form ---------------------------------------------------------------------------------


def test_policy_is_of_the_form_that_sros2_wants() -> None:
    assert schema_faults(ElementTree.parse(POLICY).getroot()) == []


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (lambda p: p.set("version", "0.1.0"), "not a policy of version 0.2.0"),
        (lambda p: p.find(".//enclave").attrib.clear(), "enclave lacks path"),
        (lambda p: p.find(".//profile").attrib.pop("ns"), "profile lacks ns"),
        (lambda p: p.find(".//topics").set("publish", "MAYBE"), "topics has publish=MAYBE"),
        (lambda p: p.find(".//topics").set("reply", "ALLOW"), "topics has reply"),
        (lambda p: p.find(".//topics").clear(), "topics is empty"),
        (lambda p: p.find(".//service").clear(), "service is empty"),
        (lambda p: ElementTree.SubElement(p.find(".//topics"), "service"), "service in topics"),
    ],
)
def test_the_form_is_really_looked_at(
    spoil: Callable[[ElementTree.Element], object], fault: str
) -> None:
    policy = copy.deepcopy(ElementTree.parse(POLICY).getroot())
    spoil(policy)
    assert fault in schema_faults(policy)


def test_sros2_itself_takes_the_policy() -> None:
    from sros2 import policy
    policy.load_policy(POLICY)


def test_nothing_is_allowed_by_a_pattern() -> None:
    """DENY is what sros2 makes of all that is not listed."""
    policy = ElementTree.parse(POLICY).getroot()
    paths = [enclave.get("path") for enclave in policy.iter("enclave")]
    assert paths == [f"/delassus/{node}" for node in NODES]
    expressions = [str(e.text) for one in ELEMENTS.values() for e in policy.iter(one)]
    assert expressions
    assert not [text for text in expressions if not re.fullmatch(r"(~?/)?[A-Za-z0-9_/]+", text)]


def test_no_node_may_ask_another_for_anything() -> None:
    for node in NODES:
        assert set(allowed(node)) == {"publish", "subscribe", "reply"}


def test_only_the_simulator_may_feed_the_node() -> None:
    inputs = {"/joint_states", "/active_contacts", "/robot_description"}
    assert inputs <= allowed("delassus_node")["subscribe"]
    assert inputs <= allowed("simulator")["publish"]
    inputs |= OTHERS
    for node in ("delassus_node", "delassus_monitor"):
        assert not inputs & allowed(node)["publish"]


# --- what the nodes have ----------------------------------------------------------------------


class Processes:
    """The three nodes as demo.launch.py starts them, and what the graph says of them."""

    def __init__(self, simulated_time: bool) -> None:
        import rclpy
        import_module("delassus_msgs")
        import_module("nav_msgs")
        import_module("mujoco")
        from ros_domains import new_domain

        domain = new_domain()
        time_arguments = ["-p", f"use_sim_time:={str(simulated_time).lower()}"]
        config = str(ROOT / "config" / "quadruped.yaml")
        topics = {"delassus": "delassus_node/delassus", "reference": "simulator/reference"}
        remaps = [word for pair in topics.items() for word in ("-r", "{}:={}".format(*pair))]
        modules = {
            "delassus_node": ("node.main", "--params-file", config),
            "simulator": ("sim.simulator_node", "-p", "truth:=true", "-p", "rate:=50"),
            "delassus_monitor": ("monitor.monitor_node", *remaps),
        }
        self.programs = {
            node: ros_program(
                f"delassus_ros.{module}", *arguments, "--enclave", f"/delassus/{node}",
                *time_arguments, domain=domain,
            )
            for node, (module, *arguments) in modules.items()
        }  # fmt: skip
        self._context = rclpy.Context()
        rclpy.init(args=[], context=self._context, domain_id=domain)
        self._looker = rclpy.create_node(
            "looker", context=self._context, enable_rosout=False, start_parameter_services=False
        )

    def close(self) -> None:
        with ExitStack() as stack:
            for program in self.programs.values():
                stack.enter_context(program)
                program.process.terminate()
            for program in self.programs.values():
                program.wait()
        self._looker.destroy_node()
        self._context.try_shutdown()

    def wait_for_enclaves(self, expected: dict[str, str]) -> None:
        """Wait until these are the nodes and their enclaves.

        Others may be seen for a while: those of a test before that had this domain, too.
        """
        wait_until(
            lambda: self._enclaves() == sorted(expected.items()),
            "such enclaves",
            report=lambda: str(self._enclaves()),
        )

    def _enclaves(self) -> list[tuple[str, str]]:
        found = self._looker.get_node_names_and_namespaces_with_enclaves()
        return sorted((name, enclave) for name, _, enclave in found if name != "looker")

    def endpoints(self, node: str) -> dict[str, set[str]]:
        """Return what a node has at present, named as in a policy."""
        from rclpy.node import NodeNameNonExistentError

        questions = {
            "publish": self._looker.get_publisher_names_and_types_by_node,
            "subscribe": self._looker.get_subscriber_names_and_types_by_node,
            "reply": self._looker.get_service_names_and_types_by_node,
            "request": self._looker.get_client_names_and_types_by_node,
        }
        try:
            answers = {key: {n for n, _ in ask(node, "/")} for key, ask in questions.items()}
        except NodeNameNonExistentError:
            return {}
        return {key: names for key, names in answers.items() if names}

    def wait_for(self, node: str, expected: dict[str, set[str]]) -> None:
        """Wait until a node has just these; fail with the difference."""
        program = self.programs[node]

        def differences() -> str:
            found = self.endpoints(node)
            return (
                f"{node} has, but the policy does not allow: {beyond(found, expected)}\n"
                f"the policy allows {node}, which does not have: {beyond(expected, found)}\n"
                f"{program.report()}"
            )

        wait_until(
            lambda: self.endpoints(node) == expected, "agreement", program.fault, differences
        )


@pytest.fixture(name="processes", params=[False, True], ids=["wall_time", "simulated_time"])
def make_processes(request: pytest.FixtureRequest) -> Iterator[Processes]:
    processes = Processes(request.param)
    yield processes
    processes.close()


def test_policy_is_just_what_the_nodes_have(
    processes: Processes, request: pytest.FixtureRequest
) -> None:
    """All topics and services of the running nodes, no fewer and no more."""
    simulated = "simulated_time" in request.node.name
    for node in NODES:
        expected = allowed(node)
        expected.get("subscribe", set()).difference_update(OTHERS)
        for topic in ("dynamics", "contacts"):
            expected.get("publish", set()).discard(f"/delassus_node/{topic}")
        if not simulated:
            expected["subscribe"].discard("/clock")
        processes.wait_for(node, {key: names for key, names in expected.items() if names})
    processes.wait_for_enclaves({node: f"/delassus/{node}" for node in NODES})
