"""The viewer: a slider moves and the ellipsoid follows, in its scene and in a browser."""

from __future__ import annotations

import argparse
import html
import json
import re
import shlex
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import robots
import trimesh
from browser import browser
from hanging import HANG_S
from linkages import four_bar
from numpy.typing import NDArray
from PIL import Image
from processes import wait_until

from delassus import Contact, DelassusSolver, Problem, Robot
from delassus.cli.page import labels, named_positions, q_at
from delassus.cli.view import (
    by_sliders,
    by_time,
    dials,
    drawing,
    first_pose,
    timeline,
)
from delassus.closure import Closure
from delassus.drawing.ellipsoids import EffectiveMass, Lengths
from delassus.drawing.heat_map import heat_map
from delassus.drawing.panel import legend, numbers_table, pose_lines, pose_text
from delassus.drawing.scene import BLUE, Placed, Scene, coupling_colour
from delassus.drawing.shapes import Shapes
from delassus.drawing.snapshot import Moment, Snapshot, SnapshotSolver, force_problem
from delassus.drawing.viewer import Viewer
from delassus.model.reading.xml import parse_xml
from delassus_ros.verbs.main import COMPONENT

LEGS = ("LF", "RF", "LH", "RH")
LF = "/robot/ellipsoids/LF"
POSE = argparse.Namespace(q=None, warnings=())
STANDING = {f"{leg}_{joint}": angle for leg in LEGS
            for joint, angle in (("HFE", 0.7), ("KFE", -1.4))}  # fmt: skip


@contextmanager
def shown(
    problem: Problem, shapes: Shapes, friction: float | None = None, closure: Closure | None = None
) -> Iterator[tuple[Viewer, Callable[[], None], SnapshotSolver]]:
    snapshots = SnapshotSolver(DelassusSolver(problem, "auto"), friction)
    viewer = Viewer(problem.robot, shapes, problem.contacts.names)
    try:
        start = first_pose(POSE, problem.robot, closure)
        poses = named_positions(problem.robot, closure)
        viewer.add_dials(dials(problem.robot, start), poses)
        draw = drawing(viewer, snapshots, by_sliders(viewer, problem.robot, closure, start))
        draw()
        yield viewer, draw, snapshots
    finally:
        viewer.close()


def quadruped() -> tuple[Problem, Shapes]:
    file = robots.quadruped()
    robot = Robot.from_urdf(file)
    contacts = [Contact(leg, f"{leg}_FOOT") for leg in LEGS]
    return Problem(robot, contacts), Shapes.of_urdf(robot, parse_xml(file), file.parent)


def test_the_ellipsoid_follows_a_slider_and_a_box_removes_it() -> None:
    problem, shapes = quadruped()
    with shown(problem, shapes) as (viewer, draw, snapshots):
        scene = viewer.server.scene
        q = problem.robot.q({**first_pose(POSE, problem.robot, None), "LF_KFE": -2.0})
        expected = snapshots.snapshot(q, LEGS).scene.contacts[0]
        first = snapshots.snapshot(problem.robot.q(viewer.positions), LEGS).scene
        before = np.array(scene.get_handle_by_name(LF).position)
        assert np.linalg.norm(before - expected.centre) > 0.01
        viewer.move({"LF_KFE": -2.0})
        assert viewer.changed.is_set()
        draw()
        ball = scene.get_handle_by_name(LF)
        np.testing.assert_allclose(ball.position, expected.centre, atol=1e-3)
        lengths = Lengths.fitting(viewer.size, [placed.mass for placed in first.contacts])
        axes = lengths.semi_axes(expected.mass)
        np.testing.assert_allclose(ball.scale, axes, rtol=1e-6)
        knee = problem.robot.joint_names.index("LF_KFE")
        body = scene.get_handle_by_name(f"/robot/body_{knee + 1}")
        pose = snapshots.drawn_robot.poses(q)[knee + 1]
        np.testing.assert_allclose(body.position, pose[:3, 3], atol=1e-3)
        viewer.activate(["RF", "RH"])
        draw()
        assert scene.get_handle_by_name(LF) is None
        assert viewer.active == ["RF", "RH"]
        assert "6 of 6 rows" in viewer.words and "LF" not in viewer.words


