"""Every function and method of dynamics: bound, in batches, under external wrenches."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import robots
from cluster_robots import coupled
from linkages import geared_chain
from oracles import GRAVITY, paper_library

from delassus import Robot, Transform
from delassus.dynamics import FUNCTIONS, Dynamics
from delassus.dynamics.derivatives import derivatives_of_forward, derivatives_of_inverse
from delassus.dynamics.matrices import coriolis
from delassus.dynamics.methods import FORWARD, INVERSE
from delassus.dynamics.regressor import inertial_parameters, regressor
from delassus.errors import InputError
from delassus.model import Frame
from delassus.rbda.robot_tree import RobotTree
from delassus.rbda.trees import spanning_tree
from delassus.scalars.ports import Status

METHODS = [
    *(("inverse", method) for method in INVERSE),
    *(("forward", method) for method in FORWARD),
    *((function, "") for function in FUNCTIONS if function not in ("inverse", "forward")),
]
SMALL = 256
"""Bytes of a call's passing integers; an array takes more."""


def close(value: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    assert np.linalg.norm(value - expected) <= tolerance * np.linalg.norm(expected)


def geared() -> Robot:
    """Return two links with a rotor each, and a frame on the last link."""
    tip = Frame("tip", 2, Transform.from_xyz_rpy((0.1, 0.3, -0.2), (0.5, 0.0, 0.2)))
    return geared_chain(2, floating=False).replaced(frames=(tip,))


@pytest.fixture(scope="module", name="dynamics")
def make_dynamics() -> Dynamics:
    return Dynamics(geared(), wrenches=["tip"])


@pytest.fixture(scope="module", name="inputs")
def make_inputs(dynamics: Dynamics) -> dict[str, np.ndarray]:
    """Return two states of every input."""
    rng = np.random.default_rng(0)
    robot = geared()
    found = {
        name: rng.normal(size=(2, dynamics.size)) for name in ("rates", "accelerations", "torques")
    }
    q = [coupled(robot, rng.uniform(-1, 1, robot.nq)) for _ in range(2)]
    wrenches = rng.normal(size=(2, 1, 6))
    return found | {"q": np.array(q), "gravity": rng.normal(size=(2, 3)), "wrenches": wrenches}


@pytest.mark.parametrize(("function", "method"), METHODS)
def test_bound_calls_allocate_nothing_and_equal_calls_and_batches(
    function: str, method: str, dynamics: Dynamics, inputs: dict[str, np.ndarray]
) -> None:
    bound = dynamics.bind(function, method)
    assert np.isnan(bound.result).all()
    for name, array in bound.inputs.items():
        # An input that was never written is none.
        assert bound() is Status.NOT_FINITE and np.isnan(bound.result).all()
        array[...] = inputs[name][1]
    assert bound() is Status.OK
    given = {name: inputs[name][1] for name in bound.inputs}
    chosen = {"method": method} if method else {}
    called = getattr(dynamics, function)(**given, **chosen)
    assert np.ravel(called).tobytes() == bound.result.tobytes()
    arrays = [inputs[name] for name in bound.inputs]
    many, statuses = dynamics.batch(function, *arrays, method=method)
    assert statuses.tolist() == [Status.OK] * 2
    close(many[1], bound.result, 1e-12)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        bound()
        now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert now == before
    assert peak - before <= SMALL


def test_hybrid_dynamics_are_bound_and_batched_for_their_joints(
    dynamics: Dynamics, inputs: dict[str, np.ndarray]
) -> None:
    joints = ["link0"]
    bound = dynamics.bind("hybrid", accelerated=joints)
    given = {**inputs, "known": inputs["torques"]}
    for name, array in bound.inputs.items():
        array[...] = given[name][1]
    assert bound() is Status.OK
    q, rates, known, gravity, wrenches = (given[name][1] for name in bound.inputs)
    called = dynamics.hybrid(q, rates, known, joints, gravity, wrenches)
    assert called.tobytes() == bound.result.tobytes()
    arrays = [given[name] for name in bound.inputs]
    many, statuses = dynamics.batch("hybrid", *arrays, accelerated=joints)
    assert statuses.tolist() == [Status.OK] * 2
    close(many[1], called, 1e-12)
    with pytest.raises(InputError, match="accelerated joints are for 'hybrid' alone"):
        dynamics.bind("inverse", accelerated=joints)


@pytest.mark.parametrize(("function", "method"), METHODS[: len(INVERSE) + len(FORWARD)])
def test_wrenches_act_by_the_jacobian_of_their_frame(
    function: str, method: str, dynamics: Dynamics, inputs: dict[str, np.ndarray]
) -> None:
    """All methods have the same J: gears leave the frame's link where it is."""
    state = {name: values[0] for name, values in inputs.items()}
    wrench = state["wrenches"]
    q, rates, gravity = state["q"], state["rates"], state["gravity"]
    units = [np.eye(6)[k : k + 1] for k in range(6)]
    still = np.zeros(dynamics.size)
    at_rest = [
        dynamics.inverse(q, still, still, np.zeros(3), unit, method="projected") for unit in units
    ]
    pushed = np.array(at_rest).T @ wrench[0]
    if function == "inverse":
        ydd = state["accelerations"]
        loaded, free = (
            dynamics.inverse(q, rates, ydd, gravity, w, method=method) for w in (wrench, None)
        )
        close(loaded - free, pushed, 1e-10)
    else:
        torques = state["torques"]
        loaded = dynamics.forward(q, rates, torques, gravity, wrench, method=method)
        same = dynamics.forward(q, rates, torques - pushed, gravity, method=method)
        close(loaded, same, 1e-10)


@pytest.mark.parametrize("base", ["floating", "fixed"])
def test_coriolis_matrices_and_regressors_of_pinocchio(base: str) -> None:
    """C is not unique, C ẏ is; of the regressor the torques of each body.

    Pinocchio 4.1.0's Coriolis matrix of a robot with prismatic joints contradicts its own
    nonLinearEffects; the quadruped has none.
    """
    import pinocchio as pin
    from oracles.pinocchio_models import PinocchioDynamics

    robot = Robot.from_urdf(robots.quadruped(), base=base)
    rng = np.random.default_rng(1)
    q = rng.uniform(-1, 1, robot.nq)
    rates, ydd = rng.normal(size=(2, robot.nv))
    peer = PinocchioDynamics(robot, q)
    model, data, at = peer.model, peer.data, peer.q
    tree = RobotTree(robot, build=lambda problem: spanning_tree(problem, regrouped=False))
    x = {
        "q": q.tolist(), "rates": rates.tolist(), "accelerations": ydd.tolist(),
        "gravity": GRAVITY.tolist(),
    }  # fmt: skip
    C = np.array(coriolis(tree, x)).reshape(robot.nv, -1)
    close(C @ rates, pin.computeCoriolisMatrix(model, data, at, rates) @ rates, 1e-10)
    Y = pin.computeJointTorqueRegressor(model, data, at, rates, ydd)
    own = np.array(regressor(tree, x)).reshape(robot.nv, -1)
    # Bodies have other axes in Pinocchio's model, which begins with the first joint that moves.
    inertias = [inertia.toDynamicParameters() for inertia in list(model.inertias)[1:]]
    pi = inertial_parameters(robot).reshape(-1, 10)
    for body, theirs in enumerate(inertias):
        place = slice(10 * body, 10 * body + 10)
        close(own[:, place] @ pi[body], Y[:, place] @ theirs, 1e-10)


@pytest.mark.parametrize("name", ["mini_cheetah_1ee", "chain_PBT_4", "tello_with_arms_1ee"])
def test_mass_matrices_are_those_of_the_papers_library(name: str) -> None:
    """As the derivative of torques in ÿ, and inverse, in the library's independent rates."""
    content = paper_library.data(name)
    for state in paper_library.states(name)[:2]:
        problem = paper_library.problem_of(name, state)
        tree = RobotTree(problem.robot)
        n = tree.size
        rng = np.random.default_rng(state)
        x = {
            "q": paper_library.positions(name, state).tolist(), "rates": [0.0] * n,
            "accelerations": rng.normal(size=n).tolist(), "gravity": GRAVITY.tolist(),
            "torques": rng.normal(size=n).tolist(),
        }  # fmt: skip
        expected = np.array(content["states"][state]["M_projected"], float)
        G = np.array(content["states"][state]["G"], float)
        to_ours = rates_of_library(content, tree, G)
        M = np.array(derivatives_of_inverse(tree, x)).reshape(3, n, n)[2]
        close(to_ours.T @ M @ to_ours, expected, 1e-9)
        response = np.array(derivatives_of_forward(tree, x)).reshape(3, n, n)[2]
        close(response @ M, np.eye(n), 1e-8)


def rates_of_library(content: dict, tree: RobotTree, G: np.ndarray) -> np.ndarray:
    """Return ẏ of ours per rate of the library: rows of its G, a twist linear first."""
    bodies = {body["name"]: body for body in content["bodies"]}
    rows: list[int] = []
    for name in tree.joints:
        first, count = bodies[name]["v_index"], bodies[name]["nv"]
        rows += [*range(first + 3, first + 6), *range(first, first + 3)] if count == 6 else [first]
    return G[rows]
