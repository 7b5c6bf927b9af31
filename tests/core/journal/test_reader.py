"""The journal's fields of requests; rules find the same entities."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker.core.faults.facts import Facts
from mockbroker.core.faults.matching import ENTITIES, Matcher
from mockbroker.core.faults.rules import Match
from mockbroker.core.journal.events import JournalEvent, one_line
from mockbroker.core.journal.filters import EventMatcher, parse_filter
from mockbroker.core.journal.journal import Journal
from mockbroker.core.journal.messages import NAMED
from mockbroker.core.journal.reader import JournalReader
from mockbroker.handlers.base import RequestContext
from mockbroker_protocol import ApiKey
from mockbroker_protocol.codec import request_codec
from mockbroker_protocol.declarations import declared_keys, schema_module
from mockbroker_protocol.headers import RequestHeader, encode_request_header
from mockbroker_protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTransaction,
)
from mockbroker_protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from mockbroker_protocol.messages.delete_groups import DeleteGroupsRequest
from mockbroker_protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from mockbroker_protocol.messages.describe_groups import DescribeGroupsRequest
from mockbroker_protocol.messages.describe_transactions import DescribeTransactionsRequest
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from mockbroker_protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from tests.support.asking import Asking
from tests.support.populated import populated


def event_of(key: ApiKey, version: int, request: Any) -> JournalEvent:
    """The entry of a request."""
    header = encode_request_header(RequestHeader(key, version, 1, "c"))
    body = b"".join(request_codec(key, version).encode(request))
    journal = Journal(lambda: 1, 1 << 20)
    journal.request(5, 1, 7, header + body)
    (event,) = JournalReader(journal, lambda _: None).events()
    return event


def facts_of(asking: Asking, key: ApiKey, version: int, request: Any) -> Facts:
    """The same request, as rules see it."""
    header = RequestHeader(key, version, 1, "c")
    context = RequestContext(
        asking.cluster,
        asking.cluster.brokers[1],
        "PLAINTEXT",
        header,
        asking.connection,
        asking.now_ms,
    )
    return Facts(context, request)


def several(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, tuple) else [value]


@pytest.mark.parametrize("key", declared_keys(), ids=lambda key: key.name)
def test_rules_and_the_journal_find_the_same_entities_in_every_version_of_every_request(
    key: ApiKey,
) -> None:
    asking = Asking()
    versions = schema_module(key.name.lower()).REQUEST.versions
    for version in range(versions.low, versions.high + 1):
        request = populated(key, version)
        event, facts = event_of(key, version, request), facts_of(asking, key, version, request)
        told = {name: several(getattr(event, name)) for name in NAMED}
        assert told == {name: facts.values(kind) for name, kind in NAMED.items()}
        assert event.targets == tuple((each.topic, each.partition) for each in facts.targets)
        for name in ENTITIES:
            for value in told[name]:
                wanted: dict[str, Any] = {name: value}
                assert Matcher(Match(**wanted)).failed(facts) is None
                assert EventMatcher(parse_filter(wanted), 0)(event)
        for topic, partition in event.targets:
            index = None if partition < 0 else partition
            assert Matcher(Match(topic=topic, partition=index)).failed(facts) is None


TWO_GROUPS = OffsetFetchRequest(
    groups=[
        OffsetFetchRequestGroup(group_id="a", member_id="m", member_epoch=3, topics=[]),
        OffsetFetchRequestGroup(group_id="b", topics=None),
    ]
)
TWO_TRANSACTIONS = AddPartitionsToTxnRequest(
    transactions=[
        AddPartitionsToTxnTransaction("x", producer_id=0, producer_epoch=1),
        AddPartitionsToTxnTransaction("y", producer_id=7, producer_epoch=1),
    ]
)


@pytest.mark.parametrize(
    ("key", "version", "request_", "expected"),
    [
        (
            ApiKey.OFFSET_FETCH,
            9,
            TWO_GROUPS,
            {"group": ("a", "b"), "member": "m", "generation": 3},
        ),
        (ApiKey.OFFSET_FETCH, 7, OffsetFetchRequest(group_id="a"), {"group": "a"}),
        (ApiKey.DESCRIBE_GROUPS, 5, DescribeGroupsRequest(groups=["a"]), {"group": "a"}),
        (ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest(["a", "b"]), {"group": ("a", "b")}),
        (
            ApiKey.CONSUMER_GROUP_DESCRIBE,
            1,
            ConsumerGroupDescribeRequest(group_ids=["a", "b", "a"]),
            {"group": ("a", "b")},
        ),
        (ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest(key="a"), {"group": "a"}),
        (
            ApiKey.FIND_COORDINATOR,
            6,
            FindCoordinatorRequest(key_type=1, coordinator_keys=["x", "y"]),
            {"transactional_id": ("x", "y")},
        ),
        (
            ApiKey.FIND_COORDINATOR,
            6,
            FindCoordinatorRequest(key_type=2, coordinator_keys=["g:AAAA:0"]),
            {},
        ),
        (
            ApiKey.ADD_PARTITIONS_TO_TXN,
            5,
            TWO_TRANSACTIONS,
            {"transactional_id": ("x", "y"), "producer_id": (0, 7), "producer_epoch": 1},
        ),
        (
            ApiKey.DESCRIBE_TRANSACTIONS,
            0,
            DescribeTransactionsRequest(["x"]),
            {"transactional_id": "x"},
        ),
        (
            ApiKey.LEAVE_GROUP,
            5,
            LeaveGroupRequest("a", members=[MemberIdentity("m", "i"), MemberIdentity("n")]),
            {"group": "a", "member": ("m", "n"), "instance_id": "i"},
        ),
        (
            ApiKey.DESCRIBE_CONFIGS,
            4,
            DescribeConfigsRequest(
                [DescribeConfigsResource(2, "t", None), DescribeConfigsResource(32, "g", None)]
            ),
            {"group": "g", "targets": (("t", -1),)},
        ),
    ],
    ids=lambda value: value.name if isinstance(value, ApiKey) else None,
)
def test_a_request_has_a_single_entity_or_all_of_several(
    key: ApiKey, version: int, request_: Any, expected: dict[str, object]
) -> None:
    """Kafka's empty texts and defaults of fields that the version lacks are no things."""
    event = event_of(key, version, request_)
    told = {name: getattr(event, name) for name in (*NAMED, "targets")}
    assert {name: value for name, value in told.items() if value not in (None, ())} == expected


