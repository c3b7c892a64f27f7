"""Contacts: named frames that may touch the environment, and their rows of the matrix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from delassus.arguments import as_numbers, names, number, numbers, shown, text
from delassus.errors import ContactError, InputError, unknown
from delassus.model.constraints import RowLoop
from delassus.model.spatial import Array, Transform, frozen

_SELECTIONS = {"point": np.eye(3, 6), "surface": np.eye(6)}
LARGEST_ROW = 1e9
"""Largest norm of a row of a selection, and inverse of the smallest; G scales by the square."""

LARGEST_FRICTION = 1e4
"""Largest coefficient of friction: rounding hides normal accelerations at larger ones."""
NORMALS: dict[str, tuple[float, float, float]] = {
    "x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0),
    "-x": (-1.0, 0.0, 0.0), "-y": (0.0, -1.0, 0.0), "-z": (0.0, 0.0, -1.0),
}  # fmt: skip
"""Names of the axes that can be the normal of a point, with their directions."""
_CONE: dict[str, object] = {"friction": None, "normal": "z", "dimensions": None}
"""Fields of a contact that its friction cones have and G has not, with their defaults."""
_WITH = {"friction": ("point", "surface"), "normal": ("point",), "dimensions": ("surface",)}
"""Kinds of contacts that have such a field."""

Moving = Literal["nothing", "position", "pose"]
MOVING: tuple[Moving, ...] = ("nothing", "position", "pose")
"""Parts of a placement that may change from one computation to the next."""


@dataclass(frozen=True, eq=False)
class Contact:
    """A named frame on a body with the directions of contact.

    Immutable; threads may share it.

    Attributes
    ----------
    name : label of the contact in messages and solutions.
    frame : name of the robot's frame (URDF link) that carries the contact; `name` if empty.
    kind : ``"point"`` (3 linear rows), ``"surface"`` (6 rows: linear, then angular), or a
        selection K, (k, 6), linear first, applied after the choice of axes; norms of rows must be
        between 1e-9 and 1e9.
    placement : pose of the contact frame in `frame`.
    moving : parts of the placement that are inputs of every computation, for contacts that roll
        or touch anywhere: ``"nothing"``; ``"position"``, with the axes of `placement`; or
        ``"pose"``. Missing inputs default to `placement`.
    friction : coefficient μ, 0 to 1e4, of a point or surface; None for that of each call of
        :meth:`Solution.contact_forces <delassus.solver.solution.Solution.contact_forces>`.
        G does not depend on it.
    normal : direction in which a point pushes, in the axes of its rows: ``"x"``, ``"y"``,
        ``"z"``, ``"-x"``, ``"-y"``, ``"-z"``, or a vector (3,) of any length, kept as a unit
        vector. Surfaces push along z. G does not depend on it.
    dimensions : length along x and width along y of a surface [m], at whose corners its friction
        cones are; None for the dimensions of each call. G does not depend on them.

    Raises
    ------
    ContactError
        If name or frame is no text, for an unknown kind, a selection that is not (k, 6), not
        finite, out of range or not of full rank, a placement that is not a Transform, an
        unknown `moving`, a friction that is negative or above 1e6, a normal that is no
        direction, or one of these three that the kind does not have.
    """

    name: str
    frame: str = ""
    kind: str | ArrayLike = "point"
    placement: Transform = field(default_factory=Transform)
    moving: Moving = "nothing"
    friction: float | None = None
    normal: str | ArrayLike = "z"
    dimensions: ArrayLike | None = None
    selection: Array = field(init=False, repr=False)
    """Selection of the contact's rows (rows, 6), linear first."""

    def __post_init__(self) -> None:
        for what, value in (("name", self.name), ("frame", self.frame)):
            write = "Contact('LF', frame='LF_FOOT')"
            text(f"contact {self.name!r}: its {what}", value, write, ContactError)
        if not self.name:
            raise ContactError(f"contact on frame {self.frame!r}: its name is empty")
        object.__setattr__(self, "frame", self.frame or self.name)
        if not isinstance(self.placement, Transform):
            raise ContactError(
                f"contact {self.name!r}: placement is {shown(self.placement)}; expected a "
                f"Transform: write {_transform_of(self.placement)}"
            )
        if self.moving not in MOVING:
            message = unknown("moving", str(self.moving), MOVING, "choices")
            raise ContactError(f"contact {self.name!r}: {message}")
        if isinstance(self.kind, str):
            if self.kind not in _SELECTIONS:
                kinds = [*_SELECTIONS, "or a (k, 6) array"]
                raise ContactError(f"contact {self.name!r}: {unknown('kind', self.kind, kinds)}")
            selection = _SELECTIONS[self.kind]
        else:
            selection = self._checked_selection()
            object.__setattr__(self, "kind", "selection")
        object.__setattr__(self, "selection", frozen(selection, selection.shape))
        self._check_cone()

    def _check_cone(self) -> None:
        """Check friction, normal and dimensions, and keep them as plain numbers."""
        try:
            if self.friction is not None:
                friction = number("friction", self.friction)
                if not 0.0 <= friction <= LARGEST_FRICTION:
                    raise InputError(
                        f"friction is {friction:g}; expected a number of 0 to "
                        f"{LARGEST_FRICTION:g}"
                    )
                object.__setattr__(self, "friction", friction)
            if not (isinstance(self.normal, str) and self.normal in NORMALS):
                unit = tuple(direction(self.normal).tolist())
                names_of = {axis: name for name, axis in NORMALS.items()}
                object.__setattr__(self, "normal", names_of.get(unit, unit))
            if self.dimensions is not None:
                sizes = numbers("dimensions", self.dimensions)
                if sizes.shape != (2,) or not ((0.0 < sizes) & (sizes < np.inf)).all():
                    raise InputError(
                        f"dimensions are {shown(self.dimensions)}; expected length and width of "
                        "the surface, two positive numbers in m"
                    )
                object.__setattr__(self, "dimensions", tuple(sizes.tolist()))
        except InputError as error:
            raise ContactError(f"contact {self.name!r}: {error}") from error
        for what, value in self.cone.items():
            kinds = _WITH[what]
            if self.kind_name not in kinds:
                more = "; turn its placement instead" if self.kind_name == "surface" else ""
                raise ContactError(
                    f"contact {self.name!r}: {what} is {value}, but its kind is "
                    f"{self.kind_name!r}; {what} is of kind {' or '.join(kinds)} alone{more}"
                )

    def _checked_selection(self) -> Array:
        try:
            selection = as_numbers(self.kind)
        except (TypeError, ValueError) as error:
            raise ContactError(
                f"contact {self.name!r}: kind must be 'point', 'surface' or a (k, 6) array of "
                f"numbers, got {self.kind!r}"
            ) from error
        if selection.ndim != 2 or selection.shape[1] != 6 or not 1 <= selection.shape[0] <= 6:
            raise ContactError(
                f"contact {self.name!r}: a selection has shape (k, 6) with 1 <= k <= 6, "
                f"this one has {selection.shape}"
            )
        if not np.isfinite(selection).all():
            raise ContactError(f"contact {self.name!r}: the selection has non-finite entries")
        with np.errstate(over="ignore", under="ignore"):
            norms = np.linalg.norm(selection, axis=1)
        for row, norm in enumerate(norms):
            if not 1.0 / LARGEST_ROW <= norm <= LARGEST_ROW:
                raise ContactError(
                    f"contact {self.name!r}: row {row} of the selection has norm {norm:g}; "
                    f"expected {1.0 / LARGEST_ROW:g} to {LARGEST_ROW:g}"
                )
        rank = np.linalg.matrix_rank(selection)
        if rank < selection.shape[0]:
            raise ContactError(
                f"contact {self.name!r}: the selection's {selection.shape[0]} rows have rank "
                f"{rank}; G would be singular at every configuration"
            )
        return selection

    @property
    def rows(self) -> int:
        """Number of rows of the contact in G."""
        return int(self.selection.shape[0])

    @property
    def kind_name(self) -> str:
        """``"point"``, ``"surface"`` or ``"selection"``, as in messages."""
        return str(self.kind)

    @property
    def cone(self) -> dict[str, object]:
        """Those of friction, normal and dimensions that differ from their defaults, by name."""
        found = {name: getattr(self, name) for name in _CONE}
        return {name: value for name, value in found.items() if value != _CONE[name]}

    @property
    def ends(self) -> tuple[Contact, ...]:
        """Contacts of one frame each whose rows, in common axes, make the rows; itself."""
        return (self,)

    @property
    def weights(self) -> tuple[float, ...]:
        """Factor of the rows of each end."""
        return (1.0,)

    @property
    def frame_names(self) -> str:
        """The frame, or the frames with a blank between them, as in messages."""
        return " ".join(end.frame for end in self.ends)

    @property
    def with_all_rows(self) -> Contact:
        """The contact with all six rows, of which it has a selection; rows of the robot stay."""
        return Contact(self.name, self.frame, "surface", self.placement, self.moving)

    @property
    def stated_selection(self) -> Array:
        """The selection (rows, 6) in messages; (0, 6) where the kind implies it."""
        return self.selection if self.kind_name == "selection" else np.empty((0, 6))

    def row_bytes(self) -> bytes:
        """Return canonical bytes of the rows, and all else of the contact that G depends on."""
        words = (self.name, self.frame, self.kind_name, str(self.rows), self.moving, "")
        return "\0".join(words).encode() + self.selection.tobytes() + self.placement.to_bytes()

    def to_bytes(self) -> bytes:
        """Return canonical bytes (for hashing)."""
        return self.row_bytes() + (f"\0cone\0{self.cone}\0".encode() if self.cone else b"")


