"""Parameters as plain values: what they describe, what is wrong with them, and config/."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import robots
import yaml
from tick_support import sensed

from delassus import RelativeContact, WeightedSum
from delassus.errors import ContactError, InputError, RobotError
from delassus.robots.built_in import demo_urdf
from delassus_ros.node.contact_parameters import CONTACT_PARAMETERS
from delassus_ros.node.parameters import PARAMETERS, Settings
from delassus_ros.ros.setting import Setting

CONFIG = Path(__file__).resolve().parents[3] / "config"


def feet(**changes: Any) -> dict[str, Any]:
    """Parameters of two feet of the quadruped; double underscores in `changes` stand for dots."""
    parameters = {
        "contacts.names": ["LF", "RH"],
        "contacts.LF.frame": "LF_FOOT",
        "contacts.RH.frame": "RH_FOOT",
    }
    return parameters | {key.replace("__", "."): value for key, value in changes.items()}


def urdf() -> str:
    return robots.unlimited()


def flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return parameters by full name, as ROS has them."""
    found = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            found |= flat(value, f"{prefix}{key}.")
        else:
            found[prefix + key] = value
    return found


def config(name: str) -> dict[str, Any]:
    tree = yaml.safe_load((CONFIG / f"{name}.yaml").read_text(encoding="utf-8"))
    assert list(tree) == ["/**"]
    return flat(tree["/**"]["ros__parameters"])


def test_locked_joints_are_held() -> None:
    settings = Settings.from_parameters(feet(lock__names=["LF_KFE"], lock__values=[-1.2]))
    robot = settings.problem(urdf()).robot
    assert "LF_KFE" not in robot.joint_names and robot.nq == 11
    with pytest.raises(RobotError, match="'lock.names' has 1 entries but 'lock.values' has 0"):
        Settings.from_parameters(feet(lock__names=["LF_KFE"]))


def test_defaults() -> None:
    settings = Settings.from_parameters(feet())
    assert (settings.base, settings.axes, settings.rows) == ("floating", "contact", "active")
    assert settings.algorithm == "pv_osimr"
    problem = settings.problem(urdf())
    assert problem.contacts.names == ("LF", "RH")
    assert problem.contacts.rows == 6
    assert problem.robot.base == "floating"


