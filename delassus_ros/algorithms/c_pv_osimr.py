"""C-PV-OSIMr: PV-OSIMr over clusters, O(n + m²) for robots with local loops.

The Delassus matrix of A. S. Sathya, W. Decré, J. Swevers, "PV-OSIMr", IEEE RA-L, 2024
(:mod:`delassus_ros.algorithms.pv_osimr`), with the cluster joints of M. Chignoli, N. Adrian,
S. Kim, P. Wensing, "Recursive Rigid-Body Dynamics Algorithms for Systems with Kinematic Loops":
neither paper has it. The sweeps are PV-OSIMr's, Algorithm 3, with rows that leave a cluster by
several links and travel on together (:mod:`~delassus_ros.algorithms.mixed_propagation`); the step
over a cluster is :class:`~delassus_ros.algorithms.cluster_propagation.ClusterPropagator`. Links
inside clusters are nodes like others; each step is taken in the frame in which it is cheaper
(:mod:`~delassus_ros.algorithms.step_frames`). The derivation is in ``docs/clusters.md``. On a
robot without loops it is PV-OSIMr.
"""

from __future__ import annotations

from delassus_ros.algorithms.base import Inputs, Outputs
from delassus_ros.algorithms.mixed_propagation import Decision, delassus, wide_nodes
from delassus_ros.algorithms.open_chain import ClusterAlgorithm
from delassus_ros.algorithms.registry import register
from delassus_ros.algorithms.spatial import contact_rows
from delassus_ros.algorithms.step_frames import in_cheapest_frames
from delassus_ros.algorithms.tree import Tree
from delassus_ros.problem import Problem


@register("c_pv_osimr")
class CPvOsimr(ClusterAlgorithm):
    """PV-OSIMr with cluster joints; extended propagators between the clusters that branch."""

    def evaluate(self, problem: Problem, x: Inputs) -> Outputs:
        """Compute G; see the base class."""
        tree = Tree.of(problem)
        if problem.robot.is_closed:
            tree = in_cheapest_frames(problem, tree)
        return {"G": delassus(tree, contact_rows(problem, x), x, Decision(wide_nodes(tree)))}
