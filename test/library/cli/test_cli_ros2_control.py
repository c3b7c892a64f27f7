"""The example package for ros2_control: its kernels as compiled C++, and names in its files."""

from __future__ import annotations

import subprocess
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from cli_support import QUADRUPED, ROOT, needs_programs, output
from hanging import HANG_S

from delassus import Contact, DelassusSolver, ForceStatus, Problem, Robot

PACKAGE = ROOT / "examples" / "ros2_control_controller"
CONTACTS = [
    Contact("LF", "LF_FOOT"),
    Contact("sole", "RH_FOOT", "surface", dimensions=(0.2, 0.1)),
]
OPTIONS = ("--axes", "world", "--outputs", "a0", "--friction", "--dimensions", "0.2,0.1")
MAIN = """
#include <cstdio>
#include "delassus_controller/kernel.hpp"
using delassus_controller::Kernel;
bool read(double *numbers, int count) {
  for (int k = 0; k < count; ++k)
    if (std::scanf("%lf", numbers + k) != 1) return false;
  return true;
}
int main() {
  static Kernel kernel;
  for (int k = 0; k < Kernel::JOINTS; ++k) std::printf("%s ", Kernel::joint(k));
  for (int n = Kernel::BASE; n < Kernel::VELOCITIES; ++n) std::printf("%s ", Kernel::velocity(n));
  std::printf("\\n");
  for (const auto &name : Kernel::names()) std::printf("%s ", name.c_str());
  std::printf("\\n");
  while (read(kernel.q(), Kernel::JOINTS) &&
         read(kernel.base_orientation(), Kernel::ORIENTATION) &&
         read(kernel.rates(), Kernel::VELOCITIES) && read(kernel.torques(), Kernel::VELOCITIES) &&
         read(kernel.gravity(), 3) && read(kernel.friction(), Kernel::CONTACTS) &&
         read(kernel.touching(), Kernel::CONTACTS)) {
    std::printf("%d", static_cast<int>(kernel.compute()));
    std::printf(" %d", static_cast<int>(kernel.forces_status()));
    for (double value : kernel.values()) std::printf(" %.17g", value);
    std::printf("\\n");
  }
}
"""


def export(capsys, folder: Path, *options: str) -> None:
    """Export kernels under the name that the package expects."""
    contacts = ("--contact", "LF=LF_FOOT", "--contact", "sole=RH_FOOT:surface")
    output(capsys, "export", QUADRUPED, *contacts, "-o", str(folder / "robot.o"), *options)


def compiled(folder: Path) -> subprocess.CompletedProcess[str]:
    """Compile a program of the package's kernel class."""
    (folder / "main.cpp").write_text(MAIN)
    sources = ("main.cpp", "robot.o", "robot_forces.o", "-lm", "-o", "kernel")
    warnings = ("-Wall", "-Wextra", "-Werror")
    flags = ("-std=c++17", "-O1", *warnings, "-I", ".", "-I", str(PACKAGE / "include"))
    return subprocess.run(
        ["g++", *flags, *sources], cwd=folder, capture_output=True, text=True, timeout=HANG_S
    )


def random_cycle(rng: np.random.Generator, speed: float, base: str) -> dict[str, np.ndarray]:
    """Return inputs of the kernel in their order, near a stance that turns with the base."""
    q, orientation = np.tile([0.0, 0.7, -1.4], 4) + rng.uniform(-0.1, 0.1, 12), rng.normal(size=4)
    turned = {"base_orientation": orientation / np.linalg.norm(orientation)}
    size = 18 if base == "floating" else 12
    return {
        "q": q,
        **(turned if base == "floating" else {}),
        "rates": speed * rng.normal(size=size),
        "torques": rng.normal(size=size),
        "gravity": np.array([0.1, 0.2, -9.8]),
    }


