"""`delassus export`: the example in C++ as it stands, and what is said to other files."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
import robots
import yaml
from cli_support import CONFIG, QUADRUPED, ROOT, field, needs_programs, output, refusal
from hanging import HANG_S

from delassus import Contact, DelassusSolver, Problem, Robot
from delassus.algorithms import NumericAlgorithm, registry
from delassus.cli.report import about
from delassus.contact_forces.rows import ConeRows
from delassus_ros.node.parameters import OPERATION_PARAMETERS
from delassus_ros.verbs.main import main

EXAMPLE = ROOT / "examples" / "cpp" / "controller.cpp"
ROBOT = Robot.from_urdf(QUADRUPED)
CONTACTS = [Contact(leg, f"{leg}_FOOT") for leg in robots.LEGS]
"""The contacts of the quadruped's parameter file."""
FOOT = ("--contact", "LF_FOOT")
AARCH64 = 183
"""Machine of an ELF file for 64-bit Arm."""


def exported(folder: Path, *more: str, config: Path | str = CONFIG) -> tuple[str, ...]:
    """Return the arguments that export the quadruped to a folder."""
    files = ("-o", str(folder / "quadruped.o"), "--header", str(folder / "quadruped.h"))
    return ("export", str(config), "--urdf", QUADRUPED, *files, *more)


def run_as_commented(example: Path, folder: Path, changes: Mapping[str, str]) -> str:
    """Run every command in the comment of an example, as it stands there but for `changes`."""
    comment = example.read_text().partition("#include")[0]
    commands = "\n".join(line[5:] for line in comment.splitlines() if line[:5] == "//   ")
    for old, new in changes.items():
        assert old in commands
        commands = commands.replace(old, new)
    for name in ("config", "delassus", "delassus_ros", "examples"):
        (folder / name).symlink_to(ROOT / name)
    program = f"{shlex.quote(sys.executable)} -m delassus_ros.verbs.main"
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        ["sh", "-c", "set -e\n" + commands.replace("delassus", program, 1)],
        cwd=folder, capture_output=True, text=True, timeout=HANG_S,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def controller(folder: Path, name: str) -> Callable[[list[str]], list[str]]:
    """Build an example, which must allocate nothing; return what answers lines of numbers."""
    needs_programs("g++")
    run_as_commented(EXAMPLE.with_name(f"{name}.cpp"), folder, {})
    undefined = subprocess.run(
        ["nm", "-u", folder / name], capture_output=True, text=True, check=True
    ).stdout
    assert "scanf" in undefined
    assert not re.search(r"\b(_Zn[wa]|malloc|calloc|realloc)", undefined)

    def answers(lines: list[str]) -> list[str]:
        done = subprocess.run(
            [folder / name], input="\n".join(lines), capture_output=True, text=True, check=True
        )
        return done.stdout.splitlines()

    return answers


def numbers(lines: list[str]) -> np.ndarray:
    return np.array([[float(word) for word in line.split()] for line in lines])


def matrix_of_the_example(printed: str) -> tuple[np.ndarray, np.ndarray]:
    """Return what controller.cpp printed, and what it should be."""
    solver = DelassusSolver(Problem(ROBOT, CONTACTS))
    expected = solver.solve([0.0, 0.7, -1.4] * 4, ("LF", "RH")).matrix
    return numbers(printed.splitlines()[-6:]), expected


def test_example_in_cpp(tmp_path: Path) -> None:
    needs_programs("g++")
    printed = run_as_commented(EXAMPLE, tmp_path, {})
    assert printed.startswith("delassus_quadruped: floating base, 12 rows in contact axes: LF")
    G, expected = matrix_of_the_example(printed)
    assert np.array_equal(G, expected)


