"""Draws the pictures of the documentation: ``MUJOCO_GL=egl python scripts/pictures.py``.

The simulated quadruped bends its knees; at each foot is the ellipsoid of its effective mass, which
says how heavy the robot is there in each direction, and bars join feet that move with each other.
Beside it the heat map of its matrix, what `delassus plot` draws, and what `delassus watch` shows
of the demo.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from PIL import Image
from rich.console import Console

from delassus_ros import Contact, DelassusSolver, Problem, Robot
from delassus_ros.cli.main import main as delassus
from delassus_ros.drawing.heat_map import heat_map
from delassus_ros.drawing.scene import Placed, Scene, Stage
from delassus_ros.sim import demo_urdf
from delassus_ros.sim.plants import make_plant

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "pictures"
LEGS = ("LF", "RF", "LH", "RH")
WIDTH, HEIGHT, FRAMES = 720, 470, 28
GREEN, BLUE = (0.1, 0.7, 0.3, 0.55), (0.2, 0.4, 0.9, 1.0)
FLOOR = (0.94, 0.95, 0.97, 1.0)
SCALE, LONGEST = 0.25, 0.3


def ellipsoid(scene: Any, pose: np.ndarray, contact: Placed) -> None:
    """Add the ellipsoid of a contact to what MuJoCo draws; the pose is that of the root link."""
    turn = pose[:3, :3] @ contact.directions
    centre = pose[:3, :3] @ contact.centre + pose[:3, 3]
    size = contact.mass.semi_axes(SCALE, LONGEST)
    geom = scene.geoms[scene.ngeom]
    mujoco.mjv_initGeom(geom, mujoco.mjtGeom.mjGEOM_ELLIPSOID, size, centre, turn.ravel(), GREEN)
    scene.ngeom += 1


def couplings(scene: Any, pose: np.ndarray, drawn: Scene) -> None:
    """Add a bar between contacts, as thick as they move with each other."""
    shape = mujoco.mjtGeom.mjGEOM_CAPSULE
    for (i, j), share in drawn.couplings.items():
        ends = [pose[:3, :3] @ drawn.contacts[k].centre + pose[:3, 3] for k in (i, j)]
        geom = scene.geoms[scene.ngeom]
        mujoco.mjv_initGeom(geom, shape, np.zeros(3), np.zeros(3), np.eye(3).ravel(), BLUE)
        mujoco.mjv_connector(geom, shape, 0.06 * share, *ends)
        scene.ngeom += 1


def film() -> None:
    """Draw the quadruped as it bends its knees and stretches them."""
    plant = make_plant("quadruped")
    model, data = plant._model, plant._data
    model.vis.global_.offwidth, model.vis.global_.offheight = WIDTH, HEIGHT
    model.vis.headlight.ambient[:], model.vis.headlight.diffuse[:] = 0.5, 0.7
    model.geom_rgba[model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE] = FLOOR
    model.geom_matid[model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE] = -1
    robot = Robot.from_urdf(demo_urdf().encode())
    contacts = [Contact(leg, f"{leg}_FOOT") for leg in LEGS]
    solver = DelassusSolver(Problem(robot, contacts))
    stage = Stage(robot, {c.name: (c.frame, c.placement) for c in contacts})
    renderer, camera = mujoco.Renderer(model, HEIGHT, WIDTH), mujoco.MjvCamera()
    camera.lookat[:] = 0.0, 0.0, 0.13
    camera.distance, camera.elevation, camera.azimuth = 1.0, -24.0, 128.0
    images = []
    for k in range(FRAMES):
        bend = 0.5 * (1.0 - np.cos(2.0 * np.pi * k / FRAMES))
        for leg in LEGS:
            data.joint(f"{leg}_HFE").qpos[0] = 0.45 + 0.65 * bend
            data.joint(f"{leg}_KFE").qpos[0] = -0.95 - 1.2 * bend
        data.qpos[:3] = 0.0
        mujoco.mj_forward(model, data)
        q = robot.q({name: data.joint(name).qpos[0] for name in robot.joint_names})
        drawn = stage.scene(q, LEGS, (0, 3, 6, 9, 12), ("point",) * 4, solver.solve(q).matrix)
        # Its feet, of 2 cm radius, stay on the floor.
        data.qpos[2] = 0.02 - min(contact.centre[2] for contact in drawn.contacts)
        mujoco.mj_forward(model, data)
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = data.xmat[1].reshape(3, 3), data.xpos[1]
        renderer.update_scene(data, camera)
        for contact in drawn.contacts:
            ellipsoid(renderer.scene, pose, contact)
        couplings(renderer.scene, pose, drawn)
        images.append(Image.fromarray(renderer.render()))
    first, *others = [image.quantize(96) for image in images]
    target = PICTURES / "quadruped.gif"
    first.save(target, save_all=True, append_images=others, duration=70, loop=0, optimize=True)


def colours() -> None:
    """Draw the heat map of the standing quadruped's matrix, as on the topic ``~/heat_map``."""
    robot = Robot.from_urdf(demo_urdf().encode())
    solver = DelassusSolver(Problem(robot, [Contact(leg, f"{leg}_FOOT") for leg in LEGS]))
    G = solver.solve([0.1, 0.7, -1.4] * 4).matrix
    Image.fromarray(heat_map(G, (0, 3, 6, 9, 12), cell=24)).save(PICTURES / "heat_map.png")


def terminal() -> None:
    """Run the demo, watch its node, and draw what is said last."""
    domain = {"ROS_DOMAIN_ID": "77", "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    environment = {**os.environ, **domain, "AMENT_PREFIX_PATH": sys.prefix}
    programs = Path(sys.executable).parent
    demo = subprocess.Popen([programs / "delassus_demo"], env=environment, stdout=subprocess.PIPE)
    try:
        watch = [programs / "delassus", "watch", "--seconds", "10"]
        shown = subprocess.run(watch, env=environment, capture_output=True, text=True, check=True)
    finally:
        demo.terminate()
        demo.communicate()
    console = Console(record=True, width=80, file=StringIO())
    console.print("$ delassus watch", style="bold")
    console.print(shown.stdout, highlight=False)
    # Without fonts of other hosts: a page is drawn from what is beside it.
    svg = console.export_svg(title="delassus")
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    (PICTURES / "watch.svg").write_text(svg)


def main() -> None:
    """Draw all pictures."""
    PICTURES.mkdir(exist_ok=True)
    film()
    colours()
    terminal()
    urdf = Path(__file__).resolve().parents[1] / "delassus_ros" / "sim" / "quadruped.urdf"
    stance = ",".join(f"{leg}_HFE=0.7,{leg}_KFE=-1.4" for leg in LEGS)
    contacts = [word for leg in LEGS for word in ("--contact", f"{leg}={leg}_FOOT")]
    way = ",".join(f"{leg}_HFE=0.1,{leg}_KFE=-0.35" for leg in LEGS)
    figure = str(PICTURES / "plot.png")
    delassus(["plot", str(urdf), *contacts, "--q", stance, "--to", way, "-o", figure])


if __name__ == "__main__":
    main()
