"""Rotors of ``<transmission>`` elements, ROS 1's and ROS 2's, beside Pinocchio.

Pinocchio gets the description without transmissions, and rotors that are added by hand; the
equations of ``transmission_interface``, written down here once more, are eliminated from its mass
matrix and Jacobian.
"""

from __future__ import annotations

import logging
import re
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
import robots
from on_floats import solver_on_floats
from urdf_text import INERTIAL, joint, link, robot_xml

from delassus import Contact, Problem, Robot
from delassus.errors import RobotError

ANY = {"drive": 1e-4}
"""The inertia of the rotors where any will do [kg m^2]."""
INERTIAS = {"first": 1.3e-4, "second": 2.1e-4}


def end(tag: str, name: str, role: str, ros2: bool, **values: float) -> str:
    """Return a joint or actuator of a transmission as ROS 1 or ROS 2 writes it."""
    reduction = "mechanical_reduction" if ros2 else "mechanicalReduction"
    inside = "".join(
        f"<{reduction if key == 'n' else key}>{value}</{reduction if key == 'n' else key}>"
        for key, value in values.items()
    )
    if ros2:
        return f'<{tag} name="{name}" role="{role}">{inside}</{tag}>'
    return f'<{tag} name="{name}"><role>{role}</role>{inside}</{tag}>'


def transmission(kind: str, parts: str, ros2: bool, name: str = "drive") -> str:
    tag = "plugin" if ros2 else "type"
    text = (
        f'<transmission name="{name}"><{tag}>transmission_interface/{kind}Transmission</{tag}>'
        f"{parts}</transmission>"
    )
    return f'<ros2_control name="c" type="system">{text}</ros2_control>' if ros2 else text


def leg(*transmissions: str) -> str:
    """Return base, thigh, shank and foot on joints hip, knee and ankle, axes not parallel."""
    axes = {"hip": "0 1 0", "knee": "0.6 0 0.8", "ankle": "1 0 0"}
    links = ("base", "thigh", "shank", "foot")
    joints = (
        joint(
            name, *links[k : k + 2], inside=f'<axis xyz="{axis}"/><limit effort="1" velocity="1"/>'
        )
        for k, (name, axis) in enumerate(axes.items())
    )
    return robot_xml(*(link(name, INERTIAL) for name in links), *joints, *transmissions)


SIMPLE = {
    False: end("joint", "knee", "joint1", False, offset=0.3)
    + end("actuator", "first", "actuator1", False, n=-50),
    True: end("joint", "knee", "joint1", True, n=-50, offset=0.3)
    + end("actuator", "first", "actuator1", True),
}


def pair(ros2: bool) -> str:
    return (
        end("joint", "knee", "joint1", ros2, n=2.0, offset=0.3)
        + end("joint", "ankle", "joint2", ros2, n=-1.5, offset=-0.2)
        + end("actuator", "first", "actuator1", ros2, n=30)
        + end("actuator", "second", "actuator2", ros2, n=-20)
    )


KINDS = {
    # Positions of actuators by those of joints: factors, and the offsets of the joints.
    "Simple": (SIMPLE, [[-50.0, 0.0]]),
    "Differential": ({r: pair(r) for r in (False, True)}, [[60.0, -45.0], [-40.0, -30.0]]),
    "FourBarLinkage": ({r: pair(r) for r in (False, True)}, [[60.0, 0.0], [-20.0, 30.0]]),
}
OFFSETS = np.array([0.3, -0.2])


def reference(
    text: str, base: str, added: list[tuple[str, str, float]], A: np.ndarray, frame: str
):
    """Return a function of positions by name that gives G of a point by Pinocchio.

    Parameters
    ----------
    added : names of the rotors, each with the joint that it is beside, and its inertia [kg m^2].
    A : positions of rotors by those of Pinocchio's joints, (rotors, joints).
    """
    root = (pin.JointModelFreeFlyer(),) if base == "floating" else ()
    model = pin.buildModelFromXML(text, *root)
    nv = model.nv
    for name, beside, inertia in added:
        j = model.getJointId(beside)
        data = model.joints[j].createData()
        model.joints[j].calc(data, pin.neutral(model))
        axis = np.asarray(data.S).ravel()[3:]
        if not axis.any():
            axis = np.asarray(data.S).ravel()[:3]
        number = model.addJoint(
            model.parents[j], pin.JointModelRevoluteUnaligned(axis), model.jointPlacements[j], name
        )
        own = pin.Inertia(0.0, np.zeros(3), np.zeros((3, 3)))
        own.inertia = inertia * np.outer(axis, axis)
        model.appendBodyToJoint(number, own, pin.SE3.Identity())
    data = model.createData()
    model.gravity.setZero()
    order = [model.joints[model.getJointId(name)].idx_v for name, *_ in added]
    kept = [k for k in range(model.nv) if k not in order]
    assert len(kept) == nv
    K = np.zeros((model.nv, nv))
    K[kept] = np.eye(nv)
    K[order] = A

    def G(positions: dict[str, float]) -> np.ndarray:
        q = pin.neutral(model)
        for name, value in positions.items():
            own = model.joints[model.getJointId(name)]
            q[own.idx_q : own.idx_q + own.nq] = (
                value if own.nq == 1 else [np.cos(value), np.sin(value)]
            )
        # Pinocchio's crba wants joints depth first.
        rest = np.zeros(model.nv)
        M = np.array([pin.rnea(model, data, q, rest, unit) for unit in np.eye(model.nv)]).T
        J = pin.computeFrameJacobian(model, data, q, model.getFrameId(frame), pin.LOCAL)[:3]
        return J @ K @ np.linalg.solve(K.T @ M @ K, (J @ K).T)

    return G