@pytest.mark.parametrize("cpu", ["generic", "cortex-a76"])
def test_example_in_cpp_on_another_processor(tmp_path: Path, cpu: str) -> None:
    """Arm, 64 bits, as an emulator of Debian's qemu-user-static runs it."""
    compiler, emulator = "aarch64-linux-gnu-g++", "qemu-aarch64-static"
    needs_programs(compiler, emulator)
    there = {
        "export ": f"export --target aarch64-linux-gnu --cpu {cpu} ",
        "g++": f"{compiler} -static",
        "| ./": f"| {emulator} -cpu max ./",
    }
    printed = run_as_commented(EXAMPLE, tmp_path, there)
    machine = int.from_bytes((tmp_path / "controller").read_bytes()[18:20], "little")
    assert machine == AARCH64
    G, expected = matrix_of_the_example(printed)
    # Sine and cosine are those of another library there.
    np.testing.assert_allclose(G, expected, rtol=1e-12, atol=1e-14)


def test_operational_space_law_in_cpp(tmp_path: Path) -> None:
    """The torques of operational_space.cpp, which allocates nothing."""
    answers = controller(tmp_path, "operational_space")
    problem = Problem(ROBOT, CONTACTS, outputs=["J", "MinvJT", "h", "JdotV"])
    solver, rng = DelassusSolver(problem), np.random.default_rng(0)
    lines, expected = [], []
    for _ in range(5):
        q, rates, posture = rng.uniform(-1, 1, 12), rng.normal(size=18), rng.normal(size=18)
        gravity, wanted = np.array([0.2, 0.1, -9.8]), rng.normal(size=3)
        s = solver.solve(q, ("LF",), rates=rates, gravity=gravity)
        force = s.inertia() @ wanted + s.bias_force()
        expected.append(s.J.T @ force + s.null_space().T @ posture)
        lines.append(" ".join(map(repr, np.r_[q, rates, gravity, wanted, posture].tolist())))
    # An arm that cannot be read is no torque, and the next tick is answered again.
    lines.insert(2, lines[0].replace(lines[0].split()[0], "nan", 1))
    printed = answers(lines)
    assert printed.pop(2) == "no torques: status 2"
    np.testing.assert_allclose(numbers(printed), expected, rtol=1e-9, atol=1e-9)


def test_controller_with_friction_in_cpp(tmp_path: Path) -> None:
    """contact_forces.cpp takes the share of the torques that Python's forces allow."""
    answers = controller(tmp_path, "contact_forces")
    problem = Problem(ROBOT, CONTACTS, axes="world", outputs=["a0", "J", "h"])
    bound, rng = DelassusSolver(problem).bind(), np.random.default_rng(3)
    bound.set_friction(0.6)
    level, gravity, rest = [0.0, 0.0, 0.0, 1.0], [0.0, 0.0, -9.81], np.zeros(18)
    lines, expected = [], []
    for size in (0.0, 2.0, 3.0, 4.0, 5.0, 40.0):
        q = np.tile([0.0, 0.7, -1.4], 4) + rng.uniform(-0.1, 0.1, 12)
        for name, values in zip(
            ("base_orientation", "rates", "torques", "gravity"), (level, rest, rest, gravity),
            strict=True,
        ):  # fmt: skip
            bound.inputs[name] = values
        s = bound.solve(q)
        load = np.zeros(12)
        load[2::3] = s.h[2] / 4.0
        hold = s.h - s.J.T @ load
        hold[:6] = 0.0
        wanted = hold + np.r_[np.zeros(6), rng.normal(scale=size, size=12)]
        for share in (1.0, 0.75, 0.5, 0.25, 0.0):
            bound.inputs["torques"] = hold + share * (wanted - hold)
            bound.solve(q)
            found = bound.contact_forces()
            f = found.forces.reshape(4, 3)
            if (np.hypot(f[:, 0], f[:, 1]) <= 0.9 * 0.6 * f[:, 2]).all() and (f[:, 2] > 0).all():
                break
        expected.append([share, found.status, sum(found.steps), *found.forces])
        lines.append(" ".join(map(repr, np.r_[q, level, rest, hold, gravity, wanted].tolist())))
    lines.insert(2, lines[0].replace(lines[0].split()[0], "nan", 1))
    printed = answers(lines)
    assert printed.pop(2) == "no forces: status 2"
    values = numbers(printed)
    np.testing.assert_allclose(values, expected, rtol=1e-7, atol=1e-7)
    assert values[0, 0] == 1.0 and len(set(values[:, 0])) >= 3, values[:, 0]


