"""A robot in the browser by viser: meshes, ellipsoids, forces, and controls of joints.

Needs the packages viser and trimesh.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import viser

from delassus.drawing.ellipsoids import Lengths
from delassus.drawing.first_view import BACK, NARROW, FirstView, picture_plane
from delassus.drawing.force_cones import PlacedForce, cone_surface, force_scale
from delassus.drawing.labels import above, raised
from delassus.drawing.page_server import PageServer
from delassus.drawing.panel import (
    MatrixPicture,
    facts_table,
    legend,
    numbers_table,
    pose_lines,
    pose_text,
)
from delassus.drawing.robot_meshes import ROOT, RobotMeshes
from delassus.drawing.scene import BLUE, GREEN, Scene, coupling_colour, quaternion_of
from delassus.drawing.shapes import Shapes
from delassus.drawing.snapshot import Snapshot
from delassus.model.robot import Robot
from delassus.model.spatial import Array

_CLEAR, _CONE = 0.6, 0.25
"""Opacity of ellipsoids, and of friction cones."""
_SHADOW = 0.3
"""Opacity of the robot's shadow on the ground."""
_SWITCHES = ("meshes", "labels", "ellipsoids", "couplings", "forces")
"""Drawn objects with a check box."""
_LETTERS = 0.035
"""Height of the letters of contacts' names, as a share of the robot's size."""
_FRAME = 1.0 / 30.0
"""Time between pictures of a recording that is played [s], if they are drawn in time."""
_FEW = 4
"""Largest number of named poses whose buttons are shown without opening their folder."""


@dataclass(frozen=True)
class JointSlider:
    """A joint that the user moves.

    Attributes
    ----------
    joint, unit : name of the joint; rad or m.
    lower, upper, start : range of the slider, and its first position.
    """

    joint: str
    unit: str
    lower: float
    upper: float
    start: float


class Timeline:
    """A slider over the time of a recording, with a button that plays and pauses the recording.

    Parameters
    ----------
    first, last : range of the slider [s].

    Attributes
    ----------
    slider : the slider, whose value is a time of the recording [s].
    """

    def __init__(self, gui: viser.GuiApi, first: float, last: float) -> None:
        step = max((last - first) / 2000.0, 1e-6)
        self.is_playing = False
        self._time, self._before = first, 0.0
        self._first, self._last = first, max(last, first + step)
        self.slider = gui.add_slider("time [s]", first, self._last, step, first)
        self._button = gui.add_button("Play", icon=viser.Icon.PLAYER_PLAY)
        self._button.on_click(lambda _: self.pause() if self.is_playing else self.play())
        self.slider.on_update(self._moved)

    def play(self) -> None:
        """Play from the slider's time on, or from the start if the slider is at the end."""
        if self.slider.value >= self._last:
            self.slider.value = self._first
        self._time, self.is_playing = float(self.slider.value), True
        self._before = time.monotonic()
        self._button.label, self._button.icon = "Pause", viser.Icon.PLAYER_PAUSE

    def pause(self) -> None:
        """Let the slider stay where it is."""
        self.is_playing = False
        self._button.label, self._button.icon = "Play", viser.Icon.PLAYER_PLAY

    def advance(self, now: float) -> bool:
        """Move the slider by the time since the last call while playing; return whether it moved.

        Parameters
        ----------
        now : reading of the clock ``time.monotonic`` [s].
        """
        if not self.is_playing:
            return False
        self._time = min(self._time + now - self._before, self._last)
        self._before = now
        self.slider.value = self._time
        if self._time >= self._last:
            self.pause()
        return True

    def _moved(self, event: viser.GuiEvent[Any]) -> None:
        if event.client is not None:  # by the user: the recording is played from there on
            self._time = float(self.slider.value)