@dataclass(frozen=True, eq=False, init=False)
class RelativeContact(Contact):
    """Rows of the motion of one frame relative to another: K (ᵃX_b v_b − v_a).

    The twist of frame b, at the origin and in the axes of frame a (with world axes in those of the
    world), less the twist of frame a. A closed grasp, two hands on one object and a cut loop
    are such contacts; a force along a row acts on b, and its opposite on a. Immutable;
    threads may share it.

    Attributes
    ----------
    frame : frame a, whose axes the rows have.
    frame_b : frame b.
    kind, placement : as for :class:`Contact`; the placement is that of the rows in frame a.

    Raises
    ------
    ContactError
        As for :class:`Contact`, if a frame is not named, if both are the same, or if `moving`,
        `friction`, `normal` or `dimensions` is given.
    """

    frame_b: str = ""

    def __init__(
        self,
        name: str,
        frame_a: str,
        frame_b: str,
        kind: str | ArrayLike = "point",
        placement: Transform | None = None,
    ) -> None:
        what = f"contact {name!r}: its second frame"
        text(what, frame_b, "RelativeContact('grip', 'left', 'right')", ContactError)
        if not frame_b or frame_a == frame_b:
            raise ContactError(
                f"contact {name!r} is between frames {frame_a!r} and {frame_b!r}; expected two "
                "frames: RelativeContact('grip', 'left', 'right')"
            )
        object.__setattr__(self, "frame_b", frame_b)
        super().__init__(name, frame_a, kind, Transform() if placement is None else placement)

    @property
    def kind_name(self) -> str:
        """``"relative"``, as in messages."""
        return "relative"

    @property
    def ends(self) -> tuple[Contact, ...]:
        """Contacts with the same selection on frames a and b."""
        return (
            Contact(self.name, self.frame, self.selection, self.placement),
            Contact(self.name, self.frame_b, self.selection),
        )

    @property
    def weights(self) -> tuple[float, ...]:
        """−1 for frame a, 1 for frame b."""
        return (-1.0, 1.0)

    @property
    def with_all_rows(self) -> Contact:
        """The contact with all six rows; see the base class."""
        return RelativeContact(self.name, self.frame, self.frame_b, "surface", self.placement)

    @property
    def stated_selection(self) -> Array:
        """Selection (rows, 6) of the motion of frame b in frame a."""
        return self.selection

    def row_bytes(self) -> bytes:
        """Return canonical bytes of the rows; see the base class."""
        return super().row_bytes() + f"\0with\0{self.frame_b}\0".encode()


