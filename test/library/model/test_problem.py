"""The problem: ports, equality by content, refusals that name the contact."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
import robots

from delassus import Contact, ContactSet, DelassusSolver, Problem, Robot
from delassus.errors import ContactError, InputError, ProblemError
from delassus.model import WORLD, Body, Frame, Inertia, Joint, JointKind, Transform
from delassus.scalars.ports import Port

UNIT = Inertia(1.0, np.zeros(3), np.eye(3))


def robot(floating: bool = True, upper: float = np.inf) -> Robot:
    """Return a base with one revolute and one planar joint."""
    root = [Joint("root", JointKind.ROOT, WORLD)] if floating else []
    first = len(root)
    joints = [
        *root,
        Joint("hip", JointKind.REVOLUTE, first - 1, upper=upper),
        Joint("slide", JointKind.PLANAR, first),
    ]
    bodies = [Body(f"b{i}", UNIT) for i in range(len(joints))]
    frames = [Frame(f"f{i}", i, Transform()) for i in range(len(joints))]
    world = [] if floating else [Frame("ground", WORLD, Transform())]
    return Robot("small", joints, bodies, [*world, *frames])


CONTACTS = (Contact("tip", "f1"), Contact("foot", "f0", "surface"))


def test_ports() -> None:
    for axes, floating, names in (
        ("contact", True, ["q"]),
        ("contact", False, ["q"]),
        ("world", False, ["q"]),
        ("world", True, ["q", "base_orientation"]),
    ):
        problem = Problem(robot(floating), CONTACTS, axes=axes)  # type: ignore[arg-type]
        assert [port.name for port in problem.inputs] == names
        assert problem.inputs[0] == Port("q", (4,))
        assert problem.outputs == (Port("G", (9, 9)),)
        assert problem.axes == axes
    assert problem.inputs[1].size == 4
    assert Port("x", (3, 5)).size == 15
    assert Port("x", ()).size == 1


def test_moving_contacts_add_ports_and_begin_at_their_own_places() -> None:
    place = Transform.from_xyz_rpy((1.0, 2.0, 3.0), (0.0, 0.0, np.pi / 2))
    contacts = [
        Contact("a", "f1", moving="pose", placement=place),
        Contact("b", "f1"),
        Contact("c", "f0", "surface", moving="position"),
        Contact("d", "f2", moving="pose"),
    ]
    problem = Problem(robot(), contacts)
    assert problem.moving == ("a", "c", "d")
    assert problem.turning == ("a", "d")
    ports = (Port("contact_positions", (3, 3)), Port("contact_orientations", (2, 4)))
    assert problem.inputs[1:] == ports
    assert problem.placements["contact_positions"].tolist() == [[1, 2, 3], [0, 0, 0], [0, 0, 0]]
    half = np.sqrt(0.5)
    expected = [[0, 0, half, half], [0, 0, 0, 1]]
    assert np.allclose(problem.placements["contact_orientations"], expected, atol=1e-15)
    with pytest.raises(ValueError, match="read-only"):
        problem.placements["contact_positions"][0, 0] = 1.0
    assert pickle.loads(pickle.dumps(problem)).inputs == problem.inputs


def test_the_orientation_of_contacts_is_no_input_with_world_axes() -> None:
    contacts = [Contact("a", "f1", moving="pose")]
    problem = Problem(robot(), contacts, axes="world")
    names = [port.name for port in problem.inputs]
    assert names == ["q", "base_orientation", "contact_positions"]
    assert (problem.moving, problem.turning) == (("a",), ())
    fixed = Problem(robot(), CONTACTS)
    assert (fixed.moving, fixed.turning, dict(fixed.placements)) == ((), (), {})
    assert fixed != Problem(robot(), [Contact("tip", "f1", moving="pose"), CONTACTS[1]])


def test_contacts_may_be_any_iterable() -> None:
    problem = Problem(robot(), iter(CONTACTS))
    assert problem == Problem(robot(), ContactSet(CONTACTS))
    assert problem.contacts.names == ("tip", "foot")


def test_equal_content_is_equal_and_hashes_alike() -> None:
    one, two = Problem(robot(), CONTACTS), Problem(robot(), list(CONTACTS), outputs=("G", "G"))
    assert one == two
    assert hash(one) == hash(two)
    assert one.digest == two.digest
    assert len(one.digest) == 64
    # Limits and names of bodies do not move the matrix.
    assert one == Problem(robot(upper=1.0), CONTACTS)


def test_everything_else_makes_another_problem() -> None:
    plain = robot()
    problem = Problem(plain, CONTACTS)
    heavier = [replace(plain.bodies[0], inertia=Inertia(2.0)), *plain.bodies[1:]]
    others = [
        Problem(plain, CONTACTS[::-1]),
        Problem(plain, CONTACTS[:1]),
        Problem(plain, CONTACTS, axes="world"),
        Problem(robot(floating=False), CONTACTS),
        Problem(plain.with_armature({"hip": 0.1}), CONTACTS),
        Problem(Robot("small", plain.joints, heavier, list(plain.frames.values())), CONTACTS),
    ]
    assert len({problem, *others}) == 1 + len(others)
    assert all(problem != other for other in others)
    assert problem != "problem"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"axes": "body"}, "unknown axes 'body'; axes: contact, world"),
        ({"axes": "worlds"}, r"did you mean 'world'\?"),
        ({"outputs": {"L"}}, "unknown output 'L'; outputs: G, J, JdotV, M, MinvJT, a0, dG, h"),
        ({"outputs": {"Minv"}}, "unknown output 'Minv'; did you mean 'MinvJT'"),
        ({"outputs": ["adot"]}, "unknown output 'adot'"),
    ],
)
def test_refused_axes_and_outputs(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(ProblemError, match=words):
        Problem(robot(), CONTACTS, **arguments)  # type: ignore[arg-type]


def test_an_unknown_frame_is_named_with_the_closest_one() -> None:
    with pytest.raises(ContactError) as caught:
        Problem(robot(), [Contact("tip", "f11")])
    assert str(caught.value) == (
        "contact 'tip': unknown frame 'f11'; did you mean 'f1'? frames: f0, f1, f2"
    )


def test_a_frame_that_cannot_move_is_refused() -> None:
    with pytest.raises(ContactError, match="contact 'x': frame 'ground' is fixed to the world"):
        Problem(robot(floating=False), [Contact("x", "ground")])


def test_pickles_with_its_identity() -> None:
    problem = Problem(robot(), CONTACTS, axes="world")
    again = pickle.loads(pickle.dumps(problem))
    assert again == problem
    assert again.digest == problem.digest
    assert again.robot.to_bytes() == problem.robot.to_bytes()
    assert again.inputs == problem.inputs


def test_repr_names_robot_contacts_and_axes() -> None:
    text = repr(Problem(robot(), CONTACTS))
    for part in ("'small'", "tip, foot", "9 rows", "axes='contact'", "{'G'}"):
        assert part in text


def test_rates_are_those_of_the_independent_joints() -> None:
    """Of the Panda, whose second finger follows the first."""
    panda = Robot.from_urdf(robots.example("panda_description/urdf/panda.urdf"), "fixed")
    (coupling,) = panda.couplings
    fingers = [name for name, _ in coupling.ratios]
    v = panda.v({name: 0.1 * k for k, name in enumerate(panda.joint_names)})
    v[[panda.joint_names.index(name) for name in fingers]] = 0.3
    problem = Problem(panda, [Contact("hand", "panda_hand")], outputs=["JdotV"])
    rates = problem.rates(v)
    assert (v.shape, rates.shape) == ((9,), (8,))
    assert rates.tolist() == [v[panda.joint_names.index(name)] for name in problem.velocities]
    # Couplings of a simulator are soft.
    v[panda.joint_names.index(fingers[0])] = 0.301
    problem.rates(v)
    v[panda.joint_names.index(fingers[0])] = 0.0
    with pytest.raises(InputError, match=f"coupling .* off by 0.3; it has .*'{fingers[0]}': 0"):
        problem.rates(v)
    with pytest.raises(InputError, match="off by nan"):
        problem.rates(np.full(9, np.nan))
    with pytest.raises(InputError, match=r"v has shape \(8,\); expected \(9,\), the robot's"):
        problem.rates(rates)
    with pytest.raises(InputError, match=r"'rates' has shape \(9,\).*Problem.rates\(v\) takes"):
        DelassusSolver(problem).solve(panda.neutral(), rates=v)


def test_rates_of_a_floating_base_are_its_twist_first() -> None:
    v = np.arange(10.0)
    assert Problem(robot(), CONTACTS).rates(v).tolist() == v.tolist()
