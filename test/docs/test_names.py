"""Names in backticks on the pages are names of the package: of its API, programs and files.

Each name is checked as the first kind that it looks like: an expression of Python against the
classes and functions of the library, an option against the parsers, a parameter against the
settings of the nodes. Texts that look like no name, such as a line of a log, are left to the tests
of their page.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from delassus_ros.cli import main as cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "examples" / "README.md",
    *sorted((ROOT / "docs").glob("**/*.md")),
]  # fmt: skip
LIBRARY = ("delassus_ros", "msg/delassus_msgs_py")
SOURCES = (
    *LIBRARY, "benchmarks", "config", "examples", "launch", "msg", "requirements", "scripts",
    "tools",
)  # fmt: skip
REPOSITORY = (*SOURCES, "test", "docs")
ELSEWHERE = {
    "--base-paths": "colcon", "--ros-args": "ROS", "--enclave": "ROS",
    "--show-args": "ros2 launch", "SetRemap": "launch_ros", "example_8": "ros2_control_demos",
    "--system-site-packages": "venv",
    "Enforce": "ROS's security", "ROS_SECURITY_ENCLAVE_OVERRIDE": "ROS's security",
    "MultiThreadedExecutor": "rclpy", "open_port_internal": "Fast DDS", "PATH": "the shell",
    "composition_interfaces": "ROS", "foxglove_bridge": "ROS", "joint_state_publisher_gui": "ROS",
    "rviz2": "ROS", "meta/info.json": "LeRobot's data sets",
}  # fmt: skip
"""Names that are not the project's and that its sources do not use, with whose they are."""


BLOCK = re.compile(r"^ *(```+).*?^ *\1", re.DOTALL | re.MULTILINE)


def names_of(page: Path) -> list[str]:
    """Return what stands in backticks in the text of a page, code blocks aside."""
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    return sorted({" ".join(n.split()) for n in re.findall(r"(?<!`)`([^`]+)`(?!`)", text)})


def words_in_blocks(page: Path) -> frozenset[str]:
    """Return the words of a page's code blocks: what it calls the things of its example."""
    blocks = (match[0] for match in BLOCK.finditer(page.read_text(encoding="utf-8")))
    return frozenset(re.findall(r"\w+", "\n".join(blocks)))


# What the sources have.


@cache
def texts(folders: tuple[str, ...]) -> dict[Path, str]:
    """Return the text of all files of some folders and of the files beside them."""
    files = [file for folder in folders for file in (ROOT / folder).rglob("*") if file.is_file()]
    files += [file for file in ROOT.iterdir() if file.is_file() and file.suffix != ".md"]
    found = {}
    for file in files:
        try:
            found[file] = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a picture
    return found


@cache
def words() -> frozenset[str]:
    """Return every word of the sources: identifiers, and those in texts and comments."""
    text = "\n".join((*texts(SOURCES).values(), *(str(path) for path in texts(SOURCES))))
    return frozenset(re.findall(r"\w+", text))


@dataclass
class Class:
    """A class: its attributes, and the parameters of its methods by name; None takes any."""

    bases: list[str] = field(default_factory=list)
    attributes: set[str] = field(default_factory=set)
    methods: dict[str, list[set[str] | None]] = field(default_factory=lambda: defaultdict(list))


@dataclass
class Python:
    """The names that the library defines."""

    classes: dict[str, list[Class]] = field(default_factory=lambda: defaultdict(list))
    functions: dict[str, list[set[str] | None]] = field(default_factory=lambda: defaultdict(list))
    modules: dict[str, set[str]] = field(default_factory=dict)
    shown: set[str] = field(default_factory=set)
    """Names that a package shows as its own."""

    def meant(self, name: str) -> list[str]:
        """Return the classes of which a variable of this name holds an instance, as ``solver``."""
        return [each for each in self.shown & self.classes.keys() if name in words_of(each)]

    def definitions(self, name: str) -> Iterator[Class]:
        """Yield the classes of a name, with what they derive from."""
        for each in self.classes.get(name, ()):
            yield each
            for base in each.bases:
                yield from self.definitions(base)

    def parameters(self, kind: str, method: str) -> list[set[str] | None]:
        """Return the parameters of all methods of this name of a class."""
        return [p for each in self.definitions(kind) for p in each.methods.get(method, ())]


def words_of(name: str) -> list[str]:
    """Return the words of a name in camel case, in lower case, and all of them."""
    parts = re.findall(r"[A-Z][a-z0-9]*|[A-Z]+(?![a-z])", name)
    return [part.lower() for part in parts] + ["_".join(parts).lower()]


def parameters_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str] | None:
    given = function.args
    if given.kwarg is not None:
        return None
    return {each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)}


