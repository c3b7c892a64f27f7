"""The command `delassus`: what it prints, and what it says to input that cannot be used."""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
import robots
from cli_support import (
    QUADRUPED,
    answer,
    field,
    output,
    printed_matrix,
    refusal,
    urdf_file,
    usage_error,
)
from hanging import HANG_S
from on_floats import solver_on_floats
from processes import wait_until
from urdf_text import INERTIAL, inertial, joint, link, robot_xml, straight

import delassus
from delassus import Contact, DelassusSolver, Problem, Robot, algorithms
from delassus.algorithms import NumericAlgorithm, TracedAlgorithm, registry
from delassus.cli import compare, parsing
from delassus.cli import report as text
from delassus.conditioning.monitor import ConditionMonitor
from delassus.robots.pose import pose_of
from delassus.robots.proposals import ASSUMED
from delassus.solver import solver
from delassus.solver.friction import ForceSettings
from delassus.solver.structural_rank import generic_matrices
from delassus_ros.verbs import main as cli_main
from delassus_ros.verbs.main import main

LEGS = ("--contact", "LF_FOOT", "--contact", "RH_FOOT:surface")
CONTACTS = [Contact("LF_FOOT", "LF_FOOT"), Contact("RH_FOOT", "RH_FOOT", "surface")]
"""The contacts that `LEGS` name."""
ROBOT = Robot.from_urdf(QUADRUPED)
ZEROS = ("--q", ",".join(["0"] * 12))


@pytest.fixture
def arm(tmp_path: Path) -> str:
    """Return the file of an arm with every kind of joint and a colon in a frame's name."""
    kinds = ("revolute", "continuous", "prismatic", "planar", "floating", "revolute")
    limits = {
        "revolute": '<axis xyz="0 0 1"/><limit lower="-1.5" upper="2" effort="1" velocity="1"/>',
        "prismatic": '<axis xyz="1 0 0"/><limit lower="0" upper="0.25" effort="1" velocity="1"/>',
        "floating": "",
    }
    links = [link(f"l{i}") for i in range(6)] + [link("hand:left")]
    names = [f"l{i}" for i in range(6)] + ["hand:left"]
    joints = [
        joint(f"j{i}", names[i], names[i + 1], kind, limits.get(kind, '<axis xyz="0 1 0"/>'))
        for i, kind in enumerate(kinds)
    ]
    return urdf_file(tmp_path, *links, *joints)


def test_list_names_every_algorithm(capsys, monkeypatch) -> None:
    monkeypatch.setitem(registry._broken, "absent", "needs the package 'absent' (not found)")
    out = output(capsys, "list")
    listed = {line.split()[0]: line for line in out.partition("\n\n")[0].splitlines()}
    assert tuple(listed) == algorithms.names()
    assert listed["dense"].split(maxsplit=1)[1].startswith("compiled")
    for name in algorithms.names():
        assert len(listed[name].split()) > 3, "a line of explanation"
        assert "see the" not in listed[name], "a line that stands alone"
    assert "`" not in out
    assert re.search(r"Not available:\n  (.*\n  )*absent +needs the package 'absent'", out)


def test_list_without_anything_absent(capsys, monkeypatch) -> None:
    monkeypatch.setattr(registry, "_broken", {})
    assert "Not available" not in output(capsys, "list")


def test_inspect_shows_every_kind_of_joint_with_its_place_in_q(capsys, arm: str) -> None:
    out = output(capsys, "inspect", arm, "--base", "fixed")
    robot = Robot.from_urdf(arm, base="fixed")
    mass = sum(body.inertia.mass for body in robot.bodies)
    # No contact is proposed on a body behind a floating joint: it is another object.
    head, joints = out.rstrip("\n").split("\n\n")
    assert head == f"test: fixed base, 6 joints, nq 14, nv 13, {mass:.6g} kg that moves"
    cells = [line.split() for line in joints.splitlines()]
    assert cells == [
        ["q", "joint", "kind", "lower", "upper", "body", "kg", "links"],
        ["world", "l0"],
        ["0", "└", "j0", "revolute", "-1.5", "rad", "2", "rad", "1.5", "l1"],
        ["1", "└", "j1", "revolute", "-", "-", "1.5", "l2"],
        ["2", "└", "j2", "prismatic", "0", "m", "0.25", "m", "1.5", "l3"],
        ["3-5", "└", "j3", "planar", "-", "-", "1.5", "l4"],
        ["6-12", "└", "j4", "floating", "-", "-", "1.5", "l5"],
        ["13", "└", "j5", "revolute", "-1.5", "rad", "2", "rad", "1.5", "hand:left"],
    ]


