"""The packaging: set-up script, versions, pins, commands, and what imports without ROS."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from hanging import HANG_S

import delassus

ROOT = Path(__file__).resolve().parents[2]


def make_venv(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", str(ROOT / "scripts" / "make_venv.sh"), str(folder)],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )


def interpreter(path: Path, version: str, has_venv: bool = True) -> str:
    """Write a program that answers the questions of make_venv.sh as that Python would."""
    path.write_text(
        "#!/bin/sh\n"
        'case "$2" in\n'
        f"  *version_info*) echo {version} ;;\n"
        f"  *ensurepip*) exit {0 if has_venv else 1} ;;\n"
        "esac\n"
    )
    path.chmod(0o755)
    return str(path)


def test_missing_compilers_are_named_with_the_command_that_installs_them(tmp_path: Path) -> None:
    python = interpreter(tmp_path / "python", "3.12")
    result = make_venv(tmp_path / "venv", PYTHON=python, CC="absent-cc", CXX="absent-c++")
    assert result.returncode == 1
    assert "absent-cc" in result.stderr
    assert "absent-c++" in result.stderr
    assert "sudo apt install gcc g++\n" in result.stderr
    assert not (tmp_path / "venv").exists()


@pytest.mark.parametrize("version", ["3.9", "3.15", "2.7"])
def test_a_python_of_another_version_is_refused(tmp_path: Path, version: str) -> None:
    python = interpreter(tmp_path / "python", version)
    result = make_venv(tmp_path / "venv", PYTHON=python)
    assert result.returncode == 1
    assert f"one of 3.10 3.11 3.12 3.13 3.14 ({python} is {version})" in result.stderr
    assert "sudo apt install python3 python3-venv python3-dev" in result.stderr


def test_a_python_that_is_not_there_is_named(tmp_path: Path) -> None:
    result = make_venv(tmp_path / "venv", PYTHON="absent-python")
    assert result.returncode == 1
    assert "absent-python is not there" in result.stderr


def test_a_python_without_venv_is_told_which_package_has_it(tmp_path: Path) -> None:
    python = interpreter(tmp_path / "python", "3.12", has_venv=False)
    result = make_venv(tmp_path / "venv", PYTHON=python)
    assert result.returncode == 1
    assert f"the module venv of {python}" in result.stderr
    assert re.search(r"sudo apt install python3(\.12)?-venv", result.stderr)


def test_both_packages_have_one_version() -> None:
    versions = {
        ElementTree.parse(ROOT / manifest).getroot().findtext("version")
        for manifest in ("package.xml", "msg/package.xml")
    }
    assert versions == {delassus.__version__}
    (cited,) = re.findall(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited == delassus.__version__


def test_conda_gets_what_the_manifests_need() -> None:
    """Packages of ROS are called so in RoboStack; those of Python lose Debian's prefix."""
    tables = (ROOT / "pixi.toml").read_text().partition("[pypi-dependencies]")[0]
    there = set(re.findall(r"^([\w-]+) =", tables, re.MULTILINE))
    python = {f"python3-{name}": name for name in ("defusedxml", "numpy")}
    python["python3-yaml"] = "pyyaml"
    for manifest in ("package.xml", "msg/package.xml"):
        root = ElementTree.parse(ROOT / manifest).getroot()
        kinds = ("depend", "exec_depend", "buildtool_depend")
        needed = {str(node.text) for kind in kinds for node in root.iter(kind)} - {"delassus_msgs"}
        names = {python.get(n, f"ros-jazzy-{n.replace('_', '-')}") for n in needed}
        assert len(names) > 5 and names <= there, names - there


