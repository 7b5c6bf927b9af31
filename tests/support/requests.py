"""Calling handlers directly: a cluster without sockets, and requests in a few words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mockbroker.core.brokers.broker import BrokerSpec
from mockbroker.core.cluster import Cluster
from mockbroker.core.replication.partition import Partition
from mockbroker.handlers.base import ConnectionInfo, Parked, RequestContext
from mockbroker.handlers.fetch import fetch
from mockbroker.handlers.produce import produce
from mockbroker_protocol import ApiKey
from mockbroker_protocol.headers import RequestHeader
from mockbroker_protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from mockbroker_protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from mockbroker_protocol.records import Record, build_batch, iter_records, split_batches

NOW_MS = 1_700_000_000_000


class Node:
    """A cluster whose clock stands still until `advance`, and the broker that requests go to."""

    def __init__(
        self,
        *,
        racks: Sequence[str | None] = (None,),
        configs: Mapping[str, str] | None = None,
    ) -> None:
        self.now_ms = NOW_MS
        specs = [BrokerSpec(node_id, rack) for node_id, rack in enumerate(racks, start=1)]
        self.cluster = Cluster(specs, configs, seed=7, now_ms=lambda: self.now_ms)
        for node_id in self.cluster.brokers:
            self.cluster.brokers[node_id].set_endpoint("PLAINTEXT", "127.0.0.1", 9000 + node_id)

    def advance(self, by_ms: int) -> None:
        self.now_ms += by_ms
        self.cluster.runtime.timers.run_due(self.now_ms)

    def topic(self, name: str = "t", partitions: int = 1, **configs: str) -> Partition:
        """Create a topic on all brokers and return its first partition; `a_b` means config a.b."""
        replicas = list(self.cluster.brokers)
        topic = self.cluster.create_topic(
            name,
            assignments=dict.fromkeys(range(partitions), replicas),
            configs={key.replace("_", "."): value for key, value in configs.items()},
        )
        return topic.partitions[0]

    def ctx(
        self,
        version: int,
        *,
        key: int = ApiKey.PRODUCE,
        broker: int = 1,
        client_id: str | None = "tester",
    ) -> RequestContext:
        process = self.cluster.processes.get(broker)
        assert process is not None
        return RequestContext(
            self.cluster,
            process,
            "PLAINTEXT",
            RequestHeader(int(key), version, 1, client_id),
            ConnectionInfo(1, "127.0.0.1", 50000),
            self.now_ms,
        )

    def produce(
        self,
        batch: bytes | bytearray | None,
        topic: str = "t",
        partition: int = 0,
        *,
        acks: int = -1,
        version: int = 9,
        broker: int = 1,
        client_id: str = "tester",
        timeout_ms: int = 1000,
        transactional_id: str | None = None,
    ) -> Any:
        """The handler's answer to a Produce of one partition."""
        request = produce_request(
            {(topic, partition): batch},
            acks=acks,
            timeout_ms=timeout_ms,
            transactional_id=transactional_id,
        )
        if version >= 13:
            for data in request.topic_data:
                known = self.cluster.topics.get(data.name)
                data.topic_id = known.topic_id if known else b"\x09" * 16
                data.name = ""
        return produce(self.ctx(version, broker=broker, client_id=client_id), request)

    def produced(self, batch: bytes | bytearray | None, **more: Any) -> PartitionProduceResponse:
        """The one partition's part of the answer, which must be there at once."""
        return only(self.produce(batch, **more))

    def fetch(
        self, *wanted: tuple[str, int, int], version: int = 12, broker: int = 1, **more: Any
    ) -> Any:
        """The handler's answer to a Fetch of (topic, partition, offset)s.

        Fields of the request and of its partitions may be given by name.
        """
        return fetch(
            self.ctx(version, key=ApiKey.FETCH, broker=broker),
            fetch_request(self.cluster, wanted, version, **more),
        )

    def fetched(self, *wanted: tuple[str, int, int], **more: Any) -> PartitionData:
        """The one partition's part of the answer, which must be there at once."""
        response = done(self.fetch(*wanted, **more))
        assert isinstance(response, FetchResponse)
        (topic,) = response.responses
        (data,) = topic.partitions
        return data


def produce_request(
    batches: Mapping[tuple[str, int], bytes | bytearray | None],
    *,
    acks: int = -1,
    timeout_ms: int = 1000,
    transactional_id: str | None = None,
) -> ProduceRequest:
    """A Produce request as the codec would decode it: records are views of one frame."""
    topics: dict[str, TopicProduceData] = {}
    for (name, index), batch in batches.items():
        topic = topics.setdefault(name, TopicProduceData(name, partition_data=[]))
        records = None if batch is None else memoryview(bytearray(batch))
        topic.partition_data.append(PartitionProduceData(index, records))
    return ProduceRequest(transactional_id, acks, timeout_ms, list(topics.values()))


_PARTITION_FIELDS = frozenset(FetchPartition.__struct_fields__)


def fetch_request(
    cluster: Cluster, wanted: Sequence[tuple[str, int, int]], version: int, **more: Any
) -> FetchRequest:
    """A full, sessionless Fetch request without a wait, unless `more` says otherwise."""
    per_partition = {key: value for key, value in more.items() if key in _PARTITION_FIELDS}
    per_request = {key: value for key, value in more.items() if key not in _PARTITION_FIELDS}
    per_partition.setdefault("partition_max_bytes", 1 << 20)
    per_request = {"max_wait_ms": 0, "min_bytes": 1, **per_request}
    topics = []
    for name, index, offset in wanted:
        partition = FetchPartition(partition=index, fetch_offset=offset, **per_partition)
        known = cluster.topics.get(name)
        topic_id = known.topic_id if known else b"\x09" * 16
        if version >= 13:
            topics.append(FetchTopic(topic_id=topic_id, partitions=[partition]))
        else:
            topics.append(FetchTopic(name, partitions=[partition]))
    return FetchRequest(topics=topics, **per_request)


def done(answer: Any) -> Any:
    """An answer that is there, parked before or not."""
    if isinstance(answer, Parked):
        assert answer.done, "the reply is still parked"
        return answer.response
    return answer


def only(answer: Any) -> PartitionProduceResponse:
    """The answer about the only partition of a Produce."""
    (topic,) = done(answer).responses
    (partition,) = topic.partition_responses
    assert isinstance(partition, PartitionProduceResponse)
    return partition


def batch_of(
    *values: bytes | None, timestamp: int = NOW_MS, key: bytes | None = b"k", **more: Any
) -> bytearray:
    """A batch of records with these values, all of one timestamp."""
    return build_batch(
        [Record(offset, timestamp, key, value) for offset, value in enumerate(values)], **more
    )


def timed_batch(*timestamps: int, **more: Any) -> bytearray:
    """A batch of records with these timestamps."""
    return build_batch(
        [Record(offset, at, b"k", b"v") for offset, at in enumerate(timestamps)], **more
    )


def values_of(data: PartitionData) -> list[bytes | None]:
    """The values of the records in a fetch answer."""
    return [record.value for record in records_of(data)]


def records_of(data: PartitionData) -> list[Record]:
    pieces = data.records
    assert pieces is not None
    stored = bytes(pieces) if isinstance(pieces, bytes) else b"".join(pieces)  # type: ignore[arg-type]
    return [
        record for header, batch in split_batches(stored) for record in iter_records(header, batch)
    ]


Handler = Callable[[RequestContext, Any], Any]