@pytest.mark.parametrize(
    ("options", "printed", "declared"),
    [
        (
            "", {"function": "quadruped_kernel", "algorithm": "pv_osimr"},
            "int32_t quadruped_kernel(const double",
        ),
        ("--algorithm C-EFPA", {"algorithm": "c_efpa"}, "Algorithm c_efpa; target"),
        (
            "--name dog --algorithm dense --target aarch64-linux-gnu --cpu cortex-a76",
            {"function": "dog_kernel", "algorithm": "dense"},
            "Algorithm dense; target aarch64-linux-gnu, processor cortex-a76;",
        ),
    ],
)  # fmt: skip
def test_export_reports_what_it_wrote(
    capsys, tmp_path: Path, options: str, printed: dict[str, str], declared: str
) -> None:
    out = output(capsys, *exported(tmp_path, *options.split()))
    for what, value in printed.items():
        assert field(out, what) == value
    code = (tmp_path / "quadruped.o").read_bytes()
    assert f"quadruped.o, {len(code)} bytes" in out
    assert declared in (tmp_path / "quadruped.h").read_text()
    assert "--target" not in options or int.from_bytes(code[18:20], "little") == AARCH64


def test_export_of_a_robot_description_alone(capsys, tmp_path: Path, monkeypatch) -> None:
    """The files are called as the description, and go where the command runs."""
    monkeypatch.chdir(tmp_path)
    contacts = ("--contact", "foot=LF_FOOT:surface", "--contact", "RH_FOOT")
    more = ("--axes", "world", "--lock", "LF_HAA=0.1")
    assert main(["export", QUADRUPED, *contacts, *more]) == 0
    out, err = capsys.readouterr()
    assert err == "1 joint is locked by --lock: 'LF_HAA'\n"
    assert "9 rows in world axes: foot (surface), RH_FOOT (point)" in out
    assert field(out, "algorithm") == "auto"
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"quadruped.o", "quadruped.h", "quadrupedConfig.cmake"}
    header = (tmp_path / "quadruped.h").read_text()
    assert 'quadruped_contacts[2] = {"foot", "RH_FOOT"}' in header
    assert '"LF_HAA"' not in header and "QUADRUPED_IN_Q_SIZE = 11," in header
    assert "12 rows in contact axes: LF_FOOT (point)" in output(capsys, "export", QUADRUPED)


PROJECT = """
cmake_minimum_required(VERSION 3.12)
project(controller CXX)
find_package(dog REQUIRED)
add_library(law STATIC law.cpp)
target_link_libraries(law PUBLIC dog::dog)
find_package(dog REQUIRED)
add_executable(controller main.cpp)
target_link_libraries(controller PRIVATE law dog::dog)
"""
LAW = """
#include <dog.h>
int inverse_inertia(const double *q, double *G) {
  double work[DOG_WORK_SIZE + 1];
  return dog_kernel(q, G, work);
}
"""
MAIN = """
#include <cstdio>
#include <dog.h>
int inverse_inertia(const double *q, double *G);
int main() {
  double q[DOG_IN_SIZE], G[DOG_OUT_SIZE];
  for (int i = 0; i < DOG_IN_SIZE; ++i) q[i] = 0.1 * i;
  if (inverse_inertia(q, G) != DOG_OK) return 1;
  for (double value : G) std::printf("%.17g\\n", value);
}
"""


