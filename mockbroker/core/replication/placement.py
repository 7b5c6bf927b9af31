"""The placement of replicas of new partitions (Kafka's StripedReplicaPlacer).

Brokers form one ring per rack; racks form a ring of their own. Each partition starts one rack
further than the one before, takes its leader from a live broker there, and its followers from the
next racks in turn. No broker has two replicas of a partition. Over a round of partitions leaders
spread evenly, and replicas cover as many racks as possible. After as many partitions as there are
live brokers both rings are shuffled, so that the same sets of brokers do not recur.
"""

from __future__ import annotations

from typing import NamedTuple

from mockbroker.core.errors import ApiError
from mockbroker.core.ids import IdSource
from mockbroker_protocol import ErrorCode


class UsableBroker(NamedTuple):
    """A broker that may hold replicas; a fenced one is used last and never leads."""

    node_id: int
    rack: str | None
    fenced: bool


class _Ring:
    """Brokers of one rack, read from an offset that moves by one with every partition."""

    __slots__ = ("brokers", "epoch", "index", "offset")

    def __init__(self) -> None:
        self.brokers: list[int] = []
        self.index = 0
        self.offset = 0
        self.epoch = 0

    def start(self, ids: IdSource) -> None:
        if self.brokers:
            self.brokers.sort()
            self.offset = ids.below(len(self.brokers))

    def next(self, epoch: int) -> int:
        """The next broker for partition number `epoch` of this round, or -1 when all are used."""
        if not self.brokers:
            return -1
        if self.epoch != epoch:
            self.epoch = epoch
            self.index = 0
            self.offset = (self.offset + 1) % len(self.brokers)
        if self.index >= len(self.brokers):
            return -1
        broker = self.brokers[(self.index + self.offset) % len(self.brokers)]
        self.index += 1
        return broker


class _Rack:
    __slots__ = ("fenced", "unfenced")

    def __init__(self) -> None:
        self.fenced = _Ring()
        self.unfenced = _Ring()

    def next(self, epoch: int) -> int:
        broker = self.unfenced.next(epoch)
        return broker if broker >= 0 else self.fenced.next(epoch)


class _Placer:
    def __init__(self, brokers: list[UsableBroker], ids: IdSource) -> None:
        self.ids = ids
        by_name: dict[str | None, _Rack] = {}
        for node_id, rack, fenced in brokers:
            home = by_name.setdefault(rack, _Rack())
            (home.fenced if fenced else home.unfenced).brokers.append(node_id)
        self.racks = [by_name[name] for name in sorted(by_name, key=lambda n: (n is not None, n))]
        for home in self.racks:
            home.fenced.start(ids)
            home.unfenced.start(ids)
        self.unfenced_count = sum(not b.fenced for b in brokers)
        self.epoch = 0
        self.offset = ids.below(len(self.racks))

    def place(self, replication_factor: int) -> list[int]:
        if self.epoch == self.unfenced_count and self.unfenced_count > 1:
            self._shuffle()
            self.epoch = 0
        self.offset %= len(self.racks)
        leader_rack = self.offset
        leader = self.racks[leader_rack].unfenced.next(self.epoch)
        while leader < 0:
            leader_rack = (leader_rack + 1) % len(self.racks)
            leader = self.racks[leader_rack].unfenced.next(self.epoch)
        replicas = [leader]
        rack = self.offset
        skip = leader_rack  # the leader's rack is skipped in the first lap
        while len(replicas) < replication_factor:
            if rack == skip:
                skip = -1
            else:
                broker = self.racks[rack].next(self.epoch)
                if broker >= 0:
                    replicas.append(broker)
            rack = (rack + 1) % len(self.racks)
        self.epoch += 1
        self.offset += 1
        return replicas

    def _shuffle(self) -> None:
        self.ids.shuffle(self.racks)
        for home in self.racks:
            self.ids.shuffle(home.fenced.brokers)
            self.ids.shuffle(home.unfenced.brokers)


def place_replicas(
    brokers: list[UsableBroker], partition_count: int, replication_factor: int, ids: IdSource
) -> list[list[int]]:
    """Replica lists, preferred leader first, for `partition_count` new partitions.

    Raises ApiError INVALID_REPLICATION_FACTOR if the factor is not positive or exceeds the number
    of registered brokers, or if no broker is alive.
    """
    if replication_factor <= 0:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Invalid replication factor {replication_factor}: the replication factor must be "
            "positive.",
        )
    if all(broker.fenced for broker in brokers):
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "All brokers are currently fenced, or have all their log directories cordoned.",
        )
    if replication_factor > len(brokers):
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{len(brokers)} broker(s) are registered or some brokers have all their log "
            "directories cordoned.",
        )
    placer = _Placer(brokers, ids)
    return [placer.place(replication_factor) for _ in range(partition_count)]
