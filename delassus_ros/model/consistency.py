"""Whether constraints fit the joints and bodies that they name."""

from __future__ import annotations

from collections.abc import Sequence

from delassus_ros.errors import RobotError, unknown
from delassus_ros.model.constraints import Coupling, FunctionConstraint, Loop


def check_constraints(
    single: Sequence[str],
    bodies: int,
    couplings: Sequence[Coupling],
    loops: Sequence[Loop],
    functions: Sequence[FunctionConstraint],
) -> None:
    """Refuse constraints between joints or on bodies that do not exist.

    Parameters
    ----------
    single : names of the joints with one degree of freedom; only these can be constrained.
    bodies : number of bodies.

    Raises
    ------
    RobotError
        Names the constraint.
    """
    named = [
        (f"coupling {coupling.name!r}", [name for name, _ in coupling.ratios])
        for coupling in couplings
    ]
    named += [(f"constraint {function.name!r}", list(function.tied)) for function in functions]
    known = set(single)
    for what, names in named:
        for name in names:
            if name not in known:
                raise RobotError(f"{what}: {unknown('joint', name, single)}")
    for loop in loops:
        for body in (loop.predecessor, loop.successor):
            # -1 is the world.
            if not -1 <= body < bodies:
                raise RobotError(
                    f"loop {loop.name!r}: there is no body {body}, only {bodies} bodies"
                )
