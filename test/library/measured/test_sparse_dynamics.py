"""Dynamics from what is measured: beside Pinocchio, least squares, and what is not enough."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import robots
from cluster_robots import coupled, random_problem
from oracles import GRAVITY
from passive import with_passive
from seeds import seeds

from delassus import Robot
from delassus.dynamics import Dynamics
from delassus.errors import InputError, ProblemError
from delassus.measured import (
    Accelerometer,
    Estimate,
    ExternalWrench,
    ForceTorqueSensor,
    JointAcceleration,
    JointTorque,
    Measurement,
    Resting,
    SparseDynamics,
    UnobservableError,
)
from delassus.measured.quantities import Quantity
from delassus.model import WORLD
from delassus.robots.built_in.humanoid import FEET, POSTURE, humanoid_urdf
from delassus.testing import random_problem as random_open_problem
from delassus.testing.random_trees import random_robot

SOLES = [*FEET.values()]


def state(dynamics: Dynamics, robot: Robot, seed: int) -> tuple[np.ndarray, ...]:
    rng, n = np.random.default_rng(seed), dynamics.size
    return coupled(robot, rng.uniform(-1, 1, robot.nq)), rng.normal(size=n), rng.normal(size=n)


def by_joint(dynamics: Dynamics, robot: Robot, kind: type, values: np.ndarray):
    """Return quantities of all joints with their values."""
    columns = dynamics._tree.columns_by_joint
    return {kind(joint): values[own] for joint, own in columns.items()}


@pytest.mark.parametrize("seed", seeds(8))
@pytest.mark.parametrize("kind", ["geared", "open"])
def test_inverse_forward_and_hybrid_dynamics_are_special_cases(kind: str, seed: int) -> None:
    plain = (random_problem if kind == "geared" else random_open_problem)(seed).robot
    robot = with_passive(plain, seed)
    dynamics = Dynamics(robot)
    q, rates, ydd = state(dynamics, robot, seed)
    torques = dynamics.inverse(q, rates, ydd, GRAVITY)
    accelerations = by_joint(dynamics, robot, JointAcceleration, ydd)
    efforts = by_joint(dynamics, robot, JointTorque, torques)
    rng = np.random.default_rng(seed)
    clustered = {k for columns in dynamics._tree.velocities.shared for k in columns}
    columns = dynamics._tree.columns_by_joint
    mixed = {
        joint: bool(clustered.intersection(own)) or rng.uniform() < 0.5
        for joint, own in columns.items()
    }
    for choose in (lambda _: True, lambda _: False, mixed.__getitem__):
        known: dict[Quantity, np.ndarray] = {}
        wanted: dict[Quantity, np.ndarray] = {}
        for (a, ya), (t, yt) in zip(accelerations.items(), efforts.items(), strict=True):
            given, asked = ((a, ya), (t, yt)) if choose(a.joint) else ((t, yt), (a, ya))
            known[given[0]], wanted[asked[0]] = given[1], asked[1]
        base = JointTorque(dynamics.joints[0])
        measured = [Measurement(quantity) for quantity in known]
        system = SparseDynamics(robot, measured, [*wanted])
        floating = robot.base == "floating"
        # Where the wrench on the base is asked about, it is not supposed to be zero.
        assert system.kind == "square" or (floating and base in known)
        found = system.solve(q, rates, known, GRAVITY)
        for quantity, expected in wanted.items():
            scale = np.linalg.norm(torques) + np.linalg.norm(ydd)
            assert np.linalg.norm(found.values[quantity] - expected) < 1e-9 * scale, quantity
            assert not found.covariances[quantity].any()


@pytest.mark.parametrize("name", ["humanoid", "talos", "atlas_v5"])
def test_wrenches_agree_with_pinocchio(name: str) -> None:
    """From accelerations and one unknown wrench: with the base free, the wrench is told."""
    from oracles.pinocchio_models import PinocchioDynamics

    if name == "humanoid":
        robot = Robot.from_urdf(humanoid_urdf().encode())
    else:
        urdf = robots.talos() if name == "talos" else robots.shared(name)
        robot = Robot.from_urdf(urdf, passive=False)
    frame = sorted(robot.frames)[-1]
    dynamics = Dynamics(robot)
    q, rates, ydd = state(dynamics, robot, 0)
    known = by_joint(dynamics, robot, JointAcceleration, ydd)
    wrench = ExternalWrench(frame)
    joints = [JointTorque(joint) for joint in dynamics.joints[1:]]
    found = SparseDynamics(robot, [*map(Measurement, known)], [wrench, *joints]).solve(
        q, rates, known, GRAVITY
    )
    torques = PinocchioDynamics(robot, q).inverse(rates, ydd, {frame: found.values[wrench]})
    scale = np.linalg.norm(torques)
    # Nothing is left at the base.
    assert np.linalg.norm(torques[:6]) < 1e-9 * scale
    mine = np.concatenate([found.values[joint] for joint in joints])
    assert np.linalg.norm(mine - torques[6:]) < 1e-9 * scale


@pytest.mark.parametrize("name", ["humanoid", "talos", "chain"])
def test_torques_and_wrenches_agree_with_mujocos_inverse_dynamics(name: str) -> None:
    import mujoco
    from oracles.mujoco_models import set_positions, specification

    if name == "chain":
        robot = Robot.from_urdf(robots.panda(), "fixed")
    else:
        robot = Robot.from_urdf(humanoid_urdf().encode() if name == "humanoid" else robots.talos())
    robot = with_passive(robot, 6)
    dynamics = Dynamics(robot)
    q, rates, ydd = state(dynamics, robot, 6)
    model = specification(robot).compile()
    data = mujoco.MjData(model)
    model.opt.gravity[:] = GRAVITY
    set_positions(data, robot, q)
    # MuJoCo's free joint has the derivative of the velocity in the world, here turned by nothing.
    qacc = ydd.copy()
    if robot.base == "floating":
        qacc[:3] += np.cross(rates[3:6], rates[:3])
    places = [
        model.joint(joint).dofadr[0] for joint in dynamics.joints[robot.base == "floating" :]
    ]
    if robot.base == "floating":
        data.qvel[:6], data.qacc[:6] = rates[:6], qacc[:6]
    first = 6 if robot.base == "floating" else 0
    data.qvel[places], data.qacc[places] = rates[first:], qacc[first:]
    acc = data.qacc.copy()
    mujoco.mj_forward(model, data)
    data.qacc[:] = acc
    mujoco.mj_inverse(model, data)
    frame = sorted(f for f, place in robot.frames.items() if place.body != WORLD)[-1]
    wrench = 20.0 * np.random.default_rng(1).normal(size=6)
    place = robot.frames[frame]
    number = model.body(f"body{place.body}").id
    R = data.xmat[number].reshape(3, 3)
    point = data.xpos[number] + R @ place.placement.translation
    axes = R @ place.placement.rotation
    pushed = np.zeros(model.nv)
    force, moment = axes @ wrench[:3], axes @ wrench[3:]
    mujoco.mj_applyFT(model, data, force, moment, point, number, pushed)
    expected = data.qfrc_inverse - pushed
    known = by_joint(dynamics, robot, JointAcceleration, ydd)
    known[ExternalWrench(frame)] = wrench
    wanted = [JointTorque(joint) for joint in dynamics.joints]
    found = SparseDynamics(robot, [*map(Measurement, known)], wanted).solve(
        q, rates, known, GRAVITY
    )
    mine = np.zeros(model.nv)
    for quantity, own in zip(wanted, [*([range(6)] if first else []), *([k] for k in places)],
                             strict=True):  # fmt: skip
        mine[list(own)] = found.values[quantity]
    assert np.linalg.norm(mine - expected) < 1e-10 * np.linalg.norm(expected)


def test_an_accelerometer_measures_what_pinocchio_says() -> None:
    import pinocchio as pin
    robot = Robot.from_urdf(humanoid_urdf().encode())
    dynamics = Dynamics(robot)
    q, rates, ydd = state(dynamics, robot, 3)
    model = pin.buildModelFromXML(humanoid_urdf(), pin.JointModelFreeFlyer())
    model.gravity.linear = GRAVITY
    data = model.createData()
    at = [model.joints[model.getJointId(name)].idx_q for name in dynamics.joints[1:]]
    places = [model.joints[model.getJointId(name)].idx_v for name in dynamics.joints[1:]]
    full, v, a = pin.neutral(model), np.zeros(36), np.zeros(36)
    full[at], v[:6], v[places], a[:6], a[places] = q, rates[:6], rates[6:], ydd[:6], ydd[6:]
    pin.forwardKinematics(model, data, full, v, a)
    pin.updateFramePlacements(model, data)
    number = model.getFrameId("left_palm")
    R = data.oMf[number].rotation
    linear = pin.getFrameClassicalAcceleration(model, data, number, pin.LOCAL).linear
    expected = linear - R.T @ GRAVITY
    known = by_joint(dynamics, robot, JointAcceleration, ydd)
    sensor, base = Accelerometer("left_palm"), JointTorque(dynamics.joints[0])
    system = SparseDynamics(robot, [*map(Measurement, known)], [sensor, base])
    found = system.solve(q, rates, known, GRAVITY)
    np.testing.assert_allclose(found.values[sensor], expected, rtol=0, atol=1e-9)


def test_a_force_and_torque_sensor_of_a_compensated_robot_reads_no_weight() -> None:
    plain = random_robot(np.random.default_rng(3), largest=8, floating=False)
    held = plain.replaced(bodies=[replace(b, compensated=b.inertia) for b in plain.bodies])
    readings = []
    for robot, gravity in ((held, GRAVITY), (plain, np.zeros(3)), (plain, GRAVITY)):
        dynamics = Dynamics(robot)
        q, rates, ydd = state(dynamics, robot, 3)
        known = by_joint(dynamics, robot, JointAcceleration, ydd)
        sensor = ForceTorqueSensor("f2")
        system = SparseDynamics(robot, map(Measurement, known), [sensor])
        readings.append(system.solve(q, rates, known, gravity).values[sensor])
    np.testing.assert_allclose(readings[0], readings[1], rtol=0, atol=1e-10)
    assert np.abs(readings[2] - readings[1]).max() > 1.0


MOVES = ("hip", "thigh", "shank", "ankle", "foot", "head", "left_hand")


def standing(seed: int = 0) -> tuple[Robot, Dynamics, np.ndarray]:
    """Return the humanoid about its posture; legs, head and left hand move."""
    robot = Robot.from_urdf(humanoid_urdf().encode())
    held = [name for name in robot.joint_names if not any(part in name for part in MOVES)]
    robot = robot.lock({name: POSTURE.get(name, 0.0) for name in held})
    dynamics = Dynamics(robot)
    q = np.array([POSTURE.get(name, 0.0) for name in robot.joint_names])
    return robot, dynamics, q + 0.05 * np.random.default_rng(seed).normal(size=len(q))


def sensors(dynamics: Dynamics, cells: tuple[int, ...], sigma: float) -> list[Measurement]:
    """Return accelerations of all, and load cells in both soles."""
    found = [Measurement(JointAcceleration(joint)) for joint in dict.fromkeys(dynamics.joints)]
    return [*found, *(Measurement(ExternalWrench(sole, cells), sigma) for sole in SOLES)]


@pytest.mark.parametrize("cells", [(2, 3, 4), (0, 1, 2), (3, 4, 5), (0, 1, 5), (1, 2, 4)])
def test_three_components_of_each_of_two_feet_are_too_few(cells: tuple[int, ...]) -> None:
    """As in Nori's (19), and whichever they are: a force along the line of the feet is open."""
    robot, dynamics, _ = standing()
    wanted = [JointTorque("left_thigh_joint")]
    with pytest.raises(UnobservableError, match="sufficient: they do not determine") as refused:
        SparseDynamics(robot, sensors(dynamics, cells, 1.0), wanted)
    words = str(refused.value)
    assert "left_sole" in words and "right_sole" in words
    assert "measure one of: torque of" in words and "left_foot_joint" in words


