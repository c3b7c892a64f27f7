"""Page of closed loops: both forms close the same robot, and the table of types is complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from linkages import COUPLER, CRANK, GROUND, REFERENCE, ROCKER, closed_four_bar
from urdf_text import link

from delassus import Closure, Robot
from delassus.model import LoopKind
from delassus.model.reading import elements as constraint_elements
from delassus.model.reading import yaml as side_file
from delassus.model.reading.yaml import read_side_file

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "tutorials" / "closed_loops.md").read_text(encoding="utf-8")
YAML = re.findall(r"```yaml\n(loops:.*?)```", PAGE, re.DOTALL)
(XML,) = re.findall(r"```xml\n(.*?)```", PAGE, re.DOTALL)
GEARED = {f"{name}_joint": value for name, value in REFERENCE.items()} | {"rotor_joint": 4.8}


def joint(child: str, parent: str, at: float, kind: str = "continuous", inside: str = "") -> str:
    return (
        f'<joint name="{child}_joint" type="{kind}"><parent link="{parent}"/>'
        f'<child link="{child}"/><origin xyz="{at} 0 0"/><axis xyz="0 0 1"/>{inside}</joint>'
    )


def four_bar(closing: str = "", loops: str | None = None, mimic: str = "") -> Robot:
    """Return the page's robot: crank, coupler, rocker and a rotor, with what closes them."""
    text = "".join(
        [
            link("base"), link("crank"), link("coupler"), link("rocker"), link("rotor"),
            link("coupler_pin", ""), link("rocker_pin", ""),
            joint("crank", "base", 0.0), joint("coupler", "crank", CRANK),
            joint("rocker", "base", GROUND), joint("rotor", "base", 0.2, inside=mimic),
            joint("coupler_pin", "coupler", COUPLER, "fixed"),
            joint("rocker_pin", "rocker", ROCKER, "fixed"), closing,
        ]
    )  # fmt: skip
    return Robot.from_urdf(f'<robot name="page">{text}</robot>', "fixed", loops=loops)


def follows(robot: Robot, crank: float) -> dict[str, float]:
    """Return the positions that follow from the crank's."""
    closed = Closure(robot, reference=GEARED).solve({"crank_joint": crank})
    assert closed.status.is_valid
    return dict(zip(robot.joint_names, closed.q.tolist(), strict=True))


@pytest.mark.parametrize("robot", [four_bar(XML), four_bar(loops=YAML[1])], ids=["URDF+", "YAML"])
def test_urdf_and_yaml_close_the_same_robot(robot: Robot) -> None:
    (loop,) = robot.loops
    assert (loop.name, loop.kind) == ("four_bar", LoopKind.HINGE)
    found = follows(robot, 1.1)
    _, coupler, rocker = closed_four_bar(1.1)
    assert found["coupler_joint"] == pytest.approx(coupler, abs=1e-9)
    assert found["rocker_joint"] == pytest.approx(rocker, abs=1e-9)
    assert found["rotor_joint"] == pytest.approx(6 * 1.1), "ratio x crank - rotor = 0"


def test_negative_ratio_reverses_rotation() -> None:
    assert follows(four_bar(XML.replace('"6"', '"-6"')), 1.1)["rotor_joint"] == pytest.approx(-6.6)


def test_mimic_is_the_coupling_of_the_page() -> None:
    (mimic,) = re.findall(r"`(<mimic [^`]*/>)` in joint b is the coupling 2·a − b \+ 0\.1", PAGE)
    (loop, _) = XML.split("<coupling")
    found = follows(four_bar(loop, mimic=mimic.replace('"a"', '"crank_joint"')), 1.1)
    assert found["rotor_joint"] == pytest.approx(2 * 1.1 + 0.1)


def test_form_of_the_file_is_that_of_the_reader() -> None:
    shown = (side_file.__doc__ or "").split("::\n")[1].split("Every part may")[0]
    lines = [line[4:] for line in shown.strip("\n").splitlines()]
    assert YAML[0].splitlines() == lines
    side = read_side_file(YAML[0])
    assert side.independent == ("motor", "hip")
    assert [loop.name for loop in side.loops][0] == "knee"
    assert dict(side.couplings[0].ratios) == {"motor": -1.0, "hip": 2.0, "knee": 2.0}


def test_table_of_loop_types() -> None:
    rows = re.findall(r"^\| (`.*) \| (`.*) \| (\d) \| (.*) \| .* \|$", PAGE, re.MULTILINE)
    yaml, urdf = {}, {}
    for ours, theirs, count, axis in rows:
        first, *_ = names = re.findall(r"`(\w+)`", ours)
        kind = side_file.LOOP_TYPES[first]
        yaml |= dict.fromkeys(names, kind)
        urdf |= dict.fromkeys(re.findall(r"`(\w+)`", theirs), kind)
        assert kind.rows == int(count)
        assert (kind in side_file._WITH_AXIS) is (axis != "–")
    assert yaml == side_file.LOOP_TYPES
    assert urdf == constraint_elements.LOOP_TYPES
