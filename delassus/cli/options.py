"""From command-line options to a problem and its inputs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence

import numpy as np

from delassus.cli.parsing import frames
from delassus.contact_forces.forces import ForceOptions
from delassus.contacts import Contact
from delassus.errors import NAMED, InputError, RobotError, listed, unknown
from delassus.model.reading.numbers import number, numbers
from delassus.model.robot import LOOPS_AS, Robot
from delassus.model.spatial import Array
from delassus.outputs import kernel_outputs
from delassus.problem import Problem
from delassus.programs.command_line import duration
from delassus.robots.description import BUILT_IN, Description, described_by
from delassus.solver.friction import ForceSettings
from delassus.solver.inputs import check_unit
from delassus.solver.remedies import counted

NEUTRAL, POSE = "neutral", "pose"
_NONE, _FINGERS = "none", "fingers"
_KINDS = ("point", "surface")
DEFAULT_POSTURE = (
    "the pose home, stand, standing or default, or the only one; else 'pose', bent if G is "
    "singular there"
)
"""The first posture of every verb, for the help."""
SPEEDS = {"slip_speed": "slides", "leave_speed": "leaves", "strike_speed": "strikes"}
"""What a contact does above each of the velocities of contact forces."""


def add_robot(parser: argparse.ArgumentParser, required: bool = True) -> None:
    """Add the robot and its base."""
    parser.add_argument(
        "robot",
        nargs=None if required else "?",
        metavar="ROBOT",
        help="robot description: a URDF, xacro or MJCF file, or the name of a robot of this "
        f"package: {', '.join(BUILT_IN)}; NAME:=VALUE are arguments of a xacro file",
    )
    add_base(parser)


def group_of(
    parser: argparse.ArgumentParser, title: str, description: str | None = None
) -> argparse._ArgumentGroup:
    """Return the group of options with a title; help shows groups after the verb's own options."""
    for group in parser._action_groups:
        if group.title == title:
            return group
    return parser.add_argument_group(title, description)


