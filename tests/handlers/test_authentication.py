"""Clients that have not proved who they are hear a refusal in their request's shape, in time."""

from __future__ import annotations

import pytest

from mockbroker.handlers import load_all
from mockbroker.handlers.authentication import refusal, told_late
from mockbroker.handlers.base import APIS
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.codec import response_codec
from mockbroker_protocol.messages.api_versions import ApiVersionsRequest
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.list_groups import ListGroupsRequest
from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from mockbroker_protocol.messages.produce import ProduceRequest
from tests.support.ask import nodes

ERROR = ErrorCode.ILLEGAL_SASL_STATE


load_all()


@pytest.mark.parametrize("served", APIS.values(), ids=lambda served: served.key.name)
def test_every_api_can_refuse(served):
    """The refusal fits all versions, whatever the request held."""
    requests = {
        ApiKey.METADATA: MetadataRequest(None),
        ApiKey.FIND_COORDINATOR: FindCoordinatorRequest("g"),
    }
    response = refusal(served.key, requests.get(served.key, ProduceRequest()), ERROR)
    for version in range(served.min_version, served.max_version + 1):
        assert response_codec(served.key, version).encode(response)


def test_the_error_is_told_for_the_request_as_a_whole():
    for key, request in (
        (ApiKey.API_VERSIONS, ApiVersionsRequest()),
        (ApiKey.LIST_GROUPS, ListGroupsRequest()),
    ):
        assert refusal(key, request, ERROR).error_code == ERROR


def test_metadata_tells_it_for_each_topic():
    request = MetadataRequest([MetadataRequestTopic(name="a"), MetadataRequestTopic(name="b")])
    answer = refusal(ApiKey.METADATA, request, ERROR)
    assert [(t.name, t.error_code) for t in answer.topics] == [("a", ERROR), ("b", ERROR)]


def test_find_coordinator_tells_it_for_each_key():
    request = FindCoordinatorRequest(coordinator_keys=["a", "b"])
    answer = refusal(ApiKey.FIND_COORDINATOR, request, ERROR)
    assert [(c.key, c.error_code, c.node_id) for c in answer.coordinators] == [
        ("a", ERROR, -1),
        ("b", ERROR, -1),
    ]


def test_a_refusal_waits_for_its_delay():
    node = nodes(1, connection_failed_authentication_delay_ms="250")
    parked = told_late(node.cluster, node.now_ms, "no")
    node.advance(249)
    assert not parked.done
    node.advance(1)
    assert parked.response == "no"


def test_without_a_delay_a_refusal_is_there_at_once():
    node = nodes(1, connection_failed_authentication_delay_ms="0")
    assert told_late(node.cluster, node.now_ms, "no").done
