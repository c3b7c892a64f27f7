"""Rows of several links beside T G Tᵀ, the definition, Pinocchio and 50 digits."""

from __future__ import annotations

import copy
import pickle

import mpmath
import numpy as np
import pinocchio as pin
import pytest
import robots
from on_floats import flat, solver_on_floats
from oracles import relative as error
from oracles import symmetric
from oracles.cases import on_a_fixed_base, several_links, whole_robot
from oracles.pinocchio_models import Peer
from seeds import but_slow, seeds

from delassus import (
    CenterOfMass,
    CentroidalMomentum,
    Contact,
    ContactSet,
    DelassusSolver,
    Problem,
    RelativeContact,
    Robot,
    Transform,
    WeightedSum,
    algorithms,
)
from delassus.algorithms.dense import definition
from delassus.algorithms.registry import evaluate
from delassus.closure import Closure
from delassus.closure.samples import closed_inputs
from delassus.compiler.ir.trace import trace
from delassus.errors import AlgorithmError, ContactError
from delassus.model import WORLD, Body, Frame, Joint, JointKind
from delassus.model.clusters import with_row_loops
from delassus.model.constraints import Loop, LoopKind
from delassus.problem import AXES, Axes
from delassus.rbda.tangents import along
from delassus.robots.built_in import demo_urdf
from delassus.samples import random_inputs
from delassus.testing import mpmath_numbers  # noqa: F401  (registers mpmath's numbers)
from delassus.testing.random_trees import (
    random_inertia,
    random_robot,
)

TOLERANCE = 1e-10


def test_a_relative_contact_is_the_difference_of_two_contacts() -> None:
    """T G Tᵀ of surfaces on both frames; linear rows would need a common origin."""
    robot = Robot.from_urdf(robots.quadruped())
    feet = ("LF_FOOT", "RH_FOOT")
    problem = Problem(robot, [Contact(foot, foot, "surface") for foot in feet], "world")
    given = random_inputs(problem, 5)
    G = solver_on_floats(problem).solve(**given).matrix
    relative = Problem(robot, [RelativeContact("r", *feet, "surface")], "world")
    found = solver_on_floats(relative, "auto").solve(**given).matrix
    T = np.hstack([-np.eye(6), np.eye(6)])[3:]
    assert error(found[3:, 3:], T @ G @ T.T) < 1e-12


def pair(axes: Axes = "contact") -> tuple[pin.Model, Problem, int, int]:
    """Return the quadruped for Pinocchio, and the problem of a foot relative to another."""
    robot = Robot.from_urdf(robots.quadruped())
    model = pin.buildModelFromUrdf(str(robots.quadruped()), pin.JointModelFreeFlyer())
    problem = Problem(robot, [RelativeContact("r", "LF_FOOT", "RH_FOOT", "surface")], axes)
    return model, problem, model.getFrameId("LF_FOOT"), model.getFrameId("RH_FOOT")


def test_pinocchios_constraint_between_two_joints() -> None:
    model, problem, a, b = pair()
    data, rng = model.createData(), np.random.default_rng(1)
    solver = solver_on_floats(problem)
    frames = [model.frames[k] for k in (a, b)]
    constraint = pin.RigidConstraintModel(
        pin.ContactType.CONTACT_6D, model, frames[0].parentJoint, frames[0].placement,
        frames[1].parentJoint, frames[1].placement, pin.ReferenceFrame.LOCAL,
    )  # fmt: skip
    for _ in range(4):
        state = pin.neutral(model)
        state[7:] = rng.uniform(-1.0, 1.0, model.nq - 7)
        q = [state[model.joints[model.getJointId(n)].idx_q] for n in problem.robot.joint_names]
        of_constraint, rest = constraint.createData(), np.zeros(model.nv)
        models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
        models.append(constraint)
        datas.append(of_constraint)
        pin.initConstraintDynamics(model, data, models, datas)
        # This call places the frames of the constraint.
        pin.constraintDynamics(model, data, state, rest, rest, models, datas)
        of_constraint = datas[0]
        J = pin.getConstraintJacobian(model, data, constraint, of_constraint)
        M = symmetric(pin.crba(model, data, state))
        expected = J @ np.linalg.solve(M, J.T)
        assert error(solver.solve(q).matrix, expected) < TOLERANCE


