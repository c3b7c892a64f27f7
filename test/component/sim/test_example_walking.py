"""The walking example: its program in two forms, and a quadruped that trots and is pushed."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from control.kinematics import State, smooth
from control.program import UnsolvedError
from control.simulate import report, run
from oracles.pinocchio_models import dynamics_of_frames
from seeds import but_slow
from whole_body_control.controller import Controller, Rows
from whole_body_control.example import EXAMPLE
from whole_body_control.gait import LEGS, Act
from whole_body_control.qp import Wanted, Weights, full, reduced

from delassus import DelassusSolver
from delassus.robots.built_in import demo_urdf
from delassus_ros.sim.plant import Plant, PlantSettings
from delassus_ros.sim.quadruped import POSTURE

pytestmark = pytest.mark.needs("daqp")

ROUGH = PlantSettings(
    friction=0.7, armature=0.01, joint_friction=0.1, joint_damping=0.02, torque_noise=0.2,
    position_noise=3e-4, velocity_noise=0.03, base_noise=0.02,
)  # fmt: skip


def instant(seed: int, stands: list[bool]) -> tuple[State, Wanted]:
    """Return a state near standing, and random tasks."""
    random = np.random.default_rng(seed)
    q = np.array(list(POSTURE.values())) + random.uniform(-0.2, 0.2, 12)
    turned = pin.Quaternion(pin.exp3(random.uniform(-0.2, 0.2, 3)))
    state = State(
        q, random.uniform(-1, 1, 12), np.array([0.0, 0.0, 0.3]), turned.coeffs(),
        random.uniform(-0.5, 0.5, 6), stands,
    )  # fmt: skip
    feet = np.where(np.array(stands)[:, np.newaxis], 0.0, random.uniform(-9, 9, (4, 3)))
    trunk = random.uniform(-2, 2, 6)
    return state, Wanted(trunk, feet, stands, 129.0 / sum(stands), np.full(12, 35.0))


def rows_of(state: State) -> Rows:
    """Return what the node publishes, by the library."""
    problem = EXAMPLE.problem(demo_urdf())
    s = DelassusSolver(problem).solve(
        state.q, base_orientation=state.orientation, gravity=[0.0, 0.0, -9.81],
        rates=np.r_[state.twist, state.velocity], torques=np.zeros(18),
    )  # fmt: skip
    return Rows(s.matrix, s.output("a0"), s.output("MinvJT"))


def by_pinocchio(state: State) -> tuple[np.ndarray, ...]:
    """Return M, h, J and J̇ẏ of trunk and feet along the world, in our order of joints."""
    kinematics = Controller(demo_urdf(), list(POSTURE), np.full(12, 35.0)).kinematics
    frames = ("base", *(f"{leg}_FOOT" for leg in LEGS))
    M, h, J, bias = dynamics_of_frames(
        kinematics.model, *kinematics.configuration(state), frames
    )
    order = [*range(6), *kinematics.v_places]
    # Six rows of the trunk, the linear ones of the feet.
    rows = [*range(6), *(6 * foot + k for foot in range(1, 5) for k in range(3))]
    return M[np.ix_(order, order)], h[order], J[np.ix_(rows, order)], bias[rows]


@pytest.mark.parametrize(
    "stands",
    [
        [True] * 4,
        [True, False, False, True],
        [False, True, True, True],
        [False, True, False, False],
    ],
    ids=["all", "diagonal", "three", "one"],
)
def test_the_reduced_program_is_the_full_one(stands: list[bool]) -> None:
    """The full one by Pinocchio's M, h, J and J̇ẏ, as legged_control and TSID assemble it."""
    for seed in range(5):
        state, wanted = instant(seed, stands)
        rows = rows_of(state)
        small = reduced(rows.G, rows.a0, rows.response[6:].T, wanted, Weights())
        large = full(*by_pinocchio(state), wanted, Weights())
        np.testing.assert_allclose(small.torques, large.torques, rtol=0, atol=1e-6)
        np.testing.assert_allclose(small.forces, large.forces, rtol=0, atol=1e-5)
        np.testing.assert_allclose(small.trunk, large.trunk, rtol=0, atol=1e-5)
        normal = small.forces[np.array(stands), 2]
        assert (normal >= 3.0 - 1e-6).all() and (np.abs(small.torques) <= 35.0 + 1e-6).all()


