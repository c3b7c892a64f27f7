"""The command `delassus`."""
# PYTHON_ARGCOMPLETE_OK

from __future__ import annotations

import argparse
import io
import sys
import warnings
from collections.abc import Callable, Sequence

import delassus_ros
from delassus_ros.cli import (
    bag,
    commands,
    config,
    export,
    inspection,
    live,
    plot,
    rotors,
    run,
    view,
)
from delassus_ros.cli.imports import add_import, import_all
from delassus_ros.cli.options import (
    add_configuration,
    add_contacts,
    add_forces,
    add_outputs,
    add_problem,
    add_robot,
)
from delassus_ros.cli.parsing import SuggestingParser, complete
from delassus_ros.cli.report import Report
from delassus_ros.command_line import Whole
from delassus_ros.errors import DelassusError, DelassusWarning
from delassus_ros.terminal import discard_output, shown_output

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

_MOST_CALLS = 1_000_000
"""Largest number of timed calls: their configurations and times are in memory."""

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

    def verb(
        name: str, run: Callable[[argparse.Namespace], Report], summary: str, example: str
    ) -> argparse.ArgumentParser:
        added: argparse.ArgumentParser = verbs.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            epilog=f"example:\n  delassus {name} {example}".rstrip(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        added.add_argument("--json", action="store_true", help="answer as JSON, for programs")
        added.set_defaults(run=run, parser=added, warnings=())
        return added

    verb("list", commands.list_algorithms, "list the algorithms", "")
    add_robot(
        verb(
            "inspect",
            inspection.inspect_robot,
            "show the joints of a robot as a tree, with their places in q, and likely contacts",
            "quadruped.urdf",
        )
    )
    add_robot(
        verb(
            "config",
            config.propose,
            "propose a parameter file of the node for a robot",
            "my_robot.urdf > my_robot.yaml",
        )
    )
    compute = verb(
        "compute",
        commands.compute,
        "print the matrix at one configuration",
        "arm.urdf --base fixed --contact tool0:surface --q elbow=1.2",
    )
    add_problem(compute)
    add_configuration(compute)
    add_outputs(compute)
    add_forces(compute)
    compute.add_argument(
        "--algorithm",
        default="pv_osimr",
        metavar="NAME",
        help="algorithm, one of `delassus list` (default: pv_osimr)",
    )
    compare = verb(
        "compare",
        commands.compare,
        "compare all algorithms by operations, time per call and agreement",
        "quadruped.urdf --contact LF_FOOT --contact RH_FOOT",
    )
    add_problem(compare)
    compare.add_argument(
        "other",
        nargs="?",
        metavar="OTHER.parquet",
        help="second table, if ROBOT is a table: the matrices of both are compared",
    )
    compare.add_argument(
        "--calls",
        type=Whole(1, _MOST_CALLS),
        default=1000,
        metavar="N",
        help="number of timed calls (default: %(default)s)",
    )
    compare.add_argument(
        "--plot",
        metavar="FIGURE.svg",
        help="figure of operations and times that is written, .svg, .png or .pdf",
    )
    plot.add_plot(
        verb(
            "plot",
            plot.plot,
            "draw a robot with its ellipsoids, the matrix, condition numbers and computing times",
            "quadruped.urdf --contact LF_FOOT --contact RH_FOOT --to LF_KFE=-2.0 -o quadruped.svg",
        )
    )
    view.add_view(
        verb(
            "view",
            view.view,
            "show a robot in the browser, with sliders for joints and live ellipsoids",
            "my_robot.urdf --forces",
        )
    )
    run.add_run(
        verb(
            "run",
            run.run,
            "start a node for a robot, with joint states by sliders, and show the robot "
            "in the browser",
            "my_robot.urdf",
        )
    )
    rotors_of = verb(
        "rotors",
        rotors.report,
        "show how the rotors of a geared robot become inertias and armatures of its links",
        "docs/geared_leg.urdf --base fixed --contact sole",
    )
    add_robot(rotors_of)
    add_contacts(rotors_of)
    export.add_export(
        verb(
            "export",
            export.export_kernel,
            "compile the matrix for C and C++: an object file, its header and a CMake package",
            "quadruped.urdf --contact LF_FOOT --contact RF_FOOT -o quadruped.o",
        )
    )
    live.add_watch(
        verb(
            "watch",
            live.watch,
            "show the matrices of a running node in the terminal",
            "--node delassus_node",
        )
    )
    live.add_contacts_of_node(
        verb(
            "contacts",
            live.contacts,
            "publish the set of active contacts for a running node",
            "LF_FOOT RH_FOOT",
        )
    )
    live.add_record(
        verb(
            "record",
            live.record,
            "record the topics of a running graph to an MCAP file",
            "-o run.mcap",
        )
    )
    bag.add_bag(
        verb(
            "bag",
            bag.bag,
            "compute the messages of the node, and a table of matrices, from a recording",
            "run.mcap --params my_robot.yaml -o out",
        )
    )
    bag.add_bags(
        verb(
            "bags",
            bag.bags,
            "compute the messages of the node, and tables of matrices, from many recordings, on "
            "all processors",
            "data/*.mcap --params my_robot.yaml -o out",
        )
    )
    bag.add_trajectory(
        verb(
            "trajectory",
            bag.trajectory,
            "compute the matrices of a table of joint positions (NumPy, CSV, Parquet, LeRobot)",
            "quadruped.urdf --contact LF_FOOT --data walk.parquet -o matrices.parquet",
        )
    )
    for name in ("list", "compute", "compare", "plot", "export", "trajectory"):
        add_import(verbs.choices[name])
    return parser


if __name__ == "__main__":
    sys.exit(main())
