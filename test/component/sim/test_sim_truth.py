"""What the simulator tells beyond what a robot can measure."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from delassus_ros.sim.plant import STEP_S, Plant
from delassus_ros.sim.quadruped import stepping_quadruped

WEIGHT = 129.0  # N


@pytest.fixture(name="simulation")
def make_simulation() -> Plant:
    simulation = stepping_quadruped()
    for _ in range(250):
        simulation.step()
    return simulation


def rotation(quaternion: np.ndarray) -> np.ndarray:
    matrix = np.zeros(9)
    mujoco.mju_quat2Mat(matrix, quaternion[[3, 0, 1, 2]])
    return matrix.reshape(3, 3)


def test_forces_of_a_quiet_stance_bear_the_weight(simulation) -> None:
    forces = simulation.truth().forces
    assert forces.shape == (4, 3)
    assert (forces[:, 2] > 20.0).all()
    np.testing.assert_allclose(forces.sum(axis=0), [0.0, 0.0, WEIGHT], atol=1.0)


def test_a_foot_in_the_air_bears_nothing(simulation) -> None:
    while len(simulation.active_contacts) == 4:
        simulation.step()
    for _ in range(30):
        simulation.step()
    forces = simulation.truth().forces
    for name, force in zip(simulation.contact_names, forces, strict=True):
        assert (force[2] > 1.0) == (name in simulation.active_contacts), name
    assert (np.abs(forces).sum(axis=1) == 0.0).sum() == 2


def test_reading_the_truth_does_not_disturb_the_simulation(simulation) -> None:
    other = stepping_quadruped()
    for _ in range(250):
        other.step()
        other.truth()
    for _ in range(500):
        simulation.step()
        other.step()
        other.truth()
    np.testing.assert_array_equal(simulation.q, other.q)
    np.testing.assert_array_equal(simulation.effort, other.effort)


def test_the_pose_changes_by_the_twist(simulation) -> None:
    for _ in range(400):  # to where the trunk moves
        simulation.step()
    first = simulation.truth()
    simulation.step()
    second = simulation.truth()
    R = rotation(first.orientation)
    # A step moves by the velocities at its middle and at its end.
    mean = 0.25 * first.twist + 0.75 * second.twist
    moved = R.T @ (second.position - first.position) / STEP_S
    np.testing.assert_allclose(moved, mean[:3], atol=2e-4)
    turned = R.T @ rotation(second.orientation)
    rate = np.array([turned[2, 1], turned[0, 2], turned[1, 0]]) / STEP_S
    np.testing.assert_allclose(rate, mean[3:], atol=2e-3)
    assert np.abs(mean[:3]).max() > 0.01 and np.abs(mean[3:]).max() > 0.02


def test_torques_are_those_of_the_present_state(simulation) -> None:
    """The servo's law at q and velocity: its stiffness and damping."""
    command = simulation._data.ctrl
    expected = 500.0 * (command - simulation.q) - 10.0 * simulation.velocity
    np.testing.assert_allclose(simulation.truth().effort, expected, atol=1e-10)
