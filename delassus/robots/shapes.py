"""Shapes of links that touch: spheres, boxes, cylinders, capsules and meshes, as points."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from delassus.model.mechanism import Mechanism
from delassus.model.reading.mujoco import body_names, pose_of
from delassus.model.reading.numbers import number, numbers_in
from delassus.model.spatial import Array, Transform
from delassus.programs.needs import missing

_CORNERS = np.array([(x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
"""Corners (8, 3) of a cube of edge 2."""
_RIM = np.array([(np.cos(t), np.sin(t), z) for t in np.linspace(0.0, 2.0 * np.pi, 32, False)
                 for z in (-1.0, 1.0)])  # fmt: skip
"""Points (64, 3) on the rims of a cylinder of radius 1 and length 2."""


@dataclass(frozen=True, eq=False)
class LinkShape:
    """A shape of a link.

    Attributes
    ----------
    kind : ``"sphere"``, ``"box"``, ``"cylinder"``, ``"capsule"``, ``"mesh"``, …
    pose : pose in the link; None if it is unreadable.
    size : radius of a sphere; half of the edges of a box; radius and half of the length of a
        cylinder or capsule [m].
    vertices : (n, 3) of a mesh in its own axes [m], if the model holds them.
    """

    kind: str
    pose: Transform | None = None
    size: tuple[float, ...] = ()
    vertices: Array | None = None

    def points(self, direction: Array) -> Array:
        """Return points (n, 3) of the shape in the link, the farthest in a direction among them.

        None of an unreadable shape.

        Parameters
        ----------
        direction : (3,) unit vector in the link.
        """
        if self.pose is None:
            return np.empty((0, 3))
        size, round_by = self.size, 0.0
        own = np.empty((0, 3)) if self.vertices is None else self.vertices
        if self.kind == "sphere" and size:
            own, round_by = np.zeros((1, 3)), size[0]
        elif self.kind == "capsule" and len(size) == 2:
            own, round_by = np.array([[0.0, 0.0, size[1]], [0.0, 0.0, -size[1]]]), size[0]
        elif self.kind == "box" and len(size) == 3:
            own = _CORNERS * size
        elif self.kind == "cylinder" and len(size) == 2:
            own = _RIM * (size[0], size[0], size[1])
        found: Array = own @ self.pose.rotation.T + self.pose.translation + round_by * direction
        return found


@dataclass(frozen=True, eq=False)
class LinkShapes:
    """The shapes of a robot's links.

    Attributes
    ----------
    touching : shapes that touch, per link.
    meshes : returns vertices (n, 3) of the meshes of links, in the frames of their bodies [m],
        and the reason if there are none.
    """

    touching: Mapping[str, Sequence[LinkShape]]
    meshes: Callable[[Sequence[str]], tuple[Array, str]] = lambda _: (
        np.empty((0, 3)), "it has no shape"
    )  # fmt: skip

    @classmethod
    def of_urdf(
        cls, robot: Mechanism, document: Element, folder: Path | None = None
    ) -> LinkShapes:
        """Return the collision shapes of a URDF; meshes are those of its visuals."""
        touching = {
            link.get("name", ""): [
                _urdf_shape(collision, shape)
                for collision in link.iterfind("collision")
                for shape in collision.iterfind("geometry/*")
            ]
            for link in document.iter("link")
        }
        return cls(touching, lambda links: _urdf_meshes(robot, document, folder, links))

    @classmethod
    def of_mujoco(cls, model: Any) -> LinkShapes:
        """Return the shapes of a mujoco.MjModel that may touch, meshes included."""
        names, found = body_names(model), dict[str, list[LinkShape]]()
        for g in range(model.ngeom):
            if model.geom_contype[g] or model.geom_conaffinity[g]:
                shape = _mujoco_shape(model, g)
                found.setdefault(names[int(model.geom_bodyid[g])], []).append(shape)
        return cls(found)


def _urdf_shape(collision: Element, shape: Element) -> LinkShape:
    """Return a shape; without pose if its numbers are unreadable, as dynamics need no shapes."""
    origin = collision.find("origin")
    place = {} if origin is None else origin.attrib
    try:
        pose = Transform.from_xyz_rpy(
            *(np.reshape(numbers_in(place.get(key, "0 0 0")), 3) for key in ("xyz", "rpy"))
        )
        size: tuple[float, ...] = ()
        if shape.tag == "box":
            size = tuple(0.5 * edge for edge in numbers_in(shape.get("size", "")))
        elif shape.tag == "sphere":
            size = (number(shape.get("radius", "")),)
        elif shape.tag in ("cylinder", "capsule"):
            size = (number(shape.get("radius", "")), 0.5 * number(shape.get("length", "")))
    except ValueError:
        return LinkShape(shape.tag)
    return LinkShape(shape.tag, pose, size)


def _urdf_meshes(
    robot: Mechanism, document: Element, folder: Path | None, links: Sequence[str]
) -> tuple[Array, str]:
    """Return the vertices of the visuals of links, in the frames of their bodies."""
    lacking = missing("meshes", "trimesh")
    if lacking is not None:
        return np.empty((0, 3)), "the Python package trimesh, which reads meshes, is not installed"
    from delassus.drawing.shapes import Shapes

    part = Element("robot")
    part.extend(link for link in document.iterfind("link") if link.get("name") in links)
    shapes = Shapes.of_urdf(robot, part, folder)
    vertices = [np.asarray(shape.mesh.vertices) for shape in shapes.shapes]
    if not vertices:
        return np.empty((0, 3)), shapes.unread[0] if shapes.unread else "it has no shape"
    return np.concatenate(vertices), ""


def _mujoco_shape(model: Any, g: int) -> LinkShape:
    import mujoco

    kind = mujoco.mjtGeom(int(model.geom_type[g])).name.removeprefix("mjGEOM_").lower()
    used = {"sphere": 1, "cylinder": 2, "capsule": 2, "box": 3}.get(kind, 0)
    vertices = None
    if kind == "mesh":
        m = int(model.geom_dataid[g])
        first, count = int(model.mesh_vertadr[m]), int(model.mesh_vertnum[m])
        vertices = np.array(model.mesh_vert[first : first + count], dtype=float)
    size = tuple(model.geom_size[g, :used].tolist())
    return LinkShape(kind, pose_of(model.geom_pos[g], model.geom_quat[g]), size, vertices)
