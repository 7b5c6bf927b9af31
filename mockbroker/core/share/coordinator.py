"""The share coordinator of one broker (see `coordinator.runtime`): its requests and its upkeep.

A request has any number of share partitions. Each is handled on its own by the shard that its key
hashes to. While the broker has shards, two timers run: one writes snapshots of cold share
partitions, the other deletes redundant records.

Source: ShareCoordinatorService.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from mockbroker.core.coordinator.runtime import CoordinatorRuntime
from mockbroker.core.hashing.java_hash import uuid_hash
from mockbroker.core.hashing.java_hash_map import JavaHashMap
from mockbroker.core.ids import uuid_text
from mockbroker.core.metadata.topic import SHARE_GROUP_STATE_TOPIC
from mockbroker.core.share.operations import (
    INITIALIZE,
    A,
    Q,
    StateOperation,
)
from mockbroker.core.share.records import SharePartitionKey
from mockbroker.core.share.shard import ROWS_PER_TURN, ShareShard
from mockbroker.core.timing.timers import DueTimers
from mockbroker.core.timing.turns import in_turns
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.brokers.host import HostBroker
    from mockbroker.core.replication.partition import Partition
    from mockbroker.core.share.operations import Result, Row, StateRequest

FEATURE = "share.version"
PRUNE_INTERVAL = "share.coordinator.state.topic.prune.interval.ms"
COLD_INTERVAL = "share.coordinator.cold.partition.snapshot.interval.ms"


def coordinator_key(group_id: str, topic_id: bytes, partition: int) -> str:
    """The key of FindCoordinator (SharePartitionKey.asCoordinatorKey)."""
    return f"{group_id}:{uuid_text(topic_id)}:{partition}"


class ShareCoordinator(CoordinatorRuntime[ShareShard]):
    """The share partitions that one broker coordinates."""

    __slots__ = ("_upkeep",)

    topic_name = SHARE_GROUP_STATE_TOPIC
    loads_on_request = True

    def __init__(self, broker: HostBroker) -> None:
        super().__init__(broker)
        # The timers of both intervals, by their configs.
        self._upkeep: DueTimers[str] = DueTimers(self.is_paused)

    def new_shard(self, partition: Partition) -> ShareShard:
        return ShareShard(self, partition)

    def on_shard_loaded(self, shard: ShareShard) -> Iterator[None]:
        yield from super().on_shard_loaded(shard)
        self._arm(PRUNE_INTERVAL)
        self._arm(COLD_INTERVAL)

    def resume(self) -> None:
        super().resume()
        self._upkeep.resume()

    def unload(self) -> None:
        super().unload()
        self._upkeep.clear()

    def has_partition(self, key: SharePartitionKey) -> bool:
        """Whether the broker's metadata has the topic's partition."""
        topic = self.broker.image.topics_by_id.get(key.topic_id)
        return topic is not None and key.partition < len(topic.partitions)

    def topic_of(self, key: SharePartitionKey) -> str:
        """The name of the topic; empty if the broker's metadata does not have it."""
        topic = self.broker.image.topics_by_id.get(key.topic_id)
        return "" if topic is None else topic.name

    # ------------------------------------------------------------------------------------ requests

    def handle(
        self, operation: StateOperation[Q, A], request: Q, then: Callable[[A], None]
    ) -> None:
        """Handle a request; `then` is called once, perhaps now, with the response.

        Without a group id or topics the response is empty, and if a topic has no partitions, except
        for an InitializeShareGroupState. Of a share partition named twice, both are handled, and
        the later result is in the response.
        """
        topics = request.topics
        is_whole = operation is INITIALIZE or all(topic.partitions for topic in topics)
        if not request.group_id or not topics or not is_whole:
            then(operation.response(()))
            return
        _Rows(self, operation, request, then).handle()

    def handle_row(
        self,
        operation: StateOperation[Any, Any],
        key: SharePartitionKey,
        row: Row,
        then: Callable[[Result], None],
    ) -> None:
        """Handle one share partition of a request."""
        shard = self.shard_of(coordinator_key(*key))
        if isinstance(shard, ErrorCode):
            then(operation.unable(key.partition, shard, shard.message))
        else:
            shard.handle(operation, key, row, then)

    # -------------------------------------------------------------------------------------- upkeep

    def topics_deleted(self, topic_ids: Collection[bytes]) -> None:
        """Write tombstones for the share partitions of topics that the metadata no longer has.

        Source: ShareCoordinatorService.onMetadataUpdate.
        """
        of_shards = [shard.topics_deleted(topic_ids) for shard in self.loaded()]
        in_turns(self.runtime.timers, chain.from_iterable(of_shards))

    def _arm(self, config: str) -> None:
        """Set the timer of a job, unless it is set."""
        due_ms = self.runtime.now_ms() + self.configs.get_int(config)
        self._upkeep.arm(self.runtime.timers, config, due_ms, self._on_upkeep)

    def _on_upkeep(self, config: str) -> None:
        """Run one of the two jobs on every shard. Below share.version 1 Kafka runs neither."""
        shards = self.loaded()
        if self.broker.services.features.level(FEATURE) > 0:
            if config == PRUNE_INTERVAL:
                for shard in shards:
                    shard.prune()
            else:
                age_ms = self.configs.get_int(COLD_INTERVAL)
                of_shards = [shard.snapshot_cold(age_ms) for shard in shards]
                in_turns(self.runtime.timers, chain.from_iterable(of_shards))
        if shards:
            self._arm(config)


