"""Reading of XML that may be broken or hostile: bounded, without DTD, entities or includes.

Files whose names others may choose are regular ones, read up to a bound.
"""

from __future__ import annotations

import codecs
import errno
import os
import re
import stat
from collections import ChainMap
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree
from xml.sax import SAXParseException
from xml.sax.handler import ContentHandler
from xml.sax.xmlreader import AttributesImpl

from defusedxml.common import DefusedXmlException
from defusedxml.expatreader import DefusedExpatParser

from delassus.errors import RobotError

MAX_BYTES = 8 * 2**20
"""Largest document accepted [bytes]; large published robots have 0.2 MiB."""
MAX_ELEMENTS = 100_000
"""Most elements accepted; large published robots have 4 000."""
MAX_DEPTH = 64
"""Deepest nesting accepted; the links and joints of a URDF need 4."""

MOST_SHOWN = 200
"""Most characters of a tag or path in a message."""
SHOWN_START_CHARACTERS = 60
"""Most characters of what is no XML in a message."""


XACRO = "{xacro}"
"""Prefix of the tags of xacro, whatever a document binds to it or calls it."""
_XML = "http://www.w3.org/XML/1998/namespace"


class _BoundedBuilder(ContentHandler):
    """Builds the element tree and stops as soon as it grows beyond the bounds.

    The parser leaves namespaces to the builder: URDFs have elements with prefixes that nothing
    declares, such as ``<sensor:camera>`` in ``<gazebo>``. Their tags stay as they are written.
    """

    def __init__(self) -> None:
        super().__init__()
        self._tree = ElementTree.TreeBuilder()
        # What xmlns and xmlns:prefix are bound to, innermost first; ElementTree has {uri}name.
        self._scopes = [ChainMap({"xmlns:xml": _XML})]
        self._elements = 0

    def startElement(self, name: str, attrs: AttributesImpl) -> None:
        """Begin an element."""
        if len(self._scopes) > MAX_DEPTH:
            raise RobotError(
                f"the XML is nested too deeply at <{name[:MOST_SHOWN]}>: at most {MAX_DEPTH} "
                "levels are accepted, a URDF needs 4"
            )
        self._elements += 1
        if self._elements > MAX_ELEMENTS:
            raise RobotError(f"the XML has too many elements: at most {MAX_ELEMENTS} are accepted")
        given = dict(attrs.items())
        declared = {key: given.pop(key) for key in attrs.keys() if _DECLARATION.match(key)}
        scope = self._scopes[-1].new_child(declared) if declared else self._scopes[-1]
        self._scopes.append(scope)
        attributes = {_tag(key, scope) if ":" in key else key: given[key] for key in given}
        self._tree.start(_tag(name, scope), attributes)

    def endElement(self, name: str) -> None:
        """End an element."""
        self._scopes.pop()
        self._tree.end(name)

    def characters(self, content: str) -> None:
        """Take text."""
        self._tree.data(content)

    def root(self) -> ElementTree.Element:
        """Return the root element of a document that has ended."""
        return self._tree.close()


_DECLARATION = re.compile("xmlns(:|$)")


def _tag(name: str, scope: Mapping[str, str]) -> str:
    """Return how ElementTree calls a name: {uri}local, or the name where nothing declares it."""
    prefix, colon, local = name.rpartition(":")
    uri = scope.get(f"xmlns:{prefix}" if colon else "xmlns", "")
    if colon and uri and (prefix == "xacro" or "xacro" in uri):
        # Xacro goes by the prefix, whatever is bound to it, and by its URIs.
        return XACRO + local
    return f"{{{uri}}}{local}" if uri else name


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
    path = path_of(source)
    if path is None:
        return _parsed(source)
    data = _read(path)
    try:
        return _parsed(data)
    except RobotError as error:
        raise RobotError(f"{str(path)[:MOST_SHOWN]}: {error}") from error