def test_passive_joints_are_listed_and_left_out_on_request(capsys, tmp_path: Path) -> None:
    damped = '<axis xyz="0 1 0"/><dynamics damping="0.25"/>'
    links = [link("base"), link("upper"), link("lower")]
    joints = [joint("hip", "base", "upper", inside=damped), joint("knee", "upper", "lower")]
    path = urdf_file(tmp_path, *links, *joints)
    given = (path, "--base", "fixed")
    title, *rows = output(capsys, "inspect", *given).split("\n\n")[2].splitlines()
    assert title == "Springs, dampers and gravity compensation:"
    assert [row.split() for row in rows] == [
        ["joint", "stiffness", "at", "rest", "damping", "held", "kg"],
        ["hip", "-", "-", "0.25", "-"],
    ]
    assert "damping" not in output(capsys, "inspect", *given, "--no-passive")
    data = answer(capsys, "inspect", *given)
    assert [each["damping"] for each in data["joints"]] == [0.25, 0.0]
    moving = ("--contact", "lower", "--outputs", "h", "--rates", "1,2", "--gravity", "0,0,0")
    for more, passive in (((), True), (("--no-passive",), False)):
        found = answer(capsys, "compute", *given, *moving, *more)
        robot = Robot.from_urdf(path, "fixed", passive=passive)
        problem = Problem(robot, [Contact("lower", "lower")], outputs=["h"])
        expected = solver_on_floats(problem).solve(
            robot.neutral(), rates=[1, 2], gravity=[0, 0, 0]
        )
        np.testing.assert_allclose(found["h"], expected.h, rtol=1e-9, atol=1e-12)
    assert "passive: false" in output(capsys, "config", *given, "--no-passive")
    assert "passive" not in output(capsys, "config", *given)


def test_inspect_draws_the_tree_of_a_floating_base(capsys) -> None:
    out = output(capsys, "inspect", QUADRUPED)
    assert "floating base, 12 joints, nq 12, nv 18" in out
    tree = out.split("\n\n")[1].splitlines()[1:]
    assert tree[0].split() == ["root", "root", "-", "-", "6.95", "base,", "head,", "imu_link"]
    drawn = [re.split(r"  [a-z]", line)[0][4:].rstrip() for line in tree[1:]]
    assert drawn[:4] == ["├ LF_HAA", "│ └ LF_HFE", "│   └ LF_KFE", "├ RF_HAA"]
    assert drawn[-3:] == ["└ RH_HAA", "  └ RH_HFE", "    └ RH_KFE"]
    assert tuple(line.split()[-1] for line in drawn) == ROBOT.joint_names
    assert out.splitlines()[-4:] == [f"  {foot}:point  a sphere" for foot in robots.FEET]


def test_ends_called_feet_proposed(capsys, tmp_path: Path) -> None:
    names = [f"finger{k}" for k in range(9)] + ["left_foot"]
    parts = [link("trunk"), *map(link, names)]
    parts += [joint(f"to_{name}", "trunk", name, "revolute") for name in names]
    path = urdf_file(tmp_path, *parts)
    out = output(capsys, "inspect", path)
    expected = [
        "At the ends of limbs, candidates for --contact:",
        f"  left_foot:point  {ASSUMED}",
        "  and 9 other ends: " + ", ".join(names[:9]),
    ]
    assert out.splitlines()[-3:] == expected
    proposed = output(capsys, "config", path)
    assert "names: [left_foot]" in proposed and "# Other ends: finger0, " in proposed


def test_description_from_a_pipe(capsys) -> None:
    file = output(capsys, "inspect", QUADRUPED)
    for verb in ("inspect", "config"):
        read, write = os.pipe()
        with os.fdopen(write, "wb") as pipe:
            pipe.write(Path(QUADRUPED).read_bytes())
        piped = output(capsys, verb, f"/dev/fd/{read}")
        os.close(read)
        assert piped == file if verb == "inspect" else "LF_FOOT: {frame: LF_FOOT" in piped


