"""Operation counts of the methods that the pages compare."""

from __future__ import annotations

from delassus_ros import Problem, algorithms
from delassus_ros.algorithms.registry import TracedAlgorithm
from delassus_ros.compiler.ir.input_rules import InputRules
from delassus_ros.compiler.ir.trace import Trace, trace
from delassus_ros.dynamics.methods import Method
from delassus_ros.problem import Port
from delassus_ros.rbda.robot_tree import RobotTree
from delassus_ros.scalars.graph import Graph


def of_algorithm(problem: Problem, name: str, generic: bool = True) -> int:
    """Return the count of an algorithm of G, without sines and cosines.

    Parameters
    ----------
    generic : whether the robot's constants are unknown; otherwise they are folded.
    """
    algorithm = algorithms.get(name)
    if not isinstance(algorithm, TracedAlgorithm):
        raise TypeError(f"algorithm {name!r} cannot be counted")
    return trace(problem, algorithm, generic=generic).operations.total


def of_method(tree: RobotTree, method: Method, given: str) -> int:
    """Return the count of a method of dynamics, without sines and cosines.

    Constants of the robot are folded: they are its own numbers.

    Parameters
    ----------
    tree : the one that the method builds.
    given : ``"accelerations"`` or ``"torques"``.
    """
    robot = tree.problem.robot
    ports = [
        Port("q", (robot.nq,)), Port("rates", (tree.size,)), Port(given, (tree.size,)),
        Port("gravity", (3,)),
    ]  # fmt: skip
    graph = Graph()
    results = method.formula(tree, graph.input_block(ports))
    outputs = [graph.index_of(value) for value in results]
    return Trace.of(graph, outputs, InputRules.of(ports, robot)).operations.total
