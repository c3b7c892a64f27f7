"""An exported kernel: a C++ program links it and gets the same numbers."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
import robots
from c_programs import built
from small import tiny

from delassus import Contact, DelassusSolver, Problem, Robot, algorithms
from delassus.compiler.export import Target, export
from delassus.compiler.runtime import processor
from delassus.errors import AlgorithmError, InputError
from delassus.testing import random_problem

EXAMPLE = Path(__file__).parents[3] / "examples" / "cpp" / "controller.cpp"


@pytest.fixture(scope="module")
def problem():
    robot = Robot.from_urdf(robots.quadruped())
    return Problem(robot, [Contact(leg, f"{leg}_FOOT") for leg in robots.LEGS])


def build(problem, folder: Path, algorithm: str = "pv_osimr") -> Path:
    exported = export(problem, algorithms.get(algorithm), "quadruped")
    return built(folder, EXAMPLE.read_text(), "g++", ("-std=c++17",), quadruped=exported)


@pytest.fixture(name="program", scope="module")
def make_program(problem, tmp_path_factory) -> Path:
    return build(problem, tmp_path_factory.mktemp("controller"))


@pytest.mark.parametrize("active", [(), ("LF", "RH")])
def test_cpp_consumer_prints_the_solver_s_matrix(problem, program, active):
    Q = np.random.default_rng(0).uniform(-2, 2, (3, 12))
    Q[1] += 9e5  # sums of two are beyond the fast sines and cosines
    lines = "\n".join(" ".join(repr(float(value)) for value in q) for q in Q)
    done = subprocess.run(
        [str(program), *active], input=lines, capture_output=True, text=True, check=True
    )
    printed = np.array([[float(v) for v in line.split()] for line in done.stdout.splitlines()])
    solver = DelassusSolver(problem)
    expected = np.vstack([solver.solve(q, active or None).matrix for q in Q])
    # The exporter compiles the same program: the very same bits.
    assert np.array_equal(printed, expected)


@pytest.mark.parametrize(("position", "status"), [("inf", 2), ("nan", 2), ("1e15", 6)])
def test_cpp_consumer_sees_a_failed_computation(program, position, status):
    given = " ".join([position, *["0.1"] * 11])
    done = subprocess.run([str(program)], input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"status {status}" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "given", "said"),
    [
        (("LF", "LX"), "0 " * 12, "unknown contact 'LX'; contacts: LF RF LH RH\n"),
        ((), "0 0 a" + " 0" * 9, "joint position 3: 'a' is no number\n"),
        ((), "0 1.5e" + " 0" * 10, "joint position 2: '1.5e' is no number\n"),
        ((), "0 0 0", "expected 12 joint positions, got 3\n"),
    ],
)
def test_cpp_consumer_refuses_what_it_does_not_know(program, arguments, given, said):
    done = subprocess.run(
        [str(program), *arguments], input=given, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


@pytest.mark.parametrize(
    ("target", "machine"),
    [
        (Target("x86_64-linux-gnu"), 62),
        (Target("x86_64-linux-gnu", "x86-64-v3"), 62),
        (Target("aarch64-linux-gnu", "cortex-a76"), 183),
        (Target("riscv64-linux-gnu"), 243),
    ],
)
def test_other_processors_get_an_object_of_their_own(problem, target, machine):
    code = export(problem, algorithms.get("pv_osimr"), "robot", target).object_file
    assert code[:4] == b"\x7fELF"
    assert int.from_bytes(code[18:20], "little") == machine
    assert int.from_bytes(code[16:18], "little") == 1  # relocatable


def elf(code: bytes) -> tuple[int, set[str]]:
    """Return the flags of an ELF file in little-endian order, and the symbols it lacks."""
    wide = code[4] == 2
    first, flags = struct.unpack_from("<QI" if wide else "<II", code, 40 if wide else 32)
    size, count = struct.unpack_from("<HH", code, 58 if wide else 46)
    section = "<IIQQQQIIQQ" if wide else "<IIIIIIIIII"
    sections = [struct.unpack_from(section, code, first + i * size) for i in range(count)]
    lacking = set()
    for _, kind, _, _, start, length, link, _, _, entry in sections:
        if kind != 2:  # no table of symbols
            continue
        for at in range(start, start + length, entry):
            name = sections[link][4] + struct.unpack_from("<I", code, at)[0]
            if struct.unpack_from("<H", code, at + (6 if wide else 14))[0] == 0:
                lacking.add(code[name : code.index(b"\0", name)].decode())
    return flags, lacking - {""}


LINKER_S = {
    "_GLOBAL_OFFSET_TABLE_", ".TOC.", "__aeabi_unwind_cpp_pr0", "__aeabi_unwind_cpp_pr1",
}  # fmt: skip
"""Symbols that linkers bring along."""


@pytest.mark.parametrize(
    "triple",
    [
        "x86_64-linux-gnu", "i686-linux-gnu", "aarch64-linux-gnu", "aarch64-none-elf",
        "arm-linux-gnueabihf", "arm-unknown-linux-gnueabihf", "armv6-linux-gnueabihf",
        "armv7-linux-gnueabihf", "riscv64-linux-gnu", "riscv64-unknown-linux-gnu",
        "riscv32-linux-gnu", "powerpc64le-linux-gnu",
    ],
)  # fmt: skip
def test_objects_need_only_sine_and_cosine(triple):
    code = export(tiny(), algorithms.get("pv_osimr"), "robot", Target(triple)).object_file
    flags, lacking = elf(code)
    assert lacking - LINKER_S == {"sin", "cos"}
    if triple.startswith("riscv"):
        assert flags & 6 == 4, "doubles in floating-point registers"


def test_features_that_are_named_are_besides_those_of_the_convention():
    target = Target("arm-linux-gnueabihf", features="+vfp3")
    assert target.resolved().features == "+vfp2,+vfp3"
    code = export(tiny(), algorithms.get("pv_osimr"), "robot", target).object_file
    assert elf(code)[1] - LINKER_S == {"sin", "cos"}
    assert Target("arm-linux-gnueabihf", "cortex-a9", "+neon").resolved().features == "+neon"


@pytest.mark.parametrize(
    "triple", ["arm-linux-gnueabihf", "armv7-linux-gnueabihf", "thumbv7em-none-eabihf"]
)
def test_arm_passes_doubles_as_the_target_says(triple, tmp_path):
    if shutil.which("readelf") is None:
        pytest.skip("readelf is not installed")
    code = export(tiny(), algorithms.get("pv_osimr"), "robot", Target(triple)).object_file
    (tmp_path / "robot.o").write_bytes(code)
    said = subprocess.run(
        ["readelf", "-A", str(tmp_path / "robot.o")], capture_output=True, text=True, check=True
    ).stdout
    assert "Tag_ABI_VFP_args: VFP registers" in said
    single = "Tag_ABI_HardFP_use: SP only" in said
    assert single == triple.startswith("thumb"), "a microcontroller may have nothing else"


def test_microcontrollers_without_doubles_use_the_compiler_s_library():
    target = Target("thumbv7em-none-eabihf")
    lacking = elf(export(tiny(), algorithms.get("pv_osimr"), "robot", target).object_file)[1]
    assert "__aeabi_dmul" in lacking
    target = Target("thumbv7em-none-eabihf", "cortex-m7")
    lacking = elf(export(tiny(), algorithms.get("pv_osimr"), "robot", target).object_file)[1]
    assert lacking - LINKER_S == {"sin", "cos"}


@pytest.mark.parametrize("triple", ["avr", "nvptx64", "bpf", "amdgcn", "ve", "s390x-linux-gnu"])
def test_architectures_that_are_not_known_to_work_are_refused(triple):
    words = "kernels are not known to work on .*; architectures: aarch64, arm, ppc64le, riscv32, "
    for target in (Target(triple), Target(triple, "generic")):
        with pytest.raises(InputError, match=f"target '{triple}': {words}"):
            export(tiny(), algorithms.get("pv_osimr"), "robot", target)


def test_wasm_and_other_formats_of_object_files():
    for triple, magic in (
        ("wasm32-unknown-unknown", b"\0asm"), ("x86_64-pc-windows-gnu", b"d\x86"),
        ("arm64-apple-macosx", b"\xcf\xfa\xed\xfe"),
    ):  # fmt: skip
        code = export(tiny(), algorithms.get("pv_osimr"), "robot", Target(triple)).object_file
        assert code.startswith(magic)


def test_header_compiles_as_c_and_lists_the_ports(problem, tmp_path):
    exported = export(problem, algorithms.get("pv_osimr"), "my_robot")
    for line in (
        "MY_ROBOT_IN_Q_SIZE = 12,", "MY_ROBOT_OUT_G_SIZE = 144,", "MY_ROBOT_ROWS = 12,",
        "int32_t my_robot_kernel(const double *in, double *out, double *work);",
    ):  # fmt: skip
        assert line in exported.header
    assert "MY_ROBOT_NOT_FINITE = 2," in exported.header
    assert "FAILED" not in exported.header, "a status of back ends"
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("gcc is not installed")
    (tmp_path / "k.h").write_text(exported.header)
    (tmp_path / "k.c").write_text('#include "k.h"\n#include "k.h"\nint main(void) { return 0; }\n')
    subprocess.run(
        [compiler, "-std=c99", "-pedantic-errors", "-c", "k.c", "-o", "k.o"],
        cwd=tmp_path, check=True,
    )  # fmt: skip


def test_names_of_the_robot_cannot_break_the_header(tmp_path):
    """Names come from a URDF: quotes, comment ends and backslashes stay inert."""
    problem = random_problem(3)
    robot = problem.robot
    hostile = Robot('x"; */ #error "', robot.joints, robot.bodies, list(robot.frames.values()))
    contacts = [Contact('c"\\*/', c.frame, "point") for c in problem.contacts[:1]]
    header = export(Problem(hostile, contacts), algorithms.get("pv_osimr"), "r").header
    (tmp_path / "k.c").write_text(header)
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("gcc is not installed")
    subprocess.run([compiler, "-std=c99", "-c", "k.c", "-o", "k.o"], cwd=tmp_path, check=True)


def test_bad_requests_are_named(problem):
    algorithm = algorithms.get("pv_osimr")
    for name in ("int", "while", "main", "class", "_Bool", "__robot"):
        with pytest.raises(InputError, match=f"{name}' is a keyword or reserved name of C or C"):
            export(problem, "pv_osimr", name)
    with pytest.raises(InputError, match="'2nd robot' is not a C identifier"):
        export(problem, algorithm, "2nd robot")
    with pytest.raises(InputError, match="target 'no-such' is unknown to LLVM"):
        export(problem, algorithm, "robot", Target("no-such"))


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (Target(cpu="foo"), r"processor 'foo' is unknown to LLVM for \S+; e\.g\. \w+.*, .*; "
         "leave cpu out for the oldest of the target, or this machine's where no target is named"),
        (Target("aarch64-linux-gnu", "raspberrypi5"), "'raspberrypi5' is unknown to LLVM for aar"),
        (Target("aarch64-linux-gnu", "cortex-a67"), r"e\.g\. (\S+, )*cortex-a76[,;]"),
        (Target("aarch64-linux-gnu", "help"), "'help' is unknown to LLVM"),
        (Target("aarch64-linux-gnu", "a 76"), "processor 'a 76' is no name"),
        (Target("no-such", "foo"), "target 'no-such' is unknown to LLVM"),
        (Target("x86_64-linux-gnu", "pentium"), "LLVM cannot compile for x86_64-linux-gnu, "
         "processor 'pentium', features '': LLVM ERROR: 64-bit code requested"),
        (Target("aarch64-linux-gnu", features="+neon,+foo"), r"feature '\+foo' is unknown to LLVM "
         "for aarch64-linux-gnu"),
        (Target(features="avx2"), r"features 'avx2' are not of the form '\+avx2,-fma'"),
        (Target(features="+help"), r"features '\+help' are not of the form"),
    ],
)  # fmt: skip
def test_processors_that_llvm_lacks_are_named(problem, target, words):
    with pytest.raises(InputError, match=words):
        export(problem, algorithms.get("pv_osimr"), "robot", target)


def test_a_processor_is_asked_for_only_where_one_is_named(problem, monkeypatch):
    monkeypatch.setattr(processor, "_ask", None)  # a child would now fail
    for target in (None, Target(), Target("aarch64-linux-gnu")):
        export(problem, algorithms.get("pv_osimr"), "robot", target)


def test_an_exported_kernel_needs_nothing_of_python(problem):
    """Under the name that kernels have in this process, too."""
    for name in ("delassus", "robot"):
        code = export(problem, algorithms.get("pv_osimr"), name).object_file
        assert f"{name}_kernel".encode() in code
        assert b"Py" not in code


@pytest.mark.needs("pinocchio")
def test_a_numeric_back_end_has_no_code(problem):
    with pytest.raises(AlgorithmError, match="'pinocchio' is a back end: there is no "):
        export(problem, algorithms.get("pinocchio"), "robot")


def test_a_refusing_algorithm_says_why(problem, monkeypatch):
    algorithm = algorithms.get("pv_osimr")
    monkeypatch.setattr(type(algorithm), "supports", lambda self, problem: "too warm")
    with pytest.raises(AlgorithmError, match="too warm"):
        export(problem, algorithm, "robot")
