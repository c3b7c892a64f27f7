"""Pinocchio's routes to G called from Python, with everything that can be made once made once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.pinocchio_model import PinocchioProblem, pinocchio
from delassus_ros.model.spatial import Array

DAMPING = 1e-9
"""As in pinocchio_peer.cpp."""

Call = Callable[[Array], Array]
"""Takes Pinocchio's q, returns what Pinocchio returns."""


@dataclass(frozen=True)
class Route:
    """A way to G.

    Attributes
    ----------
    call : what is timed.
    read : makes the whole matrix of the result.
    """

    call: Call
    read: Call


def routes(problem: PinocchioProblem) -> dict[str, Route]:
    """Return the routes by name."""
    pin = pinocchio()
    model, contacts, contact_data = problem.model, problem.contacts, problem.contact_data
    data, other = model.createData(), model.createData()
    pairs = list(zip(contacts, contact_data, strict=True))
    cholesky = pin.ContactCholeskyDecomposition(model, other, contacts, contact_data)

    def direct(q: Array) -> Array:
        matrix: Array = pin.computeDelassusMatrix(model, data, q, contacts, contact_data)
        return matrix

    def by_cholesky(q: Array) -> Array:
        pin.crba(model, other, q, pin.Convention.WORLD)
        for contact, computed in pairs:
            contact.calc(model, other, computed)
        cholesky.compute(model, other, contacts, contact_data, DAMPING)
        matrix: Array = cholesky.getInverseOperationalSpaceInertiaMatrix()
        return matrix

    def undamped(matrix: Array) -> Array:
        return symmetric(matrix) - DAMPING * np.eye(len(matrix))

    return {
        "pin.computeDelassusMatrix": Route(direct, symmetric),
        "pin.crba + constraint Cholesky": Route(by_cholesky, undamped),
    }


def symmetric(matrix: Array) -> Array:
    """Return the matrix of its upper part; Pinocchio leaves out the rest."""
    whole: Array = np.triu(matrix) + np.triu(matrix, 1).T
    return whole
