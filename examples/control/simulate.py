"""A standing robot's controller and plant in one process, without ROS: every run is the same."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from delassus import DelassusSolver
from delassus_ros.sim.gait import TouchState
from delassus_ros.sim.plant import STEP_S, Plant, PlantSettings
from delassus_ros.sim.plants import make_plant

from .film import Film
from .kinematics import State
from .offline import parser, show
from .prediction import off_by
from .standing import Array, StandingExample

EVERY = 2
"""Periods of the plant per tick of the controller: 500 Hz."""


@dataclass
class Record:
    """A run, tick by tick.

    Attributes
    ----------
    joints : names, in the order of the torques.
    example : the robot and its controller.
    time, height, upright : time [s]; height of the base [m] and cosine of its tilt.
    place, wanted : measured and wanted position of the tracked point (3,) [m].
    forces, simulated : forces or wrenches of the feet as the controller wants them and as the
        floor gives them (k, rows) [N], [N m].
    predicted : those under the torques that were commanded, by G and friction (k, rows).
    bears, touches, slips : which feet were to bear, feel the floor, and slide over it (k,).
    feet : positions of the feet (k, 3) [m].
    torques : (n,) [N m].
    took : time of the controller [s].
    act : name of the entry of the timetable.
    unsolved : ticks without a solution.
    """

    joints: tuple[str, ...]
    example: StandingExample
    time: list[float] = field(default_factory=list)
    height: list[float] = field(default_factory=list)
    upright: list[float] = field(default_factory=list)
    place: list[Array] = field(default_factory=list)
    wanted: list[Array] = field(default_factory=list)
    forces: list[Array] = field(default_factory=list)
    simulated: list[Array] = field(default_factory=list)
    predicted: list[Array] = field(default_factory=list)
    bears: list[Sequence[bool]] = field(default_factory=list)
    touches: list[list[bool]] = field(default_factory=list)
    slips: list[list[bool]] = field(default_factory=list)
    feet: list[Array] = field(default_factory=list)
    torques: list[Array] = field(default_factory=list)
    took: list[float] = field(default_factory=list)
    act: list[str] = field(default_factory=list)
    unsolved: int = 0

    @property
    def fell(self) -> bool:
        """Whether the base was ever too low or too far from upright."""
        example = self.example
        return min(self.height) < example.lowest or min(self.upright) < example.upright


def run(
    example: StandingExample,
    seconds: float,
    timetable: Sequence[Any] | None = None,
    settings: PlantSettings | None = None,
    events: Callable[[Plant, float], object] = lambda plant, now: None,
    algorithm: str = "pv_osimr",
) -> Record:
    """Simulate.

    Parameters
    ----------
    example, seconds, settings, algorithm : robot, duration [s], plant and algorithm.
    timetable : entries in place of the example's.
    events : called before each tick with the plant and the time [s]; where it returns True, the
        command of that tick is lost.
    """
    settings = PlantSettings() if settings is None else settings
    timetable = example.timetable if timetable is None else timetable
    plant = make_plant(example.robot, settings)
    bound = DelassusSolver(example.problem(plant.urdf, settings.armature), algorithm).bind()
    bound.inputs["gravity"] = [0.0, 0.0, -9.81]
    if "torques" in bound.inputs:
        # As the parameter `torques: zero` of delassus_node; those of the controller come on top.
        bound.inputs["torques"] = np.zeros(len(plant.joint_names) + 6)
    controller = example.controller(plant.urdf, plant.joint_names, plant.limits, timetable)
    record = Record(plant.joint_names, example)
    for _ in range(round(seconds / (EVERY * STEP_S))):
        lost = events(plant, plant.time)
        sensed = plant.sense()
        touches = [state.touches for state in plant.contact_states]
        state = State(
            sensed.q, sensed.velocity, sensed.position, sensed.orientation, sensed.twist, touches
        )
        bound.inputs["base_orientation"] = sensed.orientation
        bound.inputs["rates"] = np.concatenate([sensed.twist, sensed.velocity])
        solution = bound.solve(np.ascontiguousarray(sensed.q))
        outputs = (solution.output(name) for name in example.outputs)
        given = example.matrices(solution.matrix, *outputs)
        began = time.perf_counter()
        command = controller.command(state, given, EVERY * STEP_S)
        record.took.append(time.perf_counter() - began)
        record.predicted.append(
            example.predict(given, command.torques, touches, settings.friction)
        )
        if lost is not True:
            plant.command(command.torques)
        for _ in range(EVERY):
            plant.step()
        record.time.append(plant.time)
        record.height.append(plant.height)
        record.upright.append(plant.upright)
        for name in ("place", "wanted", "forces", "bears", "feet", "torques", "act"):
            getattr(record, name).append(getattr(command, name))
        record.simulated.append(plant.contact_wrenches()[:, : command.forces.shape[1]])
        record.touches.append(touches)
        record.slips.append([state is TouchState.SLIPPING for state in plant.contact_states])
    record.unsolved = controller.unsolved
    return record


def report(record: Record) -> Iterator[str]:
    """Yield the figures of a run, a line each."""
    wanted, simulated, predicted = (
        np.array(forces)[:, :, :3]
        for forces in (record.forces, record.simulated, record.predicted)
    )
    both = np.array(record.bears) & np.array(record.touches)
    yield f"{record.time[-1]:.1f} s, {'fell' if record.fell else 'no fall'}"
    tilt = np.degrees(np.arccos(min(min(record.upright), 1.0)))
    yield (
        f"height {min(record.height):.3f} to {max(record.height):.3f} m, at most {tilt:.1f} "
        "degrees from upright"
    )
    off = 1e3 * np.linalg.norm(np.array(record.place) - np.array(record.wanted), axis=1)
    yield (
        f"{record.example.tracked} off by {np.sqrt((off**2).mean()):.0f} mm rms, "
        f"{off.max():.0f} mm at most"
    )
    error, size = (
        (forces[both] ** 2).sum(axis=1) for forces in (wanted - simulated, simulated)
    )
    rms = np.sqrt(np.nanmean(error) / size.mean())
    yield f"forces in stance off by {100 * rms:.1f} % rms of {np.sqrt(size.mean()):.1f} N"
    yield off_by(predicted[both], simulated[both])
    slipping = np.array(record.slips)[both].mean()
    yield f"feet in stance slide in {100 * slipping:.1f} % of the ticks"
    moved = 1e2 * (np.mean(record.feet[-1], axis=0) - np.mean(record.feet[0], axis=0))[0]
    yield f"feet moved by {moved:.0f} cm; {record.unsolved} ticks without a solution"
    yield f"controller {1e6 * np.median(record.took):.0f} us at the median"
    yield f"largest torque {np.abs(record.torques).max():.1f} Nm"


def main(example: StandingExample, seconds: float) -> int:
    """Run for `seconds` by default, print the figures and draw; return 1 after a fall."""
    # Here, as it draws what this module has recorded.
    from .plot import draw

    options = parser(f"The example {example.name} in one process.", seconds).parse_args()
    film = Film() if options.film else None
    settings = PlantSettings(seed=options.seed)
    look = film.look if film else lambda plant, now: None
    record = run(example, options.seconds, settings=settings, events=look)
    show(options, report(record), film, lambda file: draw(record, file))
    return int(record.fell)
