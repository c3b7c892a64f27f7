"""Rows of contacts and rows of their cones: points, corners of surfaces, single rows."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass
from math import sqrt
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delassus.arguments import names, numbers
from delassus.contact_forces.cones import BILATERAL, POINT, UNILATERAL
from delassus.contacts import LARGEST_FRICTION, cone_axes
from delassus.errors import InputError
from delassus.model.spatial import Array

Kind: TypeAlias = Literal["point", "surface", "unilateral", "bilateral"]
SurfaceCone: TypeAlias = Literal["corners", "wrench"]
ROWS: dict[str, int] = {"point": 3, "surface": 6, "unilateral": 1, "bilateral": 1}
"""Rows of G per kind of contact."""
_CORNERS = ((1, 1), (1, -1), (-1, 1), (-1, -1))
_AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


@dataclass(frozen=True, eq=False)
class ConeRows:
    """What the cones of some contacts are, and how their rows follow from those of G.

    Attributes
    ----------
    size : number of rows of G, n.
    cones : kinds of the cones (POINT, UNILATERAL, BILATERAL); a surface has four points, or 16
        unilateral rows for the edges of its wrench cone.
    friction : coefficient per cone; 0 for single rows.
    owner : contact per cone, by its index.
    starts, columns, weights : row i of the cones is the sum of weights times rows of G, of the
        entries starts[i] to starts[i + 1].
    """

    size: int
    cones: NDArray[np.int64]
    friction: Array
    owner: NDArray[np.int64]
    starts: NDArray[np.int64]
    columns: NDArray[np.int64]
    weights: Array

    @classmethod
    def of(
        cls,
        kinds: Sequence[str],
        friction: ArrayLike,
        dimensions: ArrayLike | None,
        normals: Sequence[str | ArrayLike] | None = None,
        surface_cone: SurfaceCone = "corners",
    ) -> ConeRows:
        """Return the rows of contacts.

        Parameters
        ----------
        kinds : per contact.
        friction : coefficient μ of all contacts, or one for each.
        dimensions : (2,) of all, or (contacts, 2): length along x and width along y, m.
        normals : per contact, name of an axis or vector (3,), in which a point pushes; None for z.
        surface_cone : "corners": an exact cone at each corner of a surface. "wrench": the cone of
            16 faces that the wrenches of inner pyramids of four sides at the corners fill
            (Caron, Pham and Nakamura, 2015), by its 16 edges.

        Raises
        ------
        InputError
            If a kind or cone is unknown, a coefficient is negative or above 1e4, a surface has no
            dimensions, or normals are no directions of points.
        """
        if surface_cone not in get_args(SurfaceCone):
            raise InputError(
                f"unknown surface_cone {surface_cone!r}; expected one of "
                f"{', '.join(get_args(SurfaceCone))}"
            )
        count = len(kinds)
        mu = per_contact("friction", friction, count)
        wrong = mu[~((mu >= 0) & (mu <= LARGEST_FRICTION))]
        if wrong.size:
            raise InputError(
                f"friction is {wrong[0]:g}; expected coefficients of 0 to {LARGEST_FRICTION:g}"
            )
        sizes = np.full((count, 2), np.nan)
        if dimensions is not None:
            given = numbers("dimensions", dimensions)
            if given.shape not in ((2,), (count, 2)):
                raise InputError(
                    f"dimensions have shape {given.shape}; expected (2,) or ({count}, 2): length "
                    "and width of surfaces"
                )
            sizes[:] = given
        axes = _axes_of_cones(kinds, normals)
        cones: list[tuple[int, float, int]] = []
        rows: list[list[tuple[int, float]]] = []
        at = 0
        for c, kind in enumerate(kinds):
            if kind not in ROWS:
                raise InputError(
                    f"contact {c} is of kind {kind!r}; expected one of {', '.join(get_args(Kind))}"
                )
            if kind == "surface":
                if not ((sizes[c] > 0) & (sizes[c] < np.inf)).all():
                    has = "no dimensions" if np.isnan(sizes[c]).any() else f"dimensions {sizes[c]}"
                    raise InputError(
                        f"contact {c} is a surface and has {has}; expected length and width, two "
                        "positive numbers in m"
                    )
                slope = mu[c] / sqrt(2.0)
                edges = [(slope * x, slope * y, 1.0) for x, y in _CORNERS]
                for x, y in np.array(_CORNERS) * sizes[c] / 2:
                    if surface_cone == "corners":
                        cones.append((POINT, mu[c], c))
                        rows += [_at_corner(at, x, y, axis) for axis in _AXES]
                    else:
                        cones += [(UNILATERAL, 0.0, c)] * len(edges)
                        rows += [_at_corner(at, x, y, edge) for edge in edges]
            elif kind == "point":
                cones.append((POINT, mu[c], c))
                rows += [[(at + i, w) for i, w in enumerate(axis) if w] for axis in axes[c]]
            else:
                cones.append((UNILATERAL if kind == "unilateral" else BILATERAL, 0.0, c))
                rows.append([(at, 1.0)])
            at += ROWS[kind]
        entries = [entry for row in rows for entry in row]
        return cls(
            size=at,
            cones=np.array([cone[0] for cone in cones], np.int64),
            friction=np.array([cone[1] for cone in cones]),
            owner=np.array([cone[2] for cone in cones], np.int64),
            starts=np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64),
            columns=np.array([column for column, _ in entries], np.int64),
            weights=np.array([weight for _, weight in entries]),
        )

    @property
    def offsets(self) -> tuple[int, ...]:
        """First row of the cones per contact, then k."""
        sizes = np.bincount(self.owner, np.maximum(self.cones, 1))
        return (0, *np.cumsum(sizes).astype(int).tolist())

    @property
    def count(self) -> int:
        """Number of rows of the cones, k."""
        return len(self.starts) - 1

    def matrix(self) -> Array:
        """Return W (n, k): forces at the rows of G = W times forces at the rows of the cones."""
        W = np.zeros((self.size, self.count))
        for i in range(self.count):
            entries = slice(self.starts[i], self.starts[i + 1])
            W[self.columns[entries], i] = self.weights[entries]
        return W

    def spread(self, values: Array) -> Array:
        """Return values per contact as values per row of the cones."""
        per_cone = values[self.owner]
        return np.repeat(per_cone, np.maximum(self.cones, 1))


def _at_corner(
    at: int, x: float, y: float, force: tuple[float, float, float]
) -> list[tuple[int, float]]:
    """Return the entries of the wrench, in six rows from `at` on, of a force at (x, y, 0)."""
    fx, fy, fz = force
    wrench = (fx, fy, fz, y * fz, -x * fz, x * fy - y * fx)
    return [(at + i, float(value)) for i, value in enumerate(wrench) if value != 0.0]


def kinds_of(kinds: str | Sequence[str], a0: ArrayLike) -> Sequence[str]:
    """Return the kinds per contact, by the number of rows where one kind is that of all.

    Parameters
    ----------
    a0 : (…, n), n rows.

    Raises
    ------
    InputError
        If the kind is unknown, or the rows are not those of such contacts.
    """
    if not isinstance(kinds, str):
        return names("kinds", kinds)
    if kinds not in ROWS:
        raise InputError(f"unknown kind {kinds!r}; expected one of {', '.join(get_args(Kind))}")
    shape = numbers("a0", a0).shape
    rows = shape[-1] if shape else 1
    if rows % ROWS[kinds]:
        raise InputError(
            f"a0 has {rows} rows; expected a multiple of {ROWS[kinds]}, the rows of a {kinds}"
        )
    return [kinds] * (rows // ROWS[kinds])


def _axes_of_cones(
    kinds: Sequence[str], normals: Sequence[str | ArrayLike] | None
) -> list[list[list[float]]]:
    """Return per contact the axes of its cone, in rows; those of points are used."""
    count = len(kinds)
    given = ["z"] * count if normals is None else normals
    if isinstance(given, str) or not isinstance(given, Sized) or len(given) != count:
        raise InputError(f"normals are {given!r}; expected one per contact, {count}")
    for c, (kind, normal) in enumerate(zip(kinds, given, strict=True)):
        if kind != "point" and not (isinstance(normal, str) and normal == "z"):
            raise InputError(f"normal of contact {c} is {normal!r}; a {kind} has 'z' alone")
    return [cone_axes(normal).tolist() for normal in given]


def per_contact(what: str, values: ArrayLike, count: int) -> Array:
    """Return (count,) numbers from one number for all contacts or one for each.

    Raises
    ------
    InputError
        If the values are not numbers of this shape.
    """
    found = numbers(what, values)
    if found.shape not in ((), (count,)):
        raise InputError(
            f"{what} has shape {found.shape}; expected a number or one per contact, {count}"
        )
    return np.array(np.broadcast_to(found, (count,)))
