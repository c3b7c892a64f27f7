"""From names of links and joints to constraints of a robot."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from linkages import COUPLER, ROCKER, four_bar_urdf, independent
from oracles.textbook import mass_matrix
from urdf_text import coupling, joint, link, robot_xml

from delassus.closure import Closure
from delassus.errors import RobotError
from delassus.model import (
    WORLD,
    FunctionConstraint,
    JointKind,
    LoopKind,
    Robot,
    clusters_of,
)
from delassus.model.robot import Base

BELT = (
    *(link(name) for name in ("base", "thigh", "shank", "rotor")),
    joint("hip", "base", "thigh"),
    joint("knee", "thigh", "shank"),
    joint("spin", "base", "rotor"),
)


def loop(name: str, predecessor: str, successor: str, loop_type: str = "fixed") -> str:
    return (
        f'<loop name="{name}" type="{loop_type}"><predecessor link="{predecessor}"/>'
        f'<successor link="{successor}"/></loop>'
    )


def mimicking(mimics: dict[str, str], order: tuple[str, ...] = ("a", "b", "c")) -> str:
    """Return joints on one link that follow each other, declared in this order."""
    joints = []
    for name in order:
        inside = '<axis xyz="0 0 1"/>'
        if name in mimics:
            inside += f'<mimic joint="{mimics[name]}" multiplier="-2" offset="0.1"/>'
        joints.append(joint(name, "base", f"l{name}", inside=inside))
    return robot_xml(link("base"), *(link(f"l{name}") for name in "abc"), *joints)


def reduction(value: str) -> str:
    return f"<mechanicalReduction>{value}</mechanicalReduction>"


def driven(**parts: str) -> str:
    """Return a joint 'knee' with a transmission 'drive'."""
    text = {
        "joint": '<joint name="knee"><hardwareInterface/></joint>',
        "actuator": '<actuator name="motor">',
        "reduction": reduction("50"),
        "kind": "revolute",
        "beside": "",
        **parts,
    }
    return robot_xml(
        link("base"), link("shank"), link("foot"),
        joint("knee", "base", "shank", text["kind"]), joint("weld", "shank", "foot", "fixed"),
        f'<transmission name="drive">{text["joint"]}{text["actuator"]}{text["reduction"]}'
        f"</actuator></transmission>{text['beside']}",
    )  # fmt: skip


def belt(*parts: str) -> str:
    """Return a URDF of a leg with a rotor beside it, and further parts."""
    return robot_xml(*BELT, *parts)


GEARED = belt(coupling("belt", "shank", "rotor"))


def stated(text: str, **values: str) -> str:
    """Return a URDF whose joints state whether they are independent."""
    for name, value in values.items():
        text = text.replace(f'<joint name="{name}"', f'<joint independent="{value}" name="{name}"')
    return text


def of_kind(text: str, name: str, kind: str) -> str:
    """Return a URDF in which a revolute joint is of another kind."""
    return text.replace(f'name="{name}" type="revolute"', f'name="{name}" type="{kind}"')


def undetermined(name: str) -> str:
    return f'joint {name!r} is independent="false", but no loop, coupling or mimic determines it'


# --- limits of followers ----------------------------------------------------------------------


def limited(name: str, lower: float, upper: float, mimic: str = "", kind: str = "revolute") -> str:
    """Return a joint on 'base' with limits, and what it follows."""
    limit = f'<limit lower="{lower}" upper="{upper}"/>{mimic}'
    return joint(name, "base", f"l{name}", kind, f'<axis xyz="0 1 0"/>{limit}')


@pytest.mark.parametrize(
    ("leader", "follower", "mimic", "warning"),
    [
        # A common gripper.
        ((0, 0.8757), (0, 0.8757), 'multiplier="-1"', "[0, 0.8757] ... [-0.8757, 0]"),
        ((0, 0.8757), (-0.8757, 0), 'multiplier="-1"', ""),
        ((-1, 1), (-1, 1), 'multiplier="-0.75" offset="0.3"', "[-1, 1] ... [-0.45, 1.05]"),
        ((-1, 1), (-1, 1), 'multiplier="0.5" offset="-0.5"', ""),
        ((-1, 1), (-0.9999995, 1), "", ""),
        ((-1, 1), (-0.999998, 1), "", "[-0.999998, 1] ... [-1, 1]"),
        ((-np.inf, np.inf), (0, 2), "", "[0, 2] ... [-inf, inf]"),
        ((-1, 1), (-np.inf, np.inf), 'multiplier="50"', ""),
    ],
)
def test_limits_of_followers_that_their_leaders_do_not_keep(
    leader, follower, mimic: str, warning: str, caplog: pytest.LogCaptureFixture
) -> None:
    parts = [link("base"), link("la"), link("lb"), limited("a", *leader)]
    parts.append(limited("b", *follower, f'<mimic joint="a" {mimic}/>'))
    Robot.from_urdf(robot_xml(*parts))
    words = warning.replace("...", "are not kept: it follows joint 'a', whose limits put it in")
    assert caplog.messages == ([f"joint 'b': limits {words}"] if warning else [])


@pytest.mark.parametrize("lock", [{"a": 0.2}, {"b": 0.1}, {"[abc]": 0.0}])
def test_limits_of_locked_joints_are_no_warning(
    lock: dict[str, float], caplog: pytest.LogCaptureFixture
) -> None:
    parts = [link(name) for name in ("base", "la", "lb", "lc", "ld")]
    parts += [limited("a", 0, 0.5), limited("c", 3, 1), limited("d", 0, 1)]
    parts.append(limited("b", 0, 0.5, '<mimic joint="a" multiplier="-1"/>'))
    Robot.from_urdf(robot_xml(*parts), lock={"d": 0.1})
    (above, kept) = caplog.messages
    assert above.startswith("joint 'c': limits are ignored") and "'b': limits [0" in kept
    caplog.clear()
    Robot.from_urdf(robot_xml(*parts), lock={"c": 0.1, **lock})
    assert caplog.messages == []


def test_limits_of_a_follower_of_followers(caplog: pytest.LogCaptureFixture) -> None:
    """In any order; also of a joint that the side file makes of a ball, which has no limits."""
    second = limited("c", -1, 1, '<mimic joint="b" multiplier="2" offset="-0.1"/>')
    first = limited("b", -9, 9, '<mimic joint="a" multiplier="-0.75" offset="0.3"/>')
    parts = [*(link(name) for name in ("base", "la", "lb", "lc")), second, first]
    words = "joint 'c': limits [-1, 1] are not kept: it follows joint '{}', whose limits put it in"
    Robot.from_urdf(robot_xml(*parts, limited("a", -1, 1)))
    assert caplog.messages == [f"{words.format('a')} [-1, 2]"]
    caplog.clear()
    ball = first.replace('joint="a"', 'joint="a_Y"')
    parts[-1] = ball
    Robot.from_urdf(robot_xml(*parts, limited("a", -1, 1)), loops={"joints": {"a": "spherical"}})
    assert f"{words.format('a_Y')} [-inf, inf]" in caplog.messages


# --- URDF+ couplings --------------------------------------------------------------------------


def test_couplings_sum_the_joints_of_both_paths() -> None:
    robot = Robot.from_urdf(belt(coupling("belt", "shank", "rotor", -7.0)))
    (read,) = robot.couplings
    assert dict(read.ratios) == {"spin": -1.0, "knee": -7.0, "hip": -7.0}
    assert read.offset == 0.0
    assert robot.is_closed
    # Where nothing is stated, the rotor follows.
    assert independent(robot) == ["root", "hip", "knee"]


def test_paths_go_through_fixed_joints() -> None:
    fixed = (link("cover"), joint("screws", "rotor", "cover", "fixed"))
    robot = Robot.from_urdf(belt(*fixed, coupling("belt", "thigh", "cover")), "fixed")
    assert dict(robot.couplings[0].ratios) == {"spin": -1.0, "hip": 6.0}


# --- URDF+ independent ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dependent", "expected"),
    [("hip", ["knee", "spin"]), ("knee", ["hip", "spin"]), ("spin", ["hip", "knee"])],
)
def test_joints_beside_a_stated_dependent_one_are_independent(
    dependent: str, expected: list[str]
) -> None:
    text = stated(GEARED, **{dependent: "false"})
    assert independent(Robot.from_urdf(text, "fixed")) == expected


def test_true_outside_of_clusters_means_nothing() -> None:
    text = belt(coupling("gear", "thigh", "rotor"))
    assert independent(Robot.from_urdf(stated(text, knee="true"), "fixed")) == ["hip", "knee"]


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_refuses_dependent_joints_that_nothing_determines(base: Base) -> None:
    """What should is misspelt, is somewhere else or was taken away."""
    one = belt(coupling("gear", "thigh", "rotor"))
    for text, name in (
        (stated(belt(), spin="false"), "spin"),
        (stated(one, knee="false"), "knee"),
        (stated(one, spin="false", knee="false"), "knee"),
        (stated(one.replace("coupling", "couple"), spin="false"), "spin"),
    ):
        with pytest.raises(RobotError, match=undetermined(name)):
            Robot.from_urdf(text, base)


@pytest.mark.parametrize("kind", ["planar", "floating"])
def test_refuses_dependent_joints_that_nothing_could_determine(kind: str) -> None:
    parts = (link("base"), link("ball"), joint("drift", "base", "ball", kind))
    for base in ("fixed", "floating"):
        with pytest.raises(RobotError, match=undetermined("drift")):
            Robot.from_urdf(stated(robot_xml(*parts), drift="false"), base)


def test_dependent_joint_of_another_type_refused_unless_fixed() -> None:
    text = stated(belt(), knee="false")
    with pytest.raises(RobotError, match=undetermined("knee")):
        Robot.from_urdf(text, "fixed", loops={"joints": {"knee": "universal_xy"}})
    held = Robot.from_urdf(text, "fixed", loops={"joints": {"knee": "fixed"}})
    assert held.joint_names == ("hip", "spin")


def test_the_side_file_may_determine_them_or_say_that_they_are_independent() -> None:
    text = stated(belt(), spin="false")
    gear = {"couplings": [{"name": "gear", "joints": {"spin": -1, "hip": 6}}]}
    assert independent(Robot.from_urdf(text, "fixed", loops=gear)) == ["hip", "knee"]
    named = Robot.from_urdf(text, "fixed", loops={"independent": ["spin"]})
    assert independent(named) == ["hip", "knee", "spin"]


def quarter(q: list[float]) -> list[float]:
    return [6.0 * q[0] * (1.0 + 0.25 * q[0])]


def test_functions_may_determine_them() -> None:
    """What no file can say comes by code, as the differentials of Tello do."""
    text = stated(belt(), spin="false")
    cam = FunctionConstraint("cam", ("hip",), quarter, 1, dependent=("spin",))
    robot = Robot.from_urdf(text, "fixed", functions=[cam])
    assert robot.functions == (cam,)
    assert independent(robot) == ["hip", "knee"]
    assert Closure(robot).solve({"hip": 0.2, "knee": 0.0}).q[2] == pytest.approx(1.26, abs=1e-12)
    with pytest.raises(RobotError, match=undetermined("spin")):
        Robot.from_urdf(text, "fixed")
    other = FunctionConstraint("cam", ("hip",), quarter, 1, dependent=("knee",))
    with pytest.raises(RobotError, match=undetermined("spin")):
        Robot.from_urdf(text, "fixed", functions=[other])
    with pytest.raises(RobotError, match="'hipp'"):
        wrong = FunctionConstraint("cam", ("hipp",), quarter, 1, dependent=("spin",))
        Robot.from_urdf(text, "fixed", functions=[wrong])


def test_side_file_leads_a_cluster_of_dependent_joints() -> None:
    text = stated(GEARED, hip="false", knee="false", spin="false")
    robot = Robot.from_urdf(text, "fixed", loops={"independent": ["spin", "hip"]})
    assert independent(robot) == ["hip", "spin"]


def test_the_side_file_counts_before_the_document() -> None:
    text = stated(GEARED, spin="false")
    robot = Robot.from_urdf(text, "fixed", loops={"independent": ["spin", "hip"]})
    assert independent(robot) == ["hip", "spin"]


# --- mimic ------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", list(itertools.permutations("abc")))
def test_mimic_chains_in_any_order_lead_to_one_joint(order: tuple[str, ...]) -> None:
    robot = Robot.from_urdf(mimicking({"c": "b", "b": "a"}, order), "fixed")
    assert independent(robot) == ["a"]
    q = {"a": 0.3, "b": -2 * 0.3 + 0.1}
    q["c"] = -2 * q["b"] + 0.1
    for read in robot.couplings:
        assert abs(sum(ratio * q[name] for name, ratio in read.ratios) + read.offset) < 1e-15
    assert {read.name for read in robot.couplings} == {"b mimics a", "c mimics b"}


def test_several_joints_may_mimic_one() -> None:
    robot = Robot.from_urdf(mimicking({"a": "c", "b": "c"}), "fixed")
    assert independent(robot) == ["c"]
    assert [cluster.joints for cluster in clusters_of(robot)] == [(0, 1, 2)]


# --- rotors -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_a_rotor_is_a_body_about_the_axis_of_its_joint(kind: str) -> None:
    robot = Robot.from_urdf(driven(kind=kind), "floating", loops={"rotors": {"drive": 1e-4}})
    assert [item.name for item in robot.joints] == ["root", "knee", "motor"]
    knee, motor = robot.joints[1:]
    assert (motor.kind, motor.parent) == (JointKind.REVOLUTE, knee.parent)
    assert motor.placement.to_bytes() == knee.placement.to_bytes()
    assert motor.axis.tolist() == knee.axis.tolist()
    assert dict(robot.couplings[0].ratios) == {"motor": -1.0, "knee": 50.0}
    assert independent(robot) == ["root", "knee"]
    inertia = robot.bodies[2].inertia
    assert inertia.mass == 0.0 and not inertia.moment.any()
    assert inertia.rotational.tolist() == np.diag([0.0, 0.0, 1e-4]).tolist()


def test_a_rotor_adds_its_reflected_inertia_at_a_base_at_rest() -> None:
    plain = mass_matrix(Robot.from_urdf(driven(), "fixed"), np.array([0.3]))
    robot = Robot.from_urdf(driven(), "fixed", loops={"rotors": {"drive": 1e-4}})
    ratio = np.array([1.0, 50.0])  # of knee and motor by the knee
    whole = ratio @ mass_matrix(robot, np.array([0.3, 15.0])) @ ratio
    assert whole == pytest.approx(plain[0, 0] + 50.0**2 * 1e-4, rel=1e-13)


def test_transmissions_without_rotor_mean_nothing() -> None:
    assert not Robot.from_urdf(driven(), "fixed").is_closed
    assert not Robot.from_urdf(driven(reduction="<mechanicalReduction/>"), "fixed").is_closed


# --- loops ------------------------------------------------------------------------------------


ENDS = ["coupler_end", "rocker_end"]


def test_loops_of_the_document_and_of_the_side_file_are_the_same() -> None:
    bar = (
        '<loop name="bar" type="revolute"><predecessor link="coupler_end"/><successor '
        f'link="rocker"><origin xyz="{ROCKER} 0 0"/></successor><axis xyz="0 0 1"/></loop>'
    )
    entry = {"name": "bar", "frames": ENDS, "type": "hinge", "axis": [0, 0, 2]}
    inside = Robot.from_urdf(four_bar_urdf(bar), "fixed")
    beside = Robot.from_urdf(four_bar_urdf(), "fixed", loops={"loops": [entry]})
    for robot in (inside, beside):
        (read,) = robot.loops
        assert (read.kind, read.predecessor, read.successor) == (LoopKind.HINGE, 1, 2)
        assert read.predecessor_placement.translation.tolist() == [COUPLER, 0.0, 0.0]
        assert len(independent(robot)) == 1
    assert inside.to_bytes() == beside.to_bytes()


@pytest.mark.parametrize("loop_type", ["spherical", "universal", "point"])
def test_loops_that_join_origins(loop_type: str) -> None:
    entry = {"frames": ENDS, "type": loop_type}
    robot = Robot.from_urdf(four_bar_urdf(), "fixed", loops={"loops": [entry]})
    assert (robot.loops[0].name, robot.loops[0].kind) == (":".join(ENDS), LoopKind.POINT)
    assert len(independent(robot)) == 1


# --- types of joints --------------------------------------------------------------------------


def test_a_joint_can_be_a_chain_of_revolute_joints() -> None:
    text = belt()
    types = {"knee": "universal_yz", "hip": "spherical"}
    robot = Robot.from_urdf(text, "fixed", loops={"joints": types})
    names = ["hip_X", "hip_Y", "hip_Z", "knee_Y", "knee_Z", "spin"]
    assert [item.name for item in robot.joints] == names
    assert [item.parent for item in robot.joints] == [WORLD, 0, 1, 2, 3, WORLD]
    assert [item.axis.tolist() for item in robot.joints[:5]] == [
        [1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0], [0, 0, 1]
    ]  # fmt: skip
    plain = Robot.from_urdf(text, "fixed")
    for i in (0, 3):
        assert robot.joints[i].placement.to_bytes() == plain.joints[i // 3].placement.to_bytes()
    assert not robot.joints[4].placement.translation.any()
    assert [body.inertia.mass for body in robot.bodies] == [0, 0, 1.5, 0, 1.5, 1.5]
    assert (robot.frames["thigh"].body, robot.frames["shank"].body) == (2, 4)
    assert robot.bodies[2].inertia.to_bytes() == plain.bodies[0].inertia.to_bytes()
    assert not robot.is_closed


def test_a_joint_can_be_made_fixed() -> None:
    robot = Robot.from_urdf(belt(), "fixed", loops={"joints": {"knee": "fixed"}})
    assert robot.joint_names == ("hip", "spin")
    assert robot.bodies[0].inertia.mass == 3.0


def test_motors_of_published_files_are_independent_where_possible() -> None:
    led = Robot.from_urdf(GEARED, "fixed", loops={"name_mot": ["spin"]})
    assert independent(led).count("spin") == 1
    both = Robot.from_urdf(GEARED, "fixed", loops={"name_mot": ["spin", "hip", "knee"]})
    assert len(independent(both)) == 2


# --- refusals ---------------------------------------------------------------------------------


CAP = (link("cap"), joint("w", "shank", "cap", "fixed"))
BALL = (link("ball"), joint("drift", "base", "ball", "floating"))
OPEN = (
    '<loop name="bar" type="spherical"><predecessor link="coupler_end"/><successor '
    'link="rocker_end"><origin xyz="0 0 0.25"/></successor></loop>'
)
FOLLOWING = mimicking({"a": "b"})
REFUSED = [
    ("coupling 'c': unknown link 'rotr'; did you mean 'rotor'",
     belt(coupling("c", "thigh", "rotr"))),
    *(
        (f"coupling 'c': no joint moves '{one}' against '{other}' on either side",
         belt(coupling("c", one, other)))
        for one, other in (
            ("thigh", "shank"), ("shank", "thigh"), ("thigh", "thigh"), ("base", "rotor"),
        )
    ),
    ("coupling 'c': the factor of joint 'hip' is 0.0", belt(coupling("c", "thigh", "rotor", 0.0))),
    ("coupling 'c': unknown joint 'drift'; joints: hip, knee, spin",
     belt(*BALL, coupling("c", "thigh", "ball"))),
    ("coupling 'belt': 1 independent joints are stated .* need 2",
     stated(GEARED, hip="false", knee="false")),
    ("coupling 'belt': 3 independent joints are stated .* need 2", stated(GEARED, hip="true")),
    ("coupling 'belt': all joints .* 'hip', 'knee', 'spin', are independent",
     stated(GEARED, hip="false", knee="false", spin="false")),
    *(
        (f"joint '.': <mimic>: joints follow each other: {words}", mimicking(mimics))
        for words, mimics in (
            ("'a' -> 'a'", {"a": "a"}),
            ("'a' -> 'b' -> 'a'", {"a": "b", "b": "a"}),
            ("'b' -> 'c' -> 'b'", {"a": "b", "b": "c", "c": "b"}),
        )
    ),
    ("joint 'a': <mimic>: unknown joint 'd'; joints: a, b, c", mimicking({"a": "d"})),
    *(
        ("joint 'a': <mimic>: joint 'b' is not revolute or prismatic",
         of_kind(FOLLOWING, "b", kind))
        for kind in ("fixed", "planar")
    ),
    ("joint 'a': <mimic>: only revolute and prismatic joints can follow",
     of_kind(FOLLOWING, "a", "planar")),
    ("loop 'bar' does not close: a gap of 0.25 .*'crank', 'coupler', 'rocker'",
     four_bar_urdf(OPEN)),
    ("loop 'bar': unknown link 'shnk'; did you mean 'shank'",
     belt(*CAP, loop("bar", "shnk", "rotor"))),
    ("loop 'bar' is between a body and itself: links 'shank' and 'cap' cannot move apart",
     belt(*CAP, loop("bar", "shank", "cap"))),
    ("loop 'bar' is between a body and itself: link 'cap' cannot",
     belt(*CAP, loop("bar", "cap", "cap"))),
]  # fmt: skip
"""What is said, and of which URDF."""
REFUSED_WITH_SIDE_FILE = [
    *(
        (words, driven(**parts), {"rotors": {"drive": 1e-4}})
        for words, parts in (
            ("'drive' has 0 <joint>", {"joint": ""}),
            ("'drive' has 2 <joint>", {"joint": '<joint name="knee"/><joint name="knee"/>'}),
            ("'drive': unknown joint 'kne'; did you mean 'knee'",
             {"joint": '<joint name="kne"/>'}),
            ("'drive' has 0 <mechanicalReduction>", {"reduction": ""}),
            ("mechanicalReduction: 'x' is not a number", {"reduction": reduction("x")}),
            ("Reduction is 0.0", {"reduction": reduction("0")}),
            ("'drive' has 2 <mech", {"reduction": reduction("5") * 2}),
            ("transmission 'drive' appears 2 times", {"beside": '<transmission name="drive"/>'}),
        )
    ),
    ("rotors: unknown transmission 'drivr'; did you mean 'drive'",
     driven(), {"rotors": {"drivr": 1e-4}}),
    ("coupling, loop or constraint 'gear' appears twice", belt(coupling("gear", "thigh", "rotor")),
     {"couplings": [{"name": "gear", "joints": {"hip": 1, "spin": 2}}]}),
    ("joints: unknown joint 'kne'", belt(), {"joints": {"kne": "fixed"}}),
    ("joints: 'a' has a <mimic>; it cannot be of another type",
     FOLLOWING, {"joints": {"a": "spherical"}}),
    ("name_mot: unknown joint 'spn'", GEARED, {"name_mot": ["spn"]}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "text", "loops"), [*((*row, None) for row in REFUSED), *REFUSED_WITH_SIDE_FILE]
)
def test_refused(words: str, text: str, loops: Any) -> None:
    with pytest.raises(RobotError, match=words):
        Robot.from_urdf(text, "fixed", loops=loops)
