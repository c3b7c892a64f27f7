"""Which models that Python packages carry are read, and whether G is then that of others.

``python -m benchmarks.models`` looks into those packages that are installed: the URDFs of
``example-robot-data``, beside Pinocchio, and the MJCFs of ``dm_control``, ``gymnasium``,
``gymnasium-robotics`` and ``robosuite``, beside MuJoCo. It writes the models of
``docs/tested_with.md``; the platforms of that page come from ``scripts/try_installs.py``.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arguments import output_of
from benchmarks.pages import table
from benchmarks.pinocchio_peer import symmetric
from delassus import Contact, Problem, Robot, algorithms
from delassus.algorithms.registry import TracedAlgorithm
from delassus.errors import DelassusError
from delassus.model.spatial import Array

OUTPUT = Path(__file__).resolve().parents[1] / "docs" / "tested_with.md"
HEADING = "## Robot models"
"""Heading of the section that this benchmark writes, up to the end of the page."""
PACKAGES = ("dm_control", "gymnasium", "gymnasium_robotics", "robosuite")
_SKIPPED = ("test", "include", "common", "arenas", "item_assets", "build_")
"""Parts of files' paths that are no models of their own."""
LOCKED = {"romeo.urdf": {"?Hand": 0.0}, "alex_psyonic_hands.urdf": {"*_q2": 0.0}}
"""Joints that are locked [rad], by file: their links have no inertia, or they mimic a joint that
does not exist."""
_LEAVES = 4
_CONFIGURATIONS = 3


@dataclass(frozen=True)
class Outcome:
    """The result of reading a model.

    Attributes
    ----------
    package, name : where it is.
    joints : moving joints; 0 if it was not read.
    error : largest relative difference of G from the other library's; NaN if it was not read.
    words : why it was not read, or what is special.
    """

    package: str
    name: str
    joints: int
    error: float
    words: str


def leaves(robot: Robot) -> list[str]:
    """Return a frame on each of the first bodies that carry no other."""
    parents = {joint.parent for joint in robot.joints}
    frames: dict[int, str] = {}
    for name, frame in robot.frames.items():
        frames.setdefault(frame.body, name)
    ends = [i for i in range(len(robot.joints)) if i not in parents and i in frames]
    return [frames[i] for i in ends[:_LEAVES]]


def ours(robot: Robot, frames: list[str], q: Array) -> Array:
    """Return G of surface contacts at frames, by LTL on floats."""
    problem = Problem(robot, [Contact(name, name, "surface") for name in frames])
    algorithm = algorithms.get("ltl")
    assert isinstance(algorithm, TracedAlgorithm)
    return np.array(algorithm.evaluate(problem, {"q": q.tolist()})["G"], dtype=float)


def of_pinocchio(model: Any, frames: list[str], q: Array) -> Array:
    """Return the same by Pinocchio's mass matrix and Jacobians."""
    import pinocchio as pin

    data = model.createData()
    pin.computeJointJacobians(model, data, q)
    pin.updateFramePlacements(model, data)
    M = symmetric(pin.crba(model, data, q))
    # With one degree of freedom Pinocchio returns vectors.
    rows = [
        pin.getFrameJacobian(model, data, model.getFrameId(name), pin.LOCAL).reshape(6, model.nv)
        for name in frames
    ]
    J = np.vstack(rows)
    return np.asarray(J @ np.linalg.solve(M, J.T))


def of_mujoco(model: Any, frames: list[str], qpos: Array) -> Array:
    """Return the same at bodies or sites by MuJoCo, with its active equalities."""
    import mujoco

    data = mujoco.MjData(model)
    data.qpos[:] = qpos
    mujoco.mj_forward(model, data)
    inverse = np.zeros((model.nv, model.nv))
    mujoco.mj_solveM(model, data, inverse, np.eye(model.nv))
    J = np.zeros((6 * len(frames), model.nv))
    for k, name in enumerate(frames):
        linear, angular = np.zeros((2, 3, model.nv))
        number = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_SITE, name)
        if number >= 0:
            mujoco.mj_jacSite(model, data, linear, angular, number)
            R = data.site_xmat[number].reshape(3, 3)
        else:
            number = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, name)
            number = int(re.sub(r"\D", "", name)) if number < 0 else number
            mujoco.mj_jacBody(model, data, linear, angular, number)
            R = data.xmat[number].reshape(3, 3)
        J[6 * k : 6 * k + 3], J[6 * k + 3 : 6 * k + 6] = R.T @ linear, R.T @ angular
    if data.ne:
        mujoco.mj_fwdPosition(model, data)
        C = np.zeros((data.ne, model.nv))
        dense = np.zeros((data.nefc, model.nv))
        if mujoco.mj_isSparse(model):
            mujoco.mju_sparse2dense(
                dense, data.efc_J, data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind
            )
        else:
            dense[:] = data.efc_J.reshape(-1, model.nv)
        C[:] = dense[: data.ne]
        S = C @ inverse @ C.T
        inverse = inverse - inverse @ C.T @ np.linalg.pinv(S, 1e-10, hermitian=True) @ C @ inverse
    return np.asarray(J @ inverse @ J.T)


def urdfs() -> Iterator[Outcome]:
    """Yield what becomes of the URDFs of example-robot-data."""
    try:
        package = importlib.metadata.distribution("example-robot-data")
    except importlib.metadata.PackageNotFoundError:
        return
    folder = Path(str(package.locate_file("cmeel.prefix/share/example-robot-data/robots")))
    for file in sorted(folder.rglob("*.urdf")):
        yield tried("example-robot-data", str(file.relative_to(folder)), lambda f=file: _urdf(f))


