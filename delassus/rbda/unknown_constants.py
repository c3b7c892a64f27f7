"""Trees whose constants are unknowns, for operation counts of all robots of one structure."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import NamedTuple

from delassus.rbda.tree import ContactRows, Link, LinkCluster, MovingPlacement, Tree
from delassus.scalars.functions import Matrix, Scalar, Vector


def tree_of_unknown_constants(tree: Tree, parameter: Callable[[], Scalar]) -> Tree:
    """Return `tree` with every constant but 0 and ±1 replaced by a new `parameter()`.

    Within one link or contact equal magnitudes are one parameter, so that the symmetry of an
    inertia and the antisymmetry of a cross product stay.
    """
    return replace(
        tree,
        links=tuple(_link(link, parameter) for link in tree.links),
        clusters=tuple(_cluster(cluster, parameter) for cluster in tree.clusters),
        numbers=tree,
    )


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
        couple=tuple(inertia.vector(list(link.couple))),
        contacts=tuple(_contact(contact, parameter) for contact in link.contacts),
        placement=None if link.placement is None else pose.matrix(link.placement),
        axes=None if link.axes is None else pose.matrix(link.axes),
        origin=tuple(pose.vector(list(link.origin))),
        compensated=tuple(inertia.vector(list(link.compensated))),
    )


def _cluster(cluster: LinkCluster, parameter: Callable[[], Scalar]) -> LinkCluster:
    ratio, inertia = _Constants(parameter), _Constants(parameter)
    jacobian = cluster.jacobian
    return replace(
        cluster,
        jacobian=jacobian if callable(jacobian) else ratio.matrix(jacobian),
        armature=inertia.matrix(cluster.armature),
    )


def _contact(contact: ContactRows, parameter: Callable[[], Scalar]) -> ContactRows:
    rows = _Constants(parameter)
    return replace(
        contact,
        K=rows.matrix(contact.K),
        motion=rows.matrix(contact.motion),
        selection=rows.matrix(contact.selection),
        to_link=rows.matrix(contact.to_link),
        moving=None if contact.moving is None else _placement(contact.moving, rows),
    )


def _placement(moving: MovingPlacement, constants: _Constants) -> MovingPlacement:
    return replace(
        moving,
        rotation=constants.matrix(moving.rotation),
        origin=constants.vector(moving.origin),
    )


@contextmanager
def unknown_constants(parameter: Callable[[], Scalar]) -> Iterator[None]:
    """Make :func:`constants` and :func:`structure` replace constants by unknowns."""
    known: dict[Hashable, _Constants] = {}
    with _using(
        _Kind(
            lambda key: known.setdefault(key, _Constants(parameter)).matrix,
            lambda tree: tree_of_unknown_constants(tree, parameter),
        )
    ):
        yield


@contextmanager
def specific_constants() -> Iterator[None]:
    """Make :func:`constants` and :func:`structure` keep all numbers, for decisions by values."""
    with _using(_SPECIFIC):
        yield


@contextmanager
def _using(kind: _Kind) -> Iterator[None]:
    token = _kind.set(kind)
    try:
        yield
    finally:
        _kind.reset(token)


def constants(key: Hashable) -> Callable[[Matrix], Matrix]:
    """Return the function that turns the constants of a coupling or loop into scalars.

    Constants stay numbers except in a generic trace, where every constant but 0 and ±1 becomes
    a parameter; for one `key` equal magnitudes are one parameter.
    """
    return _kind.get().constants(key)


def structure(tree: Tree) -> Tree:
    """Return a tree that an algorithm has built; in a generic trace with unknowns."""
    return _kind.get().tree(tree)


class _Kind(NamedTuple):
    """The treatment of constants in a trace."""

    constants: Callable[[Hashable], Callable[[Matrix], Matrix]]
    tree: Callable[[Tree], Tree]


_SPECIFIC = _Kind(lambda key: lambda values: values, lambda tree: tree)
_kind: ContextVar[_Kind] = ContextVar("constants of a trace", default=_SPECIFIC)
