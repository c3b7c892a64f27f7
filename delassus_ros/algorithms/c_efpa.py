"""C-EFPA: EFPA over clusters; O(n + m d + m²) for robots with local loops.

M. Chignoli, N. Adrian, S. Kim, P. Wensing, "Recursive Rigid-Body Dynamics Algorithms for Systems
with Kinematic Loops": the sweeps of EFPA (:mod:`delassus_ros.algorithms.efpa`) with cluster
joints. The paper stacks the bodies of a cluster in 6N×6N matrices; the same step is taken here at
the link that carries the cluster, by
:class:`~delassus_ros.algorithms.cluster_propagation.ClusterPropagator`. On a robot without loops
it is EFPA.
"""

from __future__ import annotations

from delassus_ros.algorithms.base import Inputs, Outputs
from delassus_ros.algorithms.efpa import efpa
from delassus_ros.algorithms.open_chain import ClusterAlgorithm
from delassus_ros.algorithms.registry import register
from delassus_ros.algorithms.spatial import contact_rows
from delassus_ros.algorithms.tree import Tree
from delassus_ros.problem import Problem


@register("c_efpa")
class CEfpa(ClusterAlgorithm):
    """C-EFPA of Chignoli, Adrian, Kim and Wensing."""

    def evaluate(self, problem: Problem, x: Inputs) -> Outputs:
        """Compute G; see the base class."""
        return {"G": efpa(Tree.of(problem), contact_rows(problem, x), x)}
