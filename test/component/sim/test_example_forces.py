"""The example that predicts contact forces: its parts, its sequence, and its node in processes."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from force_prediction import sequence
from force_prediction.books import Books
from force_prediction.floors import MujocoFloor, RigidFloor
from force_prediction.free_motion import FreeMotion, RobotState
from force_prediction.prediction import NoForcesError, predict
from force_prediction.sequence import CENTRE, CONSTRAINT, EXACT, RIGID, TOLERANCE
from force_prediction.touch import touch
from processes import Program, ros_program, wait_until
from robots import FEET, LEGS

from delassus.robots.built_in import demo_urdf
from delassus_ros.sim.plant import Plant
from delassus_ros.sim.quadruped import stepping_quadruped

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"

JOINTS = tuple(f"{leg}_{joint}" for leg in LEGS for joint in ("HAA", "HFE", "KFE"))
RADIUS, FRICTION = 0.02, 0.8


# --- motion of the feet ------------------------------------------------------------------------


def random_state(seed: int, height: float = 0.3) -> RobotState:
    rng = np.random.default_rng(seed)
    orientation = rng.normal(size=4)
    return RobotState(
        position=np.array([0.4, -0.3, height]),
        orientation=orientation / np.linalg.norm(orientation),
        twist=rng.normal(size=6),
        q=rng.uniform(-1.0, 1.0, 12),
        velocity=rng.normal(size=12),
        effort=5.0 * rng.normal(size=12),
    )


@pytest.fixture(name="motion", scope="module")
def make_motion() -> FreeMotion:
    return FreeMotion(demo_urdf(), JOINTS, FEET)


def moved(state: RobotState, step: float) -> RobotState:
    """Integrate the free motion for a short time, joints and base, without the example's code."""
    model = pin.buildModelFromXML(demo_urdf(), pin.JointModelFreeFlyer())
    data = model.createData()
    order = [list(model.names).index(name) - 2 for name in JOINTS]
    q = np.concatenate([state.position, state.orientation, np.zeros(12)])
    v, tau = np.concatenate([state.twist, np.zeros(12)]), np.zeros(18)
    for mine, own in enumerate(order):
        q[7 + own], v[6 + own], tau[6 + own] = (
            state.q[mine], state.velocity[mine], state.effort[mine]
        )  # fmt: skip
    a = pin.aba(model, data, q, v, tau)
    q = pin.integrate(model, q, step * v + 0.5 * step * step * a)
    v = v + step * a
    return RobotState(
        q[:3], q[3:7], v[:6],
        np.array([q[7 + own] for own in order]),
        np.array([v[6 + own] for own in order]),
        state.effort,
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_free_acceleration_is_the_rate_of_the_touching_points_velocity(motion, seed: int) -> None:
    """Central differences, with the lever of the ball kept as it is: vertical."""
    state, step = random_state(seed), 1e-6
    feet = [motion.feet(moved(state, h)) for h in (-step, 0.0, step)]
    for i in range(4):
        now = touch(i, feet[1][i], RADIUS)
        lever = feet[1][i].position[2] - 0.5 * now.gap
        velocities = []
        for at in (feet[0][i], feet[2][i]):
            v, w = at.rotation @ at.velocity[:3], at.rotation @ at.velocity[3:]
            velocities.append(v + np.cross(w, [0.0, 0.0, -lever]))
        rate = (velocities[1] - velocities[0]) / (2.0 * step)
        np.testing.assert_allclose(now.free_acceleration, rate, rtol=1e-5, atol=1e-4)
        drift = now.free_acceleration - now.free_acceleration_of_joints
        assert np.abs(drift).max() > 0.1  # the difference is not nothing


@pytest.mark.parametrize("seed", range(5))
def test_motion_is_that_of_mujoco(motion, seed: int) -> None:
    """Rows, velocity and J q̈ of the touching points, with MuJoCo's own Jacobian and qacc."""
    state = random_state(seed)
    model = stepping_quadruped()._model
    data = mujoco.MjData(model)
    x, y, z, w = state.orientation
    data.qpos[:7] = *state.position, w, x, y, z
    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, data.qpos[3:7])
    data.qvel[:6] = *(R.reshape(3, 3) @ state.twist[:3]), *state.twist[3:]
    for name, q, v, tau in zip(JOINTS, state.q, state.velocity, state.effort, strict=True):
        joint = model.joint(name)
        data.qpos[joint.qposadr[0]], data.qvel[joint.dofadr[0]] = q, v
        data.qfrc_applied[joint.dofadr[0]] = tau
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_ACTUATION)
    mujoco.mj_forward(model, data)
    for i, (foot, frame) in enumerate(zip(motion.feet(state), FEET, strict=True)):
        mine = touch(i, foot, RADIUS)
        body = model.body(frame).id
        np.testing.assert_allclose(foot.position, data.xpos[body], atol=1e-12)
        lever = foot.position[2] - 0.5 * mine.gap
        J = np.zeros((3, model.nv))
        mujoco.mj_jac(model, data, J, None, foot.position - [0.0, 0.0, lever], body)
        np.testing.assert_allclose(mine.velocity, J @ data.qvel, atol=1e-11)
        np.testing.assert_allclose(
            mine.free_acceleration_of_joints, J @ data.qacc_smooth, atol=1e-8
        )


