"""The transaction coordinator of one broker (see `coordinator.runtime`): its upkeep.

Source: TransactionCoordinator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.coordinator.runtime import CoordinatorRuntime
from mockbroker.core.topic import TRANSACTION_STATE_TOPIC
from mockbroker.core.txn.marker_sender import MarkerSender
from mockbroker.core.txn.shard import TransactionShard

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.partition import Partition
    from mockbroker.core.scoped_timers import ScopedTimers


class TransactionCoordinator(CoordinatorRuntime[TransactionShard]):
    """The transactional ids that broker `broker_id` coordinates."""

    __slots__ = ("_expiring", "_started_ms", "markers", "timeout_max_ms", "times")

    topic_name = TRANSACTION_STATE_TOPIC
    reads_when_asked = False  # markers set out when it is read, not in the midst of something

    def __init__(self, cluster: Cluster, broker_id: int) -> None:
        super().__init__(cluster, broker_id)
        self.timeout_max_ms = cluster.config_int("transaction.max.timeout.ms")
        self.markers = MarkerSender(cluster, broker_id)
        self.times: ScopedTimers = cluster.time_scopes.transactions
        self._started_ms = self.times.now_ms()
        self._expiring = False

    def new_shard(self, partition: Partition) -> TransactionShard:
        return TransactionShard(self, partition)

    def begin(self, shard: TransactionShard) -> None:
        shard.start()
        if not self._expiring:
            self._expiring = True
            self._schedule_expiry()

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
        for shard in self.loaded():
            shard.expire(expiration_ms)
