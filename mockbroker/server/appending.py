"""Records that the cluster's operator appends, by Produce requests with acks=all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import TYPE_CHECKING

from mockbroker.core.errors import ApiError
from mockbroker.core.replication.partition import ACKS_ALL
from mockbroker.core.views.topics import topic_of
from mockbroker.server.own_requests import send
from mockbroker.server.partitioning import Placed, batches, place
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.errors import ERROR_CODES
from mockbroker_protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from mockbroker_protocol.records import Record, build_batch

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.metadata.topic import Topic

PRODUCE_VERSION = 9  # the last version of all served releases; it names topics
TIMEOUT_MS = 30_000


class AppendError(Exception):
    """A refused append. `appended` counts the records of the request that are stored."""

    def __init__(self, error: ApiError, appended: int) -> None:
        super().__init__(str(error))
        self.error = error
        self.appended = appended


class Appender:
    """Appends records to one topic; without a key or a partition, partitions take turns."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._cluster = cluster
        self._name = topic
        self._turns: Iterator[int] = cycle(range(len(topic_of(cluster, topic).partitions)))

    async def append(self, records: Sequence[tuple[int | None, Record]]) -> list[tuple[int, int]]:
        """Append (partition or None, record) pairs and wait until they are replicated; returns the
        partition and offset of each. A timestamp of -1 is the present.

        Raises AppendError.
        """
        places: list[tuple[int, int]] = [(-1, -1)] * len(records)
        try:
            topic = topic_of(self._cluster, self._name)
            placed = place(self._cluster, topic, records, self._turns)
            queues = {index: list(batches(each)) for index, each in placed.items()}
            while queues:
                await self._round(topic, {i: batch.pop(0) for i, batch in queues.items()}, places)
                queues = {index: batch for index, batch in queues.items() if batch}
        except ApiError as error:
            stored = sum(partition >= 0 for partition, _ in places)
            raise AppendError(error, stored) from None
        return places

    async def _round(
        self, topic: Topic, wanted: dict[int, list[Placed]], places: list[tuple[int, int]]
    ) -> None:
        """Append one batch to each partition, by one request to each leader."""
        by_leader: defaultdict[int, list[PartitionProduceData]] = defaultdict(list)
        for index, batch in wanted.items():
            leader = topic.partitions[index].leader_id
            if leader < 0:
                raise ApiError(
                    ErrorCode.LEADER_NOT_AVAILABLE, f"{topic.name}-{index} has no leader"
                )
            data = build_batch([record for _, record in batch])
            by_leader[leader].append(PartitionProduceData(index, data))
        for leader, partitions in by_leader.items():
            request = ProduceRequest(
                transactional_id=None,
                acks=ACKS_ALL,
                timeout_ms=TIMEOUT_MS,
                topic_data=[TopicProduceData(topic.name, partition_data=partitions)],
            )
            response: ProduceResponse = await send(
                self._cluster, leader, ApiKey.PRODUCE, PRODUCE_VERSION, request
            )
            refused = None
            for answer in response.responses[0].partition_responses:
                if answer.error_code:
                    error = ERROR_CODES[answer.error_code]
                    reason = answer.error_message or error.name
                    refused = ApiError(error, f"{topic.name}-{answer.index}: {reason}")
                    continue
                batch = wanted[answer.index]
                for offset, (number, _) in enumerate(batch, answer.base_offset):
                    places[number] = (answer.index, offset)
            if refused is not None:
                raise refused
