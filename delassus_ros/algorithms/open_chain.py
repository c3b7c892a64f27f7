"""What robots with couplings or loops may be given to which algorithms."""

from __future__ import annotations

from delassus_ros.algorithms.base import FOR_CLOSED, TracedAlgorithm
from delassus_ros.algorithms.tree import Tree
from delassus_ros.problem import Problem


class OpenChainAlgorithm(TracedAlgorithm):
    """An algorithm for ordinary trees.

    A robot whose loops are gears with round rotors is one: exactly, once the rotors' inertia is
    redistributed (:mod:`delassus_ros.algorithms.rotors`).
    """

    def supports(self, problem: Problem) -> str | None:
        """Refuse what clusters are needed for; see the base class."""
        if not problem.robot.is_closed:
            return None
        tree = Tree.of(problem)
        if tree.is_ordinary:
            return None
        names = ", ".join(repr(tree.links[i].name) for i in tree.clusters[0].links)
        return (
            f"it is for open chains, and joints {names} of {problem.robot.name!r} are coupled; "
            f"use {FOR_CLOSED}, or, as an approximation, reflected_inertia"
        )


class ClusterAlgorithm(TracedAlgorithm):
    """An algorithm for trees with clusters."""

    def supports(self, problem: Problem) -> str | None:
        """Take every robot; see the base class."""
        return None
