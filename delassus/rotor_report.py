"""Inertias and armatures with which other libraries treat a geared robot as an open tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from delassus.algorithms.pv_osimr import pv_osimr
from delassus.algorithms.reflected_inertia import ReflectedInertia
from delassus.arguments import count, instance, names, shown
from delassus.contacts import Contact, ContactSet
from delassus.errors import InputError, ProblemError, RobotError
from delassus.model.robot import FROM_URDF, Robot
from delassus.model.spatial import Array, Inertia
from delassus.problem import Problem
from delassus.rbda.rotors import lock, redistribute
from delassus.rbda.spatial import contact_rows, summed_matrix
from delassus.rbda.tree import Tree
from delassus.rbda.trees import rewritten_tree, tree_of
from delassus.samples import random_inputs
from delassus.scalars.functions import Matrix
from delassus.scalars.ports import Inputs
from delassus.solver.inputs import InputCheck
from delassus.visible import visible


@dataclass(frozen=True, eq=False)
class RotorReport:
    """A geared robot as an open tree: the exact tree and the usual approximation.

    Attributes
    ----------
    geared : the robot with its rotors.
    robot : the open tree with exactly the same motion: the rotors' joints and bodies are removed,
        inertias and armatures of the remaining bodies and joints are changed. The inertias need
        not be positive definite and armatures may be negative, which dynamics libraries accept
        and simulators that check their input do not. The q of the tree are the entries of
        `geared` at the remaining joints.
    usual : an approximation: the same tree with the rotors locked to the bodies that carry them
        and with g²J as armatures.
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
        contacts : the contacts.
        samples, seed : number of configurations, and seed of the random generator.

        Raises
        ------
        ContactError
            If a contact names an unknown frame, or a frame on a removed rotor.
        InputError
            If `samples` is no positive whole number.
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
    """Return the open tree that is equivalent to a geared robot.

    Parameters
    ----------
    robot : a robot whose rotors are bodies, coupled to the joints that they turn.
    keep : frames on bodies that look like rotors but must stay, such as wheels with contacts.

    Raises
    ------
    RobotError
        If there is no such tree; names the joints that stay coupled. The cluster algorithms
        support these robots. If `robot` is no Robot, or `keep` no list of existing frames.
    """
    # Loops closed by rows couple joints as well.
    robot = instance("robot", robot, Robot, FROM_URDF, RobotError).clustered
    held = set()
    for name in names("keep", keep, RobotError):
        if name not in robot.frames:
            raise RobotError(robot.unknown_frame(name))
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
    return np.array(_on_tree(problem, tree, values), dtype=float)


def _listed(values: Iterable[float]) -> str:
    return "[" + ", ".join(f"{value:.9g}" for value in values) + "]"


def approximation_error(problem: Problem, inputs: Mapping[str, Any]) -> float:
    """Return ‖G_approximate − G‖ / ‖G‖ (Frobenius) at the inputs.

    G_approximate is the result of the algorithm ``reflected_inertia``, which also neglects the
    rotors' mass.

    Parameters
    ----------
    inputs : arguments of :meth:`DelassusSolver.solve` by port name, such as ``{"q": q}``; q must
        close the loops.

    Raises
    ------
    ProblemError
        If `problem` is no Problem.
    InputError
        If the inputs are no mapping, an input is missing or superfluous, or is refused by
        :meth:`DelassusSolver.solve`.
    RobotError
        If the approximation is not defined for the robot.
    NumericalError
        If M is not positive definite at q.
    """
    x = _values(problem, inputs)
    return _difference(problem, x, ReflectedInertia().evaluate(problem, x)["G"])


def usual_error(problem: Problem, inputs: Mapping[str, Any]) -> float:
    """Return ‖G_usual − G‖ / ‖G‖ (Frobenius) at the inputs, with g²J and rotors locked.

    G_usual is the matrix of a robot whose motors are masses fixed to the bodies that carry them,
    with the armature Σ g²J at a joint for the rotors that it turns, by gear or by belt. All other
    couplings and loops are kept.

    Parameters
    ----------
    inputs : as for :func:`approximation_error`.

    Raises
    ------
    ProblemError, InputError, NumericalError
        As :func:`approximation_error`.
    """
    x = _values(problem, inputs)
    tree = rewritten_tree(problem, lock)
    return _difference(problem, x, _on_tree(problem, tree, x))


def _difference(problem: Problem, x: Inputs, approximate: Matrix) -> float:
    tree = tree_of(problem)
    G = np.array(_on_tree(problem, tree, x), dtype=float)
    return float(np.linalg.norm(np.array(approximate, dtype=float) - G) / np.linalg.norm(G))


def _values(problem: Problem, inputs: Mapping[str, Any]) -> Inputs:
    """Return the inputs as flat lists, checked."""
    instance("problem", problem, Problem, "Problem(robot, contacts)", ProblemError)
    if not isinstance(inputs, Mapping):
        raise InputError(f"inputs are {shown(inputs)}; expected values by name: write {{'q': q}}")
    arguments = dict.fromkeys((port.name for port in problem.inputs), None) | dict(inputs)
    checked = InputCheck(problem).single(arguments)
    return {name: array.ravel().tolist() for name, array in checked.items()}


def _on_tree(problem: Problem, tree: Tree, x: Inputs) -> Matrix:
    """Return G on a tree of the problem."""
    return summed_matrix(tree, pv_osimr(tree, contact_rows(problem, tree, x), x))
