"""Task inertia while contacts hold, beside Pinocchio: singular and redundant contacts, too."""

from __future__ import annotations

import numpy as np
import pytest
import robots
from on_floats import solver_on_floats
from scipy.linalg import null_space
from small import feed, flat_foot

from delassus import (
    CenterOfMass,
    Contact,
    Problem,
    RelativeContact,
    Robot,
    Status,
)
from delassus.errors import InputError
from delassus.samples import random_inputs
from delassus.task_inertia import projection

OUTPUTS = ("J", "MinvJT", "M", "h", "JdotV", "a0", "qdd0")
SOLES = [
    Contact("left", "left_sole_link", "surface"),
    Contact("right", "right_sole_link", "surface"),
]
FEET = ("left", "right")
PELVIS = Contact("pelvis", "base_link", "surface")
HAND = Contact("hand", "gripper_left_base_link", "surface")
CASES = {
    "two soles": ((*SOLES, PELVIS), ("pelvis",), ("left", "right")),
    "one sole": ((*SOLES, PELVIS), ("pelvis",), ("right",)),
    "free": ((*SOLES, PELVIS), ("pelvis",), ()),
    "two tasks": ((*SOLES, PELVIS, HAND), ("hand", "pelvis"), ("left", "right")),
    "redundant points": (
        (*flat_foot(4, "left_sole_link"), SOLES[1], PELVIS), ("pelvis",),
        (*(f"left_sole_link.{i}" for i in range(4)), "right"),
    ),
    "a held task": (
        (*flat_foot(4, "left_sole_link"), SOLES[0], HAND), ("hand", "left"),
        tuple(f"left_sole_link.{i}" for i in range(4)),
    ),
}  # fmt: skip
SOME = [
    pytest.param(case, marks=[pytest.mark.slow] if case == "two tasks" else []) for case in CASES
]


def talos(contacts) -> Problem:
    # Pinocchio's h has no dampers.
    robot = Robot.from_urdf(robots.talos(), passive=False)
    return Problem(robot, contacts, outputs=OUTPUTS)


def inputs_of(problem: Problem, posture: str) -> dict:
    """Random motion in a random posture, or with stretched legs: the feet are singular."""
    inputs = random_inputs(problem, 4)
    if posture == "stretched":
        arms = [k for k, name in enumerate(problem.robot.joint_names) if "leg" in name]
        inputs["q"][arms] = 0.0
    return inputs


def relative(found, expected) -> float:
    return float(np.linalg.norm(found - expected) / max(np.linalg.norm(expected), 1e-3))


@pytest.mark.needs("pinocchio")
@pytest.mark.parametrize("posture", ["random", "stretched"])
@pytest.mark.parametrize("case", SOME)
def test_inverse_of_pinocchios_projected_dynamics(case: str, posture: str) -> None:
    from oracles.pinocchio_models import Peer

    contacts, task, given = CASES[case]
    problem = talos(contacts)
    inputs = inputs_of(problem, posture)
    theirs = Peer(problem).at(inputs)
    s = solver_on_floats(problem).solve(**inputs)
    t, c = s.rows(task), s.rows(given)
    M, J, JdotV, h = (theirs[name] for name in ("M", "J", "JdotV", "h"))
    Z = null_space(J[c], rcond=1e-9) if c else np.eye(len(M))
    response = Z @ np.linalg.solve(Z.T @ M @ Z, Z.T)
    G = J[t] @ response @ J[t].T
    found = s.task(task, given)
    assert relative(found.matrix, G) <= 1e-9
    assert found.structural_rank() == (6 if case == "a held task" else len(t))
    # The motion that keeps the contacts at rest, without and with a unit force on the task.
    moving = np.linalg.pinv(J[c], 1e-9) @ -JdotV[c] if c else np.zeros(len(M))
    ydd = moving + response @ (inputs["torques"] - h - M @ moving)
    assert relative(found.qdd0, ydd) <= 1e-8
    assert relative(found.a0, J[t] @ ydd + JdotV[t]) <= 1e-8
    force = np.linspace(-1.0, 1.0, len(t))
    under = found.accelerations(force)
    assert relative(under, ydd + response @ J[t].T @ force) <= 1e-8
    assert relative(J[c] @ under + JdotV[c], np.zeros(len(c))) <= 1e-6
    scales = found.scales()
    expected = np.linalg.pinv(G * np.outer(scales, scales), 1e-9, hermitian=True)
    expected *= np.outer(scales, scales)
    if posture == "random" or not given:
        inertia = found.inertia()
        assert relative(inertia, expected) <= 1e-9
        N = found.null_space()
        assert relative(N @ N, N) <= 1e-8
        assert np.abs(J[t] @ N).max() <= 1e-7 and np.abs(J[c] @ N).max(initial=0.0) <= 1e-7
        assert relative(J[t] @ found.jbar(), G @ expected) <= 1e-8
        still = s.task(task, given)
        bias = expected @ (G @ np.zeros(len(t)) - (J[t] @ (ydd - response @ inputs["torques"])
                           + JdotV[t]))  # fmt: skip
        assert relative(still.bias_force(), bias) <= 1e-8


@pytest.mark.parametrize("case", SOME)
def test_a_bound_solver_and_python_agree(case: str) -> None:
    contacts, task, given = CASES[case]
    problem = talos(contacts)
    solver, inputs = solver_on_floats(problem), inputs_of(problem, "random")
    bound = feed(solver.bind(), inputs)
    view = bound.task(task, given)
    bound.solve()
    found, expected = view.compute(), solver.solve(**inputs).task(task, given)
    assert view.status is Status.OK
    pairs = [
        (found.matrix, expected.matrix), (found.inertia, expected.inertia()),
        (found.jbar, expected.jbar()), (found.null_space, expected.null_space()),
        (found.bias_force, expected.bias_force()), (found.free_acceleration, expected.a0),
    ]  # fmt: skip
    for ours, theirs in pairs:
        assert ours is not None and relative(ours, theirs) <= 1e-9


