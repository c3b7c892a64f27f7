"""The balancing example: its program beside a full one, and a humanoid that stands and steps."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
import qpsolvers
from balance.controller import Controller
from balance.example import EXAMPLE
from balance.poses import TIMETABLE, Pose, Poser
from balance.qp import BASE, Matrices, Wanted, Weights, torques
from control import film
from control.kinematics import State
from control.program import UnsolvedError
from control.simulate import report, run
from oracles.pinocchio_models import dynamics_of_frames
from PIL import Image
from seeds import but_slow

from delassus import DelassusSolver
from delassus.errors import InputError
from delassus.robots.built_in.humanoid import FEET, POSTURE, humanoid_urdf
from delassus_ros.sim.plant import Plant, PlantSettings
from delassus_ros.sim.plants import make_plant

pytestmark = pytest.mark.needs("daqp")

ROUGH = PlantSettings(
    friction=0.7, armature=0.01, joint_friction=0.3, joint_damping=0.05, torque_noise=0.5,
    position_noise=3e-4, velocity_noise=0.02, base_noise=0.01,
)  # fmt: skip
BOTH = {"both feet": (1.0, 1.0), "the left one": (1.0, 0.0), "unloading": (1.0, 0.02)}


class Peer:
    """The same tasks by Pinocchio's M, h, J, J̇ẏ and Jacobian of the centre of mass."""

    def __init__(self, state: State) -> None:
        joints = DelassusSolver(EXAMPLE.problem(humanoid_urdf())).problem.robot.joint_names
        self.controller = Controller(humanoid_urdf(), joints, np.full(len(joints), 200.0))
        kinematics = self.controller.kinematics
        model, data = kinematics.model, kinematics.data
        q, v = kinematics.configuration(state)
        order = [*range(BASE), *kinematics.v_places]
        M, h, J, self.JdotV = dynamics_of_frames(model, q, v, ("pelvis", *FEET.values()))
        self.M, self.h, self.J = M[np.ix_(order, order)], h[order], J[:, order]
        pin.centerOfMass(model, data, q, v, 0.0 * v)
        self.drift = data.acom[0].copy()
        self.Jcom = pin.jacobianCenterOfMass(model, data, q)[:, order]
        self.mass = kinematics.mass

    def torques(self, wanted: Wanted, weights: Weights) -> np.ndarray:
        """Solve for accelerations, virtual forces, contact forces and torques at a time."""
        v, n, k = len(self.h), len(self.h) - BASE, len(self.J)
        standing = [k for k, share in enumerate(wanted.bears) if share > 0.0]
        rows = np.concatenate([np.arange(BASE) + BASE * (k + 1) for k in standing])
        m = len(rows)
        size, forces = v + k + m + n, slice(v + k, v + k + m)
        tasks = np.zeros((BASE, size))
        tasks[:, :v] = np.vstack([self.Jcom, self.J[3:BASE]])
        error = np.r_[wanted.centre - self.drift, wanted.turning - self.JdotV[3:BASE]]
        W = np.diag(np.r_[weights.centre, weights.turning])
        bears = np.array(wanted.bears)[standing]
        weight = 9.81 * self.mass
        rest = np.zeros((len(standing), BASE))
        rest[:, 2] = weight * bears / bears.sum()
        small = np.zeros(size)
        small[forces] = np.tile(weights.force, len(standing))
        P = tasks.T @ W @ tasks + np.diag(small)
        p = -tasks.T @ W @ error
        p[forces] -= small[forces] * rest.ravel()
        S = np.hstack([np.zeros((n, BASE)), np.eye(n)])
        equal = np.zeros((2 * v + 2 * BASE, size))
        # Newton and Euler; the motion nearest to the posture's, by its KKT system; the feet.
        equal[:v, :v], equal[:v, forces], equal[:v, -n:] = self.M, -self.J[rows].T, -S.T
        equal[v : 2 * v, :v], equal[v : 2 * v, v : v + k] = self.M, -self.J.T
        equal[2 * v :, :v] = self.J[BASE:]
        posture = np.r_[np.zeros(BASE), wanted.posture]
        right = np.r_[-self.h, self.M @ posture, wanted.feet.ravel() - self.JdotV[BASE:]]
        cone, bound = self.cone(wanted, weights, standing, 2.0 * weight * bears)
        inside = np.zeros((len(cone), size))
        inside[:, forces] = cone
        # Scaled, as the solver's tolerance is on gradients, and what forces cost is small.
        found = qpsolvers.solve_qp(
            1e5 * P, 1e5 * p, inside, bound, equal, right,
            solver="proxqp", eps_abs=1e-9, max_iter=10000,
        )  # fmt: skip
        assert found is not None
        return found[-n:]

    @staticmethod
    def cone(wanted, weights, standing, most):
        """Return the cone written once more, wrench by wrench in the axes of its foot."""
        found, bound = [], []
        for place, k in enumerate(standing):
            R = np.kron(np.eye(2), wanted.axes[k].T)
            for axis, width in (
                (0, weights.friction / np.sqrt(2)), (1, weights.friction / np.sqrt(2)),
                (3, weights.half[1]), (4, weights.half[0]), (5, weights.twisting),
            ):  # fmt: skip
                for sign in (1.0, -1.0):
                    row = np.zeros((len(standing), BASE))
                    row[place] = sign * R[axis] - width * R[2]
                    found.append(row.ravel())
                    bound.append(0.0)
            row = np.zeros((len(standing), BASE))
            row[place] = R[2]
            found += [row.ravel(), -row.ravel()]
            bound += [most[place], -weights.least]
        return np.array(found), np.array(bound)


