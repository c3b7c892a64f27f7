"""sin and cos in machine code: within 2 ulp of the truth, for every vector width."""

from __future__ import annotations

import math
import platform

import mpmath
import numpy as np
import pytest
from toy import compiled

from delassus.compiler.codegen.sincos import LIMIT
from delassus.compiler.runtime import jit
from delassus.compiler.runtime.kernel import Kernel
from delassus.scalars.functions import sincos
from delassus.scalars.ports import Status

COUNTS = (1, 2, 3, 4, 7, 8, 9, 21)
"""Numbers of angles in one kernel: every vector width, with and without unused lanes."""


def turner(count: int) -> Kernel:
    """Return the kernel of sin and cos of `count` angles."""
    return compiled(lambda q: [v for angle in q for v in sincos(angle)], count, 2 * count)


def turned(kernel: Kernel, angles: np.ndarray, status: Status | None = None) -> np.ndarray:
    """Return (N, 2) sin and cos of all angles, each call with this status.

    By default it is OK or TOO_FAR: the sines are computed all the same.
    """
    bound = kernel.bind()
    q, y = bound.inputs["q"], bound.outputs["G"][0, 1:]
    results = []
    for start in range(0, len(angles), len(q)):
        chunk = angles[start : start + len(q)]
        q[:] = 0.25
        q[: len(chunk)] = chunk
        usual = Status.TOO_FAR if (np.abs(q) > LIMIT).any() else Status.OK
        assert bound.run() == (usual if status is None else status)
        results.append(y.reshape(-1, 2)[: len(chunk)].copy())
    return np.vstack(results)


def exact(angles: np.ndarray, digits: int = 60) -> list[tuple[object, object]]:
    with mpmath.workdps(digits):
        values = [mpmath.mpf(float(angle)) for angle in angles]
        return [(mpmath.sin(value), mpmath.cos(value)) for value in values]


def worst(results: np.ndarray, truth: list[tuple[object, object]]) -> float:
    """Return the largest error in units in the last place."""
    errors = [
        abs(mpmath.mpf(float(value)) - expected) / math.ulp(float(expected))
        for row, pair in zip(results, truth, strict=True)
        for value, expected in zip(row, pair, strict=True)
    ]
    return float(max(errors))


def near_multiples(rng: np.random.Generator) -> np.ndarray:
    """Return the doubles nearest to random multiples of π/2, their neighbours, and bad cases."""
    with mpmath.workdps(60):
        multiples = [float(int(k) * mpmath.pi / 2) for k in rng.integers(-636619, 636620, 300)]
        multiples += [float(k * mpmath.pi / 2) for k in range(-8, 9)]
    doubles = np.array(multiples)
    # Closest of all doubles up to 1e6 to a multiple of π/2, relative to their last place.
    closest = np.array([45.553093477052, 91.106186954104, 321307.9594422229])
    quarters = (np.arange(-40, 41) + 0.5) * (np.pi / 2)
    return np.concatenate(
        [doubles, np.nextafter(doubles, 1e9), np.nextafter(doubles, -1e9), closest, -closest]
        + [np.nextafter(quarters, towards) for towards in (-1e9, 1e9)]
    )


@pytest.fixture(scope="module")
def points() -> np.ndarray:
    rng = np.random.default_rng(5)
    tiny = rng.uniform(-1, 1, 200) * 10.0 ** rng.integers(-320, 0, 200)
    special = [0.0, -0.0, 5e-324, -5e-324, 2.2e-308, 1e-160, LIMIT, -LIMIT, math.pi, math.pi / 4]
    spread = [rng.uniform(-limit, limit, 700) for limit in (1.0, math.pi, 100.0, 1e4, LIMIT)]
    return np.concatenate([*spread, near_multiples(rng), tiny, special])


@pytest.fixture(scope="module")
def truth(points: np.ndarray) -> list[tuple[object, object]]:
    return exact(points)


@pytest.mark.parametrize("count", COUNTS)
def test_within_two_ulp_up_to_the_limit(count, points, truth) -> None:
    assert worst(turned(turner(count), points), truth) <= 2.0


@pytest.mark.skipif(platform.machine() != "x86_64", reason="features of x86 processors")
@pytest.mark.parametrize("count", [1, 2, 8])
def test_within_two_ulp_without_fused_multiply_add(count, points, truth, monkeypatch) -> None:
    old = "+sse2,-avx,-avx2,-fma,-avx512f"
    monkeypatch.setattr(jit, "host_features", lambda: old)
    assert worst(turned(turner(count), points), truth) <= 2.0


@pytest.mark.parametrize("count", [1, 4, 9])
def test_library_beyond_the_limit(count: int) -> None:
    rng = np.random.default_rng(6)
    spread = rng.uniform(-1, 1, 300) * 10.0 ** rng.integers(7, 301, 300)
    angles = np.concatenate([spread, [np.nextafter(LIMIT, 2e6), -1e300, 1.7e308]])
    assert worst(turned(turner(count), angles), exact(angles, 400)) <= 1.0


@pytest.mark.parametrize("count", COUNTS)
def test_one_angle_beyond_the_limit_leaves_the_others_right(count: int) -> None:
    rng = np.random.default_rng(7)
    kernel = turner(count)
    for lane in range(count):
        angles = rng.uniform(-3, 3, count)
        angles[lane] = 1e9 + lane
        assert worst(turned(kernel, angles), exact(angles)) <= 2.0


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_not_finite_angles_give_nan_in_their_lane_alone(count: int, bad: float) -> None:
    kernel = turner(count)
    for lane in range(count):
        angles = np.linspace(-2.0, 2.0, count)
        angles[lane] = bad
        results = turned(kernel, angles, Status.NOT_FINITE)
        assert np.isnan(results[lane]).all()
        others = np.delete(np.arange(count), lane)
        assert np.allclose(results[others, 0], np.sin(angles[others]), rtol=1e-15)
        assert np.allclose(results[others, 1], np.cos(angles[others]), rtol=1e-15)


def test_only_the_sine_or_only_the_cosine_is_wanted() -> None:
    kernel = compiled(lambda q: [sincos(q[0])[0], sincos(q[1])[1]], 2, 2)
    bound = kernel.bind()
    bound.inputs["q"][:] = 0.7, 0.9
    assert bound.run() == 0
    expected = [math.sin(0.7), math.cos(0.9)]
    assert np.allclose(bound.outputs["G"][0, 1:], expected, rtol=4e-16)


def test_sines_of_sines() -> None:
    """An angle that depends on another sine cannot be turned with the first ones."""

    def formula(q):
        s, c = sincos(q[0])
        t, _ = sincos(s + 2.0 * q[1])
        u, _ = sincos(-t * c)
        return [t, u, sincos(2.0 * q[1])[0]]

    kernel = compiled(formula, 2, 3)
    bound = kernel.bind()
    for q in ([0.3, -1.2], [2e7, 0.4]):
        bound.inputs["q"][:] = q
        assert bound.run() == (Status.OK if q[0] < LIMIT else Status.TOO_FAR)
        assert np.allclose(bound.outputs["G"][0, 1:], formula(q), rtol=1e-14)
