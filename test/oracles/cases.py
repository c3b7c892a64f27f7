"""Problems and inputs for comparison with oracles.

A case is a function of a key and of outputs that returns pairs of a problem and its inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
import robots
from cluster_robots import Builder, coupled
from cluster_robots import random_problem as random_closed_problem
from linkages import at
from passive import with_passive
from robots import FEET, LEGS

from benchmarks import cases as benchmark_cases
from delassus import (
    CenterOfMass,
    CentroidalMomentum,
    Contact,
    Problem,
    RelativeContact,
    Robot,
    Transform,
    WeightedSum,
)
from delassus.closure import Closure
from delassus.model import WORLD, Body, Frame, Inertia, Joint, JointKind, Loop, LoopKind
from delassus.model.clusters import clusters_of
from delassus.problem import AXES, Axes
from delassus.rbda.trees import tree_of
from delassus.robots.built_in import demo_urdf
from delassus.samples import random_inputs
from delassus.testing import SIMPLE, random_problem
from delassus.testing.random_trees import (
    random_contacts,
    random_robot,
    random_transform,
    set_moving,
)
from oracles import paper_library

Inputs = dict[str, np.ndarray]
Pairs = list[tuple[Problem, Inputs]]
PLANAR = (*SIMPLE, JointKind.PLANAR)
OFF = Transform.from_xyz_rpy((0.05, -0.1, 0.2), (0.3, -0.4, 0.5))
"""A placement off a frame's origin, so that both blocks of the transform matter."""


def with_outputs(problem: Problem, outputs: Sequence[str], axes: Axes | None = None) -> Problem:
    """Return the problem with other outputs."""
    return Problem(problem.robot, problem.contacts, axes or problem.axes, outputs)


def inputs_of(problem: Problem, seeds: Sequence[int]) -> Pairs:
    """Return a problem with random inputs."""
    return [(problem, random_inputs(problem, seed)) for seed in seeds]


def tips(robot: Robot) -> list[str]:
    """Return a frame on each body that carries no other."""
    carriers = {joint.parent for joint in robot.joints}
    frames = {frame.body: name for name, frame in robot.frames.items()}
    return [frames[i] for i in range(len(robot.joints)) if i not in carriers and i in frames]


# Open trees.


@dataclass(frozen=True)
class Trees:
    """Random trees by their seed.

    Attributes
    ----------
    kinds : by seed; one of them for each.
    axes : of the contacts; each of them.
    """

    kinds: tuple[tuple[JointKind, ...], ...] = (SIMPLE,)
    axes: tuple[Axes, ...] = ("contact",)
    moving: bool = False
    largest: int | None = None
    passive: bool = False
    inputs: int | None = None

    def __call__(self, seed: int, outputs: Sequence[str]) -> Pairs:
        kinds = self.kinds[seed % len(self.kinds)]
        options = {} if self.largest is None else {"largest": self.largest}
        found = []
        for axes in self.axes:
            tree = random_problem(seed, kinds, axes, moving=self.moving, **options)
            robot = with_passive(tree.robot, seed) if self.passive else tree.robot
            problem = Problem(robot, tree.contacts, axes, outputs)
            found += inputs_of(problem, [seed if self.inputs is None else self.inputs])
        return found


@dataclass(frozen=True)
class Robots:
    """Robots by name on their feet or at their hand, contacts off the frames' origins."""

    states: tuple[int, ...]

    def __call__(self, name: str, outputs: Sequence[str]) -> Pairs:
        source, base, kind, frames = {
            "quadruped": (robots.quadruped, "floating", "point", FEET),
            "panda": (robots.panda, "fixed", "surface", ("panda_hand",)),
            "solo12": (
                robots.solo12, "floating", "point", ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"),
            ),
            "anymal": (robots.anymal, "floating", "point", FEET),
            "talos": (robots.talos, "floating", "surface", ("left_sole_link", "right_sole_link")),
        }[name]  # fmt: skip
        robot = Robot.from_urdf(source(), base=base)
        placement = Transform.from_xyz_rpy((0.02, -0.01, 0.03), (0.1, -0.2, 0.3))
        contacts = [Contact(frame, frame, kind, placement) for frame in frames]
        return inputs_of(Problem(robot, contacts, outputs=outputs), self.states)


def feet(
    axes: Axes = "contact", moving: str = "position", kind: str = "point", outputs=("G",)
) -> Problem:
    """Return the quadruped's problem with four moving feet."""
    robot = Robot.from_urdf(robots.quadruped())
    contacts = [Contact(leg, f"{leg}_FOOT", kind, OFF, moving) for leg in LEGS]
    return Problem(robot, contacts, axes, outputs)


