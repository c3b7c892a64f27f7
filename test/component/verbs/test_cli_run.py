"""`delassus run` and `delassus view`: a node of one's own robot, and pages that show matrices."""

from __future__ import annotations

import json
import signal
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import robots
from cli_support import refusal
from processes import python

from delassus_ros.verbs.main import main

pytestmark = pytest.mark.needs("viser")

QUIET = ("--no-browser", "--json")


@pytest.mark.needs("mujoco", "rclpy", "delassus_msgs")
def test_a_robot_of_mjcf_is_shown_until_the_time_is_over(
    tmp_path: Path, capsys, monkeypatch
) -> None:
    from ros_domains import new_domain

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
    monkeypatch.setenv("ROS_DOMAIN_ID", str(new_domain()))
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    assert main(["run", str(path), "--seconds", "0.1", *QUIET]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["contacts"] == ["left_foot", "right_foot"] and found["matrices"] >= 1


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
    import recordings_support as support
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

    snapshot = "delassus.drawing.snapshot"
    monkeypatch.setitem(sys.modules, snapshot, Hiding(snapshot))
    with pytest.raises(KeyboardInterrupt):
        main(["view", "quadruped", "--seconds", "0.1", "--port", "0", *QUIET])


def test_without_viser_the_command_that_installs_it_is_named(capsys, monkeypatch) -> None:
    monkeypatch.setattr(
        "delassus.programs.needs.absent", lambda names: [n for n in names if n == "viser"]
    )
    assert "'pip install viser' with that Python installs it" in refusal(
        capsys, "view", "quadruped"
    )


@pytest.mark.needs("delassus_msgs", "rclpy")
def test_each_new_matrix_is_shown_and_counted_once(capsys, monkeypatch) -> None:
    """Whatever ends the page: a signal, as here, or its time."""
    from delassus_ros.verbs import run

    monkeypatch.setattr(run, "_PERIOD_S", 0.0)
    matrix = SimpleNamespace(
        validity=2, reasons=0, matrix=np.eye(3), rank=3, condition=1.0, algorithm="efpa"
    )
    arriving = [None, matrix, matrix, None, matrix, None]
    shown = []
    knee = SimpleNamespace(name="knee", kind=SimpleNamespace(nq=1))
    topics = SimpleNamespace(
        robot=SimpleNamespace(joints=[knee], q_offsets=[0]), q=lambda: np.array([0.5]),
        drawn_robot=SimpleNamespace(poses=lambda q: ("poses", q)),
        latest=lambda: arriving.pop(0), scene=lambda received: ("scene", received),
    )  # fmt: skip
    viewer = SimpleNamespace(neutral=lambda: None, show=lambda *drawn: shown.append(drawn))
    assert run._follow(topics, viewer, lambda: not arriving, None) == 3
    assert [drawn[0].scene for drawn in shown] == [("scene", matrix)] * 3
    assert [drawn[0].positions for drawn in shown] == [{"knee": 0.5}] * 3
    assert capsys.readouterr().err.count("first matrix after") == 1
    assert run._follow(topics, viewer, lambda: True, None) == 0


@pytest.mark.needs("delassus_msgs", "rclpy")
def test_a_node_of_ones_own_robot_and_a_page_of_a_running_node(
    capfd, monkeypatch
) -> None:
    from ros_domains import new_domain

    monkeypatch.setenv("ROS_DOMAIN_ID", str(new_domain()))
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    command = ["-m", "delassus_ros.verbs.main", "run", str(robots.quadruped()), *QUIET]
    with python(*command, "--q", "LF_KFE=-1.2", apart=True) as running:
        # The node is compiled and started meanwhile: its layout is waited for.
        assert main(["view", "--node", "--seconds", "0.2", *QUIET]) == 0
        assert json.loads(capfd.readouterr().out)["matrices"] > 0
        running.wait_for("first matrix after")
        assert running.stop() == 0
        found = json.loads(running.output)
    # The page had shown one before the signal; how many more is chance.
    assert found["matrices"] >= 1 and found["robot"] == "delassus_quadruped"
    assert found["contacts"] == ["LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT"]


@pytest.mark.needs("delassus_msgs", "rclpy")
def test_a_node_that_cannot_start_is_reported(tmp_path: Path, capfd, monkeypatch) -> None:
    path = tmp_path / "params.yaml"
    path.write_text("/**: {ros__parameters: {contacts: {names: [a], a: {frame: nowhere}}}}")
    assert main(["run", "quadruped", "--params", str(path), *QUIET]) == 2
    error = capfd.readouterr().err
    assert "unknown frame 'nowhere'" in error and "Traceback" not in error
