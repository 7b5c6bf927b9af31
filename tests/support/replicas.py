"""Scripts of replication: a partition on some brokers, what clients ask, and who has what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mockbroker.core.events import Event, IsrChanged, LeaderChanged
from mockbroker.core.replication.partition import Partition
from mockbroker.core.replication.replica import FollowerState, Replica
from mockbroker.handlers.base import Parked
from mockbroker_protocol.messages.produce import PartitionProduceResponse
from tests.support.requests import Node, batch_of, done, only, records_of


class Replicas(Node):
    """Brokers 1 to n and a topic `t` with one partition on them; time stands still."""

    def __init__(
        self,
        brokers: int = 3,
        *,
        replicas: Sequence[int] | None = None,
        configs: dict[str, str] | None = None,
        **topic_configs: str,
    ) -> None:
        super().__init__(racks=[None] * brokers, configs=configs)
        self.events: list[Event] = []
        topic = self.cluster.create_topic(
            "t",
            assignments={0: list(replicas or self.cluster.brokers)},
            configs={key.replace("_", "."): value for key, value in topic_configs.items()},
        )
        self._key = topic.partitions[0].key
        self.cluster.runtime.on_event.append(self.events.append)

    @property
    def partition(self) -> Partition:
        """The partition as the controller has it."""
        found = self.cluster.image.partition_by_id(*self._key)
        assert found is not None
        return found

    # -- doing -------------------------------------------------------------------------------------

    def advance(self, by_ms: int) -> None:
        """Move on from deadline to deadline, as the cluster's clock does."""
        until_ms = self.now_ms + by_ms
        timers = self.cluster.runtime.timers
        while (due_ms := timers.deadline_ms()) is not None and due_ms <= until_ms:
            self.now_ms = max(self.now_ms, due_ms)
            timers.run_due(self.now_ms)
        self.now_ms = until_ms

    def settle(self) -> None:
        """Let everything happen that takes no time."""
        self.advance(0)

    def send(self, *values: str, acks: int = -1, timeout_ms: int = 1000, broker: int = 0) -> Any:
        """Produce records at the leader, or at `broker`; the answer may be parked."""
        batch = batch_of(*(value.encode() for value in values))
        at = broker or self.partition.leader_id
        return self.produce(batch, acks=acks, timeout_ms=timeout_ms, broker=at)

    def sent(self, *values: str, acks: int = -1) -> PartitionProduceResponse:
        """Produce, let followers fetch, and return the answer, which is there then."""
        answer = self.send(*values, acks=acks)
        self.settle()
        return only(answer)

    def hold(self, *node_ids: int) -> None:
        for node_id in node_ids:
            self.cluster.lag_follower("t", 0, node=node_id)

    def release(self, *node_ids: int) -> None:
        for node_id in node_ids:
            self.cluster.lag_follower("t", 0, node=node_id, release=True)

    # -- looking -----------------------------------------------------------------------------------

    def ends(self) -> dict[int, int]:
        """Log end offset of each replica."""
        return {node_id: self._replica(node_id).log.end_offset for node_id in self._ids()}

    def high_watermarks(self) -> dict[int, int]:
        """High watermark of each replica."""
        return {node_id: self._replica(node_id).high_watermark for node_id in self._ids()}

    def starts(self) -> dict[int, int]:
        return {node_id: self._replica(node_id).log.start_offset for node_id in self._ids()}

    def contents(self) -> dict[int, str]:
        """The values of the records in each replica's log, joined by spaces."""
        return {node_id: self.content(node_id) for node_id in self._ids()}

    def content(self, node_id: int) -> str:
        log = self._replica(node_id).log
        pieces, _ = log.read(log.start_offset, log.end_offset, 1 << 30, at_least_one=True)

        class Data:
            records = b"".join(pieces)

        return " ".join((record.value or b"").decode() for record in records_of(Data))  # type: ignore[arg-type]

    def read(self, offset: int = 0, *, broker: int = 0) -> str:
        """What a consumer gets from the leader, or from `broker`."""
        data = self.fetched(("t", 0, offset), broker=broker or self.partition.leader_id)
        assert data.error_code == 0, data.error_code
        records = (record for record in records_of(data) if record.offset >= offset)
        return " ".join((record.value or b"").decode() for record in records)

    def leadership(self) -> tuple[int, int, list[int]]:
        """(leader, leader epoch, ISR)."""
        return self.partition.leader_id, self.partition.leader_epoch, self.partition.isr

    def with_own_replica(self) -> list[int]:
        return sorted(self.partition.own_replicas)

    def isr_changes(self) -> list[tuple[int, tuple[int, ...], tuple[int, ...]]]:
        """(time since the start, ISR before, ISR after) of each change, so far."""
        start = self.events[0].at_ms if self.events else 0
        return [
            (event.at_ms - start, event.former, event.isr)
            for event in self.events
            if isinstance(event, IsrChanged)
        ]

    def elections(self) -> list[tuple[int, int, int]]:
        """(leader before, leader after, epoch) of each election, so far."""
        return [
            (event.former_leader_id, event.leader_id, event.leader_epoch)
            for event in self.events
            if isinstance(event, LeaderChanged)
        ]

    def _ids(self) -> list[int]:
        return self.partition.replicas

    def _replica(self, node_id: int) -> Any:
        replica = self.partition.replica(node_id)
        assert replica is not None
        return replica


def follow(partition: Partition, replica: Replica) -> FollowerState:
    """Let a broker hold this replica, and the leader know as much as if it had just fetched."""
    state = FollowerState.caught_up(replica.node_id, replica.log, 0)
    partition.own_replicas[replica.node_id] = replica
    partition.followers[replica.node_id] = state
    return state


def waiting(answer: Any) -> bool:
    """Whether an answer is still to come."""
    return isinstance(answer, Parked) and not answer.done


def error_of(answer: Any) -> int:
    """The error of a Produce of one partition, whose answer is there."""
    error: int = only(done(answer)).error_code
    return error
