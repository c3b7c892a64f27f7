"""Pinocchio beside this package: its model of a problem, and its routes to G in Python and C++.

The model is in the form in which Pinocchio is fastest: joints come depth first, and every joint
frame is turned until its axis is x, y or z, for Pinocchio's joints about these axes are faster
than those about any axis. What can be made once is made once. The routes in C++ are compiled on
the spot against the headers of the wheel ``pin``.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.cases import AbsentError
from benchmarks.compilers import Compilation
from benchmarks.timing import Routine
from delassus import Problem, Robot
from delassus.model import WORLD, Inertia, Joint, JointKind, Transform
from delassus.model.spatial import Array, rotation_between

ROUTES = {
    "computeDelassusMatrix": "peer_efpa",
    "computePvDelassusMatrix": "peer_pv",
    "crba + constraint Cholesky": "peer_cholesky",
    "crba + Jacobian + LLT": "peer_dense",
}
"""Routes, each with its function in pinocchio_peer.cpp."""
EFPA, ALL_ROUTES = ("PEER_EFPA",), ("PEER_EFPA", "PEER_ROUTES")
"""Parts of pinocchio_peer.cpp with the first route, and with all of them."""
OUTPUTS_PART, DYNAMICS_PART = ("PEER_OUTPUTS",), ("PEER_DYNAMICS",)
"""Parts of pinocchio_peer.cpp with the functions of :data:`ALL` and :data:`DYNAMICS`."""
ALL = {"dense": "peer_all_dense", "sparse": "peer_all_sparse"}
"""Routes to all outputs: by Eigen's LLT of M, by Pinocchio's own factorisation."""
DYNAMICS = {
    "rnea": "peer_rnea",
    "aba, LOCAL": "peer_aba",
    "aba, WORLD": "peer_aba_world",
    "computeRNEADerivatives": "peer_rnea_derivatives",
    "computeABADerivatives": "peer_aba_derivatives",
}
"""Functions of inverse and forward dynamics, each with its function in pinocchio_peer.cpp."""

DAMPING = 1e-9
"""As in pinocchio_peer.cpp."""

# As the package's own CMake files have them.
_DEFINITIONS = (
    "-DBOOST_MPL_LIMIT_LIST_SIZE=30",
    "-DBOOST_MPL_LIMIT_VECTOR_SIZE=30",
    "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS",
    "-DBOOST_FUSION_INVOKE_MAX_ARITY=12",
)


def pinocchio() -> ModuleType:
    """Return the package, or raise :class:`AbsentError`."""
    try:
        import pinocchio as pin
    except ImportError as error:
        raise AbsentError(f"the Python package pin is not installed ({error})") from error
    module: ModuleType = pin
    return module


def _se3(placement: Transform) -> Any:
    return pinocchio().SE3(np.array(placement.rotation), np.array(placement.translation))


def _inertia(inertia: Inertia) -> Any:
    pin = pinocchio()
    com = inertia.moment / inertia.mass if inertia.mass else np.zeros(3)
    about_com = inertia.rotational + inertia.mass * pin.skew(com) @ pin.skew(com)
    return pin.Inertia(inertia.mass, com, about_com)


def _kind(joint: Joint) -> tuple[str, Transform]:
    """Return Pinocchio's joint, and the turn from its child frame to the body's frame."""
    if joint.kind is JointKind.ROOT:
        return "JointModelFreeFlyer", Transform()
    letters = {JointKind.REVOLUTE: "R", JointKind.PRISMATIC: "P"}
    if joint.kind not in letters:
        raise AbsentError(f"joint {joint.name!r}: no peer for {joint.kind.label} joints")
    for k, name in enumerate("XYZ"):
        if np.array_equal(joint.axis, np.eye(3)[k]):
            return f"JointModel{letters[joint.kind]}{name}", Transform()
    turn = Transform(rotation_between((0, 0, 1), joint.axis))
    return f"JointModel{letters[joint.kind]}Z", turn


class PinocchioRobot:
    """A robot for Pinocchio.

    Attributes
    ----------
    model : the pinocchio.Model.
    joints : number of its joint by joint of the robot; 0 for WORLD.
    """

    def __init__(self, robot: Robot) -> None:
        pin = pinocchio()
        self.robot, self.model = robot, pin.Model()
        self.joints = {WORLD: 0}
        self._body_frame = {WORLD: Transform()}
        self._kinds: list[str] = []
        self._entries: list[int] = []
        armature: list[float] = []
        children: dict[int, list[int]] = {}
        for i, joint in enumerate(robot.joints):
            children.setdefault(joint.parent, []).append(i)
        ahead = children[WORLD][::-1]
        while ahead:
            i = ahead.pop()
            ahead += children.get(i, [])[::-1]
            joint = robot.joints[i]
            kind, turn = _kind(joint)
            place = _se3(self._body_frame[joint.parent] @ joint.placement @ turn)
            number = self.model.addJoint(
                self.joints[joint.parent], getattr(pin, kind)(), place, joint.name
            )
            self.joints[i], self._body_frame[i] = number, turn.inverse()
            inertia = _inertia(robot.bodies[i].inertia)
            self.model.appendBodyToJoint(number, inertia, _se3(self._body_frame[i]))
            self._kinds.append(kind)
            armature += [joint.armature] + [0.0] * (joint.kind.nv - 1)
            if joint.kind.nq:
                self._entries.append(robot.q_offsets[i])
        self.model.armature = np.array(armature)

    def place_of(self, contact: Any) -> tuple[int, Any]:
        """Return the joint that a contact is fixed to, and its pose there."""
        frame = self.robot.frames[contact.frame]
        pose = self._body_frame[frame.body] @ frame.placement @ contact.placement
        return self.joints[frame.body], _se3(pose)

    def configurations(self, inputs: Array) -> Array:
        """Return Pinocchio's q, (count, model.nq), for ours, (count, nq)."""
        result = np.tile(self._neutral(), (inputs.shape[0], 1))
        result[:, result.shape[1] - len(self._entries) :] = inputs[:, self._entries]
        return result

    def motion(self, values: Array) -> Array:
        """Return rates or torques in Pinocchio's order, (count, model.nv), for ours."""
        first = values.shape[1] - len(self._entries)
        return np.hstack([values[:, :first], values[:, first:][:, self._entries]])

    def _neutral(self) -> Array:
        neutral: Array = pinocchio().neutral(self.model)
        return neutral


