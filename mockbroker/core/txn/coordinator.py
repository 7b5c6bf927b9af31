"""The transaction coordinator of one broker: a shard for each partition of `__transaction_state` it
leads.

A transactional id belongs to the partition it hashes to, and lives on that partition's leader. A
broker that is elected reads the log at its next turn, because there may be ends to carry through
that nobody asks about; questions that come earlier get COORDINATOR_LOAD_IN_PROGRESS.

Source: TransactionCoordinator.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mockbroker.core.hashing.java_hash import coordinator_partition
from mockbroker.core.topic import TRANSACTION_STATE_TOPIC
from mockbroker.core.txn.loader import load
from mockbroker.core.txn.marker_sender import MarkerSender
from mockbroker.core.txn.shard import TransactionShard
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.partition import Partition
    from mockbroker.core.scoped_timers import ScopedTimers


LOAD_MS = "mockbroker.coordinator.load.ms"


class TransactionCoordinator:
    """The transactional ids that broker `broker_id` coordinates."""

    __slots__ = (
        "_expiring",
        "_shards",
        "_started_ms",
        "broker_id",
        "cluster",
        "markers",
        "timeout_max_ms",
        "times",
    )

    def __init__(self, cluster: Cluster, broker_id: int) -> None:
        self.cluster = cluster
        self.broker_id = broker_id
        self.timeout_max_ms = cluster.config_int("transaction.max.timeout.ms")
        self.markers = MarkerSender(cluster, broker_id)
        self._shards: dict[int, TransactionShard] = {}
        self.times: ScopedTimers = cluster.time_scopes.transactions
        self._started_ms = self.times.now_ms()
        self._expiring = False

    # ---------------------------------------------------------------------------- finding shards

    def shard_of(self, transactional_id: str) -> TransactionShard | ErrorCode:
        """The shard that holds an id, or why this broker cannot speak for it."""
        topic = self.cluster.topics.get(TRANSACTION_STATE_TOPIC)
        if topic is None:
            return ErrorCode.NOT_COORDINATOR
        partitions = topic.partitions
        return self.shard(partitions[coordinator_partition(transactional_id, len(partitions))])

    def shard(self, partition: Partition) -> TransactionShard | ErrorCode:
        """The shard of one partition: NOT_COORDINATOR elsewhere, COORDINATOR_LOAD_IN_PROGRESS
        early.
        """
        if partition.leader_id != self.broker_id:
            return ErrorCode.NOT_COORDINATOR
        shard = self._current(partition)
        if shard is None:
            shard = self._open(partition)
            self._load(shard)
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if shard.loading else shard

    def shards(self) -> Iterator[TransactionShard | ErrorCode]:
        """Every shard of this broker, in the order of partitions."""
        topic = self.cluster.topics.get(TRANSACTION_STATE_TOPIC)
        for partition in topic.partitions if topic else ():
            if partition.leader_id == self.broker_id:
                yield self.shard(partition)

    def _current(self, partition: Partition) -> TransactionShard | None:
        shard = self._shards.get(partition.index)
        if shard is None or shard.unloaded or shard.partition is not partition:
            return None
        return shard if shard.epoch == partition.leader_epoch else None

    # --------------------------------------------------------------------------- coming and going

    def elected(self, partition: Partition) -> None:
        """Read a partition that this broker has begun to lead, once what goes on is over."""
        self.reload(partition, self.cluster.config_int(LOAD_MS))

    def reload(self, partition: Partition, load_ms: int) -> None:
        """Forget what is in a partition and read it anew, which takes `load_ms`."""
        shard = self._open(partition)
        due_ms = self.cluster.now_ms() + load_ms
        self.cluster.timers.call_at(due_ms, lambda: self._load(shard))

    def _open(self, partition: Partition) -> TransactionShard:
        former = self._shards.get(partition.index)
        if former is not None:
            former.unload()
        shard = self._shards[partition.index] = TransactionShard(self, partition)
        return shard

    def _load(self, shard: TransactionShard) -> None:
        if shard.unloaded or self._current(shard.partition) is not shard:
            return
        load(shard)
        shard.start()
        if not self._expiring:
            self._expiring = True
            self._schedule_expiry()

    def unload(self) -> None:
        """The broker's process ends: forget everything."""
        for shard in self._shards.values():
            shard.unload()
        self._shards.clear()

    # -------------------------------------------------------------------------------------- upkeep

    def next_scan_ms(self, deadline_ms: int) -> int:
        """When transactions are next looked at, at or after `deadline_ms` and after now.

        Kafka looks every `transaction.abort.timed.out.transaction.cleanup.interval.ms`.
        """
        interval_ms = self.cluster.config_int(
            "transaction.abort.timed.out.transaction.cleanup.interval.ms"
        )
        earliest_ms = max(deadline_ms, self.times.now_ms() + 1)
        return earliest_ms + (self._started_ms - earliest_ms) % interval_ms

    def _schedule_expiry(self) -> None:
        interval_ms = self.cluster.config_int(
            "transaction.remove.expired.transaction.cleanup.interval.ms"
        )
        self.times.call_at(self.times.now_ms() + interval_ms, self._on_expiry)

    def _on_expiry(self) -> None:
        self.expire_ids()
        self._schedule_expiry()

    def expire_ids(self) -> None:
        """Forget the ids that nobody used for transactional.id.expiration.ms."""
        expiration_ms = self.cluster.config_int("transactional.id.expiration.ms")
        for shard in list(self._shards.values()):
            if not shard.unloaded and not shard.loading:
                shard.expire(expiration_ms)
