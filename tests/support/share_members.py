"""Members of share groups on the wire: they fetch and acknowledge over connections of their own."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

from mockbroker import Cluster
from mockbroker.client import Client
from mockbroker.client.connection import Connection
from mockbroker.client.errors import ClientError
from mockbroker_protocol.messages import share_acknowledge as acknowledging
from mockbroker_protocol.messages import share_fetch as fetching
from mockbroker_protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.support.waiting import wait_until

GROUP = "g"
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)

Held = tuple[int, int, int]  # partition, first and last offset
Acks = tuple[int, int, Sequence[int]]  # first and last offset, and the types


class ShareMember:
    """One member; `held` is what it believes to have in hand from each broker."""

    def __init__(
        self, kafka: Cluster, member_id: str, topic: str, partitions: int, group: str = GROUP
    ) -> None:
        self._kafka = kafka
        self.group = group
        self.member_id = member_id
        self._topic = topic
        self._topic_id = kafka.call(lambda cluster: cluster.topics[topic].topic_id)
        self._partitions = range(partitions)
        self._connections: dict[int, Connection] = {}
        self._epochs: dict[int, int] = {}
        self.held: dict[int, list[Held]] = {}

    def _ask(self, node_id: int, request: object, version: int) -> Any:
        """The broker's answer; None if it gives none."""
        try:
            return self._connection(node_id).send(request, version)
        except ClientError:
            self.disconnect(node_id)
            return None

    def _connection(self, node_id: int) -> Connection:
        if node_id not in self._connections:
            endpoint = self._kafka.endpoint(node_id)
            self._connections[node_id] = Connection(*endpoint, self.member_id, timeout_s=10.0)
        return self._connections[node_id]

    def _in_session(self, node_id: int, request: Callable[[int], object]) -> Any:
        """The answer to a request with the session's epoch; None if it gives none."""
        epoch = self._epochs.get(node_id, 0)
        answer = self._ask(node_id, request(epoch), 2)
        if answer is not None and not answer.error_code:
            self._epochs[node_id] = epoch + 1
        elif answer is not None:
            self._epochs.pop(node_id, None)
        return answer

    def disconnect(self, node_id: int) -> None:
        """Close the connection, and with it the session."""
        connection = self._connections.pop(node_id, None)
        if connection is not None:
            connection.close()
        self._epochs.pop(node_id, None)
        self.held.pop(node_id, None)

    def close(self) -> None:
        for node_id in list(self._connections):
            self.disconnect(node_id)

    def heartbeat(self, node_id: int, epoch: int = 0) -> Any:
        request = ShareGroupHeartbeatRequest(
            self.group, self.member_id, epoch, subscribed_topic_names=[self._topic]
        )
        return self._ask(node_id, request, 1)

    def answered_fetch(self, node_id: int, most: int, *acks: Acks) -> Any:
        """The answer to a ShareFetch; acknowledgements are of the first partition. Partitions are
        named at first, and with acknowledgements, only.
        """
        batches = [fetching.AcknowledgementBatch(*ack[:2], list(ack[2])) for ack in acks]
        partitions = [
            fetching.FetchPartition(index, batches if index == 0 else [])
            for index in (self._partitions if not acks else (0,))
        ]
        return self._in_session(
            node_id,
            lambda epoch: fetching.ShareFetchRequest(
                self.group, self.member_id, epoch, max_wait_ms=0, min_bytes=1,
                max_bytes=1 << 20, max_records=most, batch_size=most,
                topics=[fetching.FetchTopic(self._topic_id, partitions)]
                if acks or epoch == 0 else [],
            ),
        )  # fmt: skip

    def fetch(self, node_id: int, most: int = 500) -> int:
        """Fetch all partitions from a broker; returns how many offsets were acquired."""
        answer = self.answered_fetch(node_id, most)
        acquired = 0
        for data in () if answer is None or answer.error_code else rows(answer):
            for first, last, _ in ranges(data):
                self.held.setdefault(node_id, []).append((data.partition_index, first, last))
                acquired += last - first + 1
        return acquired

    def acknowledge(self, node_id: int, held: Held, types: Sequence[int]) -> int | None:
        """Acknowledge a range; returns the error code, None without an answer."""
        return self.acknowledge_all(node_id, held[0], (held[1], held[2], types))

    def acknowledge_all(self, node_id: int, index: int, *acks: Acks) -> int | None:
        """Acknowledge ranges of a partition; returns the error code, None without an answer."""
        batches = [acknowledging.AcknowledgementBatch(*ack[:2], list(ack[2])) for ack in acks]
        partitions = [acknowledging.AcknowledgePartition(index, batches)]
        topics = [acknowledging.AcknowledgeTopic(self._topic_id, partitions)]
        renews = any(RENEW in types for _, _, types in acks)
        answer = self._in_session(
            node_id,
            lambda epoch: acknowledging.ShareAcknowledgeRequest(
                self.group, self.member_id, epoch, renews, topics=topics
            ),
        )
        if answer is None:
            return None
        (data,) = rows(answer) or (answer,)
        return int(answer.error_code or data.error_code)

    def acknowledge_some(self, node_id: int, dice: random.Random) -> None:
        """Acknowledge one range that is in hand, each offset as the dice say."""
        in_hand = self.held.get(node_id)
        if not in_hand:
            return
        held = in_hand.pop(dice.randrange(len(in_hand)))
        count = held[2] - held[1] + 1
        if dice.random() < 0.1:
            self.acknowledge(node_id, held, [RENEW])
            in_hand.append(held)
        elif dice.random() < 0.5:
            self.acknowledge(node_id, held, [dice.choice((ACCEPT, ACCEPT, RELEASE, REJECT))])
        else:
            types = [dice.choice((ACCEPT, ACCEPT, RELEASE, REJECT)) for _ in range(count)]
            self.acknowledge(node_id, held, types)