def test_inverse_masses_are_mujocos(motion) -> None:
    model = stepping_quadruped()._model
    theirs = [model.body(frame).invweight0[0] for frame in FEET]
    np.testing.assert_allclose(motion.inverse_masses(), theirs, rtol=1e-9)


def test_motion_names_what_it_does_not_know() -> None:
    with pytest.raises(ValueError, match=r"joints \['LF_HAA'\]; the description has"):
        FreeMotion(demo_urdf(), ["LF_HAA"], FEET)
    with pytest.raises(ValueError, match="no frame 'LF_FOT'"):
        FreeMotion(demo_urdf(), JOINTS, ["LF_FOT"])


# --- floors ------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1e-5, 2e-4, 4.9e-4, 5.1e-4, 8e-4, 1.2e-3, 5e-3])
def test_soft_floor_is_mujocos(motion, depth: float) -> None:
    """R and the wanted acceleration, along the curve of the impedance, in motion."""
    simulation = stepping_quadruped()
    model, data = simulation._model, simulation._data
    rng = np.random.default_rng(1)
    data.qvel[:] = 0.1 * rng.normal(size=model.nv)
    lowest = min(data.xpos[model.body(frame).id][2] for frame in FEET)
    data.qpos[2] += RADIUS - depth - lowest
    mujoco.mj_forward(model, data)
    assert data.ncon >= 2
    truth = simulation.truth()
    floor = MujocoFloor(motion.inverse_masses())
    feet = motion.feet(
        RobotState(
            truth.position, truth.orientation, truth.twist,
            simulation.q, simulation.velocity, truth.effort,
        )
    )  # fmt: skip
    touched = {geom: i for i, geom in enumerate(simulation._feet.geoms)}
    for n, contact in enumerate(data.contact):
        foot = touched[max(contact.geom.tolist())]
        mine = touch(foot, feet[foot], RADIUS)
        assert mine.gap == pytest.approx(contact.dist, abs=1e-12)
        rows = slice(contact.efc_address, contact.efc_address + 3)
        np.testing.assert_allclose(data.efc_R[rows], floor.compliance(mine), rtol=1e-9)
        axes = contact.frame.reshape(3, 3)
        J = axes.T @ data.efc_J.reshape(-1, model.nv)[rows]
        misfit = J @ data.qacc_smooth - axes.T @ data.efc_aref[rows]
        np.testing.assert_allclose(floor.misfit(mine), misfit, atol=1e-8)
        assert n < 4