def fields_of(node: ast.ClassDef) -> set[str]:
    targets = [each.target for each in node.body if isinstance(each, ast.AnnAssign)]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def class_of(node: ast.ClassDef) -> Class:
    found = Class([ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases])
    found.attributes |= fields_of(node)
    for each in node.body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            found.methods[each.name].append(parameters_of(each))
            found.attributes.add(each.name)
        elif isinstance(each, ast.Assign):
            found.attributes |= {t.id for t in each.targets if isinstance(t, ast.Name)}
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store):
            found.attributes.add(each.attr)
    if "__init__" not in found.methods and fields_of(node):
        found.methods["__init__"].append(fields_of(node))
    return found


@cache
def python() -> Python:
    """Return what the modules of the library define."""
    found = Python()
    for path, text in texts((*LIBRARY, "tools")).items():
        if path.suffix != ".py" or path.parent == ROOT:
            continue
        tree = ast.parse(text)
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removeprefix("msg.")
        defined = found.modules.setdefault(name.removesuffix(".__init__"), set())
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found.classes[node.name].append(class_of(node))
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.functions[node.name].append(parameters_of(node))
        for node in tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                defined.add(node.name)
            elif isinstance(node, ast.ImportFrom):
                imported = {each.asname or each.name for each in node.names}
                defined |= imported
                if path.name == "__init__.py":
                    found.shown |= imported
            elif isinstance(node, ast.Assign):
                defined |= {t.id for t in node.targets if isinstance(t, ast.Name)}
    return found


# The kinds of names. A check returns what is wrong, or nothing.


def unknown_word(name: str) -> str:
    """Hold a single word against those of the sources."""
    return "" if name in words() else f"no word {name!r} in the sources"


def expression(name: str) -> str:
    """Hold an expression against the classes and functions of the library."""
    node = ast.parse(name.replace("…", "..."), mode="eval")
    return next(filter(None, map(fault_of, ast.walk(node))), "")


def root_of(node: ast.AST) -> ast.AST:
    """Return what an expression begins with."""
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node


def dotted(name: str) -> str:
    """Hold a name that may be a parameter or an attribute against both."""
    if not is_parameter(name):
        return expression(name)
    known = bool(kinds_of(root_of(ast.parse(name, mode="eval").body)))
    tried = [parameter(name)] + ([expression(name)] if known else [])
    return "" if "" in tried else "; ".join(tried)


def fault_of(node: ast.AST) -> str:
    """Return what is wrong with one call, attribute or name."""
    if isinstance(node, ast.Call):
        return fault_of_call(node)
    if isinstance(node, ast.Attribute):
        kinds = kinds_of(node.value)
        if not kinds:
            return unknown_word(node.attr)
        there = [d for kind in kinds for d in python().definitions(kind)]
        if not any(node.attr in each.attributes for each in there):
            return f"{' and '.join(kinds)} have no attribute {node.attr!r}"
    if isinstance(node, ast.Expression):
        root = root_of(node.body)
        return unknown_word(root.id) if isinstance(root, ast.Name) else ""
    return ""


def kinds_of(node: ast.AST) -> list[str]:
    """Return the classes that an expression is or is an instance of; none if it is not known."""
    if not isinstance(node, ast.Name):
        return []
    return [node.id] if node.id in python().classes else python().meant(node.id)


def fault_of_call(node: ast.Call) -> str:
    """Return which keyword of a call nothing of this name takes."""
    called: list[set[str] | None] = []
    if isinstance(node.func, ast.Attribute):
        for kind in kinds_of(node.func.value):
            called += python().parameters(kind, node.func.attr)
    elif isinstance(node.func, ast.Name):
        called += python().parameters(node.func.id, "__init__")
        called += python().functions.get(node.func.id, [])
    given = {each.arg for each in node.keywords if each.arg is not None}
    if not called or any(each is None or given <= each for each in called):
        return ""
    return f"no {ast.unparse(node.func)} takes {', '.join(sorted(given))}"


def module(name: str) -> str:
    """Hold a dotted path against the modules of the library and what they define."""
    modules = python().modules
    parent, _, last = name.rpartition(".")
    there = name in modules or last in modules.get(parent, ())
    return "" if there else f"no module has {name!r}"


def keyword(name: str) -> str:
    """Hold a keyword argument or an attribute of an element against the sources."""
    return unknown_word(name.partition("=")[0])


@cache
def parameters() -> dict[str, tuple[str, ...]]:
    """Return the parameters of all nodes, each with its choices, if it has some."""
    declared = r"(?:declare_parameter|_read)\(\s*\"([\w.]+)\""
    found: dict[str, tuple[str, ...]] = {
        name: () for text in texts(SOURCES).values() for name in re.findall(declared, text)
    }
    settings = texts(LIBRARY)
    for path in (path for path in settings if "settings" in (path.stem, path.parent.name)):
        for node in ast.walk(ast.parse(settings[path])):
            if isinstance(node, ast.Dict):
                found |= {str(k): choices for k, choices in entries_of(node)}
    return found


