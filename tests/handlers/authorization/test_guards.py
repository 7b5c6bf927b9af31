"""Guards ask for what their rules say, and for nothing else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import cache

import pytest

from mockbroker.core.security.acls import Operation, ResourceType
from mockbroker.core.security.authorizer import STANDARD_AUTHORIZER
from mockbroker.handlers import load_all
from mockbroker.handlers.authorization import GUARDS, OPEN, ROOMS
from mockbroker.handlers.authorization import load_all as load_guards
from mockbroker.handlers.authorization.access import Need
from mockbroker.handlers.base import APIS
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.init_producer_id import InitProducerIdRequest
from tests.handlers.authorization.samples import GROUP, SAMPLES, TOPIC, TRANSACTIONAL_ID, Sample
from tests.support.ask import ask
from tests.support.requests import Node

load_all()
load_guards()

# Bits that only tell what may be done beside what was asked for.
TELLING = (ApiKey.METADATA, ApiKey.DESCRIBE_CLUSTER, ApiKey.DESCRIBE_TOPIC_PARTITIONS)


# What comes or goes by these would be missed, or be in the way, later.
DESTROYERS = (ApiKey.DELETE_TOPICS, ApiKey.DELETE_GROUPS, ApiKey.METADATA)


class Recorder:
    """Stands in for the authorizer: allows what it is told to, and keeps what it was asked."""

    def __init__(self, allowed: Callable[[Need], bool]) -> None:
        self.asked: set[Need] = set()
        self._allowed = allowed

    def allows(
        self, principal: str, host: str, operation: Operation, kind: ResourceType, name: str
    ) -> bool:
        need = Need(operation, kind)
        self.asked.add(need)
        return self._allowed(need)

    def allows_on_any(
        self, principal: str, host: str, operation: Operation, kind: ResourceType
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
    return node


@cache
def shared_node() -> Node:
    """One for all requests that leave it as furnished as it was."""
    return furnished()


def asked(sample: Sample, allowed: Callable[[Need], bool]) -> set[Need]:
    """What is asked of the authorizer on the way of one request."""
    node = furnished() if sample.key in DESTROYERS else shared_node()
    recorder = Recorder(allowed)
    node.cluster.authorizer = recorder  # type: ignore[assignment]
    ask(node, sample.key, sample.request, sample.version)
    return recorder.asked


def test_every_api_has_a_guard_or_a_reason_for_none() -> None:
    served = {ApiKey(key) for key in APIS}
    assert served - GUARDS.keys() - OPEN.keys() == set()
    assert GUARDS.keys() & OPEN.keys() == set()
    assert {sample.key for sample in SAMPLES} == GUARDS.keys()


def test_every_guard_stands_in_the_room_that_is_named_for_it() -> None:
    """Or a first request would look for it in vain."""
    found = {key: guard.judge.__module__.rpartition(".")[2] for key, guard in GUARDS.items()}
    assert found == {key: room for room, keys in ROOMS.items() for key in keys}


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: f"{s.key.name}-v{s.version}")
def test_nothing_is_asked_that_no_rule_speaks_of(sample: Sample) -> None:
    rules = {need for rule in GUARDS[sample.key].rules for need in rule.needs}
    found = asked(sample, lambda _: False)
    assert found <= rules
    assert found
    if sample.key not in TELLING:
        assert asked(sample, lambda _: True) <= rules


def test_every_rule_is_asked_for() -> None:
    """By one of the samples, when nothing is allowed, or all, or all but one thing."""
    missing: dict[ApiKey, set[Need]] = defaultdict(set)
    for key, guard in GUARDS.items():
        missing[key] = {need for rule in guard.rules for need in rule.needs}
    for sample in SAMPLES:
        rules = {need for rule in GUARDS[sample.key].rules for need in rule.needs}
        missing[sample.key] -= asked(sample, lambda _: False)
        missing[sample.key] -= asked(sample, lambda _: True)
        for need in rules if missing[sample.key] else ():
            missing[sample.key] -= asked(sample, lambda each, need=need: each != need)  # type: ignore[misc]
    assert {key: needs for key, needs in missing.items() if needs} == {}


def test_requests_for_the_controller_wait_where_there_is_none() -> None:
    """Nobody can judge them but the controller."""
    from mockbroker.handlers.authorization import guarded
    from mockbroker.handlers.base import Parked
    from mockbroker_protocol.messages.create_acls import CreateAclsRequest
    from tests.support.ask import context

    node = furnished()
    node.cluster.metadata.lose([node.cluster.brokers[1]])
    surroundings = context(node, ApiKey.CREATE_ACLS, 3)
    answer = guarded(APIS[int(ApiKey.CREATE_ACLS)], surroundings, CreateAclsRequest())
    assert isinstance(answer, Parked)
    assert not answer.done
