"""Rules for hops: the hops that exist, and the effects on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from mockbroker.core.faults.engine import engine_of
from mockbroker.core.faults.holds import Held
from mockbroker.core.faults.rules import api_key, parse_plan, parse_rule
from mockbroker.core.journal.entries import HopEntry
from mockbroker.core.journal.journal import Journal
from mockbroker.core.journal.reader import JournalReader
from mockbroker.core.validation import ValidationError
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.codec import request_codec, response_codec
from mockbroker_protocol.messages.fetch import FetchRequest
from tests.support.asking import Asking
from tests.support.hops import add_hop_rule, remove_rule
from tests.support.replicas import Replicas
from tests.support.requests import only
from tests.support.txn_node import TV2, TxnNode

E = ErrorCode
LAG_MS = 30_000  # replica.lag.time.max.ms
THREE = (None, None, None)


def journal_of(node: Replicas | TxnNode, *, hops: bool = False) -> JournalReader:
    """What happens to the cluster from now on."""
    journal = Journal(lambda: 0, hops=hops)
    node.cluster.keep_journal(journal)
    return JournalReader(journal, node.cluster.topic_name)


def hops(reader: JournalReader, api: str) -> list[tuple[Any, ...]]:
    """(kind, sender, receiver, errors or outcome) of each hop of an API."""
    return [
        (e.kind, e.from_broker, e.to_broker, e.outcome or " ".join(e.errors))
        for e in reader.events()
        if e.api == api and e.kind in ("hop", "hop_answer")
    ]


def held_one(node: Replicas | TxnNode) -> Held:
    (held,) = engine_of(node.cluster).held.values()
    return held


# -- which hops there are --------------------------------------------------------------------------


def test_without_a_rule_for_hops_there_is_no_interceptor() -> None:
    """A rule for clients' requests does not change how brokers reach each other."""
    node = Replicas()
    engine_of(node.cluster).add(parse_plan({"match": {"api": "Fetch"}, "do": {"observe": {}}}, "c"))
    assert node.cluster.replication.network.interceptor is None
    assert node.sent("a").error_code == E.NONE
    assert node.with_own_replica() == []


def test_a_rule_for_a_follower_gives_it_a_log_of_its_own_while_it_is_in_force() -> None:
    node = Replicas()
    rule = add_hop_rule(node.cluster, {"observe": {}}, api="Fetch", from_broker=2)
    assert node.with_own_replica() == [2]
    assert only(node.send("a", acks=1)).error_code == 0
    node.settle()
    assert rule.hits == 2  # the one that waits for the record, and the next
    remove_rule(node.cluster, rule)
    assert node.cluster.replication.network.interceptor is None
    assert node.sent("b").error_code == 0
    assert node.with_own_replica() == []
    assert node.ends() == {1: 2, 2: 2, 3: 2}


@pytest.mark.parametrize(
    ("match", "apart"),
    [
        ({"from_broker": [2, 3]}, [2, 3]),
        ({"to_broker": 1}, [2, 3]),
        ({"to_broker": 2}, []),
        ({"api": "Fetch", "topic": "t"}, [2, 3]),
        ({"api": "Fetch", "topic": "other"}, []),
        ({"api": "Fetch", "topic": "t", "partition": 1}, []),
        ({"api": "AlterPartition"}, []),
    ],
)
def test_only_hops_that_the_rule_may_match_are_sent(
    match: Mapping[str, object], apart: list[int]
) -> None:
    node = Replicas()
    add_hop_rule(node.cluster, {"observe": {}}, **match)
    assert node.with_own_replica() == apart


def test_rules_for_clients_and_rules_for_hops_do_not_mix() -> None:
    """A follower's Fetch fires no rule of clients, and a client's none of brokers."""
    asking = Asking()
    clients = asking.add(match={"api": "Fetch"}, do={"observe": {}})
    between = asking.add(match={"api": "Fetch", "between_brokers": True}, do={"observe": {}})
    assert asking.ask(ApiKey.FETCH, FetchRequest()) == [clients.name]
    asking.cluster.create_topic("replicated", 1, 3)
    partition = asking.cluster.partition("replicated", 0)
    assert partition is not None
    asking.cluster.runtime.timers.run_due(asking.now_ms)
    assert (clients.hits, between.hits) == (1, 2)


