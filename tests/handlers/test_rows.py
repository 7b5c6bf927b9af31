"""Requests of many rows: in slices, with the answer that they would have in one piece."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from mockbroker.core.errors import ApiError
from mockbroker.core.quotas.client_quotas import entity_of
from mockbroker.core.security.acls import AclOperation, ResourceType
from mockbroker.core.security.authorizer import STANDARD_AUTHORIZER
from mockbroker.handlers import load_all
from mockbroker.handlers.authorization import authorized
from mockbroker.handlers.base import APIS, EncodedResponse, Parked, RequestContext
from mockbroker.handlers.rows import ROWS_PER_SLICE, perform
from mockbroker.handlers.throttling import RequestUsage
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.codec import response_codec
from mockbroker_protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from mockbroker_protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from mockbroker_protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from mockbroker_protocol.messages.describe_groups import DescribeGroupsRequest
from mockbroker_protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from mockbroker_protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from mockbroker_protocol.messages.describe_transactions import DescribeTransactionsRequest
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from mockbroker_protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from mockbroker_protocol.messages.share_group_describe import ShareGroupDescribeRequest
from mockbroker_protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from tests.support.ask import ask, context
from tests.support.logged import logged
from tests.support.requests import Node

NAMES = ("t", "missing", "not allowed", "g", "", "t", "not allowed 2", "1")
COUNT = 3 * ROWS_PER_SLICE + 1
Request = Callable[[Sequence[str]], Any]


class Authorizer:
    """Denies all on resources whose name begins with `not allowed`."""

    def allows(
        self, principal: str, host: str, operation: AclOperation, kind: ResourceType, name: str
    ) -> bool:
        del principal, host, operation, kind
        return not name.startswith("not allowed")


def described_configs(names: Sequence[str]) -> DescribeConfigsRequest:
    kinds = (2, 4, 32, 2)
    resources = [
        DescribeConfigsResource(kinds[at % len(kinds)], name) for at, name in enumerate(names)
    ]
    return DescribeConfigsRequest(resources, include_synonyms=True, include_documentation=True)


REQUESTS: dict[ApiKey, Request] = {
    ApiKey.DESCRIBE_CONFIGS: described_configs,
    ApiKey.DESCRIBE_GROUPS: lambda names: DescribeGroupsRequest(
        list(names), include_authorized_operations=False
    ),
    ApiKey.CONSUMER_GROUP_DESCRIBE: lambda names: ConsumerGroupDescribeRequest(list(names)),
    ApiKey.SHARE_GROUP_DESCRIBE: lambda names: ShareGroupDescribeRequest(list(names)),
    ApiKey.STREAMS_GROUP_DESCRIBE: lambda names: StreamsGroupDescribeRequest(list(names)),
    ApiKey.OFFSET_FETCH: lambda names: OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(name, topics=None) for name in names]
    ),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: lambda names: DescribeShareGroupOffsetsRequest(
        [
            DescribeShareGroupOffsetsRequestGroup(
                name, [DescribeShareGroupOffsetsRequestTopic("t", [0, 1])]
            )
            for name in names
        ]
    ),
    ApiKey.DESCRIBE_TRANSACTIONS: lambda names: DescribeTransactionsRequest(list(names)),
    ApiKey.DESCRIBE_PRODUCERS: lambda names: DescribeProducersRequest(
        [TopicRequest(name, [0, 1, 0]) for name in names]
    ),
}


@pytest.fixture
def node() -> Node:
    """A cluster with a topic `t` and a group `g` that has a member and offsets."""
    node = Node(configs={"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:a"})
    node.cluster.authorizer = Authorizer()  # type: ignore[assignment]
    node.topic("t", 2)
    find = FindCoordinatorRequest(coordinator_keys=["g"])
    assert ask(node, ApiKey.FIND_COORDINATOR, find).coordinators[0].error_code == 0
    heartbeat = ConsumerGroupHeartbeatRequest(
        "g", "m", 0, rebalance_timeout_ms=1000, subscribed_topic_names=["t"], topic_partitions=[]
    )
    epoch = ask(node, ApiKey.CONSUMER_GROUP_HEARTBEAT, heartbeat).member_epoch
    offsets = [OffsetCommitRequestPartition(index, 5) for index in (0, 1)]
    commit = OffsetCommitRequest(
        "g", epoch, "m", topics=[OffsetCommitRequestTopic("t", partitions=offsets)]
    )
    assert ask(node, ApiKey.OFFSET_COMMIT, commit, 9).topics[0].partitions[0].error_code == 0
    return node


def whole(ctx: RequestContext, request: Any) -> bytes:
    """The response of the handler alone."""
    key = ctx.header.api_key
    answer = authorized(APIS[key], ctx, request)
    if isinstance(answer, Parked):
        answer = answer.response
    return b"".join(response_codec(key, ctx.api_version).encode(answer))


def versions() -> Iterator[tuple[ApiKey, int]]:
    load_all()
    for key in REQUESTS:
        api = APIS[int(key)]
        for version in range(api.min_version, api.max_version + 1):
            if key is not ApiKey.OFFSET_FETCH or version >= 8:  # there is one group before
                yield key, version


def test_every_api_that_answers_rows_is_compared() -> None:
    load_all()
    assert {key for key, api in APIS.items() if api.rows is not None} == {*map(int, REQUESTS)}


@pytest.mark.parametrize(("key", "version"), [*versions()], ids=str)
def test_the_slices_have_the_answer_of_the_whole(node: Node, key: ApiKey, version: int) -> None:
    """In the order of the rows, but refused ones first or last; equal rows come more than once."""
    request = REQUESTS[key]([NAMES[at % len(NAMES)] for at in range(COUNT)])
    expected = whole(context(node, key, version), request)
    reply = perform(APIS[int(key)], context(node, key, version), request)
    assert isinstance(reply, Parked)
    rounds = 1
    while not reply.done:
        rounds += 1
        node.advance(0)
    assert rounds == 4
    assert isinstance(reply.response, EncodedResponse)
    assert b"".join(reply.response.parts) == expected


def test_all_slices_count_as_time_of_the_handler(node: Node) -> None:
    """`request_percentage` measures it: of four slices each takes one tick, and the connection
    measures the first.
    """
    node.cluster.quotas.alter(
        entity_of([("client-id", "tester")]), {"request_percentage": 1.0}, validate_only=False
    )
    throttling = node.cluster.quotas.throttling
    assert throttling is not None
    key = ApiKey.DESCRIBE_GROUPS
    ctx = context(node, key, 5)
    ctx.usage = RequestUsage(throttling, 0, itertools.count().__next__)
    reply = perform(APIS[int(key)], ctx, REQUESTS[key]([str(at) for at in range(COUNT)]))
    assert isinstance(reply, Parked)
    spent = []
    reply.on_complete = lambda: spent.append(ctx.usage and ctx.usage.spent_ns)
    while not reply.done:
        node.advance(0)
    assert spent == [3]


def test_few_rows_are_answered_at_once(node: Node) -> None:
    key = ApiKey.DESCRIBE_GROUPS
    request = REQUESTS[key](["g"] * ROWS_PER_SLICE)
    assert not isinstance(perform(APIS[int(key)], context(node, key, 5), request), Parked)


def test_equal_rows_share_their_bytes(node: Node) -> None:
    """A thousand times the configs of a broker take the memory of one."""
    key = ApiKey.DESCRIBE_CONFIGS
    same = DescribeConfigsRequest([DescribeConfigsResource(4, "1")] * 1000, include_synonyms=True)
    reply = perform(APIS[int(key)], context(node, key, 4), same)
    assert isinstance(reply, Parked)
    while not reply.done:
        node.advance(0)
    parts = reply.response.parts
    assert len(parts) == 1002
    assert len({*map(id, parts)}) == 3


def unknown_type_last(names: Sequence[str]) -> DescribeConfigsRequest:
    request = described_configs(names)
    request.resources[-1].resource_type = 99
    return request


def test_an_error_of_a_later_slice_is_that_of_the_whole(node: Node) -> None:
    key = ApiKey.DESCRIBE_CONFIGS
    request = unknown_type_last(["t"] * COUNT)
    ctx = context(node, key, 4)
    with pytest.raises(ApiError) as raised:
        whole(ctx, request)
    reply = perform(APIS[int(key)], context(node, key, 4), request)
    assert isinstance(reply, Parked)
    while not reply.done:
        node.advance(0)
    assert reply.response == ctx.refusal(request, raised.value.error, raised.value.message)


def test_a_defect_in_a_later_slice_is_an_unknown_server_error(
    node: Node, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The traceback is for the log."""
    key = ApiKey.DESCRIBE_GROUPS
    broken = ZeroDivisionError("planted")

    def fail(*_: object) -> None:
        raise broken

    request = REQUESTS[key]([str(at) for at in range(COUNT)])
    ctx = context(node, key, 5)
    reply = perform(APIS[int(key)], ctx, request)
    assert isinstance(reply, Parked)
    monkeypatch.setattr(APIS[int(key)], "handle", fail)
    node.advance(0)
    assert reply.response == ctx.refusal(request, ErrorCode.UNKNOWN_SERVER_ERROR)
    [record] = logged(caplog)
    assert record.getMessage().endswith("handling DESCRIBE_GROUPS failed")
    assert record.exc_info is not None
    assert record.exc_info[1] is broken


def test_a_client_that_goes_away_ends_the_work(node: Node) -> None:
    key = ApiKey.DESCRIBE_GROUPS
    ctx = context(node, key, 5)
    reply = perform(APIS[int(key)], ctx, REQUESTS[key]([str(at) for at in range(COUNT)]))
    assert isinstance(reply, Parked)
    ctx.connection.closed = True
    for _ in range(5):
        node.advance(0)
    assert not reply.done
    assert node.cluster.runtime.timers.deadline_ms() != 0
