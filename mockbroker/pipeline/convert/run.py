"""Converting whole runs: out of memory, from a spool, from a spool that is being written."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from mockbroker.pipeline.convert.converter import Converter
from mockbroker.pipeline.spool.notes import Begin, End, Note, Torn, unpacked
from mockbroker.pipeline.spool.reader import SpoolReader, spool_path, spooled_runs
from mockbroker.pipeline.store import Run, StoreError
from mockbroker.pipeline.write import TableWriter

# While a run goes on, its tables are brought up to date so often.
ROLL_S = 10.0
POLL_S = 0.1
_NOTES_BETWEEN_LOOKS = 1_000

BROKER_GONE = "its broker ended without saying so"


def convert_notes(notes: Iterable[Note], directory: Path, run: str) -> Run:
    """The tables of a run whose notes are all there. Raises StoreError when the run is there."""
    with TableWriter(directory, run) as writer:
        converter = Converter(writer)
        for note in notes:
            converter.take(note)
        converter.finish()
    return writer.manifest


def convert_packed(data: bytes, directory: Path, run: str | None = None) -> Run:
    """The tables of what the admin API gave. Raises StoreError when it gave something else."""
    notes = list(unpacked(data))
    if not notes or not isinstance(notes[0], Begin) or not isinstance(notes[-1], End):
        raise StoreError("what came from the cluster is not whole: export it again")
    begin, end = notes[0], notes[-1]
    name = run or f"{begin.cluster_id}-{end.last_seq}".lstrip("-")
    return convert_notes((note for note in notes if not isinstance(note, Torn)), directory, name)


def convert_spool(directory: Path, run: str | None = None, *, keep_spool: bool = True) -> Run:
    """The tables of a run from its spool, made anew if there are some.

    Without a `run` the directory has to hold one spool alone. A run whose broker was killed stays
    incomplete, and `reason` says what is missing. Raises StoreError when there is no such spool.
    """
    name = run or _only_run(directory)
    path = spool_path(directory, name)
    reader = SpoolReader(path)
    notes = iter(reader)
    first = next(notes, None)  # before anything is replaced
    with TableWriter(directory, name, replace=True) as writer:
        converter = Converter(writer)
        if first is not None:
            converter.take(first)
        for note in notes:
            converter.take(note)
        converter.finish()
        done = _close(writer, converter, reader.torn)
    if done.complete and not keep_spool:
        _remove_spool(path)
    return done


def follow_spool(
    directory: Path,
    run: str,
    broker_lives: Callable[[], bool],
    *,
    roll_s: float = ROLL_S,
    poll_s: float = POLL_S,
    keep_spool: bool = False,
) -> Run:
    """The tables of a run while its spool is written; returns when the run has ended.

    `broker_lives` is asked while nothing comes. The spool of a run that ended in peace is removed.
    """
    writer = TableWriter(directory, run)
    converter = Converter(writer)
    rolled = time.monotonic()
    dying = False

    def roll_in_time() -> None:
        nonlocal rolled
        if time.monotonic() - rolled >= roll_s:
            converter.flush()
            writer.roll()
            rolled = time.monotonic()

    def wait() -> bool:
        nonlocal dying
        if dying:
            return False
        dying = not broker_lives()  # what it has written last is still to be read
        roll_in_time()
        if not dying:
            time.sleep(poll_s)
        return True

    path = spool_path(directory, run)
    reader = SpoolReader(path, wait)
    for number, note in enumerate(reader):
        converter.take(note)
        if number % _NOTES_BETWEEN_LOOKS == 0:
            roll_in_time()
    converter.finish()
    done = _close(writer, converter, reader.torn)
    if done.complete and not keep_spool:
        _remove_spool(path)
    return done


def _close(writer: TableWriter, converter: Converter, torn: str) -> Run:
    if converter.ended and not torn:
        return writer.close()
    return writer.close(complete=False, reason=(torn and f"{BROKER_GONE}, {torn}") or BROKER_GONE)


def _only_run(directory: Path) -> str:
    runs = spooled_runs(directory)
    if len(runs) == 1:
        return runs[0]
    if not runs:
        raise StoreError(
            f"{directory} holds no spool: give the directory of `serve --journal-dir`; of a "
            "cluster that runs, `mockbroker journal export --url` makes tables"
        )
    raise StoreError(f"{directory} holds spools of several runs: name one of {', '.join(runs)}")


def _remove_spool(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
    try:
        path.parent.rmdir()
    except OSError:
        return  # there are others
