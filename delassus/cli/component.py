"""What the ROS component adds to the command: verbs of its own, and parts of other verbs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from delassus.cli.parsing import Verb
from delassus.cli.report import Report
from delassus.errors import InputError
from delassus.model.robot import Robot
from delassus.model.spatial import Array
from delassus.problem import Problem
from delassus.robots.description import Description
from delassus.solver.solver import DelassusSolver

if TYPE_CHECKING:
    from delassus.drawing.snapshot import Moment


@dataclass(frozen=True, eq=False)
class Played:
    """States of a robot at times (N,) since the first [s], and the solver of their matrices."""

    seconds: Array
    moments: list[Moment]
    solver: DelassusSolver


@dataclass(frozen=True)
class Component:
    """The ROS component of the command.

    Attributes
    ----------
    groups : verbs of nodes and recordings, by the heading under which the help shows them.
    examples : lines of examples of these verbs, for ``delassus --help``.
    exported : problem and algorithm of ``export CONFIG.yaml --urdf ROBOT.urdf``.
    view_node : ``view --node``: a running node in the browser.
    played : states of the recording of ``view --data`` as the node reads them; None where the
        positions alone are read.
    positions : times (N,) [s] and configurations (N, nq) of a recording for a robot; writes
        warnings.
    """

    groups: dict[str, tuple[Verb, ...]]
    examples: str
    exported: Callable[[argparse.Namespace], tuple[Problem, str]]
    view_node: Callable[[argparse.Namespace], Report]
    played: Callable[[argparse.Namespace, Description], Played | None]
    positions: Callable[[Path, Robot, Callable[[Sequence[str]], object]], tuple[Array, Array]]


def component_of(options: argparse.Namespace, what: str) -> Component:
    """Return the ROS component of the command.

    Raises
    ------
    InputError
        If this command has no such component; begins with `what` needs the component.
    """
    component: Component | None = options.component
    if component is None:
        raise InputError(
            f"{what} needs the package delassus_ros, which is not part of this command "
            f"({sys.executable})"
        )
    return component
