"""Help texts and pages name things: no text without its noun, no number without its unit."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from delassus_ros.cli import main as cli
from delassus_ros.command_line import Whole, duration, positive
from delassus_ros.node.settings.table import CONTACT_PARAMETERS, PARAMETERS
from delassus_ros.sim import demo

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools")]
from soak import __main__ as soak  # noqa: E402

VAGUE = re.compile(
    r"\bwhat (?:there )?(?:is|are|was|it|they)\b|\bothers\b|\bwhatever (?!the\b)"
    r"|\bhow (?:long|often|many)\b"
    r"|\bas it (?:goes|comes)\b|\bdo it\b|\bsay so\b|\bthat works\b|\band the like\b",
    re.IGNORECASE,
)
"""Words in place of a noun, which CONTRIBUTING excludes."""
UNIT = re.compile(r"\[[^]]+\]|number of|coefficient of friction|TCP port|multiples of")
"""A unit in brackets, or a quantity without one."""
NUMBERS = (int, float, positive, duration)
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("**/*.md")])


def options(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.Action]]:
    """Yield the options of a parser and of its verbs, with the name of the program."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb in action.choices.values():
                yield from options(verb)
        elif action.help not in (None, argparse.SUPPRESS) and action.dest != "help":
            yield parser.prog, action


PARSERS = {"delassus": cli._parser(), "demo": demo._parser(), "soak": soak._parser()}
OPTIONS = [found for parser in PARSERS.values() for found in options(parser)]


def test_help_texts_name_things() -> None:
    assert len(OPTIONS) > 100
    for program, action in OPTIONS:
        assert not VAGUE.search(str(action.help)), (program, action.dest, action.help)


def test_numbers_of_the_command_line_have_units() -> None:
    numbers = [
        (program, action)
        for program, action in OPTIONS
        if action.type in NUMBERS or isinstance(action.type, Whole)
    ]
    assert len(numbers) > 10
    for program, action in numbers:
        assert UNIT.search(str(action.help)), (program, action.dest, action.help)


@pytest.mark.parametrize("settings", [PARAMETERS, CONTACT_PARAMETERS])
def test_descriptions_of_parameters_name_things(settings) -> None:
    for name, setting in settings.items():
        assert not VAGUE.search(setting.description), (name, setting.description)


def test_help_texts_of_nodes_name_things() -> None:
    found = 0
    for file in (ROOT / "delassus_ros").rglob("*.py"):
        for text in re.findall(r'^_HELP = """\\\n(.*?)"""', file.read_text("utf-8"), re.M | re.S):
            assert not VAGUE.search(text) and " what " not in text, file
            found += 1
    assert found == 8


@pytest.mark.parametrize("file", sorted((ROOT / "launch").glob("*.py")), ids=lambda f: f.stem)
def test_descriptions_of_launch_arguments_name_things(file: Path) -> None:
    found = re.findall(r"description=((?:\s*f?\"[^\"]*\")+)", file.read_text(encoding="utf-8"))
    assert found
    for text in found:
        assert not VAGUE.search(text), (file.name, text)


def test_titles_are_those_that_a_reader_looks_for() -> None:
    """Each page has a title of its own, without a question and without vague words."""
    titles: dict[str, Path] = {}
    for page in sorted((ROOT / "docs").glob("**/*.md")):
        found = re.search(r"^# (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert found, page
        title = found[1]
        assert not VAGUE.search(title) and not re.search(r"\?|…|^(?:How|What|When|All) ", title)
        assert title not in titles, (page, titles[title])
        titles[title] = page
    assert len(titles) > 50


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_name_things(page: Path) -> None:
    """Words of the programs, in backticks and blocks, are tested where they are written."""
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    for line in re.sub(r"`[^`\n]*`", "", text).splitlines():
        assert not VAGUE.search(line), line