def instant(seed: int, bears: tuple[float, float]) -> tuple[State, Wanted, Peer]:
    """Return a state near standing and random tasks."""
    random = np.random.default_rng(seed)
    names = DelassusSolver(EXAMPLE.problem(humanoid_urdf())).problem.robot.joint_names
    q = np.array([POSTURE.get(name, 0.0) for name in names]) + random.uniform(-0.1, 0.1, 30)
    turned = pin.Quaternion(pin.exp3(random.uniform(-0.1, 0.1, 3)))
    state = State(
        q, random.uniform(-0.5, 0.5, 30), np.array([0.0, 0.0, 0.87]), turned.coeffs(),
        random.uniform(-0.2, 0.2, 6), [True, bears[1] > 0.0],
    )  # fmt: skip
    peer = Peer(state)
    axes = peer.controller.kinematics.soles(state)[1]
    wanted = Wanted(
        random.uniform(-0.5, 0.5, 3), random.uniform(-1, 1, 3), random.uniform(-1, 1, (2, 6)),
        random.uniform(-5, 5, 30), bears, axes, peer.mass, np.full(30, 1e9),
    )  # fmt: skip
    return state, wanted, peer


def matrices(state: State) -> Matrices:
    """Return what the node publishes, by the library."""
    s = DelassusSolver(EXAMPLE.problem(humanoid_urdf())).solve(
        state.q, base_orientation=state.orientation, gravity=[0.0, 0.0, -9.81],
        rates=np.r_[state.twist, state.velocity],
    )  # fmt: skip
    return Matrices(s.matrix, *(s.output(name) for name in EXAMPLE.outputs))


@pytest.mark.needs("proxsuite")
@pytest.mark.parametrize("bears", BOTH.values(), ids=BOTH)
def test_twelve_unknowns_do_for_all_accelerations_forces_and_torques(bears) -> None:
    """Beside a program in up to 96 unknowns, whose centre of mass comes by its Jacobian."""
    for seed in range(4):
        state, wanted, peer = instant(seed, bears)
        found = torques(matrices(state), wanted, Weights())
        expected = peer.torques(wanted, Weights())
        np.testing.assert_allclose(found.torques, expected, rtol=0, atol=1e-6)