def test_rules_for_hops_are_not_evaluated_for_clients_requests() -> None:
    node = Replicas()
    add_hop_rule(node.cluster, {"observe": {}})
    assert node.cluster.faults is None


# -- what is made of them --------------------------------------------------------------------------


def test_a_follower_whose_fetches_are_dropped_leaves_the_isr_on_the_clock() -> None:
    node = Replicas()
    rule = add_hop_rule(node.cluster, {"drop_request": {}}, api="Fetch", from_broker=2)
    pending = node.send("a", timeout_ms=60_000)
    node.advance(LAG_MS - 1)
    assert (pending.done, node.partition.isr) == (False, [1, 2, 3])
    node.advance(1)
    assert only(pending).error_code == E.NONE
    assert node.partition.isr == [1, 3]
    remove_rule(node.cluster, rule)
    node.advance(LAG_MS)  # replica.socket.timeout.ms after the last one that was dropped
    assert (node.partition.isr, node.with_own_replica()) == ([1, 2, 3], [])


def test_an_isr_does_not_grow_while_alter_partition_is_dropped() -> None:
    node = Replicas()
    leader = node.partition.leader_id
    rule = add_hop_rule(node.cluster, {"drop_request": {}}, api="AlterPartition")
    node.cluster.stop_broker(2, "unclean")
    node.cluster.start_broker(2)
    node.advance(120_000)
    assert 2 not in node.partition.isr
    assert rule.hits >= 3  # again after each controller.socket.timeout.ms
    assert rule.last is not None
    assert rule.last.client_id == f"broker-{leader}"
    remove_rule(node.cluster, rule)
    node.advance(30_000)  # controller.socket.timeout.ms after the last one that was dropped
    assert (node.partition.isr, node.with_own_replica()) == ([1, 2, 3], [])


def test_a_follower_shares_the_log_once_a_late_alter_partition_lets_it_in() -> None:
    """Its fetch waits at the log's end meanwhile, and nothing is written."""
    node = Replicas()
    rule = add_hop_rule(node.cluster, {"drop_request": {}}, {"times": 1}, api="AlterPartition")
    node.cluster.stop_broker(2, "unclean")
    node.cluster.start_broker(2)
    node.advance(1_000)
    remove_rule(node.cluster, rule)
    assert (node.partition.isr, node.with_own_replica()) == ([1, 3], [2])
    node.advance(30_000)
    assert (node.partition.isr, node.with_own_replica()) == ([1, 2, 3], [])


@pytest.mark.parametrize("do", ["error", "error_after"])
def test_a_leader_repeats_a_refused_alter_partition(do: str) -> None:
    """With its follower's next fetch. `error_after` refuses what is done already."""
    node = Replicas()
    rule = add_hop_rule(
        node.cluster, {do: "INELIGIBLE_REPLICA"}, {"times": 1}, api="AlterPartition"
    )
    node.cluster.stop_broker(2, "unclean")
    node.cluster.start_broker(2)
    node.settle()
    assert (2 in node.partition.isr) is (do == "error_after")
    node.advance(500)
    assert (node.partition.isr, rule.hits) == ([1, 2, 3], 1)


def test_a_refused_follower_repeats_its_fetch_after_a_pause() -> None:
    node = Replicas()
    rule = add_hop_rule(
        node.cluster, {"error": "NOT_LEADER_OR_FOLLOWER"}, {"times": 1}, from_broker=2, api="Fetch"
    )
    node.settle()
    node.send("a", acks=1)
    node.settle()
    assert (rule.hits, node.ends()[2]) == (1, 0)
    node.advance(1000)  # replica.fetch.backoff.ms
    assert node.ends()[2] == 1


def test_a_delay_of_requests_and_of_answers() -> None:
    for phase in ("before", "after"):
        node = Replicas()
        delay = {"delay": {"by": 70, "phase": phase}}
        add_hop_rule(node.cluster, delay, api="Fetch", from_broker=3)
        node.advance(70)
        node.send("a", acks=1)
        node.advance(69)
        assert node.ends() == {1: 1, 2: 1, 3: 0 if phase == "after" else 1}
        node.advance(1)
        assert node.ends()[3] == 1


