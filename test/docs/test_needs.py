"""Programs whose packages are missing: a line that says what to install, and no traceback."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hanging import HANG_S

from delassus.programs import entry
from delassus.programs.needs import missing
from delassus_ros import commands
from delassus_ros.ros.needs import missing_ros


def test_what_is_there_is_not_missing() -> None:
    assert missing("program", "json", "ctypes") is None


def test_what_is_not_there_is_named_with_the_command() -> None:
    assert missing("program", "json", "no_such_a", "no_such_b") == (
        "program: needs the Python package no_such_a and no_such_b, not installed for "
        f"{sys.executable}; 'pip install no_such_a no_such_b' with that Python installs it"
    )


@pytest.mark.needs("delassus_msgs", "rclpy")
@pytest.mark.parametrize(
    ("module", "package", "program"),
    [
        ("sim.simulator_node", "mujoco", "simulator"),
        ("monitor.monitor_node", "rich", "monitor"),
    ],
)
def test_programs_say_what_they_lack(module, package, program) -> None:
    code = f"""
        import sys
        sys.modules[{package!r}] = None  # as if it were not installed
        from delassus_ros.{module} import main
        sys.stdout.isatty = lambda: True
        sys.exit(main([]))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"delassus_{program}: needs the Python package {package}, not ")
    assert f"'pip install {package}'" in line


def test_without_ros_the_target_that_sets_it_up_is_named() -> None:
    assert missing_ros("delassus_demo", "json") is None
    said = missing_ros("delassus_demo", "no_such_a", "json", "no_such_b")
    assert said is not None
    assert said.startswith("delassus_demo needs no_such_a, no_such_b, not installed for /")
    assert said.endswith("in the source tree, 'make demo' sets up all of it")
    assert "'make setup'" in (missing_ros("delassus_node", "no_such_a") or "")


@pytest.mark.parametrize("program", ["compare", "markers", "monitor", "node", "simulator"])
def test_programs_of_an_installation_without_ros(program, capsys, monkeypatch) -> None:
    monkeypatch.setattr(commands, "ROS", ("rclpy", "no_such_a"))
    assert getattr(commands, program)() == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"delassus_{program} needs ") and "no_such_a, not installed" in line


def test_every_program_begins_where_it_is_said() -> None:
    """The names in setup.py are functions; what they start has a main."""
    text = (Path(__file__).parents[2] / "setup.py").read_text()
    found = re.findall(r'"(delassus\w*)": "([\w.]+):(\w+)"', text)
    assert len(found) == 10
    for _, module, function in found:
        assert callable(getattr(importlib.import_module(module), function))


def test_ctrl_c_while_a_program_is_imported_ends_it_without_a_traceback(monkeypatch) -> None:
    def interrupted(module: str) -> int:
        raise KeyboardInterrupt

    for module in (commands, entry):
        monkeypatch.setattr(module, "import_module", interrupted)
    monkeypatch.setattr(commands, "ROS", ())
    assert commands.delassus() == commands.node() == 130


@pytest.mark.needs("delassus_msgs", "rclpy")
def test_a_further_package_of_ros_is_named_without_a_traceback(capsys, monkeypatch) -> None:
    """As on an environment with rclpy and the messages of this project, but no sensor_msgs."""
    name = "no_such_msgs"

    def absent(module: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=f"{name}.msg")

    monkeypatch.setattr(commands, "import_module", absent)
    assert commands.node() == 1
    assert capsys.readouterr().err.startswith("delassus_node needs no_such_msgs, not installed")
    # A fault of the program, whose module exists, is none of the installation.
    name = "delassus_ros"
    with pytest.raises(ModuleNotFoundError):
        commands.node()
