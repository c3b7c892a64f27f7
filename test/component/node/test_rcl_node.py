"""The node in C of examples/rcl_node beside delassus_node: the same bytes for the same inputs."""

from __future__ import annotations

import math
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import robots
from delassus_msgs.msg import ActiveContacts, DelassusMatrix, Layout
from hanging import HANG_S
from node_support import (
    DEGRADED,
    INVALID,
    OK,
)
from processes import ROOT, Program
from rclpy.serialization import deserialize_message
from ros_support import LATCHED, Graph, overrides, stamp_of
from sensor_msgs.msg import JointState

from delassus import Robot
from delassus_ros.node.delassus_node import DelassusNode
from delassus_ros.verbs.parameter_files import parameters_of

EXAMPLE = ROOT / "examples" / "rcl_node"
SECOND = 10**9
AGAIN_S = 10.0
"""Time after which a joint state without an answer is sent again [s]: subscriptions of best effort
may lose one while their process is stopped."""
CONFIG = """
/**:
  ros__parameters:
    autostart: true
    algorithm: pv_osimr
    input_timeout: 60.0
    contacts_timeout: 0.0
    realtime: {hold_garbage: false}
    contacts:
      names: [LF, heel, RH, sole]
      LF: {frame: LF_FOOT}
      heel: {frame: LF_FOOT, xyz: [0.03, 0.0, 0.01]}
      RH: {frame: RH_FOOT}
      sole: {frame: RF_FOOT, kind: surface}
"""


def description() -> str:
    """Return the quadruped without limits but of one joint."""
    text, first = robots.unlimited(), '<limit effort="'
    return text.replace(first, '<limit lower="-3" upper="3" effort="', 1)


def prepare(folder: Path) -> int:
    """Run prepare.py for the files of a folder."""
    main = runpy.run_path(str(EXAMPLE / "prepare.py"))["main"]
    return int(
        main([str(folder / "config.yaml"), "--urdf", str(folder / "robot.urdf"), str(folder)])
    )


def built(folder: Path) -> Path:
    """Compile the node for the quadruped with the libraries of the wheels and numpy's LAPACK."""
    include = Path(sys.prefix) / "include"
    lapack = list(Path(np.__file__).parents[1].glob("numpy.libs/libscipy_openblas64_-*.so"))
    for needed, found in (
        ("gcc", shutil.which("gcc")),
        ("the headers of rcl", (include / "rcl").is_dir()),
        ("numpy's own LAPACK", len(lapack) == 1),
        # Of the wheels alone: their librcl needs symbols of Python.
        ("a shared library of Python", sysconfig.get_config_var("Py_ENABLE_SHARED")),
    ):
        if not found:
            pytest.skip(f"{needed}: not found")
    (folder / "config.yaml").write_text(CONFIG)
    (folder / "robot.urdf").write_text(description())
    assert prepare(folder) == 0
    library, python = Path(sys.prefix) / "lib", sysconfig.get_config_var("LIBDIR")
    messages = [
        f"-l{package}__rosidl_{part}"
        for package in ("sensor_msgs", "delassus_msgs")
        for part in ("typesupport_c", "generator_c")
    ]
    subprocess.run(
        [
            "gcc", "-std=gnu11", "-O1", "-I", ".",
            "-DNODE_DSYEVD=scipy_dsyevd_64_", "-DNODE_LAPACK_INT=int64_t",
            *(f"-I{path}" for path in include.iterdir() if path.is_dir()),
            EXAMPLE / "node.c", "robot.o", "-o", "node",
            f"-L{library}", "-lrcl", "-lrcutils", "-lrmw", "-lrosidl_runtime_c", *messages,
            *lapack, "-lm", "-Wl,--allow-shlib-undefined", "-Wl,--no-as-needed", f"-L{python}",
            f"-lpython{sysconfig.get_config_var('LDVERSION')}",
            f"-Wl,-rpath,{library}:{lapack[0].parent}:{python}",
        ],
        cwd=folder, check=True, timeout=HANG_S,
    )  # fmt: skip
    return folder / "node"