class LoopRows(RelativeContact):
    """The rows that close a loop, in the axes of its first frame whatever those of the problem.

    Parameters
    ----------
    loop : the loop.
    """

    _loop: RowLoop

    def __init__(self, loop: RowLoop) -> None:
        name = f"loop {loop.name}"
        super().__init__(name, loop.predecessor, loop.successor, loop.selection)
        object.__setattr__(self, "_loop", loop)

    @property
    def with_all_rows(self) -> Contact:
        """The rows with a selection of all six; see the base class."""
        return LoopRows(replace(self._loop, selection=np.eye(6)))

    def row_bytes(self) -> bytes:
        """Return canonical bytes of the rows; see the base class."""
        return super().row_bytes() + b"\0loop\0"


@dataclass(frozen=True, eq=False, init=False)
class WeightedSum(Contact):
    """Rows of a weighted sum of the twists of frames: K Σ w v, each twist at its frame's origin.

    All twists have the axes of the first frame, with world axes those of the world: weights of ½
    make the velocity of the middle of two hands, weights of ¼ that of the centre of four feet. A
    force along a row acts on each frame in proportion to its weight. Immutable; threads may share
    it.

    Attributes
    ----------
    frame : the first frame, whose axes the rows have.
    shares : (frame, weight) of each frame, in the order that was given.
    kind : as for :class:`Contact`.

    Raises
    ------
    ContactError
        As for :class:`Contact`, if `weights` is no mapping of two or more frames, or if a weight
        is not finite, is zero, or has a magnitude below 1e-9 or above 1e9.
    """

    shares: tuple[tuple[str, float], ...] = ()

    def __init__(
        self, name: str, weights: Mapping[str, float], kind: str | ArrayLike = "point"
    ) -> None:
        write = "WeightedSum('middle', {'left': 0.5, 'right': 0.5})"
        if not isinstance(weights, Mapping) or len(weights) < 2:
            raise ContactError(
                f"contact {name!r}: weights is {shown(weights)}; expected the weights of two or "
                f"more frames by name: {write}"
            )
        checked = {}
        for frame, value in weights.items():
            text(f"contact {name!r}: a frame", frame, write, ContactError)
            try:
                weight = number(f"weight of frame {frame!r}", value)
            except InputError as error:
                raise ContactError(f"contact {name!r}: {error}") from error
            if not 1.0 / LARGEST_ROW <= abs(weight) <= LARGEST_ROW:
                raise ContactError(
                    f"contact {name!r}: weight of frame {frame!r} is {weight:g}; expected a "
                    f"magnitude of {1.0 / LARGEST_ROW:g} to {LARGEST_ROW:g}"
                )
            checked[frame] = weight
        object.__setattr__(self, "shares", tuple(checked.items()))
        super().__init__(name, next(iter(checked)), kind)

    @property
    def kind_name(self) -> str:
        """``"weighted_sum"``, as in messages."""
        return "weighted_sum"

    @property
    def ends(self) -> tuple[Contact, ...]:
        """Contacts with the same selection on all frames."""
        return tuple(Contact(self.name, frame, self.selection) for frame, _ in self.shares)

    @property
    def weights(self) -> tuple[float, ...]:
        """Weights of the frames."""
        return tuple(weight for _, weight in self.shares)

    @property
    def with_all_rows(self) -> Contact:
        """The sum with all six rows; see the base class."""
        return WeightedSum(self.name, dict(self.shares), "surface")

    @property
    def stated_selection(self) -> Array:
        """Weighted selections (rows, 6 · frames) of the twists of the frames, side by side."""
        return np.hstack([weight * self.selection for weight in self.weights])

    def row_bytes(self) -> bytes:
        """Return canonical bytes of the rows; see the base class."""
        return super().row_bytes() + f"\0sum\0{dict(self.shares)}\0".encode()