def test_the_heat_map_follows_the_matrix_and_is_sent_when_the_matrix_has_changed() -> None:
    problem, shapes = quadruped()
    with shown(problem, shapes) as (viewer, draw, snapshots):
        image, offsets = viewer.picture.image, (0, 3, 6, 9, 12)

        def expected() -> NDArray[np.uint8]:
            scene = snapshots.snapshot(problem.robot.q(viewer.positions), LEGS).scene
            return heat_map(scene.G, offsets, 18, 30)

        first = image.image
        np.testing.assert_array_equal(first, expected())
        draw()
        assert image.image is first
        viewer.move({"LF_KFE": -2.0})
        draw()
        np.testing.assert_array_equal(image.image, expected())
        assert not np.array_equal(image.image, first)
        assert [f">{leg}</span>" in viewer.picture.names.content for leg in LEGS] == [True] * 4
        viewer.activate(["RF", "RH"])
        draw()
        assert image.image.shape == (6 * 35, 6 * 60, 3)
        assert ">LF</span>" not in viewer.picture.names.content
        # The same matrix of other contacts has other names.
        scene = snapshots.snapshot(problem.robot.q(viewer.positions), ["RF", "RH"]).scene
        viewer.picture.show(replace(scene, names=("LF", "LH")))
        assert ">LF</span>" in viewer.picture.names.content
        viewer.activate([])
        draw()
        assert not viewer.picture.folder.visible
        viewer.activate(LEGS)
        draw()
        assert viewer.picture.folder.visible


@pytest.mark.parametrize(("largest", "words"), [(2.0, ""), (3.0, ", but at most 250 mm")])
def test_the_scale_of_ellipsoids_says_where_they_are_cut(largest: float, words: str) -> None:
    mass = EffectiveMass(np.array([1.0, 1.5, largest]), np.eye(3))
    snapshot = Snapshot(np.eye(4)[None], Scene([Placed("foot", np.zeros(3), mass, np.eye(3))]))
    text = numbers_table(snapshot, Lengths(0.1, 0.25))
    assert f"<p>semi-axis of an ellipsoid: 100 mm per kg{words}</p>" in text
    cells = re.findall("<td[^>]*>([^<]*)", text)
    assert cells[:4] == ["effective mass [kg]", "smallest", "middle", "largest"]
    assert cells[4:] == ["foot", "1", "1.5", f"{largest:g}"]


@pytest.mark.parametrize(
    ("limbs", "names"),
    [
        ([["FL_hip", "FL_thigh", "FL_calf"], ["FR_hip", "FR_thigh"]],
         ["FL, 3 joints", "FR, 2 joints"]),
        # The same words for a leg and an arm.
        ([["left_hip_joint", "left_knee_joint"], ["left_elbow", "left_wrist"], ["head_joint"]],
         ["left_hip_joint, 2 joints", "left_elbow, 2 joints", "head_joint"]),
        # Words, not letters: not "joint" or "sh".
        ([["joint1", "joint2"], ["shoulder", "shank"]],
         ["joint1, 2 joints", "shoulder, 2 joints"]),
        # A prefix that is a joint of another limb.
        ([["arm_1", "arm_2"], ["arm", "hand"]], ["arm_1, 2 joints", "arm, 2 joints"]),
        ([["panda_joint1", "panda_joint2"]], ["panda, 2 joints"]),
    ],
)  # fmt: skip
def test_groups_of_sliders_are_called_after_their_limb(
    limbs: list[list[str]], names: list[str]
) -> None:
    assert labels(limbs) == names


def test_sliders_are_in_groups_by_limb() -> None:
    robot = quadruped()[0].robot
    groups = dials(robot, first_pose(POSE, robot, None))
    assert {name: [dial.joint for dial in group] for name, group in groups.items()} == {
        f"{leg}, 3 joints": [f"{leg}_{joint}" for joint in ("HAA", "HFE", "KFE")] for leg in LEGS
    }


def press(viewer: Viewer, label: str) -> None:
    """Press the button of the page with a label, as a user does."""
    handles = viewer.server.gui._gui_input_handle_from_uuid.values()
    (button,) = (handle for handle in handles if getattr(handle, "label", "") == label)
    for callback in button._impl.update_cb:
        callback(None)


