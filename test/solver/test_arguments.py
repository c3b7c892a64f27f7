"""What is no robot, no number or no list of names is refused with what was expected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import robots

from delassus_ros import Contact, DelassusSolver, Problem, Robot, Transform
from delassus_ros.closure import Closure
from delassus_ros.conditioning.structural_rank import (
    StructuralRank,
    closed_configurations,
    generic_matrices,
)
from delassus_ros.contacts import row_scales
from delassus_ros.dynamics import Dynamics
from delassus_ros.errors import (
    AlgorithmError,
    ContactError,
    DelassusError,
    GeometryError,
    InputError,
    ProblemError,
    RobotError,
    unknown,
)
from delassus_ros.model import (
    WORLD,
    Body,
    Coupling,
    Frame,
    FunctionConstraint,
    Inertia,
    Joint,
    JointKind,
    Loop,
    LoopKind,
)
from delassus_ros.model.spatial import rotation_from_quaternion, rotation_from_rpy
from delassus_ros.rotor_report import rotor_report

LEG = Path(__file__).resolve().parents[2] / "docs" / "geared_leg.urdf"
FOOT = Contact("LF", "LF_FOOT")
FROM_URDF = "expected a Robot: write Robot.from_urdf('robot.urdf')"
BY_JOINT = "expected numbers by joint: write {'knee': 0.1}"
MASKED = np.ma.array(np.zeros(12), mask=[True] + [False] * 11)
RAGGED = [[1.0], [1.0, 2.0]]


@pytest.fixture(scope="module")
def quadruped() -> Robot:
    return Robot.from_urdf(robots.quadruped())


@pytest.fixture(scope="module")
def problem(quadruped: Robot) -> Problem:
    return Problem(quadruped, [FOOT])


@pytest.fixture(scope="module")
def solver(problem: Problem) -> DelassusSolver:
    return DelassusSolver(problem)


@pytest.fixture(scope="module")
def leg() -> Robot:
    return Robot.from_urdf(LEG, base="fixed")


@pytest.fixture(scope="module")
def closure(leg: Robot) -> Closure:
    return Closure(leg)


def said(kind: type[DelassusError], call: Callable[[], object]) -> str:
    with pytest.raises(kind) as caught:
        call()
    assert type(caught.value) is kind
    return str(caught.value)


def test_what_is_no_robot(problem, leg):
    for make in (lambda given: Problem(given, [FOOT]), Closure, Dynamics, rotor_report):
        text = said(RobotError, lambda make=make: make("leg.urdf"))
        assert text == f"robot is 'leg.urdf'; {FROM_URDF}"
    assert "Problem('delassus_quadruped'" in said(RobotError, lambda: Dynamics(problem))
    assert Closure(Problem(leg, [Contact("sole", "sole")])).robot is leg


def test_what_is_no_problem(quadruped):
    text = said(ProblemError, lambda: DelassusSolver(quadruped))
    assert text.startswith("problem is Robot('delassus_quadruped', ")
    assert text.endswith("expected a Problem: write Problem(robot, [Contact('LF', "
                         "frame='LF_FOOT')])")  # fmt: skip


@pytest.mark.parametrize("given", [FOOT, None, "LF_FOOT"])
def test_what_is_no_list_of_contacts(quadruped, given):
    text = said(ContactError, lambda: Problem(quadruped, given))
    assert text.startswith(f"contacts is {given!r:.40}")
    assert text.endswith("; expected a list: write [Contact('LF', frame='LF_FOOT')]")


@pytest.mark.parametrize(
    ("name", "frame", "words"),
    [
        (3, "LF_FOOT", "its name is 3; expected text: write Contact('LF', frame='LF_FOOT')"),
        ("LF", ["LF_FOOT"], "contact 'LF': its frame is ['LF_FOOT']; expected text"),
    ],
)
def test_names_of_contacts_are_text(name, frame, words):
    assert words in said(ContactError, lambda: Contact(name, frame))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([0.1, 0.2], f"is [0.1, 0.2]; {BY_JOINT}"),
        ([0.1234567] * 12, f"is {[0.1234567] * 12!r:.60}…; {BY_JOINT}"),
        (0.1, f"is 0.1; {BY_JOINT}"),
        (0.0, f"is 0.0; {BY_JOINT}"),
        ({"LF_KFE": "a"}, "of joint 'LF_KFE' is 'a'; expected a number"),
        ({"LF_KFE": None}, "of joint 'LF_KFE' is None; expected a number"),
        ({"LF_KFE": [0.1]}, "of joint 'LF_KFE' is [0.1]; expected a number"),
    ],
)
def test_numbers_by_joint(leg, given, words):
    call = lambda: Robot.from_urdf(robots.quadruped(), armature=given)  # noqa: E731
    assert said(RobotError, call) == f"armature {words}"
    assert said(RobotError, lambda: Closure(leg, given)) == f"reference {words}"


def test_what_is_measured(closure):
    for measured, words in (
        ({"knee": "a"}, "joint 'knee' is 'a'; expected numbers"),
        ("neutral", "measured is 'neutral'; expected positions by joint, or all of q"),
        (RAGGED, f"measured is {RAGGED}; expected positions by joint, or all of q"),
        (None, "measured is None; expected positions by joint, or all of q"),
        (MASKED, f"measured is {' '.join(repr(MASKED).split()):.60}…; expected positions by "
         "joint, or all of q"),
        ({3: 0.0}, "measured joints must be a list of names, got 3 in it"),
    ):  # fmt: skip
        assert said(InputError, lambda measured=measured: closure.solve(measured)) == words
    assert said(InputError, lambda: closure.bind("knee")) == (
        "measured joints must be a list of names: write ['knee']"
    )


@pytest.mark.parametrize("given", [["ltl"], None, 3])
def test_an_algorithm_is_a_name(problem, given):
    text = said(AlgorithmError, lambda: DelassusSolver(problem, given))
    assert text == f"algorithm is {given!r}; expected a str: write 'pv_osimr'"


@pytest.mark.parametrize("name", ["tolerance", "agreement"])
@pytest.mark.parametrize("given", ["x", None, [1e-8]])
def test_tolerances_are_numbers(leg, name, given):
    text = said(InputError, lambda: Closure(leg, **{name: given}))
    assert text == f"{name} is {given!r}; expected a number"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["a"], "configurations is ['a']; expected numbers"),
        (np.zeros((0, 12)), "configurations have shape (0, 12), expected (N, 12) with N >= 1"),
        (np.zeros((1, 2, 12)), "configurations have shape (1, 2, 12), expected (N, 12) with "),
    ],
)
def test_generic_configurations_are_rows_of_numbers(solver, given, words):
    text = said(InputError, lambda: generic_matrices(solver, configurations=given))
    assert text.startswith(words)


@pytest.mark.parametrize("given", [0, -1, 2.5, "3"])
def test_counts_of_generic_configurations(solver, closure, given):
    words = f"count is {given!r}; expected a whole number, at least 1"
    assert said(InputError, lambda: generic_matrices(solver, given)) == words
    assert said(InputError, lambda: closed_configurations(closure, given)) == words


def test_generic_matrices_and_lengths_are_numbers(problem):
    text = said(InputError, lambda: StructuralRank("G", np.ones(3)))
    assert text == "generic matrices is 'G'; expected numbers"
    text = said(InputError, lambda: row_scales(problem.contacts, "0.1"))
    assert text == "characteristic_length is '0.1'; expected a number"


@pytest.mark.parametrize("tolerance", [-1, 0, np.nan, np.inf])
def test_tolerances_are_positive(leg, tolerance):
    text = said(InputError, lambda: Closure(leg, tolerance=tolerance))
    assert text == f"tolerance is {tolerance}; expected a positive number"


def test_an_agreement_is_not_negative(leg):
    text = said(InputError, lambda: Closure(leg, agreement=-0.1))
    assert text == "agreement is -0.1; expected a number from 0 on"


def test_what_dynamics_take(leg):
    dynamics = Dynamics(leg)
    still = np.zeros(dynamics.size)
    for compute in (dynamics.inverse, dynamics.forward):
        for q in ("a", RAGGED, None):
            text = said(InputError, lambda q=q, compute=compute: compute(q, still, still))
            assert text == f"q is {q!r}; expected numbers"


@pytest.mark.parametrize("outputs", ["MinvJT", "G", 3])
def test_outputs_are_a_list_of_names(quadruped, outputs):
    text = said(ProblemError, lambda: Problem(quadruped, [FOOT], outputs=outputs))
    assert text.startswith("outputs must be a list of names")
    assert text.endswith(", got 3" if outputs == 3 else f": write [{outputs!r}]")


def test_frames_that_stay_and_independent_joints_are_lists_of_names(leg):
    text = said(RobotError, lambda: rotor_report(leg, keep="sole"))
    assert text == "keep must be a list of names: write ['sole']"
    text = said(RobotError, lambda: leg.with_constraints(independent="knee"))
    assert text == "independent must be a list of names: write ['knee']"


def test_poses_are_of_three_numbers_each():
    for xyz, rpy, words in (
        ("abc", (0, 0, 0), "xyz must be numbers of shape (3,), got 'abc'"),
        ((0, 0, 0), "abc", "rpy must be numbers of shape (3,), got 'abc'"),
        ((0, 0, 0), (0, 0), "rpy must be numbers of shape (3,), got (0, 0)"),
    ):
        call = lambda xyz=xyz, rpy=rpy: Transform.from_xyz_rpy(xyz, rpy)  # noqa: E731
        assert said(GeometryError, call) == words


@pytest.mark.parametrize(
    "wrong",
    [[each] * 12 for each in ("1", b"3", 1.0j, None, 10**400)] + [RAGGED, np.array(["1"] * 12)],
)
def test_what_numpy_would_make_numbers_of(wrong):
    """Text, nothing, imaginary parts, and what no float holds."""
    with pytest.raises(GeometryError, match="xyz must be numbers of shape"):
        Transform.from_xyz_rpy(wrong, (0, 0, 0))
    for rotation in (rotation_from_rpy, rotation_from_quaternion):
        with pytest.raises(GeometryError, match="rpy (is|has)|quaternion (is|has)"):
            rotation(wrong)
    with pytest.raises(RobotError, match="armature of joint 'LF_KFE' is "):
        Robot.from_urdf(robots.quadruped(), armature={"LF_KFE": wrong[0]})
    with pytest.raises(ContactError, match="kind must be 'point', 'surface' or a"):
        Contact("LF", "LF_FOOT", wrong)


@pytest.mark.parametrize("wrong", [[0, 0, 0, 0], [np.nan, 0, 0, 1], [0, 0, 0, 1e200, 0]])
def test_a_quaternion_of_no_rotation(wrong):
    with pytest.raises(GeometryError, match="quaternion has (norm|shape)"):
        rotation_from_quaternion(wrong)


PLAIN = Inertia.from_com(1.0, (0.0, 0.0, 0.1), np.eye(3))
HINGE = Joint("hinge", JointKind.REVOLUTE, WORLD)
BODY = Body("link", PLAIN)


def lever(q):
    return [q[0] - q[1]]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Joint("a", JointKind.REVOLUTE, None),
         "joint 'a': parent is None; expected the index of a body, or WORLD"),
        (lambda: Joint("a", JointKind.REVOLUTE, -1.0), "joint 'a': parent is -1.0; expected the"),
        (lambda: Frame("f", 0.0, Transform()), "frame 'f': body is 0.0; expected the index of a"),
        (lambda: Frame("f", "0", Transform()), "frame 'f': body is '0'; expected the index of a "),
        (lambda: Body(3, PLAIN), "body 3: its name is 3; expected text: write Body('shin', inert"),
        (lambda: Body("b", "x"), "body 'b': inertia is 'x'; expected a Inertia: write Inertia.fr"),
        (lambda: Loop("l", "point", 0, 1),
         "loop 'l': kind is 'point'; expected a LoopKind: write LoopKind.POINT"),
        (lambda: Loop("l", LoopKind.POINT, 0.0, 1), "loop 'l': predecessor is 0.0; expected the"),
        (lambda: Loop("l", LoopKind.POINT, 0, None), "loop 'l': successor is None; expected the"),
        (lambda: Loop("l", LoopKind.POINT, 0, 1, np.eye(4)),
         "loop 'l': predecessor_placement is array([["),
        (lambda: Coupling("c", {"a": 1.0, "b": 2.0}),
         "coupling 'c': its ratios are {'a': 1.0, 'b': 2.0}; expected pairs of a joint and its f"),
        (lambda: Coupling("c", ["a", "b"]), "coupling 'c': its ratios are ['a', 'b']; expected p"),
        (lambda: Coupling("c", [(1, 2.0)]), "coupling 'c': its ratios are [(1, 2.0)]; expected p"),
        (lambda: Coupling("c", 3), "coupling 'c': its ratios are 3; expected pairs of a joint an"),
        (lambda: Coupling("c", [("a", "b")]), "coupling 'c': a factor is 'b'; expected a number"),
        (lambda: FunctionConstraint("f", "ab", lever, 1),
         "constraint 'f': joints must be a list of names: write ['ab']"),
        (lambda: FunctionConstraint("f", ["a", "b"], lever, 1.5),
         "constraint 'f': rows is 1.5; expected a whole number"),
        (lambda: Robot("r", ["a"], ["b"], []),
         "robot 'r': joints has 'a' in it; expected a list of Joint: write [Joint('knee', Joint"),
        (lambda: Robot("r", [HINGE], ["b"], []), "robot 'r': bodies has 'b' in it; expected a li"),
        (lambda: Robot("r", [HINGE], [BODY], ["f"]), "robot 'r': frames has 'f' in it; expected"),
        (lambda: Robot("r", None, [BODY], []), "robot 'r': joints is None; expected a list of J"),
        (lambda: Robot("r", [HINGE], [BODY], [], loops=[1]), "robot 'r': loops has 1 in it; expe"),
        (lambda: Robot("r", [HINGE], [BODY], [], couplings="ab"), "robot 'r': couplings is 'ab';"),
        (lambda: Robot("r", [HINGE], [BODY], [], functions=[lever]), "robot 'r': functions has <"),
        (lambda: Robot(3, [HINGE], [BODY], []), "the name of the robot is 3; expected text: writ"),
    ],
)  # fmt: skip
def test_what_a_robot_is_made_of(make, words):
    assert said(RobotError, make).startswith(words)


def test_what_a_robot_is_made_of_cannot_change():
    pairs = [["a", 1], ["b", np.float32(2.0)]]
    coupling = Coupling("c", pairs, 1)
    pairs.append(["c", 3.0])
    assert coupling == Coupling("c", (("a", 1.0), ("b", 2.0)), 1.0)
    assert len({coupling, Coupling("c", (("a", 1.0), ("b", 2.0)), 1.0)}) == 1
    assert coupling.to_bytes() == Coupling("c", (("a", 1.0), ("b", 2.0)), 1.0).to_bytes()
    names = ["a", "b"]
    function = FunctionConstraint("f", names, lever, np.int64(1))
    names.append("c")
    assert (function.joints, function.rows) == (("a", "b"), 1)
    assert type(Joint("a", JointKind.REVOLUTE, np.int64(-1)).parent) is int


def test_similar_names_are_looked_for_among_names_alone() -> None:
    """Text from the network may be long: looking takes the square of it."""
    assert "did you mean 'knee'" in unknown("joint", "kne", ["hip", "knee"])
    assert "did you mean" not in unknown("joint", "k" * 80, ["k" * 79])
    others = [f"{k:03}" for k in range(2000)]
    assert "did you mean" not in unknown("joint", "knee", [*others, "knee2"])
