"""One error for a whole request; that it stands where Kafka puts it is for the oracle to say."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker.core.errors import ApiError
from mockbroker.handlers import load_all
from mockbroker.handlers.base import APIS, CLOSE_CONNECTION
from mockbroker.handlers.error_responses import ROWS, error_response, failure_response
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.codec import request_codec, response_codec
from mockbroker_protocol.declarations import class_names, declared_keys, schema_module
from mockbroker_protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.heartbeat import HeartbeatRequest
from mockbroker_protocol.messages.produce import ProduceRequest

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


def test_what_the_table_names_is_declared():
    """Each API with an error somewhere below its top level is in the table, or has it on top."""
    for key in declared_keys():
        names = {field.name for field in schema_module(key.name.lower()).RESPONSE.shape.fields}
        special = key is ApiKey.ALTER_USER_SCRAM_CREDENTIALS
        assert "error_code" in names or key in ROWS or special, key.name


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
    assert (row.key, row.node_id, row.error_message) == ("g", -1, ERROR.sentence)


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
