"""The engine: order, names, counts, and explanations of rules that did not fire."""

from __future__ import annotations

import pytest

from mockbroker.core.faults import buckets
from mockbroker.core.faults.errors import NameTakenError, UnknownNameError
from mockbroker.core.faults.rules import parse_plan
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from mockbroker_protocol.messages.heartbeat import HeartbeatRequest
from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.asking import Asking
from tests.support.traced import traced

LOOK = {"observe": {}}


@pytest.fixture
def asking() -> Asking:
    return Asking()


def test_the_engine_is_attached_only_while_it_has_rules(asking: Asking) -> None:
    cluster = asking.cluster
    assert cluster.faults is None
    asking.add(name="a", do=LOOK)
    assert cluster.faults is asking.engine
    asking.engine.remove("a")
    assert cluster.faults is None
    asking.add(name="b", do=LOOK)
    asking.engine.clear()
    assert cluster.faults is None


def test_a_plan_is_added_as_a_whole_or_not_at_all(asking: Asking) -> None:
    asking.add(name="taken", do=LOOK)
    plan = parse_plan({"rules": [{"name": "new", "do": LOOK}, {"name": "taken", "do": LOOK}]}, "p")
    with pytest.raises(NameTakenError, match="there is a rule 'taken' already"):
        asking.engine.add(plan)
    assert set(asking.engine.rules) == {"taken"}
    with pytest.raises(NameTakenError, match="there is a plan 'taken' already"):
        asking.add(name="taken", do=LOOK)
    with pytest.raises(UnknownNameError, match="known are: taken"):
        asking.engine.remove("other")


def test_a_plan_ends_with_its_last_rule(asking: Asking) -> None:
    plan = parse_plan({"name": "p", "rules": [{"name": n, "do": LOOK} for n in "ab"]}, "f")
    asking.engine.add(plan)
    asking.engine.remove("a")
    assert set(asking.engine.plans) == {"p"}
    asking.engine.remove("b")
    assert asking.engine.plans == {}
    assert asking.cluster.faults is None


def test_everything_is_cleared_at_once(asking: Asking) -> None:
    """Whoever waits for a rule to go is told."""
    gone: list[str] = []
    for number in range(3):
        rule = asking.add(name=f"r{number}", do=LOOK)
        rule.when_removed(lambda name=rule.name: gone.append(name))
    asking.engine.clear()
    assert gone == ["r0", "r1", "r2"]
    assert asking.engine.rules == {}
    rule.when_removed(lambda: gone.append("at once"))
    assert gone[-1] == "at once"


def test_rules_are_evaluated_by_priority_and_a_final_one_is_the_last(asking: Asking) -> None:
    asking.add(name="third", do=LOOK)
    asking.add(name="second", do=LOOK, priority=1)
    asking.add(name="first", do={"delay": 1}, priority=2)
    assert asking.produce() == ["first", "second", "third"]
    asking.add(name="refusal", do={"error": 6}, priority=1)
    assert asking.produce() == ["first", "second", "refusal"]
    assert asking.engine.rule("third").hits == 1


def test_a_rule_counts_its_hits_and_has_the_last_one(asking: Asking) -> None:
    rule = asking.add(name="x", match={"api": "Produce"}, when={"times": 2}, do=LOOK)
    assert (rule.hits, rule.left, rule.last) == (0, 2, None)
    asking.produce()
    asking.now_ms += 5
    asking.produce(client_id="last")
    asking.produce()
    assert (rule.hits, rule.left) == (2, 0)
    assert rule.last is not None
    assert rule.last._asdict() == {
        "at_ms": 1_000_005,
        "connection": 1,
        "client_id": "last",
        "api": "Produce",
        "broker": 1,
    }


def test_waiters_for_hits_are_called_once(asking: Asking) -> None:
    rule = asking.add(name="x", do=LOOK)
    told: list[str] = []
    rule.when_hit(2, lambda: told.append("two"))
    asking.produce()
    assert told == []
    asking.produce()
    asking.produce()
    assert told == ["two"]
    rule.when_hit(1, lambda: told.append("at once"))
    assert told == ["two", "at once"]


def test_a_waiter_for_hits_can_be_withdrawn(asking: Asking) -> None:
    rule = asking.add(name="x", do=LOOK)
    told: list[str] = []
    withdraw = rule.when_hit(1, lambda: told.append("withdrawn"))
    rule.when_hit(1, lambda: told.append("kept"))
    withdraw()
    asking.produce()
    withdraw()
    assert told == ["kept"]


def test_explain_counts_the_first_failed_condition(asking: Asking) -> None:
    rule = asking.add(
        name="x",
        match={"api": "Produce", "client_id": "a*", "topic": "orders", "partition": 3},
        do=LOOK,
    )
    for client, topic in (("b", "orders"), ("b", "orders"), ("a1", "other"), ("a1", "orders")):
        asking.produce(0, topic=topic, client_id=client)
    asking.ask(ApiKey.HEARTBEAT, HeartbeatRequest("g"), version=4)
    found = asking.engine.explain("x")
    assert found.failed == {"client_id": 2, "topic": 1, "partition": 1, "api": 1}
    assert (found.evaluated, found.matched, found.hits) == (5, 0, 0)
    assert str(found) == (
        "x matched none of 5 requests: first to fail were client_id (2), topic (1), partition (1),"
        " api (1)"
    )
    asking.produce(3, client_id="a1")
    assert rule.hits == 1
    assert "fired 1 times" in str(asking.engine.explain("x"))


