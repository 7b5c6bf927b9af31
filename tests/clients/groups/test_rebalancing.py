"""What starts a rebalance, how a client goes through it, and what it does when it is thrown out."""

from __future__ import annotations

from itertools import pairwise

import pytest
from confluent_kafka import TopicPartition
from kafka import KafkaConsumer

from mockbroker import Cluster
from mockbroker.client import Client
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.consumer_protocol import decode_subscription
from mockbroker_protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tests.support.kafka_python import POLL_MS, TIMEOUT_S, subscribe
from tests.support.member_process import MemberProcess
from tests.support.members import Member, Members, look
from tests.support.request_log import Exchange, RequestLog
from tests.support.waiting import wait_until
from tests.support.watched import fill

LONG = {"session_timeout_ms": 60_000}


def throw_out(kafka: Cluster, group: str, name: str) -> None:
    """Remove a member as an administrator would: it is told by the answer to its next heartbeat."""
    with Client(kafka.bootstrap_servers) as client:
        members = client.groups.describe(group).members
        (member_id,) = (each.member_id for each in members if each.client_id == name)
        leavers = [MemberIdentity(member_id, reason="thrown out")]
        request = LeaveGroupRequest(group_id=group, members=leavers)
        response = client.coordinator(group).send(request)
    assert [each.error_code for each in response.members] == [ErrorCode.NONE]


def wanted_topics(join: Exchange) -> list[list[str]]:
    return [sorted(decode_subscription(p.metadata).topics) for p in join.request.protocols]


@pytest.mark.covers("S218", "S223")
@pytest.mark.mock_kafka(topics={"t": 4, "u": 2})
def test_each_cause_of_a_rebalance_is_one_generation(kafka: Cluster, members: Members) -> None:
    """A member comes, wants more, goes, falls silent; a subscribed topic grows."""
    quick = {"metadata_max_age_ms": 200, "topic_metadata_refresh_interval_ms": 100}
    one = members("g", "t", **LONG, **quick)
    members.settle(one, partitions=4)
    assert look(kafka, "g").generation == 1
    two = members("g", "t", **LONG, **quick)
    members.settle(one, two, partitions=4)
    assert look(kafka, "g").generation == 2
    two.subscribe("t", "u")
    members.settle(one, two, partitions=6)
    assert look(kafka, "g").generation == 3
    two.close()
    members.settle(one, partitions=4)
    assert look(kafka, "g").generation == 4
    with MemberProcess(kafka, "g", "t", session_timeout_ms=9_000) as silent:
        members.until(lambda: len(silent.owned) == len(one.owned) == 2)
        assert look(kafka, "g").generation == 5
        silent.kill()
    kafka.clock.advance("9s", only="group:g", extend_sessions=False)
    members.settle(one, partitions=4)
    assert look(kafka, "g").generation == 6
    with Client(kafka.bootstrap_servers) as client:
        client.topics.add_partitions("t", 5)
    members.settle(one, partitions=5)
    assert look(kafka, "g").generation == 7


@pytest.mark.covers("S223")
def test_generations_only_grow_and_survive_an_empty_group(kafka: Cluster, members: Members) -> None:
    """Joins and leaves count alike; a group that was empty goes on counting."""
    generations = []
    for _ in range(3):
        member = members("g", "t")
        members.settle(member, partitions=4)
        generations.append(look(kafka, "g").generation)
        member.close()
        assert look(kafka, "g").state == "Empty"
        generations.append(look(kafka, "g").generation)
    assert generations == [1, 2, 3, 4, 5, 6]


@pytest.mark.covers("S226")
@pytest.mark.mock_kafka(topics={"t": 2, "u": 2})
def test_a_new_subscription_is_a_new_join(
    kafka: Cluster, members: Members, log: RequestLog
) -> None:
    """The member that changed its mind says so; the leader learns it from the list of members."""
    leader, other = members("g", "t"), members("g", "t")
    members.settle(leader, other, partitions=2)
    log.clear()
    other.subscribe("u")
    owned = members.settle(leader, other, partitions=4)
    assert owned == {leader.name: [("t", 0), ("t", 1)], other.name: [("u", 0), ("u", 1)]}
    joined = log.of(ApiKey.JOIN_GROUP, client_id=other.name)[-1]
    assert wanted_topics(joined)[0] == ["u"]
    led = [each.response.members for each in log.of(ApiKey.JOIN_GROUP) if each.response.members]
    assert sorted(decode_subscription(m.metadata).topics for m in led[-1]) == [["t"], ["u"]]


