"""Words about names that do not exist, however many come and however often."""

from __future__ import annotations

import counted
import pytest

from delassus.errors import UnknownNames, listed

pytestmark = pytest.mark.needs("rclpy")


@pytest.fixture(name="searches")
def make_searches(monkeypatch) -> list[str]:
    return counted.searches(monkeypatch)


def test_a_similar_name_is_looked_for_once(searches) -> None:
    names = UnknownNames("frame", ["imu", "base"])
    for _ in range(100):
        assert names.words("inu") == "unknown frame 'inu'; did you mean 'imu'? frames: imu, base"
    assert searches == ["inu"]


def test_others_each_time_end_the_searches(searches) -> None:
    names = UnknownNames("frame", ["imu", "base"])
    for k in range(1000):
        assert names.words(f"imu{k}").startswith(f"unknown frame 'imu{k}'")
    assert len(searches) == 64


def test_long_names_are_cut() -> None:
    names = UnknownNames("frame", ["imu"])
    assert len(names.words(10_000 * "x")) < 200
    assert len(listed("joint", [10_000 * "x"] * 10)) < 700