def test_exported_kernel_found_by_cmake(capsys, tmp_path: Path) -> None:
    """By find_package alone, wherever object and header were put."""
    needs_programs("cmake", "g++")
    kernels, include, project = (tmp_path / name for name in ("lib dog", "include", "project"))
    for folder in (kernels, include, project):
        folder.mkdir()
    files = ("-o", str(kernels / "dog.o"), "--header", str(include / "dog.h"))
    contacts = ("--contact", "LF_FOOT", "--contact", "RH_FOOT")
    assert "find_package(dog), with dog_DIR=" in output(
        capsys, "export", QUADRUPED, *contacts, *files
    )
    for name, text in (("CMakeLists.txt", PROJECT), ("law.cpp", LAW), ("main.cpp", MAIN)):
        (project / name).write_text(text)
    build = str(tmp_path / "build")
    configure = ["cmake", "-S", str(project), "-B", build, f"-Ddog_DIR={kernels}"]
    for command in (configure, ["cmake", "--build", build]):
        done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S)
        assert done.returncode == 0, done.stdout + done.stderr
    run = subprocess.run([f"{build}/controller"], capture_output=True, text=True, check=True)
    found = np.array(run.stdout.split(), dtype=float).reshape(6, 6)
    problem = Problem(ROBOT, [Contact(name, name) for name in ("LF_FOOT", "RH_FOOT")])
    expected = DelassusSolver(problem, "dense").solve(0.1 * np.arange(12)).matrix
    assert np.linalg.norm(found - expected) < 1e-12 * np.linalg.norm(expected)


def test_export_in_world_axes_has_the_orientation_as_an_input(capsys, tmp_path: Path) -> None:
    config = tmp_path / "my robot-1.yaml"
    config.write_text(Path(CONFIG).read_text().replace("axes: contact", "axes: world"))
    header, code = str(tmp_path / "k.h"), str(tmp_path / "my robot-1.o")
    argv = ("export", str(config), "--urdf", QUADRUPED, "-o", code, "--header", header)
    assert "my_robot_1_kernel" in output(capsys, *argv)
    assert "MY_ROBOT_1_IN_BASE_ORIENTATION_SIZE = 4," in Path(header).read_text()


def test_export_of_a_moving_contact_has_its_position_as_an_input(capsys, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    place = "{frame: LF_FOOT, xyz: [0.0, 0.0, -0.02], moving: position}"
    config.write_text(f"/**: {{ros__parameters: {{contacts: {{names: [LF], LF: {place}}}}}}}")
    out = output(capsys, *exported(tmp_path, config=config))
    assert "3 rows in contact axes: LF (point, moving position)" in out
    header = (tmp_path / "quadruped.h").read_text()
    assert "QUADRUPED_IN_CONTACT_POSITIONS = 12, /* contact_positions: first of 3" in header
    assert "static const double quadruped_contact_positions[3] = {0.0, 0.0, -0.02};" in header


CONSUMER = """
#include <stdio.h>
#include "quadruped.h"

static void print(const char *what, const double *values, int count) {
  printf("%s", what);
  for (int i = 0; i < count; ++i) printf(" %.17g", values[i]);
  printf("\\n");
}

int main(void) {
  double in[QUADRUPED_IN_SIZE], out[QUADRUPED_OUT_SIZE], work[QUADRUPED_WORK_SIZE + 1];
  for (int i = 0; i < QUADRUPED_IN_Q_SIZE; ++i) in[QUADRUPED_IN_Q + i] = 0.1 * i;
  if (quadruped_kernel(in, out, work) != QUADRUPED_OK) return 1;
  for (int i = 0; i < QUADRUPED_VELOCITIES; ++i) printf("%s ", quadruped_velocities[i]);
  printf("\\n");
  print("G", out + QUADRUPED_OUT_G, QUADRUPED_OUT_G_SIZE);
  print("J", out + QUADRUPED_OUT_J, QUADRUPED_OUT_J_SIZE);
  print("MinvJT", out + QUADRUPED_OUT_MINVJT, QUADRUPED_OUT_MINVJT_SIZE);
  return 0;
}
"""


def test_export_of_the_other_outputs(capsys, tmp_path: Path) -> None:
    needs_programs("gcc")
    out = output(capsys, *exported(tmp_path, "--outputs", "J,MinvJT"))
    assert field(out, "outputs") == "G, J, MinvJT"
    (tmp_path / "main.c").write_text(CONSUMER)
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-unused-variable"]
    subprocess.run(
        ["gcc", *flags, "main.c", "quadruped.o", "-lm", "-o", "main"], cwd=tmp_path, check=True
    )
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True)
    names, *lines = done.stdout.splitlines()
    found = {line.split()[0]: np.array(line.split()[1:], dtype=float) for line in lines}
    problem = Problem(ROBOT, CONTACTS, outputs=["J", "MinvJT"])
    assert tuple(names.split()) == problem.velocities
    expected = DelassusSolver(problem, "dense").solve(0.1 * np.arange(12))
    values = (expected.matrix, expected.J, expected.MinvJT)
    for name, value in zip(("G", "J", "MinvJT"), values, strict=True):
        difference = found[name].reshape(value.shape) - value
        assert np.linalg.norm(difference) < 1e-10 * np.linalg.norm(value), name


