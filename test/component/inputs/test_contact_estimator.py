"""Contacts told by forces: against a walking robot's simulator, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
import small
from control.simulate import run
from tick_support import sensed
from whole_body_control.example import EXAMPLE
from whole_body_control.gait import LEGS, Act

from delassus import CenterOfMass, Contact, ContactSet, Problem, Robot
from delassus.errors import InputError
from delassus.robots.built_in import demo_urdf
from delassus_ros.inputs.contact_estimator import ContactEstimator, ObserverSettings
from delassus_ros.inputs.findings import Reason
from delassus_ros.inputs.orientation import OrientationInput
from delassus_ros.sim.plant import Plant, PlantSettings
from delassus_ros.sim.quadruped import POSTURE

pytestmark = pytest.mark.needs("delassus_msgs", "daqp")

GRAVITY = (0.0, 0.0, -9.81)
ARMATURE = 0.01
ROUGH = PlantSettings(
    friction=0.7, armature=ARMATURE, joint_friction=0.1, joint_damping=0.02, torque_noise=0.2,
    position_noise=3e-4, velocity_noise=0.03, base_noise=0.02,
)  # fmt: skip
ACTS = (Act("stand", 0.5), Act("trot", 3.0, velocity=(0.3, 0.0), trotting=True))
NAMES = list(POSTURE)


class Follower:
    """An estimator that gets what a plant's sensors say, and the plant's own forces beside it."""

    def __init__(self, axes: str = "world") -> None:
        armature = dict.fromkeys(NAMES, ARMATURE)
        robot = Robot.from_urdf(demo_urdf().encode(), armature=armature)
        contacts = [Contact("trunk", "base", "surface")]
        contacts += [Contact(leg, f"{leg}_FOOT") for leg in LEGS]
        self.base = OrientationInput(robot, world="odom", timeout=math.inf)
        problem = Problem(robot, ContactSet(contacts), axes)
        self.estimator = ContactEstimator(problem, ObserverSettings(), LEGS, GRAVITY, self.base)
        self.found: list[np.ndarray] = []
        self.true: list[np.ndarray] = []
        self.touches: list[np.ndarray] = []

    def __call__(self, plant: Plant, now: float) -> None:
        state, stamp = plant.sense(), round(1e9 * (now + 1.0))
        velocity, rates = state.twist[:3], state.twist[3:]
        odometry = sensed(state.orientation, stamp, "base", "odom", rates, velocity)
        self.base.accept(odometry, stamp)
        self.estimator.motion.accept(NAMES, np.array([state.velocity, state.effort]))
        warning = self.estimator.update(state.q, stamp, stamp)
        if not self.found:
            # There is no difference to judge by.
            assert warning is not None and not self.estimator.is_known
            self.estimator.forces[...] = plant.contact_forces().ravel()
        else:
            assert warning is None
        self.found.append(self.estimator.forces.reshape(-1, 3).copy())
        self.touches.append(self.estimator.touches.copy())
        self.true.append(plant.contact_forces())


@pytest.mark.parametrize(
    "settings", [PlantSettings(armature=ARMATURE), ROUGH], ids=["calm", "rough"]
)
def test_a_trotting_robot(settings: PlantSettings) -> None:
    follower = Follower()
    record = run(EXAMPLE, 3.5, ACTS, settings, follower)
    assert not record.fell
    true, found = np.array(follower.true), np.array(follower.found)
    touches = true[:, :, 2] > 2.0
    assert (touches == np.array(follower.touches)).mean() > 0.98
    error = ((found - true)[touches] ** 2).sum() / (true[touches] ** 2).sum()
    assert np.sqrt(error) < 0.2


def test_axes_of_the_contacts_tell_the_same_forces() -> None:
    """Their size, as the axes are others."""
    sizes = []
    for axes in ("world", "contact"):
        follower = Follower(axes)
        run(EXAMPLE, 0.4, ACTS, PlantSettings(armature=ARMATURE), follower)
        sizes.append(np.linalg.norm(np.array(follower.found), axis=2)[100:])
    np.testing.assert_allclose(*sizes, rtol=0.02, atol=0.2)


def test_probability_and_wrenches() -> None:
    follower = Follower()
    run(EXAMPLE, 0.3, ACTS, PlantSettings(armature=ARMATURE), follower)
    estimator = follower.estimator
    assert (estimator.probability > 0.99).all() and estimator.status == [2] * 4
    wrenches = estimator.wrenches()
    np.testing.assert_allclose(wrenches[:, :3], estimator.forces.reshape(4, 3))
    assert not wrenches[:, 3:].any()
    estimator.reset()
    assert estimator.status == [1] * 4 and not estimator.stamp


def test_bad_inputs_have_their_words() -> None:
    follower = Follower()
    estimator, q = follower.estimator, np.array(list(POSTURE.values()))
    still = np.zeros((2, 12))
    estimator.motion.accept(NAMES, still)
    warning = estimator.update(q, 10**9, 10**9)
    assert warning is not None and warning.reason is Reason.ORIENTATION_MISSING
    stamp = 2 * 10**9
    follower.base.accept(sensed((0, 0, 0, 1), stamp, "base", rates=None), stamp)
    warning = estimator.update(q, stamp, stamp)
    assert warning is not None and warning.reason is Reason.TWIST_INVALID
    follower.base.accept(sensed((0, 0, 0, 1), stamp, "base", "odom"), stamp)
    warning = estimator.update(q, stamp, stamp)
    assert warning is not None and warning.reason is Reason.NO_CONTACTS_RECEIVED
    assert not estimator.is_known
    stamp += 10**7
    assert estimator.update(q, stamp, stamp) is None and estimator.is_known
    warning = estimator.update(q, 0, stamp)
    assert warning is not None and warning.reason is Reason.STAMP_INVALID
    estimator.motion.accept(NAMES, np.array([np.zeros(12), np.full(12, np.nan)]))
    warning = estimator.update(q, stamp, stamp)
    assert warning is not None and warning.reason is Reason.TORQUE_MISSING
    assert estimator.stamp == 0
    estimator.motion.accept(NAMES, np.array([np.full(12, 300.0), np.zeros(12)]))
    warning = estimator.update(q, stamp, stamp)
    assert warning is not None and warning.reason is Reason.JOINT_OUTSIDE_LIMITS
    assert estimator.stamp == 0


def test_what_cannot_be_told_is_refused() -> None:
    problem = small.problem()
    with pytest.raises(InputError, match="'c2' has 1 rows; .* needs three linear ones"):
        ContactEstimator(problem, ObserverSettings(), (), GRAVITY, None)
    with pytest.raises(InputError, match="contacts.estimated: unknown contact 'c9'"):
        ContactEstimator(problem, ObserverSettings(), ("c9",), GRAVITY, None)
    robot = Robot.from_urdf(demo_urdf().encode(), base="fixed")
    several = Problem(robot, [Contact("LF", "LF_FOOT"), CenterOfMass("com")])
    found = ContactEstimator(several, ObserverSettings(), (), GRAVITY, None)
    assert found.contacts.names == ("LF",)
    with pytest.raises(
        InputError, match="'com' is of kind 'center_of_mass', which touches nothing"
    ):
        ContactEstimator(several, ObserverSettings(), ("com",), GRAVITY, None)
    with pytest.raises(InputError, match="expected less than that"):
        ObserverSettings(force_on=5.0, force_off=5.0)