def test_a_filter_holds_when_one_of_several_fits() -> None:
    event = event_of(ApiKey.OFFSET_FETCH, 9, TWO_GROUPS)

    def holds(**wanted: Any) -> bool:
        return EventMatcher(parse_filter(wanted), 0)(event)

    assert holds(group="a")
    assert holds(group="/^b$/")
    assert not holds(group="c")
    event = event_of(ApiKey.ADD_PARTITIONS_TO_TXN, 5, TWO_TRANSACTIONS)
    assert holds(producer_id=7)
    assert holds(producer_id=[0, 99])
    assert not holds(producer_id=1)


def test_a_line_has_all_groups_of_a_request() -> None:
    assert "group=a,b" in one_line(event_of(ApiKey.OFFSET_FETCH, 9, TWO_GROUPS))


def test_a_reader_of_facts_opens_no_request_and_passes_over_it():
    journal = Journal(lambda: 1, 1 << 20)
    journal.request(5, 1, 7, b"no request can be read from this")
    journal.fact(1, "clock", change="freeze")
    journal.request(5, 1, 7, b"nor from this")
    reader = JournalReader(journal, lambda _: None)
    assert [event.kind for event in reader.events(facts_only=True)] == ["clock"]
    assert reader.last_seq == journal.last_seq
    assert list(reader.events(2, facts_only=True)) == []


@pytest.mark.parametrize(
    ("wanted", "facts_only"),
    [
        ({}, False),
        ({"kind": "election"}, True),
        ({"kind": ["election", "append"]}, False),
        ({"kind": ["clock", "fault", "group"]}, True),
        ({"kind": "deliver"}, False),
    ],
)
def test_a_filter_knows_whether_only_facts_can_match(wanted: dict[str, object], facts_only: bool):
    assert EventMatcher(parse_filter(wanted), 0).facts_only is facts_only