def test_assumed_base_of_an_arm_reported(capsys, arm: str) -> None:
    assert main(["inspect", arm]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("test: fixed base, ")
    assert captured.err == (
        "taken as --base fixed, as one limb alone moves on the root link 'l0'; else say --base "
        "floating\n"
    )
    assert output(capsys, "inspect", arm, "--base", "floating").startswith("test: floating base")
    assert output(capsys, "inspect", arm, "--base", "fixed") == captured.out


def test_inspect_a_robot_without_joints(capsys, tmp_path: Path) -> None:
    out = output(capsys, "inspect", urdf_file(tmp_path, link("box")), "--base", "fixed")
    assert out.startswith("test: fixed base, 0 joints, nq 0, nv 0, 0 kg that moves")
    assert "candidates" not in out


def test_compute_prints_the_matrix(capsys) -> None:
    out = output(capsys, "compute", QUADRUPED, *LEGS, "--q", "LF_KFE=-1.4,RH_HAA=0.2")
    problem = Problem(ROBOT, CONTACTS)
    q = ROBOT.q({**pose_of(ROBOT), "LF_KFE": -1.4, "RH_HAA": 0.2})
    built = DelassusSolver(problem)
    G = built.solve(q).matrix
    assert np.allclose(printed_matrix(out, 9), G, rtol=1e-5, atol=1e-9)
    assert out.startswith(
        "delassus_quadruped: floating base, 9 rows in contact axes: LF_FOOT (point), "
        "RH_FOOT (surface)\n"
    )
    assert "  LF_FOOT z " in out and "  RH_FOOT about x " in out
    # As the node weighs them: angular rows count at a tenth of a metre.
    weights = np.array([1.0] * 6 + [0.1] * 3)
    eigenvalues = np.linalg.eigvalsh(weights[:, np.newaxis] * G * weights)
    weighed = "angular rows weighed by 0.1 m"
    condition, how = field(out, "condition number").split("; ")
    assert how == f"{weighed}, as the node does by default"
    assert float(condition) == pytest.approx(eigenvalues[-1] / eigenvalues[0], rel=1e-4)
    monitor = ConditionMonitor(problem, generic_matrices(built))
    assert float(condition) == pytest.approx(monitor.examine(G).condition, rel=1e-4)
    ends, how = field(out, "eigenvalues").split("; ")
    assert how == weighed
    found = [float(end) for end in ends.split(" to ")]
    assert found == pytest.approx(eigenvalues[[0, -1]], rel=1e-4)
    assert field(out, "kernel").startswith(f"{built.operations.total} operations (")


def printed_output(out: str, name: str) -> np.ndarray:
    """Return an output of `delassus compute` under its name."""
    block = re.search(rf"^{name}\n((?:  .*\n)+)", out, re.MULTILINE)
    assert block is not None, out
    lines = block[1].splitlines()
    width = len(re.split(r" {2,}", lines[0].strip())) - 1
    return np.array([[float(v) for v in line.split()[-width:]] for line in lines])


def test_compute_holds_joints_that_are_locked(capsys) -> None:
    locked = ("--lock", "LF_KFE=-1.4", "--q", "RH_HAA=0.2")
    assert main(["compute", QUADRUPED, *LEGS, *locked]) == 0
    out, err = capsys.readouterr()
    assert err == "1 joint is locked by --lock: 'LF_KFE'\n"
    robot = ROBOT.lock({"LF_KFE": -1.4})
    q = robot.q({**pose_of(robot), "RH_HAA": 0.2})
    G = DelassusSolver(Problem(robot, CONTACTS)).solve(q).matrix
    assert np.allclose(printed_matrix(out, 9), G, rtol=1e-5, atol=1e-9)


def test_compute_prints_further_outputs(capsys) -> None:
    names = ("J", "MinvJT", "M", "h", "JdotV", "a0", "qdd0")
    rates, torques = (",".join(f"{0.1 * k + c:.1f}" for k in range(18)) for c in (-0.5, 0.3))
    out = output(
        capsys, "compute", QUADRUPED, *LEGS, *ZEROS, "--outputs", ",".join(names),
        f"--rates={rates}", f"--torques={torques}", "--gravity=0.1,0.2,-9.7",
    )  # fmt: skip
    s = DelassusSolver(Problem(ROBOT, CONTACTS, outputs=names)).solve(
        np.zeros(12), rates=[float(v) for v in rates.split(",")],
        torques=[float(v) for v in torques.split(",")], gravity=[0.1, 0.2, -9.7],
    )  # fmt: skip
    for name in names:
        expected = s.output(name)
        found = printed_output(out, name).reshape(expected.shape)
        assert np.allclose(found, expected, rtol=1e-5, atol=1e-9 * np.abs(expected).max())
    # At rest, in the usual gravity, unless said otherwise.
    out = output(capsys, "compute", QUADRUPED, *LEGS, *ZEROS, "--outputs", "h")
    rest = {"rates": np.zeros(18), "gravity": [0.0, 0.0, -9.81]}
    h = DelassusSolver(Problem(ROBOT, CONTACTS, outputs=["h"])).solve(np.zeros(12), **rest).h
    assert np.allclose(printed_output(out, "h").ravel(), h, rtol=1e-5, atol=1e-9)


_FEET = [part for foot in robots.FEET for part in ("--contact", foot)]


def test_compute_prints_contact_forces(capsys) -> None:
    q = ",".join(f"{leg}_HFE=0.7,{leg}_KFE=-1.4" for leg in robots.LEGS)
    command = [
        "compute", QUADRUPED, *_FEET, "--axes", "world", "--orientation", "0,0,0,1", "--q", q,
        "--outputs", "forces",
    ]  # fmt: skip
    contacts = [Contact(foot, foot) for foot in robots.FEET]
    problem = Problem(ROBOT, contacts, axes="world", outputs=["a0"])
    bent = {name: float(value) for name, value in (word.split("=") for word in q.split(","))}
    s = DelassusSolver(problem).solve(
        ROBOT.q(bent), base_orientation=[0, 0, 0, 1], rates=np.zeros(18), torques=np.zeros(18),
        gravity=[0, 0, -9.81],
    )  # fmt: skip
    for more, friction, law in (
        ([], 0.6, "auto"),
        (["--friction", "0.1", "--law", "convex"], 0.1, "convex"),
    ):
        out = output(capsys, *command, *more)
        expected = s.contact_forces(friction, law=law)
        found = printed_output(out, "forces").ravel()
        assert np.allclose(found, expected.forces, rtol=1e-5, atol=1e-6)
        assert re.search(rf"^forces +SOLVED, residual \S+, law {expected.law}$", out, re.M)
        assert "\na0\n" not in out
        data = answer(capsys, *command, *more)
        assert np.array_equal(data["forces"], expected.forces)
        assert (data["forces_status"], data["forces_law"]) == ("SOLVED", expected.law)
        assert data["forces_residual"] == expected.residual and data["contradiction"] == []


def test_contacts_without_forces_reported(capsys, tmp_path: Path) -> None:
    """An arm of one joint swings its tip; the tip's normal is where the arm cannot move."""
    path = urdf_file(
        tmp_path, link("base", ""), link("tip", inertial(1, ixx=1, iyy=1, izz=1)), link("end", ""),
        straight("j", "base", "tip", "0 0 0", "1 0 0"),
        straight("f", "tip", "end", "0 0 1", kind="fixed"),
    )  # fmt: skip
    command = (
        "compute", path, "--base", "fixed", "--axes", "world", "--contact", "end",
        "--outputs", "forces", "--rates", "2", "--json",
    )  # fmt: skip
    assert main(command) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["forces_status"] == "INFEASIBLE" and data["forces"] is None
    assert data["contradiction"] == ["end"]


def test_compute_prints_forces_of_surfaces_with_dimensions(capsys) -> None:
    out = output(
        capsys, "compute", QUADRUPED, *LEGS, "--outputs", "forces", "--dimensions", "0.2,0.1"
    )
    assert field(out, "forces").startswith("SOLVED")


def test_no_weights_reported_of_linear_rows(capsys) -> None:
    out = output(capsys, "compute", QUADRUPED, *LEGS[:2], *ZEROS)
    G = DelassusSolver(Problem(ROBOT, [Contact("a", "LF_FOOT")]))
    expected = np.linalg.cond(G.solve(np.zeros(12)).matrix)
    assert float(field(out, "condition number")) == pytest.approx(expected, rel=1e-4)


def test_compute_takes_all_of_q_or_none(capsys) -> None:
    posture = output(capsys, "compute", QUADRUPED, *LEGS)
    assert output(capsys, "compute", QUADRUPED, *LEGS, "--q", "pose") == posture
    q = ",".join(f"{value:.17g}" for value in ROBOT.q(pose_of(ROBOT)))
    given = output(capsys, "compute", QUADRUPED, *LEGS, f"--q={q}")
    why = posture.splitlines()[-1]
    assert posture == f"{given}{why}\n" and why.startswith("posture ")
    turned = ",".join(["-0.5"] * ROBOT.nq)
    assert output(capsys, "compute", QUADRUPED, *LEGS, f"--q={turned}") != given


def test_posture_outside_the_limits_is_reported(capsys) -> None:
    assert main(["compute", QUADRUPED, *LEGS, "--q", "neutral"]) == 0
    out, err = capsys.readouterr()
    zeros = output(capsys, "compute", QUADRUPED, *LEGS, *ZEROS)
    assert out == zeros and len(err.splitlines()) == 4
    assert err.startswith(
        "warning: --q neutral: the position of joint 'LF_KFE' is 0 rad, and its limits are -2.6 "
    )


def test_verbs_start_from_the_same_posture_contacts_and_friction(capsys, tmp_path: Path) -> None:
    """Contacts that no verb was told are the feet, in one posture, with one condition."""
    computed = answer(capsys, "compute", QUADRUPED)
    plotted = answer(capsys, "plot", QUADRUPED, "-o", f"{tmp_path}/a.svg")
    feet = [Contact(foot) for foot in robots.FEET]
    G = DelassusSolver(Problem(ROBOT, feet)).solve(ROBOT.q(pose_of(ROBOT))).matrix
    np.testing.assert_allclose(computed["G"], G, rtol=1e-9, atol=1e-12)
    assert computed["contacts"] == plotted["contacts"]
    masses = 1.0 / np.linalg.eigvalsh(G[:3, :3])[::-1]
    np.testing.assert_allclose(plotted["masses"]["LF_FOOT"], masses, rtol=1e-9)
    options = cli_main._parser().parse_args(["view", QUADRUPED, "--forces"])
    assert options.forces == ForceSettings.friction


def test_compute_with_another_algorithm_gives_the_same_matrix(capsys) -> None:
    one = output(capsys, "compute", QUADRUPED, *LEGS)
    other = output(capsys, "compute", QUADRUPED, *LEGS, "--algorithm", "dense")
    assert field(other, "algorithm") == "dense"
    alias = output(capsys, "compute", QUADRUPED, *LEGS, "--algorithm", "C-EFPA")
    assert field(alias, "algorithm") == "c_efpa"
    assert np.allclose(printed_matrix(one, 9), printed_matrix(other, 9), rtol=1e-5, atol=1e-9)


def test_compute_in_world_axes(capsys) -> None:
    arguments = ("compute", QUADRUPED, "--contact", "LF_FOOT", "--axes", "world")
    half = "0,0,0.7071067811865476,0.7071067811865476"
    out = output(capsys, *arguments, "--orientation", half)
    G = printed_matrix(out, 3)
    upright = printed_matrix(output(capsys, *arguments, "--orientation", "0,0,0,1"), 3)
    turn = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    assert np.allclose(G, turn @ upright @ turn.T, rtol=1e-4, atol=1e-5)
    assert "root link: add --orientation X,Y,Z,W, for example" in refusal(capsys, *arguments)


def test_singular_matrix_reported(capsys, tmp_path: Path) -> None:
    path = urdf_file(tmp_path, link("a"), link("b"), joint("j", "a", "b"))
    out = output(capsys, "compute", path, "--base", "fixed", "--contact", "b")
    assert field(out, "condition number") == "infinite (G is singular)"
    assert field(out, "eigenvalues").startswith("0 to ")


def test_a_frame_whose_name_holds_a_colon(capsys, arm: str) -> None:
    base = ("compute", arm, "--base", "fixed", "--contact")
    assert "3 rows in contact axes: hand:left (point)" in output(capsys, *base, "hand:left")
    assert "hand:left (surface)" in output(capsys, *base, "hand:left:surface")


def test_compare_covers_every_algorithm(capsys, monkeypatch) -> None:
    @algorithms.register("picky")
    class Picky(TracedAlgorithm):
        """Refuses everything."""

        def supports(self, problem):
            return "it is picky"

        def evaluate(self, problem, x):
            return {}

    monkeypatch.setitem(registry._broken, "absent", "needs the package 'absent'")
    try:
        out = output(capsys, "compare", QUADRUPED, "--contact", "LF_FOOT", "--calls", "20")
    finally:
        del registry._registry["picky"]
    rows = {line.split()[0]: line.split()[1:] for line in out.split("\n\n")[1].splitlines()[1:]}
    assert tuple(rows) == algorithms.names()
    problem = Problem(ROBOT, [Contact("LF_FOOT", "LF_FOOT")])
    for name, (operations, turns, least, median, error) in rows.items():
        counted = DelassusSolver(problem, name).operations
        assert operations == ("-" if counted is None else str(counted.total))
        assert turns == ("-" if counted is None else str(counted.sines_cosines))
        assert 0.0 < float(least) <= float(median) < 1e5
        assert float(error) < 1e-12
    assert float(rows["dense"][-1]) == 0.0
    assert "differences below some 20 % are the machine's" in out
    refused = out.split("Not compared:\n")[1]
    assert re.search(r"^  picky +it is picky$", refused, re.MULTILINE)
    assert re.search(r"^  absent +needs the package 'absent'$", refused, re.MULTILINE)


def test_compare_goes_on_without_an_algorithm_that_fails(capsys, monkeypatch) -> None:
    class Unlicensed(NumericAlgorithm):
        """Cannot be prepared."""

        def prepare(self, problem):
            raise ValueError("licence missing")

    class Weak(NumericAlgorithm):
        """Fails at every call."""

        def prepare(self, problem):
            return lambda inputs, outputs: 1 / 0

    kept = {name: registry._registry[name] for name in algorithms.names()[:4]}
    monkeypatch.setattr(registry, "_registry", kept | {"dense": algorithms.get("dense")})
    registry.register("unlicensed")(Unlicensed)
    registry.register("weak")(Weak)
    out = output(capsys, "compare", QUADRUPED, "--contact", "LF_FOOT", "--calls", "5")
    compared, refused = out.split("Not compared:\n")
    assert "\ndense " in compared and "unlicensed" not in compared and "weak" not in compared
    assert re.search(r"^  unlicensed +algorithm .* ValueError: licence missing$", refused, re.M)
    assert re.search(r"^  weak +weak: FAILED \(its log says why\) at q = ", refused, re.M)


def test_compared_algorithms_take_turns_and_begin_with_calls_that_do_not_count(monkeypatch):
    """Each call at a q of its own, the same ones for both."""

    class Solver:
        def __init__(self, name: str) -> None:
            self.name = name
            self.inputs = {"q": np.zeros(12)}

        def bind(self) -> Solver:
            return self

        def solve(self) -> None:
            calls.append((self.name, self.inputs["q"].tobytes()))

    calls: list[tuple[str, bytes]] = []
    problem = Problem(ROBOT, [Contact("LF", "LF_FOOT")])
    times = compare._times(problem, [Solver("a"), Solver("b")], 120, None)
    assert [len(found) for found in times] == [120, 120]
    assert all((found > 0.0).all() for found in times)
    blocks = [(name, list(block)) for name, block in groupby(calls, lambda call: call[0])]
    assert [name for name, _ in blocks] == ["a", "b"] * 3
    assert [len(block) for _, block in blocks] == [55, 55, 55, 55, 25, 25]
    first, second = ([q for _, block in blocks[k::2] for _, q in block[5:]] for k in (0, 1))
    assert first == second and len(set(first)) == 120


def test_compare_with_quaternions_inside_q_and_world_axes(capsys, arm: str) -> None:
    held = ("--base", "floating", "--axes", "world")
    out = output(capsys, "compare", arm, "--contact", "l5", *held, "--calls", "5")
    assert all(float(line.split()[-1]) < 1e-10 for line in out.split("\n\n")[1].splitlines()[1:])


def compute_legs(*rows: tuple[str, str]) -> list[tuple[tuple[str, ...], str]]:
    """Return rows of refusals of `compute` with two contacts: further arguments, and words."""
    return [(("compute", QUADRUPED, *LEGS, *options.split()), words) for options, words in rows]


_FORCES = "--outputs forces"
_WORLD = "--axes world --orientation"
_FINITE = "numbers must be finite and at most 1e+09 in SI units"
_REFUSALS = [
    (("inspect", "/no/such.urdf"), "/no/such.urdf"),
    (("compute", QUADRUPED, "--contact", "LF_FOT"), "unknown frame 'LF_FOT'; did you mean 'LF"),
    (
        ("compute", QUADRUPED, "--contact", "LF_FOOT:line"),
        "--contact LF_FOOT:line: unknown kind 'line'; kinds: point, surface\n",
    ),
    (("compare", "no/such.mcap"), "no/such.mcap is a recording: first 'delassus bag no/such."),
    (("compare", QUADRUPED, "--base", "fixed", "--contact", "base"), "is fixed to the world"),
    (("view", QUADRUPED, "--q", "LF_KFE=-1e400"), f"--q: joint 'LF_KFE': {_FINITE}"),
    *(
        ((verb, QUADRUPED, *LEGS, "--reference", "LF_KFE=1"), "--reference is given, but robot "
         "'delassus_quadruped' has no loops or couplings; leave it out, or say with --l")
        for verb in ("compute", "compare")
    ),
    *compute_legs(
        ("--contact LF_FOOT", "--contact: two are called 'LF_FOOT'; give one a name: "
         "NAME=LF_FOOT\n"),
        ("--q -0.1,2", "--q: 2 numbers, expected 12: LF_HAA, LF_HFE, LF_KFE, RF_HAA, RF_HFE and "
         "7 more\n"),
        ("--q -1", "--q: 1 number, expected 12: "),
        ("--q 1,b", "--q: '1,b' is not a list of numbers"),
        ("--q LF_KFE=1_0", "'1_0' is not a number\n"),
        ("--q \u0662", "'\u0662' is not a number\n"),
        ("--q LF_KFF=1", "unknown joint 'LF_KFF'; did you mean"),
        ("--q LF_KFE=x", "--q: joint 'LF_KFE': 'x' is not a number\n"),
        ("--q LF_KFE=1,2", "--q: '2' has no joint; write joint="),
        ("--q LF_KFE=nan", f"--q: joint 'LF_KFE': {_FINITE}"),
        ("--q LF_KFE=1,LF_KFE=2", "'LF_KFE' is given twice"),
        ("--lock LF_KFE", "--lock: 'LF_KFE' has no value; write LF_KFE=…\n"),
        ("--outputs a0 --rates 1,2", "--rates: 2 numbers, expected 18: root (6), LF_HAA, LF_HFE, "
         "LF_KFE, RF_HAA and 8 more"),
        ("--outputs a0 --gravity 0,-9", "--gravity: 2 numbers, expected 3: x, y, z\n"),
        (f"--outputs a0 {_WORLD} 0,0,0,1 --gravity 0,0,nan", "--gravity: numbers must be finite"),
        ("--outputs adot", "unknown output 'adot'; did you mean 'JdotV'?"),
        ("--rates 1,2", "--rates is of use with --outputs that need it alone, such as a0"),
        ("--outputs h --rates 1,2", "--rates: 2 numbers, expected 18: root (6)"),
        ("--outputs h --gravity x", "--gravity: 'x' is not a list of numbers"),
        ("--axes world", "needs the orientation of the root link"),
        (f"{_WORLD} 0,0,1", "--orientation: 3 numbers, expected 4: x, y, z, w\n"),
        (f"{_WORLD} 0,0,0,2", "--orientation has norm 2, expected a unit quaternion x, y, z, w\n"),
        ("--orientation 0,0,0,1_0", "'1_0' is not a number\n"),
        ("--orientation 0,0,0,1", "--orientation is of use with --axes world"),
        ("--algorithm rnea", "unknown algorithm 'rnea'"),
        ("--algorithm C-EFPAs", "unknown algorithm 'C-EFPAs'; did you mean 'c_efpa'?"),
        ("--friction 0.5", "--friction is of use with --outputs forces alone"),
        ("--law convex", "--law is of use with --outputs forces alone"),
        (_FORCES, "contact 'RH_FOOT' is a surface and has no dimensions"),
        (f"{_FORCES} --dimensions 0.2", "--dimensions 0.2: expected LENGTH,WIDT"),
        (f"{_FORCES} --dimensions 2,1 --friction=-1", "friction is -1; expected coeff"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("argv", "words"), _REFUSALS)
def test_arguments_refused_before_compilation(capsys, monkeypatch, argv, words: str) -> None:
    def compiled(*_: object) -> None:
        raise AssertionError("a kernel is compiled")

    monkeypatch.setattr(solver, "kernel_for", compiled)
    assert words in refusal(capsys, *argv)


def test_joint_with_several_entries_not_set_by_name(capsys, arm: str) -> None:
    at = ("--base", "floating", "--q", "j3=1")
    said = refusal(capsys, "compute", arm, "--contact", "l5", *at)
    assert "joint 'j3' has 3 entries in q; give all of q" in said


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ((), "required: VERB"),
        (("walk",), "unknown verb 'walk'"),
        (("inpsect", QUADRUPED), "unknown verb 'inpsect'; did you mean 'inspect'?"),
        (("inspect", QUADRUPED, "--bas", "fixed", "--lop", "x"), "unknown option '--lop'; did"),
        (("inspect", QUADRUPED, "another"), "unknown argument 'another'"),
        (("compute", QUADRUPED, *LEGS, "--axes", "body"), "unknown choice 'body'"),
        (("compute", QUADRUPED, *LEGS, "--axes", "wold"), "did you mean 'world'?"),
        (("compare", QUADRUPED, *LEGS, "--calls", "0"), "'0' is not a whole number from 1 to"),
        (("compare", QUADRUPED, *LEGS, "--calls", "x"), "'x' is not a whole number from 1 to"),
        (("view", QUADRUPED, "--port", "70000"), "'70000' is not a whole number from 0 to 65535"),
        (("run", QUADRUPED, "--port", "-1"), "'-1' is not a whole number from 0 to 65535"),
        (("run", QUADRUPED, "--port", "9" * 5000), "9' is not a whole number from 0 to 65535"),
        (("bags", "a.mcap", "-o", "out", "--workers", "0"), "'0' is not a whole number from 1"),
        (("bags", "a.mcap", "-o", "out", "--retries", "-1"), "'-1' is not a whole number from 0"),
    ],
)
def test_usage_errors(capsys, argv, words: str) -> None:
    assert words in usage_error(capsys, *argv)


@pytest.mark.parametrize("verb", ["", "list", "inspect", "compute", "compare", "export"])
def test_help_has_an_example(capsys, verb: str) -> None:
    with pytest.raises(SystemExit) as caught:
        main([verb, "--help"] if verb else ["--help"])
    assert caught.value.code == 0
    out = capsys.readouterr().out
    assert f"delassus {verb}" in out.partition("example")[2]
    assert all(len(line) <= 90 for line in out.splitlines())


def test_help_is_short_and_has_the_options_of_the_robot_last(capsys) -> None:
    counts = {"": 45, "compute": 80, "compare": 55, "plot": 65, "view": 60, "export": 90}
    for verb, most in counts.items():
        with pytest.raises(SystemExit):
            main([verb, "--help"] if verb else ["--help"])
        lines = capsys.readouterr().out.splitlines()
        assert 20 < len(lines) <= most, verb
    with pytest.raises(SystemExit):
        main(["compute", "--help"])
    out = capsys.readouterr().out
    assert out.startswith("usage: delassus compute ROBOT [options]\n")
    assert out.index("--algorithm") < out.index("the robot:") < out.index("--loops-as")


def test_shared_options_are_explained_by_topic(capsys) -> None:
    text = output(capsys, "help", "loops")
    assert "--loops-as rows" in text and "--lock" not in text
    assert {"base", "lock", "loops", "poses", "passive"} == set(answer(capsys, "help"))
    assert "did you mean 'loops'" in usage_error(capsys, "help", "loop")


def test_version(capsys) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"delassus {delassus.__version__}\n"


def run(*argv: str, **options) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "delassus_ros.verbs.main", *argv]
    folder = Path(delassus.__file__).parents[1]
    return subprocess.run(command, cwd=folder, capture_output=True, timeout=HANG_S, **options)


