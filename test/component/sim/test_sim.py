"""The demo robot and its physics, without ROS."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import yaml
from upright import is_upright

from delassus import Robot
from delassus.errors import ContactError, InputError
from delassus.robots.built_in import ROBOTS, demo_urdf
from delassus_ros.sim.gait import (
    LEGS,
    Gait,
    LegGeometry,
    Phase,
    TouchFilter,
    TouchState,
    smoothstep,
    stepping_cycle,
)

FEET = ((0.2, 0.1, -0.3), (0.2, -0.1, -0.3), (-0.2, 0.1, -0.3), (-0.2, -0.1, -0.3))


def rotation(axis: int, angle: float) -> np.ndarray:
    """Elementary rotation about x (0), y (1) or z (2)."""
    a, b = (axis + 1) % 3, (axis + 2) % 3
    matrix = np.eye(3)
    matrix[a, a] = matrix[b, b] = math.cos(angle)
    matrix[b, a] = math.sin(angle)
    matrix[a, b] = -matrix[b, a]
    return matrix


def foot_position(leg: LegGeometry, angles: tuple[float, float, float]) -> np.ndarray:
    """Forward kinematics of a leg, written from the URDF's joints."""
    abduction, hip, knee = angles
    thigh = rotation(0, abduction) @ rotation(1, hip)
    return (
        np.array(leg.hip)
        + rotation(0, abduction) @ (0.0, leg.offset, 0.0)
        + thigh @ (0.0, 0.0, -leg.thigh)
        + thigh @ rotation(1, knee) @ (0.0, 0.0, -leg.shank)
    )


# --- URDF -------------------------------------------------------------------------------------

GEARED_LEG = Path(__file__).parents[3] / "docs" / "geared_leg.urdf"


@pytest.mark.parametrize("text", [*map(demo_urdf, ROBOTS), GEARED_LEG.read_text(encoding="utf-8")])
def test_descriptions_are_values_of_yaml(text) -> None:
    """As which ROS reads those of ``-p robot_description:=…``: no colons in comments."""
    read = yaml.safe_load(text)
    robots = [Robot.from_urdf(each, base="fixed") for each in (read, text)]
    assert robots[0].to_bytes() == robots[1].to_bytes()


def links() -> dict[str, ElementTree.Element]:
    """Return the links of the URDF by name."""
    root = ElementTree.fromstring(demo_urdf())
    return {link.attrib["name"]: link for link in root.iter("link")}


def inertia_of(link: ElementTree.Element) -> np.ndarray:
    """Rotational inertia of a link at its centre of mass."""
    entries = link.find("inertial/inertia").attrib
    x, y, z = ([float(entries["i" + "".join(sorted(a + b))]) for b in "xyz"] for a in "xyz")
    return np.array([x, y, z])


def test_urdf_has_twelve_joints_and_four_feet() -> None:
    """The names the configuration and the documentation rely on."""
    root = ElementTree.fromstring(demo_urdf())
    moving = [j.attrib["name"] for j in root.iter("joint") if j.attrib["type"] == "revolute"]
    assert moving == [f"{leg}_{joint}" for leg in LEGS for joint in ("HAA", "HFE", "KFE")]
    assert {f"{leg}_FOOT" for leg in LEGS} <= set(links())


def test_urdf_inertias_are_physical() -> None:
    """Positive mass, positive definite inertia, triangle inequality of the principal moments."""
    with_mass = {name: link for name, link in links().items() if link.find("inertial") is not None}
    assert len(with_mass) == 2 + 4 * len(LEGS)
    for name, link in with_mass.items():
        assert float(link.find("inertial/mass").attrib["value"]) > 0.0, name
        small, middle, large = np.linalg.eigvalsh(inertia_of(link))
        assert small > 0.0, name
        assert small + middle > large, name
    total = sum(float(link.find("inertial/mass").attrib["value"]) for link in with_mass.values())
    assert 12.0 < total < 15.0


@pytest.mark.parametrize("part", ["HIP", "THIGH", "SHANK", "FOOT"])
@pytest.mark.parametrize("end", ["F", "H"])
def test_urdf_right_legs_mirror_left_ones(end: str, part: str) -> None:
    """Reflection in the x-z plane: y changes sign, and with it the products with y."""
    mirror = np.diag([1.0, -1.0, 1.0])
    left, right = (links()[f"{side}{end}_{part}"] for side in "LR")
    np.testing.assert_array_equal(inertia_of(right), mirror @ inertia_of(left) @ mirror)
    centres = [
        np.array([float(x) for x in link.find("inertial/origin").attrib["xyz"].split()])
        for link in (left, right)
    ]
    np.testing.assert_array_equal(centres[1], mirror @ centres[0])


