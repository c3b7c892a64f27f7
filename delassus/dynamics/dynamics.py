"""Compiled inverse, forward and hybrid dynamics of robots with gears and loops; loop rates."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delassus.arguments import instance, names, numbers
from delassus.closure.samples import closed_inputs
from delassus.compiler.export import Export, Target, export_functions
from delassus.compiler.function import BoundFunction, CompiledFunction
from delassus.compiler.passes.limbs import Likeness, Owners, likeness_of_function
from delassus.dynamics.derivatives import derivatives_of_forward, derivatives_of_inverse
from delassus.dynamics.identifiable import IdentifiableParameters, identifiable
from delassus.dynamics.matrices import coriolis, gravity_torques
from delassus.dynamics.methods import FAILURE, FORWARD, INVERSE, Method
from delassus.dynamics.regressor import PARAMETERS, regressor
from delassus.errors import InputError, ProblemError, RobotError, unknown
from delassus.model.clusters import velocity_offsets
from delassus.model.robot import FROM_URDF, JointKind, Robot
from delassus.model.spatial import Array
from delassus.problem import Problem
from delassus.rbda.dynamics import hybrid
from delassus.rbda.robot_tree import RobotTree
from delassus.rbda.tree import Tree
from delassus.rbda.trees import spanning_tree, tree_of
from delassus.scalars.counts import OperationCount
from delassus.scalars.functions import Vector
from delassus.scalars.ports import Inputs, Port

GRAVITY = (0.0, 0.0, -9.81)
"""Gravity in world axes [m/s²]."""


def _only(
    formula: Callable[[RobotTree, Inputs], Vector], build: Callable[[Problem], Tree] = tree_of
) -> dict[str, Method]:
    return {"": Method(formula, build, "")}


def _unregrouped(problem: Problem) -> Tree:
    """Return the spanning tree with the bodies' own inertias."""
    return spanning_tree(problem, regrouped=False)


@dataclass(frozen=True)
class _Function:
    """A method of :class:`Dynamics` that is a formula.

    Attributes
    ----------
    takes : names of its inputs after ``q``.
    methods : by name; the first is the default.
    results : names of its results, vectors (n,) or matrices (n, n).
    matrices : whether results are matrices; of the regressor (n, 10 bodies).
    is_loaded : whether external wrenches act.
    """

    takes: tuple[str, ...]
    methods: Mapping[str, Method]
    results: tuple[str, ...]
    matrices: bool = False
    is_loaded: bool = False


_MOTION, _CAUSE = ("rates", "accelerations", "gravity"), ("rates", "torques", "gravity")
_FUNCTIONS = {
    "inverse": _Function(_MOTION, INVERSE, ("torques",), is_loaded=True),
    "forward": _Function(_CAUSE, FORWARD, ("accelerations",), is_loaded=True),
    "coriolis": _Function(("rates",), _only(coriolis, _unregrouped), ("coriolis",), True),
    "gravity_torques": _Function(("gravity",), _only(gravity_torques), ("torques",)),
    "inverse_derivatives": _Function(
        _MOTION, _only(derivatives_of_inverse), ("dtau_dq", "dtau_drates", "M"), True, True
    ),
    "forward_derivatives": _Function(
        _CAUSE, _only(derivatives_of_forward), ("da_dq", "da_drates", "Minv"), True, True
    ),
    "regressor": _Function(_MOTION, _only(regressor, _unregrouped), ("regressor",), True),
}
FUNCTIONS = tuple(_FUNCTIONS)
"""Names of the functions that can be bound, computed in batches and exported."""
_STATES_PER_UNKNOWN = 3
"""Random states from which parameters are identified, as a multiple of the fewest."""
_HYBRID = _Function(("rates", "known", "gravity"), {}, ("unknown",), is_loaded=True)


def _row(name: str) -> _Function:
    """Return the row of the table with a name."""
    if name not in _FUNCTIONS:
        raise InputError(unknown("function", name, _FUNCTIONS))
    return _FUNCTIONS[name]


