"""Loops that are closed by rows of G and eliminated again, beside loops as clusters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import robots
from c_programs import built, numbers_of
from on_floats import outputs_on_floats, solver_on_floats
from oracles import relative as error
from oracles.counts import count
from passive import with_passive
from seeds import but_slow

from delassus import (
    CenterOfMass,
    Closure,
    Contact,
    DelassusSolver,
    Problem,
    RelativeContact,
    Robot,
    Transform,
    WeightedSum,
    algorithms,
)
from delassus.compiler.export import export
from delassus.compiler.ir.trace import decided
from delassus.contact_forces import ForceStatus
from delassus.dynamics import Dynamics
from delassus.errors import RobotError
from delassus.model import WORLD, Body, Frame, Joint, JointKind
from delassus.model.clusters import (
    clusters_of,
    groups_of,
    velocity_offsets,
    with_row_loops,
)
from delassus.model.constraints import Loop, LoopKind
from delassus.model.loops import LoopClosure, closed_jacobians
from delassus.rbda.constraints import loop_jacobian
from delassus.samples import random_inputs
from delassus.testing.random_trees import random_inertia

TOLERANCE = 1e-9


def closed_positions(robot: Robot) -> list[np.ndarray]:
    """Return regular configurations that close all loops."""
    found = [robot.neutral() for _ in range(3)]
    for group in groups_of(robot):
        if not group.loops:
            continue
        closure = LoopClosure(group)
        for q, (closed, _) in zip(found, closed_jacobians(closure)[1:4], strict=True):
            q[group.entries] = closed * closure.units
    return found


def grasp(links: int, kind: LoopKind = LoopKind.WELD) -> Robot:
    """Return two arms of as many links on a floating trunk, whose hands hold a bar."""
    rng = np.random.default_rng(0)
    joints = [Joint("root", JointKind.ROOT, WORLD)]
    for k in range(2 * links):
        side = -1.0 if k < links else 1.0
        place = Transform.from_xyz_rpy((0.2, 0.05, 0.0), (0.4, -0.3, 0.5))
        if k % links == 0:
            place = Transform.from_xyz_rpy((0.0, 0.2 * side, 0.3), (0.0, 0.0, 0.0))
        parent = len(joints) - 1 if k % links else 0
        joints.append(Joint(f"j{k}", JointKind.REVOLUTE, parent, place))
    bodies = [Body(joint.name, random_inertia(rng)) for joint in joints]
    frames = [Frame(f"f{i}", i, Transform()) for i in range(len(joints))]
    robot = Robot("grasp", joints, bodies, frames)
    return robot.with_constraints(loops=[Loop("bar", kind, links, 2 * links)])


@pytest.mark.parametrize(
    ("name", "rows"), [("grbda_four_bar", 2), ("grbda_six_bar", None)]
)  # fmt: skip
def test_published_loops(name: str, rows: int | None) -> None:
    clusters = Robot.from_urdf(robots.shared(name), base="fixed")
    by_rows = Robot.from_urdf(robots.shared(name), base="fixed", loops_as="rows")
    assert by_rows.row_loops
    assert not by_rows.loops
    assert rows is None or sum(len(loop.selection) for loop in by_rows.row_loops) == rows
    frame = [frame.name for frame in clusters.frames.values() if frame.body != WORLD][-1]
    contacts = [Contact("c", frame, "surface")]
    for q in closed_positions(clusters):
        x = {"q": q.tolist()}
        expected = algorithms.get("pv_osimr").evaluate(Problem(clusters, contacts), x)["G"]
        for algorithm in ("pv_osimr", "pv_osim", "ltl", "dense"):
            found = algorithms.get(algorithm).evaluate(Problem(by_rows, contacts), x)["G"]
            assert error(found, expected) < TOLERANCE, algorithm


def test_a_grasp_of_two_hands() -> None:
    clusters = grasp(7)
    by_rows = with_row_loops(clusters)
    assert [len(loop.selection) for loop in by_rows.row_loops] == [6]
    contacts = [Contact("elbow", "f3"), Contact("hand", "f14", "surface")]
    problem = Problem(by_rows, contacts)
    solver = DelassusSolver(problem, "auto")
    for q in closed_positions(clusters):
        x = {"q": q.tolist()}
        expected = algorithms.get("ltl").evaluate(Problem(clusters, contacts), x)["G"]
        assert error(solver.solve(q).matrix, expected) < TOLERANCE
        assert (
            error(solver.solve(q, active=["hand"]).matrix, np.array(expected)[3:, 3:]) < TOLERANCE
        )


def test_refused() -> None:
    with pytest.raises(RobotError, match="unknown loops_as 'row'"):
        Robot.from_urdf(robots.quadruped(), loops_as="row")
    with pytest.raises(RobotError, match="loop 'bar' is closed by rows, .*write robot.clustered"):
        Dynamics(with_row_loops(grasp(7)))
    plain = Robot.from_urdf(robots.quadruped(), loops_as="rows")
    assert plain.to_bytes() == Robot.from_urdf(robots.quadruped()).to_bytes()


OUTPUTS = ("J", "MinvJT", "a0", "qdd0", "JdotV", "h", "M", "dG")


def pair_of_inputs(
    clusters: Problem, rows: Problem, q: np.ndarray
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], np.ndarray]:
    """Return one state for loops as clusters and as rows, and E: q̇ of all joints is E ẏ."""
    independent, all_joints = (velocity_offsets(problem.robot) for problem in (clusters, rows))
    E = np.zeros((len(rows.velocities), len(clusters.velocities)))
    for cluster in clusters_of(clusters.robot):
        if cluster.is_ordinary:
            (joint,) = cluster.joints
            for k in range(clusters.robot.joints[joint].kind.nv):
                E[all_joints[joint] + k, independent[joint] + k] = 1.0
            continue
        for joint, row in zip(
            cluster.joints, loop_jacobian(cluster, q.tolist()), strict=True
        ):
            for k, value in zip(cluster.independent, row, strict=True):
                E[all_joints[joint], independent[k]] = value
    of_clusters, of_rows = (random_inputs(problem, 1) for problem in (clusters, rows))
    of_rows |= {name: of_clusters[name] for name in of_rows if name not in ("rates", "torques")}
    of_clusters["q"] = of_rows["q"] = q
    of_rows["rates"] = E @ of_clusters["rates"]
    of_clusters["torques"] = E.T @ of_rows["torques"]
    return of_clusters, of_rows, E


@pytest.mark.parametrize(
    ("robot", "contacts", "axes"),
    [
        (
            lambda: with_passive(grasp(4, LoopKind.POINT), 0),
            [Contact("elbow", "f2"), Contact("hand", "f8", "surface")], "world",
        ),
        pytest.param(
            lambda: grasp(7), [Contact("elbow", "f3"), Contact("hand", "f14", "surface")],
            "contact", marks=pytest.mark.slow,
        ),
        (lambda: Robot.from_urdf(robots.shared("grbda_six_bar"), base="fixed"), None, "contact"),
    ],
)  # fmt: skip
def test_all_outputs_with_loops_by_rows(robot, contacts, axes) -> None:
    clustered = robot()
    if contacts is None:
        moving = [f.name for f in clustered.frames.values() if f.body != WORLD]
        contacts = [Contact("c", moving[-1])]
    clusters = Problem(clustered, contacts, axes, OUTPUTS)
    rows = Problem(with_row_loops(clustered), contacts, axes, OUTPUTS)
    for q in closed_positions(clustered)[:1]:
        of_clusters, of_rows, E = pair_of_inputs(clusters, rows, q)
        expected = outputs_on_floats(clusters, "pv_osimr", of_clusters)
        for name in ("pv_osimr", "ltl", "efpa_strict", "kjr"):
            found = outputs_on_floats(rows, name, of_rows)
            for output in ("G", "a0"):
                assert error(found[output], expected[output]) < TOLERANCE, (name, output)
        assert error(found["J"] @ E, expected["J"]) < TOLERANCE
        assert error(found["J"] @ of_rows["rates"], expected["J"] @ of_clusters["rates"]) < 1e-8
        assert error(found["v"], expected["v"]) < 1e-8
        assert error(found["MinvJT"], E @ expected["MinvJT"]) < TOLERANCE
        assert error(found["J"] @ found["qdd0"] + found["JdotV"], found["a0"]) < TOLERANCE
        assert error(E.T @ found["M"] @ E, expected["M"]) < TOLERANCE
        assert error(np.tensordot(E.T, found["dG"], 1), expected["dG"]) < TOLERANCE
        # The independent joints accelerate alike; the rest follows.
        joints = velocity_offsets(clustered)
        own = velocity_offsets(rows.robot)
        for joint, k in joints.items():
            assert (
                abs(found["qdd0"][own[joint]] - expected["qdd0"][k])
                < 1e-7 * np.abs(expected["qdd0"]).max()
            )


@pytest.mark.parametrize(
    ("robot", "contacts", "make"),
    [
        (
            lambda: grasp(4, LoopKind.POINT),
            [Contact("elbow", "f2"), Contact("hand", "f8", "surface")], solver_on_floats,
        ),
        pytest.param(
            lambda: grasp(7), [Contact("elbow", "f3"), Contact("hand", "f14", "surface")],
            DelassusSolver, marks=pytest.mark.slow,
        ),
    ],
    ids=["on floats", "compiled"],
)  # fmt: skip
def test_a_controller_beside_a_held_bar(robot, contacts, make) -> None:
    """Λ, J̄, bias force, task inertia and frictional forces."""
    clustered = robot()
    outputs = ("J", "MinvJT", "a0", "JdotV", "h", "qdd0")
    clusters = Problem(clustered, contacts, outputs=outputs)
    rows = Problem(with_row_loops(clustered), contacts, outputs=outputs)
    solver, of_cluster_robot = (make(problem, "ltl") for problem in (rows, clusters))
    assert solver.structural_rank(["hand"]) == 6
    for q in closed_positions(clustered):
        of_clusters, of_rows, E = pair_of_inputs(clusters, rows, q)
        found, expected = solver.solve(**of_rows), of_cluster_robot.solve(**of_clusters)
        assert found.structural_rank() == expected.structural_rank()
        for name in ("inertia", "bias_force"):
            pair = (getattr(each.task("elbow"), name)() for each in (found, expected))
            assert error(*pair) < TOLERANCE, name
        assert error(found.task("elbow").jbar(), E @ expected.task("elbow").jbar()) < TOLERANCE
        held = (each.task("elbow", "hand").inertia() for each in (found, expected))
        assert error(*held) < 1e-8
        friction = {"elbow": 0.5, "hand": 0.7}
        pushed = [
            each.contact_forces(
                friction, dimensions=(0.1, 0.1), leave_speed=100.0, strike_speed=100.0
            )
            for each in (found, expected)
        ]
        assert [each.status for each in pushed] == [ForceStatus.SOLVED] * 2
        assert np.linalg.norm(pushed[1].forces) > 1.0
        assert error(*(each.forces for each in pushed)) < 1e-7


def test_a_robot_with_rows_is_closed_locked_and_clustered() -> None:
    clustered = Robot.from_urdf(robots.shared("grbda_six_bar"), base="fixed")
    rows = with_row_loops(clustered)
    assert rows.clustered.to_bytes() == clustered.to_bytes()
    measured = {name: 0.1 for name in Closure(clustered).independent}
    found, expected = (Closure(robot).solve(measured) for robot in (rows, clustered))
    assert np.array_equal(found.q, expected.q)
    q = dict(zip(rows.joint_names, expected.q.tolist(), strict=True))
    locked = clustered.lock(q)
    assert rows.lock(q).to_bytes() == locked.to_bytes()
    assert not rows.lock(q).row_loops


PROGRAM = r"""
#include <stdio.h>
#include "grasp.h"