def check_document(source: str | bytes | Path) -> str | bytes:
    """Return an XML document from its first ``<``; refuse what a glance shows to be none.

    Raises
    ------
    RobotError
        If it is empty or larger than the bound, or does not start with ``<``.
    """
    document = _document(source)
    start = document[:MOST_SHOWN]
    if isinstance(start, bytes):
        # What starts so has two or four bytes per character.
        start = "<" if start[:1] in (b"\xfe", b"\xff", b"\0") else start.decode("utf-8", "replace")
    if start.startswith("<"):
        return document
    is_path = len(document) < MOST_SHOWN and not _PATHLESS.search(start)
    shown = start if is_path else start[:SHOWN_START_CHARACTERS]
    hint = (
        ". It looks like a path: give what the file contains, or start a launch file with "
        "robot_description_file:=PATH"
        if is_path
        else ""
    )
    raise RobotError(
        f"{shown!r} is not how XML starts; expected the text of a URDF, which starts with "
        f"'<robot'{hint}"
    )


_PATHLESS = re.compile(r"[<>\n]|^[^/.]*$")
"""What paths of files do not have, or all that has neither a folder nor an ending."""


def path_of(source: str | bytes | Path) -> Path | None:
    """Return the path that `source` is; None for XML."""
    if isinstance(source, Path):
        return source
    if not isinstance(source, str):
        return None
    text = _bare(source)
    scheme = _SCHEME.match(text)
    if scheme is not None:
        raise RobotError(
            f"{text[:MOST_SHOWN]!r} is a URL of scheme {scheme[1]!r}; expected the path of a "
            "file: leave file:// out, and write for package://name what "
            "ament_index_python.get_package_share_directory(name) returns"
        )
    # An empty string would be the path of the current folder.
    return None if text.startswith("<") or not text else Path(source)


def _parsed(source: str | bytes | Path) -> ElementTree.Element:
    """Return the root element of XML."""
    data = check_document(source)
    parser, builder = DefusedExpatParser(forbid_dtd=True), _BoundedBuilder()
    parser.setContentHandler(builder)
    try:
        parser.feed(data)
        parser.close()
    except DefusedXmlException as error:
        raise RobotError(
            "the XML declares a document type (<!DOCTYPE …>); DTDs, entities and external "
            "references are not accepted: remove the declaration"
        ) from error
    except SAXParseException as error:
        line, column = error.getLineNumber() or 0, error.getColumnNumber() or 0
        raise RobotError(
            f"broken XML at line {line}, column {column + 1}: {error.getMessage()}"
        ) from error
    except (LookupError, ValueError) as error:
        raise RobotError(f"the XML cannot be decoded: {error}; save it as UTF-8") from error
    return builder.root()


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
    shown = str(path)[:MOST_SHOWN]
    try:
        return read_regular_file(path, MAX_BYTES, inherited=True)
    except OSError as error:
        raise RobotError(
            f"cannot read the URDF file {shown!r}: {error.strerror or error}; give the path of "
            "a file, or XML text that starts with '<'"
        ) from error
    except ValueError as error:
        raise RobotError(f"{shown!r} is neither a path nor XML: {error}") from error


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_INHERITED = re.compile(r"/dev/stdin|(/dev|/proc/self)/fd/[0-9]+", re.ASCII)


def read_regular_file(path: str | Path, most: int, inherited: bool = False) -> bytes:
    """Return the content of a file, or one byte more than `most` of a larger one.

    Parameters
    ----------
    inherited : whether a pipe that the process has open counts as well: ``/dev/stdin``, or
        ``/dev/fd/63``, as a shell makes it of ``<(xacro …)``. Who writes to it is waited for.

    Raises
    ------
    OSError
        If it cannot be read or is not a regular file: a device may have no end.
    ValueError
        If it is no path.
    """
    with open(path, "rb", opener=_open) as file:
        mode = os.fstat(file.fileno()).st_mode
        if inherited and stat.S_ISFIFO(mode) and _INHERITED.fullmatch(str(path)):
            os.set_blocking(file.fileno(), True)
        elif not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "Not a regular file", str(path))
        content: bytes = file.read(most + 1)
        return content


def _open(path: str, flags: int) -> int:
    # To open a named pipe would otherwise wait for somebody who writes to it.
    return os.open(path, flags | os.O_NONBLOCK)