class Dynamics:
    """C-RNEA, C-ABA and their hybrid, compiled at the first call of a method; thread-safe.

    A copied or pickled object is constructed anew for the same robot.

    Rates, accelerations and torques are those of :attr:`joints`, the independent joints: torques
    of dependent joints are converted to equivalent torques of independent joints. A floating base
    is first with six numbers: the root link's twist in its body axes, linear first, its spatial
    acceleration, or the wrench on the link. Torques are those of motors, beside which the robot's
    springs, dampers and gravity compensation act.

    Parameters
    ----------
    robot : any robot without floating joints inside the tree or another tree on the world beside a
        floating base.
    cache : read and write the disk cache of compiled code; if False, code is compiled per object.
    wrenches : names of frames that external wrenches act on.

    Attributes
    ----------
    joints : names of the joints with independent rates, in the order of rates.
    size : number of independent rates.
    wrenches : the argument.

    Raises
    ------
    RobotError
        If a joint inside the tree is floating, or on the world beside a floating base; names the
        joint. If `robot` is no Robot.
    ProblemError
        If a frame of `wrenches` is unknown, named twice or fixed to the world; names the frame.
    """

    def __init__(self, robot: Robot, cache: bool = True, wrenches: Iterable[str] = ()) -> None:
        instance("robot", robot, Robot, FROM_URDF, RobotError)
        self.wrenches = names("wrenches", wrenches, ProblemError)
        self._tree = RobotTree(robot, self.wrenches)
        self.joints, self.size = self._tree.joints, self._tree.size
        self._robot, self._cache = robot, cache
        self._compiled: dict[tuple[str, ...], CompiledFunction] = {}
        self._lock = threading.Lock()

    def _function(
        self, name: str, method: str = "", accelerated: Iterable[str] = ()
    ) -> CompiledFunction:
        """Return the compiled function of a row of the table, or hybrid dynamics."""
        joints = names("accelerated", accelerated, InputError)
        if name == "hybrid" and not method:
            return self._hybrid(self._indices(joints))
        if joints:
            raise InputError(f"accelerated joints are for 'hybrid' alone, not for {name!r}")
        row = _row(name)
        method = method or next(iter(row.methods))
        if method not in row.methods:
            raise InputError(unknown("method", method, row.methods))
        chosen = row.methods[method]

        def formula() -> Callable[[Inputs], Vector]:
            tree = RobotTree(self._robot, self.wrenches, chosen.build)
            return partial(chosen.formula, tree)

        return self._made((name, method), row, formula)

    def _hybrid(self, accelerated: frozenset[int]) -> CompiledFunction:
        """Return the compiled hybrid dynamics for a set of accelerated columns."""

        def formula() -> Callable[[Inputs], Vector]:
            return lambda x: hybrid(self._tree.motion(x), list(x["known"]), accelerated)

        what = ("hybrid", *map(str, sorted(accelerated)))
        return self._made(what, _HYBRID, formula)

    def _made(
        self,
        what: tuple[str, ...],
        row: _Function,
        formula: Callable[[], Callable[[Inputs], Vector]],
    ) -> CompiledFunction:
        """Return a function, compiled at the first call; other threads wait for the compiler."""
        with self._lock:
            if what not in self._compiled:
                ports = [Port("q", (self._robot.nq,))]
                ports += [
                    Port(name, (3 if name == "gravity" else self.size,)) for name in row.takes
                ]
                if self.wrenches and row.is_loaded:
                    ports.append(Port("wrenches", (len(self.wrenches), 6)))
                self._compiled[what] = CompiledFunction(
                    formula(), ports, self._key(*what), self._robot, self._likeness(row, ports)
                )
            return self._compiled[what]

    def _likeness(self, row: _Function, ports: Iterable[Port]) -> Likeness:
        """Return which inputs and results of a function belong to alike limbs."""
        robot = self._robot
        joints = range(len(robot.joints))
        velocities = [
            joint for joint in velocity_offsets(robot) for _ in range(robot.joints[joint].kind.nv)
        ]
        owners: dict[str, Owners] = {
            "q": [i for i in joints for _ in range(robot.joints[i].kind.nq)],
            "gravity": [None] * 3,
            "wrenches": [robot.frames[name].body for name in self.wrenches for _ in range(6)],
        }
        inputs = [owner for port in ports for owner in owners.get(port.name, velocities)]
        columns = velocities
        if row.results == ("regressor",):
            columns = [body for body in joints for _ in PARAMETERS]
        axes = [velocities, columns] if row.matrices else [velocities]
        return likeness_of_function(robot, inputs, [axes] * len(row.results))

    def _key(self, *what: str) -> bytes | None:
        """Return the cache key of a function, or None without the disk cache."""
        if not self._cache:
            return None
        # The choice of independent joints also depends on limits, which the robot's bytes lack.
        parts = [*what, "", *self.joints, "", *self.wrenches, ""]
        return "\0".join(parts).encode() + self._robot.to_bytes()

    def _call(
        self,
        name: str,
        *arrays: ArrayLike,
        wrenches: ArrayLike | None = None,
        method: str = "",
        accelerated: Iterable[str] = (),
    ) -> Array:
        """Return the results of a function of the table, or of hybrid dynamics."""
        function = self._function(name, method, accelerated)
        if function.inputs[-1].name == "wrenches":
            forces = np.zeros((len(self.wrenches), 6)) if wrenches is None else wrenches
            arrays = *arrays, forces
        elif wrenches is not None:
            raise InputError(
                "wrenches are given, but this Dynamics has no frames for them: make it with "
                "wrenches=[...]"
            )
        return function.compute(FAILURE, *arrays)

    def bind(
        self, function: str, method: str = "", accelerated: Iterable[str] = ()
    ) -> BoundFunction:
        """Return a function with preallocated buffers, for control loops; one per thread.

        Parameters
        ----------
        function : the name of a method of this class that returns torques, accelerations or
            matrices.
        method : as for the method of this class with the same name.
        accelerated : of ``"hybrid"``, the joints of known acceleration.

        Raises
        ------
        InputError
            If the function, the method or an accelerated joint is unknown; names it.
        """
        return self._function(function, method, accelerated).bind()

    def batch(
        self,
        function: str,
        *arrays: ArrayLike,
        method: str = "",
        accelerated: Iterable[str] = (),
        threads: int = 1,
    ) -> tuple[Array, NDArray[np.int32]]:
        """Return the results (N, size) of a function at N states, and statuses (N,).

        Rows without the status OK are NaN. Matrices are flat, row by row.

        Parameters
        ----------
        function, method, accelerated : as for :meth:`bind`.
        arrays : all arguments of the method with the name of `function`, with gravity and, where
            this object has them, wrenches; (N, …), or without the first axis for all N.
        threads : number of threads.

        Raises
        ------
        InputError
            If the function or the method is unknown, or an array is no numbers or has a wrong
            shape; names it.
        """
        return self._function(function, method, accelerated).batch(*arrays, threads=threads)

    def export(self, functions: Iterable[str], name: str, target: Target | None = None) -> Export:
        """Return functions for C and C++: an object file and its header ``NAME_dynamics.h``.

        A function ``NAME_inverse(in, out, work)`` computes the same bits as :meth:`inverse` on the
        processor that it is compiled for. The header has the offsets of inputs and results in the
        blocks, the size of the work area, statuses, and the joint of each entry.

        Parameters
        ----------
        functions : names as for :meth:`bind` but ``"hybrid"``, each alone or followed by a colon
            and a method, as ``"forward:lagrange"``, whose symbol is ``NAME_forward_lagrange``.
        name : prefix of all symbols; a C identifier.
        target : what to compile for; this machine if None.

        Raises
        ------
        InputError
            If there is no function, a function or method is unknown, a function is named twice
            with one method, a method is empty, the name is no C identifier, or the target is not
            known to work; names it.
        """
        wanted: dict[str, tuple[CompiledFunction, tuple[Port, ...]]] = {}
        for spelled in names("functions", functions, InputError):
            function, colon, method = spelled.partition(":")
            row, symbol = _row(function), spelled.replace(":", "_")
            if colon and not method:
                raise InputError(
                    f"functions: {spelled!r} has no method after the colon; expected "
                    f"{function!r} for the default method"
                )
            if symbol in wanted:
                raise InputError(f"functions: {spelled!r} is named twice; expected it once")
            compiled = self._function(function, method)
            width = (compiled.results // self.size // len(row.results),) if row.matrices else ()
            results = tuple(Port(result, (self.size, *width)) for result in row.results)
            wanted[symbol] = compiled, results
        if not wanted:
            raise InputError(f"functions: expected at least one of {', '.join(_FUNCTIONS)}")
        robot = self._robot
        about = (
            f"Dynamics of {robot.name}",
            "Units: m, kg, rad, s, N. Gravity in the axes of the world; of a floating base in",
            "those of its root link. Wrenches in the axes of their frames, linear first.",
        )
        entries = [joint.name for joint in robot.joints for _ in range(joint.kind.nq)]
        arrays = {
            "dynamics_joints": ("The joint of each entry of q.", *entries),
            "dynamics_velocities": (
                "The joint of each rate; a floating base has six, linear first.",
                *self._tree.problem.velocities,
            ),
            "dynamics_wrenches": ("The frames of external wrenches.", *self.wrenches),
        }
        return export_functions(wanted, name, about, arrays, target)

    def operations(self, function: str, method: str = "") -> OperationCount:
        """Return the operation count of a call, sines and cosines excluded; see :meth:`bind`."""
        return self._function(function, method).operations

    def inverse(
        self,
        q: ArrayLike,
        rates: ArrayLike,
        accelerations: ArrayLike,
        gravity: ArrayLike = GRAVITY,
        wrenches: ArrayLike | None = None,
        method: str = "c_rnea",
    ) -> Array:
        """Return the torques (size,) that a motion needs [N·m, N].

        Parameters
        ----------
        q : (nq,) of the spanning tree; must close the loops. Couplings are checked.
        rates, accelerations : (size,).
        gravity : (3,) in world axes; for a floating base, in the axes of the root link [m/s²].
        wrenches : on the frames of :attr:`wrenches` (w, 6), in their axes, linear first [N, N·m];
            zero by default.
        method : a name of :data:`delassus.dynamics.methods.INVERSE`. ``"projected"`` has the
            same result; ``"approximate"`` and ``"unconstrained"`` leave rotors out.

        Raises
        ------
        InputError
            If an array is no numbers or has another shape, or the method is unknown; names it.
        RobotError
            If an approximate method cannot leave a dependent joint out; names the joint.
        NumericalError
            If a loop is singular at q, a coupling does not hold, an input is not finite, a
            position is beyond 10⁶ rad or m, or a result overflows.
        """
        arrays = q, rates, accelerations, gravity
        return self._call("inverse", *arrays, wrenches=wrenches, method=method)

    def forward(
        self,
        q: ArrayLike,
        rates: ArrayLike,
        torques: ArrayLike,
        gravity: ArrayLike = GRAVITY,
        wrenches: ArrayLike | None = None,
        method: str = "c_aba",
    ) -> Array:
        """Return the accelerations (size,) caused by torques; see :meth:`inverse`.

        Parameters
        ----------
        method : a name of :data:`delassus.dynamics.methods.FORWARD`. ``"projection"`` and
            ``"lagrange"`` have the same result; ``"approximate"`` and ``"unconstrained"`` leave
            rotors out.

        Raises
        ------
        InputError, RobotError
            As for :meth:`inverse`.
        NumericalError
            If the mass matrix is not positive definite at q, or as for :meth:`inverse`.
        """
        arrays = q, rates, torques, gravity
        return self._call("forward", *arrays, wrenches=wrenches, method=method)

    def hybrid(
        self,
        q: ArrayLike,
        rates: ArrayLike,
        known: ArrayLike,
        accelerated: Iterable[str],
        gravity: ArrayLike = GRAVITY,
        wrenches: ArrayLike | None = None,
    ) -> Array:
        """Return the unknown entries (size,): torques or accelerations of joints.

        The function is compiled at the first call for a set of accelerated joints.

        Parameters
        ----------
        q, rates, gravity, wrenches : as for :meth:`inverse`.
        known : (size,) accelerations of the joints in `accelerated`, torques of all other joints.
        accelerated : names of joints of :attr:`joints`; of joints that share a loop or coupling,
            all or none.

        Raises
        ------
        InputError
            If an array is no numbers or has another shape, a joint is unknown, or only some of
            the joints that share a loop are accelerated; names them.
        NumericalError
            As for :meth:`forward`.
        """
        arrays = q, rates, known, gravity
        return self._call("hybrid", *arrays, wrenches=wrenches, accelerated=accelerated)

    def coriolis(self, q: ArrayLike, rates: ArrayLike) -> Array:
        """Return the Coriolis matrix C (size, size), with Ṁ − 2C skew-symmetric.

        C ẏ are the Coriolis and centrifugal torques.

        Raises
        ------
        InputError, NumericalError
            As for :meth:`inverse`.
        """
        return self._call("coriolis", q, rates).reshape(self.size, self.size)

    def gravity_torques(self, q: ArrayLike, gravity: ArrayLike = GRAVITY) -> Array:
        """Return the torques (size,) that hold the robot at rest against gravity [N·m, N].

        Springs and gravity compensation of the robot count.

        Raises
        ------
        InputError, NumericalError
            As for :meth:`inverse`.
        """
        return self._call("gravity_torques", q, gravity)

    def inverse_derivatives(
        self,
        q: ArrayLike,
        rates: ArrayLike,
        accelerations: ArrayLike,
        gravity: ArrayLike = GRAVITY,
        wrenches: ArrayLike | None = None,
    ) -> tuple[Array, Array, Array]:
        """Return ∂τ/∂q, ∂τ/∂ẏ and ∂τ/∂ÿ = M, each (size, size); see :meth:`inverse`.

        Derivatives in q are along the independent velocities: of loops along their independent
        joints, of a floating base along its twist in body axes, which turns gravity.

        Raises
        ------
        InputError, NumericalError
            As for :meth:`inverse`.
        """
        arrays = q, rates, accelerations, gravity
        return self._matrices(self._call("inverse_derivatives", *arrays, wrenches=wrenches))

    def forward_derivatives(
        self,
        q: ArrayLike,
        rates: ArrayLike,
        torques: ArrayLike,
        gravity: ArrayLike = GRAVITY,
        wrenches: ArrayLike | None = None,
    ) -> tuple[Array, Array, Array]:
        """Return ∂ÿ/∂q, ∂ÿ/∂ẏ and ∂ÿ/∂τ = M⁻¹, each (size, size); see :meth:`forward`.

        Raises
        ------
        InputError, NumericalError
            As for :meth:`forward`.
        """
        arrays = q, rates, torques, gravity
        return self._matrices(self._call("forward_derivatives", *arrays, wrenches=wrenches))

    def _matrices(self, values: Array) -> tuple[Array, Array, Array]:
        first, second, third = values.reshape(3, self.size, self.size)
        return first, second, third

    def regressor(
        self,
        q: ArrayLike,
        rates: ArrayLike,
        accelerations: ArrayLike,
        gravity: ArrayLike = GRAVITY,
    ) -> Array:
        """Return Y (size, 10 bodies): Y π are the torques of :meth:`inverse`.

        Torques of armatures, springs, dampers and gravity compensation are not included. The order
        of π is that of :func:`~delassus.dynamics.regressor.inertial_parameters`.

        Raises
        ------
        InputError, NumericalError
            As for :meth:`inverse`.
        """
        values = self._call("regressor", q, rates, accelerations, gravity)
        return values.reshape(self.size, -1)

    def identifiable(
        self, q: ArrayLike | None = None, gravity: ArrayLike = GRAVITY, seed: int = 0
    ) -> IdentifiableParameters:
        """Return which inertial parameters torques depend on, and which changes none shows.

        Regressors at random states are stacked; see :mod:`delassus.dynamics.identifiable`.

        Parameters
        ----------
        q : (N, nq) configurations that close the loops; by default random ones, with loops near
            the reference of :class:`~delassus.closure.closure.Closure`.
        gravity : (3,) in world axes [m/s²]; of a floating base its norm counts, as the base turns.
        seed : of the random states.

        Raises
        ------
        InputError
            If an array is no numbers or has another shape; names it.
        RobotError, NumericalError
            If loops do not close, configurations are too few for the number of parameters, or the
            number of identifiable parameters is not clear.
        """
        robot, n = self._robot, self.size
        labels = [f"{body.name} {name}" for body in robot.bodies for name in PARAMETERS]
        rng = np.random.default_rng(seed)
        if q is None:
            count = _STATES_PER_UNKNOWN * -(-len(labels) // n)
            inputs = closed_inputs(self._tree.problem, count, seed)
            configurations = np.array([values["q"] for values in inputs])
        else:
            configurations = np.atleast_2d(numbers("q", q))
        count = len(configurations)
        acting = np.tile(numbers("gravity", gravity), (count, 1))
        if robot.joints[0].kind is JointKind.ROOT:
            directions = rng.normal(size=(count, 3))
            directions /= np.linalg.norm(directions, axis=1, keepdims=True)
            acting = np.linalg.norm(acting, axis=1, keepdims=True) * directions
        motion = rng.normal(size=(2, count, n))
        found = [
            self.regressor(*state) for state in zip(configurations, *motion, acting, strict=True)
        ]
        return identifiable(np.concatenate(found), labels)

    def _indices(self, accelerated: Iterable[str]) -> frozenset[int]:
        """Return the indices of the rates of accelerated joints."""
        columns = self._tree.columns_by_joint
        found: set[int] = set()
        for name in names("accelerated", accelerated, InputError):
            if name not in columns:
                raise InputError(f"accelerated: {unknown('joint', name, columns)}")
            found.update(columns[name])
        by_column = {k: name for name, indices in columns.items() for k in indices}
        for shared in self._tree.velocities.shared:
            known = found.intersection(shared)
            if known and len(known) < len(shared):
                together = [by_column[k] for k in shared]
                raise InputError(
                    f"accelerated: joints {together} share a loop or coupling; expected all of "
                    f"them or none, not {[by_column[k] for k in shared if k in known]} alone"
                )
        return frozenset(found)

    def __reduce__(self) -> tuple[type[Dynamics], tuple[object, ...]]:
        """Pickle by the arguments of the constructor; machine code is not pickled."""
        return type(self), (self._robot, self._cache, self.wrenches)
