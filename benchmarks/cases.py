"""The cases: robots with the contacts that may touch.

Nothing is downloaded: most robots are in the pip package ``example-robot-data``, Atlas and the
Shadow hand may lie in a folder beside the repository. A case whose robot is absent says so.
"""

from __future__ import annotations

import importlib.metadata
import importlib.resources
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.mechanisms import fingertips, mounted, points, surfaces
from delassus import Contact, Problem, Robot, Transform
from delassus.errors import unknown
from delassus.model.robot import Base
from delassus.model.spatial import Array
from delassus.samples import random_inputs

POOL = 64
"""Random configurations that calls cycle through."""
BESIDE = Path(__file__).resolve().parents[2] / "shared" / "robots"


class AbsentError(Exception):
    """A robot, package or compiler is not on this machine; the message is the reason."""


@dataclass(frozen=True)
class Case:
    """A robot with its contacts.

    Attributes
    ----------
    name : what ``--robots`` takes.
    label : robot and contacts, as in the tables.
    family : ``"arm"``, ``"quadruped"``, ``"humanoid"`` or ``"hands"``: which targets apply.
    load : returns the problem, or raises :class:`AbsentError`.
    """

    name: str
    label: str
    family: str
    load: Callable[[], Problem]


def pool(problem: Problem, count: int = POOL) -> Array:
    """Return random configurations, (count, nq): joints within ±π."""
    return np.array([random_inputs(problem, seed)["q"] for seed in range(count)])


def example(path: str) -> Path:
    """Return a URDF of example-robot-data."""
    try:
        package = importlib.metadata.distribution("example-robot-data")
    except importlib.metadata.PackageNotFoundError as error:
        raise AbsentError("the Python package example-robot-data is not installed") from error
    file = Path(str(package.locate_file(f"cmeel.prefix/share/example-robot-data/robots/{path}")))
    if not file.is_file():
        raise AbsentError(f"example-robot-data {package.version} has no {path}")
    return file


def beside(name: str) -> Path:
    """Return a URDF of the folder of robots beside the repository."""
    file = BESIDE / f"{name}.urdf"
    if not file.is_file():
        raise AbsentError(f"no ../shared/robots/{name}.urdf beside the repository")
    return file


def read(source: str | Path, base: Base = "floating") -> Robot:
    """Return the robot of a URDF without dampers, which peers do not count."""
    return Robot.from_urdf(source, base, passive=False)


def quadruped() -> Problem:
    """Return the repository's own quadruped on its four feet."""
    path = importlib.resources.files("delassus.robots.built_in") / "quadruped.urdf"
    robot = read(path.read_text(encoding="utf-8"))
    return Problem(robot, points(["LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT"]))


def _panda() -> Problem:
    text = example("panda_description/urdf/panda.urdf").read_text(encoding="utf-8")
    # The arm alone: its fingers do not move.
    text = re.sub(r"<mimic[^>]*/>", "", text).replace('type="prismatic"', 'type="fixed"')
    return Problem(read(text, "fixed"), surfaces(["panda_hand"]))


def _from_example(
    path: str, frames: Sequence[str], kind: str, base: Base = "floating"
) -> Callable[[], Problem]:
    def load() -> Problem:
        contacts = [Contact(frame, frame, kind) for frame in frames]
        return Problem(read(example(path), base), contacts)

    return load


def corners(frame: str) -> list[Contact]:
    """Return four points at the corners of a sole, 0.2 m by 0.1 m."""
    return [
        Contact(f"{frame} {k}", frame, "point", Transform(np.eye(3), np.array([x, y, 0.0])))
        for k, (x, y) in enumerate(((0.1, 0.05), (0.1, -0.05), (-0.1, 0.05), (-0.1, -0.05)))
    ]


TALOS_FEET = ("left_sole_link", "right_sole_link")
ATLAS_FEET = ("l_foot", "r_foot")


def _talos() -> Robot:
    return read(example("talos_data/robots/talos_reduced.urdf"))