class PinocchioProblem(PinocchioRobot):
    """A problem for Pinocchio.

    Parameters
    ----------
    problem : with contacts that are points or surfaces, in contact axes.

    Attributes
    ----------
    contacts, contact_data : rigid constraints, made once.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.robot)
        pin = pinocchio()
        self.contacts = pin.StdVec_RigidConstraintModel()
        self.contact_data = pin.StdVec_RigidConstraintData()
        self._poses: list[tuple[int, int, Any]] = []
        for contact in problem.contacts:
            if contact.kind_name == "selection":
                raise AbsentError(f"contact {contact.name!r}: no peer for selections")
            joint, pose = self.place_of(contact)
            kind = pin.ContactType.CONTACT_3D if contact.rows == 3 else pin.ContactType.CONTACT_6D
            self._poses.append((joint, contact.rows, pose))
            rigid = pin.RigidConstraintModel(kind, self.model, joint, pose)
            self.contacts.append(rigid)
            self.contact_data.append(rigid.createData())

    def text(self) -> str:
        """Return the model and its contacts as numbers, for pinocchio_peer.cpp."""
        lines = [str(len(self._kinds))]
        for i, kind in enumerate(self._kinds, start=1):
            body = self.model.inertias[i]
            inertia = [body.mass, *body.lever, *body.inertia.ravel()]
            numbers = [*_pose_numbers(self.model.jointPlacements[i]), *inertia]
            lines.append(f"{kind} {self.model.parents[i]} {_numbers(numbers)}")
        lines.append(_numbers(self.model.armature))
        lines.append(str(len(self._poses)))
        for joint, rows, pose in self._poses:
            lines.append(f"{joint} {rows} {_numbers(_pose_numbers(pose))}")
        return "\n".join(lines) + "\n"


def _pose_numbers(pose: Any) -> list[float]:
    return [*pose.rotation.ravel(), *pose.translation]


def _numbers(values: Any) -> str:
    return " ".join(repr(float(value)) for value in values)


Call = Callable[[Array], Array]
"""Takes Pinocchio's q, returns what Pinocchio returns."""


@dataclass(frozen=True)
class Route:
    """A way to G.

    Attributes
    ----------
    call : what is timed.
    read : makes the whole matrix of the result.
    """

    call: Call
    read: Call


