"""The example package for ros2_control: its kernel as compiled C++, and names in its files."""

from __future__ import annotations

import subprocess
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from cli_support import QUADRUPED, ROOT, needs_programs, output
from hanging import HANG_S

from delassus import Contact, DelassusSolver, Problem, Robot

PACKAGE = ROOT / "examples" / "ros2_control_controller"
CONTACTS = [Contact("LF", "LF_FOOT"), Contact("sole", "RH_FOOT", "surface")]
MAIN = """
#include <cstdio>
#include "delassus_controller/kernel.hpp"
using delassus_controller::Kernel;
int main() {
  static Kernel kernel;
  double q[Kernel::JOINTS];
  for (int k = 0; k < Kernel::JOINTS; ++k) std::printf("%s ", Kernel::joint(k));
  std::printf("\\n");
  for (const auto &name : Kernel::names()) std::printf("%s ", name.c_str());
  std::printf("\\n");
  while (true) {
    for (double &value : q)
      if (std::scanf("%lf", &value) != 1) return 0;
    std::printf("%d", static_cast<int>(kernel.compute(q)));
    for (double value : kernel.values()) std::printf(" %.17g", value);
    std::printf("\\n");
  }
}
"""


def export(capsys, folder: Path, *more: str) -> None:
    """Export a kernel under the name that the package expects."""
    contacts = ("--contact", "LF=LF_FOOT", "--contact", "sole=RH_FOOT:surface")
    output(capsys, "export", QUADRUPED, *contacts, "-o", str(folder / "robot.o"), *more)


def compiled(folder: Path) -> subprocess.CompletedProcess[str]:
    """Compile a program of the package's kernel class."""
    (folder / "main.cpp").write_text(MAIN)
    sources = ("main.cpp", "robot.o", "-lm", "-o", "kernel")
    warnings = ("-Wall", "-Wextra", "-Werror")
    flags = ("-std=c++17", "-O1", *warnings, "-I", ".", "-I", str(PACKAGE / "include"))
    return subprocess.run(
        ["g++", *flags, *sources], cwd=folder, capture_output=True, text=True, timeout=HANG_S
    )


def test_the_kernel_class_computes_what_python_does(capsys, tmp_path: Path) -> None:
    """Names, order and every bit of the entries; a cycle without a position has NaN alone."""
    needs_programs("g++")
    export(capsys, tmp_path)
    done = compiled(tmp_path)
    assert done.returncode == 0, done.stderr
    robot = Robot.from_urdf(QUADRUPED)
    solver = DelassusSolver(Problem(robot, CONTACTS))
    rng = np.random.default_rng(4)
    configurations = rng.uniform(-1, 1, (3, robot.nq))
    lines = [" ".join(map(repr, q.tolist())) for q in configurations]
    lines.insert(1, " ".join(["nan"] * robot.nq))
    shown = subprocess.run(
        [tmp_path / "kernel"], input="\n".join(lines), capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert shown[0].split() == list(robot.joint_names)
    rows = [f"LF.{k}" for k in range(3)] + [f"sole.{k}" for k in range(6)]
    upper = np.triu_indices(9)
    assert shown[1].split() == [f"G.{rows[i]}.{rows[j]}" for i, j in zip(*upper, strict=True)]
    numbers = np.array([[float(word) for word in line.split()] for line in shown[2:]])
    assert numbers[:, 0].tolist() == [0, 2, 0, 0]
    assert np.isnan(numbers[1, 1:]).all()
    expected = [solver.solve(q).matrix[upper] for q in configurations]
    assert np.array_equal(numbers[[0, 2, 3], 1:], expected)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--axes", "world"), "inputs besides joint positions"),
        (("--outputs", "J"), "outputs besides G"),
    ],
)
def test_the_compiler_refuses_another_kernel(capsys, tmp_path: Path, more, words: str) -> None:
    needs_programs("g++")
    export(capsys, tmp_path, *more)
    done = compiled(tmp_path)
    assert done.returncode != 0
    assert words in done.stderr


def test_the_files_of_the_package_agree() -> None:
    """The plug-in's class, its library, the type in the configuration, and the dependencies."""
    source = (PACKAGE / "src" / "delassus_controller.cpp").read_text()
    cmake = (PACKAGE / "CMakeLists.txt").read_text()
    library = ElementTree.parse(PACKAGE / "delassus_controller.xml").getroot()
    plugin = library.find("class")
    assert plugin is not None
    registered = source.partition("PLUGINLIB_EXPORT_CLASS(")[2].partition(")")[0]
    assert [name.strip() for name in registered.split(",")] == [
        plugin.attrib["type"], plugin.attrib["base_class_type"],
    ]  # fmt: skip
    assert f"add_library({library.attrib['path']} SHARED" in cmake
    package = ElementTree.parse(PACKAGE / "package.xml").getroot()
    assert f"project({package.findtext('name')} " in cmake
    for dependency in package.iter("depend"):
        assert f"find_package({dependency.text} REQUIRED)" in cmake
    manager = yaml.safe_load((PACKAGE / "config" / "controllers.yaml").read_text())
    assert (
        manager["controller_manager"]["ros__parameters"]["delassus"]["type"]
        == plugin.attrib["name"]
    )