def test_every_contact_parameter_reaches_the_contact() -> None:
    selection = [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    settings = Settings.from_parameters(
        feet(
            contacts__LF__kind="surface",
            contacts__LF__xyz=[0.1, 0.2, 0.3],
            contacts__LF__rpy=[0.0, 0.0, np.pi / 2],
            contacts__LF__friction=0.5,
            contacts__LF__dimensions=[0.2, 0.1],
            contacts__RH__kind="selection",
            contacts__RH__selection=selection,
            contacts__RH__moving="position",
        )
    )
    left, right = settings.contacts
    assert left.kind_name == "surface"
    np.testing.assert_allclose(left.placement.translation, [0.1, 0.2, 0.3])
    np.testing.assert_allclose(left.placement.rotation @ [1, 0, 0], [0, 1, 0], atol=1e-15)
    assert right.kind_name == "selection"
    assert right.selection.tolist() == [selection[:6], selection[6:]]
    assert (left.moving, right.moving) == ("nothing", "position")
    assert left.cone == {"friction": 0.5, "dimensions": (0.2, 0.1)}
    assert right.cone == {}
    for text, normal in (("-z", "-z"), ("0 3.0 4", (0.0, 0.6, 0.8))):
        left, _ = Settings.from_parameters(feet(contacts__LF__normal=text)).contacts
        assert left.cone == {"normal": normal}


def test_a_relative_contact_by_parameters() -> None:
    settings = Settings.from_parameters(
        feet(contacts__LF__kind="relative", contacts__LF__second_frame="RF_FOOT")
    )
    contact = settings.contacts[0]
    assert isinstance(contact, RelativeContact)
    assert (contact.frame, contact.frame_b, contact.rows) == ("LF_FOOT", "RF_FOOT", 6)
    one_row = [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    settings = Settings.from_parameters(
        feet(
            contacts__LF__kind="relative",
            contacts__LF__second_frame="RF_FOOT",
            contacts__LF__selection=one_row,
        )
    )
    assert settings.problem(urdf()).contacts.row_offsets == (0, 1, 4)
    with pytest.raises(ContactError, match="second_frame' is given, but its kind is 'point'"):
        Settings.from_parameters(feet(contacts__LF__second_frame="RF_FOOT"))
    with pytest.raises(ContactError, match="friction' is given, but its kind is 'relative'"):
        Settings.from_parameters(
            feet(
                contacts__LF__kind="relative",
                contacts__LF__second_frame="RF_FOOT",
                contacts__LF__friction=0.4,
            )
        )


def test_a_weighted_sum_by_parameters() -> None:
    of_sum = {
        "contacts__LF__frame": "",
        "contacts__LF__kind": "weighted_sum",
        "contacts__LF__frames": ["LF_FOOT", "RF_FOOT"],
        "contacts__LF__weights": [0.25, 0.75],
    }
    contact = Settings.from_parameters(feet(**of_sum)).contacts[0]
    assert isinstance(contact, WeightedSum)
    assert contact.shares == (("LF_FOOT", 0.25), ("RF_FOOT", 0.75))
    assert contact.rows == 3
    selected = feet(**of_sum, contacts__LF__selection=[0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    assert Settings.from_parameters(selected).problem(urdf()).contacts.row_offsets == (0, 1, 4)
    for key, value, message in (
        ("weights", [1.0], "expected one weight for each"),
        ("frames", [], "contacts.LF.frames' is not set"),
        (
            "xyz",
            [0.0, 0.0, 1.0],
            "LF.xyz' is given, but its kind is 'weighted_sum'; parameters of",
        ),
    ):
        with pytest.raises(ContactError, match=message):
            Settings.from_parameters(feet(**{**of_sum, f"contacts__LF__{key}": value}))


def test_rows_of_the_whole_robot_by_parameters() -> None:
    parameters = feet(contacts__LF__kind="center_of_mass")
    del parameters["contacts.LF.frame"]
    settings = Settings.from_parameters(parameters)
    assert settings.contacts[0].kind_name == "center_of_mass"
    assert settings.problem(urdf()).contacts.row_offsets == (0, 3, 6)
    with pytest.raises(ContactError, match="LF.frame' is given, but its kind is 'centroidal_mom"):
        Settings.from_parameters(feet(contacts__LF__kind="centroidal_momentum"))


def test_armature_reaches_the_robot() -> None:
    settings = Settings.from_parameters(feet(armature__names=["RH_KFE"], armature__values=[0.02]))
    joints = {joint.name: joint for joint in settings.problem(urdf()).robot.joints}
    assert joints["RH_KFE"].armature == 0.02
    assert joints["LF_KFE"].armature == 0.0


def test_world_axes_with_a_fixed_base() -> None:
    settings = Settings.from_parameters(feet(base="fixed", axes="world"))
    problem = settings.problem(urdf())
    assert (problem.axes, problem.robot.base) == ("world", "fixed")
    assert settings.orientation(problem) is None


def test_world_axes_with_a_floating_base_need_an_orientation() -> None:
    settings = Settings.from_parameters(
        feet(
            axes="world", orientation__source="imu", orientation__frame="base",
            orientation__world_frame="map", orientation__timeout=0.25,
        )
    )  # fmt: skip
    problem = settings.problem(urdf())
    assert [port.name for port in problem.inputs] == ["q", "base_orientation"]
    assert (settings.orientation_source, settings.orientation_world_frame) == ("imu", "map")
    with pytest.raises(InputError, match="orientation.world_frame is empty; expected the name"):
        replace(settings, orientation_world_frame="").orientation(problem)
    source = settings.orientation(problem)
    assert source is not None and source.timeout == 0.25
    assert "'odom'" in source.accept(sensed((0, 0, 0, 1), 1, world="odom"), 2).text
    assert source.accept(sensed((0, 0, 0, 1), 1, "strange", "map"), 2) is None


def test_an_orientation_may_never_be_too_old() -> None:
    settings = Settings.from_parameters(feet(axes="world", orientation__timeout=0))
    source = settings.orientation(settings.problem(urdf()))
    assert source is not None and source.timeout == np.inf


# --- closed loops -------------------------------------------------------------------------------

SIDE_FILE = """
couplings:
  - {name: belt, joints: {LF_HFE: 1, LF_KFE: 2}, offset: 0.7}
"""


def test_open_chains_have_no_closure() -> None:
    settings = Settings.from_parameters(feet())
    assert settings.closure(settings.problem(urdf())) is None


@pytest.mark.parametrize("as_file", [False, True])
def test_loops_come_as_text_or_as_a_file(tmp_path: Path, as_file: bool) -> None:
    path = tmp_path / "loops.yaml"
    path.write_text(SIDE_FILE, encoding="utf-8")
    settings = Settings.from_parameters(feet(loops=str(path) if as_file else SIDE_FILE))
    problem = settings.problem(urdf())
    assert [coupling.name for coupling in problem.robot.couplings] == ["belt"]
    closure = settings.closure(problem)
    assert closure is not None
    assert len(closure.independent) == 11
    measured = dict.fromkeys(closure.independent, 0.1)
    result = closure.solve(measured)
    q = dict(zip(problem.robot.joint_names, result.q, strict=True))
    assert q["LF_HFE"] + 2 * q["LF_KFE"] + 0.7 == pytest.approx(0.0, abs=1e-12)


def test_the_closure_of_the_independent_joints_is_compiled_before_it_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = Settings.from_parameters(feet(loops=SIDE_FILE))
    closure = settings.closure(settings.problem(urdf()))
    assert closure is not None
    monkeypatch.setattr("delassus.closure.closure.newton_for", None)
    closure.bind(closure.independent)
    closure.bind(closure.robot.joint_names)


def test_the_reference_says_on_which_branch_loops_close() -> None:
    text = demo_urdf("geared")
    changes = {"reference__names": ["LIFT_CRANK", "LIFT_ROCKER"]}
    found = []
    for values in ([0.1, 0.1], [0, -3]):
        settings = Settings.from_parameters(feet(**changes, reference__values=values))
        problem = settings.problem(text)
        closure = settings.closure(problem)
        assert closure is not None
        found.append(closure.reference[problem.robot.joint_names.index("LIFT_ROCKER")])
    assert abs(found[0] - found[1]) > 1.0


@pytest.mark.parametrize(
    ("loops", "words"),
    [
        ("/no/such/loops.yaml", "the loops file '/no/such/loops.yaml'"),
        ("couplings:\n  - {name: belt, joints: {LF_HFE: 1, X: 2}}\n", "'X'"),
        ("couplings: [\n", "is not YAML"),
        ("loops:\n  - !!python/object:os.system {}\n", "the loops file"),
    ],
)
def test_loops_that_cannot_be_read(loops: str, words: str) -> None:
    with pytest.raises(RobotError, match=words):
        Settings.from_parameters(feet(loops=loops)).problem(urdf())


def test_settings_can_be_sent_to_another_process() -> None:
    settings = Settings.from_parameters(feet(loops=SIDE_FILE))
    again = pickle.loads(pickle.dumps(settings))
    assert again.problem(urdf()) == settings.problem(urdf())


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"base": "flying"}, InputError, "unknown base 'flying'.*floating, fixed"),
        ({"axes": "body"}, InputError, "unknown axes 'body'.*contact, world"),
        ({"rows": "some"}, InputError, "unknown rows 'some'.*active, all"),
        ({"contacts__names": []}, ContactError, "'contacts.names' is empty"),
        ({"contacts__names": ["LF", "LF"]}, ContactError, "'LF' appears twice"),
        ({"contacts__LF__frame": ""}, ContactError, "'contacts.LF.frame' is not set"),
        ({"contacts__names": ["LF", "X"]}, ContactError, "'contacts.X.frame' is not set"),
        ({"contacts__LF__kind": "flat"}, ContactError, "'LF': unknown contacts.LF.kind 'flat'"),
        ({"contacts__LF__moving": "pos"}, ContactError, "'LF': unknown .*moving 'pos'.*'pose'"),
        ({"contacts__LF__friction": -0.5}, ContactError, "'LF': friction is -0.5; expected a"),
        ({"contacts__LF__friction": np.nan}, ContactError, "LF.friction' is nan; expected -1 to"),
        ({"contacts__LF__normal": "up"}, ContactError, "'LF': unknown normal 'up'; normals: x, "),
        ({"contacts__LF__normal": "0 1"}, ContactError, r"'LF': normal is \[0.0, 1.0\]; expecte"),
        ({"contacts__LF__dimensions": [0.2, 0.1]}, ContactError, "'point'; dimensions is of kind"),
        ({"contacts__LF__kind": "selection"}, ContactError, "LF.selection' has 0 values"),
        (
            {"contacts__LF__kind": "selection", "contacts__LF__selection": [1.0] * 7},
            ContactError,
            "LF.selection' has 7 values; expected the rows of a",
        ),
        (
            {"contacts__LF__kind": "selection", "contacts__LF__selection": [1.0] * 12},
            ContactError,
            "rank 1",
        ),
        ({"contacts__LF__selection": [1.0] * 6}, ContactError, "its kind is 'point'"),
        ({"contacts__LF__xyz": [1.0, 2.0]}, ContactError, "LF.xyz' is .*expected 3"),
        ({"contacts__LF__rpy": [0.0, np.nan, 0.0]}, ContactError, "LF.rpy' is .*expected 3"),
        ({"armature__names": ["LF_HAA"]}, RobotError, "has 1 entries but .* has 0"),
        (
            {"armature__names": ["LF_HAA"] * 2, "armature__values": [0.1, 0.2]},
            RobotError,
            "joint 'LF_HAA' more than once",
        ),
        ({"reference__names": ["LF_HAA"]}, RobotError, "'reference.names' has 1 entries but"),
        ({"orientation__source": "gps"}, InputError, "unknown orientation.source 'gps'"),
        ({"orientation__timeout": -0.1}, InputError, "'orientation.timeout' is -0.1; expected"),
        ({"orientation__timeout": np.nan}, InputError, "'orientation.timeout' is nan; expected"),
    ],
)
def test_bad_parameters(changes, error, words) -> None:
    with pytest.raises(error, match=words):
        Settings.from_parameters(feet(**changes))