def test_a_held_fetch_continues_when_it_is_released_or_its_rule_is_removed() -> None:
    node = Replicas()
    rule = add_hop_rule(node.cluster, {"hold": {}}, api="Fetch", from_broker=2)
    node.send("a", acks=1)
    node.settle()
    assert node.ends()[2] == 0
    held = held_one(node)
    assert (held.facts.from_broker, held.facts.to_broker) == (2, 1)
    with pytest.raises(ValidationError, match="can be refused, not edited"):
        held.edit({"max_wait_ms": 1})
    held.release()
    node.settle()
    assert node.ends()[2] == 1
    node.send("b", acks=1)
    node.settle()
    remove_rule(node.cluster, rule)
    node.settle()
    assert node.ends()[2] == 2


def test_a_held_hop_can_be_refused_or_dropped() -> None:
    node = Replicas()
    add_hop_rule(node.cluster, {"hold": {"phase": "after"}}, api="AlterPartition")
    reader = journal_of(node)
    node.cluster.stop_broker(2, "unclean")
    node.cluster.start_broker(2)
    node.settle()
    held_one(node).answer("INVALID_UPDATE_VERSION")
    node.settle()
    assert hops(reader, "AlterPartition")[1] == ("hop_answer", 1, 1, "INVALID_UPDATE_VERSION")
    node.cluster.stop_broker(3, "unclean")
    node.cluster.start_broker(3)
    node.settle()
    held_one(node).drop()
    assert hops(reader, "AlterPartition")[-1] == ("hop_answer", 1, 1, "answer dropped")


def test_a_hold_ends_by_itself() -> None:
    node = Replicas()
    add_hop_rule(node.cluster, {"hold": {"at_most": 200}}, {"times": 1}, from_broker=2)
    node.send("a", acks=1)
    node.advance(199)
    assert node.ends()[2] == 0
    node.advance(1)
    assert node.ends()[2] == 1


def test_markers_of_one_transactional_id_are_late_and_its_next_transaction_waits() -> None:
    """WriteTxnMarkers names no id, but whoever sends it knows."""
    node = TxnNode(racks=THREE)
    slow, other = node.txn("slow"), node.txn("other")
    rule = add_hop_rule(
        node.cluster, {"delay": 1000}, api="WriteTxnMarkers", transactional_id="slow"
    )
    slow.add(0)
    slow.produce(version=11)
    other.add(1)
    other.produce(partition=1, version=11)
    assert slow.end().error_code == other.end().error_code == E.NONE
    node.settle()
    partition = node.cluster.partition("t", 0)
    assert partition is not None
    assert (slow.state, other.state) == ("PrepareCommit", "CompleteCommit")
    assert (partition.last_stable_offset, partition.high_watermark) == (0, 1)
    assert slow.add(0) == E.CONCURRENT_TRANSACTIONS
    node.advance(1000)
    assert (slow.state, partition.last_stable_offset, rule.hits) == ("CompleteCommit", 2, 1)
    assert slow.add(0) == E.NONE


def test_a_verification_that_is_refused_refuses_the_batch() -> None:
    """Even where the leader coordinates the id itself."""
    node = TxnNode()
    p = node.txn()
    p.add(0)
    rule = add_hop_rule(
        node.cluster,
        {"error": "COORDINATOR_NOT_AVAILABLE"},
        {"times": 1},
        api="AddPartitionsToTxn",
        transactional_id="x",
        where={"transactions[].verify_only": True},
    )
    pending = p.send(version=11)
    node.settle()
    assert pending.response.responses[0].partition_responses[0].error_code != E.NONE
    assert rule.hits == 1
    pending = p.send(version=11)
    node.settle()
    assert pending.response.responses[0].partition_responses[0].error_code == E.NONE


def test_actions_are_carried_out_once_the_request_is_applied() -> None:
    """A broker dies with the first marker that it gets."""
    node = Replicas()
    add_hop_rule(
        node.cluster,
        {"observe": {}, "pause_broker": {"node": 3}},
        {"times": 1},
        api="Fetch",
        from_broker=2,
    )
    node.settle()
    assert node.cluster.processes[3].state == "paused"


# -- heartbeats ------------------------------------------------------------------------------------


def fenced(node: Replicas) -> list[int]:
    return [broker.node_id for broker in node.cluster.brokers.values() if broker.fenced]