class _Rows:
    """A request whose rows are being handled."""

    __slots__ = ("_coordinator", "_missing", "_operation", "_request", "_results", "_then")

    def __init__(
        self,
        coordinator: ShareCoordinator,
        operation: StateOperation[Q, A],
        request: Q,
        then: Callable[[A], None],
    ) -> None:
        self._coordinator = coordinator
        self._operation: StateOperation[Any, Any] = operation
        self._request: StateRequest = request
        self._then: Callable[[Any], None] = then
        # The service's hash maps, whose order the answer has.
        self._results: JavaHashMap[bytes, JavaHashMap[int, Result | None]] = JavaHashMap(uuid_hash)

    def handle(self) -> None:
        request = self._request
        rows = [
            (SharePartitionKey(request.group_id, topic.topic_id, row.partition), row)
            for topic in request.topics
            for row in topic.partitions
        ]
        last: dict[SharePartitionKey, int] = {}
        for number, (key, _) in enumerate(rows):
            of_topic = self._results.compute_if_absent(key.topic_id, _by_partition)
            of_topic[key.partition] = None
            last[key] = number
        self._missing = len(rows)
        if not rows:
            self._then(self._operation.response(()))
        in_turns(self._coordinator.runtime.timers, self._handle(rows, last))

    def _handle(
        self,
        rows: Sequence[tuple[SharePartitionKey, Row]],
        last: Mapping[SharePartitionKey, int],
    ) -> Iterator[None]:
        for number, (key, row) in enumerate(rows):
            if number and number % ROWS_PER_TURN == 0:
                yield
            done = partial(self._done, key, last[key] == number)
            self._coordinator.handle_row(self._operation, key, row, done)

    def _done(self, key: SharePartitionKey, is_last: bool, result: Result) -> None:
        if is_last:
            self._results[key.topic_id][key.partition] = result
        self._missing -= 1
        if not self._missing:
            self._then(self._operation.response(self._ordered()))

    def _ordered(self) -> list[tuple[bytes, Result]]:
        return [
            (topic_id, result)
            for topic_id, of_topic in self._results.items()
            for result in of_topic.values()
            if result is not None
        ]


def _by_partition() -> JavaHashMap[int, Result | None]:
    return JavaHashMap(int)