class PartitionMember(ShareMember):
    """A member that reads partition 0 of one topic from its leader. It has joined and opened a
    share session. An answer must come, without an error of the whole request.
    """

    def __init__(self, kafka: Cluster, group: str, topic: str, member_id: str) -> None:
        super().__init__(kafka, member_id, topic, 1, group)
        self._client = Client(kafka.bootstrap_servers)
        self._leader = self._client.metadata([topic]).topics[0].partitions[0].leader_id
        wait_until(self._joins, what="the group coordinator")
        wait_until(self._reads, what="the share partition")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
        self._client.close()

    def _ask(self, node_id: int, request: object, version: int) -> Any:
        """The broker's answer; raises ClientError if it gives none."""
        return self._connection(node_id).send(request, version)

    def leave(self) -> None:
        """Leave the group; the session stays until the connection ends."""
        request = ShareGroupHeartbeatRequest(self.group, self.member_id, -1)
        answer: Any = self._client.coordinator(self.group).send(request)
        assert answer.error_code == 0

    def _joins(self) -> bool:
        request = ShareGroupHeartbeatRequest(
            self.group, self.member_id, 0, subscribed_topic_names=[self._topic]
        )
        answer: Any = self._client.coordinator(self.group).send(request)
        return not answer.error_code

    def _reads(self) -> bool:
        """Open the session; the share partition may not be initialized yet."""
        self._epochs.clear()
        row = self.row()
        return row is None or not row.error_code

    def row(self, *acks: Acks) -> Any:
        """The row of a ShareFetch about the partition; None without one."""
        answer = self.answered_fetch(self._leader, 100, *acks)
        assert answer.error_code == 0
        return next(iter(rows(answer)), None)

    def acquired(self) -> list[tuple[int, int, int]]:
        """What a fetch acquires: first and last offset, and delivery count."""
        row = self.row()
        return [] if row is None else ranges(row)

    def acknowledged(self, *acks: Acks) -> int:
        """Acknowledge ranges; returns the error of the partition."""
        code = self.acknowledge_all(self._leader, 0, *acks)
        assert code is not None
        return code


def rows(answer: Any) -> list[Any]:
    """The rows of partitions in an answer."""
    return [row for topic in answer.responses for row in topic.partitions]


def ranges(row: Any) -> list[tuple[int, int, int]]:
    """The acquired ranges of a row of a ShareFetch."""
    return [
        (each.first_offset, each.last_offset, each.delivery_count)
        for each in row.acquired_records or ()
    ]
