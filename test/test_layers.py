"""Data goes one way: which modules of the package may import which."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import delassus_ros

PACKAGE = Path(delassus_ros.__file__).parent
LAYERS = (
    "version", "errors", "stopping", "arguments",
    "model", "contacts", "input_arrays", "problem", "placements", "inputs", "random_inputs",
    "scalars", "rbda", "pinocchio_model", "algorithms", "rotor_report",
    "compiler", "bound_solver", "batch", "dynamics",
    "closure",
    "solver", "structural_rank", "eigenvalue_estimate", "condition_settings", "conditioning",
    "testing",
    "node",
    "sim",
    "cli", "programs",
)  # fmt: skip
"""The folders and the modules beside them, each of which imports nothing of those behind it."""


def _imported(tree: ast.AST, inside: bool) -> Iterator[str]:
    """Yield the full names that a module imports; inside of functions too if asked to."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif inside or not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _imported(node, inside)


@cache
def _imports() -> dict[str, tuple[frozenset[str], frozenset[str]]]:
    """Return per module the full names that it imports: outside of functions, and all.

    The syntax trees are let go: each of the many full collections of garbage in a run of all
    tests would look at them.
    """
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = ("delassus_ros", *path.relative_to(PACKAGE).with_suffix("").parts)
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found[name] = frozenset(_imported(tree, False)), frozenset(_imported(tree, True))
    return found


def _needs(module: str, inside: bool) -> set[str]:
    """Return the modules of the package that a module imports; of a package, its __init__."""
    imports = _imports()
    imported = imports[module][inside]
    names = {name if name in imports else name.rpartition(".")[0] for name in imported}
    return names & imports.keys() - {module}


def test_no_module_imports_itself_by_way_of_others() -> None:
    needs = {module: _needs(module, inside=False) for module in _imports()}
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_everything_has_its_layer() -> None:
    found = {module.split(".")[1] for module in _imports() if "." in module}
    assert sorted(LAYERS) == sorted(found)


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_imports_nothing_of_those_above_it(layer: str) -> None:
    above = LAYERS[LAYERS.index(layer) + 1 :]
    own = [module for module in _imports() if module.split(".")[1:2] == [layer]]
    assert own
    wrong = [
        f"{module} imports {needed}"
        for module in own
        for needed in _needs(module, inside=True)
        if needed.split(".")[1:2] and needed.split(".")[1] in above
    ]
    assert not wrong