# --- gait -------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [0.07, -0.07])
def test_leg_angles_invert_the_leg(offset: float) -> None:
    """Forward kinematics of the angles gives the foot back, all over the workspace."""
    leg = LegGeometry((0.19, offset, 0.01), offset, 0.2, 0.21)
    rng = np.random.default_rng(3)
    for _ in range(200):
        angles = (rng.uniform(-0.8, 0.8), rng.uniform(-1.0, 1.2), rng.uniform(-2.4, -0.3))
        if math.cos(angles[1]) * leg.thigh + math.cos(angles[1] + angles[2]) * leg.shank < 0.02:
            continue  # the foot above the hip: the leg's other branch
        foot = foot_position(leg, angles)
        np.testing.assert_allclose(leg.angles(foot), angles, atol=1e-9)


def test_leg_out_of_reach_stretches_towards_the_foot() -> None:
    """No exception in the control loop; the leg points where it should."""
    leg = LegGeometry((0.0, 0.0, 0.0), 0.07, 0.2, 0.2)
    angles = leg.angles((0.5, 0.07, -0.5))
    assert angles[2] == 0.0
    foot = foot_position(leg, angles)
    assert foot[0] == pytest.approx(-foot[2], abs=1e-12)


@pytest.mark.parametrize("offset", [0.07, -0.07])
def test_leg_torques_balance_the_load(offset: float) -> None:
    """Virtual work: torque times joint motion equals load times downward motion of the foot."""
    leg = LegGeometry((0.19, offset, 0.0), offset, 0.2, 0.21)
    angles, load, step = np.array([0.3, 0.5, -1.1]), 40.0, 1e-6
    torques = leg.torques(angles, load)
    for joint in range(3):
        move = np.zeros(3)
        move[joint] = step
        rise = foot_position(leg, angles + move)[2] - foot_position(leg, angles - move)[2]
        assert torques[joint] == pytest.approx(-load * rise / (2.0 * step), abs=1e-6)


def test_smoothstep_starts_and_ends_at_rest() -> None:
    """Values and slopes at the ends, and the middle."""
    assert [smoothstep(s) for s in (0.0, 0.5, 1.0)] == [0.0, 0.5, 1.0]
    assert smoothstep(1e-4) < 1e-10
    assert 1.0 - smoothstep(1.0 - 1e-4) < 1e-10


def test_gait_is_continuous_and_lifts_only_unloaded_feet() -> None:
    """Between milliseconds the feet move little; a foot in the air bears nothing."""
    gait = Gait(FEET, stepping_cycle(FEET))
    assert 4.0 < gait.period < 8.0
    before = gait.stance(0.0)
    for tick in range(1, int(2000 * gait.period)):
        now = gait.stance(1e-3 * tick)
        assert np.abs(np.subtract(now.feet, before.feet)).max() < 1e-3
        assert np.abs(np.subtract(now.share, before.share)).max() < 2e-2
        for foot, home, share in zip(now.feet, FEET, now.share, strict=True):
            assert share == 0.0 or foot[2] == home[2]
        before = now


def test_gait_leans_away_from_the_lifted_foot() -> None:
    """When a single foot is in the air, the middle is inside the triangle of the others."""
    cycle = stepping_cycle(FEET)
    singles = [phase for phase in cycle if phase.lift > 0.0 and len(phase.unloaded) == 1]
    assert sorted(phase.unloaded[0] for phase in singles) == [0, 1, 2, 3]
    for phase in singles:
        others = [FEET[leg] for leg in range(4) if leg not in phase.unloaded]
        corners = np.array([(1.0, x, y) for x, y, _ in others]).T
        weights = np.linalg.solve(corners, (1.0, *phase.trunk))
        assert weights.min() > 0.05


def test_gait_repeats() -> None:
    """One period later the same is wanted."""
    gait = Gait(FEET, (Phase(0.5, (0.1, 0.0)), Phase(0.25, (0.1, 0.0), (1,), 0.1), Phase(0.25)))
    now, later = gait.stance(0.6), gait.stance(0.6 + gait.period)
    assert now.feet[1][2] > FEET[1][2] + 0.01
    np.testing.assert_allclose(later.feet, now.feet, atol=1e-12)


