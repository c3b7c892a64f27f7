"""Bound solvers whose kernel fails."""

from __future__ import annotations

import pytest

from delassus import BoundSolver
from delassus.scalars.ports import Status


def make_fail(patch: pytest.MonkeyPatch, bound: BoundSolver, status: Status) -> None:
    """Let every computation of a bound solver end with this status, until the patch is undone."""
    computation = bound._computation
    patch.setattr(computation._bound, "run", lambda: int(status))
    # By the method: the built-in function calls the machine code itself.
    patch.setitem(vars(bound), "solve", computation.solve)