def test_rigid_floor_stops_a_point_in_its_settling_time(motion) -> None:
    point = touch(0, motion.feet(random_state(3))[0], RADIUS)
    assert RigidFloor(0.1).compliance(point) == 0.0
    change = RigidFloor(0.1).misfit(point) - RigidFloor(np.inf).misfit(point)
    np.testing.assert_allclose(change, 10.0 * point.velocity)
    np.testing.assert_array_equal(RigidFloor(np.inf).misfit(point), point.free_acceleration)


def test_a_robot_in_the_air_feels_nothing(motion) -> None:
    feet = motion.feet(random_state(4, height=2.0))
    forces = predict(np.eye(24), feet, RADIUS, FRICTION, RigidFloor(0.01))
    np.testing.assert_array_equal(forces, np.zeros((4, 3)))


def test_a_matrix_without_numbers_is_refused(motion) -> None:
    feet = motion.feet(random_state(4, height=0.0))
    with pytest.raises(NoForcesError, match="contact forces are NOT_FINITE"):
        predict(np.full((24, 24), np.nan), feet, RADIUS, FRICTION, RigidFloor(0.01))


# --- the sequence ------------------------------------------------------------------------------


@pytest.fixture(name="record", scope="module")
def make_record() -> sequence.Record:
    return sequence.run(stride=8)


def test_sequence_has_every_phase(record) -> None:
    phases = record.phases()
    assert phases["stance"].sum() > 2000
    for phase in ("lift-off", "landing", "slip"):
        assert phases[phase].any(axis=0).all(), f"some foot has no {phase}"
        assert phases[phase].sum() > 30, phase
    assert (record.simulated[:, :, 2] == 0.0).any(axis=0).all()
    together = sum(phase.astype(int) for phase in phases.values())
    np.testing.assert_array_equal(together, record.simulated[:, :, 2] > 0.0)
    sliding = np.diff(np.flatnonzero(phases["slip"][:, LEGS.index("LF")]))
    assert (sliding == 1).sum() > 15, "no slip of more than 0.1 s"


def test_prediction_is_within_the_tolerance_in_every_phase(record) -> None:
    errors = record.errors(EXACT)
    assert errors.max() < TOLERANCE
    # Feet that stick leave no flat direction in the cost: there it is far better.
    assert errors[record.phases()["stance"]].max() < 1e-3


def test_rigid_prediction_is_close_but_not_the_same(record) -> None:
    """The README's figures, with some air: they are of a simulation that may change a little."""
    phases = record.phases()
    stance = phases["stance"]
    for law in (RIGID, CONSTRAINT):
        errors = record.errors(law)
        assert np.sqrt(np.mean(errors[stance] ** 2)) < 1.0
        assert 1.0 < errors.max() < 15.0
    at_edges = phases["landing"] | phases["slip"]
    with_velocity, without = (record.errors(law)[at_edges].max() for law in (RIGID, CONSTRAINT))
    assert with_velocity < 0.7 * without


def test_rows_of_the_balls_centre_miss_the_tolerance(record) -> None:
    errors = record.errors(CENTRE)
    assert 20.0 * TOLERANCE < errors.max() < 5.0


def test_a_matrix_that_is_a_little_wrong_is_found(motion) -> None:
    """One percent in the block of one foot is five times the tolerance."""
    simulation = stepping_quadruped()
    for _ in range(700):
        simulation.step()
    truth = simulation.truth()
    feet = motion.feet(
        RobotState(
            truth.position, truth.orientation, truth.twist,
            simulation.q, simulation.velocity, truth.effort,
        )
    )  # fmt: skip
    floor = MujocoFloor(motion.inverse_masses())
    G = surface_matrix(simulation)
    forces = predict(G, feet, RADIUS, FRICTION, floor)
    assert np.linalg.norm(forces - truth.forces, axis=1).max() < TOLERANCE
    wrong = G.copy()
    wrong[:3, :3] *= 1.01
    forces = predict(wrong, feet, RADIUS, FRICTION, floor)
    assert np.linalg.norm(forces - truth.forces, axis=1).max() > 5.0 * TOLERANCE


