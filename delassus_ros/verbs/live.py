"""``delassus watch``, ``contacts`` and ``record``: a running graph, without ros2cli."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from delassus.cli.options import add_seconds
from delassus.cli.parsing import Verb
from delassus.cli.report import Report, table
from delassus.drawing.ellipsoids import EffectiveMass, linear_blocks
from delassus.drawing.force_cones import ForceInCone
from delassus.errors import InputError, unknown
from delassus.model.spatial import Array
from delassus.programs.needs import require
from delassus.programs.stopping import StopRequest
from delassus.programs.terminal import control
from delassus.visible import visible
from delassus_ros.monitor.latency import MessageRate
from delassus_ros.ros.needs import require_ros

_VIEW_PERIOD_S = 0.2
"""Time between two views [s]."""


def _add_watch(parser: argparse.ArgumentParser) -> None:
    """Add the node whose matrices are watched, and the duration."""
    _add_node(parser)
    add_seconds(parser)


def _add_contacts(parser: argparse.ArgumentParser) -> None:
    """Add the contacts that are published as active."""
    parser.add_argument(
        "names",
        nargs="*",
        metavar="CONTACT",
        help="active contacts; without any, all contacts lift off",
    )
    parser.add_argument(
        "--topic", default="active_contacts", help="topic of the message (default: %(default)s)"
    )
    parser.add_argument(
        "--rate",
        type=float,
        default=20.0,
        metavar="HZ",
        help="rate of the messages [1/s], each with a new stamp (default: %(default)g)",
    )
    _add_node(parser)
    add_seconds(parser)


def _add_node(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--node",
        default="delassus_node",
        metavar="NAME",
        help="name of the node (default: %(default)s)",
    )


class _Strange:
    """Messages that cannot be read: their number and the first error."""

    def __init__(self, topic: str) -> None:
        self._topic, self._first, self.count = topic, "", 0
        self.words: list[str] = []

    def add(self, words: str) -> None:
        """Add a message by the text of its error."""
        self.count += 1
        self._first = self._first or words
        self.words = [
            visible(f"{self._topic}: {self.count} messages are not read; first: {self._first}")
        ]


def watch(options: argparse.Namespace) -> Report:
    """Show effective masses of contacts, validity, rank and condition until a request to stop."""
    with _ros("delassus watch") as (node, stopping):
        from delassus_msgs.msg import ContactDynamics, DelassusMatrix
        from delassus_msgs_py import DynamicsReader, MatrixReader, MessageError, ReceivedDynamics
        from rclpy.qos import QoSProfile, ReliabilityPolicy

        from delassus_ros.ros.queue import pop

        topic = f"{options.node}/delassus"
        qos = QoSProfile(depth=1000, reliability=ReliabilityPolicy.BEST_EFFORT)
        source = node.create_subscription(DelassusMatrix, topic, lambda _: None, qos, raw=True)
        beside = node.create_subscription(
            ContactDynamics, f"{options.node}/dynamics", lambda _: None, qos, raw=True
        )
        reader, dynamics_reader, end = MatrixReader(), DynamicsReader(), _end(options.seconds)
        dynamics: ReceivedDynamics | None = None
        pace, count, latest, lines = MessageRate(), 0, None, 0
        strange = _Strange(source.topic_name)
        pace.update(time.monotonic(), 0)
        while not stopping() and time.monotonic() < end:
            time.sleep(_VIEW_PERIOD_S)
            while (found := pop(source)) is not None:
                try:
                    latest = reader.read(found[0])
                except MessageError as error:
                    strange.add(str(error))
                    continue
                count += 1
            while (found := pop(beside)) is not None:
                try:
                    dynamics = dynamics_reader.read(found[0])
                except MessageError as error:
                    strange.add(str(error))
            pace.update(time.monotonic(), count)
            if sys.stdout.isatty():
                shown = "\n".join(
                    [_view(latest, pace, source.topic_name, dynamics), *strange.words]
                )
                control(f"\033[{lines}A\033[J" if lines else "", sys.stdout)
                print(shown, flush=True)
                lines = shown.count("\n") + 1
        if latest is None and strange.count:
            raise InputError(strange.words[0])
        if latest is None:
            publishers = node.count_publishers(source.topic_name)
            raise InputError(
                f"nothing came on {source.topic_name}, whose publishers are {publishers}; is the "
                "node active, and are joint states coming? --node names another one"
            )
        data = {"topic": source.topic_name, "rate": pace.rate, "silence": pace.silence,
                "matrices": count, "unreadable": strange.count, **_about(latest)}  # fmt: skip
        if dynamics is not None and (forces := contact_forces_of(dynamics)):
            data["forces"] = forces
        text = "\n".join([_view(latest, pace, source.topic_name, dynamics), *strange.words])
        return Report("" if lines else text, data, int(strange.count > 0))


WATCH = Verb(
    "watch",
    "show the matrices of a running node in the terminal",
    "--node delassus_node",
    watch,
    _add_watch,
)


def contacts(options: argparse.Namespace) -> Report:
    """Publish the active contacts repeatedly until a stop is requested."""
    if not 0.1 <= options.rate <= 1000.0:
        raise InputError(f"--rate is {options.rate:g}; expected 0.1 to 1000")
    with _ros("delassus contacts") as (node, stopping):
        from delassus_msgs.msg import ActiveContacts, Layout

        from delassus_ros.ros.queue import pop
        from delassus_ros.ros.topics import LATCHED

        publisher = node.create_publisher(ActiveContacts, options.topic, LATCHED)
        message = ActiveContacts(names=options.names)
        message.status = [ActiveContacts.ACTIVE] * len(options.names)
        topic = f"{options.node}/layout"
        layouts = node.create_subscription(Layout, topic, lambda _: None, LATCHED)
        strangers: list[str] = []
        end, sent = _end(options.seconds), 0
        while not stopping() and time.monotonic() < end:
            message.header.stamp = node.get_clock().now().to_msg()
            publisher.publish(message)
            sent += 1
            while (layout := pop(layouts)) is not None:
                known = layout[0].contacts
                strangers = [name for name in options.names if name not in known]
                for name in strangers:
                    print(f"{layouts.topic_name}: {unknown('contact', name, known)}",
                          file=sys.stderr)  # fmt: skip
            time.sleep(1.0 / options.rate)
        topic = publisher.topic_name
        readers = publisher.get_subscription_count()
        names = ", ".join(options.names) or "none"
        said = f"said {sent} times on {topic} that {names} touch; readers: {readers}"
        data = {"topic": topic, "names": options.names, "sent": sent, "readers": readers,
                "unknown": strangers}  # fmt: skip
        return Report(said, data, int(bool(strangers)))


CONTACTS = Verb(
    "contacts",
    "publish the set of active contacts for a running node",
    "LF_FOOT RH_FOOT",
    contacts,
    _add_contacts,
)


def _add_record(parser: argparse.ArgumentParser) -> None:
    """Add the recorded topics and the file."""
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE.mcap", help="recording that is written"
    )
    parser.add_argument(
        "--topics",
        metavar="PATTERN",
        help="regular expression that the whole name of a topic has to match, as "
        "'/joint_states|/active_contacts' (default: all topics except those of ROS itself)",
    )
    add_seconds(parser)


def record(options: argparse.Namespace) -> Report:
    """Record topics to an MCAP file until a stop is requested."""
    require("delassus record", "mcap")
    path = Path(options.output)
    try:
        pattern = None if options.topics is None else re.compile(options.topics)
    except re.error as error:
        raise InputError(
            f"--topics {options.topics!r} is no regular expression: {error}"
        ) from error
    if path.suffix != ".mcap":
        raise InputError(f"--output {path}: expected a name that ends in .mcap")
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent}")
    with _ros("delassus record") as (node, stopping):
        from delassus_ros.recordings.recorder import NOT_WANTED, Recorder

        def wanted(topic: str) -> bool:
            if pattern is not None:
                return pattern.fullmatch(topic) is not None
            return NOT_WANTED.search(topic) is None

        recorder, end = Recorder(node, path, wanted), _end(options.seconds)
        recorder.record(lambda: stopping() or time.monotonic() >= end)
    rows: list[tuple[object, ...]] = [("topic", "messages"), *sorted(recorder.counts.items())]
    lines = [table(rows, numeric=(1,)), f"wrote {path}"]
    lines += [f"not recorded, as {kind} is not installed with its definition: {topic}"
              for topic, kind in recorder.unknown.items()]  # fmt: skip
    data = {"counts": recorder.counts, "unknown": recorder.unknown, "output": str(path)}
    return Report("\n".join(lines), data)


RECORD = Verb(
    "record",
    "record the topics of a running graph to an MCAP file",
    "-o run.mcap",
    record,
    _add_record,
)


def _end(seconds: float | None) -> float:
    return time.monotonic() + seconds if seconds is not None else np.inf


@contextmanager
def _ros(program: str) -> Iterator[tuple[Any, Callable[[], bool]]]:
    """Provide a node, and a function that returns whether to stop, during a block."""
    require_ros(program)
    from delassus_ros.ros.program import peer

    with StopRequest() as stop, peer("delassus_cli") as node:
        yield node, lambda: stop.requested


def _about(received: Any) -> dict[str, Any]:
    """Return a matrix as data."""
    from delassus_ros.inputs.findings import Reason, Validity

    G = np.array(received.matrix)
    blocks = linear_blocks(G, received.row_offsets, received.kinds)
    return {
        "validity": Validity(received.validity).name,
        "reasons": [bit.name for bit in Reason if bit and bit in Reason(received.reasons)],
        "rank": received.rank,
        "condition": received.condition,
        "algorithm": received.algorithm,
        "masses": {received.contacts[i]: _masses(G[rows, rows]) for i, rows in blocks.items()},
    }


def _masses(block: Array) -> Array:
    """Return the effective masses of a contact [kg]; NaN if its block is not finite."""
    return EffectiveMass.of(block).masses if np.isfinite(block).all() else np.full(3, np.nan)


def contact_forces_of(received: Any) -> dict[str, Any]:
    """Return the contact forces of a message of secondary outputs as data; empty without forces.

    Per contact the data are those of :class:`~delassus.drawing.force_cones.ForceInCone`.
    """
    from delassus_ros.inputs.findings import Validity
    from delassus_ros.node.forces import LAW_NAMES, STATUS_NAMES

    if received.forces is None or received.friction is None or received.normals is None:
        return {}
    found: dict[str, Any] = {}
    for k, name in enumerate(received.contacts):
        first = received.row_offsets[k]
        force, normal = received.forces[first : first + 3], received.normals[k]
        parts = ForceInCone.of(force, normal, float(received.friction[k]))
        found[name] = asdict(parts)
    return {
        "validity": Validity(received.forces_validity).name,
        "status": STATUS_NAMES.get(received.forces_status, "unknown"),
        "law": LAW_NAMES.get(received.forces_law, "unknown"),
        "residual": received.forces_residual,
        "contacts": found,
    }


def _view(received: Any, pace: MessageRate, topic: str, dynamics: Any) -> str:
    """Return the view of the latest matrix, of contact forces and of the rate of matrices."""
    if received is None:
        return f"waiting for {topic} ..."
    from delassus_ros.markers.received import facts_of, words_of_forces

    facts = facts_of(received)
    lines = [f"{topic}: {facts['state']}; {pace.rate:.0f} per second"]
    if pace.has_stopped:
        lines = [f"{topic}: SILENT for {pace.silence:.1f} s (the last one was {facts['state']})"]
    if received.matrix.size:
        lines.append(
            f"rank {facts['rank']}, condition {facts['condition']}, "
            f"{visible(facts['algorithm'])}, {1e6 * received.compute_time:.1f} µs"
        )
        rows = [("effective mass [kg]", "smallest", "middle", "largest")]
        masses = _about(received)["masses"].items()
        rows += [(name, *(f"{m:.4g}" for m in values)) for name, values in masses]
        lines += ["", table(rows, numeric=(1, 2, 3))]
    if dynamics is not None and (forces := contact_forces_of(dynamics)):
        parts: list[tuple[object, ...]] = [("contact", "normal N", "sideways N", "of cone %")]
        for name, force in forces["contacts"].items():
            shown = (force["normal"], force["sideways"], 100.0 * force["share"])
            parts.append((name, *("-" if np.isnan(value) else f"{value:.4g}" for value in shown)))
        lines += ["", f"forces {words_of_forces(dynamics)}", table(parts, numeric=(1, 2, 3))]
    return "\n".join(lines)