# --- contact states ---------------------------------------------------------------------------


def test_touch_is_unknown_until_it_has_lasted() -> None:
    """The first state comes after as many samples as any change needs."""
    touch = TouchFilter(debounce=3)
    states = [touch.update(10.0, 0.0) for _ in range(3)]
    assert states == [TouchState.UNKNOWN, TouchState.UNKNOWN, TouchState.ACTIVE]


def test_touch_ignores_bounces_and_keeps_its_hysteresis() -> None:
    """A short loss of force changes nothing, nor does a force between the thresholds."""
    touch = TouchFilter(force_on=2.0, force_off=0.5, debounce=3)
    for _ in range(3):
        touch.update(10.0, 0.0)
    for force in (0.0, 0.0, 10.0, 0.0, 0.0, 10.0, 1.0, 1.0, 1.0, 1.0):
        assert touch.update(force, 0.0) is TouchState.ACTIVE
    for _ in range(3):
        touch.update(0.0, 0.0)
    assert touch.state is TouchState.INACTIVE
    for _ in range(5):
        assert touch.update(1.0, 0.0) is TouchState.INACTIVE


def test_touch_slips_when_fast_and_still_touches() -> None:
    """Slipping is a state of a contact that carries force."""
    touch = TouchFilter(slip_speed=0.05, debounce=1)
    assert touch.update(10.0, 0.06) is TouchState.SLIPPING
    assert touch.state.touches
    assert touch.update(0.0, 0.06) is TouchState.INACTIVE
    assert not touch.state.touches


# --- physics ----------------------------------------------------------------------------------


@pytest.fixture(name="simulation")
def make_simulation():
    """Return a fresh simulation."""
    import_module("mujoco")
    return another_simulation()


def another_simulation():
    from delassus_ros.sim.quadruped import stepping_quadruped

    return stepping_quadruped()


@pytest.mark.parametrize("seconds", [10, pytest.param(20, marks=pytest.mark.slow)])
def test_robot_stays_up_and_every_foot_steps(simulation, seconds: int) -> None:
    """Bounded height and tilt, sets of 4, 3 and 2, every foot up and down."""
    lifted = dict.fromkeys(simulation.contact_names, 0)
    landed = dict.fromkeys(simulation.contact_names, 0)
    sizes: dict[int, int] = {}
    before: frozenset[str] = frozenset(simulation.contact_names)
    lower, upper = simulation_limits(simulation)
    for tick in range(1, 1000 * seconds + 1):
        simulation.step()
        assert abs(simulation.time - 1e-3 * tick) < 1e-9
        assert is_upright(simulation)
        q = simulation.q
        assert (lower < q).all() and (q < upper).all()
        if tick < 100:
            continue  # the contact states settle
        active = frozenset(simulation.active_contacts)
        sizes[len(active)] = sizes.get(len(active), 0) + 1
        for name in before - active:
            lifted[name] += 1
        for name in active - before:
            landed[name] += 1
        before = active
    assert min(lifted.values()) >= 0.3 * seconds and min(landed.values()) >= 0.3 * seconds
    assert max(lifted.values()) <= 0.6 * seconds, "contacts chatter"
    assert sizes[4] > 500 * seconds and sizes[3] > 100 * seconds and sizes[2] > 25 * seconds
    assert sum(sizes.values()) - sizes[4] - sizes[3] - sizes[2] == 0


def simulation_limits(simulation) -> tuple[np.ndarray, np.ndarray]:
    """Joint limits from the URDF, in the order of the simulation's joints."""
    root = ElementTree.fromstring(demo_urdf())
    limits = {
        joint.attrib["name"]: joint.find("limit").attrib
        for joint in root.iter("joint")
        if joint.find("limit") is not None
    }
    rows = [(limits[name]["lower"], limits[name]["upper"]) for name in simulation.joint_names]
    lower, upper = np.array(rows, dtype=float).T
    return lower, upper


def test_efforts_stay_within_the_limits_of_the_urdf(simulation) -> None:
    """The servos obey the effort limits, and standing takes torque."""
    largest = 0.0
    for _ in range(1000):
        simulation.step()
        largest = max(largest, float(np.abs(simulation.effort).max()))
    assert 1.0 < largest <= 35.0
    assert np.abs(simulation.velocity).max() > 0.0


