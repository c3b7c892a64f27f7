"""Loops of any size, mounted anywhere, beside others of any size: the same matrices.

The reference takes no part in the choice of rows: it has the loops' geometric Jacobians, each loop
in units of its own, and a null space by SVD whose rank leaves no doubt.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from linkages import COUPLER, CRANK, at, four_bar, random_linkage, robot_of
from linkages import assembled as closed_form
from on_floats import outputs_on_floats
from oracles.textbook import body_jacobians, body_poses, mass_matrix
from seeds import seeds

from delassus import Closure, Contact, DelassusSolver, Problem, Robot
from delassus.closure import ClosureStatus
from delassus.closure.reference import reference_configuration
from delassus.errors import RobotError
from delassus.model import (
    WORLD,
    Body,
    Coupling,
    Frame,
    Inertia,
    Joint,
    JointKind,
    Loop,
    LoopKind,
    Transform,
    clusters_of,
)
from delassus.model import clusters as ranking
from delassus.model.clusters import Cluster, groups_of
from delassus.model.constraint_rows import size_of
from delassus.model.spatial import rotation_between, skew
from delassus.rbda import constraints

EXACT = ("auto", "efpa", "pv_osimr", "ltl")
KEPT = {
    LoopKind.POINT: [3, 4, 5],
    LoopKind.HINGE: [0, 1, 3, 4, 5],
    LoopKind.SLIDER: [0, 1, 2, 3, 4],
    LoopKind.PLANAR: [0, 1, 5],
    LoopKind.WELD: [0, 1, 2, 3, 4, 5],
}
"""Components of the relative twist that a loop makes zero, angular first, z along its axis."""
TINY, HUGE = 2.0**-10, 2.0**4
"""About 1 mm and 10 m."""


def resized(placement: Transform, factor: float, offset: np.ndarray | None = None) -> Transform:
    moved = factor * placement.translation + (0.0 if offset is None else offset)
    return Transform(placement.rotation, moved)


def scaled(robot: Robot, factor: float, offset: np.ndarray | None = None) -> Robot:
    """Return a robot `factor` times as large, of the same masses, mounted `offset` away."""

    def placed(placement: Transform, parent: int) -> Transform:
        return resized(placement, factor, offset if parent == WORLD else None)

    joints = [replace(j, placement=placed(j.placement, j.parent)) for j in robot.joints]
    bodies = []
    for body in robot.bodies:
        i = body.inertia
        inertia = Inertia(i.mass, factor * i.moment, factor**2 * i.rotational)
        bodies.append(Body(body.name, inertia))
    loops = [
        replace(
            loop,
            predecessor_placement=placed(loop.predecessor_placement, loop.predecessor),
            successor_placement=placed(loop.successor_placement, loop.successor),
        )
        for loop in robot.loops
    ]
    frames = [replace(f, placement=resized(f.placement, factor)) for f in robot.frames.values()]
    return Robot(robot.name, joints, bodies, frames, robot.couplings, loops, robot.independent)


def lengths(robot: Robot, q: np.ndarray, factor: float) -> np.ndarray:
    """Return q of the robot that is `factor` times as large."""
    slides = [joint.kind is JointKind.PRISMATIC for joint in robot.joints]
    return np.where(slides, factor, 1.0) * q


def ring(kind: LoopKind, seed: int = 3) -> tuple[Robot, np.ndarray]:
    """Return a spatial loop on the world, with a slide in it, and a closed q."""
    robot, _, q = random_linkage(kind, seed, spare=1)
    joints = [replace(joint, parent=max(joint.parent - 1, WORLD)) for joint in robot.joints[1:]]
    (loop,) = robot.loops
    on_world = replace(loop, predecessor=loop.predecessor - 1, successor=loop.successor - 1)
    # Where it is mounted is a multiple of 2^-20 m, so that it is as exact 100 km away.
    joints = [
        replace(j, placement=Transform(j.placement.rotation, exact(j.placement.translation)))
        if j.parent == WORLD
        else j
        for j in joints
    ]
    placed = body_poses(robot_of(joints), q[1:])
    end = placed[on_world.successor].inverse() @ placed[on_world.predecessor]
    closing = end @ on_world.predecessor_placement
    loops = [replace(on_world, successor_placement=closing)]
    return robot_of(joints, (Frame("tip", 0, at(0.25)),), loops=loops), q[1:]


def exact(position: np.ndarray) -> np.ndarray:
    return np.round(position * 2.0**20) / 2.0**20


def planar(kind: LoopKind) -> tuple[Robot, np.ndarray]:
    """Return a planar four-bar, whose redundant rows only the geometry makes so."""
    q = [0.8, *closed_form(0.8)]
    robot = four_bar(kind, independent=())
    return robot, np.array([*q, q[0] + q[1] - q[2]] if kind is LoopKind.WELD else q)


CASES = {
    **{f"spatial {kind.label}": lambda kind=kind: ring(kind) for kind in LoopKind},
    **{
        f"planar {kind.label}": lambda kind=kind: planar(kind)
        for kind in (LoopKind.POINT, LoopKind.HINGE, LoopKind.WELD)
    },
}


def geared(robot: Robot, q: np.ndarray, ratio: float) -> tuple[Robot, np.ndarray]:
    """Return the robot with a motor geared to its first revolute joint."""
    led = next(k for k, j in enumerate(robot.joints) if j.kind is JointKind.REVOLUTE)
    joints = [*robot.joints, Joint("motor", JointKind.REVOLUTE, WORLD)]
    bodies = [*robot.bodies, Body("rotor", Inertia(1e-3, rotational=1e-4 * np.eye(3)))]
    gear = Coupling("gear", (("motor", -1.0), (robot.joints[led].name, ratio)))
    frames = list(robot.frames.values())
    whole = Robot("geared", joints, bodies, frames, [gear], robot.loops, robot.independent)
    return whole, np.append(q, ratio * q[led])


def side_by_side(
    first: tuple[Robot, np.ndarray], second: tuple[Robot, np.ndarray], ratio: float
) -> tuple[Robot, np.ndarray]:
    """Return two linkages as one robot, their first revolute joints geared: one cluster."""
    (one, q1), (two, q2) = first, second
    count = len(one.joints)

    def after(index: int) -> int:
        return WORLD if index == WORLD else index + count

    joints = [replace(j, name=f"one_{j.name}") for j in one.joints]
    joints += [replace(j, name=f"two_{j.name}", parent=after(j.parent)) for j in two.joints]
    bodies = [Body(f"b{i}", b.inertia) for i, b in enumerate((*one.bodies, *two.bodies))]
    loops = [replace(loop, name="first") for loop in one.loops]
    loops += [
        replace(
            loop,
            name="second",
            predecessor=after(loop.predecessor),
            successor=after(loop.successor),
        )
        for loop in two.loops
    ]
    frames = [replace(f, name=f"one_{f.name}") for f in one.frames.values()]
    frames += [replace(f, name=f"two_{f.name}", body=after(f.body)) for f in two.frames.values()]
    led = [
        next(k for k, j in enumerate(robot.joints) if j.kind is JointKind.REVOLUTE)
        for robot in (one, two)
    ]
    names = f"two_{two.joints[led[1]].name}", f"one_{one.joints[led[0]].name}"
    offset = q2[led[1]] - ratio * q1[led[0]]
    gear = Coupling("gear", ((names[0], -1.0), (names[1], ratio)), offset)
    robot = Robot("two", joints, bodies, frames, [gear], loops)
    return robot, np.concatenate([q1, q2])


def loop_rows(robot: Robot, loop: Loop, q: np.ndarray) -> np.ndarray:
    """Return what a loop makes zero (rows, nv), from the Jacobians of its two bodies."""
    poses, jacobians = [*body_poses(robot, q), Transform()], body_jacobians(robot, q)
    jacobians.append(np.zeros((6, robot.nv)))
    basis = rotation_between((0.0, 0.0, 1.0), loop.axis)
    ends, twists = [], []
    for body, placement in (
        (loop.predecessor, loop.predecessor_placement),
        (loop.successor, loop.successor_placement),
    ):
        frame = placement @ Transform(basis)
        ends.append(poses[body] @ frame)
        twists.append(frame.motion_to_child() @ jacobians[body])
    between = ends[0].inverse() @ ends[1]
    twists[0][3:] -= skew(between.translation) @ twists[0][:3]
    relative = np.kron(np.eye(2), between.rotation) @ twists[1] - twists[0]
    return relative[KEPT[loop.kind]]


def reference_matrix(problem: Problem, q: np.ndarray, sizes: dict[str, float]) -> np.ndarray:
    """Return J N (Nᵀ M N)⁻¹ Nᵀ Jᵀ; `sizes` of the loops are those the test has made them of."""
    robot = problem.robot
    slide = np.array([joint.kind is JointKind.PRISMATIC for joint in robot.joints])
    owner = own_sizes(robot, sizes)
    units = np.where(slide, [owner.get(k, 1.0) for k in range(robot.nv)], 1.0)
    blocks = []
    for loop in robot.loops:
        rows = loop_rows(robot, loop, q) * units
        linear = [k >= 3 for k in KEPT[loop.kind]]
        blocks.append(rows / np.where(linear, sizes[loop.name], 1.0)[:, None])
    columns = {joint.name: k for k, joint in enumerate(robot.joints)}
    for coupling in robot.couplings:
        row = np.zeros(robot.nv)
        for name, factor in coupling.ratios:
            row[columns[name]] = factor * units[columns[name]]
        blocks.append(row[None] / np.abs(row).max())
    _, values, vectors = np.linalg.svd(np.vstack([np.zeros((0, robot.nv)), *blocks]))
    rank = int(np.sum(values > 1e-6))
    assert values[:rank].min(initial=1.0) > 1e-3, "the rank must leave no doubt"
    assert values[rank:].max(initial=0.0) < 1e-9, "the rank must leave no doubt"
    N = units[:, None] * vectors[rank:].T
    rows = []
    for contact in problem.contacts:
        frame = robot.frames[contact.frame]
        twist = frame.placement.motion_to_child() @ body_jacobians(robot, q)[frame.body]
        rows.append(twist[3:])
    JN = np.vstack(rows) @ N
    return np.asarray(JN @ np.linalg.solve(N.T @ mass_matrix(robot, q) @ N, JN.T))


def own_sizes(robot: Robot, sizes: dict[str, float]) -> dict[int, float]:
    """Return the size of the loop that a joint is in."""
    owned = {}
    for loop in robot.loops:
        for end in (loop.predecessor, loop.successor):
            while end != WORLD:
                owned[end], end = sizes[loop.name], robot.joints[end].parent
    return owned


def matrix(problem: Problem, q: np.ndarray, name: str = "ltl") -> np.ndarray:
    """Return G by an algorithm, uncompiled."""
    return outputs_on_floats(problem, name, {"q": q})["G"]


def tip(robot: Robot) -> Problem:
    return Problem(robot, [Contact(name, name) for name in robot.frames])


def off(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("ratio", [0.0, pytest.param(1.7, marks=pytest.mark.slow), 50.0])
def test_size_and_mount_of_a_loop_do_not_matter(case: str, ratio: float) -> None:
    """From 1 mm to 10 m, to 100 km away: the contact of a machine as heavy does not know."""
    robot, q = CASES[case]()
    if ratio:
        robot, q = geared(robot, q, ratio)
    problem = tip(robot)
    expected = reference_matrix(problem, q, {loop.name: 0.5 for loop in robot.loops})
    chosen = problem.velocities
    assert off(matrix(problem, q), expected) < 1e-10
    for size in (TINY, HUGE):
        for away in (0.0, 1.0, 2.0**9, 2.0**17):
            # The rotor's inertia is not scaled, for it is no part of the loop.
            other = scaled(robot, size, np.array([away, -away, 0.5 * away]))
            found = tip(other)
            assert found.velocities == chosen, (size, away)
            assert off(matrix(found, lengths(robot, q, size)), expected) < 1e-9, (size, away)


@pytest.mark.parametrize("size", [2.0**-8, 2.0**-6])
def test_positions_far_away_are_as_good_as_floats_hold_them(size: float) -> None:
    """What is not exact there is rounded to a share of its distance, and G by no more of it."""
    robot, q = geared(*planar(LoopKind.HINGE), 1.7)
    expected = matrix(tip(scaled(robot, size)), q)
    for away in (1e2, 1e3, 1e4, 1e5, 1e6):
        problem = tip(scaled(robot, size, np.array([away / 3.0, away / 7.0, away])))
        assert off(matrix(problem, q), expected) < 100.0 * np.finfo(float).eps * away / size


@pytest.mark.parametrize("mount", [1, 2])
def test_a_planar_loop_far_away_has_no_more_rows_than_at_home(mount: int) -> None:
    turn = Transform.from_xyz_rpy(rpy=np.random.default_rng(mount).uniform(-3.0, 3.0, 3))
    for away in (0.0, 1e3, 1e5):
        robot = four_bar(LoopKind.HINGE, Transform(np.eye(3), np.full(3, away)) @ turn)
        (cluster,) = clusters_of(robot)
        assert len(constraints.rows_that_count(cluster, cluster.joints)) == 2


PAIRS = {
    "points": (lambda: planar(LoopKind.POINT), lambda: planar(LoopKind.POINT)),
    "hinges": (lambda: planar(LoopKind.HINGE), lambda: planar(LoopKind.HINGE)),
    "point and weld": (lambda: planar(LoopKind.POINT), lambda: planar(LoopKind.WELD)),
    "spatial hinge and point": (lambda: ring(LoopKind.HINGE), lambda: planar(LoopKind.POINT)),
    "spatial slider and planar": (lambda: ring(LoopKind.SLIDER), lambda: ring(LoopKind.PLANAR)),
    "spatial weld and point": (lambda: ring(LoopKind.WELD), lambda: ring(LoopKind.POINT)),
}


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("sizes", [(1.0, 1.0), (TINY, HUGE), (HUGE, TINY), (1e-3, 10.0)])
@pytest.mark.parametrize(
    "ratio", [-0.03, *(pytest.param(k, marks=pytest.mark.slow) for k in (1.0, 20.0))]
)
def test_loops_of_one_cluster_may_be_of_any_size(
    pair: str, sizes: tuple[float, float], ratio: float
) -> None:
    given = [build() for build in PAIRS[pair]]
    parts = [
        (scaled(robot, size, np.array([3.0, -2.0, 1.0])), lengths(robot, q, size))
        for (robot, q), size in zip(given, sizes, strict=True)
    ]
    robot, q = side_by_side(parts[0], parts[1], ratio)
    problem = tip(robot)
    # Each linkage alone has one freedom, and one gear is between them.
    assert len(problem.velocities) == 1
    own = {"first": 0.5 * sizes[0], "second": 0.5 * sizes[1]}
    assert off(matrix(problem, q), reference_matrix(problem, q, own)) < 1e-10


@pytest.mark.parametrize("name", EXACT)
def test_compiled_kernels_of_small_loops_far_away_beside_large_ones(name: str) -> None:
    (small, q1), (large, q2) = planar(LoopKind.HINGE), planar(LoopKind.POINT)
    parts = [(scaled(small, TINY, np.array([2.0**9, 0.0, 0.0])), q1), (scaled(large, HUGE), q2)]
    robot, q = side_by_side(parts[0], parts[1], 1.5)
    problem = tip(robot)
    expected = reference_matrix(problem, q, {"first": TINY, "second": HUGE})
    solver = DelassusSolver(problem, name)
    assert off(solver.solve(q).matrix, expected) < 1e-10


def test_an_open_chain_does_not_feel_where_it_is_mounted() -> None:
    """Nor along its first axis, which is along none of the world's."""
    axis = np.array([0.48, 0.6, 0.64])
    joints = [
        Joint("turn", JointKind.REVOLUTE, WORLD, Transform(), axis),
        Joint("bend", JointKind.REVOLUTE, 0, at(0.5)),
    ]
    robot = robot_of(joints, (Frame("tip", 1, at(0.25)),))
    q = np.array([0.4, -0.9])
    expected = reference_matrix(tip(robot), q, {})
    for away in (0.0, 2.0**9, 2.0**17):
        moved = tip(scaled(robot, 1.0, np.full(3, away)))
        for name in ("dense", "efpa", "ltl", "pv_osimr", "kjr"):
            assert off(matrix(moved, q, name), expected) < 1e-12, (away, name)