def test_yaw_moments_of_parallel_soles_are_not_told_apart() -> None:
    """With all but the moments about the normal measured it does, but for parallel soles."""
    robot, dynamics, _ = standing()
    cells, wanted = (0, 1, 2, 3, 4), [JointTorque("left_thigh_joint")]
    system = SparseDynamics(robot, sensors(dynamics, cells, 1.0), wanted)
    assert system.kind == "overdetermined"
    flat = np.array([[POSTURE.get(name, 0.0) for name in robot.joint_names]])
    with pytest.raises(UnobservableError) as refused:
        SparseDynamics(robot, sensors(dynamics, cells, 1.0), wanted, postures=flat)
    words = str(refused.value)
    assert "at a named posture: they do not determine moment z on" in words
    assert "moment z on left_sole" in words and "moment z on right_sole" in words


def noisy(
    dynamics: Dynamics, system: SparseDynamics, q: np.ndarray, truth: dict, rng, rates: np.ndarray
) -> Estimate:
    values = {
        m.quantity: truth[m.quantity] + m.sigma * rng.normal(size=np.shape(truth[m.quantity]))
        for m in system.known
    }
    return system.solve(q, rates, values)


def test_covariance_is_that_of_noisy_runs() -> None:
    robot, dynamics, q = standing(1)
    rng, n = np.random.default_rng(0), dynamics.size
    rates, wrenches = 0.3 * rng.normal(size=n), 50.0 * rng.normal(size=(2, 6))
    pushed = Dynamics(robot, wrenches=SOLES)
    torques = np.r_[np.zeros(6), 10.0 * rng.normal(size=n - 6)]
    ydd = pushed.forward(q, rates, torques, wrenches=wrenches)
    truth = {
        **by_joint(dynamics, robot, JointAcceleration, ydd),
        **by_joint(dynamics, robot, JointTorque, torques),
        **{ExternalWrench(s): w for s, w in zip(SOLES, wrenches, strict=True)},
    }
    known = [
        *(Measurement(JointAcceleration(joint), 0.5) for joint in dict.fromkeys(dynamics.joints)),
        *(Measurement(JointTorque(joint), 2.0) for joint in dynamics.joints[1:]),
        *(Measurement(ExternalWrench(sole), 3.0) for sole in SOLES),
    ]
    asked = [ExternalWrench(SOLES[0]), JointTorque("left_shank_joint")]
    system = SparseDynamics(robot, known, asked)
    runs, squares, sums = 1000, {quantity: 0.0 for quantity in asked}, 0.0
    for _ in range(runs):
        found = noisy(dynamics, system, q, truth, rng, rates)
        for quantity in asked:
            off = found.values[quantity] - truth[quantity]
            squares[quantity] += off @ np.linalg.solve(found.covariances[quantity], off)
        sums += found.squared
    for quantity in asked:
        size = len(np.atleast_1d(truth[quantity])) * runs
        # Chi squared, which is normal for so many: within its band of 95 %.
        assert abs(squares[quantity] - size) < 1.96 * np.sqrt(2.0 * size), quantity
    total = found.redundant * runs
    assert abs(sums - total) < 1.96 * np.sqrt(2.0 * total)
    # Six rows less are told than sensors: those of the base.
    assert found.redundant == n
    assert np.sqrt(found.covariances[asked[0]][2, 2]) < 3.0