def _of_robot(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    return group_of(parser, "the robot", "explained by `delassus help`")


def add_base(parser: argparse.ArgumentParser) -> None:
    """Add the base of the robot, its locked joints, and its loops."""
    group = _of_robot(parser)
    group.add_argument(
        "--base", choices=("floating", "fixed"), help="how the root link is held (default: likely)"
    )
    group.add_argument(
        "--lock", metavar="JOINT=VALUE,…", help="joints that are fixed; 'fingers', or 'none'"
    )
    add_loops(parser)
    group.add_argument("--srdf", metavar="FILE", help="named poses (default: those beside a URDF)")
    group.add_argument(
        "--no-passive", action="store_true", help="no springs, dampers, gravity compensation"
    )


def add_axes(parser: argparse.ArgumentParser, default: str | None = "contact") -> None:
    """Add the axes of the rows."""
    parser.add_argument(
        "--axes",
        choices=("contact", "world"),
        default=default,
        help="axes of the rows (default: contact)",
    )


def add_loops(parser: argparse.ArgumentParser) -> None:
    """Add the file of loops that a URDF cannot describe."""
    group = _of_robot(parser)
    group.add_argument(
        "--loops", metavar="LOOPS.yaml", help="loops, couplings and rotors beside the description"
    )
    group.add_argument("--loops-as", choices=LOOPS_AS, help="how loops close (default: clusters)")


def add_reference(parser: argparse.ArgumentParser) -> None:
    """Add the configuration that selects the branch on which loops close."""
    _of_robot(parser).add_argument(
        "--reference", metavar="JOINT=VALUE,…", help="positions that select the branch of loops"
    )


def add_problem(parser: argparse.ArgumentParser) -> None:
    """Add the robot, its contacts and the axes."""
    add_robot(parser)
    add_contacts(parser)
    add_axes(parser)
    add_reference(parser)


def add_contacts(parser: argparse.ArgumentParser) -> None:
    """Add the contacts; by default these are the ends of limbs."""
    argument = parser.add_argument(
        "--contact",
        action="append",
        metavar="[NAME=]FRAME[:KIND]",
        dest="contacts",
        help="contact on a frame, of kind point (default) or surface; without NAME the contact "
        "has the name of the frame; may be repeated (default: the ends of the robot's limbs)",
    )
    argument.completer = frames  # type: ignore[attr-defined]


def add_degrees(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the option that the angles of `what` are in degrees."""
    parser.add_argument(
        "--degrees",
        action="store_true",
        help=f"angles of {what} are in degrees; angles of other options stay in rad",
    )


def add_configuration(parser: argparse.ArgumentParser, more: str = "") -> None:
    """Add the configuration; `more` are further options with a configuration."""
    parser.add_argument(
        "--q",
        metavar="VALUES",
        help="joint positions [rad, m]: the name of a pose of the robot description, as 'home'; "
        "'pose', where joints are at 0, or in the middle of limits that exclude 0; 'neutral', "
        "where all are at 0; all of q as 0.1,-0.2,…; or some joints as hip=0.1,knee=-0.2, the "
        f"remaining joints as in the default (default: {DEFAULT_POSTURE})",
    )
    add_degrees(parser, "--q" + more)
    parser.add_argument(
        "--orientation",
        metavar="X,Y,Z,W",
        help="unit quaternion of the root link; needed for world axes with a floating base",
    )


def add_algorithm(parser: argparse.ArgumentParser, default: str = "auto") -> None:
    """Add the algorithm."""
    parser.add_argument(
        "--algorithm",
        default=default,
        metavar="NAME",
        help="algorithm, one of `delassus list` (default: %(default)s)",
    )


def add_seconds(parser: argparse.ArgumentParser) -> None:
    """Add how long the verb runs."""
    parser.add_argument(
        "--seconds", type=duration, metavar="S", help="duration [s] (default: until Ctrl-C)"
    )


_MOTION = {
    "rates": "velocities [rad/s, m/s], a floating base's twist first, linear before angular",
    "torques": "torques [N·m, N] along these velocities, a floating base's wrench first",
    "gravity": "gravity [m/s²] along the axes of the world; of a floating base with contact axes: "
    "along the axes of the root link",
}
"""Inputs of secondary outputs, with their descriptions."""


def add_outputs(parser: argparse.ArgumentParser) -> None:
    """Add secondary outputs, and the inputs that they need."""
    group = group_of(parser, "outputs of motion")
    group.add_argument(
        "--outputs",
        default="G",
        metavar="NAME,…",
        help="outputs that are printed besides G, any of "
        f"{', '.join((*kernel_outputs()[1:], 'forces'))} (default: G alone)",
    )
    for name, what in _MOTION.items():
        default = "0,0,-9.81" if name == "gravity" else "0"
        form = "X,Y,Z" if name == "gravity" else "VALUES"
        group.add_argument(f"--{name}", metavar=form, help=f"{what} (default: {default})")


def add_forces(parser: argparse.ArgumentParser) -> None:
    """Add friction, law and velocities of the output ``forces``."""
    group = group_of(parser, "the output forces")
    group.add_argument(
        "--friction",
        type=float,
        metavar="MU",
        help=f"coefficient of friction (default: {ForceSettings.friction})",
    )
    group.add_argument(
        "--law",
        choices=("auto", "coulomb", "convex"),
        help=f"law (default: {ForceSettings.law}, whose other name is auto)",
    )
    group.add_argument(
        "--dimensions",
        metavar="LENGTH,WIDTH",
        help="length along x and width along y of surfaces [m]",
    )
    for name, does in SPEEDS.items():
        group.add_argument(
            f"--{name.replace('_', '-')}",
            type=float,
            metavar="SPEED",
            help=f"a contact {does} above it [m/s] (default: {getattr(ForceSettings, name)})",
        )


def forces_of(options: argparse.Namespace) -> tuple[float, ForceOptions] | None:
    """Return friction and arguments of the output ``forces``; None if it is not asked for.

    Raises
    ------
    InputError
        If an option of forces is given without them.
    """
    if "forces" not in outputs_of(options):
        for name in ("friction", "law", "dimensions", *SPEEDS):
            if getattr(options, name) is not None:
                option = name.replace("_", "-")
                raise InputError(f"--{option} is of use with --outputs forces alone")
        return None
    given = {name: getattr(options, name) for name in ("friction", "law", *SPEEDS)}
    settings = ForceSettings(**{name: x for name, x in given.items() if x is not None})
    dimensions = length_and_width(options.dimensions)
    return settings.friction, {**settings.options, "dimensions": dimensions}


def length_and_width(text: str | None) -> list[float] | None:
    """Return length and width of ``--dimensions`` [m]; None without the option."""
    if text is None:
        return None
    try:
        length, width = map(float, text.split(","))
    except ValueError as error:
        raise InputError(f"--dimensions {text}: expected LENGTH,WIDTH in m, as 0.2,0.1") from error
    return [length, width]


def names_in(text: str) -> tuple[str, ...]:
    """Return the names of ``NAME,…``."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def outputs_of(options: argparse.Namespace) -> list[str]:
    """Return the names of the outputs."""
    return [name.strip() for name in options.outputs.split(",")]


def motion_of(options: argparse.Namespace, problem: Problem) -> dict[str, Array]:
    """Return the inputs of secondary outputs.

    Raises
    ------
    InputError
        If no output needs an input, or an input has the wrong count of numbers.
    """
    needed = {port.name: port for port in problem.inputs}
    found = {}
    for name in _MOTION:
        text = getattr(options, name)
        if name in needed:
            rest = np.zeros(needed[name].size)
            names: Sequence[str] = problem.velocities
            if name == "gravity":
                rest[2], names = -9.81, "xyz"
            found[name] = rest if text is None else numbers_of(f"--{name}", text, names)
        elif text is not None:
            raise InputError(f"--{name} is of use with --outputs that need it alone, such as a0")
    return found


def described(options: argparse.Namespace) -> Description:
    """Return the robot of the options, its joints locked, and its description.

    The description may be that of a pipe and is read once. If a base is assumed to be fixed
    without an option, a line is written to standard error.

    Raises
    ------
    InputError
        If fingers are to be locked, and the robot has none.
    """
    locks = None if options.lock in (None, _NONE, _FINGERS) else options.lock
    found = described_by(
        options.robot, options.base, options.loops, options.loops_as or "clusters",
        None if locks is None else given_joints("--lock", locks), options.xacro,
        passive=not options.no_passive, srdf=options.srdf,
    )  # fmt: skip
    if options.lock != _FINGERS:
        return found
    if not found.limbs.fingers:
        raise InputError(
            f"--lock fingers: no joint of robot {found.robot.name!r} is called as one of a finger"
        )
    return found.locked(found.fingers(), "--lock fingers")


def problem_of(options: argparse.Namespace, outputs: Iterable[str] | None = None) -> Problem:
    """Return the problem of the options."""
    if outputs is None:
        outputs = outputs_of(options) if "outputs" in options else ["G"]
    return problem_with(options, described(options), outputs)


def problem_with(
    options: argparse.Namespace, found: Description, outputs: Iterable[str] = ("G",)
) -> Problem:
    """Return the problem of a robot with the contacts and axes of the options."""
    return Problem(found.robot, contacts_of(options, found), options.axes or "contact", outputs)


def contacts_of(options: argparse.Namespace, found: Description) -> list[Contact]:
    """Return the contacts of the options; without these the ends of limbs.

    The number of locked joints, the assumptions about proposed contacts and the number of moving
    joints of fingers are written to standard error.

    Raises
    ------
    InputError
        If two contacts have the same name, or no limb has an end that touches.
    """
    robot = found.robot
    if options.contacts:
        tell_locked(found)
        return _stated(options, robot)
    chosen = [end for end in found.proposals if end.chosen]
    if not chosen:
        raise InputError(
            f"nothing of robot {robot.name!r} looks as if it touched; add --contact FRAME, of "
            f"{listed('frame', list(robot.frames))}"
        )
    tell_proposed(found)
    return [end.contact() for end in chosen]


def tell_locked(found: Description) -> None:
    """Print how many joints of the robot are locked on standard error, if any are."""
    if found.held:
        print(f"{found.held_words}: {listed('', list(found.held))}", file=sys.stderr)


def tell_proposed(found: Description) -> None:
    """Print locked joints, the assumptions about proposed contacts, and how many fingers move."""
    tell_locked(found)
    chosen = [end for end in found.proposals if end.chosen]
    for why in dict.fromkeys(end.why for end in chosen if "assumed" in end.why):
        alike = [end.frame for end in chosen if end.why == why]
        print(f"{listed('contact', alike)}: {why}", file=sys.stderr)
    if found.limbs.fingers:
        print(found.finger_words, file=sys.stderr)


def _stated(options: argparse.Namespace, robot: Robot) -> list[Contact]:
    contacts = [_contact(text, robot) for text in options.contacts or ()]
    names = [contact.name for contact in contacts]
    for contact in contacts:
        if names.count(contact.name) > 1:
            raise InputError(
                f"--contact: two are called {contact.name!r}; give one a name: "
                f"NAME={contact.frame}"
            )
    return contacts


def orientation_of(options: argparse.Namespace, problem: Problem) -> Array | None:
    """Return the orientation of the base as a unit quaternion; None if the problem needs none."""
    oriented = any(port.name == "base_orientation" for port in problem.inputs)
    orientation = None
    if options.orientation is not None:
        orientation = numbers_of("--orientation", options.orientation, "xyzw")
        check_unit("--orientation", orientation[:, np.newaxis], "")
    if orientation is None and oriented:
        raise InputError(
            "--axes world with a floating base needs the orientation of the root link: add "
            "--orientation X,Y,Z,W, for example --orientation 0,0,0,1"
        )
    if orientation is not None and not oriented:
        raise InputError("--orientation is of use with --axes world and a floating base alone")
    return orientation


def way_out(is_angle: bool, degrees: bool) -> str:
    """Return the remedy for an implausible position."""
    if is_angle and not degrees:
        return "; if angles are in degrees, add --degrees"
    return "; was the joint homed, and is the column its own?"


def warn(options: argparse.Namespace, warnings: Sequence[str]) -> None:
    """Write warnings to standard error, the first ones of many.

    All warnings are stored in ``options.warnings``, for the report as data.
    """
    options.warnings = (*options.warnings, *warnings)
    tell(warnings)


def tell(warnings: Sequence[str]) -> None:
    """Write warnings to standard error, the first ones of many."""
    for words in warnings[:NAMED]:
        print(f"warning: {words}", file=sys.stderr)
    if len(warnings) > NAMED:
        print(f"warning: {len(warnings) - NAMED} more like these", file=sys.stderr)


def given_joints(option: str, text: str) -> dict[str, float]:
    """Return the positions of ``joint=value,…``."""
    values = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals and _is_text(part):
            raise InputError(f"{option}: {part!r} has no value; write {part}=…")
        if not equals:
            raise InputError(f"{option}: {part!r} has no joint; write joint=value for every entry")
        if name in values:
            raise InputError(f"{option}: joint {name!r} is given twice")
        what = f"{option}: joint {name!r}"
        try:
            values[name] = number(value)
        except ValueError as error:
            raise InputError(f"{what}: {error}") from error
        _finite(what, [values[name]])
    return values


def is_word(text: str) -> bool:
    """Return whether a text may be the name of a pose: no list, no positions and no number."""
    is_list = "," in text or "=" in text
    return not is_list and _is_text(text) and any(map(str.isalpha, text))


def _is_text(part: str) -> bool:
    try:
        number(part)
    except ValueError:
        return bool(part.strip())
    return False


def _contact(text: str, robot: Robot) -> Contact:
    """Return the contact of ``[NAME=]FRAME[:KIND]``; names of frames may have ``=`` and ``:``."""
    frames = robot.frames
    name, equals, place = text.partition("=")
    if not equals or text in frames or text.rpartition(":")[0] in frames:
        name, place = "", text
    frame, kind = place, "point"
    if place not in frames and ":" in place:
        frame, _, kind = place.rpartition(":")
        if kind not in _KINDS:
            raise InputError(f"--contact {text}: {unknown('kind', kind, _KINDS)}")
    return Contact(name or frame, frame=frame, kind=kind)


def _numbers(what: str, text: str) -> Array:
    try:
        values = [number(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(
            f"{what}: {text!r} is not a list of numbers like 0.1,-0.2: {error}"
        ) from error
    return _finite(what, values)


def _finite(what: str, values: Sequence[float]) -> Array:
    """Return numbers, unless one is NaN or larger than any of a robot."""
    try:
        return numbers(values, len(values), what)
    except RobotError as error:  # the reader's, whatever it reads
        raise InputError(str(error)) from error


def numbers_of(option: str, text: str, names: Sequence[str]) -> Array:
    """Return the numbers of an option, one per name."""
    values = _numbers(option, text)
    if len(values) != len(names):
        count = "1 number" if len(values) == 1 else f"{len(values)} numbers"
        raise InputError(f"{option}: {count}, expected {len(names)}: {counted(names)}")
    return values