class _OfTheRobot(Contact):
    """Rows of the whole robot, on no frame; in contact axes those of the base link."""

    label = ""
    row_kind = "point"

    def __init__(self, name: str) -> None:
        super().__init__(name, kind=self.row_kind)
        object.__setattr__(self, "frame", "")

    @property
    def kind_name(self) -> str:
        """The kind, as in messages."""
        return self.label

    @property
    def ends(self) -> tuple[Contact, ...]:
        """None: every body has a part of the rows."""
        return ()

    @property
    def weights(self) -> tuple[float, ...]:
        """None, as there are no ends."""
        return ()

    @property
    def with_all_rows(self) -> Contact:
        """The contact itself, whose rows are no selection."""
        return self


class CenterOfMass(_OfTheRobot):
    """Three rows: the velocity of the centre of mass.

    The rows have the axes of the base link, with world axes those of the world. A force along a
    row acts on all bodies in proportion to their mass, and turns none. On a fixed base the links
    that are fixed to the world do not count. Immutable; threads may share it.

    Parameters
    ----------
    name : label of the rows in messages and solutions.

    Raises
    ------
    ContactError
        If the name is no text, or empty.
    """

    label = "center_of_mass"


class CentroidalMomentum(_OfTheRobot):
    """Six rows: linear momentum, and angular momentum about the centre of mass.

    In the axes of :class:`CenterOfMass`, without links that are fixed to the world; the rows of J
    are the centroidal momentum matrix [kg, kg·m, kg·m²]. Immutable; threads may share it.

    Parameters
    ----------
    name : label of the rows in messages and solutions.

    Raises
    ------
    ContactError
        If the name is no text, or empty.
    """

    label, row_kind = "centroidal_momentum", "surface"