@pytest.mark.covers("S227")
def test_a_member_that_was_thrown_out_joins_again(
    kafka: Cluster, members: Members, log: RequestLog
) -> None:
    """Told UNKNOWN_MEMBER_ID it gives up what it lost, asks for a new id and ends up Stable."""
    one, two = members("g", "t", **LONG), members("g", "t", **LONG)
    before = members.settle(one, two, partitions=4)
    one.told()
    log.clear()
    throw_out(kafka, "g", one.name)
    members.until(lambda: bool(one.events))
    members.settle(one, two, partitions=4)
    told = one.told()
    assert told[0] == ("lost", before[one.name])
    assert told[1][0] == "assigned"
    errors = {
        (each.api, int(each.response.error_code))
        for each in log.of(ApiKey.HEARTBEAT, ApiKey.JOIN_GROUP)
    }
    assert errors >= {
        (ApiKey.HEARTBEAT, int(ErrorCode.UNKNOWN_MEMBER_ID)),
        (ApiKey.HEARTBEAT, int(ErrorCode.REBALANCE_IN_PROGRESS)),
        (ApiKey.JOIN_GROUP, int(ErrorCode.MEMBER_ID_REQUIRED)),
        (ApiKey.JOIN_GROUP, int(ErrorCode.NONE)),
    }


@pytest.mark.covers("S228")
def test_a_member_thrown_out_before_it_knows_what_it_got(
    kafka: Cluster, members: Members, log: RequestLog
) -> None:
    """Between its SyncGroup and the callback its membership ends: it loses what it was about to
    get, joins once more and has it.
    """
    member = members("g", "t", **LONG)
    log.wait_for(ApiKey.SYNC_GROUP)  # librdkafka joins in the background; nobody has polled yet
    assert member.events == []
    throw_out(kafka, "g", member.name)
    members.until(lambda: len(log.of(ApiKey.SYNC_GROUP)) == 2)
    members.settle(member, partitions=4)
    assert [kind for kind, _ in member.told()] == ["assigned", "lost", "assigned"]
    beats = [each.response.error_code for each in log.of(ApiKey.HEARTBEAT)]
    assert ErrorCode.UNKNOWN_MEMBER_ID in beats  # again and again until it polls


@pytest.mark.covers("S229", "S166")
def test_automatic_commits_come_before_the_next_join(
    kafka: Cluster, members: Members, log: RequestLog
) -> None:
    """A rebalance: what was read is committed, and only then does the member join again."""
    auto = {"enable_auto_commit": True, "auto_commit_interval_ms": 3_600_000}
    one = members("g", "t", **auto)
    members.settle(one, partitions=4)
    fill(kafka, "t", 8)
    members.collect(8)
    assert log.of(ApiKey.OFFSET_COMMIT) == []
    log.clear()
    two = members("g", "t", **auto)
    members.settle(one, two, partitions=4)
    did = [
        each.api.name
        for each in log.of(ApiKey.OFFSET_COMMIT, ApiKey.JOIN_GROUP, client_id=one.name)
    ]
    assert did == ["OFFSET_COMMIT", "JOIN_GROUP"]
    (commit,) = log.of(ApiKey.OFFSET_COMMIT)
    offsets = {
        p.partition_index: p.committed_offset for t in commit.request.topics for p in t.partitions
    }
    assert offsets == {0: 2, 1: 2, 2: 2, 3: 2}
    members.until(lambda: len(two.owned) == 2)
    assert two.records == []


@pytest.mark.covers("S199", "S200", "S202")
def test_what_a_client_says_and_is_told_when_it_joins(
    kafka: Cluster, members: Members, log: RequestLog
) -> None:
    """Its timeouts, an empty id, MEMBER_ID_REQUIRED with clientId-uuid, then the same with the id;
    the leader alone sees the others and sends the assignment.
    """
    config = {"session_timeout_ms": 10_000, "max_poll_interval_ms": 300_000}
    leader = members("g", "t", client_id="consumer-1", **config)
    members.settle(leader, partitions=4)
    follower = members("g", "t", client_id="consumer-2", **config)
    members.settle(leader, follower, partitions=4)
    first, second = log.of(ApiKey.JOIN_GROUP, client_id="consumer-2")[:2]
    assert (first.request.member_id, first.response.error_code) == (
        "",
        ErrorCode.MEMBER_ID_REQUIRED,
    )
    member_id = first.response.member_id
    assert member_id[:11] == "consumer-2-"
    assert [len(part) for part in member_id[11:].split("-")] == [8, 4, 4, 4, 12]
    request = second.request
    assert (request.member_id, request.protocol_type) == (member_id, "consumer")
    assert (request.session_timeout_ms, request.rebalance_timeout_ms) == (10_000, 300_000)
    assert (second.response.generation_id, second.response.members) == (2, [])
    led = log.of(ApiKey.JOIN_GROUP, client_id="consumer-1")[-1].response
    assert led.leader == led.member_id == second.response.leader
    assert len(led.members) == 2
    synced = {each.client_id: each for each in log.of(ApiKey.SYNC_GROUP)[-2:]}
    assert len(synced["consumer-1"].request.assignments) == 2
    assert synced["consumer-2"].request.assignments == []


