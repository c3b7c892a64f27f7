"""Reading of XML that may be broken or hostile: bounded, without DTD, entities or includes.

Beside it the parts that every reader needs: files whose names others may choose, numbers as XML
and YAML write them (Python reads more: ``2_0`` as 20, and the digits of every script), names,
children, poses and axes of elements.
"""

from __future__ import annotations

import codecs
import errno
import os
import re
import stat
from collections import ChainMap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.sax import SAXParseException
from xml.sax.handler import ContentHandler
from xml.sax.xmlreader import AttributesImpl

import numpy as np
from defusedxml.common import DefusedXmlException
from defusedxml.expatreader import DefusedExpatParser
from urdf_parser_py.xml_reflection.core import ParseError

from delassus_ros.errors import RobotError, unknown
from delassus_ros.model.spatial import Array, Transform

MAX_BYTES = 8 * 2**20
"""Largest document accepted [bytes]; large published robots have 0.2 MiB."""
MAX_ELEMENTS = 100_000
"""Most elements accepted; large published robots have 4 000."""
MAX_DEPTH = 64
"""Deepest nesting accepted; the links and joints of a URDF need 4."""

_SAID = 200
"""Most characters of a tag or path in a message."""
_GLANCE = 60
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
                f"the XML is nested too deeply at <{name[:_SAID]}>: at most {MAX_DEPTH} levels "
                "are accepted, a URDF needs 4"
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
    path = _path(source)
    if path is None:
        return _parsed(source)
    data = _read(path)
    try:
        return _parsed(data)
    except RobotError as error:
        raise RobotError(f"{str(path)[:_SAID]}: {error}") from error


def check_document(source: str | bytes | Path) -> str | bytes:
    """Return an XML document from its first ``<``; refuse what a glance shows to be none.

    Raises
    ------
    RobotError
        If it is empty or larger than the bound, or does not start with ``<``.
    """
    document = _document(source)
    start = document[:_SAID]
    if isinstance(start, bytes):
        # What starts so has two or four bytes per character.
        start = "<" if start[:1] in (b"\xfe", b"\xff", b"\0") else start.decode("utf-8", "replace")
    if start.startswith("<"):
        return document
    is_path = len(document) < _SAID and not _PATHLESS.search(start)
    shown = start if is_path else start[:_GLANCE]
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