@pytest.mark.parametrize("base", ["floating", "fixed"])
def test_the_kernel_class_computes_what_python_does(capsys, tmp_path: Path, base: str) -> None:
    """Names, order, G, a0, and the forces of the contacts that touch.

    A cycle without a position has NaN alone; one whose contacts strike, or one that does not
    know whether a contact touches, has no forces.
    """
    needs_programs("g++")
    export(capsys, tmp_path, *OPTIONS, "--base", base)
    done = compiled(tmp_path)
    assert done.returncode == 0, done.stderr
    robot = Robot.from_urdf(QUADRUPED, base=base)
    solver = DelassusSolver(Problem(robot, CONTACTS, axes="world", outputs=["a0"]))
    friction = {"LF": 0.5, "sole": 0.8}
    rng, upper = np.random.default_rng(4), np.triu_indices(9)
    rows_of = {"LF": range(3), "sole": range(3, 9)}
    lines, expected, statuses = [], [], []
    for active, speed in (
        (["LF", "sole"], 0.0), (["LF", "sole"], 1e-3), (["sole"], 1e-3), (["LF"], 1e-3),
        ([], 1e-3), (["LF", "sole"], 10.0),
    ):  # fmt: skip
        cycle = random_cycle(rng, speed, base)
        touching = [float(name in active) for name in friction]
        numbers = np.concatenate([*cycle.values(), [*friction.values()], touching])
        lines.append(" ".join(map(repr, numbers.tolist())))
        s = solver.solve(**cycle)
        f, status = np.zeros(9), ForceStatus.SOLVED
        if active:
            found = solver.solve(active=active, **cycle).contact_forces(friction)
            status = found.status
            f[np.concatenate([rows_of[name] for name in active])] = found.forces
        statuses.append(status)
        f *= 1.0 if status == ForceStatus.SOLVED else np.nan
        expected.append(np.concatenate([s.matrix[upper], s.a0, f]))
    assert statuses == [ForceStatus.SOLVED] * 5 + [ForceStatus.STRIKING]
    lines.append("nan " + lines[0].partition(" ")[2])
    lines.append(lines[0].rpartition(" ")[0] + " nan")
    shown = subprocess.run(
        [tmp_path / "kernel"], input="\n".join(lines), capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert shown[0].split() == 2 * list(robot.joint_names)
    rows = [f"LF.{k}" for k in range(3)] + [f"sole.{k}" for k in range(6)]
    assert shown[1].split() == [
        *(f"G.{rows[i]}.{rows[j]}" for i, j in zip(*upper, strict=True)),
        *(f"{vector}.{row}" for vector in ("a0", "f") for row in rows),
    ]
    printed = np.array([[float(word) for word in line.split()] for line in shown[2:]])
    assert printed[:, 0].tolist() == [0, 0, 0, 0, 0, 0, 2, 0]
    assert printed[:, 1].tolist() == [*statuses, ForceStatus.NOT_FINITE, ForceStatus.NOT_FINITE]
    values, no_position, no_touch = printed[:6, 2:], printed[6, 2:], printed[7, 2:]
    np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-12)
    assert np.isnan(no_position).all()
    assert np.array_equal(no_touch[:-9], values[0, :-9])
    assert np.isnan(no_touch[-9:]).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (OPTIONS[2:], "other outputs than G, a0 and v"),
        ((*OPTIONS[:2], "--outputs", "a0,J", *OPTIONS[4:]), "other outputs than G, a0 and v"),
        (OPTIONS[:4], "robot_forces.h"),
    ],
)
def test_the_compiler_refuses_other_kernels(capsys, tmp_path: Path, options, words: str) -> None:
    needs_programs("g++")
    export(capsys, tmp_path, *options)
    done = compiled(tmp_path)
    assert done.returncode != 0
    assert words in done.stderr


def test_the_files_of_the_package_agree() -> None:
    """The plug-in's class and its library, the configuration, and the dependencies."""
    source = (PACKAGE / "src" / "delassus_controller.cpp").read_text()
    test = (PACKAGE / "test" / "test_load_delassus_controller.cpp").read_text()
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
    used, _, tests = cmake.partition("if(BUILD_TESTING)")
    for tag, text in (("depend", used), ("test_depend", tests)):
        for dependency in package.iter(tag):
            assert f"find_package({dependency.text} REQUIRED)" in text
    configuration = yaml.safe_load((PACKAGE / "config" / "controllers.yaml").read_text())
    manager = configuration["controller_manager"]["ros__parameters"]
    assert manager["delassus"]["type"] == plugin.attrib["name"]
    assert f'"{plugin.attrib["name"]}"' in test
    declared = (PACKAGE / "src" / "delassus_controller_parameters.yaml").read_text()
    parameters = yaml.safe_load(declared)["delassus_controller"]
    written = configuration["delassus"]["ros__parameters"]
    for group, of in ((written, parameters), (written["base"], parameters["base"])):
        assert set(group) <= set(of)
    for name, values in written["base"].items():
        assert values == parameters["base"][name]["default_value"]