@pytest.mark.covers("S235")
def test_no_heartbeat_while_joining_and_one_soon_after(
    kafka: Cluster, members: Members, log: RequestLog
) -> None:
    """Between JoinGroup and the answer to SyncGroup a member is silent."""
    one, two = members("g", "t"), members("g", "t")
    members.settle(one, two, partitions=4)
    three = members("g", "t")
    members.settle(one, two, three, partitions=4)
    for member in (one, two, three):
        beats = len(log.of(ApiKey.HEARTBEAT, client_id=member.name))
        members.until(lambda m=member, n=beats: len(log.of(ApiKey.HEARTBEAT, client_id=m.name)) > n)
        mine = log.of(ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, client_id=member.name)
        order = [each.api for each in sorted(mine, key=lambda each: each.arrived_ns)]
        for before, after in pairwise(order):
            if before is ApiKey.JOIN_GROUP:
                assert after in (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP)
        assert order[-1] is ApiKey.HEARTBEAT
        assert ApiKey.SYNC_GROUP in order


def beating(kafka: Cluster, log: RequestLog) -> KafkaConsumer:
    """A member that has its partitions and sends heartbeats."""
    consumer = KafkaConsumer(
        bootstrap_servers=kafka.bootstrap_servers,
        group_id="g",
        heartbeat_interval_ms=300,
        session_timeout_ms=6_000,  # a client that gets no CPU for so long leaves
        enable_auto_commit=False,
    )
    subscribe(consumer, "t")

    def beats() -> bool:
        consumer.poll(timeout_ms=POLL_MS)
        return len(consumer.assignment()) == 4 and bool(log.of(ApiKey.HEARTBEAT))

    wait_until(beats, TIMEOUT_S, "a heartbeat")
    return consumer


@pytest.mark.covers("S207", "S209")
def test_heartbeats_come_at_their_interval_while_nobody_polls(
    kafka: Cluster, log: RequestLog
) -> None:
    """A thread of the client's own sends them; nothing else is needed to stay a member."""
    consumer = beating(kafka, log)
    try:
        before = look(kafka, "g")
        log.clear()
        beats = log.wait_for(ApiKey.HEARTBEAT, count=22)  # longer than a session
        assert {each.response.error_code for each in beats} == {ErrorCode.NONE}
        gaps_ms = [(b.arrived_ns - a.arrived_ns) / 1e6 for a, b in pairwise(beats)]
        assert 280 <= sorted(gaps_ms)[len(gaps_ms) // 2] < 600
        assert look(kafka, "g") == before
        assert log.of(ApiKey.OFFSET_COMMIT, ApiKey.JOIN_GROUP) == []
    finally:
        consumer.close()


@pytest.mark.covers("S201")
@pytest.mark.mock_kafka(configs={"group.initial.rebalance.delay.ms": 700})
def test_the_initial_delay_gathers_those_that_start_together(
    kafka: Cluster, members: Members, log: RequestLog
) -> None:
    """Two consumers that start within the delay meet in the first generation, when it is over."""
    kafka.clock.freeze()  # on a busy machine the second one needs more than 700 ms
    one, two = members("g", "t"), members("g", "t")
    kafka.journal.wait(4, kind="request", api="JoinGroup")  # each also asks for an id
    kafka.clock.thaw()
    members.settle(one, two, partitions=4)
    assert look(kafka, "g").generation == 1
    waits = [each.waited_ms for each in log.of(ApiKey.JOIN_GROUP) if each.request.member_id]
    assert max(waits) >= 695


def test_a_commit_during_a_rebalance_counts(kafka: Cluster, members: Members) -> None:
    """In its callback a member commits what it has read: the coordinator takes it although the
    rebalance has begun, and the next owner starts there.
    """
    one = members("g", "t")
    members.settle(one, partitions=4)
    fill(kafka, "t", 8)
    members.collect(8)
    states = []

    def commit_on_revoke(partitions: list[TopicPartition]) -> None:
        states.append(look(kafka, "g").state)
        one.commit(*((p.topic, p.partition, 2) for p in partitions))

    one.on_revoked = commit_on_revoke
    two: Member = members("g", "t")
    members.settle(one, two, partitions=4)
    assert states == ["PreparingRebalance"]
    partitions = [("t", index) for index in range(4)]
    assert one.committed(*partitions) == dict.fromkeys(partitions, 2)
    fill(kafka, "t", 4)
    members.collect(2, two)
    assert {record.offset() for record in two.records} == {2}
