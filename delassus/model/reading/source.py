"""Sources of robot descriptions: files in ROS packages, and xacro where it is installed."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.etree.ElementTree import Element

from delassus.errors import RobotError, listed, unknown
from delassus.model.reading.xml import parse_xml, path_of

_log = logging.getLogger(__name__)
_SCHEME = "package://"


def document_of(
    source: str | bytes | Path | Element, xacro_arguments: Mapping[str, object] | None = None
) -> Element:
    """Return the root element of a description, ``package://`` resolved and xacro expanded.

    A robot without a name is called as its file, with a warning.

    Parameters
    ----------
    source, xacro_arguments : as for :meth:`~delassus.model.robot.Robot.from_urdf`. A file that
        ends in ``.xacro`` is a program that its expansion runs: read trusted files alone.

    Raises
    ------
    RobotError
        If there is no such package or file in it, xacro is needed and absent or fails, or the
        arguments are not those of the file; as :func:`~delassus.model.reading.xml.parse_xml`.
    """
    if isinstance(source, str) and source.strip().startswith(_SCHEME):
        source = in_package(source.strip())
    file = None if isinstance(source, Element) else path_of(source)
    if file is not None and file.suffix == ".xacro":
        root = parse_xml(_expanded(file, xacro_arguments or {}))
    elif xacro_arguments:
        raise RobotError(
            f"xacro arguments {listed('', list(xacro_arguments))} are given, but "
            f"{'the text' if file is None else file} is no xacro; expected a file that ends in "
            ".xacro"
        )
    else:
        root = source if isinstance(source, Element) else parse_xml(source)
    if root.tag != "mujoco" and file is not None and file.is_file() and not root.get("name"):
        root.set("name", file.name.partition(".")[0])
        _log.warning("%s: a <robot> has no name; it is called %r", file, root.get("name"))
    return root


def in_package(uri: str) -> Path:
    """Return the file of a ``package://`` path in ROS's packages, installed or as source.

    Raises
    ------
    RobotError
        If no package has the file; names the folders.
    """
    package, inside = package_and_path(uri)
    looked = []
    for folder in folders_of(package):
        looked.append(str(folder))
        if (folder / inside).is_file():
            return folder / inside
    raise RobotError(
        f"{uri} is in none of: {', '.join(looked)}"
        if looked
        else f"{uri}: neither AMENT_PREFIX_PATH nor ROS_PACKAGE_PATH is set; source a workspace, "
        "or give the path of the file"
    )


def package_and_path(uri: str) -> tuple[str, str]:
    """Return the package of ``package://name/path`` and the path; a third slash means nothing."""
    package, _, inside = uri.partition("://")[2].lstrip("/").partition("/")
    return package, inside


def folders_of(package: str) -> Iterator[Path]:
    """Yield where a package of ROS or a model of Gazebo may be, installed or as source."""
    for prefix in filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)):
        yield Path(prefix) / "share" / package
    for variable in ("ROS_PACKAGE_PATH", "GZ_SIM_RESOURCE_PATH", "GAZEBO_MODEL_PATH"):
        for folder in filter(None, os.environ.get(variable, "").split(os.pathsep)):
            # The path of a folder of packages, or of the package itself.
            yield Path(folder) / package
            if Path(folder).name == package:
                yield Path(folder)


class _Arguments(dict[str, str]):
    """Arguments of a xacro file, which notes the names that xacro asks for."""

    def __init__(self, given: Mapping[str, object]) -> None:
        super().__init__({name: str(value) for name, value in given.items()})
        self.known: dict[str, None] = {}

    def __contains__(self, name: object) -> bool:
        self.known[str(name)] = None
        return super().__contains__(name)

    def __getitem__(self, name: str) -> str:
        self.known[name] = None
        return super().__getitem__(name)


def _expanded(file: Path, given: Mapping[str, object]) -> bytes:
    try:
        import xacro
    except ImportError as error:
        raise RobotError(
            f"{file} is xacro, which is not installed: pip install xacro (ROS: "
            "ros-$ROS_DISTRO-xacro), or expand it first with 'xacro robot.urdf.xacro > robot.urdf'"
        ) from error
    if not file.is_file():
        raise RobotError(f"there is no file {file}")
    arguments = _Arguments(given)
    try:
        text: str = xacro.process_file(str(file), mappings=arguments).toxml()
    except Exception as error:
        # Of what a file makes it do: whatever it is, the file is named.
        raise RobotError(f"xacro cannot expand {file}: {error}") from error
    for name in given:
        if name not in arguments.known:
            raise RobotError(f"{file}: {unknown('xacro argument', name, arguments.known)}")
    return text.encode()
