"""Reading a spool: all of it, or following it while it is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from mockbroker.pipeline.spool.notes import FORMAT, Begin, End, Lost, Note, Torn, unpacked
from mockbroker.pipeline.store import SPOOL, StoreError


def spool_path(directory: Path, run: str) -> Path:
    """Where a run's spool lies."""
    return directory / SPOOL / run


def spooled_runs(directory: Path) -> list[str]:
    """The runs that a directory has spools of."""
    return sorted(path.name for path in (directory / SPOOL).glob("*") if path.is_dir())


class SpoolReader:
    """The notes of one spool, in order.

    `wait` is called when there is nothing more to read for the moment; while it returns True the
    reader goes on. A file that breaks off inside a note is used up to there: `torn` says where, and
    if more files follow, what is missing is told as `Lost`. Raises StoreError when there is no such
    spool, or when it is of another format.
    """

    def __init__(self, path: Path, wait: Callable[[], bool] = lambda: False) -> None:
        if not path.is_dir():
            raise StoreError(f"there is no spool {path}: give the directory that the broker wrote")
        self.path = path
        self.torn: str = ""
        self.ended = False
        self._wait = wait
        self._last_seq = 0

    def __iter__(self) -> Iterator[Note]:
        number = 0
        missing: Lost | None = None
        while True:
            file = self._file(number)
            while not file.exists():
                if self.ended or not self._wait():
                    if number == 0:
                        raise StoreError(f"{self.path} holds nothing: its broker never began")
                    return
            for note in self._notes_of(file, number):
                if isinstance(note, Torn):
                    self.torn = f"{file.name} at byte {note.position}: {note.reason}"
                    missing = Lost(self._last_seq + 1, self._last_seq + 1, self.torn)
                    continue
                if missing is not None and _seq(note):
                    yield Lost(missing.first_seq, _seq(note) - 1, missing.reason)
                    missing = None
                self._check(note, number)
                self._last_seq = max(self._last_seq, _seq(note))
                self.ended = isinstance(note, End)
                yield note
            number += 1

    def _file(self, number: int) -> Path:
        return self.path / f"{number:06}.spool"

    def _notes_of(self, file: Path, number: int) -> Iterator[Note | Torn]:
        """The notes of one file, also those that come while it is the last."""
        position = 0
        with file.open("rb") as stream:
            while True:
                stream.seek(position)
                data = stream.read()
                torn: Torn | None = None
                for note in unpacked(data):
                    if isinstance(note, Torn):
                        torn = note
                    else:
                        yield note
                done = len(data) if torn is None else torn.position
                position += done
                if self.ended:
                    return
                has_next = self._file(number + 1).exists()
                if has_next and not stream.read(1):
                    if torn is not None:
                        yield Torn(position, torn.reason)
                    return
                if not has_next and not self._wait():
                    if torn is not None:
                        yield Torn(position, torn.reason)
                    return

    def _check(self, note: Note, number: int) -> None:
        if isinstance(note, Begin):
            if note.format != FORMAT:
                raise StoreError(
                    f"{self.path} has format {note.format}, this mockbroker reads {FORMAT}: "
                    "convert it with the mockbroker that wrote it"
                )
        elif self._last_seq == 0 and number == 0 and not self._began:
            raise StoreError(f"{self.path} does not begin as a spool does: its first file is gone")
        self._began = True

    _began = False


def _seq(note: Note) -> int:
    if isinstance(note, Lost | End | Begin):
        return note.last_seq
    seq: int = getattr(note, "seq", 0)
    return seq
