"""How much of a log stands in a file as it is in memory.

Whoever writes logs to a file hangs one of these on each log. The log itself only notes what it
loses: appending costs nothing, because what lies beyond `end` is new by definition. A copy of a log
takes a copy along, so that the file need not hold the same batches twice.
"""

from __future__ import annotations

ALL = 2**63 - 1  # above every offset


class Stored:
    """The batches with base offsets in [begin, end) are in the file under `log_id`, if still here.

    `origin` is set on a copy that the file knows nothing of yet: what it was copied of, and
    `origin_rewrites`, how often that had been rewritten by then.
    """

    __slots__ = (
        "begin",
        "cuts",
        "end",
        "log_id",
        "mark",
        "origin",
        "origin_rewrites",
        "rewrites",
        "segments",
    )

    def __init__(self, log_id: int = 0) -> None:
        self.log_id = log_id
        self.begin = 0
        self.end = 0
        self.cuts = 0
        self.rewrites = 0  # how often more than the end changed
        self.segments = 0  # how many segments the file knows of
        self.mark: object = None  # stands for all else that the file says of the log
        self.origin: Stored | None = None
        self.origin_rewrites = 0

    def fork(self) -> Stored:
        """What a copy of the log has in common with the file."""
        copy = Stored()
        copy.begin, copy.end = self.begin, self.end
        if self.log_id:
            copy.origin, copy.origin_rewrites = self, self.rewrites
        else:
            copy.origin, copy.origin_rewrites = self.origin, self.origin_rewrites
        return copy

    def cut(self, offset: int) -> None:
        """The batches from `offset` on went, or are about to be others."""
        self.end = min(self.end, offset)

    def replaced(self, offset: int) -> None:
        """The batches below `offset` are others now."""
        self.begin = max(self.begin, offset)
