"""The cost model of the EFPA paper: spatial operations on matrices without zeros, by stage.

P. Wensing, R. Featherstone, D. E. Orin, "A Reduced-Order Recursive Algorithm for the Computation
of the Operational-Space Inertia Matrix", 2012, appendix: revolute joints with frames of Denavit
and Hartenberg, six-row contacts on different bodies, a floating base whose frame is on the axis of
a privileged child. RJKA is the paper's: each pair of contacts has a recursion of its own (section
V-A), where :mod:`delassus.algorithms.kjr` shares the recursions of pairs.
"""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.papers import stages
from delassus import Problem
from delassus.model import WORLD, JointKind

# Each pair is for any joint, and for the privileged child, which turns about a fixed axis of the
# floating base. The second entries, and all single ones but _JOINT and _SPREAD, are printed. The
# first entries are two turns and two shifts, as `test/benchmarks/test_cost_model.py` counts them
# in our spatial algebra.
_JOINT = 1 + 5  # D⁻¹ and I^A Φ D⁻¹
_UPDATE = 15 + 15  # I^A − I^A Φ D⁻¹ Φᵀ I^A
TO_PARENT = (82 + 74, 22 + 25)  # Xᵀ (…) X
ADDED = (21, 15)  # to I^A of the parent
PROPAGATED = (120 + 66, 48 + 24)  # (ᵏX L) X, whose column along Φ is zero
CARRIED = (120 + 72, 48 + 24)  # X Λ⁻¹
CONGRUENT = (178 + 115, 63 + 54)  # X Λ⁻¹ Xᵀ, whose row and column along Φ are not needed
_SPREAD = 30 + 25  # L (…) Lᵀ + Φ D⁻¹ Φᵀ
_ACROSS = 30 + 30  # L times 6×6, or 6×6 times L
_OF_JOINT = 6 + 6  # K ᵏXᵀ added
_ROOT = 231  # (I^A)⁻¹
PRODUCT = (216 + 180, 216 + 180 - 36 - 36)  # K₁ ᵏXᵀ; the first also of a block off the diagonal
_TOOL = 137 + 137  # Λ⁻¹ of an end effector in its axes
_TOOLS = 288 + 216  # Λ⁻¹ of two end effectors in their axes


class _Joints:
    """The joints of a problem.

    Attributes
    ----------
    paths : per contact, the joints that support it.
    privileged : the child of the floating base that supports most contacts; None without a base.
    moving : joints but for those on the world, which need no transform, and the floating base.
    """

    def __init__(self, problem: Problem) -> None:
        joints = problem.robot.joints
        ends = [problem.robot.frames[contact.frame].body for contact in problem.contacts]
        self.paths = [set(problem.robot.path(body)) for body in ends]
        self.floating = joints[0].kind is JointKind.ROOT
        children = [i for i, joint in enumerate(joints) if self.floating and joint.parent == 0]
        self.privileged = max(children, key=self.supported, default=None)
        self.revolute = range(int(self.floating), len(joints))
        self.moving = [i for i in self.revolute if joints[i].parent != WORLD]

    def supported(self, i: int) -> int:
        """Return the number of contacts that a joint supports."""
        return sum(i in path for path in self.paths)

    def sum(self, costs: tuple[int, int], each: int, joints: Iterable[int]) -> int:
        """Return the operations at joints: of a pair of costs, and `each`."""
        return sum(costs[i == self.privileged] + each for i in joints)

    def pairs(self) -> Iterable[tuple[set[int], set[int]]]:
        """Yield the paths of two contacts that have a joint in common."""
        for k, one in enumerate(self.paths):
            yield from ((one, two) for two in self.paths[k + 1 :] if one & two)

    def inertias(self) -> int:
        """Return the operations of the articulated inertias."""
        to_parent = (TO_PARENT[0] + ADDED[0], TO_PARENT[1] + ADDED[1])
        found = len(self.revolute) * _JOINT + self.floating * _ROOT
        return found + self.sum(to_parent, _UPDATE, self.moving)


def efpa(problem: Problem) -> dict[str, int]:
    """Return the operations of EFPA by stage."""
    joints = _Joints(problem)
    supporting = [i for i in joints.moving for _ in range(joints.supported(i))]
    diagonal = joints.sum(CARRIED, _ACROSS, supporting)
    diagonal += _OF_JOINT * sum(joints.supported(i) for i in joints.revolute)
    diagonal += joints.floating * sum(PRODUCT[joints.privileged in p] for p in joints.paths)
    return {
        stages.INERTIAS: joints.inertias(),
        stages.PROPAGATORS: joints.sum(PROPAGATED, _ACROSS, supporting),
        stages.DIAGONAL: diagonal + len(joints.paths) * _TOOL,
        stages.CROSS: len(list(joints.pairs())) * PRODUCT[0],
    }


def rjka(problem: Problem) -> dict[str, int]:
    """Return the operations of RJKA by stage: Λ⁻¹ of links, then per pair of contacts."""
    joints = _Joints(problem)
    links = [i for i in joints.moving if joints.supported(i)]
    # From the closest common ancestor outwards to one contact, then to the other.
    cross = sum(_TOOLS + joints.sum(CARRIED, _ACROSS, one ^ two) for one, two in joints.pairs())
    return {
        stages.INERTIAS: joints.inertias(),
        stages.PROPAGATORS: 0,
        stages.DIAGONAL: joints.sum(CONGRUENT, _SPREAD, links) + len(joints.paths) * _TOOL,
        stages.CROSS: cross,
    }