def surface_matrix(simulation: Plant) -> np.ndarray:
    """Return the matrix of all rows of all feet, with MuJoCo alone."""
    model, data = simulation._model, mujoco.MjData(simulation._model)
    data.qpos[:] = simulation._data.qpos
    mujoco.mj_forward(model, data)
    rows = []
    for frame in FEET:
        body = model.body(frame).id
        linear, angular = np.zeros((2, 3, model.nv))
        mujoco.mj_jac(model, data, linear, angular, data.xpos[body], body)
        axes = data.xmat[body].reshape(3, 3).T
        rows += [axes @ linear, axes @ angular]
    J = np.vstack(rows)
    solved = np.zeros_like(J)
    mujoco.mj_solveM(model, data, solved, J)
    return J @ solved.T


def test_table_has_a_line_per_law(record) -> None:
    lines = sequence.table(record).splitlines()
    assert len({line.count("|") for line in lines}) == 1
    for law in (EXACT, CENTRE, RIGID, CONSTRAINT):
        assert any(line.startswith(f"| {law} |") for line in lines)


@pytest.mark.needs("matplotlib")
def test_picture_is_the_same_each_time(record, tmp_path: Path) -> None:
    from force_prediction.plot import draw
    from PIL import Image

    for name in ("a", "b"):
        draw(record, tmp_path / f"{name}.png")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    with Image.open(tmp_path / "a.png") as picture:
        words = picture.info["Description"]
    assert "time [s]" in words and "friction cone" in words


# --- book-keeping of the node ------------------------------------------------------------------


def test_books_tell_the_errors_by_state() -> None:
    books = Books(("LF", "RF"))
    zero = np.zeros((2, 3))
    books.add(("active", "slipping"), zero, zero)
    books.add(("active", "active"), zero, np.array([[0.0, 3.0, 4.0], [0.0, 0.0, 1.0]]))
    assert books.worst == 5.0
    assert books.summary() == [
        "2 instants compared",
        "active: 3 forces, worst error 5 N, rms 2.9 N",
        "slipping: 1 forces, worst error 0 N, rms 0 N",
    ]
    assert books.line() == (
        "predicted, simulated [N]: LF   0.00   4.00 | RF   0.00   1.00 | worst error 5"
    )


# --- the node ----------------------------------------------------------------------------------


@pytest.mark.needs("nav_msgs", "delassus_msgs")
def test_node_passes_over_joint_states_that_lack_something(monkeypatch, capfd) -> None:
    """A gripper, or who publishes no efforts, on the same topic and with the same stamp."""
    from delassus_msgs.msg import DelassusMatrix, Layout
    from force_prediction.node import ForceNode
    from nav_msgs.msg import Odometry
    from ros_support import node_in_own_domain
    from sensor_msgs.msg import JointState

    with node_in_own_domain(ForceNode) as node:
        node._layout, node.books = Layout(joints=["a", "b"]), Books(("LF",))
        found: list[RobotState] = []
        monkeypatch.setattr(node, "_predict", lambda message, state: found.append(state))
        take = {each.topic_name: each.callback for each in node.subscriptions}
        take["/delassus_node/delassus"](
            DelassusMatrix(validity=DelassusMatrix.VALIDITY_OK, contacts=["LF"])
        )
        take["/simulator/odometry"](Odometry())
        for names in (["g"], [], ["a"], ["b", "a"]):
            joints = JointState(name=names, position=[0.0] * len(names))
            take["/joint_states"](joints)
        assert not found
        two = [1.0, 2.0]
        joints = JointState(name=["b", "a"], position=two, velocity=two, effort=two)
        take["/joint_states"](joints)
        assert [state.effort.tolist() for state in found] == [[2.0, 1.0]]
        # Once for all of them.
        said = [line for line in capfd.readouterr().err.splitlines() if "WARN" in line]
        assert len(said) == 1
        assert "a joint state lacks joints a, b; it is passed over" in said[0]


