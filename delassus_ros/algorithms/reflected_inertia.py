"""Reflected inertia: an approximation, in which rotors are numbers at the joints that they turn.

The approximate method that M. Chignoli, N. Adrian, S. Kim, P. Wensing, "Recursive Rigid-Body
Dynamics Algorithms for Systems with Kinematic Loops", compare with: dependent joints and their
bodies are left out, and independent joint j gets the armature Σ g_j² J of those that it turns.
What is lost is that rotors have a mass, that they also turn with the bodies that carry them, and
that one rotor may turn with two joints. :func:`approximation_error` says how much that is, and
:func:`usual_error` how much it is where the mass is kept, as in most robot descriptions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from delassus_ros.algorithms.pv_osimr import pv_osimr
from delassus_ros.algorithms.registry import TracedAlgorithm, register
from delassus_ros.arguments import instance, shown
from delassus_ros.errors import InputError, ProblemError, RobotError
from delassus_ros.inputs import InputCheck
from delassus_ros.problem import Problem
from delassus_ros.rbda.generic import structure
from delassus_ros.rbda.outputs import response
from delassus_ros.rbda.rotors import lock, reflect
from delassus_ros.rbda.spatial import contact_rows
from delassus_ros.rbda.tree import Tree
from delassus_ros.rbda.trees import closed_tree, tree_of
from delassus_ros.scalars.functions import Matrix
from delassus_ros.scalars.ports import Inputs, Outputs


@register("reflected_inertia")
class ReflectedInertia(TracedAlgorithm):
    """An approximation: rotors left out, their reflected inertias at the joints instead."""

    def supports(self, problem: Problem) -> str | None:
        """Refuse what is more than rotors; see the base class."""
        if problem.robot.is_closed:
            frames = problem.robot.frames
            try:
                reflect(problem.robot, {frames[c.frame].body for c in problem.contacts})
            except RobotError as error:
                return str(error)
        return None

    def approximates(self, problem: Problem) -> bool:
        """Return whether there are rotors; see the base class."""
        return problem.robot.is_closed

    def evaluate(self, problem: Problem, x: Inputs) -> Outputs:
        """Compute G, and MinvJT of the same tree if it is asked for; see the base class."""
        return self.evaluate_on(problem, tree_of(problem), x)

    def evaluate_on(self, problem: Problem, tree: Tree, x: Inputs) -> Outputs:
        """Compute the same; see the base class."""
        if problem.robot.is_closed:
            tree = structure(closed_tree(problem, reflect))
        results = {"G": pv_osimr(tree, contact_rows(problem, tree, x), x)}
        if "MinvJT" in (port.name for port in problem.outputs):
            results["MinvJT"] = response(problem, tree, x)
        return results


def approximation_error(problem: Problem, inputs: Mapping[str, Any]) -> float:
    """Return ‖G_approximate − G‖ / ‖G‖ (Frobenius) at the inputs.

    G_approximate is that of the algorithm of this module: without the rotors' mass, too.

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