def read(data: bytes) -> DelassusMatrix:
    return deserialize_message(data, DelassusMatrix)


class Pair:
    """The node in C and delassus_node on the same topics, and what both answer."""

    def __init__(self, graph: Graph, program: Path) -> None:
        self.graph = graph
        self.robot = Robot.from_urdf(description().encode())
        self.answers: list[list[bytes]] = [[], []]
        self.layouts: list[list[Layout]] = [[], []]
        for k, namespace in enumerate(("/in_c", "")):
            name = f"{namespace}/delassus_node"
            graph.peer.create_subscription(
                DelassusMatrix, f"{name}/delassus", self.answers[k].append, 100, raw=True
            )
            graph.peer.create_subscription(
                Layout, f"{name}/layout", self.layouts[k].append, LATCHED
            )
        parameters = parameters_of(str(program.with_name("config.yaml")))
        node = DelassusNode(
            context=graph.context,
            parameter_overrides=overrides({**parameters, "robot_description": description()}),
        )
        graph.add(node)
        node.start()
        remaps = (
            "__ns:=/in_c",
            "joint_states:=/joint_states",
            "active_contacts:=/active_contacts",
        )
        arguments = [word for remap in remaps for word in ("-r", remap)]
        one_thread = {"OPENBLAS_NUM_THREADS": "1"}
        self.program = Program(
            program, "--ros-args", *arguments, domain=graph.domain, environment=one_thread
        )
        graph.fault = self.program.fault
        self.states = graph.peer.create_publisher(JointState, "joint_states", 100)
        self.sets = graph.peer.create_publisher(ActiveContacts, "active_contacts", LATCHED)
        self.stamp = 0
        self.q = np.tile([0.1, 0.7, -1.4], 4)

    def tick(self) -> None:
        """Take the next stamp: some seconds in the past, whatever has paused before."""
        self.stamp = max(self.stamp + SECOND // 10, time.time_ns() - 10 * SECOND)

    def publish(self, at: int = 0, **fields: Any) -> JointState:
        """Publish a joint state of the next stamp, or of a given one [ns]; return it."""
        self.tick()
        message = JointState(
            **{"name": list(self.robot.joint_names), "position": self.q.tolist(), **fields}
        )
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(at or self.stamp, SECOND)
        self.states.publish(message)
        return message

    def connect(self) -> None:
        """Publish joint states until both nodes have answered one."""

        def answered() -> bool:
            self.publish()
            self.graph.spin(time.monotonic() + 0.5)
            return all(self.answers)

        self.graph.until(answered, "answers of both nodes")

    def ask(self, at: int = 0, **fields: Any) -> list[DelassusMatrix]:
        """Publish a joint state; return both answers."""
        counts = [len(answers) for answers in self.answers]
        message = self.publish(at, **fields)
        stamp = max(stamp_of(message), 0)
        again = time.monotonic() + AGAIN_S

        def found() -> list[DelassusMatrix] | None:
            nonlocal again
            if time.monotonic() > again:
                self.states.publish(message)
                again = time.monotonic() + AGAIN_S
            both = [
                [read(data) for data in answers[count:] if stamp_of(read(data)) == stamp][:1]
                for answers, count in zip(self.answers, counts, strict=True)
            ]
            return [message for (message,) in both] if all(both) else None

        return self.graph.until(found, "answers of both nodes")

    def touch(
        self, names: Sequence[str], status: Sequence[int], ahead: int = 0
    ) -> list[DelassusMatrix]:
        """Publish a set of contacts, stamped `ahead` ns later than all other messages.

        Return both answers to the first joint state with it.
        """
        message = ActiveContacts(names=list(names), status=list(status))
        self.tick()
        told = divmod(self.stamp + ahead, SECOND)
        message.header.stamp.sec, message.header.stamp.nanosec = told
        self.sets.publish(message)

        def with_it() -> list[DelassusMatrix] | None:
            both = self.ask()
            stamps = [(m.contacts_stamp.sec, m.contacts_stamp.nanosec) for m in both]
            return both if stamps == [told, told] else None

        return self.graph.until(with_it, "set of contacts at both nodes")

    def same(self, both: Sequence[DelassusMatrix]) -> DelassusMatrix:
        """Compare all of both answers but two times and the count of messages."""
        for message in both:
            assert (message.compute_time > 0.0) is (message.validity != INVALID)
            message.compute_time, message.sequence = 0.0, 0
            message.input_age = math.nan if math.isnan(message.input_age) else 0.0
        # As text, which has every number to the last bit: the middleware does not set the bytes
        # between fields, and rounds the length up, so that two serializations of a message differ.
        assert repr(both[0]) == repr(both[1])
        return both[1]


@pytest.fixture(name="pair")
def make_pair(graph: Graph, tmp_path: Path) -> Iterator[Pair]:
    pair = Pair(graph, built(tmp_path))
    with pair.program:
        yield pair


def test_the_node_in_c_publishes_the_same_bytes(pair: Pair) -> None:
    graph, rng, reason = pair.graph, np.random.default_rng(1), DelassusMatrix
    pair.connect()
    assert pair.same(pair.ask()).reasons == reason.REASON_NO_CONTACTS_RECEIVED
    graph.until(lambda: all(pair.layouts), "both layouts")
    first, second = (layouts[0] for layouts in pair.layouts)
    assert abs(stamp_of(first) - time.time_ns()) < 3600 * SECOND
    first.header.stamp = second.header.stamp
    assert first == second

    active, slipping = ActiveContacts.ACTIVE, ActiveContacts.SLIPPING
    ranks = []
    for names, status in (
        (["LF"], [active]),
        (["heel", "LF"], [active, slipping]),
        (["sole", "RH", "LF", "heel"], [active, active, active, active]),
        (["LF", "RH"], [active, ActiveContacts.INACTIVE]),
        ([], []),
        (["LF", "elsewhere"], [active, active]),
        (["LF", "elsewhere"], [active, ActiveContacts.UNKNOWN]),
        (["RH", "sole"], [active, active]),
    ):
        pair.same(pair.touch(names, status))
        for _ in range(2):
            pair.q = rng.uniform(-1.0, 1.0, 12)
            answer = pair.same(pair.ask())
            lacks_rows = ("elsewhere", active) in zip(names, status, strict=True)
            assert answer.validity == (DEGRADED if lacks_rows else OK)
            ranks.append((answer.rank, answer.structural_rank, len(answer.status)))
    # Redundant contacts: two points of one foot have 5 independent rows.
    assert (5, 5, 2) in ranks and (0, 0, 0) in ranks
    answer = pair.same(pair.touch(["LF"], [active], 1000 * SECOND))
    assert (answer.validity, answer.reasons) == (DEGRADED, reason.REASON_STAMP_IN_FUTURE)
    for names, status, words in (
        (["LF", "LF"], [active, active], reason.REASON_DUPLICATE_CONTACT),
        (["LF"], [], reason.REASON_CONTACTS_MALFORMED),
        (["LF"], [9], reason.REASON_CONTACTS_MALFORMED),
    ):
        answer = pair.same(pair.touch(names, status))
        assert (answer.validity, answer.reasons) == (INVALID, words)

    assert pair.same(pair.touch(["LF", "RH"], [active, active])).validity == OK
    names, q = list(pair.robot.joint_names), pair.q.tolist()
    shuffled = rng.permutation(12)
    for expected, fields in (
        (
            0,
            {
                "name": ["arm", *(names[k] for k in shuffled)],
                "position": [9.0, *(q[k] for k in shuffled)],
            },
        ),
        (reason.REASON_JOINT_NOT_FINITE, {"position": [math.nan, *q[1:]]}),
        (reason.REASON_JOINT_NOT_FINITE, {"position": [*q[1:], -math.inf]}),
        (reason.REASON_JOINT_SIZE_MISMATCH, {"position": q[:5]}),
        (reason.REASON_JOINT_DUPLICATED, {"name": [*names, names[3]], "position": [*q, 0.0]}),
        (reason.REASON_JOINT_OUTSIDE_LIMITS, {"position": [3.6, *q[1:]]}),
        (reason.REASON_JOINT_FAR, {"position": [*q[1:], 2e6]}),
        (reason.REASON_STAMP_INVALID, {"at": -1}),
        (0, {}),
        (reason.REASON_INPUT_STALE | reason.REASON_STAMP_JUMPED_BACK, {"at": 5 * SECOND}),
        (0, {}),
        (reason.REASON_STAMP_JUMPED_BACK, {"at": pair.stamp - SECOND}),
        (reason.REASON_STAMP_IN_FUTURE, {"at": time.time_ns() + 1000 * SECOND}),
    ):
        answer = pair.same(pair.ask(**fields))
        assert answer.reasons == expected, (fields, answer.reasons, expected)
    for answers in pair.answers:
        numbers = [read(data).sequence for data in answers]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    # The search for duplicates is quadratic in the length, which the node in C bounds.
    many = 100_000
    message = ActiveContacts(names=[str(k) for k in range(many)], status=[1] * many)
    pair.sets.publish(message)
    graph.until(
        lambda: [int(m.reasons) for m in pair.ask()][:1] == [reason.REASON_CONTACTS_MALFORMED],
        "refusal of a set that is too long",
    )
    assert pair.program.stop() == 0


def test_another_kernel_and_names_of_any_characters(tmp_path: Path) -> None:
    """The data of one robot are not compiled with the kernel of another."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc: not found")
    name = 'trunk "é" \\ %s'
    urdf = description().replace('"base"', f"'{name}'")
    assert urdf != description()
    # Rows of a robot with a fixed base are relative to its root link.
    fixed = CONFIG.replace("autostart: true", "base: fixed\n    axes: world")
    (tmp_path / "config.yaml").write_text(fixed)
    (tmp_path / "robot.urdf").write_text(urdf)
    assert prepare(tmp_path) == 0
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "node_data.h"\nint main(void) { puts(NODE_FRAME_ID); }\n'
    )
    subprocess.run(["gcc", "main.c", "-o", "main"], cwd=tmp_path, check=True, timeout=HANG_S)
    shown = subprocess.run(tmp_path / "main", capture_output=True, check=True, timeout=HANG_S)
    assert shown.stdout.decode() == name + "\n"

    include = Path(sys.prefix) / "include"
    if not (include / "rcl").is_dir():
        pytest.skip("the headers of rcl: not found")
    header = (tmp_path / "robot.h").read_text()
    for size, words in (
        ("ROBOT_IN_SIZE", "the kernel has inputs besides joint positions"),
        ("ROBOT_OUT_SIZE", "the kernel has outputs besides G"),
        ("ROBOT_ROWS", "data/node_data.h is of another robot than data/robot.h"),
    ):
        (tmp_path / "robot.h").write_text(re.sub(rf"({size}[ =]+)\d+", r"\g<1>99", header))
        done = subprocess.run(
            ["gcc", "-std=gnu11", "-fsyntax-only", "-I", ".",
             *(f"-I{path}" for path in include.iterdir() if path.is_dir()), EXAMPLE / "node.c"],
            cwd=tmp_path, capture_output=True, text=True, timeout=HANG_S,
        )  # fmt: skip
        assert done.returncode != 0 and words in done.stderr, (size, done.stderr[:2000])


LOOP = """
<loop name="grip" type="spherical">
  <predecessor link="LF_FOOT"/><successor link="RF_FOOT"/>
</loop>
</robot>
"""


@pytest.mark.parametrize(
    ("config", "urdf", "needed"),
    [
        (CONFIG.replace("autostart: true", "rows: all"), description(), "rows: active"),
        (
            CONFIG.replace("autostart: true", "loops_as: rows"),
            description().replace("</robot>", LOOP),
            "a robot without loops or couplings",
        ),
    ],
)
def test_what_the_node_in_c_lacks_is_named(
    tmp_path: Path, capsys, config: str, urdf: str, needed: str
) -> None:
    (tmp_path / "config.yaml").write_text(config)
    (tmp_path / "robot.urdf").write_text(urdf)
    assert prepare(tmp_path) == 2
    words = f"the node in C needs {needed}; use delassus_node instead"
    assert words in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.yaml", "robot.urdf"]
