"""Predicted against simulated forces over stance, lift-off, landing and slip, without ROS.

``python -m force_prediction.sequence`` prints the table of the page; ``--plot FILE`` draws it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from delassus import Contact, DelassusSolver, Problem, Robot
from delassus.robots.built_in import demo_urdf
from delassus_ros.sim.plant import STEP_S
from delassus_ros.sim.quadruped import stepping_quadruped
from force_prediction.floors import Floor, MujocoFloor, RigidFloor
from force_prediction.free_motion import FreeMotion, RobotState
from force_prediction.prediction import predict

FloatArray = npt.NDArray[np.float64]

FRICTION = 0.8  # of the simulated floor
RADIUS = 0.02  # of the foot balls, m
CYCLE = 5.56  # s, after which the simulated robot repeats its steps
TOLERANCE = 0.01
"""Largest error of the prediction with the simulator's own law of contact, N per foot.

Both solve the same convex program, so only how far the solvers go is left. MuJoCo's stops when a
step improves the cost by less than 1e-8 · 18 · 2.27 (its tolerance, degrees of freedom, mean
inertia), which with a curvature of at least R = 0.3 leaves √(2 · 4e-7 / 0.3) = 0.0016 N to a
step; this is six times that. The robot weighs 129 N.
"""
PHASES = ("stance", "lift-off", "landing", "slip")
_EDGE = 0.05  # s before a foot leaves the floor or after it has landed
_SLIPS = 0.999  # of the largest friction

EXACT = "the simulator's law"
CENTRE = "the same, at the balls' centres"
RIGID = "rigid, settles in 10 ms"
CONSTRAINT = "rigid, J q̈ + J̇ q̇ = 0"


@dataclass(frozen=True)
class Record:
    """Forces over a sequence; all arrays (times, feet, 3), N, along the axes of the world.

    Attributes
    ----------
    feet : names of the feet.
    time : (times,), s.
    simulated : forces of the simulator.
    predicted : by law of contact.
    """

    feet: tuple[str, ...]
    time: FloatArray
    simulated: FloatArray
    predicted: Mapping[str, FloatArray]

    def errors(self, law: str) -> FloatArray:
        """Return the distance of prediction and simulation per foot, (times, feet), N."""
        distance: FloatArray = np.linalg.norm(self.predicted[law] - self.simulated, axis=2)
        return distance

    def phases(self) -> dict[str, npt.NDArray[np.bool_]]:
        """Return when each foot is in which phase, (times, feet); in the air it is in none."""
        normal = self.simulated[:, :, 2]
        touching = normal > 0.0
        friction = np.linalg.norm(self.simulated[:, :, :2], axis=2)
        slip = touching & (friction > _SLIPS * FRICTION * normal)
        edge = round(_EDGE / float(np.diff(self.time[:2])[0]))
        left = np.zeros_like(touching)
        landed = np.zeros_like(touching)
        for shift in range(1, edge + 1):
            left[:-shift] |= ~touching[shift:]
            landed[shift:] |= ~touching[:-shift]
        landing = touching & ~slip & landed
        lift_off = touching & ~slip & ~landed & left
        stance = touching & ~slip & ~landed & ~left
        return {"stance": stance, "lift-off": lift_off, "landing": landing, "slip": slip}


def run(seconds: float = CYCLE, stride: int = 1) -> Record:
    """Simulate, and predict each `stride` ms."""
    simulation = stepping_quadruped()
    urdf = demo_urdf()
    frames = tuple(simulation.frames.values())
    contacts = [Contact(name, frame, kind="surface") for name, frame in simulation.frames.items()]
    robot = Robot.from_urdf(urdf)
    solver = DelassusSolver(Problem(robot, contacts)).bind()
    motion = FreeMotion(urdf, simulation.joint_names, frames)
    soft = MujocoFloor(motion.inverse_masses())
    laws: dict[str, tuple[Floor, bool]] = {
        EXACT: (soft, False),
        CENTRE: (soft, True),
        RIGID: (RigidFloor(0.01), False),
        CONSTRAINT: (RigidFloor(np.inf), False),
    }
    places = [simulation.joint_names.index(name) for name in robot.joint_names]
    time: list[float] = []
    simulated: list[FloatArray] = []
    predicted: dict[str, list[FloatArray]] = {law: [] for law in laws}
    for tick in range(1, round(seconds / STEP_S) + 1):
        simulation.step()
        if tick % stride:
            continue
        truth = simulation.truth()
        q = truth.q
        feet = motion.feet(
            RobotState(
                truth.position, truth.orientation, truth.twist,
                q, truth.velocity, truth.effort,
            )
        )  # fmt: skip
        solver.inputs["q"][...] = q[places]
        matrix = solver.solve().matrix
        time.append(simulation.time)
        simulated.append(truth.forces)
        for law, (floor, at_centre) in laws.items():
            forces = predict(matrix, feet, RADIUS, FRICTION, floor, at_centre)
            predicted[law].append(forces)
    return Record(
        simulation.contact_names,
        np.array(time),
        np.array(simulated),
        {law: np.array(forces) for law, forces in predicted.items()},
    )


def table(record: Record) -> str:
    """Return largest and root mean square error per phase and law, as Markdown."""
    phases = record.phases()
    size = np.linalg.norm(record.simulated, axis=2)
    lines = [
        "| largest error (root mean square), N | " + " | ".join(PHASES) + " |",
        "|---|" + "---:|" * len(PHASES),
        "| samples of a foot | " + " | ".join(str(phases[p].sum()) for p in PHASES) + " |",
        "| simulated force, mean (largest) | "
        + " | ".join(f"{size[phases[p]].mean():.1f} ({size[phases[p]].max():.1f})" for p in PHASES)
        + " |",
    ]
    for law in record.predicted:
        errors = record.errors(law)
        cells = []
        for phase in PHASES:
            e = errors[phases[phase]]
            cells.append(f"{e.max():.1g} ({np.sqrt((e * e).mean()):.1g})")
        lines.append(f"| {law} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> int:
    """Run, print the table, and return 0 if the tolerance is kept, else 1."""
    parser = argparse.ArgumentParser(
        prog="python -m force_prediction.sequence",
        description="Predict the contact forces of the demo quadruped over a cycle of its steps, "
        "and compare them with those of the simulator. Exit status 1 if they differ by more than "
        f"{TOLERANCE} N.",
    )
    parser.add_argument(
        "--plot", type=Path, metavar="FILE.png", help="figure of the forces that is written"
    )
    arguments = parser.parse_args()
    record = run()
    print(table(record))
    if arguments.plot is not None:
        from force_prediction.plot import draw

        draw(record, arguments.plot)
    worst = float(record.errors(EXACT).max())
    print(f"\n{EXACT}: worst {worst:.2g} N, tolerance {TOLERANCE} N")
    return 0 if worst <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
