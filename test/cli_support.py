"""For the tests of the command `delassus`: run it, and look at what it prints."""

from __future__ import annotations

import pytest
import robots

from delassus_ros.cli.main import main

QUADRUPED = str(robots.quadruped())


def output(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """Run the command, which must succeed and print no error."""
    assert main(argv) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert all(line == line.rstrip() for line in captured.out.splitlines())
    return captured.out


def refusal(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """Run the command, which must fail with the text of the error alone."""
    assert main(argv) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err and captured.err.count("\n") == 1
    return captured.err
