"""Writing messages to an MCAP file that ``ros2 bag play`` and Foxglove play."""

from __future__ import annotations

import os
import sys
from collections.abc import Container
from pathlib import Path
from typing import Any

from mcap.writer import Writer
from rclpy.serialization import serialize_message

from delassus.errors import DelassusError
from delassus.tables.partial import PartialFile

_FOREVER = "{sec: 9223372036, nsec: 854775807}"
_LATCHED = f"""\
- history: 1
  depth: 1
  reliability: 1
  durability: 1
  deadline: {_FOREVER}
  lifespan: {_FOREVER}
  liveliness: 1
  liveliness_lease_duration: {_FOREVER}
  avoid_ros_namespace_conventions: false
"""
"""QoS of a latched topic in the format of rosbag2."""


class RecordingWriter:
    """Writes a recording; topics are registered at their first message.

    Parameters
    ----------
    path : file to write. The file has this name only once it is whole; until then its name ends
        in ``.partial``.
    latched : topics whose latest message late subscribers get, too.
    chunk : number of bytes that are compressed together.
    live : for messages that cannot be received again: a new file has its name from the beginning,
        and keeps all messages so far whatever happens.

    Raises
    ------
    FileExistsError
        If `live` is true and the file exists.
    """

    def __init__(
        self, path: Path, latched: Container[str] = (), chunk: int = 1 << 20, live: bool = False
    ) -> None:
        self._latched = latched
        self._partial = None if live else PartialFile(path)
        self._file = path.open("xb") if self._partial is None else self._partial.file
        self._writer = Writer(self._file, chunk_size=chunk)
        self._writer.start(profile="ros2", library="delassus_ros")
        self._channels: dict[str, int] = {}
        self.count = 0

    def write(self, topic: str, time: int, message: Any, sent: int | None = None) -> None:
        """Write a message.

        Parameters
        ----------
        time, sent : time of arrival, and time of publishing if that differs [ns].
        """
        self.write_bytes(topic, time, serialize_message(message), type_name(type(message)), sent)

    def write_bytes(
        self, topic: str, time: int, data: bytes, kind: str, sent: int | None = None
    ) -> None:
        """Write a serialized message of a type, ``package/msg/Name``."""
        channel = self._channels.get(topic)
        if channel is None:
            schema = self._writer.register_schema(kind, "ros2msg", definition(kind).encode())
            qos = {"offered_qos_profiles": _LATCHED} if topic in self._latched else {}
            channel = self._writer.register_channel(topic, "cdr", schema, qos)
            self._channels[topic] = channel
        self.count += 1
        self._writer.add_message(channel, time, data, time if sent is None else sent, self.count)

    def close(self) -> None:
        """Give the file its name."""
        self._writer.finish()  # type: ignore[no-untyped-call]
        if self._partial is not None:
            self._partial.finish()
            return
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def flush(self) -> None:
        """Pass all messages so far to the operating system."""
        self._writer.flush()  # type: ignore[no-untyped-call]

    def discard(self) -> None:
        """Leave no file behind, unless `live`."""
        if self._partial is not None:
            self._partial.discard()


def type_name(kind: type[Any]) -> str:
    """Return the name of a message's type in recordings."""
    package, part, *_ = kind.__module__.split(".")
    return f"{package}/{part}/{kind.__name__}"


def definition(name: str) -> str:
    """Return the definition of a message and of its parts, in the format of MCAP."""
    found: dict[str, str] = {}
    todo = [name]
    while todo:
        message = todo.pop(0)
        if message in found:
            continue
        package, part, kind = message.split("/")
        text = _share(package, f"{part}/{kind}.msg").read_text(encoding="utf-8")
        found[message] = text
        for line in text.splitlines():
            word = line.partition("#")[0].split("[")[0].split("<")[0].split()
            if not word or word[0] in _PRIMITIVES or "=" in line.partition("#")[0]:
                continue
            other = word[0].split("/")
            todo.append(f"{other[0] if len(other) > 1 else package}/msg/{other[-1]}")
    first, *others = found
    line = "=" * 80
    return found[first] + "".join(f"\n{line}\nMSG: {_short(o)}\n{found[o]}" for o in others)


_PRIMITIVES = frozenset(
    "bool byte char float32 float64 int8 uint8 int16 uint16 int32 uint32 int64 uint64 string "
    "wstring".split()
)


def _share(package: str, name: str) -> Path:
    """Return a file that a package of ROS has installed, from a distribution or by pip."""
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    for prefix in (*filter(None, prefixes), sys.prefix):
        file = Path(prefix) / "share" / package / name
        if file.is_file():
            return file
    raise DelassusError(f"package {package} has no {name} in {sys.prefix} or AMENT_PREFIX_PATH")


def _short(name: str) -> str:
    package, _, kind = name.split("/")
    return f"{package}/{kind}"
