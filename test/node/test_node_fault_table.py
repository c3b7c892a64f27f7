"""Every fault of the table is marked, is said in words, and is over with the next good message."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

pytest.importorskip("delassus_msgs", reason="the message package delassus_msgs is not installed")

import robots  # noqa: E402
from closed_rigs import Bar, Geared  # noqa: E402
from estimator_support import Standing  # noqa: E402
from faults import BY_NAME, FEET, Fault  # noqa: E402
from motion_support import MotionRig, contradicting  # noqa: E402
from pipeline_support import INVALID, OK, MovingRig, Rig, moving_contacts, said  # noqa: E402

from delassus_ros import Contact, DelassusSolver, Problem, Robot  # noqa: E402
from delassus_ros.node.inputs.orientation import OrientationInput  # noqa: E402
from delassus_ros.node.reasons import Reason  # noqa: E402


@cache
def solver(axes: str = "contact") -> DelassusSolver:
    contacts = [Contact(foot, f"{foot}_FOOT") for foot in FEET]
    return DelassusSolver(Problem(Robot.from_urdf(robots.unlimited()), contacts, axes=axes))


def world() -> Rig:
    source = OrientationInput(solver("world").problem.robot, world="odom")
    return Rig(solver("world"), orientation=source)


def driven() -> Rig:
    rig = rocker().rig()
    rig.joints = ["rocker", "arm"]
    return rig


def estimator() -> Standing:
    standing().estimation.reset(standing().now)
    return standing()


geared, bar, rocker = cache(Geared), cache(Bar), cache(lambda: Bar(independent=("rocker",)))
standing = cache(Standing)
moving = cache(lambda: DelassusSolver(moving_contacts()))
RIGS: dict[str, Callable[[], Any]] = {
    "": lambda: Rig(solver()),
    "world": world,
    "geared": lambda: geared().rig(),
    "four-bar": lambda: bar().rig(),
    "driven rocker": driven,
    "moving contacts": lambda: MovingRig(moving()),
    "motion": lambda: MotionRig("contact"),
    "motion with forces": contradicting,
    "motion by topic": lambda: MotionRig("contact", torques="topic"),
    "estimator": estimator,
}


@pytest.mark.parametrize("fault", BY_NAME.values(), ids=BY_NAME)
def test_fault(fault: Fault) -> None:
    rig = RIGS[fault.rig]()

    def assert_good() -> None:
        assert said(rig.good()) == (OK, Reason.NONE)
        assert rig.text == ""

    assert_good()
    of_matrix = not fault.rig.startswith(("motion", "estimator"))
    counts = (rig.pipeline.published, rig.pipeline.refused) if of_matrix else (0, 0)
    assert said(fault.act(rig)) == (fault.validity, fault.reason)
    assert fault.words in rig.text
    health = rig.healths()[fault.topic]
    assert health.received
    if of_matrix or (fault.topic == "joint_torques" and fault.reason is not Reason.TORQUE_STALE):
        assert fault.words in health.warning
    if fault.rig != "estimator":
        assert not fault.words or any(fault.words in text for _, text in rig.warnings)
    if of_matrix and fault.name != "parts apart":
        refused = fault.validity == INVALID
        after = rig.pipeline.published, rig.pipeline.refused
        assert after == (counts[0] + (not refused), counts[1] + refused)
    rig.wait(510)
    assert_good()