@pytest.mark.parametrize("kind", [LoopKind.POINT, LoopKind.HINGE])
def test_positions_follow_the_motor_wherever_the_loop_is_mounted(kind: LoopKind) -> None:
    robot, _ = geared(*planar(kind), 1.7)
    for size, away in ((1.0, 0.0), (2.0**-6, 1e3), (2.0**-6, 1e5), (TINY, 2.0**17)):
        moved = scaled(robot, size, np.array([away, 0.0, away]))
        closure = Closure(moved, {"crank": 0.8, "coupler": closed_form(0.8)[0]})
        result = closure.solve({"motor": 1.7 * 1.1})
        assert result.status is ClosureStatus.OK
        bound = max(1e-7 / size, 10.0) * 1e-3 if away else 1e-8
        assert np.abs(result.q[:3] - [1.1, *closed_form(1.1)]).max() < bound


def test_a_gap_counts_by_the_size_of_the_loop_not_by_its_distance() -> None:
    """A loop of centimetres that misses by millimetres is open 1 km away as well."""
    (robot, _) = planar(LoopKind.POINT)
    short = Transform(np.eye(3), np.array([COUPLER, 0.0, 0.05]))
    (loop,) = robot.loops
    for away in (0.0, 1e3):
        open_one = robot_of(list(robot.joints), loops=[replace(loop, predecessor_placement=short)])
        with pytest.raises(RobotError, match=r"'knee' does not close: a gap of 0.00078"):
            clusters_of(scaled(open_one, 2.0**-6, np.array([away, 0.0, 0.0])))


