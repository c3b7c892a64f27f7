"""Names in backticks on the pages are names of the project: of its API, programs and files.

Each part of a name is held against the sources: identifiers against their words, attributes of
public classes against the classes, files, options, verbs and targets against those that exist.
Texts that look like no name, such as a line of a log, are left to the tests of their page.
"""

from __future__ import annotations

import ast
import fnmatch
import inspect
import pkgutil
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import delassus
from delassus import closure, dynamics, model
from delassus_ros.node.contact_parameters import CONTACT_PARAMETERS
from delassus_ros.node.parameters import PARAMETERS
from delassus_ros.verbs import main as cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "examples" / "README.md",
    *sorted((ROOT / "docs").glob("**/*.md")),
]  # fmt: skip
SOURCES = (
    "delassus", "delassus_ros", "msg", "benchmarks", "config", "examples", "launch",
    "requirements", "scripts", "tools",
)  # fmt: skip
FOREIGN = {
    "--base-paths": "colcon", "--ros-args": "ROS", "--enclave": "ROS",
    "--show-args": "ros2 launch", "SetRemap": "launch_ros", "example_8": "ros2_control_demos",
    "--system-site-packages": "venv", "delassus/G.LF.0.RF.2": "a state interface of ros2_control",
    "delassus/a0.LF.0": "the same", "delassus/f.LF.0": "the same",
    "Enforce": "ROS's security", "ROS_SECURITY_ENCLAVE_OVERRIDE": "ROS's security",
    "MultiThreadedExecutor": "rclpy", "open_port_internal": "Fast DDS", "PATH": "the shell",
    "composition_interfaces": "ROS", "foxglove_bridge": "ROS", "joint_state_publisher_gui": "ROS",
    "rviz2": "ROS", "meta/info.json": "LeRobot's data sets",
}  # fmt: skip
"""Names that are not the project's and that its sources do not use, with their owner."""
BLOCK = re.compile(r"^ *(```+).*?^ *\1", re.DOTALL | re.MULTILINE)
CLASSES = {
    name: kind
    for package in (delassus, closure, dynamics, model)
    for name, kind in vars(package).items()
    if isinstance(kind, type)
}
VERBS = cli._parser()._subparsers._group_actions[0].choices


@cache
def texts() -> dict[Path, str]:
    """Return the text of the sources and of the files at the root, by path."""
    files = [file for folder in SOURCES for file in (ROOT / folder).rglob("*")]
    found = {}
    for file in (*files, *(file for file in ROOT.iterdir() if file.suffix != ".md")):
        if file.is_file() and file.suffix not in (".pyc", ".png", ".gif"):
            found[file] = file.read_text(encoding="utf-8", errors="replace")
    return found


@cache
def words() -> frozenset[str]:
    """Return every word of the sources and of their paths."""
    return frozenset(re.findall(r"\w+", "\n".join((*texts().values(), *map(str, texts())))))


@cache
def paths() -> tuple[str, ...]:
    """Return the files and folders of the repository, each with a slash in front."""
    every = (path for name in (*SOURCES, "test", "docs") for path in (ROOT / name).rglob("*"))
    return tuple(f"/{path.relative_to(ROOT)}" for path in (*every, *ROOT.iterdir()))


def parts(node: ast.AST) -> Iterator[str]:
    """Yield the identifiers of an expression; wrong attributes of public classes as ``A.b``."""
    for each in ast.walk(node):
        if isinstance(each, ast.keyword) and each.arg:
            yield each.arg
        elif isinstance(each, ast.Attribute):
            kinds = classes_of(each.value) if isinstance(each.value, ast.Name) else []
            known = not kinds or any(each.attr in attributes(kind) for kind in kinds)
            yield each.attr if known else f"{kinds[0].__name__}.{each.attr}"


def classes_of(name: ast.Name) -> list[type]:
    """Return the public class of a name, or those of which a variable of this name is one."""
    if name.id in CLASSES:
        return [CLASSES[name.id]]
    return [
        kind for each, kind in CLASSES.items()
        if name.id in re.sub(r"(?<!^)([A-Z])", r"_\1", each).lower().split("_")
    ]  # fmt: skip


@cache
def attributes(kind: type) -> frozenset[str]:
    """Return the attributes of a class and of its instances."""
    bases = [base for base in kind.__mro__ if base.__module__.startswith("delassus")]
    text = "\n".join(inspect.getsource(base) for base in bases)
    return frozenset((*dir(kind), *re.findall(r"(?:^    |\bself\.)(\w+)", text, re.M)))


def is_file(name: str) -> bool:
    """Return whether a file of the repository has this name."""
    return any(path.endswith(f"/{name}") for path in paths())


