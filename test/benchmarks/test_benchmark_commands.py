"""Each benchmark explains itself with ``--help``, and those that write a page say where."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted(
    file.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__main__")
    for file in ROOT.glob("benchmarks/**/*.py")
    if '__name__ == "__main__"' in file.read_text(encoding="utf-8")
)
NOT_WRITING = {
    f"benchmarks.{name}" for name in ("claims", "startup", "friction", "gradients", "pages")
}
"""Benchmarks that print, and what fills pages anew."""
SAMPLE = "benchmarks.operation_counts"
"""Benchmark that `make test` asks for help; each of them imports for a second or two."""


def help_of(module: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", module, "--help"]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


@pytest.mark.parametrize(
    "module", [m if m == SAMPLE else pytest.param(m, marks=pytest.mark.slow) for m in MODULES]
)
def test_help_is_printed_and_nothing_is_run(module: str) -> None:
    before = {file: file.stat().st_mtime_ns for file in (ROOT / "docs").rglob("*.md")}
    found = help_of(module)
    if missing := re.search(r"No module named '(\w+)'", found.stderr):
        pytest.skip(f"{missing[1]} is not installed")
    assert found.returncode == 0, found.stderr
    assert "usage:" in found.stdout
    assert ("--output" in found.stdout) == (module not in NOT_WRITING)
    assert before == {file: file.stat().st_mtime_ns for file in (ROOT / "docs").rglob("*.md")}


def test_a_benchmark_without_its_file_says_so(tmp_path: Path, monkeypatch, capsys) -> None:
    from benchmarks import operation_counts

    monkeypatch.setattr(operation_counts, "RECOUNT", tmp_path / "operation_counts.json")
    monkeypatch.setattr(sys, "argv", ["operation_counts", "--output", str(tmp_path / "page.md")])
    with pytest.raises(SystemExit) as left:
        operation_counts.main()
    assert left.value.code == 2 and not (tmp_path / "page.md").exists()
    assert "a folder that is not part of this repository" in capsys.readouterr().err
