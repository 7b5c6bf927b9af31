"""Advancing the cluster's clock while real clients are connected."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

import pytest
import trio
from confluent_kafka import Consumer

from mockbroker import Cluster
from mockbroker.client.connection import Connection
from mockbroker.core.cluster import Cluster as CoreCluster
from mockbroker.core.validation import ValidationError, duration_ms
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.heartbeat import HeartbeatRequest
from mockbroker_protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from mockbroker_protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

TRIES = 600
HALF_AN_HOUR_MS = 1_800_000


def consumer(kafka: Cluster, member: str, **options: object) -> Consumer:
    found = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": "readers",
            "client.id": member,
            "log_level": 0,
            **options,
        }
    )
    found.subscribe(["orders"])
    for _ in range(TRIES):
        found.poll(0.05)
        if found.assignment():
            return found
    raise AssertionError("never assigned")


def group_members(kafka: Cluster) -> list[str]:
    """The client ids of the group's members, new protocol or classic."""
    return kafka.call(
        lambda cluster: sorted(
            member.client_id
            for broker in cluster.brokers.values()
            for shard in broker.groups.shards()
            for group in shard.groups.values()
            for member in (group.members.values())
        )
    )


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_connected_member_survives_a_week(protocol: str) -> None:
    """Its client could not know that it had to hurry; the next heartbeat finds all as it was."""
    # With the new protocol the session timeout is the broker's, and the client refuses its own.
    options = {} if protocol == "classic" else {"group.protocol": protocol}
    with Cluster(topics={"orders": 1}) as kafka:
        client = consumer(kafka, "one", **options)
        kafka.clock.freeze()
        kafka.clock.advance("7d")
        assert group_members(kafka) == ["one"]
        kafka.clock.thaw()
        client.poll(0.1)
        assert group_members(kafka) == ["one"]
        client.close()


def raw_member(kafka: Cluster) -> Connection:
    """A member of `readers` that says nothing more after it has its assignment."""
    return joined_member(kafka)[0]


def joined_member(kafka: Cluster) -> tuple[Connection, JoinGroupResponse]:
    """The same, and what its JoinGroup was answered with."""
    connection = Connection(*kafka.endpoint(1), "raw")
    connection.send(FindCoordinatorRequest(coordinator_keys=["readers"]), 4)
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"")
    join = JoinGroupRequest(
        group_id="readers",
        session_timeout_ms=45_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[protocol],
    )
    join.member_id = connection.send(join, 5).member_id
    joined = connection.send(join, 5)
    assignments = [SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"")]
    sync = SyncGroupRequest(
        group_id="readers",
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=assignments,
    )
    connection.send(sync, 3)
    return connection, joined


def heartbeat_of(joined: JoinGroupResponse) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id="readers", generation_id=joined.generation_id, member_id=joined.member_id
    )


def when_it_is_later(kafka: Cluster, by_ms: int, call: Callable[[], None]) -> None:
    """Call this when so many ms have passed for the group."""

    def set_timer(cluster: CoreCluster) -> None:
        times = cluster.clock_domains.of_group("readers")
        times.call_at(times.now_ms() + by_ms, call)

    kafka.call(set_timer)


@pytest.mark.parametrize("only", [None, "groups"])
def test_a_member_that_is_heard_on_the_way_is_spared_no_less(only: str | None) -> None:
    """Its heartbeat does not cut short what it was granted; nor does its connection grow idle."""
    with Cluster(brokers=1, topics={"orders": 2}) as kafka:
        kafka.clock.freeze()
        member, joined = joined_member(kafka)
        beat = heartbeat_of(joined)
        when_it_is_later(kafka, HALF_AN_HOUR_MS, lambda: member.write(beat, 3))
        kafka.clock.advance("2h", only=only)
        assert member.read(ApiKey.HEARTBEAT, 3).error_code == ErrorCode.NONE
        assert group_members(kafka) == ["raw"]
        assert member.send(beat, 3).error_code == ErrorCode.NONE
        member.close()


