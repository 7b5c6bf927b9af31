"""The distinct logs of one partition: the leader's, which most replicas share, and the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mockbroker.core.log.replica_log import ReplicaLog
    from mockbroker.core.replication.partition import Partition


class DistinctLog(NamedTuple):
    """One log of a partition, with a broker that holds it and its watermarks."""

    node_id: int
    log: ReplicaLog
    high_watermark: int
    last_stable_offset: int


def logs_of(partition: Partition) -> Iterator[DistinctLog]:
    """Each log of a partition once: the leader's first."""
    log = partition.log
    yield DistinctLog(
        partition.leader_id, log, partition.high_watermark, partition.last_stable_offset
    )
    seen = {id(log)}
    for replica in list(partition.own_replicas.values()):
        own = replica.log
        if id(own) in seen:
            continue
        seen.add(id(own))
        high_watermark = min(replica.high_watermark, own.end_offset)
        stable = own.last_stable_offset(high_watermark)
        yield DistinctLog(replica.node_id, own, high_watermark, stable)