def test_buttons_of_named_poses_move_the_sliders() -> None:
    problem, shapes = quadruped()
    poses = {"bent": {"LF_KFE": -2.0, "LF_HFE": 1.0}, "other": {"RF_KFE": -1.0}}
    robot = problem.robot.replaced(named_poses=poses)
    first = first_pose(POSE, problem.robot, None)
    with shown(Problem(robot, problem.contacts), shapes) as (viewer, draw, _):
        for label, expected in (("bent", {**first, **poses["bent"]}),
                                ("Back to the first pose", first)):  # fmt: skip
            viewer.changed.clear()
            press(viewer, label)
            assert viewer.changed.is_set()
            assert viewer.positions == pytest.approx(expected)


def test_named_poses_at_which_loops_do_not_close_have_no_button() -> None:
    robot = four_bar()
    there = Closure(robot).solve({"crank": 1.1}).q
    states = dict(zip(robot.joint_names, there.tolist(), strict=True))
    robot = robot.replaced(named_poses={"up": states, "open": {"rocker": 0.2}})
    found = named_positions(robot, Closure(robot))
    assert found == {"up": pytest.approx(states)}


def test_a_body_without_its_mesh_is_a_line() -> None:
    problem, shapes = quadruped()
    shank = problem.robot.frames["LF_SHANK"].body
    for bare, lines in ((frozenset(), None), ({shank}, 1)):
        with shown(problem, replace(shapes, bare=bare)) as (viewer, _, _):
            handle = viewer.server.scene.get_handle_by_name("/robot/bones")
            assert lines == (None if handle is None else len(handle.points))


def test_a_robot_stands_on_the_ground_whatever_its_pose() -> None:
    problem, shapes = quadruped()
    with shown(problem, shapes) as (viewer, draw, snapshots):
        base = viewer.server.scene.get_handle_by_name("/robot")
        height = base.position[2]
        bent = {name: 1.5 * angle for name, angle in STANDING.items()}
        viewer.move(bent)
        draw()
        assert height - base.position[2] > 0.02
        feet = snapshots.snapshot(problem.robot.q(bent), LEGS).scene.contacts
        lowest = min(foot.centre[2] for foot in feet) + base.position[2]
        # The radius of a foot.
        assert 0.0 < lowest < 0.03


def test_forces_are_drawn_in_their_cones() -> None:
    problem, shapes = quadruped()
    with shown(force_problem(problem), shapes, 0.7) as (viewer, draw, snapshots):
        scene = viewer.server.scene
        viewer.move(STANDING)
        draw()
        forces = snapshots.snapshot(problem.robot.q(STANDING), LEGS).forces
        arrow = scene.get_handle_by_name("/robot/forces/LF")
        tip, end = np.array(arrow.points[0], dtype=float)
        np.testing.assert_allclose(
            (end - tip) / np.linalg.norm(end - tip),
            forces[0].force / np.linalg.norm(forces[0].force), atol=1e-3,
        )  # fmt: skip
        assert scene.get_handle_by_name("/robot/cones/LF") is not None
        viewer.activate([])
        draw()
        assert scene.get_handle_by_name("/robot/forces/LF") is None
        assert "no contact is active" in viewer.words


def test_check_boxes_show_and_hide_what_is_drawn() -> None:
    problem, shapes = quadruped()
    nodes = {
        "labels": {"/robot/names/LF"}, "ellipsoids": {LF}, "couplings": {"/robot/couplings"},
        "forces": {"/robot/forces/LF", "/robot/cones/LF"}, "meshes": set(),
    }  # fmt: skip
    with shown(force_problem(problem), shapes, 0.7) as (viewer, draw, _):
        scene = viewer.server.scene
        mesh, body = shapes.shapes[-1], len(shapes.shapes) - 1
        mesh = scene.get_handle_by_name(f"/robot/body_{mesh.body}/shape_{body}")
        for objects, names in nodes.items():
            for is_shown in (False, True):
                viewer.changed.clear()
                viewer.switch(objects, is_shown)
                assert viewer.changed.is_set()
                draw()
                hidden = set() if is_shown else names
                for name in set().union(*nodes.values()):
                    assert (scene.get_handle_by_name(name) is None) == (name in hidden), name
                assert mesh.visible == (is_shown or objects != "meshes")
                # Lines take the place of the meshes.
                lines = scene.get_handle_by_name("/robot/bones")
                assert (lines is not None) == (not mesh.visible)
        viewer.switch("meshes", False)
        draw()
        assert len(scene.get_handle_by_name("/robot/bones").points) >= 12


