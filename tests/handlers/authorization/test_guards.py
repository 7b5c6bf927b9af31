"""Each API checks exactly the ACLs of its rules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import cache

import pytest
from msgspec.structs import replace

from mockbroker.core.security.acls import AclOperation, ResourceType
from mockbroker.core.security.authorizer import STANDARD_AUTHORIZER
from mockbroker.handlers import load_all
from mockbroker.handlers.authorization import RequiredAcl, authorized
from mockbroker.handlers.base import APIS
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.init_producer_id import InitProducerIdRequest
from mockbroker_protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from mockbroker_protocol.messages.streams_group_heartbeat import Subtopology, Topology
from tests.handlers.authorization.samples import GROUP, SAMPLES, TOPIC, TRANSACTIONAL_ID, Sample
from tests.handlers.spelled_out import spelled_out
from tests.handlers.test_error_responses import requests, sent
from tests.support.ask import ask, context
from tests.support.requests import Node

load_all()

GUARDED = {each.key: each.authorize for each in APIS.values() if each.authorize.rules}

# Bits that only tell what may be done beside what was asked for.
TELLING = (
    ApiKey.METADATA,
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    ApiKey.STREAMS_GROUP_HEARTBEAT,  # its CreateTopics would tell the configs
)


# What comes or goes by these would be missed, or be in the way, later.
DESTROYERS = (
    ApiKey.DELETE_TOPICS,
    ApiKey.DELETE_GROUPS,
    ApiKey.METADATA,
    ApiKey.STREAMS_GROUP_HEARTBEAT,
)


class Recorder:
    """Stands in for the authorizer: allows what it is told to, and keeps what it was asked."""

    def __init__(self, allowed: Callable[[RequiredAcl], bool]) -> None:
        self.asked: set[RequiredAcl] = set()
        self._allowed = allowed

    def allows(
        self, principal: str, host: str, operation: AclOperation, kind: ResourceType, name: str
    ) -> bool:
        acl = RequiredAcl(operation, kind)
        self.asked.add(acl)
        return self._allowed(acl)

    def allows_on_any(
        self, principal: str, host: str, operation: AclOperation, kind: ResourceType
    ) -> bool:
        return self.allows(principal, host, operation, kind, "")


def furnished() -> Node:
    """A cluster with a topic, groups of both kinds and a transactional id."""
    node = Node(configs={"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:a"})
    node.topic(TOPIC)
    node.cluster.authorizer = Recorder(lambda _: True)  # type: ignore[assignment]
    for kind, key in ((0, GROUP), (1, TRANSACTIONAL_ID)):
        find = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        assert ask(node, ApiKey.FIND_COORDINATOR, find).coordinators[0].error_code == 0
    begun = ask(node, ApiKey.INIT_PRODUCER_ID, InitProducerIdRequest(TRANSACTIONAL_ID, 1000))
    assert begun.error_code == 0
    node.cluster.brokers[1].transactions.shard_of(TRANSACTIONAL_ID).add(  # type: ignore[union-attr]
        TRANSACTIONAL_ID,
        begun.producer_id,
        begun.producer_epoch,
        ((TOPIC, 0),),
        0,
        lambda _: None,
    )
    joined = ask(
        node,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        ConsumerGroupHeartbeatRequest(
            "new-readers",
            "member",
            rebalance_timeout_ms=1000,
            subscribed_topic_names=[TOPIC],
            topic_partitions=[],
        ),
    )
    assert joined.error_code == 0
    sample = next(each for each in SAMPLES if each.key == ApiKey.STREAMS_GROUP_HEARTBEAT)
    streams = replace(
        sample.request,
        group_id="streams-readers",
        topology=Topology(0, [Subtopology("0", [TOPIC])]),
    )
    assert ask(node, sample.key, streams).error_code == 0
    for epoch in (0, 2):  # with the second heartbeat it has partitions
        beat = ShareGroupHeartbeatRequest(
            "sharers", "member", epoch, subscribed_topic_names=[TOPIC]
        )
        assert ask(node, ApiKey.SHARE_GROUP_HEARTBEAT, beat).error_code == 0
        node.advance(2000)
    return node


@cache
def shared_node() -> Node:
    """One for all requests that leave it as furnished as it was."""
    return furnished()


def asked(sample: Sample, allowed: Callable[[RequiredAcl], bool]) -> set[RequiredAcl]:
    """What is asked of the authorizer on the way of one request."""
    node = furnished() if sample.key in DESTROYERS else shared_node()
    recorder = Recorder(allowed)
    node.cluster.authorizer = recorder  # type: ignore[assignment]
    ask(node, sample.key, sample.request, sample.version)
    return recorder.asked


def test_every_guarded_api_has_rules_and_a_sample_and_every_other_a_reason() -> None:
    assert all(each.rules for each in GUARDED.values())
    assert {sample.key for sample in SAMPLES} == GUARDED.keys()
    unguarded = [each.authorize for each in APIS.values() if each.key not in GUARDED]
    assert all(each.reason and not each.rules for each in unguarded)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: f"{s.key.name}-v{s.version}")
def test_nothing_is_asked_that_no_rule_speaks_of(sample: Sample) -> None:
    rules = {acl for rule in GUARDED[sample.key].rules for acl in rule.acls}
    found = asked(sample, lambda _: False)
    assert found <= rules
    assert found
    if sample.key not in TELLING:
        assert asked(sample, lambda _: True) <= rules


def test_every_rule_is_asked_for() -> None:
    """By one of the samples, when nothing is allowed, or all, or all but one thing."""
    missing: dict[ApiKey, set[RequiredAcl]] = defaultdict(set)
    for key, authorize in GUARDED.items():
        missing[key] = {acl for rule in authorize.rules for acl in rule.acls}
    for sample in SAMPLES:
        rules = {acl for rule in GUARDED[sample.key].rules for acl in rule.acls}
        missing[sample.key] -= asked(sample, lambda _: False)
        missing[sample.key] -= asked(sample, lambda _: True)
        for acl in rules if missing[sample.key] else ():
            missing[sample.key] -= asked(sample, lambda each, acl=acl: each != acl)  # type: ignore[misc]
    assert {key: acls for key, acls in missing.items() if acls} == {}


WORDS = {
    key: f"The request {key.name} is not authorized."
    for key in (
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.DESCRIBE_ACLS,
        ApiKey.ELECT_LEADERS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.UPDATE_FEATURES,
    )
} | dict.fromkeys(
    (
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        ApiKey.DELETE_SHARE_GROUP_STATE,
    ),
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED.message,
)
"""Where the refusal has words: of AuthHelper.authorizeClusterOperation, or the error's own."""