@pytest.mark.parametrize(
    ("given", "shown", "sizes"),
    [("J", "G, J", {"J": 216}), (" MinvJT ,G", "G, MinvJT", {"MINVJT": 216}), ("G", "G", {})],
)
def test_named_outputs_exported(capsys, tmp_path, given, shown, sizes) -> None:
    out = output(capsys, *exported(tmp_path, "--outputs", given))
    assert field(out, "outputs") == shown
    header = (tmp_path / "quadruped.h").read_text()
    found = dict(re.findall(r"QUADRUPED_OUT_(\w+)_SIZE = (\d+)", header))
    assert found == {"G": "144"} | {name: str(size) for name, size in sizes.items()}
    assert ("quadruped_velocities[18]" in header) == bool(sizes)


def with_contact(inside: str = "", beside: str = "") -> str:
    """Return parameters of a contact, with more of the contact and more of the node."""
    return f"{{contacts: {{names: [LF], LF: {{frame: LF_FOOT{inside}}}}}{beside}}}"


@pytest.mark.parametrize("node", ["/**", "delassus", "/ns: {delassus", '"/a/b"'])
def test_export_finds_the_parameters_of_the_one_node(capsys, tmp_path: Path, node: str) -> None:
    text = with_contact(", kind: surface, xyz: [0, 0, 1e-2]")
    config = tmp_path / "config.yaml"
    config.write_text(f"{node}: {{ros__parameters: {text}}}" + "}" * node.count("{"))
    assert "6 rows in contact axes: LF (surface)" in output(
        capsys, *exported(tmp_path, config=config)
    )


