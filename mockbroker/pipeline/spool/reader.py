"""Reads a spool: a complete one, or one that is being written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from mockbroker.core.journal.entries import JournalEntry
from mockbroker.core.journal.journal import Gap
from mockbroker.pipeline.spool.format import (
    RunEnded,
    RunStarted,
    SpoolEntry,
    Torn,
    check_format,
    decode,
)
from mockbroker.pipeline.store import SPOOL, StoreError


def spool_path(directory: Path, run: str) -> Path:
    """The directory of a run's spool."""
    return directory / SPOOL / run


def spooled_runs(directory: Path) -> list[str]:
    """The runs that have spools in a directory."""
    return sorted(path.name for path in (directory / SPOOL).glob("*") if path.is_dir())


class SpoolReader:
    """The entries of one spool, in order.

    At the end of the last file the reader calls `wait` and goes on while that returns True. A file
    that breaks off inside an entry is read up to there, and a missing file is passed over: `torn`
    says where, and if there is more behind it, a `Gap` stands for the missing entries. Raises
    StoreError when there is no such spool, when nothing of it can be read, or when it is of another
    format.
    """

    def __init__(self, path: Path, wait: Callable[[], bool] = lambda: False) -> None:
        if not path.is_dir():
            raise StoreError(f"there is no spool {path}: give the directory that the broker wrote")
        self.path = path
        self.torn = ""
        self.ended = False
        self._wait = wait
        self._last_seq = 0
        self._started = False

    def __iter__(self) -> Iterator[SpoolEntry]:
        number = self._existing(0)
        while number is not None:
            file = self._file(number)
            for entry in self._entries_of(file, number):
                if isinstance(entry, Torn):
                    self.torn = f"{file.name} at byte {entry.position}: {entry.reason}"
                    continue
                self._check(entry)
                yield from self._missing_before(entry, file)
                self._last_seq = max(self._last_seq, _last_seq(entry))
                self.ended = isinstance(entry, RunEnded)
                yield entry
            number = self._existing(number + 1)
        if not self._started:
            raise StoreError(
                f"{self.path} has no entry that can be read: "
                + (self.torn or "its broker wrote nothing")
            )

    def _existing(self, number: int) -> int | None:
        """The file with a number, once it is there, or the next one if it is missing; or None."""
        while not self._file(number).exists():
            later = [int(each.stem) for each in self.path.glob("*.spool") if each.stem.isdigit()]
            if later and max(later) > number:
                self.torn = f"{self._file(number).name} is missing"
                return min(each for each in later if each > number)
            if self.ended or not self._wait():
                return None
        return number

    def _missing_before(self, entry: SpoolEntry, file: Path) -> Iterator[Gap]:
        """A gap if entries of the journal are missing before this one."""
        if isinstance(entry, RunStarted):
            return
        first_seq = entry.first_seq if isinstance(entry, Gap) else _last_seq(entry)
        wanted = self._last_seq + (0 if isinstance(entry, RunEnded) else 1)
        if first_seq > wanted:
            last_seq = first_seq - (0 if isinstance(entry, RunEnded) else 1)
            self.torn = self.torn or f"{file.name} does not follow the file before it"
            yield Gap(self._last_seq + 1, last_seq, self.torn)

    def _file(self, number: int) -> Path:
        return self.path / f"{number:06}.spool"

    def _entries_of(self, file: Path, number: int) -> Iterator[SpoolEntry | Torn]:
        """The entries of one file, also those that are appended while it is the last."""
        position = 0
        with file.open("rb") as stream:
            while True:
                stream.seek(position)
                data = stream.read()
                if not self._started:
                    check_format(data, str(self.path))
                torn: Torn | None = None
                for entry in decode(data):
                    if isinstance(entry, Torn):
                        torn = entry
                    else:
                        yield entry
                position += len(data) if torn is None else torn.position
                if self.ended:
                    return
                has_next = self._file(number + 1).exists()
                is_over = not stream.read(1) if has_next else not self._wait()
                if is_over:
                    if torn is not None:
                        yield Torn(position, torn.reason)
                    return

    def _check(self, entry: SpoolEntry) -> None:
        if isinstance(entry, RunStarted):
            self._started = True
        elif not self._started:
            raise StoreError(
                f"{self.path} has no first entry of a spool: "
                + (self.torn or "its first file is missing")
            )


def _last_seq(entry: SpoolEntry) -> int:
    """The journal's last entry number so far; 0 if unknown."""
    if isinstance(entry, JournalEntry):
        return entry.seq
    return getattr(entry, "last_seq", 0)
