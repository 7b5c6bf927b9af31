"""The transaction coordinator of one broker (see `coordinator.runtime`), and its scans.

Source: TransactionCoordinator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from mockbroker.core.coordinator.runtime import CoordinatorRuntime
from mockbroker.core.metadata.topic import TRANSACTION_STATE_TOPIC
from mockbroker.core.timing.timers import DueTimers
from mockbroker.core.timing.turns import in_turns
from mockbroker.core.txn.marker_channel_manager import TransactionMarkerChannelManager
from mockbroker.core.txn.shard import TransactionShard

if TYPE_CHECKING:
    from mockbroker.core.brokers.host import HostBroker
    from mockbroker.core.replication.partition import Partition
    from mockbroker.core.timing.domain_timers import DomainTimers
    from mockbroker.core.txn.markers import MarkerReceiver


class TransactionCoordinator(CoordinatorRuntime[TransactionShard]):
    """The transactional ids that one broker coordinates."""

    __slots__ = ("_expiry", "_started_ms", "features", "markers", "timeout_max_ms", "times")

    topic_name = TRANSACTION_STATE_TOPIC
    loads_on_request = False  # its load sends markers

    def __init__(self, broker: HostBroker, brokers: Mapping[int, MarkerReceiver]) -> None:
        """`brokers` are those to which markers can be sent."""
        super().__init__(broker)
        services = broker.services
        self.features = services.features
        self.timeout_max_ms = self.configs.get_int("transaction.max.timeout.ms")
        self.markers = TransactionMarkerChannelManager(
            services, broker.node_id, brokers, self.is_paused
        )
        self.times: DomainTimers = services.clock_domains.transactions
        self._started_ms = self.times.now_ms()
        self._expiry: DueTimers[None] = DueTimers(self.is_paused)

    def new_shard(self, partition: Partition) -> TransactionShard:
        return TransactionShard(self, partition)

    def on_shard_loaded(self, shard: TransactionShard) -> Iterator[None]:
        yield from shard.on_loaded()
        self._schedule_expiry()

    def resume(self) -> None:
        super().resume()
        self.markers.resume()
        self._expiry.resume()

    def unload(self) -> None:
        super().unload()
        self.markers.unload()
        self._expiry.clear()

    # --------------------------------------------------------------------------------------- scans

    def next_scan_ms(self, deadline_ms: int) -> int:
        """The time of the next scan for timed-out transactions, from `deadline_ms` on but not now.

        Kafka scans every `transaction.abort.timed.out.transaction.cleanup.interval.ms`.
        """
        interval_ms = self.configs.get_int(
            "transaction.abort.timed.out.transaction.cleanup.interval.ms"
        )
        earliest_ms = max(deadline_ms, self.times.now_ms() + 1)
        return earliest_ms + (self._started_ms - earliest_ms) % interval_ms

    def _schedule_expiry(self) -> None:
        interval_ms = self.configs.get_int(
            "transaction.remove.expired.transaction.cleanup.interval.ms"
        )
        due_ms = self.times.now_ms() + interval_ms
        self._expiry.arm(self.times, None, due_ms, self._on_expiry)

    def _on_expiry(self, _: None) -> None:
        in_turns(self.runtime.timers, self._expire_ids())
        self._schedule_expiry()

    def _expire_ids(self) -> Iterator[None]:
        """Remove the ids that were unused for transactional.id.expiration.ms."""
        expiration_ms = self.configs.get_int("transactional.id.expiration.ms")
        for shard in self.loaded():
            yield from shard.expire(expiration_ms)