@pytest.mark.needs("nav_msgs", "delassus_msgs")
def test_node_refuses_a_layout_without_all_rows() -> None:
    from delassus_msgs.msg import Layout
    from force_prediction.node import ForceNode
    from ros_support import node_in_own_domain
    from std_msgs.msg import String

    with node_in_own_domain(ForceNode) as node:
        take = {each.topic_name: each.callback for each in node.subscriptions}
        take["/robot_description"](String(data=demo_urdf()))
        with pytest.raises(
            ValueError, match="contacts are of kinds point, point, point, point; expected surface"
        ):
            take["/delassus_node/layout"](Layout(kinds=["point"] * 4))


@pytest.mark.needs("nav_msgs", "delassus_msgs")
def test_a_joint_state_without_some_values_is_named() -> None:
    from force_prediction.node import check_joints
    from sensor_msgs.msg import JointState

    joints = JointState(name=["a", "b"], position=[0.0, 0.0])
    with pytest.raises(ValueError, match="a joint state has 2 names but 0 velocities"):
        check_joints(joints, ["b"])
    joints.velocity, joints.effort = [0.0, 0.0], [0.0]
    with pytest.raises(ValueError, match="a joint state has 2 names but 1 efforts"):
        check_joints(joints, ["b"])


# --- the node, in processes --------------------------------------------------------------------


@pytest.fixture(name="start")
def make_start() -> Iterator[Callable[..., Program]]:
    """Start programs in a ROS domain of their own; all end with the test."""
    import_module("delassus_msgs")
    import_module("nav_msgs")
    from ros_domains import new_domain

    domain = new_domain()
    with ExitStack() as stack:
        yield lambda *words: stack.enter_context(ros_program(*words, domain=domain))


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_node_predicts_the_simulators_forces(start, number: int) -> None:
    """Simulator, delassus_node and the example in processes, over more than a cycle of steps."""
    simulator = start("delassus_ros.sim.simulator_node", "-p", "rate:=100", "-p", "truth:=true")
    # A busy machine may hold up any of the processes.
    patient = ["-p", "input_timeout:=30.0", "-p", "contacts_timeout:=30.0"]
    file = str(EXAMPLES / "force_prediction" / "node.yaml")
    matrices = start("delassus_ros.node.main", "--params-file", file, *patient)
    example = start("force_prediction.node")
    programs = [simulator, matrices, example]
    wait_until(
        lambda: example.output.count("predicted, simulated [N]") >= 9,
        "predictions",
        lambda: next(filter(None, (program.fault() for program in programs)), None),
        lambda: "\n---\n".join(program.report() for program in programs),
    )
    assert example.stop(number) == 0, example.output
    summary = example.output[example.output.index("instants compared") - 8 :]
    compared = re.search(r"(\d+) instants compared", summary)
    # The number of instants per second is that of the machine.
    assert compared is not None and int(compared[1]) >= 9, summary
    found = re.findall(r"(\w+): (\d+) forces, worst error (\S+) N", summary)
    assert {state for state, _, _ in found} >= {"active", "inactive", "slipping"}
    for state, count, worst in found:
        assert int(count) > 0 and float(worst) < TOLERANCE, state
    assert "0 matrices were INVALID" in summary
    assert "Traceback" not in example.output
    for program in (simulator, matrices):
        assert program.stop() == 0, program.output


def test_node_names_a_floor_that_does_not_exist(start) -> None:
    program = start("force_prediction.node", "-p", "floor:=ice")
    assert program.wait() == 1
    assert "force_prediction: parameter floor is 'ice'; expected mujoco or rigid" in program.output
    assert "Traceback" not in program.output


def test_node_without_anything_to_compare_says_so(start) -> None:
    program = start("force_prediction.node")
    program.wait_for("waiting for robot description and layout")
    assert program.stop(signal.SIGTERM) == 1
    assert program.output.rstrip().endswith("nothing to compare came")
