"""LLVM: what is said where it is missing or too old, what it refuses, where the code runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hanging import HANG_S

import delassus
from delassus.compiler.codegen.llvm_text import Writer, literal, pointer, splat, vector_type
from delassus.compiler.codegen.target import host_identity
from delassus.compiler.runtime import jit
from delassus.compiler.runtime.jit import LoadedCode, compile_ir
from delassus.errors import CompilerError

ADD = "define double @add(double %a, double %b) {\n  %c = fadd double %a, %b\n  ret double %c\n}"


def test_compile_load_and_find() -> None:
    import ctypes

    code = LoadedCode(compile_ir(ADD))
    add = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_double)(code.address("add"))
    assert add(1.5, 2.25) == 3.75
    with pytest.raises(CompilerError, match="compiled code does not define 'subtract'"):
        code.address("subtract")


@pytest.mark.parametrize("ir", ["nonsense", ADD.replace("ret double %c", "ret i32 %c")])
def test_ir_that_llvm_refuses(ir: str) -> None:
    with pytest.raises(CompilerError, match="LLVM refused the generated code: "):
        compile_ir(ir)


@pytest.mark.parametrize("code", [b"", b"garbage", bytes(1000)])
def test_code_that_is_no_object_file(code: bytes) -> None:
    with pytest.raises(CompilerError, match="cannot be loaded: not an object file"):
        LoadedCode(code)


def test_the_identity_names_processor_and_versions() -> None:
    import llvmlite
    import llvmlite.binding

    identity = host_identity()
    for part in (
        f"llvmlite {llvmlite.__version__}",
        llvmlite.binding.get_host_cpu_name(),
        jit.host_features(),
    ):
        assert part in identity
    assert "+prefer-256-bit" not in identity


def import_with(folder: Path, llvmlite: str | None) -> subprocess.CompletedProcess[str]:
    """Import the package where llvmlite is of this version, or is missing."""
    if llvmlite is None:
        block = "import sys; sys.modules['llvmlite'] = None\n"
    else:
        block = ""
        (folder / "llvmlite" / "binding").mkdir(parents=True)
        (folder / "llvmlite" / "__init__.py").write_text(f"__version__ = {llvmlite!r}\n")
        (folder / "llvmlite" / "binding" / "__init__.py").write_text("")
    paths = [str(folder), str(Path(delassus.__file__).parents[1])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    return subprocess.run(
        [sys.executable, "-c", f"{block}import delassus"],
        env=environment, capture_output=True, text=True, timeout=HANG_S,
    )  # fmt: skip


def test_without_llvmlite_the_import_says_how_to_get_it(tmp_path: Path) -> None:
    result = import_with(tmp_path, None)
    assert result.returncode != 0
    last = result.stderr.strip().splitlines()[-1]
    assert last == (
        "ImportError: delassus needs llvmlite to compile kernels: pip install "
        "'llvmlite>=0.41' (Debian and Ubuntu: sudo apt install python3-llvmlite)"
    )


@pytest.mark.parametrize("version", ["0.40.1", "0.9.0", "0.39.1+debian"])
def test_an_old_llvmlite_is_named_with_the_way_out(tmp_path: Path, version: str) -> None:
    result = import_with(tmp_path, version)
    assert result.returncode != 0
    last = result.stderr.strip().splitlines()[-1]
    assert last == (
        f"ImportError: delassus needs llvmlite 0.41 or newer, found {version}: "
        "pip install --upgrade 'llvmlite>=0.41'"
    )


# The IR writer.


def test_literals_are_exact() -> None:
    assert literal(1.0) == "0x3FF0000000000000"
    assert literal(-0.0) == "0x8000000000000000"
    assert literal(0.1) == "0x3FB999999999999A"
    assert literal(5e-324) == "0x0000000000000001"


def test_types() -> None:
    assert vector_type(1) == "double"
    assert vector_type(2) == "<2 x double>"
    assert vector_type(4, "i64") == "<4 x i64>"
    assert splat("1", 1, "i64") == "1"
    assert splat("0", 2, "i64") == "<i64 0, i64 0>"


def test_pointer_types_follow_the_llvm_version(monkeypatch) -> None:
    from delassus.compiler.codegen import llvm_text as ir

    for version, expected in (((14, 0, 6), "i64*"), ((15, 0, 7), "i64*"), ((20, 1, 8), "ptr")):
        monkeypatch.setattr(ir, "LLVM_VERSION", version)
        assert pointer("i64") == expected


def test_results_have_names_of_their_own() -> None:
    w = Writer()
    first = w.let("fadd double 0.0, 0.0")
    second = w.let(f"fneg double {first}")
    w.do(f"ret double {second}")
    assert first != second
    assert [line.strip() for line in w.lines] == [
        f"{first} = fadd double 0.0, 0.0",
        f"{second} = fneg double {first}",
        f"ret double {second}",
    ]


def test_joined_objects_that_are_damaged_are_refused() -> None:
    whole = jit.joined([jit.compile_ir(ADD), jit.compile_ir(ADD.replace("@add", "@other"))])
    assert jit.LoadedCode(whole).address("other")
    for code in (whole[:-1], whole[:20], jit.joined([whole, whole])):
        with pytest.raises(CompilerError, match="compiled code cannot be loaded"):
            jit.LoadedCode(code)
