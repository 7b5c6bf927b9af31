"""A coordinator: a *shard* for each partition of its topic that this broker leads.

A key (a group id, a transactional id) hashes to a partition, whose leader coordinates it.
`on_leadership_change` compares the broker's image of the partition with the shard, and loads or
unloads it. The log is loaded at the next turn, because sessions and ends of transactions need no
request; with `mockbroker.coordinator.load.ms` the load takes that long. Until then the broker
answers COORDINATOR_LOAD_IN_PROGRESS. Other brokers answer NOT_COORDINATOR. An empty partition has
no shard before the first request.

Source: CoordinatorRuntime, GroupCoordinatorService, TransactionCoordinator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from mockbroker.core.brokers.broker_life import PAUSED, RUNNING
from mockbroker.core.coordinator.shard import CoordinatorShard
from mockbroker.core.hashing.java_hash import coordinator_partition
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.metadata.image import Image
    from mockbroker.core.replication.partition import Partition
    from mockbroker.core.services import Services

LOAD_MS = "mockbroker.coordinator.load.ms"

S = TypeVar("S", bound=CoordinatorShard[Any])


class CoordinatorHost(Protocol):
    """The broker of a coordinator."""

    @property
    def node_id(self) -> int: ...
    @property
    def state(self) -> str: ...
    @property
    def image(self) -> Image: ...
    @property
    def services(self) -> Services: ...


class CoordinatorRuntime(Generic[S]):
    """The shards of one broker. A subclass names the topic and makes the shards."""

    __slots__ = ("_shards", "broker", "broker_id", "configs", "runtime")

    topic_name: ClassVar[str]
    # Whether a request before that turn loads the log, and is not refused.
    loads_on_request: ClassVar[bool]

    def __init__(self, broker: CoordinatorHost) -> None:
        self.runtime = broker.services.runtime
        self.configs = broker.services.configs
        self.broker = broker
        self.broker_id = broker.node_id
        self._shards: dict[int, S] = {}

    def new_shard(self, partition: Partition) -> S:
        """An empty shard, before its load."""
        raise NotImplementedError

    def begin(self, shard: S) -> None:
        """The shard is loaded: start its timers."""
        shard.on_loaded()

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
            shard = self._open(partition, self.configs.get_int(LOAD_MS), at_once=True)
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if shard.loading else shard

    def shards(self) -> Iterator[S | ErrorCode]:
        """Every shard of this broker, in the order of partitions."""
        for partition in self._partitions():
            if partition.leader_id == self.broker_id:
                yield self.shard(partition)

    def loaded(self) -> list[S]:
        """The loaded shards."""
        return [each for each in self._shards.values() if not each.unloaded and not each.loading]

    # --------------------------------------------------------------------------- coming and going

    def on_leadership_change(self, partition: Partition) -> None:
        """Load or unload the shard of a partition whose leader, epoch or log may have changed."""
        shard = self._shards.get(partition.index)
        if shard is not None and not shard.fits(partition):
            if partition.deleted and shard.partition is not partition:
                return  # the topic was created anew
            shard.unload()
            shard = None
        is_empty = partition.log.end_offset == partition.log.start_offset
        if shard is None and not is_empty and self._may_load(partition):
            load_ms = self.configs.get_int(LOAD_MS)
            if load_ms or not self.loads_on_request:
                self._open(partition, load_ms)
            else:
                self.runtime.timers.call_at(self.runtime.now_ms(), partial(self._ask, partition))

    def _ask(self, partition: Partition) -> None:
        self.shard(partition)

    def _may_load(self, partition: Partition) -> bool:
        """Whether this broker leads the partition. One that was removed does not, even if another
        broker has its id.
        """
        leads = partition.leader_id == self.broker_id and not partition.deleted
        return leads and self.broker.state in (RUNNING, PAUSED)

    def reload(self, key: str, load_ms: int) -> bool:
        """Unload the shard of a key and load it again in `load_ms`; False if the partition of the
        key has another leader in the broker's image.
        """
        partition = self._partition_of(key)
        if partition is None or not self._may_load(partition):
            return False
        self._open(partition, load_ms, at_once=self.loads_on_request)
        return True

    def _open(self, partition: Partition, load_ms: int, *, at_once: bool = False) -> S:
        """A shard that loads `load_ms` from now; for 0 ms at the next turn, or `at_once`."""
        former = self._shards.get(partition.index)
        if former is not None:
            former.unload()
        shard = self._shards[partition.index] = self.new_shard(partition)
        if at_once and not load_ms:
            self._load(shard)
        else:
            due_ms = self.runtime.now_ms() + load_ms
            self.runtime.timers.call_at(due_ms, partial(self._load, shard))
        return shard

    def _load(self, shard: S) -> None:
        if not shard.unloaded:
            shard.read()
            shard.loading = False
            self.begin(shard)

    def stands_still(self) -> bool:
        """Whether the broker's process is paused: its clocks run no timers then."""
        return self.broker.state == PAUSED

    def resume(self) -> None:
        """The broker is resumed: sessions and transactions that expired meanwhile end."""
        for shard in list(self._shards.values()):
            shard.resume()

    def unload(self) -> None:
        """The broker's process ends: unload every shard."""
        for shard in self._shards.values():
            shard.unload()
        self._shards.clear()