CLUSTERWIDE = [
    key
    for key, authorize in GUARDED.items()
    if [acl.resource for rule in authorize.rules for acl in rule.acls] == [ResourceType.CLUSTER]
    and key is not ApiKey.DESCRIBE_CLUSTER
]


@pytest.mark.parametrize("key", CLUSTERWIDE, ids=lambda key: key.name)
def test_who_has_no_right_on_the_cluster_gets_kafkas_error_response(key: ApiKey) -> None:
    """Byte for byte, for requests of any content in all versions."""
    node = shared_node()
    node.cluster.authorizer = Recorder(lambda _: False)  # type: ignore[assignment]
    denied = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    for version in range(APIS[key].min_version, APIS[key].max_version + 1):
        for request in requests(key, version):
            answer = authorized(APIS[key], context(node, key, version), request)
            expected = spelled_out(key, version, request, denied, WORDS.get(key))
            assert sent(key, version, answer) == sent(key, version, expected), request


def test_the_refusals_of_23_apis_are_compared() -> None:
    assert len(CLUSTERWIDE) == 23


def test_requests_for_the_controller_wait_where_there_is_none() -> None:
    """Nobody can judge them but the controller."""
    from mockbroker.handlers.base import Parked
    from mockbroker_protocol.messages.create_acls import CreateAclsRequest

    node = furnished()
    node.cluster.publisher.freeze([node.cluster.brokers[1]])
    surroundings = context(node, ApiKey.CREATE_ACLS, 3)
    answer = authorized(APIS[int(ApiKey.CREATE_ACLS)], surroundings, CreateAclsRequest())
    assert isinstance(answer, Parked)
    assert not answer.done
