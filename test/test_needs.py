"""Programs whose packages are missing: a line that says what to install, and no traceback."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from delassus_ros.sim.needs import missing


def test_what_is_there_is_not_missing() -> None:
    assert missing("program", "json", "ctypes") is None


def test_what_is_not_there_is_named_with_the_command() -> None:
    assert missing("program", "json", "no_such_a", "no_such_b") == (
        "program: needs the Python package no_such_a and no_such_b, not installed for "
        f"{sys.executable}; 'pip install no_such_a no_such_b' with that Python installs it"
    )


@pytest.mark.parametrize(
    ("module", "package", "program"),
    [("simulator_node", "mujoco", "simulator"), ("monitor_node", "rich", "monitor")],
)
def test_programs_say_what_they_lack(module, package, program) -> None:
    pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")
    pytest.importorskip("delassus_msgs", reason="delassus_msgs is not installed")
    code = f"""
        import sys
        sys.modules[{package!r}] = None  # as if it were not installed
        from delassus_ros.sim import {module}
        sys.stdout.isatty = lambda: True
        sys.exit({module}.main([]))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"delassus_{program}: needs the Python package {package}, not ")
    assert f"'pip install {package}'" in line
