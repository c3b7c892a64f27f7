"""Files that have their name only once they are whole: killed writers, full disks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from little_memory import run
from recordings_support import PARAMETERS, walk, write

from delassus.tables.partial import PartialFile
from delassus_ros.recordings.episode import Task, map_episode

URDF = str(Path(__file__).parents[3] / "delassus" / "robots" / "built_in" / "quadruped.urdf")
WRITER = """
import sys
from pathlib import Path
from delassus.tables.partial import PartialFile
partial = PartialFile(Path(sys.argv[1]))
partial.file.write(b"half")
partial.file.flush()
print("begun", flush=True)
sys.stdin.read()
"""


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_a_file_has_its_name_once_it_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    target.write_text("before")
    partial = PartialFile(target)
    partial.file.write(b"after")
    assert names(tmp_path) == ["out.txt", "out.txt.partial"] and target.read_text() == "before"
    partial.finish()
    assert names(tmp_path) == ["out.txt"] and target.read_text() == "after"
    partial = PartialFile(target)
    partial.discard()
    assert names(tmp_path) == ["out.txt"] and target.read_text() == "after"


def test_what_a_killed_writer_left_is_removed_and_that_of_a_living_one_is_not(
    tmp_path: Path,
) -> None:
    target = tmp_path / "out.txt"
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(target)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as writer:  # fmt: skip
        try:
            assert writer.stdout is not None and writer.stdout.readline() == "begun\n"
            partial = PartialFile(target)
            partial.file.write(b"of this one")
            assert len(names(tmp_path)) == 2
            partial.finish()
            assert (tmp_path / "out.txt.partial").read_text() == "half"
        finally:
            writer.kill()
            writer.wait()
    assert names(tmp_path) == ["out.txt", "out.txt.partial"]
    partial = PartialFile(target)
    partial.file.write(b"new")
    partial.finish()
    assert names(tmp_path) == ["out.txt"] and target.read_text() == "new"


def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path: Path) -> None:
    path, out = write(tmp_path / "run.mcap", walk(20)), tmp_path / "out"
    out.mkdir()
    for end in ("parquet", "mcap", "json"):
        (out / f"run.{end}.partial").write_text("half")
    assert map_episode(path, Task(PARAMETERS, str(out))).matrices == 20
    assert names(out) == ["run.json", "run.mcap", "run.parquet"]


@pytest.mark.parametrize("most", [500, 5_000, 15_000])
def test_a_full_disk_is_said_and_leaves_no_half_file(tmp_path: Path, most: int) -> None:
    """Files may not grow beyond a size [bytes], which fails as a full disk does."""
    path, out = write(tmp_path / "run.mcap", walk(200)), tmp_path / "out"
    table = ["trajectory", URDF, "--contact", "LF_FOOT", "--data", str(tmp_path / "q.npy")]
    np.save(tmp_path / "q.npy", np.random.default_rng(3).normal(size=(3000, 12)))
    done = run(
        f"""
        import resource, sys
        import delassus.tables.trajectory, pyarrow.parquet
        from delassus_ros.verbs.main import main
        from delassus_ros.recordings.episode import Task, map_episode
        resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, {most}))
        print(map_episode({str(path)!r}, Task({PARAMETERS!r}, {str(out)!r})).error, flush=True)
        sys.exit(main({[*table, "-o", str(out / "table.parquet")]!r}))
        """,
    )
    assert done.stdout == f"{out} cannot be written to: File too large\n", done.stderr
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last == f"{out / 'table.parquet'} cannot be written: File too large"
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr
    assert not [name for name in names(out) if ".partial" in name or name.endswith(".json")]


def test_processes_with_limits_write_no_bytecode(tmp_path: Path) -> None:
    """Below a limit of the size of files it would be cut, and no import would work any more."""
    (tmp_path / "module.py").write_text("x = 1\n")
    done = run(f"import sys; sys.path.append({str(tmp_path)!r}); import module; print(module.x)")
    assert done.stdout == "1\n" and names(tmp_path) == ["module.py"]


@pytest.mark.parametrize("place", ["file", "file/below", "/proc/out", "link"])
def test_an_output_that_is_no_folder(tmp_path: Path, place: str) -> None:
    path = write(tmp_path / "run.mcap", walk(3))
    (tmp_path / "file").write_text("no folder")
    os.symlink(tmp_path / "file", tmp_path / "link")
    episode = map_episode(path, Task(PARAMETERS, str(tmp_path / place)))
    assert any(words in episode.error for words in ("cannot be written to", "is no folder"))
    assert str(tmp_path / place) in episode.error and (tmp_path / "file").read_text()
