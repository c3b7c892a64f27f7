"""Visual shapes of a robot: the meshes, boxes, cylinders and spheres of URDF and MJCF.

Needs the package trimesh. Shapes do not change the matrix: a shape that cannot be read is left
out, with a line about it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote
from xml.etree.ElementTree import Element

import numpy as np
import trimesh
from numpy.typing import NDArray

from delassus.drawing.skeleton import homogeneous
from delassus.errors import RobotError
from delassus.model.joint import WORLD
from delassus.model.mechanism import Mechanism
from delassus.model.reading.mujoco import body_names, pose_of
from delassus.model.reading.numbers import floats, number, numbers_in
from delassus.model.reading.origin import origin_of
from delassus.model.reading.source import folders_of, package_and_path
from delassus.model.spatial import Array, Transform, skew

Colour: TypeAlias = tuple[float, float, float, float]
"""Red, green, blue and opacity, 0 to 1."""

GREY: Colour = (0.72, 0.74, 0.78, 1.0)
"""Colour of shapes without one."""
BOX: Colour = (0.54, 0.58, 0.64, 0.5)
"""Colour of boxes of inertia."""
_THINNEST = 1e-3
"""Smallest side of a box of inertia [m], as of a rod or a point mass."""
_Y_UP = "y_up"
"""Key of a mesh's metadata: whether y is up in its file."""
_Y_TO_Z = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
_HEAD = 2**16
"""Number of bytes of a COLLADA file that are searched for its unit and axis."""
_UNIT = re.compile(rb"<unit\b[^>]*\bmeter\s*=\s*[\"']([^\"']*)")
_SECTIONS = 32
"""Number of sides of cylinders and capsules."""


@dataclass(frozen=True, eq=False)
class Shape:
    """A visual shape on a body.

    Attributes
    ----------
    body : index of the body that carries the shape, or WORLD.
    mesh : the shape, in the frame of the body [m].
    colour : colour of the whole shape; None if the mesh has colours of its own.
    """

    frame: str
    body: int
    mesh: trimesh.Trimesh
    colour: Colour | None

    def outermost(self) -> Array:
        """Return the farthest vertices (n, 3) in directions all around, in the body's frame."""
        return np.asarray(self.mesh.vertices)[outermost(np.asarray(self.mesh.vertices))]


def outermost(points: Array) -> NDArray[np.intp]:
    """Return the indices of the points (N, 3) that are farthest in directions all around."""
    steps = np.array([-1.0, 0.0, 1.0])
    directions = np.stack(np.meshgrid(steps, steps, steps), axis=-1).reshape(-1, 3)
    directions = directions[np.abs(directions).any(axis=1)]
    return np.unique(np.argmax(points @ directions.T, axis=0))


@dataclass(frozen=True, eq=False)
class Shapes:
    """The visual shapes of a robot.

    Attributes
    ----------
    unread : per shape that was not read, a line with the link and the reason.
    bare : bodies with a link of which no shape can be read.
    """

    shapes: tuple[Shape, ...]
    unread: tuple[str, ...] = ()
    bare: frozenset[int] = frozenset()

    @cached_property
    def _outermost(self) -> list[Array]:
        return [shape.outermost() for shape in self.shapes]

    def points(self, poses: Array) -> list[Array]:
        """Return the farthest points (n, 3) of each shape in the root link [m].

        Parameters
        ----------
        poses : (bodies, 4, 4) poses of bodies in the root link.
        """
        found = []
        for shape, points in zip(self.shapes, self._outermost, strict=True):
            pose = np.eye(4) if shape.body == WORLD else poses[shape.body]
            found.append(points @ pose[:3, :3].T + pose[:3, 3])
        return found

    @classmethod
    def of_urdf(cls, robot: Mechanism, document: Element, folder: Path | None) -> Shapes:
        """Return the visual shapes of a URDF.

        A link whose visual shapes cannot be read is shown by its collision shapes.

        COLLADA files may state that y is up. RViz ignores this, other programs rotate such meshes;
        the orientation nearer to the centres of mass of their links is used.

        Parameters
        ----------
        folder : folder of the file, to which paths of meshes are relative; None without a file.
        """
        read: list[_Visual] = []
        unread: list[str] = []
        bare: set[int] = set()
        colours = _materials(document)
        for link in document.iterfind("link"):
            parts, faults = _visuals(link, "visual", colours, folder)
            name, instead = link.get("name", ""), ""
            if faults and not parts:
                parts, _ = _visuals(link, "collision", colours, folder)
                instead = "; its collision shapes are drawn" if parts else "; a line is drawn"
                bare |= set() if parts else {robot.frames[name].body}
            read += parts
            unread += [f"link {name!r}: {fault}{instead}" for fault in faults]
        _turn_y_up(read)
        found = []
        for part in read:
            name = part.link.get("name", "")
            found += _joined(
                [_shape(robot, name, mesh, part.place, part.colour) for mesh in part.meshes]
            )
        return cls(tuple(found), tuple(unread), frozenset(bare))

    @classmethod
    def of_mujoco(cls, robot: Mechanism, model: Any) -> Shapes:
        """Return the shapes that MuJoCo's viewer shows of a compiled model, without the world's.

        Of a body with shapes that are only seen, those that only touch are left out.
        """
        names = body_names(model)
        seen = _seen(model)
        found = []
        for g in seen:
            mesh = _mujoco_geometry(model, g)
            if mesh is None:
                continue
            place = pose_of(model.geom_pos[g], model.geom_quat[g])
            material = int(model.geom_matid[g])
            rgba = model.geom_rgba[g] if material < 0 else model.mat_rgba[material]
            red, green, blue, opacity = rgba.tolist()
            name = names[int(model.geom_bodyid[g])]
            found.append(_shape(robot, name, mesh, place, (red, green, blue, opacity)))
        return cls(tuple(found))


