"""ApiVersions: the APIs and features of each release, for each version of the request."""

from __future__ import annotations

import pytest

from mockbroker.core.cluster import Cluster
from mockbroker.handlers.api_versions import (
    api_versions_response,
    served_level,
    unsupported_version_response,
)
from mockbroker.handlers.base import APIS, ConnectionInfo
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.support.ask import ask, context, nodes
from tests.support.requests import Node

CLIENT = ApiVersionsRequest("tester", "1.0")

TELEMETRY = {int(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS), int(ApiKey.PUSH_TELEMETRY)}


@pytest.fixture
def node() -> Node:
    return nodes(1)


def offered(node: Node, version: int = 4) -> dict[int, tuple[int, int]]:
    response = ask(node, ApiKey.API_VERSIONS, CLIENT, version)
    return {k.api_key: (k.min_version, k.max_version) for k in response.api_keys}


@pytest.mark.parametrize("version", range(5))
def test_every_version_offers_what_is_served(node, version):
    response = ask(node, ApiKey.API_VERSIONS, CLIENT, version)
    assert response.error_code == ErrorCode.NONE
    told = {key: served for key, served in APIS.items() if key not in TELEMETRY}
    assert [k.api_key for k in response.api_keys] == sorted(told)
    assert offered(node, version) == {
        key: (served.advertised_min, served.max_version) for key, served in told.items()
    }


def test_telemetry_is_offered_where_somebody_receives_it():
    assert not TELEMETRY & offered(nodes(1)).keys()
    assert offered(nodes(1, telemetry_receiver="true")).keys() >= TELEMETRY


def test_produce_is_offered_from_version_0_on_for_old_librdkafka(node):
    assert offered(node)[int(ApiKey.PRODUCE)] == (0, 13)
    assert APIS[int(ApiKey.PRODUCE)].min_version == 3


@pytest.mark.covers("S305")
def test_the_clients_software_is_remembered(node):
    connection = ConnectionInfo(1, "h", 1)
    request = ApiVersionsRequest("apache-kafka-java", "2.2.0")
    ask(node, ApiKey.API_VERSIONS, request, 3, connection=connection)
    assert (connection.software_name, connection.software_version) == ("apache-kafka-java", "2.2.0")


@pytest.mark.parametrize(
    ("name", "version"),
    [("", "1"), ("a", ""), ("-a", "1"), ("a-", "1"), ("a b", "1"), ("a", "1_0"), ("ä", "1")],
)
def test_a_malformed_software_name_is_refused_from_version_3_on(node, name, version):
    connection = ConnectionInfo(1, "h", 1)
    request = ApiVersionsRequest(name, version)
    for asked in (3, 4):
        response = ask(node, ApiKey.API_VERSIONS, request, asked, connection=connection)
        assert (response.error_code, response.api_keys) == (ErrorCode.INVALID_REQUEST, [])
    assert connection.software_name == "unknown"
    older = ask(node, ApiKey.API_VERSIONS, ApiVersionsRequest(), 2)
    assert older.error_code == ErrorCode.NONE


def test_a_request_of_a_version_to_come_is_answered_with_the_versions_of_this_api_alone():
    response = unsupported_version_response(Cluster())
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    ((key, low, high),) = [(k.api_key, k.min_version, k.max_version) for k in response.api_keys]
    assert (key, low, high) == (18, 0, 4)
    (older,) = unsupported_version_response(Cluster(kafka_version="3.8")).api_keys
    assert older.max_version == 3


def at_release(release: str) -> Node:
    node = nodes(1)
    node.cluster = Cluster(kafka_version=release)
    return node


def test_a_release_caps_versions_and_leaves_out_what_it_lacks():
    old = offered(at_release("2.8"), 3)
    assert old[int(ApiKey.FETCH)] == (4, 12)
    assert old[int(ApiKey.API_VERSIONS)] == (0, 3)
    assert int(ApiKey.DESCRIBE_TOPIC_PARTITIONS) not in old
    assert int(ApiKey.DESCRIBE_TOPIC_PARTITIONS) in offered(at_release("3.8"), 3)


def test_features_with_a_minimum_of_0_are_for_version_4(node):
    def supported(version: int) -> dict[str, tuple[int, int]]:
        response: ApiVersionsResponse = ask(node, ApiKey.API_VERSIONS, CLIENT, version)
        return {f.name: (f.min_version, f.max_version) for f in response.supported_features}

    assert supported(3) == {"metadata.version": (7, 30)}
    assert supported(4)["eligible.leader.replicas.version"] == (0, 1)
    assert supported(4)["kraft.version"] == (0, 1)


def test_features_are_finalized_at_the_level_in_force(node):
    response = ask(node, ApiKey.API_VERSIONS, CLIENT)
    levels = {
        f.name: (f.min_version_level, f.max_version_level) for f in response.finalized_features
    }
    assert levels["metadata.version"] == (30, 30)
    assert levels["eligible.leader.replicas.version"] == (1, 1)
    assert "kraft.version" not in levels
    assert response.finalized_features_epoch == 0
    assert ask(at_release("3.2"), ApiKey.API_VERSIONS, CLIENT, 3).finalized_features == []


def test_a_feature_reaches_no_further_than_the_apis_behind_it(node, monkeypatch):
    cluster = node.cluster
    for key in (ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.END_TXN):
        monkeypatch.delitem(APIS, int(key), raising=False)
    assert served_level(cluster, "group.version", 1) == 0
    assert served_level(cluster, "transaction.version", 2) == 1
    served = APIS[int(ApiKey.METADATA)]
    for key in (ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.END_TXN):
        monkeypatch.setitem(APIS, int(key), served)
    assert served_level(cluster, "group.version", 1) == 1
    assert served_level(cluster, "transaction.version", 2) == 2


def test_an_answer_is_encoded_once_until_a_feature_changes(node):
    handle = APIS[int(ApiKey.API_VERSIONS)].handle
    ctx = context(node, ApiKey.API_VERSIONS, 4)
    first = handle(ctx, CLIENT)
    assert handle(ctx, CLIENT) is first
    node.cluster.features.set_levels({"eligible.leader.replicas.version": 0})
    assert handle(ctx, CLIENT) is not first
    response = ask(node, ApiKey.API_VERSIONS, CLIENT)
    assert response.finalized_features_epoch == 1
    assert "eligible.leader.replicas.version" not in {f.name for f in response.finalized_features}


def test_share_groups_come_with_kafka_41_and_their_feature_with_42():
    levels = {}
    for release in ("4.0", "4.1", "4.2"):
        response = api_versions_response(Cluster(kafka_version=release), 4)
        finalized = {f.name: f.max_version_level for f in response.finalized_features}
        served = ApiKey.SHARE_GROUP_HEARTBEAT in {each.api_key for each in response.api_keys}
        levels[release] = served, finalized.get("share.version", 0)
    assert levels == {"4.0": (False, 0), "4.1": (True, 0), "4.2": (True, 1)}
