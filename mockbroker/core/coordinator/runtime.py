"""A coordinator: a *shard* for each partition of its topic that this broker leads.

A key (a group id, a transactional id) hashes to a partition, whose leader coordinates it.
`on_leadership_change` compares the broker's image of the partition with the shard, and loads or
unloads the shard. A load begins in the next turn without a request, because sessions must expire
and transactions must end. With `mockbroker.coordinator.load.ms` it begins that much later, and a
long log takes several turns. Until it ends the broker answers COORDINATOR_LOAD_IN_PROGRESS. Other
brokers answer NOT_COORDINATOR. An empty partition has no shard before the first request.

Source: CoordinatorRuntime, GroupCoordinatorService, TransactionCoordinator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from mockbroker.core.brokers.broker_life import PAUSED, RUNNING
from mockbroker.core.brokers.host import HostBroker
from mockbroker.core.coordinator.shard import CoordinatorShard
from mockbroker.core.hashing.java_hash import coordinator_partition
from mockbroker.core.timing.turns import in_turns
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.replication.partition import Partition

LOAD_MS = "mockbroker.coordinator.load.ms"

S = TypeVar("S", bound=CoordinatorShard[Any])


class CoordinatorRuntime(Generic[S]):
    """The shards of one broker. A subclass names the topic and makes the shards."""

    __slots__ = ("_shards", "broker", "broker_id", "configs", "runtime")

    topic_name: ClassVar[str]
    # Whether a request before that turn loads the shard at once instead of being refused.
    loads_on_request: ClassVar[bool]

    def __init__(self, broker: HostBroker) -> None:
        self.runtime = broker.services.runtime
        self.configs = broker.services.configs
        self.broker = broker
        self.broker_id = broker.node_id
        self._shards: dict[int, S] = {}

    def new_shard(self, partition: Partition) -> S:
        """An empty shard that is not loaded yet."""
        raise NotImplementedError

    def on_shard_loaded(self, shard: S) -> Iterator[None]:
        """Start the timers of a shard that has read its log, in turns."""
        return shard.on_loaded()

    # --------------------------------------------------------------------------- finding shards

    def _partitions(self) -> Sequence[Partition]:
        """The partitions of the topic in the broker's image."""
        topic = self.broker.image.topics.get(self.topic_name)
        return topic.partitions if topic else ()

    def _partition_of(self, key: str) -> Partition | None:
        """The partition that a key hashes to, or None before the topic is created."""
        topic = self.broker.image.topics.get(self.topic_name)
        if topic is None or not topic.partitions:
            return None
        return topic.partitions[coordinator_partition(key, len(topic.partitions))]

    def shard_of(self, key: str) -> S | ErrorCode:
        """The shard of a key, or the error code for its requests."""
        partition = self._partition_of(key)
        return ErrorCode.NOT_COORDINATOR if partition is None else self.shard(partition)

    def shard(self, partition: Partition) -> S | ErrorCode:
        """The shard of one partition, NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS."""
        if partition.leader_id != self.broker_id:
            return ErrorCode.NOT_COORDINATOR
        shard = self._shards.get(partition.index)
        if shard is None or shard.unloaded or shard.partition is not partition:
            if not self._may_load(partition):
                return ErrorCode.NOT_COORDINATOR
            shard = self._start_load(partition, self.configs.get_int(LOAD_MS), at_once=True)
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if shard.loading else shard

    def shards(self) -> Iterator[S | ErrorCode]:
        """Every shard of this broker, in the order of partitions."""
        for partition in self._partitions():
            if partition.leader_id == self.broker_id:
                yield self.shard(partition)

    def loaded(self) -> list[S]:
        """The loaded shards."""
        return [each for each in self._shards.values() if not each.unloaded and not each.loading]

    # ---------------------------------------------------------------------- loading and unloading

    def on_leadership_change(self, partition: Partition) -> None:
        """Load or unload the shard of a partition whose leader, epoch or log may have changed."""
        shard = self._shards.get(partition.index)
        if shard is not None and not shard.is_current_for(partition):
            if partition.deleted and shard.partition is not partition:
                return  # the shard belongs to a new topic of the same name
            shard.unload()
            shard = None
        is_empty = partition.log.end_offset == partition.log.start_offset
        if shard is None and not is_empty and self._may_load(partition):
            load_ms = self.configs.get_int(LOAD_MS)
            if load_ms or not self.loads_on_request:
                self._start_load(partition, load_ms)
            else:
                self.runtime.loads[self, partition.index] = self._load_unasked(partition)
                load = partial(self._load_in_next_turn, partition)
                self.runtime.timers.call_at(self.runtime.now_ms(), load)

    def _load_in_next_turn(self, partition: Partition) -> None:
        load = self.runtime.loads.pop((self, partition.index), None)
        if load is not None:
            in_turns(self.runtime.timers, load)

    def _load_unasked(self, partition: Partition) -> Iterator[None]:
        self.shard(partition)
        yield from ()

    def _may_load(self, partition: Partition) -> bool:
        """Whether this broker leads the partition. A removed broker leads none, although a new
        broker may have its id.
        """
        leads = partition.leader_id == self.broker_id and not partition.deleted
        return leads and self.broker.state in (RUNNING, PAUSED)

    def reload(self, key: str, load_ms: int) -> bool:
        """Unload the shard of a key and load it again in `load_ms`.

        Returns False if the broker does not lead the partition of the key.
        """
        partition = self._partition_of(key)
        if partition is None or not self._may_load(partition):
            return False
        self._start_load(partition, load_ms, at_once=self.loads_on_request)
        return True

    def _start_load(self, partition: Partition, load_ms: int, *, at_once: bool = False) -> S:
        """A shard that is loaded in `load_ms`; with 0 ms in the next turn, or now if `at_once`."""
        former = self._shards.get(partition.index)
        if former is not None:
            former.unload()
        shard = self._shards[partition.index] = self.new_shard(partition)
        if at_once and not load_ms:
            self._load(shard)
        else:
            if not load_ms:
                self.runtime.loads[shard] = self._loading(shard)
            due_ms = self.runtime.now_ms() + load_ms
            self.runtime.timers.call_at(due_ms, partial(self._load, shard))
        return shard

    def _load(self, shard: S) -> None:
        if not shard.loading:
            return  # an operator has looked meanwhile
        load = self.runtime.loads.setdefault(shard, self._loading(shard))
        in_turns(self.runtime.timers, load)

    def _loading(self, shard: S) -> Iterator[None]:
        try:
            yield from shard.read()
            if not shard.unloaded:
                yield from self.on_shard_loaded(shard)
            shard.loading = False
        finally:
            self.runtime.loads.pop(shard, None)

    def is_paused(self) -> bool:
        """Whether the broker's process is paused; its timers do not run then."""
        return self.broker.state == PAUSED

    def resume(self) -> None:
        """Resume the broker: run the timers that fell due while it was paused."""
        for shard in list(self._shards.values()):
            shard.resume()

    def unload(self) -> None:
        """Unload every shard, because the broker's process ends."""
        for shard in self._shards.values():
            shard.unload()
        self._shards.clear()
