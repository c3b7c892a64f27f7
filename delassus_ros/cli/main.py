"""The command `delassus`."""
# PYTHON_ARGCOMPLETE_OK

from __future__ import annotations

import argparse
import io
import sys
import warnings
from collections.abc import Sequence

import delassus_ros
from delassus_ros.cli.bag import BAG, BAGS, TRAJECTORY
from delassus_ros.cli.compare import COMPARE, LIST
from delassus_ros.cli.compute import COMPUTE
from delassus_ros.cli.config import CONFIG
from delassus_ros.cli.export import EXPORT
from delassus_ros.cli.imports import import_all
from delassus_ros.cli.inspection import INSPECT
from delassus_ros.cli.live import CONTACTS, RECORD, WATCH
from delassus_ros.cli.parsing import SuggestingParser, complete
from delassus_ros.cli.plot import PLOT
from delassus_ros.cli.report import Report
from delassus_ros.cli.rotors import ROTORS
from delassus_ros.cli.run import RUN
from delassus_ros.cli.view import VIEW
from delassus_ros.errors import DelassusError, DelassusWarning
from delassus_ros.programs.terminal import discard_output, shown_output

_DESCRIPTION = """\
Compute the Delassus matrix G = J M⁻¹ Jᵀ of the contacts of a robot: the inverse
inertia that forces at the contacts feel.
"""

_EXAMPLES = """\
examples:
  delassus list
  delassus inspect quadruped.urdf
  delassus compute quadruped.urdf --contact LF_FOOT --contact RH_FOOT --q LF_KFE=-1.4
  delassus compute arm.urdf --base fixed --contact tool0:surface
  delassus compare quadruped.urdf --contact LF_FOOT --contact RF_FOOT
  delassus compare quadruped.urdf --contact LF_FOOT --plot compared.svg
  delassus plot quadruped.urdf --contact LF_FOOT --contact RF_FOOT -o quadruped.svg
  delassus view my_robot.urdf
  delassus run my_robot.urdf
  delassus rotors geared_arm.urdf --base fixed
  delassus watch
  delassus contacts LF_FOOT RH_FOOT
  delassus config quadruped.urdf > quadruped.yaml
  delassus export quadruped.urdf --contact LF=LF_FOOT --contact RH=RH_FOOT --axes world
  delassus bag run.mcap --params quadruped.yaml -o out

`delassus VERB --help` explains a verb.
"""

_VERBS = (
    LIST, INSPECT, CONFIG, COMPUTE, COMPARE, PLOT, VIEW, RUN, ROTORS, EXPORT, WATCH, CONTACTS,
    RECORD, BAG, BAGS, TRAJECTORY,
)  # fmt: skip

USER_ERROR = 2
"""Exit status for input that cannot be used; also that of argparse."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status.

    The status is 0 for success, 1 for a partial result, and 2 for an error of the user's input.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal without the characters of "J M⁻¹ Jᵀ" shows question marks.
        sys.stdout.reconfigure(errors="replace")
    parser = _parser()
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


def _parser() -> argparse.ArgumentParser:
    parser = SuggestingParser(
        prog="delassus",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--version", action="version", version=f"%(prog)s {delassus_ros.__version__}"
    )
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    for verb in _VERBS:
        verb.add_to(verbs)
    return parser


if __name__ == "__main__":
    sys.exit(main())
