"""``delassus bag`` and ``bags``: matrices of recordings."""

from __future__ import annotations

import argparse
import dataclasses
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from delassus.cli.options import add_degrees, names_in
from delassus.cli.parsing import Verb
from delassus.cli.report import Report, table, waiting
from delassus.errors import DelassusError, InputError
from delassus.model.reading.source import document_of
from delassus.programs.command_line import Whole
from delassus.visible import visible
from delassus_ros.ros.needs import require_ros
from delassus_ros.verbs.parameter_files import parameters_of

if TYPE_CHECKING:
    from delassus_ros.recordings.episode import Episode, Task
    from delassus_ros.recordings.recording import Recording

_NEEDED = ("mcap", "pyarrow")


def _add_bag(parser: argparse.ArgumentParser) -> None:
    """Add the options of one recording."""
    parser.add_argument(
        "recording",
        metavar="RECORDING",
        help="an .mcap or .db3 file, or a folder of rosbag2",
    )
    _add_task(parser)


def _add_bags(parser: argparse.ArgumentParser) -> None:
    """Add the options of many recordings."""
    parser.add_argument(
        "recordings", nargs="+", metavar="RECORDING",
        help=".mcap or .db3 files, or folders of rosbag2",
    )  # fmt: skip
    _add_task(parser)
    parser.add_argument(
        "--workers",
        type=Whole(1, 10_000),
        metavar="N",
        help="number of workers (default: that of processors)",
    )
    parser.add_argument(
        "--retries",
        type=Whole(0, 1000),
        default=3,
        metavar="N",
        help="number of new attempts at a recording after its worker died (default: %(default)s)",
    )


def _add_task(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", required=True, metavar="FOLDER", help="folder of the written files"
    )
    parser.add_argument(
        "--params",
        metavar="FILE.yaml",
        help="parameters of the node (default: the contacts of the layout that was recorded, or "
        "the ends of limbs if the recorded contacts have the names of these)",
    )
    parser.add_argument(
        "--urdf",
        metavar="FILE",
        help="robot description (default: that on /robot_description of the recording)",
    )
    parser.add_argument(
        "--columns",
        default="matrix,effective_mass",
        metavar="NAMES",
        help="columns of the tables besides stamps, validity, rank and condition: any of matrix, "
        "effective_mass, impulse, estimated_force and forces (default: %(default)s)",
    )
    parser.add_argument(
        "--format",
        default="parquet,mcap",
        metavar="NAMES",
        help="formats of the output: parquet for tables, mcap for messages (default: both)",
    )
    parser.add_argument(
        "--remap",
        action="append",
        default=[],
        metavar="TOPIC:=NAME",
        help="topic of the recording with another name, as joint_states:=/arm/joint_states",
    )
    add_degrees(parser, "recorded joint states, and their rates,")
    parser.add_argument(
        "--again", action="store_true", help="compute recordings again that are finished already"
    )


def bag(options: argparse.Namespace) -> Report:
    """Write the matrices that the node would have published for one recording."""
    require_ros("delassus bag", *_NEEDED)
    from delassus_ros.recordings.episode import map_episode

    path = Path(options.recording)
    task = _task_of(options, [path])
    with waiting() as say:
        episode = map_episode(path, task, progress=lambda read: say(_progress_of(read)))
    if episode.error and not episode.files:
        raise InputError(episode.error)
    return Report(_words(episode), dataclasses.asdict(episode), int(_is_incomplete(episode)))


BAG = Verb(
    "bag",
    "compute messages of the node and a table of matrices of a recording",
    "run.mcap --params my_robot.yaml -o out",
    bag,
    _add_bag,
)


def bags(options: argparse.Namespace) -> Report:
    """Write the matrices that the node would have published for many recordings."""
    require_ros("delassus bags", *_NEEDED)
    from delassus_ros.recordings.engines import map_recordings

    paths = [Path(path) for path in options.recordings]
    task = _task_of(options, paths)
    count = 0

    began = time.monotonic()
    with waiting() as say:

        def done(episode: Episode) -> None:
            nonlocal count
            count += 1
            say(f"{count} of {len(paths)}: {episode.recording}")

        found = map_recordings(paths, task, options.workers, options.retries, done)
    return _summary(found, time.monotonic() - began)