int main(void)
{
  static double in[GRASP_IN_SIZE], out[GRASP_OUT_SIZE], work[GRASP_WORK_SIZE + 1];
  int i;
  for (i = 0; i < GRASP_IN_SIZE; ++i) if (scanf("%lf", &in[i]) != 1) return 2;
  if (grasp_kernel(in, out, work) != GRASP_OK) return 3;
  for (i = 0; i < GRASP_OUT_SIZE; ++i) printf("%.17g ", out[i]);
  return 0;
}
"""


def test_a_kernel_for_c_has_rows_of_several_links_and_the_bits_of_python(tmp_path: Path) -> None:
    contacts = [
        Contact("hand", "f8"),
        RelativeContact("grip", "f3", "f7", "point"),
        WeightedSum("middle", {"f3": 0.25, "f7": 0.75}),
        CenterOfMass("com"),
    ]
    robot = with_row_loops(grasp(4, LoopKind.POINT))
    problem = Problem(robot, contacts, outputs=["J"])
    program = built(
        tmp_path, PROGRAM, grasp=export(problem, algorithms.get("pv_osimr"), "grasp")
    )
    inputs = random_inputs(problem, 0)
    printed = numbers_of(program, *(inputs[port.name] for port in problem.inputs))
    solution = DelassusSolver(problem).solve(**inputs)
    expected = np.concatenate([np.ravel(solution.output(port.name)) for port in problem.outputs])
    assert np.array_equal(printed, expected)


def by_count(robot: Robot) -> Robot:
    """Return the robot with loops that are closed as needs fewer operations."""
    return robot.replaced(cheapest_loops=True)


def operations(robot: Robot, contacts: list[Contact], algorithm: str) -> int:
    return count(Problem(robot, contacts), algorithm)


def decided_rows(robot: Robot, contacts: list[Contact], algorithm: str) -> list[str]:
    """Return the loops that are closed by rows in the kernel."""
    problem = decided(Problem(by_count(robot), contacts), algorithms.get(algorithm))
    return [loop.name for loop in problem.robot.row_loops]


@pytest.mark.parametrize("algorithm", ["pv_osimr", "ltl"])
@pytest.mark.parametrize("links", [7, 12])
def test_the_cheapest_loops_by_exact_count(links: int, algorithm: str) -> None:
    robot = grasp(links)
    contacts = [Contact("hand", f"f{2 * links}", "surface")]
    clusters = operations(robot, contacts, algorithm)
    rows = operations(with_row_loops(robot), contacts, algorithm)
    assert operations(by_count(robot), contacts, algorithm) == min(clusters, rows)
    assert bool(decided_rows(robot, contacts, algorithm)) == (rows < clusters)


def test_each_cluster_of_loops_is_decided_alone() -> None:
    """A long loop is closed by rows, and a four-bar on the same robot is a cluster."""
    long = grasp(12)
    joints, bodies = list(long.joints), list(long.bodies)
    frames = list(long.frames.values())
    start = len(joints)
    place = Transform.from_xyz_rpy((0.3, 0.0, 0.0), (0.0, 0.0, 0.0))
    for k, parent in enumerate((0, start, 0)):
        side = Transform.from_xyz_rpy((0.0, 0.3 * (k == 2), -0.4), (0.0, 0.0, 0.0))
        joints.append(Joint(f"bar{k}", JointKind.REVOLUTE, parent, place if parent else side))
        bodies.append(Body(f"bar{k}", bodies[k + 1].inertia))
    frames.append(Frame("coupler", start + 1, place))
    pin = Transform.from_xyz_rpy((0.3, 0.0, 0.0), (0.0, 0.0, 0.0))
    tip = Transform.from_xyz_rpy((0.35, 0.0, 0.0), (0.0, 0.0, 0.0))
    four_bar = Loop("four_bar", LoopKind.HINGE, start + 1, start + 2, pin, tip)
    robot = Robot("both", joints, bodies, frames, loops=[*long.loops, four_bar])
    contacts = [Contact("hand", "f24", "surface"), Contact("coupler", "coupler")]
    counts = {
        names: operations(
            with_row_loops(
                robot,
                [each for each in groups_of(robot) if {x.name for x in each.loops} & set(names)],
            ),
            contacts,
            "pv_osimr",
        )
        for names in ((), ("bar",), ("four_bar",), ("bar", "four_bar"))
    }
    assert min(counts, key=counts.__getitem__) == ("bar",), counts
    assert decided_rows(robot, contacts, "pv_osimr") == ["bar"]
    both = Problem(with_row_loops(robot), contacts)
    x = {"q": closed_positions(robot)[0].tolist()}
    expected = algorithms.get("ltl").evaluate(Problem(robot, contacts), x)["G"]
    for algorithm in ("pv_osimr", "ltl", "kjr"):
        assert error(algorithms.get(algorithm).evaluate(both, x)["G"], expected) < TOLERANCE
    assert operations(by_count(robot), contacts, "pv_osimr") == counts[("bar",)]


def test_kernel_of_the_cheapest_loops_beside_outputs_of_clusters() -> None:
    robot = grasp(12)
    contacts = [Contact("hand", "f24", "surface")]
    assert decided_rows(robot, contacts, "pv_osimr")
    solver = DelassusSolver(Problem(by_count(robot), contacts), "pv_osimr")
    whole = Problem(by_count(robot), contacts, outputs=["J"])
    assert not decided(whole, algorithms.get("pv_osimr")).robot.row_loops
    for q in closed_positions(robot)[:1]:
        expected = algorithms.get("ltl").evaluate(Problem(robot, contacts), {"q": q.tolist()})["G"]
        assert error(solver.solve(q).matrix, expected) < TOLERANCE
        assert error(solver.solve_batch(np.array([q, q])).matrix[1], expected) < TOLERANCE
    by_rows = operations(with_row_loops(robot), contacts, "pv_osimr")
    assert solver.operations is not None
    assert solver.operations.total == by_rows


@pytest.mark.parametrize(
    "name", ["kjr", *but_slow(["pv_osim", "pv_osimr_strict", "elimination"], "elimination")]
)
def test_algorithms_for_open_chains_close_the_cheapest_loops_by_rows(name: str) -> None:
    robot, algorithm = grasp(4, LoopKind.POINT), algorithms.get(name)
    contacts = [Contact("hand", "f8", "surface")]
    problem = Problem(by_count(robot), contacts)
    assert algorithm.supports(Problem(robot, contacts)) is not None
    assert algorithm.supports(problem) is None
    found = solver_on_floats(problem, name)
    for q in closed_positions(robot)[:1]:
        expected = algorithms.get("ltl").evaluate(Problem(robot, contacts), {"q": q.tolist()})["G"]
        assert error(found.solve(q).matrix, expected) < TOLERANCE
    with_J = Problem(by_count(robot), contacts, outputs=["J"])
    assert "are coupled" in str(algorithm.supports(with_J))
    assert algorithm.supports(Problem(with_row_loops(robot), contacts, outputs=["J"])) is None


def test_pinocchio_refuses_loops_by_rows() -> None:
    problem = Problem(with_row_loops(grasp(4, LoopKind.POINT)), [Contact("hand", "f8")])
    refusal = algorithms.get("pinocchio").supports(problem)
    assert refusal == "loop 'bar' is closed by rows, which only traced algorithms have"


MJCF = """
<mujoco model="bars"><option gravity="0 0 -9.81"/><worldbody>
  <body name="crank"><joint name="crank" axis="0 1 0"/>
    <geom type="capsule" fromto="0 0 0 0.1 0 0" size="0.01"/>
    <body name="coupler" pos="0.1 0 0"><joint name="coupler" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0 0 0.3" size="0.01"/></body></body>
  <body name="rocker" pos="0.1 0 0.1"><joint name="rocker" axis="0 1 0"/>
    <geom type="capsule" fromto="0 0 0 0 0 0.2" size="0.01"/></body>
