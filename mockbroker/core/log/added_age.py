"""Age added to records, in addition to the age by their timestamps.

Retention and compaction use timestamps, which cannot be changed. An advance of the `retention` or
`compaction` domain therefore notes an age for all offsets below the log end offset. The age of a
segment includes each noted age that covers the whole segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mockbroker.core.log.manager import LogManager
    from mockbroker.core.log.replica_log import ReplicaLog
    from mockbroker.core.runtime import Runtime
    from mockbroker.core.timing.domain_timers import DomainTimers


class AddedAge:
    """The ages added to one partition: (end offset, ms), the newest last."""

    __slots__ = ("_added_ages",)

    def __init__(self) -> None:
        self._added_ages: list[tuple[int, int]] = []

    def age(self, log: ReplicaLog, by_ms: int) -> None:
        """Add `by_ms` to the age of all records in the log."""
        kept = [each for each in self._added_ages if each[0] > log.start_offset]
        end = log.end_offset
        if kept and kept[-1][0] == end:
            by_ms += kept.pop()[1]
        self._added_ages = [*kept, (end, by_ms)]

    def added_ms(self, log: ReplicaLog, index: int) -> int:
        """The ms added to the age of the segment at `index`."""
        bases = log.layout.base_offsets
        end = bases[index + 1] if index + 1 < len(bases) else log.end_offset
        return sum(by_ms for until, by_ms in self._added_ages if until >= end)


class CompactionDomain:
    """The clock domain of the cleaner.

    Its time stays ahead after an advance, because the cleaner stores delete horizons. Records in
    the logs get the skipped time as added age, so that later records do not.
    """

    def __init__(self, log_manager: LogManager, timers: DomainTimers) -> None:
        self._log_manager = log_manager
        self._timers = timers
        self.now_ms = self._timers.now_ms
        self.deadline_ms = self._timers.deadline_ms

    def jump_to(self, at_ms: int) -> None:
        """Add the age to the records, and run the rounds of the cleaner that are due."""
        by_ms = at_ms - self.now_ms()
        if by_ms > 0:
            self._log_manager.add_age_for_cleaner(by_ms)
        self._timers.jump_to(at_ms)

    def extend_connected_sessions(self, by_ms: int) -> None:
        """Nothing to do: no client keeps a record alive."""


class RetentionDomain:
    """The clock domain of retention."""

    def __init__(self, log_manager: LogManager, runtime: Runtime) -> None:
        self._log_manager = log_manager
        self._runtime = runtime
        self._ahead_ms = 0

    def now_ms(self) -> int:
        return self._runtime.now_ms() + self._ahead_ms

    def deadline_ms(self) -> int | None:
        """None: one check at the end deletes the same segments."""
        return None

    def jump_to(self, at_ms: int) -> None:
        """Add the age to the records, and apply retention."""
        by_ms = at_ms - self.now_ms()
        if by_ms <= 0:
            return
        self._ahead_ms += by_ms
        self._log_manager.age(by_ms)

    def extend_connected_sessions(self, by_ms: int) -> None:
        """Nothing to do: no client keeps a record alive."""
