"""Exported task inertia: a C program links it with the kernel and has Python's numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import robots
from c_programs import built, numbers_of
from small import flat_foot

from delassus import Contact, DelassusSolver, Problem, Robot
from delassus.compiler.export import export
from delassus.samples import random_inputs
from delassus.solver import export_task_space

PROGRAM = r"""
#include <stdio.h>
#include "robot.h"
#include "pelvis.h"

int main(void)
{
  static double in[ROBOT_IN_SIZE], out[ROBOT_OUT_SIZE], work[ROBOT_WORK_SIZE + 1];
  static double scratch[PELVIS_TASK_WORK_SIZE + 1];
  static double N[PELVIS_TASK_VELOCITIES * PELVIS_TASK_VELOCITIES];
  static double jbar[PELVIS_TASK_VELOCITIES * PELVIS_TASK_ROWS];
  static int64_t order[PELVIS_TASK_INDEX_SIZE + 1];
  double held[PELVIS_TASK_ROWS * PELVIS_TASK_ROWS], L[PELVIS_TASK_ROWS * PELVIS_TASK_ROWS];
  double bias[PELVIS_TASK_ROWS], a[PELVIS_TASK_ROWS];
  int64_t i;
  scratch[PELVIS_TASK_WORK_SIZE] = 12345.0;
  order[PELVIS_TASK_INDEX_SIZE] = 12345;
  for (i = 0; i < ROBOT_IN_SIZE; ++i) if (scanf("%lf", &in[i]) != 1) return 2;
  if (robot_kernel(in, out, work) != ROBOT_OK) return 3;
  if (pelvis_task_space(
          PELVIS_TASK_INERTIA + PELVIS_TASK_JBAR + PELVIS_TASK_NULL_SPACE +
          PELVIS_TASK_BIAS_FORCE + PELVIS_TASK_FREE,
          out + ROBOT_OUT_G, out + ROBOT_OUT_J, out + ROBOT_OUT_MINVJT,
          out + ROBOT_OUT_H, out + ROBOT_OUT_JDOTV, out + ROBOT_OUT_A0, held, L, jbar, N, bias, a,
          scratch, order) != 0) return 4;
  if (scratch[PELVIS_TASK_WORK_SIZE] != 12345.0) return 5;
  if (order[PELVIS_TASK_INDEX_SIZE] != 12345) return 5;
  for (i = 0; i < PELVIS_TASK_ROWS * PELVIS_TASK_ROWS; ++i) printf("%.17g %.17g ", held[i], L[i]);
  for (i = 0; i < PELVIS_TASK_ROWS; ++i) printf("%.17g %.17g ", bias[i], a[i]);
  for (i = 0; i < PELVIS_TASK_VELOCITIES * PELVIS_TASK_ROWS; ++i) printf("%.17g ", jbar[i]);
  for (i = 0; i < PELVIS_TASK_VELOCITIES * PELVIS_TASK_VELOCITIES; ++i) printf("%.17g ", N[i]);
  if (pelvis_task_space(
          PELVIS_TASK_INERTIA, out + ROBOT_OUT_G, 0, 0, 0, 0, 0, held, L, 0, 0, 0, 0, scratch,
          order) != 0) return 6;
  printf("%.17g", L[0]);
  in[0] = 1.0 / (in[0] - in[0]);
  out[ROBOT_OUT_G] = in[0] - in[0];
  return pelvis_task_space(
             PELVIS_TASK_INERTIA, out + ROBOT_OUT_G, 0, 0, 0, 0, 0, held, L, 0, 0, 0, 0, scratch,
             order) == PELVIS_TASK_NOT_FINITE ? 0 : 7;
}
"""


@pytest.mark.parametrize("compiler", ["gcc", pytest.param("g++", marks=pytest.mark.slow)])
def test_a_c_program_has_python_s_numbers(compiler: str, tmp_path: Path) -> None:
    robot = Robot.from_urdf(robots.quadruped())
    names = [name for name in robot.frames if robot.frames[name].body == 0]
    contacts = [
        *(Contact(foot, foot) for foot in ("LF_FOOT", "RH_FOOT")),
        *flat_foot(3, "LH_FOOT"),
        Contact("trunk", names[0], "surface"),
    ]
    outputs = ("J", "MinvJT", "h", "JdotV", "a0")
    problem = Problem(robot, contacts, outputs=outputs)
    solver = DelassusSolver(problem)
    given = ("LF_FOOT", "LH_FOOT.0", "LH_FOOT.1", "LH_FOOT.2")
    program = built(
        tmp_path, PROGRAM, compiler, robot=export(problem, "pv_osimr", "robot"),
        pelvis=export_task_space(solver, "pelvis", "trunk", given),
    )  # fmt: skip
    inputs = random_inputs(problem, 0)
    values = numbers_of(program, *(inputs[port.name] for port in problem.inputs))
    t = solver.solve(**inputs).task("trunk", given)
    assert t.held_rank == 9 and solver.structural_rank(given) == 9
    n = len(problem.velocities)
    held, L, values = values[0:72:2], values[1:72:2], values[72:]
    bias, a, values = values[0:12:2], values[1:12:2], values[12:]
    expected = [
        (held, t.matrix), (L, t.inertia()), (bias, t.bias_force()), (a, t.a0),
        (values[: 6 * n], t.jbar()), (values[6 * n : -1], t.null_space()), (values[-1:], L[:1]),
    ]  # fmt: skip
    for ours, theirs in expected:
        scale = max(1.0, float(np.abs(theirs).max()))
        np.testing.assert_allclose(ours, np.ravel(theirs), rtol=1e-9, atol=1e-10 * scale)
