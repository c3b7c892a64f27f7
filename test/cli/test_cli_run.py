"""`delassus run` and `delassus view`: a node of one's own robot, and pages that show matrices."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import robots
from browser import wait_until
from cli_support import refusal
from hanging import HANG_S

pytest.importorskip("viser", reason="viser is not installed")

from delassus_ros.cli.main import main  # noqa: E402

QUIET = ("--no-browser", "--json")


def test_a_robot_of_mjcf_is_shown_until_the_time_is_over(tmp_path: Path, capsys) -> None:
    pytest.importorskip("mujoco", reason="mujoco is not installed")
    path = tmp_path / "biped.xml"
    legs = "".join(
        f'<body name="{side}_foot" pos="0 {y} -0.5"><joint name="{side}_knee" axis="0 1 0"/>'
        '<geom type="sphere" size="0.05" pos="0 0 -0.4"/></body>'
        for side, y in (("left", 0.1), ("right", -0.1))
    )
    path.write_text(
        '<mujoco model="biped"><worldbody><body name="trunk" pos="0 0 1"><freejoint/>'
        f'<geom type="box" size="0.1 0.1 0.1"/>{legs}</body></worldbody></mujoco>'
    )
    assert main(["view", str(path), "--forces", "--seconds", "0.1", *QUIET]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert found["base"] == "floating" and found["shapes"] == 3 and found["unread"] == []
    assert [c["name"] for c in found["contacts"]] == ["left_foot", "right_foot"]
    assert "compiling 6 rows of biped ..." in captured.err and found["address"] in captured.err
    words = refusal(capsys, "view", str(path), "--base", "fixed")
    assert "has a free joint, which makes its base floating" in words
    assert "described by MJCF, and delassus_node reads URDF" in refusal(capsys, "run", str(path))


def test_robots_of_this_package_have_names(capsys) -> None:
    assert main(["view", "geared", "--seconds", "0.1", *QUIET]) == 0
    assert json.loads(capsys.readouterr().out)["robot"] == "delassus_quadruped_geared"
    assert "name a robot: the path of a URDF or MJCF file, or one of quadruped" in refusal(
        capsys, "view"
    )
    words = refusal(capsys, "view", "quadruped", "--q", "LF_KNEE=1", *QUIET)
    assert words.startswith("--q: unknown joint 'LF_KNEE'")


def test_a_table_is_shown_over_its_rows(tmp_path: Path, capsys) -> None:
    np.save(tmp_path / "q.npy", np.zeros((5, 12)))
    data = ("--data", str(tmp_path / "q.npy"), "--seconds", "0.1")
    assert main(["view", "quadruped", *data, *QUIET]) == 0
    assert json.loads(capsys.readouterr().out)["robot"] == "delassus_quadruped"
    words = refusal(capsys, "view", "quadruped", "--data", str(tmp_path / "p.npy"))
    assert "p.npy" in words


def test_a_recording_that_is_cut_is_shown_with_a_warning(tmp_path: Path, capsys) -> None:
    support = pytest.importorskip("recordings_support")
    folder = support.bag(tmp_path / "run", list(support.walk(40)), support.StoragePlugin.MCAP)
    (file,) = folder.glob("*.mcap")
    file.write_bytes(file.read_bytes()[:-3000])
    data = ("--data", str(folder), "--seconds", "0.1", "--port", "0")
    contacts = ("--contact", "LF=LF_FOOT", "--contact", "RH=RH_FOOT")
    assert main(["view", "quadruped", *contacts, *data, *QUIET]) == 1
    captured = capsys.readouterr()
    (warning,) = json.loads(captured.out)["warnings"]
    assert str(file) in warning and f"warning: {warning}" in captured.err


def test_an_interruption_that_an_import_hides_ends_the_command(monkeypatch) -> None:
    class Hiding(ModuleType):
        """A module that goes on whatever interrupts it, as trimesh does."""

        def __getattr__(self, name: str) -> object:
            with suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
            return name

    snapshot = "delassus_ros.drawing.snapshot"
    monkeypatch.setitem(sys.modules, snapshot, Hiding(snapshot))
    with pytest.raises(KeyboardInterrupt):
        main(["view", "quadruped", "--seconds", "0.1", "--port", "0", *QUIET])


def test_without_viser_the_command_that_installs_it_is_named(capsys, monkeypatch) -> None:
    monkeypatch.setattr(
        "delassus_ros.needs._absent", lambda names: [n for n in names if n == "viser"]
    )
    assert "'pip install viser' with that Python installs it" in refusal(
        capsys, "view", "quadruped"
    )


def test_each_new_matrix_is_shown_and_counted_once(capsys, monkeypatch) -> None:
    """Whatever ends the page: a signal, as here, or its time."""
    pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")
    pytest.importorskip("delassus_msgs", reason="delassus_msgs is not installed")
    from delassus_ros.cli import run

    monkeypatch.setattr(run, "_PERIOD_S", 0.0)
    matrix = SimpleNamespace(
        validity=2, reasons=0, matrix=np.eye(3), rank=3, condition=1.0, algorithm="efpa"
    )
    arriving = [None, matrix, matrix, None, matrix, None]
    shown = []
    topics = SimpleNamespace(
        stage=SimpleNamespace(poses=lambda q: ("poses", q)), q=lambda: "q",
        latest=lambda: arriving.pop(0), scene=lambda received: ("scene", received),
    )  # fmt: skip
    viewer = SimpleNamespace(neutral=lambda: None, show=lambda *drawn: shown.append(drawn))
    assert run._follow(topics, viewer, lambda: not arriving, None) == 3
    assert [drawn[0].scene for drawn in shown] == [("scene", matrix)] * 3
    assert capsys.readouterr().err.count("first matrix after") == 1
    assert run._follow(topics, viewer, lambda: True, None) == 0


def test_a_node_of_ones_own_robot_and_a_page_of_a_running_node(
    capfd, monkeypatch, tmp_path: Path
) -> None:
    pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")
    pytest.importorskip("delassus_msgs", reason="delassus_msgs is not installed")
    from ros_domains import new_domain

    monkeypatch.setenv("ROS_DOMAIN_ID", str(new_domain()))
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    command = [sys.executable, "-m", "delassus_ros.cli.main", "run", str(robots.quadruped())]
    said = tmp_path / "stderr"
    with said.open("w") as errors:
        running = subprocess.Popen(
            [*command, *QUIET, "--q", "LF_KFE=-1.2"],
            stdout=subprocess.PIPE, stderr=errors, text=True,
        )  # fmt: skip
    try:
        # The node is compiled and started meanwhile: its layout is waited for.
        assert main(["view", "--node", "--seconds", "0.2", *QUIET]) == 0
        assert json.loads(capfd.readouterr().out)["matrices"] > 0
        wait_until(lambda: "first matrix after" in said.read_text() or running.poll() is not None)
        running.send_signal(signal.SIGINT)
        out, _ = running.communicate(timeout=HANG_S)
    finally:
        running.kill()
        running.communicate()
    assert running.returncode == 0
    found = json.loads(out)
    # The page had shown one before the signal; how many more is chance.
    assert found["matrices"] >= 1 and found["robot"] == "delassus_quadruped"
    assert found["contacts"] == ["LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT"]


def test_a_node_that_cannot_start_is_reported(tmp_path: Path, capfd, monkeypatch) -> None:
    pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")
    pytest.importorskip("delassus_msgs", reason="delassus_msgs is not installed")
    path = tmp_path / "params.yaml"
    path.write_text("/**: {ros__parameters: {contacts: {names: [a], a: {frame: nowhere}}}}")
    assert main(["run", "quadruped", "--params", str(path), *QUIET]) == 2
    error = capfd.readouterr().err
    assert "unknown frame 'nowhere'" in error and "Traceback" not in error
