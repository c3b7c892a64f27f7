"""Robots for the tests; each function skips the test, with the reason, where its robot is absent.

Nothing is downloaded: the repository's own quadruped is always there, the pip package
``example-robot-data`` is an extra, and a folder of further models may lie beside the repository.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.resources
import re
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared" / "robots"
LEGS = ("LF", "RF", "LH", "RH")
FEET = tuple(f"{leg}_FOOT" for leg in LEGS)
"""Legs of the repository's quadruped and of ANYmal, and the frames of their feet."""


def quadruped() -> Path:
    """Return the quadruped of this repository."""
    return Path(str(importlib.resources.files("delassus.robots.built_in"))) / "quadruped.urdf"


@functools.cache
def unlimited() -> str:
    """Return the same as text, with joints that may be anywhere and jump from there.

    For tests that send any positions; limits are the subject of test_joint_sources.
    """
    text = quadruped().read_text(encoding="utf-8")
    text, count = re.subn(
        r'<limit lower="[^"]*" upper="[^"]*" effort="([^"]*)" velocity="[^"]*"/>',
        r'<limit effort="\1" velocity="0"/>', text,
    )  # fmt: skip
    assert count == 12
    return text


def example(name: str) -> Path:
    """Return a URDF of example-robot-data, e.g. ``"solo_description/robots/solo12.urdf"``."""
    try:
        package = importlib.metadata.distribution("example-robot-data")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the Python package example-robot-data is not installed")
    folder = "cmeel.prefix/share/example-robot-data/robots"
    path = Path(str(package.locate_file(f"{folder}/{name}")))
    if not path.is_file():
        pytest.skip(f"example-robot-data {package.version} has no {name}")
    return path


def panda() -> str:
    """Return the Panda's URDF text, its second finger freed of the first (no mimic)."""
    text = example("panda_description/urdf/panda.urdf").read_text(encoding="utf-8")
    return re.sub(r"<mimic[^>]*/>", "", text)


def solo12() -> Path:
    """Return Solo12: 12 joints."""
    return example("solo_description/robots/solo12.urdf")


def anymal() -> Path:
    """Return ANYmal B: 12 joints."""
    return example("anymal_b_simple_description/robots/anymal.urdf")


def talos() -> Path:
    """Return Talos with its grippers' inner joints fixed: 32 joints."""
    return example("talos_data/robots/talos_reduced.urdf")


def shared(name: str) -> Path:
    """Return ``name.urdf`` of the folder ../shared/robots."""
    path = SHARED / f"{name}.urdf"
    if not path.is_file():
        pytest.skip(f"no ../shared/robots/{name}.urdf beside the repository")
    return path


TEN = {
    "quadruped": (quadruped, "floating", 4),
    "talos": (talos, "floating", 4),
    "solo12": (solo12, "floating", 4),
    "anymal": (anymal, "floating", 4),
    "ur5": (lambda: shared("ur5"), "fixed", 1),
    "panda": (lambda: shared("panda_arm"), "fixed", 1),
    "atlas": (lambda: shared("atlas_v5"), "floating", 4),
    "g1": (lambda: shared("g1_29dof"), "floating", 4),
    "go1": (lambda: shared("go1_unitree"), "floating", 4),
    "anymal_c": (lambda: shared("anymal_c"), "floating", 4),
}
"""Ten robots by name: their file, how their base is held, and limbs that end somewhere."""