def test_wrenches_carry_the_robot_and_stay_within_the_sole() -> None:
    state, wanted, peer = instant(3, (1.0, 1.0))
    found = torques(matrices(state), wanted, Weights())
    local = np.array(
        [np.kron(np.eye(2), R.T) @ w for R, w in zip(wanted.axes, found.wrenches, strict=True)]
    )
    w = Weights()
    assert (np.abs(local[:, 3]) <= w.half[1] * local[:, 2] + 1e-6).all()
    assert (np.abs(local[:, 4]) <= w.half[0] * local[:, 2] + 1e-6).all()
    assert (local[:, 2] >= w.least - 1e-6).all()
    # What the floor and gravity do to base and joints is M ẏ̇ + h - Sᵀ τ: of the base exactly.
    J = peer.J
    base = np.linalg.solve(J[:6, :6], found.pelvis - peer.JdotV[:6])
    joints = np.linalg.solve(
        peer.M[6:, 6:],
        found.torques + (J[6:].T @ found.wrenches.ravel() - peer.h)[6:] - peer.M[6:, :6] @ base,
    )
    motion = np.r_[base, joints]
    left = peer.M @ motion + peer.h - J[6:].T @ found.wrenches.ravel()
    np.testing.assert_allclose(left[:6], 0.0, atol=1e-8)
    np.testing.assert_allclose(J[6:] @ motion + peer.JdotV[6:], wanted.feet.ravel(), atol=1e-8)
    limits = Wanted(**{**vars(wanted), "limits": np.full(30, 40.0)})
    bounded = torques(matrices(state), limits, Weights())
    assert np.abs(found.torques).max() > 40.0 >= np.abs(bounded.torques).max() - 1e-6
    with pytest.raises(UnsolvedError):
        torques(Matrices(**{**vars(matrices(state)), "h": np.full(36, np.nan)}), wanted, w)


POSES = (
    Pose("stand", 0.4),
    Pose("squat", 0.8, height=-0.08),
    Pose("shift left", 1.2, over=1.0),
    Pose("step right", 0.8, over=1.0, lifted=1, step=(0.1, 0.0)),
    Pose("come back", 1.2),
)


@pytest.mark.parametrize("settings", [None, ROUGH], ids=["calm", "rough"])
def test_it_steps_and_takes_pushes(settings: PlantSettings | None) -> None:
    pushes = [0.6, 1.8, 3.8]

    def events(plant: Plant, now: float) -> None:
        if pushes and now >= pushes[0]:
            direction = [(0.0, -1.0, 0.0), (-0.7, 0.7, 0.0), (1.0, 0.0, 0.0)][len(pushes) - 1]
            plant.push(0.05 * plant.weight * np.array(direction), 0.2)
            pushes.pop(0)

    record = run(EXAMPLE, 4.4, POSES, settings, events)
    assert not pushes and not record.fell and record.unsolved == 0
    away = np.linalg.norm(np.array(record.place) - np.array(record.wanted), axis=1)
    assert away.max() < 0.03
    moved = record.feet[-1] - record.feet[0]
    np.testing.assert_allclose(moved[:, 0], [0.0, 0.1], atol=0.01)
    # In the air while it was to be, on the floor before and after.
    lifted = [touch[1] for touch, pose in zip(record.touches, record.act, strict=True)
              if pose == "step right"]  # fmt: skip
    assert not any(lifted[50:-100]) and record.touches[-1] == [True, True]
    both = np.array(record.bears) & np.array(record.touches)
    off = (np.array(record.forces) - np.array(record.simulated))[both]
    size = np.array(record.simulated)[both]
    assert np.sqrt((off[:, :3] ** 2).sum() / (size[:, :3] ** 2).sum()) < 0.15
    assert np.sqrt((off[:, 3:] ** 2).mean()) < 3.0
    predicted = np.array(record.predicted)
    assert not predicted[~np.array(record.touches)].any()
    wrong = (predicted[both] - size)[:, :3]
    assert np.sqrt((wrong**2).sum() / (size[:, :3] ** 2).sum()) < 0.15
    assert sum("predicted by G with friction" in line for line in report(record)) == 1


