"""Controller and plant in one process, without ROS: every run is the same.

``python -m balance.simulate --seconds 22`` from the folder ``examples``.
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
from delassus_ros.sim.humanoid import FEET
from delassus_ros.sim.plant import STEP_S, Plant, PlantSettings
from delassus_ros.sim.plants import make_plant

from .controller import Command, Controller, predicted_wrenches
from .poses import TIMETABLE, Pose
from .qp import Matrices

Array = npt.NDArray[np.float64]
EVERY = 2
"""Periods of the plant per tick of the controller: 500 Hz."""
OUTPUTS = ("G", "M", "h", "J", "JdotV")
LOWEST, UPRIGHT = 0.6, 0.8
"""Height of the pelvis and cosine of its tilt at which the robot has fallen."""


def problem(urdf: str, armature: float = 0.0) -> Problem:
    """Return pelvis and feet as contacts, along the axes of the world."""
    plain = Robot.from_urdf(urdf.encode())
    robot = Robot.from_urdf(urdf.encode(), armature=dict.fromkeys(plain.joint_names, armature))
    frames = {"pelvis": "pelvis", **FEET}
    contacts = [Contact(name, frame, "surface") for name, frame in frames.items()]
    return Problem(robot, contacts, axes="world", outputs=OUTPUTS)


@dataclass
class Record:
    """A run, tick by tick.

    Attributes
    ----------
    time, height, upright : of the pelvis.
    centre, wanted : the centre of mass (3,) and where it was to be.
    wrenches, simulated : of the feet as the program wants them and as the floor gives them (2, 6).
    predicted : of the feet under the torques that were commanded, by G and friction (2, 6).
    bears, touches : which feet were to bear, and which feel the floor (2,).
    soles : where the feet are (2, 3).
    slips : which feet slide over it (2,).
    torques : (n,).
    took : time of the controller [s].
    pose : name of the pose.
    joints : names, in the order of the torques.
    unsolved : ticks without a solution.
    """

    time: list[float] = field(default_factory=list)
    height: list[float] = field(default_factory=list)
    upright: list[float] = field(default_factory=list)
    centre: list[Array] = field(default_factory=list)
    wanted: list[Array] = field(default_factory=list)
    wrenches: list[Array] = field(default_factory=list)
    simulated: list[Array] = field(default_factory=list)
    predicted: list[Array] = field(default_factory=list)
    bears: list[list[bool]] = field(default_factory=list)
    touches: list[list[bool]] = field(default_factory=list)
    slips: list[list[bool]] = field(default_factory=list)
    took: list[float] = field(default_factory=list)
    soles: list[Array] = field(default_factory=list)
    torques: list[Array] = field(default_factory=list)
    pose: list[str] = field(default_factory=list)
    joints: tuple[str, ...] = ()
    unsolved: int = 0

    @property
    def fell(self) -> bool:
        """Whether the pelvis was ever too low or too far from upright."""
        return bool(min(self.height) < LOWEST or min(self.upright) < UPRIGHT)


def run(
    seconds: float,
    poses: Sequence[Pose] = TIMETABLE,
    settings: PlantSettings | None = None,
    events: Callable[[Plant, float], object] = lambda plant, now: None,
    algorithm: str = "pv_osimr",
) -> Record:
    """Simulate.

    Parameters
    ----------
    seconds, poses, settings, algorithm : duration [s], targets, plant and algorithm.
    events : called before each tick with the plant and the time [s]; where it returns True, the
        command of that tick is lost.
    """
    settings = PlantSettings() if settings is None else settings
    plant = make_plant("humanoid", settings)
    bound = DelassusSolver(problem(plant.urdf, settings.armature), algorithm).bind()
    bound.inputs["gravity"] = [0.0, 0.0, -9.81]
    joints = plant.joint_names
    controller = Controller(plant.urdf, [*FEET.values()], joints, plant.limits, poses)
    record = Record(joints=joints)
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
        rest = (solution.output(name) for name in OUTPUTS[1:])
        given = Matrices(solution.matrix, *rest)
        began = time.perf_counter()
        command = controller.command(state, given, EVERY * STEP_S)
        record.took.append(time.perf_counter() - began)
        record.predicted.append(
            predicted_wrenches(given, command.torques, touches, settings.friction)
        )
        if lost is not True:
            plant.command(command.torques)
        for _ in range(EVERY):
            plant.step()
        _note(record, plant, command, touches)
    record.unsolved = controller.unsolved
    return record


def _note(record: Record, plant: Plant, command: Command, touches: list[bool]) -> None:
    record.time.append(plant.time)
    record.height.append(plant.height)
    record.upright.append(plant.upright)
    record.centre.append(command.centre)
    record.wanted.append(command.plan.centre[0])
    record.soles.append(command.soles)
    solved = command.solved
    record.wrenches.append(np.full((2, 6), np.nan) if solved is None else solved.wrenches)
    record.simulated.append(plant.contact_wrenches())
    record.bears.append([share > 0.0 for share in command.plan.bears])
    record.touches.append(touches)
    record.slips.append([state is TouchState.SLIPPING for state in plant.contact_states])
    record.torques.append(command.torques)
    record.pose.append(command.plan.pose)


def report(record: Record) -> Iterator[str]:
    """Yield the figures of a run, a line each."""
    wanted, simulated = np.array(record.wrenches), np.array(record.simulated)
    both = np.array(record.bears) & np.array(record.touches)
    yield f"{record.time[-1]:.1f} s, {'fell' if record.fell else 'no fall'}"
    tilt = np.degrees(np.arccos(min(min(record.upright), 1.0)))
    yield (
        f"pelvis {min(record.height):.3f} to {max(record.height):.3f} m high, at most {tilt:.1f} "
        "degrees from upright"
    )
    away = np.array(record.centre) - np.array(record.wanted)
    off = 1e3 * np.sqrt((away**2).sum(axis=1))
    yield f"centre of mass off by {np.sqrt((off**2).mean()):.0f} mm rms, {off.max():.0f} at most"
    error, size = (
        (each[both][:, :3] ** 2).sum(axis=1) for each in (wanted - simulated, simulated)
    )
    rms = np.sqrt(np.nanmean(error) / size.mean())
    yield f"forces in stance off by {100 * rms:.1f} % rms of {np.sqrt(size.mean()):.0f} N"
    yield off_by(np.array(record.predicted)[both][:, :3], simulated[both][:, :3])
    slipping = np.array(record.slips)[both].mean()
    yield f"feet in stance slide in {100 * slipping:.1f} % of the ticks"
    walked = 1e2 * (np.mean(record.soles[-1], axis=0) - np.mean(record.soles[0], axis=0))[0]
    yield f"feet moved by {walked:.0f} cm; {record.unsolved} ticks without a solution"
    yield f"controller {1e6 * np.median(record.took):.0f} us at the median"
    yield f"largest torque {np.abs(record.torques).max():.0f} Nm"


def main() -> int:
    """Run and print the figures; return 1 after a fall."""
    # Here, as it draws what this module has recorded.
    from .plot import draw

    options = parser("The balancing example in one process.", 22.0).parse_args()
    film = Film() if options.film else None
    settings = PlantSettings(seed=options.seed)
    look = film.look if film else lambda plant, now: None
    record = run(options.seconds, settings=settings, events=look)
    show(options, report(record), film, lambda file: draw(record, file))
    return int(record.fell)


if __name__ == "__main__":
    sys.exit(main())