def test_the_limits_of_the_drives_bind() -> None:
    state, wanted = instant(1, [True] * 4)
    rows = rows_of(state)
    free = reduced(rows.G, rows.a0, rows.response[6:].T, wanted, Weights())
    most = 0.8 * np.abs(free.torques).max()
    bounded = Wanted(wanted.trunk, wanted.feet, wanted.stands, wanted.share, np.full(12, most))
    found = reduced(rows.G, rows.a0, rows.response[6:].T, bounded, Weights())
    assert np.abs(found.torques).max() == pytest.approx(most, abs=1e-6)
    # They give way, all alike, before a foot lets go.
    none = Wanted(wanted.trunk, wanted.feet, wanted.stands, wanted.share, np.full(12, 0.1))
    found = reduced(rows.G, rows.a0, rows.response[6:].T, none, Weights())
    assert np.abs(found.torques).max() < most and found.forces[:, 2].min() >= 3.0 - 1e-9
    with pytest.raises(UnsolvedError):
        reduced(rows.G, np.nan * rows.a0, rows.response[6:].T, wanted, Weights())


def test_a_smooth_rise_has_the_derivatives_that_it_says() -> None:
    for s in (0.1, 0.4, 0.9):
        (a, *_), (_, rate, bend), (b, *_) = smooth(s - 1e-4), smooth(s), smooth(s + 1e-4)
        assert (b - a) / 2e-4 == pytest.approx(rate, abs=1e-6)
        assert (a - 2 * smooth(s)[0] + b) / 1e-8 == pytest.approx(bend, abs=1e-5)
    assert smooth(-1.0)[0] == 0.0 and smooth(2.0)[0] == 1.0


ACTS = (
    Act("stand", 0.4),
    Act("shift", 0.5, shift=(-0.035, -0.03)),
    Act("lift", 0.5, shift=(-0.035, -0.03), lifted=("LF",)),
    Act("back", 0.5),
    Act("trot", 1.6, velocity=(0.3, 0.0), trotting=True),
    Act("turn", 1.0, velocity=(0.1, 0.0), turning=0.5, trotting=True),
)


def push_at(time: float, direction: tuple[float, float, float]):
    def events(plant: Plant, now: float) -> None:
        if abs(now - time) < 1e-9:
            plant.push(0.1 * plant.weight * np.array(direction), 0.2)

    return events


@pytest.mark.parametrize("seed", but_slow([0, 1], 1))
def test_it_walks_is_pushed_and_does_not_fall(seed: int) -> None:
    settings = PlantSettings(**{**vars(ROUGH), "seed": seed})
    record = run(EXAMPLE, 4.5, ACTS, settings, push_at(2.6, (0.0, 1.0, 0.0)))
    assert not record.fell, list(report(record))
    wanted, found = np.array(record.wanted), np.array(record.place)
    assert np.linalg.norm((wanted - found)[:, :2], axis=1).max() < 0.08
    assert found[-1, 0] > 0.45
    stood = np.array(record.bears) & np.array(record.touches)
    error = (np.array(record.forces) - np.array(record.simulated))[stood]
    size = np.array(record.simulated)[stood]
    assert (error**2).sum() < 0.15**2 * (size**2).sum()
    predicted = np.array(record.predicted)
    assert not predicted[~np.array(record.touches)].any()
    assert ((predicted[stood] - size) ** 2).sum() < 0.15**2 * (size**2).sum()
    assert sum("predicted by G with friction" in line for line in report(record)) == 1
    lifted = np.array([act == "lift" for act in record.act])
    assert not np.array(record.touches)[lifted, 0][-50:].any()


@pytest.mark.parametrize("begin", but_slow([0.2, 2.35, 2.45], 0.2, 2.45))
@pytest.mark.parametrize("on_silence", ["damp", "hold"])
def test_commands_that_stop_for_50_ms_do_not_make_it_fall(begin: float, on_silence: str) -> None:
    """As where the node of the matrices is stopped, or says INVALID: the drives brake or hold."""
    silent = []

    def events(plant: Plant, now: float) -> bool:
        silent.append(plant.silent)
        return begin <= now < begin + 0.05

    settings = PlantSettings(**{**vars(ROUGH), "on_silence": on_silence})
    record = run(EXAMPLE, 3.5, ACTS, settings, events)
    assert 10 <= sum(silent[1:]) <= 30
    assert not record.fell, list(report(record))


