"""The schedule of retention and compaction.

Retention checks logs that are not compacted every log.retention.check.interval.ms. The cleaner
checks compacted logs every log.cleaner.backoff.ms: it cleans those above their dirty ratio, the
dirtiest first, and then applies retention to them. Both run on the cluster's clock, and on demand.

Both include replicas with a log of their own, each up to its own high watermark.

Source: LogManager.cleanupLogs, LogCleaner.CleanerThread, LogCleanerManager.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from mockbroker.core.errors import ApiError
from mockbroker.core.log import retention
from mockbroker.core.log.added_age import AddedAge
from mockbroker.core.log.emitters import emit_removed
from mockbroker.core.log.maintenance_schedule import MaintenanceSchedule
from mockbroker.core.replication.replica_logs import logs_of
from mockbroker.core.timing.turns import in_turns
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.log.cleaner import SkewOf
    from mockbroker.core.log.compaction import CompactionJob
    from mockbroker.core.metadata.topic import Topic
    from mockbroker.core.replication.partition import Partition, PartitionKey
    from mockbroker.core.services import Services

# The cleaner serves clients after each slice, which takes a few milliseconds.
RECORDS_PER_SLICE = 1500
PARTITIONS_PER_TURN = 200


class RetentionResult(NamedTuple):
    """The deletions in one log. Replicas that share the leader's log have one result, with the
    leader's id.
    """

    topic: str
    partition: int
    node_id: int
    segments_removed: int
    bytes_removed: int
    old_log_start_offset: int
    log_start_offset: int


class LogManager:
    """Retention and compaction of all logs of a cluster."""

    def __init__(self, services: Services) -> None:
        self.runtime = services.runtime
        self.configs = services.configs
        self._metadata = services.metadata
        now_ms, config = self.runtime.now_ms, self.configs.get_int
        started_ms = now_ms()
        self._retention = MaintenanceSchedule(
            self.runtime.timers,
            now_ms,
            started_ms + config("log.initial.task.delay.ms"),
            lambda: config("log.retention.check.interval.ms"),
            self._retain,
        )
        self.cleaner_times = services.clock_domains.compaction
        self._cleaner = MaintenanceSchedule(
            self.cleaner_times,
            self.cleaner_times.now_ms,
            self.cleaner_times.now_ms(),
            lambda: config("log.cleaner.backoff.ms"),
            self._clean,
        )
        self._job: CompactionJob | None = None
        # Uncleanable partitions with the reason; in Kafka they stay so until a restart.
        self.uncleanable: dict[PartitionKey, str] = {}
        # Ages added by advances of the clock domains `retention` and `compaction`.
        self._added_ages: dict[PartitionKey, AddedAge] = {}
        self._cleaner_added_ages: dict[PartitionKey, AddedAge] = {}
        self._metadata.on_configs_changed.append(self._on_configs_changed)
        self._metadata.on_topic_deleted.append(self._on_topic_deleted)

    # -- scheduling --------------------------------------------------------------------------------

    def schedule(self, partition: Partition) -> None:
        """Check a partition in the next round, because its log has changed."""
        partition.maintenance_scheduled = True
        if partition.topic.configs.compacted:
            self._cleaner.schedule(partition, self.cleaner_times.now_ms())
        else:
            self._retention.schedule(partition, self.runtime.now_ms())

    def _on_configs_changed(self, topic: Topic) -> None:
        for partition in topic.partitions:
            if partition.log.size or partition.own_replicas:
                self.schedule(partition)
            else:
                # If the policy has changed, its first records belong into the other schedule.
                partition.maintenance_scheduled = False

    def _on_topic_deleted(self, topic: Topic) -> None:
        for partition in topic.partitions:
            self.uncleanable.pop(partition.key, None)
            self._added_ages.pop(partition.key, None)
            self._cleaner_added_ages.pop(partition.key, None)

    # -- retention ---------------------------------------------------------------------------------

    def run_retention(self, topic: str | None, index: int | None) -> list[RetentionResult]:
        """Apply retention now, also to compacted topics; returns the deletions.

        Raises ApiError for an unknown partition.
        """
        now_ms = self.runtime.now_ms()
        return [
            result
            for partition in self.select(topic, index)
            for result in self.retain(partition, now_ms)
        ]

    def _retain(self, partitions: Sequence[Partition], now_ms: int) -> None:
        """One round of retention."""
        in_turns(self.runtime.timers, self._retain_each(partitions, now_ms))

    def _retain_each(self, partitions: Sequence[Partition], now_ms: int) -> Iterator[None]:
        for number, partition in enumerate(partitions):
            if number and number % PARTITIONS_PER_TURN == 0:
                yield
            partition.maintenance_scheduled = False
            if partition.deleted or partition.topic.configs.compacted:
                continue
            self.retain(partition, now_ms)
            self._schedule_expiry(partition, self._retention, 0)

    def retain(self, partition: Partition, now_ms: int) -> list[RetentionResult]:
        """Apply retention to one partition's logs, and notify its watchers."""
        results = []
        configs = partition.topic.configs
        added = self._added_ages.get(partition.key, retention.NO_ADDED_AGE)
        for own in logs_of(partition):
            start = own.log.start_offset
            removed = retention.enforce(own.log, configs, own.high_watermark, now_ms, added)
            if removed is not None:
                if own.log is partition.log and removed.log_start_offset > start:
                    end = removed.log_start_offset - 1
                    emit_removed(self.runtime, partition, start, end, "retention")
                results.append(
                    RetentionResult(
                        partition.topic.name,
                        partition.index,
                        own.node_id,
                        removed.segments_removed,
                        removed.bytes_removed,
                        removed.old_log_start_offset,
                        removed.log_start_offset,
                    )
                )
        if results:  # a leader that cannot reach the controller has its own partition object
            for known in self._metadata.objects_of(partition):
                known.log_start_moved()
        return results

    def age(self, by_ms: int) -> None:
        """Add `by_ms` to the age of all records, and apply retention."""
        now_ms = self.runtime.now_ms()
        for partition in self.select(None, None):
            if partition.log.size or partition.own_replicas:
                self._added_ages.setdefault(partition.key, AddedAge()).age(partition.log, by_ms)
                self.retain(partition, now_ms)
                self.schedule(partition)  # the remaining segments expire earlier

    def _schedule_expiry(
        self, partition: Partition, rounds: MaintenanceSchedule, ahead_ms: int
    ) -> None:
        """Schedule the partition for the expiration of its oldest segment, if that expires.

        The clock of `rounds` is `ahead_ms` ahead of the cluster's.
        """
        now_ms = self.runtime.now_ms()
        configs = partition.topic.configs
        added = self._added_ages.get(partition.key, retention.NO_ADDED_AGE)
        for own in logs_of(partition):
            at_ms = retention.next_expiry_ms(own.log, configs, added)
            # Expired segments that remain wait for the high watermark, which schedules them.
            if at_ms is not None and at_ms > now_ms:
                rounds.schedule(partition, at_ms + ahead_ms)

    # -- compaction --------------------------------------------------------------------------------

    def add_age_for_cleaner(self, by_ms: int) -> None:
        """Add `by_ms` to the age of all records of compacted logs, for the cleaner only."""
        for partition in self.select(None, None):
            if partition.topic.configs.compacted and (partition.log.size or partition.own_replicas):
                self._cleaner_added_ages.setdefault(partition.key, AddedAge()).age(
                    partition.log, by_ms
                )

    def cleaner_skew(self, partition: Partition) -> SkewOf:
        """A function that returns the skew of the cleaner's clock at a segment's last append."""
        added = self._cleaner_added_ages.get(partition.key, retention.NO_ADDED_AGE)
        skew_ms = self.cleaner_times.skew_ms
        return lambda log, index: skew_ms - added.added_ms(log, index)

    def start_compaction(
        self, topic: str | None, index: int | None, *, roll: bool
    ) -> CompactionJob:
        """A job that compacts now, with any dirty ratio; the caller runs it or `run_in_slices`.

        With `roll` the active segments are rolled first, so that all stable records are compacted.
        Raises ApiError for an unknown partition, and for a topic that is not compacted.
        """
        from mockbroker.core.log.compaction import CompactionJob

        selected = self.select(topic, index)
        if topic is not None and not selected[0].topic.configs.compacted:
            raise ApiError(
                ErrorCode.POLICY_VIOLATION, f"Topic {topic!r} has no cleanup.policy=compact."
            )
        compacted = [partition for partition in selected if partition.topic.configs.compacted]
        return CompactionJob(self, compacted, roll=roll, on_demand=True)

    def run_in_slices(self, job: CompactionJob) -> None:
        """Run a job in slices, between the requests of clients."""

        def work() -> None:
            if not job.step(RECORDS_PER_SLICE):
                self.runtime.timers.call_soon(work)

        self.runtime.timers.call_soon(work)

    def _clean(self, partitions: Sequence[Partition], now_ms: int) -> None:
        """One round of the cleaner."""
        from mockbroker.core.log.compaction import CompactionJob, next_cleaning_ms

        compacted = []
        for partition in partitions:
            partition.maintenance_scheduled = False
            if not partition.topic.configs.compacted:
                continue
            if self._job is not None:
                self._cleaner.schedule(partition, now_ms)  # for the next round
            else:
                compacted.append(partition)
        if not compacted:
            return
        if not self.configs.get("log.cleaner.enable"):
            self._end_round(compacted)
            return

        def done() -> None:
            self._job = None
            self._end_round(compacted)
            for partition in compacted:
                at_ms = next_cleaning_ms(partition, now_ms, self.cleaner_skew(partition))
                if at_ms is not None and not partition.deleted:
                    self._cleaner.schedule(partition, at_ms)

        job = CompactionJob(self, compacted, roll=False, on_demand=False)
        job.on_done.append(done)
        if not job.step(RECORDS_PER_SLICE):
            self._job = job
            self.run_in_slices(job)

    def _end_round(self, partitions: Sequence[Partition]) -> None:
        """End a round of the cleaner: apply retention to the compacted logs."""
        for partition in partitions:
            if not partition.deleted:
                self.retain(partition, self.runtime.now_ms())
                self._schedule_expiry(partition, self._cleaner, self.cleaner_times.skew_ms)

    # -- selection ---------------------------------------------------------------------------------

    def select(self, topic: str | None, index: int | None) -> list[Partition]:
        """All partitions, those of a topic, or one. Raises ApiError for an unknown partition."""
        topics = self._metadata.image.topics
        if topic is None:
            return [each for found in topics.values() for each in found.partitions]
        found = topics.get(topic)
        if found is None or (index is not None and not 0 <= index < len(found.partitions)):
            name = topic if index is None else f"{topic}-{index}"
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no {name}.")
        return list(found.partitions) if index is None else [found.partitions[index]]
