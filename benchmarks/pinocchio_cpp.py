"""Pinocchio's C++ routes to G, compiled on the spot against the headers of the wheel ``pin``."""

from __future__ import annotations

import ctypes
import importlib.metadata
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.cases import AbsentError
from benchmarks.compilers import Compilation
from benchmarks.pinocchio_model import PinocchioProblem
from benchmarks.pinocchio_python import DAMPING, symmetric
from benchmarks.timing import Routine
from delassus_ros.model.spatial import Array

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

# As the package's own CMake files have them.
_DEFINITIONS = (
    "-DBOOST_MPL_LIMIT_LIST_SIZE=30",
    "-DBOOST_MPL_LIMIT_VECTOR_SIZE=30",
    "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS",
    "-DBOOST_FUSION_INVOKE_MAX_ARITY=12",
)


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


def routines(
    library: ctypes.CDLL,
    problem: PinocchioProblem,
    rows: int,
    inputs: Array,
    names: Sequence[str] | None = None,
) -> dict[str, Routine]:
    """Return the routes that the library has.

    Parameters
    ----------
    library : of :func:`compilation`.
    inputs : (count, model.nq).
    names : of :data:`ROUTES` (default: all). All share one state: its size is cubic in the joints.
    """
    peer = _Peer(library, problem.text())
    result = {}
    for name in ROUTES if names is None else names:
        if not hasattr(library, ROUTES[name]):
            continue
        read = _damped if ROUTES[name] == "peer_cholesky" else _from_upper
        address = _address(library, ROUTES[name])
        result[name] = Routine(address, inputs, rows, peer.address, read, peer)
    return result


def all_outputs(
    library: ctypes.CDLL, problem: PinocchioProblem, rows: int, inputs: Array
) -> dict[str, Routine]:
    """Return the routes of :data:`ALL`, which write G and a0.

    Parameters
    ----------
    inputs : (count, nq + 2 nv): q, rates and torques in Pinocchio's order.
    """
    peer, size = _Peer(library, problem.text()), rows * (rows + 1)
    return {
        name: Routine(
            _address(library, function), inputs, rows, peer.address, keep=peer, size=size
        )
        for name, function in ALL.items()
    }


def dynamics(
    library: ctypes.CDLL, problem: PinocchioProblem, inputs: Array, size: int, names: Sequence[str]
) -> dict[str, Routine]:
    """Return functions of inverse or forward dynamics, or their derivatives.

    Parameters
    ----------
    inputs : (count, nq + 2 nv): q, rates and accelerations or torques in Pinocchio's order.
    size : number of results.
    names : of :data:`DYNAMICS`.
    """
    peer = _Peer(library, problem.text())
    return {
        name: Routine(
            _address(library, DYNAMICS[name]), inputs, 1, peer.address, keep=peer, size=size
        )
        for name in names
    }


def _address(library: ctypes.CDLL, function: str) -> int:
    address = ctypes.cast(getattr(library, function), ctypes.c_void_p).value
    if address is None:
        raise AbsentError(f"Pinocchio in C++: no function {function}")
    return address