def _path(source: str | bytes | Path) -> Path | None:
    """Return the path that `source` is; None for XML."""
    if isinstance(source, Path):
        return source
    if not isinstance(source, str):
        return None
    text = _bare(source)
    scheme = _SCHEME.match(text)
    if scheme is not None:
        raise RobotError(
            f"{text[:_SAID]!r} is a URL of scheme {scheme[1]!r}; expected the path of a file: "
            "leave file:// out, and write for package://name what "
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
    shown = str(path)[:_SAID]
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


_NUMBER = re.compile(
    r"[-+]?((\.[0-9]+|[0-9]+(\.[0-9]*)?)(e[-+]?[0-9]+)?|inf|infinity|nan)",
    re.ASCII | re.IGNORECASE,
)
_SPACE = " \t\r\n"
_SHOWN = 40


def number(text: str) -> float:
    """Return the number that a text is, white space around it allowed; it may be infinite or NaN.

    Raises
    ------
    ValueError
        If it is none; the message says so.
    """
    word = text.strip(_SPACE)
    if not _NUMBER.fullmatch(word):
        raise ValueError(f"{word[:_SHOWN]!r} is not a number")
    return float(word)


def numbers_in(text: str) -> list[float]:
    """Return the numbers in a text, with white space between them.

    Raises
    ------
    ValueError
        If one of the words is no number; the message says which.
    """
    return [number(word) for word in re.split(f"[{_SPACE}]+", text.strip(_SPACE)) if word]


MAX_NUMBER = 1e9
"""Largest length [m], angle [rad], mass [kg] or inertia [kg·m²] accepted: beyond it, sums
and products over a tree could overflow, and no robot comes near."""
MAX_NAME = 1000
"""Most characters of a name."""
ORIGIN = ("xyz", "rpy")
"""Attributes of an ``<origin>``."""


def name_of(element: ElementTree.Element, what: str, taken: Iterable[str]) -> str:
    """Return the name of an element; refuse none, an endless one and a taken one."""
    name = element.get("name", "")
    if not name:
        raise RobotError(f"a <{what}> has no name")
    if len(name) > MAX_NAME:
        raise RobotError(
            f"{what} {name[:40]!r}…: names may have at most {MAX_NAME} characters, "
            f"this one has {len(name)}"
        )
    if name in taken:
        raise RobotError(f"{what} {name!r} appears twice; names must be unique")
    return name


def only_child(
    element: ElementTree.Element, prefix: str, tag: str, what: str
) -> ElementTree.Element | None:
    """Return the child with this tag, or None; refuse several."""
    found = element.findall(prefix + tag)
    if len(found) > 1:
        raise RobotError(f"{what}: <{tag}> appears {len(found)} times; one is meant")
    return found[0] if found else None


def check_parts(
    element: ElementTree.Element,
    prefix: str,
    what: str,
    attributes: tuple[str, ...],
    children: tuple[str, ...] = (),
) -> None:
    """Refuse attributes and children that are not read; those of other namespaces are dropped."""
    place = f"{what}: <{element.tag.removeprefix(prefix)}>"
    for key in element.attrib:
        if "}" not in key and key not in attributes:
            raise RobotError(f"{place}: {unknown('attribute', key[:MAX_NAME], attributes)}")
    for child in element:
        namespace, brace, tag = child.tag.rpartition("}")
        if namespace + brace == prefix and tag not in children:
            raise RobotError(f"{place}: {unknown('element', tag[:MAX_NAME], children)}")


def copy(
    source: ElementTree.Element,
    target: ElementTree.Element,
    prefix: str,
    tag: str,
    keys: tuple[str, ...],
    what: str,
    required: str | None = None,
) -> None:
    """Copy child `tag` of `source`, if there is one, with the attributes `keys` alone."""
    child = only_child(source, prefix, tag, what)
    if child is None:
        return
    if tag == "origin":
        # Newer URDF can give the rotation in other ways; dropping it would be wrong.
        for key in child.attrib.keys() - set(keys):
            raise RobotError(f"{what}: <origin {key}=…> is not supported; write xyz and rpy")
    if required is not None and not child.get(required):
        raise RobotError(f"{what}: <{tag}> has no attribute {required!r}")
    attributes = {key: child.attrib[key] for key in keys if key in child.attrib}
    for key, text in attributes.items():
        if key != "link":
            place = f"{what}: <{tag} {key}=…>"
            found, expected = len(_numbers_in(text, place)), 3 if key in ORIGIN else 1
            if found != expected:
                raise RobotError(_miscounted(place, expected, found))
    ElementTree.SubElement(target, tag, attributes)


def parse(reader: Any, node: ElementTree.Element, what: str) -> Any:
    """Read one sanitized element with urdf_parser_py."""
    try:
        return reader.from_xml_string(ElementTree.tostring(node))
    except ParseError as error:
        raise RobotError(f"{what}: {error.e} (at {error.path})") from error
    except ValueError as error:
        raise RobotError(f"{what}: {error}") from error


def attribute(element: ElementTree.Element, key: str, what: str) -> str:
    """Return an attribute that must be there."""
    value = element.get(key, "").strip()
    if not value:
        tag = element.tag.rpartition("}")[2]
        raise RobotError(f"{what}: <{tag}> has no attribute {key!r}")
    return value


def floats(text: str, count: int, what: str) -> Array:
    """Return `count` numbers written in an attribute or in the text of an element."""
    return numbers(_numbers_in(text, what), count, what)


def numbers(values: Iterable[float], count: int, what: str) -> Array:
    """Return `count` finite numbers of sensible size."""
    array = np.array(list(values), dtype=np.float64)
    if array.shape != (count,):
        raise RobotError(_miscounted(what, count, array.size))
    # Written so that NaN fails as well.
    if not np.all(np.abs(array) <= MAX_NUMBER):
        shown = " ".join(f"{value:g}" for value in array)
        raise RobotError(
            f"{what}: numbers must be finite and at most {MAX_NUMBER:g} in SI units, got {shown}"
        )
    return array


def _miscounted(what: str, expected: int, found: int) -> str:
    return f"{what}: expected {expected} number{'' if expected == 1 else 's'}, got {found}"


def _numbers_in(text: str, what: str) -> list[float]:
    try:
        return numbers_in(text)
    except ValueError as error:
        raise RobotError(f"{what}: {error}") from error


def pose_of(origin: Any, what: str) -> Transform:
    """Return the pose of a parsed ``<origin>``, or the identity."""
    if origin is None:
        return Transform()
    return Transform.from_xyz_rpy(
        numbers(origin.xyz, 3, f"{what}: origin xyz"),
        numbers(origin.rpy, 3, f"{what}: origin rpy"),
    )


def axis_of(xyz: Iterable[float] | None, what: str, written: str = "<axis xyz>") -> Array:
    """Return a unit vector; (1, 0, 0), URDF's default, if there is none.

    `written` is where its file has it, for the message.
    """
    axis = numbers((1.0, 0.0, 0.0) if xyz is None else xyz, 3, f"{what}: axis")
    length = float(np.linalg.norm(axis))
    if length < 1.0 / MAX_NUMBER:
        raise RobotError(f"{what}: the axis must not be zero; give its direction in {written}")
    return axis / length
