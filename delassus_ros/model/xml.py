"""Reading of XML that may be broken or hostile: bounded, without DTD, entities or includes."""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from delassus_ros.errors import RobotError
from delassus_ros.model.regular_file import read_regular_file

MAX_BYTES = 8 * 2**20
"""Largest document accepted [bytes]; large published robots have 0.2 MiB."""
MAX_ELEMENTS = 100_000
"""Most elements accepted; large published robots have 4 000."""
MAX_DEPTH = 64
"""Deepest nesting accepted; the links and joints of a URDF need 4."""

_SHOWN = 200
"""Most characters of a tag or path in a message."""
_GLANCE = 60
"""Most characters of what is no XML in a message."""


class _BoundedBuilder(ElementTree.TreeBuilder):
    """Builds the element tree and stops as soon as it grows beyond the bounds."""

    def __init__(self) -> None:
        super().__init__()
        self._depth = 0
        self._elements = 0
        self._xacro: set[str] = set()

    def start_ns(self, prefix: str, uri: str, /) -> None:
        if prefix == "xacro":
            self._xacro.add(uri)

    def start(self, tag: str, attrs: dict[Any, Any], /) -> ElementTree.Element:
        namespace, _, name = tag[1:].rpartition("}")
        if namespace in self._xacro:
            # Xacro goes by the prefix, whatever is bound to it; a tree has no prefixes.
            tag = f"{{xacro}}{name}"
        self._depth += 1
        self._elements += 1
        if self._depth > MAX_DEPTH:
            raise RobotError(
                f"the XML is nested too deeply at <{tag[:_SHOWN]}>: at most {MAX_DEPTH} levels "
                "are accepted, a URDF needs 4"
            )
        if self._elements > MAX_ELEMENTS:
            raise RobotError(f"the XML has too many elements: at most {MAX_ELEMENTS} are accepted")
        return super().start(tag, attrs)

    def end(self, tag: str, /) -> ElementTree.Element:
        self._depth -= 1
        return super().end(tag)


def parse_xml(source: str | bytes | Path) -> ElementTree.Element:
    """Parse a file, or XML given as text or bytes, and return its root element.

    Parameters
    ----------
    source : a path, XML bytes, or a string: XML if its first character that is not white
        space is ``<``, else a path: of a regular file, or of a pipe that the process has
        open, ``/dev/stdin`` or a shell's ``<(xacro …)``. Bytes and files are read in the
        encoding that they declare, else as UTF-8.

    Raises
    ------
    RobotError
        If the file cannot be read, the XML is broken (names line and column), larger or
        deeper than the bounds of this module, or has a document type (no DTD, no entities);
        names the file.
    """
    path = _path(source)
    if path is None:
        return _parsed(source)
    data = _read(path)
    try:
        return _parsed(data)
    except RobotError as error:
        raise RobotError(f"{str(path)[:_SHOWN]}: {error}") from error


def check_document(text: str) -> None:
    """Refuse text of which a glance shows that it is no XML that would be read.

    Raises
    ------
    RobotError
        If it is empty or larger than the bound, or does not start with ``<``.
    """
    _document(text)
    start = _bare(text)[:_GLANCE]
    if not start.startswith("<"):
        raise RobotError(
            f"{start!r} is not how XML starts; expected the text of a URDF, which starts with "
            "'<robot'"
        )


def _path(source: str | bytes | Path) -> Path | None:
    """Return the path that `source` is; None for XML."""
    if isinstance(source, Path):
        return source
    if not isinstance(source, str):
        return None
    text = _bare(source)
    # An empty string would be the path of the current folder.
    return None if text.startswith("<") or not text else Path(source)


def _parsed(source: str | bytes | Path) -> ElementTree.Element:
    """Return the root element of XML."""
    data = _document(source)
    parser = DefusedXMLParser(target=_BoundedBuilder(), forbid_dtd=True)
    try:
        parser.feed(data)
        root: ElementTree.Element = parser.close()
    except DefusedXmlException as error:
        raise RobotError(
            "the XML declares a document type (<!DOCTYPE …>); DTDs, entities and external "
            "references are not accepted: remove the declaration"
        ) from error
    except ElementTree.ParseError as error:
        line, column = error.position
        reason = str(error).rsplit(": line ", 1)[0]
        if reason == "unbound prefix":
            reason += "; if it is xacro:, expand the file first with xacro"
        raise RobotError(f"broken XML at line {line}, column {column + 1}: {reason}") from error
    except (LookupError, ValueError) as error:
        raise RobotError(f"the XML cannot be decoded: {error}; save it as UTF-8") from error
    return root


def _document(source: str | bytes | Path) -> str | bytes:
    """Return the XML document from its first ``<``, within the size bound."""
    document: str | bytes
    if isinstance(source, str):
        document = _bare(source)
    elif isinstance(source, bytes):
        document = source.lstrip().removeprefix(codecs.BOM_UTF8).lstrip()
    else:
        raise RobotError(
            f"a URDF is given as a path, text or bytes, not as {type(source).__name__}"
        )
    # A character takes at least one byte, so long text need not be encoded to be refused.
    size = len(document)
    if size <= MAX_BYTES and isinstance(document, str):
        size = len(document.encode("utf-8", "replace"))
    if size > MAX_BYTES:
        raise RobotError(
            f"the XML is larger than {MAX_BYTES} bytes; strip it of what is not links and joints"
        )
    if not document:
        raise RobotError("the URDF is empty: give a path, or XML that starts with '<robot'")
    return document


def _bare(text: str) -> str:
    """Return text without white space before it, which is not XML, but common."""
    return text.lstrip().removeprefix("\ufeff").lstrip()


def _read(path: Path) -> bytes:
    """Return at most one byte more than the size bound of the file."""
    shown = str(path)[:_SHOWN]
    try:
        return read_regular_file(path, MAX_BYTES, inherited=True)
    except OSError as error:
        raise RobotError(
            f"cannot read the URDF file {shown!r}: {error.strerror or error}; give the path of "
            "a file, or XML text that starts with '<'"
        ) from error
    except ValueError as error:
        raise RobotError(f"{shown!r} is neither a path nor XML: {error}") from error
