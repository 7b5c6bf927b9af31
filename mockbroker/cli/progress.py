"""Progress of steps on stderr, with the progress of Spark's jobs."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

POLL_S = 0.3


class Steps:
    """The present step on stderr; silent unless that is a terminal."""

    def __init__(self, progress: Progress | None, task: TaskID | None) -> None:
        self._progress = progress
        self._task = task
        self._step = ""

    def step(self, what: str, done: int, total: int) -> None:
        """`done` of `total` steps are done, and `what` is next."""
        self._step = what
        if self._progress is not None and self._task is not None:
            self._progress.update(
                self._task, description=what, completed=done, total=total, detail=""
            )

    @contextmanager
    def watching(self, spark: Any) -> Iterator[None]:
        """For the block, show how many stages of Spark's jobs are done."""
        if self._progress is None or self._task is None:
            yield
            return
        done = threading.Event()
        watch = threading.Thread(target=self._watch, args=(spark, done), daemon=True)
        watch.start()
        try:
            yield
        finally:
            done.set()
            watch.join()

    def _watch(self, spark: Any, done: threading.Event) -> None:
        assert self._progress is not None
        assert self._task is not None
        while not done.wait(POLL_S):
            self._progress.update(self._task, detail=stages(spark.sparkContext.statusTracker()))


def stages(tracker: Any) -> str:
    """The finished stages of Spark's active jobs, and their finished tasks."""
    ids = [
        stage
        for job in tracker.getActiveJobsIds()
        if (info := tracker.getJobInfo(job)) is not None
        for stage in info.stageIds
    ]
    infos = [info for stage in ids if (info := tracker.getStageInfo(stage)) is not None]
    if not infos:
        return ""
    finished = sum(info.numCompletedTasks >= info.numTasks for info in infos)
    tasks = sum(info.numCompletedTasks for info in infos)
    return f"stages {finished}/{len(ids)}, tasks {tasks}/{sum(info.numTasks for info in infos)}"


@contextmanager
def steps(what: str) -> Iterator[Steps]:
    """Show steps, if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield Steps(None, None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[detail]}", style="dim"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as progress:
        yield Steps(progress, progress.add_task(what, total=None, detail=""))
