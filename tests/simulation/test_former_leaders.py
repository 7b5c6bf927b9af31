"""What laws excuse because a deposed leader with an old image answered, and what they do not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mockbroker.simulation import parse_plan, run
from mockbroker.simulation.history import Commit, FetchedOffset, GroupCall
from mockbroker.simulation.laws.base import FormerLeader, Span
from mockbroker.simulation.laws.of_history import HistoryLaws
from mockbroker.simulation.world import World
from tests.simulation.meddling import partition_of, refused_batch

SEQUENCES = "consecutive sequences are accepted"

# Broker 3 leads payments-1, is cut off and deposed, leads it again without hearing of it, and is
# asked for what broker 1 has taken meanwhile.
PLAN = {
    "format": 1,
    "seed": 4245,
    "settings": {
        "kafka_version": "4.2",
        "configs": {"min.insync.replicas": "2"},
        "topics": [
            {"name": "orders", "replication_factor": 3},
            {"name": "payments", "partitions": 2, "replication_factor": 3},
        ],
        "duration_ms": 5_000,
        "latency_ms": [0, 0],
    },
    "clients": [
        {
            "kind": "producer",
            "name": "producer-0",
            "topics": ["orders", "payments"],
            "operations": 7,
            "pause_ms": [0, 357],
        }
    ],
    "steps": [
        {"at_ms": 674, "do": "cut_network", "arguments": {"nodes": [3], "fence_after": 10_000}},
        {"at_ms": 964, "do": "heal_network"},
        {"at_ms": 1_060, "do": "cut_network", "arguments": {"nodes": [2]}},
        {"at_ms": 1_170, "do": "stop_broker", "arguments": {"node": 1}},
        {"at_ms": 1_180, "do": "start_broker", "arguments": {"node": 1}},
        {"at_ms": 1_484, "do": "heal_network"},
        {"at_ms": 1_508, "do": "cut_network", "arguments": {"nodes": [3]}},
        {"at_ms": 1_531, "do": "stop_broker", "arguments": {"node": 2, "fence_after": 3_000}},
    ],
}


def test_a_deposed_leader_calls_a_batch_out_of_order_that_its_successor_would_accept() -> None:
    outcome = run(parse_plan(PLAN))
    assert outcome.violations == []


def former(world: World, topic: str, node_id: int) -> None:
    """Broker `node_id` led partition 0 of a topic by an old image all the time."""
    key = (world.cluster.topics["orders"].topic_id, 0)
    assert world.laws.former_leaders is not None
    world.laws.former_leaders.append(FormerLeader(topic, key, node_id, Span(0, 1_000)))


def broken(world: World) -> set[str]:
    world.laws.conclude()
    return {violation.law for violation in world.laws.violations}


@pytest.mark.parametrize(("node_id", "holds"), [(3, True), (2, False)], ids=["former", "present"])
def test_the_present_leader_calls_no_consecutive_batch_out_of_order(
    world: World, node_id: int, holds: bool
) -> None:
    former(world, "orders", 3)
    refused_batch(world.history, partition_of(world), node_id=node_id)
    assert (SEQUENCES not in broken(world)) is holds


@pytest.mark.parametrize(("node_id", "holds"), [(2, True), (1, False)], ids=["another", "the-same"])
def test_a_broker_has_what_it_has_acknowledged_where_leaders_cannot_be_observed(
    world: World, node_id: int, holds: bool
) -> None:
    refused_batch(world.history, partition_of(world), node_id=node_id)
    laws = HistoryLaws(world.history)
    laws.conclude([], [])
    assert (SEQUENCES not in {violation.law for violation in laws.violations}) is holds


def test_deposed_leaders_are_noted_until_they_hear_of_it(world: World) -> None:
    leader_id = partition_of(world).leader_id
    key = partition_of(world).key
    cut = {"at_ms": 0, "do": "cut_network", "arguments": {"nodes": [leader_id]}}
    plan = parse_plan({**PLAN, "steps": [cut, {"at_ms": 0, "do": "heal_network"}]})
    before = world.history.turn()
    world.perform(0, plan.steps[0])
    between = world.history.turn()
    world.clock.now_ms += 1
    world.perform(1, plan.steps[1])
    world.clock.now_ms += 1
    world.look()
    world.laws.conclude()
    found = [each for each in world.laws.former_leaders or () if each.key == key]
    assert [(each.topic, each.node_id) for each in found] == [("orders", leader_id)]
    assert before < found[0].span.begin < between < found[0].span.end


def old_offset(world: World) -> None:
    history = world.history
    for offset in (3, 5):
        commit = Commit("workers", "orders", 0, offset, history.turn())
        commit.acked = history.turn()
        history.commits.append(commit)
    found = FetchedOffset("workers", "orders", 0, 3, history.turn(), history.turn(), 0)
    history.found.append(found)


def replaced_member(world: World) -> None:
    def call(what: str, member: str) -> GroupCall:
        made = world.history.group_call(what, "classic", "workers", member, member, "one", 1)
        made.answered_member, made.answered_generation = member, 1
        world.history.group_answer(made, 0)
        return made

    for member in ("a", "b"):
        call("join", member)
        call("sync", member).assignments = {"a": b"", "b": b""}
    call("heartbeat", "a")


def member_that_is_gone(world: World) -> None:
    """It is told that it has its partition, and the partition is given to another."""

    def call(what: str, member: str) -> GroupCall:
        return world.history.group_call(what, "consumer", "workers", member, member, None, 1)

    partition = frozenset({partition_of(world).key})
    first = call("join", "a")
    first.assigned = partition
    world.history.group_answer(first, 0)
    other = call("join", "b")
    other.assigned = partition
    world.history.group_answer(other, 0)
    world.history.group_answer(call("heartbeat", "a"), 0)


@pytest.mark.parametrize("is_former", [False, True], ids=["present", "former"])
@pytest.mark.parametrize(
    ("law", "told"),
    [
        ("committed offsets are kept", old_offset),
        ("replaced static members are fenced", replaced_member),
        ("partitions are revoked before they are assigned", member_that_is_gone),
    ],
)
def test_a_deposed_coordinator_answers_from_its_memory(
    world: World, law: str, told: Callable[[World], None], *, is_former: bool
) -> None:
    if is_former:
        former(world, "__consumer_offsets", 1)
    told(world)
    assert (law not in broken(world)) is is_former