def test_lengths_that_move_nothing_are_no_size_of_a_loop() -> None:
    """Where it is mounted, along its axes, and where a slide has its zero."""
    far = 1e3
    joints = [
        Joint("crank", JointKind.REVOLUTE, WORLD),
        Joint("coupler", JointKind.REVOLUTE, 0, at(0.002)),
        Joint("slide", JointKind.PRISMATIC, WORLD, at(-far), np.array([1.0, 0.0, 0.0])),
    ]
    pin = Loop("pin", LoopKind.POINT, 1, 2, at(0.003), at(far))
    robot = robot_of(joints, (Frame("tip", 1, at(0.003)),), loops=[pin])
    assert size_of(robot, pin) == pytest.approx(0.005, rel=0.5)
    crank, coupler = 0.7, -0.7 - np.arcsin(0.002 / 0.003 * np.sin(0.7))
    q = np.array([crank, coupler, 0.002 * np.cos(crank) + 0.003 * np.cos(crank + coupler)])
    problem = tip(robot)
    assert len(problem.velocities) == 1
    expected = reference_matrix(problem, q, {"pin": 0.005})
    assert off(matrix(problem, q), expected) < 1e-10
    plain = four_bar()
    (knee,) = plain.loops
    offset = np.array([0.0, 0.0, far])
    along = [
        replace(j, placement=resized(j.placement, 1.0, offset if j.name == "rocker" else None))
        for j in plain.joints
    ]
    end = resized(knee.successor_placement, 1.0, -offset)
    loops = [replace(knee, successor_placement=end)]
    along_axis = Robot("far", along, plain.bodies, [], (), loops)
    assert size_of(along_axis, along_axis.loops[0]) == size_of(plain, knee)
    assert size_of(plain, knee) == pytest.approx(CRANK + COUPLER, rel=0.5)


