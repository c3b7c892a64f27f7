"""Contact forces in machine code beside the kernel of G and a0: the ratio of their times.

Kernel and solver are exported, and a C program runs them tick by tick, begun with the forces of
the tick before: once the kernel alone, once the kernel and the forces, in turns.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from benchmarks.contact_problems.generator import GRAVITY, stance
from delassus import Contact, DelassusSolver, Problem, Robot
from delassus.compiler.export import export
from delassus.contact_forces.export import export_contact_forces
from delassus.model.spatial import Array
from delassus.robots.built_in import demo_urdf, humanoid
from delassus_ros.sim.gait import LEGS
from delassus_ros.sim.quadruped import stepping_quadruped

FRICTION, TICKS, REPETITIONS = 0.6, 400, 25
LAWS = ("coulomb", "convex")

_PROGRAM = r"""
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "robot.h"
#include "robot_forces.h"

static double in[ROBOT_IN_SIZE], out[ROBOT_OUT_SIZE], work[ROBOT_WORK_SIZE + 1];
static double G[ROBOT_ROWS * ROBOT_ROWS], a0[ROBOT_ROWS], v[ROBOT_ROWS];
static double scratch[ROBOT_FORCES_WORK_SIZE], kept[ROBOT_FORCES_CONE_ROWS];
static double f[ROBOT_FORCES_CONE_ROWS], forces[ROBOT_ROWS], u[ROBOT_ROWS];
static double mu[ROBOT_CONTACTS], info[ROBOT_FORCES_INFO_SIZE];
static int64_t indices[ROBOT_FORCES_INDEX_SIZE], active[ROBOT_CONTACTS], rows[ROBOT_ROWS];

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static void matrix(int64_t n)
{
  int64_t i;
  robot_kernel(in, out, work);
  robot_slice(out + ROBOT_OUT_G, ROBOT_ROWS, rows, n, G);
  for (i = 0; i < n; ++i) {
    a0[i] = out[ROBOT_OUT_A0 + rows[i]];
    v[i] = out[ROBOT_OUT_V + rows[i]];
  }
}

/* Reads law, tolerance, repetitions, ticks; then per tick flags of the contacts and inputs. */
int main(void)
{
  double head[4], flags[ROBOT_CONTACTS];
  int64_t tick, i, j, at;
  if (fread(head, sizeof(double), 4, stdin) != 4) return 2;
  for (tick = 0; tick < (int64_t)head[3]; ++tick) {
    double least = 1e30, most = 1e30;
    int64_t count = 0, n = 0, status = 0, turn;
    if (fread(flags, sizeof(double), ROBOT_CONTACTS, stdin) != ROBOT_CONTACTS) return 2;
    if (fread(in, sizeof(double), ROBOT_IN_SIZE, stdin) != ROBOT_IN_SIZE) return 2;
    for (i = 0; i < ROBOT_CONTACTS; ++i) {
      if (flags[i] == 0.0) continue;
      mu[count] = @FRICTION@;
      active[count++] = i;
      for (j = robot_row_offsets[i]; j < robot_row_offsets[i + 1]; ++j) rows[n++] = j;
    }
    for (turn = 0; turn < (int64_t)head[2]; ++turn) {
      double start = now(), spent;
      matrix(n);
      spent = now() - start;
      if (spent < least) least = spent;
      for (i = at = 0; i < count; ++i)
        for (j = robot_forces_first_cone_rows[active[i]];
             j < robot_forces_first_cone_rows[active[i] + 1]; ++j)
          f[at++] = kept[j];
      start = now();
      matrix(n);
      status = robot_contact_forces(
          active, count, (int64_t)head[0], ROBOT_FORCES_BUDGET, head[1], mu, NULL, NULL,
          NULL, G, a0, v, f, forces, u, info, NULL, scratch, indices);
      spent = now() - start;
      if (spent < most) most = spent;
    }
    memset(kept, 0, sizeof kept);
    for (i = at = 0; i < count; ++i)
      for (j = robot_forces_first_cone_rows[active[i]];
           j < robot_forces_first_cone_rows[active[i] + 1]; ++j)
        kept[j] = f[at++];
    printf("%d %d %.9g %.9g\n", (int)status, (int)(info[0] + info[1] + info[2]), least, most);
  }
  return 0;
}
"""


@dataclass(frozen=True)
class Times:
    """Times of the ticks of one sequence, microseconds, and what became of its forces."""

    kernel: NDArray[np.float64]
    both: NDArray[np.float64]
    steps: NDArray[np.float64]
    solved: float
    """Share of the ticks whose forces are SOLVED."""

    @property
    def ratios(self) -> NDArray[np.float64]:
        """Time of kernel and forces over that of the kernel, per tick."""
        return self.both / self.kernel


def walking(ticks: int) -> tuple[Problem, Iterator[tuple[tuple[str, ...], dict[str, Array]]]]:
    """Return the demo robot's problem, and contacts and inputs of its simulated steps."""
    robot = Robot.from_urdf(demo_urdf().encode())
    feet = [Contact(leg, f"{leg}_FOOT") for leg in LEGS]
    problem = Problem(robot, feet, axes="world", outputs=["a0"])

    def states() -> Iterator[tuple[tuple[str, ...], dict[str, Array]]]:
        plant, many = stepping_quadruped("quadruped"), 0
        for _ in range(200):
            plant.step()
        while many < ticks:
            plant.step()
            if not plant.active_contacts:
                continue
            truth = plant.truth()
            many += 1
            yield (
                plant.active_contacts,
                {
                    "q": robot.q(dict(zip(plant.joint_names, truth.q, strict=True))),
                    "base_orientation": np.asarray(truth.orientation),
                    "rates": np.concatenate([truth.twist, truth.velocity]),
                    "torques": np.concatenate([np.zeros(6), truth.effort]),
                    "gravity": np.array(GRAVITY),
                },
            )

    return problem, states()


