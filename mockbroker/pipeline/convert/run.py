"""Converts runs: from memory, from a complete spool, or from a growing spool."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from mockbroker.pipeline.convert.converter import Converter
from mockbroker.pipeline.spool.format import RunEnded, RunStarted, SpoolEntry, decode, whole
from mockbroker.pipeline.spool.reader import SpoolReader, spool_path, spooled_runs
from mockbroker.pipeline.store import RunManifest, StoreError
from mockbroker.pipeline.write import TableWriter, sync_run

# The interval at which the tables of a live run are rolled.
ROLL_S = 10.0
POLL_S = 0.1
_ENTRIES_BETWEEN_ROLLS = 1_000

BROKER_GONE = "its broker was not stopped cleanly"


def convert_run(entries: Iterable[SpoolEntry], directory: Path, run: str) -> RunManifest:
    """The tables of a run from all its entries. Raises StoreError if the run exists."""
    with TableWriter(directory, run) as writer:
        converter = Converter(writer)
        for entry in entries:
            converter.convert(entry)
        converter.finish()
    return writer.manifest


def convert_export(data: bytes, directory: Path, run: str | None = None) -> RunManifest:
    """The tables of an export of the admin API. Raises StoreError if it is not complete."""
    entries = list(decode(data))
    if (
        not entries
        or not isinstance(entries[0], RunStarted)
        or not isinstance(entries[-1], RunEnded)
    ):
        raise StoreError("the cluster's answer is not whole: export the journal again")
    name = run or f"{entries[0].cluster_id}-{entries[-1].last_seq}".lstrip("-")
    return convert_run(whole(entries), directory, name)


def convert_spool(
    directory: Path, run: str | None = None, *, keep_spool: bool = True
) -> RunManifest:
    """The tables of a run from its spool, replacing earlier ones.

    Without a `run` the directory must hold exactly one spool. The run of a killed broker stays
    incomplete, and `reason` names the gap. Raises StoreError if there is no such spool.
    """
    name = run or _only_run(directory)
    path = spool_path(directory, name)
    reader = SpoolReader(path)
    entries = iter(reader)
    first = next(entries, None)  # before anything is replaced
    with TableWriter(directory, name, replace=True) as writer:
        converter = Converter(writer)
        if first is not None:
            converter.convert(first)
        for entry in entries:
            converter.convert(entry)
        converter.finish()
        done = _close(writer, converter, reader.torn)
    if done.complete and not keep_spool:
        _replace_spool(directory, name)
    return done


def follow_spool(
    directory: Path,
    run: str,
    broker_lives: Callable[[], bool],
    *,
    roll_s: float = ROLL_S,
    poll_s: float = POLL_S,
    keep_spool: bool = False,
) -> RunManifest:
    """The tables of a run while its spool is written; returns at the end of the run.

    `broker_lives` is called at the end of the spool. The spool of a complete run is removed.
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
        dying = not broker_lives()  # the last entries are not read yet
        roll_in_time()
        if not dying:
            time.sleep(poll_s)
        return True

    path = spool_path(directory, run)
    reader = SpoolReader(path, wait)
    for number, entry in enumerate(reader):
        converter.convert(entry)
        if number % _ENTRIES_BETWEEN_ROLLS == 0:
            roll_in_time()
    converter.finish()
    done = _close(writer, converter, reader.torn)
    if done.complete and not keep_spool:
        _replace_spool(directory, run)
    return done


def _close(writer: TableWriter, converter: Converter, torn: str) -> RunManifest:
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


def _replace_spool(directory: Path, run: str) -> None:
    """Remove the spool, once the disk has the tables."""
    sync_run(directory, run)
    path = spool_path(directory, run)
    shutil.rmtree(path, ignore_errors=True)
    try:
        path.parent.rmdir()
    except OSError:
        return  # other spools exist
