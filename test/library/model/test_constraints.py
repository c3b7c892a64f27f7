"""Residual, K and E of clusters: against differences, fifty digits and null spaces."""

from __future__ import annotations

import sys

import mpmath
import numpy as np
import pytest
from linkages import (
    COUPLER,
    assembled,
    bennett,
    closed_bennett,
    closed_four_bar,
    four_bar,
    motions,
    null_space,
    random_linkage,
    random_pose,
    robot_of,
    spans,
    tied,
)

import delassus.testing.mpmath_numbers  # noqa: F401 (makes mpmath numbers scalars)
from delassus import Robot, Transform
from delassus.errors import NumericalError, RobotError
from delassus.model import (
    WORLD,
    Cluster,
    Coupling,
    FunctionConstraint,
    Joint,
    JointKind,
    Loop,
    LoopKind,
)
from delassus.model.constraint_rows import is_turned
from delassus.rbda.constraints import (
    constraint_jacobian,
    loop_jacobian,
    residual,
    rows_that_count,
)
from delassus.scalars.duals import differentiated
from delassus.scalars.functions import sincos
from delassus.scalars.graph import Graph, Symbol


@pytest.mark.parametrize("kind", LoopKind)
@pytest.mark.parametrize("seed", range(3))
def test_jacobian_is_the_derivative_of_the_residual_everywhere(kind, seed):
    """Also where the loop is open: by duals to rounding, by differences to theirs."""
    robot, cluster, closed = random_linkage(kind, seed)
    rng = np.random.default_rng(seed)
    for q in (closed, closed + rng.uniform(-0.8, 0.8, closed.shape)):
        K = np.array(constraint_jacobian(cluster, q.tolist()))
        values, slopes = differentiated(lambda x: residual(cluster, x), q.tolist())
        assert values == pytest.approx(residual(cluster, q.tolist()), abs=1e-15)
        slopes = np.array(slopes)
        assert not slopes[:, 0].any(), "what carries the cluster does not matter"
        assert np.abs(K - slopes[:, 1:]).max() <= 1e-14
        step = 1e-6
        for k, joint in enumerate(cluster.joints):
            moved = np.zeros_like(q)
            moved[joint] = step
            ahead, behind = (
                np.array(residual(cluster, (q + sign * moved).tolist())) for sign in (1, -1)
            )
            assert np.abs((ahead - behind) / (2 * step) - K[:, k]).max() <= 1e-8


@pytest.mark.parametrize("kind", LoopKind)
def test_residual_vanishes_where_the_frames_agree_and_only_there(kind):
    robot, cluster, q = random_linkage(kind, 5)
    assert np.abs(residual(cluster, q.tolist())).max() <= 1e-14
    q[3] += 0.01
    assert np.abs(residual(cluster, q.tolist())).max() > 1e-4
    assert len(residual(cluster, q.tolist())) == kind.rows
    assert cluster.row_names == ["loop 'ring'"] * kind.rows


@pytest.mark.parametrize("kind", LoopKind)
def test_free_motions_of_a_kind_have_no_residual(kind):
    """Move the successor as a joint of this kind would."""
    rng = np.random.default_rng(7)
    axes = Transform.from_xyz_rpy(rpy=rng.uniform(-1, 1, 3)).rotation
    free, held = motions(kind, axes)
    at = random_pose(rng)
    joints = [Joint("a", JointKind.REVOLUTE, WORLD), Joint("b", JointKind.REVOLUTE, WORLD)]
    for motion, closed in [(free, True)] + [(each, False) for each in held]:
        loop = Loop("l", kind, 0, 1, at, at @ motion, axes[:, 2])
        # Both frames are then where `motion` takes the first one: bodies lie upon each other.
        robot = robot_of(joints, loops=[loop])
        rows = residual(Cluster(robot, (0, 1), loops=(loop,)), [0.0, 0.0])
        assert (np.abs(rows).max() < 1e-14) == closed