def test_a_broker_whose_heartbeats_are_dropped_is_fenced_until_one_arrives() -> None:
    """After broker.session.timeout.ms; a heartbeat without an answer is sent again before."""
    node = Replicas()
    rule = add_hop_rule(
        node.cluster, {"drop_request": {}}, {"times": 4}, api="BrokerHeartbeat", from_broker=1
    )
    node.advance(8_999)
    assert (fenced(node), node.cluster.controller_id, node.partition.leader_id) == ([], 1, 1)
    node.advance(1)
    assert (fenced(node), node.cluster.controller_id, node.partition.leader_id) == ([1], 2, 2)
    assert rule.hits == 3
    node.advance(9_000)
    assert (fenced(node), rule.hits) == ([], 4)
    assert node.partition.isr == [1, 2, 3]


def test_a_broker_whose_heartbeats_are_only_slow_stays_alive() -> None:
    node = Replicas()
    reader = journal_of(node)
    add_hop_rule(node.cluster, {"delay": 3_000}, api="BrokerHeartbeat", from_broker=2)
    node.advance(60_000)
    assert fenced(node) == []
    beats = [e for e in reader.events() if (e.kind, e.api) == ("hop", "BrokerHeartbeat")]
    assert [e.virtual_ms - beats[0].virtual_ms for e in beats[:3]] == [0, 5_000, 10_000]
    assert {e.from_broker for e in beats} == {2}


@pytest.mark.parametrize("how", ["too slow", "refused"])
def test_a_broker_without_a_heartbeat_in_time_is_fenced(how: str) -> None:
    node = Replicas()
    effects: dict[str, dict[str, object]] = {
        "too slow": {"delay": 10_000},
        "refused": {"error": "STALE_BROKER_EPOCH"},
    }
    rule = add_hop_rule(node.cluster, effects[how], api="BrokerHeartbeat", from_broker=2)
    node.advance(9_000)
    assert fenced(node) == [2]
    remove_rule(node.cluster, rule)
    assert fenced(node) == []
    hits = rule.hits
    node.advance(60_000)
    assert (fenced(node), rule.hits) == ([], hits)


def test_a_paused_broker_sends_no_heartbeats_until_it_is_resumed() -> None:
    node = Replicas()
    add_hop_rule(node.cluster, {"observe": {}}, api="BrokerHeartbeat", from_broker=3)
    reader = journal_of(node)
    node.advance(1_000)
    node.cluster.pause_broker(3)
    node.advance(20_000)
    assert fenced(node) == [3]
    count = len(hops(reader, "BrokerHeartbeat"))
    node.cluster.resume_broker(3)
    node.advance(20_000)
    assert fenced(node) == []
    assert len(hops(reader, "BrokerHeartbeat")) > count + 10


# -- what is written down --------------------------------------------------------------------------


def test_the_journal_has_hops_while_there_is_a_rule_for_any() -> None:
    node = Replicas()
    reader = journal_of(node)
    rule = add_hop_rule(node.cluster, {"drop_reply": {}}, {"times": 1}, api="Fetch", from_broker=2)
    node.send("a", acks=1)
    node.advance(LAG_MS)
    first, dropped, second, answer, *_ = [e for e in reader.events() if e.kind.startswith("hop")]
    assert (first.kind, first.api, first.targets) == ("hop", "Fetch", (("t", 0),))
    assert (first.from_broker, first.to_broker, first.broker) == (2, 1, 1)
    assert first.message["replica_state"]["replica_id"] == 2  # type: ignore[index]
    assert (dropped.kind, dropped.outcome) == ("hop_answer", "answer dropped")
    assert (dropped.request_seq, dropped.rules) == (first.seq, (rule.name,))
    assert (second.virtual_ms - first.virtual_ms, second.rules) == (LAG_MS, ())
    assert (answer.request_seq, answer.outcome, answer.errors) == (second.seq, None, ())
    (batch,) = answer.message["responses"][0]["partitions"][0]["records"]  # type: ignore[index]
    assert (batch["base_offset"], batch["count"]) == (0, 1)
    (hit,) = [e for e in reader.events() if e.kind == "fault"]
    assert (hit.change, hit.from_broker, hit.request_seq) == ("hit", 2, first.seq)
    remove_rule(node.cluster, rule)
    before = len(hops(reader, "Fetch"))
    node.sent("b")
    node.sent("c")
    assert len(hops(reader, "Fetch")) <= before + 1  # the answer to the one that was under way