def test_export_takes_every_parameter_of_the_node(capsys, tmp_path: Path) -> None:
    parameters = {
        **{name: s.default for name, s in OPERATION_PARAMETERS.items() if s.default != ()},
        "contacts.names": ["LF"],
        "contacts.LF.frame": "LF_FOOT",
        "autostart": True,
        "use_sim_time": True,
        "qos_overrides./joint_states.subscription.depth": 1,
        "orientation.timeout": 1,
    }
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump({"/**": {"ros__parameters": parameters}}))
    assert "3 rows in contact axes: LF (point)" in output(
        capsys, *exported(tmp_path, config=config)
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the parameters of one node, as in '/**: {ros__parameters: {…}}'; nodes: none"),
        ("[1, 2]", "nodes: none"),
        ("a: {ros__parameters: {}}\nb: {ros__parameters: {}}", "nodes: a, b"),
        ("a: {ros__parameters: 3}", "ros__parameters holds no parameters"),
        ("a: {ros__parameters: {}}", "'contacts.names' is empty"),
        ("a: [", "is not YAML: while parsing"),
        ("a: \x00", "is not YAML"),
        ("a: 2020-99-99", "is not YAML: month must be in 1..12"),
        ("a: &x [1]\nb: *x", "has the alias *x; write it out"),
        ("a: " + "[" * 30 + "]" * 30, "is nested more than 10 deep"),
        ("a: !!python/object/apply:os.getcwd []", "not YAML: could not determine a constructor"),
        ("#" * (2**18 + 1), "config.yaml' is larger than 262144 bytes"),
        (
            "a: {ros__parameters: {base: fixed, base: floating}}",
            "config.yaml': line 1: key 'base' appears twice",
        ),
        ("a: {ros__parameters: {rows: all}}\na: {ros__parameters: {}}", "key 'a' appears twice"),
        (
            "a: {ros__parameters: {contacts: {names: [LF]}, contacts.names: [RF]}}",
            "config.yaml': 'contacts.names' appears twice",
        ),
        ("a: {ros__parameters: {base: 1}}", "'base' is 1; expected text"),
        ("a: {ros__parameters: {base: held}}", "unknown base 'held'"),
        ("a: {ros__parameters: {contacts: {names: LF}}}", "'contacts.names' is 'LF'; expected a"),
        ("a: {ros__parameters: {contacts: {names: [on]}}}", "is [True]; expected a list of names"),
        ("a: {ros__parameters: {contacts: {LF: {frame: LF_FOOT}}}}", "'contacts.names' is empty"),
        *(
            (f"a: {{ros__parameters: {with_contact(inside)}}}", words)
            for inside, words in (
                (", xyz: [0, x, 0]", "expected a list of numbers"),
                (", xyz: [0, on, 0]", "expected a list of numbers"),
                (", xyz: '123'", "expected a list of numbers"),
                (", xyz: [0, '1', 0]", "expected a list of numbers"),
                (", xyz: 1", "LF.xyz' is 1; expected a list of n"),
                (", kind: flat", "unknown contacts.LF.kind 'flat'"),
                (", moving: on", "LF.moving' is True; expected te"),
                (", moving: it", "unknown contacts.LF.moving 'it'"),
                ("T", "unknown frame 'LF_FOOTT'; did you mean"),
                (", knd: surface", "unknown parameter 'contacts.LF.knd'; did you mean "
                 "'contacts.LF.kind'?"),
                ("}, RF: {frame: RF_FOOT", "unknown parameter 'contacts.RF.frame'; did you mean "
                 "'contacts.LF.frame'?"),
            )
        ),
        *(
            (f"a: {{ros__parameters: {with_contact(beside=beside)}}}", words)
            for beside, words in (
                (", algoritm: efpa", "config.yaml': unknown parameter 'algoritm'; did you mean "
                 "'algorithm'? parameters: r"),
                (", max_skw: 1", "did you mean 'max_skew'?"),
                (", orientation: {timeout: -1}", "'orientation.timeout' is -1.0; expected 0 to "
                 "60"),
            )
        ),
        *(
            (f"a: {{ros__parameters: {with_contact(beside=f', orientation: {{{time}}}')}}}",
             f"'orientation.timeout' is {shown}; expected a number")
            for time, shown in (
                ("timeout: abc", "'abc'"), ("timeout: on", "True"), ("timeout: [1]", "[1]"),
                ("timeout: ", "None"), ("timeout: 1_0", "'1_0'"), ("timeout: 1_0.5", "'1_0.5'"),
                ("timeout: 1:30", "'1:30'"), ("timeout: '\u0662'", "'\u0662'"),
            )
        ),
    ],
)  # fmt: skip
def test_parameter_file_refused(capsys, tmp_path: Path, text: str, words: str) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(text)
    assert words in refusal(capsys, *exported(tmp_path, config=config))
    assert not (tmp_path / "quadruped.o").exists()


class BackEnd(NumericAlgorithm):
    """Cannot be traced."""

    name = "numeric"

    def prepare(self, problem):
        raise NotImplementedError


