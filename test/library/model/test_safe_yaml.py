"""YAML that is broken, hostile or absent."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from delassus.errors import RobotError
from delassus.model.reading.yaml import MAX_BYTES, MAX_DEPTH, load_yaml


def refuses(words: str, source: Any) -> None:
    with pytest.raises(RobotError, match=words) as caught:
        load_yaml(source, "the loops file")
    assert str(caught.value).startswith("the loops file")
    assert len(str(caught.value)) < 600


def test_plain_data(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("a: [1, 2.5, text]", encoding="utf-8")
    expected = {"a": [1, 2.5, "text"]}
    assert load_yaml(path, "x") == load_yaml(str(path), "x") == expected
    assert (
        load_yaml("a: [1, 2.5, text]\n", "x") == load_yaml(" {a: [1, 2.5, text]}", "x") == expected
    )
    assert load_yaml(expected, "x") is expected


@pytest.mark.parametrize(
    "text",
    ["a: [1, 2.5, text]", "  a: [1, 2.5, text]", "a : [1, 2.5, text]", "{a: [1, 2.5, text]}"],
)
def test_text_may_be_one_line(text: str) -> None:
    assert load_yaml(text, "x") == {"a": [1, 2.5, "text"]}


@pytest.mark.parametrize("path", ["a:b.yaml", "a.yaml", "/a: b.yaml", "./a: 1", "C:a", "a b: c"])
def test_other_lines_are_paths(path: str) -> None:
    refuses("cannot be read: No such file.*YAML text or a mapping", path)


def test_depth_is_bounded_and_no_more() -> None:
    assert load_yaml("{a: " + "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1) + "}", "x")
    refuses(f"nested more than {MAX_DEPTH} deep", "{a: " + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "}")
    refuses("nested more than", "{a: " + "[" * 50_000)


def test_size_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    path.write_bytes(b"#" * (MAX_BYTES + 1))
    refuses(f"larger than {MAX_BYTES} bytes", path)
    refuses(f"larger than {MAX_BYTES} bytes", "\n" * (MAX_BYTES + 1))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [\n", "is not YAML: while parsing"),
        ("a: \x00\n", "is not YAML"),
        ("a: 2020-99-99\n", "is not YAML: month must be in 1..12"),
        ("a: !!python/object/apply:os.getcwd []\n", "could not determine a constructor"),
        ("a: &x [1]\nb: *x\n", r"it has the alias \*x; write it out"),
        ("a: 1\nb: {c: 1, c: 2}\n", "line 2: key 'c' appears twice"),
        ("a: 1\na: 2\n", "line 1: key 'a' appears twice"),
        ("? [1]\n: 2\n", "is not YAML: .*unhashable key"),
    ],
)
def test_refuses_what_is_not_plain_data(text: str, words: str) -> None:
    refuses(words, text)


def test_refuses_sources_that_are_none(tmp_path: Path) -> None:
    refuses("'nowhere.yaml' cannot be read: No such file.*YAML text or a mapping", "nowhere.yaml")
    refuses("cannot be read: Is a directory", tmp_path)
    os.mkfifo(tmp_path / "pipe")
    refuses("pipe' cannot be read: Not a regular file", tmp_path / "pipe")
    refuses("is neither a path nor YAML", "a\x00b")
    refuses("given as a path, text or mapping, not int", 3)
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(bytes(range(128, 256)))
    refuses("is not YAML", binary)
