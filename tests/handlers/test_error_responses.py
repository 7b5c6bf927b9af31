"""One error for a whole request; the oracle compares its place with Kafka's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mockbroker.core.errors import ApiError
from mockbroker.handlers import load_all
from mockbroker.handlers.base import APIS, CLOSE_CONNECTION, Outcome
from mockbroker.handlers.error_responses import _template, error_response, failure_response
from mockbroker.handlers.refusals import Refusal
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.codec import request_codec, response_codec
from mockbroker_protocol.declarations import class_names, declared_keys, schema_module
from mockbroker_protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.heartbeat import HeartbeatRequest
from mockbroker_protocol.messages.produce import ProduceRequest
from tests.handlers.spelled_out import spelled_out
from tests.oracle.catalogue import Entry
from tests.oracle.generate import Generator

ERROR = ErrorCode.CLUSTER_AUTHORIZATION_FAILED

load_all()


def empty_request(key: ApiKey) -> Any:
    schema = schema_module(key.name.lower())
    name = class_names(schema)[id(schema.REQUEST.shape)]
    module = __import__(f"mockbroker_protocol.messages.{key.name.lower()}", fromlist=[name])
    return getattr(module, name)()


@pytest.mark.parametrize("served", APIS.values(), ids=lambda served: served.key.name)
def test_every_api_can_refuse(served):
    """The answer fits all versions, whatever was asked for."""
    for version in range(served.min_version, served.max_version + 1):
        request = empty_request(served.key)
        if served.key is ApiKey.PRODUCE:
            request.acks = 1
        assert request_codec(served.key, version).encode(request)
        response = error_response(served.key, version, request, ERROR)
        assert response_codec(served.key, version).encode(response)


def requests(key: ApiKey, version: int) -> Iterator[Any]:
    """Requests of any content, as they are once decoded."""
    schema = schema_module(key.name.lower())
    generator = Generator(Entry(schema, schema.REQUEST), version, f"errors of {key.name}")
    codec = request_codec(key, version)
    for request in (empty_request(key), *(generator.message() for _ in range(5))):
        yield codec.decode(memoryview(b"".join(codec.encode(request))))[0]


def sent(key: ApiKey, version: int, response: Any) -> bytes | Outcome:
    if isinstance(response, Outcome):
        return response
    return b"".join(response_codec(key, version).encode(response))


@pytest.mark.parametrize("message", [None, "", "Not you."])
@pytest.mark.parametrize("served", APIS.values(), ids=lambda served: served.key.name)
def test_what_is_derived_is_what_is_spelled_out(served, message: str | None):
    """Byte for byte, in all versions: declarations and contracts say what Kafka's classes do."""
    key = served.key
    for version in range(served.min_version, served.max_version + 1):
        for request in requests(key, version):
            derived = error_response(key, version, request, ERROR, message=message)
            expected = spelled_out(key, version, request, ERROR, message)
            assert sent(key, version, derived) == sent(key, version, expected), request


def test_an_api_that_is_not_served_has_a_derived_answer_too():
    for key in declared_keys():
        versions = schema_module(key.name.lower()).REQUEST.versions
        for version in range(versions.low, versions.high + 1):
            request = empty_request(key)
            if key is ApiKey.PRODUCE:
                request.acks = 1
            assert response_codec(key, version).encode(error_response(key, version, request, ERROR))


def test_an_array_of_which_it_is_not_clear_what_it_stands_for_has_to_be_named(monkeypatch):
    monkeypatch.setattr(APIS[int(ApiKey.FETCH)], "refusal", Refusal(rows=("responses",)))
    _template.cache_clear()
    with pytest.raises(LookupError, match="forgotten_topics_data"):
        error_response(ApiKey.FETCH, 12, FetchRequest(), ERROR)


def test_rows_carry_over_what_was_asked_for():
    topics = [FetchTopic(topic="t", partitions=[FetchPartition(partition=p) for p in (3, 1)])]
    request = FetchRequest(session_id=7, topics=topics)
    old = error_response(ApiKey.FETCH, 12, request, ERROR)
    (topic,) = old.responses
    assert (topic.topic, [(p.partition_index, p.error_code) for p in topic.partitions]) == (
        "t",
        [(3, ERROR), (1, ERROR)],
    )
    new = error_response(ApiKey.FETCH, 13, request, ERROR)
    assert (new.error_code, new.session_id, new.responses) == (ERROR, 7, [])


def test_words_of_the_caller_stand_beside_each_error():
    request = CreateTopicsRequest(topics=[CreatableTopic("a"), CreatableTopic("b")])
    answer = error_response(ApiKey.CREATE_TOPICS, 7, request, ERROR, message="Not you.")
    assert [(t.name, t.error_message) for t in answer.topics] == [
        ("a", "Not you."),
        ("b", "Not you."),
    ]
    silent = error_response(ApiKey.CREATE_TOPICS, 7, request, ERROR)
    assert [t.error_message for t in silent.topics] == [None, None]


def test_some_apis_say_in_words_what_the_code_means():
    request = FindCoordinatorRequest(coordinator_keys=["g"])
    (row,) = error_response(ApiKey.FIND_COORDINATOR, 4, request, ERROR).coordinators
    assert (row.key, row.node_id, row.error_message) == ("g", -1, ERROR.message)


def test_the_throttle_time_is_told_with_it():
    answer = error_response(ApiKey.HEARTBEAT, 4, HeartbeatRequest(), ERROR, throttle_time_ms=250)
    assert (answer.error_code, answer.throttle_time_ms) == (ERROR, 250)


def test_a_produce_without_acks_has_no_answer_but_the_close():
    request = ProduceRequest(acks=0)
    assert error_response(ApiKey.PRODUCE, 9, request, ERROR) is CLOSE_CONNECTION


def test_a_failure_tells_nothing_of_its_cause():
    """Only an error meant for clients keeps its code and words."""
    request = CreateTopicsRequest(topics=[CreatableTopic("a")])
    (row,) = failure_response(ApiKey.CREATE_TOPICS, 7, request, KeyError("secret")).topics
    assert (row.error_code, row.error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    known = ApiError(ErrorCode.POLICY_VIOLATION, "No.")
    (row,) = failure_response(ApiKey.CREATE_TOPICS, 7, request, known).topics
    assert (row.error_code, row.error_message) == (ErrorCode.POLICY_VIOLATION, "No.")
