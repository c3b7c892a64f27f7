"""Tables of joint positions: NumPy, a column per joint, LeRobot's data sets, closed loops."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

import numpy as np
import pyarrow
import pytest
import robots
from pyarrow import parquet

from delassus import Closure, Contact, DelassusSolver, Problem, Robot
from delassus.errors import InputError
from delassus.robots.built_in import demo_urdf
from delassus.tables import trajectory
from delassus.tables.joint_tables import Source
from delassus.tables.trajectory import map_trajectory

ROBOT = Robot.from_urdf(demo_urdf().encode())
CONTACTS = [Contact("LF", "LF_FOOT"), Contact("sole", "RH_FOOT", kind="surface")]
PROBLEM = Problem(ROBOT, CONTACTS)


def configurations(count: int = 1000) -> np.ndarray:
    return np.random.default_rng(4).uniform(-1.0, 1.0, (count, ROBOT.nq))


def matrices_in(path: Path, rows: int = 9) -> np.ndarray:
    return np.array(parquet.read_table(path)["matrix"].to_pylist()).reshape(-1, rows, rows)


def test_a_numpy_file(tmp_path: Path) -> None:
    Q = configurations()
    lost = Q.copy()
    lost[7, 2] = np.nan
    np.save(tmp_path / "q.npy", lost)
    target = tmp_path / "out.parquet"
    problem = Problem(ROBOT, CONTACTS, outputs=["J"])
    columns = ("matrix", "effective_mass", "J")
    written = map_trajectory(
        Source(tmp_path / "q.npy"), target, problem, columns=columns, rows=300
    )
    assert (written.rows, written.failed) == (1000, 1)
    many = DelassusSolver(problem).solve_batch(Q)
    table = parquet.read_table(target)
    np.testing.assert_array_equal(np.array(table["q"].to_pylist()), lost)
    J = np.array(table["J"].to_pylist()).reshape(many.J.shape)
    there = np.arange(1000) != 7
    assert table["status"].to_numpy()[~there] == [-1]
    for found, expected in ((matrices_in(target), many.matrix), (J, many.J)):
        np.testing.assert_allclose(found[there], expected[there], rtol=1e-12, atol=1e-11)
        assert np.isnan(found[~there]).all()
    masses = np.array(table["effective_mass"].to_pylist()).reshape(-1, 2, 3)
    own = 1.0 / np.linalg.eigvalsh(many.matrix[:, 3:6, 3:6])[:, ::-1]
    np.testing.assert_allclose(masses[there, 1], own[there], rtol=1e-8)
    # One group of rows after the other: no more is held.
    assert parquet.ParquetFile(target).num_row_groups == 4
    scales = np.array([1, 1, 1, 1, 1, 1, 0.1, 0.1, 0.1])
    condition = np.linalg.cond(many.matrix[8] * np.outer(scales, scales))
    assert table["condition"][8].as_py() == pytest.approx(condition, rel=1e-8)


def test_a_column_per_joint_in_any_order(tmp_path: Path) -> None:
    Q = configurations(50)
    columns = dict(zip(ROBOT.joint_names, Q.T, strict=True))
    del columns["LF_HAA"]
    shuffled = {name: columns[name] for name in sorted(columns)}
    path = tmp_path / "q.parquet"
    parquet.write_table(pyarrow.table({"frame_index": range(50), **shuffled}), path)
    target = tmp_path / "out.parquet"
    with pytest.raises(InputError, match="no positions of joint LF_HAA; the table has LF_HFE, "):
        map_trajectory(Source(path), target, PROBLEM)
    map_trajectory(Source(path, others={"LF_HAA": 0.3}), target, PROBLEM)
    Q[:, 0] = 0.3
    expected = DelassusSolver(PROBLEM).solve_batch(Q).matrix
    np.testing.assert_allclose(matrices_in(target), expected, rtol=1e-12, atol=1e-13)
    assert parquet.read_table(target)["frame_index"].to_pylist() == list(range(50))


@pytest.fixture(name="lerobot")
def make_lerobot(tmp_path: Path) -> Path:
    """A data set of two episodes: states in degrees, names with a suffix, chunks in folders."""
    folder = tmp_path / "set"
    names = [f"{name}.pos" for name in reversed(ROBOT.joint_names)]
    info = {"features": {"observation.state": {"dtype": "float32", "names": names}}}
    (folder / "meta").mkdir(parents=True)
    (folder / "meta" / "info.json").write_text(json.dumps(info))
    Q = np.rad2deg(configurations(60))[:, ::-1].astype(np.float32)
    (folder / "data" / "chunk-000").mkdir(parents=True)
    for episode in range(2):
        rows = Q[30 * episode : 30 * episode + 30]
        state = pyarrow.array(rows.tolist(), pyarrow.list_(pyarrow.float32(), 12))
        table = pyarrow.table({
            "observation.state": state, "episode_index": np.full(30, episode),
            "frame_index": np.arange(30), "timestamp": np.arange(30, dtype=np.float32) / 30.0,
        })  # fmt: skip
        parquet.write_table(
            table, folder / "data" / "chunk-000" / f"episode_{episode:06d}.parquet"
        )
    return folder


def test_a_data_set_of_lerobot(lerobot: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.parquet"
    written = map_trajectory(Source(lerobot, degrees=True), target, PROBLEM)
    assert (written.rows, written.failed) == (60, 0)
    table = parquet.read_table(target)
    Q = np.array(table["q"].to_pylist())
    np.testing.assert_allclose(Q, configurations(60), atol=1e-6)
    expected = DelassusSolver(PROBLEM).solve_batch(Q).matrix
    np.testing.assert_allclose(matrices_in(target), expected, rtol=1e-12, atol=1e-13)
    assert table["episode_index"].to_pylist() == [0] * 30 + [1] * 30
    assert table["timestamp"].type == pyarrow.float32()


def test_rows_that_are_not_there_have_no_matrix_and_columns_stay_as_they_are(tmp_path) -> None:
    Q = configurations(4)
    states = pyarrow.array(
        [Q[0].tolist(), None, Q[2].tolist(), Q[3].tolist()], pyarrow.large_list(pyarrow.float64())
    )
    kept = {
        "episode_index": pyarrow.array([1, 2, None, 4]),
        "timestamp": pyarrow.array(["now", None, "then", ""]),
    }
    path, target = tmp_path / "q.parquet", tmp_path / "out.parquet"
    parquet.write_table(pyarrow.table({"observation.state": states, **kept}), path)
    written = map_trajectory(Source(path), target, PROBLEM)
    assert (written.rows, written.failed) == (4, 1)
    table = parquet.read_table(target)
    for name, values in kept.items():
        assert table[name].combine_chunks() == values
    found = matrices_in(target)
    assert np.isnan(found[1]).all()
    expected = DelassusSolver(PROBLEM).solve_batch(Q).matrix
    np.testing.assert_allclose(found[[0, 2, 3]], expected[[0, 2, 3]], rtol=1e-12, atol=1e-13)


def test_loops_are_closed_row_by_row(tmp_path: Path) -> None:
    text = robots.shared("grbda_mit_humanoid_leg").read_bytes()
    robot = Robot.from_urdf(text, base="fixed")
    frame = sorted(robot.frames)[-1]
    problem = Problem(robot, [Contact("foot", frame)])
    closure = Closure(robot)
    rng = np.random.default_rng(1)
    given = rng.uniform(-0.3, 0.3, (20, len(closure.independent)))
    given[5, 0] = np.nan
    path, target = tmp_path / "q.parquet", tmp_path / "out.parquet"
    columns = dict(zip(closure.independent, given.T, strict=True))
    parquet.write_table(pyarrow.table(columns), path)
    follower = next(name for name in robot.joint_names if name not in closure.independent)
    words = f"joint '{follower}' has its position from the loops and couplings; expected no other"
    with pytest.raises(InputError, match=words):
        map_trajectory(Source(path, others={follower: 0.1}), target, problem)
    written = map_trajectory(Source(path), target, problem)
    assert (written.rows, written.failed) == (20, 1)
    found = matrices_in(target, 3)
    assert np.isnan(found[5]).all()
    solver = DelassusSolver(problem)
    for k in (0, 19):
        q = closure.solve(dict(zip(closure.independent, given[k], strict=True))).q
        np.testing.assert_allclose(found[k], solver.solve(q).matrix, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("write", "options", "words"),
    [
        (lambda p: p.write_text("no table"), {}, "cannot be read as Parquet"),
        (lambda p: None, {}, "cannot be read as Parquet"),
        (
            lambda p: parquet.write_table(pyarrow.table({"hip": [0.1]}), p), {},
            "neither a column 'observation.state' nor one for a joint; columns: hip; joints: LF_",
        ),
        (
            lambda p: parquet.write_table(pyarrow.table({"observation.state": [[0.1, 0.2]]}), p),
            {}, "'observation.state' has 2 numbers; expected 12: positions of LF_HAA, ",
        ),
        (
            lambda p: parquet.write_table(pyarrow.table({"observation.state": [[0.1]]}), p),
            {"names": ("LF_HAX",)}, "no positions of joint LF_HAA",
        ),
        (
            lambda p: parquet.write_table(pyarrow.table({"LF_HAA": np.zeros(0)}), p), {},
            "no rows",
        ),
        (
            lambda p: parquet.write_table(
                pyarrow.table(dict.fromkeys(ROBOT.joint_names, [0.1])), p
            ),
            {"others": {"LF_HAA": 0.3}}, "joint 'LF_HAA' has a column; expected no other position",
        ),
        (
            lambda p: parquet.write_table(
                pyarrow.table({"observation.state": [12 * [0.1], 11 * [0.1], 13 * [0.1]]}), p
            ),
            {}, "'observation.state' has 11 numbers; expected 12: positions of LF_HAA, ",
        ),
        (
            lambda p: parquet.write_table(pyarrow.table({"observation.state": ["q"]}), p), {},
            "'observation.state' is of type string; expected lists of numbers",
        ),
        (
            lambda p: parquet.write_table(pyarrow.table({"LF_HAA": ["left"]}), p), {},
            "'LF_HAA' has values of type string; expected numbers",
        ),
    ],
)  # fmt: skip
def test_tables_that_cannot_be_used(tmp_path: Path, write, options, words: str) -> None:
    path, target = tmp_path / "q.parquet", tmp_path / "out.parquet"
    write(path)
    with pytest.raises(InputError, match=words):
        map_trajectory(Source(path, **options), target, PROBLEM)
    assert not [file for file in tmp_path.iterdir() if file.name.startswith("out")]


def of_numpy(header: str) -> bytes:
    """Return an .npy file with a header and 16 bytes of data."""
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(16)


@pytest.mark.parametrize(
    "made",
    [
        np.array([[b"0.1", b"0.2"]]), np.array([["0.1", "0.2"]]), np.ones((2, 12)) * 1j,
        np.zeros((2, 12), "V8"), np.zeros((2, 12), [("hip", float)]), np.ones((2, 12), bool),
        np.zeros((2, 12), "M8[s]"), np.array([[None, 0.1]]), b"", b"PK\x03\x04", b"\x80\x04]\x94.",
        of_numpy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 12)}"),
        of_numpy("{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000000000000000,)}"),
        of_numpy("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 12)}"),
        of_numpy("{'descr': '<f8', 'fortran_order': False, 'shape': (True, 12)}"),
        of_numpy("(" * 5000),
    ],
)  # fmt: skip
def test_numpy_files_that_hold_no_numbers(tmp_path: Path, made: np.ndarray | bytes) -> None:
    path = tmp_path / "q.npy"
    if isinstance(made, bytes):
        path.write_bytes(made)
    else:
        np.save(path, made, allow_pickle=True)
    archive = tmp_path / "q.npz"
    archive.write_bytes(path.read_bytes())
    for source in (path, archive):
        words = rf"q\{source.suffix}(: values of type| cannot be read as NumPy's)"
        with pytest.raises(InputError, match=words):
            map_trajectory(Source(source), tmp_path / "out.parquet", PROBLEM)


def test_damaged_archives_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "q.npz"
    np.savez_compressed(path, configurations(50))
    whole, random = path.read_bytes(), np.random.default_rng(0)
    for place in random.integers(0, len(whole), 300):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << random.integers(8)
        path.write_bytes(damaged if place % 2 else damaged[:place])
        # A flipped bit may be in a part that is not used, such as a time.
        with contextlib.suppress(InputError):
            map_trajectory(Source(path), tmp_path / "out.parquet", PROBLEM)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv", ".parquet"])
def test_pipes_and_links_to_themselves_are_refused(tmp_path: Path, suffix: str) -> None:
    pipe, loop = tmp_path / f"pipe{suffix}", tmp_path / f"loop{suffix}"
    os.mkfifo(pipe)
    loop.symlink_to(loop)
    with pytest.raises(InputError, match=f"pipe{suffix}: expected a regular file, or a folder"):
        map_trajectory(Source(pipe), tmp_path / "out.parquet", PROBLEM)
    with pytest.raises(InputError, match=f"loop{suffix} cannot be read as"):
        map_trajectory(Source(loop), tmp_path / "out.parquet", PROBLEM)


def test_outputs_that_cannot_be(tmp_path: Path) -> None:
    np.save(tmp_path / "q.npy", configurations(3))
    source, target = Source(tmp_path / "q.npy"), tmp_path / "out.parquet"
    for problem, columns, words in (
        (PROBLEM, ("matrx",), "unknown output 'matrx'; did you mean 'matrix'?"),
        (PROBLEM, ("J",), "output 'J' is not among the outputs of the problem"),
        (Problem(ROBOT, CONTACTS, "world"), ("matrix",), "the inputs q, base_orientation"),
    ):
        with pytest.raises(InputError, match=words):
            map_trajectory(source, target, problem, columns=columns)
    np.save(tmp_path / "q.npy", np.zeros((3, 5)))
    with pytest.raises(InputError, match=r"shape \(3, 5\); expected \(N, 12\): .*--names"):
        map_trajectory(source, target, PROBLEM)


def test_a_fault_leaves_no_half_table(tmp_path: Path, monkeypatch) -> None:
    np.save(tmp_path / "q.npy", configurations(30))

    def fail(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(trajectory.Table, "write", fail)
    with pytest.raises(InputError, match=r"out\.parquet cannot be written: no space left"):
        map_trajectory(Source(tmp_path / "q.npy"), tmp_path / "out.parquet", PROBLEM)
    assert [file.name for file in tmp_path.iterdir()] == ["q.npy"]
