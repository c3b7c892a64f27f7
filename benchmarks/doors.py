"""G and its gradient by the door to JAX, beside frax and Brax, on one CPU in one run.

``python -m benchmarks.doors`` needs ``requirements/jax.txt``, and frax and brax from PyPI; jaxsim
needs a Gazebo installation to read a URDF. The robot is the Panda that frax brings, its hand the
contact, N = 512 configurations: G (6, 6) in world axes, and the gradient of Σ W · G for constant
W, both under jit and vmap. The peers have J and M, from which G = J M⁻¹ Jᵀ follows by a Cholesky
factorisation. Brax takes a model of MuJoCo, which drops the inertias of links without mass: its G
is compared with G of the URDF without these inertias. Contenders are in turns, and the least time
of each counts. With N = 4096 the gradient by frax does not end on two cores with JAX 0.10, whether
this package is imported or not.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_ENABLE_X64", "1")
flags = "--xla_cpu_multi_thread_eigen=false"
os.environ.setdefault("XLA_FLAGS", flags)

import brax.generalized.constraint  # noqa: E402
import brax.generalized.dynamics  # noqa: E402
import brax.generalized.mass  # noqa: E402
import brax.io.mjcf  # noqa: E402
import brax.kinematics  # noqa: E402
import frax  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import mujoco  # noqa: E402
import numpy as np  # noqa: E402
from brax.generalized.base import State  # noqa: E402

from benchmarks import timing  # noqa: E402
from benchmarks.pages import table  # noqa: E402
from delassus import Contact, DelassusSolver, Problem, Robot, Transform  # noqa: E402
from delassus.doors.jax import jax_function  # noqa: E402

COUNT, SECONDS, JOINTS = 512, 2.0, 7
URDF = Path(frax.__file__).parent / "assets" / "franka_panda" / "panda.urdf"
LINK = "panda_link7"
Matrix = Callable[[Any], Any]


def dense(J: Any, M: Any) -> Any:
    """Return J M⁻¹ Jᵀ."""
    factor = jax.scipy.linalg.cho_factor(M)
    return J @ jax.scipy.linalg.cho_solve(factor, J.T)


def by_frax(robot: Any) -> Matrix:
    """Return G of the end effector by frax's J and M."""
    return lambda q: dense(robot.ee_jacobian(q), robot.mass_matrix(q))


def by_brax(model: Any, at: Any) -> Matrix:
    """Return G of a point of the last link by Brax's J and M."""
    system = brax.io.mjcf.load_model(model)
    link = system.link_names.index(LINK)

    def matrix(q: Any) -> Any:
        rest = jnp.zeros_like(q)
        state = State.init(q, rest, *brax.kinematics.forward(system, q, rest))
        state = brax.generalized.dynamics.transform_com(system, state)
        point = state.x.pos[link] + brax.math.rotate(jnp.array(at), state.x.rot[link])
        columns = brax.generalized.constraint.point_jacobian(
            system, state.root_com, state.cdof, point, jnp.array(link)
        )
        J = jnp.concatenate([columns.vel, columns.ang], axis=1).T
        return dense(J, brax.generalized.mass.matrix(system, state))

    return matrix


def without_massless_inertias(urdf: str) -> str:
    """Return a URDF without shapes, and without inertias of links that have no mass."""
    urdf = re.sub(r"<(visual|collision)\b.*?</\1>", "", urdf, flags=re.DOTALL)
    return re.sub(r'<inertial>(?:(?!</inertial>).)*<mass value="0.0"/>.*?</inertial>', "", urdf,
                  flags=re.DOTALL)  # fmt: skip


def matrix_problem(urdf: str, at: Any) -> Problem:
    """Return the problem of the hand in world axes."""
    robot = Robot.from_urdf(urdf.encode(), base="fixed")
    place = Transform.from_xyz_rpy(at, (0, 0, 0))
    return Problem(robot, [Contact("hand", LINK, "surface", placement=place)], "world")


def main() -> None:
    """Print the table."""
    peer = frax.load_panda()
    at = np.array(peer.ee_offset)[:3, 3]
    text = URDF.read_text(encoding="utf-8")
    simple = without_massless_inertias(text)
    problem, other = matrix_problem(text, at), matrix_problem(simple, at)
    model = mujoco.MjModel.from_xml_string(simple)
    W = jnp.array(np.random.default_rng(0).normal(size=(6, 6)))
    Q = jnp.array(np.random.default_rng(1).uniform(-1.5, 1.5, (COUNT, JOINTS)))
    peers: dict[str, tuple[Matrix, Problem]] = {
        "delassus_ros": (jax_function(problem), problem),
        "frax": (by_frax(peer), problem),
        "Brax": (by_brax(model, at), other),
    }
    calls: dict[str, Any] = {}
    for name, (matrix, _) in peers.items():
        calls[f"{name} G"] = jax.jit(jax.vmap(matrix))
        slope = jax.grad(lambda q, matrix=matrix: (W * matrix(q)).sum())
        calls[f"{name} gradient"] = jax.jit(jax.vmap(slope))
    first = {}
    for key, call in calls.items():
        start = time.perf_counter()
        jax.block_until_ready(call(Q))
        first[key] = time.perf_counter() - start
        print(f"{key}: first call {first[key]:.1f} s", flush=True)
    samplers = {
        key: timing.once(lambda call=call: jax.block_until_ready(call(Q)), COUNT)
        for key, call in calls.items()
    }
    times = timing.measure(samplers, SECONDS)
    rows = []
    for name, (_, same) in peers.items():
        expected = DelassusSolver(same).solve_batch(np.array(Q)).matrix
        off = np.abs(np.array(calls[f"{name} G"](Q)) - expected).max() / np.abs(expected).max()
        both = [f"{name} {what}" for what in ("G", "gradient")]
        each = [f"{1e6 * times[key].minimum:.2f}" for key in both]
        rows.append([name, *each, f"{sum(first[key] for key in both):.1f}", f"{off:.1e}"])
    print(table(["", "G, us each", "gradient, us each", "first calls, s", "G differs by"], rows))


if __name__ == "__main__":
    main()
