"""What is read off the requests of every API."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from mockbroker.core.faults.layouts import request_layout
from mockbroker.handlers import load_all
from mockbroker.handlers.base import APIS
from mockbroker_protocol import ApiKey
from mockbroker_protocol.codec import request_codec
from mockbroker_protocol.declarations import class_names, schema_module
from mockbroker_protocol.declare import Array, Scalar, Shape
from mockbroker_protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from mockbroker_protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from mockbroker_protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.support.asking import Asking

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
VALUES: dict[Scalar, Any] = {
    Scalar.BOOL: True,
    Scalar.FLOAT64: 1.0,
    Scalar.UUID: bytes(range(16)),
    Scalar.STRING: "x",
    Scalar.BYTES: b"x",
    Scalar.RECORDS: memoryview(b"x"),
}


def filled(shape: Shape, module: Any, names: dict[int, str]) -> Any:
    """A struct with something in every field, and one element in every array."""

    def value(type_: Any) -> Any:
        if isinstance(type_, Array):
            return [value(type_.element)]
        if isinstance(type_, Shape):
            return filled(type_, module, names)
        return VALUES.get(type_, 1)

    made = getattr(module, names[id(shape)])
    return made(**{field.name: value(field.type) for field in shape.fields})


def message(key: ApiKey) -> Any:
    schema = schema_module(key.name.lower())
    module = import_module(f"mockbroker_protocol.messages.{key.name.lower()}")
    return filled(schema.REQUEST.shape, module, class_names(schema))


@pytest.mark.parametrize("key", sorted(APIS), ids=lambda key: ApiKey(key).name)
def test_every_condition_can_be_asked_of_every_request(key: int) -> None:
    """With one thing in each array, and with nothing at all."""
    api = APIS[key]
    full = message(api.key)
    empty = type(full)()
    for number, (field, wanted) in enumerate(OF_REQUESTS.items()):
        asking = Asking()
        asking.add(name=f"r{number}", match={**EVERYTHING, field: wanted}, do={"observe": {}})
        for request in (full, empty, full):
            asking.ask(api.key, request, version=api.max_version)
        explained = asking.engine.explain(f"r{number}")
        assert explained.asked == 3
        assert explained.hits + sum(explained.failed.values()) == 3
    assert request_layout(key).shape is request_codec_shape(api.key)


def request_codec_shape(key: ApiKey) -> Shape:
    assert request_codec(key, APIS[key].max_version) is not None
    shape: Shape = schema_module(key.name.lower()).REQUEST.shape
    return shape


@pytest.mark.parametrize(
    ("key", "request_", "match"),
    [
        (
            ApiKey.OFFSET_FETCH,
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
            FindCoordinatorRequest(key_type=1, coordinator_keys=["tx"]),
            {"transactional_id": "tx"},
        ),
        (ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(key="g"), {"group": "g"}),
        (
            ApiKey.LEAVE_GROUP,
            LeaveGroupRequest(
                group_id="g", members=[MemberIdentity(member_id="m", group_instance_id="i")]
            ),
            {"group": "g", "member": "m", "instance_id": "i"},
        ),
        (
            ApiKey.DELETE_TOPICS,
            DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")]),
            {"topic": "orders"},
        ),
        (ApiKey.DELETE_TOPICS, DeleteTopicsRequest(topic_names=["orders"]), {"topic": "orders"}),
    ],
)
def test_facts_are_found_wherever_they_stand(
    key: ApiKey, request_: Any, match: dict[str, Any]
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
        asking.ask(key, request_)
    assert rule.hits == 2
    assert [each.hits for each in wrong] == [0] * len(wrong)
