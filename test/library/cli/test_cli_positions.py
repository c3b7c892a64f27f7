"""Positions that cannot be: verbs that read some say which, and read degrees if told to."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from cli_support import CONFIG, LEG, QUADRUPED, answer, output, refusal
from pyarrow import parquet
from recordings_support import BEGIN, STEP, at, walk, write
from sensor_msgs.msg import JointState

from delassus import Contact, DelassusSolver, DelassusWarning, Problem, Robot
from delassus_ros.verbs.main import main

FOOT = ("--contact", "LF_FOOT")
ROBOT = Robot.from_urdf(QUADRUPED)
DEGREES = {name: 20.0 if name.endswith("HFE") else -60.0 if name.endswith("KFE") else 5.0
           for name in ROBOT.joint_names}  # fmt: skip
RADIANS = {name: float(np.deg2rad(value)) for name, value in DEGREES.items()}


def said(capsys, *argv: str) -> tuple[str, str]:
    """Run the command, which must succeed; return what it prints and what it warns of."""
    assert main(argv) == 0
    captured = capsys.readouterr()
    return captured.out, captured.err


def q_text(values) -> str:
    return ",".join(f"{name}={value!r}" for name, value in values.items())


def test_compute_warns_of_positions_outside_limits(capsys) -> None:
    command = ("compute", QUADRUPED, *FOOT)
    out, err = said(capsys, *command, "--q", q_text(DEGREES), "--json")
    assert "warning: --q: the position of joint 'LF_KFE' is -60 rad, and its limits are " in err
    assert err.count("; if angles are in degrees, add --degrees\n") == 5
    assert err.splitlines()[-1] == "warning: 7 more like these"
    assert len(json.loads(out)["warnings"]) == 12
    expected = answer(capsys, *command, "--q", q_text(RADIANS))
    found = answer(capsys, *command, "--q", q_text(DEGREES), "--degrees")
    assert found["warnings"] == []
    assert np.allclose(found["G"], expected["G"], rtol=1e-13)
    whole = ",".join(str(DEGREES[name]) for name in ROBOT.joint_names)
    found = answer(capsys, *command, "--q", whole, "--degrees")
    assert np.allclose(found["G"], expected["G"], rtol=1e-13)
    assert found["q"] == pytest.approx(ROBOT.q(RADIANS))
    # In degrees already: a joint that was not homed.
    _, err = said(capsys, *command, "--q", "LF_KFE=-2000", "--degrees")
    assert "'LF_KFE' is -34.9066 rad" in err and "was the joint homed" in err


def test_joints_that_are_held_are_looked_at_as_well(capsys) -> None:
    _, err = said(capsys, "compute", QUADRUPED, *FOOT, "--lock", "RH_HAA=40")
    assert err.startswith("warning: lock: the position of joint 'RH_HAA' is 40 rad, and its limi")
    assert err.endswith("1 joint is locked by --lock: 'RH_HAA'\n") and err.count("\n") == 2
    held = {"RH_HAA": 40.0, "LF_HAA": 0.1}
    for lock in (ROBOT.lock, lambda lock: Robot.from_urdf(QUADRUPED, lock=lock)):
        with pytest.warns(DelassusWarning, match="lock: the position of joint 'RH_HAA'") as caught:
            lock(held)
        assert caught[0].filename == __file__


def test_no_warning_of_joints_that_were_not_given(capsys, tmp_path) -> None:
    text = Path(QUADRUPED).read_text()
    path = tmp_path / "bent.urdf"
    # A knee that cannot be straight: neutral is outside its limits.
    path.write_text(text.replace('upper="-0.3"', 'upper="-0.9"'))
    output(capsys, "compute", str(path), *FOOT)
    output(capsys, "compute", str(path), *FOOT, "--q", "LF_HFE=0.3")


def test_compute_with_gears_in_degrees(capsys) -> None:
    robot = Robot.from_urdf(LEG, "fixed")
    command = ("compute", LEG, "--base", "fixed", "--contact", "sole", "--q")
    # By joint and by motor: either follows from the other.
    for name, _ in robot.couplings[0].ratios:
        expected = answer(capsys, *command, f"{name}=0.3")
        turned = f"{name}={float(np.rad2deg(0.3))}"
        found = answer(capsys, *command, turned, "--degrees")
        assert np.allclose(found["q"], expected["q"], rtol=1e-12, atol=1e-15)
        assert np.allclose(found["G"], expected["G"], rtol=1e-12) and any(found["q"])


@pytest.mark.needs("matplotlib")
def test_plot_looks_at_both_ends(capsys, tmp_path) -> None:
    command = ("plot", QUADRUPED, *FOOT, "-o", str(tmp_path / "a.png"))
    out, err = said(capsys, *command, "--to", "LF_KFE=-60", "--json")
    assert err == f"warning: {json.loads(out)['warnings'][0]}\n"
    assert err.startswith("warning: --to: the position of joint 'LF_KFE' is -60 rad")
    assert said(capsys, *command, "--to", "LF_KFE=-60", "--degrees")[1] == ""


def table(path: Path, values: np.ndarray, names) -> Path:
    columns = {name: values[:, k] for k, name in enumerate(names)}
    parquet.write_table(pyarrow.table(columns), path)
    return path


def test_trajectory_warns_by_column(capsys, tmp_path) -> None:
    names = ROBOT.joint_names
    values = np.array([[DEGREES[name] * (1 + 0.01 * k) for name in names] for k in range(50)])
    data = table(tmp_path / "in.parquet", values, names)
    target = tmp_path / "out.parquet"
    command = ("trajectory", QUADRUPED, *FOOT, "--data", str(data), "-o", str(target))
    out, err = said(capsys, *command, "--json")
    first = json.loads(out)["warnings"]
    assert len(first) == 12 and err.startswith("warning: column 'LF_HAA': ")
    assert "column 'LF_KFE': positions that cannot be in 50 rows; first, the position of joint " \
           "'LF_KFE' is -60 rad, and its limits are" in first[2]  # fmt: skip
    assert all(each.endswith("; if angles are in degrees, add --degrees") for each in first)
    assert said(capsys, *command, "--degrees")[1] == ""
    Q = np.array(parquet.read_table(target)["q"].to_pylist())
    np.testing.assert_allclose(Q, np.deg2rad(values), rtol=1e-14)
    solver = DelassusSolver(Problem(ROBOT, [Contact("LF", "LF_FOOT")]), "auto")
    G = np.array(parquet.read_table(target)["matrix"].to_pylist()).reshape(-1, 3, 3)
    np.testing.assert_allclose(G, solver.solve_batch(np.deg2rad(values)).matrix, rtol=1e-12)


def test_trajectory_of_lists_names_the_number(capsys, tmp_path) -> None:
    values = np.zeros((5, ROBOT.nq))
    values[3, 2] = 17.0
    lists = pyarrow.array(values.tolist())
    parquet.write_table(pyarrow.table({"observation.state": lists}), tmp_path / "in.parquet")
    np.save(tmp_path / "in.npy", values)
    for file, of in (("in.parquet", "observation.state"), ("in.npy", "in.npy")):
        command = ("trajectory", QUADRUPED, *FOOT, "--data", str(tmp_path / file))
        _, err = said(capsys, *command, "-o", str(tmp_path / "out.parquet"))
        joint = ROBOT.joint_names[2]
        words = f"number 2 of {of!r}, joint {joint!r}: positions that cannot be in 1 row; first, "
        assert err.startswith(f"warning: {words}the position of joint {joint!r} is 17 rad")


@pytest.mark.parametrize("values", [np.zeros((2, 12)) * 1j, np.full((2, 12), 2**62)])
def test_numbers_that_no_float_holds_are_refused(capsys, tmp_path, values) -> None:
    np.save(tmp_path / "in.npy", values)
    err = refusal(capsys, "trajectory", QUADRUPED, *FOOT, "--data", str(tmp_path / "in.npy"),
                  "-o", str(tmp_path / "out.parquet"))  # fmt: skip
    assert "in.npy" in err and "expected numbers" in err


def test_bag_warns_by_joint_and_reads_degrees(capsys, tmp_path, monkeypatch) -> None:
    """What is computed of degrees is what is computed of the same in radians."""
    monkeypatch.chdir(tmp_path)

    def recorded(degrees: bool):
        for message in walk(20):
            if message.topic == "/joint_states":
                time = message.time
                q = np.array([RADIANS[name] for name in ROBOT.joint_names])
                q = np.round(q + 0.01 * (time - BEGIN) / STEP, 6)
                state = JointState(name=list(ROBOT.joint_names))
                state.header.stamp.sec, state.header.stamp.nanosec = divmod(time, 10**9)
                state.position = (np.rad2deg(q) if degrees else q).tolist()
                message = at(time, "/joint_states", state)
            yield message

    write(tmp_path / "degrees.mcap", list(recorded(True)))
    write(tmp_path / "radians.mcap", list(recorded(False)))
    tail = ("--params", CONFIG, "--format", "parquet", "-o", "out")
    out, _ = said(capsys, "bag", "degrees.mcap", *tail)
    assert "20 times: the position of joint 'LF_KFE' is -60 rad, and its limits are" in out
    assert "; if angles were recorded in degrees, add --degrees" in out
    out = output(capsys, "bag", "radians.mcap", *tail)
    assert "the position of joint" not in out and "20 matrices" in out
    # Other options: it is done again.
    out = output(capsys, "bag", "degrees.mcap", *tail, "--degrees")
    assert "the position of joint" not in out and "finished before" not in out
    of_degrees, of_radians = (
        np.array(parquet.read_table(f"out/{name}.parquet")["matrix"].to_pylist(), dtype=float)
        for name in ("degrees", "radians")
    )
    assert of_degrees.shape == of_radians.shape and len(of_degrees) == 20
    np.testing.assert_allclose(of_degrees, of_radians, rtol=1e-9, atol=1e-9)