def test_feet_at_rest_and_torques_tell_the_wrenches_on_them() -> None:
    """Both soles rest: as many rows as unknown wrenches; beside the library's forces."""
    robot, dynamics, q = standing(2)
    rng, n = np.random.default_rng(4), dynamics.size
    rates, torques = np.zeros(n), np.r_[np.zeros(6), 10.0 * rng.normal(size=n - 6)]
    known = {
        **by_joint(dynamics, robot, JointTorque, torques),
        **{Resting(sole): np.zeros(6) for sole in SOLES},
    }
    del known[JointTorque(dynamics.joints[0])]
    wanted = [ExternalWrench(sole) for sole in SOLES]
    found = SparseDynamics(robot, [*map(Measurement, known)], wanted).solve(q, rates, known)
    from delassus import Contact, DelassusSolver, Problem

    contacts = [Contact(sole, sole, "surface") for sole in SOLES]
    s = DelassusSolver(Problem(robot, contacts, outputs=("G", "a0"))).solve(
        q, rates=rates, torques=torques, gravity=[0.0, 0.0, -9.81]
    )
    expected = -np.linalg.solve(s.matrix, s.output("a0")).reshape(2, 6)
    for quantity, wrench in zip(wanted, expected, strict=True):
        off = np.linalg.norm(found.values[quantity] - wrench)
        assert off < 1e-8 * np.linalg.norm(expected)


