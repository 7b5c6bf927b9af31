"""Each protective limit is a config that is documented, and is counted when it is exceeded."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
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
from tests.support.requests import batch_of, produce_request
from tests.support.streams_node import topology

Ask = Callable[[Connection], Any]
PAGE = ROOT / "docs" / "explanation" / "limits.md"


def produce(*values: bytes, **fields: Any) -> Ask:
    """Returns the error of a batch of these values."""
    request = produce_request({("t", 0): batch_of(*values, **fields)})

    def ask(client: Connection) -> int:
        (topic,) = client.send(request, 9).responses
        error: int = topic.partition_responses[0].error_code
        return error

    return ask


def closes(request: object, version: int) -> Ask:
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
# config -> a value of it, what exceeds it, and what its client is told
CASES: dict[str, tuple[str, Ask, object]] = {
    limits.BATCH_RECORDS_MAX: ("2", produce(b"a", b"b", b"c"), ErrorCode.MESSAGE_TOO_LARGE),
    limits.BATCH_DECOMPRESSED_BYTES_MAX: (
        "500",
        produce(ZEROS, codec=CompressionType.GZIP),
        ErrorCode.MESSAGE_TOO_LARGE,
    ),
    limits.FETCH_SESSION_PARTITIONS_MAX: ("1", open_session, False),
    limits.REQUEST_ELEMENTS_MAX: ("50", closes(MANY, 12), True),
    limits.RESPONSE_BYTES_MAX: ("5000", closes(BROKERS, 4), True),
    limits.RESPONSE_ELEMENTS_MAX: ("1", describe_again, ErrorCode.INVALID_REQUEST),
    limits.STREAMS_TASKS_MAX: ("1", join_streams, ErrorCode.STREAMS_INVALID_TOPOLOGY),
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
            with Connection(*kafka.endpoint(1)) as client:
                assert (ask(client) == told) == bool(count)
            metrics = render(kafka.call(lambda _, target=target: target.metrics()))
        line = f'mockbroker_limits_exceeded_total{{limit="{limit}"}} 1\n'
        assert (line in metrics) == bool(count)
        assert ("limits_exceeded_total{" in metrics) == bool(count)


@pytest.mark.parametrize("limit", CASES)
def test_a_limit_is_documented(limit: str) -> None:
    assert f"`{limit}`" in PAGE.read_text(encoding="utf-8")
