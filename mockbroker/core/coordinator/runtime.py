"""A coordinator: a *shard* for each partition of its topic that this broker leads.

A key (a group id, a transactional id) belongs to the partition it hashes to, and lives on that
partition's leader. What the broker knows of the partition decides alone: `partition_heard` compares
it with the shard that is there, and loads, unloads, or does nothing. The log is read at the next
turn, because sessions and ends of transactions go on without being asked for; with
`mockbroker.coordinator.load.ms` it takes that long. Until then the broker answers
COORDINATOR_LOAD_IN_PROGRESS. Other brokers answer NOT_COORDINATOR. A partition that is empty, or
that the broker was not told of, has no shard until somebody asks.

Source: CoordinatorRuntime, GroupCoordinatorService, TransactionCoordinator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from mockbroker.core.broker_life import STOPPED
from mockbroker.core.coordinator.shard import CoordinatorShard
from mockbroker.core.hashing.java_hash import coordinator_partition
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.partition import Partition

LOAD_MS = "mockbroker.coordinator.load.ms"

S = TypeVar("S", bound=CoordinatorShard[Any])


class CoordinatorRuntime(Generic[S]):
    """The shards of broker `broker_id`. A subclass names the topic and makes the shards."""

    __slots__ = ("_shards", "broker_id", "cluster")

    topic_name: ClassVar[str]
    # Whether a question before that turn has the log read, and is not refused.
    reads_when_asked: ClassVar[bool]

    def __init__(self, cluster: Cluster, broker_id: int) -> None:
        self.cluster = cluster
        self.broker_id = broker_id
        self._shards: dict[int, S] = {}

    def new_shard(self, partition: Partition) -> S:
        """An empty shard, which is going to be loaded."""
        raise NotImplementedError

    def begin(self, shard: S) -> None:
        """The shard is loaded: let what is in it go on."""
        shard.start()

    # --------------------------------------------------------------------------- finding shards

    def _partitions(self) -> Sequence[Partition]:
        """Those of the topic, as far as the broker knows; none before there is one."""
        topic = self.cluster.image_of(self.broker_id).topics.get(self.topic_name)
        return topic.partitions if topic else ()

    def shard_of(self, key: str) -> S | ErrorCode:
        """The shard that holds a key, or why this broker cannot speak for the key."""
        partitions = self._partitions()
        if not partitions:
            return ErrorCode.NOT_COORDINATOR
        return self.shard(partitions[coordinator_partition(key, len(partitions))])

    def shard(self, partition: Partition) -> S | ErrorCode:
        """The shard of one partition: NOT_COORDINATOR elsewhere, COORDINATOR_LOAD_IN_PROGRESS
        early.
        """
        if partition.leader_id != self.broker_id:
            return ErrorCode.NOT_COORDINATOR
        shard = self._shards.get(partition.index)
        if shard is None or shard.unloaded or shard.partition is not partition:
            if not self._may_load(partition):
                return ErrorCode.NOT_COORDINATOR
            shard = self._open(partition, self.cluster.config_int(LOAD_MS), at_once=True)
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if shard.loading else shard

    def shards(self) -> Iterator[S | ErrorCode]:
        """Every shard of this broker, in the order of partitions."""
        for partition in self._partitions():
            if partition.leader_id == self.broker_id:
                yield self.shard(partition)

    def loaded(self) -> list[S]:
        """The shards that are there and loaded."""
        return [each for each in self._shards.values() if not each.unloaded and not each.loading]

    # --------------------------------------------------------------------------- coming and going

    def partition_heard(self, partition: Partition) -> None:
        """The broker has heard of a partition of the topic: perhaps of another leader or epoch, of
        another log, or of its end. To hear the same twice changes nothing.
        """
        shard = self._shards.get(partition.index)
        if shard is not None and not shard.fits(partition):
            if partition.deleted and shard.partition is not partition:
                return  # there is a topic of that name again
            shard.unload()
            shard = None
        is_empty = partition.log.end_offset == partition.log.start_offset
        if shard is None and not is_empty and self._may_load(partition):
            load_ms = self.cluster.config_int(LOAD_MS)
            if load_ms or not self.reads_when_asked:
                self._open(partition, load_ms)
            else:
                self.cluster.timers.call_at(self.cluster.now_ms(), partial(self._ask, partition))

    def _ask(self, partition: Partition) -> None:
        self.shard(partition)

    def _may_load(self, partition: Partition) -> bool:
        """Whether this broker leads the partition, and its process is there to do so."""
        broker = self.cluster.processes.get(self.broker_id)
        leads = partition.leader_id == self.broker_id and not partition.deleted
        return leads and broker is not None and broker.state != STOPPED

    def reload(self, partition: Partition, load_ms: int) -> None:
        """Forget what is in a partition and read it anew, which takes `load_ms`."""
        self._open(partition, load_ms, at_once=self.reads_when_asked)

    def _open(self, partition: Partition, load_ms: int, *, at_once: bool = False) -> S:
        """A shard that is loaded `load_ms` from now; for 0 ms at the next turn, or `at_once`."""
        former = self._shards.get(partition.index)
        if former is not None:
            former.unload()
        shard = self._shards[partition.index] = self.new_shard(partition)
        if at_once and not load_ms:
            self._load(shard)
        else:
            due_ms = self.cluster.now_ms() + load_ms
            self.cluster.timers.call_at(due_ms, partial(self._load, shard))
        return shard

    def _load(self, shard: S) -> None:
        if not shard.unloaded:
            shard.read()
            shard.loading = False
            self.begin(shard)

    def unload(self) -> None:
        """The broker's process ends: forget everything."""
        for shard in self._shards.values():
            shard.unload()
        self._shards.clear()
