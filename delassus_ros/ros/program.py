"""Start and end of a program with a ROS node: arguments, refusals, signals, exit status."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Generic, NoReturn, TypeVar

import rclpy
from rclpy.exceptions import NameValidationException, ParameterException
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import remove_ros_args, try_shutdown

from delassus.errors import DelassusError, InputError
from delassus.programs.needs import missing
from delassus.programs.stopping import StopRequest
from delassus.visible import visible

_ROS_REFUSALS = (
    ParameterException,
    NameValidationException,
    # Errors of an argument that ROS cannot read, or of a middleware that refuses to start, e.g.
    # without the keys that ROS_SECURITY_* requires.
    rclpy_implementation.RCLError,
    rclpy_implementation.RCUtilsError,
    rclpy_implementation.RMWError,
    rclpy_implementation.UnknownROSArgsError,
)
_REFUSALS = (DelassusError, *_ROS_REFUSALS)

N = TypeVar("N", bound=Node)


def run_program(
    name: str,
    make: Callable[[], N],
    run: Callable[[N, Callable[[], bool]], int],
    arguments: Sequence[str] | None = None,
    usage: str = "",
) -> int:
    """Make a node and run it until SIGINT, SIGTERM or SIGHUP; return the exit status.

    If ROS or the node refuses to start, one line on standard error has the reason, and the status
    is 1. Later errors are raised.

    Parameters
    ----------
    make : returns the node; called after ROS is initialised.
    run : called with the node and a function that returns whether to stop; returns the exit
        status.
    arguments : command line, the program's name first; that of this process if None.
    usage : text for the options -h and --help; these are no options if it is empty.
    """
    command_line = sys.argv if arguments is None else list(arguments)
    if usage and not {"-h", "--help"}.isdisjoint(command_line):
        print(usage, end="")
        return 0
    with StopRequest() as stop, ExitStack() as end:
        try:
            end.enter_context(ros(command_line))
            _refuse_others(command_line)
            node = make()
        except _REFUSALS as error:
            print(visible(f"{name}: {_text_of(error)}"), file=sys.stderr)
            return 1
        return run(node, lambda: stop.requested)


@dataclass(frozen=True)
class Program(Generic[N]):
    """A program with a ROS node: calling it runs the node and returns the exit status.

    Attributes
    ----------
    name, make, run, usage : as for :func:`run_program`.
    needs : Python packages besides ROS; an error line names the missing ones and the remedy.
    terminal_needs : further packages if standard output is a terminal.
    """

    name: str
    make: Callable[[], N]
    run: Callable[[N, Callable[[], bool]], int]
    usage: str
    needs: tuple[str, ...] = ()
    terminal_needs: tuple[str, ...] = ()

    def __call__(self, arguments: Sequence[str] | None = None) -> int:
        """Run the node until a stop is requested; arguments are those of this process if None."""
        on_terminal = self.terminal_needs if sys.stdout.isatty() else ()
        fault = missing(self.name, *self.needs, *on_terminal)
        if fault is not None:
            print(fault, file=sys.stderr)
            return 1
        return run_program(self.name, self.make, self.run, arguments, self.usage)

    def end_process(self) -> NoReturn:
        """Run the node, and end the process with its exit status, whatever signals come then."""
        with StopRequest(last=True):
            sys.exit(self())


def report(summary: str, faults: Sequence[str]) -> int:
    """Print a summary and, on standard error, faults; return the exit status: 1 with faults."""
    print(summary)
    for fault in faults:
        print(f"fault: {fault}", file=sys.stderr)
    return 1 if faults else 0


_OVERRIDE = re.compile(r"parse parameter override rule: '(?:-p|--param) ([^\s:]+):=")
_DESCRIPTION = "robot_description"


def _text_of(error: Exception) -> str:
    """Return the reason why a program does not start, in one line."""
    text = " ".join(str(error).split())
    rule = _OVERRIDE.search(text)
    if rule is None:
        return text
    # rclpy's text has the whole value, which may be a robot description.
    if rule[1].rpartition(".")[2] == _DESCRIPTION:
        advice = (
            f"give it to a launch file as {_DESCRIPTION}_file:=PATH, on the topic {_DESCRIPTION}, "
            f"or in a parameter file as a block ({_DESCRIPTION}: |)"
        )
    else:
        advice = f"put it in quotes, as in -p {rule[1]}:='\"a: b\"'"
    return (
        f"parameter {rule[1]!r}: ROS reads values on the command line as YAML, and cannot read "
        "this one; a colon before a space is the usual reason, in a comment of XML, too. Take "
        f"that out, or {advice}"
    )


def _refuse_others(arguments: Sequence[str]) -> None:
    """Refuse arguments that are not ROS's, which ROS would ignore silently."""
    unknown = remove_ros_args(list(arguments))[1:]
    if unknown:
        raise InputError(
            f"unknown argument {unknown[0]!r}; all are ROS's and follow --ros-args, as in "
            "--ros-args --params-file FILE -p NAME:=VALUE"
        )


@contextmanager
def ros(arguments: Sequence[str]) -> Iterator[None]:
    """Initialise ROS without its signal handlers, and shut it down after the block."""
    # rclpy's signal handlers would invalidate the context while the executor runs.
    rclpy.init(args=list(arguments), signal_handler_options=SignalHandlerOptions.NO)
    try:
        yield
    finally:
        try_shutdown()


@contextmanager
def peer(name: str) -> Iterator[Node]:
    """Provide a node that only publishes and subscribes during a block.

    Raises
    ------
    InputError
        If ROS refuses to start, or refuses a name, such as a topic with a space.
    """
    try:
        with ros([]):
            node = rclpy.create_node(name, start_parameter_services=False)
            try:
                yield node
            finally:
                node.destroy_node()
    except _ROS_REFUSALS as error:
        raise InputError(_text_of(error)) from error