def inertia_boxes(robot: Mechanism, shapes: Shapes, longest: float) -> tuple[Shape, ...]:
    """Return boxes of the mass and inertia of the bodies whose shapes are missing.

    These are all bodies of a robot without any shape, and else the bare ones without another
    shape. A solid box of sides a_i has the principal moments m (a_j² + a_k²) / 12.

    Parameters
    ----------
    longest : boxes with a longer side, which are no inertia of a link, are left out [m].
    """
    shown = {shape.body for shape in shapes.shapes}
    bodies = shapes.bare - shown if shown else range(len(robot.bodies))
    found = []
    for body in sorted(bodies):
        inertia = robot.bodies[body].inertia
        if inertia.mass <= 0.0:
            continue
        com = inertia.moment / inertia.mass
        about_com = inertia.rotational + inertia.mass * skew(com) @ skew(com)
        moments, axes = np.linalg.eigh(about_com)
        squares = 6.0 / inertia.mass * (moments.sum() - 2.0 * moments)
        sides = np.sqrt(np.maximum(squares, _THINNEST**2))
        if sides.max() > longest:
            continue
        place = homogeneous(Transform(axes * np.linalg.det(axes), com))
        box = trimesh.creation.box(sides, place)
        found.append(Shape(robot.joints[body].name, body, box, BOX))
    return tuple(found)


@dataclass(frozen=True, eq=False)
class _Visual:
    """A visual of a link: its meshes, their pose in the link, and the URDF's colour."""

    link: Element
    meshes: list[trimesh.Trimesh]
    place: Transform
    colour: Colour | None

    def distance(self, turn: Array) -> float:
        """Return how far the meshes' centre is from the link's centre of mass, when turned [m]."""
        origin = self.link.find("inertial/origin")
        try:
            com = np.array(numbers_in("" if origin is None else origin.get("xyz", "")))
        except ValueError:
            com = np.zeros(0)
        if com.shape != (3,):
            return 0.0
        low = np.min([mesh.bounds[0] for mesh in self.meshes], axis=0)
        high = np.max([mesh.bounds[1] for mesh in self.meshes], axis=0)
        centre = self.place.rotation @ turn @ (0.5 * (low + high)) + self.place.translation
        return float(np.linalg.norm(centre - com))


def _visuals(
    link: Element, tag: str, colours: Mapping[str, Colour], folder: Path | None
) -> tuple[list[_Visual], list[str]]:
    """Return the visual or collision shapes of a link, and why further shapes cannot be read."""
    found, faults = [], []
    for visual in link.iterfind(tag):
        try:
            meshes, place = _geometry(visual, folder), origin_of(visual, tag)
        except (RobotError, ValueError, OSError) as error:
            faults.append(str(error))
        else:
            found.append(_Visual(link, meshes, place, _colour(visual, colours)))
    return found, faults


def _turn_y_up(visuals: Sequence[_Visual]) -> None:
    """Turn meshes whose y is up to z, where that brings them nearer to their links' masses."""
    turned = [v for v in visuals if any(mesh.metadata.get(_Y_UP) for mesh in v.meshes)]
    as_written = sum(visual.distance(np.eye(3)) for visual in turned)
    if sum(visual.distance(_Y_TO_Z) for visual in turned) < 0.5 * as_written:
        matrix = homogeneous(Transform(_Y_TO_Z))
        for visual in turned:
            for mesh in visual.meshes:
                mesh.apply_transform(matrix)