@pytest.mark.parametrize("opacity", [1.0, 0.4])
def test_meshes_are_clear_and_cast_no_shadow_while_ellipsoids_are_shown(opacity: float) -> None:
    problem, shapes = quadruped()
    shape = replace(shapes.shapes[-1], colour=(0.1, 0.2, 0.3, opacity))
    with shown(problem, replace(shapes, shapes=(shape,))) as (viewer, draw, _):
        mesh = viewer.server.scene.get_handle_by_name(f"/robot/body_{shape.body}/shape_0")
        ground = viewer.server.scene.get_handle_by_name("/ground")
        own = None if opacity == 1.0 else opacity
        assert mesh.opacity == pytest.approx(0.5 * opacity) and ground.shadow_opacity == 0.0
        viewer.switch("ellipsoids", False)
        draw()
        assert mesh.opacity == own and ground.shadow_opacity > 0.0
        viewer.switch("ellipsoids", True)
        viewer.activate([])
        draw()
        assert mesh.opacity == own and ground.shadow_opacity > 0.0


@pytest.mark.parametrize("visual", ["texture", "vertex"])
def test_meshes_with_colours_of_their_own_are_clear_while_ellipsoids_are_shown(
    visual: str,
) -> None:
    problem, shapes = quadruped()
    mesh = trimesh.creation.box()
    if visual == "vertex":
        mesh.visual.vertex_colors = np.tile((200, 20, 20, 255), (len(mesh.vertices), 1))
    else:
        picture = Image.fromarray(np.zeros((2, 2, 3), dtype=np.uint8))
        material = trimesh.visual.material.PBRMaterial(baseColorTexture=picture)
        mesh.visual = trimesh.visual.TextureVisuals(np.zeros((len(mesh.vertices), 2)), material)
    shape = replace(shapes.shapes[-1], mesh=mesh, colour=None)
    with shown(problem, replace(shapes, shapes=(shape,))) as (viewer, draw, _):
        handle = viewer.server.scene.get_handle_by_name(f"/robot/body_{shape.body}/shape_0")

        def materials() -> list[dict[str, Any]]:
            data = handle.glb_data
            size = int.from_bytes(data[12:16], "little")
            tree = json.loads(data[20 : 20 + size])
            used = [part.get("material") for part in tree["meshes"][0]["primitives"]]
            return [{} if k is None else tree["materials"][k] for k in used]

        (clear,) = materials()
        assert clear["alphaMode"] == "BLEND"
        assert clear["pbrMetallicRoughness"]["baseColorFactor"][3] == pytest.approx(0.5)
        viewer.switch("ellipsoids", False)
        draw()
        (solid,) = materials()
        assert "alphaMode" not in solid


def test_bodies_without_shapes_are_boxes_of_inertia_and_the_legend_says_so() -> None:
    problem, shapes = quadruped()
    shank = problem.robot.frames["LF_SHANK"].body
    without = tuple(shape for shape in shapes.shapes if shape.body != shank)
    for drawn, bodies in (
        (shapes, set()),
        (Shapes(without, bare=frozenset({shank})), {shank}),
        # A body with a link of which another shape is drawn.
        (replace(shapes, bare=frozenset({shank})), set()),
        (Shapes(()), set(range(len(problem.robot.bodies)))),
    ):  # fmt: skip
        with shown(problem, drawn) as (viewer, draw, _):
            scene, count = viewer.server.scene, len(drawn.shapes)
            boxes = {
                body: handle
                for body in range(len(problem.robot.bodies))
                for k in range(count, count + len(problem.robot.bodies))
                if (handle := scene.get_handle_by_name(f"/robot/body_{body}/shape_{k}"))
            }
            assert boxes.keys() == bodies
            assert ("grey box</b>: inertia" in viewer._legend.content) == bool(bodies)
            for is_shown in (False, True):
                viewer.switch("meshes", is_shown)
                draw()
                assert all(box.visible == is_shown for box in boxes.values())
            assert all(0.0 < box.opacity < 0.6 for box in boxes.values())
            # A box is no shape of a sole.
            assert not bodies or viewer.meshes.soles([Contact("LF", "LF_SHANK", "surface")]) == {}


