"""The reference of the library: a page for each public name, types only where types belong."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import delassus
from delassus import testing
from delassus_ros.node.contact_parameters import CONTACT_PARAMETERS

ROOT = Path(__file__).resolve().parents[2]
LISTED = re.findall(
    r"^   ~(delassus(?:_ros)?\.\S+)$", (ROOT / "docs/library.md").read_text(), re.MULTILINE
)


def named(path: str) -> object:
    """Return the object of a full name."""
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError:
        module, _, name = path.rpartition(".")
        return getattr(importlib.import_module(module), name)


def docstrings() -> Iterator[tuple[str, list[str]]]:
    """Yield the docstrings of the listed objects and of their public members."""
    for path in LISTED:
        thing = named(path)
        members = vars(thing).values() if inspect.isclass(thing) else ()
        for each in (thing, *(m for m in members if callable(m) or isinstance(m, property))):
            text = inspect.getdoc(each)
            if text and not getattr(each, "__name__", "").startswith("_"):
                yield f"{path}: {each!r}", text.splitlines()


def test_each_public_name_has_a_page() -> None:
    shown = {path.rpartition(".")[2] for path in LISTED}
    public = {*delassus.__all__, "random_robot", "random_problem"} - {"__version__"}
    assert public <= shown, public - shown
    assert {"random_robot", "random_problem"} <= set(testing.__all__)


def test_the_words_after_a_colon_are_no_type() -> None:
    from sphinx.ext import napoleon
    spec = importlib.util.spec_from_file_location("docstrings", ROOT / "docs" / "docstrings.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    config = napoleon.Config(napoleon_use_rtype=False, napoleon_use_ivar=True)
    entries = 0
    for name, lines in docstrings():
        shown = str(napoleon.NumpyDocstring(module.described(lines), config, what="class"))
        typed = re.search(r"^:(?:type|vartype|rtype)\b", shown, re.MULTILINE)
        assert not typed, f"{name}\n{shown}"
        fields = re.findall(r"^:(?:param|ivar) ([^:]*):(.*)", shown, re.MULTILINE)
        assert all(" " not in field and words.strip() for field, words in fields), (name, fields)
        entries += len(fields)
        assert (":returns:" in shown) == ("Returns" in lines), name
    assert entries > 200


def rewritten(page: str) -> str:
    """Return a page as the site shows it."""
    spec = importlib.util.spec_from_file_location("pages", ROOT / "docs" / "pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    source = [(ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")]
    module.rewrite(None, page, source)
    return source[0]


def test_parameters_are_definitions_on_the_site() -> None:
    plain = (ROOT / "docs/reference/parameters.md").read_text(encoding="utf-8")
    tables = [text.partition("\n\n")[0] for text in plain.split("| name | default | |\n")[1:]]
    row = re.compile(r"^\| `([^|]*)\| ([^|]*)\|(.*)\|$", re.MULTILINE)
    rows = [found for table in tables for found in row.findall(table)]
    shown = rewritten("reference/parameters")
    assert "| name | default |" not in shown and len(rows) > 60
    for name, default, words in rows:
        label = f" (default: {default.strip()})" if default.strip() else ""
        assert f"`{name.strip()}{label}\n: {words.strip()}\n" in shown, name


def test_notebooks_can_be_downloaded() -> None:
    tutorials = ROOT.glob("docs/tutorials/*.md")
    notebooks = [page for page in tutorials if "mystnb" in page.read_text("utf-8")]
    assert len(notebooks) == 5
    assert ".ipynb" not in rewritten("reference/commands")
    index = (ROOT / "docs" / "tutorials" / "installing.md").read_text("utf-8")
    assert "## Tutorials as notebooks" in index and "Five pages are notebooks" in index
    for page in notebooks:
        name = page.relative_to(ROOT / "docs").with_suffix("").as_posix()
        assert f"<{page.stem}.ipynb>`" in rewritten(name), name
    extras = re.findall(r"\.\[([^]]*)\]", (ROOT / "binder" / "postBuild").read_text())
    assert extras
    assert all((ROOT / "requirements" / f"{e}.txt").exists() for e in extras[0].split(","))


@pytest.mark.parametrize("message", ["DelassusMatrix", "Layout"])
def test_messages_list_every_kind_of_contact(message: str) -> None:
    lines = (ROOT / f"msg/msg/{message}.msg").read_text(encoding="utf-8").splitlines()
    end = lines.index("string[] kinds")
    start = max(k for k in range(end) if not lines[k]) + 1
    listed = re.findall(r'"(\w+)"', "\n".join(lines[start:end]))
    assert listed == list(CONTACT_PARAMETERS["kind"].choices)