_NODE = f"{CONFIG} --urdf {QUADRUPED} -o k.o"
"""What the parameters of the node say."""
_ALONE = f"{QUADRUPED} -o k.o"
"""What the contacts that follow say."""
_SOLE = f"{_ALONE} --contact LF_FOOT:surface --friction"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (f"{_NODE} --algorithm numeric", "algorithm 'numeric' is a back end: there is no kernel "
         "to"),
        (f"{_NODE} --algorithm rnea", "unknown algorithm 'rnea'"),
        (f"{_NODE} --outputs J,Minv", "unknown output 'Minv'; did you mean 'MinvJT'? outputs: "
         "G, J, "),
        (f"{_NODE} --outputs=", "unknown output ''; outputs: G, J, JdotV, M, MinvJT, a0, dG, h"),
        (f"{_NODE} --name 2nd", "'2nd' is not a C identifier"),
        (f"{_NODE} --name int", "'int' is a keyword or reserved name of C or C++; expected "
         "another"),
        (f"{_NODE} --target no-such", "target 'no-such' is unknown to LLVM"),
        (f"{_NODE} --target avr", "target 'avr': kernels are not known to work on avr; "
         "architectures"),
        (f"{_NODE} --cpu foo", "processor 'foo' is unknown to LLVM for "),
        (f"{_NODE} --target aarch64-linux-gnu --cpu raspberrypi5", "'raspberrypi5' is unknown"),
        (f"{_NODE} -o /no/such/k.o", "'/no/such/k.o' cannot be written: No such file"),
        (f"{_NODE} -o 2nd.o", "\n-o 2nd.o gives no prefix for names in C: add --name PREFIX\n"),
        (f"{_NODE} --header ./k.o", "\n-o and --header are one file, './k.o'; name two\n"),
        (f"{_NODE} --header link.h", "\n-o and --header are one file, 'link.h'; name two\n"),
        *(
            (f"{_NODE} {option} {value}", f"{option} is given, but with --urdf")
            for option, value in (("--contact", "LF_FOOT"), ("--axes", "world"),
                                  ("--base", "fixed"), ("--lock", "LF_HAA=0"))
        ),
        (
            f"missing.yaml --urdf {QUADRUPED}",
            "\nparameter file 'missing.yaml' cannot be read: No such file or directory\n",
        ),
        (f"pipe --urdf {QUADRUPED}", "pipe' cannot be read: Not a regular file"),
        (
            "parameters.yaml",
            "parameters.yaml is a parameter file of the node; add --urdf ROBOT.urdf",
        ),
        (_SOLE, "a surface and has no dimensions"),
        (f"{_SOLE} --dimensions 2", "LENGTH,WIDTH in m"),
        (f"{_ALONE} --contact LF_FOOT --dimensions 1,2", "without --friction"),
        (f"{_ALONE} --contact LF_FOOT --dynamics backward", "function 'backward'"),
    ],
)  # fmt: skip
def test_export_refused(capsys, tmp_path: Path, monkeypatch, options: str, words: str) -> None:
    monkeypatch.setitem(registry._registry, "numeric", BackEnd())
    monkeypatch.chdir(tmp_path)
    Path("link.h").symlink_to("k.o")
    os.mkfifo("pipe")
    assert words in "\n" + refusal(capsys, "export", *options.split())
    assert {path.name for path in tmp_path.iterdir()} == {"link.h", "pipe"}


@pytest.mark.parametrize("name", ["../../evil", "/evil", "a b", "a;b", "", ".", "a\nb", "é", "1a"])
def test_export_refuses_names_that_symbols_cannot_have(
    capsys, tmp_path: Path, monkeypatch, name: str
) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a" / "b")
    told = ["export", QUADRUPED, *FOOT, "-o", "k.o"]
    if name:
        words = refusal(capsys, *told, f"--name={name}")
        assert "is not a C identifier" in words
    for folder in (".", "/"):
        assert "is a folder" in refusal(capsys, *told[:-1], folder)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_export_over_its_inputs_refused(capsys, tmp_path: Path) -> None:
    config, urdf = tmp_path / "robot.yaml", tmp_path / "robot.urdf"
    for mine, theirs in ((config, CONFIG), (urdf, QUADRUPED)):
        mine.write_bytes(Path(theirs).read_bytes())
    for option, path, other in (
        ("-o", config, "CONFIG"), ("--header", config, "CONFIG"),
        ("-o", urdf, "--urdf"), ("--header", urdf, "--urdf"),
    ):  # fmt: skip
        arguments = (*exported(tmp_path, config=config), "--urdf", str(urdf), option, str(path))
        said = refusal(capsys, *arguments)
        assert said == f"{other} and {option} are one file, {str(path)!r}; name two\n"
    assert config.read_bytes() == Path(CONFIG).read_bytes()
    assert urdf.read_bytes() == Path(QUADRUPED).read_bytes()


