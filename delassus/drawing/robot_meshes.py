"""The meshes and lines of a robot in a scene of viser."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import viser
from trimesh.exchange.gltf import export_glb

from delassus.contacts import Contact
from delassus.drawing.scene import BONE, quaternion_of
from delassus.drawing.shapes import Shape, Shapes, inertia_boxes
from delassus.drawing.skeleton import Skeleton, size_of
from delassus.model.joint import WORLD
from delassus.model.robot import Robot
from delassus.model.spatial import Array

_AROUND = 0.5
"""Opacity of meshes around ellipsoids, as a share of their own."""
ROOT = "/robot"
"""Name of the root link in the scene."""


class RobotMeshes:
    """The meshes, boxes of inertia and lines of a robot, as children of its root link.

    Parameters
    ----------
    shapes : visual shapes; bodies of unreadable shapes are lines, all without any shape. A box
        of inertia shows a body that has no shape for that reason, if it is no longer than the
        robot.

    Attributes
    ----------
    base : the frame of the root link.
    has_boxes : whether bodies are shown by boxes of inertia.
    size : largest extent of the robot in its neutral configuration [m].
    """

    def __init__(self, scene: viser.SceneApi, robot: Robot, shapes: Shapes) -> None:
        self._scene, self._robot, self._shapes = scene, robot, shapes
        self._skeleton = Skeleton(robot)
        neutral = self.poses(robot.neutral())
        bones = np.reshape(self._skeleton.bones(neutral), (-1, 3))
        longest = float(np.linalg.norm(np.ptp(bones, axis=0))) if len(bones) else np.inf
        boxes = inertia_boxes(robot, shapes, longest)
        self.has_boxes = bool(boxes)
        self._drawn = Shapes((*shapes.shapes, *boxes))
        # A child of a frame that does not exist would get one with visible axes.
        self.base = scene.add_frame(ROOT, show_axes=False)
        self._frames = [
            scene.add_frame(f"{ROOT}/body_{i}", show_axes=False) for i in range(len(robot.joints))
        ]
        self._meshes = [
            _Mesh(scene, f"{_parent(shape)}/shape_{k}", shape)
            for k, shape in enumerate(self._drawn.shapes)
        ]
        self.size = size_of(self.outline(neutral))

    def poses(self, q: Array) -> Array:
        """Return the pose (bodies, 4, 4) of each body in the root link at q (nq,)."""
        return self._skeleton.poses(q)

    def place(self, poses: Array) -> None:
        """Move the bodies to their poses (bodies, 4, 4) in the root link."""
        for frame, pose in zip(self._frames, poses, strict=True):
            frame.position = pose[:3, 3]
            frame.wxyz = np.roll(quaternion_of(pose[:3, :3]), 1)

    def dress(self, is_shown: bool, is_clear: bool) -> None:
        """Show or hide the meshes, half transparent around ellipsoids."""
        for mesh in self._meshes:
            mesh.dress(is_shown, _AROUND if is_clear else 1.0)

    def lines(self, poses: Array, has_meshes: bool) -> dict[str, viser.SceneNodeHandle]:
        """Draw the lines of bodies without a shape; of all bodies where meshes are hidden."""
        name, bones = f"{ROOT}/bones", self._bones(poses, has_meshes)
        if not len(bones):
            return {}
        width = 0.01 * self.size
        return {name: self._scene.add_line_segments(name, bones, BONE, thickness=width)}

    def outline(self, poses: Array) -> Array:
        """Return points (n, 3) of shapes and lines, among them the outermost ones."""
        return np.concatenate([*self._drawn.points(poses), self._bones(poses).reshape(-1, 3)])

    def soles(self, contacts: Sequence[Contact]) -> dict[str, tuple[float, float]]:
        """Return length and width along x and y of the root link [m], of surfaces with shapes."""
        poses = self.poses(self._robot.neutral())
        found = {}
        for contact in contacts:
            if contact.kind_name != "surface":
                continue
            body = self._robot.frames[contact.frame].body
            pairs = zip(self._shapes.shapes, self._shapes.points(poses), strict=True)
            points = [points for shape, points in pairs if shape.body == body]
            if points:
                x, y, _ = np.ptp(np.concatenate(points), axis=0).tolist()
                found[contact.name] = x, y
        return found

    def _bones(self, poses: Array, has_meshes: bool = True) -> Array:
        """Return the ends (n, 2, 3) of the lines of bodies that are drawn without a shape."""
        bodies = self._shapes.bare if self._shapes.shapes and has_meshes else None
        return np.reshape(self._skeleton.bones(poses, bodies), (-1, 2, 3))


class _Mesh:
    """A shape in a scene, whose opacity can be changed."""

    def __init__(self, scene: viser.SceneApi, name: str, shape: Shape) -> None:
        self._shape = shape
        self._share = 1.0
        if shape.colour is None:
            self._handle: Any = scene.add_glb(name, self._solid)
            return
        red, green, blue, opacity = shape.colour
        self._handle = scene.add_mesh_simple(
            name, np.asarray(shape.mesh.vertices), np.asarray(shape.mesh.faces),
            color=(red, green, blue), opacity=_opacity(opacity), side="double",
        )  # fmt: skip

    @cached_property
    def _solid(self) -> bytes:
        return bytes(export_glb(self._shape.mesh))

    @cached_property
    def _clear(self) -> bytes:
        return bytes(export_glb(self._shape.mesh, tree_postprocessor=_make_clear))

    def dress(self, is_shown: bool, share: float) -> None:
        """Show or hide the mesh, with a share of its own opacity: 1 or :data:`_AROUND`."""
        self._handle.visible = is_shown
        if share == self._share:
            return
        self._share = share
        if self._shape.colour is not None:
            self._handle.opacity = _opacity(self._shape.colour[3] * share)
        else:
            self._handle.glb_data = self._solid if share == 1.0 else self._clear


def _make_clear(tree: dict[str, Any]) -> None:
    """Make the materials of a glTF file transparent; a mesh without one gets one."""
    materials = tree.setdefault("materials", [])
    for mesh in tree["meshes"]:
        for part in mesh["primitives"]:
            if "material" not in part:
                part["material"] = len(materials)
                materials.append({"pbrMetallicRoughness": {"metallicFactor": 0.0}})
    for material in materials:
        surface = material.setdefault("pbrMetallicRoughness", {})
        *colour, opacity = surface.get("baseColorFactor", (1.0, 1.0, 1.0, 1.0))
        surface["baseColorFactor"] = [*colour, _AROUND * opacity]
        material["alphaMode"] = "BLEND"


def _parent(shape: Shape) -> str:
    return ROOT if shape.body == WORLD else f"{ROOT}/body_{shape.body}"


def _opacity(share: float) -> float | None:
    """Return an opacity as viser takes it; None for objects that are not clear."""
    return None if share >= 1.0 else share
