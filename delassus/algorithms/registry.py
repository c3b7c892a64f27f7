"""Interfaces of algorithms and their registry: by decorator; by entry point for third parties."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Any, TypeAlias, TypeVar

from delassus.algorithms.derivatives import differentiated
from delassus.arguments import instance, shown
from delassus.errors import AlgorithmError, CompilerError, folded, unknown
from delassus.problem import Problem
from delassus.rbda.ball_joints import check_ball_joints
from delassus.rbda.momentum import contact_matrix
from delassus.rbda.outputs import compute_outputs
from delassus.rbda.row_loops import closed
from delassus.rbda.spatial import contact_rows
from delassus.rbda.tree import Tree
from delassus.rbda.trees import roots_of, tree_of
from delassus.rbda.unknown_constants import structure
from delassus.scalars.functions import Matrix
from delassus.scalars.ports import Arrays, Inputs, Outputs, Status

ROOT_MARK = "@"
"""Separates the name of an algorithm from the frame of the root: ``"pv_osimr@l_foot"``."""
ENTRY_POINT_GROUP = "delassus.algorithms"
_BUILT_IN = (
    "auto", "dense", "efpa", "elimination", "kjr", "ltl", "pv_osim", "pv_osimr",
    "reflected_inertia",
)  # fmt: skip
_BACK_ENDS = {
    # On PyPI Pinocchio is called pin; the package named pinocchio there is unrelated.
    "pinocchio": "needs Pinocchio: pip install pin; ROS: ros-$ROS_DISTRO-pinocchio",
}
"""Algorithm module, named like the package that it needs → message where the package is absent."""

_log = logging.getLogger(__name__)
_registry: dict[str, Algorithm] = {}
_aliases: dict[str, str] = {}
_broken: dict[str, str] = {}
_discovered = False
_lock = threading.RLock()
os.register_at_fork(  # a child has none of the threads that would release it
    before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
)


class Algorithm(ABC):  # noqa: B024 (no method is mandatory at this level)
    """A way to compute the outputs of a problem.

    Attributes
    ----------
    name : name in the registry; set by the registry.
    version : to be raised when results change, so that cached kernels are not reused.
    clusters : whether the algorithm takes robots with couplings and loops.
    """

    name: str = ""
    version: int = 1
    clusters: bool = False

    def supports(self, problem: Problem) -> str | None:
        """Return None if the problem can be computed, else the reason for refusal."""
        if self.clusters or not problem.robot.is_closed:
            return None
        return (
            f"it is for open chains, and {problem.robot.name!r} has couplings or loops; use "
            f"{_with_clusters()}"
        )

    def approximates(self, problem: Problem) -> bool:
        """Return whether the error of G exceeds rounding; a node then publishes DEGRADED."""
        return False

    @property
    def definition(self) -> Any:
        """The class or function that was registered."""
        return type(self)


class NumericAlgorithm(Algorithm):
    """An algorithm that computes on arrays: a back end that cannot be traced."""

    def supports(self, problem: Problem) -> str | None:
        """Refuse loops by rows, and clusters unless the algorithm has them; see the base."""
        loops = problem.robot.row_loops
        if loops:
            return f"loop {loops[0].name!r} is closed by rows, which only traced algorithms have"
        return super().supports(problem)

    @abstractmethod
    def prepare(self, problem: Problem) -> Callable[[Arrays, Arrays], Status]:
        """Return a function that reads input arrays and writes output arrays in place.

        G has to be symmetric to the last bit.

        An exception raised here reaches the caller as an AlgorithmError; an exception raised by
        the returned function becomes the status FAILED.
        """


class TracedAlgorithm(Algorithm):
    """An algorithm written over scalars; see :mod:`delassus.scalars.functions`.

    Attributes
    ----------
    any_tree : whether :meth:`evaluate_on` computes G on any tree of the problem, so that callers
        can choose the root of the tree; see :class:`AtRoot`.
    """

    any_tree: bool = False

    def supports(self, problem: Problem) -> str | None:
        """Return None if the problem can be computed, perhaps with loops by rows; else why not."""
        return super().supports(_of_open_chains(problem))

    @abstractmethod
    def evaluate(self, problem: Problem, x: Inputs) -> Outputs:
        """Compute at least G of `problem` at `x`, for any kind of scalars in x.

        G has to be symmetric to the last bit: compute one triangle and mirror it. Other outputs
        are computed by :mod:`delassus.rbda.outputs` unless they are returned here.
        Loops and branches may depend on the problem only, never on a scalar's value.
        """

    def evaluate_on(self, problem: Problem, tree: Tree, x: Inputs) -> Outputs:
        """Compute the outputs with the constants of `tree`, if the algorithm uses a tree."""
        return self.evaluate(problem, x)

    def variants(self, problem: Problem) -> tuple[TracedAlgorithm, ...]:
        """Return algorithms of the same results, of which a kernel takes the shortest program."""
        return (self,)


DelassusFunction: TypeAlias = Callable[[Tree, "dict[int, Matrix]", Inputs], Matrix]
"""(tree, K, x) → G: the tree of the problem, rows by contact at the contact's link, inputs.

