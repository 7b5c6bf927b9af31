"""Requests for the controller that arrive at another broker, and their envelopes."""

from __future__ import annotations

from collections.abc import Mapping
from unittest.mock import Mock

import pytest

from mockbroker.core.journal.journal import Journal
from mockbroker.core.journal.reader import JournalReader
from mockbroker.core.security.acls import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AclStore,
    PatternType,
    ResourceType,
)
from mockbroker.core.security.authorizer import STANDARD_AUTHORIZER
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from mockbroker_protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from mockbroker_protocol.messages.delete_topics import DeleteTopicsRequest
from tests.support.group_node import GroupNode, Pending
from tests.support.hops import add_hop_rule, remove_rule
from tests.support.logged import logged

E = ErrorCode
MINUTE_MS = 60_000
CONTROLLER, OTHER = 1, 2


@pytest.fixture
def node() -> GroupNode:
    return GroupNode(racks=(None, None, None))


def acl(topic: str) -> AclBinding:
    return AclBinding(
        ResourceType.TOPIC,
        topic,
        PatternType.LITERAL,
        "User:alice",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )


def create(node: GroupNode, name: str = "new", broker: int = OTHER) -> Pending:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return node.send(CreateTopicsRequest([topic], timeout_ms=1000), 7, broker=broker)


def error_of(pending: Pending) -> int:
    return int(pending.response.topics[0].error_code)


def test_a_request_is_carried_out_at_once_where_nobody_looks(node: GroupNode) -> None:
    assert error_of(create(node)) == E.NONE


def test_over_a_slow_link_it_takes_both_ways(node: GroupNode) -> None:
    network = node.cluster.replication.network
    network.delay([(OTHER, CONTROLLER)], 300)
    network.delay([(CONTROLLER, OTHER)], 200)
    pending = create(node)
    node.advance(299)
    assert "new" not in node.cluster.topics
    node.advance(1)
    assert "new" in node.cluster.topics
    node.advance(199)
    assert pending.parked
    node.advance(1)
    assert error_of(pending) == E.NONE
    assert error_of(create(node, "here", broker=CONTROLLER)) == E.NONE


@pytest.mark.parametrize(
    ("do", "after_ms"),
    [
        ({"drop_request": {}}, 30_000),
        ({"drop_reply": {}}, 30_000),
        ({"error": "NOT_CONTROLLER"}, 100),
    ],
)
def test_an_envelope_that_fails_is_sent_again(
    node: GroupNode, do: Mapping[str, object], after_ms: int
) -> None:
    """After controller.socket.timeout.ms, or soon when it came to the wrong broker."""
    rule = add_hop_rule(node.cluster, do, {"times": 1}, api="Envelope", from_broker=OTHER)
    pending = create(node)
    node.advance(after_ms - 1)
    assert (pending.parked, rule.hits) == (True, 1)
    node.advance(1)
    done_before = "drop_reply" in do
    assert error_of(pending) == (E.TOPIC_ALREADY_EXISTS if done_before else E.NONE)


def test_an_envelope_whose_connection_breaks_is_sent_again_over_the_next_one(
    node: GroupNode,
) -> None:
    """It was on its way when the link was cut; the broker is back before anybody misses it."""
    node.cluster.delay_network(OTHER, CONTROLLER, by_ms=300)
    pending = create(node)
    node.cluster.cut_network(OTHER, fence_after_ms=9_000)
    node.advance(1_000)
    assert pending.parked
    node.cluster.heal_network()
    node.advance(0)
    assert error_of(pending) == E.NONE


@pytest.mark.parametrize("ends", ["stop", "restart", "remove"])
def test_a_request_is_lost_with_the_process_that_forwards_it(node: GroupNode, ends: str) -> None:
    cluster = node.cluster
    cluster.delay_network(OTHER, CONTROLLER, by_ms=300)
    rule = add_hop_rule(cluster, {"drop_request": {}}, api="Envelope")
    create(node)
    node.advance(1_000)
    if ends == "remove":
        cluster.remove_broker(OTHER)
    else:
        cluster.stop_broker(OTHER, "unclean")
    if ends == "restart":
        cluster.start_broker(OTHER)
    remove_rule(cluster, rule)
    cluster.heal_network()
    node.advance(2 * MINUTE_MS)
    assert "new" not in cluster.topics


