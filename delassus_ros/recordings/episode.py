"""Task for a whole recording, which any engine can run on any machine.

The outputs of a recording depend on the recording and the task alone, and have their names only
once they are whole: a task may be run again, e.g. by another worker after one has died, and
finished recordings are not computed twice.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from delassus.errors import DelassusError, InputError, unknown
from delassus.model.reading.xml import read_regular_file
from delassus.tables.partial import PartialFile
from delassus.version import __version__
from delassus_ros.inputs.findings import Validity
from delassus_ros.node.parameters import Operation, Settings
from delassus_ros.recordings.contents import description_of
from delassus_ros.recordings.outputs import COLUMNS, McapOutput, Output, ParquetOutput, is_output
from delassus_ros.recordings.recorded_file import RecordingError
from delassus_ros.recordings.recording import Recording, is_bag, name_of
from delassus_ros.recordings.replay import Replay
from delassus_ros.recordings.sqlite_file import logs_of

FORMATS = ("parquet", "mcap")
_LARGEST_REPORT = 1 << 24
"""Size of the largest report of an earlier run that is read [bytes]."""


@dataclass(frozen=True)
class Task:
    """Settings of a run over recordings: plain data, which engines send to their workers.

    Attributes
    ----------
    parameters : parameters of the node, by full name.
    out : folder of the outputs.
    description : URDF; if empty, that of the parameters, or else that of the recording's topic
        /robot_description.
    columns : columns of the tables, of :data:`~delassus_ros.recordings.outputs.COLUMNS`.
    formats : formats of the outputs, of :data:`FORMATS`.
    remap : full names of topics that differ from the node's.
    again : compute also finished recordings.
    degrees : whether angles of joint states, and their rates, are in degrees.

    Raises
    ------
    InputError
        If a format or a column does not exist.
    """

    parameters: Mapping[str, Any]
    out: str
    description: str = ""
    columns: tuple[str, ...] = ("matrix", "effective_mass")
    formats: tuple[str, ...] = FORMATS
    remap: Mapping[str, str] = field(default_factory=dict)
    again: bool = False
    degrees: bool = False

    def __post_init__(self) -> None:
        for kind, names, known in (
            ("format", self.formats, FORMATS), ("column", self.columns, COLUMNS),
        ):  # fmt: skip
            for name in names:
                if name not in known:
                    raise InputError(unknown(kind, name, known))

    @property
    def settings(self) -> Settings:
        """Settings of the node, with the description of the task.

        Raises
        ------
        DelassusError
            For what :meth:`Settings.from_parameters` refuses.
        """
        described = {"robot_description": self.description} if self.description else {}
        return Settings.from_parameters({**self.parameters, **described})

    def description_for(self, recording: Recording) -> str:
        """Return the robot description of the task, or else of the recording."""
        return self.settings.robot_description or description_of(recording, self.remap)

    def digest(self, recording: Path) -> str:
        """Return a digest of all settings on which the outputs depend."""
        said = {k: v for k, v in asdict(self).items() if k not in ("again", "out")}
        files = [recording, *logs_of(recording)]
        if recording.is_dir():
            files = sorted(recording.glob("*"))
        states = [(f.name, f.stat().st_size, f.stat().st_mtime_ns) for f in files]
        text = json.dumps([__version__, said, states], sort_keys=True, default=_in_full)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass
class Episode:
    """Outcome of a recording.

    Attributes
    ----------
    recording : path.
    files : files that were written.
    sizes : sizes of these files [bytes].
    matrices, invalid : number of answers with a matrix, and without.
    empty : number of matrices without rows, as no known contact was active.
    first_reason : text of the first answer without a matrix.
    seconds : duration of the recording [s].
    took : time on this machine [s]: in all, and for reading, answering (gates, matrix, message),
        the kernel alone, and writing.
    damage : parts of the recording that could not be read.
    warnings : first text and number of warnings, by kind.
    error : why the task did not reach the end of the recording; empty if it did.
    skipped : whether the recording was finished before.
    """

    recording: str
    files: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    matrices: int = 0
    invalid: int = 0
    empty: int = 0
    first_reason: str = ""
    seconds: float = 0.0
    took: dict[str, float] = field(default_factory=dict)
    damage: list[str] = field(default_factory=list)
    warnings: dict[str, tuple[str, int]] = field(default_factory=dict)
    error: str = ""
    skipped: bool = False

    @property
    def remarks(self) -> list[str]:
        """Texts about damage and warnings."""
        counted = (f"{count} times: {words}" for words, count in self.warnings.values())
        return [*(f"damage: {part}" for part in self.damage), *counted]


def map_episode(
    recording: str | Path,
    task: Task,
    progress: Callable[[Recording], object] = lambda _: None,
) -> Episode:
    """Do a task for one recording; the result has its faults.

    Parameters
    ----------
    progress : called from time to time.
    """
    path, folder = Path(recording), Path(task.out)
    report = folder / f"{name_of(path)}.json"
    try:
        opened = Recording(path)
        before = _report(report)
        _check_folder(folder, opened, task.formats, before)
    except RecordingError as error:
        return Episode(str(path), error=str(error))
    digest = task.digest(path)
    if not task.again and before.pop("digest", None) == digest and _is_finished(before):
        before["warnings"] = {kind: tuple(said) for kind, said in before["warnings"].items()}
        return Episode(**{**before, "skipped": True})
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            episode = _replayed(opened, folder, task, progress)
        except DelassusError as error:
            episode = Episode(str(path), error=str(error))
        _write_report(report, digest, episode)
    except OSError as error:
        words = error.strerror or str(error)
        return Episode(str(path), error=f"{folder} cannot be written to: {words}")
    return episode


def _replayed(
    recording: Recording, folder: Path, task: Task, progress: Callable[[Recording], object]
) -> Episode:
    replay = Replay(
        recording, task.settings, Operation.from_parameters(task.parameters),
        task.description_for(recording), task.remap, task.degrees,
    )  # fmt: skip
    episode = Episode(str(recording.path))
    outputs: list[Output] = []
    began = perf_counter()
    writing = 0.0
    first = last = None
    pipeline = replay.computation.tick
    try:
        for kind in task.formats:
            target = folder / f"{recording.name}.{kind}"
            if kind == "mcap":
                outputs.append(McapOutput(target, replay.computation))
            else:
                said = {"recording": recording.name, "version": __version__}
                said |= {"algorithm": pipeline.algorithm}
                outputs.append(ParquetOutput(target, replay.computation, task.columns, said))
            episode.files.append(str(target))
        try:
            for count, answer in enumerate(replay.answers()):
                start = perf_counter()
                first = answer.time if first is None else first
                last = answer.time
                if pipeline.last.validity is not Validity.INVALID:
                    episode.matrices += 1
                    episode.empty += not pipeline.last.rows
                else:
                    episode.invalid += 1
                    episode.first_reason = episode.first_reason or pipeline.last.text
                for output in outputs:
                    output.write(answer)
                if count % 1000 == 0:
                    progress(recording)
                writing += perf_counter() - start
        except RecordingError as error:
            # The outputs so far are kept.
            episode.error = str(error)
        for output in outputs:
            output.close()
        outputs = []
        episode.sizes = [Path(file).stat().st_size for file in episode.files]
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
    episode.damage = list(recording.damage)
    episode.warnings = {"recording": (recording.remark, 1)} if recording.remark else {}
    episode.warnings |= replay.warnings
    return episode


def _check_folder(
    folder: Path, recording: Recording, formats: Sequence[str], before: Mapping[str, Any]
) -> None:
    """Refuse to write into a recording, over one, or over files of no earlier run."""
    source = recording.path.resolve() if recording.path.is_dir() else None
    resolved = Path(os.path.realpath(folder))
    inside = (folder, resolved, *resolved.parents)
    bags = [path for path in inside if is_bag(path) or path == source]
    if bags:
        raise RecordingError(f"outputs are not written into a recording, {bags[0]}")
    # Files of a report may be damaged, and whole files may have no report yet.
    reported = {Path(file).name for file in before.get("files", ())}
    for kind in formats:
        target = folder / f"{recording.name}.{kind}"
        if not target.exists() or target.name in reported:
            continue
        if not is_output(target, recording.name):
            raise RecordingError(
                f"{target} would be replaced, and is no output of {recording.path}; name another "
                "folder"
            )


def _report(report: Path) -> dict[str, Any]:
    """Return the report of an earlier run over a recording; empty without such a run."""
    try:
        found = json.loads(read_regular_file(report, _LARGEST_REPORT))
    except FileNotFoundError:
        return {}
    except NotADirectoryError as error:
        words = f"{report.parent} is no folder; name another for the output"
        raise RecordingError(words) from error
    except (OSError, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or "digest" not in found:
        raise RecordingError(
            f"{report} would be replaced, and is no report of delassus bag; name another folder "
            "for the output"
        )
    return found


def _is_finished(before: Mapping[str, Any]) -> bool:
    """Return whether an earlier run reached the end and its outputs are still whole."""
    if before["error"]:
        return False
    files = zip(map(Path, before["files"]), before["sizes"], strict=True)
    return all(file.is_file() and file.stat().st_size == size for file, size in files)


def _in_full(value: Any) -> Any:
    """Return a setting as JSON's types: arrays as lists, whose text has all entries."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _write_report(report: Path, digest: str, episode: Episode) -> None:
    """Write the report, after all outputs: it marks the recording as finished."""
    text = json.dumps({"digest": digest, **asdict(episode)}, indent=1)
    written = PartialFile(report)
    try:
        written.file.write(text.encode())
        written.finish()
    except OSError:
        written.discard()
        raise