BAGS = Verb(
    "bags",
    "compute those of many recordings, on all processors",
    "data/*.mcap --params my_robot.yaml -o out",
    bags,
    _add_bags,
)


def _task_of(options: argparse.Namespace, paths: list[Path]) -> Task:
    from delassus_ros.recordings.episode import Task

    remap = {}
    for entry in options.remap:
        topic, separator, name = entry.partition(":=")
        if not separator or not name.startswith("/"):
            raise InputError(f"--remap {entry!r}; expected TOPIC:=/NAME, as joint_states:=/arm/q")
        remap[topic] = name
    description = ""
    if options.urdf:
        document = document_of(options.urdf, options.xacro)
        description = ElementTree.tostring(document, encoding="unicode")
    task = Task(
        parameters_of(options.params) if options.params else {}, options.output, description,
        names_in(options.columns), names_in(options.format), remap, options.again,
        options.degrees,
    )  # fmt: skip
    if options.params:
        return task
    for path in paths[:-1]:
        try:
            return dataclasses.replace(task, parameters=_parameters(path, task))
        except DelassusError:
            # The next recording may be whole; the task of this one reports the error.
            continue
    return dataclasses.replace(task, parameters=_parameters(paths[-1], task))


def _parameters(path: Path, task: Task) -> dict[str, Any]:
    """Return parameters for a recording: those of the recorded node, or proposed ones."""
    from delassus_ros.recordings.contents import description_of
    from delassus_ros.recordings.recording import Recording
    from delassus_ros.verbs.recorded import parameters_of

    recording = Recording(path)
    return parameters_of(
        recording, lambda: task.description or description_of(recording, task.remap), task.remap
    )


def _progress_of(recording: Recording) -> str:
    """Return the share of a recording that has been read, as a bar."""
    share = min(recording.position / recording.size, 1.0) if recording.size else 0.0
    return f"{'█' * int(30 * share):30} {100.0 * share:3.0f} %  {recording.path.name}"


def _is_incomplete(episode: Episode) -> bool:
    """Whether an error or damage ended a recording, or no matrix has rows."""
    return bool(episode.error or episode.damage) or episode.matrices == episode.empty


def _words(episode: Episode) -> str:
    """Return the outcome of a recording, in lines."""
    lines = [episode.recording + (": finished before" if episode.skipped else "")]
    lines.append(
        f"{episode.matrices} matrices, {episode.invalid} times INVALID, in {episode.seconds:.1f} s"
    )
    if episode.empty:
        lines.append(f"{episode.empty} matrices have no rows: no contact was active")
    if episode.first_reason:
        lines.append(f"INVALID first for: {episode.first_reason}")
    if episode.took and not episode.skipped:
        took = ", ".join(f"{name} {seconds:.2f}" for name, seconds in episode.took.items())
        lines.append(f"took [s]: {took}")
    lines += episode.remarks
    if episode.error:
        lines.append(f"ended early: {episode.error}")
    lines += [f"wrote {file}" for file in episode.files]
    return "\n".join(map(visible, lines))


def _summary(episodes: list[Episode], took: float) -> Report:
    rows: list[tuple[object, ...]] = [("recording", "s", "matrices", "INVALID", "")]
    for one in episodes:
        state = one.error or ("finished before" if one.skipped else "")
        empty = f"{one.empty} without rows" if one.empty else ""
        rows.append(
            (Path(one.recording).name, f"{one.seconds:.1f}", one.matrices, one.invalid,
             "; ".join(word for word in (state, empty, *one.remarks) if word))
        )  # fmt: skip
    failed = [one for one in episodes if one.error]
    total = sum(one.matrices for one in episodes)
    last = f"{len(episodes)} recordings, {total} matrices, {len(failed)} failed; {took:.1f} s"
    data = {
        "took": took, "failed": [one.recording for one in failed],
        "episodes": [dataclasses.asdict(one) for one in episodes],
    }  # fmt: skip
    status = int(any(map(_is_incomplete, episodes)))
    return Report(f"{table(rows, numeric=(1, 2, 3))}\n{last}", data, status)
