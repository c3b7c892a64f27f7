"""The problem: robot + contact set + axes + outputs; the key of compiled kernels."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Literal

from numpy.typing import ArrayLike

from delassus.arguments import instance, names, sized
from delassus.contacts import Contact, ContactSet, LoopRows, WeightedSum
from delassus.errors import ContactError, InputError, ProblemError, RobotError, unknown
from delassus.model.clusters import velocity_offsets, with_row_loops
from delassus.model.joint_group import JointGroup
from delassus.model.robot import FROM_URDF, WORLD, JointKind, Robot
from delassus.model.spatial import Array, frozen
from delassus.outputs import COMPUTED, DIRECTIONS, SEEDED, kernel_outputs, row_of
from delassus.scalars.ports import Port, block_size

Axes = Literal["contact", "world"]
AXES: tuple[Axes, ...] = ("contact", "world")
_OFF = 0.01
"""Largest relative violation of a coupling by velocities: couplings of simulators are soft."""
_OF_FLOATING = frozenset({"G", "dG", "G_dot", "q_bar", "inputs_bar"})
"""Outputs of robots with a floating joint inside the tree."""
_BARS = frozenset(name for name in SEEDED if name.endswith("_bar"))
_OF_CLOSED = {"qdd0": ("MinvJT", "a0")}
"""Outputs of the open tree that an output needs besides itself where loops are closed by rows."""
_RESTING = 1e-6
"""Velocity below which a joint counts as resting [rad/s, m/s]."""


def beside_base(robot: Robot) -> str | None:
    """Return the first joint on the world beside a floating base, or None."""
    if robot.base == "fixed":
        return None
    return next((joint.name for joint in robot.joints[1:] if joint.parent == WORLD), None)


class Problem:
    """Robot, contacts, axes and outputs; frozen, compared by canonical bytes and the contacts'.

    Immutable; threads may share it.

    Parameters
    ----------
    robot : the robot.
    contacts : all contacts that may ever be active.
    axes : ``"contact"`` expresses rows in the axes of their contact, ``"world"`` in world axes; a
        floating base then needs the input ``base_orientation``.
    outputs : names of the outputs: ``"G"``, the Delassus matrix J M⁻¹ Jᵀ, always;
        ``"J"``, the contact Jacobian; ``"MinvJT"``, M⁻¹ Jᵀ; ``"M"``, the mass matrix; ``"h"``,
        bias forces; ``"v"``, contact velocities J ẏ; ``"JdotV"``, J̇ ẏ; ``"a0"``, free contact
        accelerations, and with them ``"v"`` and, in contact axes, ``"turning"``, on which contact
        forces depend; ``"qdd0"``, free accelerations ÿ. See :attr:`outputs`.
    wrenches : names of frames at which external wrenches act, an input of the kernel.

    Raises
    ------
    ContactError
        If a contact names an unknown frame, or a frame that is fixed to the world, or if
        `contacts` is no list of contacts.
    RobotError
        If `robot` is no Robot.
    ProblemError
        For unknown axes or outputs, outputs that are no list of names, outputs besides G if a
        floating joint is not the base, and outputs that need gravity, in contact axes, if another
        tree is on the world beside a floating base.
    """

    def __init__(
        self,
        robot: Robot,
        contacts: ContactSet | Iterable[Contact],
        axes: Axes = "contact",
        outputs: Iterable[str] = ("G",),
        wrenches: Iterable[str] = (),
    ) -> None:
        self._robot = instance("robot", robot, Robot, FROM_URDF, RobotError)
        self._contacts = contacts if isinstance(contacts, ContactSet) else ContactSet(contacts)
        self._axes = axes
        asked = {"G", *names("outputs", outputs, ProblemError)}
        if "a0" in asked and asked.isdisjoint(SEEDED):
            asked |= {"v", "turning"} if axes == "contact" else {"v"}
        self._outputs = tuple(sorted(asked))
        self._wrenches = names("wrenches", wrenches, ProblemError)
        self._check()

    def _check(self) -> None:
        if self._axes not in AXES:
            raise ProblemError(unknown("axes", str(self._axes), AXES, plural="axes"))
        for output in self._outputs:
            if output not in kernel_outputs() and output not in SEEDED:
                computed = COMPUTED.get(output)
                write = f"; it is computed from G: solution.{computed}" if computed else ""
                raise ProblemError(unknown("output", output, kernel_outputs()) + write)
        inner = [joint.name for joint in self._robot.joints if joint.kind is JointKind.FLOATING]
        if inner and not _OF_FLOATING.issuperset(self._outputs):
            raise ProblemError(
                "outputs besides G and its derivatives are not defined for robots with a floating "
                f"joint inside the tree, which {inner[0]!r} is: make it the robot's base, or ask "
                "for G alone"
            )
        beside = beside_base(self._robot)
        needing = [name for name in self._outputs if "gravity" in row_of(name).needs]
        if beside and needing and self._axes == "contact":
            raise ProblemError(
                f"output {needing[0]!r} needs gravity, which axes='contact' takes in the axes of "
                f"the root link; joint {beside!r} is on the world beside the floating base, where "
                "that is not known: choose axes='world', which has the base's orientation"
            )
        frames = self._robot.frames
        for contact in self.rows_of_contacts:
            for end in contact.ends:
                if end.frame not in frames:
                    message = self._robot.unknown_frame(end.frame)
                    raise ContactError(f"contact {contact.name!r}: {message}")
            bodies = [frames[end.frame].body for end in contact.ends]
            if not bodies and (inner or beside):
                raise ContactError(
                    f"contact {contact.name!r} is of the whole robot {self._robot.name!r}, which "
                    f"joint {(*inner, beside)[0]!r} divides: it needs a base with all bodies on it"
                )
            elif bodies and (min if isinstance(contact, WeightedSum) else max)(bodies) == WORLD:
                fixed = contact.ends[bodies.index(WORLD)].frame
                raise ContactError(
                    f"contact {contact.name!r}: frame {fixed!r} is fixed to the world "
                    "and cannot move; choose a frame beyond a moving joint, or "
                    "base='floating'"
                )
            if len(bodies) > 1:
                self._check_several(contact, bodies)
        for wrench in self._wrenches:
            if wrench not in frames:
                raise ProblemError(f"wrenches: {self._robot.unknown_frame(wrench)}")
            if frames[wrench].body == WORLD:
                raise ProblemError(
                    f"wrenches: frame {wrench!r} is fixed to the world, where it does nothing"
                )
        if len(set(self._wrenches)) < len(self._wrenches):
            raise ProblemError(f"wrenches: a frame is named twice in {list(self._wrenches)}")

    def _check_several(self, contact: Contact, bodies: list[int]) -> None:
        """Check that the frames of a contact have poses in each other that q determines.

        A sum in the axes of the world needs no such poses.
        """
        if self._axes == "world" and isinstance(contact, WeightedSum):
            return
        robot = self._robot
        paths = [robot.path(body) for body in bodies]
        common = set.intersection(*map(set, paths))
        between = [robot.joints[i] for path in paths for i in path if i not in common]
        free = (JointKind.ROOT, JointKind.FLOATING, JointKind.PLANAR)
        for joint in between:
            if joint.kind in free:
                frames = " and ".join(repr(end.frame) for end in contact.ends)
                raise ContactError(
                    f"contact {contact.name!r}: joint {joint.name!r} between frames {frames} is "
                    f"{joint.kind.label}; expected revolute and prismatic ones"
                )

    @cached_property
    def rows_of_contacts(self) -> tuple[Contact, ...]:
        """The contacts, then a contact per loop of the robot that is closed by rows."""
        loops = (LoopRows(loop) for loop in self._robot.row_loops if len(loop.selection))
        return (*self._contacts, *loops)

    def axes_of(self, index: int) -> Axes:
        """Return the axes of the rows of a contact of :attr:`rows_of_contacts`.

        Rows of loops were chosen in the axes of their first frame.
        """
        is_loop = isinstance(self.rows_of_contacts[index], LoopRows)
        return "contact" if is_loop else self._axes

    def with_rows(self, groups: Iterable[JointGroup] | None = None) -> Problem:
        """Return the problem with loops closed by rows; ``"cheapest"`` is decided by that.

        Parameters
        ----------
        groups : the clusters whose loops are closed by rows; None for all.
        """
        robot = with_row_loops(self._robot, groups)
        return Problem(robot, self._contacts, self._axes, self._outputs, self._wrenches)

    @cached_property
    def opened(self) -> Problem:
        """The problem with rows of loops as contacts, and outputs from which its own follow."""
        needed = {name for port in self._outputs for name in (port, *_OF_CLOSED.get(port, ()))}
        robot = self._robot.replaced(row_loops=())
        return Problem(robot, self.rows_of_contacts, self._axes, needed, self._wrenches)

    @cached_property
    def ends(self) -> tuple[tuple[int, Contact], ...]:
        """Contacts of one frame on moving bodies, with the index of the contact they are part of.

        A contact on one frame is its own end; a contact of several frames has an end on each. Ends
        have separate rows in the recursions, which are added to the contact's.
        """
        frames = self._robot.frames
        return tuple(
            (index, end)
            for index, contact in enumerate(self.rows_of_contacts)
            for end in contact.ends
            if frames[end.frame].body != WORLD
        )

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self._robot

    @property
    def contacts(self) -> ContactSet:
        """All contacts that may ever be active."""
        return self._contacts

    @property
    def axes(self) -> Axes:
        """``"contact"`` or ``"world"``."""
        return self._axes

    @property
    def wrenches(self) -> tuple[str, ...]:
        """Frames where external wrenches act, in the order of the input ``wrenches``."""
        return self._wrenches

    @cached_property
    def inputs(self) -> tuple[Port, ...]:
        """Inputs of the kernel, in order.

        ``q`` (nq,), see :class:`~delassus.model.robot.JointKind` for its entries [rad, m];
        with world axes and a floating base also ``base_orientation`` (4,), the unit
        quaternion x, y, z, w from the root link's axes to world axes; with moving contacts also
        ``contact_positions`` (k, 3), the positions of :attr:`moving` in their frames [m], and
        ``contact_orientations`` (k, 4), the unit quaternions x, y, z, w of :attr:`turning` from
        contact axes to frame axes.

        Products with derivatives have their seeds as inputs: ``along`` (n,), ``rates_along``,
        ``torques_along`` and ``gravity_along`` for ``X_dot``; ``X_bar``, in the shape of each
        other output X, for ``q_bar``, ``rates_bar``, ``torques_bar`` and ``gravity_bar``.

        Further inputs are required by some outputs: ``rates`` (n,), the :attr:`velocities`
        [rad/s, m/s], which :meth:`rates` selects from the velocities of all joints; of a floating
        base, the root link's twist in its body axes, linear first; ``torques`` (n,) of the same
        columns [N·m, N], of a floating base the wrench on its root link, force first; and
        ``gravity`` (3,) [m/s²], in world axes, or, for a floating base without the input
        ``base_orientation``, in the axes of the root link. With :attr:`wrenches` also
        ``wrenches`` (w, 6), force and moment at the origins of these frames, in the frames' axes
        [N, N·m].
        """
        ports = [Port("q", (self._robot.nq,))]
        if self._axes == "world" and self._robot.base == "floating":
            ports.append(Port("base_orientation", (4,)))
        widths = {"contact_positions": 3, "contact_orientations": 4}
        ports += [Port(name, (len(placed), widths[name])) for name, placed in self.placed.items()]
        needed = {need for output in self._outputs for need in row_of(output).needs}
        n = len(self.velocities) if needed else 0
        w = len(self._wrenches)
        shapes = {"rates": (n,), "torques": (n,), "gravity": (3,), "wrenches": (w, 6)}
        shapes |= {"along": (n,)} | {f"{name}_along": shapes[name] for name in DIRECTIONS}
        ports += [
            Port(name, shape) for name, shape in shapes.items() if name in needed and shape[0]
        ]
        if any(name.endswith("_bar") for name in self._outputs):
            ports += [Port(f"{port.name}_bar", port.shape) for port in self.unseeded.outputs]
        return tuple(ports)

    @cached_property
    def seeded(self) -> tuple[str, ...]:
        """Outputs whose seeds are inputs: directions ``along``, and ``X_bar`` of each output X."""
        return tuple(name for name in self._outputs if name in SEEDED)

    @cached_property
    def unseeded(self) -> Problem:
        """The problem without its :attr:`seeded` outputs, or with the outputs that these change.

        With ``X_dot``, output X is present; ``dG`` is not differentiated again.
        """
        if not self.seeded:
            return self
        names = {name.removesuffix("_dot") for name in self._outputs if name not in _BARS}
        names -= {"dG"}
        found = Problem(self._robot, self._contacts, self._axes, names, self._wrenches)
        found._outputs = tuple(sorted(names | {"G"}))  # no output that nothing differentiates
        return found

    @cached_property
    def moving(self) -> tuple[str, ...]:
        """Contacts whose position is an input, in the order of ``contact_positions``."""
        return tuple(c.name for c in self._contacts if c.moving != "nothing")

    @cached_property
    def turning(self) -> tuple[str, ...]:
        """Contacts whose orientation is an input, in the order of ``contact_orientations``.

        Empty with world axes, in which rows do not depend on contact orientations.
        """
        if self._axes == "world":
            return ()
        return tuple(c.name for c in self._contacts if c.moving == "pose")

    @property
    def placed(self) -> dict[str, tuple[str, ...]]:
        """Contacts whose placement is an input, in the order of its rows, by input."""
        placed = {"contact_positions": self.moving, "contact_orientations": self.turning}
        return {name: contacts for name, contacts in placed.items() if contacts}

    @cached_property
    def placements(self) -> Mapping[str, Array]:
        """Initial values of the inputs for moving contacts: the placements of the contacts."""
        by_name = {contact.name: contact.placement for contact in self._contacts}
        values: dict[str, list[Array]] = {
            "contact_positions": [by_name[name].translation for name in self.moving],
            "contact_orientations": [by_name[name].quaternion() for name in self.turning],
        }
        return {
            port.name: frozen(values[port.name], port.shape)
            for port in self.inputs
            if port.name in values
        }

    @cached_property
    def velocities(self) -> tuple[str, ...]:
        """The joint of every independent velocity, i.e. of columns of J and rows of MinvJT.

        A joint with several velocities is repeated: a planar joint three times (ẋ, ẏ, θ̇), a
        floating base six times (its root link's twist in the link's axes, linear first).
        Independent velocities are in model order: in an open chain those of all joints, in a
        robot with couplings or loops those of the clusters' independent joints. The velocities of
        all joints are q̇ = E ẏ, with the loop Jacobian E.
        """
        joints = self._robot.joints
        return tuple(
            joints[i].name for i in velocity_offsets(self._robot) for _ in range(joints[i].kind.nv)
        )

    def rates(self, v: ArrayLike) -> Array:
        """Return the independent velocities (n,), the input ``rates``, from those of all joints.

        Parameters
        ----------
        v : (nv,) velocities of all joints, such as results of
            :meth:`Robot.v <delassus.model.robot.Robot.v>` and of converted states. Velocities
            of dependent joints in loops depend on q and are not checked.

        Raises
        ------
        InputError
            If `v` is not an array of this size, or a coupling does not hold; names the coupling.
        """
        robot = self._robot
        values = sized("v", v, robot.nv, "the robot's", InputError)
        by_name = dict(zip((joint.name for joint in robot.joints), robot.v_offsets, strict=True))
        for coupling in robot.couplings:
            parts = {name: ratio * values[by_name[name]] for name, ratio in coupling.ratios}
            off = abs(sum(parts.values()))
            # This form of the condition refuses NaN as well.
            if not off <= _OFF * sum(map(abs, parts.values())) + _RESTING:
                rates = ", ".join(f"{name!r}: {values[by_name[name]]:.6g}" for name in parts)
                raise InputError(
                    f"v does not fit coupling {coupling.name!r}, which is off by {off:.3g}; it "
                    f"has {rates}"
                )
        indices = [
            robot.v_offsets[i] + k
            for i in velocity_offsets(robot)
            for k in range(robot.joints[i].kind.nv)
        ]
        return values[indices]

    @cached_property
    def outputs(self) -> tuple[Port, ...]:
        """Outputs of the kernel, in order.

        ``G`` (m, m) [1/kg, 1/(kg·m), 1/(kg·m²)]; ``J`` (m, n), velocities → contact velocities;
        ``MinvJT`` (n, m), contact forces → accelerations. The n velocities are those of
        :attr:`velocities`. ``M`` (n, n) the mass matrix; ``h`` (n,) the torques that a motion
        without acceleration needs, C ẏ + g less those of external wrenches, springs, dampers and
        gravity compensation, which all outputs of torques or gravity count; ``v`` (m,) J ẏ, the
        velocities of the contacts; ``JdotV`` (m,) J̇ ẏ;
        ``qdd0`` (n,) the ÿ of torques, gravity and wrenches without contact forces, and ``a0``
        (m,) = J qdd0 + J̇ ẏ: with forces f, the contacts accelerate by G f + a0 and the velocities
        by MinvJT f + qdd0. J̇ ẏ is the derivative of components: with contact axes, which turn,
        the material acceleration of a point differs by ``turning`` (m,) = ω × v; with world axes
        both are equal.
        ``JdotV`` and ``a0`` treat the position of a moving contact as fixed on its link: for a
        contact that rolls without slip, and moves over the link at ṗ, G f + a0 is −ω × ṗ.

        ``dG`` (n, m, m) has ∂G/∂y, the derivatives of G along each velocity: for a joint with a
        quaternion and for a floating base, whose columns are zero in contact axes, along the twist
        in body axes. ``X_dot`` is the change of an output X along a direction; ``q_bar`` (n,),
        ``rates_bar`` (n,), ``torques_bar`` (n,) and ``gravity_bar`` (3,) are the gradients of
        Σ X_bar · X over the other outputs X, and ``inputs_bar`` has the partial derivatives by all
        entries of the inputs, without seeds. See :mod:`delassus.algorithms.derivatives`.

        With couplings or loops the velocities are independent, so that J is J_span E and MinvJT is
        (Eᵀ M E)⁻¹ Eᵀ J_spanᵀ, in terms of the Jacobian J_span and the inertia M of all joints.
        """
        m = self._contacts.rows
        nv = len(self.velocities) if self._outputs != ("G",) else 0
        entries = block_size(self.unseeded.inputs) if self.seeded else 0
        return tuple(Port(name, row_of(name).shape(m, nv, entries)) for name in self._outputs)

    @cached_property
    def canonical_bytes(self) -> bytes:
        """Return the data that determine the outputs as bytes; equal problems have equal bytes.

        Friction, normals and dimensions of contacts are not among them: kernels do not have them.

        Raises
        ------
        RobotError
            If the robot has couplings or loops that cannot be closed.
        """
        asked = ",".join(self._outputs) + "".join(f"\1{name}" for name in self._wrenches)
        head = f"problem 1\0{self._axes}\0{asked}\0".encode()
        robot = self._robot.to_bytes()
        if self._robot.is_closed:
            # The choice of independent joints also depends on the joint limits.
            robot += b"\0velocities\0" + "\0".join(self.velocities).encode()
        return head + robot + b"\0contacts\0" + self._contacts.row_bytes()

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical bytes, hexadecimal."""
        return hashlib.sha256(self.canonical_bytes).hexdigest()

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Problem)
            and self.canonical_bytes == other.canonical_bytes
            and self._contacts.to_bytes() == other._contacts.to_bytes()
        )

    def __hash__(self) -> int:
        return hash(self.canonical_bytes)

    def __repr__(self) -> str:
        return (
            f"Problem({self._robot.name!r}, {self._contacts!r}, axes={self._axes!r}, "
            f"outputs={set(self._outputs)!r})"
        )
