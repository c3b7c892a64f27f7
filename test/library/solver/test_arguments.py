"""Arguments of the wrong kind, number or name: one row each, with its error and its message."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cache
from pathlib import Path
from re import DOTALL, escape, fullmatch
from types import SimpleNamespace

import numpy as np
import pytest
import robots
import small
from friction import feet_problem
from on_floats import solver_on_floats
from robots import LEGS

from delassus import Contact, DelassusSolver, Problem, Robot, Status, Transform
from delassus.closure import Closure
from delassus.conditioning.monitor import ConditionSettings
from delassus.contacts import row_scales
from delassus.dynamics import Dynamics
from delassus.errors import (
    AlgorithmError,
    ContactError,
    DelassusError,
    GeometryError,
    InputError,
    NumericalError,
    ProblemError,
    RobotError,
)
from delassus.model import (
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
from delassus.model.spatial import rotation_from_quaternion, rotation_from_rpy
from delassus.rotor_report import rotor_report
from delassus.samples import random_inputs
from delassus.solver import export_task_space
from delassus.solver.structural_rank import StructuralRank, generic_matrices

LEG = Path(__file__).resolve().parents[3] / "docs" / "geared_leg.urdf"
FOOT = Contact("LF", "LF_FOOT")
UP = [0, 0, 1]
RAGGED = [[1.0], [1.0, 2.0]]
MASKED = np.ma.array(np.zeros(12), mask=[True] + [False] * 11)
OUTPUTS = ("J", "MinvJT", "M", "h", "JdotV", "a0", "qdd0")
FROM_URDF = "expected a Robot: write Robot.from_urdf('robot.urdf')"
BY_JOINT = "expected numbers by joint: write {'knee': 0.1}"
DAMPINGS = "expected a Damping: write Damping.NONE or Damping.UNIFORM or Damping.SELECTIVE"
PLAIN = Inertia.from_com(1.0, (0.0, 0.0, 0.1), np.eye(3))
HINGE = Joint("hinge", JointKind.REVOLUTE, WORLD)
BODY = Body("link", PLAIN)


@cache
def world() -> SimpleNamespace:
    """Return the objects that rows call."""
    robot, leg = Robot.from_urdf(robots.quadruped()), Robot.from_urdf(LEG, base="fixed")
    problem = Problem(robot, [FOOT])
    feet = [Contact(foot, foot) for foot in robots.FEET]
    moving = Problem(robot, feet, outputs=OUTPUTS)
    full = solver_on_floats(moving).solve(**random_inputs(moving, 0))
    failed = copy(full)
    failed.status = Status.NOT_FINITE
    bare = solver_on_floats(Problem(robot, feet, outputs=["J"]))
    panda = Problem(
        Robot.from_urdf(robots.panda(), base="fixed"), [Contact("hand", "panda_hand", "surface")]
    )
    return SimpleNamespace(
        robot=robot, problem=problem, solver=DelassusSolver(problem), leg=leg, panda=panda,
        closure=Closure(leg), dynamics=Dynamics(leg), still=np.zeros(Dynamics(leg).size),
        full=full, failed=failed, bare=bare.solve(robot.neutral()),
        arm=solver_on_floats(panda).solve(panda.robot.neutral()),
        bound=DelassusSolver(feet_problem()).bind(),
    )  # fmt: skip


def lever(q):
    return [q[0] - q[1]]


Call = Callable[[SimpleNamespace], object]
Rows = list[tuple[Call, str]]
ROBOT: Rows = [
    *((lambda w, make=make: make("leg.urdf"), f"robot is 'leg.urdf'; {FROM_URDF}")
      for make in (lambda robot: Problem(robot, [FOOT]), Closure, Dynamics, rotor_report)),
    (lambda w: Dynamics(w.problem), "~Problem('delassus_quadruped'~"),
    *((lambda w, given=given, make=make: make(w, given), f"{name} {words}")
      for name, make in (
          ("armature", lambda w, given: Robot.from_urdf(robots.quadruped(), armature=given)),
          ("reference", lambda w, given: Closure(w.leg, given)))
      for given, words in (
          ([0.1, 0.2], f"is [0.1, 0.2]; {BY_JOINT}"),
          ([0.1234567] * 12, f"is {[0.1234567] * 12!r:.60}…; {BY_JOINT}"),
          (0.1, f"is 0.1; {BY_JOINT}"),
          (0.0, f"is 0.0; {BY_JOINT}"),
          ({"LF_KFE": "a"}, "of joint 'LF_KFE' is 'a'; expected a number"),
          ({"LF_KFE": None}, "of joint 'LF_KFE' is None; expected a number"),
          ({"LF_KFE": [0.1]}, "of joint 'LF_KFE' is [0.1]; expected a number"))),
    (lambda w: rotor_report(w.leg, keep="sole"), "keep must be a list of names: write ['sole']"),
    (lambda w: w.leg.with_constraints(independent="knee"),
     "independent must be a list of names: write ['knee']"),
    (lambda w: Joint("a", JointKind.REVOLUTE, None),
     "joint 'a': parent is None; expected the index of a body, or WORLD~"),
    (lambda w: Joint("a", JointKind.REVOLUTE, -1.0), "joint 'a': parent is -1.0; expected the~"),
    (lambda w: Frame("f", 0.0, Transform()), "frame 'f': body is 0.0; expected the index of a~"),
    (lambda w: Frame("f", "0", Transform()), "frame 'f': body is '0'; expected the index of a ~"),
    (lambda w: Body(3, PLAIN), "body 3: its name is 3; expected text: write Body('shin', inert~"),
    (lambda w: Body("b", "x"), "body 'b': inertia is 'x'; expected a Inertia: write Inertia.fr~"),
    (lambda w: Loop("l", "point", 0, 1),
     "loop 'l': kind is 'point'; expected a LoopKind: write LoopKind.POINT~"),
    (lambda w: Loop("l", LoopKind.POINT, 0.0, 1), "loop 'l': predecessor is 0.0; expected the~"),
    (lambda w: Loop("l", LoopKind.POINT, 0, None), "loop 'l': successor is None; expected the~"),
    (lambda w: Loop("l", LoopKind.POINT, 0, 1, np.eye(4)),
     "loop 'l': predecessor_placement is array([[~"),
    (lambda w: Coupling("c", {"a": 1.0, "b": 2.0}),
     "coupling 'c': its ratios are {'a': 1.0, 'b': 2.0}; expected pairs of a joint and its f~"),
    (lambda w: Coupling("c", ["a", "b"]), "coupling 'c': its ratios are ['a', 'b']; expected p~"),
    (lambda w: Coupling("c", [(1, 2.0)]), "coupling 'c': its ratios are [(1, 2.0)]; expected p~"),
    (lambda w: Coupling("c", 3), "coupling 'c': its ratios are 3; expected pairs of a joint an~"),
    (lambda w: Coupling("c", [("a", "b")]), "coupling 'c': a factor is 'b'; expected a number~"),
    (lambda w: FunctionConstraint("f", "ab", lever, 1),
     "constraint 'f': joints must be a list of names: write ['ab']~"),
    (lambda w: FunctionConstraint("f", ["a", "b"], lever, 1.5),
     "constraint 'f': rows is 1.5; expected a whole number~"),
    (lambda w: Robot("r", ["a"], ["b"], []),
     "robot 'r': joints has 'a' in it; expected a list of Joint: write [Joint('knee', Joint~"),
    (lambda w: Robot("r", [HINGE], ["b"], []), "robot 'r': bodies has 'b' in it; expected a li~"),
    (lambda w: Robot("r", [HINGE], [BODY], ["f"]), "robot 'r': frames has 'f' in it; expected~"),
    (lambda w: Robot("r", None, [BODY], []), "robot 'r': joints is None; expected a list of J~"),
    (lambda w: Robot("r", [HINGE], [BODY], [], loops=[1]), "robot 'r': loops has 1 in it; expe~"),
    (lambda w: Robot("r", [HINGE], [BODY], [], couplings="ab"), "robot 'r': couplings is 'ab';~"),
    (lambda w: Robot("r", [HINGE], [BODY], [], functions=[lever]), "robot 'r': functions has <~"),
    (lambda w: Robot(3, [HINGE], [BODY], []), "the name of the robot is 3; expected text: writ~"),
]  # fmt: skip
PROBLEM: Rows = [
    (lambda w: DelassusSolver(w.robot),
     "problem is Robot('delassus_quadruped', ~expected a Problem: write Problem(robot, "
     "[Contact('LF', frame='LF_FOOT')])"),
    (lambda w: Problem(w.robot, [FOOT], outputs="MinvJT"),
     "outputs must be a list of names: write ['MinvJT']"),
    (lambda w: Problem(w.robot, [FOOT], outputs="G"),
     "outputs must be a list of names: write ['G']"),
    (lambda w: Problem(w.robot, [FOOT], outputs=3), "outputs must be a list of names, got 3"),
]  # fmt: skip
CONTACT: Rows = [
    *((lambda w, given=given: Problem(w.robot, given),
       f"contacts is {given!r:.40}~; expected a list: write [Contact('LF', frame='LF_FOOT')]")
      for given in (FOOT, None, "LF_FOOT")),
    (lambda w: Contact(3, "LF_FOOT"),
     "~its name is 3; expected text: write Contact('LF', frame='LF_FOOT')~"),
    (lambda w: Contact("LF", ["LF_FOOT"]),
     "~contact 'LF': its frame is ['LF_FOOT']; expected text~"),
]  # fmt: skip
ALGORITHM: Rows = [
    *((lambda w, given=given: DelassusSolver(w.problem, given),
       f"algorithm is {given!r}; expected a str: write 'pv_osimr'")
      for given in (["ltl"], None, 3)),
    (lambda w: DelassusSolver(small.tiny(), "pv"), "~unknown algorithm 'pv'~"),
]  # fmt: skip
GEOMETRY: Rows = [
    (lambda w: Transform.from_xyz_rpy("abc", (0, 0, 0)),
     "xyz must be numbers of shape (3,), got 'abc'"),
    (lambda w: Transform.from_xyz_rpy((0, 0, 0), "abc"),
     "rpy must be numbers of shape (3,), got 'abc'"),
    (lambda w: Transform.from_xyz_rpy((0, 0, 0), (0, 0)),
     "rpy must be numbers of shape (3,), got (0, 0)"),
    (lambda w: rotation_from_quaternion([0, 0, 0, 0]), "quaternion has norm~"),
    (lambda w: rotation_from_quaternion([np.nan, 0, 0, 1]), "quaternion has norm~"),
    (lambda w: rotation_from_quaternion([0, 0, 0, 1e200, 0]), "quaternion has shape~"),
]  # fmt: skip
OTHER = [[each] * 12 for each in ("1", b"3", 1.0j, None, 10**400)] + [RAGGED, np.array(["1"] * 12)]
"""What numpy would make numbers of: text, nothing, imaginary parts, and what no float holds."""
for other in OTHER:
    GEOMETRY += [
        (lambda w, x=other: Transform.from_xyz_rpy(x, (0, 0, 0)), "xyz must be numbers of shape~"),
        (lambda w, x=other: rotation_from_rpy(x), "rpy is ~"),
        (lambda w, x=other: rotation_from_quaternion(x), "quaternion is ~"),
    ]
    ROBOT.append((
        lambda w, x=other[0]: Robot.from_urdf(robots.quadruped(), armature={"LF_KFE": x}),
        "armature of joint 'LF_KFE' is ~",
    ))  # fmt: skip
    CONTACT.append((
        lambda w, x=other: Contact("LF", "LF_FOOT", x), "~kind must be 'point', 'surface' or a~",
    ))  # fmt: skip
SETTINGS = (
    ({"characteristic_length": 0.0}, "characteristic_length is 0.0"),
    ({"weak": 1.0}, "weak is 1.0; expected more than 1"),
    ({"weak": np.nan}, "weak is nan"),
    ({"singular": 1e11}, "singular is"),
    ({"hysteresis": 0.5}, "hysteresis is 0.5; expected a factor of at least 1"),
    ({"damping_ratio": 1.0}, "damping_ratio is 1.0"),
    ({"weak": 1e6}, "thresholds out of order"),
    ({"weak": 6e5}, "thresholds out of order"),
    ({"weak": "1e4"}, "weak is '1e4'; expected a number"),
    ({"hysteresis": [2.0]}, "hysteresis is [2.0]; expected a number"),
    ({"damping_ratio": None}, "damping_ratio is None; expected a number"),
    ({"damping": "selective"}, f"damping is 'selective'; {DAMPINGS}"),
    ({"damping": 2}, f"damping is 2; {DAMPINGS}"),
)
"""Thresholds and damping of the monitor."""
INPUT: Rows = [
    (lambda w: w.closure.solve({"knee": "a"}), "joint 'knee' is 'a'; expected numbers"),
    *((lambda w, measured=measured: w.closure.solve(measured),
       f"measured is {' '.join(repr(measured).split()):.60}~; expected positions by joint, or all "
       "of q") for measured in ("neutral", RAGGED, None, MASKED)),
    (lambda w: w.closure.solve({3: 0.0}), "measured joints must be a list of names, got 3 in it"),
    (lambda w: w.closure.bind("knee"), "measured joints must be a list of names: write ['knee']"),
    *((lambda w, name=name, given=given: Closure(w.leg, **{name: given}),
       f"{name} is {given!r}; expected a number")
      for name in ("tolerance", "agreement") for given in ("x", None, [1e-8])),
    *((lambda w, given=given: Closure(w.leg, tolerance=given),
       f"tolerance is {given}; expected a positive number") for given in (-1, 0, np.nan, np.inf)),
    (lambda w: Closure(w.leg, agreement=-0.1), "agreement is -0.1; expected a number from 0 on"),
    *((lambda w, given=given: generic_matrices(w.solver, given),
       f"count is {given!r}; expected a whole number, at least 1")
      for given in (0, -1, 2.5, "3")),
    (lambda w: StructuralRank("G", np.ones(3)), "generic matrices is 'G'; expected numbers"),
    *((lambda w, shape=shape: StructuralRank(np.zeros(shape), np.ones(10)),
       "~expected (N, 10, 10)~") for shape in ((10, 10), (0, 10, 10), (2, 9, 9))),
    (lambda w: StructuralRank(np.full((1, 10, 10), np.nan), np.ones(10)), "~not finite~"),
    (lambda w: row_scales(w.problem.contacts, "0.1"),
     "characteristic_length is '0.1'; expected a number"),
    *((lambda w, length=length: row_scales(w.problem.contacts, length),
       f"characteristic_length is {length}~") for length in (0.0, -1.0, np.nan, np.inf)),
    *((lambda w, compute=compute, q=q: getattr(w.dynamics, compute)(q, w.still, w.still),
       f"q is {q!r}; expected numbers")
      for compute in ("inverse", "forward") for q in ("a", RAGGED, None)),
    *((lambda w, change=change: ConditionSettings(**change), f"~{words}~")
      for change, words in SETTINGS),
    (lambda w: w.solver.use(DelassusSolver(small.tiny()).bind()), "~bound is of another solver~"),
    (lambda w: w.solver.use(None), "~bound is None; expected a BoundSolver: write solver.b~"),
    # Quantities of a solution.
    *((call, f"~this needs the output '{name}'~") for call, name in (
        (lambda w: w.bare.jbar(), "MinvJT"), (lambda w: w.bare.bias_force(), "MinvJT"),
        (lambda w: w.bare.forces(), "a0"), (lambda w: w.bare.accelerations(np.zeros(12)), "qdd0"),
        (lambda w: w.bare.impact(np.zeros(18)), "MinvJT"),
        (lambda w: w.bare.effective_mass("LF_FOOT", UP, locked=True), "M"),
        (lambda w: w.full.task("RF_FOOT", "LF_FOOT").effective_mass("RF_FOOT", UP, locked=True),
         "M"))),
    (lambda w: w.full.inertia(-0.1), "~damping is -0.1; expected a fraction~"),
    (lambda w: w.full.inertia(0.0, 0.0), "~characteristic_length is 0.0; expected a positive~"),
    (lambda w: w.full.forces(np.zeros(3)), "~acceleration has shape (3,), expected (12,)~"),
    (lambda w: w.full.forces(regularization=-1.0), "~regularization is -1.0 in a row~"),
    (lambda w: w.full.forces(regularization=np.nan),
     "~regularization is nan in a row; expected 0~"),
    (lambda w: w.full.impact(np.zeros(12)), "~rates has shape (12,), expected (18,)~"),
    (lambda w: w.full.effective_mass("LF_FOOT", [0, 0, np.inf]), "~expected 3 finite numbers~"),
    (lambda w: w.full.effective_mass("LF_FOOT", np.nan), "~direction is nan; expected 3 finite~"),
    (lambda w: w.full.effective_mass("LF_FOOT", [0, 0]), "~direction is [0~expected 3 finite~"),
    (lambda w: w.full.effective_mass("LX", UP), "~unknown contact 'LX'~; active: ~"),
    (lambda w: w.arm.effective_mass("hand", np.ones(6), locked=True),
     "~a robot on a fixed base cannot move~"),
    (lambda w: w.full.task("head"),
     "~contact 'head' is not active; active contacts: LF_FOOT, RF_FOOT~"),
    (lambda w: w.full.task("LF_FOOT", ("LF_FOOT",)), "~contact 'LF_FOOT' is named twice~"),
    (lambda w: w.full.task("LF_FOOT", 3), "~given~"),
    (lambda w: export_task_space(w.solver, "x y", "LF"), "~'x y' is not a C identifier~"),
    (lambda w: export_task_space(w.solver, "main", "LF"),
     "~name 'main' is a keyword or reserved name of C~"),
    (lambda w: export_task_space(w.solver, "x", "head"), "~contact 'head' is not active~"),
    # Friction and restitution.
    (lambda w: w.full.contact_impulses(np.zeros(18), 0.5, {}),
     "~restitution lacks contacts 'LF_FOOT', 'RF_FOOT'~"),
    (lambda w: w.full.contact_impulses(np.zeros(18), 0.5, 1.5),
     "~restitution is 1.5; expected numbers of 0 to 1~"),
    (lambda w: w.full.contact_impulses([0.0, 1.0], 0.5),
     "~rates has shape (2,), expected (18,)~"),
    (lambda w: w.full.contact_forces(0.5, restitution=0.5),
     "~restitution is a matter of velocities~"),
    (lambda w: w.bound.contact_forces(), "~no friction was set; expected bound.set_friction~"),
    (lambda w: w.bound.set_friction({"LF": 0.5, "RF": 0.5}),
     "~friction lacks contacts 'LH', 'RH'~"),
    (lambda w: w.bound.set_friction(dict.fromkeys((*LEGS, "LX"), 0.5)),
     "~friction: unknown contact 'LX'~"),
    (lambda w: w.bound.set_friction(0.5, law="ncp"), "~unknown law 'ncp'~"),
    (lambda w: w.solver.bind().set_friction(0.5), "~a0~"),
]  # fmt: skip
NUMERICAL: Rows = [
    (lambda w: w.failed.inertia(), "~there is no matrix: the status is NOT_FINITE~"),
    (lambda w: w.failed.task("LF_FOOT"), "~NOT_FINITE~"),
]
TABLE: dict[type[DelassusError], Rows] = {
    RobotError: ROBOT, ProblemError: PROBLEM, ContactError: CONTACT, AlgorithmError: ALGORITHM,
    GeometryError: GEOMETRY, InputError: INPUT, NumericalError: NUMERICAL,
}  # fmt: skip


@pytest.mark.parametrize(
    ("error", "call", "words"),
    [(error, *row) for error, rows in TABLE.items() for row in rows],
    ids=lambda part: part[:50] if isinstance(part, str) else "",
)
def test_refused_argument(error: type[DelassusError], call: Call, words: str) -> None:
    """Any text may stand in place of "~" of the message."""
    with pytest.raises(error) as caught:
        call(world())
    assert type(caught.value) is error
    text = str(caught.value)
    assert fullmatch(".*".join(map(escape, words.split("~"))), text, DOTALL), text


def test_closure_of_a_problem_is_of_its_robot() -> None:
    leg = world().leg
    assert Closure(Problem(leg, [Contact("sole", "sole")])).robot is leg


def test_what_a_robot_is_made_of_cannot_change() -> None:
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
