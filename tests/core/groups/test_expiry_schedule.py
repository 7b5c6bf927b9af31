"""Rounds of expiry take place as if there were all of them, and those that find nothing do not."""

from __future__ import annotations

import random

import pytest

from tests.support.group_node import (
    GroupNode,
    commit_request,
    expire_all,
    heartbeat_request,
    leave_request,
    subscription,
)

MINUTE = 60_000
RETENTION_MINUTES = 10
CONFIGS = {
    "offsets.retention.minutes": str(RETENTION_MINUTES),
    "offsets.retention.check.interval.ms": str(MINUTE),
}


def new_node(shards: int = 50) -> GroupNode:
    """Rounds each minute, on the full minutes after the first question about a group."""
    more = {
        "group.max.session.timeout.ms": "2000000000",
        "offsets.topic.num.partitions": str(shards),
    }
    node = GroupNode(configs={**CONFIGS, **more}, offsets_topic=True)
    node.topic("u", 3)
    node.shard()
    return node


def rounds_until(node: GroupNode, minutes: int) -> list[int]:
    """At which minutes from now there is something to do for groups."""
    begin_ms, found = node.now_ms, []
    times = node.cluster.clock_domains.groups
    for minute in range(1, minutes + 1):
        at_ms = begin_ms + minute * MINUTE
        due_ms = times.deadline_ms()
        if due_ms is not None and due_ms <= at_ms:
            found.append(minute)
        node.advance(at_ms - node.now_ms)
    return found


def keys(node: GroupNode, group: str) -> list[tuple[str, int]]:
    return sorted(node.shard(group).offsets.keys_of_group(group))


def test_where_nothing_is_there_is_no_round() -> None:
    node = new_node()
    rounds_until(node, 1)
    assert rounds_until(node, 60) == []


def test_a_commit_is_looked_at_once_and_again_when_its_time_is_over() -> None:
    node = new_node()
    rounds_until(node, 1)
    node.ask(commit_request({("t", 0): 1}))
    assert rounds_until(node, 60) == [1, RETENTION_MINUTES, RETENTION_MINUTES + 1]
    assert keys(node, "g") == []
    assert "g" not in node.shard().groups


def test_a_thousand_groups_cost_no_more_rounds_than_one() -> None:
    node = new_node()
    rounds_until(node, 1)
    for number in range(1000):
        node.ask(commit_request({("t", 0): 1}, f"g{number}"))
    assert len(rounds_until(node, RETENTION_MINUTES - 1)) <= 1
    rounds_until(node, 2)
    assert not node.shard().groups


def test_a_check_of_very_many_groups_lets_requests_in_between() -> None:
    """After 200 groups each. And it takes a group that changes meanwhile as it is then."""
    node = new_node(shards=1)
    rounds_until(node, 1)
    for number in range(401):
        node.ask(commit_request({("t", 0): 1}, f"g{number:04}"))
    rounds_until(node, RETENTION_MINUTES - 1)
    timers, shard = node.cluster.runtime.timers, node.shard()
    node.now_ms += MINUTE
    left = []
    timers.run_due(node.now_ms)
    left.append(len(shard.groups))
    node.ask(commit_request({("t", 0): 2}, "g0399"))
    while timers.deadline_ms() == 0:
        timers.run_due(node.now_ms)
        left.append(len(shard.groups))
    assert left == [201, 2, 1]
    assert list(shard.groups) == ["g0399"]
    assert rounds_until(node, RETENTION_MINUTES + 2)[-1] == RETENTION_MINUTES + 1
    assert list(shard.groups) == []


def test_a_check_ends_with_its_shard() -> None:
    node = new_node(shards=1)
    rounds_until(node, 1)
    for number in range(201):
        node.ask(commit_request({("t", 0): 1}, f"g{number:04}"))
    rounds_until(node, RETENTION_MINUTES - 1)
    node.now_ms += MINUTE
    timers = node.cluster.runtime.timers
    timers.run_due(node.now_ms)
    shard = node.shard()
    assert len(shard.groups) == 1
    node.cluster.brokers[1].groups.unload()
    while timers.deadline_ms() == 0:
        timers.run_due(node.now_ms)
    node.cluster.brokers[1].groups.shard_of("g")  # it is loaded again
    node.advance(0)
    assert node.shard() is not shard
    assert keys(node, "g0200") == [("t", 0)]
    node.advance(2 * MINUTE)
    assert node.shard().groups == {}