def test_there_are_check_boxes_of_what_the_robot_has() -> None:
    problem, shapes = quadruped()
    for with_shapes, friction in ((shapes, None), (Shapes(()), 0.7)):
        asked = problem if friction is None else force_problem(problem)
        with shown(asked, with_shapes, friction) as (viewer, _, _):
            boxes = viewer._switches
            assert boxes["meshes"].visible
            assert boxes["forces"].visible == (friction is not None)
            assert boxes["labels"].visible


def test_the_legend_has_the_colours_of_the_scene() -> None:
    problem, shapes = quadruped()
    text = legend()
    assert re.findall("<b>([^<]*)</b>", text) == ["ellipsoid", "pale line", "cone", "condition"]
    colours = {tuple(map(int, found)) for found in re.findall(r"rgb\((\d+), (\d+), (\d+)\)", text)}
    with shown(problem, shapes) as (viewer, _, _):
        assert viewer.server.scene.get_handle_by_name(LF).color in colours
    assert coupling_colour(1.0) == BLUE and coupling_colour(0.0) == (225, 225, 225)
    assert {coupling_colour(0.2), coupling_colour(0.6)} <= colours


@pytest.mark.parametrize(("has_loops", "joint"), [(False, "LF_KFE"), (True, "knee")])
def test_the_pose_is_an_option_and_a_line_of_python(has_loops: bool, joint: str) -> None:
    problem, _ = quadruped()
    if has_loops:
        leg = Path(__file__).parents[3] / "docs" / "geared_leg.urdf"
        problem = Problem(Robot.from_urdf(leg, "fixed"), [Contact("sole", "sole")])
    robot = problem.robot
    closure = Closure(robot) if has_loops else None
    with shown(problem, Shapes(()), closure=closure) as (viewer, draw, _):
        viewer.move({joint: 0.123456789})
        draw()
        found = re.findall("<code[^>]*>([^<]*)</code>", viewer._pose.content)
        option, python = map(html.unescape, found)
        name, text = shlex.split(option)
        assert name == "--q" and f"{joint}=0.123457" in text
        start = first_pose(argparse.Namespace(q=text, warnings=[]), robot, closure)
        assert start == pytest.approx(viewer.positions, abs=1e-6)
        names = {"robot": robot}
        exec(python, names)
        q = q_at(robot, closure, viewer.positions)
        np.testing.assert_allclose(names["q"], q, atol=1e-6)


def test_the_pose_of_a_recording_is_a_line_of_python_with_all_joints() -> None:
    snapshot = Snapshot(np.eye(4)[None], positions={"slide": -1e-9, "planar": [1.0, 2.0, 0.5]})
    assert pose_lines(snapshot, ()) == ["q = robot.q({'slide': 0.0, 'planar': [1.0, 2.0, 0.5]})"]
    assert pose_lines(snapshot, ["slide"])[0] == "--q slide=0.0"
    assert pose_lines(Snapshot(np.eye(4)[None]), ()) == []
    assert "&lt;b&gt;" in pose_text(["<b>"]) and "user-select:all" in pose_text(["q"])


def test_loops_follow_the_sliders_of_the_independent_joints() -> None:
    leg = Path(__file__).parents[3] / "docs" / "geared_leg.urdf"
    robot = Robot.from_urdf(leg, "fixed")
    problem = Problem(robot, [Contact("sole", "sole")])
    closure = Closure(robot)
    with shown(problem, Shapes(()), closure=closure) as (viewer, draw, snapshots):
        assert set(viewer.positions) == set(closure.independent)
        ball = viewer.server.scene.get_handle_by_name("/robot/ellipsoids/sole")
        joint = closure.independent[-1]
        viewer.move({joint: 0.3})
        draw()
        q = closure.solve({**viewer.positions}).q
        expected = snapshots.snapshot(q, ["sole"]).scene.contacts[0]
        np.testing.assert_allclose(ball.position, expected.centre, atol=1e-6)
        # Without shapes the skeleton is drawn.
        assert viewer.server.scene.get_handle_by_name("/robot/bones") is not None