def test_a_client_waits_for_a_minute(node: GroupNode) -> None:
    add_hop_rule(node.cluster, {"drop_request": {}}, api="Envelope")
    pending = create(node)
    node.advance(MINUTE_MS - 1)
    assert pending.parked
    node.advance(1)
    assert error_of(pending) == E.REQUEST_TIMED_OUT
    node.advance(MINUTE_MS)
    assert "new" not in node.cluster.topics


def test_another_error_of_an_envelope_is_unknown_to_the_client(node: GroupNode) -> None:
    add_hop_rule(node.cluster, {"error": "CLUSTER_AUTHORIZATION_FAILED"}, api="Envelope")
    pending = create(node)
    node.advance(0)
    assert error_of(pending) == E.UNKNOWN_SERVER_ERROR


def test_an_error_of_the_controller_comes_back_over_a_slow_link(node: GroupNode) -> None:
    """DeleteTopics is refused as a whole, by an exception of its handler."""
    node.cluster.replication.network.delay([(OTHER, CONTROLLER)], 300)
    pending = node.send(DeleteTopicsRequest(topic_names=["t"], timeout_ms=0), 5, broker=OTHER)
    node.advance(300)
    assert [topic.error_code for topic in pending.response.responses] == [E.REQUEST_TIMED_OUT]


def test_an_envelope_that_is_held_goes_on_with_its_rule_gone(node: GroupNode) -> None:
    rule = add_hop_rule(node.cluster, {"hold": {}}, from_broker=OTHER, api="Envelope")
    pending = create(node)
    node.advance(1000)
    assert pending.parked
    remove_rule(node.cluster, rule)
    node.advance(0)
    assert error_of(pending) == E.NONE


def test_the_journal_has_envelopes_without_what_is_in_them(node: GroupNode) -> None:
    """It may be a password."""
    journal = Journal(lambda: 0)
    node.cluster.keep_journal(journal)
    add_hop_rule(node.cluster, {"observe": {}}, api="Envelope")
    pending = create(node)
    node.advance(0)
    assert error_of(pending) == E.NONE
    events = list(JournalReader(journal, node.cluster.topic_name).events())
    sent, answered = [e for e in events if e.api == "Envelope" and e.kind != "fault"]
    assert (sent.from_broker, sent.to_broker) == (OTHER, CONTROLLER)
    assert sent.message["request_data"] == answered.message["response_data"] == "[hidden]"
    assert bytes.fromhex(str(sent.message["request_principal"])) == b"\0\0\x05User\x0aANONYMOUS\0\0"
    assert len(bytes.fromhex(str(sent.message["client_host_address"]))) == 4


@pytest.mark.parametrize("found", [0, 80], ids=["first slice", "later slice"])
def test_a_defect_at_the_controller_is_an_unknown_server_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, found: int
) -> None:
    configs = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
    node = GroupNode(racks=(None, None, None), configs=configs)
    acls = node.cluster.acls
    acls.add(*(acl(f"topic-{number}") for number in range(300)))
    node.cluster.replication.network.delay([(OTHER, CONTROLLER)], 300)
    wanted = DeleteAclsFilter(ResourceType.TOPIC, "missing", PatternType.LITERAL, None, None, 1, 1)
    pending = node.send(DeleteAclsRequest([wanted] * 100), 3, broker=OTHER)
    node.advance(299)
    fails = Mock(side_effect=[[]] * found + [ZeroDivisionError("bug")])
    monkeypatch.setattr(AclStore, "find", fails)
    node.advance(301)
    errors = {each.error_code for each in pending.response.filter_results}
    assert errors == {E.UNKNOWN_SERVER_ERROR}
    assert len(acls) == 300
    [record] = logged(caplog)
    assert record.getMessage().endswith("handling DELETE_ACLS failed")
    assert error_of(create(node, broker=CONTROLLER)) == E.NONE