def routes(problem: PinocchioProblem) -> dict[str, Route]:
    """Return the routes by name."""
    pin = pinocchio()
    model, contacts, contact_data = problem.model, problem.contacts, problem.contact_data
    data, other = model.createData(), model.createData()
    pairs = list(zip(contacts, contact_data, strict=True))
    cholesky = pin.ContactCholeskyDecomposition(model, other, contacts, contact_data)

    def direct(q: Array) -> Array:
        matrix: Array = pin.computeDelassusMatrix(model, data, q, contacts, contact_data)
        return matrix

    def by_cholesky(q: Array) -> Array:
        pin.crba(model, other, q, pin.Convention.WORLD)
        for contact, computed in pairs:
            contact.calc(model, other, computed)
        cholesky.compute(model, other, contacts, contact_data, DAMPING)
        matrix: Array = cholesky.getInverseOperationalSpaceInertiaMatrix()
        return matrix

    def undamped(matrix: Array) -> Array:
        return symmetric(matrix) - DAMPING * np.eye(len(matrix))

    return {
        "pin.computeDelassusMatrix": Route(direct, symmetric),
        "pin.crba + constraint Cholesky": Route(by_cholesky, undamped),
    }


def symmetric(matrix: Array) -> Array:
    """Return the matrix of its upper part; Pinocchio leaves out the rest."""
    whole: Array = np.triu(matrix) + np.triu(matrix, 1).T
    return whole


def _include(package: str, header: str, folder: str = "") -> tuple[str, str]:
    """Return the include folder of a wheel that has `header`, and the wheel's version."""
    try:
        wheel = importlib.metadata.distribution(package)
    except importlib.metadata.PackageNotFoundError as error:
        raise AbsentError(f"no C++ headers: pip install {package}") from error
    path = Path(str(wheel.locate_file("cmeel.prefix/include"))) / folder
    if not (path / header).exists():
        raise AbsentError(f"{package} {wheel.version} has no header {header}")
    return str(path), f"{package} {wheel.version}"


def compilation(parts: Sequence[str] = ALL_ROUTES) -> Compilation:
    """Start the compiler, which takes one to some minutes the first time.

    Parameters
    ----------
    parts : parts of pinocchio_peer.cpp that are compiled.

    Raises
    ------
    AbsentError
        Without a compiler or without the headers of Pinocchio, Eigen or Boost.
    """
    found = [
        _include("libpinocchio", "pinocchio/algorithm/constraint-cholesky.hpp"),
        _include("cmeel-eigen", "Eigen/Core", "eigen3"),
        _include("cmeel-boost", "boost/version.hpp"),
    ]
    paths = dict.fromkeys(path for path, _ in found)
    flags = ["-std=c++17", "-fvisibility=hidden", "-w", *_DEFINITIONS]
    flags += [f"-D{part}" for part in parts]
    flags += [item for path in paths for item in ("-isystem", path)]
    source = Path(__file__).with_name("pinocchio_peer.cpp").read_text(encoding="utf-8")
    versions = "; ".join(version for _, version in found)
    return Compilation(source, cpp=True, flags=flags, depends=versions)


class _Peer:
    """A Peer of pinocchio_peer.cpp; freed with this object."""

    def __init__(self, library: ctypes.CDLL, text: str) -> None:
        self._library = library
        library.peer_open.restype = ctypes.c_void_p
        message = ctypes.create_string_buffer(200)
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(text)
            file.flush()
            self.address = library.peer_open(file.name.encode(), message, len(message))
        if not self.address:
            raise AbsentError(f"Pinocchio in C++: {message.value.decode()}")

    def __del__(self) -> None:
        self._library.peer_close(ctypes.c_void_p(self.address))


def _from_upper(block: Array) -> Array:
    """Return the matrix of a column-major block in which only the upper part is filled."""
    return symmetric(block.T)


def _damped(block: Array) -> Array:
    return _from_upper(block) - DAMPING * np.eye(block.shape[0])


_READ = dict.fromkeys(ROUTES.values(), _from_upper) | {"peer_cholesky": _damped}
"""What makes the matrix of a function's block, if the function leaves out something."""


def routines(
    library: ctypes.CDLL,
    problem: PinocchioProblem,
    rows: int,
    inputs: Array,
    functions: Mapping[str, str] = ROUTES,
    size: int = 0,
) -> dict[str, Routine]:
    """Return the routines of those functions that the library has.

    All share one state, whose size is cubic in the joints for the routes to G.

    Parameters
    ----------
    library : of :func:`compilation`.
    inputs : (count, nq) in Pinocchio's order; (count, nq + 2 nv) with rates, and torques or
        accelerations, for :data:`ALL` and :data:`DYNAMICS`.
    functions : names of the routines, each with its function in pinocchio_peer.cpp.
    size : number of results; 0 for G alone.
    """
    peer, result = _Peer(library, problem.text()), {}
    for name, function in functions.items():
        if hasattr(library, function):
            address = ctypes.cast(getattr(library, function), ctypes.c_void_p).value
            assert address is not None
            read = _READ.get(function, np.array)
            result[name] = Routine(address, inputs, rows, peer.address, read, peer, size)
    return result
