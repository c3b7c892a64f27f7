"""The example that mines recorded walks: what it finds is what the simulator knows."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from mining.mine import SHORTEST, Walk, main, mine
from mining.walks import friction, record
from pyarrow import parquet

from delassus import Robot
from delassus.robots.built_in import demo_urdf
from delassus_ros.recordings.episode import Task, map_episode
from delassus_ros.verbs.parameter_files import parameters_of

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
SECONDS = 1.6
STRETCHED, WET, DRY = 5, 3, 2
"""A walk with stretched knees, one on a wet floor, and one with neither."""


@pytest.fixture(name="folder", scope="module")
def make_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with three walks, and their tables in out/."""
    folder = tmp_path_factory.mktemp("walks")
    parameters = parameters_of(str(EXAMPLES / "mining" / "node.yaml"))
    columns = ("matrix", "effective_mass", "impulse")
    task = Task(parameters, str(folder / "out"), columns=columns, formats=("parquet",))
    for number in (STRETCHED, WET, DRY):
        episode = map_episode(record(number, folder, SECONDS), task)
        assert (episode.error, episode.matrices) == ("", round(SECONDS / 0.002)), episode
    return folder


def test_slips_are_those_of_the_simulator(folder: Path) -> None:
    """On the wet floor; the simulator's filter waits before and after, so ends may differ."""
    assert friction(WET) < friction(DRY)
    slid = {}
    for number in (WET, DRY):
        walk = Walk.read(folder / "out" / f"walk{number:03d}.parquet")
        known = np.load(folder / f"walk{number:03d}.npz")["slides"]
        slips = list(walk.slips())
        for event in slips:
            foot = walk.contacts.index(event.what)
            near = (walk.time > event.begin - 0.03) & (walk.time < event.end + 0.03)
            assert known[near, foot].any(), event
        slid[number] = sum(event.end - event.begin for event in slips)
    assert slid[WET] > 10 * SHORTEST and slid[WET] > 2.0 * slid[DRY]


def test_the_worst_conditioned_stances_are_those_with_stretched_knees(folder: Path) -> None:
    tables = sorted((folder / "out").glob("*.parquet"))
    _, stances, limit = mine(tables)
    worst = max(stances, key=lambda event: event.worst)
    assert worst.walk == f"walk{STRETCHED:03d}" and worst.worst > limit
    # When the robot has risen, before it sinks again.
    assert 0.4 < worst.begin < 0.9 and worst.what == "LF+RF+LH+RH"


def test_a_table_along_other_axes_is_refused(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = parquet.read_table(folder / "out" / f"walk{DRY:03d}.parquet")
    about = json.loads(table.schema.metadata[b"delassus"]) | {"axes": "contact"}
    path = tmp_path / "turned.parquet"
    parquet.write_table(table.replace_schema_metadata({"delassus": json.dumps(about)}), path)
    monkeypatch.setattr(sys, "argv", ["mine", str(path)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "turned.parquet" in said and "the axes 'contact'; expected 'world'" in said


def test_forces_are_estimated_without_contact_sensors(folder: Path, tmp_path: Path) -> None:
    """From efforts, velocities and odometry: while it stands they carry its weight."""
    parameters = parameters_of(str(EXAMPLES / "mining" / "node.yaml"))
    columns = ("matrix", "estimated_force")
    task = Task(
        {**parameters, "contacts.source": "force"}, str(tmp_path), columns=columns,
        formats=("parquet",),
    )  # fmt: skip
    episode = map_episode(folder / f"walk{DRY:03d}.mcap", task)
    assert episode.error == "" and episode.matrices > 0.9 * SECONDS / 0.002, episode
    table = parquet.read_table(tmp_path / f"walk{DRY:03d}.parquet")
    wrenches = np.array(table["estimated_force"].to_pylist()).reshape(-1, 4, 6)
    stands = (table["timestamp"].to_numpy() > 0.1) & (table["timestamp"].to_numpy() < 0.2)
    bodies = Robot.from_urdf(demo_urdf().encode()).bodies
    weight = 9.81 * sum(body.inertia.mass for body in bodies)
    np.testing.assert_allclose(wrenches[stands, :, 2].sum(axis=1).mean(), weight, rtol=0.02)