def test_contact_states_change_where_the_forces_say(simulation) -> None:
    """Standing feet are active; a foot that slides over the floor is reported as slipping."""
    for _ in range(200):
        simulation.step()
    assert simulation.contact_states == (TouchState.ACTIVE,) * 4
    assert simulation.active_contacts == LEGS
    simulation._data.qvel[0] = 1.0  # a push that friction cannot hold at once
    seen = set()
    for _ in range(60):
        simulation.step()
        seen.update(simulation.contact_states)
    assert TouchState.SLIPPING in seen


def test_runs_repeat_exactly(simulation) -> None:
    """Two simulations give the same positions to the last bit."""
    other = another_simulation()
    for _ in range(1500):
        simulation.step()
        other.step()
    np.testing.assert_array_equal(simulation.q, other.q)
    assert simulation.contact_states == other.contact_states


def test_reference_does_not_disturb_the_run(simulation) -> None:
    """A run with a reference at every step equals one without."""
    other = another_simulation()
    for _ in range(700):
        simulation.step()
        simulation.reference_all()
        other.step()
    np.testing.assert_array_equal(simulation.q, other.q)
    np.testing.assert_array_equal(simulation.velocity, other.velocity)


def test_reference_is_symmetric_and_positive(simulation) -> None:
    for _ in range(900):
        simulation.step()
    matrix = simulation.reference_all()
    assert matrix.shape == (12, 12)
    np.testing.assert_allclose(matrix, matrix.T, rtol=0.0, atol=1e-13 * np.abs(matrix).max())
    assert np.linalg.eigvalsh(matrix).min() > 0.1


def test_reference_follows_the_present_configuration(simulation) -> None:
    """The matrix belongs to q as published, not to the state before the last step."""
    from delassus_ros.sim.reference import MujocoReference

    for _ in range(600):
        simulation.step()
    fresh = MujocoReference(simulation._model, tuple(simulation.frames.values()))
    upright = np.concatenate([[0.3, -2.0, 5.0, 1.0, 0.0, 0.0, 0.0], simulation.q])
    expected = fresh.matrix(upright)
    difference = np.linalg.norm(simulation.reference_all() - expected)
    assert difference <= 1e-12 * np.linalg.norm(expected)


def test_reference_refuses_what_it_cannot_answer(simulation) -> None:
    """Unknown names and bad configurations are named."""
    from delassus_ros.sim.reference import MujocoReference

    with pytest.raises(ContactError, match=r"unknown frame 'LF_FOT'; did you mean 'LF_FOOT'"):
        MujocoReference(simulation._model, ("LF_FOT",))
    reference = MujocoReference(simulation._model, ("LF_FOOT",))
    with pytest.raises(InputError, match=r"shape \(3,\); expected \(19,\)"):
        reference.matrix(np.zeros(3))
    with pytest.raises(InputError, match="not finite"):
        reference.matrix(np.full(19, math.nan))


def test_reference_agrees_with_pinocchio(simulation) -> None:
    """Random joint angles and trunk poses, against Pinocchio's Jacobians and inertia matrix."""
    import pinocchio

    from delassus_ros.sim.reference import MujocoReference

    model = pinocchio.buildModelFromXML(demo_urdf(), pinocchio.JointModelFreeFlyer())
    data = model.createData()
    assert tuple(model.names[2:]) != () and set(model.names[2:]) == set(simulation.joint_names)
    places = [model.idx_qs[model.getJointId(name)] for name in simulation.joint_names]
    reference = MujocoReference(simulation._model, tuple(simulation.frames.values()))
    rng = np.random.default_rng(7)
    for _ in range(50):
        base = rng.normal(size=7)
        base[3:] /= np.linalg.norm(base[3:])
        joints = rng.uniform(-math.pi, math.pi, 12)
        q = np.zeros(model.nq)
        q[:7] = base
        q[places] = joints
        jacobian = np.vstack(
            [
                pinocchio.computeFrameJacobian(
                    model, data, q, model.getFrameId(frame), pinocchio.ReferenceFrame.LOCAL
                )[:3]
                for frame in simulation.frames.values()
            ]
        )
        inertia = pinocchio.crba(model, data, q)
        inertia = np.triu(inertia) + np.triu(inertia, 1).T
        expected = jacobian @ np.linalg.solve(inertia, jacobian.T)
        # Pinocchio's quaternion is x, y, z, w; MuJoCo's is w, x, y, z.
        matrix = reference.matrix(np.concatenate([base[[0, 1, 2, 6, 3, 4, 5]], joints]))
        difference = np.linalg.norm(matrix - expected)
        assert difference <= 1e-10 * np.linalg.norm(expected)