def _shape(
    robot: Mechanism, name: str, mesh: trimesh.Trimesh, place: Transform, colour: Colour | None
) -> Shape:
    frame = robot.frames[name]
    mesh.apply_transform(homogeneous(frame.placement @ place))
    return Shape(name, frame.body, mesh, colour or _colour_of(mesh))


def _joined(shapes: Sequence[Shape]) -> list[Shape]:
    """Return shapes of one link with those of the same colour as one."""
    by_colour: dict[Colour, list[Shape]] = {}
    for shape in shapes:
        if shape.colour is not None:
            by_colour.setdefault(shape.colour, []).append(shape)
    joined = [
        replace(same[0], mesh=trimesh.util.concatenate([shape.mesh for shape in same]))
        for same in by_colour.values()
    ]
    return [*joined, *(shape for shape in shapes if shape.colour is None)]


def _colour_of(mesh: trimesh.Trimesh) -> Colour | None:
    """Return the one colour of a mesh; None if it has a picture or colours of its own."""
    if mesh.visual.kind is None:
        return GREY
    if mesh.visual.kind != "texture":
        return None
    material = mesh.visual.material
    if (
        getattr(material, "baseColorTexture", None) is None
        and getattr(material, "image", None) is None
    ):
        red, green, blue, opacity = (float(value) / 255.0 for value in material.main_color)
        return red, green, blue, opacity
    if hasattr(material, "metallicFactor"):
        # glTF takes materials for metal that do not say what they are, and metal is black here.
        material.metallicFactor = 0.0
    return None


def _geometry(visual: Element, folder: Path | None) -> list[trimesh.Trimesh]:
    """Return the meshes of a visual, one per material, in its own axes."""
    shape = visual.find("geometry/*")
    if shape is None:
        raise ValueError("a visual without geometry")
    if shape.tag == "mesh":
        return _read(shape, folder)
    found: trimesh.Trimesh
    if shape.tag == "box":
        found = trimesh.creation.box(floats(shape.get("size", ""), 3, "<box size=…>"))
    elif shape.tag == "sphere":
        found = trimesh.creation.icosphere(radius=number(shape.get("radius", "")))
    elif shape.tag in ("capsule", "cylinder"):
        radius, length = (number(shape.get(key, "")) for key in ("radius", "length"))
        found = (_capsule if shape.tag == "capsule" else _cylinder)(radius, length)
    else:
        raise ValueError(f"unknown shape <{shape.tag}>")
    return [found]


def _cylinder(radius: float, length: float) -> trimesh.Trimesh:
    found: trimesh.Trimesh = trimesh.creation.cylinder(radius, length, sections=_SECTIONS)
    return found


