"""Contact forces under torques, predicted by G with exact friction cones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from delassus import solve_contacts

Array = npt.NDArray[np.float64]


def predicted(
    G: Array, a0: Array, kind: str, touches: Sequence[bool], friction: float, **options: Any
) -> Array:
    """Return the forces or wrenches of contacts (n, rows), 0 where nothing touches.

    Parameters
    ----------
    G, a0 : of n contacts of one kind, under the torques; rows x, y and the normal z first.
    kind : "point" or "surface".
    options : arguments of ``solve_contacts``.
    """
    size = len(a0) // len(touches)
    found = np.zeros((len(touches), size))
    rows = np.flatnonzero(np.repeat(touches, size))
    if rows.size:
        forces = solve_contacts(
            G[np.ix_(rows, rows)], a0[rows], friction=friction, kinds=kind, **options
        ).forces
        found[np.array(touches)] = forces.reshape(-1, size)
    return found


def of_bearing(
    predict: Callable[[Any, Array, Sequence[bool], float], Array],
    rows: Any,
    torques: Array,
    touches: Sequence[bool],
    friction: float,
    bears: Mapping[str, bool],
) -> dict[str, Array]:
    """Return the predicted forces (3,) [N] by name of the feet that are to bear and touch.

    Parameters
    ----------
    predict : from the next four arguments to forces or wrenches (n, rows).
    bears : whether each foot is to bear, by name.
    """
    forces = predict(rows, torques, touches, friction)[:, :3]
    both = zip(bears.items(), touches, forces, strict=True)
    return {name: force for (name, bearing), touching, force in both if bearing and touching}


def off_by(predicted: Array, simulated: Array) -> str:
    """Return a line of a verdict: (k, 3) predicted forces against those of the simulation."""
    error = ((predicted - simulated) ** 2).sum(axis=1).mean()
    size = (simulated**2).sum(axis=1).mean()
    return (
        f"forces predicted by G with friction off by {100 * np.sqrt(error / size):.1f} % rms of "
        f"{np.sqrt(size):.1f} N"
    )
