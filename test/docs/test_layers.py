"""Data goes one way: which modules of the package may import which, also inside of functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import delassus
import delassus_ros

PACKAGES = tuple(Path(package.__path__[0]) for package in (delassus, delassus_ros))
LIBRARY = (
    "version", "recent", "visible", "errors", "arguments",
    "scalars", "model", "contacts", "outputs", "problem", "samples", "programs",
    "rbda", "algorithms",
    "compiler", "contact_forces", "task_inertia", "solver", "gradients", "doors", "closure",
    "dynamics", "measured", "conditioning", "rotor_report", "testing", "drawing", "robots",
    "tables", "cli",)  # fmt: skip
"""Folders and modules of the library, each of which imports nothing of those behind it."""
COMPONENT = (
    "ros", "inputs", "node", "adapter", "estimator", "monitor", "markers", "recordings", "sim",
    "verbs", "commands",
)  # fmt: skip
"""Folders and modules of the ROS component, likewise."""
LAYERS = (
    *(f"delassus.{name}" for name in LIBRARY),
    *(f"delassus_ros.{name}" for name in COMPONENT),
)
ROOMS = {
    "delassus.compiler": (
        "ir", "passes", "codegen", "runtime", "cache",
        "function", "loops", "newton_loop", "newton", "build", "header", "export", "worker",
    ),
    "delassus_ros.node": (
        "contact_parameters", "parameters", "matrix", "forces", "dynamics", "present_contacts",
        "tick", "computation", "declared_parameters", "refusals", "on_demand", "services",
        "horizon", "change", "diagnostics", "configuration", "delassus_node", "main",
    ),
}  # fmt: skip
"""Per folder of the package the order of its folders and modules, by the same rule."""
ORDERS = (LAYERS, *(tuple(f"{room}.{name}" for name in order) for room, order in ROOMS.items()))
ROS = frozenset(
    "rclpy delassus_msgs delassus_msgs_py builtin_interfaces diagnostic_msgs geometry_msgs "
    "lifecycle_msgs nav_msgs rcl_interfaces rosgraph_msgs sensor_msgs std_msgs visualization_msgs "
    "ament_index_python launch rosbag2_py".split()
)
"""Packages of ROS."""
NEVER = (
    ("rbda", "algorithms"), ("inputs", "compiler"), ("node", "sim"), ("cli", "testing"),
    ("compiler", "closure"), ("compiler", "conditioning"), ("scalars", "rbda"),
    ("ros", "model"), ("ros", "solver"), ("ros", "conditioning"), ("inputs", "node"),
    ("adapter", "node"), ("estimator", "node"), ("monitor", "node"), ("sim", "node"),
)  # fmt: skip
"""What would be easy to do, and would turn the house upside down."""


def _imported(tree: ast.AST) -> Iterator[str]:
    """Yield the full names that a module imports when it runs, inside of functions too."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        else:
            yield from _imported(node)


@cache
def _imports() -> dict[str, frozenset[str]]:
    """Return per module the full names that it imports.

    The syntax trees are let go: each of the many full collections of garbage in a run of all
    tests would look at them.
    """
    found = {}
    for path in (path for folder in PACKAGES for path in folder.rglob("*.py")):
        parts = path.relative_to(PACKAGES[0].parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found[name] = frozenset(_imported(tree))
    return found


def _needs(module: str) -> set[str]:
    """Return the modules of the package that a module imports; of a package, its __init__."""
    imports = _imports()
    names = {name if name in imports else name.rpartition(".")[0] for name in imports[module]}
    return names & imports.keys() - {module}


def _full(name: str) -> str:
    """Return the full name of a folder or module of one of the packages."""
    return f"delassus.{name}" if name in LIBRARY else f"delassus_ros.{name}"


def _below(module: str, place: str) -> bool:
    return f"{module}.".startswith(f"{place}.")


def test_no_module_imports_itself_by_way_of_others() -> None:
    try:
        TopologicalSorter({module: _needs(module) for module in _imports()}).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_everything_has_its_layer() -> None:
    found = {".".join(module.split(".")[:2]) for module in _imports() if "." in module}
    assert sorted(LAYERS) == sorted(found)


@pytest.mark.parametrize("room", ROOMS)
def test_everything_in_a_room_has_its_layer(room: str) -> None:
    start = f"{room}."
    modules = [module for module in _imports() if module.startswith(start)]
    inside = {module.removeprefix(start).partition(".")[0] for module in modules}
    assert sorted(ROOMS[room]) == sorted(inside)


@pytest.mark.parametrize("layer", [layer for order in ORDERS for layer in order])
def test_a_layer_imports_nothing_of_those_above_it(layer: str) -> None:
    order = next(order for order in ORDERS if layer in order)
    above = order[order.index(layer) + 1 :]
    own = [module for module in _imports() if _below(module, layer)]
    assert own
    wrong = [
        f"{module} imports {needed}"
        for module in own
        for needed in _needs(module)
        if any(_below(needed, other) for other in above)
    ]
    assert not wrong


def test_the_library_imports_nothing_of_ros_and_nothing_of_the_component() -> None:
    packages = {name.partition(".")[0] for names in _imports().values() for name in names}
    assert {"rclpy", "delassus_msgs", "sensor_msgs"} <= packages
    assert not {
        (module, name)
        for module, names in _imports().items()
        for name in names
        if _below(module, "delassus") and name.partition(".")[0] in {*ROS, "delassus_ros"}
    }


def test_the_component_hands_the_names_of_the_library_on() -> None:
    assert delassus_ros.__all__ == delassus.__all__ and "Robot" in delassus.__all__
    for name in delassus.__all__:
        assert getattr(delassus_ros, name) is getattr(delassus, name)


@pytest.mark.parametrize(("who", "what"), NEVER)
def test_what_must_never_be(who: str, what: str) -> None:
    who, what = _full(who), _full(what)
    own = [module for module in _imports() if _below(module, who)]
    assert own and any(_below(module, what) for module in _imports())
    wrong = [
        f"{module} imports {needed}"
        for module in own
        for needed in _needs(module)
        if _below(needed, what)
    ]
    assert not wrong


def test_algorithms_do_not_know_each_other_but_for_auto() -> None:
    names = {module for module in _imports() if _below(module, "delassus.algorithms")}
    # What they share.
    shared = ("", ".registry", ".counting", ".pinocchio_model")
    names -= {f"delassus.algorithms{name}" for name in shared}
    # The approximation is another algorithm on another tree.
    knowing = {"delassus.algorithms.auto", "delassus.algorithms.reflected_inertia"}
    assert not {
        (module, needed) for module in names - knowing for needed in _needs(module) & names
    }