def entries_of(node: ast.Dict) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the names and choices of a table of settings."""
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(value, ast.Call):
            given = {each.arg: each.value for each in value.keywords}
            choices = given.get("choices")
            known = isinstance(choices, ast.Tuple | ast.List)
            yield key.value, tuple(ast.literal_eval(choices)) if known else ()


def parameter(name: str) -> str:
    """Hold a parameter, with a value or not, against those of the nodes."""
    key, _, value = (part.strip() for part in name.partition(":"))
    last = key.rpartition(".")[2]
    found = next((each for each in (key, last) if each in parameters()), None)
    if found is None or (found == last != key and not re.match(r"contacts\.|wrenches\.", key)):
        return f"no node has the parameter {key!r}"
    choices = parameters()[found]
    return f"{key} is one of {choices}" if value and choices and value not in choices else ""


def topic(name: str) -> str:
    """Hold a topic or service of a node against the sources."""
    plain = re.sub(r"<\w+>|/LF$", "", name).rstrip("/")
    there = any(plain in text for text in texts(SOURCES).values())
    return "" if there else f"no node has {plain!r}"


def message(name: str) -> str:
    """Hold a type of message or service against the files."""
    kind = name.partition("/")[2]
    there = any((ROOT / "msg" / each / f"{kind}.{each}").is_file() for each in ("msg", "srv"))
    return "" if there else f"no message or service {kind!r}"


def file(name: str) -> str:
    """Hold a file or a folder of the repository against those that are there."""
    wanted = tuple(Path(name).parts)
    folders = [path for each in REPOSITORY for path in (ROOT / each).rglob("**/")]
    every = (path.relative_to(ROOT).parts for path in (*texts(REPOSITORY), *folders))
    return "" if any(each[-len(wanted) :] == wanted for each in every) else f"no file {name}"


def option(name: str) -> str:
    """Hold the options of a line against the parsers of the programs."""
    given = re.findall(r"(?:^|\s)(--[a-z][\w-]*)", name)
    missing = [each for each in given if each not in ELSEWHERE and not is_option(each)]
    return f"no program has {', '.join(missing)}" if missing else ""


def is_option(name: str) -> bool:
    """Tell an option: written out, or made of a field of a class."""
    for text in texts(SOURCES).values():
        made = re.findall(r"dataclasses\.fields\((\w+)\)", text) if 'f"--{' in text else []
        classes = [each for kind in made for each in python().classes[kind]]
        fields = {f"--{each}" for kind in classes for each in kind.attributes}
        if f'"{name}"' in text or name in fields:
            return True
    return False


def command(name: str) -> str:
    """Hold a line of the command `delassus` against its verbs and their options."""
    verbs = cli._parser()._subparsers._group_actions[0].choices
    _, *rest = shlex.split(name.replace("…", ""))
    if not rest:
        return ""
    if rest[0] not in verbs:
        return f"delassus has no verb {rest[0]!r}"
    known = verbs[rest[0]]._option_string_actions
    given = [each.partition("=")[0] for each in rest[1:] if each.startswith("-")]
    missing = [each for each in given if each not in known]
    return f"delassus {rest[0]} has no {', '.join(missing)}" if missing else ""


def target(name: str) -> str:
    """Hold a call of make against the Makefile."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    rest = shlex.split(re.split(r"\bmake\b", name, maxsplit=1)[1])
    goals = [each for each in rest if "=" not in each]
    variables = re.findall(r"\b([A-Z_]+)=", name)
    missing = [each for each in goals if not re.search(rf"^{each}:", makefile, re.MULTILINE)]
    missing += [each for each in variables if not re.search(rf"\b{each}\b", makefile)]
    return f"make has no {', '.join(missing)}" if missing else ""


def program(name: str) -> str:
    """Hold a module or a script that Python runs against the files."""
    found = re.findall(r"-m (\w[\w.]*)|(\w+/\w+\.py)", name)
    wanted = [script or dotted.replace(".", "/") for dotted, script in found]
    foreign = ("pip", "pytest", "venv")
    missing = [
        each for each in wanted
        if each not in foreign and file(each) and file(f"{each}.py")
    ]  # fmt: skip
    return f"no {', '.join(missing)}" if missing else ""


SUFFIX = re.compile(r"\.(?:json|mcap|parquet|png|rviz|urdf|xacro|xml|ya?ml)$")
"""Of files that a page may have from elsewhere."""