class Viewer:
    """A page with a robot; drawn by the thread that calls :meth:`show`.

    Parameters
    ----------
    shapes : its visual shapes, as for :class:`RobotMeshes`.
    contacts : names of the contacts, each with a check box.
    port : port of the page, as for :class:`PageServer`.

    Attributes
    ----------
    server, address, address_once : the server of the page, and its addresses, as of
        :class:`PageServer`.
    meshes : the drawn robot.
    size : largest extent of the robot in its neutral configuration [m].
    picture : the heat map of the shown matrix.
    timeline : time of a recording; None without one.
    is_held : whether the root link stays where it is, as while a contact is dragged.
    sliders : the folder of the sliders.
    changed : set whenever the user has moved or switched something; cleared by the caller.

    Raises
    ------
    InputError
        If the port cannot be used.
    """

    def __init__(
        self, robot: Robot, shapes: Shapes, contacts: Sequence[str], port: int | None = None
    ) -> None:
        self.changed = threading.Event()
        self._robot = robot
        self._page = PageServer(f"delassus: {robot.name}", port)
        self.server = self._page.viser
        self.address, self.address_once = self._page.address, self._page.address_once
        self.server.gui.configure_theme(
            show_logo=False, show_share_button=False, control_width="large"
        )
        self.meshes = RobotMeshes(self.server.scene, robot, shapes)
        self.size = self.meshes.size
        self._lengths: Lengths | None = None
        self._ground: float | None = None
        self.is_held = False
        self._view: FirstView | None = None
        self._drawn: dict[str, viser.SceneNodeHandle] = {}
        self.timeline: Timeline | None = None
        self._add_ground()
        gui = self.server.gui
        self._facts = gui.add_html("")
        self.picture = MatrixPicture(gui)
        self._legend = gui.add_html(legend(self.meshes.has_boxes))
        self._dials: dict[str, viser.GuiSliderHandle[float]] = {}
        # Sliders come above the numbers: the picture of the matrix is seen while they move.
        self.sliders = gui.add_folder(None)
        with gui.add_folder("active contacts"):
            self._boxes = {name: gui.add_checkbox(name, initial_value=True) for name in contacts}
        self._numbers = gui.add_html("")
        with gui.add_folder("show or hide"):
            self._switches = {name: gui.add_checkbox(name, True) for name in _SWITCHES}
            self._scale = gui.add_slider("size of ellipsoids", 0.1, 2.0, 0.05, 1.0)
        with gui.add_folder("this pose, to copy", expand_by_default=False):
            self._pose = gui.add_html("")
        self._switches["forces"].visible = False
        for box in (*self._boxes.values(), *self._switches.values(), self._scale):
            box.on_update(self._note)
        self.server.on_client_connect(self._aim)

    # What the user moves.

    def add_dials(
        self,
        groups: Mapping[str, Sequence[JointSlider]],
        poses: Mapping[str, Mapping[str, float]] | None = None,
    ) -> None:
        """Add sliders of joints in folders, and buttons that move all of them.

        Parameters
        ----------
        poses : positions of joints by the names of poses [rad, m], each with a button.
        """
        gui, poses = self.server.gui, poses or {}
        starts = {dial.joint: dial.start for dials in groups.values() for dial in dials}
        with self.sliders:
            if poses:
                with gui.add_folder("named poses", expand_by_default=len(poses) <= _FEW):
                    for name, positions in poses.items():
                        self._add_pose(name, positions)
            for label, dials in groups.items():
                with gui.add_folder(label, expand_by_default=len(groups) < 3):
                    for dial in dials:
                        self._dials[dial.joint] = self._slider(dial)
            self._add_pose("Back to the first pose", starts)

    def move(self, positions: Mapping[str, float]) -> None:
        """Move the sliders of joints [rad, m]; joints without one are ignored."""
        for joint in positions.keys() & self._dials.keys():
            self._dials[joint].value = float(positions[joint])
        self.changed.set()

    def activate(self, contacts: Collection[str]) -> None:
        """Check the boxes of these contacts alone."""
        for name, box in self._boxes.items():
            box.value = name in contacts
        self.changed.set()

    def switch(self, objects: str, is_shown: bool) -> None:
        """Check or uncheck the box of drawn objects.

        Parameters
        ----------
        objects : ``meshes``, ``labels``, ``ellipsoids``, ``couplings`` or ``forces``.
        """
        self._switches[objects].value = is_shown
        self.changed.set()

    def add_timeline(self, seconds: Array) -> Timeline:
        """Add a slider over times [s] of a recording, and a button that plays the recording."""
        with self.sliders:
            self.timeline = Timeline(self.server.gui, float(seconds[0]), float(seconds[-1]))
        self.timeline.slider.on_update(self._note)
        return self.timeline

    @property
    def positions(self) -> dict[str, float]:
        """Positions of the sliders by joint [rad, m]."""
        return {joint: float(slider.value) for joint, slider in self._dials.items()}

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """Ends of the sliders by joint [rad, m]."""
        return {joint: (slider.min, slider.max) for joint, slider in self._dials.items()}

    @property
    def active(self) -> list[str]:
        """Names of the contacts whose boxes are checked."""
        return [name for name, box in self._boxes.items() if box.value]

    @property
    def words(self) -> str:
        """The shown numbers, as HTML."""
        return f"{self._facts.content}{self._numbers.content}"

    def _add_pose(self, name: str, positions: Mapping[str, float]) -> None:
        """Add a button that moves the sliders to a pose."""
        self.server.gui.add_button(name).on_click(lambda _: self.move(positions))

    def _slider(self, dial: JointSlider) -> viser.GuiSliderHandle[float]:
        low, high = float(dial.lower), float(dial.upper)
        slider = self.server.gui.add_slider(
            f"{dial.joint} [{dial.unit}]", low, high, (high - low) / 1000.0,
            min(max(dial.start, low), high),
        )  # fmt: skip
        slider.on_update(self._note)
        return slider

    def _note(self, _: object) -> None:
        self.changed.set()

    # What is shown.

    def neutral(self) -> Snapshot:
        """Return the robot in its neutral configuration, without a matrix."""
        return Snapshot(self.meshes.poses(self._robot.neutral()))

    def show(self, snapshot: Snapshot, warning: str = "") -> None:
        """Draw a snapshot; a warning is shown above its numbers."""
        with self.server.atomic():
            self._place(snapshot.poses, snapshot.turn)
            shown = {name for name, box in self._switches.items() if box.value}
            self._dress("meshes" in shown, "ellipsoids" in shown and bool(snapshot.scene.contacts))
            drawn = {
                **self._masses(snapshot.scene, "ellipsoids" in shown, "labels" in shown),
                **(self._couplings(snapshot.scene) if "couplings" in shown else {}),
                **(self._forces(snapshot.forces) if "forces" in shown else {}),
                **self.meshes.lines(snapshot.poses, "meshes" in shown),
            }
            for name in self._drawn.keys() - drawn.keys():
                self._drawn[name].remove()
            self._drawn = drawn
            self._facts.content = facts_table(snapshot, warning)
            self.picture.show(snapshot.scene)
            lengths = None if self._lengths is None else self._lengths.times(self._scale.value)
            self._pose.content = pose_text(pose_lines(snapshot, self._dials.keys()))
            if snapshot.forces:
                self._switches["forces"].visible = True
            self._numbers.content = numbers_table(snapshot, lengths)

    def close(self) -> None:
        """End the server."""
        self._page.close()

    def run(
        self, draw: Callable[[], None], stopping: Callable[[], bool], poll: float = 0.1
    ) -> None:
        """Draw after each change by the user, and while a recording is played, until a stop.

        Parameters
        ----------
        poll : longest time until `stopping` is asked [s].
        """
        while not stopping():
            if self.timeline is not None and self.timeline.advance(time.monotonic()):
                self.changed.set()
            playing = self.timeline is not None and self.timeline.is_playing
            if self.changed.wait(min(poll, _FRAME) if playing else poll):
                self.changed.clear()
                draw()

    def _add_ground(self) -> None:
        self._grid = self.server.scene.add_grid(
            "/ground", width=4.0 * self.size, height=4.0 * self.size,
            cell_size=0.1 if self.size < 1.0 else 0.5, section_size=1.0, shadow_opacity=_SHADOW,
        )  # fmt: skip

    def _look_at(self, points: Array) -> None:
        """Let the first picture show the points (n, 3) of the robot."""
        self._view = FirstView(points + self.meshes.base.position)
        camera = self.server.initial_camera
        camera.look_at, camera.position = self._view.beside_panel()
        for client in self.server.get_clients().values():
            self._aim(client)

    def _aim(self, client: viser.ClientHandle) -> None:
        """Let a phone show the robot above the panel, which covers the lower part of its page."""
        camera = client.camera
        if self._view is None or camera.image_width > NARROW:
            return
        aspect = camera.image_width / camera.image_height
        at, place = self._view.above_panel(aspect, camera.fov)
        with client.atomic():
            # A camera that is moved keeps its direction until it is told where to look.
            camera.position = place
            camera.look_at = at

    def _place(self, poses: Array, turn: Array) -> None:
        """Move the bodies, and a floating robot such that its lowest point is on the ground."""
        self.meshes.place(poses)
        first = self._ground is None
        if not first and (self._robot.base == "fixed" or self.is_held):
            return
        points = self.meshes.outline(poses)
        self._ground = float((points @ turn[2]).min()) if len(points) else 0.0
        self.meshes.base.position = (0.0, 0.0, -self._ground)
        self.meshes.base.wxyz = np.roll(quaternion_of(turn), 1)
        if first and len(points):
            self._look_at(points)

    def _dress(self, is_shown: bool, is_clear: bool) -> None:
        """Show or hide the meshes, which are clear around ellipsoids.

        A shadow would hide the parts of ellipsoids below the ground.
        """
        self._grid.shadow_opacity = 0.0 if is_clear else _SHADOW
        self.meshes.dress(is_shown, is_clear)

    def _masses(
        self, scene: Scene, has_ellipsoids: bool, has_names: bool
    ) -> dict[str, viser.SceneNodeHandle]:
        """Draw the effective masses of contacts, and the contacts' names."""
        if not scene.contacts:
            return {}
        if self._lengths is None:
            # The scale stays, so that ellipsoids of different postures can be compared.
            self._lengths = Lengths.fitting(self.size, [found.mass for found in scene.contacts])
        lengths = self._lengths.times(self._scale.value)
        return {
            **(self._ellipsoids(scene, lengths) if has_ellipsoids else {}),
            **(self._names(scene, lengths) if has_names else {}),
        }

    def _ellipsoids(self, scene: Scene, lengths: Lengths) -> dict[str, viser.SceneNodeHandle]:
        drawn: dict[str, viser.SceneNodeHandle] = {}
        for contact in scene.contacts:
            name = f"{ROOT}/ellipsoids/{_key(contact.name)}"
            ball = self._drawn.get(name)
            if not isinstance(ball, viser.IcosphereHandle):
                ball = self.server.scene.add_icosphere(
                    name, 1.0, GREEN, opacity=_CLEAR, cast_shadow=False, receive_shadow=False
                )
            ball.position = contact.centre
            ball.wxyz = np.roll(quaternion_of(contact.directions), 1)
            ball.scale = tuple(lengths.semi_axes(contact.mass).tolist())
            drawn[name] = ball
        return drawn

    def _names(self, scene: Scene, lengths: Lengths) -> dict[str, viser.SceneNodeHandle]:
        """Draw the names of contacts, none over another as seen at first."""
        height = _LETTERS * self.size
        places = np.array([above(contact, lengths) for contact in scene.contacts])
        sizes = [
            (height * (0.65 * len(contact.name) + 1.0), 2.0 * height) for contact in scene.contacts
        ]
        camera = np.array(self.server.initial_camera.position) - self.meshes.base.position
        right, up = picture_plane()
        depths = (camera - places) @ BACK
        seen = (places - camera) @ np.column_stack([right, up]) / depths[:, None]
        lifts = raised(seen, np.array(sizes) / depths[:, None]) * depths / up[2]
        drawn: dict[str, viser.SceneNodeHandle] = {}
        for contact, place, lift in zip(scene.contacts, places, lifts, strict=True):
            name = f"{ROOT}/names/{_key(contact.name)}"
            label = self._drawn.get(name)
            if label is None:
                label = self.server.scene.add_label(
                    name, contact.name, anchor="bottom-center", font_size_mode="scene",
                    font_scene_height=height,
                )  # fmt: skip
            label.position = place + (0.0, 0.0, lift)
            drawn[name] = label
        return drawn

    def _couplings(self, scene: Scene) -> dict[str, viser.SceneNodeHandle]:
        if not scene.lines:
            return {}
        ends, shares = zip(*scene.lines, strict=True)
        colours = [[coupling_colour(share)] * 2 for share in shares]
        name = f"{ROOT}/couplings"
        return {name: self.server.scene.add_line_segments(
            name, np.array(ends), np.array(colours, dtype=np.uint8), thickness=0.005 * self.size
        )}  # fmt: skip

    def _forces(self, forces: Sequence[PlacedForce]) -> dict[str, viser.SceneNodeHandle]:
        scale = force_scale(self.size, [each.force for each in forces])
        width = 0.006 * self.size
        drawn: dict[str, viser.SceneNodeHandle] = {}
        for each in forces:
            length = float(np.linalg.norm(each.force)) * scale
            if length < 2.0 * width:
                continue
            name = f"{ROOT}/forces/{_key(each.contact)}"
            ends = np.array([[each.point, each.point + scale * each.force]])
            drawn[name] = self.server.scene.add_arrows(
                name, ends, BLUE, shaft_radius=width, head_radius=2.5 * width,
                head_length=4.0 * width,
            )  # fmt: skip
            cone = f"{ROOT}/cones/{_key(each.contact)}"
            vertices, faces = cone_surface(scale * each.parts.normal, each.friction)
            drawn[cone] = self.server.scene.add_mesh_simple(
                cone, vertices, faces, color=BLUE, opacity=_CONE, side="double",
                position=each.point, wxyz=np.roll(quaternion_of(each.upright), 1),
                cast_shadow=False, receive_shadow=False,
            )  # fmt: skip
        return drawn


def _key(name: str) -> str:
    """Return a name of a contact as part of a path of the scene."""
    return name.replace("%", "%25").replace("/", "%2F")
