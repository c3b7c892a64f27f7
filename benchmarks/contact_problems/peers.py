"""Solvers of contact forces: ours, and libraries that are installed.

A peer is made once per problem, with all that can be prepared before a0 and G are known; its call
is what is timed. Residuals are of the law that a peer claims, with exact cones, so that pyramids
show their error.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.contact_problems.generator import ContactProblem
from benchmarks.contact_problems.writers import normal_first
from delassus.contact_forces import ForceSolver
from delassus.model.spatial import Array

MOST_STEPS = 1000
"""Largest number of steps of iterative peers."""
_FAR = 1e20  # bound of a row without a bound

Answer = tuple[float, Array, int]
"""Time of one call in s, forces (3n,) and number of steps; -1 where a peer does not tell."""
Call = Callable[[], Answer]
"""Solves the problem that it was prepared for."""


@dataclass(frozen=True)
class Peer:
    """A solver: name, law, tolerance, the package it needs, and what prepares a problem."""

    name: str
    law: str
    tolerance: float
    package: str
    prepared: Callable[[ContactProblem, str, float], Call]

    def prepare(self, p: ContactProblem) -> Call:
        """Return what solves a problem by the peer's law to its tolerance."""
        return self.prepared(p, self.law, self.tolerance)

    @property
    def is_installed(self) -> bool:
        """Whether it can be run here."""
        if self.package == "siconos":
            return Siconos.interpreter() is not None
        try:
            importlib.import_module(self.package)
        except ImportError:
            return False
        return self.package != "pinocchio" or hasattr(_import("pinocchio"), "ADMMConstraintSolver")


def _import(name: str) -> Any:
    return importlib.import_module(name)


def ours(p: ContactProblem, law: Any, tolerance: float) -> Call:
    """Prepare this library's solver."""
    solver = ForceSolver(["point"] * len(p.mu), p.mu, law=law, tolerance=tolerance)

    def call() -> Answer:
        began = time.perf_counter()
        found = solver.solve(p.G, p.a0)
        return time.perf_counter() - began, found.forces, sum(found.steps)

    return call


def by_pinocchio(p: ContactProblem, law: str, tolerance: float, kind: str) -> Call:
    """Prepare Pinocchio's "ADMM" or "PGS"."""
    pin = _import("pinocchio")
    model = pin.buildSampleModelHumanoidRandom()  # only its sizes are looked at
    models, data = pin.StdVec_ConstraintModel(), pin.StdVec_ConstraintData()
    for mu in p.mu:
        point = pin.PointContactConstraintModel(model, 1)
        point.setFriction(float(mu))
        models.append(pin.ConstraintModel(point))
        data.append(models[len(models) - 1].createData())
    settings, result = (getattr(pin, f"{kind}Solver{part}")() for part in ("Settings", "Result"))
    for name in ("feasibility", "complementarity"):
        setattr(settings, f"relative_{name}_tol", tolerance)
        setattr(settings, f"absolute_{name}_tol", 0.01 * tolerance)
    settings.max_iterations, settings.solve_ncp = MOST_STEPS, law == "coulomb"
    a0 = p.a0.copy()

    def call() -> Answer:
        solver = getattr(pin, f"{kind}ConstraintSolver")(len(a0))
        began = time.perf_counter()
        solver.solve(pin.DelassusOperatorDense(p.G), a0, models, data, settings, result)
        took = time.perf_counter() - began
        return took, np.array(result.retrieveConstraintImpulses()).ravel(), result.iterations

    return call


def pyramid(mu: Array, sides: int) -> Array:
    """Return the rows A (sides n, 3n) of inner pyramids, A f <= 0."""
    turn = 2.0 * np.pi * np.arange(sides) / sides
    rows = np.zeros((sides * len(mu), 3 * len(mu)))
    for c, friction in enumerate(mu):
        rows[c * sides : (c + 1) * sides, 3 * c : 3 * c + 3] = np.column_stack(
            [np.cos(turn), np.sin(turn), np.full(sides, -friction * np.cos(np.pi / sides))]
        )
    return rows


def by_daqp(p: ContactProblem, law: str, tolerance: float, sides: int) -> Call:
    """Prepare daqp, an active-set solver of quadratic programs."""
    daqp, A = _import("daqp"), pyramid(p.mu, sides)
    upper, lower = np.zeros(len(A)), np.full(len(A), -1e30)
    sense = np.zeros(len(A), np.int32)

    def call() -> Answer:
        began = time.perf_counter()
        f, _, _, info = daqp.solve(p.G, p.a0, A, upper, lower, sense)
        return time.perf_counter() - began, np.array(f), int(info.get("iterations", -1))

    return call


def by_proxqp(p: ContactProblem, law: str, tolerance: float, sides: int) -> Call:
    """Prepare ProxQP."""
    proxqp, A = _import("proxsuite").proxqp, pyramid(p.mu, sides)
    solver = proxqp.dense.QP(len(p.a0), 0, len(A))
    solver.settings.eps_abs = tolerance
    solver.settings.max_iter = solver.settings.max_iter_in = MOST_STEPS
    solver.settings.initial_guess = proxqp.InitialGuess.NO_INITIAL_GUESS
    upper, lower = np.zeros(len(A)), np.full(len(A), -_FAR)

    def call() -> Answer:
        began = time.perf_counter()
        solver.init(p.G, p.a0, None, None, A, lower, upper)
        solver.solve()
        took = time.perf_counter() - began
        return took, solver.results.x.copy(), solver.results.info.iter

    return call


