"""Draws the pictures of the documentation, all or by name: ``make pictures``, or ``ARGS=film``.

The simulated quadruped bends its knees on the floor. At each foot are the ellipsoid of the foot's
effective mass and an arrow along the contact force; bars join feet that move with each other.
Plots are PNG: the heat map of the matrix, an arm near a singularity, a robot with a four-bar, the
figure of `delassus plot`. The text of `delassus watch` beside the demo is SVG. The page of
`delassus view` is taken in Chromium.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from PIL import Image
from rich.console import Console

from delassus import Closure, Contact, DelassusSolver, Problem, Robot
from delassus.contacts import row_scales
from delassus.drawing import figures
from delassus.drawing.ellipsoids import Lengths
from delassus.drawing.scene import DrawnRobot, Placed, Scene
from delassus.drawing.shapes import Shapes
from delassus.drawing.skeleton import Skeleton
from delassus.model.reading.xml import parse_xml
from delassus.robots.built_in import demo_urdf
from delassus.robots.built_in.arm import TOOL, arm_urdf
from delassus_ros.sim.plants import make_plant
from delassus_ros.verbs.main import main as delassus

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "test"), str(ROOT)]
PICTURES = ROOT / "docs" / "pictures"
LEGS = ("LF", "RF", "LH", "RH")
WIDTH, HEIGHT, FRAMES = 720, 470, 22
GREEN, BLUE, RED = (0.1, 0.7, 0.3, 0.55), (0.2, 0.4, 0.9, 1.0), (0.85, 0.2, 0.15, 1.0)
FORCE_M_PER_N = 0.009
FLOOR, LINE = (1.0, 1.0, 1.0, 0.8), (0.55, 0.58, 0.63, 1.0)
LENGTHS = Lengths(0.25, 0.3)


def ellipsoid(scene: Any, pose: np.ndarray, contact: Placed) -> None:
    """Add the ellipsoid of a contact to what MuJoCo draws; the pose is that of the root link."""
    turn = pose[:3, :3] @ contact.directions
    centre = pose[:3, :3] @ contact.centre + pose[:3, 3]
    size = LENGTHS.semi_axes(contact.mass)
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


def grid(scene: Any, half: float = 0.6, step: float = 0.15) -> None:
    """Add lines on the floor, `step` apart [m]."""
    shape = mujoco.mjtGeom.mjGEOM_CAPSULE
    for place in np.arange(-half, half + step / 2, step):
        for ends in (((place, -half, 0), (place, half, 0)), ((-half, place, 0), (half, place, 0))):
            geom = scene.geoms[scene.ngeom]
            mujoco.mjv_initGeom(geom, shape, np.zeros(3), np.zeros(3), np.eye(3).ravel(), LINE)
            mujoco.mjv_connector(geom, shape, 0.0012, *map(np.array, ends))
            scene.ngeom += 1


def arrow(scene: Any, start: np.ndarray, force: np.ndarray) -> None:
    """Add an arrow along a force in world axes [N]."""
    geom = scene.geoms[scene.ngeom]
    shape = mujoco.mjtGeom.mjGEOM_ARROW
    mujoco.mjv_initGeom(geom, shape, np.zeros(3), np.zeros(3), np.eye(3).ravel(), RED)
    mujoco.mjv_connector(geom, shape, 0.008, start, start + FORCE_M_PER_N * force)
    scene.ngeom += 1


def standing_forces(robot: Robot, solver: DelassusSolver, q: np.ndarray) -> np.ndarray:
    """Return the forces (4, 3) of the feet under torques that hold the robot up [N]."""
    n = len(solver.problem.velocities)
    rest = {"rates": np.zeros(n), "gravity": [0.0, 0.0, -9.81], "base_orientation": [0, 0, 0, 1]}
    s = solver.solve(q, torques=np.zeros(n), **rest)
    weight = 9.81 * sum(body.inertia.mass for body in robot.bodies)
    torques = s.h - s.J.T @ np.tile([0.0, 0.0, weight / 4], 4)
    torques[:6] = 0.0
    return solver.solve(q, torques=torques, **rest).contact_forces(0.7).forces.reshape(-1, 3)


def film() -> None:
    """Draw the quadruped as it bends its knees and stretches them."""
    plant = make_plant("quadruped")
    model, data = plant._model, plant._data
    model.vis.global_.offwidth, model.vis.global_.offheight = WIDTH, HEIGHT
    model.vis.headlight.ambient[:], model.vis.headlight.diffuse[:] = 0.5, 0.7
    model.geom_matid[model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE] = -1
    # Ellipsoids below the floor are seen through it.
    model.geom_rgba[model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE] = FLOOR
    robot = Robot.from_urdf(demo_urdf().encode())
    contacts = [Contact(leg, f"{leg}_FOOT") for leg in LEGS]
    solver = DelassusSolver(Problem(robot, contacts))
    dynamic = DelassusSolver(Problem(robot, contacts, axes="world", outputs=["a0", "h", "J"]))
    drawn_robot = DrawnRobot.of(solver.problem)
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
        G = solver.solve(q).matrix
        drawn = drawn_robot.scene(q, LEGS, (0, 3, 6, 9, 12), ("point",) * 4, G)
        # Its feet, of 2 cm radius, stay on the floor.
        data.qpos[2] = 0.02 - min(contact.centre[2] for contact in drawn.contacts)
        mujoco.mj_forward(model, data)
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = data.xmat[1].reshape(3, 3), data.xpos[1]
        renderer.update_scene(data, camera)
        grid(renderer.scene)
        for contact in drawn.contacts:
            ellipsoid(renderer.scene, pose, contact)
        couplings(renderer.scene, pose, drawn)
        for contact, force in zip(drawn.contacts, standing_forces(robot, dynamic, q), strict=True):
            arrow(renderer.scene, pose[:3, :3] @ contact.centre + pose[:3, 3], force)
        images.append(Image.fromarray(renderer.render()))
    # Dithered areas do not compress.
    first, *others = [image.quantize(64, dither=Image.Dither.NONE) for image in images]
    target = PICTURES / "quadruped.gif"
    first.save(target, save_all=True, append_images=others, duration=90, loop=0, optimize=True)


def heat_map() -> None:
    """Draw the matrix of the standing quadruped in the colours of the topic ``~/heat_map``."""
    problem = Problem(Robot.from_urdf(demo_urdf().encode()), feet())
    G = DelassusSolver(problem).solve([0.1, 0.7, -1.4] * 4).matrix
    figure, (axes,) = figures.new_figure(1, solid=False)
    figures.draw_matrix(axes, G, LEGS, problem.contacts.row_offsets)
    figures.save_for_page(figure, PICTURES / "heat_map.png")


def feet() -> list[Contact]:
    """Return the feet of the quadruped."""
    return [Contact(leg, f"{leg}_FOOT") for leg in LEGS]


def robot_and_masses(axes: Any, urdf: str, problem: Problem, q: np.ndarray) -> None:
    """Draw the robot of a description with the effective masses of its contacts."""
    contacts, skeleton = problem.contacts, Skeleton(problem.robot)
    G = DelassusSolver(problem).solve(q).matrix
    kinds = tuple(contact.kind_name for contact in contacts)
    scene = DrawnRobot.of(problem).scene(q, contacts.names, contacts.row_offsets, kinds, G)
    poses = skeleton.poses(q)
    shapes = Shapes.of_urdf(problem.robot, parse_xml(urdf.encode()), None)
    figures.draw_robot(axes, skeleton.bones(poses), scene, shapes.points(poses))


def arm() -> None:
    """Draw the arm as its wrist comes to its singular posture."""
    robot = Robot.from_urdf(arm_urdf().encode(), base="fixed")
    problem = Problem(robot, [Contact(TOOL, kind="surface")])
    way = np.linspace(0.8, 0.02, 100)
    postures = [robot.q({"joint_2": 0.5, "joint_3": 1.2, "joint_5": angle}) for angle in way]
    G = DelassusSolver(problem).solve_batch(postures).matrix
    scales = row_scales(problem.contacts, 0.1)
    figure, (body, condition) = figures.new_figure(2)
    robot_and_masses(body, arm_urdf(), problem, postures[0])
    conditions = np.linalg.cond(G * np.outer(scales, scales))
    figures.draw_condition(condition, conditions, "wrist from 0.8 rad to 0.02 rad")
    figures.save_for_page(figure, PICTURES / "arm.png")


def four_bar() -> None:
    """Draw the quadruped with geared joints and a four-bar on its trunk."""
    robot = Robot.from_urdf(demo_urdf("geared").encode())
    closure = Closure(robot)
    bent = {f"{leg}_{joint}": angle for leg in LEGS for joint, angle in
            (("HFE", 0.7), ("KFE", -1.4))}  # fmt: skip
    measured = {**dict.fromkeys(closure.independent, 0.0), "LIFT_CRANK": 0.4, **bent}
    figure, (axes,) = figures.new_figure(1)
    q = closure.solve(measured).q
    robot_and_masses(axes, demo_urdf("geared"), Problem(robot, feet()), q)
    figures.save_for_page(figure, PICTURES / "four_bar.png")


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


def page() -> None:
    """Take a picture of the page of `delassus view`, with contact forces, in Chromium."""
    from browser import browser
    from processes import wait_until

    legs = {"thigh": -0.4, "shank": 0.8, "ankle": -0.4}
    pose = ",".join(f"{side}_{joint}_joint={angle}" for side in ("left", "right")
                    for joint, angle in legs.items())  # fmt: skip
    program = Path(sys.executable).parent / "delassus"
    command = [program, "view", "humanoid", "--forces", "--q", pose, "--no-browser"]
    viewer = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert viewer.stderr is not None
        address = next(line.split()[0] for line in viewer.stderr if line.startswith("http"))
        with browser((1200, 940)) as shown:
            shown.open(address)
            sliders = "document.querySelectorAll('[role=slider]').length"
            wait_until(lambda: shown.value(sliders) > 0, "sliders")
            # The notice about rendering without a GPU; then the scene fades in.
            shown.value("document.querySelectorAll('.mantine-Notification-closeButton')"
                        ".forEach(button => button.click())")  # fmt: skip
            time.sleep(20.0)
            picture = Image.open(BytesIO(shown.screenshot())).convert("RGB")
            picture.quantize(256).save(PICTURES / "view.png", optimize=True)
    finally:
        viewer.terminate()
        viewer.communicate()


def plot() -> None:
    """Draw the figure of `delassus plot` of the quadruped."""
    urdf = ROOT / "delassus" / "robots" / "built_in" / "quadruped.urdf"
    stance = ",".join(f"{leg}_HFE=0.7,{leg}_KFE=-1.4" for leg in LEGS)
    contacts = [word for leg in LEGS for word in ("--contact", f"{leg}={leg}_FOOT")]
    way = ",".join(f"{leg}_HFE=0.1,{leg}_KFE=-0.35" for leg in LEGS)
    figure = PICTURES / "plot.png"
    delassus(["plot", str(urdf), *contacts, "--q", stance, "--to", way, "-o", str(figure)])
    picture = Image.open(figure).convert("RGB")
    picture.thumbnail((1280, 1280))
    picture.quantize(64, dither=Image.Dither.NONE).save(figure, optimize=True)


def friction() -> None:
    """Draw the humanoid with contact forces in their friction cones."""
    from benchmarks.friction import draw

    draw(PICTURES / "friction.png")


DRAWINGS = {
    drawing.__name__: drawing
    for drawing in (page, film, heat_map, arm, four_bar, friction, terminal, plot)
}


def main() -> None:
    """Draw the named pictures, or all of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(DRAWINGS)} or all")
    names = parser.parse_args().names
    for name in names:
        if name not in DRAWINGS:
            parser.error(f"no picture {name!r}; there are {', '.join(DRAWINGS)}")
    PICTURES.mkdir(exist_ok=True)
    for name in names or DRAWINGS:
        DRAWINGS[name]()


if __name__ == "__main__":
    main()
