"""The command `delassus`."""
# PYTHON_ARGCOMPLETE_OK

from __future__ import annotations

import argparse
import io
import sys
import warnings
from collections.abc import Sequence

import delassus
from delassus.cli.compare import COMPARE, LIST
from delassus.cli.component import Component
from delassus.cli.compute import COMPUTE
from delassus.cli.export import EXPORT
from delassus.cli.imports import import_all
from delassus.cli.inspection import INSPECT
from delassus.cli.parsing import SuggestingParser, Verb, complete
from delassus.cli.plot import PLOT
from delassus.cli.report import Report
from delassus.cli.rotors import ROTORS
from delassus.cli.topics import HELP
from delassus.cli.trajectory import TRAJECTORY
from delassus.cli.view import VIEW
from delassus.errors import DelassusError, DelassusWarning
from delassus.programs.terminal import discard_output, shown_output

_DESCRIPTION = """\
Compute the Delassus matrix G = J M⁻¹ Jᵀ of the contacts of a robot: the inverse
inertia that forces at the contacts feel.
"""

_EXAMPLES = """\
examples:
  delassus view my_robot.urdf
  delassus compute quadruped --contact LF_FOOT --contact RH_FOOT --q LF_KFE=-1.4
"""
_LAST = """\

`delassus VERB --help` explains a verb, `delassus help loops` the options of loops.
"""

_GROUPS: dict[str, tuple[Verb, ...]] = {
    "look at a robot": (VIEW, INSPECT, PLOT),
    "compute": (COMPUTE, TRAJECTORY, LIST, COMPARE, ROTORS, EXPORT, HELP),
}
"""Verbs by the heading under which the help shows them."""

USER_ERROR = 2
"""Exit status for input that cannot be used; also that of argparse."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with the verbs of the library; see :func:`run`."""
    return run(parser_of(), argv)


def run(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> int:
    """Run the command of a parser and return its exit status.

    The status is 0 for success, 1 for a partial result, and 2 for an error of the user's input.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal without the characters of "J M⁻¹ Jᵀ" shows question marks.
        sys.stdout.reconfigure(errors="replace")
    complete(parser)
    try:
        with shown_output():
            return _run(parser.parse_args(argv))
    except BrokenPipeError:
        discard_output()
        return 0


def _run(options: argparse.Namespace) -> int:
    """Run a verb, write its report, and return the exit status."""
    try:
        with warnings.catch_warnings():
            # Python's default text would contain a source line of this program.
            warnings.simplefilter("always", DelassusWarning)
            warnings.showwarning = _shown
            import_all(options)
            report: Report = options.run(options)
    except DelassusError as error:
        print(error, file=sys.stderr)
        return USER_ERROR
    except BrokenPipeError:
        raise
    except OSError as error:
        # A full disk or a read-only folder, in any verb.
        about = f"{error.filename}: " if error.filename else ""
        print(f"delassus: {about}{error.strerror or error}", file=sys.stderr)
        return USER_ERROR
    try:
        print(report.json() if options.json else report.text, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        print(f"delassus: the answer cannot be written: {error.strerror}", file=sys.stderr)
        discard_output()
        return USER_ERROR
    return report.status


def _shown(message: Warning | str, *_: object, **__: object) -> None:
    print(f"warning: {message}", file=sys.stderr)


def parser_of(component: Component | None = None) -> argparse.ArgumentParser:
    """Return the parser of the command.

    Parameters
    ----------
    component : the verbs of nodes and recordings; None for the verbs of the library alone.
    """
    groups = {**_GROUPS, **(component.groups if component else {})}
    listed = "\n".join(
        line
        for heading, verbs in groups.items()
        for line in (f"{heading}:", *(f"  {verb.name:12}{verb.summary}" for verb in verbs), "")
    )
    parser = SuggestingParser(
        prog="delassus",
        usage="delassus [--version] VERB ...",
        description=f"{_DESCRIPTION}\n{listed}".rstrip(),
        epilog=f"{_EXAMPLES}{component.examples if component else ''}{_LAST}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--version", action="version", version=f"%(prog)s {delassus.__version__}"
    )
    verbs = parser.add_subparsers(
        metavar="VERB", required=True, prog="delassus", help=argparse.SUPPRESS
    )
    parser.set_defaults(component=component)
    for verb in (verb for group in groups.values() for verb in group):
        verb.add_to(verbs)
    return parser


if __name__ == "__main__":
    sys.exit(main())