def moving_feet(name: str, outputs: Sequence[str]) -> Pairs:
    """Return the quadruped with contacts of a kind that move in a way: "pose surface"."""
    moving, kind = name.split()
    return inputs_of(feet("contact", moving, kind, outputs), range(3))


def compared(name: str, outputs: Sequence[str]) -> Pairs:
    """Return a robot of the benchmarks in both axes; one with mimic joints is skipped."""
    case = next(case for case in benchmark_cases.CASES if case.name == name)
    try:
        problem = case.load()
    except benchmark_cases.AbsentError as error:
        pytest.skip(str(error))
    if problem.robot.is_closed:
        pytest.skip("mimic joints")
    return [inputs_of(with_outputs(problem, outputs, axes), [1])[0] for axes in AXES]


def two_feet(name: str, outputs: Sequence[str]) -> Pairs:
    """Return the quadruped on two feet, as points or as surfaces."""
    robot = Robot.from_urdf(robots.quadruped())
    contacts = [Contact(f, f"{f}_FOOT", name, OFF) for f in ("LF", "RH")]
    return inputs_of(Problem(robot, contacts, outputs=outputs), [2])


def standing(name: str, outputs: Sequence[str]) -> Pairs:
    """Return the quadruped on a floating or fixed base, or Talos, with the axes of the world."""
    if name == "talos":
        robot, kind, frames = (
            Robot.from_urdf(robots.talos()), "surface", ("left_sole_link", "right_sole_link"),
        )  # fmt: skip
    else:
        robot, kind, frames = Robot.from_urdf(robots.quadruped(), base=name), "point", FEET
    contacts = [Contact(frame, frame, kind) for frame in frames]
    return inputs_of(Problem(robot, contacts, "world", outputs), [3])


# Closed robots.


def closed_trees(seed: int, outputs: Sequence[str]) -> Pairs:
    """Return a random robot with gears, belts, differentials and mimic joints."""
    return inputs_of(with_outputs(random_closed_problem(seed), outputs), [seed])


def moving_closed_trees(seed: int, outputs: Sequence[str]) -> Pairs:
    """Return the same with contacts that move."""
    closed = random_closed_problem(seed)
    contacts = set_moving(np.random.default_rng(seed), closed.contacts)
    return inputs_of(Problem(closed.robot, contacts, closed.axes, outputs), [seed])


def belt(_: int, outputs: Sequence[str]) -> Pairs:
    """Return contacts on both links of a belt: six rows leave the cluster after an inner node."""
    build = Builder(5)
    second = build.belt(build.add(WORLD))
    first = build.joints[second].parent
    links = (build.add(second), build.add(second), build.gear(first), first, second)
    contacts = [Contact(f"c{i}", f"f{i}", "surface") for i in links]
    return inputs_of(Problem(build.robot(), contacts, outputs=outputs), [0])


def three_gears(_: int, outputs: Sequence[str]) -> Pairs:
    """Return a geared chain, which is an ordinary tree without its rotors."""
    build = Builder(7)
    tip = build.gear(build.gear(build.gear(WORLD)))
    problem = Problem(build.robot(), [Contact("tip", f"f{tip}", "surface")], outputs=outputs)
    assert tree_of(problem).is_ordinary
    return inputs_of(problem, [1])


def oblique_slides(_: int, outputs: Sequence[str]) -> Pairs:
    """Return a ball joint between oblique slides: constants of two rows, too small for pivots."""
    axes = np.array([[-1, 3, -3], [0, 4, -2], [2, -4, 4], [4, 1, 2]], float)
    kinds = [JointKind.PRISMATIC] * 3 + [JointKind.REVOLUTE]
    joints = [
        Joint(f"j{i}", kind, parent, at(x), axis / np.linalg.norm(axis))
        for i, (kind, parent, x, axis) in enumerate(
            zip(kinds, (WORLD, WORLD, 1, 2), (0, 0, 0, 4), axes, strict=True)
        )
    ]
    bodies = [Body(f"b{i}", Inertia.from_com(1, np.zeros(3), np.eye(3))) for i in range(4)]
    ends = (Transform(np.eye(3), np.array([x, 0, 2])) for x in (2.0, -2.0))
    loop = Loop("ball", LoopKind.POINT, 0, 3, *ends)
    robot = Robot("slides", joints, bodies, [Frame("tip", 3, Transform())], (), [loop])
    return [(Problem(robot, [Contact("tip", "tip")], outputs=outputs), {"q": np.zeros(4)})]