def test_a_loop_that_lost_its_rows_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes wrong where the rank is told: nothing is left out without a word."""
    robot, _ = geared(*planar(LoopKind.POINT), 1.7)
    told = ranking._rank
    monkeypatch.setattr(ranking, "_rank", lambda *given: max(told(*given) - 1, 0))
    # Of the coupling alone there is no rank to be told wrongly.
    monkeypatch.setattr(ranking, "_check_consistent", lambda group: None)
    with pytest.raises(RobotError, match=r"'gear' and loop 'knee': .*redundant: .*(loop 'knee')"):
        clusters_of(robot)


def test_openings_told_from_rounding() -> None:
    """A joint that stands still has rounding of what moves, and some loops nothing but that."""
    gear = np.array([[1.0, -2.0, 0.0]])
    motions = np.array([[1e-17, 1.0, 2.0, 0.0], [0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 3.0, 1e5]])
    assert ranking.openings(gear, motions, True) == pytest.approx([0.0, 1.0, 0.0, 0.0], abs=1e-9)
    loop = np.array([[1.0, -2.0, 0.0], [4e-6, 0.0, 0.0]])
    found = ranking.openings(loop, motions, False)
    assert found == pytest.approx([0.0, 1.0, 2e-6, 0.0], abs=4e-6)
    assert ranking.openings(4e-6 * loop, motions, False).max() < ranking.OPENING_TOLERANCE
    assert not ranking.openings(0.0 * loop, motions, False).any()


@pytest.mark.parametrize("seed", seeds(20))
def test_couplings_of_several_freedoms_hold_in_any_order(seed: int) -> None:
    """What moves one of them is rounding for another's joints."""
    random = np.random.default_rng(seed)
    joints = [Joint(f"j{i}", JointKind.REVOLUTE, WORLD) for i in range(8)]
    couplings = []
    for number in range(4):
        chosen = random.choice(8, random.integers(2, 4), replace=False)
        ratios = tuple((f"j{k}", float(random.uniform(-9.0, 9.0))) for k in chosen)
        couplings.append(Coupling(f"c{number}", ratios))
    for order in (1, -1):
        robot = robot_of(joints, couplings=couplings[::order])
        assert sum(len(each.independent) for each in clusters_of(robot)) == 4