def direction(normal: str | ArrayLike) -> Array:
    """Return the unit vector (3,) of a normal: the name of an axis, or a vector of any length.

    Raises
    ------
    InputError
        If it is neither.
    """
    if isinstance(normal, str):
        if normal not in NORMALS:
            raise InputError(unknown("normal", normal, [*NORMALS, "or a vector (3,)"]))
        return np.array(NORMALS[normal])
    vector = numbers("normal", normal)
    norm = float(np.linalg.norm(vector)) if vector.shape == (3,) else np.nan
    if not 1.0 / LARGEST_ROW <= norm <= LARGEST_ROW:
        raise InputError(
            f"normal is {shown(normal)}; expected the name of an axis ({', '.join(NORMALS)}) or "
            f"three numbers, a vector of length {1.0 / LARGEST_ROW:g} to {LARGEST_ROW:g}"
        )
    # Unit vectors stay as they are to the last bit.
    unit: Array = vector if abs(norm - 1.0) < 1e-15 else vector / norm
    return unit


def cone_axes(normal: str | ArrayLike) -> Array:
    """Return axes (3, 3) of a friction cone, in rows: two tangents and the normal, right-handed.

    The first tangent is the axis that is nearest to the plane of contact, so that the axes of
    ``"z"`` are x, y, z.

    Raises
    ------
    InputError
        If the normal is neither the name of an axis nor a vector.
    """
    n = direction(normal)
    first = np.eye(3)[int(np.argmin(np.abs(n)))]
    first = first - (first @ n) * n
    first = first / np.linalg.norm(first)
    return np.stack([first, np.cross(n, first), n]) + 0.0


def _transform_of(placement: object) -> str:
    """Return the call that makes a Transform of another pose, for messages."""
    if hasattr(placement, "rotation") and hasattr(placement, "translation"):
        return "Transform(pose.rotation, pose.translation)"
    if np.asarray(placement, dtype=object).shape == (4, 4):
        return "Transform(T[:3, :3], T[:3, 3])"
    return "Transform.from_xyz_rpy((0.1, 0, 0), (0, 0, 0))"


