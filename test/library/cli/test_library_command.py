"""The command of the library alone: no verbs of nodes, and a clear answer where they are meant."""

from __future__ import annotations

import pytest
from cli_support import CONFIG, QUADRUPED

from delassus.cli.main import main
from delassus.cli.main import parser_of as library_parser
from delassus_ros.verbs.main import COMPONENT


def test_the_component_adds_its_verbs(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in (verb for group in COMPONENT.groups.values() for verb in group):
        with pytest.raises(SystemExit):
            main([verb.name, "--help"])
        assert f"unknown verb {verb.name!r}" in capsys.readouterr().err
        assert f"  {verb.name} " not in library_parser().format_help()
    for verb in ("list", "compute", "trajectory"):
        with pytest.raises(SystemExit) as ended:
            main([verb, "--help"])
        assert ended.value.code == 0


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["view", "--node"], "a running node (--node)"),
        (["export", CONFIG, "--urdf", QUADRUPED], "a parameter file of the node"),
    ],
)
def test_what_needs_the_component_says_so(
    words: list[str], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert f"{what} needs the package delassus_ros, which is not part" in capsys.readouterr().err


def test_the_library_computes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compute", QUADRUPED, "--contact", "LF_FOOT"]) == 0
    assert "LF_FOOT" in capsys.readouterr().out
