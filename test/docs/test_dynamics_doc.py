"""The page about dynamics: what it shows runs, and its table is complete."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from delassus_ros.dynamics.methods import FORWARD, INVERSE
from delassus_ros.scalars.ports import Status

PAGE = Path(__file__).resolve().parents[2] / "docs" / "dynamics.md"


def test_what_the_page_shows_runs() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(block, str(PAGE), "exec"), names)
    torques = names["torques"]
    np.testing.assert_allclose(names["again"], names["accelerations"], atol=1e-10)
    np.testing.assert_allclose(names["C"] @ names["rates"] + names["g"], torques, rtol=1e-11)
    np.testing.assert_allclose(names["Y"] @ names["pi"], torques, rtol=1e-11)
    found, pi = names["found"], names["pi"]
    of_base = names["Y"][:, list(found.columns)] @ (found.B @ pi)
    np.testing.assert_allclose(of_base, torques, rtol=1e-9, atol=1e-9)
    assert names["status"] is Status.OK
    np.testing.assert_array_equal(names["bound"].result, torques)


def test_the_table_has_every_method() -> None:
    rows = re.findall(r"^\| (?:`\w+`)? ?\| `(\w+)` \|", PAGE.read_text("utf-8"), re.MULTILINE)
    assert rows == [*INVERSE, *FORWARD]
