"""Pinocchio as a back end: an independent implementation to compare with."""

from __future__ import annotations

from collections.abc import Callable

from delassus.algorithms.registry import NumericAlgorithm, register
from delassus.problem import Problem
from delassus.scalars.ports import Arrays, Status


@register("pinocchio")
class Pinocchio(NumericAlgorithm):
    """``pinocchio.computeDelassusMatrix`` (extended force propagators)."""

    def supports(self, problem: Problem) -> str | None:
        """Refuse outputs besides G: Pinocchio defines velocities of planar joints differently."""
        refusal = super().supports(problem)
        if refusal:
            return refusal
        several = [c.name for c in problem.contacts if len(c.ends) != 1]
        if several:
            return f"contact {several[0]!r} is on several frames, which Pinocchio's call has not"
        others = [port.name for port in problem.outputs if port.name != "G"]
        return f"it computes only G, not {', '.join(others)}" if others else None

    def prepare(self, problem: Problem) -> Callable[[Arrays, Arrays], Status]:
        """Return the computation; see the base class."""
        # Imported at first use: Pinocchio's libraries take 50 MB and 50 ms.
        from delassus.algorithms.pinocchio_model import computation

        return computation(problem)