@pytest.mark.parametrize("kind", LoopKind)
@pytest.mark.parametrize("seed", range(4))
def test_loop_jacobian_spans_the_motions_of_the_loop(kind, seed):
    robot, cluster, q = random_linkage(kind, 100 + seed)
    K = np.array(constraint_jacobian(cluster, q.tolist()))
    E = np.array(loop_jacobian(cluster, q.tolist()))
    assert spans(E, null_space(K)) <= 1e-12
    assert np.array_equal(E[:2], np.eye(2))
    # A finite motion along E keeps the loop closed to second order.
    for column in E.T:
        gaps = []
        for step in (1e-3, 1e-4):
            moved = q.copy()
            moved[1:] += step * column / np.abs(E).max()
            gaps.append(np.abs(residual(cluster, moved.tolist())).max())
        assert gaps[1] <= 0.02 * gaps[0]


def test_fifty_digits():
    robot, cluster, q = random_linkage(LoopKind.HINGE, 11)
    with mpmath.workdps(50):
        at = [mpmath.mpf(float(v)) for v in q]
        K = constraint_jacobian(cluster, at)
        E = loop_jacobian(cluster, at)
        product = mpmath.matrix(K) * mpmath.matrix(E)
        assert max(abs(v) for v in product) < mpmath.mpf("1e-45")
    floats = np.array(loop_jacobian(cluster, q.tolist()))
    digits = np.array([[float(v) for v in row] for row in E])
    assert np.abs(floats - digits).max() <= 1e-13 * np.abs(digits).max() * np.linalg.cond(digits)


@pytest.mark.parametrize("kind", [LoopKind.POINT, LoopKind.HINGE, LoopKind.WELD])
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_a_planar_four_bar_has_two_equations_wherever_it_is_mounted(kind, seed):
    """Rows that are always satisfied are structural zeros: none is left to be told at run time."""
    mount = random_pose(np.random.default_rng(seed)) if seed is not None else Transform()
    robot = four_bar(kind, mount)
    cluster = tied(robot)
    weld = kind is LoopKind.WELD
    rows = rows_that_count(cluster, cluster.joints)
    assert len(rows) == (3 if weld else 2)
    q = closed_four_bar(0.8)
    q += [q[0] + q[1] - q[2]] if weld else []
    assert np.abs(residual(cluster, q)).max() <= 1e-13
    E = np.array(loop_jacobian(cluster, q))
    step = 1e-6
    slope = (np.array(assembled(0.8 + step)) - assembled(0.8 - step)) / (2 * step)
    assert np.allclose(E[:3, 0], [1.0, *slope], rtol=1e-8)


def test_redundant_rows_that_only_the_geometry_makes_so():
    robot = bennett()
    cluster = tied(robot)
    q = closed_bennett(0.9)
    assert np.abs(residual(cluster, q)).max() <= 1e-12
    K = np.array(constraint_jacobian(cluster, q))
    assert np.linalg.matrix_rank(K, tol=1e-9) == 3
    assert len(rows_that_count(cluster, (1, 2, 3))) == 6
    E = np.array(loop_jacobian(cluster, q))
    assert spans(E, null_space(K)) <= 1e-12


def geared(ratios: dict[str, float], name: str = "gear") -> Coupling:
    return Coupling(name, tuple(ratios.items()))


def chain(count: int, couplings, independent=()) -> Robot:
    joints = [
        Joint(f"j{i}", JointKind.REVOLUTE, i - 1, random_pose(np.random.default_rng(i)))
        for i in range(count)
    ]
    return robot_of(joints, couplings=couplings, independent=independent)


def test_couplings_have_constant_exact_jacobians():
    robot = chain(3, [geared({"j1": -1.0, "j0": 6.0}), geared({"j2": 1.0, "j1": 0.1}, "belt")])
    cluster = tied(robot)
    assert [robot.joints[i].name for i in cluster.independent] == ["j0"]
    graph = Graph()
    for q in ([0.0] * 3, [graph.input(k) for k in range(3)]):
        E = loop_jacobian(cluster, q)
        assert E == [[1.0], [6.0], [-0.6000000000000001]]  # 6 · 0.1 of doubles, rounded once
        assert all(type(v) is float for row in E for v in row)
    assert residual(cluster, [1.0, 5.0, 2.0]) == [1.0, 2.5]