@pytest.mark.parametrize("seed", seeds(20, every=20))
def test_50_digits(seed: int) -> None:
    make = several_links if seed % 3 else whole_robot
    problem = make(seed, AXES[seed % 2])
    inputs = flat(random_inputs(problem, 1))
    x = {name: [mpmath.mpf(v) for v in values] for name, values in inputs.items()}
    with mpmath.workdps(50):
        found, expected = (
            mpmath.matrix(algorithms.get(name).evaluate(problem, x)["G"])
            for name in ("pv_osimr", "dense")
        )
        assert mpmath.mnorm(found - expected) < 1e-12 * mpmath.mnorm(expected)
    on_floats = algorithms.get("auto").evaluate(problem, inputs)["G"]
    assert error(on_floats, [[float(v) for v in row] for row in expected.tolist()]) < TOLERANCE


def derivative(problem: Problem, x: dict[str, list[float]], name: str) -> np.ndarray:
    """Return the derivative of an output along the rates, by central differences."""
    step, change = 1e-6, along(problem, x, x["rates"])
    alone = Problem(problem.robot, problem.contacts, problem.axes, [name])

    def moved(by: float) -> np.ndarray:
        there = {port: list(values) for port, values in x.items()}
        for (port, i), rate in change.items():
            there[port][i] += by * rate
        return np.array(evaluate(alone, algorithms.get("ltl"), there)[name])

    return (moved(step) - moved(-step)) / (2 * step)


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("seed", range(3))
def test_the_bias_is_the_derivative_of_the_rows(seed: int, axes: Axes) -> None:
    problem = several_links(seed, axes, outputs=("G", "J", "JdotV", "a0", "qdd0"))
    x = flat(random_inputs(problem, seed))
    expected = derivative(problem, x, "J") @ x["rates"]
    found = {k: np.array(v) for k, v in evaluate(problem, algorithms.get("ltl"), x).items()}
    assert np.abs(found["JdotV"] - expected).max() < 1e-7 * np.abs(expected).max()
    assert error(found["a0"], found["J"] @ found["qdd0"] + found["JdotV"]) < TOLERANCE
    assert error(found["v"], found["J"] @ x["rates"]) < TOLERANCE


def test_a_weighted_sum_is_the_sum_of_contacts() -> None:
    robot = Robot.from_urdf(robots.quadruped())
    weights = {"LF_FOOT": 0.25, "RH_FOOT": -2.0, "LH_FOOT": 0.5}
    problem = Problem(robot, [Contact(foot, foot, "surface") for foot in weights], "world")
    given = random_inputs(problem, 5)
    G = solver_on_floats(problem).solve(**given).matrix
    total = Problem(robot, [WeightedSum("s", weights, "surface")], "world")
    T = np.hstack([weight * np.eye(6) for weight in weights.values()])
    found = solver_on_floats(total, "auto").solve(**given).matrix
    assert error(found, T @ G @ T.T) < 1e-12
    # In the axes of the first foot the matrix is turned.
    turned = Problem(robot, [WeightedSum("s", weights, "surface")])
    in_foot = solver_on_floats(turned, "auto").solve(given["q"]).matrix
    for block in (slice(0, 3), slice(3, 6)):
        expected = np.linalg.eigvalsh((T @ G @ T.T)[block, block])
        assert error(np.linalg.eigvalsh(in_foot[block, block]), expected) < 1e-12


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"LF_FOOT": 1.0}, "two or more frames"),
        ("LF_FOOT", "two or more frames"),
        ({"LF_FOOT": 1.0, "RF_FOOT": 0.0}, "weight of frame 'RF_FOOT' is 0"),
        ({"LF_FOOT": np.nan, "RF_FOOT": 1.0}, "weight of frame 'LF_FOOT' is nan"),
        ({"LF_FOOT": "1", "RF_FOOT": 1.0}, "contact 's': weight of frame 'LF_FOOT'"),
        ({"LF_FOOT": 1.0, 3: 1.0}, "contact 's': a frame is 3"),
    ],
)
def test_a_weighted_sum_is_refused(weights: object, message: str) -> None:
    with pytest.raises(ContactError, match=message):
        WeightedSum("s", weights)


