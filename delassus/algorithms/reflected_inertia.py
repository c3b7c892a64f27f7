"""Reflected inertia: an approximation with rotors as armatures of the joints that they turn.

The approximate method that M. Chignoli, N. Adrian, S. Kim, P. Wensing, "Recursive Rigid-Body
Dynamics Algorithms for Systems with Kinematic Loops", compare with: dependent joints and their
bodies are left out, and independent joint j gets the armature Σ g_j² J of the rotors that it
turns. The approximation neglects that rotors have a mass, that rotors also turn with the bodies
that carry them, and that one rotor may turn with two joints. The error is given by
:func:`~delassus.rotor_report.approximation_error`, and by
:func:`~delassus.rotor_report.usual_error` where the mass is kept, as in most robot
descriptions.
"""

from __future__ import annotations

from delassus.algorithms.pv_osimr import pv_osimr
from delassus.algorithms.registry import TracedAlgorithm, register
from delassus.errors import RobotError
from delassus.problem import Problem
from delassus.rbda.momentum import contact_matrix
from delassus.rbda.outputs import response
from delassus.rbda.rotors import reflect
from delassus.rbda.spatial import contact_rows
from delassus.rbda.tree import Tree
from delassus.rbda.trees import rewritten_tree, tree_of
from delassus.rbda.unknown_constants import structure
from delassus.scalars.ports import Inputs, Outputs


@register("reflected_inertia")
class ReflectedInertia(TracedAlgorithm):
    """An approximation: rotors left out, their reflected inertias at the joints instead."""

    def supports(self, problem: Problem) -> str | None:
        """Refuse dependent joints that are not rotors; see the base class."""
        if problem.robot.is_closed:
            frames = problem.robot.frames
            try:
                reflect(problem.robot, {frames[c.frame].body for _, c in problem.ends})
            except RobotError as error:
                return str(error)
        return None

    def approximates(self, problem: Problem) -> bool:
        """Return whether the robot has rotors; see the base class."""
        return problem.robot.is_closed

    def evaluate(self, problem: Problem, x: Inputs) -> Outputs:
        """Compute G, and MinvJT of the same tree if requested; see the base class."""
        return self.evaluate_on(problem, tree_of(problem), x)

    def evaluate_on(self, problem: Problem, tree: Tree, x: Inputs) -> Outputs:
        """Compute G and MinvJT with the constants of `tree`; see the base class."""
        if problem.robot.is_closed:
            tree = structure(rewritten_tree(problem, reflect))
        G = pv_osimr(tree, contact_rows(problem, tree, x), x)
        results = {"G": contact_matrix(problem, tree, x, G)}
        if "MinvJT" in (port.name for port in problem.outputs):
            results["MinvJT"] = response(problem, tree, x)
        return results
