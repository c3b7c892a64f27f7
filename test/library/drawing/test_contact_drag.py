"""A contact that is dragged: the page's messages move the sliders of the contact's joints."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import msgspec
import numpy as np
import pytest
import robots
import viser
from processes import wait_until
from websockets.sync.client import connect

from delassus import Contact, DelassusSolver, Problem, Robot
from delassus.cli.page import dials, q_at
from delassus.cli.view import by_sliders, drawing
from delassus.drawing.contact_drag import ContactDrag
from delassus.drawing.reach import Reach
from delassus.drawing.shapes import Shapes
from delassus.drawing.snapshot import SnapshotSolver
from delassus.drawing.viewer import Viewer
from delassus.errors import ProblemError

LEGS = ("LF", "RF", "LH", "RH")
LIMIT_S = 300.0
GIZMO = "/robot/drag"
ROBOT = Robot.from_urdf(robots.quadruped())
CONTACTS = [
    *(Contact(leg, f"{leg}_FOOT") for leg in LEGS[:3]), Contact("RH", "RH_FOOT", "surface"),
    Contact("wheel", "RH_SHANK", moving="position"),
    Contact("up", "LF_SHANK", [[0.0, 0.0, 1.0, 0.0, 0.0, 0.0]]),
]  # fmt: skip
START = {f"{leg}_{joint}": x for leg in LEGS
         for joint, x in (("HAA", 0.0), ("HFE", 0.7), ("KFE", -1.4))}  # fmt: skip


@contextmanager
def page() -> Iterator[tuple[Viewer, ContactDrag, Callable[[], None]]]:
    """Provide a page with a contact to drag, and the function that draws it."""
    problem = Problem(ROBOT, CONTACTS[:4])
    viewer = Viewer(ROBOT, Shapes(()), problem.contacts.names)
    try:
        viewer.add_dials(dials(ROBOT, START))
        drag = ContactDrag(
            viewer.server, Problem(ROBOT, CONTACTS), viewer.size,
            lambda: Reach(problem, viewer.ranges, lambda moved: q_at(ROBOT, None, moved)),
            viewer.changed,
        )  # fmt: skip
        snapshots = SnapshotSolver(DelassusSolver(problem, "auto"))
        at = by_sliders(viewer, ROBOT, None, START)
        yield viewer, drag, drawing(viewer, snapshots, at, None, drag)
    finally:
        viewer.close()


def poses(viewer: Viewer, contact: str) -> np.ndarray[Any, Any]:
    """Return the position of a contact at the sliders, in the root link."""
    q = q_at(ROBOT, None, viewer.positions)
    return SnapshotSolver(DelassusSolver(Problem(ROBOT, CONTACTS[:4]))).drawn_robot.pose(
        viewer.meshes.poses(q), contact
    )[:3, 3]


def test_dragging_a_foot_moves_the_sliders_of_its_leg() -> None:
    with page() as (viewer, drag, draw):
        draw()
        drag.list.value = "LF"
        assert viewer.changed.is_set()
        draw()
        gizmo = viewer.server.scene.get_handle_by_name(GIZMO)
        assert gizmo.disable_rotations
        before = poses(viewer, "LF")
        np.testing.assert_allclose(gizmo.position, before, atol=1e-6)
        height = viewer.meshes.base.position[2]
        address, sent = urlsplit(viewer.address), msgspec.msgpack.encode
        with connect(
            f"ws://{address.netloc}{address.path}", origin=f"http://{address.netloc}",
            subprotocols=[f"viser-v{viser.__version__}"], max_size=None, open_timeout=LIMIT_S,
        ) as socket:  # fmt: skip
            lower = (before - (0.02, 0.0, 0.06)).tolist()
            far = (before - (0.0, 0.0, 2.0)).tolist()
            grabbed = {"type": "TransformControlsDragStartMessage", "name": GIZMO, "owner": ""}
            socket.send(sent(grabbed))
            wait_until(lambda: drag.is_dragged, "grabbed gizmo")

            def pull(place: list[float]) -> None:
                socket.send(sent({**grabbed, "type": "TransformControlsUpdateMessage",
                                  "wxyz": [1.0, 0.0, 0.0, 0.0], "position": place}))  # fmt: skip
                wait_until(lambda: drag._has_moved, "moved gizmo")
                draw()
                # The gizmo stays under the mouse, and so does the robot.
                np.testing.assert_allclose(gizmo.position, place)
                assert viewer.meshes.base.position[2] == height

            pull(lower)
            np.testing.assert_allclose(poses(viewer, "LF"), lower, atol=1e-5)
            still = {name: x for name, x in START.items() if not name.startswith("LF")}
            assert {name: viewer.positions[name] for name in still} == pytest.approx(still)
            pull(far)
            assert poses(viewer, "LF")[2] < lower[2]
            pull(lower)
            socket.send(sent({**grabbed, "type": "TransformControlsDragEndMessage"}))
            wait_until(lambda: not drag.is_dragged, "released gizmo")
        draw()
        assert viewer.meshes.base.position[2] > height + 0.05
        drag.list.value = "none"
        draw()
        assert viewer.server.scene.get_handle_by_name(GIZMO) is None


def test_a_gizmo_goes_back_to_its_contact_and_follows_the_sliders() -> None:
    with page() as (viewer, drag, draw):
        drag.list.value = "RH"
        draw()
        gizmo = viewer.server.scene.get_handle_by_name(GIZMO)
        assert not gizmo.disable_rotations
        viewer.move({"RH_KFE": -1.0})
        draw()
        np.testing.assert_allclose(gizmo.position, poses(viewer, "RH"), atol=1e-6)
        gizmo.position = (9.0, 9.0, 9.0)
        drag._has_moved = True
        draw()
        np.testing.assert_allclose(gizmo.position, poses(viewer, "RH"), atol=1e-6)
        assert np.linalg.norm(gizmo.position) < 2.0


def test_contacts_of_one_direction_and_of_wheels_are_not_dragged() -> None:
    with page() as (_, drag, _):
        assert drag.list.options == ("none", *LEGS)


def test_a_robot_without_a_jacobian_says_so() -> None:
    def refused() -> Reach:
        raise ProblemError("no <J>")

    with page() as (viewer, drag, draw):
        drag._make = refused
        drag.list.value = "LF"
        draw()
        assert drag.list.value == "none" and "no &lt;J&gt;" in drag._words.content
        assert viewer.server.scene.get_handle_by_name(GIZMO) is None
