"""Rotor redistribution: what becomes of gears, belts and rotors that are not round."""

from __future__ import annotations

import numpy as np
import pytest
from cluster_robots import LOOSE, OVAL, ROUND, Builder, random_problem, rotor_inertia
from linkages import four_bar
from on_floats import outputs_on_floats
from oracles import coupling_rows, eliminate, paper_library, symmetric, textbook
from oracles import relative as error
from oracles.textbook import mass_matrix, random_q

from delassus import Contact, Problem
from delassus.errors import RobotError
from delassus.model import WORLD, Body, Inertia, Robot, Transform
from delassus.model.constraints import Coupling
from delassus.rbda import rotors
from delassus.rbda.rotors import redistribute
from delassus.rbda.tree import Tree
from delassus.rbda.trees import rewritten_tree, tree_of
from delassus.rotor_report import rotor_report
from delassus.samples import random_inputs


def independent_mass_matrix(robot: Robot, q: np.ndarray, links: list[int]) -> np.ndarray:
    """Return Eᵀ M E of the spanning tree, E by the couplings; `links` are independent."""
    E = eliminate(coupling_rows(robot), links)
    return np.asarray(E.T @ mass_matrix(robot, q) @ E)


def test_a_gear_moves_gJ_to_the_link_and_leaves_the_armature_g_g_minus_1_J() -> None:
    J, g = 3e-4, 7.0
    build = Builder(0)
    z = np.array([0.0, 0.0, 1.0])
    carrier = build.add(WORLD)
    link = build.add(carrier, z, Transform(), Inertia(1.0, np.zeros(3), np.eye(3)))
    rotor = build.add(carrier, z, Transform(), Inertia(0.0, np.zeros(3), np.diag([0, 0, J])))
    build.couple((rotor, 1.0), (link, -g))
    robot = build.robot()
    new = redistribute(robot)
    assert new.is_ordinary and new.kept == (carrier, link)
    assert new.robot.joints[link].armature == pytest.approx(g * (g - 1) * J, rel=1e-14)
    moved = np.diag([0.0, 0.0, g * J])
    np.testing.assert_allclose(
        new.robot.bodies[link].inertia.rotational, np.eye(3) + moved, rtol=1e-14
    )
    given = np.diag([0.0, 0.0, J - g * J])
    np.testing.assert_allclose(
        new.robot.bodies[carrier].inertia.rotational,
        robot.bodies[carrier].inertia.rotational + given,
        atol=1e-16,
    )


@pytest.mark.parametrize("seed", range(10))
def test_a_geared_branching_robot_is_an_ordinary_tree_exactly(seed: int) -> None:
    build = Builder(seed)
    tips = [build.gear(build.gear(WORLD))]
    tips += [build.gear(tips[0]), build.gear(tips[0])]
    robot = build.robot()
    new = redistribute(robot)
    assert new.is_ordinary
    links = [i for i in new.kept]
    assert len(links) == 4
    q = random_q(robot, build.rng)
    expected = independent_mass_matrix(robot, q, links)
    M = mass_matrix(new.robot, q[links])
    assert np.linalg.norm(M - expected) < 1e-14 * np.linalg.norm(expected)


def test_a_round_body_that_turns_with_a_rotor_counts_as_the_link() -> None:
    """A wheel without contact looks like a rotor itself."""
    build = Builder(1)
    carrier = build.add(WORLD)
    wheel = build.add(carrier, inertia=None)
    build.bodies[wheel] = Body("wheel", rotor_inertia(build.rng, build.joints[wheel].axis, ROUND))
    build.couple((build.rotor(wheel), 1.0), (wheel, -5.0))
    problem = Problem(build.robot(), [Contact("tip", f"f{carrier}", "surface")])
    assert tree_of(problem).is_ordinary
    assert redistribute(problem.robot).kept == (carrier, wheel)
    inputs = random_inputs(problem, 0)
    assert error(G_of(problem, inputs), textbook.outputs(problem, inputs)["G"]) < 1e-10


