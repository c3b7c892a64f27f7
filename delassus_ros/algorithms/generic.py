"""A tree whose constants are unknown numbers: what a count says about robots of this structure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from delassus_ros.algorithms.scalars import Matrix, Scalar, Vector
from delassus_ros.algorithms.tree import ContactRows, Link, Tree


def generic(tree: Tree, parameter: Callable[[], Scalar]) -> Tree:
    """Return `tree` with every constant but 0 and ±1 replaced by a new `parameter()`.

    Within one link or contact equal magnitudes are one parameter, so that the symmetry of an
    inertia and the antisymmetry of a cross product stay.
    """
    return Tree(tuple(_link(link, parameter) for link in tree.links), tree.rows)


class _Constants:
    """Gives equal magnitudes the same parameter."""

    def __init__(self, parameter: Callable[[], Scalar]) -> None:
        self._parameter = parameter
        self._known: dict[float, Scalar] = {}

    def __call__(self, value: float) -> Scalar:
        if value in (0.0, 1.0, -1.0):
            return value
        magnitude = abs(value)
        if magnitude not in self._known:
            self._known[magnitude] = self._parameter()
        found = self._known[magnitude]
        return found if value > 0.0 else -found

    def vector(self, values: Vector) -> Vector:
        return [self(value) for value in values]

    def matrix(self, values: Matrix) -> Matrix:
        return [self.vector(row) for row in values]


def _link(link: Link, parameter: Callable[[], Scalar]) -> Link:
    inertia, pose = _Constants(parameter), _Constants(parameter)
    return replace(
        link,
        angle=pose(link.angle),
        offset=pose.vector(link.offset),
        turns=tuple(t._replace(sin=pose(t.sin), cos=pose(t.cos)) for t in link.turns),
        mass=inertia(link.mass),
        moment=inertia.vector(link.moment),
        rotational=inertia.matrix(link.rotational),
        armature=inertia(link.armature),
        contacts=tuple(_contact(contact, parameter) for contact in link.contacts),
        placement=None if link.placement is None else pose.matrix(link.placement),
    )


def _contact(contact: ContactRows, parameter: Callable[[], Scalar]) -> ContactRows:
    rows = _Constants(parameter)
    return replace(
        contact,
        K=rows.matrix(contact.K),
        motion=rows.matrix(contact.motion),
        selection=rows.matrix(contact.selection),
        to_link=rows.matrix(contact.to_link),
    )
