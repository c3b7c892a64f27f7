"""How large a model becomes that MJCF describes, before MuJoCo makes it: a few bytes may say much.

Elements repeat what is in them (``replicate``), stand for many bodies (``composite``,
``flexcomp``), for files (``include``, ``attach``) or for tables of numbers (``hfield``,
``texture``, ``size``). MuJoCo's compiler takes the square of the number of bodies in time.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from xml.etree.ElementTree import ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from delassus.errors import RobotError
from delassus.model.reading.xml import MAX_BYTES, MAX_ELEMENTS, read_regular_file

MAX_BODIES = 10_000
"""Most bodies accepted; MuJoCo takes some 10 s for them."""
MAX_NUMBERS = 10**8
"""Most numbers of a table accepted, of a height field or a texture."""
MAX_OF_SIZE = 10_000
"""Largest number of key frames, and of numbers of the user's for each body, joint and so on."""
_BODIES = ("body", "link")
_MANY_BODIES = ("composite", "flexcomp")
_TABLES = {"hfield": ("nrow", "ncol"), "texture": ("width", "height")}


def check_size(source: str | Path) -> None:
    """Refuse MJCF or URDF of which MuJoCo would make a model that is too large or another one.

    Parameters
    ----------
    source : the path of a file, or XML text that starts with ``<``.

    Raises
    ------
    RobotError
        If the model would be too large, says in what; if MuJoCo would drop a rotation unread, that
        of URDF 1.1; or if a file is none, or no XML.
    """
    if isinstance(source, str) and source.lstrip().startswith("<"):
        _Count(Path()).add(source.encode("utf-8", "replace"), "the XML", 1.0)
    else:
        path = Path(source)
        _Count(path.parent).add_file(path.name, 1.0)


class _Count:
    """Elements and bodies of a model, with what it includes.

    Parameters
    ----------
    folder : where files are that it names.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._elements = self._bodies = 0.0
        self._models: dict[str, str] = {}
        self._within: list[str] = []

    def add_file(self, name: str, times: float) -> None:
        """Add what a file describes, so many times."""
        path = self._folder / name
        if name in self._within:
            raise RobotError(f"{path} includes itself: {' -> '.join([*self._within, name])}")
        if not path.exists():
            return  # MuJoCo names it, or finds it elsewhere.
        try:
            content = read_regular_file(path, MAX_BYTES)
        except (OSError, ValueError) as error:
            raise RobotError(f"{path} cannot be read: {error}") from error
        self._within.append(name)
        self.add(content, str(path), times)
        self._within.pop()

    def add(self, content: bytes, what: str, times: float) -> None:
        """Add what XML describes, so many times."""
        if len(content) > MAX_BYTES:
            raise RobotError(f"{what} is larger than {MAX_BYTES} bytes")
        parser = DefusedXMLParser(target=_Elements(self, times), forbid_dtd=True)
        try:
            parser.feed(_without_comments(content.lstrip()))
            parser.close()
        except DefusedXmlException as error:
            raise RobotError(
                f"{what} declares a document type (<!DOCTYPE …>); remove the declaration"
            ) from error
        except (ParseError, ValueError, LookupError) as error:
            raise RobotError(
                f"{what} is broken XML: {error}; where MuJoCo reads it all the same, give its "
                "mujoco.MjModel"
            ) from error

    def element(self, tag: str, attributes: Mapping[str, str], times: float) -> None:
        """Add an element that is there so many times."""
        self._elements += times
        self._limit("elements", self._elements, MAX_ELEMENTS)
        bodies = 1.0 if tag in _BODIES else 0.0
        if tag in _MANY_BODIES:
            bodies = math.prod(map(_number, attributes.get("count", "1").split()))
        self._bodies += times * bodies
        self._limit("bodies", self._bodies, MAX_BODIES)
        if tag == "origin" and "quat_xyzw" in attributes:
            raise RobotError(
                "<origin quat_xyzw=…>: MuJoCo drops this rotation unread; write Robot.from_urdf(…)"
            )
        if tag in _TABLES:
            size = math.prod(_number(attributes.get(name, "1")) for name in _TABLES[tag])
            self._limit(f"numbers of a <{tag}>", size, MAX_NUMBERS)
        if tag == "size":
            for name, value in attributes.items():
                if name == "nkey" or name.startswith("nuser_"):
                    self._limit(name, _number(value), MAX_OF_SIZE)
        if tag == "include":
            self.add_file(attributes.get("file", ""), times)
        if tag == "model" and "file" in attributes:
            name = os.path.splitext(os.path.basename(attributes["file"]))[0]
            self._models[attributes.get("name", name)] = attributes["file"]
        if tag == "attach" and attributes.get("model") in self._models:
            self.add_file(self._models[attributes["model"]], times)

    @staticmethod
    def _limit(what: str, count: float, most: int) -> None:
        if count > most:
            raise RobotError(
                f"the model would have {count:.0f} {what} or more; at most {most} are accepted"
            )


class _Elements:
    """Goes through the elements of a document; the target of a parser."""

    def __init__(self, count: _Count, times: float) -> None:
        self._count, self._times = count, [times]

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Count an element, and how often its content is there."""
        times = self._times[-1]
        self._count.element(tag, attributes, times)
        if tag == "replicate":
            times *= max(_number(attributes.get("count", "1")), 1.0)
        self._times.append(times)

    def end(self, _: str) -> None:
        """Leave an element."""
        self._times.pop()

    def close(self) -> None:
        """End the document."""


def _number(text: str) -> float:
    """Return a number of things; 1 for what is none, which MuJoCo says."""
    try:
        value = float(text)
    except ValueError:
        return 1.0
    return 1.0 if math.isnan(value) else max(value, 0.0)


def _without_comments(content: bytes) -> bytes:
    """Return XML without comments: MuJoCo takes those with two minus signs in them, too."""
    kept, at = [], 0
    while (begin := content.find(b"<!--", at)) >= 0:
        end = content.find(b"-->", begin + 4)
        if end < 0:
            break
        kept.append(content[at:begin])
        at = end + 3
    return b"".join([*kept, content[at:]])
