"""The first picture of a page: the whole robot, beside the panel or on phones above the panel."""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec
import numpy as np
import pytest
import robots
import viser
from processes import wait_until
from websockets.sync.client import connect

from delassus import Robot
from delassus.drawing.first_view import FirstView
from delassus.drawing.shapes import Shapes
from delassus.drawing.viewer import Viewer
from delassus.model.spatial import Array

LIMIT_S = 300.0
FOV = float(np.deg2rad(75.0))
ROBOTS = {
    "quadruped": np.array([(x, y, z) for x in (-0.4, 0.4) for y in (-0.2, 0.2) for z in (0, 0.5)]),
    "humanoid": np.array([(x, y, z) for x in (-0.1, 0.1) for y in (-0.3, 0.3) for z in (0, 1.8)]),
    "arm": np.array([(x, 3.0, z) for x in (5.0, 5.9) for z in (0.4, 0.5)]),
}


def pictured(points: Array, at: Array, place: Array, aspect: float) -> Array:
    """Return where points are in a picture (n, 2): from -1 to 1, to the right and up."""
    back = (place - at) / np.linalg.norm(place - at)
    right = np.cross((0.0, 0.0, 1.0), back)
    right /= np.linalg.norm(right)
    depths = (place - points) @ back
    assert depths.min() > 0.0
    seen = (points - place) @ np.column_stack([right / aspect, np.cross(back, right)])
    return np.asarray(seen / (depths[:, None] * np.tan(0.5 * FOV)))


@pytest.mark.parametrize("name", ROBOTS)
def test_the_whole_robot_is_in_the_free_part_of_the_page(name: str) -> None:
    view = FirstView(ROBOTS[name])
    for width, height in ((390, 844), (360, 640), (570, 800)):
        seen = pictured(ROBOTS[name], *view.above_panel(width / height, FOV), width / height)
        assert np.abs(seen[:, 0]).max() < 1.0
        # The panel covers 60 % of the height.
        assert 0.2 < seen[:, 1].min() and seen[:, 1].max() < 1.0
        # It is no speck.
        assert np.ptp(seen, axis=0).max() > 0.25
    seen = pictured(ROBOTS[name], *view.beside_panel(), 1.55)
    assert -1.0 < seen.min() and seen[:, 0].max() < 0.4 and seen[:, 1].max() < 1.0


@pytest.mark.parametrize(("width", "height", "is_moved"), [(390, 844, True), (1400, 900, False)])
@pytest.mark.parametrize("is_late", [False, True])
def test_the_camera_of_a_phone_is_moved(
    width: int, height: int, is_moved: bool, is_late: bool
) -> None:
    viewer = Viewer(Robot.from_urdf(robots.quadruped()), Shapes(()), ())
    if not is_late:
        viewer.show(viewer.neutral())
    address = urlsplit(viewer.address)
    try:
        with connect(
            f"ws://{address.netloc}{address.path}", origin=f"http://{address.netloc}",
            subprotocols=[f"viser-v{viser.__version__}"], max_size=None, open_timeout=LIMIT_S,
        ) as socket:  # fmt: skip
            socket.send(msgspec.msgpack.encode({
                "type": "ViewerCameraMessage", "wxyz": [1.0, 0.0, 0.0, 0.0],
                "position": [1.0, 1.0, 1.0], "fov": FOV, "near": 0.01, "far": 100.0,
                "image_height": height, "image_width": width, "look_at": [0.0, 0.0, 0.0],
                "up_direction": [0.0, 0.0, 1.0],
            }))  # fmt: skip
            wait_until(lambda: bool(viewer.server.get_clients()), "client")
            if is_late:
                viewer.show(viewer.neutral())
            (client,) = viewer.server.get_clients().values()
            if not is_moved:
                assert np.allclose(client.camera.position, 1.0)
                return
            view = viewer._view
            assert view is not None
            at, place = view.above_panel(width / height, FOV)
            wait_until(lambda: np.allclose(client.camera.look_at, at), "moved camera")
            np.testing.assert_allclose(client.camera.position, place)
    finally:
        viewer.close()
