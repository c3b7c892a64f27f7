"""Twists along the axes of the world are told by the motion of the pose, and no other twist is.

Pinocchio integrates the motion of the base.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

from delassus_ros.inputs.twist_axes import (
    ANGULAR,
    LINEAR,
    STEP_NS,
    STEPS,
    TwistAxes,
)

START = 1_700_000_000 * 10**9
YAWED = (0.0, 0.0, 1.8)
WALK = (0.4, 0.05, 0.0, 0.0, 0.0, 0.0)


Instant = tuple[int, np.ndarray, np.ndarray, np.ndarray]
"""Stamp [ns], position, rotation and twist in its own axes of a base."""


@cache
def base(
    twist: Callable[[float], Any], seconds: float, rate: float = 200.0, rpy: Any = YAWED
) -> list[Instant]:
    """Return the instants of a base that moves."""
    found: list[Instant] = []
    pose, steps = pin.SE3(pin.rpy.rpyToMatrix(*rpy), np.array([3.0, -2.0, 0.5])), 2
    for k in range(round(seconds * rate)):
        t, stamp = k / rate, START + round(1e9 * k / rate)
        found.append((stamp, pose.translation.copy(), pose.rotation.copy(), twist(t)))
        for i in range(steps):
            middle = t + (i + 0.5) / (steps * rate)
            pose = pose * pin.exp6(pin.Motion(twist(middle)) * (1.0 / (steps * rate)))
    return found


def concluded(
    motion: list[Instant],
    along: str = "base",
    spoil: Callable[[Any, Any, Any], Any] = lambda *given: given,
) -> set[str]:
    """Return all parts that were said to be along the world's axes.

    `along` names the axes of the published twist: base, world, or world for its linear part alone.
    """
    axes, found = TwistAxes(), set[str]()
    for stamp, position, R, twist in motion:
        linear, angular = twist[:3], twist[3:]
        if along != "base":
            linear = R @ linear
        if along == "world":
            angular = R @ angular
        position, R, sent = spoil(position, R, np.r_[linear, angular])
        x, y, z, w = pin.Quaternion(R).coeffs().tolist()
        axes.note(stamp, position.tolist(), (x, y, z, w), sent[:3].tolist(), sent[3:].tolist())
        found.update(axes.along_world)
    return found


def constant(*twist: float) -> Callable[[float], np.ndarray]:
    return lambda _: np.array(twist)


def trot(t: float) -> np.ndarray:
    """Twist of a base that walks, rolls and pitches."""
    sway = np.sin(2 * np.pi * 2.0 * t + np.arange(6))
    return np.array(WALK) + np.array([0.1, 0.15, 0.1, 0.5, 0.6, 0.3]) * sway


BOTH = {LINEAR, ANGULAR}
MOTIONS: dict[str, tuple[Callable[[float], np.ndarray], Any, set[str]]] = {
    # Twist of the base, its roll, pitch and yaw, and the parts that the axes change.
    "ahead": (constant(*WALK), YAWED, {LINEAR}),
    "a little to the left": (constant(*WALK), (0.0, 0.0, 0.3), {LINEAR}),
    "along the world's axes": (constant(*WALK), (0.0, 0.0, 0.0), set()),
    "in a circle": (constant(0.5, 0.0, 0.0, 0.0, 0.0, 0.8), YAWED, {LINEAR}),
    "in a circle, tilted": (constant(0.5, 0.0, 0.0, 0.0, 0.0, 0.8), (0.4, 0.2, 0.0), BOTH),
    "trot": (trot, YAWED, BOTH),
    "about itself": (constant(0.0, 0.0, 0.0, 0.3, 0.0, 0.0), YAWED, {ANGULAR}),
    "slowly": (constant(0.02, 0.0, 0.0, 0.0, 0.0, 0.02), (0.0, 0.0, 3.1), set()),
    "at rest": (constant(*np.zeros(6)), YAWED, set()),
}


@pytest.mark.parametrize("rate", [20.0, 500.0])
@pytest.mark.parametrize("name", MOTIONS)
def test_twists_along_the_world_and_no_others_are_told(name: str, rate: float) -> None:
    twist, rpy, parts = MOTIONS[name]
    seconds = 1.5e-9 * STEPS * STEP_NS
    for along, expected in (
        ("base", set()), ("world", parts), ("world, linear", parts & {LINEAR}),
    ):  # fmt: skip
        assert concluded(base(twist, seconds, rate, rpy), along) == expected, along


@pytest.mark.parametrize(
    "name", ["of the pose", "of the twist", "of both", "a pose that stands still", "slip", "jumps"]
)
@pytest.mark.parametrize("motion", ["trot", "in a circle, tilted", "at rest", "slowly"])
def test_noise_and_slip_are_no_reason(name: str, motion: str) -> None:
    """Poses have errors of 1 cm and 0.01 rad, twists of 0.1 m/s and rad/s, for half a minute."""
    rng = np.random.default_rng(0)

    def spoil(position: Any, R: Any, twist: Any) -> Any:
        if name == "a pose that stands still":
            return np.zeros(3), R, twist
        if name == "slip":
            return position, R, twist * np.repeat([2.5, 1.0], 3)
        if name == "jumps":
            return position + 0.3 * (rng.random() < 0.01) * rng.normal(size=3), R, twist
        if name != "of the twist":
            position = position + 0.01 * rng.normal(size=3)
            R = R @ pin.exp3(0.01 * rng.normal(size=3))
        if name != "of the pose":
            twist = twist + 0.1 * rng.normal(size=6)
        return position, R, twist

    twist, rpy, _ = MOTIONS[motion]
    assert not concluded(base(twist, 30.0, 50.0, rpy), "base", spoil)


def test_noise_of_a_good_pose_hides_no_twist_along_the_world() -> None:
    """Errors of 2 mm and 2 mrad."""
    rng = np.random.default_rng(0)

    def spoil(position: Any, R: Any, twist: Any) -> Any:
        turn = pin.exp3(0.002 * rng.normal(size=3))
        return position + 0.002 * rng.normal(size=3), R @ turn, twist + 0.05 * rng.normal(size=6)

    assert concluded(base(trot, 10.0), "world", spoil) == BOTH


def test_a_conclusion_stays_at_rest_and_ends_with_a_pause() -> None:
    axes = TwistAxes()

    def send(seconds: float, twist: Any, along_world: bool, later: float) -> None:
        for stamp, position, R, own in base(constant(*twist), seconds):
            x, y, z, w = pin.Quaternion(R).coeffs().tolist()
            linear = (R @ own[:3] if along_world else own[:3]).tolist()
            at = stamp + round(1e9 * later)
            axes.note(at, position.tolist(), (x, y, z, w), linear, own[3:].tolist())

    send(3.0, WALK, True, 0.0)
    assert axes.along_world == (LINEAR,)
    send(3.0, np.zeros(6), True, 3.0)
    assert axes.along_world == (LINEAR,)
    send(5.0, WALK, False, 6.0)
    assert axes.along_world == ()
    send(5.0, WALK, True, 11.0)
    assert axes.along_world == (LINEAR,)
    send(0.1, WALK, True, 17.0)
    assert axes.along_world == ()
