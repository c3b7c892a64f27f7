"""Many recordings at once: nothing lost and nothing twice, also where workers die."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from pyarrow import parquet
from recordings_support import PARAMETERS, description, walk, write

from delassus.errors import InputError
from delassus.tables.matrix_tables import episode_of
from delassus_ros.recordings import engines
from delassus_ros.recordings.engines import map_recordings
from delassus_ros.recordings.episode import Episode, Task, map_episode

COUNT, STEPS = 6, 40


def deadly(recording: str, task: Task) -> Episode:
    """Do the task; the worker that begins the third for the first time is killed."""
    mark = Path(task.out).with_name("killed")
    if recording.endswith("walk2.mcap") and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return map_episode(recording, task)


def deadly_once_and_for_all(recording: str, task: Task) -> Episode:
    """Do the task; whoever begins the second is killed."""
    if recording.endswith("walk1.mcap"):
        os.kill(os.getpid(), signal.SIGKILL)
    return map_episode(recording, task)


@pytest.fixture(name="recordings")
def make_recordings(tmp_path: Path) -> list[Path]:
    return [write(tmp_path / f"walk{k}.mcap", walk(STEPS + k)) for k in range(COUNT)]


@pytest.fixture(name="surroundings", autouse=True)
def make_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers find what this process finds."""
    here = str(Path(__file__).parent)
    support = str(Path(__file__).parents[2])
    path = os.pathsep.join([here, support, os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path)


def test_killed_worker_loses_and_repeats_no_recording(
    recordings: list[Path], tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(engines, "map_episode", deadly)
    out = tmp_path / "out"
    seen: list[Episode] = []
    found = map_recordings(recordings, Task(PARAMETERS, str(out)), 2, done=seen.append)
    assert (tmp_path / "killed").exists()
    assert [each.recording for each in found] == [str(path) for path in recordings]
    assert sorted(each.recording for each in seen) == sorted(str(path) for path in recordings)
    assert [(each.error, each.matrices) for each in found] == [
        ("", STEPS + k) for k in range(COUNT)
    ]
    for k, path in enumerate(recordings):
        table = parquet.read_table(out / f"{path.stem}.parquet")
        assert set(table["episode_index"].to_pylist()) == {episode_of(path.stem)}
        assert table["frame_index"].to_pylist() == list(range(STEPS + k))
    # Whoever began the recording of the killed worker again has removed what that left.
    whole = {f"{path.stem}.{end}" for path in recordings for end in ("json", "mcap", "parquet")}
    assert {file.name for file in out.iterdir()} == whole


def test_what_fails_is_said_and_the_others_go_on(recordings: list[Path], tmp_path: Path) -> None:
    write(recordings[1], [description()])
    recordings[3].write_text("no recording")
    recordings.append(tmp_path / "none.mcap")
    task = Task(PARAMETERS, str(tmp_path / "out"))
    found = map_recordings(recordings, task, workers=2)
    errors = [each.error for each in found]
    assert "no topic /joint_states" in errors[1] and "not an MCAP file" in errors[3]
    assert "there is no recording" in errors[6]
    assert [k for k, error in enumerate(errors) if not error] == [0, 2, 4, 5]
    # Once more: only those that failed are begun.
    write(recordings[1], walk(10))
    again = map_recordings(recordings, task, workers=2)
    assert [each.skipped for each in again] == [True, False, True, False, True, True, False]
    assert again[1].matrices == 10


def test_a_table_does_not_depend_on_the_others(recordings: list[Path], tmp_path) -> None:
    """New recordings, before or after those of the last call, change nothing of theirs."""
    task = Task(PARAMETERS, str(tmp_path / "out"), formats=("parquet",))
    map_recordings(recordings[3:], task, workers=1)
    found = map_recordings(recordings[2:], task, workers=1)
    assert [each.skipped for each in found] == [False, True, True, True]
    out = tmp_path / "out"
    tables = [parquet.read_table(out / f"{path.stem}.parquet") for path in recordings[2:]]
    numbers = [set(table["episode_index"].to_pylist()) for table in tables]
    assert numbers == [{episode_of(path.stem)} for path in recordings[2:]]
    assert len(set.union(*numbers)) == 4 and all(0 <= n < 2**53 for n in set.union(*numbers))


def test_only_the_recording_that_kills_is_given_up(
    recordings: list[Path], tmp_path: Path, monkeypatch
) -> None:
    """Those whose workers ended beside it are not, and a worker may end while results are read."""
    monkeypatch.setattr(engines, "map_episode", deadly_once_and_for_all)
    task = Task(PARAMETERS, str(tmp_path / "out"), formats=("parquet",))
    # The other worker ends while a result is looked at.
    found = map_recordings(
        recordings[:4], task, workers=2, retries=1, done=lambda _: time.sleep(0.3)
    )
    errors = [each.error for each in found]
    assert errors == ["", "its worker died 2 times", "", ""]


def test_workers_elsewhere_find_relative_paths(
    recordings: list[Path], tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(engines, "map_episode", elsewhere)
    found = map_recordings([Path("walk0.mcap")], Task(PARAMETERS, "out"), workers=1)
    assert (found[0].error, found[0].recording) == ("", "walk0.mcap")
    assert (tmp_path / "out" / "walk0.parquet").is_file()


def elsewhere(recording: str, task: Task) -> Episode:
    os.chdir("/")
    return map_episode(recording, task)


def test_a_worker_that_dies_each_time_is_given_up(
    recordings: list[Path], tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(engines, "map_episode", always_deadly)
    task = Task(PARAMETERS, str(tmp_path / "out"))
    found = map_recordings(recordings[:2], task, workers=1, retries=1)
    assert [each.error for each in found] == ["its worker died 2 times"] * 2


def always_deadly(recording: str, task: Task) -> Episode:
    os.kill(os.getpid(), signal.SIGKILL)
    return map_episode(recording, task)


def test_recordings_of_one_name_are_refused(recordings: list[Path], tmp_path: Path) -> None:
    task = Task(PARAMETERS, str(tmp_path / "out"))
    twin = tmp_path / "other" / recordings[0].name
    with pytest.raises(InputError, match="several recordings are called 'walk0'"):
        map_recordings([*recordings, twin], task)
