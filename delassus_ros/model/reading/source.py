"""Sources of robot descriptions: files in ROS packages, and xacro where it is installed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from delassus_ros.errors import RobotError

_SCHEME = "package://"


def located(source: str | bytes | Path) -> str | bytes | Path:
    """Return the source of a description with ``package://`` resolved and xacro expanded.

    Parameters
    ----------
    source : as for :meth:`~delassus_ros.model.robot.Robot.from_urdf`. A file that ends in
        ``.xacro`` is a program that its expansion runs: only for those that are trusted.

    Raises
    ------
    RobotError
        If there is no such package or file in it, or xacro is needed and absent or fails.
    """
    found: str | bytes | Path = source
    if isinstance(source, str) and source.strip().startswith(_SCHEME):
        found = in_package(source.strip())
    if isinstance(found, str | Path) and str(found).endswith(".xacro"):
        return _expanded(Path(found))
    return found


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


def _expanded(file: Path) -> bytes:
    try:
        import xacro
    except ImportError as error:
        raise RobotError(
            f"{file} is xacro, which is not installed: pip install xacro (ROS: "
            "ros-$ROS_DISTRO-xacro), or expand it first with 'xacro robot.urdf.xacro > robot.urdf'"
        ) from error
    if not file.is_file():
        raise RobotError(f"there is no file {file}")
    try:
        text: str = xacro.process_file(str(file)).toxml()
    except Exception as error:
        # Of what a file makes it do: whatever it is, the file is named.
        raise RobotError(f"xacro cannot expand {file}: {error}") from error
    return text.encode()