def test_independent_joints_may_be_any():
    couplings = [Coupling("diff", (("j0", 1.0), ("j1", 1.0), ("j2", -2.0)), 0.5)]
    robot = chain(3, couplings, ("j1", "j2"))
    assert loop_jacobian(tied(robot), [0.0] * 3) == [[-1.0, 2.0], [1.0, 0.0], [0.0, 1.0]]
    assert residual(tied(robot), [1.0, 2.0, 3.0]) == [-2.5]


def test_ordinary_joints_have_the_identity():
    robot = chain(2, [])
    assert loop_jacobian(Cluster(robot, (1,), independent=(1,)), [0.0, 0.0]) == [[1.0]]


def test_couplings_and_loops_in_one_cluster():
    motor = Joint("motor", JointKind.REVOLUTE, WORLD)
    robot = four_bar(
        couplings=(geared({"motor": -1.0, "crank": 9.0}),), extra=(motor,), independent=("motor",)
    )
    cluster = tied(robot)
    q = [*closed_four_bar(0.8), 7.2]
    alone = loop_jacobian(tied(four_bar()), q[:3])
    E = np.array(loop_jacobian(cluster, q))
    assert np.allclose(E[:, 0], [1 / 9, *(row[0] / 9 for row in alone[1:]), 1.0], rtol=1e-13)
    graph = Graph()
    traced = loop_jacobian(cluster, [graph.input(k) for k in range(4)])
    assert traced[0][0] == pytest.approx(1 / 9) and traced[3][0] == 1.0
    assert cluster.described() == "coupling 'gear' and loop 'knee'"


def doubled(x):
    s, _ = sincos(x[0])
    return [x[0] * 2.0 + 0.3 * s]


def short(x):
    return [x[0]]


def test_explicit_functions_give_their_own_derivative():
    function = FunctionConstraint("cam", ("j0",), doubled, 1, dependent=("j1",))
    robot = chain(2, [])
    cluster = Cluster(robot, (0, 1), functions=(function,), independent=(0,))
    assert residual(cluster, [0.5, 2.0]) == pytest.approx([2.0 - doubled([0.5])[0]])
    graph = Graph()
    q = [graph.input(0), graph.input(1)]
    E = loop_jacobian(cluster, q)
    assert E[0] == [1.0] and isinstance(E[1][0], Symbol)
    assert not graph.guards, "an explicit function is never singular"
    floats = loop_jacobian(cluster, [0.5, 9.0])
    assert floats[1][0] == pytest.approx(2.0 + 0.3 * np.cos(0.5), rel=1e-15)
    wrong = FunctionConstraint("cam", ("j0", "j1"), short, 2)
    with pytest.raises(RobotError, match="'cam': its function returned 1 numbers, expected 2"):
        residual(Cluster(robot, (0, 1), functions=(wrong,)), [0.0, 0.0])


SCALE = 2.0
BOTH_ON_ONE_LINE = (lambda x: [2.0 * x[0]], lambda x: [3.0 * x[0]])


def scaled(x):
    return [SCALE * x[0]]


def test_functions_with_the_same_text_are_told_apart(monkeypatch):
    def digest(function):
        return FunctionConstraint("cam", ("a",), function, 1).digest

    def geared(ratio):
        def gear(x, ratio=ratio):
            return [ratio * x[0]]

        return gear

    first, second = map(digest, BOTH_ON_ONE_LINE)
    assert first != second
    assert digest(geared(2.0)) == digest(geared(2.0)) != digest(geared(3.0))
    before = digest(scaled)
    assert digest(scaled) == before
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 3.0)
    assert digest(scaled) != before


TABLE: object = (0.5, [1.0, np.array([2.0, 3.0])], {"a": 4.0})


def by_table(x):
    return [TABLE[0] * x[0]]