@pytest.mark.parametrize("algorithm", but_slow(["efpa", "ltl", "kjr"], "efpa", "kjr"))
def test_any_algorithm_will_do(algorithm: str) -> None:
    same = [run(EXAMPLE, 0.4, ACTS, algorithm=name) for name in ("pv_osimr", algorithm)]
    np.testing.assert_allclose(*(record.torques for record in same), atol=1e-6)


def test_every_run_is_the_same() -> None:
    first, second = (run(EXAMPLE, 0.6, ACTS, ROUGH) for _ in range(2))
    np.testing.assert_array_equal(first.torques, second.torques)


class TestPlant:
    def make(self, **settings) -> Plant:
        feet = {leg: f"{leg}_FOOT" for leg in LEGS}
        return Plant(demo_urdf(), feet, POSTURE, PlantSettings(**settings))

    def test_drives_brake_when_commands_stop(self) -> None:
        for on_silence, height in (("damp", 0.31), ("hold", 0.315)):
            plant = self.make(on_silence=on_silence)
            plant.command(np.zeros(12))
            assert not plant.silent
            for _ in range(120):
                plant.step()
            assert plant.silent and plant.height < 0.326
            if on_silence == "hold":
                assert plant.height > height - 0.05

    def test_torques_are_limited_and_bad_ones_refused(self) -> None:
        from delassus.errors import InputError

        plant = self.make(torque_limit=0.5)
        assert plant.limits.tolist() == [17.5] * 12
        plant.command(np.full(12, 100.0))
        plant.step()
        assert np.abs(plant.sense().effort).max() <= 17.5 + 1e-9
        with pytest.raises(InputError, match="expected 12 finite numbers"):
            plant.command([np.nan] * 12)

    def test_weight_is_on_the_feet(self) -> None:
        plant = self.make(on_silence="hold", holding=500.0, braking=10.0)
        for _ in range(1500):
            plant.step()
        forces = plant.contact_forces()
        assert forces[:, 2].sum() == pytest.approx(plant.weight, rel=1e-3)
        assert all(state.touches for state in plant.contact_states)
        sensed = plant.sense()
        assert np.abs(sensed.velocity).max() < 1e-2

    def test_without_a_display_there_is_no_view(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("DISPLAY", "WAYLAND_DISPLAY"):
            monkeypatch.delenv(name, raising=False)
        with pytest.raises(RuntimeError, match="none of DISPLAY, WAYLAND_DISPLAY is set"):
            self.make().view()

    @pytest.mark.parametrize(
        ("changes", "words"),
        [({"friction": -1.0}, "friction is -1.0"), ({"on_silence": "pray"}, "damp, hold")],
    )
    def test_bad_settings_are_named(self, changes, words) -> None:
        from delassus.errors import InputError

        with pytest.raises(InputError, match=words):
            PlantSettings(**changes)

    def test_friction_of_description_and_settings_adds_up(self) -> None:
        damped = demo_urdf().replace(
            "<limit", '<dynamics damping="0.1" friction="0.2"/><limit'
        )
        settings = PlantSettings(joint_damping=0.3, joint_friction=0.5)
        model = Plant(damped, {"LF": "LF_FOOT"}, settings=settings)._model
        dof = model.joint("LF_KFE").dofadr[0]
        assert model.dof_damping[dof] == pytest.approx(0.4)
        assert model.dof_frictionloss[dof] == pytest.approx(0.7)

    def test_a_foot_has_one_sphere_or_box(self) -> None:
        from delassus.errors import ContactError

        with pytest.raises(ContactError, match="'LF_THIGH' has 2 shapes that collide"):
            Plant(demo_urdf(), {"LF": "LF_THIGH"})
        with pytest.raises(ContactError, match="unknown link"):
            Plant(demo_urdf(), {"LF": "LF_FOT"})