def test_task_follows_active_contacts() -> None:
    problem = talos((*SOLES, PELVIS))
    solver, inputs = solver_on_floats(problem), inputs_of(problem, "random")
    bound = feed(solver.bind(), inputs)
    view = bound.task("pelvis", "right")
    bound.solve()
    both = view.compute().inertia.copy()
    bound.activate(("pelvis", "right"))
    bound.solve()
    assert relative(view.compute().inertia, both) <= 1e-12
    bound.activate(("right",))
    with pytest.raises(InputError, match="contact 'pelvis' is not active"):
        view.compute()
    bound.activate(("pelvis", "right"))
    bound.inputs["q"][0] = np.nan
    bound.solve()
    view.compute()
    assert view.status is Status.NOT_FINITE


def test_held_feet_make_the_pelvis_heavier() -> None:
    contacts = (*SOLES, Contact("pelvis", "base_link", "point"))
    problem = Problem(Robot.from_urdf(robots.talos()), contacts)
    bent = {
        f"leg_{side}_{i}_joint": angle
        for side in ("left", "right")
        for i, angle in ((3, -0.411354), (4, 0.859395), (5, -0.448041))
    }
    solver = solver_on_floats(problem)
    s = solver.solve(problem.robot.q(bent))
    free, held = (np.diag(s.task("pelvis", given).inertia()) for given in ((), ("left", "right")))
    mass = sum(body.inertia.mass for body in problem.robot.bodies)
    assert (held > free).all() and (free < mass).all()
    # Straight legs carry the pelvis, which hardly moves up or down; figures of the documentation.
    upright = {
        "arm_left_1_joint": 0.25847, "arm_left_2_joint": 0.173046, "arm_left_3_joint": -0.0002,
        "arm_left_4_joint": -0.525366, "arm_right_1_joint": -0.25847,
        "arm_right_2_joint": -0.173046, "arm_right_3_joint": 0.0002,
        "arm_right_4_joint": -0.525366, "torso_2_joint": 0.006761,
    }  # fmt: skip
    found = []
    for knee in (0.1, 0.18, 0.3):
        legs = {
            f"leg_{side}_{i}_joint": angle
            for side in FEET
            for i, angle in ((3, -knee / 2), (4, knee), (5, -knee / 2))
        }
        s = solver.solve(problem.robot.q({**upright, **legs}))
        tasks = (s.task("pelvis", given) for given in ((), FEET))
        found.append([task.effective_mass("pelvis", (0.0, 0.0, 1.0)) for task in tasks])
    assert np.round(found).tolist() == [[83.0, 405.0], [82.0, 196.0], [79.0, 116.0]]


def test_rows_of_several_links_as_tasks() -> None:
    """Centre of mass, and one hind foot relative to the other, while the forefeet hold."""
    import pinocchio as pin
    from oracles.pinocchio_models import Peer

    robot = Robot.from_urdf(robots.quadruped())
    held = [Contact(name, f"{name}_FOOT") for name in ("LF", "RF")]
    hind = [Contact(name, f"{name}_FOOT", "surface") for name in ("LH", "RH")]
    tasks = [CenterOfMass("com"), RelativeContact("feet", *(c.frame for c in hind), "surface")]
    problem = Problem(robot, [*held, *tasks])
    peer = Peer(Problem(robot, [*held, *hind]))
    inputs = random_inputs(problem, 4)
    rest = {name: np.zeros(6 + robot.nq) for name in ("rates", "torques")}
    theirs = peer.at({**inputs, **rest, "gravity": np.zeros(3)})
    # The base is at the origin: its axes are those of the world.
    q, *_ = peer.state({**inputs, **rest})
    J_com = pin.jacobianCenterOfMass(peer.model, peer.data, q)[:, peer.indices]
    pin.framesForwardKinematics(peer.model, peer.data, q)
    a, b = (peer.data.oMf[peer.model.getFrameId(f"contact {c.name}")] for c in hind)
    J_held, J_a, J_b = np.split(theirs["J"], [6, 12])
    J = np.vstack([J_com, a.actInv(b).action @ J_b - J_a])
    Z = null_space(J_held, rcond=1e-9)
    response = Z @ np.linalg.solve(Z.T @ theirs["M"] @ Z, Z.T)
    s = solver_on_floats(problem).solve(**inputs)
    for names, rows in ((("com",), J[:3]), (("feet",), J[3:]), (("com", "feet"), J)):
        G = rows @ response @ rows.T
        task = s.task(names, ("LF", "RF"))
        assert relative(task.matrix, G) <= 1e-9
        # Six joints of the hind legs move the one foot relative to the other in six directions.
        assert relative(task.inertia() @ G, np.eye(len(G))) <= 1e-8


def test_the_source_runs_as_python() -> None:
    random = np.random.default_rng(1)
    J = random.normal(size=(8, 10))
    J[6] = J[3] + J[4]  # a redundant row of the contacts
    G, rows, scales = (J @ J.T).ravel(), np.arange(8), random.uniform(0.5, 2.0, 8)
    held, L, V, order = np.zeros(9), np.zeros(25), np.zeros(15), np.zeros(5, np.int64)
    r = projection.hold(8, 3, 5, 5, rows, scales, G, held, L, V, order)
    c = np.arange(3, 8)
    M = J @ J.T
    expected = M[:3, :3] - M[:3, c] @ np.linalg.pinv(M[np.ix_(c, c)], 1e-10) @ M[c, :3]
    assert r == 4 and np.allclose(held.reshape(3, 3), expected, atol=1e-12)
