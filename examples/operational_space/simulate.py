"""The arm and its plant in one process, without ROS: every run is the same.

``python -m operational_space.simulate`` from the folder ``examples``.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from control.film import Film
from control.offline import parser, show
from control.prediction import off_by

from delassus import Contact, DelassusSolver, Problem, Robot
from delassus.robots.built_in.arm import TOOL, arm_urdf
from delassus_ros.sim.plant import STEP_S, Floor, Plant, PlantSettings

from .law import Rows, Task, Tool, own_acceleration, predicted_force, torques
from .wiping import CENTRE, Kinematics, Surface, Wiping

Array = npt.NDArray[np.float64]
REST = {"joint_2": 0.55, "joint_3": 1.75, "joint_5": 0.85}
"""Posture to begin with and to tend to; other joints are zero [rad]."""
EVERY = 2
"""Periods of the plant per tick: 500 Hz."""
DAMPING = 0.02
GRAVITY = (0.0, 0.0, -9.81)
ARMATURE = 0.05  # kg m², of each rotor at its joint
SOFTNESS = 0.05  # s, of the surfaces: on stiff ones the ball hops
# As delassus_plant has them.
SURFACES = {"flat": Surface(0.2), "curved": Surface(0.2, 0.5)}


def problem(urdf: str) -> Problem:
    """Return the tool as a contact of five rows along its own axes."""
    names = Robot.from_urdf(urdf.encode(), base="fixed").joint_names
    armature = dict.fromkeys(names, ARMATURE)
    robot = Robot.from_urdf(urdf.encode(), base="fixed", armature=armature)
    outputs = ("J", "MinvJT", "JdotV", "h")
    return Problem(robot, [Contact(TOOL, TOOL, np.eye(6)[:5])], outputs=outputs)


Law = Callable[[Array, Rows, Tool, Task], Array]
"""From q, rates and gravity in one array, rows, tool and task to torques."""


def in_python(state: Array, rows: Rows, tool: Tool, task: Task) -> Array:
    """Return the torques of the law."""
    return torques(rows, tool, task)


class Program:
    """The law as a program of its own, which gets each tick by a pipe: examples/cpp/arm.cpp.

    Parameters
    ----------
    path : of the program.

    Raises
    ------
    ChildProcessError
        If it ends.
    """

    def __init__(self, path: str) -> None:
        self._process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __call__(self, state: Array, rows: Rows, tool: Tool, task: Task) -> Array:
        """Return its torques; rows it has of its own kernel, whose inputs are the state."""
        wanted = tool.rows(own_acceleration(tool, task))
        tick = np.concatenate([state, wanted, tool.rows(task.wrench), task.posture])
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(tick.tobytes())
        self._process.stdin.flush()
        size = 8 * len(task.posture)
        answer = self._process.stdout.read(size)
        if len(answer) < size:
            raise ChildProcessError("the program of the law has ended")
        return np.frombuffer(answer)

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


@dataclass
class Record:
    """A run, tick by tick.

    Attributes
    ----------
    time : [s].
    phase : of the sequence.
    felt : normal force [N].
    predicted, simulated : forces on the tool under the torques that were commanded, by G and
        friction, and as the surface gives them, along the axes of the world (3,) [N].
    off : distance of the tool from its path, along the surface [m].
    torques : (n,).
    wrist : angle of joint_5, at whose zero the wrist is singular [rad].
    touchdown : largest normal force in the first 50 ms of contact, and speed before it.
    """

    time: list[float] = field(default_factory=list)
    phase: list[str] = field(default_factory=list)
    felt: list[float] = field(default_factory=list)
    predicted: list[Array] = field(default_factory=list)
    simulated: list[Array] = field(default_factory=list)
    off: list[float] = field(default_factory=list)
    torques: list[Array] = field(default_factory=list)
    wrist: list[float] = field(default_factory=list)
    speed: list[float] = field(default_factory=list)

    def during(self, *phases: str) -> npt.NDArray[np.bool_]:
        """Return in which ticks a phase was on."""
        return np.isin(self.phase, phases)


def run(
    surface: Surface,
    seconds: float = 14.0,
    damping: float = DAMPING,
    settings: PlantSettings | None = None,
    impulse: float = 0.15,
    law: Law = in_python,
    film: Film | None = None,
) -> Record:
    """Simulate; ends before when the sequence is done.

    Parameters
    ----------
    surface, seconds, settings : what is wiped, for how long, and by which plant.
    damping : of weak directions, as a fraction of the strongest.
    impulse : largest of touching down [N s].
    law : from state, rows, tool and task to torques.
    film : takes pictures.
    """
    urdf = arm_urdf()
    settings = PlantSettings(friction=0.2, armature=ARMATURE) if settings is None else settings
    floor = Floor(surface.height, surface.radius, float(CENTRE[0]), SOFTNESS)
    plant = Plant(urdf, {TOOL: TOOL}, REST, settings, floating=False, floor=floor)
    bound = DelassusSolver(problem(urdf)).bind()
    bound.inputs["gravity"] = GRAVITY
    kinematics = Kinematics(urdf, TOOL)
    rest = np.array([REST.get(name, 0.0) for name in plant.joint_names])
    wiping, record = Wiping(surface, rest, impulse=impulse), Record()
    for _ in range(round(seconds / (EVERY * STEP_S))):
        if film is not None:
            film.look(plant, plant.time)
        sensed = plant.sense()
        bound.inputs["rates"] = sensed.velocity
        s = bound.solve(np.ascontiguousarray(sensed.q))
        rows = Rows(
            s.matrix, s.inertia(damping), s.output("J"), s.jbar(damping), s.output("JdotV"),
            s.output("h"),
        )  # fmt: skip
        tool = kinematics.tool(sensed.q, sensed.velocity)
        _, normal = surface.at(float(tool.place[0]), float(tool.place[1]))
        contact = plant.contact_forces()[0]
        task = wiping.task(EVERY * STEP_S, sensed.q, sensed.velocity, tool, rows, contact)
        state = np.concatenate([sensed.q, sensed.velocity, GRAVITY])
        command = law(state, rows, tool, task)
        record.predicted.append(
            predicted_force(
                rows, sensed.velocity, command, tool, normal, settings.friction, EVERY * STEP_S
            )
        )
        plant.command(command)
        for _ in range(EVERY):
            plant.step()
        record.simulated.append(plant.contact_forces()[0])
        record.time.append(plant.time)
        record.phase.append(wiping.phase)
        record.felt.append(float(normal @ contact))
        record.off.append(float(np.linalg.norm(wiping.off(tool))))
        record.torques.append(command)
        record.wrist.append(float(sensed.q[4]))
        record.speed.append(-float(normal @ tool.twist[:3]))
        if wiping.phase == "done":
            break
    return record


def report(record: Record, pressure: float = 20.0) -> Iterator[str]:
    """Yield the figures of a run, a line each."""
    felt, off = np.array(record.felt), np.array(record.off)
    for phase in ("circle", "tilt"):
        on = record.during(phase)
        if not on.any():
            yield f"{phase}: never"
            continue
        error = np.sqrt(np.mean((felt[on] - pressure) ** 2))
        yield (
            f"{phase}: normal force {felt[on].mean():.2f} N, off by "
            f"{100 * error / pressure:.1f} % rms; path off by {1e3 * off[on].max():.2f} mm at most"
        )
    on = record.during("circle", "tilt")
    if on.any():
        yield off_by(np.array(record.predicted)[on], np.array(record.simulated)[on])
    on = record.during("settle")
    if on.any():
        first = int(np.flatnonzero(on)[0])
        yield (
            f"touchdown at {record.speed[max(first - 2, 0)]:.3f} m/s; at most "
            f"{felt[first : first + 50].max():.0f} N in the first 100 ms"
        )
    wrist = np.array(record.wrist)
    yield f"wrist from {wrist.min():+.2f} to {wrist.max():+.2f} rad; singular at 0"
    most = np.abs(record.torques)
    tilted = record.during("tilt")
    yield (
        f"largest torque {most.max():.0f} Nm, while it tilts "
        f"{most[tilted].max() if tilted.any() else 0.0:.0f} Nm; ended in {record.phase[-1]!r}"
    )


def main() -> int:
    """Run on one of the surfaces and print the figures."""
    # Here, as it draws what this module has recorded.
    from .plot import draw

    made = parser("The wiping example in one process.")
    made.add_argument("--surface", choices=SURFACES, default="flat")
    made.add_argument("--damping", type=float, default=DAMPING)
    made.add_argument(
        "--program", help="program with the control law, built from examples/cpp/arm.cpp"
    )
    options = made.parse_args()
    law: Law = Program(options.program) if options.program else in_python
    film = Film() if options.film else None
    record = run(SURFACES[options.surface], damping=options.damping, law=law, film=film)
    show(options, report(record), film, lambda file: draw(record, file))
    return int(record.phase[-1] != "done")


if __name__ == "__main__":
    sys.exit(main())