def is_expression(name: str) -> bool:
    if not re.search(r"[.(\[]", name) or name.startswith(".") or SUFFIX.search(name):
        return False
    try:
        node = ast.parse(name.replace("…", "..."), mode="eval").body
    except SyntaxError:
        return False
    return isinstance(node, ast.Attribute | ast.Call | ast.Subscript)


def looks(pattern: str) -> Callable[[str], bool]:
    return lambda name: re.fullmatch(pattern, name, re.DOTALL) is not None


def is_parameter(name: str) -> bool:
    """Tell a parameter: a first word that begins one, and dots or a value."""
    key = re.fullmatch(r"([a-z_]+(?:\.(?:\w+|<\w+>))*)(?:: \S.*)?", name)
    # With an ellipsis it is a message that begins like one.
    if key is None or not re.search(r"[.:]", name) or SUFFIX.search(name) or "…" in name:
        return False
    first = key[1].partition(".")[0]
    return any(each.partition(".")[0] == first for each in parameters()) or first == "contacts"


KINDS: list[tuple[Callable[[str], bool], Callable[[str], str]]] = [
    (looks(r"test_\w+\.py::\w+"), lambda name: file(name.partition("::")[0])),
    (looks(r"(?:\.venv/bin/)?delassus(?: .*)?"), command),
    (looks(r"(?:[A-Z_]+=\S+ )?make(?: .*)?"), target),
    (looks(r"(?:[A-Z_]+=\S+ )?python .*"), program),
    (looks(r"--[a-z].*"), option),
    (looks(r"~/(?!ws)[\w/<>]+"), topic),
    (looks(r"delassus_msgs/\w+"), message),
    (looks(r"delassus_(?:ros|msgs_py)(?:\.\w+)+"), module),
    (looks(r"(?:[\w?-]+/)*[\w.]+\.(?:py|cpp|hpp|msg|srv|txt|toml|rviz|json|xml)"), file),
    (looks(r"(?:delassus_ros|benchmarks|config|docs|examples|msg|test)/\S*"), file),
    (looks(r"(?:algorithms|closure|compiler|model|node|rbda)/\S*"), file),
    (looks(r"[a-z]\w*(?:\.\w+)+"), dotted),
    (is_parameter, parameter),
    (is_expression, expression),
    (looks(r"\w+=(?:\w+|\"\w+\"|[\d.]+)?"), keyword),
    (looks(r"[A-Za-z_]\w*"), unknown_word),
]  # fmt: skip
"""What a name looks like, and how it is checked; the first that fits."""


def fault(name: str) -> str:
    """Return what is wrong with a name; nothing if it is right or looks like none of ours."""
    check = next((check for fits, check in KINDS if fits(name)), None)
    return "" if check is None or name in ELSEWHERE else check(name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_names_in_backticks_are_names_of_the_package(page: Path) -> None:
    examples = words_in_blocks(page)
    faults = {name: fault(name) for name in names_of(page) if name not in examples}
    assert {name: text for name, text in faults.items() if text} == {}


@pytest.mark.parametrize(
    "name",
    [
        "solution.J_bar()", "solution.gradient", "solver.solve_all", "gradient_of(solution)",
        "Robot.from_udf", "Robot.from_urdf(path, bas=1)", "robot.lok({'neck': 0.1})",
        "DelassusSolver(problem, algoritm='efpa')", "DelassusSovler", "lyout_id",
        "delassus_ros.dynamic.Dynamics", "delassus_ros.dynamics.Dynamic", "regularizaton=",
        "delassus comput", "delassus compute --contacts LF", "--outpts", "make wlk",
        "make WLK=1 walk", "python -m benchmarks.cluster", "contacts.nams", "orientation.sorce",
        "rows: some", "contacts.LF.knd", "~/delasus", "delassus_msgs/DelassusMatrx",
        "compiler/bild.py", "msg/test/?/test_message_interfaces.py", "test_nobody.py::test_one",
    ],
)  # fmt: skip
def test_a_name_that_is_none_is_seen(name: str) -> None:
    assert fault(name)


@pytest.mark.parametrize(
    "name",
    [
        "solution.jbar()", "solver.solve_batch", "Robot.from_urdf(…, loops=…)",
        "bound.solve(q)", "delassus compute robot.urdf --outputs a0", "rows: all", "damping.mode",
        "contacts.LF.kind: point", "contacts.<name>.frame", "robot.joint_names", "Jbar", "pin.aba",
        "the set of contacts is 0.6 s old", "~/contact_force/<contact>", "make demo ROBOT=geared",
    ],
)  # fmt: skip
def test_a_name_that_is_one_is_right(name: str) -> None:
    assert fault(name) == ""