def test_an_imu_is_enough_for_free_accelerations_along_the_axes_of_the_world() -> None:
    given = feet(orientation__source="imu", outputs=["G", "a0"], axes="world")
    settings = Settings.from_parameters(given)
    assert settings.orientation(settings.problem(urdf())).topic == "imu"


def test_the_demo_file_explains_every_parameter() -> None:
    """By its last part: what is not set there is in a comment."""
    text = (CONFIG / "quadruped.yaml").read_text(encoding="utf-8")
    for name in PARAMETERS:
        first, *rest = name.split(".")
        assert re.search(rf"\b{first}:\s", text), name
        assert not rest or re.search(rf"\b{rest[-1]}:\s", text), name
    for name in CONTACT_PARAMETERS:
        assert re.search(rf"\b{name}\b", text), name


@pytest.mark.parametrize(
    ("setting", "value", "parsed"),
    [
        (Setting("", ""), "text", "text"),
        (Setting(False, ""), True, True),
        (Setting(0, ""), np.int64(3), 3),
        (Setting(0.0, ""), 3, 3.0),
        (Setting((), "", holds="names"), ["a", "b"], ("a", "b")),
        (Setting((), "", holds="numbers"), [1, 2.5], (1.0, 2.5)),
        (Setting((), "", holds="whole numbers"), np.array([0, 1]), (0, 1)),
    ],
)
def test_a_value_is_read_in_the_type_of_its_parameter(setting, value, parsed) -> None:
    found = setting.parse("name", value)
    assert (found, type(found)) == (parsed, type(parsed))


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        (Setting("", ""), 3, "is 3; expected text"),
        (Setting(False, ""), 1, "is 1; expected true or false"),
        (Setting(0, ""), 1.0, r"is 1\.0; expected a whole number"),
        (Setting(0.0, ""), True, "is True; expected a number"),
        (Setting(0.0, ""), 10**400, "is 1000*; expected a number"),
        (Setting((), "", holds="names"), "ab", "is 'ab'; expected a list of names"),
        (Setting((), "", holds="numbers"), 1.0, "is 1.0; expected a list of numbers"),
        (Setting((), "", holds="numbers"), [True], "is .True.; expected a list of numbers"),
        (Setting((), "", holds="whole numbers"), [-1], "is .-1.; expected numbers from 0 on"),
        (Setting(0.0, "", 0.0, 1.0, least=0.1), 0.05, r"is 0\.05; expected 0, or 0.1 to 1"),
        (Setting(0.0, "", 0.0, 1.0), np.nan, "is nan; expected 0 to 1"),
        (Setting("a", "", choices=("a", "b")), "c", "unknown name 'c'; name: a, b"),
    ],
)
def test_a_value_of_another_type_or_out_of_range_is_refused(setting, value, words) -> None:
    with pytest.raises(InputError, match=words):
        setting.parse("name", value)