Contacts of several frames have a contact per end in the tree, whose rows of G are added after."""


class TreeAlgorithm(TracedAlgorithm):
    """An algorithm that was registered as a function; see :func:`register`."""

    any_tree = True

    def __init__(self, function: DelassusFunction, clusters: bool, version: int) -> None:
        self.function, self.clusters, self.version = function, clusters, version
        self.__doc__ = function.__doc__

    def supports(self, problem: Problem) -> str | None:
        """Refuse clusters if the function is for ordinary trees; see the base class.

        A robot whose loops are gears with round rotors has an ordinary tree: exactly, once the
        rotors' inertia is redistributed (:mod:`delassus.rbda.rotors`).
        """
        return None if self.clusters else without_clusters(problem)

    def evaluate(self, problem: Problem, x: Inputs) -> Outputs:
        """Compute G; see the base class."""
        return self.evaluate_on(problem, tree_of(problem), x)

    def evaluate_on(self, problem: Problem, tree: Tree, x: Inputs) -> Outputs:
        """Compute G; see the base class."""
        G = self.function(tree, contact_rows(problem, tree, x), x)
        return {"G": contact_matrix(problem, tree, x, G)}

    @property
    def definition(self) -> Any:
        """The registered function."""
        return self.function


class AtRoot(TracedAlgorithm):
    """An algorithm on the tree of a floating robot from another root: ``"pv_osimr@l_foot"``.

    Parameters
    ----------
    algorithm : an algorithm of the registry.
    root : name of a frame; its body has the free joint.

    Raises
    ------
    AlgorithmError
        If the algorithm does not take a tree from elsewhere.
    """

    def __init__(self, algorithm: Algorithm, root: str) -> None:
        if not (isinstance(algorithm, TracedAlgorithm) and algorithm.any_tree):
            raise AlgorithmError(
                f"algorithm {algorithm.name!r} takes no root; expected an algorithm on the tree, "
                f"such as 'pv_osimr{ROOT_MARK}{root}'"
            )
        self._algorithm, self._root = algorithm, root
        self.name = f"{algorithm.name}{ROOT_MARK}{root}"
        self.version, self.clusters = algorithm.version, algorithm.clusters

    def supports(self, problem: Problem) -> str | None:
        """Refuse a frame from whose body the tree cannot be built; see the base class."""
        reason = self._algorithm.supports(problem)
        if reason is not None:
            return reason
        frames = problem.robot.frames
        if self._root not in frames:
            return unknown("frame", self._root, frames)
        roots = roots_of(problem)
        if not roots:
            return f"robot {problem.robot.name!r} has a fixed base: the world is the root"
        if frames[self._root].body not in roots:
            names = ", ".join(problem.robot.bodies[body].name for body in roots)
            return f"the body of frame {self._root!r} cannot be the root; bodies: {names}"
        return None

    def evaluate(self, problem: Problem, x: Inputs) -> Outputs:
        """Compute G; see the base class."""
        return self.evaluate_on(problem, tree_of(problem), x)

    def evaluate_on(self, problem: Problem, tree: Tree, x: Inputs) -> Outputs:
        """Compute G on the tree from the root; see the base class."""
        body = problem.robot.frames[self._root].body
        tree = structure(tree_of(problem, body)) if body else tree
        return {"G": self._algorithm.evaluate_on(problem, tree, x)["G"]}

    @property
    def definition(self) -> Any:
        """The registered definition of the algorithm."""
        return self._algorithm.definition


def _of_open_chains(problem: Problem) -> Problem:
    """Return the problem in the form with the fewest clusters that a kernel may choose."""
    is_free = problem.robot.cheapest_loops and len(problem.outputs) == 1
    return problem.with_rows() if is_free else problem


def without_clusters(problem: Problem) -> str | None:
    """Return None if a problem's tree has no clusters, else the reason for refusal."""
    problem = _of_open_chains(problem)
    if not problem.robot.is_closed:
        return None
    tree = tree_of(problem)
    if tree.is_ordinary:
        return None
    names = ", ".join(repr(tree.links[i].name) for i in tree.clusters[0].links)
    return (
        f"it is for open chains, and joints {names} of {problem.robot.name!r} are coupled; "
        f"use {_with_clusters()}, or, as an approximation, reflected_inertia"
    )


