"""The exported solver of contact forces: a C program links it and has Python's numbers."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_programs import built
from friction import random_problem

from delassus import ForceSolver, ForceStatus, InputError
from delassus.compiler.export import Target
from delassus.contact_forces.export import export_contact_forces

PROGRAM = r"""
#include <stdio.h>
#include "feet_forces.h"

/* Reads count and indices of active contacts, rows n, cone rows k, friction, compliance and
   restitution per contact, G, a0, velocities, a tolerance. */
int main(void)
{
  static double work[FEET_FORCES_WORK_SIZE + 1], G[FEET_FORCES_ROWS * FEET_FORCES_ROWS];
  static int64_t indices[FEET_FORCES_INDEX_SIZE + 1];
  double a0[FEET_FORCES_ROWS], u[FEET_FORCES_ROWS], forces[FEET_FORCES_ROWS];
  double v[FEET_FORCES_ROWS], info[FEET_FORCES_INFO_SIZE], tolerance;
  double f[FEET_FORCES_CONE_ROWS] = {0}, mu[FEET_FORCES_CONTACTS], R[FEET_FORCES_CONTACTS];
  double e[FEET_FORCES_CONTACTS];
  long long active[FEET_FORCES_CONTACTS], count, n, k;
  int64_t chosen[FEET_FORCES_CONTACTS], named[FEET_FORCES_CONTACTS], status, i, law;
  work[FEET_FORCES_WORK_SIZE] = 12345.0;
  indices[FEET_FORCES_INDEX_SIZE] = 12345;
  if (scanf("%lld", &count) != 1) return 2;
  for (i = 0; i < count; ++i) {
    if (scanf("%lld", &active[i]) != 1) return 2;
    chosen[i] = active[i];
  }
  if (scanf("%lld %lld", &n, &k) != 2) return 2;
  for (i = 0; i < count; ++i)
    if (scanf("%lf %lf %lf", &mu[i], &R[i], &e[i]) != 3) return 2;
  for (i = 0; i < n * n; ++i) if (scanf("%lf", &G[i]) != 1) return 2;
  for (i = 0; i < n; ++i) if (scanf("%lf", &a0[i]) != 1) return 2;
  for (i = 0; i < n; ++i) if (scanf("%lf", &v[i]) != 1) return 2;
  if (scanf("%lf", &tolerance) != 1) return 2;
  for (law = FEET_FORCES_COULOMB; law <= FEET_FORCES_AUTO; ++law) {
    for (i = 0; i < k; ++i) f[i] = 0.0;
    status = feet_contact_forces(
        chosen, count, law, FEET_FORCES_BUDGET, tolerance, mu, R[0] == 0.0 ? NULL : R,
        e[0] == 0.0 ? NULL : e, NULL, G, a0, v[0] == 0.0 ? NULL : v, f, forces, u, info, named,
        work, indices);
    if (work[FEET_FORCES_WORK_SIZE] != 12345.0 || indices[FEET_FORCES_INDEX_SIZE] != 12345)
      return 3;
    printf("%lld %d", (long long)status, (int)info[4]);
    for (i = 0; i < 3; ++i) printf(" %d", (int)info[i]);
    for (i = 0; i < n; ++i) printf(" %.17g %.17g", forces[i], u[i]);
    for (i = 0; i < k; ++i) printf(" %.17g", f[i]);
    for (i = 0; i < count; ++i) printf(" %d", (int)named[i]);
    printf("\n");
  }
  return 0;
}
"""


@pytest.fixture(scope="module", name="program_of")
def make_program_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function that builds the program for kinds of contacts, each program once."""
    export = cache(export_contact_forces)

    @cache
    def build(kinds: tuple[str, ...], compiler: str = "gcc", **options: Any) -> Path:
        folder = tmp_path_factory.mktemp("program")
        return built(folder, PROGRAM, compiler, feet_forces=export(kinds, "feet", **options))

    return build


