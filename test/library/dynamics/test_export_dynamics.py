"""Exported dynamics: a program in C links them and computes the same bits."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from c_programs import built
from cluster_robots import coupled, random_problem
from linkages import closed_four_bar, four_bar
from passive import with_passive

from delassus.compiler.export import Target
from delassus.dynamics import FUNCTIONS, Dynamics
from delassus.errors import InputError

PROGRAM = """\
#include <stdio.h>
#include <string.h>
#include "robot_dynamics.h"

static double in[ROBOT_{0}_IN_SIZE], out[ROBOT_{0}_OUT_SIZE], work[ROBOT_{0}_WORK_SIZE + 1];

int main(void)
{{
  int status, i;
  if (fread(in, sizeof in, 1, stdin) != 1) return 100;
  status = robot_{1}(in, out, work);
  if (status != ROBOT_DYNAMICS_OK) return status;
  for (i = 0; i < ROBOT_{0}_OUT_SIZE; ++i) printf("%.17g\\n", out[i]);
  return 0;
}}
"""


def computed_in_c(
    dynamics: Dynamics, spelled: str, block: np.ndarray, folder: Path
) -> subprocess.CompletedProcess[str]:
    """Return what a program prints that reads the input block and calls the function."""
    symbol = spelled.replace(":", "_")
    program = built(
        folder, PROGRAM.format(symbol.upper(), symbol),
        robot_dynamics=dynamics.export([spelled], "robot"),
    )  # fmt: skip
    return subprocess.run([program], input=block.tobytes(), capture_output=True, check=False)


def state(dynamics: Dynamics, spelled: str, q: np.ndarray) -> np.ndarray:
    """Return an input block with random rates, torques, gravity and wrenches."""
    inputs = dynamics.bind(*spelled.split(":")).inputs
    rng = np.random.default_rng(0)
    rest = [rng.normal(size=array.size) for name, array in inputs.items() if name != "q"]
    return np.concatenate([q, *rest])


def in_python(dynamics: Dynamics, spelled: str, block: np.ndarray) -> np.ndarray:
    bound = dynamics.bind(*spelled.split(":"))
    first = 0
    for array in bound.inputs.values():
        array[...] = block[first : first + array.size].reshape(array.shape)
        first += array.size
    assert bound() == 0
    return bound.result


@pytest.mark.parametrize(
    "spelled", ["inverse", "forward:lagrange", "forward_derivatives", "regressor"]
)
def test_a_program_in_c_computes_the_same_bits(spelled: str, tmp_path: Path) -> None:
    robot = with_passive(random_problem(0).robot, 0)
    dynamics = Dynamics(robot, wrenches=[name for name in list(robot.frames)[-1:]])
    q = coupled(robot, np.random.default_rng(1).uniform(-1, 1, robot.nq))
    block = state(dynamics, spelled, q)
    done = computed_in_c(dynamics, spelled, block, tmp_path)
    assert done.returncode == 0
    printed = np.array([float(line) for line in done.stdout.split()])
    assert printed.tobytes() == in_python(dynamics, spelled, block).tobytes()


def test_loops_and_statuses(tmp_path: Path) -> None:
    dynamics = Dynamics(four_bar())
    block = state(dynamics, "inverse", np.array(closed_four_bar(0.7)))
    done = computed_in_c(dynamics, "inverse", block, tmp_path)
    (torque,) = map(float, done.stdout.split())
    assert torque == in_python(dynamics, "inverse", block)[0]
    block[0] = np.nan
    assert computed_in_c(dynamics, "inverse", block, tmp_path).returncode == 2


def test_all_functions_are_in_one_object() -> None:
    dynamics = Dynamics(four_bar())
    exported = dynamics.export(FUNCTIONS, "bar", Target("aarch64-linux-gnu"))
    for function in FUNCTIONS:
        assert f"int32_t bar_{function}(const double *in" in exported.header
        assert f"bar_{function}\0".encode() in exported.object_file
    assert 'bar_dynamics_velocities[1] = {"crank"}' in exported.header
    assert "BAR_INVERSE_IN_GRAVITY = 5, /* gravity: first of 3 doubles */" in exported.header


@pytest.mark.parametrize(
    ("functions", "name", "words"),
    [
        (["backward"], "bar", "function 'backward'"),
        (["inverse:lagrange"], "bar", "method 'lagrange'"),
        (["hybrid"], "bar", "function 'hybrid'"),
        (["inverse", "inverse"], "bar", "'inverse' is named twice"),
        (["forward:"], "bar", "'forward:' has no method after the colon"),
        (["inverse"], "four bar", "is not a C identifier"),
        (["inverse"], "while", "name 'while' is a keyword or reserved name of C"),
        ([], "bar", "expected at least one of inverse, forward"),
    ],
)
def test_refused_export(functions: list[str], name: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        Dynamics(four_bar()).export(functions, name)
