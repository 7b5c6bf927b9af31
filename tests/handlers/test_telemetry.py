"""GetTelemetrySubscriptions and PushTelemetry: the times of pushes, and the stored metrics."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker.core.configs.resources import ConfigResourceType
from mockbroker.core.snapshot.capture import capture
from mockbroker.core.snapshot.restore import restore
from mockbroker.core.telemetry import telemetry as module
from mockbroker.handlers.base import ConnectionInfo
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
)
from mockbroker_protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from mockbroker_protocol.messages.push_telemetry import PushTelemetryRequest
from mockbroker_protocol.records.compression import CompressionType, compress
from tests.core.telemetry.test_otlp import GAUGE, pushed
from tests.support.ask import ask, nodes
from tests.support.requests import Node

METRICS = pushed(GAUGE)
INTERVAL_MS = 60_000


class Client:
    """One client on one connection; it keeps the id that it is given."""

    def __init__(self, node: Node, broker: int = 1) -> None:
        self.node = node
        self.broker = broker
        self.connection = ConnectionInfo(1, "127.0.0.1", 50_000)
        self.connection.software_name = "apache-kafka-java"
        self.instance_id = bytes(16)
        self.subscription_id = 0

    def get(self) -> Any:
        answer = ask(
            self.node,
            ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
            GetTelemetrySubscriptionsRequest(self.instance_id),
            broker=self.broker,
            connection=self.connection,
        )
        if answer.error_code == ErrorCode.NONE:
            self.instance_id = answer.client_instance_id
            self.subscription_id = answer.subscription_id
        return answer

    def push(self, metrics: bytes = METRICS, **fields: Any) -> int:
        request = PushTelemetryRequest(
            self.instance_id, self.subscription_id, metrics=metrics, **fields
        )
        answer = ask(
            self.node,
            ApiKey.PUSH_TELEMETRY,
            request,
            broker=self.broker,
            connection=self.connection,
        )
        return int(answer.error_code)


@pytest.fixture
def node() -> Node:
    node = nodes(2, telemetry_receiver="true", telemetry_max_bytes="1000")
    subscribe(node, metrics="org.apache.kafka.", interval_ms=str(INTERVAL_MS))
    return node


def subscribe(node: Node, name: str = "some", **configs: str) -> None:
    resource = AlterConfigsResource(
        ConfigResourceType.CLIENT_METRICS,
        name,
        [AlterableConfig(key.replace("_", "."), 0, value) for key, value in configs.items()],
    )
    answer = ask(node, ApiKey.INCREMENTAL_ALTER_CONFIGS, IncrementalAlterConfigsRequest([resource]))
    assert answer.responses[0].error_code == ErrorCode.NONE


def test_a_client_without_an_id_is_given_one_and_told_what_to_push(node):
    client = Client(node)
    answer = client.get()
    assert answer.client_instance_id != bytes(16)
    assert answer.requested_metrics == ["org.apache.kafka."]
    assert answer.push_interval_ms == INTERVAL_MS
    assert answer.telemetry_max_bytes == 1000
    assert answer.accepted_compression_types == [4, 3, 1, 2]
    assert answer.delta_temporality is True
    assert Client(node).get().client_instance_id != answer.client_instance_id


def test_what_is_pushed_is_kept_and_can_be_read(node):
    client = Client(node)
    client.get()
    for codec in CompressionType:
        assert client.push(bytes(compress(codec, METRICS)), compression_type=codec) == 0
        node.advance(INTERVAL_MS)
    telemetry = node.cluster.telemetry
    assert [push.compression for push in telemetry.pushes] == list(CompressionType)
    assert [(p.attributes["client_id"], point.name) for p, point in telemetry.points()] == [
        ("tester", "a.gauge")
    ] * 5
    assert telemetry.pushes[0].attributes["client_software_name"] == "apache-kafka-java"


def test_a_client_speaks_once_in_each_interval(node):
    client = Client(node)
    client.get()
    too_soon = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert client.get().error_code == too_soon
    assert [client.push(), client.push()] == [0, too_soon]
    node.advance(INTERVAL_MS - 1)
    assert (client.push(), client.get().error_code) == (too_soon, too_soon)
    node.advance(1)
    assert client.push() == 0
    assert node.cluster.telemetry.refused == {too_soon: 4}


def test_the_last_push_may_come_at_any_time_and_is_the_last(node):
    client = Client(node)
    client.get()
    assert [client.push(), client.push(terminating=True)] == [0, 0]
    assert client.push(terminating=True) == ErrorCode.INVALID_REQUEST
    assert [push.terminating for push in node.cluster.telemetry.pushes] == [False, True]


def test_a_change_of_subscriptions_is_told_at_the_next_push(node):
    client = Client(node)
    client.get()
    assert client.push() == 0
    subscribe(node, "more", metrics="other")
    assert client.push() == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    answer = client.get()  # at once, for it has to know
    assert sorted(answer.requested_metrics) == ["org.apache.kafka.", "other"]
    node.advance(INTERVAL_MS)
    assert client.push() == 0


@pytest.mark.parametrize(
    ("metrics", "fields", "error"),
    [
        (b"x" * 1001, {}, ErrorCode.TELEMETRY_TOO_LARGE),
        (METRICS, {"compression_type": 9}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (b"not gzip", {"compression_type": 1}, ErrorCode.INVALID_RECORD),
        (bytes(compress(1, b"x" * 1001)), {"compression_type": 1}, ErrorCode.INVALID_RECORD),
    ],
)
def test_what_cannot_be_received_is_refused(node, metrics, fields, error):
    client = Client(node)
    client.get()
    assert client.push(metrics, **fields) == error
    assert not node.cluster.telemetry.pushes


def test_without_a_receiver_nobody_looks_inside(node):
    node = nodes(1)
    client = Client(node)
    client.get()
    assert client.push(b"not gzip", compression_type=1) == 0


def test_ids_that_mean_something_else_are_no_clients(node):
    client = Client(node)
    assert client.push() == ErrorCode.INVALID_REQUEST
    client.instance_id = bytes(15) + b"\1"
    assert client.push() == ErrorCode.INVALID_REQUEST


def test_each_broker_knows_the_clients_it_has_heard_of(node):
    client = Client(node)
    client.get()
    client.broker = 2
    assert client.get().error_code == 0
    telemetry = node.cluster.telemetry
    assert [len(telemetry.instances(broker)) for broker in (1, 2)] == [1, 1]


def test_a_client_that_is_silent_or_gone_is_forgotten(node):
    silent, gone = Client(node), Client(node)
    silent.get()
    gone.get()
    telemetry = node.cluster.telemetry
    gone.connection.closed = True
    assert [each.instance_id for each in telemetry.instances(1)] == [silent.instance_id]
    again = Client(node)
    again.instance_id = gone.instance_id
    assert again.get().error_code == 0  # on another connection, and so at once
    node.advance(3 * INTERVAL_MS)
    assert telemetry.instances(1) == []
    assert silent.get().error_code == 0


def test_only_the_newest_pushes_are_kept(node, monkeypatch):
    monkeypatch.setattr(module, "PUSHES_KEPT", 3)
    monkeypatch.setattr(module, "PUSHED_BYTES_KEPT", 500)
    for size in (1, 2, 3, 4, 300, 190, 10):
        client = Client(node)
        client.get()
        assert client.push(b"x" * size) == 0
    assert [len(push.metrics) for push in node.cluster.telemetry.pushes] == [300, 190, 10]
    client = Client(node)
    client.get()
    assert client.push(b"x" * 450) == 0
    assert [len(push.metrics) for push in node.cluster.telemetry.pushes] == [10, 450]


def test_a_broker_keeps_so_many_clients_and_no_more(node, monkeypatch):
    monkeypatch.setattr(module, "INSTANCES_MAX", 2)
    clients = [Client(node) for _ in range(3)]
    for client in clients:
        client.get()
    known = [each.instance_id for each in node.cluster.telemetry.instances(1)]
    assert known == [client.instance_id for client in clients[1:]]


def test_going_back_to_a_snapshot_forgets_clients_and_pushes(node):
    client = Client(node)
    client.get()
    assert client.push() == 0
    before = capture(node.cluster)
    restore(node.cluster, before)
    assert not node.cluster.telemetry.pushes
    assert node.cluster.telemetry.instances(1) == []
    assert client.get().error_code == 0
    assert client.push() == 0
