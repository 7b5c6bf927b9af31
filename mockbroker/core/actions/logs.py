"""Actions on logs and topics: deletion, retention, compaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import msgspec

from mockbroker.core.actions.partitions import SomePartitions, find_led, find_topic, name_of
from mockbroker.core.actions.registry import action
from mockbroker.core.errors import ActionError
from mockbroker.core.validation import Count

if TYPE_CHECKING:
    from mockbroker.core.cluster_state import ClusterState
    from mockbroker.core.log.compaction import CompactionJob
    from mockbroker.core.log.manager import RetentionResult


class DeleteRecords(SomePartitions, frozen=True, kw_only=True):
    """One partition, or all of the topic; up to an offset, or to the high watermark."""

    before_offset: Count | None = None


class AnyPartitions(msgspec.Struct, frozen=True):
    """One partition, all of a topic, or all."""

    SHORT: ClassVar[str] = "topic"

    topic: str | None = None
    partition: Count | None = None


class RunCompaction(AnyPartitions, frozen=True, kw_only=True):
    """One partition, all of a topic, or all; `roll` rolls their active segments first."""

    roll: bool = True


class OneTopic(msgspec.Struct, frozen=True):
    """One topic."""

    SHORT: ClassVar[str] = "topic"

    topic: str


class LogActions:
    """Actions on logs and topics."""

    @action(DeleteRecords)
    @staticmethod
    def delete_records(cluster: ClusterState, wanted: DeleteRecords) -> None:
        """Raise the log start offset to an offset, or to the high watermark."""
        before = -1 if wanted.before_offset is None else wanted.before_offset
        found = find_led(cluster, wanted.topic, wanted.partition)
        for each in found:
            if not cluster.metadata.is_leader_object(each):
                raise ActionError(f"{name_of(each)} has no leader to delete its records")
            if before > each.high_watermark:
                raise ActionError(
                    f"{before} is above the high watermark of {name_of(each)}, which is "
                    f"{each.high_watermark}"
                )
        for each in found:
            error, _ = each.delete_records(before)
            if error:
                raise ActionError(
                    f"records of {name_of(each)} cannot be deleted: its cleanup.policy"
                )

    @action(AnyPartitions)
    @staticmethod
    def run_retention(cluster: ClusterState, wanted: AnyPartitions) -> list[RetentionResult]:
        """Apply retention now; returns the deletions.

        Raises ApiError for an unknown topic or partition.
        """
        return cluster.log_manager.run_retention(wanted.topic, wanted.partition)

    @action(RunCompaction)
    @staticmethod
    def run_compaction(cluster: ClusterState, wanted: RunCompaction) -> CompactionJob:
        """Start a compaction of all compacted topics, or of one. Clients are served meanwhile.

        With `roll` all stable records are compacted; without it active segments are not, as in
        Kafka. Raises ApiError for an unknown topic or partition, and for a topic without
        cleanup.policy=compact.
        """
        manager = cluster.log_manager
        job = manager.start_compaction(wanted.topic, wanted.partition, roll=wanted.roll)
        manager.run_in_slices(job)
        return job

    @action(OneTopic)
    @staticmethod
    def recreate_topic(cluster: ClusterState, wanted: OneTopic) -> None:
        """Delete a topic and create it again with the same replicas and configs. Its id changes."""
        found = find_topic(cluster, wanted.topic)
        assignments = {each.index: list(each.replicas) for each in found.partitions}
        configs = dict(found.configs.overrides)
        with cluster.states.one_event():
            cluster.delete_topic(wanted.topic)
            cluster.create_topic(wanted.topic, assignments=assignments, configs=configs)