def by_clarabel(p: ContactProblem, law: str, tolerance: float) -> Call:
    """Prepare Clarabel, an interior point with second-order cones."""
    clarabel, sparse = _import("clarabel"), _import("scipy.sparse")
    n, count = len(p.a0), len(p.mu)
    A = np.zeros((n, n))
    for c, friction in enumerate(p.mu):
        A[3 * c : 3 * c + 3, 3 * c : 3 * c + 3] = [[0, 0, -friction], [-1, 0, 0], [0, -1, 0]]
    P, A = sparse.csc_matrix(np.triu(p.G)), sparse.csc_matrix(A)
    cones = [clarabel.SecondOrderConeT(3)] * count
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance

    def call() -> Answer:
        began = time.perf_counter()
        found = clarabel.DefaultSolver(P, p.a0, A, np.zeros(n), cones, settings).solve()
        return time.perf_counter() - began, np.array(found.x), found.iterations

    return call


_SICONOS = """
import json, sys, time
import numpy as np
import siconos.numerics as sn
for line in sys.stdin:
    solver, W, q, mu = json.loads(line)
    q, mu = np.array(q), np.array(mu)
    W = np.array(W).reshape(len(q), len(q))
    options = sn.SolverOptions(getattr(sn, "SICONOS_FRICTION_3D_" + solver))
    options.dparam[sn.SICONOS_DPARAM_TOL] = 1e-10
    options.iparam[sn.SICONOS_IPARAM_MAX_ITER] = STEPS
    r, u = np.zeros(len(q)), np.zeros(len(q))
    problem = sn.FrictionContactProblem(3, len(mu), W, q, mu)
    began = time.perf_counter()
    sn.fc3d_driver(problem, r, u, options)
    took = time.perf_counter() - began
    steps = int(options.iparam[sn.SICONOS_IPARAM_ITER_DONE])
    print("answer " + json.dumps([took, r.tolist(), steps]), flush=True)
"""


class Siconos:
    """Siconos in a process of the interpreter that has it; calls alternate with those here."""

    process: subprocess.Popen[str] | None = None

    @staticmethod
    def interpreter() -> str | None:
        """Return the interpreter: SICONOS_PYTHON, else the system's, if it imports siconos."""
        python = os.environ.get("SICONOS_PYTHON", "/usr/bin/python3")
        test = [python, "-c", "import siconos.numerics"]
        try:
            return python if subprocess.run(test, capture_output=True).returncode == 0 else None
        except OSError:
            return None

    @classmethod
    def end(cls) -> None:
        """End the process, if there is one."""
        if cls.process is not None:
            assert cls.process.stdin is not None
            cls.process.stdin.close()
            cls.process.wait()
            cls.process = None

    @classmethod
    def ask(cls, solver: str, W: Array, q: Array, mu: Array) -> Answer:
        """Return Siconos' answer, rows normal first."""
        if cls.process is None:
            python = cls.interpreter()
            assert python is not None
            program = _SICONOS.replace("STEPS", str(MOST_STEPS))
            cls.process = subprocess.Popen(
                [python, "-c", program], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )  # fmt: skip
        assert cls.process.stdin is not None and cls.process.stdout is not None
        cls.process.stdin.write(json.dumps([solver, W.ravel().tolist(), q.tolist(), mu.tolist()]))
        cls.process.stdin.write("\n")
        cls.process.stdin.flush()
        for line in cls.process.stdout:  # Siconos itself prints, too
            if line.startswith("answer "):
                took, r, steps = json.loads(line.removeprefix("answer "))
                return took, np.array(r), steps
        raise RuntimeError(f"siconos ended with {cls.process.wait()}")


def by_siconos(p: ContactProblem, law: str, tolerance: float, solver: str) -> Call:
    """Prepare a solver of Siconos, "NSN_AC" or "NSGS"."""
    order = normal_first(len(p.mu))
    W, q = p.G[np.ix_(order, order)], p.a0[order]

    def call() -> Answer:
        took, r, steps = Siconos.ask(solver, W, q, p.mu)
        return took, r[np.argsort(order)], steps

    return call


_admm, _pgs = partial(by_pinocchio, kind="ADMM"), partial(by_pinocchio, kind="PGS")
_nsn_ac, _nsgs = (partial(by_siconos, solver=name) for name in ("NSN_AC", "NSGS"))
PEERS = (
    Peer("ours, 1e-6", "coulomb", 1e-6, "delassus_ros", ours),
    Peer("ours, 1e-10", "coulomb", 1e-10, "delassus_ros", ours),
    Peer("Pinocchio ADMM, 1e-6", "coulomb", 1e-6, "pinocchio", _admm),
    Peer("Pinocchio ADMM, 1e-10", "coulomb", 1e-10, "pinocchio", _admm),
    Peer("Pinocchio PGS, 1e-6", "coulomb", 1e-6, "pinocchio", _pgs),
    Peer("Siconos NSN_AC, 1e-10", "coulomb", 1e-10, "siconos", _nsn_ac),
    Peer("Siconos NSGS, 1e-10", "coulomb", 1e-10, "siconos", _nsgs),
    Peer("ours, 1e-6", "convex", 1e-6, "delassus_ros", ours),
    Peer("ours, 1e-10", "convex", 1e-10, "delassus_ros", ours),
    Peer("Pinocchio ADMM, 1e-6", "convex", 1e-6, "pinocchio", _admm),
    Peer("Clarabel, 1e-10", "convex", 1e-10, "clarabel", by_clarabel),
    Peer("daqp, 4 sides", "convex", 1e-10, "daqp", partial(by_daqp, sides=4)),
    Peer("daqp, 8 sides", "convex", 1e-10, "daqp", partial(by_daqp, sides=8)),
    Peer("ProxQP, 4 sides", "convex", 1e-10, "proxsuite", partial(by_proxqp, sides=4)),
)
"""Times are compared with ours of the same law and tolerance."""
