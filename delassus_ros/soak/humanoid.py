"""A humanoid of 30 joints, made by code: the load of the soak run; its matrices, once more."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt

from delassus_ros import Contact, ContactSet, DelassusSolver, Problem, Robot

CONTACTS = {
    "left_foot": "left_sole",
    "right_foot": "right_sole",
    "left_hand": "left_palm",
    "right_hand": "right_palm",
}
"""Its contacts, all of kind surface, and their frames: 24 rows."""

_Part = tuple[str, str, tuple[float, float, float], tuple[float, float, float], float]
_AXES = {"roll": "1 0 0", "pitch": "0 1 0", "yaw": "0 0 1"}

# Joint, axis, place in the body before it [m], size of the box that hangs below it [m], mass [kg].
_WAIST: tuple[_Part, ...] = (
    ("waist_yaw", "yaw", (0.0, 0.0, 0.08), (0.10, 0.10, 0.04), 1.0),
    ("waist_roll", "roll", (0.0, 0.0, 0.04), (0.10, 0.10, 0.04), 1.0),
    ("torso", "pitch", (0.0, 0.0, 0.04), (0.18, 0.28, 0.44), 14.0),
)
_HEAD: tuple[_Part, ...] = (("head", "yaw", (0.0, 0.0, 0.46), (0.14, 0.14, 0.20), 3.0),)
_LEG: tuple[_Part, ...] = (
    ("hip_yaw", "yaw", (0.0, 0.10, -0.05), (0.09, 0.09, 0.06), 1.2),
    ("hip_roll", "roll", (0.0, 0.0, -0.04), (0.09, 0.09, 0.06), 1.2),
    ("thigh", "pitch", (0.0, 0.0, -0.04), (0.11, 0.11, 0.34), 5.0),
    ("shank", "pitch", (0.0, 0.0, -0.36), (0.09, 0.09, 0.34), 3.2),
    ("ankle", "pitch", (0.0, 0.0, -0.36), (0.06, 0.06, 0.04), 0.6),
    ("foot", "roll", (0.0, 0.0, -0.02), (0.22, 0.10, 0.05), 1.1),
)
_ARM: tuple[_Part, ...] = (
    ("shoulder", "pitch", (0.0, 0.18, 0.40), (0.08, 0.08, 0.06), 0.9),
    ("shoulder_roll", "roll", (0.0, 0.04, 0.0), (0.08, 0.08, 0.06), 0.9),
    ("upper_arm", "yaw", (0.0, 0.0, -0.05), (0.08, 0.08, 0.22), 1.8),
    ("forearm", "pitch", (0.0, 0.0, -0.24), (0.07, 0.07, 0.18), 1.2),
    ("wrist", "yaw", (0.0, 0.0, -0.20), (0.05, 0.05, 0.04), 0.4),
    ("wrist_roll", "roll", (0.0, 0.0, -0.03), (0.05, 0.05, 0.04), 0.4),
    ("hand", "pitch", (0.0, 0.0, -0.03), (0.05, 0.09, 0.12), 0.6),
)


def humanoid_urdf() -> str:
    """Return its URDF text."""
    robot = ElementTree.Element("robot", name="delassus_humanoid")
    _link(robot, "pelvis", (0.16, 0.22, 0.12), 8.0, 0.0)
    torso = _chain(robot, "pelvis", "", _WAIST, upwards=True)
    _chain(robot, torso, "", _HEAD, upwards=True)
    for side in ("left", "right"):
        foot = _chain(robot, "pelvis", side, _LEG)
        _frame(robot, f"{side}_sole", foot, "0.03 0 -0.05")
        hand = _chain(robot, torso, side, _ARM)
        _frame(robot, f"{side}_palm", hand, "0 0 -0.12")
    return ElementTree.tostring(robot, encoding="unicode")


class Motion:
    """Joint positions over time: each joint swings about a bent posture at a pace of its own.

    Parameters
    ----------
    joints
        Names of the joints, in the order of the positions.
    """

    def __init__(self, joints: tuple[str, ...]) -> None:
        self._middle = np.array([0.6 if name.endswith("shank_joint") else 0.1 for name in joints])
        self._pace = 2.0 * np.pi * np.linspace(0.3, 1.1, len(joints))
        self._phase = np.linspace(0.0, 5.0, len(joints))

    def at(self, number: int) -> npt.NDArray[np.float64]:
        """Return the positions [rad] in a joint state of this number; they move at 1 kHz."""
        swing = np.sin(self._pace * (1e-3 * number) + self._phase)
        return np.asarray(self._middle + 0.3 * swing, dtype=np.float64)

    def rates(self, number: int) -> npt.NDArray[np.float64]:
        """Return their velocities [rad/s]."""
        swing = np.cos(self._pace * (1e-3 * number) + self._phase)
        return np.asarray(0.3 * self._pace * swing, dtype=np.float64)


def _chain(
    robot: ElementTree.Element,
    parent: str,
    side: str,
    parts: tuple[_Part, ...],
    upwards: bool = False,
) -> str:
    """Append bodies, each hung on the one before; return the name of the last."""
    for name, axis, (x, y, z), size, mass in parts:
        link = f"{side}_{name}" if side else name
        place = f"{x} {-y if side == 'right' else y} {z}"
        joint = _joint(robot, f"{link}_joint", "revolute", parent, link, place)
        ElementTree.SubElement(joint, "axis", xyz=_AXES[axis])
        limits = {"lower": "-2.5", "upper": "2.5", "effort": "200", "velocity": "20"}
        ElementTree.SubElement(joint, "limit", limits)
        _link(robot, link, size, mass, 0.5 * size[2] if upwards else -0.5 * size[2])
        parent = link
    return parent


def _frame(robot: ElementTree.Element, name: str, parent: str, place: str) -> None:
    """Append a link without mass, fixed to another."""
    ElementTree.SubElement(robot, "link", name=name)
    _joint(robot, f"{name}_joint", "fixed", parent, name, place)


def _joint(
    robot: ElementTree.Element, name: str, kind: str, parent: str, child: str, place: str
) -> ElementTree.Element:
    joint = ElementTree.SubElement(robot, "joint", name=name, type=kind)
    ElementTree.SubElement(joint, "parent", link=parent)
    ElementTree.SubElement(joint, "child", link=child)
    ElementTree.SubElement(joint, "origin", xyz=place, rpy="0 0 0")
    return joint


def _link(
    robot: ElementTree.Element,
    name: str,
    size: tuple[float, float, float],
    mass: float,
    height: float,
) -> None:
    """Append a homogeneous box with its centre at a height above the joint."""
    x, y, z = (side * side for side in size)
    inertial = ElementTree.SubElement(ElementTree.SubElement(robot, "link", name=name), "inertial")
    ElementTree.SubElement(inertial, "origin", xyz=f"0 0 {height}", rpy="0 0 0")
    ElementTree.SubElement(inertial, "mass", value=str(mass))
    moments = {"ixx": y + z, "iyy": x + z, "izz": x + y}
    ElementTree.SubElement(
        inertial,
        "inertia",
        {name: repr(mass / 12.0 * moment) for name, moment in moments.items()}
        | dict.fromkeys(("ixy", "ixz", "iyz"), "0"),
    )


TWIST = (0.2, 0.0, -0.1, 0.0, 0.0, 0.3)
"""Of the pelvis, which stands upright: it turns about gravity alone."""
_GRAVITY = (0.0, 0.0, -9.81)
_TOLERANCE = 1e-10  # relative
_ALGORITHM = "ltl"  # factorises the mass matrix, as the recursive algorithms do not


def problem(outputs: Sequence[str] = ()) -> Problem:
    """Return what the node solves in the soak run, with outputs besides the matrix."""
    robot = Robot.from_urdf(humanoid_urdf().encode())
    contacts = (Contact(name, frame, "surface") for name, frame in CONTACTS.items())
    return Problem(robot, ContactSet(contacts), outputs=outputs)


def recomputed(
    sent: npt.NDArray[np.int64],
    stamps: npt.NDArray[np.int64],
    kept: npt.NDArray[np.float64],
    names: Sequence[str] = ("G",),
) -> tuple[int, int]:
    """Return how many answers there are, and how many differ from the other algorithm's.

    Parameters
    ----------
    sent
        Stamps of all joint states that were sent, ns, rising: the number of one tells its
        positions.
    stamps
        Of those that the answers are to, (n,), ns.
    kept
        Per answer the numbers of all outputs, one output after the other, (n, size).
    names
        The outputs.
    """
    if not len(stamps):
        return 0, 0
    solver = DelassusSolver(problem(names), _ALGORITHM)
    needed = {port.name for port in solver.problem.inputs}
    motion = Motion(solver.problem.robot.joint_names)
    wrong = 0
    for number, found in zip(np.searchsorted(sent, stamps).tolist(), kept, strict=True):
        given = {
            "rates": np.r_[TWIST, motion.rates(number)],
            "torques": np.zeros(len(TWIST) + len(motion.at(0))),
            "gravity": np.array(_GRAVITY),
        }
        inputs = {name: values for name, values in given.items() if name in needed}
        solution = solver.solve(motion.at(number), **inputs)
        expected = [solution.matrix if name == "G" else solution.output(name) for name in names]
        parts = np.split(found, np.cumsum([part.size for part in expected])[:-1])
        wrong += not all(
            np.linalg.norm(part - right.ravel()) <= _TOLERANCE * np.linalg.norm(right)
            for part, right in zip(parts, expected, strict=True)
        )
    return len(stamps), wrong
