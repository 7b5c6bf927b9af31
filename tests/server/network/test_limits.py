"""Each protective limit is a config that is documented, and is counted when it is exceeded."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

import pytest

from mockbroker import Cluster
from mockbroker.admin import ServerTarget
from mockbroker.admin.metrics import render
from mockbroker.client.connection import Connection
from mockbroker.client.errors import ConnectionClosedError
from mockbroker.core import limits
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from mockbroker_protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from mockbroker_protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from mockbroker_protocol.records import CompressionType
from tests.house.lint import ROOT
from tests.support.http import HttpClient
from tests.support.requests import batch_of, produce_request
from tests.support.streams_node import topology

Ask = Callable[[Cluster], Any]
PAGE = ROOT / "docs" / "explanation" / "limits.md"


def over_kafka(ask: Callable[[Connection], Any]) -> Ask:
    def asks(kafka: Cluster) -> Any:
        with Connection(*kafka.endpoint(1)) as client:
            return ask(client)

    return asks


def posted(path: str, raw: bytes) -> Ask:
    """Returns the status of an admin request."""
    return lambda kafka: HttpClient(kafka.admin_url).request("POST", path, raw=raw).status


def stream_twice(kafka: Cluster) -> int:
    """Returns the status of the second of two streams."""
    admin, path = HttpClient(kafka.admin_url), "/v1/journal/stream"
    with closing(admin.stream(path)) as first:
        first.readline()
        with closing(admin.stream(path)) as second:
            return second.status


def produce(*values: bytes, **fields: Any) -> Callable[[Connection], tuple[int, bool]]:
    """Returns the error of a batch of these values, and whether its message names a limit."""
    request = produce_request({("t", 0): batch_of(*values, **fields)})

    def ask(client: Connection) -> tuple[int, bool]:
        (topic,) = client.send(request, 9).responses
        (partition,) = topic.partition_responses
        message = partition.error_message or ""
        return partition.error_code, any(limit in message for limit in CASES)

    return ask


def closes(request: object, version: int) -> Callable[[Connection], bool]:
    """Returns whether the broker closed the connection instead of an answer."""

    def ask(client: Connection) -> bool:
        with suppress(ConnectionClosedError):
            client.send(request, version)
            return False
        return True

    return ask


def open_session(client: Connection) -> bool:
    """Returns whether a Fetch of two partitions has a session."""
    wanted = [FetchPartition(number, fetch_offset=0) for number in range(2)]
    topics = [FetchTopic("t", partitions=wanted)]
    request = FetchRequest(max_wait_ms=0, min_bytes=0, session_epoch=0, topics=topics)
    return bool(client.send(request, 12).session_id)


def describe_again(client: Connection) -> int:
    produce(b"v", producer_id=7, producer_epoch=0, base_sequence=0)(client)
    request = DescribeProducersRequest([TopicRequest("t", [0, 0, 0])])
    (topic,) = client.send(request, 0).topics
    error: int = topic.partitions[0].error_code
    return error


def join_streams(client: Connection) -> int:
    client.send(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
    request = StreamsGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        process_id="p",
        rebalance_timeout_ms=1_000,
        topology=topology("t"),
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
    )
    error: int = client.send(request, 0).error_code
    return error


MANY = MetadataRequest([MetadataRequestTopic(name="t" * 200) for _ in range(100)])
BROKERS = DescribeConfigsRequest([DescribeConfigsResource(4, "1")], include_documentation=True)
ZEROS = bytes(900)
RECORD = b'{"value": "%s"}' % (b"v" * 100)
# config -> a value of it, what exceeds it, and what its client is told
CASES: dict[str, tuple[str, Ask, object]] = {
    limits.ADMIN_BODY_BYTES_MAX: ("10", posted("/v1/clock", b'{"freeze": false}'), 413),
    limits.ADMIN_RECORDS_BYTES_MAX: ("99", posted("/v1/topics/t/records", RECORD), 413),
    limits.ADMIN_SNAPSHOTS_MAX: ("0", posted("/v1/snapshot", b"{}"), 409),
    limits.ADMIN_STREAMS_MAX: ("1", stream_twice, 429),
    limits.BATCH_RECORDS_MAX: (
        "2",
        over_kafka(produce(b"a", b"b", b"c")),
        (ErrorCode.MESSAGE_TOO_LARGE, True),
    ),
    limits.BATCH_DECOMPRESSED_BYTES_MAX: (
        "500",
        over_kafka(produce(ZEROS, codec=CompressionType.GZIP)),
        (ErrorCode.MESSAGE_TOO_LARGE, True),
    ),
    limits.FETCH_SESSION_PARTITIONS_MAX: ("1", over_kafka(open_session), False),
    limits.REQUEST_ELEMENTS_MAX: ("50", over_kafka(closes(MANY, 12)), True),
    limits.RESPONSE_BYTES_MAX: ("5000", over_kafka(closes(BROKERS, 4)), True),
    limits.RESPONSE_ELEMENTS_MAX: ("1", over_kafka(describe_again), ErrorCode.INVALID_REQUEST),
    limits.STREAMS_TASKS_MAX: (
        "1",
        over_kafka(join_streams),
        ErrorCode.STREAMS_INVALID_TOPOLOGY,
    ),
}


def test_each_limit_has_a_case() -> None:
    names = {value for name, value in vars(limits).items() if name.endswith("_MAX")}
    assert names == CASES.keys()


@pytest.mark.parametrize("limit", CASES)
def test_a_limit_is_set_by_its_config_and_counted(limit: str) -> None:
    value, ask, told = CASES[limit]
    for configs, count in (({limit: value}, 1), ({}, 0)):
        with Cluster(brokers=1, topics={"t": 2}, configs=configs) as kafka:
            target = kafka.call(lambda _, kafka=kafka: ServerTarget(kafka.server))
            assert (ask(kafka) == told) == bool(count)
            metrics = render(kafka.call(lambda _, target=target: target.metrics()))
        line = f'mockbroker_limits_exceeded_total{{limit="{limit}"}} 1\n'
        assert (line in metrics) == bool(count)
        assert ("limits_exceeded_total{" in metrics) == bool(count)


@pytest.mark.parametrize("limit", CASES)
def test_a_limit_is_documented(limit: str) -> None:
    assert f"`{limit}`" in PAGE.read_text(encoding="utf-8")