@pytest.mark.parametrize("seed", range(10))
def test_belts_leave_an_armature_between_joints(seed: int) -> None:
    build = Builder(seed)
    second = build.belt(build.add(WORLD))
    robot = build.robot()
    new = redistribute(robot)
    links = [0, robot.joints[second].parent, second]
    assert new.kept == tuple(links) and len(new.coupled) == 1
    (coupled,) = new.coupled
    np.testing.assert_array_equal(coupled.jacobian, np.eye(2))
    assert np.diag(coupled.armature).tolist() == [0.0, 0.0]
    q = random_q(robot, build.rng)
    M = mass_matrix(new.robot, q[links])
    M[np.ix_([1, 2], [1, 2])] += coupled.armature
    expected = independent_mass_matrix(robot, q, links)
    assert np.linalg.norm(M - expected) < 1e-14 * np.linalg.norm(expected)


def test_what_stays_of_a_rotor_depends_on_its_shape_and_axis() -> None:
    def kept(shape: str, parallel: bool) -> tuple[int, list[tuple[int, int]]]:
        build = Builder(4)
        build.gear(build.add(WORLD), shape, parallel)
        new = redistribute(build.robot())
        found = []
        for coupled in new.coupled:
            assert coupled.jacobian is not None
            found.append(coupled.jacobian.shape)
        return len(new.robot.joints), found

    assert kept(ROUND, True) == (2, [])
    # Only what is not the same across the axis, and it is not felt at any joint.
    assert kept(OVAL, True) == (3, [(1, 0)])
    assert kept(ROUND, False) == kept(OVAL, False) == kept(LOOSE, True) == (3, [(2, 1)])


def test_a_round_rotor_with_a_skew_axis_needs_neither_inertia_nor_angle() -> None:
    build = Builder(6)
    link = build.gear(build.add(WORLD), ROUND, parallel=False)
    problem = Problem(build.robot(), [Contact("tip", f"f{link}", "surface")])
    rotor = tree_of(problem).links[2]
    assert rotor.mass == 0.0 and not any(rotor.moment) and not np.any(rotor.rotational)
    assert rotor.armature > 0.0 and any(rotor.couple)
    inputs = random_inputs(problem, 0)
    turned = {"q": inputs["q"] + np.array([0.0, 0.0, 1.0])}
    np.testing.assert_array_equal(G_of(problem, turned), G_of(problem, inputs))


def test_a_rotor_on_the_world_is_an_armature() -> None:
    build = Builder(2)
    link = build.gear(WORLD, OVAL, parallel=False)
    new = redistribute(build.robot())
    assert new.is_ordinary and new.kept == (link,)
    before = build.bodies[link].inertia
    assert new.robot.bodies[link].inertia.to_bytes() == before.to_bytes()


def test_bodies_with_contacts_stay() -> None:
    build = Builder(2)
    link = build.gear(build.add(WORLD))
    wheel = link + 1
    problem = Problem(build.robot(), [Contact("wheel", f"f{wheel}", "surface")])
    assert not tree_of(problem).is_ordinary
    inputs = random_inputs(problem, 0)
    assert error(G_of(problem, inputs), textbook.outputs(problem, inputs)["G"]) < 1e-10


@pytest.mark.parametrize("ratio", [0.01, 0.4, 1.0, -3.0, 200.0])
@pytest.mark.parametrize("independent", [0, 1])
def test_ratios_of_any_size_and_either_side_independent(ratio: float, independent: int) -> None:
    build = Builder(8)
    link = build.add(build.add(WORLD))
    rotor = build.rotor(link)
    build.couple((rotor, 1.0), (link, -ratio))
    grown = build.robot()
    name = grown.joints[(link, rotor)[independent]].name
    robot = Robot(
        "stated", grown.joints, grown.bodies, list(grown.frames.values()), grown.couplings,
        independent=[name],
    )  # fmt: skip
    problem = Problem(robot, [Contact("tip", f"f{link}", "surface")])
    assert tree_of(problem).is_ordinary
    inputs = random_inputs(problem, 0)
    assert error(G_of(problem, inputs), textbook.outputs(problem, inputs)["G"]) < 1e-11