@pytest.mark.parametrize(
    "other",
    [
        (0.25, [1.0, np.array([2.0, 3.0])], {"a": 4.0}),
        (0.5, [1.5, np.array([2.0, 3.0])], {"a": 4.0}),
        (0.5, [1.0, np.array([2.0, 3.5])], {"a": 4.0}),
        (0.5, [1.0, np.array([2.0, 3.0])], {"a": 4.5}),
        # Numbers whose text is that of another one, before numpy 2.
        (0.5, [1.0, np.array([2.0, 3.0])], {"a": np.float32(4.0)}),
        np.linspace(0.0, 1.0, 5000),
    ],
)
def test_tables_that_functions_use_are_told_apart(monkeypatch, other):
    def digest():
        return FunctionConstraint("cam", ("a",), by_table, 1).digest

    before = digest()
    monkeypatch.setattr(sys.modules[__name__], "TABLE", other)
    changed = digest()
    assert changed != before
    if isinstance(other, np.ndarray):
        other[2500] += 1e-9
        assert digest() != changed, "long arrays are not shown in full by repr"


def test_objects_that_functions_use_are_refused(monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "TABLE", object())
    with pytest.raises(RobotError, match="'cam': 'TABLE', which its function uses, is <object"):
        FunctionConstraint("cam", ("a",), by_table, 1)

    def with_default(x, table=object()):  # noqa: B008
        return [x[0]]

    with pytest.raises(RobotError, match="'cam': a default value of its function is <object"):
        FunctionConstraint("cam", ("a",), with_default, 1)


def test_functions_are_known_by_name_version_and_source():
    def make(**changes):
        given = {"name": "cam", "joints": ("a",), "function": doubled, "rows": 1, **changes}
        return FunctionConstraint(**given)

    same = {make().to_bytes() for _ in range(2)}
    others = [
        make(name="b"), make(version=2), make(function=short), make(dependent=("c",)),
        make(joints=("d",)),
    ]  # fmt: skip
    assert len(same | {each.to_bytes() for each in others}) == 1 + len(others)

    class Cam:
        def lift(self, x):
            return x

    factor = 3.0
    for changes, words in (
        ({"joints": ("a", "a")}, "is between joints"),
        ({"rows": 0}, "has 0 rows and 0 dependent joints"),
        ({"rows": 2, "dependent": ("c",)}, "has 2 rows and 1 dependent joints"),
        ({"function": lambda x: [factor * x[0]]}, "uses variables of an enclosing function"),
        ({"function": eval("lambda x: x")}, "the source text of its function cannot be read"),
        ({"function": Cam().lift}, "expected a plain function"),
    ):
        with pytest.raises(RobotError, match=f"constraint 'cam'.*{words}|'cam': .*{words}"):
            make(**changes)


def test_a_singular_loop_is_named():
    """The crank as the dependent joint, where coupler and crank are in line."""
    robot = four_bar(independent=("rocker",))
    cluster = tied(robot)
    dead = np.arccos((0.35 + COUPLER) / 2 + (1.0 - 0.49) / (2 * (0.35 + COUPLER)))
    q = [dead, 0.0, assembled(dead)[1]]
    assert np.abs(residual(cluster, q)).max() <= 1e-7
    with pytest.raises(NumericalError, match="loop 'knee' is singular: its dependent joints"):
        loop_jacobian(cluster, q)
    assert loop_jacobian(cluster, closed_four_bar(dead + 0.01))


def test_frames_half_a_turn_apart_do_not_count_as_closed():
    half = Transform.from_xyz_rpy(rpy=(np.pi, 0.0, 0.0))
    joints = [Joint("a", JointKind.REVOLUTE, WORLD), Joint("b", JointKind.REVOLUTE, WORLD)]
    for kind, turned in ((LoopKind.POINT, False), (LoopKind.HINGE, True), (LoopKind.WELD, True)):
        loop = Loop("l", kind, 0, 1, half)
        robot = robot_of(joints, loops=[loop])
        rows = residual(Cluster(robot, (0, 1), loops=(loop,)), [0.0, 0.0])
        assert np.abs(rows).max() < 1e-14
        assert is_turned(robot, loop, [0.0, 0.0]) == turned