def test_a_four_bar_moves_as_its_dynamics_say() -> None:
    robot = Robot.from_urdf(robots.shared("grbda_four_bar"), "fixed")
    dynamics = Dynamics(robot)
    # A parallelogram: the link on the crank turns back what the crank turns.
    q = np.array([-0.4 if joint.parent != WORLD else 0.4 for joint in robot.joints])
    _, rates, torques = state(dynamics, robot, 1)
    ydd = dynamics.forward(q, rates, torques, GRAVITY)
    (joint,) = dynamics.joints
    given, asked = JointTorque(joint), JointAcceleration(joint)
    system = SparseDynamics(robot, [Measurement(given)], [asked])
    found = system.solve(q, rates, {given: torques}, GRAVITY)
    assert np.linalg.norm(found.values[asked] - ydd) < 1e-9 * np.linalg.norm(ydd)


def test_more_exact_values_than_can_be_are_refused() -> None:
    robot, dynamics, q = standing()
    none = np.zeros(dynamics.size)
    known = {
        **by_joint(dynamics, robot, JointAcceleration, none),
        **by_joint(dynamics, robot, JointTorque, none),
    }
    asked = [JointTorque("left_shank_joint")]
    words = f"by {none.size} numbers: exact values of .*JointAcc.* sigma"
    with pytest.raises(ProblemError, match=words):
        SparseDynamics(robot, [*map(Measurement, known)], asked)
    loosely = [Measurement(quantity, 1.0) for quantity in known]
    still = SparseDynamics(robot, loosely, asked).solve(q, none, known, np.zeros(3))
    assert np.abs(still.values[asked[0]]).max() < 1e-9