def _same(
    program: Path, active: Sequence[int], kinds: Sequence[str], mu: Any, R: Any, G: Any, a0: Any,
    e: float = 0.0, v: Any = 0.0, **options: Any,
) -> list[ForceStatus]:  # fmt: skip
    solvers = [
        ForceSolver(
            [kinds[c] for c in active], mu, law=law, compliance=R, restitution=e, **options
        )
        for law in ("coulomb", "convex", "auto")
    ]
    rows = solvers[0].rows
    per_contact = np.stack([np.broadcast_to(x, len(active)) for x in (mu, R, e)], 1)
    sizes = [len(active), *active, rows.size, rows.count]
    given = [*map(str, sizes), *(repr(float(x)) for part in (per_contact, G, a0)
                                 for x in np.ravel(part))]  # fmt: skip
    speeds = np.broadcast_to(v, len(a0))
    given += [*map(repr, speeds.tolist()), "1e-10"]
    done = subprocess.run(
        [str(program)], input=" ".join(given), capture_output=True, text=True, check=True
    )
    statuses = []
    for line, solver in zip(done.stdout.splitlines(), solvers, strict=True):
        found = solver.solve(G, a0, velocities=speeds if speeds.any() else None)
        values, n, k = np.array(line.split(), float), rows.size, rows.count
        assert values[0] == found.status and tuple(values[2:5]) == found.steps
        assert ("coulomb", "convex")[int(values[1])] == found.law
        tolerance = {"rtol": 1e-12, "atol": 1e-12 * max(1.0, float(np.abs(found.forces).max()))}
        np.testing.assert_allclose(values[5 : 5 + 2 * n : 2], found.forces, **tolerance)
        np.testing.assert_allclose(values[6 : 6 + 2 * n : 2], found.accelerations, **tolerance)
        np.testing.assert_allclose(
            values[5 + 2 * n : 5 + 2 * n + k], found.cone_forces, **tolerance
        )
        named = found.contradiction or (found.division.contacts if found.division else ())
        assert np.flatnonzero(values[5 + 2 * n + k :]).tolist() == list(named)
        statuses.append(found.status)
    return statuses


@pytest.mark.parametrize("compiler", ["gcc", "g++"])
def test_c_program_has_numbers_of_python(compiler: str, program_of: Callable[..., Path]) -> None:
    kinds = ("point",) * 4
    program = program_of(kinds, compiler)
    for seed, active in enumerate([(0, 1, 2, 3), (3, 1), (2,), (0, 1, 3)]):
        G, a0 = random_problem(seed, contacts=len(active))
        mu = np.random.default_rng(seed).uniform(0.2, 1.0, len(active))
        assert set(_same(program, active, kinds, mu, 0.0, G, a0)) == {ForceStatus.SOLVED}
        _same(program, active, kinds, mu, 0.1, G, a0)
        _same(program, active, kinds, mu, 0.0, G, a0, e=0.4)
        v = np.tile([1.0, 0.5, 0.0], len(active))
        v[-1] = -seed
        moving = {ForceStatus.SOLVED, ForceStatus.JAMMED} if seed == 0 else {ForceStatus.STRIKING}
        assert set(_same(program, active, kinds, mu, 0.0, G, a0, v=v)) <= moving


