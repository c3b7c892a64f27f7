"""Errors of models without rotors, on a leg: ``python -m benchmarks.rotor_errors``.

The figure ``docs/rotors.png`` is written, and the tables of ``docs/rotors.md`` are printed; each
run gives the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from benchmarks import pages
from benchmarks.arguments import output_of
from delassus import Closure, Contact, Problem, Robot
from delassus.algorithms.dense import definition
from delassus.dynamics import Dynamics
from delassus.model.spatial import Array
from delassus.rbda.rotors import lock

DOCS = Path(__file__).resolve().parents[1] / "docs"
LEG = DOCS / "geared_leg.urdf"
JOINTS = ("hip_roll", "hip_pitch", "knee", "ankle")
MODELS = ("no rotors", "g²J")
TRANSMISSIONS = ("gear", "belt")
"""Of the ankle."""
SQUAT = np.linspace(0.05, 2.2, 44)
"""Knee angles of the range of motion [rad]; hip and ankle take half of it each."""
_SWING = 0.4
"""Period of the swing [s]."""


@dataclass(frozen=True)
class Models:
    """A leg, and what is made of it where its rotors are not modelled.

    Attributes
    ----------
    exact : with its rotors as bodies.
    approximate : by name of :data:`MODELS`, ordinary trees. Rotors are locked to their links;
        then nothing is added, or the sum of g²J over the rotors that a joint turns.
    """

    exact: Robot
    approximate: dict[str, Robot]


def leg(transmission: str) -> str:
    """Return the URDF of the documentation's leg.

    Parameters
    ----------
    transmission : of the ankle: ``"gear"``, or ``"belt"`` from a motor on the thigh, whose rotor
        then turns with knee and ankle together.
    """
    text = LEG.read_text(encoding="utf-8")
    if transmission == "belt":
        on_shank = '<parent link="shank"/>\n    <child link="ankle_rotor"/>'
        if on_shank not in text:
            raise ValueError(f"{LEG.name} has no ankle_rotor on the shank")
        text = text.replace(on_shank, on_shank.replace("shank", "thigh"))
    return text


@cache
def models(transmission: str) -> Models:
    """Return the leg of the documentation."""
    exact = Robot.from_urdf(leg(transmission), "fixed")
    usual = lock(exact).robot
    none = usual.with_armature(dict.fromkeys(JOINTS, 0.0))
    return Models(exact, dict(zip(MODELS, (none, usual), strict=True)))


def matrix_errors(transmission: str) -> dict[str, Array]:
    """Return ‖ΔG‖/‖G‖ (Frobenius) of the sole over the range of motion, by model."""
    found = models(transmission)
    contacts, closure = [Contact("sole", "sole")], Closure(found.exact)
    exact = Problem(found.exact, contacts)
    errors: dict[str, list[float]] = {name: [] for name in MODELS}
    for knee in SQUAT:
        posture = dict(zip(JOINTS, (0.0, -knee / 2, knee, -knee / 2), strict=True))
        G = definition(exact, {"q": closure.solve(posture).q})
        for name, tree in found.approximate.items():
            q = np.array([posture[joint] for joint in tree.joint_names])
            other = definition(Problem(tree, contacts), {"q": q})
            errors[name].append(float(np.linalg.norm(other - G) / np.linalg.norm(G)))
    return {name: np.array(values) for name, values in errors.items()}


def swing(count: int = 200) -> tuple[Array, Array, Array, Array]:
    """Return times (count,) [s] and positions, rates and accelerations (count, 4) of a swing."""
    t = np.linspace(0.0, _SWING, count)
    w = 2 * np.pi / _SWING
    middle = np.array([0.0, -0.4, 1.0, -0.4])
    reach = np.array([0.05, 0.5, 0.6, 0.3])
    phase = w * t[:, None] + np.array([0.0, 0.0, 1.2, 2.2])
    return (
        t,
        middle + reach * np.sin(phase),
        w * reach * np.cos(phase),
        -(w**2) * reach * np.sin(phase),
    )


def torques(transmission: str) -> tuple[Array, dict[str, Array]]:
    """Return the joint torques (samples, 4) of the swing: exact, and by model [N·m]."""
    found = models(transmission)
    closure = Closure(found.exact)
    approximate = {
        name: _inverse(tree, partial(_listed, tree)) for name, tree in found.approximate.items()
    }
    return _inverse(found.exact, lambda named: closure.solve(named).q), approximate


def _listed(tree: Robot, named: dict[str, float]) -> ArrayLike:
    return [named[name] for name in tree.joint_names]


def _inverse(robot: Robot, configuration: Callable[[dict[str, float]], ArrayLike]) -> Array:
    dynamics = Dynamics(robot)
    columns = [JOINTS.index(name) for name in dynamics.joints]
    result = np.zeros((len(swing()[0]), len(JOINTS)))
    for row, q, v, a in zip(result, *swing()[1:], strict=True):
        named = dict(zip(JOINTS, q.tolist(), strict=True))
        row[columns] = dynamics.inverse(configuration(named), v[columns], a[columns])
    return result


def table() -> str:
    """Return the numbers of the documentation as two Markdown tables."""
    rows: list[list[str]] = []
    middle = len(SQUAT) // 2
    for transmission in TRANSMISSIONS:
        for name, errors in matrix_errors(transmission).items():
            cells = [_percent(errors[k]) for k in (0, middle, -1)]
            rows.append([f"ankle by {transmission}: {name}", *cells])
    errors_of_G = pages.table(["error of G at the sole", "straight", "half", "squat"], rows)
    rows = []
    for transmission in TRANSMISSIONS:
        exact, others = torques(transmission)
        largest = np.abs(exact).max(axis=0)
        cells = [f"{value:.3g}" for value in largest]
        rows.append([f"ankle by {transmission}: largest", *cells])
        for name, approximate in others.items():
            rms = np.sqrt(np.mean((approximate - exact) ** 2, axis=0))
            cells = [
                f"{value:.2g} ({_percent(value / most)})" if value > 1e-9 else "0"
                for value, most in zip(rms, largest, strict=True)
            ]
            rows.append([f"ankle by {transmission}: {name}, rms error", *cells])
    return f"{errors_of_G}\n\n{pages.table(['torque in a swing [N·m]', *JOINTS], rows)}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share > 0.995 else f"{100 * share:.2g} %"


def draw(path: Path) -> None:
    """Draw the error of the matrix over the range of motion, and the ankle's torque."""
    from benchmarks import style
    from delassus.drawing.figures import SERIES, save_for_page

    figure, (left, right) = style.figure(1, 2, (9.5, 3.8))
    styles = list(SERIES)
    for transmission in TRANSMISSIONS:
        for name, errors in matrix_errors(transmission).items():
            # Curves of both transmissions are close: those by gear have marks.
            style = styles[1 + MODELS.index(name)]
            style["marker"] = "o" if transmission == "gear" else ""
            left.plot(
                np.degrees(SQUAT), 100 * errors, **style, markevery=6, ms=4,
                label=f"{name}, ankle by {transmission}",
            )  # fmt: skip
    left.set_yscale("log")
    left.set_xlabel("knee angle of a squat [°]")
    left.set_ylabel("error of G at the sole [%]")
    left.legend(fontsize=8)
    exact, others = torques("belt")
    ankle, t = JOINTS.index("ankle"), swing()[0]
    right.set_prop_cycle(SERIES)
    for name, curve in {"exact": exact, **others}.items():
        right.plot(1e3 * t, curve[:, ankle], marker="", label=name)
    right.set_xlabel("time in a swing of the leg, ankle by belt [ms]")
    right.set_ylabel("ankle torque [N·m]")
    right.legend(fontsize=8)
    save_for_page(figure, path)


if __name__ == "__main__":
    draw(output_of("rotor_errors", __doc__, DOCS / "rotors.png"))
    print(table())
