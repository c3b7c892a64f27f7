"""Names of contacts do not cover each other, in figures and in the first picture of the page."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import robots

from delassus import Contact, Problem, Robot
from delassus.drawing.ellipsoids import EffectiveMass, Lengths
from delassus.drawing.labels import above, raised
from delassus.drawing.scene import DrawnRobot, Placed, Scene
from delassus.drawing.shapes import Shapes
from delassus.drawing.skeleton import Skeleton
from delassus.drawing.snapshot import Snapshot
from delassus.model.spatial import Array
from delassus.robots.pose import pose_of
from delassus.testing.conformance import textbook

ROBOTS: dict[str, tuple[Callable[[], Path | str], tuple[str, ...]]] = {
    "Atlas": (lambda: robots.shared("atlas_v5"), ("l_foot", "r_foot", "l_hand", "r_hand")),
    "Talos": (robots.talos, ("left_sole_link", "right_sole_link", "wrist_left_ft_tool_link",
                             "wrist_right_ft_tool_link")),
    "G1": (lambda: robots.shared("g1_29dof"), ("left_ankle_roll_link", "right_ankle_roll_link",
                                              "left_rubber_hand", "right_rubber_hand")),
    "Go1": (lambda: robots.shared("go1_unitree"), ("FR_foot", "FL_foot", "RR_foot", "RL_foot")),
    "quadruped": (robots.quadruped, ("LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT")),
}  # fmt: skip


def scene_of(name: str) -> tuple[Robot, Scene, Array]:
    """Return a robot, the scene of its contacts, and the poses of its bodies."""
    make, frames = ROBOTS[name]
    robot = Robot.from_urdf(make())
    problem = Problem(robot, [Contact(frame) for frame in frames])
    drawn_robot = DrawnRobot.of(problem)
    q = robot.q(pose_of(robot))
    G = textbook(problem, {"q": q})
    offsets = problem.contacts.row_offsets
    scene = drawn_robot.scene(q, problem.contacts.names, offsets, ("point",) * 4, G)
    return robot, scene, drawn_robot.poses(q)


def covered(low: Array, high: Array) -> list[tuple[int, int]]:
    """Return the pairs of boxes (n, 2) that cover each other."""
    return [
        (i, k)
        for i, k in itertools.combinations(range(len(low)), 2)
        if (np.minimum(high[i], high[k]) - np.maximum(low[i], low[k]) > 1e-9).all()
    ]


def test_labels_are_raised_as_far_as_the_ones_below_demand() -> None:
    sizes = np.array([[4.0, 1.0]] * 4)
    apart = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 1.0], [9.0, 0.5]])
    assert raised(apart, sizes).tolist() == [0.0, 0.0, 0.0, 0.0]
    # The second is in the first, the third where the second goes, the fourth is beside them.
    together = np.array([[0.0, 0.0], [1.0, 0.5], [2.0, 1.25], [9.0, 0.0]])
    assert raised(together, sizes).tolist() == [0.0, 0.5, 0.75, 0.0]
    assert raised(np.zeros((0, 2)), np.zeros((0, 2))).tolist() == []


def test_labels_by_chance_do_not_cover_each_other() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        places, sizes = rng.uniform(0, 5, (12, 2)), rng.uniform(0.5, 2.0, (12, 2))
        places = places + np.outer(raised(places, sizes), (0.0, 1.0))
        half = sizes * (0.5, 0.0)
        assert covered(places - half, places + sizes * (0.5, 1.0)) == []


def test_a_name_is_above_its_ellipsoid() -> None:
    turned = np.array([[0.0, 0.0, 1.0], [0.8, -0.6, 0.0], [0.6, 0.8, 0.0]])
    mass = EffectiveMass(np.array([1.0, 2.0, 3.0]), turned)
    contact = Placed("foot", np.array([1.0, 2.0, 3.0]), mass, turned)
    top = above(contact, Lengths(0.1, 0.3))
    sphere = np.random.default_rng(0).normal(size=(3, 20000))
    surface = turned @ (np.array([[0.1], [0.2], [0.3]]) * sphere / np.linalg.norm(sphere, axis=0))
    assert top[:2].tolist() == [1.0, 2.0]
    assert 0.0 <= top[2] - 3.0 - surface[2].max() < 1e-3


@pytest.mark.needs("matplotlib")
@pytest.mark.parametrize("name", ROBOTS)
def test_names_in_a_figure_do_not_cover_each_other(name: str) -> None:
    from delassus.drawing import figures

    robot, scene, poses = scene_of(name)
    figure, (axes, *_) = figures.new_figure(4)
    figures.draw_robot(axes, Skeleton(robot).bones(poses), scene)
    figure.draw_without_rendering()
    (tags,) = axes.findobj(figures.NameTags)
    boxes = np.array([box.get_points() for box in tags.boxes])
    assert len(boxes) == 4
    assert covered(boxes[:, 0], boxes[:, 1]) == []
    # The whole robot is in its panel, and fills most of it.
    points = np.reshape(Skeleton(robot).bones(poses), (-1, 3))
    pixels = np.array([tags._pixels(point) for point in points])
    panel = axes.get_window_extent()
    low, high = pixels.min(axis=0), pixels.max(axis=0)
    assert (low > panel.min).all() and (high < panel.max).all()
    assert (high - low).max() > 0.4 * min(panel.size)


@pytest.mark.needs("viser")
@pytest.mark.parametrize("name", ROBOTS)
def test_names_on_the_page_do_not_cover_each_other_at_first(name: str) -> None:
    from delassus.drawing.viewer import Viewer

    robot, scene, poses = scene_of(name)
    names = [contact.name for contact in scene.contacts]
    viewer = Viewer(robot, Shapes(()), names)
    try:
        viewer.show(Snapshot(poses, scene))
        handle = viewer.server.scene.get_handle_by_name
        base = np.array(handle("/robot").position)
        camera = viewer.server.initial_camera
        ahead = np.array(camera.look_at) - np.array(camera.position)
        right = np.cross(ahead, (0.0, 0.0, 1.0))
        axes = np.array([right, np.cross(right, ahead), ahead])
        axes /= np.linalg.norm(axes, axis=1)[:, None]

        def seen(point: Array) -> Array:
            """Return the place (2,) in the picture at distance 1, and the distance."""
            x, y, depth = axes @ (point - camera.position)
            return np.array([x / depth, y / depth, depth])

        low, high = [], []
        for contact in names:
            label = handle(f"/robot/names/{contact}")
            x, y, depth = seen(base + label.position)
            # The page's letters are half as wide as they are high; around them is a border.
            height = label.font_scene_height / depth
            wide, tall = height * (0.5 * len(contact) + 0.4), 1.6 * height
            low.append((x - wide / 2, y))
            high.append((x + wide / 2, y + tall))
        assert covered(np.array(low), np.array(high)) == []
        bones = np.reshape(Skeleton(robot).bones(poses), (-1, 3))
        places = np.array([seen(base + point) for point in bones])
        # The robot is in the picture, and left of the panel: on a page of 1200 x 840 pixels.
        edge = np.tan(0.5 * camera.fov)
        assert (np.abs(places[:, 1]) < edge).all()
        assert (places[:, 0] < 0.4 * edge).all() and (places[:, 0] > -1.43 * edge).all()
    finally:
        viewer.close()
