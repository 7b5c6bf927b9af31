"""The facts of the requests of every API."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker.core.faults.paths import request_shape
from mockbroker.handlers import load_all
from mockbroker.handlers.base import APIS
from mockbroker_protocol import ApiKey
from mockbroker_protocol.codec import request_codec
from mockbroker_protocol.declarations import schema_module
from mockbroker_protocol.declare import Shape
from mockbroker_protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from mockbroker_protocol.messages.alter_configs import AlterConfigsRequest
from mockbroker_protocol.messages.alter_configs import (
    AlterConfigsResource as OldAlterConfigsResource,
)
from mockbroker_protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from mockbroker_protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from mockbroker_protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from mockbroker_protocol.messages.elect_leaders import ElectLeadersRequest
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from mockbroker_protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from mockbroker_protocol.messages.metadata import MetadataRequest
from mockbroker_protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.support.asking import Asking
from tests.support.populated import populated

load_all()

EVERYTHING: dict[str, Any] = {
    "api_version": "0+",
    "broker": 1,
    "listener": "*",
    "client_id": "*",
    "client_software": "*",
    "principal": "*",
    "source": "*",
    "connection": 1,
}
OF_REQUESTS: dict[str, Any] = {
    "topic": "*",
    "partition": [0, 1],
    "group": "*",
    "member": "*",
    "instance_id": "*",
    "transactional_id": "*",
    "producer_id": [0, 1],
    "acks": 1,
    "isolation_level": 0,
    "transactional": True,
}


@pytest.mark.parametrize("key", sorted(APIS), ids=lambda key: ApiKey(key).name)
def test_every_condition_is_defined_for_every_request(key: int) -> None:
    """With two things in each array, and with nothing at all."""
    api = APIS[key]
    full = populated(api.key, api.max_version)
    empty = type(full)()
    for number, (field, wanted) in enumerate(OF_REQUESTS.items()):
        asking = Asking()
        asking.add(name=f"r{number}", match={**EVERYTHING, field: wanted}, do={"observe": {}})
        for request in (full, empty, full):
            asking.ask(api.key, request, version=api.max_version)
        explained = asking.engine.explain(f"r{number}")
        assert explained.evaluated == 3
        assert explained.hits + sum(explained.failed.values()) == 3
    assert request_shape(key) is request_codec_shape(api.key)


def request_codec_shape(key: ApiKey) -> Shape:
    assert request_codec(key, APIS[key].max_version) is not None
    shape: Shape = schema_module(key.name.lower()).REQUEST.shape
    return shape


@pytest.mark.parametrize(
    ("key", "version", "request_", "match"),
    [
        (
            ApiKey.OFFSET_FETCH,
            9,
            OffsetFetchRequest(
                groups=[
                    OffsetFetchRequestGroup(group_id="a"),
                    OffsetFetchRequestGroup(
                        group_id="b",
                        topics=[OffsetFetchRequestTopics(name="orders", partition_indexes=[2])],
                    ),
                ]
            ),
            {"group": "b", "topic": "orders", "partition": 2},
        ),
        (
            ApiKey.ADD_PARTITIONS_TO_TXN,
            5,
            AddPartitionsToTxnRequest(
                transactions=[
                    AddPartitionsToTxnTransaction(
                        transactional_id="tx",
                        producer_id=5,
                        topics=[AddPartitionsToTxnTopic(name="orders", partitions=[1])],
                    )
                ]
            ),
            {"transactional_id": "tx", "producer_id": 5, "topic": "orders", "partition": 1},
        ),
        (
            ApiKey.FIND_COORDINATOR,
            6,
            FindCoordinatorRequest(key_type=1, coordinator_keys=["tx"]),
            {"transactional_id": "tx"},
        ),
        (ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest(key="g"), {"group": "g"}),
        (
            ApiKey.LEAVE_GROUP,
            5,
            LeaveGroupRequest(
                group_id="g", members=[MemberIdentity(member_id="m", group_instance_id="i")]
            ),
            {"group": "g", "member": "m", "instance_id": "i"},
        ),
        (
            ApiKey.DELETE_TOPICS,
            6,
            DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")]),
            {"topic": "orders"},
        ),
        (ApiKey.DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=["orders"]), {"topic": "orders"}),
    ],
)
def test_facts_are_found_in_every_place_of_a_message(
    key: ApiKey, version: int, request_: Any, match: dict[str, Any]
) -> None:
    asking = Asking()
    rule = asking.add(name="x", match=match, do={"observe": {}})
    wrong = [
        asking.add(
            name=f"not-{field}",
            match={**match, field: 77 if isinstance(value, int) else "other"},
            do={"observe": {}},
        )
        for field, value in match.items()
    ]
    for _ in range(2):
        asking.ask(key, request_, version=version)
    assert rule.hits == 2
    assert [each.hits for each in wrong] == [0] * len(wrong)


@pytest.mark.parametrize(
    ("key", "version", "request_"),
    [
        (
            ApiKey.DESCRIBE_CONFIGS,
            4,
            DescribeConfigsRequest([DescribeConfigsResource(2, "orders", None)]),
        ),
        (ApiKey.ALTER_CONFIGS, 2, AlterConfigsRequest([OldAlterConfigsResource(2, "orders")])),
        (
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            1,
            IncrementalAlterConfigsRequest([AlterConfigsResource(2, "orders")]),
        ),
    ],
    ids=lambda value: value.name if isinstance(value, ApiKey) else "",
)
def test_topics_are_seen_in_requests_for_configs(key: ApiKey, version: int, request_: Any) -> None:
    asking = Asking()
    by_name = asking.add(name="name", match={"topic": "orders"}, do={"observe": {}})
    other = asking.add(name="other", match={"topic": "other"}, do={"observe": {}})
    asking.ask(key, request_, version=version)
    request_.resources[0].resource_type = 4  # a broker of that name is no topic
    asking.ask(key, request_, version=version)
    assert (by_name.hits, other.hits) == (1, 0)


def test_a_field_that_the_version_lacks_has_no_value() -> None:
    """From version 8 on OffsetFetch has its groups in an array; the single one is empty."""
    asking = Asking()
    empty = asking.add(name="empty", match={"group": "/^$/"}, do={"observe": {}})
    named = asking.add(name="named", match={"group": ["b", "c"]}, do={"observe": {}})
    groups = [OffsetFetchRequestGroup(group_id=name) for name in "ab"]
    asking.ask(ApiKey.OFFSET_FETCH, OffsetFetchRequest(groups=groups), version=9)
    assert (empty.hits, named.hits) == (0, 1)
    first = asking.add(name="0", match={"producer_id": 0}, do={"observe": {}})
    transactions = [AddPartitionsToTxnTransaction("x", producer_id=5)]
    request = AddPartitionsToTxnRequest(transactions=transactions)
    asking.ask(ApiKey.ADD_PARTITIONS_TO_TXN, request, version=5)
    assert first.hits == 0


def test_null_that_stands_for_all_topics_matches_each_and_no_other_null_does() -> None:
    asking = Asking()
    rule = asking.add(name="x", match={"topic": "orders"}, do={"observe": {}})
    for request in (MetadataRequest(topics=None), MetadataRequest(topics=[])):
        asking.ask(ApiKey.METADATA, request, version=12)
    assert rule.hits == 1
    every_offset = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=None)])
    asking.ask(ApiKey.OFFSET_FETCH, every_offset, version=9)
    assert rule.hits == 2
    # A member that owns what it owned before.
    asking.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, ConsumerGroupHeartbeatRequest("g"), version=1)
    assert rule.hits == 2


def test_null_and_an_empty_array_are_different_also_when_cached() -> None:
    """What rules say of requests that look alike is kept; these two do not look alike."""
    asking = Asking()
    rule = asking.add(name="x", match={"topic": "orders"}, do={"observe": {}})
    for _ in range(2):
        for topics in (None, []):
            asking.ask(ApiKey.ELECT_LEADERS, ElectLeadersRequest(0, topics), version=2)
    assert rule.hits == 2
