"""Groups that change their protocol while members are in them, request by request."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker.core.groups.states import ClassicGroupState
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    TopicPartition,
    decode_assignment,
    encode_assignment,
)
from tests.support.consumer_node import ConsumerNode
from tests.support.group_node import (
    SESSION_MS,
    heartbeat_request,
    join_request,
    leave_request,
    subscription,
    sync_request,
)


def share(*partitions: int, **fields: Any) -> bytes:
    parts = [TopicPartition("t", list(partitions))]
    return encode_assignment(ConsumerProtocolAssignment(assigned_partitions=parts, **fields))


@pytest.fixture
def node() -> ConsumerNode:
    return ConsumerNode()


def classic(node: ConsumerNode, **fields: Any) -> str:
    """A Stable classic group of one member that owns all of "t"."""
    (member,) = node.stable("g")
    assignments = {member: share(0, 1, 2, **fields)}
    joined = node.ask(join_request("g", member))
    node.ask(sync_request("g", member, joined.generation_id, assignments))
    return member


def test_a_classic_group_becomes_a_consumer_group(node: ConsumerNode) -> None:
    """Its members keep what they have, at an epoch that goes on from the generation."""
    old = classic(node)
    generation = node.classic_group().generation
    joined = node.joins("g", "new")
    group = node.consumer_group("g")
    assert node.shard().classic.get("g") is None
    assert group.epoch == group.assignment_epoch == joined.member_epoch == generation + 1
    assert node.owned("g", old) == [0, 1, 2]
    assert group.members[old].epoch == generation
    beaten = node.ask(heartbeat_request("g", old, generation))
    assert beaten.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    node.reload()
    assert node.consumer_group("g").members == group.members


def test_nothing_that_a_member_has_since_the_first_generation_is_given_away(
    node: ConsumerNode,
) -> None:
    old = node.member("g")
    node.ask(sync_request("g", old, 1, {old: share(0, 1, 2)}))
    assert node.joins("g", "new").assignment.topic_partitions == []
    assert node.owned("g", old) == [0, 1, 2]


def test_sessions_of_classic_members_begin_with_the_upgrade(node: ConsumerNode) -> None:
    old = classic(node)
    node.advance(SESSION_MS - 1)
    node.joins("g", "new")
    node.advance(SESSION_MS - 1)
    assert old in node.consumer_group("g").members
    node.advance(1)
    assert old not in node.consumer_group("g").members


def test_nothing_of_the_classic_group_is_left_in_a_compacted_log(node: ConsumerNode) -> None:
    """Its key is GroupMetadataKey, of version 2."""
    classic(node)
    node.joins("g", "new")
    values = [record.value for record in node.log("g") if record.key[:2] == b"\0\2"]
    assert values[:-1]
    assert values[-1] is None


def test_whoever_waits_in_the_classic_group_is_told_to_join_again(node: ConsumerNode) -> None:
    classic(node)
    second = node.ask(join_request("g")).member_id
    waiting = node.send(join_request("g", second))
    assert waiting.parked
    assert node.joins("g", "new").error_code == ErrorCode.NONE
    assert waiting.response.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert node.ask(join_request("g", second)).error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    ("configs", "fields", "reason"),
    [
        ({"group.consumer.migration.policy": "downgrade"}, {}, "upgrade is disabled"),
        ({"group.consumer.migration.policy": "disabled"}, {}, "upgrade is disabled"),
        ({"group.consumer.max.size": "1"}, {"count": 2}, "exceeds the consumer group maximum"),
        ({}, {"protocol_type": "connect"}, "does not use the consumer embedded protocol"),
        ({}, {"protocols": {"range": b"?"}}, "protocol is malformed"),
        ({}, {}, "protocol is malformed"),  # each member is assigned its name
    ],
)
def test_some_classic_groups_stay_what_they_are(
    configs: dict[str, str], fields: dict[str, Any], reason: str
) -> None:
    node = ConsumerNode(configs=configs)
    node.stable("g", **fields)
    refused = node.joins("g", "new")
    assert refused.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert reason in refused.error_message
    assert node.classic_group().state is ClassicGroupState.STABLE


def test_a_group_as_large_as_a_consumer_group_may_be_has_no_room_for_another_member() -> None:
    node = ConsumerNode(configs={"group.consumer.max.size": "1"})
    classic(node)
    assert node.joins("g", "new").error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert node.classic_group().state is ClassicGroupState.STABLE


def test_a_group_without_a_protocol_yet_has_the_topics_of_the_first_ones() -> None:
    """Its members still wait for the end of the initial delay."""
    node = ConsumerNode(configs={"group.initial.rebalance.delay.ms": "3000"})
    node.topic("u", 1)
    protocols = {"range": subscription("t"), "sticky": subscription("u")}
    old = node.member("g", protocols=protocols)
    assert node.joins("g", "new").error_code == ErrorCode.NONE
    assert node.consumer_group("g").members[old].topic_names == {"t"}


def test_data_of_a_custom_assignor_would_get_lost(node: ConsumerNode) -> None:
    classic(node, user_data=b"mine")
    assert node.joins("g", "new").error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_an_empty_classic_group_makes_room(node: ConsumerNode) -> None:
    (member,) = node.stable("g")
    node.ask(leave_request("g", member))
    assert node.joins("g", "new").member_epoch == 2
    assert node.shard().classic.get("g") is None


def test_an_empty_consumer_group_makes_room(node: ConsumerNode) -> None:
    node.joins("g", "new")
    node.leaves("g", "new")
    unknown = node.ask(join_request("g", "x"))
    assert unknown.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert node.consumer_group("g").is_empty()
    node.stable("g")
    assert node.shard().consumers.get("g") is None
    node.reload()
    assert list(node.shard().classic.all()) == ["g"]


def test_it_becomes_a_classic_group_again_when_the_last_new_member_leaves(
    node: ConsumerNode,
) -> None:
    """The classic members keep what they were to have, and a round begins."""
    old = classic(node)
    node.joins("g", "new")
    node.settle_classic("g", old, "new")
    epoch = node.consumer_group("g").epoch
    kept = node.owned("g", old)
    node.leaves("g", "new")
    group = node.classic_group()
    assert (group.state, group.generation) == (ClassicGroupState.PREPARING, epoch)
    stored = decode_assignment(group.members[old].assignment).assigned_partitions
    assert [p for part in stored for p in part.partitions] == kept
    beaten = node.ask(heartbeat_request("g", old, epoch))
    assert beaten.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    node.reload()
    again = node.classic_group()
    assert (again.state, again.generation) == (ClassicGroupState.STABLE, epoch)
    assert list(again.members) == [old]


def test_a_static_member_that_goes_back_takes_the_group_with_it(node: ConsumerNode) -> None:
    node.joins("g", "new", instance_id="one")
    joined = node.ask(
        join_request("g", protocols={"range": subscription("t")}, group_instance_id="one")
    )
    group = node.classic_group()
    assert group.state is ClassicGroupState.STABLE
    assert joined.generation_id == group.generation == 2
    synced = node.ask(sync_request("g", joined.member_id, 2, group_instance_id="one"))
    (part,) = decode_assignment(synced.assignment).assigned_partitions
    assert part.partitions == [0, 1, 2]


def test_all_protocols_of_a_member_survive_the_way_back(node: ConsumerNode) -> None:
    protocols = {"range": subscription("t"), "roundrobin": subscription("t")}
    node.joins("g", "new")
    given = node.ask(join_request("g", protocols=protocols)).member_id
    node.ask(join_request("g", given, protocols=protocols))
    node.leaves("g", "new")
    group = node.classic_group()
    assert [name for name, _ in group.members[given].protocols] == list(protocols)


def test_what_cannot_be_stored_does_not_happen(node: ConsumerNode) -> None:
    old = classic(node)
    with node.log_refuses():
        refused = node.joins("g", "new")
        assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert old in node.classic_group().members
    node.joins("g", "new")
    with node.log_refuses():
        refused = node.leaves("g", "new")
        assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert "new" in node.consumer_group("g").members


def test_the_protocol_of_most_members_is_that_of_the_group_on_the_way_back(
    node: ConsumerNode,
) -> None:
    node.joins("g", "new")
    for names in (("range", "sticky"), ("sticky", "range"), ("sticky", "range")):
        protocols = {name: subscription("t") for name in names}
        given = node.ask(join_request("g", protocols=protocols)).member_id
        node.ask(join_request("g", given, protocols=protocols))
    node.leaves("g", "new")
    assert node.classic_group().protocol_name == "sticky"