def test_in_a_process_of_its_own() -> None:
    done = run("inspect", QUADRUPED)
    assert (done.returncode, done.stderr) == (0, b"")
    failed = run("inspect", "/no/such.urdf")
    assert failed.returncode == 2
    assert failed.stdout == b"" and b"Traceback" not in failed.stderr


def test_a_terminal_without_unicode() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    assert run("list", env=environment).returncode == 0


@pytest.mark.parametrize("argv", ["list", "--help"])
@pytest.mark.parametrize("closed", ["reader", "output"])
def test_unread_output_without_error(argv: str, closed: str) -> None:
    command = f"'{sys.executable}' -m delassus_ros.verbs.main {argv}"
    shell = {"output": f"{command} >&-", "reader": f"{command} | exit; exit ${{PIPESTATUS[0]}}"}
    folder = Path(delassus.__file__).parents[1]
    done = subprocess.run(
        ["bash", "-c", shell[closed]], cwd=folder, capture_output=True, timeout=HANG_S, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_tables_are_aligned() -> None:
    assert text.table([("a", 1), ("bcd", 20)], numeric=[1]) == "a     1\nbcd  20"
    assert text.table([("a", "b")], indent="  ") == "  a  b"
    shown = text.matrix(np.array([[1.0, 1e-17], [-2.5, 1e-3]]), ["x", "long"])
    assert shown == "  x        1      0\n  long  -2.5  0.001"


def test_every_answer_as_data(capsys, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = [each["name"] for each in answer(capsys, "list")["algorithms"]]
    assert names == list(algorithms.names())
    inspected = answer(capsys, "inspect", QUADRUPED)
    assert [j["name"] for j in inspected["joints"][1:]] == list(ROBOT.joint_names)
    assert inspected["joints"][0]["lower"] is None and inspected["joints"][3]["upper"] == -0.3
    assert inspected["links"]["LF_FOOT"] == "LF_KFE"
    assert {c["frame"]: c["kind"] for c in inspected["contacts"]}["LF_FOOT"] == "point"
    bent = ("--q", "LF_KFE=-1.4")
    computed = answer(capsys, "compute", QUADRUPED, *LEGS, *bent, "--outputs", "J")
    expected = DelassusSolver(Problem(ROBOT, CONTACTS, outputs=["J"])).solve(
        ROBOT.q({**pose_of(ROBOT), "LF_KFE": -1.4})
    )
    np.testing.assert_array_equal(computed["G"], expected.matrix)
    np.testing.assert_array_equal(computed["J"], expected.J)
    assert computed["contacts"][1] == {
        "name": "RH_FOOT", "frame": "RH_FOOT", "kind": "surface", "rows": 6
    }  # fmt: skip
    compared = answer(capsys, "compare", QUADRUPED, "--contact", "LF_FOOT", "--calls", "20")
    assert {each["name"] for each in compared["algorithms"]} >= {"pv_osimr", "ltl", "dense"}
    assert all(each["error"] < 1e-9 for each in compared["algorithms"])
    assert answer(capsys, "config", QUADRUPED)["/**"]["ros__parameters"]["contacts"]["names"]
    exported = answer(capsys, "export", QUADRUPED, "--contact", "LF_FOOT")
    assert Path(exported["files"]["object"]).is_file()
    assert answer(capsys, "rotors", QUADRUPED) == {"robot": "delassus_quadruped", "rotors": 0}


def test_infinity_is_null_in_json() -> None:
    report = text.Report("", {"a": np.array([1.0, np.inf]), "b": np.float64(2), "c": (np.nan,)})
    assert json.loads(report.json()) == {"a": [1.0, None], "b": 2.0, "c": [None]}


def test_frames_of_the_robot_are_completed(monkeypatch) -> None:
    options = argparse.Namespace(robot=QUADRUPED, base=None)
    assert parsing.frames("LF_F", options) == ["LF_FOOT"]
    assert parsing.frames("", argparse.Namespace(robot="/no/such.urdf", base=None)) == []


@pytest.mark.needs("xacro")
def test_arguments_of_xacro_stand_anywhere(capsys, tmp_path: Path) -> None:
    file, heavy = tmp_path / "arm.urdf.xacro", 'value="$(arg mass)"'
    parts = (link("a"), link("b", INERTIAL.replace('value="1.5"', heavy)), joint("j", "a", "b"))
    argument = '<xacro:arg name="mass" default="1"/>'
    head = 'name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro"'
    file.write_text(robot_xml(argument, *parts, head=head), encoding="utf-8")
    fixed = ("--base", "fixed")
    for words in ((str(file), "mass:=4", *fixed), (str(file), *fixed, "mass:=4")):
        assert "fixed base, 1 joints, nq 1, nv 1, 4 kg" in output(capsys, "inspect", *words)
    assert main(["compare", str(file), "mass:=4", *fixed, "--calls", "1", "--contact", "b"]) == 0
    out = capsys.readouterr().out
    assert "algorithm" in out
    words = refusal(capsys, "config", str(file), *fixed, "weight:=4")
    assert "unknown xacro argument 'weight'; xacro arguments: mass" in words
    for words in (("list",), ("inspect", QUADRUPED), ("inspect", "quadruped")):
        with pytest.raises(SystemExit):
            main([*words, "mass:=4"])
        assert "mass:=4 is an argument of xacro; expected a file that" in capsys.readouterr().err


def test_progress_on_a_terminal(monkeypatch) -> None:
    said = io.StringIO()
    said.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr("sys.stderr", said)
    assert list(text.progress("compiling", ["a", "b", "c"])) == ["a", "b", "c"]
    monkeypatch.setattr(text, "_SILENT", 1e-3)
    monkeypatch.setattr(text, "_REFRESH", 1e-3)
    for item in text.progress("compiling", ["a", "b", "c"]):
        if item == "b":
            # The line is written while the item is under way, however long that takes.
            wait_until(lambda: "compiling: b (2 of 3) ... " in said.getvalue(), "line of progress")
    assert said.getvalue().endswith("\r\033[K")


def test_ignored_parts_of_a_description_warned_of(tmp_path: Path) -> None:
    """The matrix is printed all the same, and nothing else on the output."""
    limits = '<axis xyz="0 1 0"/><limit lower="0" upper="0.8757"/>'
    follower = f'{limits}<mimic joint="a" multiplier="-1"/>'
    path = urdf_file(
        tmp_path, link("palm"), link("left"), link("right"),
        joint("a", "palm", "left", inside=limits), joint("b", "palm", "right", inside=follower),
        '<gazebo reference="palm"><sensor:camera name="rgb"/></gazebo>',
    )  # fmt: skip
    held = ("--base", "fixed", "--contact", "right", "--q", "a=0.5")
    done = run("compute", path, *held, "--json")
    warnings = done.stderr.decode().splitlines()
    assert done.returncode == 0, warnings
    assert warnings == [
        "ignored, as no joint or inertia depends on it: <sensor:camera> in a <gazebo>",
        "joint 'b': limits [0, 0.8757] are not kept: it follows joint 'a', whose limits put it in "
        "[-0.8757, 0]",
    ]
    assert json.loads(done.stdout)["q"] == [0.5, -0.5]