</worldbody><equality>
  <connect name="pin" body1="coupler" body2="rocker" anchor="0 0 0.3"/>
</equality></mujoco>"""


@pytest.mark.needs("mujoco")
def test_loops_of_mjcf_by_rows() -> None:
    clustered = Robot.from_mujoco(MJCF)
    rows = Robot.from_mujoco(MJCF, loops_as="rows")
    assert [len(loop.selection) for loop in rows.row_loops] == [2]
    assert rows.with_loops_as("clusters").to_bytes() == clustered.to_bytes()
    assert Robot.from_mujoco(MJCF, loops_as="cheapest").cheapest_loops
    contacts = [Contact("coupler", "coupler", placement=Transform(translation=(0.0, 0.0, 0.3)))]
    q = Closure(clustered).solve(dict.fromkeys(Closure(clustered).independent, 0.1)).q
    expected = solver_on_floats(Problem(clustered, contacts)).solve(q).matrix
    assert (
        error(solver_on_floats(Problem(rows, contacts), "ltl").solve(q).matrix, expected)
        < TOLERANCE
    )


def test_reading_with_the_cheapest_loops() -> None:
    robot = Robot.from_urdf(robots.shared("grbda_four_bar"), base="fixed", loops_as="cheapest")
    clusters = Robot.from_urdf(robots.shared("grbda_four_bar"), base="fixed")
    assert robot.cheapest_loops
    assert robot.loops
    assert robot.to_bytes() != clusters.to_bytes()
    open_chain = Robot.from_urdf(robots.quadruped(), loops_as="cheapest")
    assert open_chain.to_bytes() == Robot.from_urdf(robots.quadruped()).to_bytes()
