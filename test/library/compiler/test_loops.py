"""The subset of Python with loops: machine code does what Python does, and refusals are named."""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from delassus.compiler.codegen.loops import modules_ir
from delassus.compiler.loops import compiled_loops
from delassus.errors import CompilerError

_HEAD = "from math import isfinite, sqrt\nLIMIT = 3\n"


def _module(folder: Path, text: str) -> ModuleType:
    path = folder / f"subset_{abs(hash(text))}.py"
    path.write_text(f"from __future__ import annotations\n{_HEAD}{text}", encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


_PROGRAMS = {
    "loops": """
def run(n: int, x: Doubles) -> int:
    count = 0
    for i in range(n - 1, -1, -1):
        if x[i] < 0.0:
            continue
        elif i > LIMIT and x[i] > 0.9:
            break
        x[i] += sqrt(x[i]) / float(i + 1)
        count += 1
    return count
""",
    "calls": """
def scaled(x: Doubles, by: float) -> None:
    x[0] *= by

def run(n: int, x: Doubles) -> int:
    steps = 0
    while steps < 100 and isfinite(x[n - 1]):
        for i in range(1, n, 2):
            scaled(x[i:], 1.5 if x[i] < 10.0 else -0.5)
        steps += 1
        if not (x[1] < 50.0 or steps < LIMIT):
            return -steps
    return steps
""",
    "choices": """
def run(n: int, x: Doubles) -> int:
    low, high = 0.0, 0.0
    for i in range(n):
        low, high = min(low, x[i]), max(high, abs(x[i]))
        x[i] = -x[i] if 0.0 < x[i] <= 0.5 else x[i] * 2
    x[0] = low
    x[1] = high
    return int(high * 100.0) - min(n, LIMIT)
""",
}


@pytest.mark.parametrize("name", _PROGRAMS)
def test_machine_code_does_what_python_does(name: str, tmp_path: Path) -> None:
    module: Any = _module(tmp_path, _PROGRAMS[name])

    def sample(calls: Any, seed: int) -> bytes:
        x = np.random.default_rng(seed).uniform(-1, 1, 9)
        return bytes([calls["run"](9, x.ctypes.data) & 255]) + x.tobytes()

    code = compiled_loops([module], {"run": [ctypes.c_int64, ctypes.c_void_p]}, sample)
    for seed in range(20):
        ours = np.random.default_rng(seed).uniform(-1, 1, 9)
        theirs = ours.copy()
        assert code.calls["run"](9, ours.ctypes.data) == module.run(9, theirs)
        np.testing.assert_allclose(ours, theirs, rtol=1e-14)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("x = [1.0]", "'\\[1.0\\]': is no expression of the subset"),
        ("x = unknown", "'unknown': is neither a variable that is set nor a number"),
        ("for x in (1, 2):\n        pass", "only ranges are iterated over"),
        ("x = 1\n    x = 2.0", "'x': is double, expected i64"),
        ("x = 2 ** 3", "is no operation of the subset"),
        ("if n:\n        return 1", "'n': is no truth value"),
        ("return 1\n    n = 2", "'n = 2': is never reached"),
        ("x = hash(n)", "is no function of the subset"),
        ("x = run()", "expected 1 arguments by position"),
        ("with n:\n        pass", "is no statement of the subset"),
    ],
)
def test_what_is_not_in_the_subset_is_named(body: str, words: str, tmp_path: Path) -> None:
    module = _module(tmp_path, f"def run(n: int) -> int:\n    {body}\n    return 0\n")
    with pytest.raises(CompilerError, match=words):
        modules_ir([module], ["run"])


def test_a_parameter_without_a_type_is_named(tmp_path: Path) -> None:
    module = _module(tmp_path, "def run(n: str) -> int:\n    return 0\n")
    with pytest.raises(CompilerError, match="annotation 'str'; expected one of float, int"):
        modules_ir([module], ["run"])