def _talos_points() -> Problem:
    return Problem(_talos(), [contact for foot in TALOS_FEET for contact in corners(foot)])


def _talos_hands() -> Problem:
    """Allegro hands on both wrists: feet, four finger tips and the palm of each hand."""
    robot, contacts = _talos(), surfaces(TALOS_FEET)
    for side in ("left", "right"):
        urdf = example(f"allegro_hand_description/urdf/allegro_{side}_hand.urdf")
        hand = read(urdf, "fixed")
        robot = mounted(robot, hand, f"wrist_{side}_ft_tool_link", f"{side} ")
        tips = [name for name in hand.frames if name.endswith("_tip")]
        contacts += points([f"{side} {name}" for name in (*tips, "palm_link")])
    return Problem(robot, contacts)


def _atlas(frames: Iterable[str]) -> Callable[[], Problem]:
    return lambda: Problem(read(beside("atlas_v5")), surfaces([*frames]))


def _atlas_hands() -> Problem:
    """Shadow hands on both wrists: feet and five finger tips of each hand."""
    robot, contacts = read(beside("atlas_v5")), surfaces(ATLAS_FEET)
    hand = read(beside("shadow_hand_right"), "fixed")
    for side in ("l", "r"):
        robot = mounted(robot, hand, f"{side}_hand", f"{side} ")
        contacts += fingertips(f"{side} rh_")
    return Problem(robot, contacts)


CASES = (
    Case("panda", "Panda, hand 6D, m=6", "arm", _panda),
    Case(
        "ur5", "UR5, tool 6D, m=6", "arm",
        _from_example("ur_description/urdf/ur5_robot.urdf", ["ee_link"], "surface", "fixed"),
    ),
    Case("quadruped", "our quadruped, 4 feet, m=12", "quadruped", quadruped),
    Case(
        "solo12", "Solo12, 4 feet, m=12", "quadruped",
        _from_example(
            "solo_description/robots/solo12.urdf",
            ["FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"], "point",
        ),
    ),
    Case(
        "anymal", "ANYmal, 4 feet, m=12", "quadruped",
        _from_example(
            "anymal_b_simple_description/robots/anymal.urdf",
            ["LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT"], "point",
        ),
    ),
    Case(
        "go1", "Go1, 4 feet, m=12", "quadruped",
        _from_example(
            "go1_description/urdf/go1.urdf", ["FL_foot", "FR_foot", "RL_foot", "RR_foot"], "point"
        ),
    ),
    Case(
        "talos", "Talos, 2 feet 6D, m=12", "humanoid",
        lambda: Problem(_talos(), surfaces(TALOS_FEET)),
    ),
    Case("talos24", "Talos, 8 points on feet, m=24", "humanoid", _talos_points),
    Case("atlas", "Atlas, 2 feet 6D, m=12", "humanoid", _atlas(ATLAS_FEET)),
    Case(
        "atlas24", "Atlas, feet and hands 6D, m=24", "humanoid",
        _atlas((*ATLAS_FEET, "l_hand", "r_hand")),
    ),
    Case(
        "g1", "G1, 2 feet 6D, m=12", "humanoid",
        _from_example(
            "g1_description/urdf/g1_29dof_rev_1_0.urdf",
            ["left_ankle_roll_link", "right_ankle_roll_link"], "surface",
        ),
    ),
    Case("talos42", "Talos with two Allegro hands, m=42", "hands", _talos_hands),
    Case("atlas42", "Atlas with two Shadow hands, m=42", "hands", _atlas_hands),
)  # fmt: skip


def chosen(names: str | None, cases: Sequence[Any] = CASES) -> tuple[Any, ...]:
    """Return the cases that a comma-separated list names; all if None.

    Raises
    ------
    ValueError
        For a name that is none of them.
    """
    by_name = {case.name: case for case in cases}
    wanted = list(by_name) if names is None else names.split(",")
    for name in wanted:
        if name not in by_name:
            raise ValueError(unknown("case", name, by_name))
    return tuple(by_name[name] for name in wanted)