def compare(robot: Robot, G: Any, frame: str, seed: int = 0) -> float:
    """Return the largest relative difference of both matrices at random positions."""
    solver = solver_on_floats(Problem(robot, [Contact("c", frame=frame)]))
    rng = np.random.default_rng(seed)
    worst = 0.0
    followers = {each.ratios[0][0] for each in robot.couplings}
    for _ in range(3):
        free = {
            each.name: rng.uniform(max(each.lower, -1.0), min(each.upper, 1.0))
            for each in robot.joints
            if each.kind.nv == 1 and each.name not in followers
        }
        found = solver.solve(robot.q(free), check=True).matrix
        expected = G(free)
        worst = max(worst, np.linalg.norm(found - expected) / np.linalg.norm(expected))
    return worst


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("ros2", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_matrices_are_those_of_pinocchio_with_the_constraint_eliminated(
    kind: str, ros2: bool, base: Any
) -> None:
    parts, factors = KINDS[kind]
    text = leg(transmission(kind, parts[ros2], ros2))
    inertias = {name: INERTIAS[name] for name in list(INERTIAS)[: len(factors)]}
    robot = Robot.from_urdf(text, base, loops={"rotors": {"drive": inertias}})
    free = 6 * (base == "floating")
    A = np.zeros((len(factors), free + 3))
    A[:, free + 1 :] = factors
    added = [(name, "knee", value) for name, value in inertias.items()]
    assert compare(robot, reference(text, base, added, A, "foot"), "foot") < 1e-10
    # Positions of the actuators: the constant part of the couplings.
    q = robot.q({"hip": 0.1, "knee": 0.7, "ankle": -0.4})
    names = list(robot.joint_names)
    turned = np.array(factors) @ (np.array([0.7, -0.4]) - OFFSETS)
    assert q[[names.index(name) for name in inertias]] == pytest.approx(turned, rel=1e-12)


def test_one_inertia_holds_for_all_rotors_and_both_forms_are_one_robot() -> None:
    texts = [leg(transmission("Differential", pair(ros2), ros2)) for ros2 in (False, True)]
    first, second = (Robot.from_urdf(t, loops={"rotors": ANY}) for t in texts)
    assert first.to_bytes() == second.to_bytes()
    for body in first.bodies[-2:]:
        assert body.inertia.rotational.trace() == pytest.approx(1e-4, rel=1e-12)
    # A description with both forms of one transmission has one.
    alike = leg(*(transmission("Differential", pair(False), False) for _ in range(2)))
    both = Robot.from_urdf(alike, loops={"rotors": ANY})
    assert both.to_bytes() == first.to_bytes()


def test_ros2_control_adds_an_actuator_and_takes_1_for_missing_reductions() -> None:
    text = leg(transmission("Simple", '<joint name="hip" role="joint1"/>', True))
    robot = Robot.from_urdf(text, loops={"rotors": ANY})
    assert dict(robot.couplings[0].ratios) == {"drive": -1.0, "hip": 1.0}


def test_a_rotor_whose_actuator_is_called_as_a_joint_has_both_names() -> None:
    parts = end("joint", "hip", "joint1", True, n=9) + '<actuator name="hip" role="actuator1"/>'
    robot = Robot.from_urdf(leg(transmission("Simple", parts, True)), loops={"rotors": ANY})
    assert dict(robot.couplings[0].ratios) == {"drive/hip": -1.0, "hip": 9.0}


PAIR = pair(True)
SWAPPED = PAIR.replace("joint1", "j").replace("joint2", "joint1").replace('"j"', '"joint2"')
WITHOUT_REDUCTION = pair(False).replace("<mechanicalReduction>-20</mechanicalReduction>", "")


@pytest.mark.parametrize(
    ("kind", "parts", "ros2", "rotors", "words"),
    [
        *(
            (kind, parts, True, ANY, words)
            for kind, parts, words in (
                ("HalfDifferential", PAIR, "unknown type 'HalfDifferentialTransmission'"),
                ("Differential", SIMPLE[True], "has 1 <joint>; its type has 2"),
                ("Differential", SWAPPED, "in the order of the document; write 'joint1' first"),
                ("Differential", PAIR.replace("joint2", "joint1"), "roles of its <joint>"),
                ("Differential", PAIR.replace("ankle", "ankl"), "did you mean 'ankle'"),
                ("Differential", PAIR.replace("-1.5", "0"), "mechanicalReduction is 0.0"),
                ("Differential", PAIR.replace("-1.5", "much"), "'much' is not a number"),
                ("Differential", PAIR.replace("ankle", "knee"), "<joint name='knee'> appears "
                 "twice"),
                ("FourBarLinkage", PAIR.replace("0.3", "nan"), "offset"),
            )
        ),
        # ROS 1 needs the reductions of actuators.
        ("Differential", WITHOUT_REDUCTION, False, ANY,
         "actuator 'second' has 0 <mechanicalReduction>"),
        *(
            ("Differential", PAIR, True, {"drive": inertias}, words)
            for inertias, words in (
                ({"first": 1e-4}, "inertia of actuator 'second' is missing"),
                ({"frist": 1e-4}, "unknown actuator 'frist'; did you mean 'first'"),
                ({"first": 0.0, "second": 1.0}, "actuator 'first': the inertia must be > 0"),
            )
        ),
    ],
)  # fmt: skip
def test_refused(kind: str, parts: str, ros2: bool, rotors: dict[str, Any], words: str) -> None:
    with pytest.raises(RobotError, match=words):
        Robot.from_urdf(leg(transmission(kind, parts, ros2)), loops={"rotors": rotors})


def test_refuses_motors_whose_place_is_not_known() -> None:
    """Two joints at the ends of two branches, each behind another joint."""
    links = [link(name) for name in ("base", "a", "b", "c", "d")]
    ends = (("a", "base"), ("b", "base"), ("c", "a"), ("d", "b"))
    joints = [joint(name, parent, name) for name, parent in ends]
    parts = pair(True).replace("knee", "c").replace("ankle", "d")
    text = robot_xml(*links, *joints, transmission("Differential", parts, True))
    with pytest.raises(RobotError, match="joints 'c', 'd' are on bodies that other joints move"):
        Robot.from_urdf(text, loops={"rotors": ANY})


def test_warns_by_name_of_reductions_without_rotor(caplog: pytest.LogCaptureFixture) -> None:
    text = leg(
        transmission("Simple", SIMPLE[True], True),
        transmission("Simple", end("joint", "hip", "joint1", True, n=-1.0), True, "unit"),
    )

    def said(**arguments: Any) -> list[str]:
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            Robot.from_urdf(text, **arguments)
        return [each.getMessage() for each in caplog.records]

    (words,) = said()
    assert words.startswith("transmission 'drive' with a reduction, but without the inertia")
    assert said(loops={"rotors": ANY}) == []
    assert said(armature={"knee": 0.1}) == []


# --- published robots ---------------------------------------------------------------------------


PUBLISHED = {
    # URDF, base, transmission, joints, factors of the actuators, and the last link.
    "TALOS": ("talos_data/robots/talos_full_v2.urdf", "floating", "wrist_left_trans",
              ["arm_left_6_joint", "arm_left_7_joint"], [[1, 1], [-1, 1]], "arm_left_7_link"),
    "TIAGo": ("tiago_description/robots/tiago.urdf", "fixed", "wrist_trans",
              ["arm_6_joint", "arm_7_joint"], [[-1, 1], [1, 1]], "arm_7_link"),
    "xArm 7": ("xarm_description/urdf/xarm7.urdf", "fixed", "tran2", ["joint2"], [[100]],
               "link7"),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_robots_with_rotors_are_pinocchio_s(name: str) -> None:
    path, base, drive, joints, factors, frame = PUBLISHED[name]
    text = re.sub(r"<mimic[^>]*/>", "", robots.example(path).read_text(encoding="utf-8"))
    robot = Robot.from_urdf(text, base, loops={"rotors": {drive: 2e-2}})
    rotors = [joint.name for joint in robot.joints[-len(factors) :]]
    model = pin.buildModelFromXML(text, *((pin.JointModelFreeFlyer(),) * (base == "floating")))
    A = np.zeros((len(factors), model.nv))
    for joint_name, column in zip(joints, np.transpose(factors), strict=True):
        A[:, model.joints[model.getJointId(joint_name)].idx_v] = column
    added = [(rotor, joints[0], 2e-2) for rotor in rotors]
    assert compare(robot, reference(text, base, added, A, frame), frame) < 1e-10