def test_what_the_manifest_names_is_imported() -> None:
    """By the package or its launch files, and what only tests need by a test."""

    def imported(*folders: str) -> set[str]:
        files = [file for folder in folders for file in (ROOT / folder).rglob("*.py")]
        text = "\n".join(file.read_text(encoding="utf-8") for file in files)
        found = r"^ *(?:import|from) (\w+)|\bneeds\(\"(\w+)"
        return {name for names in re.findall(found, text, re.MULTILINE) for name in names}

    root = ElementTree.parse(ROOT / "package.xml").getroot()
    ours = ("delassus", "delassus_ros", "launch")
    for kind, folders in (("exec_depend", ours), ("test_depend", ("test",))):
        needed = {str(node.text).removeprefix("python3-") for node in root.iter(kind)}
        assert len(needed) > 3
        modules = {{"urdfdom_py": "urdf_parser_py"}.get(name, name) for name in needed}
        assert modules - imported(*folders) == set(), kind


def test_the_messages_are_built_against_the_pinned_ros() -> None:
    pin = re.compile(r"ros-[a-z-]+(?:\[\w+\])?==[\w.]+")
    pinned = set(pin.findall((ROOT / "requirements" / "ros.txt").read_text()))
    text = (ROOT / "msg" / "pyproject.toml").read_text()
    dependencies = text.partition("[project]")[2].partition("[tool.")[0]
    used = set(pin.findall(dependencies))
    assert used
    assert used <= pinned
    assert used <= set(pin.findall(text.partition("[project]")[0]))


def commands() -> list[importlib.metadata.EntryPoint]:
    entries = importlib.metadata.entry_points(group="console_scripts")
    return [entry for entry in entries if entry.value.startswith("delassus_ros.")]


@pytest.mark.parametrize("entry", commands(), ids=lambda entry: entry.name)
def test_a_command_runs_a_function_that_exists(entry: importlib.metadata.EntryPoint) -> None:
    assert callable(entry.load())


def test_pip_puts_the_commands_where_ros_looks_for_them() -> None:
    prefix = Path(sys.prefix)
    folder = prefix / "lib" / "delassus_ros"
    if not folder.is_dir():
        pytest.skip("delassus_ros is not installed by pip into this environment")
    for entry in commands():
        launcher = folder / entry.name
        assert os.access(launcher, os.X_OK)
        assert os.access(prefix / "bin" / entry.name, os.X_OK)
    index = prefix / "share" / "ament_index" / "resource_index" / "packages" / "delassus_ros"
    assert index.is_file()


def test_the_library_imports_without_ros_and_without_optional_packages() -> None:
    imported_without(("pinocchio", "mujoco", "rich", "mpmath"), "import delassus_ros")


def test_the_command_needs_ros_for_live_nodes_alone(tmp_path: Path) -> None:
    absent = ("builtin_interfaces", "geometry_msgs", "sensor_msgs", "delassus_msgs_py")
    urdf = ROOT / "delassus" / "robots" / "built_in" / "quadruped.urdf"
    kernel = tmp_path / "kernel.o"
    imported_without(
        absent,
        "from delassus_ros.verbs.main import main\n"
        "assert main(['list']) == 0\n"
        "for verb in ('inspect', 'config', 'rotors'):\n"
        f"    assert main([verb, {str(urdf)!r}]) == 0\n"
        "for verb in ('compute', 'compare'):\n"
        f"    assert main([verb, {str(urdf)!r}, '--contact', 'LF_FOOT']) == 0\n"
        f"export = ['export', {str(urdf)!r}, '--contact', 'LF_FOOT', '-o', {str(kernel)!r}]\n"
        "assert main(export) == 0\n"
        "assert main(['watch']) == 2\n",
    )
    assert kernel.stat().st_size > 1000


@pytest.mark.needs("mujoco")
def test_simulated_robots_need_no_ros() -> None:
    program = "from delassus_ros.sim.plants import make_plant; make_plant('quadruped')"
    imported_without(("builtin_interfaces", "geometry_msgs", "sensor_msgs"), program)


def imported_without(absent: tuple[str, ...], program: str) -> None:
    """Run a program in a process where ROS and other packages are not installed."""
    absent = ("rclpy", "delassus_msgs", *absent)
    program = f"import sys\nfor name in {absent}: sys.modules[name] = None\n{program}\n"
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert result.returncode == 0, result.stderr