def test_explain_does_not_depend_on_other_rules(asking: Asking) -> None:
    asking.add(name="x", match={"api": "Produce", "client_id": "a"}, do=LOOK)
    asking.produce()
    asking.add(name="y", do=LOOK)
    asking.produce()
    asking.engine.remove("y")
    asking.produce()
    assert asking.engine.explain("x").failed == {"client_id": 3}


def test_explain_names_the_part_of_when_that_stopped_a_matching_rule(asking: Asking) -> None:
    asking.add(name="x", when={"skip": 5, "times": 1}, do=LOOK)
    for _ in range(3):
        asking.produce()
    found = asking.engine.explain("x")
    assert found.stopped == {"skip": 3}
    assert str(found) == "x matched 3 requests, but was held back by: skip (3)"


def test_each_rule_draws_from_a_stream_of_its_own(asking: Asking) -> None:
    """Neither other rules nor other requests change what a seed and a name give."""

    def hits(*others: str) -> list[bool]:
        asking.engine.clear()
        for other in others:
            asking.add(name=other, when={"probability": 0.5}, do=LOOK)
        asking.engine.add(
            parse_plan(
                {"seed": 4, "rules": [{"name": "x", "when": {"probability": 0.5}, "do": LOOK}]},
                "p",
            )
        )
        return ["x" in asking.produce() for _ in range(50)]

    alone = hits()
    assert hits("a", "b") == alone
    assert 10 < sum(alone) < 40


def test_similar_requests_have_results_of_their_own(asking: Asking) -> None:
    """What is kept of one request is not said of another topic, partition, client or version."""
    asking.add(name="p1", match={"api": "Produce", "topic": "orders", "partition": 1}, do=LOOK)
    asking.add(name="new", match={"api": "Produce", "topic": "later"}, do=LOOK)
    asking.add(name="v8", match={"api": "Produce", "api_version": 8}, do=LOOK)
    for _ in range(2):
        assert asking.produce(0) == []
        assert asking.produce(1) == ["p1"]
        assert asking.produce(0, 1) == ["p1"]
        assert asking.produce(0, version=8) == ["v8"]
        assert asking.produce(0, topic="later") == ["new"]
    asking.cluster.create_topic("later", 1, 1)
    assert asking.produce(0, topic="later") == ["new"]


def test_the_cache_of_requests_is_bounded(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "CACHE_BYTES_MAX", 100_000)
    asking.add(name="x", match={"api": "Produce", "topic": "never"}, do=LOOK)
    for number in range(2_000):
        asking.produce(0, topic=f"t{number}")
    assert asking.engine.explain("x").failed == {"topic": 2_000}


@pytest.mark.parametrize(("rules", "requests", "names"), [(1, 30, 2_000), (400, 200, 1)])
def test_the_bytes_of_the_cache_are_bounded(
    asking: Asking, monkeypatch: pytest.MonkeyPatch, rules: int, requests: int, names: int
) -> None:
    """Few requests may name many topics, and each request has a result for each rule."""
    monkeypatch.setattr(buckets, "CACHE_BYTES_MAX", 1 << 20)
    for number in range(rules):
        asking.add(name=f"x{number}", match={"topic": "never"}, do=LOOK)
    with traced() as memory:
        for number in range(requests):
            topics = [MetadataRequestTopic(name=f"t{number}-{each}") for each in range(names)]
            asking.ask(ApiKey.METADATA, MetadataRequest(topics=topics), client_id=f"c{number}")
    assert memory.kept < 5 << 19


def test_a_metadata_request_for_all_topics_selects_each_topic(asking: Asking) -> None:
    asking.add(name="x", match={"api": "Metadata", "topic": "orders"}, do=LOOK)
    asking.add(name="y", match={"api": "Metadata", "topic": "later"}, do=LOOK)
    everything = MetadataRequest(topics=None)
    assert asking.ask(ApiKey.METADATA, everything) == ["x"]
    asking.cluster.create_topic("later", 1, 1)
    assert asking.ask(ApiKey.METADATA, everything) == ["x", "y"]


def test_an_incremental_fetch_selects_the_partitions_of_its_session(asking: Asking) -> None:
    sessions = asking.cluster.brokers[1].fetch_sessions
    first = FetchRequest(
        topics=[FetchTopic(topic="orders", partitions=[FetchPartition(partition=2)])]
    )
    context = sessions.open_context(first, by_id=False, now_ms=0)
    session_id = sessions.create(context.targets, by_id=False, privileged=False, now_ms=0)
    asking.add(name="x", match={"api": "Fetch", "topic": "orders", "partition": 2}, do=LOOK)
    more = FetchRequest(session_id=session_id, session_epoch=1)
    assert asking.ask(ApiKey.FETCH, more, version=12) == ["x"]
    assert asking.ask(ApiKey.FETCH, FetchRequest(session_id=9, session_epoch=1), version=12) == []


def test_a_timeline_runs_on_the_cluster_s_timers_and_ends_with_its_plan(asking: Asking) -> None:
    told: list[object] = []
    asking.engine.on_fault.append(lambda what, _cause, details: told.append((what, details)))
    plan = {
        "name": "story",
        "timeline": [
            {"at": "5s", "do": {"stop_broker": 3}},
            {"at": "6s", "do": {"stop_broker": 3}},
            {"at": "9s", "do": {"start_broker": 3}},
        ],
    }
    asking.engine.add(parse_plan(plan, "p"))
    asking.now_ms += 6_000
    asking.cluster.runtime.timers.run_due(asking.now_ms)
    assert asking.cluster.brokers[3].state == "stopped"
    assert [what for what, _ in told] == ["action", "failed action"]  # type: ignore[misc]
    asking.engine.remove("story")
    asking.now_ms += 6_000
    asking.cluster.runtime.timers.run_due(asking.now_ms)
    assert asking.cluster.brokers[3].state == "stopped"