def test_a_reference_where_rows_are_lost_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The loop Jacobian is looked at by rows that it did not take, too."""
    robot, _ = planar(LoopKind.POINT)
    told = constraints.loop_jacobian

    def wrong(cluster: Cluster, q: list[float]) -> list[list[float]]:
        E = told(cluster, q)
        return [[1.01 * value for value in E[0]], *E[1:]]

    monkeypatch.setattr(constraints, "loop_jacobian", wrong)
    with pytest.raises(RobotError, match="reference configuration: loop 'knee' does not stay"):
        reference_configuration(robot, {"crank": 0.8}, 1e-8)


def test_redundant_loops_of_different_sizes_stay_redundant() -> None:
    """Said twice, in either direction, a loop of 1 mm beside one of 10 m counts once."""
    (small, q1), (large, q2) = planar(LoopKind.HINGE), planar(LoopKind.HINGE)
    robot, q = side_by_side((scaled(small, TINY), q1), (scaled(large, HUGE), q2), 1.5)
    again = [
        Loop(
            f"{loop.name} again", loop.kind, loop.successor, loop.predecessor,
            loop.successor_placement, loop.predecessor_placement, loop.axis,
        )
        for loop in robot.loops
    ]  # fmt: skip
    twice = robot.with_constraints(loops=again)
    assert len(tip(twice).velocities) == 1
    assert off(matrix(tip(twice), q), matrix(tip(robot), q)) < 1e-10
    (group,) = groups_of(twice)
    names = [what for what, _ in group.blocks()]
    assert names == ["coupling 'gear'"] + [f"loop {loop.name!r}" for loop in twice.loops]