@pytest.mark.parametrize("algorithm", but_slow(["efpa", "ltl"], "efpa"))
def test_any_algorithm_does(algorithm: str) -> None:
    record, other = run(EXAMPLE, 0.6, POSES), run(EXAMPLE, 0.6, POSES, algorithm=algorithm)
    np.testing.assert_allclose(record.torques[:50], other.torques[:50], rtol=0, atol=1e-6)
    assert not other.fell


def test_fifty_milliseconds_without_commands() -> None:
    settings = PlantSettings(on_silence="hold", holding=1500.0, braking=30.0)
    record = run(EXAMPLE, 2.0, POSES, settings, lambda _, time: 1.0 <= time < 1.05)
    assert not record.fell
    away = np.linalg.norm(np.array(record.place) - np.array(record.wanted), axis=1)
    assert away[-100:].max() < 0.01


def test_poses_begin_where_feet_are_and_unload_before_they_lift() -> None:
    feet = np.array([[0.0, 0.1, 0.0], [0.0, -0.1, 0.01]])
    poser = Poser(0.8, np.array([0.0, 0.0, 0.8]), 0.0, TIMETABLE)
    seen: dict[str, list[float]] = {}
    last, before = None, None
    for _ in range(round(sum(pose.duration for pose in TIMETABLE) / 0.002)):
        plan = poser.plan(0.002, feet)
        seen.setdefault(plan.pose, []).append(min(plan.bears))
        if last is not None:
            # What is wanted never jumps.
            assert np.abs(plan.centre[0] - last).max() < 2e-3, (before, plan.pose)
        last, before = plan.centre[0], plan.pose
    assert list(seen) == [pose.name for pose in TIMETABLE]
    assert seen["lift the right foot"] == [0.0] * len(seen["lift the right foot"])
    assert seen["shift left"][-1] < 0.05 and seen["shift left"][0] == 1.0
    assert min(seen["squat"]) == 1.0


def test_a_sole_has_force_and_moment_about_its_frame() -> None:
    plant = Plant(humanoid_urdf(), FEET, POSTURE, PlantSettings(holding=1500.0, braking=30.0))
    for _ in range(500):
        plant.step()
    wrenches = plant.contact_wrenches()
    np.testing.assert_allclose(wrenches[:, :3], plant.contact_forces())
    assert wrenches[:, 2].sum() == pytest.approx(plant.weight, rel=0.1)
    # The centre of pressure lies within the sole.
    assert (np.abs(wrenches[:, 4]) < 0.11 * wrenches[:, 2]).all()
    assert (np.abs(wrenches[:, 3]) < 0.05 * wrenches[:, 2]).all()
    assert all(state.touches for state in plant.contact_states) and plant.root == "pelvis"


@pytest.mark.parametrize("kind", film.SUFFIXES)
def test_a_film_of_where_the_robot_was(kind: str, tmp_path: Path) -> None:
    plant = make_plant("humanoid")
    try:
        plant.picture()
    except RuntimeError as error:
        pytest.skip(str(error))
    taken = film.Film(0.04)
    for k in range(20):
        taken.look(plant, 0.02 * k)
        plant.place(plant.posture + np.r_[0.0, 0.0, 0.02, np.zeros(34)])
    taken.save(tmp_path / f"a{kind}")
    with Image.open(tmp_path / f"a{kind}") as found:
        frames, size = getattr(found, "n_frames", 1), found.size
    assert (frames, size) == ((1, (1280, 720)) if kind == ".png" else (10, (320, 240)))


def test_other_films_and_robots_are_refused() -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=r"a.mp4 is none of .gif, .webp, .png"):
        film.film_file("a.mp4")
    with pytest.raises(InputError, match="humanoid, arm"):
        make_plant("snake")