def _urdf(file: Path) -> tuple[int, float, str]:
    import pinocchio as pin

    lock = LOCKED.get(file.name, {})
    robot = Robot.from_urdf(file, "fixed", lock=lock)
    model = pin.buildModelFromUrdf(str(file))
    if lock:
        held = [i for i, name in enumerate(model.names) if i and name not in robot.joint_names]
        model = pin.buildReducedModel(model, held, pin.neutral(model))
    frames = [name for name in leaves(robot) if model.existFrame(name)]
    if not frames:
        return 0, np.nan, "has no joint that moves"
    if robot.is_closed:
        try:
            model = pin.buildModelFromUrdf(str(file), mimic=True)
        except ValueError as error:
            return len(robot.joints), np.nan, f"read; Pinocchio: {str(error).lower()}"
    worst = 0.0
    for seed in range(_CONFIGURATIONS):
        q = np.random.default_rng(seed).uniform(-1.0, 1.0, robot.nq)
        if robot.is_closed:
            # What mimics follows.
            q, _ = robot.q_from_pinocchio(model, robot.q_to_pinocchio(model, q))
        theirs = of_pinocchio(model, frames, robot.q_to_pinocchio(model, q))
        worst = max(worst, _difference(ours(robot, frames, q), theirs))
    count = len(robot.couplings)
    words = [f"mimic joints: {count}" if count else "", *(f"lock `{name}`" for name in lock)]
    return len(robot.joints), worst, ", ".join(filter(None, words))


def mjcfs(package: str) -> Iterator[Outcome]:
    """Yield what becomes of the MJCF files of a package that MuJoCo compiles."""
    import mujoco

    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        return
    folder = Path(found.submodule_search_locations[0])
    for file in sorted(folder.rglob("*.xml")):
        name = str(file.relative_to(folder))
        if any(part in name for part in _SKIPPED):
            continue
        try:
            model = mujoco.MjModel.from_xml_path(str(file))
        except ValueError:
            # Parts to be included, and what lacks its meshes.
            continue
        if model.njnt:
            yield tried(package, name, lambda m=model: _mjcf(m))


def _mjcf(model: Any) -> tuple[int, float, str]:
    robot = Robot.from_mujoco(model)
    frames = leaves(robot)
    worst = 0.0
    # Loops are closed where the model was written.
    for seed in range(1 if robot.loops else _CONFIGURATIONS):
        q, base = robot.q_from_mujoco(model, model.qpos0)
        if not robot.loops:
            pairs = zip(robot.joints, robot.q_offsets, strict=True)
            single = [o for j, o in pairs if j.kind.nq == 1]
            q[single] = np.random.default_rng(seed).uniform(-1.0, 1.0, len(single))
        qpos = robot.q_to_mujoco(model, q, base)
        worst = max(worst, _difference(ours(robot, frames, q), of_mujoco(model, frames, qpos)))
    kinds = [("loops", robot.loops), ("couplings", robot.couplings)]
    return len(robot.joints), worst, ", ".join(f"{what}: {len(x)}" for what, x in kinds if x)


def tried(package: str, name: str, act: Callable[[], tuple[int, float, str]]) -> Outcome:
    """Return what becomes of a model, be it an error in words."""
    try:
        return Outcome(package, name, *act())
    except DelassusError as error:
        return Outcome(package, name, 0, np.nan, " ".join(str(error).split()))


def _difference(G: Array, expected: Array) -> float:
    return float(np.linalg.norm(G - expected) / np.linalg.norm(expected))


def short(name: str) -> str:
    """Return the name of a model's file without suffix, or of its folder if each folder has it."""
    path = Path(name)
    return path.parent.name if path.stem == "robot" else path.stem


def section(outcomes: list[Outcome], versions: dict[str, str]) -> str:
    """Return the models' section of the page: names by package, then models with remarks."""
    read = sum(each.joints > 0 for each in outcomes)
    parts: list[object] = [HEADING, _ABOUT.format(read=read, count=len(outcomes))]
    for package, version in versions.items():
        of_package = [each for each in outcomes if each.package == package]
        names = ", ".join(dict.fromkeys(short(each.name) for each in of_package))
        largest = np.nanmax([each.error for each in of_package])
        parts.append(
            f"**{package} {version}**: {sum(each.joints > 0 for each in of_package)} of "
            f"{len(of_package)} files are read, largest difference {largest:.0e}.\n"
            + textwrap.fill(f"Models: {names}.", 110, break_on_hyphens=False)
        )
    rows = [
        (short(each.name), each.joints or "refused",
         "" if np.isnan(each.error) else f"{each.error:.0e}", each.words)
        for each in outcomes if each.words
    ]  # fmt: skip
    head = ("model with a remark", "joints", "difference of G", "remark")
    return "\n\n".join(map(str, [*parts, table(head, rows, None)])) + "\n"


_ABOUT = """\
`python -m benchmarks.models` reads {read} of {count} models of five
packages. G of up to four leaf bodies at three random configurations (of robots with
loops: one closed configuration) is compared with Pinocchio for URDF and with MuJoCo for
MJCF. Differences are relative, in the Frobenius norm."""


def main() -> None:
    """Try all, and write the models' section of the page."""
    output = output_of("models", __doc__, OUTPUT)
    outcomes = [*urdfs(), *(each for package in PACKAGES for each in mjcfs(package))]
    packages = dict.fromkeys(each.package for each in outcomes)
    versions = {name: importlib.metadata.version(name) for name in packages}
    head, *_ = OUTPUT.read_text(encoding="utf-8").partition(HEADING)
    output.write_text(head + section(outcomes, versions), encoding="utf-8")
    print(output)


if __name__ == "__main__":
    main()