class Everyday:
    """Groups that live some life, the same from the same seed."""

    def __init__(self, seed: int, *, every_round: bool) -> None:
        self.random = random.Random(seed)
        self.node = new_node()
        self.every_round = every_round
        self.members: dict[str, tuple[str, int]] = {}

    def act(self) -> None:
        """One step."""
        group = self.random.choice("abc")
        topic, partition = self.random.choice("tu"), self.random.randrange(3)
        member, generation = self.members.get(group, ("", -1))
        kind = self.random.choice(("commit", "commit", "join", "leave", "pass", "pass", "pass"))
        if kind == "commit":
            self.node.ask(commit_request({(topic, partition): 1}, group, member, generation))
        elif kind == "join" and not member:
            protocols = {"range": subscription(topic)}
            [member] = self.node.stable(
                group, protocols=protocols, session_timeout_ms=2_000_000_000
            )
            generation = self.node.shard(group).groups[group].generation
            self.members[group] = (member, generation)
            self.node.ask(heartbeat_request(group, member, generation))
        elif kind == "leave" and member:
            self.node.ask(leave_request(group, member))
            del self.members[group]
        elif kind == "pass":
            for _ in range(self.random.randrange(1, 8)):
                self._minute()

    def _minute(self) -> None:
        self.node.advance(MINUTE)
        if self.every_round:
            expire_all(self.node, RETENTION_MINUTES * MINUTE)

    def seen(self) -> dict[str, list[tuple[str, int]]]:
        return {group: keys(self.node, group) for group in "abc"}


@pytest.mark.parametrize("seed", range(8))
def test_it_is_as_if_every_round_took_place(seed: int) -> None:
    """Beside a broker that looks at everything each minute."""
    ours, thorough = Everyday(seed, every_round=False), Everyday(seed, every_round=True)
    for step in range(150):
        ours.act()
        thorough.act()
        assert ours.seen() == thorough.seen(), (seed, step)
        assert ours.node.shard().groups.keys() == thorough.node.shard().groups.keys()


def test_no_offset_expires_while_its_coordinator_is_paused() -> None:
    node = new_node()
    rounds_until(node, 1)
    node.ask(commit_request({("t", 0): 1}))
    rounds_until(node, 1)
    node.cluster.pause_broker(1, fence_after_ms=1_000 * MINUTE)
    rounds_until(node, 5 * RETENTION_MINUTES)
    shard = node.cluster.brokers[1].groups.loaded()[0]
    assert list(shard.offsets.keys_of_group("g")) == [("t", 0)]
    node.cluster.resume_broker(1)
    assert list(shard.offsets.keys_of_group("g")) == []


def test_a_commit_one_millisecond_before_a_round_is_looked_at_in_that_round() -> None:
    node = new_node()
    rounds_until(node, 1)
    node.advance(MINUTE - 1)
    node.ask(commit_request({("t", 0): 1}))
    assert node.cluster.clock_domains.groups.deadline_ms() == node.now_ms + 1


def test_a_group_that_is_made_again_during_a_check_is_looked_at_in_another_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mockbroker.core.groups.expiry_schedule.GROUPS_PER_TURN", 2)
    node = new_node(shards=1)
    rounds_until(node, 1)
    for group in "abcde":
        node.ask(commit_request({("t", 0): 1}, group))
    rounds_until(node, RETENTION_MINUTES - 1)
    node.now_ms += MINUTE
    timers, shard = node.cluster.runtime.timers, node.shard()
    timers.run_due(node.now_ms)
    assert list(shard.groups) == ["c", "d", "e"]
    node.ask(commit_request({("t", 0): 1}, "a"))
    node.advance(0)
    assert list(shard.groups) == ["a"]
    rounds_until(node, RETENTION_MINUTES + 2)
    assert list(shard.groups) == []


def test_offsets_expire_on_the_coordinator_that_they_moved_to() -> None:
    more = {"offsets.topic.num.partitions": "1", "auto.leader.rebalance.enable": "false"}
    node = GroupNode(racks=(None, None), configs={**CONFIGS, **more})
    (partition,) = node.cluster.topics["__consumer_offsets"].partitions
    former = partition.leader_id
    node.ask(commit_request({("t", 0): 1}), broker=former)
    following = 3 - former
    node.cluster.move_coordinator("g", following)
    node.advance(0)
    assert list(node.shard("g", following).groups) == ["g"]
    node.advance((RETENTION_MINUTES + 1) * MINUTE)
    assert list(node.shard("g", following).groups) == []