def swaying(ticks: int) -> tuple[Problem, Iterator[tuple[tuple[str, ...], dict[str, Array]]]]:
    """Return the humanoid on its soles, and inputs while it shifts its weight."""
    robot = Robot.from_urdf(humanoid.humanoid_urdf().encode())
    soles = [Contact(name, frame, "surface") for name, frame in humanoid.FEET.items()]
    outputs = ["a0", "J", "h"]
    full = DelassusSolver(Problem(robot, soles, axes="world", outputs=outputs))
    problem = Problem(robot, soles, axes="world", outputs=["a0"])

    def states() -> Iterator[tuple[tuple[str, ...], dict[str, Array]]]:
        random = np.random.default_rng(0)
        phase, rate = random.uniform(0.0, 6.28, 30), 6.28 * random.uniform(0.3, 1.0, 30)
        for tick in range(ticks):
            t = 1e-3 * tick
            share = 0.5 + 0.45 * np.sin(4.4 * t)
            load = np.zeros((2, 6))
            load[:, 2] = 630.0 * np.array([share, 1.0 - share])
            load[:, 0], load[:, 1] = 0.2 * load[:, 2] * np.sin(5.0 * t), 0.1 * load[:, 2]
            state = {
                "q": stance([0.4, 0.4], 0.3 * np.sin(rate * t + phase)),
                "base_orientation": np.array([0.0, 0.0, 0.0, 1.0]),
                "rates": np.zeros(36), "torques": np.zeros(36), "gravity": np.array(GRAVITY),
            }  # fmt: skip
            s = full.solve(
                state["q"], base_orientation=state["base_orientation"], rates=state["rates"],
                torques=state["torques"], gravity=state["gravity"],
            )  # fmt: skip
            torques = s.output("h") - s.output("J").T @ load.ravel()
            state["torques"] = torques + random.normal(0.0, 0.3, 36)
            state["torques"][:6] = 0.0
            yield full.problem.contacts.names, state

    return problem, states()


SEQUENCES = {"quadruped walks, m = 6 to 12": walking, "humanoid sways on two soles": swaying}


def measured(
    name: str, law: str, tolerance: float, ticks: int = TICKS, repetitions: int = REPETITIONS
) -> Times:
    """Return the times of one sequence; needs gcc.

    Parameters
    ----------
    name : one of SEQUENCES.
    """
    problem, states = SEQUENCES[name](ticks)
    compiler = shutil.which("gcc")
    if compiler is None:
        raise RuntimeError("gcc is not installed, which compiles the program that measures")
    head = [LAWS.index(law), tolerance, repetitions, ticks]
    data = [np.array(head, float)]
    for active, inputs in states:
        data.append(np.array([contact in active for contact in problem.contacts.names], float))
        data += [np.ravel(inputs[port.name]) for port in problem.inputs]
    with TemporaryDirectory() as folder:
        _write(Path(folder), problem)
        subprocess.run(
            [compiler, "-O2", "program.c", "robot.o", "robot_forces.o", "-lm", "-o", "program"],
            cwd=folder, check=True,
        )  # fmt: skip
        said = subprocess.run(
            [str(Path(folder) / "program")], input=np.concatenate(data).tobytes(),
            capture_output=True, check=True,
        ).stdout  # fmt: skip
    status, steps, kernel, both = np.array(said.split(), float).reshape(-1, 4).T
    return Times(kernel, both, steps, float((status == 0).mean()))


def _write(folder: Path, problem: Problem) -> None:
    kernel = export(problem, "auto", "robot")
    kinds = [contact.kind_name for contact in problem.contacts]
    forces = export_contact_forces(
        kinds, "robot", dimensions=humanoid.SOLE if "surface" in kinds else None
    )
    for name, exported in (("robot", kernel), ("robot_forces", forces)):
        (folder / f"{name}.o").write_bytes(exported.object_file)
        (folder / f"{name}.h").write_text(exported.header)
    (folder / "program.c").write_text(_PROGRAM.replace("@FRICTION@", repr(FRICTION)))


def say() -> None:
    """Print the ratios of all sequences, laws and tolerances."""
    for name in SEQUENCES:
        for law in LAWS:
            for tolerance in (1e-6, 1e-10):
                times = measured(name, law, tolerance)
                half, tail, most = np.percentile(times.ratios, [50, 95, 100])
                print(
                    f"{name:30} {law:8} {tolerance:5g}: G + a0 {np.median(times.kernel):5.2f} us, "
                    f"with forces {np.median(times.both):5.2f} us; ratio {half:4.2f} median, "
                    f"{tail:4.2f} at 95 %, {most:4.2f} largest; {np.median(times.steps):g} steps, "
                    f"{100 * times.solved:.1f} % solved"
                )