def test_surfaces_and_rows_in_any_order(program_of: Callable[..., Path]) -> None:
    kinds, sizes = ("surface", "bilateral", "point", "unilateral"), (0.2, 0.1)
    program = program_of(kinds, dimensions=sizes)
    rows = {"surface": 6, "point": 3, "bilateral": 1, "unilateral": 1}
    for seed, active in enumerate([(0, 1, 2, 3), (2, 0), (3, 2, 1, 0), (1,)]):
        n = sum(rows[kinds[c]] for c in active)
        J = np.random.default_rng(seed).normal(size=(n, n + 6))
        G, a0 = J @ J.T / n, J @ np.random.default_rng(seed).normal(size=n + 6)
        G = 0.5 * (G + G.T)
        _same(program, active, kinds, 0.6, 0.0, G, a0, dimensions=sizes)
        v = np.random.default_rng(seed).normal(size=n)
        _same(program, active, kinds, 0.2, 0.0, G, a0, v=v, dimensions=sizes)


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"G": "nan 0 0 0 1 0 0 0 1"}, ForceStatus.NOT_FINITE),
        ({"v": "1 0 inf"}, ForceStatus.NOT_FINITE),
        ({"v": "1 nan 0"}, ForceStatus.NOT_FINITE),
        ({"mu": "inf"}, ForceStatus.REFUSED),
        ({"mu": "1e10"}, ForceStatus.REFUSED),
        ({"mu": "-1"}, ForceStatus.REFUSED),
        ({"mu": "nan"}, ForceStatus.REFUSED),
        ({"R": "-1"}, ForceStatus.REFUSED),
        ({"R": "inf"}, ForceStatus.REFUSED),
        ({"e": "1.5"}, ForceStatus.REFUSED),
        ({"tolerance": "inf"}, ForceStatus.REFUSED),
        ({"tolerance": "-1"}, ForceStatus.REFUSED),
        ({"v": "1 0 -2"}, ForceStatus.STRIKING),
        ({"G": "1 0 3 0 1 0 3 0 1", "v": "1 0 0"}, ForceStatus.JAMMED),
    ],
)
def test_arguments_without_forces_in_c_and_python(
    changed: dict[str, str], status: ForceStatus, program_of: Callable[..., Path]
) -> None:
    program = program_of(("point",) * 4)
    given = {
        "sizes": "1 2 3 3", "mu": "0.5", "R": "0", "e": "0", "G": "1 0 0 0 1 0 0 0 1",
        "a0": "0 0 -1", "v": "0 0 0", "tolerance": "1e-10",
    } | changed  # fmt: skip
    done = subprocess.run(
        [str(program)], input=" ".join(given.values()), capture_output=True, text=True, check=True
    )
    for line in done.stdout.splitlines():
        values = np.array(line.split(), float)
        forces, accelerations = values[5:11:2], values[6:11:2]
        assert values[0] == status
        assert not forces.any() and not values[11:14].any() and np.isnan(accelerations).all()
    numbers = {name: np.array(text.split(), float) for name, text in given.items()}
    mu, R, e, tolerance = (float(numbers[name][0]) for name in ("mu", "R", "e", "tolerance"))
    options = {"compliance": R, "restitution": e, "tolerance": tolerance}
    if status == ForceStatus.REFUSED:
        with pytest.raises(InputError):
            ForceSolver(["point"], mu, **options)
        return
    solver, G = ForceSolver(["point"], mu, **options), numbers["G"].reshape(3, 3)
    single = solver.solve(G, numbers["a0"], velocities=numbers["v"])
    rests, leaves = ((np.eye(3), numbers["a0"], np.array([0.0, 0.0, up])) for up in (0.0, 2.0))
    parts = zip(rests, (G, numbers["a0"], numbers["v"]), leaves, strict=True)
    Gs, a0s, vs = (np.array(part) for part in parts)
    batch = solver.solve_batch(Gs, a0s, velocities=vs)
    assert batch.status.tolist() == [ForceStatus.SOLVED, status, ForceStatus.SOLVED]
    assert batch.forces[0].any() and not batch.forces[2].any()
    for found, at in ((single, ...), (batch, 1)):
        assert np.asarray(found.status)[at] == status and np.asarray(found.residual)[at] == -1.0
        assert not found.forces[at].any() and not found.cone_forces[at].any()
        assert np.isnan(found.accelerations[at]).all()


@pytest.mark.parametrize(
    ("target", "machine"),
    [
        pytest.param(Target("x86_64-linux-gnu"), 62, marks=pytest.mark.slow),
        (Target("aarch64-linux-gnu", "cortex-a76"), 183),
        pytest.param(Target("riscv64-linux-gnu"), 243, marks=pytest.mark.slow),
        (Target("arm-linux-gnueabihf"), 40),
    ],
)
def test_other_processors_need_little_of_the_c_library(
    target: Target, machine: int, tmp_path: Path
) -> None:
    reader = shutil.which("readelf")
    if reader is None:
        pytest.skip("readelf is not installed")
    code = export_contact_forces(["point"] * 4, "feet", target=target).object_file
    assert code[:4] == b"\x7fELF" and int.from_bytes(code[18:20], "little") == machine
    (tmp_path / "feet.o").write_bytes(code)
    said = subprocess.run(
        [reader, "-sW", str(tmp_path / "feet.o")], capture_output=True, text=True, check=True
    ).stdout
    symbols = [line.split() for line in said.splitlines() if " UND " in line]
    lacking = {words[7] for words in symbols if len(words) > 7}
    linkers = {"_GLOBAL_OFFSET_TABLE_", "__aeabi_unwind_cpp_pr0", "__aeabi_unwind_cpp_pr1"}
    allowed = {"memset", "memcpy", "sqrt", "__aeabi_memclr8", "__aeabi_memcpy8", "__aeabi_memclr",
               "__aeabi_memcpy", "__aeabi_d2lz", "__aeabi_l2d", "__aeabi_ul2d"}  # fmt: skip
    assert lacking - linkers <= allowed
    assert "GLOBAL DEFAULT" in next(x for x in said.splitlines() if "feet_forces_solve" in x)


@pytest.mark.parametrize(
    ("kinds", "name", "words"),
    [
        (["point"], "my feet", "name 'my feet' is not a C identifier"),
        (["point"], "int", "name 'int' is a keyword or reserved name of C"),
        (["foot"], "feet", "contact 0 is of kind 'foot'; expected one of point"),
        (["surface"], "feet", "contact 0 is a surface and has no dimensions"),
    ],
)
def test_exports_that_are_refused(kinds: list[str], name: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        export_contact_forces(kinds, name)
    with pytest.raises(InputError, match="kernels are not known to work on"):
        export_contact_forces(["point"], "feet", target=Target("avr"))