def test_a_member_that_is_gone_runs_out_after_its_session() -> None:
    """It is there for 45 s while its connection is open and while it is not; then no more."""
    with Cluster(brokers=1, topics={"orders": 2}) as kafka:
        kafka.clock.freeze()
        member = raw_member(kafka)
        kafka.clock.advance("10m")
        assert group_members(kafka) == ["raw"]
        member.close()
        kafka.clock.advance(44_999)
        assert group_members(kafka) == ["raw"]
        kafka.clock.advance(1)
        assert group_members(kafka) == []


@pytest.mark.parametrize("only", [None, "groups"])
def test_a_member_that_has_just_gone_is_not_extended(only: str | None) -> None:
    """Its connection is closed, and the broker has had no turn to notice."""
    with Cluster(brokers=1, topics={"orders": 2}) as kafka:
        kafka.clock.freeze()
        member = raw_member(kafka)
        is_over = threading.Event()

        async def go_and_advance() -> None:
            member.close()
            await kafka.server.advance_clock(46_000, only=only)
            is_over.set()

        kafka.call(lambda _: trio.lowlevel.spawn_system_task(go_and_advance))
        assert is_over.wait(30)
        assert group_members(kafka) == []


def test_sessions_expire_without_extend_sessions() -> None:
    """Then 45 seconds end the session of a connected member too."""
    with Cluster(topics={"orders": 1}) as kafka:
        client = consumer(kafka, "one")
        kafka.clock.freeze()
        kafka.clock.advance("44s", extend_sessions=False)
        assert group_members(kafka) == ["one"]
        kafka.clock.advance("2s", extend_sessions=False)
        assert group_members(kafka) == []
        kafka.clock.thaw()
        client.close()


@pytest.mark.parametrize("only", [None, "groups"])
def test_a_member_that_is_heard_on_the_way_expires_no_less(only: str | None) -> None:
    """For clients, an advance is one moment: what they send meanwhile is served after it."""
    with Cluster(brokers=1, topics={"orders": 2}) as kafka:
        kafka.clock.freeze()
        member, joined = joined_member(kafka)
        beat = heartbeat_of(joined)
        when_it_is_later(kafka, 30_000, lambda: member.write(beat, 3))
        kafka.clock.advance("46s", only=only, extend_sessions=False)
        assert member.read(ApiKey.HEARTBEAT, 3).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert group_members(kafka) == []
        member.close()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("250ms", 250), ("45s", 45_000), ("1.5h", 5_400_000), ("7d", 604_800_000), (12, 12)],
)
def test_durations_are_read_as_people_write_them(text: int | str, expected: int) -> None:
    """Integers are milliseconds."""
    assert duration_ms(text, "") == expected


@pytest.mark.parametrize("text", ["", "5", "s", "-5s", "5 weeks"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    """The message shows how to write one."""
    with pytest.raises(ValidationError, match="is not a duration; write 250"):
        duration_ms(text, "")


def test_a_week_passes_while_consumers_wait_for_records() -> None:
    """Each fetch that waits ends once on the way: a client that asks again waits for the arrival.

    Otherwise its next 100 ms, and the next, would be as many steps of the clock.
    """
    names = ("one", "two", "three", "four")
    over = threading.Event()
    with Cluster(brokers=3, topics={"orders": 6}) as kafka:
        options = {"fetch.wait.max.ms": 100}
        waiting = [consumer(kafka, name, **{**options, "group.id": name}) for name in names]

        def poll() -> None:
            while not over.is_set():
                for each in waiting:
                    each.poll(0.01)

        poller = threading.Thread(target=poll)
        poller.start()
        kafka.clock.freeze()
        mark, before_ms = kafka.journal.last_seq, kafka.clock.now_ms
        kafka.clock.advance("7d")
        assert kafka.clock.now_ms - before_ms == duration_ms("7d", "")
        answered = Counter(
            event.connection
            for event in kafka.journal.events(kind="response", api="Fetch", after_seq=mark)
        )
        over.set()
        poller.join()
        assert answered
        assert max(answered.values()) <= 3
        assert group_members(kafka) == sorted(names)
        kafka.clock.thaw()
        for each in waiting:
            each.close()