def _capsule(radius: float, length: float) -> trimesh.Trimesh:
    """Return a capsule about z; `length` is that of its cylinder."""
    found: trimesh.Trimesh = trimesh.creation.capsule(
        length, radius, count=(_SECTIONS // 2, _SECTIONS)
    )
    # Older versions of trimesh put the lower end at z = 0.
    found.apply_translation((0.0, 0.0, -found.bounds[:, 2].mean()))
    return found


def _read(shape: Element, folder: Path | None) -> list[trimesh.Trimesh]:
    """Return the meshes of a file, scaled."""
    uri = shape.get("filename", "")
    path = mesh_file(uri, folder)
    if path is None:
        raise RobotError(f"there is no file {uri}")
    if path.suffix.lower() == ".dae":
        if find_spec("collada") is None:
            raise RobotError(f"{path} needs the Python package: 'pip install pycollada'")
    try:
        parts = trimesh.load_scene(path).dump()
    except Exception as error:
        # Readers of meshes raise errors of any kind; this one names the file.
        raise RobotError(f"{path} cannot be read: {' '.join(str(error).split())}") from error
    meshes = [part for part in parts if isinstance(part, trimesh.Trimesh) and len(part.faces)]
    if not meshes:
        raise RobotError(f"{path} has no faces")
    unit, is_y_up = _conventions(path)
    scale = unit * floats(shape.get("scale", "1 1 1"), 3, "<mesh scale=…>")
    for mesh in meshes:
        mesh.metadata[_Y_UP] = is_y_up
        if (scale != 1.0).any():
            mesh.apply_scale(scale)
    return meshes


def _conventions(path: Path) -> tuple[float, bool]:
    """Return the unit of a file [m], and whether its y axis is up, which COLLADA alone states."""
    if path.suffix.lower() != ".dae":
        return 1.0, False
    with path.open("rb") as file:
        head = file.read(_HEAD)
    unit = _UNIT.search(head)
    return number(unit[1].decode("ascii", "replace")) if unit else 1.0, b"<up_axis>Y_UP" in head


def mesh_file(uri: str, folder: Path | None) -> Path | None:
    """Return the file of a mesh, or None.

    Paths of ``package://`` and ``model://`` are searched in the packages of ROS and the models
    of Gazebo, then in the folders above the robot description, of which one is the package or
    holds the package. A path may be percent-encoded, as ``%20`` for a space.
    """
    return next((path for path in _places(uri, folder) if path.is_file()), None)


def _places(uri: str, folder: Path | None) -> Iterator[Path]:
    """Yield where the file of a mesh may be."""
    for text in dict.fromkeys((uri, unquote(uri))):
        scheme, separator, inside = text.partition("://")
        if not separator or scheme == "file":
            yield (folder or Path()) / (inside if separator else text)
        elif scheme in ("package", "model"):
            package, rest = package_and_path(text)
            yield from (place / rest for place in folders_of(package))
            for above in () if folder is None else (folder, *folder.resolve().parents):
                if above.name == package:
                    yield above / rest
                yield above / package / rest


def _materials(document: Element) -> Mapping[str, Colour]:
    """Return the colours of materials by name."""
    found = {}
    for material in document.iter("material"):
        colour = _rgba(material)
        if colour is not None:
            found[material.get("name", "")] = colour
    return found


def _rgba(material: Element) -> Colour | None:
    """Return the colour of a material; None with a picture: the colours are those of the mesh."""
    texture, element = material.find("texture"), material.find("color")
    if element is None or (texture is not None and texture.get("filename")):
        return None
    try:
        red, green, blue, opacity = numbers_in(element.get("rgba", ""))
    except ValueError:
        return None  # as without a colour
    return red, green, blue, opacity


def _colour(visual: Element, colours: Mapping[str, Colour]) -> Colour | None:
    material = visual.find("material")
    if material is None:
        return None
    return _rgba(material) or colours.get(material.get("name", ""))


def _seen(model: Any) -> Iterator[int]:
    """Yield the shapes of bodies that are shown: of groups 0 to 2, those only seen if any is.

    A skin hides the shapes below it in further groups; they are shown in its place.
    """
    last = 2 if model.nskin == 0 else int(np.max(model.geom_group))
    shown = [g for g in range(model.ngeom) if model.geom_group[g] <= last and model.geom_bodyid[g]]
    only_seen = {g for g in shown if not (model.geom_contype[g] or model.geom_conaffinity[g])}
    bodies = {int(model.geom_bodyid[g]) for g in only_seen}
    for g in shown:
        if g in only_seen or int(model.geom_bodyid[g]) not in bodies:
            yield g


def _mujoco_geometry(model: Any, g: int) -> trimesh.Trimesh | None:
    """Return a mesh of a geom in its own axes; None for planes and other kinds without one."""
    import mujoco

    kinds = mujoco.mjtGeom
    kind, size = int(model.geom_type[g]), model.geom_size[g].tolist()
    if kind == int(kinds.mjGEOM_MESH):
        m = int(model.geom_dataid[g])
        first, count = int(model.mesh_vertadr[m]), int(model.mesh_vertnum[m])
        start, faces = int(model.mesh_faceadr[m]), int(model.mesh_facenum[m])
        return trimesh.Trimesh(
            model.mesh_vert[first : first + count].copy(),
            model.mesh_face[start : start + faces].copy(),
            process=False,
        )
    found: trimesh.Trimesh | None = None
    if kind == int(kinds.mjGEOM_BOX):
        found = trimesh.creation.box(2.0 * np.array(size))
    elif kind in (int(kinds.mjGEOM_SPHERE), int(kinds.mjGEOM_ELLIPSOID)):
        found = trimesh.creation.icosphere()
        found.apply_scale(size if kind == int(kinds.mjGEOM_ELLIPSOID) else size[0])
    elif kind == int(kinds.mjGEOM_CAPSULE):
        found = _capsule(size[0], 2.0 * size[1])
    elif kind == int(kinds.mjGEOM_CYLINDER):
        found = _cylinder(size[0], 2.0 * size[1])
    return found
