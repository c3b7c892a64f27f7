"""What to tell other libraries of a geared robot: inertias and armatures that make it a tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from delassus_ros.algorithms.pv_osimr import pv_osimr
from delassus_ros.algorithms.reflected_inertia import ReflectedInertia
from delassus_ros.arguments import count, instance, names, shown
from delassus_ros.contacts import Contact, ContactSet
from delassus_ros.errors import InputError, ProblemError, RobotError, unknown
from delassus_ros.model.robot import FROM_URDF, Robot
from delassus_ros.model.spatial import Array, Inertia
from delassus_ros.problem import Problem
from delassus_ros.rbda.rotors import lock, redistribute
from delassus_ros.rbda.spatial import contact_rows
from delassus_ros.rbda.trees import closed_tree, tree_of
from delassus_ros.samples import random_inputs
from delassus_ros.scalars.functions import Matrix
from delassus_ros.scalars.ports import Inputs
from delassus_ros.solver.inputs import InputCheck
from delassus_ros.terminal import visible


@dataclass(frozen=True, eq=False)
class RotorReport:
    """A geared robot as an ordinary tree, exactly and as it is usually done.

    Attributes
    ----------
    geared : the robot with its rotors.
    robot : the ordinary tree that moves exactly like it: the rotors' joints and bodies are gone,
        inertias and armatures of the others changed. The inertias need not be those of bodies
        and armatures may be negative, which dynamics libraries accept and simulators that check
        their input do not. Its q is that of `geared` at the joints that are left.
    usual : the same tree with the rotors locked to the bodies that carry them and with g²J as
        armatures: an approximation.
    """

    geared: Robot
    robot: Robot
    usual: Robot

    @property
    def armatures(self) -> Mapping[str, tuple[float, float]]:
        """Armature by joint, exact and usual, where rotors change it [kg·m² or kg]."""
        before = {joint.name: joint.armature for joint in self.geared.joints}
        pairs = zip(self.robot.joints, self.usual.joints, strict=True)
        return {
            exact.name: (exact.armature, usual.armature)
            for exact, usual in pairs
            if (exact.armature, usual.armature) != (before[exact.name],) * 2
        }

    @property
    def inertias(self) -> Mapping[str, Inertia]:
        """Inertia by body, about the origin of its frame, where rotors change it."""
        before = {body.name: body.inertia for body in self.geared.bodies}
        return {
            body.name: body.inertia
            for body in self.robot.bodies
            if body.inertia.to_bytes() != before[body.name].to_bytes()
        }

    def usual_error(
        self, contacts: ContactSet | Iterable[Contact], samples: int = 20, seed: int = 0
    ) -> float:
        """Return the largest ‖G_usual − G‖ / ‖G‖ (Frobenius) at random configurations.

        Parameters
        ----------
        contacts : what may touch.
        samples, seed : of the configurations.

        Raises
        ------
        ContactError
            If a contact names an unknown frame, or one that went with a rotor.
        InputError
            If `samples` is no whole number from 1 on.
        """
        samples = count("samples", samples)
        contacts = ContactSet(contacts)
        exact, usual = Problem(self.robot, contacts), Problem(self.usual, contacts)
        errors = []
        for k in range(samples):
            inputs = random_inputs(exact, seed=seed + k)
            G, approximate = _matrix(exact, inputs), _matrix(usual, inputs)
            errors.append(float(np.linalg.norm(approximate - G) / np.linalg.norm(G)))
        return max(errors)

    def __str__(self) -> str:
        lines = [f"{visible(self.geared.name)} as an ordinary tree, exactly:"]
        lines += [
            f"  joint {name}: armature {exact:.9g} (usually g²J = {usual:.9g})"
            for name, (exact, usual) in self.armatures.items()
        ]
        for name, inertia in self.inertias.items():
            i = inertia.rotational
            lines.append(
                f"  body {name}: mass {inertia.mass:.9g}, mass × centre "
                f"{_listed(inertia.moment)}, inertia about the frame's origin "
                f"xx yy zz xy xz yz {_listed([*np.diag(i), i[0, 1], i[0, 2], i[1, 2]])}"
            )
        return "\n".join(lines)


def rotor_report(robot: Robot, keep: Iterable[str] = ()) -> RotorReport:
    """Return the ordinary tree that a geared robot is.

    Parameters
    ----------
    robot : with its rotors as bodies that couplings tie to the joints they turn.
    keep : frames on bodies that must stay although they look like rotors: wheels that touch.

    Raises
    ------
    RobotError
        If there is none; names the joints that stay coupled. For these robots there are the
        cluster algorithms. If `robot` is no Robot, or `keep` no list of frames that exist.
    """
    instance("robot", robot, Robot, FROM_URDF, RobotError)
    held = set()
    for name in names("keep", keep, RobotError):
        if name not in robot.frames:
            raise RobotError(unknown("frame", name, robot.frames))
        held.add(robot.frames[name].body)
    exact = redistribute(robot, held)
    if not exact.is_ordinary:
        coupled = exact.coupled[0].joints
        tied = ", ".join(repr(exact.robot.joints[i].name) for i in coupled)
        raise RobotError(
            f"robot {robot.name!r} is no ordinary tree: joints {tied} stay coupled; that is so "
            "for belts, loops, rotors that are not round, and axes that are not parallel"
        )
    return RotorReport(robot, exact.robot, lock(robot, held).robot)


def _matrix(problem: Problem, inputs: Mapping[str, Array]) -> Array:
    values = {name: array.ravel().tolist() for name, array in inputs.items()}
    tree = tree_of(problem)
    return np.array(pv_osimr(tree, contact_rows(problem, tree, values), values), dtype=float)


def _listed(values: Iterable[float]) -> str:
    return "[" + ", ".join(f"{value:.9g}" for value in values) + "]"


def approximation_error(problem: Problem, inputs: Mapping[str, Any]) -> float:
    """Return ‖G_approximate − G‖ / ‖G‖ (Frobenius) at the inputs.

    G_approximate is that of the algorithm ``reflected_inertia``: without the rotors' mass, too.

    Parameters
    ----------
    inputs : by port name what :meth:`DelassusSolver.solve` takes, such as ``{"q": q}``; q has to
        close the loops.

    Raises
    ------
    ProblemError
        If `problem` is no Problem.
    InputError
        If the inputs are no mapping, one is missing or superfluous, or one is not as
        :meth:`DelassusSolver.solve` takes it.
    RobotError
        If the approximation is not defined for the robot.
    NumericalError
        If M is not positive definite there.
    """
    x = _values(problem, inputs)
    return _difference(problem, x, ReflectedInertia().evaluate(problem, x)["G"])


def usual_error(problem: Problem, inputs: Mapping[str, Any]) -> float:
    """Return ‖G_usual − G‖ / ‖G‖ (Frobenius) at the inputs, with g²J and rotors locked.

    G_usual is that of the robot whose motors are lumps of mass on the bodies that carry them,
    while each joint has the armature Σ g²J of the rotors that it turns, by gear or by belt. What
    else is coupled or closed stays so.

    Parameters
    ----------
    inputs : as for :func:`approximation_error`.

    Raises
    ------
    ProblemError, InputError, NumericalError
        As :func:`approximation_error`.
    """
    x = _values(problem, inputs)
    tree = closed_tree(problem, lock)
    return _difference(problem, x, pv_osimr(tree, contact_rows(problem, tree, x), x))


def _difference(problem: Problem, x: Inputs, approximate: Matrix) -> float:
    tree = tree_of(problem)
    G = np.array(pv_osimr(tree, contact_rows(problem, tree, x), x), dtype=float)
    return float(np.linalg.norm(np.array(approximate, dtype=float) - G) / np.linalg.norm(G))


def _values(problem: Problem, inputs: Mapping[str, Any]) -> Inputs:
    """Return the inputs as flat lists, checked."""
    instance("problem", problem, Problem, "Problem(robot, contacts)", ProblemError)
    if not isinstance(inputs, Mapping):
        raise InputError(f"inputs are {shown(inputs)}; expected values by name: write {{'q': q}}")
    given = dict.fromkeys((port.name for port in problem.inputs), None) | dict(inputs)
    checked = InputCheck(problem).single(given)
    return {name: array.ravel().tolist() for name, array in checked.items()}