def unknown(name: str, known: frozenset[str] = frozenset()) -> list[str]:
    """Return the parts of a text in backticks that neither the project nor the page has."""
    if name in FOREIGN or name in known:
        return []
    if re.match(r"(\.venv/bin/)?delassus( |$)", name):
        return unknown_options(name)
    if found := re.match(r"(?:[A-Z_]+=\S+ )?make( .*|$)", name):
        given = {each.partition("=")[0] for each in shlex.split(found[1])}
        makefile = texts()[ROOT / "Makefile"]
        return [g for g in given if not re.search(rf"^{g}:|\b{g}\)|\$\({g}", makefile, re.M)]
    if found := re.match(r"(?:[A-Z_]+=\S+ )?python -m (?!pip|pytest|venv|build)(\S+)", name):
        path = "/" + found[1].replace(".", "/")
        return [] if any(each.endswith((path, f"{path}.py")) for each in paths()) else [name]
    if re.match(r"--[a-z]", name):
        given = re.findall(r"(?:^|\s)(--[a-z][\w-]*)", name)
        return [each for each in given if each not in FOREIGN and not is_option(each)]
    if re.fullmatch(r"~/(?!ws)[\w/<>]+", name):
        topic = re.sub(r"<\w+>|/LF$", "", name).rstrip("/")
        return [] if any(topic in text for text in texts().values()) else [name]
    if found := re.fullmatch(r"delassus_msgs/(\w+)", name):
        return [] if any(f"/{found[1]}." in path for path in paths()) else [name]
    if re.fullmatch(r"delassus(_ros|_msgs_py)?(\.\w+)+", name) and not is_file(name):
        try:
            pkgutil.resolve_name(name)
        except (ImportError, AttributeError):
            return [name]
        return []
    file = name.partition("::")[0]
    folder = rf"({'|'.join(SOURCES)}|test|docs|algorithms|closure|compiler|model|node|rbda)/"
    suffix = r"(?!.* )[\w?./-]+\.(py|cpp|hpp|msg|srv|txt|toml|rviz|json|xml)"
    if re.match(folder, name) or re.fullmatch(suffix, file):
        return [] if fnmatch.filter(paths(), f"*/{file.rstrip('/')}") else [name]
    return unknown_words(name, known)


def unknown_options(line: str) -> list[str]:
    """Return the verb and the options of a line of `delassus` that the command lacks."""
    verb, *rest = shlex.split(line.replace("…", ""))[1:] or ["list"]
    if verb not in VERBS:
        return [verb]
    options = VERBS[verb]._option_string_actions
    given = [each.partition("=")[0] for each in rest if each.startswith("-")]
    return [each for each in given if each not in options]


@cache
def is_option(name: str) -> bool:
    """Tell an option of a program: written out in the sources, or made of a field of a class."""
    folders = {path.parent for path, text in texts().items() if 'f"--{' in text}
    made = re.compile(rf"^    {name[2:]}: ", re.MULTILINE)
    return any(
        f'"{name}"' in text or (path.parent in folders and made.search(text))
        for path, text in texts().items()
    )


def unknown_words(name: str, known: frozenset[str]) -> list[str]:
    """Return the unknown identifiers of a parameter, an expression or a keyword argument."""
    key, _, value = name.partition(": ")
    setting = PARAMETERS.get(key) or CONTACT_PARAMETERS.get(key.rpartition(".")[2])
    if value and setting and setting.choices and value not in setting.choices:
        return [value]
    text = re.sub(r"<\w+>", "name", key.replace("…", "...")) if setting else name
    try:
        node = ast.parse(re.sub(r"=$", "=0", text).replace("…", "..."))
    except SyntaxError:
        return []
    value = getattr(next(iter(node.body), None), "value", None)
    if not isinstance(value, ast.Name | ast.Attribute | ast.Call | ast.Constant):
        return []
    first = re.findall(r"^[A-Za-z_]\w*", text)
    return [each for each in (*first, *parts(node)) if each not in words() | known]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_names_in_backticks_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    # A page names the things of its own examples.
    known = frozenset(re.findall(r"\w+", "\n".join(m[0] for m in BLOCK.finditer(text))))
    names = {" ".join(n.split()) for n in re.findall(r"(?<!`)`([^`]+)`(?!`)", BLOCK.sub("", text))}
    wrong = {name: unknown(name, known) for name in sorted(names)}
    assert {name: parts for name, parts in wrong.items() if parts} == {}


@pytest.mark.parametrize(
    "name",
    [
        "solution.J_bar()", "solution.gradient", "solver.solve_all", "gradient_of(solution)",
        "Robot.from_udf", "Robot.from_urdf(path, bas=1)", "robot.lok({'neck': 0.1})",
        "DelassusSolver(problem, algoritm='efpa')", "DelassusSovler", "lyout_id",
        "delassus_ros.dynamic.Dynamics", "delassus.dynamics.Dynamic", "regularizaton=",
        "delassus comput", "delassus compute --contacts LF", "--outpts", "make wlk",
        "make WLK=1 walk", "python -m benchmarks.cluster", "contacts.nams", "orientation.sorce",
        "rows: some", "contacts.LF.knd", "~/delasus", "delassus_msgs/DelassusMatrx",
        "compiler/bild.py", "msg/test/?/test_message_interfaces.py", "test_nobody.py::test_one",
    ],
)  # fmt: skip
def test_unknown_name_is_found(name: str) -> None:
    assert unknown(name)
