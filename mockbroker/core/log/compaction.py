"""A compaction of several partitions, one log after another, in slices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from mockbroker.core.log.cleaner import CleanerStats, Cleaning, SkewOf, log_to_clean, next_due_ms
from mockbroker.core.log.emitters import emit_compacted
from mockbroker.core.replication.replica_logs import DistinctLog, logs_of
from mockbroker_protocol.records import RecordsError

if TYPE_CHECKING:
    from mockbroker.core.configs.values import ClusterConfigs
    from mockbroker.core.log.manager import LogManager
    from mockbroker.core.replication.partition import Partition

OFFSET_MAP_ENTRY_BYTES = 24  # a hash and an offset (SkimpyOffsetMap.bytesPerEntry)


class CompactionResult(NamedTuple):
    """The result of one cleaning. The log is clean below `end_offset`.

    Replicas that share the leader's log have one result, with the leader's id.
    """

    topic: str
    partition: int
    node_id: int
    records_removed: int
    records_kept: int
    batches_removed: int
    bytes_removed: int
    end_offset: int


class CompactionJob:
    """Cleans logs one after another; `results` has the completed cleanings.

    With `on_demand` each partition is cleaned, otherwise those above their dirty ratio, the
    dirtiest first. A log that cannot be decoded becomes uncleanable (`LogManager.uncleanable`).
    """

    def __init__(
        self,
        log_manager: LogManager,
        partitions: Sequence[Partition],
        *,
        roll: bool,
        on_demand: bool,
    ) -> None:
        self.results: list[CompactionResult] = []
        self.done = False
        self._log_manager = log_manager
        self._partitions = partitions
        self._roll = roll
        self._on_demand = on_demand
        self.on_done: list[Callable[[], None]] = []  # called once the job is done
        self._work = self._cleanings()
        self._current: tuple[Partition, DistinctLog, Cleaning] | None = None

    def run(self) -> list[CompactionResult]:
        """Run the whole job."""
        while not self.step(1 << 62):
            pass
        return self.results

    def step(self, records_max: int) -> bool:
        """Work on about `records_max` records; returns True if the job is done."""
        if self.done:
            return True
        if self._current is None:
            self._current = next(self._work, None)
        if self._current is None:
            self.done = True
            for observer in self.on_done:
                observer()
            return True
        partition, own, cleaning = self._current
        try:
            finished = partition.deleted or cleaning.step(records_max)
        except RecordsError as error:
            self._log_manager.uncleanable[partition.key] = str(error)
            finished = True
        if finished:
            self._current = None
            if cleaning.result is not None:
                if own.log is partition.log:
                    emit_compacted(self._log_manager.runtime, partition, cleaning.removed)
                self.results.append(_result(partition, own, cleaning.result))
        return False

    def _cleanings(self) -> Iterator[tuple[Partition, DistinctLog, Cleaning]]:
        """The cleanings; each is computed when the one before is complete."""
        log_manager = self._log_manager
        keys_max = _keys_max(log_manager.configs)
        for partition in self._ordered():
            if partition.deleted or partition.key in log_manager.uncleanable:
                continue
            configs = partition.topic.configs
            for own in logs_of(partition):
                if self._roll:
                    own.log.roll()
                now_ms = log_manager.cleaner_times.now_ms()
                skew_of = log_manager.cleaner_skew(partition)
                dirt = log_to_clean(own.log, configs, own.last_stable_offset, now_ms, skew_of)
                if self._on_demand or dirt.is_due(configs):
                    yield partition, own, Cleaning(own.log, dirt, configs, now_ms, keys_max)

    def _ordered(self) -> Sequence[Partition]:
        if self._on_demand:
            return self._partitions
        now_ms = self._log_manager.cleaner_times.now_ms()
        skew_of = self._log_manager.cleaner_skew
        return sorted(self._partitions, key=lambda each: -_dirtiness(each, now_ms, skew_of(each)))


def next_cleaning_ms(partition: Partition, now_ms: int, skew_of: SkewOf) -> int | None:
    """The time at which a partition becomes due without an append, or None."""
    configs = partition.topic.configs
    times = [next_due_ms(own.log, configs, now_ms, skew_of) for own in logs_of(partition)]
    return min((at_ms for at_ms in times if at_ms is not None), default=None)


def _dirtiness(partition: Partition, now_ms: int, skew_of: SkewOf) -> float:
    configs = partition.topic.configs
    return max(
        log_to_clean(own.log, configs, own.last_stable_offset, now_ms, skew_of).ratio
        for own in logs_of(partition)
    )


def _keys_max(configs: ClusterConfigs) -> int:
    """The number of keys for which the offset map has room (SkimpyOffsetMap, load factor)."""
    threads = max(configs.get_int("log.cleaner.threads"), 1)
    entries = configs.get_int("log.cleaner.dedupe.buffer.size") // threads // OFFSET_MAP_ENTRY_BYTES
    load = configs.get("log.cleaner.io.buffer.load.factor")
    assert isinstance(load, float)
    return max(int(entries * load), 1)


def _result(partition: Partition, own: DistinctLog, done: CleanerStats) -> CompactionResult:
    return CompactionResult(
        partition.topic.name,
        partition.index,
        own.node_id,
        done.records_removed,
        done.records_read - done.records_removed,
        done.batches_removed,
        done.bytes_removed,
        done.end_offset,
    )
