"""Records that have grown older than their timestamps say, because only their time was moved on.

Retention and compaction go by timestamps, and those cannot be changed. So a partition remembers
*marks*, of either kind: what lay below this offset has aged by so many ms more. A segment has aged
by all marks that cover it as a whole, as one with a newer record in it is as young as that record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.log.replica_log import ReplicaLog


class Marks:
    """What one partition has aged by: (end offset, ms) of each time, the newest last."""

    __slots__ = ("_marks",)

    def __init__(self) -> None:
        self._marks: list[tuple[int, int]] = []

    def age(self, log: ReplicaLog, by_ms: int) -> None:
        """All that the log holds is that much older from now on."""
        kept = [mark for mark in self._marks if mark[0] > log.start_offset]
        end = log.end_offset
        if kept and kept[-1][0] == end:
            by_ms += kept.pop()[1]
        self._marks = [*kept, (end, by_ms)]

    def aged_ms(self, log: ReplicaLog, index: int) -> int:
        """How much the segment at `index` has aged beyond what its timestamps say."""
        bases = log.layout.base_offsets
        end = bases[index + 1] if index + 1 < len(bases) else log.end_offset
        return sum(by_ms for until, by_ms in self._marks if until >= end)


class CompactionScope:
    """All compacted topics, as far as the cleaner is concerned (a `TimeScope`).

    Its time stays ahead, as it writes down when tombstones may go. What is in the logs ages by what
    passes, so that what comes later is as young as ever.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._timers = cluster.time_scopes.compaction
        self.now_ms = self._timers.now_ms
        self.deadline_ms = self._timers.deadline_ms

    def jump_to(self, at_ms: int) -> None:
        """Age what is in the logs, and run the rounds of the cleaner that are due."""
        by_ms = at_ms - self.now_ms()
        if by_ms > 0:
            self._cluster.log_manager.age_for_cleaner(by_ms)
        self._timers.jump_to(at_ms)

    def spare_connected(self, by_ms: int) -> None:
        """Nobody is spared: no client keeps a record alive."""


class RetentionScope:
    """The records of all topics, as far as retention is concerned (a `TimeScope`)."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._ahead_ms = 0

    def now_ms(self) -> int:
        return self._cluster.now_ms() + self._ahead_ms

    def deadline_ms(self) -> int | None:
        """None: what retention drops on the way, it drops at the end as well."""
        return None

    def jump_to(self, at_ms: int) -> None:
        """Age what is in the logs, and apply retention."""
        by_ms = at_ms - self.now_ms()
        if by_ms <= 0:
            return
        self._ahead_ms += by_ms
        self._cluster.log_manager.age(by_ms)

    def spare_connected(self, by_ms: int) -> None:
        """Nobody is spared: no client keeps a record alive."""
