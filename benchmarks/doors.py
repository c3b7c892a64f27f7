"""G and its gradient by the door to JAX, beside frax, on one CPU in one run.

``python -m benchmarks.doors`` needs ``requirements/jax.txt``, and frax from PyPI; jaxsim needs a
Gazebo installation to read a URDF. The robot is the Panda that frax brings, its hand the contact,
N = 512 configurations: G (6, 6) in world axes, and the gradient of Σ W · G for constant W, both
under jit and vmap. frax has J and M, from which G = J M⁻¹ Jᵀ follows by a Cholesky factorisation.
Calls are interleaved, and the least time of each counts. With N = 4096 the gradient by frax does
not end on two cores with JAX 0.10, whether this package is imported or not.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_ENABLE_X64", "1")
flags = "--xla_cpu_multi_thread_eigen=false"
os.environ.setdefault("XLA_FLAGS", flags)

import frax  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

from delassus_ros import Contact, DelassusSolver, Problem, Robot, Transform  # noqa: E402
from delassus_ros.doors.jax import jax_function  # noqa: E402

COUNT, ROUNDS, JOINTS = 512, 200, 7
URDF = Path(frax.__file__).parent / "assets" / "franka_panda" / "panda.urdf"
Matrix = Callable[[Any], Any]


def dense(J: Any, M: Any) -> Any:
    """Return J M⁻¹ Jᵀ."""
    factor = jax.scipy.linalg.cho_factor(M)
    return J @ jax.scipy.linalg.cho_solve(factor, J.T)


def by_frax(robot: Any) -> Matrix:
    """Return G of the end effector by frax's J and M."""
    return lambda q: dense(robot.ee_jacobian(q), robot.mass_matrix(q))


def main() -> None:
    """Print the table."""
    robot = Robot.from_urdf(URDF, base="fixed")
    peer = frax.load_panda()
    at = Transform.from_xyz_rpy(np.array(peer.ee_offset)[:3, 3], (0, 0, 0))
    contact = Contact("hand", "panda_link7", "surface", placement=at)
    problem = Problem(robot, [contact], "world")
    W = jnp.array(np.random.default_rng(0).normal(size=(6, 6)))
    Q = jnp.array(np.random.default_rng(1).uniform(-1.5, 1.5, (COUNT, JOINTS)))
    peers: dict[str, Matrix] = {
        "delassus_ros": jax_function(problem),
        "frax": by_frax(peer),
    }
    calls: dict[tuple[str, str], Any] = {}
    for name, matrix in peers.items():
        calls[name, "G"] = jax.jit(jax.vmap(matrix))
        slope = jax.grad(lambda q, matrix=matrix: (W * matrix(q)).sum())
        calls[name, "gradient"] = jax.jit(jax.vmap(slope))
    first, best = {}, dict.fromkeys(calls, float("inf"))
    for key, call in calls.items():
        start = time.perf_counter()
        jax.block_until_ready(call(Q))
        first[key] = time.perf_counter() - start
        print(f"{' '.join(key)}: first call {first[key]:.1f} s", flush=True)
    for _ in range(ROUNDS):
        for key, call in calls.items():
            start = time.perf_counter()
            jax.block_until_ready(call(Q))
            best[key] = min(best[key], time.perf_counter() - start)
    expected = DelassusSolver(problem).solve_batch(np.array(Q)).matrix
    size = np.abs(expected).max()
    print("| | G, us each | gradient, us each | first calls, s | G differs by |")
    print("|---|---|---|---|---|")
    for name in peers:
        G = np.array(calls[name, "G"](Q))
        off = np.abs(G - expected).max() / size
        each = [1e6 * best[name, what] / COUNT for what in ("G", "gradient")]
        start = first[name, "G"] + first[name, "gradient"]
        print(f"| {name} | {each[0]:.2f} | {each[1]:.2f} | {start:.1f} | {off:.1e} |")


if __name__ == "__main__":
    main()