def test_a_sensor_in_a_limb_feels_what_pinocchio_says() -> None:
    from oracles.pinocchio_models import PinocchioDynamics

    robot = Robot.from_urdf(humanoid_urdf().encode())
    dynamics = Dynamics(robot)
    q, rates, ydd = state(dynamics, robot, 5)
    peer = PinocchioDynamics(robot, q)
    peer.inverse(rates, ydd)
    known = by_joint(dynamics, robot, JointAcceleration, ydd)
    base = JointTorque(dynamics.joints[0])
    sensors = [ForceTorqueSensor(name) for name in ("left_palm", "right_sole", "left_sole")]
    system = SparseDynamics(robot, [*map(Measurement, known)], [*sensors, base])
    found = system.solve(q, rates, known, GRAVITY)
    for sensor in sensors:
        joint, pose = peer.frame(sensor.frame)
        expected = pose.actInv(peer.data.f[joint]).vector
        off = np.linalg.norm(found.values[sensor] - expected)
        assert off < 1e-10 * np.linalg.norm(expected), sensor


def test_a_sensor_where_its_forces_are_not_told_is_refused() -> None:
    robot = Robot.from_urdf(robots.shared("grbda_four_bar"), "fixed")
    frame = next(name for name, f in robot.frames.items() if f.body != WORLD)
    with pytest.raises(ProblemError, match=f"sensor at '{frame}' is on a link of a loop"):
        SparseDynamics(robot, [], [ForceTorqueSensor(frame)])
    humanoid = Robot.from_urdf(humanoid_urdf().encode())
    on_base = next(n for n, f in humanoid.frames.items() if humanoid.joints[f.body].name == "root")
    with pytest.raises(ProblemError, match="is on the base"):
        SparseDynamics(humanoid, [], [ForceTorqueSensor(on_base)])