def digit_like(_: int, outputs: Sequence[str]) -> Pairs:
    """Return two legs with three rods each, closed by 6D loops; the rods' ends touch."""
    path = robots.shared("epr_digit_like_2legs")
    robot = Robot.from_urdf(path, "floating", loops=path.with_suffix(".yaml"))
    assert len(robot.loops) == 6
    contacts = [Contact(f"c{i}", tip, "surface") for i, tip in enumerate(tips(robot)[::6])]
    problem = Problem(robot, contacts, outputs=outputs)
    closure, rng = Closure(robot), np.random.default_rng(0)
    independent = {i for cluster in clusters_of(robot) for i in cluster.independent}
    names = [robot.joints[i].name for i in sorted(independent) if robot.joints[i].kind.nq == 1]
    places = {name: robot.joint_names.index(name) for name in names}
    found = []
    for _ in range(3):
        result = closure.solve({
            name: float(closure.reference[place] + rng.uniform(-0.05, 0.05))
            for name, place in places.items()
        })  # fmt: skip
        assert result.residual < 1e-9
        found.append((problem, {"q": np.array(result.q)}))
    return found


def printed(name: str, outputs: Sequence[str]) -> Pairs:
    """Return a robot of the paper's library at its states, loops as couplings of each state."""
    found = []
    for state in paper_library.states(name):
        problem = with_outputs(paper_library.problem_of(name, state), outputs)
        found.append((problem, {"q": paper_library.positions(name, state)}))
    return found


def printed_urdf(name: str, outputs: Sequence[str]) -> Pairs:
    """Return a robot of the paper's library, read from URDF+, at its states."""
    problem = with_outputs(paper_library.from_urdf(name), outputs)
    return [
        (problem, {"q": paper_library.positions_from_urdf(problem, name, state)})
        for state in paper_library.states(name)
    ]


def printed_tello(name: str, outputs: Sequence[str]) -> Pairs:
    """Return Tello with its published functions: loop Jacobians are derived in the kernel."""
    problem = with_outputs(paper_library.problem_of(name), outputs)
    problem = paper_library.with_differentials(problem)
    varying = [c for c in tree_of(problem).clusters if callable(c.jacobian)]
    assert [(len(c.links), c.freedoms) for c in varying] == [(4, 2)] * 4
    return [
        (problem, {"q": paper_library.positions(name, state)})
        for state in paper_library.states(name)
    ]


def acceptable_paper(name: str, outputs: Sequence[str]) -> Pairs:
    """Return two states of a robot of the paper's library with inertias that MuJoCo takes."""
    from oracles.mujoco_models import acceptable

    given = paper_library.problem_of(name)
    problem = Problem(acceptable(given.robot), given.contacts, outputs=outputs)
    return [(problem, {"q": paper_library.positions(name, state)}) for state in (0, 1)]


def acceptable_trees(seed: int, outputs: Sequence[str]) -> Pairs:
    """Return a random closed robot with inertias that MuJoCo takes."""
    from oracles.mujoco_models import acceptable

    given = random_closed_problem(seed)
    robot = acceptable(given.robot)
    q = coupled(robot, np.random.default_rng(seed).uniform(-1.0, 1.0, robot.nq))
    return [(Problem(robot, given.contacts, outputs=outputs), {"q": q})]


PARALLELOGRAMS = {
    "grbda_four_bar": [0.4, 0.4, -0.4],
    "grbda_planar_leg_linkage": [0.4, -0.5, -0.5, 0.5],
}
"""Positions at which parallelograms are closed, whatever the order of like joints."""


def closed_parallelogram(robot: Robot, name: str) -> np.ndarray:
    """Return a closed configuration of a parallelogram."""
    given = PARALLELOGRAMS[name]
    if name == "grbda_four_bar":
        # The link on the crank turns back what the crank turns.
        values = [-given[0] if j.parent != WORLD else given[0] for j in robot.joints]
    else:
        # Thigh; driver and support alike; the foot back again.
        depth = {i: 0 if j.parent == WORLD else 1 if robot.joints[j.parent].parent == WORLD else 2
                 for i, j in enumerate(robot.joints)}  # fmt: skip
        values = [(given[0], given[1], given[3])[depth[i]] for i in range(len(robot.joints))]
    return np.array(values)


def linkages(name: str, outputs: Sequence[str]) -> Pairs:
    """Return a published parallelogram with inertias that MuJoCo takes."""
    from oracles.mujoco_models import acceptable

    robot = acceptable(Robot.from_urdf(robots.shared(name), "fixed"))
    contacts = [Contact(tip, tip, "surface") for tip in tips(robot)]
    problem = Problem(robot, contacts, outputs=outputs)
    return [(problem, {"q": closed_parallelogram(robot, name)})]


