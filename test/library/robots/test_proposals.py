"""Proposed contacts: kinds, places and dimensions by shapes, names and axes of ankles."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from urdf_text import limb, link, robot_xml, shape, straight
from wheels import RADIUS, wheeled

from delassus import DelassusSolver, Problem, Robot
from delassus.contacts import Contact
from delassus.drawing.skeleton import Skeleton
from delassus.model.reading.xml import parse_xml
from delassus.robots.proposals import ASSUMED, FIXED_WHEEL, Proposal, proposals
from delassus.robots.shapes import LinkShapes
from delassus.robots.wheels import lowest_points


def proposed(text: str, folder: Path | None = None, base: str = "floating") -> list[Proposal]:
    robot = Robot.from_urdf(text, base)
    return proposals(robot, LinkShapes.of_urdf(robot, parse_xml(text), folder))


def test_spheres_in_a_plane_make_a_surface_away_from_the_joint() -> None:
    ball = '<sphere radius="0.005"/>'
    corners = ("-0.05 0.025 -0.03", "-0.05 -0.025 -0.03", "0.12 0.03 -0.03", "0.12 -0.03 -0.03")
    text = robot_xml(
        link("trunk"),
        limb("flat", "".join(shape(ball, at) for at in corners)),
        limb("in_a_row", "".join(shape(ball, f"{x} 0 -0.03") for x in (0.0, 0.1, 0.2))),
        limb("round", "".join(shape(ball, at) for at in (*corners, "0 0 0.1"))),
        limb("unreadable", "".join(shape(ball, at) for at in (*corners, "0 0"))),
    )
    found = {each.frame: each for each in proposed(text)}
    assert (found["flat"].kind, found["flat"].why) == ("surface", "spheres in a plane")
    assert found["flat"].xyz == (0.035, 0.0, -0.035)
    np.testing.assert_allclose(found["flat"].contact().placement.translation, [0.035, 0, -0.035])
    for other in ("in_a_row", "round", "unreadable"):
        assert (found[other].kind, found[other].xyz) == ("point", (0.0, 0.0, 0.0))


def test_ball_at_the_end_of_a_leg_is_a_point_at_its_centre() -> None:
    foot, box = shape('<sphere radius="0.03"/>', "0 0 -0.3"), shape('<box size="1 1 1"/>')
    mesh = shape('<mesh filename="leg.stl"/>')
    text = robot_xml(
        link("trunk"), limb("ball", foot), limb("leg", mesh + foot), limb("boot", box + foot),
        limb("two", mesh + foot + foot),
    )  # fmt: skip
    found = {each.frame: each for each in proposed(text)}
    for name in ("ball", "leg"):
        assert (found[name].why, found[name].xyz) == ("a sphere", (0.0, 0.0, -0.3))
    for name, several in (("boot", "box and sphere"), ("two", "mesh and sphere")):
        assert found[name].why == f"a point is assumed: this link has {several} shapes"
        assert found[name].xyz == (0.0, 0.0, 0.0)


def biped(inside: str, axes: int = 2, turned: str = "", foot: str = "foot") -> str:
    """Return a robot with one leg whose foot has shapes `inside`, below one or two ankle axes."""
    shank = "ankle" if axes == 2 else "shank"
    parts = [
        link("trunk"), link("thigh"), link("shank"),
        link(foot).replace("</link>", f"{inside}</link>"),
        straight("hip", "trunk", "thigh", "0 0 0", "0 1 0"),
        straight("knee", "thigh", "shank", "0 0 -0.4", "0 1 0"),
        straight("ankle_x", shank, foot, "0 0 0" if axes == 2 else "0 0 -0.4",
                 "0 0 1" if turned else "1 0 0", turned),
    ]  # fmt: skip
    if axes == 2:
        parts += [link("ankle"), straight("ankle_y", "shank", "ankle", "0 0 -0.4", "0 1 0")]
    return robot_xml(*parts)


BOX = shape('<box size="0.2 0.1 0.03"/>', "0.03 0 -0.05")
BALLS = "".join(shape('<sphere radius="0.005"/>', f"{x} {y} -0.03")
                for x in (-0.05, 0.12) for y in (-0.03, 0.03))  # fmt: skip
DISC = shape('<cylinder radius="0.05" length="0.04"/>', "0 0 -0.05")
LINE = shape('<capsule radius="0.02" length="0.1"/>', "0.02 0 -0.05").replace(
    "<origin ", '<origin rpy="0 1.5707963267948966 0" '
)
BALL = shape('<sphere radius="0.03"/>', "0 0 -0.06")
ABSENT = shape('<mesh filename="absent.stl"/>').replace("collision", "visual")


@pytest.mark.parametrize(
    ("inside", "axes", "kind", "xyz", "dimensions", "why"),
    [
        (BOX, 2, "surface", (0.03, 0.0, -0.065), (0.2, 0.1), "the lowest face of its box"),
        (BOX, 1, "surface", (0.03, 0.0, -0.065), (0.2, 0.1), "the lowest face of its box"),
        (BOX + BOX, 2, "surface", (0.03, 0.0, -0.065), (0.2, 0.1), "face of its 2 boxes"),
        (BALLS, 2, "surface", (0.035, 0.0, -0.035), (0.17, 0.06), "face of its 4 spheres"),
        (DISC, 1, "surface", (0.0, 0.0, -0.07), (0.1, 0.1), "the lowest face of its cylinder"),
        (LINE, 1, "surface", (0.02, 0.0, -0.07), (0.1, 0.02), "the lowest face of its capsule"),
        (BALL, 1, "point", (0.0, 0.0, -0.06), (), "a sphere"),
        (BALL, 2, "point", (0.0, 0.0, -0.06), (), "a sphere"),
        ("", 1, "point", (0.0, 0.0, 0.0), (), ASSUMED),
        ("", 2, "surface", (0.0, 0.0, 0.0), (0.2, 0.1),
         "0.2 x 0.1 m at this frame are assumed, as it has no shape"),
        (ABSENT, 2, "surface", (0.0, 0.0, 0.0), (0.2, 0.1),
         "are assumed, as link 'foot': there is no file absent.stl"),
        (ABSENT, 1, "point", (0.0, 0.0, 0.0), (), ASSUMED),
    ],
)  # fmt: skip
def test_foot_is_a_surface_on_its_lowest_face(
    inside: str, axes: int, kind: str, xyz: tuple, dimensions: tuple, why: str
) -> None:
    if "mesh" in inside:
        import_module("trimesh")
    (found,) = proposed(biped(inside, axes))
    assert (found.kind, found.chosen, found.dimensions) == (kind, True, dimensions)
    np.testing.assert_allclose(found.xyz, xyz, atol=1e-12)
    assert why in found.why and found.rpy == (0.0, 0.0, 0.0)


def test_lowest_face_of_a_mesh_is_found_whatever_the_axes_of_its_frame(tmp_path: Path) -> None:
    import trimesh
    boot = trimesh.creation.box((0.24, 0.09, 0.04))
    boot.apply_translation((0.05, 0.0, -0.05))
    boot.export(tmp_path / "boot.stl")
    mesh = shape('<mesh filename="boot.stl"/>').replace("collision", "visual")
    (found,) = proposed(biped(mesh), tmp_path)
    assert (found.why, found.dimensions) == ("the lowest face of its mesh", (0.24, 0.09))
    np.testing.assert_allclose(found.xyz, (0.05, 0.0, -0.07), atol=1e-6)
    # The z axis of this foot's frame points forwards: the contact is turned upright.
    boot.apply_transform([[0, 0, -1, 0], [0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1]])
    boot.export(tmp_path / "boot.stl")
    text = biped(mesh, turned='rpy="0 1.5707963267948966 0"')
    (found,) = proposed(text, tmp_path)
    robot = Robot.from_urdf(text)
    skeleton = Skeleton(robot)
    foot = skeleton.frame(skeleton.poses(robot.neutral()), "foot")
    placement = found.contact().placement
    np.testing.assert_allclose(foot[:3, :3] @ placement.rotation, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(
        foot[:3, :3] @ placement.translation + foot[:3, 3], (0.05, 0.0, -0.87), atol=1e-4
    )
    assert found.dimensions == (0.24, 0.09)


def test_foot_that_is_not_below_the_root_is_no_surface() -> None:
    lying = biped("").replace('xyz="0 0 -0.4"', 'xyz="0.4 0 0"')
    assert [end.kind for end in proposed(lying)] == ["point"]


@pytest.mark.parametrize(
    ("name", "inside", "kind", "why"),
    [
        ("left_hand", shape('<box size="0.1 0.1 0.02"/>'), "surface", "a box"),
        ("left_palm", "", "surface", "by its name"),
        ("left_sole", "", "surface", "by its name"),
        ("left_hand", "", "point", ASSUMED),
        ("left_wrist", shape('<cylinder radius="0.05" length="0.04"/>'), "point", ASSUMED),
        ("gripper_tcp", "", "point", ASSUMED),
    ],
)
def test_hand_is_a_surface_where_its_palm_is_flat(
    name: str, inside: str, kind: str, why: str
) -> None:
    (found,) = proposed(robot_xml(link("trunk"), limb(name, inside)))
    assert (found.frame, found.kind, found.why) == (name, kind, why)


@pytest.mark.parametrize("name", ["wheel", "foot"])
def test_wheel_is_a_point_at_its_lowest_point(name: str) -> None:
    found = proposed(wheeled(name))
    assert [(end.frame, end.kind, end.moving, end.chosen) for end in found] == [
        (f"{side}_{name}", "point", "pose", True) for side in ("left", "right")
    ]
    for end in found:
        assert end.why == "a wheel of radius 0.12 m, at its lowest point"
        np.testing.assert_allclose(end.xyz, (0.0, 0.02, -RADIUS), atol=1e-4)
    fixed = proposed(wheeled(), base="fixed")
    assert [(end.why, end.chosen) for end in fixed] == [(FIXED_WHEEL, False)] * 2
    bare = wheeled().replace("cylinder", "unknown")
    assert [end.why for end in proposed(bare)] == ["a wheel whose radius is not known"] * 2


def test_lowest_point_stays_below_the_axle_while_the_wheel_turns() -> None:
    """G of the point is that of a point fixed to the wheel which is lowest at this posture."""
    text = wheeled()
    robot = Robot.from_urdf(text)
    contacts = [end.contact() for end in proposed(text)]
    skeleton = Skeleton(robot)
    q = robot.q({"left_hip": 0.3, "left_axle": 1.1, "right_axle": -2.0})
    poses = skeleton.poses(q)
    frames = {contact.frame: skeleton.frame(poses, contact.frame) for contact in contacts}
    found = lowest_points(robot, contacts, frames)
    for contact in contacts:
        wheel, placement = frames[contact.frame], found[contact.name]
        axle = wheel[:3, :3] @ (0.0, 0.02, 0.0) + wheel[:3, 3]
        place = wheel[:3, :3] @ placement.translation + wheel[:3, 3]
        np.testing.assert_allclose(place, axle - (0.0, 0.0, RADIUS), atol=1e-4)
        np.testing.assert_allclose(wheel[:3, :3] @ placement.rotation, np.eye(3), atol=1e-12)
    positions = {name: each.translation for name, each in found.items()}
    turns = {name: each.quaternion() for name, each in found.items()}
    G = DelassusSolver(Problem(robot, contacts), "ltl").solve(
        q, contact_positions=positions, contact_orientations=turns
    ).matrix  # fmt: skip
    still = [Contact(c.name, c.frame, placement=found[c.name]) for c in contacts]
    expected = DelassusSolver(Problem(robot, still), "ltl").solve(q).matrix
    np.testing.assert_allclose(G, expected, rtol=1e-10, atol=1e-12)


def test_sensors_torsos_and_hubs_are_no_contacts() -> None:
    sensors = ("ranger", "TORSO_LINK", "wheel_hub", "d435_optical_frame", "not_use_body")
    text = robot_xml(link("trunk"), limb("left_foot"), *map(limb, sensors))
    assert [end.frame for end in proposed(text) if end.chosen] == ["left_foot"]
