"""Pictures of a plant after the fact: an animation, or a strip of frames."""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

from delassus_ros.sim.plant import Plant
from delassus_ros.sim.plants import make_plant

Array = npt.NDArray[np.float64]
STRIP = 16
"""Frames of a strip."""
SUFFIXES = (".gif", ".webp", ".png")
"""Suffixes of the files that can be written: a .png is a strip of frames, the rest are films."""


def film_file(words: str) -> Path:
    """Return the path of a film.

    Raises
    ------
    ArgumentTypeError
        For another kind of file.
    """
    path = Path(words)
    if path.suffix not in SUFFIXES:
        raise argparse.ArgumentTypeError(f"{path.name} is none of {', '.join(SUFFIXES)}")
    return path


class Film:
    """Notes where a robot is now and then.

    Parameters
    ----------
    period : simulated time between two frames [s].
    """

    def __init__(self, period: float = 0.04) -> None:
        self._period, self._due = period, 0.0
        self._postures: list[Array] = []
        self._plant: Plant | None = None

    def look(self, plant: Plant, time: float) -> None:
        """Note where it is if it is time to."""
        if time >= self._due:
            self._due += self._period
            self._postures.append(plant.posture)
            self._plant = plant

    def save(self, file: Path) -> None:
        """Draw all and write the file."""
        if self._plant is not None:
            draw(self._plant, self._postures, self._period, file)


def of_recording(robot: str, recording: Path, period: float, file: Path) -> bool:
    """Draw what delassus_plant has recorded, a posture each period [s]; say if it could.

    In a separate process, as the environment of a process chooses the renderer of MuJoCo.
    """
    environment = {**os.environ}
    if not any(environment.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")):
        environment.setdefault("MUJOCO_GL", "egl")
    words = [robot, str(recording), str(period), str(file)]
    drawn = subprocess.run([sys.executable, "-m", "control.film", *words], env=environment)
    return drawn.returncode == 0


def draw(plant: Plant, postures: list[Array] | Array, period: float, file: Path) -> None:
    """Draw postures, a period apart [s], and write the file."""
    # Here, as it comes with what draws pictures only.
    from PIL import Image

    if file.suffix == ".png":
        postures = postures[:: max(1, math.ceil(len(postures) / STRIP))]
    pictures = []
    for posture in postures:
        plant.place(posture)
        pictures.append(plant.picture())
    if file.suffix == ".png":
        blank = np.full_like(pictures[0], 255)
        pictures += [blank] * (-len(pictures) % 4)
        rows = [np.hstack(pictures[k : k + 4]) for k in range(0, len(pictures), 4)]
        Image.fromarray(np.vstack(rows)).save(file)
        return
    first, *rest = [Image.fromarray(picture) for picture in pictures]
    first.save(file, save_all=True, append_images=rest, duration=1e3 * period, loop=0)


def main() -> int:
    """Draw a recording: robot, recording, period and file; return 1 where nothing can be drawn."""
    robot, recording, period, file = sys.argv[1:]
    try:
        draw(make_plant(robot), np.load(recording), float(period), Path(file))
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