def evaluate(
    problem: Problem, algorithm: TracedAlgorithm, x: Inputs, tree: Tree | None = None
) -> Outputs:
    """Return all outputs of a problem: G by the algorithm, further outputs by the tree.

    Parameters
    ----------
    tree : replaces the problem's tree: the same tree with other constants.

    Raises
    ------
    CompilerError
        If the algorithm does not return outputs by name; names the algorithm.
    """
    result: Any
    if not algorithm.clusters:
        problem = _of_open_chains(problem)
    if problem.seeded:
        result = differentiated(
            problem, x, lambda inputs: evaluate(problem.unseeded, algorithm, inputs, tree)
        )
    elif problem.robot.row_loops and len(problem.outputs) > 1:
        return closed(problem, evaluate(problem.opened, algorithm, x, tree))
    else:
        check_ball_joints(problem.robot, x)
        if tree is None:
            result = algorithm.evaluate(problem, x)
        else:
            result = algorithm.evaluate_on(problem, tree, x)
    if not isinstance(result, Mapping):
        raise CompilerError(
            f"algorithm {algorithm.name!r} returned {shown(result)}; expected outputs by name: "
            "write {'G': rows}"
        )
    results = dict(result)
    missing = [port.name for port in problem.outputs if port.name not in {"G", *results}]
    if missing:
        results.update(compute_outputs(problem, tree or tree_of(problem), x, missing))
    return results


D = TypeVar("D", bound=Callable[..., Any])


def register(
    name: str, *, clusters: bool = False, aliases: tuple[str, ...] = (), version: int = 1
) -> Callable[[D], D]:
    """Register an algorithm under `name`: a decorator of functions and of classes.

    A function is a :data:`DelassusFunction`, (tree, K, x) → G over scalars; see the modules of
    :mod:`delassus.algorithms`. A class derives from :class:`TracedAlgorithm` or
    :class:`NumericAlgorithm`.

    Parameters
    ----------
    clusters : whether a function takes trees with clusters; classes have the attribute.
    aliases : further names of the algorithm.
    version : of a function, to be raised when results change; classes have the attribute.

    Raises
    ------
    AlgorithmError
        If a name is taken by another algorithm.
    """

    def add(definition: D) -> D:
        if isinstance(definition, type):
            algorithm = definition()
        else:
            algorithm = TreeAlgorithm(definition, clusters, version)
        for wanted in (name, *aliases):
            taken = _registry.get(_aliases.get(wanted, wanted))
            if taken is not None and _identity(taken.definition) != _identity(definition):
                raise AlgorithmError(
                    f"algorithm name {wanted!r} is taken by {taken.definition.__module__}; "
                    f"{definition.__module__} must choose another"
                )
        algorithm.name = name
        _registry[name] = algorithm
        _aliases.update(dict.fromkeys(aliases, name))
        return definition

    return add