@pytest.mark.parametrize("seed", range(100, 120))
def test_agrees_with_the_unreduced_cluster_algorithms(seed: int) -> None:
    problem = random_problem(seed)
    inputs = random_inputs(problem, seed)
    whole = rewritten_tree(problem, lambda robot, held: rotors.spanning(robot))
    assert len(whole.links) == len(problem.robot.joints)
    for name in ("efpa", "pv_osimr", "ltl"):
        expected = G_of(problem, inputs, name, whole)
        assert error(G_of(problem, inputs, name), expected) < 1e-12, name


def G_of(
    problem: Problem,
    inputs: dict[str, np.ndarray],
    name: str = "pv_osimr",
    tree: Tree | None = None,
) -> np.ndarray:
    return outputs_on_floats(problem, name, inputs, tree)["G"]


def test_the_report_makes_pinocchio_exact() -> None:
    """Pinocchio's CRBA of the reported tree against the whole tree's M, projected."""
    import pinocchio as pin

    from delassus.algorithms.pinocchio_model import PinocchioModel

    def crba(robot: Robot, q: np.ndarray) -> np.ndarray:
        model = PinocchioModel(robot)
        M = pin.crba(model.model, model.model.createData(), model.configuration({"q": q}).copy())
        return symmetric(M)

    problem = paper_library.problem_of("mini_cheetah_4ee")
    robot = problem.robot
    report = rotor_report(robot)
    kept = [robot.joint_names.index(name) for name in report.robot.joint_names]
    columns = [*range(6), *(6 + k for k in kept)]
    for state in paper_library.states("mini_cheetah_4ee"):
        q = paper_library.positions("mini_cheetah_4ee", state)
        E = np.eye(robot.nv)[:, columns]
        for coupling in robot.couplings:
            (rotor, one), (link, ratio) = coupling.ratios
            at, of = (6 + robot.joint_names.index(name) for name in (rotor, link))
            E[at] = -ratio / one * E[of]
        # Pinocchio has the linear velocity of the base first.
        order = [3, 4, 5, 0, 1, 2, *range(6, len(columns))]
        expected = (E.T @ mass_matrix(robot, q) @ E)[np.ix_(order, order)]
        exact, usual = crba(report.robot, q[kept]), crba(report.usual, q[kept])
        assert error(exact, expected) < 1e-14
        assert error(usual, expected) > 1e-6
    worst = report.usual_error(problem.contacts)
    assert 0.01 < worst < 0.2


def test_the_report_says_what_to_enter() -> None:
    build = Builder(3)
    link = build.gear(build.add(WORLD, armature=0.01))
    robot = build.robot()
    report = rotor_report(robot)
    joint = robot.joints[link].name
    exact, usual = report.armatures[joint]
    assert list(report.armatures) == [joint]
    assert report.robot.joints[link].armature == exact != usual
    assert set(report.inertias) == {"b0", f"b{link}"}
    text = str(report)
    assert f"joint {joint}: armature {exact:.9g} (usually g²J = {usual:.9g})" in text
    assert f"body b{link}: mass {robot.bodies[link].inertia.mass:.9g}" in text


def test_the_report_refuses_what_stays_coupled() -> None:
    build = Builder(3)
    second = build.belt(build.add(WORLD))
    with pytest.raises(RobotError, match=f"'j1', 'j{second}' stay coupled"):
        rotor_report(build.robot())
    for loops_as in ("clusters", "rows"):
        with pytest.raises(RobotError, match="'crank', 'coupler', 'rocker' stay coupled"):
            rotor_report(four_bar().with_loops_as(loops_as))
    with pytest.raises(RobotError, match="unknown frame 'f9'"):
        rotor_report(build.robot(), keep=["f9"])


def test_a_coupling_with_an_offset_is_the_same() -> None:
    build = Builder(1)
    link = build.gear(build.add(WORLD))
    with_offset = [Coupling(c.name, c.ratios, 0.3) for c in build.couplings]
    grown = build.robot()
    frames = list(grown.frames.values())
    robot = Robot("offset", grown.joints, grown.bodies, frames, with_offset)
    contacts = [Contact("tip", f"f{link}", "point")]
    inputs = {"q": np.array([0.3, -0.7, 0.2])}
    np.testing.assert_array_equal(
        G_of(Problem(robot, contacts), inputs), G_of(Problem(grown, contacts), inputs)
    )
