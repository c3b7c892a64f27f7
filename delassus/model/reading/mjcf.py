"""MJCF: its compilation by MuJoCo, also without the files of meshes, and its text."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from delassus.arguments import shown
from delassus.errors import RobotError
from delassus.model.reading.mjcf_size import check_size
from delassus.model.reading.xml import parse_xml

_log = logging.getLogger(__name__)
MJCF = "mujoco"
"""Name of the root element."""
_ABSENT = "Error opening file"
"""How MuJoCo says that a mesh, a height field or an image is absent."""
_LOOKS = ("skins", "flexes", "textures", "materials")
_OF_FILES = ("include", "model", "attach", "flexcomp", "extension")
"""Elements that stand for what is not in the text."""


def compiled(source: Any) -> Any:
    """Return the mujoco.MjModel of a model or MjSpec, of the path of a file, or of XML text.

    If a file of a mesh, height field or image is absent, the shapes of such files are left out,
    with a line in the log: the inertia that ``<inertial>`` states does not depend on them.

    Raises
    ------
    RobotError
        If MuJoCo cannot compile the source, or a body has the inertia of an absent mesh; names it.
    """
    import mujoco

    if isinstance(source, mujoco.MjModel):
        return source
    try:
        spec = _spec(source)
        try:
            return spec.compile()
        except ValueError as error:
            if _ABSENT not in str(error):
                raise
            file = str(error).partition(_ABSENT)[2].strip()
            _leave_out_files(spec)
            _log.warning("%s is absent: shapes of files are left out", file)
            return spec.compile()
    except ValueError as error:
        raise RobotError(f"MuJoCo cannot compile {shown(source)}: {error}") from error


def compiled_text(text: str) -> Any:
    """Return the mujoco.MjModel of an MJCF of which nothing else than the text is read.

    Shapes of files are left out; see :func:`compiled`.

    Raises
    ------
    RobotError
        If the text includes files, or as for :func:`compiled`.
    """
    for element in parse_xml(text.encode()).iter():
        if element.tag in _OF_FILES:
            raise RobotError(
                f"<{element.tag}> of an MJCF stands for what is not in its text, and a robot "
                "description is read without other files; write the bodies in its place"
            )
    spec = _spec(text)
    _leave_out_files(spec)
    return compiled(spec)


def _spec(source: Any) -> Any:
    """Return the mujoco.MjSpec of what a robot is read from."""
    import mujoco

    if isinstance(source, mujoco.MjSpec):
        return source.copy()
    if isinstance(source, str) and source.lstrip().startswith("<"):
        check_size(source)
        return mujoco.MjSpec.from_string(source)
    if not isinstance(source, (str, Path)):
        raise RobotError(
            f"a robot of MuJoCo is read from {shown(source)}; expected a mujoco.MjModel or "
            "MjSpec, the path of a file, or XML text that starts with '<'"
        )
    if not os.path.isfile(source):
        raise RobotError(f"there is no file {shown(str(source))}")
    check_size(source)
    return mujoco.MjSpec.from_file(str(source))


def _leave_out_files(spec: Any) -> None:
    """Remove the shapes and images of files from a model.

    Raises
    ------
    RobotError
        If a body has the inertia of such a shape; names the body and the file.
    """
    import mujoco

    always = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE
    of_shapes = spec.compiler.inertiafromgeom == always
    assets = [asset for asset in (*spec.meshes, *spec.hfields) if asset.file]
    files = {asset.name or Path(asset.file).stem: asset.file for asset in assets}
    for geom in list(spec.geoms):
        geom.material = ""
        file = files.get(geom.meshname or geom.hfieldname)
        if file is None:
            continue
        body = geom.parent
        if (of_shapes or not body.explicitinertial) and body.name != "world":
            raise RobotError(
                f"the inertia of body {body.name!r} is that of the mesh {file}, which is not "
                "read; expected <inertial> in the body, or the path of the MJCF with its meshes"
            )
        spec.delete(geom)
    for asset in assets:
        spec.delete(asset)
    for name in _LOOKS:
        for look in list(getattr(spec, name)):
            spec.delete(look)


def without_includes(element: Element, folder: Path) -> Element:
    """Return a copy of an MJCF with the contents of included files in their place.

    Parameters
    ----------
    element : the root element.
    folder : folder of the file, to which paths are relative.
    """
    found = Element(element.tag, element.attrib)
    found.text, found.tail = element.text, element.tail
    for child in element:
        if child.tag == "include":
            included = parse_xml(folder / child.get("file", ""))
            found.extend(without_includes(included, folder))
        else:
            found.append(without_includes(child, folder))
    return found
