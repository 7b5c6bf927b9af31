"""Age added to records, beyond what their timestamps say.

Retention and compaction go by timestamps, and those cannot be changed. So a partition remembers
*added*, of either kind: what lay below this offset has aged by so many ms more. A segment has aged
by all added that cover it as a whole, as one with a newer record in it is as young as that record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mockbroker.core.log.manager import LogManager
    from mockbroker.core.log.replica_log import ReplicaLog
    from mockbroker.core.runtime import Runtime
    from mockbroker.core.timing.domain_timers import DomainTimers


class AddedAge:
    """The age added to one partition: (end offset, ms) of each time, the newest last."""

    __slots__ = ("_added_ages",)

    def __init__(self) -> None:
        self._added_ages: list[tuple[int, int]] = []

    def age(self, log: ReplicaLog, by_ms: int) -> None:
        """All that the log holds is that much older from now on."""
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
    """All compacted topics, as far as the cleaner is concerned (a `ClockDomain`).

    Its time stays ahead, as it writes down when tombstones may go. What is in the logs ages by what
    passes, so that what comes later is as young as ever.
    """

    def __init__(self, log_manager: LogManager, timers: DomainTimers) -> None:
        self._log_manager = log_manager
        self._timers = timers
        self.now_ms = self._timers.now_ms
        self.deadline_ms = self._timers.deadline_ms

    def jump_to(self, at_ms: int) -> None:
        """Age what is in the logs, and run the rounds of the cleaner that are due."""
        by_ms = at_ms - self.now_ms()
        if by_ms > 0:
            self._log_manager.add_age_for_cleaner(by_ms)
        self._timers.jump_to(at_ms)

    def spare_connected(self, by_ms: int) -> None:
        """Nothing to do: no client keeps a record alive."""


class RetentionDomain:
    """The records of all topics, as far as retention is concerned (a `ClockDomain`)."""

    def __init__(self, log_manager: LogManager, runtime: Runtime) -> None:
        self._log_manager = log_manager
        self._runtime = runtime
        self._ahead_ms = 0

    def now_ms(self) -> int:
        return self._runtime.now_ms() + self._ahead_ms

    def deadline_ms(self) -> int | None:
        """None: what retention drops on the way, it drops at the end as well."""
        return None

    def jump_to(self, at_ms: int) -> None:
        """Age what is in the logs, and apply retention."""
        by_ms = at_ms - self.now_ms()
        if by_ms <= 0:
            return
        self._ahead_ms += by_ms
        self._log_manager.age(by_ms)

    def spare_connected(self, by_ms: int) -> None:
        """Nothing to do: no client keeps a record alive."""
