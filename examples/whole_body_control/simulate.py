"""Controller and plant in one process, without ROS: every run is the same.

``python -m whole_body_control.simulate --seconds 20`` from the folder ``examples``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from control.film import Film
from control.kinematics import State
from control.offline import parser, show
from control.prediction import off_by

from delassus_ros import Contact, DelassusSolver, Problem, Robot
from delassus_ros.sim.gait import TouchState
from delassus_ros.sim.plant import STEP_S, Plant, PlantSettings
from delassus_ros.sim.plants import make_plant

from .controller import Command, Controller, Rows, predicted_forces
from .gait import LEGS, TIMETABLE, Act

Array = npt.NDArray[np.float64]
EVERY = 2
"""Periods of the plant per tick of the controller: 500 Hz."""


def problem(urdf: str, armature: float = 0.0) -> Problem:
    """Return trunk and feet as contacts, along the axes of the world."""
    plain = Robot.from_urdf(urdf.encode())
    robot = Robot.from_urdf(urdf.encode(), armature=dict.fromkeys(plain.joint_names, armature))
    contacts = [Contact("trunk", "base", "surface"), *(Contact(x, f"{x}_FOOT") for x in LEGS)]
    return Problem(robot, contacts, axes="world", outputs=("a0", "MinvJT"))


@dataclass
class Record:
    """A run, tick by tick.

    Attributes
    ----------
    time, height, upright : of the base.
    position, wanted : of the base (3,) and where it was to be.
    forces, simulated : of the feet as the program wants them and as the floor gives them (4, 3).
    predicted : of the feet under the torques that were commanded, by G and friction (4, 3).
    stands, touches : which feet were to stand, and which feel the floor (4,).
    slips : which feet slide over it (4,).
    torques : (n,).
    took : time of the controller [s].
    act : name of the act.
    """

    time: list[float] = field(default_factory=list)
    height: list[float] = field(default_factory=list)
    upright: list[float] = field(default_factory=list)
    position: list[Array] = field(default_factory=list)
    wanted: list[Array] = field(default_factory=list)
    forces: list[Array] = field(default_factory=list)
    simulated: list[Array] = field(default_factory=list)
    predicted: list[Array] = field(default_factory=list)
    stands: list[list[bool]] = field(default_factory=list)
    touches: list[list[bool]] = field(default_factory=list)
    slips: list[list[bool]] = field(default_factory=list)
    took: list[float] = field(default_factory=list)
    torques: list[Array] = field(default_factory=list)
    act: list[str] = field(default_factory=list)

    @property
    def fell(self) -> bool:
        """Whether the trunk was ever too low or too far from upright."""
        return bool(min(self.height) < 0.12 or min(self.upright) < 0.7)


def run(
    seconds: float,
    acts: Sequence[Act] = TIMETABLE,
    settings: PlantSettings | None = None,
    events: Callable[[Plant, float], object] = lambda plant, now: None,
    solver: str = "daqp",
    algorithm: str = "pv_osimr",
) -> Record:
    """Simulate.

    Parameters
    ----------
    seconds, acts, settings, solver, algorithm : duration [s], actions, plant and algorithms.
    events : called before each tick with the plant and the time [s]; where it returns True, the
        command of that tick is lost.
    """
    settings = PlantSettings() if settings is None else settings
    plant = make_plant("quadruped", settings)
    bound = DelassusSolver(problem(plant.urdf, settings.armature), algorithm).bind()
    bound.inputs["gravity"] = [0.0, 0.0, -9.81]
    bound.inputs["torques"] = np.zeros(len(plant.joint_names) + 6)
    controller = Controller(plant.urdf, plant.joint_names, plant.limits, acts, solver=solver)
    record = Record()
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
        rows = Rows(solution.matrix, solution.output("a0"), solution.output("MinvJT"))
        began = time.perf_counter()
        command = controller.command(state, rows, EVERY * STEP_S)
        record.took.append(time.perf_counter() - began)
        record.predicted.append(
            predicted_forces(rows, command.torques, touches, settings.friction)
        )
        if lost is not True:
            plant.command(command.torques)
        for _ in range(EVERY):
            plant.step()
        _note(record, plant, command, sensed.position, touches)
    return record


def _note(
    record: Record, plant: Plant, command: Command, position: Array, touches: list[bool]
) -> None:
    record.time.append(plant.time)
    record.height.append(plant.height)
    record.upright.append(plant.upright)
    record.position.append(position)
    record.wanted.append(command.plan.position)
    solved = command.solved
    record.forces.append(np.full((4, 3), np.nan) if solved is None else solved.forces)
    record.simulated.append(plant.contact_forces())
    record.stands.append(list(command.plan.stands))
    record.touches.append(touches)
    record.slips.append([state is TouchState.SLIPPING for state in plant.contact_states])
    record.torques.append(command.torques)
    record.act.append(command.plan.act)


def report(record: Record) -> Iterator[str]:
    """Yield the figures of a run, a line each."""
    forces, simulated = np.array(record.forces), np.array(record.simulated)
    both = np.array(record.stands) & np.array(record.touches)
    error = (forces - simulated)[both]
    size = np.sqrt((simulated[both] ** 2).sum(axis=1).mean())
    away = np.array(record.position)[:, :2] - np.array(record.wanted)[:, :2]
    yield f"{record.time[-1]:.1f} s, {'fell' if record.fell else 'no fall'}"
    yield (
        f"height {min(record.height):.3f} to {max(record.height):.3f} m, at most "
        f"{np.degrees(np.arccos(min(min(record.upright), 1.0))):.1f} degrees from upright"
    )
    yield f"trunk off by {1e3 * np.sqrt((away**2).sum(axis=1).mean()):.0f} mm rms"
    rms = np.sqrt(np.nanmean((error**2).sum(axis=1)))
    yield f"contact forces in stance off by {100 * rms / size:.1f} % rms of {size:.1f} N"
    yield off_by(np.array(record.predicted)[both], simulated[both])
    slipping = np.array(record.slips)[both].mean()
    yield f"feet in stance slide in {100 * slipping:.1f} % of the ticks"
    yield f"controller {1e6 * np.median(record.took):.0f} us at the median"
    yield f"largest torque {np.abs(record.torques).max():.1f} Nm"


def main() -> int:
    """Run and print the figures; return 1 after a fall."""
    # Here, as it draws what this module has recorded.
    from .plot import draw

    options = parser("The walking example in one process.", 20.0).parse_args()
    film = Film() if options.film else None
    settings = PlantSettings(seed=options.seed)
    look = film.look if film else lambda plant, now: None
    record = run(options.seconds, settings=settings, events=look)
    show(options, report(record), film, lambda file: draw(record, file))
    return int(record.fell)


if __name__ == "__main__":
    sys.exit(main())