class ContactSet(Sequence[Contact]):
    """All contacts that may ever be active, in the order of their rows in G.

    Immutable; threads may share it.

    Parameters
    ----------
    contacts : at least one, with distinct names.

    Raises
    ------
    ContactError
        If the list is empty, two contacts share a name, or an entry is not a Contact.
    """

    def __init__(self, contacts: Iterable[Contact]) -> None:
        if isinstance(contacts, (str, Contact)) or not isinstance(contacts, Iterable):
            raise ContactError(
                f"contacts is {shown(contacts)}; expected a list: write "
                "[Contact('LF', frame='LF_FOOT')]"
            )
        self._contacts = tuple(contacts)
        if not self._contacts:
            raise ContactError("a contact set needs at least one contact")
        self._index: dict[str, int] = {}
        offsets = [0]
        for i, contact in enumerate(self._contacts):
            if not isinstance(contact, Contact):
                raise ContactError(
                    f"a contact set holds Contact objects, got {contact!r}; write "
                    "Contact('LF', frame='LF_FOOT')"
                )
            if contact.name in self._index:
                raise ContactError(
                    f"contact {contact.name!r} appears twice; contacts: "
                    + ", ".join(c.name for c in self._contacts)
                )
            self._index[contact.name] = i
            offsets.append(offsets[-1] + contact.rows)
        self._offsets = tuple(offsets)
        self._names = tuple(self._index)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the contacts, in the order of the rows; the same object at each call."""
        return self._names

    @property
    def row_offsets(self) -> tuple[int, ...]:
        """First rows of the contacts, then the number of rows; len(contacts) + 1 entries."""
        return self._offsets

    @property
    def rows(self) -> int:
        """Number of rows m of G with every contact active."""
        return self._offsets[-1]

    def indices(self, active: Iterable[str]) -> tuple[int, ...]:
        """Return the positions of `active` in this set, ascending.

        The order in which names are given does not matter: rows of G always follow the
        order of the set.

        Raises
        ------
        InputError
            If a name is not in the set or named twice, or if `active` is no list of names.
        """
        found: list[int] = []
        for name in names("active contacts", active):
            index = self._index.get(name)
            if index is None:
                raise InputError(self.unknown(name))
            if index in found:
                raise InputError(f"contact {name!r} is given twice among the active ones")
            found.append(index)
        return tuple(sorted(found))

    def unknown(self, name: str, among: Iterable[str] | None = None) -> str:
        """Return the message for an unknown contact; of a frame's name it names the contact.

        Parameters
        ----------
        among : names of the contacts that may be named; all if None.
        """
        for contact in self._contacts:
            if contact.frame == name:
                return (
                    f"unknown contact {name!r}: this is a frame; its contact is {contact.name!r}"
                )
        return unknown("contact", name, self._index if among is None else among)

    @overload
    def __getitem__(self, index: int) -> Contact: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Contact, ...]: ...
    def __getitem__(self, index: int | slice) -> Contact | tuple[Contact, ...]:
        return self._contacts[index]

    def __len__(self) -> int:
        return len(self._contacts)

    def __iter__(self) -> Iterator[Contact]:
        return iter(self._contacts)

    def __repr__(self) -> str:
        return f"ContactSet({', '.join(c.name for c in self._contacts)}; {self.rows} rows)"

    def to_bytes(self) -> bytes:
        """Return canonical bytes (for hashing)."""
        return b"".join(contact.to_bytes() for contact in self._contacts)

    def row_bytes(self) -> bytes:
        """Return canonical bytes of all that G depends on."""
        return b"".join(contact.row_bytes() for contact in self._contacts)


def row_scales(contacts: Iterable[Contact], characteristic_length: float) -> Array:
    """Return factors (m,) that give all rows the unit of linear rows, 1/kg on the diagonal.

    Linear rows have factor 1, angular rows the characteristic length l: l times an angular
    velocity is the velocity of a point at distance l. A row of a selection that mixes both
    lies in between: ‖(a, b)‖ / ‖(a, b / l)‖ for its linear part a and angular part b.

    Raises
    ------
    InputError
        If the length is not a positive finite number.
    """
    if not 0.0 < number("characteristic_length", characteristic_length) < np.inf:
        raise InputError(
            f"characteristic_length is {characteristic_length}; expected a positive length in m"
        )
    rows = np.vstack([np.empty((0, 6)), *(contact.selection for contact in contacts)])
    units = np.array([1.0] * 3 + [1.0 / characteristic_length] * 3)
    scales: Array = np.linalg.norm(rows, axis=1) / np.linalg.norm(rows * units, axis=1)
    return scales
