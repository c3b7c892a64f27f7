"""A strip of pictures of a plant, drawn without a display."""

from __future__ import annotations

from pathlib import Path

import matplotlib.image
import numpy as np
import numpy.typing as npt

from delassus_ros.sim.plant import Plant


class Film:
    """Takes a picture now and then.

    Parameters
    ----------
    period : simulated time between two [s].
    """

    def __init__(self, period: float) -> None:
        self._period, self._due = period, 0.0
        self._pictures: list[npt.NDArray[np.uint8]] = []

    def look(self, plant: Plant, time: float) -> None:
        """Take a picture if it is time for one."""
        if time >= self._due:
            self._due += self._period
            self._pictures.append(plant.picture())

    def save(self, file: Path, columns: int = 4) -> None:
        """Write all of them into one PNG, row by row."""
        pictures = self._pictures[: len(self._pictures) // columns * columns] or self._pictures
        rows = [np.hstack(pictures[k : k + columns]) for k in range(0, len(pictures), columns)]
        matplotlib.image.imsave(file, np.vstack(rows))
