"""Texts for users: links lead somewhere, titles are unique, sentences have their nouns."""

from __future__ import annotations

import argparse
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from soak import __main__ as soak

from delassus.programs.command_line import Whole, duration, positive
from delassus_ros.node.contact_parameters import CONTACT_PARAMETERS
from delassus_ros.node.parameters import PARAMETERS
from delassus_ros.sim import demo
from delassus_ros.verbs import main as cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("[A-Z]*.md"), *ROOT.glob("docs/**/*.md")])
of_each_page = pytest.mark.parametrize(
    "page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES]
)

VAGUE = re.compile(
    r"\bwhat (?:there )?(?:is|are|was|it|they)\b|\bothers\b|\bwhatever (?!the\b)"
    r"|\bhow (?:long|often|many)\b"
    r"|\bas it (?:goes|comes)\b|\bdo it\b|\bsay so\b|\bthat works\b|\band the like\b",
    re.IGNORECASE,
)
"""Words in place of a noun, which CONTRIBUTING excludes."""
UNIT = re.compile(r"\[[^]]+\]|number of|coefficient of friction|TCP port|multiples of")
"""A unit in brackets, or a quantity without one."""


@of_each_page
def test_relative_links_exist(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text("utf-8")):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), target


@of_each_page
def test_drawings_are_of_the_diagrams(page: Path) -> None:
    """`scripts/diagrams.py` draws them, and writes down of which text each is."""
    diagrams = re.findall(r"```mermaid\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    for number, text in enumerate(diagrams):
        drawing = ROOT / "docs" / "pictures" / f"{page.stem}_{number}.svg"
        digest = hashlib.sha256(text.encode()).hexdigest()
        assert drawing.read_text().endswith(f"<!-- {digest} -->\n"), f"draw {drawing.name} anew"


def test_readme_has_at_most_130_lines() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 130


def test_titles_are_unique_and_name_things() -> None:
    titles: dict[str, Path] = {}
    for page in sorted((ROOT / "docs").glob("**/*.md")):
        found = re.search(r"^# (.*)$", page.read_text("utf-8"), re.MULTILINE)
        assert found, page
        title = found[1]
        assert not VAGUE.search(title) and not re.search(r"\?|…|^(?:How|What|When|All) ", title)
        assert title not in titles, (page, titles[title])
        titles[title] = page
    assert len(titles) > 40


def options(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the options of a parser and of its verbs."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb in action.choices.values():
                yield from options(verb)
        elif action.help not in (None, argparse.SUPPRESS) and action.dest != "help":
            yield action


OPTIONS = [each for m in (cli, demo, soak) for each in options(m._parser())]


def texts(kind: str) -> Iterator[str]:
    """Yield texts for users of one kind; words in backticks and blocks are left out."""
    if kind == "pages":
        for page in PAGES:
            if page.name != "CONTRIBUTING.md":  # which shows such sentences
                text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.S | re.M)
                yield from re.sub(r"`[^`\n]*`", "", text).splitlines()
    elif kind == "options":
        yield from (str(action.help) for action in OPTIONS)
    elif kind == "parameters":
        for setting in (*PARAMETERS.values(), *CONTACT_PARAMETERS.values()):
            yield setting.description
    elif kind == "nodes":
        help_text = re.compile(r'^_HELP = """\\\n(.*?)"""', re.MULTILINE | re.DOTALL)
        for file in (ROOT / "delassus_ros").rglob("*.py"):
            yield from help_text.findall(file.read_text("utf-8"))
    else:
        for file in (ROOT / "launch").glob("*.py"):
            yield from re.findall(r"description=((?:\s*f?\"[^\"]*\")+)", file.read_text("utf-8"))


@pytest.mark.parametrize(
    ("kind", "least"),
    [("pages", 3000), ("options", 100), ("parameters", 50), ("nodes", 8), ("launch", 8)],
)
def test_sentences_have_nouns(kind: str, least: int) -> None:
    found = [*texts(kind)]
    assert len(found) >= least
    assert [text for text in found if VAGUE.search(text)] == []


def test_numbers_of_the_command_line_have_units() -> None:
    types = (int, float, positive, duration)
    numbers = [a for a in OPTIONS if a.type in types or isinstance(a.type, Whole)]
    assert len(numbers) > 10
    for action in numbers:
        assert UNIT.search(str(action.help)), (action.dest, action.help)
