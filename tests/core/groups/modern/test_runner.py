"""Requests of the classic protocol, as a runner of another protocol answers them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from mockbroker.core.configs.values import ClusterConfigs
from mockbroker.core.groups.consumer.group import ConsumerGroup
from mockbroker.core.groups.events import ConsumerResult, Join, Leave, Leaver, Sync
from mockbroker.core.groups.modern.runner import ModernRunner
from mockbroker.core.groups.records import KeyValue
from mockbroker_protocol import ErrorCode
from tests.support.consumer_node import ConsumerNode


class Strangers(ModernRunner[ConsumerGroup, int]):
    """A type of group without anything of its own; its settings count how often they are read."""

    group_type = "strange"
    reads = 0

    @staticmethod
    def read_settings(configs: ClusterConfigs, group_id: str) -> int:
        Strangers.reads += 1
        return Strangers.reads

    def new_group(self, group_id: str, preceding: list[KeyValue]) -> ConsumerGroup:
        raise NotImplementedError

    @staticmethod
    def refusal(error: ErrorCode, message: str | None) -> ConsumerResult:
        raise NotImplementedError

    def expire(self, group: ConsumerGroup, member_ids: Sequence[str]) -> None:
        raise NotImplementedError

    def fence_instance(self, group: ConsumerGroup, instance_id: str) -> None:
        raise NotImplementedError

    def _handle(self, group: ConsumerGroup, event: object) -> Sequence[object]:
        raise NotImplementedError


@pytest.fixture
def node() -> ConsumerNode:
    node = ConsumerNode()
    assert node.joins("g", "m").error_code == 0
    return node


def joining(answers: list[Any]) -> Join:
    return Join(
        callback=answers.append,
        member_id="",
        new_member_id="n",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=(("range", b""),),
    )


def test_requests_of_classic_members_are_refused(node: ConsumerNode) -> None:
    shard = node.shard()
    strangers, group = Strangers(shard), shard.consumers.all()["g"]
    answers: list[Any] = []
    strangers.join(group, joining(answers))
    strangers.sync(group, Sync(callback=answers.append, member_id="m", generation=1))
    assert [each.error for each in answers] == [
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert strangers.heartbeat(group, "m", None, 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_leave_has_an_error_for_each_member_that_it_names(node: ConsumerNode) -> None:
    shard = node.shard()
    answers: list[Any] = []
    members = (Leaver("a"), Leaver("", "i"))
    Strangers(shard).leave(shard.consumers.all()["g"], Leave(answers.append, members))
    (result,) = answers
    assert result.error is ErrorCode.NONE
    assert [(m.member_id, m.instance_id, m.error) for m in result.members] == [
        ("a", None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", "i", ErrorCode.UNKNOWN_MEMBER_ID),
    ]


def test_settings_are_read_again_after_a_change_of_configs(node: ConsumerNode) -> None:
    strangers = Strangers(node.shard())
    first = strangers.settings("g")
    assert strangers.settings("g") == first
    node.cluster.configs.changed()
    assert strangers.settings("g") == first + 1
