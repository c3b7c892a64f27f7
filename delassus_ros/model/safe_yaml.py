"""Reading of YAML that may be broken or hostile: plain data only, bounded, no aliases."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from delassus_ros.errors import RobotError
from delassus_ros.model.regular_file import read_regular_file

MAX_BYTES = 256 * 2**10
"""Largest document accepted [bytes]; published files have 2 KiB."""
MAX_DEPTH = 10
"""Deepest nesting accepted; such files need 4."""


INT, _FLOAT = (f"tag:yaml.org,2002:{name}" for name in ("int", "float"))
_INTEGERS = re.compile(r"[-+]?[0-9]+$")
REAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$|[-+]?\.inf$|\.nan$")
"""How numbers are written."""
_TEXT = re.compile(r"\s*(\{|[A-Za-z_]+\s*:(\s|$))")
"""How YAML text in one line starts: no name of a file does."""


class StrictLoader(yaml.SafeLoader):
    """Reads numbers as YAML 1.2 does, and refuses keys that appear twice.

    YAML 1.1 makes 8 of 010 and 90 of 1:30, and text of 1e-5; of keys it would keep the last.
    """

    yaml_implicit_resolvers = {
        first: [each for each in found if each[0] not in (INT, _FLOAT)]
        for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return a mapping as YAML has it, each key once."""
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        seen: set[str] = set()
        for key in keys:
            if key in seen:
                raise RobotError(f"line {node.start_mark.line + 1}: key {key!r:.60} appears twice")
            seen.add(key)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping


StrictLoader.add_implicit_resolver(INT, _INTEGERS, list("-+0123456789"))
StrictLoader.add_implicit_resolver(_FLOAT, REAL, list("-+.0123456789"))
StrictLoader.add_constructor(INT, lambda loader, node: int(loader.construct_scalar(node)))


def load_yaml(
    source: str | Path | Mapping[str, Any],
    what: str,
    loader: type[StrictLoader] = StrictLoader,
) -> Any:
    """Return the plain data of a YAML document.

    Parameters
    ----------
    source : a path, YAML text (a string with a line break or that starts with ``{`` or with
        ``key:`` and white space), or data, which is returned as it is.
    what : what is read, for messages.
    loader : how scalars are read.

    Raises
    ------
    RobotError
        If the file cannot be read, is too large or deep, is not YAML, or has aliases, tags of
        objects, or a key twice.
    """
    if isinstance(source, Mapping):
        return source
    if not isinstance(source, (str, Path)):
        raise RobotError(
            f"{what} is given as a path, text or mapping, not {type(source).__name__}"
        )
    text: str | bytes
    if isinstance(source, str) and is_text(source):
        text = source
    else:
        what = f"{what} {str(source)!r:.200}"
        text = _read(source, what)
    if len(text) > MAX_BYTES:
        raise RobotError(f"{what} is larger than {MAX_BYTES} bytes")
    try:
        _check_events(text)
        return yaml.load(text, Loader=loader)
    except RobotError as error:
        raise RobotError(f"{what}: {error}") from error
    except (yaml.YAMLError, ValueError) as error:
        # ValueError: dates that do not exist and the like.
        raise RobotError(f"{what} is not YAML: {yaml_fault(error)}") from error


def is_text(source: str | Path) -> bool:
    """Return whether a source is YAML text and not a path."""
    return isinstance(source, str) and ("\n" in source or bool(_TEXT.match(source)))


def yaml_fault(error: yaml.YAMLError | ValueError) -> str:
    """Return what is wrong in a YAML document and where, without the line, which may be secret."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return " ".join(str(error).split())
    mark = error.problem_mark or error.context_mark
    where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    return ", ".join(part for part in (error.context, error.problem, where) if part)


def _read(source: str | Path, what: str) -> bytes:
    """Return at most one byte more than the size bound of the file."""
    try:
        return read_regular_file(source, MAX_BYTES)
    except OSError as error:
        # A string may have been meant as text.
        hint = "; give the path of a file, YAML text or a mapping" * isinstance(source, str)
        raise RobotError(f"{what} cannot be read: {error.strerror or error}{hint}") from error
    except ValueError as error:
        raise RobotError(f"{what} is neither a path nor YAML: {error}") from error


def _check_events(text: str | bytes) -> None:
    """Refuse what a few bytes can make huge."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise RobotError(f"it has the alias *{event.anchor}; write it out")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise RobotError(f"it is nested more than {MAX_DEPTH} deep")
