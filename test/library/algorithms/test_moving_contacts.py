"""Moving contacts: the right matrix from every algorithm, and what it costs."""

from __future__ import annotations

import numpy as np
import pytest
import robots
from on_floats import solver_on_floats
from oracles import relative
from oracles.cases import feet
from robots import LEGS

from delassus import Contact, DelassusSolver, Problem, Robot, algorithms
from delassus.compiler.build import checked_positions
from delassus.compiler.ir.trace import trace
from delassus.compiler.passes.limbs import limb_groups
from delassus.compiler.passes.vectorize import vectorized
from delassus.testing.conformance import relative_error

TOLERANCE = 1e-10


@pytest.mark.needs("mujoco")
def test_contacts_of_mujoco_while_feet_roll() -> None:
    """Its constraint-space inertia, by one kernel for all places and by contacts fixed there."""
    import mujoco
    from oracles.mujoco_models import own_contacts, standing_quadruped

    model, data = standing_quadruped()
    robot = Robot.from_urdf(robots.quadruped())
    moving = [Contact(leg, f"{leg}_FOOT", "point", moving="pose") for leg in LEGS]
    solvers = {axes: DelassusSolver(Problem(robot, moving, axes)) for axes in ("contact", "world")}
    seen: dict[str, list[np.ndarray]] = {leg: [] for leg in LEGS}
    for step in range(5):
        data.ctrl[:] = np.array((0.0, 0.7, -1.4) * 4) + 0.03 * np.sin(2.0 * step + np.arange(12))
        for _ in range(100):
            mujoco.mj_step(model, data)
        mujoco.mj_forward(model, data)
        places, frames, expected = own_contacts(model, data)
        active = tuple(places)
        assert len(active) >= 2
        positions = {leg: place.translation for leg, place in places.items()}
        turns = {leg: place.quaternion() for leg, place in places.items()}
        for leg in active:
            seen[leg].append(positions[leg])
        q = np.array([data.joint(name).qpos[0] for name in robot.joint_names])
        solution = solvers["contact"].solve(
            q, active, contact_positions=positions, contact_orientations=turns
        )
        order = [leg for leg in LEGS if leg in active]
        rows = np.concatenate([3 * active.index(leg) + np.arange(3) for leg in order])
        expected = expected[np.ix_(rows, rows)]
        assert relative(solution.matrix, expected) < TOLERANCE
        w, *xyz = data.qpos[3:7]
        world_axes = solvers["world"].solve(q, active, [*xyz, w], positions).matrix
        T = np.zeros_like(expected)
        for k, leg in enumerate(order):
            T[3 * k : 3 * k + 3, 3 * k : 3 * k + 3] = frames[leg]
        assert relative(T @ world_axes @ T.T, expected) < TOLERANCE
        fixed = [Contact(leg, f"{leg}_FOOT", "point", places[leg]) for leg in order]
        problem = Problem(robot, fixed)
        G = solver_on_floats(problem).solve(q).matrix
        assert relative_error(problem, G, expected) < TOLERANCE
    rolled = [np.ptp(places, axis=0).max() for places in seen.values() if places]
    assert max(rolled) > 1e-4, "no foot rolled"


SLOW = pytest.param("elimination", marks=pytest.mark.slow)


@pytest.mark.parametrize("name", ["ltl", "kjr", "efpa", SLOW, "pv_osim", "pv_osimr"])
@pytest.mark.parametrize("generic", [False, True], ids=["specialised", "generic"])
def test_a_moving_contact_costs_its_own_rows_only(name: str, generic: bool) -> None:
    """Beside a contact that is fixed at no special place: the change of frame and a product."""

    def count(axes: str, moving: str, kind: str) -> int:
        problem = feet(axes, moving, kind)
        return trace(problem, algorithms.get(name), generic).operations.total

    for kind in ("point", "surface"):
        fixed = count("contact", "nothing", kind)
        # Per contact: R p + o (18), p × d of three axes (27), and what lay in a plane by design.
        assert count("contact", "position", kind) - fixed <= 4 * 80
        # Besides: the rotation of a quaternion (28), its product with the frame's (45), and rows
        # without a zero.
        assert count("contact", "pose", kind) - fixed <= 4 * 170
        # In world axes there are no contact axes to compute, so it may cost less.
        in_world = count("world", "nothing", kind)
        assert count("world", "position", kind) - in_world <= 4 * 18
        assert count("world", "pose", kind) - in_world <= 4 * 18


def test_a_moving_contact_along_its_frame_keeps_the_zeros_of_its_rows() -> None:
    robot = Robot.from_urdf(robots.quadruped())

    def count(moving: str) -> int:
        contacts = [Contact(leg, f"{leg}_FOOT", moving=moving) for leg in LEGS]
        return trace(Problem(robot, contacts), algorithms.get("pv_osimr")).operations.total

    assert count("position") - count("nothing") <= 4 * 20


@pytest.mark.parametrize(
    ("name", "specialised", "generic"),
    [
        ("ltl", 3532, 3510), ("kjr", 6726, 6818), ("efpa", 4119, 4119),
        ("pv_osim", 3147, 3147), ("pv_osimr", 3147, 3147),
    ],
)  # fmt: skip
def test_fixed_contacts_cost_what_they_did_before_there_were_moving_ones(
    name: str, specialised: int, generic: int
) -> None:
    robot = Robot.from_urdf(robots.quadruped())
    problem = Problem(robot, [Contact(leg, f"{leg}_FOOT") for leg in LEGS])
    algorithm = algorithms.get(name)
    assert trace(problem, algorithm).operations.total <= specialised
    assert trace(problem, algorithm, generic=True).operations.total <= generic


@pytest.mark.parametrize("axes", ["contact", "world"])
def test_limbs_with_moving_contacts_run_in_lanes(axes: str) -> None:
    problem = feet(axes, "pose")
    (group,) = limb_groups(problem)
    start = 12 if axes == "contact" else 16
    places = [{start + 3 * k, start + 3 * k + 2} for k in range(4)]
    assert all(any(place <= inputs for inputs in group.inputs) for place in places)
    if axes == "contact":
        assert sorted(len(inputs) for inputs in group.inputs) == [10] * 4
    program = vectorized(
        problem, trace(problem, algorithms.get("pv_osimr")), checked_positions(problem)
    )
    assert sum(i.kind == "mul" and i.width == 4 for i in program.instructions) > 200


def test_limbs_whose_contacts_move_differently_are_not_alike() -> None:
    robot = Robot.from_urdf(robots.quadruped())
    kinds = ("nothing", "position", "pose", "nothing")
    contacts = [Contact(leg, f"{leg}_FOOT", moving=m) for leg, m in zip(LEGS, kinds, strict=True)]
    groups = limb_groups(Problem(robot, contacts))
    assert max(len(group.inputs) for group in groups) == 2
