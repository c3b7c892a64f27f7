"""The registry of algorithms: built-in ones by decorator, third parties by entry point."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import threading
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import TypeVar

from delassus_ros.algorithms.base import Algorithm
from delassus_ros.arguments import instance
from delassus_ros.errors import AlgorithmError, unknown

ENTRY_POINT_GROUP = "delassus_ros.algorithms"
_BUILT_IN = (
    "auto", "c_efpa", "c_pv_osimr", "dense", "efpa", "kjr", "ltl", "projection", "pv_osim",
    "pv_osimr", "reflected_inertia",
)  # fmt: skip
_BACK_ENDS = {
    # On PyPI Pinocchio is called pin; what is called pinocchio there is another package.
    "pinocchio": "needs Pinocchio: pip install pin; ROS: ros-$ROS_DISTRO-pinocchio",
}
"""Algorithm module, called as the package that it needs → what to say where that is absent."""

_log = logging.getLogger(__name__)
_registry: dict[str, Algorithm] = {}
_broken: dict[str, str] = {}
_discovered = False
_lock = threading.RLock()

A = TypeVar("A", bound=type[Algorithm])


def register(name: str) -> Callable[[A], A]:
    """Register an algorithm class under `name` (a class decorator).

    Raises
    ------
    AlgorithmError
        If the name is taken by another class.
    """

    def add(cls: A) -> A:
        taken = _registry.get(name)
        if taken is not None and _identity(type(taken)) != _identity(cls):
            raise AlgorithmError(
                f"algorithm name {name!r} is taken by {type(taken).__module__}; "
                f"{cls.__module__} must choose another"
            )
        algorithm = cls()
        algorithm.name = name
        _registry[name] = algorithm
        return cls

    return add


def _identity(cls: type) -> tuple[str, str]:
    """Return what stays the same when a module is loaded again."""
    return cls.__module__, cls.__qualname__


def _discover() -> None:
    """Import built-in algorithms, available back ends and third parties' entry points, once."""
    global _discovered
    # A plug-in may ask for names() while it is imported; other threads wait for all of them.
    with _lock:
        if not _discovered:
            _discovered = True
            try:
                _import_all()
            except BaseException:
                # Interrupted, say: the next call finds the rest.
                _discovered = False
                raise


def _import_all() -> None:
    for name in _BUILT_IN:
        importlib.import_module(f"delassus_ros.algorithms.{name}")
    for name, needs in _BACK_ENDS.items():
        if importlib.util.find_spec(name) is None:
            _broken[name] = needs
        else:
            importlib.import_module(f"delassus_ros.algorithms.{name}")
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        before = len(_registry)
        try:
            entry.load()
        except Exception as error:
            # Somebody else's code: whatever it raises, the others stay usable and it is named.
            _broken[entry.name] = f"{type(error).__name__} in {entry.value}: {error}"
            _log.warning("algorithm %r of %s cannot be loaded: %s", entry.name, entry.value, error)
        else:
            if len(_registry) == before and not _registers(entry.module):
                _broken[entry.name] = f"{entry.value} registers no algorithm; use @register"
                _log.warning("entry point %r: %s", entry.name, _broken[entry.name])


def _registers(module: str) -> bool:
    """Return True if a module that was imported before has registered something."""
    origins = [type(algorithm).__module__ for algorithm in _registry.values()]
    return any(origin == module or origin.startswith(f"{module}.") for origin in origins)


def names() -> tuple[str, ...]:
    """Return the names of all registered algorithms, sorted."""
    _discover()
    return tuple(sorted(_registry))


def unavailable() -> dict[str, str]:
    """Return algorithms that could not be loaded, each with the reason."""
    _discover()
    return dict(_broken)


def get(name: str) -> Algorithm:
    """Return the algorithm registered under `name`.

    Raises
    ------
    AlgorithmError
        If there is none; lists what is registered and why known ones are absent. If `name` is no
        text.
    """
    instance("algorithm", name, str, "'pv_osimr'", AlgorithmError)
    _discover()
    if name in _registry:
        return _registry[name]
    if name in _broken:
        raise AlgorithmError(f"algorithm {name!r} is not available: {_broken[name]}")
    raise AlgorithmError(unknown("algorithm", name, names()))