def mujoco_doors(_: int, outputs: Sequence[str]) -> Pairs:
    """Return a robot with a floating base beside a tree on the world, read from MJCF."""
    contacts = [Contact(each, each) for each in ("leg", "bolt")]
    return inputs_of(Problem(Robot.from_mujoco(DOOR), contacts, "world", outputs), [5])


DOOR = """<mujoco><worldbody>
  <body name="trunk"><freejoint/><geom type="box" size="0.1 0.2 0.3" pos="0.1 0 0"/>
    <body name="leg" pos="0.1 0.2 0.3"><joint name="hip" axis="0 1 0" armature="0.1"/>
      <geom size="0.1" pos="0.1 0 0"/></body></body>
  <body name="door" pos="1 1 0" quat="1 2 3 4"><joint name="hinge" axis="0 1 0"/>
    <geom type="box" size="0.1 0.2 0.3" pos="0.1 0 0"/>
    <body name="bolt" pos="0.2 0 0"><joint name="slide" type="slide" axis="0 1 1"/>
      <geom size="0.05"/></body></body></worldbody></mujoco>"""


def geared_demo(_: int, outputs: Sequence[str]) -> Pairs:
    """Return the geared demo robot: twelve gears, a four-bar on the trunk whose tool touches."""
    robot = Robot.from_urdf(demo_urdf("geared"))
    contacts = [Contact(f, f, "surface") for f in (*FEET, "LIFT_TOOL")]
    problem = Problem(robot, contacts, outputs=outputs)
    closure, rng, found = Closure(robot), np.random.default_rng(1), []
    for _ in range(3):
        measured = {name: float(rng.uniform(-0.4, 0.4)) for name in robot.independent}
        found.append((problem, {"q": np.array(closure.solve(measured).q)}))
    return found


# Rows of several links.


def several_links(seed: int, axes: Axes = "contact", outputs=("G",)) -> Problem:
    """Return a random tree with ordinary contacts, two relative ones and a weighted sum."""
    rng = np.random.default_rng(seed)
    robot = random_robot(rng)
    contacts = list(random_contacts(rng, robot, 2))
    for k, kind in enumerate(("point", "surface")):
        a, b = rng.permutation(len(robot.joints))[:2]
        pose = random_transform(rng)
        contacts.append(RelativeContact(f"r{k}", f"f{a}", f"f{b}", kind, pose))
    frames = [f"f{k}" for k in rng.permutation(len(robot.joints))[:3]]
    weights = dict(zip(frames, rng.normal(size=3), strict=False))
    contacts.append(WeightedSum("sum", weights, "surface"))
    return Problem(robot, contacts, axes, outputs)


def whole_robot(seed: int, axes: Axes, alone: bool = False, outputs=("G",)) -> Problem:
    """Return a floating random tree with rows of the whole robot between other contacts."""
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, floating=True)
    last = f"f{len(robot.joints) - 1}"
    contacts = [CenterOfMass("com"), CentroidalMomentum("momentum")]
    if not alone:
        grip = RelativeContact("r", "f0", last, "surface")
        contacts = [*random_contacts(rng, robot, 2), contacts[0], grip, contacts[1]]
    return Problem(robot, contacts, axes, outputs)


def on_a_fixed_base(seed: int, axes: Axes, outputs=("G",), alone: bool = False) -> Problem:
    """Return a random tree on the world with rows of the whole robot between other contacts."""
    rng = np.random.default_rng(seed)
    kinds = (JointKind.REVOLUTE, JointKind.PRISMATIC, JointKind.PLANAR)
    robot = random_robot(rng, kinds, 12, floating=False)
    ends = [] if alone else random_contacts(rng, robot, 2)
    contacts = [*ends[:1], CentroidalMomentum("momentum"), *ends[1:], CenterOfMass("com")]
    return Problem(robot, contacts, axes, outputs)


def rows_of_several_links(seed: int, outputs: Sequence[str]) -> Pairs:
    """Return a tree with rows of several links."""
    return inputs_of(several_links(seed, AXES[seed % 2], outputs), [seed])


def rows_of_the_whole_robot(seed: int, outputs: Sequence[str]) -> Pairs:
    """Return floating trees with rows of the whole robot."""
    problems = (whole_robot(seed, axes, seed == 12, outputs) for axes in AXES)
    return [pair for problem in problems for pair in inputs_of(problem, [seed])]


def rows_of_the_whole_robot_on_the_world(seed: int, outputs: Sequence[str]) -> Pairs:
    """Return trees on the world with rows of the whole robot."""
    problems = (on_a_fixed_base(seed, axes, outputs) for axes in AXES)
    return [pair for problem in problems for pair in inputs_of(problem, [seed])]