def test_contacts_of_several_links_are_copied_and_pickled() -> None:
    """Nodes build kernels in another process."""
    robot = Robot.from_urdf(robots.quadruped())
    contacts = [
        WeightedSum("sum", {"LF_FOOT": 0.5, "RF_FOOT": 0.5}),
        RelativeContact("r", "LF_FOOT", "RF_FOOT"),
        CenterOfMass("com"),
        CentroidalMomentum("momentum"),
    ]
    problem = Problem(robot, contacts)
    for same in (pickle.loads(pickle.dumps(problem)), copy.deepcopy(problem)):
        assert same == problem
        assert [c.kind_name for c in same.contacts] == [c.kind_name for c in contacts]


def test_rows_of_loops_keep_their_axes() -> None:
    """Two rows of a planar loop in world axes would be one where its plane stands upright."""
    joints = [Joint("root", JointKind.ROOT, WORLD)]
    bar = Transform.from_xyz_rpy((0.3, 0.0, 0.0), (0.0, 0.0, 0.0))
    for k, parent in enumerate((0, 1, 0)):
        side = Transform.from_xyz_rpy((0.0, 0.3 * (k == 2), -0.4), (0.0, 0.0, 0.0))
        joints.append(Joint(f"bar{k}", JointKind.REVOLUTE, parent, bar if parent else side))
    rng = np.random.default_rng(0)
    bodies = [Body(joint.name, random_inertia(rng)) for joint in joints]
    tip = Transform.from_xyz_rpy((0.35, 0.0, 0.0), (0.0, 0.0, 0.0))
    loops = [Loop("four_bar", LoopKind.HINGE, 2, 3, bar, tip)]
    robot = Robot("bars", joints, bodies, [Frame("coupler", 2, bar)], loops=loops)
    contacts = [Contact("c", "coupler", "surface")]
    by_rows = Problem(with_row_loops(robot), contacts, "world")
    clusters = Problem(robot, contacts, "world")
    q = Closure(robot).solve({"bar0": 0.4}).q
    upright = [np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)]
    expected = solver_on_floats(clusters).solve(q, base_orientation=upright).matrix
    for name in ("pv_osimr", "dense"):
        found = solver_on_floats(by_rows, name).solve(q, base_orientation=upright).matrix
        assert error(found, expected) < 1e-9


