"""Requests under quotas: throttle times, empty fetches, refused mutations."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker.core.quotas.client_quotas import entity_of
from mockbroker.handlers.base import (
    CLOSE_CONNECTION,
    NO_RESPONSE,
    ConnectionInfo,
    EncodedResponse,
    RequestContext,
)
from mockbroker.handlers.throttling import RequestUsage, record_and_throttle
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.codec import response_codec
from mockbroker_protocol.headers import RequestHeader
from mockbroker_protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from mockbroker_protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from mockbroker_protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from mockbroker_protocol.messages.list_groups import ListGroupsResponse
from mockbroker_protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from mockbroker_protocol.messages.produce import ProduceResponse
from mockbroker_protocol.messages.sasl_handshake import SaslHandshakeResponse
from mockbroker_protocol.records import split_batches
from tests.support.ask import ask, nodes
from tests.support.requests import Node, batch_of

MB = 1_000_000


@pytest.fixture
def node() -> Node:
    return nodes(1)


def allow(node: Node, **quotas: float) -> None:
    entity = entity_of([("client-id", "tester")])
    node.cluster.quotas.alter(entity, quotas, validate_only=False)


def charged(
    node: Node, key: ApiKey, version: int, response: object, *, size: int = 0, spent_ns: int = 0
) -> tuple[Any, int]:
    ctx = RequestContext(
        node.cluster,
        node.cluster.brokers[1],
        "PLAINTEXT",
        RequestHeader(int(key), version, 1, "tester"),
        ConnectionInfo(1, "127.0.0.1", 50000),
        node.now_ms,
    )
    throttling = node.cluster.quotas.throttling
    assert throttling is not None
    usage = RequestUsage(throttling, size, iter([0, spent_ns]).__next__)
    usage.begin()
    usage.end()
    return record_and_throttle(ctx, response, usage)


@pytest.mark.covers("S158")
def test_a_produce_pays_for_the_bytes_of_its_frame(node):
    allow(node, producer_byte_rate=MB)
    fine = charged(node, ApiKey.PRODUCE, 9, ProduceResponse(), size=10 * MB)
    assert fine == (ProduceResponse(), 0)
    response, wait_ms = charged(node, ApiKey.PRODUCE, 9, ProduceResponse(), size=MB)
    assert (response.throttle_time_ms, wait_ms) == (1000, 1000)


def test_a_produce_without_acks_is_left_alone_without_a_word(node):
    allow(node, producer_byte_rate=MB)
    assert charged(node, ApiKey.PRODUCE, 9, NO_RESPONSE, size=20 * MB) == (NO_RESPONSE, 10_000)


def test_the_time_of_a_produce_without_acks_does_not_count(node):
    allow(node, request_percentage=1.0)
    second = 10**9
    assert charged(node, ApiKey.PRODUCE, 9, NO_RESPONSE, spent_ns=second)[1] == 0
    assert charged(node, ApiKey.PRODUCE, 9, ProduceResponse(), spent_ns=second)[1] == 1000


def test_of_two_times_to_wait_the_longer_one_is_told(node):
    allow(node, request_percentage=1.0, producer_byte_rate=MB)
    response, wait_ms = charged(
        node, ApiKey.PRODUCE, 9, ProduceResponse(), size=int(10.5 * MB), spent_ns=10**9
    )
    assert (response.throttle_time_ms, wait_ms) == (1000, 1000)
    told = ListGroupsResponse(throttle_time_ms=1500)
    assert charged(node, ApiKey.LIST_GROUPS, 4, told, spent_ns=10**9)[1] == 1500
    assert node.cluster.quotas.throttling.throttled == {
        "request_percentage": 1,
        "controller_mutation_rate": 1,
    }


def test_an_answer_that_others_share_is_made_anew(node):
    """Metadata is encoded once for all clients; only the one over its quota is told to wait."""
    allow(node, request_percentage=1.0)
    for version in (2, 3, 12):
        parts = response_codec(ApiKey.METADATA, version).encode(MetadataResponse(controller_id=7))
        shared = EncodedResponse(parts)
        before = [bytes(part) for part in parts]
        response, wait_ms = charged(node, ApiKey.METADATA, version, shared, spent_ns=10**9)
        assert [bytes(part) for part in shared.parts] == before
        assert (response.controller_id, response.throttle_time_ms, wait_ms) == (7, 1000, 1000)


def test_an_encoded_answer_has_its_throttle_time_in_it(node):
    """The longer one is told: its own, or that of the quota of time."""
    allow(node, request_percentage=1.0)
    parts = response_codec(ApiKey.METADATA, 12).encode(MetadataResponse(throttle_time_ms=700))
    own = EncodedResponse(parts, 700)
    assert charged(node, ApiKey.METADATA, 12, own) == (own, 700)
    response, wait_ms = charged(node, ApiKey.METADATA, 12, own, spent_ns=10**9)
    assert (response.throttle_time_ms, wait_ms) == (1000, 1000)


def test_a_client_that_has_yet_to_prove_itself_does_not_pay(node):
    allow(node, request_percentage=1.0)
    answer = SaslHandshakeResponse()
    assert charged(node, ApiKey.SASL_HANDSHAKE, 1, answer, spent_ns=10**9) == (answer, 0)


def test_a_connection_that_closes_has_nothing_to_wait_for(node):
    allow(node, producer_byte_rate=1.0)
    closing = charged(node, ApiKey.PRODUCE, 9, CLOSE_CONNECTION, size=MB)
    assert closing == (CLOSE_CONNECTION, 0)


# -- Fetch -----------------------------------------------------------------------------------------


@pytest.mark.covers("S158")
def test_a_throttled_fetch_is_empty_and_does_not_count(node):
    node.topic()
    node.produce(batch_of(b"v" * 2_000))
    allow(node, consumer_byte_rate=100.0)
    throttled = node.fetch(("t", 0, 0))
    assert throttled.responses == []
    assert throttled.throttle_time_ms > 0
    assert node.fetch(("t", 0, 0)).throttle_time_ms == throttled.throttle_time_ms
    allow(node, consumer_byte_rate=1_000.0)
    fine = node.fetch(("t", 0, 0))
    assert fine.throttle_time_ms == 0
    assert fine.responses[0].partitions[0].records


def test_a_throttled_fetch_opens_no_session_and_changes_none(node):
    """What the client was not told is told once it has waited."""
    node.topic()
    node.produce(batch_of(b"v" * 2_000))
    opened = node.fetch(("t", 0, 0), session_epoch=0)
    assert opened.session_id > 0
    node.produce(batch_of(b"w"))
    allow(node, consumer_byte_rate=100.0)
    assert node.fetch(("t", 0, 0), session_epoch=0).session_id == 0
    throttled = node.fetch(session_id=opened.session_id, session_epoch=1)
    assert (throttled.session_id, throttled.responses) == (opened.session_id, [])
    assert throttled.throttle_time_ms > 0
    allow(node, consumer_byte_rate=1e9)
    later = node.fetch(session_id=opened.session_id, session_epoch=2)
    (told,) = later.responses[0].partitions
    assert told.high_watermark == 2


def test_a_fetch_takes_no_more_than_its_quota_can_bear(node):
    """Ten windows of 1,000 bytes: of ten batches of 3,000 bytes three come."""
    node.topic()
    for _ in range(10):
        node.produce(batch_of(b"v" * 2_930))
    allow(node, consumer_byte_rate=1_000.0)
    fetched = node.fetch(("t", 0, 0))
    records = fetched.responses[0].partitions[0].records
    assert fetched.throttle_time_ms == 0
    assert len(list(split_batches(b"".join(records)))) == 3


def test_a_fetch_whose_handler_took_too_long_brings_nothing_and_does_not_count(node):
    node.topic()
    node.produce(batch_of(b"v" * 2_000))
    allow(node, request_percentage=1.0, consumer_byte_rate=300.0)
    for _ in range(3):
        fetched = node.fetch(("t", 0, 0))
        assert fetched.throttle_time_ms == 0
        response, wait_ms = charged(node, ApiKey.FETCH, 12, fetched, spent_ns=10**9)
        assert (response.responses, response.throttle_time_ms, wait_ms) == ([], 1000, 1000)


# -- changes to topics -----------------------------------------------------------------------------


def create(name: str, partitions: int = 1, **options: Any) -> CreateTopicsRequest:
    topic = CreatableTopic(name, partitions, 1)
    return CreateTopicsRequest([topic], timeout_ms=1000, **options)


def test_strict_versions_refuse_what_the_tokens_do_not_cover(node):
    allow(node, controller_mutation_rate=1.0)
    first = ask(node, ApiKey.CREATE_TOPICS, create("first", 12))
    assert (first.topics[0].error_code, first.throttle_time_ms) == (0, 0)
    second = ask(node, ApiKey.CREATE_TOPICS, create("second"))
    assert second.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert second.throttle_time_ms == 1000
    assert "second" not in node.cluster.topics
    node.advance(1000)
    assert ask(node, ApiKey.CREATE_TOPICS, create("second")).topics[0].error_code == 0


def test_older_versions_do_it_and_tell_to_wait(node):
    allow(node, controller_mutation_rate=1.0)
    first = ask(node, ApiKey.CREATE_TOPICS, create("first", 12), 5)
    second = ask(node, ApiKey.CREATE_TOPICS, create("second"), 5)
    assert [first.throttle_time_ms, second.throttle_time_ms] == [1000, 2000]
    assert "second" in node.cluster.topics


def test_only_what_would_be_done_is_counted(node):
    """A topic that is there already costs nothing; one that is only tried out costs its tokens."""
    node.topic("there")
    allow(node, controller_mutation_rate=1.0)
    refused = ask(node, ApiKey.CREATE_TOPICS, create("there", 20))
    assert refused.topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    tried = ask(node, ApiKey.CREATE_TOPICS, create("tried", 20, validate_only=True))
    assert tried.topics[0].error_code == 0
    refused = ask(node, ApiKey.CREATE_TOPICS, create("late"))
    assert refused.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_one_request_may_be_done_in_part(node):
    allow(node, controller_mutation_rate=1.0)
    topics = [CreatableTopic(name, 6, 1) for name in ("a", "b", "c", "d")]
    answer = ask(node, ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics, timeout_ms=1000))
    throttled = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert [topic.error_code for topic in answer.topics] == [0, 0, throttled, throttled]
    assert answer.throttle_time_ms == 1000


@pytest.mark.parametrize(("version", "done"), [(6, False), (5, False), (4, True)])
def test_topics_are_deleted_at_the_rate_of_the_quota(node, version, done):
    node.topic("big", 12)
    node.topic("small")
    allow(node, controller_mutation_rate=1.0)
    for name in ("big", "small"):
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=name)], topic_names=[name], timeout_ms=1000
        )
        answer = ask(node, ApiKey.DELETE_TOPICS, request, version)
    assert ("small" not in node.cluster.topics) is done
    expected = 0 if done else ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert answer.responses[0].error_code == expected
    assert answer.throttle_time_ms == (2000 if done else 1000)


@pytest.mark.parametrize(("version", "done"), [(3, False), (2, True)])
def test_partitions_are_added_at_the_rate_of_the_quota(node, version, done):
    topic = node.topic().topic
    allow(node, controller_mutation_rate=1.0)
    for count in (13, 14):
        wanted = CreatePartitionsTopic("t", count, None)
        request = CreatePartitionsRequest([wanted], timeout_ms=1000)
        answer = ask(node, ApiKey.CREATE_PARTITIONS, request, version)
    assert len(topic.partitions) == (14 if done else 13)
    assert answer.throttle_time_ms == (2000 if done else 1000)


def test_a_topic_that_is_asked_for_is_not_created_above_the_quota(node):
    """The client is not told; it asks again, and again, until its tokens are back."""
    allow(node, controller_mutation_rate=1.0)

    def ask_for(name: str) -> ErrorCode:
        request = MetadataRequest([MetadataRequestTopic(name=name)])
        answer = ask(node, ApiKey.METADATA, request, 12)
        assert answer.throttle_time_ms == 0
        return ErrorCode(answer.topics[0].error_code)

    answers = [ask_for(f"topic-{number}") for number in range(13)]
    assert answers == [ErrorCode.NONE] * 12 + [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert len(node.cluster.topics) == 12
    assert ask_for("late") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert "late" not in node.cluster.topics
    node.advance(1000)
    assert ask_for("late") is ErrorCode.NONE
    assert "late" in node.cluster.topics
