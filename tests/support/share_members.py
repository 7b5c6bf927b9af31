"""Members of a share group that fetch and acknowledge over connections of their own."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from mockbroker import Cluster
from mockbroker.client.connection import Connection
from mockbroker.client.errors import ClientError
from mockbroker_protocol.messages import share_acknowledge as acknowledging
from mockbroker_protocol.messages.share_fetch import (
    FetchPartition,
    FetchTopic,
    ShareFetchRequest,
)
from mockbroker_protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

GROUP = "g"
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4

Held = tuple[int, int, int]  # partition, first and last offset


class ShareMember:
    """One member; `held` is what it believes to have in hand from each broker."""

    def __init__(self, kafka: Cluster, member_id: str, topic: str, partitions: int) -> None:
        self._kafka = kafka
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
            if node_id not in self._connections:
                endpoint = self._kafka.endpoint(node_id)
                self._connections[node_id] = Connection(*endpoint, self.member_id, timeout_s=10.0)
            return self._connections[node_id].send(request, version)
        except ClientError:
            self.disconnect(node_id)
            return None

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
            GROUP, self.member_id, epoch, subscribed_topic_names=[self._topic]
        )
        return self._ask(node_id, request, 1)

    def fetch(self, node_id: int, most: int = 500) -> int:
        """Fetch all partitions from a broker; returns how many offsets were acquired."""
        epoch = self._epochs.get(node_id, 0)
        partitions = [FetchPartition(index, []) for index in self._partitions]
        request = ShareFetchRequest(
            GROUP, self.member_id, epoch, max_wait_ms=0, min_bytes=1, max_bytes=1 << 20,
            max_records=most, batch_size=most,
            topics=[FetchTopic(self._topic_id, partitions)] if epoch == 0 else [],
        )  # fmt: skip
        answer = self._ask(node_id, request, 2)
        if answer is None:
            return 0
        if answer.error_code:
            self._epochs.pop(node_id, None)
            return 0
        self._epochs[node_id] = epoch + 1
        acquired = 0
        for topic in answer.responses:
            for data in topic.partitions:
                for each in data.acquired_records or ():
                    first, last = each.first_offset, each.last_offset
                    self.held.setdefault(node_id, []).append((data.partition_index, first, last))
                    acquired += last - first + 1
        return acquired

    def acknowledge(self, node_id: int, held: Held, types: Sequence[int]) -> int | None:
        """Acknowledge a range; returns the error code, None without an answer."""
        index, first, last = held
        batch = acknowledging.AcknowledgementBatch(first, last, list(types))
        request = acknowledging.ShareAcknowledgeRequest(
            GROUP, self.member_id, self._epochs.get(node_id, 0), RENEW in types,
            topics=[
                acknowledging.AcknowledgeTopic(
                    self._topic_id, [acknowledging.AcknowledgePartition(index, [batch])]
                )
            ],
        )  # fmt: skip
        answer = self._ask(node_id, request, 2)
        if answer is None:
            return None
        if answer.error_code:
            self._epochs.pop(node_id, None)
            return int(answer.error_code)
        self._epochs[node_id] = self._epochs.get(node_id, 0) + 1
        (topic,) = answer.responses
        (data,) = topic.partitions
        return int(data.error_code)

    def acknowledge_some(self, node_id: int, dice: random.Random) -> None:
        """Acknowledge one range that is in hand, each offset as the dice say."""
        ranges = self.held.get(node_id)
        if not ranges:
            return
        held = ranges.pop(dice.randrange(len(ranges)))
        count = held[2] - held[1] + 1
        if dice.random() < 0.1:
            self.acknowledge(node_id, held, [RENEW])
            ranges.append(held)
        elif dice.random() < 0.5:
            self.acknowledge(node_id, held, [dice.choice((ACCEPT, ACCEPT, RELEASE, REJECT))])
        else:
            types = [dice.choice((ACCEPT, ACCEPT, RELEASE, REJECT)) for _ in range(count)]
            self.acknowledge(node_id, held, types)
