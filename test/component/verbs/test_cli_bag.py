"""`delassus bag`, `bags` and `trajectory`, and their tables in `plot` and `compare`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_support import CONFIG, QUADRUPED, ROOT, answer, output, refusal
from hanging import HANG_S
from nav_msgs.msg import Odometry
from pyarrow import parquet
from recordings_support import (
    BEGIN,
    FEET,
    STEP,
    TYPES,
    Recorded,
    at,
    description,
    touching,
    walk,
    write,
)
from sensor_msgs.msg import JointState
from urdf_text import joint, link, robot_xml

from delassus import Contact, DelassusSolver, Problem, Robot
from delassus.robots.built_in import demo_urdf
from delassus_ros.recordings.recording import Recording
from delassus_ros.verbs.main import main


def about(table: str) -> dict[str, Any]:
    """Return what the metadata of a table says of it."""
    found: dict[str, Any] = json.loads(parquet.read_schema(table).metadata[b"delassus"])
    return found


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(name="run")
def make_run(tmp_path: Path) -> str:
    return str(write(tmp_path / "run.mcap", walk(120)))


def test_a_recording_with_the_parameters_of_the_node(capsys, run: str) -> None:
    out = output(capsys, "bag", run, "--params", CONFIG, "-o", "out")
    assert "120 matrices, 0 times INVALID, in 1.2 s" in out
    assert "wrote out/run.parquet\nwrote out/run.mcap" in out
    assert "finished before" in output(capsys, "bag", run, "--params", CONFIG, "-o", "out")
    columns = ("--format", "parquet", "--columns", "matrix")
    data = answer(capsys, "bag", run, "--params", CONFIG, "-o", "out", "--again", *columns)
    assert data["matrices"] == 120 and data["files"] == ["out/run.parquet"]
    assert set(data["took"]) == {"in all", "reading", "answering", "computing", "writing"}
    assert "effective_mass" not in parquet.read_schema("out/run.parquet").names


def test_without_parameters_the_ends_of_limbs_are_the_contacts(capsys) -> None:
    def feet() -> list[Recorded]:
        """The same walk with the names that are proposed."""
        found = [m for m in walk(20) if m.topic != "/active_contacts"]
        return [found[0], touching(found[0].time, "LF_FOOT", "RH_FOOT"), *found[1:]]

    write(Path("run.mcap"), feet())
    assert main(["bag", "run.mcap", "-o", "out", "--json"]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert (found["matrices"], found["invalid"]) == (20, 0)
    assert captured.err == (
        "run.mcap: base floating, as 4 limbs move on the root link 'base'; --params says "
        "otherwise\n"
    )
    assert about("out/run.parquet")["contacts"] == [f"{foot}_FOOT" for foot in FEET]


def test_without_parameters_a_recorded_layout_tells_the_contacts(capsys, run: str) -> None:
    """Those of the node that was recorded, with their places; here of kinds that none proposes."""
    contacts = {
        "LF": {"frame": "LF_FOOT", "kind": "surface", "xyz": [0.0, 0.01, -0.02],
               "rpy": [0.1, -0.2, 0.3]},
        "RH": {"frame": "RH_FOOT", "kind": "selection", "rpy": [0.4, 1.5707963267948966, 0.2],
               "selection": [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]},
        "RF": {"frame": "RF_FOOT"}, "LH": {"frame": "LH_FOOT"},
    }  # fmt: skip
    node = {"contacts": {"names": list(contacts), **contacts}, "algorithm": "auto"}
    Path("node.yaml").write_text(json.dumps({"/**": {"ros__parameters": node}}))
    output(capsys, "bag", run, "--params", "node.yaml", "-o", "one")
    recorded = list(Recording(Path("one/run.mcap")).messages())
    messages = [*walk(120), *(m for m in recorded if m.topic == "/delassus_node/layout")]
    types = {**TYPES, "/delassus_node/layout": "delassus_msgs/msg/Layout"}
    write(Path("with_layout/run.mcap"), messages, types)
    output(capsys, "bag", "with_layout/run.mcap", "-o", "two")
    said = answer(capsys, "compare", "one/run.parquet", "two/run.parquet")
    assert said["rows"] == 120 and said["largest"] < 1e-12
    one, two = (about(f"{folder}/run.parquet") for folder in ("one", "two"))
    for key in ("contacts", "frames", "kinds", "row_offsets", "axes", "recording"):
        assert one[key] == two[key]
    # One that cannot be read does not keep the others from it.
    Path("bad.mcap").write_text("no recording")
    assert main(["bags", "bad.mcap", "with_layout/run.mcap", "-o", "three", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["failed"] == ["bad.mcap"] and found["episodes"][1]["matrices"] == 120


@pytest.mark.parametrize("flies", [False, True])
def test_an_arm_whose_motion_was_recorded_floats(capsys, flies: bool) -> None:
    """Its description says nothing of that."""
    urdf = robot_xml(link("base"), link("tool"), joint("elbow", "base", "tool"))
    messages = [description(BEGIN, urdf), touching(BEGIN, "tool")]
    messages += [at(BEGIN, "/odometry", Odometry())] if flies else []
    for k in range(10):
        state = JointState(name=["elbow"], position=[0.1 * k])
        messages.append(at(BEGIN + (k + 1) * STEP, "/joint_states", state))
    write(Path("run.mcap"), messages, {**TYPES, "/odometry": "nav_msgs/msg/Odometry"})
    assert main(["bag", "run.mcap", "-o", "out", "--format", "parquet"]) == 0
    base = "floating" if flies else "fixed"
    assert f"run.mcap: base {base}, as " in capsys.readouterr().err
    assert about("out/run.parquet")["base"] == base


def test_contacts_that_nothing_tells_the_place_of(capsys, run: str) -> None:
    words = refusal(capsys, "bag", run, "-o", "out")
    assert "nothing says where its contacts LF, LH, RF, RH are" in words
    assert "limbs end in LF_FOOT, " in words and "--params names" in words
    assert not Path("out").exists()


def test_exit_status_of_recordings_without_matrices(capsys) -> None:
    messages = [m for m in walk(20) if m.topic != "/active_contacts"]
    write(Path("air.mcap"), [messages[0], touching(messages[0].time, "hand"), *messages[1:]])
    assert main(["bag", "air.mcap", "--params", CONFIG, "-o", "out"]) == 1
    out = capsys.readouterr().out
    assert "20 matrices have no rows: no contact was active" in out
    assert main(["bags", "air.mcap", "--params", CONFIG, "-o", "out"]) == 1
    out = capsys.readouterr().out
    assert "20 without rows; " in out and "unknown contact 'hand'" in out
    data = write(Path("cut.mcap"), walk(200), chunk=4096).read_bytes()
    Path("cut.mcap").write_bytes(data[: len(data) // 2])
    assert main(["bag", "cut.mcap", "--params", CONFIG, "-o", "out"]) == 1
    assert "damage: cut.mcap: ends " in capsys.readouterr().out


def test_a_robot_from_a_file(capsys) -> None:
    write(Path("run.mcap"), [m for m in walk(20) if m.topic != "/robot_description"])
    words = "no robot on /robot_description; --urdf names a file"
    assert words in refusal(capsys, "bag", "run.mcap", "-o", "out", "--params", CONFIG)
    out = output(capsys, "bag", "run.mcap", "-o", "out", "--params", CONFIG, "--urdf", QUADRUPED)
    assert "20 matrices" in out


def test_many_recordings(capsys) -> None:
    for k in range(3):
        write(Path(f"walk{k}.mcap"), walk(30 + k))
    write(Path("walk3.mcap"), [description()])
    names = [f"walk{k}.mcap" for k in range(4)]
    words = ("bags", *names, "--params", CONFIG, "-o", "out", "--workers", "2")
    # One has failed, which the exit status says.
    assert main(words) == 1
    out = capsys.readouterr().out
    assert "walk1.mcap  0.3        31        0" in out
    assert "walk3.mcap: no topic /joint_states" in out
    assert "4 recordings, 93 matrices, 1 failed; " in out
    assert main([*words, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [each["skipped"] for each in found["episodes"]] == [True, True, True, False]
    assert found["failed"] == ["walk3.mcap"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--remap", "joint_states"), "expected TOPIC:=/NAME"),
        (("--columns", "matrices"), "unknown column 'matrices'; did you mean 'matrix'?"),
        (("--format", "csv"), "unknown format 'csv'"),
        (("--params", "none.yaml"), "none.yaml"),
    ],
)
def test_bag_options_refused(capsys, run: str, options, words: str) -> None:
    params = () if options[0] == "--params" else ("--params", CONFIG)
    assert words in refusal(capsys, "bag", run, "-o", "out", *params, *options)


def test_packages_that_are_missing_are_named(run: str, tmp_path: Path) -> None:
    program = (
        "import sys\nsys.modules['pyarrow'] = None\n"
        "from delassus_ros.verbs.main import main\n"
        f"sys.exit(main(['bag', {run!r}, '-o', {str(tmp_path / 'out')!r}]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=HANG_S,
        cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and "needs the Python package pyarrow" in done.stderr


@pytest.mark.needs("matplotlib")
def test_tables_are_plotted_and_compared(capsys, run: str) -> None:
    output(capsys, "bag", run, "--params", CONFIG, "-o", "out")
    found = answer(capsys, "plot", "out/run.parquet")
    assert Path("run.svg").read_bytes()[:5] == b"<?xml" and found["rows"] == 120
    table = parquet.read_table("out/run.parquet")
    worst = int(np.argmax(table["condition"].to_numpy()))
    assert found["at"] == pytest.approx(table["timestamp"][worst].as_py())
    other = Path(CONFIG).read_text().replace("algorithm: pv_osimr", "algorithm: efpa")
    assert "efpa" in other
    Path("efpa.yaml").write_text(other)
    output(capsys, "bag", run, "--params", "efpa.yaml", "-o", "efpa")
    same = answer(capsys, "compare", "out/run.parquet", "out/run.parquet")
    assert (same["rows"], same["equal"], same["largest"]) == (120, 120, 0.0)
    assert same["matrices"] == 120
    said = answer(capsys, "compare", "out/run.parquet", "efpa/run.parquet")
    assert said["rows"] == 120 and said["equal"] < 120 and 0.0 < said["largest"] < 1e-12
    # Rows of silence have the stamp of the last joint state, several of them the same.
    gap = [m for m in walk(120) if not 40 * STEP <= m.time - BEGIN < 80 * STEP]
    write(Path("gap.mcap"), gap)
    quick, count = re.subn(r"input_timeout: \S+", "input_timeout: 0.05", Path(CONFIG).read_text())
    assert count == 1
    Path("quick.yaml").write_text(quick)
    output(capsys, "bag", "gap.mcap", "--params", "quick.yaml", "-o", "gap")
    silent = answer(capsys, "compare", "gap/gap.parquet", "gap/gap.parquet")
    rows = parquet.read_table("gap/gap.parquet").num_rows
    assert rows > 83 and (silent["rows"], silent["other_contacts"]) == (rows, 0)
    assert (silent["matrices"], silent["equal"]) == (80, 80)
    # A change of the robot is seen, and where.
    heavier, count = re.subn(r'mass value="(\d)', r'mass value="1\1', demo_urdf())
    assert count
    Path("heavier.urdf").write_text(heavier)
    output(capsys, "bag", run, "--params", CONFIG, "-o", "heavier", "--urdf", "heavier.urdf")
    words = output(capsys, "compare", "out/run.parquet", "heavier/run.parquet")
    assert "the largest is at" in words and "matrices that are equal     0" in words


@pytest.mark.needs("matplotlib")
def test_other_than_table_refused(capsys, run: str) -> None:
    Path("x.parquet").write_text("no table")
    assert "cannot be read as Parquet" in refusal(capsys, "plot", "x.parquet")
    parquet.write_table(__import__("pyarrow").table({"a": [1]}), "x.parquet")
    words = "not a table of delassus bag or delassus trajectory; its columns are a"
    assert words in refusal(capsys, "plot", "x.parquet")
    assert "expected another one" in refusal(capsys, "compare", "x.parquet")
    assert "is no table of matrices" in refusal(capsys, "compare", QUADRUPED, "x.parquet")


@pytest.mark.needs("matplotlib")
def test_a_table_without_rows_is_no_figure(capsys, run: str) -> None:
    output(capsys, "bag", run, "--params", CONFIG, "-o", "out")
    parquet.write_table(parquet.read_table("out/run.parquet").slice(0, 0), "none.parquet")
    assert "none.parquet has no rows" in refusal(capsys, "plot", "none.parquet")


@pytest.mark.needs("matplotlib")
def test_a_trajectory(capsys) -> None:
    Q = np.random.default_rng(3).uniform(-1, 0.1, (40, 12))
    np.save("q.npy", Q)
    out = output(
        capsys, "trajectory", QUADRUPED, "--contact", "LF_FOOT", "--data", "q.npy", "-o",
        "out.parquet", "--columns", "matrix,J",
    )  # fmt: skip
    assert "40 configurations, 0 without a matrix" in out
    robot = Robot.from_urdf(QUADRUPED)
    many = DelassusSolver(Problem(robot, [Contact("LF", "LF_FOOT")])).solve_batch(Q).matrix
    table = parquet.read_table("out.parquet")
    found = np.array(table["matrix"].to_pylist()).reshape(many.shape)
    np.testing.assert_allclose(found, many, rtol=1e-12, atol=1e-13)
    # Nothing says when rows were.
    said = output(capsys, "plot", "out.parquet")
    assert "figure" in said and "40 rows, LF_FOOT" in said and ", at row " in said
    call = ("trajectory", QUADRUPED, "--contact", "LF_FOOT", "--data")
    for data, target, words in (
        ("no.npy", "x.parquet", "no.npy cannot be read"),
        ("q.npy", "x.csv", "x.csv: expected a name that ends in .parquet"),
        ("q.npy", "no/x.parquet", "there is no folder no"),
        ("out.parquet", "out.parquet", "out.parquet is what is read"),
        (".", "x.parquet", "x.parquet is what is read, or in its folder"),
    ):
        assert words in refusal(capsys, *call, data, "-o", target)
    assert parquet.read_table("out.parquet") == table
