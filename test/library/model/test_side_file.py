"""The YAML file beside a URDF: read, or refused with the place that is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from delassus.errors import RobotError
from delassus.model import LoopKind
from delassus.model.reading import yaml as side_file
from delassus.model.reading.yaml import SideFile, read_side_file


def test_the_form_that_the_module_shows() -> None:
    """The docstring is what users copy from."""
    shown = (side_file.__doc__ or "").split("::\n")[1].split("Every part may")[0]
    read = read_side_file(shown)
    knee, toe = read.loops
    assert (knee.name, knee.kind, knee.predecessor) == ("knee", LoopKind.HINGE, "rod_end")
    assert (knee.successor, knee.axis.tolist()) == ("lever_pin", [0.0, 0.0, 1.0])
    assert (toe.name, toe.kind) == ("toe_rod:heel", LoopKind.POINT)
    (belt,) = read.couplings
    assert belt.ratios == (("motor", -1.0), ("hip", 2.0), ("knee", 2.0))
    assert belt.offset == 0.1
    motors = {"left_motor": 1e-5, "right_motor": 2e-5}
    assert read.rotors == {"knee_transmission": 1e-5, "ankle_differential": motors}
    assert read.chains == {"rod_ball": "XYZ"}
    assert read.independent == ("motor", "hip")
    assert read.motors == ()


def test_path_text_and_mapping_say_the_same(tmp_path: Path) -> None:
    path = tmp_path / "loops.yaml"
    path.write_text("independent: [a, b]\n", encoding="utf-8")
    written = (path.read_text(), "{independent: [a, b]}", "independent: [a, b]")
    for source in (path, str(path), *written, {"independent": ["a", "b"]}):
        assert read_side_file(source).independent == ("a", "b")


def test_couplings_in_one_line() -> None:
    read = read_side_file("couplings: [{name: belt, joints: {a: -1, b: 2}}]")
    assert read.couplings[0].ratios == (("a", -1.0), ("b", 2.0))


def test_error_in_a_file_names_its_path(tmp_path: Path) -> None:
    path = tmp_path / "loops.yaml"
    for text, words in (
        ("loops: [{frames: [a]}]\n", r": loops\[0\]: frames must be two links, got 1"),
        ("loop: []\n", r": unknown key 'loop'; .*"),
        ("[\n1]\n", r" must be a mapping, got a list"),
    ):
        path.write_text(text, encoding="utf-8")
        for source in (path, str(path)):
            with pytest.raises(RobotError, match=f"^the loops file '{path}'{words}$"):
                read_side_file(source)
        with pytest.raises(RobotError, match=f"^the loops file{words}$"):
            read_side_file(text)


@pytest.mark.parametrize(
    ("written", "meant"),
    [("010", 10.0), ("1e-2", 0.01), ("-.5", -0.5), ("2.", 2.0), ("+3", 3.0), ("1.5e+2", 150.0)],
)
def test_numbers_are_decimal(written: str, meant: float) -> None:
    """Not octal, and text in no number, as in YAML 1.1."""
    text = f"couplings:\n- {{name: gear, joints: {{a: -1, b: {written}}}}}\n"
    (coupling,) = read_side_file(text).couplings
    assert dict(coupling.ratios)["b"] == meant


def test_every_part_may_be_missing() -> None:
    read = read_side_file({})
    assert read == SideFile() or vars(read) == vars(SideFile())


@pytest.mark.parametrize("label", [kind.label for kind in LoopKind])
def test_loops_are_called_by_their_kind(label: str) -> None:
    entry: dict[str, Any] = {"frames": ["a", "b"], "type": label}
    if label in ("hinge", "slider", "planar"):
        entry["axis"] = ["1e0", 0, -1]
    (loop,) = read_side_file({"loops": [entry]}).loops
    assert loop.kind.label == label


AB: dict[str, Any] = {"frames": ["a", "b"]}
LOOPS = [
    ("a", r"loops\[1\] must be a mapping, got text"),
    ({"type": "point"}, r"loops\[1\]: frames must be a list of names, got nothing"),
    ({"frames": ["a"], "type": "point"}, r"loops\[1\]: frames must be two links, got 1"),
    ({"frames": ["a", "a"], "type": "point"}, "'a' appears twice"),
    ({"frames": ["a", 3], "type": "point"}, r"frames must be text, got a number"),
    (AB, "loop 'a:b': type must be text, got nothing"),
    ({**AB, "type": "hing"}, "loop 'a:b': unknown type 'hing'; did you mean 'hinge'"),
    ({**AB, "type": "hinge"}, "loop 'a:b': .* 'hinge' needs an axis"),
    ({**AB, "type": "weld", "axis": [1, 0, 0]}, "'weld' has no axis"),
    (
        {**AB, "type": "hinge", "axis": [0, 0, 0]},
        r"the axis must not be zero; give its direction in axis: \[x, y, z\]",
    ),
    ({**AB, "type": "hinge", "axis": [0, 1]}, "axis: expected 3 numbers"),
    ({**AB, "type": "hinge", "axis": "z"}, "axis must be a list of numbers"),
    ({**AB, "typ": "weld"}, r"loops\[1\]: unknown key 'typ'; did you mean"),
    ({**AB, "type": "weld", "name": ""}, r"loops\[1\]: name must be text"),
]
COUPLINGS = [
    ({"joints": {"a": 1}}, r"couplings\[0\]: name must be text, got nothing"),
    ({"name": "c"}, "coupling 'c': joints must be a mapping, got nothing"),
    ({"name": "c", "joints": {"a": 1}, "offset": [1]}, "coupling 'c': offset must be a number"),
    *(
        ({"name": "c", "joints": joints}, words)
        for joints, words in (
            ({}, r"coupling 'c' is between joints \[\]"),
            ({"a": "x"}, "coupling 'c': 'a' must be a number, got text"),
            ({"a": True}, "'a' must be a number, got a truth value"),
            ({"a": 0}, "coupling 'c': the factor of joint 'a' is 0.0"),
            ({"a": float("inf")}, "coupling 'c': 'a': .* must be finite"),
            ({"a": 10**400}, "coupling 'c': 'a' must be a number"),
            ({1: 2}, "'c': joints: a key must be text, got a number"),
        )
    ),
]
OTHERS = [
    ({"lops": []}, "the loops file: unknown key 'lops'; did you mean 'loops'"),
    ({"loops": {}}, "loops must be a list, got a mapping"),
    ({"loops": [[1]]}, "loops.0. must be a mapping, got a list"),
    ({"rotors": 3}, "rotors must be a mapping, got a number"),
    ({"rotors": {"t": 0}}, "rotor of transmission 't': the inertia must be > 0 kg m.2, got 0"),
    ({"joints": {"j": "ball"}}, "joint 'j': unknown type 'ball'"),
    ({"independent": ["a", "a"]}, "independent: 'a' appears twice"),
    ({"independent": "a"}, "independent must be a list of names, got text"),
    ("\n", "the loops file must be a mapping, got nothing"),
    (
        "coupling: [{name: belt, joints: {a: -1, b: 2}}]",
        "^the loops file: unknown key 'coupling'; did you mean",
    ),
    *(
        (f"couplings:\n- {{name: gear, joints: {{a: -1, b: {odd}}}}}\n", "must be a number, got")
        for odd in ("1:30", "1_0", "'1_0'", "0x10", "0o10", "0b1", "' 1'", "yes")
    ),
]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        *(({"loops": [{"frames": ["c", "d"], "type": "weld"}, each]}, w) for each, w in LOOPS),
        *(({"couplings": [each]}, words) for each, words in COUPLINGS),
        *OTHERS,
    ],
)
def test_refused(source: Any, words: str) -> None:
    with pytest.raises(RobotError, match=words):
        read_side_file(source)


@pytest.mark.parametrize(
    "text", ["root:x:0:0:secret\n", "a: [secret\n", "secret", "%secret\n", "- secret\n- [b]\n"]
)
def test_a_file_that_is_none_stays_unread_in_the_message(tmp_path: Path, text: str) -> None:
    """Who may name the file, by a parameter of the node, may not be who may read it."""
    file = tmp_path / "private"
    file.write_text(text)
    with pytest.raises(RobotError, match="must be a mapping, got|is not YAML: ") as caught:
        read_side_file(file)
    assert "secret" not in str(caught.value)


# --- published files --------------------------------------------------------------------------


def published(**changes: Any) -> dict[str, Any]:
    return {
        "closed_loop": [["A1", "B1"], ["A2", "B2"]],
        "type": ["6d", "3D"],
        "name_mot": ["m", "n"],
        "joint_name": ["i", "j", "k"],
        "joint_type": ["SPHERICAL", "UJOINT_XY", "FIXED"],
        **changes,
    }


def test_published_files_are_understood_as_they_are() -> None:
    read = read_side_file(published())
    assert [(loop.predecessor, loop.successor) for loop in read.loops] == [
        ("A1", "B1"),
        ("A2", "B2"),
    ]
    assert [loop.kind for loop in read.loops] == [LoopKind.WELD, LoopKind.POINT]
    assert read.chains == {"i": "XYZ", "j": "XY", "k": ""}
    assert (read.motors, read.independent) == (("m", "n"), ())


def test_published_loops_are_welds_unless_they_say_otherwise() -> None:
    read = read_side_file({"closed_loop": [["A", "B"]]})
    assert [loop.kind for loop in read.loops] == [LoopKind.WELD]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"type": ["6d"]}, "closed_loop has 2 entries, type has 1; they belong together"),
        ({"joint_type": []}, "joint_name has 3 entries, joint_type has 0"),
        ({"type": ["6d", "5d"]}, "unknown type '5d'"),
        ({"joint_type": ["SPHERICAL", "UJOINT_XX", "FIXED"]}, "'j': unknown type 'universal_xx'"),
        ({"name_mot": ["m", "m"]}, "name_mot: 'm' appears twice"),
        ({"closed_loop": ["A", ["A", "B"]]}, r"loops\[0\]: frames must be a list of names"),
        ({"loops": []}, "unknown key 'closed_loop'"),
    ],
)
def test_broken_published_file_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(RobotError, match=words):
        read_side_file(published(**changes))
