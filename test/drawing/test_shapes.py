"""Visual shapes: where they are on the robot, and what is said of those that cannot be read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import robots
from urdf_text import joint, link, robot_xml

trimesh = pytest.importorskip("trimesh", reason="trimesh is not installed")

from delassus_ros import Robot  # noqa: E402
from delassus_ros.drawing.shapes import Shapes, mesh_file, outermost  # noqa: E402
from delassus_ros.drawing.skeleton import Skeleton  # noqa: E402
from delassus_ros.model.reading.xml import parse_xml  # noqa: E402


def visual(geometry: str, more: str = "", place: str = "xyz='1 2 3'") -> str:
    return f"<visual><origin {place}/><geometry>{geometry}</geometry>{more}</visual>"


def shapes_of(inside: str, folder: Path | None = None) -> Shapes:
    text = robot_xml(
        link("trunk"), link("limb").replace("</link>", f"{inside}</link>"),
        joint("turn", "trunk", "limb"),
    )  # fmt: skip
    return Shapes.of_urdf(Robot.from_urdf(text), parse_xml(text), folder)


@pytest.mark.parametrize(
    ("geometry", "extents"),
    [
        ("<box size='0.2 0.4 0.6'/>", (0.2, 0.4, 0.6)),
        ("<sphere radius='0.1'/>", (0.2, 0.2, 0.2)),
        ("<cylinder radius='0.1' length='0.5'/>", (0.2, 0.2, 0.5)),
        ("<capsule radius='0.1' length='0.5'/>", (0.2, 0.2, 0.7)),
    ],
)
def test_shapes_are_as_large_as_said_at_their_place(geometry: str, extents: tuple) -> None:
    red = "<material name='red'><color rgba='1 0 0 0.5'/></material>"
    (shape,) = shapes_of(visual(geometry, red)).shapes
    assert shape.frame == "limb" and shape.body == 1 and shape.colour == (1.0, 0.0, 0.0, 0.5)
    np.testing.assert_allclose(np.ptp(shape.mesh.bounds, axis=0), extents, rtol=0.02)
    np.testing.assert_allclose(shape.mesh.bounds.mean(axis=0), (1.0, 2.0, 3.0), atol=1e-9)


def test_meshes_are_found_scaled_and_turned(tmp_path: Path) -> None:
    package = tmp_path / "my_robot" / "meshes"
    package.mkdir(parents=True)
    box = trimesh.creation.box((0.1, 0.2, 0.3))
    for name in ("part.stl", "part.obj", "part.dae"):
        box.export(package / name)
        place = "rpy='0 0 1.5707963267949'"
        mesh = f"<mesh filename='package://my_robot/meshes/{name}' scale='1 1 2'/>"
        found = shapes_of(visual(mesh, place=place), tmp_path / "my_robot" / "urdf")
        (shape,) = found.shapes
        assert not found.unread
        np.testing.assert_allclose(np.ptp(shape.mesh.bounds, axis=0), (0.2, 0.1, 0.6), atol=1e-6)
    uri = "package://my_robot/meshes/part.stl"
    assert mesh_file(uri, tmp_path) == package / "part.stl"
    assert mesh_file("meshes/part.stl", tmp_path / "my_robot") == package / "part.stl"
    assert mesh_file(f"file://{package}/part.stl", None) == package / "part.stl"
    assert mesh_file("package://other/meshes/part.stl", package) is None


def test_a_mesh_of_two_materials_has_two_colours(tmp_path: Path) -> None:
    (tmp_path / "two.mtl").write_text("newmtl a\nKd 1 0 0\nnewmtl b\nKd 0 0 1\n")
    corners = [f"v {x} {y} {z}" for z in (0, 1) for x, y in ((0, 0), (1, 0), (0, 1))]
    text = "\n".join(["mtllib two.mtl", *corners, "usemtl a", "f 1 2 3", "usemtl b", "f 4 5 6"])
    (tmp_path / "two.obj").write_text(text)
    found = shapes_of(visual("<mesh filename='two.obj'/>", place=""), tmp_path).shapes
    assert sorted((shape.colour[0], shape.colour[2]) for shape in found) == [(0, 1), (1, 0)]
    assert [len(shape.mesh.faces) for shape in found] == [1, 1]
    grey = "<material name='g'><color rgba='0.5 0.5 0.5 1'/></material>"
    (one,) = shapes_of(visual("<mesh filename='two.obj'/>", grey, ""), tmp_path).shapes
    assert one.colour == (0.5, 0.5, 0.5, 1.0) and len(one.mesh.faces) == 2


def test_what_cannot_be_read_is_named_and_the_rest_drawn(tmp_path: Path) -> None:
    (tmp_path / "broken.stl").write_bytes(b"solid")
    (tmp_path / "broken.dae").write_bytes(b"<COLLADA>")
    wrong = ("<mesh filename='absent.stl'/>", "<mesh filename='broken.dae'/>", "<box/>", "<cone/>")
    parts = [visual(each) for each in (*wrong, "<sphere radius='1'/>")]
    found = shapes_of("".join(parts) + "<visual/>", tmp_path)
    assert len(found.shapes) == 1 and len(found.unread) == 5
    assert found.unread[0] == "link 'limb': there is no file absent.stl"
    assert "broken.dae cannot be read" in found.unread[1]
    assert "unknown shape <cone>" in found.unread[3]


def test_bodies_of_mujoco_show_what_is_seen() -> None:
    mujoco = pytest.importorskip("mujoco", reason="mujoco is not installed")
    model = mujoco.MjModel.from_xml_string("""
    <mujoco><worldbody><geom type="plane" size="1 1 1"/>
      <body name="trunk" pos="0 0 1"><freejoint/>
        <geom type="box" size="0.1 0.2 0.3" pos="0 0 0.5" contype="0" conaffinity="0"
          rgba="1 0 0 1"/>
        <geom type="sphere" size="0.3"/>
        <body name="limb"><joint type="hinge"/>
          <geom type="capsule" size="0.05 0.2"/><geom type="sphere" size="1" group="3"/>
        </body>
      </body></worldbody></mujoco>""")
    robot = Robot.from_mujoco(model)
    found = Shapes.of_mujoco(robot, model).shapes
    assert [shape.frame for shape in found] == ["trunk", "limb"]
    np.testing.assert_allclose(found[0].mesh.bounds, [[-0.1, -0.2, 0.2], [0.1, 0.2, 0.8]])
    assert found[0].colour == (1.0, 0.0, 0.0, 1.0)
    np.testing.assert_allclose(np.ptp(found[1].mesh.bounds, axis=0), (0.1, 0.1, 0.5), rtol=0.02)


def test_below_a_skin_the_shapes_of_further_groups_are_shown() -> None:
    mujoco = pytest.importorskip("mujoco", reason="mujoco is not installed")
    skin = """<deformable><skin vertex="0 0 0 1 0 0 0 1 0" face="0 1 2">
      <bone body="trunk" bindpos="0 0 1" bindquat="1 0 0 0" vertid="0 1 2" vertweight="1 1 1"/>
    </skin></deformable>"""
    for words, frames in (("", ["trunk"]), (skin, ["trunk", "limb"])):
        model = mujoco.MjModel.from_xml_string(f"""
        <mujoco>{words}<worldbody><body name="trunk" pos="0 0 1"><freejoint/>
          <geom type="sphere" size="0.3"/>
          <body name="limb"><joint type="hinge"/>
            <geom type="capsule" size="0.05 0.2" group="3"/>
            <geom type="sphere" size="0.1" group="5" contype="0" conaffinity="0"/>
          </body>
        </body></worldbody></mujoco>""")
        found = Shapes.of_mujoco(Robot.from_mujoco(model), model).shapes
        assert [shape.frame for shape in found] == frames
    np.testing.assert_allclose(np.ptp(found[1].mesh.bounds, axis=0), 0.2, rtol=0.02)


def test_published_robots_are_drawn_whole() -> None:
    for name, least in (("g1_description/urdf/g1_29dof_rev_1_0.urdf", 30),
                        ("baxter_description/urdf/baxter.urdf", 20)):  # fmt: skip
        file = robots.example(name)
        found = Shapes.of_urdf(Robot.from_urdf(file, "fixed"), parse_xml(file), file.parent)
        assert not found.unread and len(found.shapes) >= least


def test_meshes_with_y_up_are_turned_where_masses_say_so() -> None:
    """The iCub's limbs are in their joints' line; RViz's robots stay as they are written."""
    file = robots.example("icub_description/robots/icub_reduced.urdf")
    robot = Robot.from_urdf(file)
    found = Shapes.of_urdf(robot, parse_xml(file), file.parent)
    frames = [shape.frame for shape in found.shapes]
    points = dict(zip(frames, found.points(Skeleton(robot).poses(robot.neutral())), strict=True))
    low, high = points["l_upper_leg"].min(axis=0), points["l_upper_leg"].max(axis=0)
    assert high[2] - low[2] > 0.2 > high[0] - low[0]
    go1 = robots.example("go1_description/urdf/go1.urdf")
    shapes = Shapes.of_urdf(Robot.from_urdf(go1), parse_xml(go1), go1.parent).shapes
    trunk = np.concatenate([shape.outermost() for shape in shapes if shape.frame == "trunk"])
    assert np.ptp(trunk, axis=0).argsort().tolist() == [2, 1, 0]


def test_the_outermost_points_have_the_extent_of_all() -> None:
    points = np.random.default_rng(0).normal(size=(500, 3))
    kept = outermost(points)
    assert len(kept) <= 26
    np.testing.assert_array_equal(np.ptp(points[kept], axis=0), np.ptp(points, axis=0))
