"""Visual shapes: where they are on the robot, and what is said of those that cannot be read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import robots
import trimesh
from urdf_text import joint, link, robot_xml

from delassus import Robot
from delassus.drawing.shapes import GREY, Shapes, inertia_boxes, mesh_file, outermost
from delassus.drawing.skeleton import Skeleton
from delassus.model.reading.xml import parse_xml
from delassus.model.spatial import skew


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


def test_a_quaternion_turns_a_shape() -> None:
    box = "<box size='0.2 0.4 0.6'/>"
    (shape,) = shapes_of(visual(box, place="quat_xyzw='0.70710678 0 0 0.70710678'")).shapes
    np.testing.assert_allclose(np.ptp(shape.mesh.bounds, axis=0), (0.2, 0.6, 0.4), atol=1e-6)
    both = shapes_of(visual(box, place="rpy='0 0 0' quat_xyzw='0 0 0 1'"))
    assert both.unread == (
        "link 'limb': visual: <origin> has both rpy and quat_xyzw; one is meant; a line is drawn",
    )


@pytest.mark.parametrize("name", ["part.stl", "part.obj", "part.dae"])
def test_meshes_are_scaled_and_turned(tmp_path: Path, name: str) -> None:
    trimesh.creation.box((0.1, 0.2, 0.3)).export(tmp_path / name)
    mesh = f"<mesh filename='{name}' scale='1 -1 2'/>"
    found = shapes_of(visual(mesh, place="rpy='0 0 1.5707963267949'"), tmp_path)
    (shape,) = found.shapes
    assert not found.unread
    np.testing.assert_allclose(np.ptp(shape.mesh.bounds, axis=0), (0.2, 0.1, 0.6), atol=1e-6)
    assert shape.mesh.volume == pytest.approx(0.1 * 0.2 * 0.6)  # mirrored, not inside out


@pytest.mark.parametrize(
    "uri",
    [
        "package://my_robot/meshes/a part.stl", "package:///my_robot/meshes/a part.stl",
        "model://my_robot/meshes/a%20part.stl", "../meshes/a part.stl", "../meshes/a%20part.stl",
        "file://{}/my_robot/meshes/a%20part.stl",
    ],
)  # fmt: skip
def test_a_mesh_is_found_by_every_kind_of_path(tmp_path: Path, uri: str) -> None:
    file, urdf = (tmp_path / "my_robot" / name for name in ("meshes/a part.stl", "urdf"))
    for folder in (file.parent, urdf):
        folder.mkdir(parents=True)
    file.touch()
    assert mesh_file(uri.format(tmp_path), urdf).samefile(file)
    assert mesh_file("package://other/meshes/a part.stl", urdf) is None
    assert mesh_file("https://my_robot/meshes/a part.stl", urdf) is None


@pytest.mark.parametrize("variable", ["ROS_PACKAGE_PATH", "GZ_SIM_RESOURCE_PATH"])
def test_a_mesh_of_another_package_is_found_by_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    (tmp_path / "my_robot").mkdir()
    (tmp_path / "my_robot" / "part.stl").touch()
    monkeypatch.setenv(variable, str(tmp_path))
    for scheme in ("package://", "package:///", "model://"):
        assert mesh_file(f"{scheme}my_robot/part.stl", None) == tmp_path / "my_robot" / "part.stl"


def test_a_mesh_is_as_large_as_its_unit_says(tmp_path: Path) -> None:
    trimesh.creation.box((10.0, 20.0, 30.0)).export(tmp_path / "part.dae")
    text = (tmp_path / "part.dae").read_text()
    unit = "<unit name='cm' meter='0.01'/>"
    (tmp_path / "part.dae").write_text(text.replace("<up_axis>", f"{unit}<up_axis>"))
    (shape,) = shapes_of(visual("<mesh filename='part.dae' scale='1 1 2'/>"), tmp_path).shapes
    np.testing.assert_allclose(np.ptp(shape.mesh.bounds, axis=0), (0.1, 0.2, 0.6), atol=1e-6)


@pytest.mark.parametrize(
    ("material", "colour"),
    [
        ("<color rgba='1 0 0 1'/>", (1.0, 0.0, 0.0, 1.0)),
        ("<color rgba='1 0 0 1'/><texture/>", (1.0, 0.0, 0.0, 1.0)),
        ("<texture filename=''/><color rgba='1 0 0 1'/>", (1.0, 0.0, 0.0, 1.0)),
        ("<color rgba='1 0 0 1'/><texture filename='red.png'/>", GREY),
        ("<color rgba='red'/>", GREY),
    ],
)
def test_a_colour_counts_unless_there_is_a_picture(material: str, colour: tuple) -> None:
    text = visual("<box size='1 1 1'/>", f"<material name='m'>{material}</material>")
    assert shapes_of(text).shapes[0].colour == colour


def test_a_link_without_its_mesh_is_shown_by_collision_shapes_or_a_line() -> None:
    lost = visual("<mesh filename='lost.stl'/>")
    collision = "<collision><geometry><sphere radius='0.1'/></geometry></collision>"
    found = shapes_of(lost + collision)
    assert found.unread == (
        "link 'limb': there is no file lost.stl; its collision shapes are drawn",
    )
    np.testing.assert_allclose(np.ptp(found.shapes[0].mesh.bounds, axis=0), 0.2, rtol=0.02)
    assert len(shapes_of(lost + visual("<box size='1 1 1'/>") + collision).shapes) == 1
    assert not found.bare and not shapes_of(collision).shapes
    bare = shapes_of(lost)
    assert bare.bare == {1} and bare.unread[0].endswith("lost.stl; a line is drawn")


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
    wrong = (
        "<mesh filename='absent.stl'/>", "<mesh filename='broken.dae'/>", "<box size='1 2'/>",
        "<cone/>",
    )  # fmt: skip
    parts = [visual(each) for each in (*wrong, "<sphere radius='1'/>")]
    found = shapes_of("".join(parts) + "<visual/>", tmp_path)
    assert len(found.shapes) == 1 and len(found.unread) == 5
    assert found.unread[0] == "link 'limb': there is no file absent.stl"
    assert "broken.dae cannot be read" in found.unread[1]
    assert "<box size=…>: expected 3 numbers, got 2" in found.unread[2]
    assert "unknown shape <cone>" in found.unread[3]


def test_bodies_of_mujoco_show_what_is_seen() -> None:
    import mujoco
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
    import mujoco
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
                        ("baxter_description/urdf/baxter.urdf", 20),
                        ("talos_data/robots/talos_full_v2.urdf", 50)):  # fmt: skip
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


def test_boxes_of_inertia_have_the_mass_centre_and_moments_of_their_bodies() -> None:
    robot = Robot.from_urdf(robots.shared("ur5"), "floating")
    boxes = inertia_boxes(robot, Shapes(()), 10.0)
    assert [box.body for box in boxes] == list(range(len(robot.bodies)))
    for box in boxes:
        inertia = robot.bodies[box.body].inertia
        box.mesh.density = inertia.mass / box.mesh.volume
        com = np.asarray(box.mesh.center_mass)
        about_origin = box.mesh.moment_inertia - inertia.mass * skew(com) @ skew(com)
        np.testing.assert_allclose(com, inertia.moment / inertia.mass, atol=1e-9)
        np.testing.assert_allclose(
            about_origin, inertia.rotational, atol=1e-6 * np.abs(inertia.rotational).max()
        )
    longest = sorted(max(box.mesh.bounding_box_oriented.primitive.extents) for box in boxes)
    assert longest[-1] > 0.9
    assert len(inertia_boxes(robot, Shapes(()), 0.9)) == sum(side <= 0.9 for side in longest) > 3