def _identity(definition: Any) -> tuple[str, str]:
    """Return module and name of a definition, which a reload of the module does not change."""
    return definition.__module__, definition.__qualname__


def _with_clusters() -> str:
    """Return the names of the exact algorithms that take couplings and loops, for messages."""
    *some, last = sorted(name for name, found in _registry.items() if found.clusters)
    return f"{', '.join(some)} or {last}"


def _discover() -> None:
    """Import built-in algorithms, available back ends and third parties' entry points, once."""
    global _discovered
    # A plug-in may call names() while it is imported; other threads wait for all plug-ins.
    with _lock:
        if not _discovered:
            _discovered = True
            try:
                _import_all()
            except BaseException:
                # After an interruption, for example, the next call imports the rest.
                _discovered = False
                raise


def _import_all() -> None:
    for name in _BUILT_IN:
        importlib.import_module(f"delassus.algorithms.{name}")
    for name, needs in _BACK_ENDS.items():
        if importlib.util.find_spec(name) is None:
            _broken[name] = needs
        else:
            importlib.import_module(f"delassus.algorithms.{name}")
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        before = len(_registry)
        try:
            entry.load()
        except Exception as error:
            # Third-party code: on any exception the other algorithms stay usable, and the entry
            # point is named.
            _broken[entry.name] = f"{type(error).__name__} in {entry.value}: {error}"
            _log.warning("algorithm %r of %s cannot be loaded: %s", entry.name, entry.value, error)
        else:
            if len(_registry) == before and not _registers(entry.module):
                _broken[entry.name] = f"{entry.value} registers no algorithm; use @register"
                _log.warning("entry point %r: %s", entry.name, _broken[entry.name])


def _registers(module: str) -> bool:
    """Return True if a previously imported module has registered an algorithm."""
    origins = [algorithm.definition.__module__ for algorithm in _registry.values()]
    return any(origin == module or origin.startswith(f"{module}.") for origin in origins)


def names() -> tuple[str, ...]:
    """Return the names of all registered algorithms, sorted."""
    _discover()
    return tuple(sorted(_registry))


def aliases() -> dict[str, str]:
    """Return the aliases of algorithms: alias → registered name."""
    _discover()
    return dict(_aliases)


def spelling(name: str) -> str:
    """Return the name or alias that `name` spells: ``c_efpa`` for the cluster paper's ``C-EFPA``.

    Solvers report their algorithm by this name. Case is ignored, hyphens are underscores; an
    unknown name is returned unchanged.
    """
    _discover()
    known = (*_registry, *_aliases, *_broken)
    name, mark, root = name.partition(ROOT_MARK)
    if name not in known:
        name = next((entry for entry in known if folded(entry) == folded(name)), name)
    return name + mark + root


def registered(name: str) -> str:
    """Return the registered name of an algorithm or alias.

    Kernels are cached by the registered name, so that an alias shares the algorithm's kernels.
    """
    name, mark, root = spelling(name).partition(ROOT_MARK)
    return _aliases.get(name, name) + mark + root


def unavailable() -> dict[str, str]:
    """Return the algorithms that could not be loaded: name → reason."""
    _discover()
    return dict(_broken)


def get(name: str) -> Algorithm:
    """Return the algorithm registered under `name`, which may be an alias; see :func:`spelling`.

    ``"pv_osimr@l_foot"`` is the algorithm with the body of frame ``l_foot`` as root of a floating
    robot's tree; see :class:`AtRoot`.

    Raises
    ------
    AlgorithmError
        If no algorithm has this name; lists registered algorithms and the reasons for absent
        ones. If `name` is no text, or has a root that the algorithm does not take.
    """
    instance("algorithm", name, str, "'pv_osimr'", AlgorithmError)
    name, mark, root = registered(name).partition(ROOT_MARK)
    if mark:
        return AtRoot(get(name), root)
    if name in _registry:
        return _registry[name]
    if name in _broken:
        raise AlgorithmError(f"algorithm {name!r} is not available: {_broken[name]}")
    raise AlgorithmError(unknown("algorithm", name, names(), also=aliases()))
