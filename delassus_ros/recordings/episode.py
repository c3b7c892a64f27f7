"""One recording from beginning to end, as a task that any engine can run anywhere.

What it writes for a recording depends on that alone, and has its name only once it is whole: a
task may be run again, by another worker after one has died, and what is finished is not done
twice.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from delassus_ros.errors import DelassusError, InputError, unknown
from delassus_ros.node.reasons import Validity
from delassus_ros.node.settings import Operation, Settings
from delassus_ros.recordings.mcap_file import RecordingError
from delassus_ros.recordings.outputs import McapOutput, Output, ParquetOutput
from delassus_ros.recordings.recording import Recording
from delassus_ros.recordings.replay import Replay, description_of
from delassus_ros.recordings.tables import partial
from delassus_ros.version import __version__

FORMATS = ("parquet", "mcap")


@dataclass(frozen=True)
class Task:
    """What is done with each recording; plain data, which engines carry to their workers.

    Attributes
    ----------
    parameters : of the node, by full name.
    out : folder that is written to.
    description : URDF; empty for that of the parameters, or else the recording's own, on its topic
        /robot_description.
    columns : of the tables.
    formats : of :data:`FORMATS`.
    remap : full name per topic of the node that is called otherwise.
    again : do it even if it is finished.
    """

    parameters: Mapping[str, Any]
    out: str
    description: str = ""
    columns: tuple[str, ...] = ("matrix", "effective_mass")
    formats: tuple[str, ...] = FORMATS
    remap: Mapping[str, str] = field(default_factory=dict)
    again: bool = False

    def __post_init__(self) -> None:
        for name in self.formats:
            if name not in FORMATS:
                raise InputError(unknown("format", name, FORMATS))

    @property
    def settings(self) -> Settings:
        """Settings of the node, with the description that is given.

        Raises
        ------
        DelassusError
            For what :meth:`Settings.from_parameters` refuses.
        """
        given = {"robot_description": self.description} if self.description else {}
        return Settings.from_parameters({**self.parameters, **given})

    def description_for(self, recording: Recording) -> str:
        """Return the robot's description: that of the task, else the recording's own."""
        return self.settings.robot_description or description_of(recording, self.remap)

    def digest(self, recording: Path, number: int) -> str:
        """Return what tells whether something else would be written, as text.

        Parameters
        ----------
        number : of the recording, which stands in its table.
        """
        said = {k: v for k, v in asdict(self).items() if k not in ("again", "out")}
        files = sorted(recording.glob("*")) if recording.is_dir() else [recording]
        states = [(f.name, f.stat().st_size, f.stat().st_mtime_ns) for f in files]
        text = json.dumps([__version__, number, said, states], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass
class Episode:
    """What became of a recording.

    Attributes
    ----------
    recording : path.
    files : that were written.
    matrices, invalid : numbers of answers with a matrix, and without.
    first_reason : words of the first answer without one.
    seconds : of the recording.
    took : seconds of this machine: in all, and those of reading, of answering (gates, matrix,
        message), of the kernel alone, and of writing.
    damage : what of the recording could not be read.
    warnings : first words of each kind, and how often.
    error : why it was not done to its end; empty if it was.
    skipped : whether it was finished before.
    """

    recording: str
    files: list[str] = field(default_factory=list)
    matrices: int = 0
    invalid: int = 0
    first_reason: str = ""
    seconds: float = 0.0
    took: dict[str, float] = field(default_factory=dict)
    damage: list[str] = field(default_factory=list)
    warnings: dict[str, tuple[str, int]] = field(default_factory=dict)
    error: str = ""
    skipped: bool = False


def map_episode(
    recording: str | Path,
    task: Task,
    number: int = 0,
    progress: Callable[[Recording], object] = lambda _: None,
) -> Episode:
    """Do a task for one recording; what is wrong with it is said in the result.

    Parameters
    ----------
    number : of the recording among others, for the tables.
    progress : is called now and then.

    Raises
    ------
    OSError
        If `out` cannot be written to.
    """
    path = Path(recording)
    base = Path(task.out) / path.stem
    report = base.with_name(f"{base.name}.json")
    digest = ""
    try:
        if path.exists():
            digest = task.digest(path, number)
            if not task.again and (before := _finished(report, digest)) is not None:
                return before
        episode = _replayed(path, base, task, number, progress)
    except DelassusError as error:
        return Episode(str(path), error=str(error))
    _write_report(report, digest, episode)
    return episode


def _replayed(
    path: Path, base: Path, task: Task, number: int, progress: Callable[[Recording], object]
) -> Episode:
    recording = Recording(path)
    replay = Replay(
        recording, task.settings, Operation.from_parameters(task.parameters),
        task.description_for(recording), task.remap,
    )  # fmt: skip
    base.parent.mkdir(parents=True, exist_ok=True)
    episode = Episode(str(path))
    outputs: list[Output] = []
    began = perf_counter()
    writing = 0.0
    first = last = None
    pipeline = replay.computation.pipeline
    try:
        if "parquet" in task.formats:
            target = base.with_name(f"{base.name}.parquet")
            outputs.append(ParquetOutput(target, replay.computation, task.columns, number))
            episode.files.append(str(target))
        if "mcap" in task.formats:
            target = base.with_name(f"{base.name}.mcap")
            if target.resolve() == path.resolve():
                raise RecordingError(f"{path}: its own folder cannot be that of the output")
            outputs.append(McapOutput(target, replay.computation))
            episode.files.append(str(target))
        try:
            for count, answer in enumerate(replay.answers()):
                start = perf_counter()
                first = answer.time if first is None else first
                last = answer.time
                if pipeline.last.validity is not Validity.INVALID:
                    episode.matrices += 1
                else:
                    episode.invalid += 1
                    episode.first_reason = episode.first_reason or pipeline.last.text
                for output in outputs:
                    output.write(answer)
                if count % 1000 == 0:
                    progress(recording)
                writing += perf_counter() - start
        except RecordingError as error:
            # What is before it is kept.
            episode.error = str(error)
        for output in outputs:
            output.close()
        outputs = []
    finally:
        for output in outputs:
            output.discard()
    total = perf_counter() - began
    episode.took = {
        "in all": total, "reading": total - replay.answering - writing,
        "answering": replay.answering - replay.computing, "computing": replay.computing,
        "writing": writing,
    }  # fmt: skip
    episode.seconds = 0.0 if first is None or last is None else 1e-9 * (last - first)
    episode.damage, episode.warnings = list(recording.damage), replay.warnings
    return episode


def _finished(report: Path, digest: str) -> Episode | None:
    """Return what became of a recording if it is finished and nothing has changed since."""
    try:
        found = json.loads(report.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    if found.pop("digest", None) != digest or found.get("error"):
        return None
    if not all(Path(file).is_file() for file in found["files"]):
        return None
    found["warnings"] = {kind: tuple(said) for kind, said in found["warnings"].items()}
    return Episode(**{**found, "skipped": True})


def _write_report(report: Path, digest: str, episode: Episode) -> None:
    """Write what tells later that it is finished; last of all."""
    text = json.dumps({"digest": digest, **asdict(episode)}, indent=1)
    partial(report).write_text(text, encoding="utf-8")
    os.replace(partial(report), report)