def test_a_time_slider_shows_the_latest_configuration_before_it() -> None:
    problem, shapes = quadruped()
    Q = np.random.default_rng(0).uniform(-0.3, 0.3, (3, problem.robot.nq))
    with shown(problem, shapes) as (viewer, _, snapshots):
        moments = [Moment(q) for q in Q]
        at = by_time(viewer, problem.robot, None, np.array([0.0, 1.0, 2.0]), moments)
        assert viewer.timeline is not None
        draw = drawing(viewer, snapshots, at)
        for seconds, row in ((0.0, 0), (0.9, 0), (1.0, 1), (2.0, 2)):
            viewer.timeline.slider.value = seconds
            draw()
            expected = snapshots.snapshot(Q[row], LEGS).scene.contacts[0].centre
            ball = viewer.server.scene.get_handle_by_name(LF)
            np.testing.assert_allclose(ball.position, expected, atol=1e-6)


def test_a_recording_is_played_at_the_speed_of_the_clock_up_to_its_end() -> None:
    problem, _ = quadruped()
    viewer = Viewer(problem.robot, Shapes(()), LEGS)
    try:
        timeline = viewer.add_timeline(np.array([0.5, 2.5]))
        before = time.monotonic()
        assert not timeline.advance(before + 1.0) and timeline.slider.value == 0.5
        timeline.play()
        started = timeline._before
        assert before <= started <= time.monotonic()
        for later, shown_time in ((0.25, 0.75), (1.0, 1.5)):
            assert timeline.advance(started + later)
            assert timeline.slider.value == pytest.approx(shown_time)
        timeline.pause()
        assert not timeline.advance(started + 1.5)
        timeline.play()
        assert timeline.advance(timeline._before + 9.0)
        assert timeline.slider.value == 2.5 and not timeline.is_playing
        # At its end it is played from the start.
        timeline.play()
        assert timeline.slider.value == 0.5 and timeline.is_playing
    finally:
        viewer.close()


def test_a_recording_of_a_robot_with_loops_is_shown_with_closed_loops(tmp_path: Path) -> None:
    import recordings_support as support
    leg = Path(__file__).parents[3] / "docs" / "geared_leg.urdf"
    robot = Robot.from_urdf(leg, "fixed")
    problem, closure = Problem(robot, [Contact("sole", "sole")]), Closure(robot)
    angles = np.array([0.1, 0.4, 0.7])
    state = support.JointState
    messages = [
        support.at(
            support.BEGIN + k * 10**9, "/joint_states",
            state(name=list(closure.independent), position=[angle] * len(closure.independent)),
        )
        for k, angle in enumerate(angles)
    ]  # fmt: skip
    path = support.write(tmp_path / "leg.mcap", messages)
    options = argparse.Namespace(
        data=str(path), reference=None, warnings=(), component=COMPONENT
    )
    seconds, Q = timeline(options, problem)
    assert seconds.tolist() == [0.0, 1.0, 2.0]
    with shown(problem, Shapes(()), closure=closure) as (viewer, _, snapshots):
        at = by_time(viewer, robot, closure, seconds, [Moment(q) for q in Q])
        draw = drawing(viewer, snapshots, at)
        assert viewer.timeline is not None
        for moment, angle in zip(seconds, angles, strict=True):
            viewer.timeline.slider.value = float(moment)
            draw()
            q = closure.solve(dict.fromkeys(closure.independent, angle)).q
            expected = snapshots.snapshot(q, ["sole"]).scene.contacts[0].centre
            ball = viewer.server.scene.get_handle_by_name("/robot/ellipsoids/sole")
            np.testing.assert_allclose(ball.position, expected, atol=1e-6)
            assert "rank" in viewer.words


