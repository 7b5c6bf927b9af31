"""A trio client of a few lines, for clusters in a virtual run."""

from __future__ import annotations

from typing import Any

import trio

from mockbroker.client.connection import api_key_of, decode_response, encode_request
from mockbroker.simulation.streams import SimulatedCluster
from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from mockbroker_protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from mockbroker_protocol.records import Record, build_batch

PRODUCE_VERSION = 9
FETCH_VERSION = 11


async def exactly(stream: trio.abc.ReceiveStream, size: int) -> bytes:
    """So many bytes. Raises EOFError where the stream ends before."""
    data = b""
    while len(data) < size:
        more = await stream.receive_some(size - len(data))
        if not more:
            raise EOFError(f"{len(data)} of {size} bytes")
        data += more
    return data


async def answer_to(stream: trio.abc.Stream, request: Any, version: int, number: int = 1) -> Any:
    """The answer to a request that was sent with this correlation id."""
    size = int.from_bytes(await exactly(stream, 4))
    frame = await exactly(stream, size)
    return decode_response(frame, api_key_of(request), version, number)


async def ask(stream: trio.abc.Stream, request: Any, version: int, number: int = 1) -> Any:
    """Send a request, and return the answer."""
    await stream.send_all(encode_request(request, version, number, "test"))
    return await answer_to(stream, request, version, number)


def produce(value: bytes, topic: str = "orders", partition: int = 0) -> ProduceRequest:
    """One record, for all in-sync replicas to have."""
    records = build_batch([Record(0, 1, None, value, ())])
    data = [PartitionProduceData(index=partition, records=records)]
    topics = [TopicProduceData(name=topic, partition_data=data)]
    return ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=topics)


def fetch(offset: int = 0, max_wait_ms: int = 500, topic: str = "orders") -> FetchRequest:
    """Whatever is in partition 0 from an offset on."""
    partitions = [FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)]
    topics = [FetchTopic(topic=topic, partitions=partitions)]
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, topics=topics)


def leader(sim: SimulatedCluster, topic: str = "orders", partition: int = 0) -> int:
    """The broker that leads a partition."""
    return sim.cluster.topics[topic].partitions[partition].leader_id
