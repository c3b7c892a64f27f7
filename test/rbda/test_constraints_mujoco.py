"""K, E and closed positions against MuJoCo's equality constraints."""

from __future__ import annotations

from xml.etree import ElementTree

import mujoco
import numpy as np
import pytest
from linkages import assembled, four_bar, random_linkage, random_pose, tied

from delassus_ros import Robot
from delassus_ros.closure import Closure, ClosureStatus
from delassus_ros.model import WORLD, Coupling, Joint, JointKind, Loop, LoopKind, Transform
from delassus_ros.rbda.constraints import constraint_jacobian, loop_jacobian


def numbers(values) -> str:
    return " ".join(f"{float(value):.17g}" for value in values)


def pose(transform: Transform) -> dict[str, str]:
    x, y, z, w = transform.quaternion()
    return {"pos": numbers(transform.translation), "quat": numbers((w, x, y, z))}


def compiled(robot: Robot):
    """Return MuJoCo's model of a robot of revolute and prismatic joints."""
    root = ElementTree.Element("mujoco")
    ElementTree.SubElement(root, "compiler", angle="radian")
    ElementTree.SubElement(root, "option", jacobian="dense")
    world = ElementTree.SubElement(root, "worldbody")
    elements = {WORLD: world}
    for i, joint in enumerate(robot.joints):
        body = ElementTree.SubElement(
            elements[joint.parent], "body", name=f"body{i}", **pose(joint.placement)
        )
        kind = "slide" if joint.kind is JointKind.PRISMATIC else "hinge"
        axis = numbers(joint.axis)
        ElementTree.SubElement(body, "joint", name=joint.name, type=kind, axis=axis)
        inertia = {"pos": "0 0 0", "mass": "1", "diaginertia": "0.02 0.02 0.02"}
        ElementTree.SubElement(body, "inertial", **inertia)
        elements[i] = body
    equality = ElementTree.SubElement(root, "equality")
    for loop in robot.loops:
        ends = (
            (loop.predecessor, loop.predecessor_placement),
            (loop.successor, loop.successor_placement),
        )
        sites = {}
        for k, (body, placement) in enumerate(ends, start=1):
            sites[f"site{k}"] = f"{loop.name}{k}"
            ElementTree.SubElement(
                elements[body], "site", name=f"{loop.name}{k}", **pose(placement)
            )
        kind = {LoopKind.POINT: "connect", LoopKind.WELD: "weld"}[loop.kind]
        ElementTree.SubElement(equality, kind, **sites)
    for coupling in robot.couplings:
        (first, a), (second, b) = coupling.ratios
        ElementTree.SubElement(
            equality, "joint", joint1=first, joint2=second,
            polycoef=numbers((-coupling.offset / a, -b / a, 0, 0, 0)),
        )  # fmt: skip
    model = mujoco.MjModel.from_xml_string(ElementTree.tostring(root, encoding="unicode"))
    return model, mujoco.MjData(model)


def at(model, data, robot: Robot, q) -> tuple[np.ndarray, np.ndarray]:
    """Return MuJoCo's constraint Jacobian and violation, columns in the order of the robot."""
    columns = [model.joint(joint.name).qposadr[0] for joint in robot.joints]
    data.qpos[columns] = q
    mujoco.mj_forward(model, data)
    rows = data.efc_J.reshape(data.nefc, model.nv)
    return rows[:, columns], data.efc_pos[: data.nefc].copy()


def difference(K: np.ndarray, other: np.ndarray) -> float:
    """Return how much the row spaces differ."""
    assert np.linalg.matrix_rank(K, tol=1e-9) == np.linalg.matrix_rank(other, tol=1e-9)
    ours, theirs = np.linalg.pinv(K, rcond=1e-9) @ K, np.linalg.pinv(other, rcond=1e-9) @ other
    return float(np.abs(ours - theirs).max())


@pytest.mark.parametrize("kind", [LoopKind.POINT, LoopKind.WELD])
@pytest.mark.parametrize("seed", range(5))
def test_spatial_loops(kind, seed):
    robot, cluster, q = random_linkage(kind, 200 + seed)
    rows, violation = at(*compiled(robot), robot, q)
    assert np.abs(violation).max() <= 1e-12
    K = np.array(constraint_jacobian(robot, cluster, q.tolist()))
    assert difference(K, rows[:, 1:]) <= 1e-9
    E = np.array(loop_jacobian(robot, cluster, q.tolist()))
    assert np.abs(rows[:, 1:] @ E).max() <= 1e-11 * np.abs(E).max()


@pytest.mark.parametrize("kind", [LoopKind.POINT, LoopKind.WELD])
@pytest.mark.parametrize("length", [0.3, 4.0])
def test_prismatic_joints_that_follow(kind, length):
    """Their columns have constants, oblique and small beside the others: not every one a pivot."""
    for seed in range(40):
        slides = (3, 4, kind.rows + 2)[: 2 + seed % 2]
        robot, cluster, q = random_linkage(kind, 300 + seed, slides=slides, length=length)
        rows, violation = at(*compiled(robot), robot, q)
        assert np.abs(violation).max() <= 1e-11 * length / 0.3
        E = np.array(loop_jacobian(robot, cluster, q.tolist()))
        assert np.abs(rows[:, 1:] @ E).max() <= 1e-10 * np.abs(rows).max() * np.abs(E).max()


def test_a_geared_four_bar_that_closure_closed():
    """Loop and gear in one cluster, mounted anywhere; positions from the motor alone."""
    gear = Coupling("gear", (("motor", -1.0), ("crank", 9.0)), 0.2)
    robot = four_bar(
        mount=random_pose(np.random.default_rng(3)),
        couplings=(gear,),
        extra=(Joint("motor", JointKind.REVOLUTE, WORLD),),
        independent=("motor",),
    )
    reference = {"crank": 0.8, "motor": 7.4, "coupler": assembled(0.8)[0]}
    closure = Closure(robot, reference)
    model, data = compiled(robot)
    for crank in np.linspace(-3.0, 3.0, 20):
        result = closure.solve({"motor": 9.0 * crank + 0.2})
        assert result.status is ClosureStatus.OK
        rows, violation = at(model, data, robot, result.q)
        assert np.abs(violation).max() <= 1e-11
        E = np.array(loop_jacobian(robot, tied(robot), result.q.tolist()))
        assert np.abs(rows @ E).max() <= 1e-12 * np.abs(E).max()
        assert np.linalg.matrix_rank(rows, tol=1e-9) == 3 == len(E) - E.shape[1]


def test_loops_through_the_world():
    robot, cluster, q = random_linkage(LoopKind.POINT, 7)
    (loop,) = robot.loops
    model, data = compiled(robot)
    at(model, data, robot, q)
    site = data.site(f"{loop.name}1")
    here = Transform(site.xmat.reshape(3, 3), site.xpos)
    to_world = Loop(
        "anchor", LoopKind.WELD, loop.predecessor, WORLD, loop.predecessor_placement, here
    )
    path = [0, *range(1, loop.predecessor + 1)]
    tied_down = Robot("r", robot.joints, robot.bodies, [], (), [to_world])
    rows, violation = at(*compiled(tied_down), tied_down, q)
    assert np.abs(violation).max() <= 1e-12
    from delassus_ros.model import Cluster

    whole = Cluster(tied_down, tuple(path), loops=(to_world,))
    K = np.array(constraint_jacobian(tied_down, whole, q.tolist()))
    assert difference(K, rows[:, path]) <= 1e-9
