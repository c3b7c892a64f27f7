"""Mistakes that newcomers make: each is refused in words that say what to write instead."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import robots
from cli_support import QUADRUPED, refusal
from robots import LEGS

from delassus import Closure, Contact, DelassusSolver, Problem, Robot, Transform
from delassus.errors import DelassusError, DelassusWarning
from delassus_ros.verbs.main import main

FEET = [Contact(leg, f"{leg}_FOOT") for leg in LEGS]


@functools.cache
def world() -> SimpleNamespace:
    """Return the objects of a newcomer: robot, q, and solvers of four problems."""
    robot = Robot.from_urdf(robots.quadruped())
    plain, moving = Problem(robot, FEET), Contact("LF", "LF_FOOT", moving="pose")
    dynamic = Problem(robot, FEET, axes="world", outputs=["a0"])
    n = len(dynamic.velocities)
    surface = Problem(robot, [Contact("LF", "LF_FOOT", "surface")])
    return SimpleNamespace(
        robot=robot, q=robot.neutral(), problem=plain, zero=np.zeros(n), down=[0, 0, -9.81],
        solver=DelassusSolver(plain), dynamic=DelassusSolver(dynamic),
        surface=DelassusSolver(surface), moving=DelassusSolver(Problem(robot, [moving])),
    )  # fmt: skip


def at_rest(w: SimpleNamespace, **changes: object):
    """Solve at rest, with some inputs replaced."""
    inputs = {"rates": w.zero, "torques": w.zero, "gravity": w.down,
              "base_orientation": [0, 0, 0, 1], **changes}  # fmt: skip
    return w.dynamic.solve(w.q, **inputs)


Call = Callable[[SimpleNamespace], object]
MISTAKES: list[tuple[str, Call, str]] = [
    ("a joint's name as a contact's frame",
     lambda w: Problem(w.robot, [Contact("LF", "LF_KFE")]),
     "unknown frame 'LF_KFE': this is a joint; its link is 'LF_SHANK'"),
    ("a joint's name as a frame of wrenches",
     lambda w: Problem(w.robot, FEET, wrenches=["LF_KFE"]), "its link is 'LF_SHANK'"),
    ("a link's name as a joint", lambda w: w.robot.q({"LF_SHANK": 0.3}),
     "unknown joint 'LF_SHANK': this is a link; the joint that moves it is 'LF_KFE'"),
    ("a link's name to lock", lambda w: w.robot.lock({"LF_SHANK": 0.3}), "it is 'LF_KFE'"),
    ("a list of joints to lock", lambda w: w.robot.lock(["LF_KFE"]), "write {'knee': 0.1}"),
    ("positions in a list", lambda w: w.robot.q([0.1] * 12), "these 12 numbers are q itself"),
    ("angles in degrees", lambda w: w.robot.q({"LF_KFE": 90.0}), "angles are in rad"),
    ("positions by name to solve", lambda w: w.solver.solve({"LF_KFE": 0.3}),
     "write robot.q({…})"),
    ("positions by name to a bound solve", lambda w: w.solver.bind().solve({"LF_KFE": 0.3}),
     "write robot.q({…})"),
    ("velocities by name", lambda w: at_rest(w, rates={"LF_KFE": 0.3}),
     "write problem.rates(robot.v({…}))"),
    ("Pinocchio's q", lambda w: w.solver.solve(np.zeros(19)), "write robot.q_from_pinocchio"),
    ("many of Pinocchio's q", lambda w: w.solver.solve_batch(np.zeros((5, 19))),
     "write robot.q_from_pinocchio"),
    ("many configurations to solve", lambda w: w.solver.solve(np.zeros((2, 12))),
     "many configurations: solve_batch(Q)"),
    ("one configuration to solve_batch", lambda w: w.solver.solve_batch(np.zeros(12)),
     "one configuration: solve(q)"),
    ("text as q", lambda w: w.solver.solve("neutral"),
     "must be numbers of shape (12,): they are text"),
    ("no rates", lambda w: at_rest(w, rates=None),
     "is missing; it has shape (18,); output 'a0' needs it, at rest numpy.zeros(18)"),
    ("torques of the joints alone", lambda w: at_rest(w, torques=np.zeros(12)),
     "the base's wrench is missing: numpy.concatenate([numpy.zeros(6), …])"),
    ("gravity as a number", lambda w: at_rest(w, gravity=9.81), "write [0, 0, -9.81]"),
    ("gravity for G", lambda w: w.solver.solve(w.q, gravity=w.down), "not used by this problem"),
    ("no orientation", lambda w: at_rest(w, base_orientation=None),
     "rows in world axes need it: [0, 0, 0, 1]"),
    ("a rotation matrix for a quaternion", lambda w: at_rest(w, base_orientation=np.eye(3)),
     "a rotation matrix R has one: Transform(R).quaternion()"),
    ("roll, pitch and yaw for a quaternion", lambda w: at_rest(w, base_orientation=[0, 0, 0.3]),
     "Transform.from_xyz_rpy(rpy=(0, 0, 0.3)).quaternion()"),
    ("a rotation matrix for a contact's quaternion",
     lambda w: w.moving.solve(w.q, contact_orientations={"LF": np.eye(3)}),
     "Transform(R).quaternion()"),
    ("an output that was not asked for", lambda w: w.solver.solve(w.q).a0,
     "needs the output 'a0': Problem(…, outputs=['a0', …])"),
    ("that of a batch", lambda w: w.solver.solve_batch([w.q]).J, "needs the output 'J'"),
    ("the output Lambda", lambda w: Problem(w.robot, FEET, outputs=["Lambda"]),
     "computed from G: solution.inertia()"),
    ("an output as text", lambda w: Problem(w.robot, FEET, outputs="a0"), "write ['a0']"),
    ("a solution as an array", lambda w: np.linalg.inv(w.solver.solve(w.q)),
     "write solution.matrix"),
    ("a direction of three numbers on a surface",
     lambda w: w.surface.solve(w.q).effective_mass("LF", [0, 0, 1]),
     "write [0.0, 0.0, 1.0, 0.0, 0.0, 0.0], linear before angular"),
    ("a frame's name as an active contact", lambda w: w.solver.solve(w.q, ["LF_FOOT"]),
     "this is a frame; its contact is 'LF'"),
    ("an active contact as text", lambda w: w.solver.solve(w.q, "LF"), "write ['LF']"),
    ("a mask of active contacts", lambda w: w.solver.solve(w.q, [True, False, True, False]),
     "list of names, got True in it"),
    ("a frame's name for a mass",
     lambda w: w.solver.solve(w.q).effective_mass("LF_FOOT", [0, 0, 1]),
     "its contact is 'LF'; active: LF, RF, LH, RH"),
    ("friction by frame", lambda w: at_rest(w).contact_forces({"LF_FOOT": 0.7}),
     "friction: unknown contact 'LF_FOOT': this is a frame; its contact is 'LF'"),
    ("forces in rows of contacts", lambda w: at_rest(w).forces(np.zeros((4, 3))),
     "write acceleration.ravel()"),
    ("frames in place of contacts", lambda w: Problem(w.robot, ["LF_FOOT"]), "write Contact"),
    ("a homogeneous matrix as a placement",
     lambda w: Contact("LF", "LF_FOOT", placement=np.eye(4)),
     "write Transform(T[:3, :3], T[:3, 3])"),
    ("a pose of another library",
     lambda w: Contact("LF", placement=SimpleNamespace(rotation=0, translation=0)),
     "write Transform(pose.rotation, pose.translation)"),
    ("a quaternion for a Transform", lambda w: Transform((0, 0, 0, 1)),
     "rotation_from_quaternion"),
    ("an unknown kind of contact", lambda w: Contact("LF", kind="plane"), "kinds: point, surface"),
    ("MJCF as URDF", lambda w: Robot.from_urdf("<mujoco/>"), "write Robot.from_mujoco"),
    ("another base", lambda w: Robot.from_urdf(robots.quadruped(), base="free"),
     "'floating' or 'fixed'"),
    ("a robot in place of a problem", lambda w: DelassusSolver(w.robot),
     "write Problem(robot, ["),
    ("a link's name to the closure", lambda w: Closure(w.robot).solve({"LF_SHANK": 0.1}),
     "the joint that moves it is 'LF_KFE'"),
]  # fmt: skip
COMMANDS: list[tuple[str, list[str], str]] = [
    ("a joint as a contact", ["compute", QUADRUPED, "--contact", "LF_KFE"],
     "its link is 'LF_SHANK'"),
    ("a link as a joint", ["compute", QUADRUPED, "--contact", "LF_FOOT", "--q", "LF_SHANK=1"],
     "the joint that moves it is 'LF_KFE'"),
    ("parameters as a robot", ["export", "robot.yaml"], "add --urdf ROBOT.urdf"),
    ("no orientation", ["compute", QUADRUPED, "--contact", "LF_FOOT", "--axes", "world"],
     "for example --orientation 0,0,0,1"),
    ("another verb", ["matrix", QUADRUPED], "verbs: view, inspect"),
    ("no file", ["inspect", "nowhere.urdf"], "cannot read the URDF file 'nowhere.urdf'"),
]  # fmt: skip


def test_the_list_is_of_forty_and_more() -> None:
    assert len(MISTAKES) >= 40 and len({name for name, _, _ in MISTAKES}) == len(MISTAKES)


@pytest.mark.filterwarnings("error::delassus.errors.DelassusWarning")
@pytest.mark.parametrize(
    ("call", "words"), [row[1:] for row in MISTAKES], ids=[row[0] for row in MISTAKES]
)
def test_a_mistake_is_refused_in_words_that_help(call: Call, words: str) -> None:
    with pytest.raises((DelassusError, DelassusWarning)) as caught:
        call(world())
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("argv", "words"), [row[1:] for row in COMMANDS], ids=[row[0] for row in COMMANDS]
)
def test_a_mistake_on_the_command_line(capsys, argv: list[str], words: str) -> None:
    try:
        assert words in refusal(capsys, *argv)
    except SystemExit as left:  # argparse's
        assert left.code == 2 and words in capsys.readouterr().err


def test_outputs_that_are_methods_are_named() -> None:
    w = world()
    for name, write in (("G", "matrix"), ("Lambda", r"inertia\(\)"), ("Jbar", r"jbar\(\)")):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'; write solution.{write}"):
            getattr(w.solver.solve(w.q), name)
    with pytest.raises(AttributeError, match="BatchSolution has no attribute 'Lambda'$"):
        _ = w.solver.solve_batch([w.q]).Lambda
    with pytest.raises(AttributeError, match="no attribute 'matrx'$"):
        _ = w.solver.solve(w.q).matrx


def test_a_rotation_of_scipy_is_any_orientation() -> None:
    from scipy.spatial.transform import Rotation as rotation
    w, turn = world(), rotation.from_euler("xyz", [0.3, -0.2, 0.5])
    quaternion = turn.as_quat()
    expected = at_rest(w, base_orientation=quaternion).matrix
    assert np.array_equal(at_rest(w, base_orientation=turn).matrix, expected)
    bound = w.dynamic.bind()
    bound.inputs["base_orientation"] = turn
    assert np.array_equal(bound.inputs["base_orientation"], quaternion)
    orientations = rotation.concatenate([turn, rotation.identity(), turn])
    rest = {"rates": w.zero, "torques": w.zero, "gravity": w.down}
    for layout, axis in (("rows", 0), ("columns", -1)):
        Q = np.zeros((3, 12)) if layout == "rows" else np.zeros((12, 3))
        many = w.dynamic.solve_batch(Q, base_orientation=orientations, layout=layout, **rest)
        np.testing.assert_allclose(many.matrix.take(2, axis), expected, rtol=1e-12, atol=1e-14)
    turned = w.moving.solve(w.q, contact_orientations={"LF": quaternion}).matrix
    assert np.array_equal(w.moving.solve(w.q, contact_orientations={"LF": turn}).matrix, turned)
    np.testing.assert_allclose(Transform(turn).quaternion(), quaternion, atol=1e-15)


def test_a_contact_without_a_frame_is_on_the_frame_of_its_name() -> None:
    assert Contact("LF_FOOT").frame == "LF_FOOT"
    assert Contact("LF_FOOT").to_bytes() == Contact("LF_FOOT", "LF_FOOT").to_bytes()


def table(path: Path, Q: np.ndarray, joints: tuple[str, ...]) -> None:
    """Write joint positions to a file by its suffix."""
    if path.suffix == ".npy":
        np.save(path, Q)
    elif path.stem == "columns":
        np.savez(path, **dict(zip(joints, Q.T, strict=True)))
    elif path.suffix == ".npz":
        np.savez(path, q=Q)
    else:
        lines = [",".join(("timestamp", *joints))]
        lines += [",".join(map(repr, [0.01 * k, *row])) for k, row in enumerate(Q.tolist())]
        path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("file", ["q.npy", "q.npz", "columns.npz", "q.csv"])
def test_tables_of_each_kind_have_the_same_matrices(capsys, tmp_path: Path, file: str) -> None:
    from pyarrow import parquet
    w = world()
    Q = np.random.default_rng(3).uniform(-1.0, -0.5, (9, 12))
    Q[:4, 2] = -1.0  # A joint that rests in the first rows of a CSV file has whole numbers there.
    joints = w.robot.joint_names
    if file in ("columns.npz", "q.csv"):
        joints = joints[::-1]
    table(tmp_path / file, Q if joints == w.robot.joint_names else Q[:, ::-1], joints)
    argv = ["trajectory", QUADRUPED, "--data", str(tmp_path / file)]
    for leg in LEGS:
        argv += ["--contact", f"{leg}={leg}_FOOT"]
    assert main([*argv, "-o", str(tmp_path / "out.parquet")]) == 0
    said = capsys.readouterr().out
    named = f"in order: {', '.join(w.robot.joint_names)}"
    assert (named in said) == (file in ("q.npy", "q.npz"))
    found = parquet.read_table(tmp_path / "out.parquet")
    G = np.array(found["matrix"].to_pylist()).reshape(-1, 12, 12)
    np.testing.assert_allclose(G, w.solver.solve_batch(Q).matrix, rtol=1e-12, atol=1e-13)
    assert ("timestamp" in found.column_names) == (file == "q.csv")


@pytest.mark.needs("pyarrow")
@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("q.csv", "0.1,0.2\n0.3,0.4\n", "columns: 0.1, 0.2; joints: LF_HAA"),
        ("q.csv", "LF_HAA,LF_HFE\n0.1,high\n", "cannot be read"),
        ("q.csv", "", "cannot be read as CSV"),
        ("q.npz", "no archive", "cannot be read as NumPy's .npz"),
        ("two.npz", {"a": np.zeros((2, 12)), "b": np.zeros((2, 12))},
         "arrays: a, b; joints: LF_HAA.*--state names an array"),
        ("wide.npz", {"a": np.zeros((2, 3))}, r"shape \(2, 3\); expected \(N, 12\)"),
        ("uneven.npz", {"LF_HAA": np.zeros(2), "LF_HFE": np.zeros(3)},
         r"one shape \(N,\) per joint; it has LF_HAA \(2,\), LF_HFE \(3,\)"),
        ("object.npz", {"q": np.array([None])}, "cannot be read as NumPy's .npz"),
    ],
)  # fmt: skip
def test_tables_that_cannot_be_read(capsys, tmp_path, file: str, content, words: str) -> None:
    path = tmp_path / file
    if isinstance(content, dict):
        np.savez(path, **content)
    else:
        path.write_text(content)
    argv = ["trajectory", QUADRUPED, "--contact", "LF_FOOT", "--data", str(path)]
    said = refusal(capsys, *argv, "-o", str(tmp_path / "out.parquet"))
    assert re.search(words, said), said
    assert not (tmp_path / "out.parquet").exists()
