"""`delassus config`: what it proposes is what the node takes, unchanged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import robots
import yaml
from cli_support import output
from urdf_text import without_geometry

from delassus_ros import DelassusSolver
from delassus_ros.node.settings import PARAMETERS, Settings


def parameters(text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def walk(tree: dict[str, Any], prefix: str) -> None:
        for key, value in tree.items():
            if isinstance(value, dict):
                walk(value, f"{prefix}{key}.")
            else:
                found[f"{prefix}{key}"] = value

    walk(yaml.safe_load(text)["/**"]["ros__parameters"], "")
    return found


@pytest.mark.parametrize("name", robots.TEN)
def test_what_is_proposed_starts_unchanged(name: str, capsys) -> None:
    load, base, least = robots.TEN[name]
    file = load()
    text = output(capsys, "config", str(file), "--base", base)
    values = parameters(text)
    of_contacts = tuple(f"contacts.{each}." for each in values["contacts.names"])
    assert all(key in PARAMETERS or key.startswith(of_contacts) for key in values)
    settings = Settings.from_parameters(values)
    assert settings.algorithm == "auto" and len(settings.contacts) >= least
    problem = settings.problem(file.read_bytes())
    G = DelassusSolver(problem, "ltl", cache=False).solve(problem.robot.neutral() + 0.1).matrix
    assert np.isfinite(G).all() and len(G) == problem.contacts.rows


def test_kinds_follow_shapes(tmp_path: Path, capsys) -> None:
    kinds = {"LF_FOOT": "<sphere radius='0.02'/>", "RF_FOOT": "<box size='1 1 1'/>"}
    text = without_geometry(robots.quadruped().read_text(encoding="utf-8"))
    for link, shape in kinds.items():
        collision = f"<collision><geometry>{shape}</geometry></collision>"
        for head in (f'<link name="{link}"/>', f'<link name="{link}">'):
            body = f'<link name="{link}">{collision}' + ("</link>" if head.endswith("/>") else "")
            text = text.replace(head, body)
    file = tmp_path / "robot.urdf"
    file.write_text(text, encoding="utf-8")
    values = parameters(output(capsys, "config", str(file), "--lock", "RH_KFE=-1.2"))
    assert values["contacts.LF_FOOT.kind"] == "point"
    assert values["contacts.RF_FOOT.kind"] == "surface"
    assert values["lock.names"] == ["RH_KFE"] and values["lock.values"] == [-1.2]
    assert Settings.from_parameters(values).problem(file.read_bytes()).robot.nq == 11
