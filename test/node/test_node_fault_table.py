"""Every fault of the table is marked, is said in words, and is over with the next good message."""

from __future__ import annotations

import pytest

pytest.importorskip("delassus_msgs", reason="the message package delassus_msgs is not installed")

import robots  # noqa: E402
from faults import BY_NAME, FEET, LEVEL, Fault  # noqa: E402
from pipeline_support import INVALID, OK, Rig, said  # noqa: E402

from delassus_ros import Contact, DelassusSolver, Problem, Robot  # noqa: E402
from delassus_ros.node.inputs.orientation import OrientationInput  # noqa: E402
from delassus_ros.node.reasons import Reason  # noqa: E402


@pytest.fixture(name="solvers", scope="module")
def make_solvers() -> dict[str, DelassusSolver]:
    """Return solvers with axes of contacts and of the world."""
    robot = Robot.from_urdf(robots.unlimited())
    contacts = [Contact(foot, f"{foot}_FOOT") for foot in FEET]
    return {
        axes: DelassusSolver(Problem(robot, contacts, axes=axes)) for axes in ("contact", "world")
    }


def make_rig(solvers: dict[str, DelassusSolver], topic: str) -> Rig:
    if topic != "odometry":
        return Rig(solvers["contact"])
    solver = solvers["world"]
    return Rig(solver, orientation=OrientationInput(solver.problem.robot, world="odom"))


@pytest.mark.parametrize("fault", BY_NAME.values(), ids=BY_NAME)
def test_fault(solvers: dict[str, DelassusSolver], fault: Fault) -> None:
    rig = make_rig(solvers, fault.topic)

    def assert_good() -> None:
        rig.touch(*FEET)
        if fault.topic == "odometry":
            rig.turn(LEVEL)
        assert said(rig.send()) == (OK, Reason.NONE)
        assert rig.pipeline.last.text == ""

    assert_good()
    before = rig.pipeline.published, rig.pipeline.refused
    assert said(fault.act(rig)) == (fault.validity, fault.reason)
    assert fault.words in rig.pipeline.last.text
    health = rig.pipeline.healths()[fault.topic]
    assert health.received and fault.words in health.warning
    assert not fault.words or any(fault.words in text for _, text in rig.warnings)
    if fault.name != "parts apart":
        refused = fault.validity == INVALID
        after = rig.pipeline.published, rig.pipeline.refused
        assert after == (before[0] + (not refused), before[1] + refused)
    rig.wait(310)
    assert_good()
