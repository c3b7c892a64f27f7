"""Verbs, parsing of the command line with suggestions for wrong arguments, and completion."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from delassus.cli.report import Report
from delassus.errors import DelassusError, unknown
from delassus.model.robot import Robot
from delassus.programs.terminal import control
from delassus.visible import visible

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*):=(.*)", re.DOTALL)
"""An argument of xacro, as ROS writes it."""


@dataclass(frozen=True)
class Verb:
    """A verb of the command line; its module declares it.

    Attributes
    ----------
    summary : line about the verb, without capital and full stop.
    example : arguments of an example.
    run : function from options to a report.
    add_options : function that adds the options of the verb, besides ``--json``.
    """

    name: str
    summary: str
    example: str
    run: Callable[[argparse.Namespace], Report]
    add_options: Callable[[argparse.ArgumentParser], None]

    def add_to(self, verbs: argparse._SubParsersAction[SuggestingParser]) -> None:
        """Add the parser of the verb."""
        # Without `help`: the help of the command lists verbs by groups.
        parser = verbs.add_parser(
            self.name,
            description=f"{self.summary[0].upper()}{self.summary[1:]}.",
            epilog=f"example:\n  delassus {self.name} {self.example}".rstrip(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.add_argument("--json", action="store_true", help="answer as JSON, for programs")
        parser.set_defaults(run=self.run, parser=parser, warnings=())
        self.add_options(parser)
        needed = [action for action in parser._actions if not action.option_strings]
        words = [f"[{a.metavar}]" if a.nargs == "?" else str(a.metavar) for a in needed]
        parser.usage = " ".join(("%(prog)s", *words, "[options]"))


class SuggestingParser(argparse.ArgumentParser):
    """Suggests the nearest verb, option or choice for an unknown one.

    An argument that begins with a minus and a digit is a value, also -0.1,0.2; before 3.14, Python
    accepts only a single number as a value.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._negative_number_matcher = re.compile(r"-\.?\d")

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """Parse; see :meth:`argparse.ArgumentParser.parse_args`.

        Words like ``side:=right`` become the attribute ``xacro``, wherever they stand.
        """
        found, rest = self.parse_known_args(args, namespace)
        if _ASSIGNMENT.fullmatch(getattr(found, "other", None) or ""):
            # The one verb with a second file takes them for it.
            rest, found.other = [*rest, found.other], None
        pairs = [_ASSIGNMENT.fullmatch(word) for word in rest]
        found.xacro = {pair[1]: pair[2] for pair in pairs if pair}
        for word, pair in zip(rest, pairs, strict=True):
            if not pair:
                self.error(self._unknown(word, found))
        files = [str(getattr(found, name, None) or "") for name in ("robot", "urdf")]
        if found.xacro and not any(file.endswith(".xacro") for file in files):
            word = next(f"{name}:={value}" for name, value in found.xacro.items())
            self.error(f"{word} is an argument of xacro; expected a file that ends in .xacro")
        return found

    def error(self, message: str) -> NoReturn:
        """Print the error in one line, without the usage, which `--help` shows."""
        self.exit(2, visible(f"{self.prog}: {message}; see '{self.prog} --help'", "\n") + "\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        # Help has colours from Python 3.14 on.
        if message:
            control(message, file or sys.stderr)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            what = "verb" if isinstance(action, argparse._SubParsersAction) else "choice"
            raise argparse.ArgumentError(action, unknown(what, str(value), list(action.choices)))

    def _unknown(self, argument: str, found: argparse.Namespace) -> str:
        """Return the error message for an argument that no parser accepted."""
        parser = getattr(found, "parser", self)
        if not argument.startswith("-"):
            return f"unknown argument {argument!r}; is the word before it one of two?"
        names = [name for action in parser._actions for name in action.option_strings]
        return unknown("option", argument.partition("=")[0], names)


def complete(parser: argparse.ArgumentParser) -> None:
    """Complete arguments at the request of a shell.

    ``eval "$(register-python-argcomplete delassus)"``, of the package argcomplete, makes bash and
    zsh ask.
    """
    if "_ARGCOMPLETE" not in os.environ:
        return
    import argcomplete

    argcomplete.autocomplete(parser)


def frames(prefix: str, parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    """Return the frames of the robot on the command line, for :mod:`argcomplete`."""
    try:
        # Frames are the same with all joints locked, and no inertia is needed then.
        robot = Robot.from_urdf(parsed_args.robot, base="fixed", lock={"*": 0.0})
    except (DelassusError, AttributeError, TypeError):
        # No robot on the command line yet.
        return []
    return [name for name in robot.frames if name.startswith(prefix)]
