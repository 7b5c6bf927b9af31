"""Sending records in batches to the leader of each partition."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

import msgspec

from mockbroker.client.errors import check
from mockbroker.client.router import Router
from mockbroker.core.hashing.murmur2 import murmur2_partition
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from mockbroker_protocol.records import CompressionType, Record, build_batch

ALL_REPLICAS = -1
# Kafka's default max.message.bytes is 1048588; a batch is closed well before.
BATCH_BYTES_MAX = 900_000
RECORD_OVERHEAD_BYTES = 32


class Produced(msgspec.Struct, frozen=True):
    """One sent batch. `base_offset` is -1 with acks=0, which has no response."""

    partition: int
    base_offset: int
    count: int
    log_append_time: int = -1


class Producer:
    """Makes batches of records and sends them. Keyless records take the partitions in turn."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._turn = 0

    def produce(
        self,
        topic: str,
        records: Iterable[Record],
        *,
        partition: int | None = None,
        acks: int = ALL_REPLICAS,
        codec: int = CompressionType.NONE,
        auto_create: bool = True,
    ) -> list[Produced]:
        """Send `records` and wait for the acknowledgements; returns one entry for each batch.

        Timestamps of -1 become now. A batch may be sent again after a lost answer, so a record can
        end up twice. Raises `BrokerError`, `UnknownTopicError` and the connection's errors.
        """
        routed: dict[int, list[Record]] = {}
        partitions = self._router.retrying(
            lambda: self._router.partitions(topic, auto_create=auto_create)
        )
        keyless = partitions[self._turn % len(partitions)]
        self._turn += 1
        for record in _stamped(records):
            if partition is not None:
                index = partition
            elif record.key is None:
                index = keyless
            else:
                index = murmur2_partition(record.key, len(partitions))
            routed.setdefault(index, []).append(record)
        return [
            self._send(topic, index, batch, acks, codec)
            for index, batch_records in routed.items()
            for batch in _batches(batch_records)
        ]

    def _send(
        self, topic: str, partition: int, records: list[Record], acks: int, codec: int
    ) -> Produced:
        request = ProduceRequest(
            acks=acks,
            timeout_ms=int(self._router.timeout_s * 1000),
            topic_data=[
                TopicProduceData(
                    name=topic,
                    partition_data=[
                        PartitionProduceData(
                            index=partition, records=build_batch(records, codec=codec)
                        )
                    ],
                )
            ],
        )
        return self._router.retrying(
            lambda: self._attempt(request, topic, partition, len(records), acks)
        )

    def _attempt(
        self, request: ProduceRequest, topic: str, partition: int, count: int, acks: int
    ) -> Produced:
        connection = self._router.node(self._router.leader(topic, partition))
        if acks == 0:
            connection.write(request, connection.version_of(ApiKey.PRODUCE))
            return Produced(partition, -1, count)
        response: ProduceResponse = connection.send(request)
        answer = response.responses[0].partition_responses[0]
        check(answer.error_code, f"produce to {topic}-{partition}", answer.error_message)
        return Produced(partition, answer.base_offset, count, answer.log_append_time_ms)


def _stamped(records: Iterable[Record]) -> Iterator[Record]:
    for record in records:
        if record.timestamp >= 0:
            yield record
        else:
            now = time.time_ns() // 1_000_000
            yield Record(record.offset, now, record.key, record.value, record.headers)


def _batches(records: list[Record]) -> Iterator[list[Record]]:
    """Cut by size, so that each batch stays below the default max.message.bytes."""
    batch: list[Record] = []
    batch_size = 0
    for record in records:
        size = RECORD_OVERHEAD_BYTES + len(record.key or b"") + len(record.value or b"")
        size += sum(len(key) + len(value or b"") + 4 for key, value in record.headers)
        if batch and batch_size + size > BATCH_BYTES_MAX:
            yield batch
            batch, batch_size = [], 0
        batch.append(record)
        batch_size += size
    if batch:
        yield batch