def test_a_journal_of_hops_has_each_of_them_and_every_one_can_be_encoded() -> None:
    configs = {"mockbroker.replication.truncation": "epoch"}
    node = TxnNode(racks=THREE, configs=configs)
    p = node.txn()
    reader = journal_of(node, hops=True)
    p.send(version=12)
    node.settle()
    p.send_end(version=TV2)
    node.settle()
    node.cluster.stop_broker(2, "unclean")
    node.cluster.start_broker(2)
    node.advance(5000)
    journal = node.cluster.runtime.journal
    assert journal is not None
    _, entries = journal.since(0)
    seen = set()
    for entry in entries:
        if isinstance(entry, HopEntry) and entry.message is not None:
            key = ApiKey(entry.api_key)
            codec = response_codec if entry.request_seq else request_codec
            data = b"".join(codec(key, entry.api_version).encode(entry.message))
            decoded, _ = codec(key, entry.api_version).decode(memoryview(data), 0)
            assert type(decoded) is type(entry.message)
            seen.add((key, bool(entry.request_seq)))
    apis = ("Fetch", "OffsetForLeaderEpoch", "AlterPartition", "WriteTxnMarkers", "BrokerHeartbeat")
    wanted = {api_key(name, "") for name in (*apis, "AddPartitionsToTxn")}
    assert seen == {(key, answer) for key in wanted for answer in (False, True)}
    asked = {e.seq: e.api for e in reader.events() if e.kind == "hop"}
    answers = [e for e in reader.events() if e.kind == "hop_answer"]
    assert all(asked[e.request_seq] == e.api for e in answers if e.request_seq is not None)


def test_a_cut_link_ends_a_hop() -> None:
    node = TxnNode(racks=THREE)
    p = node.txn()
    reader = journal_of(node)
    add_hop_rule(node.cluster, {"observe": {}}, api="WriteTxnMarkers")
    partition = node.cluster.partition("t", 0)
    assert partition is not None
    leader = next(n for n in (1, 2, 3) if n != p.broker)
    partition.become_leader(leader, partition.leader_epoch + 1, partition.isr)
    p.send(version=12)
    node.settle()
    node.cluster.replication.network.cut([(p.broker, leader)])
    p.send_end(version=TV2)
    node.settle()
    assert hops(reader, "WriteTxnMarkers") == [
        ("hop", p.broker, leader, ""),
        ("hop_answer", p.broker, leader, "request lost"),
    ]


# -- what rules may say ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "field", "reason"),
    [
        ({"match": {"client_id": "c"}}, "match.client_id", "have no such field"),
        ({"match": {"broker": 2}}, "match.broker", "say to_broker"),
        ({"match": {"between_brokers": False}}, "match.between_brokers", "true or left out"),
        ({"match": {"api": "Produce"}}, "match.api", "brokers do not send each other Produce"),
        ({"do": {"slow": 10}}, "do.slow", "this is for clients' requests"),
        ({"do": {"rewrite": {"answer": {}, "request": {"x": 1}}}}, "do.rewrite", "for clients'"),
        ({"do": {"drop_reply": "close"}}, "do.drop_reply.then", "use keep"),
        ({"do": {"refuse_connection": {}}}, "do.refuse_connection", "for clients'"),
    ],
)
def test_fields_without_a_meaning_between_brokers_are_refused_by_name(
    rule: dict[str, Any], field: str, reason: str
) -> None:
    match = {"from_broker": 2, **rule.get("match", {})}
    with pytest.raises(ValidationError, match=reason) as refused:
        parse_rule({"match": match, "do": rule.get("do", {"observe": {}})}, "", "r")
    assert refused.value.path == field


def test_a_rule_for_hops_explains_why_it_did_not_fire() -> None:
    node = Replicas()
    rule = add_hop_rule(node.cluster, {"observe": {}}, from_broker=[2, 3], topic="other")
    assert "has not been evaluated" in str(engine_of(node.cluster).explain(rule.name))
    add_hop_rule(node.cluster, {"observe": {}}, from_broker=2)
    node.send("a", acks=1)
    node.settle()
    told = engine_of(node.cluster).explain(rule.name)
    assert (told.matched, told.hits) == (0, 0)
    assert told.failed["topic"] == told.evaluated > 0
