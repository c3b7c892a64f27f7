"""Page of contact forces: complete tables, errors of pyramids, and the picture."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from delassus.contact_forces import ForceStatus
from delassus.contact_forces.machine_code import BUDGET
from delassus.contact_forces.rows import Kind

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "friction.md"


def test_tables_of_contact_kinds_and_statuses() -> None:
    text = PAGE.read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    assert rows == [*get_args(Kind), *(status.name for status in ForceStatus)]
    assert f"at most {BUDGET} steps" in text


_ERRORS = r"^\| (?:pyramid, )?(\d+ sides|convex law) \| ([\d.]+) % \| ([\d.]+) % \|$"


@pytest.mark.needs("scipy")
def test_errors_of_friction_pyramids() -> None:
    from benchmarks.friction import errors

    text = PAGE.read_text("utf-8")
    rows = re.findall(_ERRORS, text, re.MULTILINE)
    found = errors()
    assert sorted(name for name, *_ in rows) == sorted(found)
    for name, median, worst in rows:
        assert 100 * np.median(found[name]) == pytest.approx(float(median), abs=0.051)
        assert 100 * found[name].max() == pytest.approx(float(worst), abs=0.051)
    assert f"in the {len(found['convex law'])} in which a foot slides" in text


@pytest.mark.needs("scipy")
def test_picture_has_forces_inside_cones(tmp_path: Path) -> None:
    from benchmarks.friction import FRICTION, draw, standing_humanoid

    _, points, found = standing_humanoid((-0.9, 0.7))
    forces = found.cone_forces.reshape(-1, 3)
    assert found.status == ForceStatus.SOLVED and points.shape == forces.shape == (8, 3)
    slack = FRICTION * forces[:, 2] - np.hypot(forces[:, 0], forces[:, 1])
    assert (slack >= -1e-6).all() and forces[:, 2].sum() > 600
    assert np.abs(found.accelerations).max() < 1e-6  # it stands
    draw(tmp_path / "friction.png")
    drawn = (tmp_path / "friction.png").read_bytes()
    assert drawn.startswith(b"\x89PNG") and len(drawn) > 10_000
    assert "pictures/friction.png" in PAGE.read_text("utf-8")
    assert (ROOT / "docs" / "pictures" / "friction.png").exists()