def test_a_frame_of_the_world_makes_the_rows_of_a_contact() -> None:
    robot = Robot.from_urdf(robots.quadruped(), base="fixed")
    name = next(frame.name for frame in robot.frames.values() if frame.body < 0)
    relative = Problem(robot, [RelativeContact("r", name, "LF_FOOT", "surface")])
    q = random_inputs(relative, 2)["q"]
    found = solver_on_floats(relative).solve(q).matrix
    contact = Problem(robot, [Contact("c", "LF_FOOT", "surface")], "world")
    expected = solver_on_floats(contact).solve(q).matrix
    assert error(found[3:, 3:], expected[3:, 3:]) < 1e-12
    turned = Transform.from_xyz_rpy((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
    for axes in AXES:
        there = Problem(
            robot, [RelativeContact("r", name, "LF_FOOT", "surface", turned)], axes,
            ["J", "JdotV"],
        )  # fmt: skip
        x = flat(random_inputs(there, 2))
        dense = algorithms.get("dense").evaluate(there, x)["G"]
        assert error(algorithms.get("pv_osimr").evaluate(there, x)["G"], dense) < 1e-12
        bias = evaluate(there, algorithms.get("pv_osimr"), x)["JdotV"]
        assert error(bias, derivative(there, x, "J") @ x["rates"]) < 1e-7
    swapped = Problem(robot, [RelativeContact("r", "LF_FOOT", name, "surface")])
    dense = algorithms.get("dense").evaluate(swapped, {"q": q.tolist()})["G"]
    assert error(solver_on_floats(swapped).solve(q).matrix, dense) < 1e-12


def arms(links: int) -> Problem:
    """Return two arms of as many links on a floating trunk, tip relative to tip."""
    rng = np.random.default_rng(0)
    robot = random_robot(rng, (JointKind.REVOLUTE,), largest=3, floating=True)
    joints = [robot.joints[0]]
    for k in range(2 * links):
        place = Transform.from_xyz_rpy((0.2, 0.1, 0.3), (0.3, -0.2, 0.9))
        parent = len(joints) - 1 if k % links else 0
        joints.append(type(joints[0])(f"j{k}", JointKind.REVOLUTE, parent, place))
    bodies = [Body(joint.name, random_inertia(rng)) for joint in joints]
    frames = [Frame(f"f{i}", i, Transform()) for i in range(len(joints))]
    arms = Robot("arms", joints, bodies, frames)
    return Problem(arms, [RelativeContact("r", f"f{links}", f"f{2 * links}", "surface")])


ROBOTS = {
    "quadruped": (robots.quadruped, "floating", "LF_FOOT", "RH_FOOT"),
    "panda": (lambda: robots.panda().encode(), "fixed", "panda_link3", "panda_hand"),
    "go1": (lambda: robots.shared("go1_unitree"), "floating", "FL_foot", "RR_foot"),
    "talos": (
        robots.talos, "floating", "gripper_left_base_link", "gripper_right_base_link"
    ),
    "atlas": (lambda: robots.shared("atlas_v5"), "floating", "l_hand", "r_hand"),
}  # fmt: skip


@pytest.mark.parametrize("name", but_slow(list(ROBOTS), "panda", "go1", "talos", "atlas"))
def test_robots_beside_pinocchio_and_50_digits(name: str) -> None:
    """A frame, its motion relative to another, their mean, centre of mass, and momentum."""
    source, base, *frames = ROBOTS[name]
    robot = Robot.from_urdf(source(), base=base)
    a, b = frames
    contacts = [
        Contact("a", a, "surface"),
        RelativeContact("relative", a, b, "surface"),
        WeightedSum("mean", {a: 0.5, b: 0.5}, "surface"),
        CenterOfMass("com"),
        CentroidalMomentum("momentum"),
    ]
    problem = Problem(robot, contacts, outputs=["J"])
    q = random_inputs(problem, 2)["q"]
    peer = Peer(Problem(robot, [Contact(frame, frame, "surface") for frame in frames]))
    zeros = np.zeros(len(problem.velocities))
    motion = {"rates": zeros, "torques": zeros, "gravity": np.zeros(3)}
    theirs = peer.at({"q": q, **motion})
    state = pin.neutral(peer.model)
    for i, (joint, offset) in enumerate(zip(robot.joints, robot.q_offsets, strict=True)):
        if joint.kind.nq:
            state[peer.model.joints[peer.joints[i]].idx_q] = q[offset]
    pin.framesForwardKinematics(peer.model, peer.data, state)
    at_a, at_b = (
        peer.data.oMf[peer.model.getFrameId(f"contact {frame}")] for frame in frames
    )  # fmt: skip
    to_a, (J_a, J_b) = at_a.actInv(at_b), np.split(theirs["J"], 2)
    # The base is at the origin: its axes are those of the world.
    A = pin.computeCentroidalMap(peer.model, peer.data, state)[:, peer.indices]
    mass = sum(body.inertia.mass for body in robot.bodies)
    mean = 0.5 * (J_a + np.kron(np.eye(2), to_a.rotation) @ J_b)
    J = np.vstack([J_a, to_a.action @ J_b - J_a, mean, A[:3] / mass, A])
    solution = solver_on_floats(problem, "auto").solve(q)
    assert error(solution.J, J) < TOLERANCE
    assert error(solution.matrix, J @ np.linalg.solve(theirs["M"], J.T)) < TOLERANCE
    with mpmath.workdps(50):
        exact = algorithms.get("dense").evaluate(problem, {"q": [mpmath.mpf(v) for v in q]})["G"]
    assert error(solution.matrix, [[float(v) for v in row] for row in exact]) < TOLERANCE


def test_rows_are_added_where_they_meet() -> None:
    problem = arms(8)
    added = trace(problem, algorithms.get("pv_osimr")).operations.total
    apart = trace(problem, algorithms.get("pv_osim")).operations.total
    assert added < 0.95 * apart


def test_a_compiled_kernel_with_active_sets() -> None:
    robot = Robot.from_urdf(robots.quadruped())
    contacts = ContactSet(
        [Contact("LH", "LH_FOOT"), RelativeContact("r", "LF_FOOT", "RH_FOOT", "surface")]
    )
    problem = Problem(robot, contacts)
    solver = DelassusSolver(problem, "auto")
    q = random_inputs(problem, 1)["q"]
    expected = solver_on_floats(problem, "dense").solve(q).matrix
    assert error(solver.solve(q).matrix, expected) < 1e-11
    assert error(solver.solve(q, active=["r"]).matrix, expected[3:, 3:]) < 1e-11
    assert problem != Problem(robot, [contacts[0], RelativeContact("r", "LF_FOOT", "RF_FOOT")])


def test_refused() -> None:
    robot = Robot.from_urdf(robots.quadruped())
    with pytest.raises(ContactError, match="between frames 'LF_FOOT' and 'LF_FOOT'"):
        RelativeContact("r", "LF_FOOT", "LF_FOOT")
    with pytest.raises(ContactError, match="unknown frame 'RF_FOT'; did you mean 'RF_FOOT'"):
        Problem(robot, [RelativeContact("r", "LF_FOOT", "RF_FOT")])
    relative = [RelativeContact("r", "LF_FOOT", "RF_FOOT")]
    with pytest.raises(AlgorithmError, match="contact 'r' is on several frames"):
        DelassusSolver(Problem(robot, relative), "pinocchio")
    rng = np.random.default_rng(0)
    floating = random_robot(rng, (JointKind.FLOATING,), floating=True)
    with pytest.raises(ContactError, match="is floating; expected revolute and prismatic"):
        Problem(floating, [RelativeContact("r", "f0", "f2")])
    fixed = Robot.from_urdf(robots.quadruped(), base="fixed")
    trunk = next(frame.name for frame in fixed.frames.values() if frame.body < 0)
    with pytest.raises(ContactError, match=f"frame '{trunk}' is fixed to the world"):
        Problem(fixed, [WeightedSum("s", {"LF_FOOT": 1.0, trunk: 1.0})])


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("base", ["floating", "fixed"])
@pytest.mark.parametrize("seed", seeds(12, every=6))
def test_all_outputs_of_rows_of_several_links(seed: int, base: str, axes: Axes) -> None:
    """J, M⁻¹Jᵀ, J̇ẏ, a⁰ and ∂G/∂y beside each other and beside differences."""
    outputs = ("G", "J", "MinvJT", "M", "JdotV", "a0", "qdd0", "dG", "G_dot")
    alone = seed == 6
    if base == "fixed":
        problem = on_a_fixed_base(seed, axes, outputs, alone)
    else:
        problem = whole_robot(seed, axes, alone, outputs)
    x = flat(random_inputs(problem, seed))
    results = evaluate(problem, algorithms.get("ltl"), x)
    J, MinvJT, M, dG = (np.array(results[name]) for name in ("J", "MinvJT", "M", "dG"))
    assert error(J @ MinvJT, results["G"]) < TOLERANCE
    assert error(M @ MinvJT, J.T) < TOLERANCE
    assert error(results["JdotV"], derivative(problem, x, "J") @ x["rates"]) < 1e-7
    assert error(results["a0"], J @ results["qdd0"] + results["JdotV"]) < TOLERANCE
    assert error(np.tensordot(x["rates"], dG, 1), derivative(problem, x, "G")) < 1e-7
    assert error(results["G_dot"], np.tensordot(x["along"], dG, 1)) < TOLERANCE


@pytest.mark.parametrize("base", ["floating", "fixed"])
def test_pinocchios_rate_of_momentum(base: str) -> None:
    path = str(robots.quadruped())
    robot = Robot.from_urdf(path, base=base)
    root = (pin.JointModelFreeFlyer(),) if base == "floating" else ()
    model = pin.buildModelFromUrdf(path, *root)
    contacts = [CentroidalMomentum("h"), CenterOfMass("c")]
    problem = Problem(robot, contacts, "world", ["JdotV", "a0"])
    given = random_inputs(problem, 3)
    state, rates, torques = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
    first = 6 if base == "floating" else 0
    rates[:first], torques[:first] = given["rates"][:first], given["torques"][:first]
    if base == "floating":
        state[3:7] = given["base_orientation"]
    for k, name in enumerate(robot.joint_names):
        joint = model.joints[model.getJointId(name)]
        state[joint.idx_q] = given["q"][k]
        rates[joint.idx_v] = given["rates"][first + k]
        torques[joint.idx_v] = given["torques"][first + k]
    model.gravity.linear = given["gravity"]
    data = model.createData()
    mass = sum(body.inertia.mass for body in robot.bodies)
    solution = solver_on_floats(problem).solve(**given)
    free = pin.aba(model, data, state, rates, torques).copy()
    for found, acceleration in ((solution.JdotV, np.zeros(model.nv)), (solution.a0, free)):
        rate = pin.computeCentroidalMomentumTimeVariation(
            model, data, state, rates, acceleration
        ).vector  # fmt: skip
        assert error(found[:6], rate) < TOLERANCE
        assert error(found[6:], rate[:3] / mass) < TOLERANCE


def test_pinocchios_centroidal_map() -> None:
    model, pairs, _, _ = pair()
    robot = pairs.robot
    problem = Problem(robot, [CentroidalMomentum("h"), CenterOfMass("c")], "world", ["J"])
    data, rng = model.createData(), np.random.default_rng(2)
    solver = solver_on_floats(problem)
    for _ in range(3):
        state = pin.neutral(model)
        quaternion = rng.normal(size=4)
        state[3:7] = quaternion / np.linalg.norm(quaternion)
        state[7:] = rng.uniform(-1.0, 1.0, model.nq - 7)
        q = [state[model.joints[model.getJointId(n)].idx_q] for n in robot.joint_names]
        A = pin.computeCentroidalMap(model, data, state)
        order = [*range(6), *(model.joints[model.getJointId(n)].idx_v for n in robot.joint_names)]
        M = symmetric(pin.crba(model, data, state))
        solution = solver.solve(q, base_orientation=state[3:7])
        assert error(solution.J[:6], A[:, order]) < TOLERANCE
        assert error(solution.matrix[:6, :6], A @ np.linalg.solve(M, A.T)) < TOLERANCE
        mass = sum(body.inertia.mass for body in robot.bodies)
        assert error(solution.matrix[6:, 6:], np.eye(3) / mass) < TOLERANCE


def test_rows_of_the_whole_robot_need_no_recursion() -> None:
    robot = Robot.from_urdf(robots.quadruped())
    feet = [Contact(f, f) for f in ("LF_FOOT", "RH_FOOT")]
    counts = [
        trace(Problem(robot, contacts), algorithms.get("pv_osimr")).operations.total
        for contacts in (feet, [*feet, CenterOfMass("com")])
    ]
    assert counts[1] - counts[0] < 100
    alone = trace(Problem(robot, [CenterOfMass("com")]), algorithms.get("pv_osimr"))
    assert alone.operations.total == 0


def test_a_compiled_kernel_of_the_whole_robot() -> None:
    problem = whole_robot(2, "world", outputs=("G",))
    given = random_inputs(problem, 1)
    expected = solver_on_floats(problem, "dense").solve(**given).matrix
    solution = DelassusSolver(problem, "auto").solve(**given)
    assert error(solution.matrix, expected) < 1e-11


def test_pinocchios_centroidal_map_on_a_fixed_base() -> None:
    robot = Robot.from_urdf(robots.quadruped(), base="fixed")
    model = pin.buildModelFromUrdf(str(robots.quadruped()))
    contacts = [CentroidalMomentum("h"), CenterOfMass("c"), Contact("foot", "LF_FOOT")]
    solver = solver_on_floats(Problem(robot, contacts, "world"))
    data, rng = model.createData(), np.random.default_rng(3)
    mass, foot = sum(body.inertia.mass for body in robot.bodies), model.getFrameId("LF_FOOT")
    for _ in range(3):
        state = rng.uniform(-1.0, 1.0, model.nq)
        q = [state[model.joints[model.getJointId(n)].idx_q] for n in robot.joint_names]
        A = pin.computeCentroidalMap(model, data, state)
        at = pin.computeFrameJacobian(
            model, data, state, foot, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        )  # fmt: skip
        J = np.vstack([A, A[:3] / mass, at[:3]])
        M = symmetric(pin.crba(model, data, state))
        assert error(solver.solve(q).matrix, J @ np.linalg.solve(M, J.T)) < TOLERANCE


@pytest.mark.parametrize(
    ("source", "frame", "axes"),
    [
        (lambda: demo_urdf("geared").encode(), "LIFT_TOOL", "world"),
        *(
            pytest.param(
                lambda: robots.shared("grbda_revolute_rotor_chain"), None, axes,
                marks=pytest.mark.slow,
            )
            for axes in AXES
        ),
    ],
)  # fmt: skip
def test_rows_of_the_whole_robot_with_gears_on_a_fixed_base(source, frame, axes: Axes) -> None:
    """Rotors on the world count; a four-bar is a cluster or closed by rows."""
    robot = Robot.from_urdf(source(), base="fixed")
    frame = frame or next(reversed(robot.frames))
    contacts = [Contact("c", frame), CenterOfMass("com"), CentroidalMomentum("momentum")]
    outputs = ("G", "J", "MinvJT", "M", "JdotV", "a0", "qdd0", "dG")
    problem = Problem(robot, contacts, axes, outputs)
    given = closed_inputs(problem, 1, 0)[0]
    x = flat(given)
    expected = definition(problem, given)
    for name in ("pv_osimr", "ltl"):
        found = evaluate(problem, algorithms.get(name), x)
        assert error(found["G"], expected) < TOLERANCE
    J, MinvJT, M, dG = (np.array(found[name]) for name in ("J", "MinvJT", "M", "dG"))
    assert error(J @ MinvJT, expected) < TOLERANCE
    assert error(M @ MinvJT, J.T) < TOLERANCE
    assert error(found["JdotV"], derivative(problem, x, "J") @ x["rates"]) < 1e-7
    assert error(found["a0"], J @ found["qdd0"] + found["JdotV"]) < TOLERANCE
    assert error(np.tensordot(x["rates"], dG, 1), derivative(problem, x, "G")) < 1e-7
    rows = Problem(robot.with_loops_as("rows"), contacts, axes)
    G = evaluate(rows, algorithms.get("pv_osimr"), {"q": x["q"]})["G"]
    assert error(G, expected) < 1e-9


def test_refused_rows_of_the_whole_robot() -> None:
    floating = random_robot(np.random.default_rng(0), (JointKind.FLOATING,), floating=True)
    with pytest.raises(ContactError, match="contact 'com' is of the whole robot .* divides"):
        Problem(floating, [CenterOfMass("com")])
