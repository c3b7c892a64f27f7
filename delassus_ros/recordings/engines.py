"""One task for many recordings, on the processors of this machine."""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path

from delassus.errors import DelassusError, InputError
from delassus.solver.solver import DelassusSolver
from delassus_ros.recordings.episode import Episode, Task, map_episode
from delassus_ros.recordings.recording import Recording, name_of

Job = tuple[int, str]
"""Index of a recording in the call, and its path."""


def map_recordings(
    recordings: Sequence[Path],
    task: Task,
    workers: int | None = None,
    retries: int = 3,
    done: Callable[[Episode], object] = lambda _: None,
) -> list[Episode]:
    """Do a task for many recordings; return the outcomes, in the order of the recordings.

    A recording that fails is reported, and the remaining recordings go on. A recording whose
    worker dies is begun again by another worker. Finished recordings are not computed twice, not
    in a later call either.

    Parameters
    ----------
    workers : number of processes; by default the number of processors.
    retries : number of times that a recording is begun again.
    done : called with every outcome as soon as it exists.

    Raises
    ------
    InputError
        If two recordings would write the same file.
    """
    twice = [
        name for name, count in Counter(map(name_of, recordings)).items() if count > 1
    ]
    if twice:
        raise InputError(
            f"several recordings are called {twice[0]!r}: their outputs would be one file; give "
            "each call the recordings of one folder"
        )
    _compile(recordings, task)
    # Workers may run in another folder, where a relative path means another file.
    task = replace(task, out=os.path.realpath(task.out))
    jobs = [(number, os.path.realpath(path)) for number, path in enumerate(recordings)]
    found: dict[int, Episode] = {}
    workers = len(os.sched_getaffinity(0)) if workers is None else workers
    for number, episode in _episodes(jobs, task, workers, retries):
        episode.recording = str(recordings[number])
        found[number] = episode
        done(episode)
    return [found[number] for number, _ in jobs]


def _compile(recordings: Sequence[Path], task: Task) -> None:
    """Compile the kernel of the robot, so that all workers of this machine find it."""
    for path in recordings:
        try:
            settings, description = task.settings, task.description_for(Recording(path))
            DelassusSolver(settings.problem(description), settings.algorithm)
        except DelassusError:
            # The task of the recording reports the error.
            continue
        return


def _episodes(
    jobs: Sequence[Job], task: Task, workers: int, retries: int
) -> Iterator[tuple[int, Episode]]:
    """Yield the outcomes of the jobs, each with the index of its recording."""
    # Not forked: a fork would have the threads and locks of the caller. One pool per worker: a
    # dead worker ends all workers of its pool, and the recording at fault would be unknown.
    context = multiprocessing.get_context("spawn")
    waiting, died = deque(jobs), Counter[Job]()
    idle = [ProcessPoolExecutor(1, context) for _ in range(min(workers, len(jobs)))]
    running: dict[Future[Episode], tuple[ProcessPoolExecutor, Job]] = {}
    try:
        while waiting or running:
            while waiting and idle:
                worker, job = idle.pop(), waiting.popleft()
                try:
                    running[worker.submit(map_episode, job[1], task)] = worker, job
                except BrokenProcessPool:
                    # The worker died before it had this job.
                    waiting.appendleft(job)
                    idle.append(ProcessPoolExecutor(1, context))
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                worker, job = running.pop(future)
                number, path = job
                try:
                    episode = future.result()
                except BrokenProcessPool:
                    worker = ProcessPoolExecutor(1, context)
                    died[job] += 1
                    episode = Episode(path, error=f"its worker died {died[job]} times")
                    if died[job] <= retries:
                        waiting.append(job)
                        idle.append(worker)
                        continue
                except Exception as error:
                    # A fault in one recording does not end the remaining ones.
                    episode = Episode(path, error=f"{type(error).__name__}: {error}")
                idle.append(worker)
                yield number, episode
    finally:
        for worker in (*idle, *(worker for worker, _ in running.values())):
            worker.shutdown(cancel_futures=True)