@contextmanager
def drawn_meanwhile(viewer: Viewer, draw: Callable[[], None]) -> Iterator[None]:
    """Draw changes of the page in a thread until the block ends."""
    done = threading.Event()
    loop = threading.Thread(target=viewer.run, args=(draw, done.is_set))
    loop.start()
    try:
        yield
    finally:
        done.set()
        loop.join(HANG_S)
    assert not loop.is_alive()


@pytest.mark.slow
def test_the_button_of_the_page_plays_a_recording() -> None:
    problem, shapes = quadruped()
    Q = np.linspace(problem.robot.q(STANDING), 0.5 * problem.robot.q(STANDING), 500)
    snapshots = SnapshotSolver(DelassusSolver(problem, "auto"))
    viewer = Viewer(problem.robot, shapes, LEGS)
    try:
        moments = [Moment(q) for q in Q]
        at = by_time(viewer, problem.robot, None, np.linspace(0.0, 5.0, 500), moments)
        draw = drawing(viewer, snapshots, at)
        draw()
        ball = viewer.server.scene.get_handle_by_name(LF)
        before, timeline = np.array(ball.position), viewer.timeline
        assert timeline is not None
        with browser((800, 600)) as page, drawn_meanwhile(viewer, draw):
            page.open(viewer.address)
            button = (
                "[...document.querySelectorAll('button')]"
                ".filter(e => ['Play', 'Pause'].includes(e.textContent.trim())).pop()"
            )

            def text() -> str:
                return page.value(f"{button}.textContent.trim()")

            wait_until(lambda: page.value(f"{button} !== undefined"), "button")
            page.value(f"{button}.click()")
            wait_until(lambda: text() == "Pause", "word Pause")
            wait_until(lambda: timeline.slider.value >= 5.0, "end of the recording")
            wait_until(lambda: text() == "Play", "word Play")
            expected = snapshots.snapshot(Q[-1], LEGS).scene.contacts[0].centre
            wait_until(lambda: np.allclose(ball.position, expected, atol=1e-6), "last state")
            assert np.linalg.norm(expected - before) > 0.01
    finally:
        viewer.close()


@pytest.mark.slow
def test_a_slider_of_the_page_moves_the_ellipsoid() -> None:
    problem, shapes = quadruped()
    with browser((800, 600)) as page, shown(problem, shapes) as (viewer, draw, _):
        ball = viewer.server.scene.get_handle_by_name(LF)
        before = np.array(ball.position)
        with drawn_meanwhile(viewer, draw):
            start = viewer.positions["LF_KFE"]
            page.open(viewer.address)
            sliders = "document.querySelectorAll('[role=slider]')"
            # Folders of limbs are closed at first.
            folder = (
                "[...document.querySelectorAll('button, div')]"
                ".filter(e => e.textContent.trim() == 'LF, 3 joints').pop()"
            )
            wait_until(lambda: page.value(f"{folder} !== undefined"), "folder")
            page.value(f"{folder}.click()")
            # Those of the leg's three joints come first.
            knee = f"{sliders}[2]"
            focus = f"{knee}.focus(), document.activeElement === {knee}"
            wait_until(
                lambda: page.value(f"{sliders}.length") == 13 and page.value(focus), "sliders"
            )
            for _ in range(20):
                page.press("ArrowLeft")
            wait_until(lambda: viewer.positions["LF_KFE"] < start - 0.04, "bent knee")
            wait_until(
                lambda: np.linalg.norm(np.array(ball.position) - before) > 1e-3, "moved ellipsoid"
            )
            values = "[...document.querySelectorAll('input')].map(e => e.value)"
            assert f"{viewer.positions['LF_KFE']:.3f}" in page.value(values)
            text = page.value("document.body.innerText")
            assert "12 of 12 rows" in text and "ellipsoid: effective mass" in text
            # The heat map; another picture is that of the panel's menu.
            pixels = "document.querySelector('img[src^=blob]').naturalWidth"
            wait_until(lambda: page.value(pixels) == 360, "heat map")
            labels = (
                "[...document.querySelectorAll('label')]"
                ".filter(e => e.textContent.trim() == 'ellipsoids').pop()"
            )
            page.value(f"document.getElementById({labels}.htmlFor).click()")
            wait_until(
                lambda: viewer.server.scene.get_handle_by_name(LF) is None, "hidden ellipsoid"
            )
