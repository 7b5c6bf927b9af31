"""The part of a log that a file holds.

The recorder of a data directory attaches a `FileState` to each log. The log notes removed batches
only; an append costs nothing, because all batches from `end` on are not in the file. A copy of the
log gets a copy of the state, so that the file does not hold the same batches twice.
"""

from __future__ import annotations

ALL = 2**63 - 1  # above every offset


class FileState:
    """The log's batches with base offsets in [begin, end) are in the file as log `log_id`.

    A copy that is not in the file yet has an `origin`: the state from which it was copied, and the
    `rewrites` of that state at the time.
    """

    __slots__ = (
        "begin",
        "cuts",
        "end",
        "log_id",
        "mark",
        "origin",
        "rewrites",
        "segments",
    )

    def __init__(self, log_id: int = 0) -> None:
        self.log_id = log_id
        self.begin = 0
        self.end = 0
        self.cuts = 0
        self.rewrites = 0  # how often other batches than the last ones have changed
        self.segments = 0  # the number of segments in the file
        self.mark: object = None  # a digest of everything else in the file
        self.origin: tuple[FileState, int] | None = None

    def fork(self) -> FileState:
        """The state of a copy of the log."""
        copy = FileState()
        copy.begin, copy.end = self.begin, self.end
        copy.origin = (self, self.rewrites) if self.log_id else self.origin
        return copy

    def cut(self, offset: int) -> None:
        """The batches from `offset` on are removed or replaced."""
        self.end = min(self.end, offset)

    def replaced(self, offset: int) -> None:
        """The batches below `offset` are replaced."""
        self.begin = max(self.begin, offset)