def test_failed_export_leaves_files_as_they_were(capsys, tmp_path: Path) -> None:
    """An object with the header of another would be called with blocks that are too small."""
    impossible = ("--header", str(tmp_path / "no" / "k.h"))
    assert "cannot be written: No such file" in refusal(capsys, *exported(tmp_path, *impossible))
    assert not list(tmp_path.iterdir())
    before = tmp_path / "quadruped.o"
    before.write_bytes(b"before")
    refusal(capsys, *exported(tmp_path, *impossible))
    assert before.read_bytes() == b"before"
    output(capsys, *exported(tmp_path, "--header", "/dev/null"))
    assert before.read_bytes() != b"before"


@pytest.mark.parametrize("compiler", ["gcc", "g++"])
def test_friction_exported_beside_the_kernel(tmp_path, capsys, compiler):
    needs_programs(compiler)
    # Normals and dimensions come from the contacts of the parameter file.
    config = tmp_path / "node.yaml"
    contacts = (
        "{names: [LF, RH], LF: {frame: LF_FOOT, normal: -x, friction: 0.4}, "
        "RH: {frame: RH_FOOT, kind: surface, dimensions: [0.2, 0.1]}}"
    )
    config.write_text(f"/**: {{ros__parameters: {{contacts: {contacts}}}}}")
    said = output(capsys, *exported(tmp_path, "--friction", config=config))
    assert "LF (point, friction 0.4, normal -x), RH (surface, dimensions (0.2, 0.1))" in said
    header = (tmp_path / "quadruped_forces.h").read_text()
    rows = ConeRows.of(["point", "surface"], 0.0, (0.2, 0.1), ["-x", "z"])
    listed = ", ".join(map(repr, rows.weights.tolist()))
    assert f"quadruped_forces_weights[{len(rows.weights)}] = {{{listed}}};" in header
    assert "quadruped_contact_forces" in said
    program = """#include "quadruped.h"
#include "quadruped_forces.h"
int main(void) { return QUADRUPED_FORCES_CONTACTS == QUADRUPED_CONTACTS &&
  QUADRUPED_FORCES_ROWS == QUADRUPED_ROWS && quadruped_contact_forces != 0 ? 0 : 1; }
"""
    source = tmp_path / ("program.c" if compiler == "gcc" else "program.cpp")
    source.write_text(program)
    done = subprocess.run(
        [compiler, source.name, "quadruped.o", "quadruped_forces.o", "-lm", "-o", "program"],
        cwd=tmp_path, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert subprocess.run([str(tmp_path / "program")], check=False).returncode == 0
    package = (tmp_path / "quadrupedConfig.cmake").read_text()
    assert "/quadruped.o;${CMAKE_CURRENT_LIST_DIR}/quadruped_forces.o" in package


def test_cones_reported_with_contacts():
    """Where they differ from their defaults."""
    contacts = [
        Contact("LF", "LF_FOOT", friction=0.4, normal="-x"),
        Contact("RH", "RH_FOOT", "surface", dimensions=(0.2, 0.1)),
    ]
    point, surface = about(Problem(ROBOT, contacts))["contacts"]
    assert (point["friction"], point["normal"], "dimensions" in point) == (0.4, "-x", False)
    assert surface["dimensions"] == (0.2, 0.1) and "friction" not in surface


def test_dynamics_exported_beside_the_kernel(tmp_path, capsys):
    needs_programs("gcc")
    said = output(
        capsys, "export", QUADRUPED, "--contact", "LF_FOOT", "-o", str(tmp_path / "robot.o"),
        "--dynamics", "inverse,forward:lagrange",
    )  # fmt: skip
    assert "robot_dynamics.h" in said
    (tmp_path / "program.c").write_text("""#include "robot.h"
#include "robot_dynamics.h"
int main(void) { return ROBOT_INVERSE_OUT_TORQUES_SIZE == 18 && ROBOT_IN_SIZE == 12 &&
  robot_inverse != 0 && robot_forward_lagrange != 0 && robot_kernel != 0 ? 0 : 1; }
""")
    subprocess.run(
        ["gcc", "program.c", "robot.o", "robot_dynamics.o", "-lm", "-o", "program"],
        cwd=tmp_path, check=True,
    )  # fmt: skip
    assert subprocess.run([str(tmp_path / "program")], check=False).returncode == 0
    assert "/robot_dynamics.o" in (tmp_path / "robotConfig.cmake").read_text()