def test_a_wrist_sensor_tells_the_wrench_on_the_hand() -> None:
    """From the motion and a sensor in the wrist the load in the hand follows, and back.

    At the sample postures nothing loads the hand: some equations have rounding errors alone.
    """
    robot, dynamics, q = standing(3)
    rng, n = np.random.default_rng(1), dynamics.size
    rates, ydd, push = 0.3 * rng.normal(size=n), rng.normal(size=n), 20.0 * rng.normal(size=6)
    moved = by_joint(dynamics, robot, JointAcceleration, ydd)
    exact = [*map(Measurement, moved)]
    load, sensor = ExternalWrench("left_palm"), ForceTorqueSensor("left_palm")
    base = JointTorque(dynamics.joints[0])
    there = SparseDynamics(robot, [*exact, Measurement(load)], [sensor, base])
    felt = there.solve(q, rates, {**moved, load: push}).values[sensor]
    back = SparseDynamics(robot, [*exact, Measurement(sensor, 0.1)], [load, base])
    found = back.solve(q, rates, {**moved, sensor: felt})
    np.testing.assert_allclose(found.values[load], push, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.covariances[load], 0.01 * np.eye(6), rtol=0, atol=1e-12)


def test_a_point_at_rest_without_moments_holds_as_a_point_contact_does() -> None:
    robot, dynamics, q = standing(2)
    rng, n = np.random.default_rng(4), dynamics.size
    torques = np.r_[np.zeros(6), 10.0 * rng.normal(size=n - 6)]
    efforts = by_joint(dynamics, robot, JointTorque, torques)
    del efforts[JointTorque(dynamics.joints[0])]
    moments = ExternalWrench("left_palm", (3, 4, 5))
    known = [
        *map(Measurement, efforts),
        Measurement(Resting("left_palm", (0, 1, 2)), value=0.0),
        Measurement(moments, value=0.0),
    ]
    force = ExternalWrench("left_palm", (0, 1, 2))
    found = SparseDynamics(robot, known, [force]).solve(q, np.zeros(n), efforts)
    from delassus import Contact, DelassusSolver, Problem

    problem = Problem(robot, [Contact("palm", "left_palm", "point")], outputs=("G", "a0"))
    s = DelassusSolver(problem).solve(
        q, rates=np.zeros(n), torques=torques, gravity=[0.0, 0.0, -9.81]
    )
    expected = -np.linalg.solve(s.matrix, s.output("a0"))
    assert np.linalg.norm(found.values[force] - expected) < 1e-10 * np.linalg.norm(expected)


def test_what_cannot_be_posed_is_said() -> None:
    robot, dynamics, q = standing()
    torque = JointTorque("left_shank_joint")
    with pytest.raises(ProblemError, match="unknown joint 'knee'"):
        SparseDynamics(robot, [Measurement(JointTorque("knee"))], [torque])
    with pytest.raises(ProblemError, match="is known twice"):
        SparseDynamics(robot, [Measurement(torque), Measurement(torque)], [torque])
    with pytest.raises(ProblemError, match="unknown frame 'sole'"):
        SparseDynamics(robot, [Measurement(Resting("sole"))], [torque])
    with pytest.raises(InputError, match="sigma of .* is -1.0"):
        Measurement(torque, -1.0)
    # A plain number, whose text is part of a key, of anything that is one.
    assert repr(Measurement(torque, np.array(0.1), np.float32(0.5)).sigma) == "0.1"
    for wrong in ("0.1", 0.1j, [0.1]):
        with pytest.raises(InputError, match="sigma of .* is .*; expected"):
            Measurement(torque, wrong)
    with pytest.raises(InputError, match="value of .* is nan; expected a finite number"):
        Measurement(torque, 0.0, np.nan)
    with pytest.raises(InputError, match="a row of the wrench on 'left_sole' is 0.0; expected"):
        ExternalWrench("left_sole", (0.0, 1.0))
    with pytest.raises(InputError, match=r"rows of the wrench on 'left_sole' are \[0, 7\]"):
        ExternalWrench("left_sole", (0, 7))
    none = np.zeros(dynamics.size)
    known = by_joint(dynamics, robot, JointAcceleration, none)
    wrench = JointTorque(dynamics.joints[0])
    system = SparseDynamics(robot, [*map(Measurement, known)], [torque, wrench])
    some = dict(known)
    del some[JointAcceleration("head_joint")]
    with pytest.raises(InputError, match=r"value of .*head_joint.* is missing"):
        system.solve(q, none, some)
    with pytest.raises(InputError, match="expected 1 finite numbers"):
        system.solve(q, none, {**known, JointAcceleration("head_joint"): [1.0, 2.0]})
    with pytest.raises(InputError, match="not a measurement of this system"):
        system.solve(q, none, {**known, torque: 1.0})
