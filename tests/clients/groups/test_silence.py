"""Members that fall silent: killed, frozen, too slow, restarted; and those that leave properly."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import KafkaError

from mockbroker import Cluster
from mockbroker_protocol import ApiKey
from tests.support.member_process import MemberProcess
from tests.support.members import Members, Partition, look
from tests.support.request_log import RequestLog
from tests.support.sessions import pass_half_sessions
from tests.support.watched import fill

# Long enough for a busy machine to heartbeat in time; the clock ends it.
SESSION_MS = 9_000
# The others must never be taken for silent, however busy the machine.
PATIENT = {"session_timeout_ms": 60_000}
SHORT = {"session_timeout_ms": SESSION_MS}


def seconds_since(at_s: float) -> float:
    return time.monotonic() - at_s


def silent_ms(kafka: Cluster, name: str) -> int:
    """From the last heartbeat of a member until the group began to go on without it."""
    *_, beat = kafka.journal.events(kind="request", api="Heartbeat", client_id=name)
    after = kafka.journal.events(kind="group", group="g", after_seq=beat.seq)
    removed = next(each for each in after if each.state == "PreparingRebalance")
    return removed.virtual_ms - beat.virtual_ms


def agreed(kafka: Cluster, *owned: set[Partition]) -> bool:
    """Whether members own what the coordinator of the stable group "g" has assigned to them. What
    they heard last may be older.
    """
    found = look(kafka, "g")
    return found.state == "Stable" and sorted(map(sorted, owned)) == found.assignments


@pytest.mark.covers("S190", "S210")
@pytest.mark.mock_kafka(topics={"t": 3})
def test_partitions_of_a_killed_member_go_to_the_others(
    kafka: Cluster, members: Members, log: RequestLog
) -> None:
    """After its session timeout, not before; they go on from what it had committed."""
    others = [members("g", "t", **PATIENT) for _ in range(2)]
    with MemberProcess(kafka, "g", "t", commits=True, client_id="victim", **SHORT) as victim:
        members.until(lambda: agreed(kafka, victim.owned, *(each.owned for each in others)))
        generation = look(kafka, "g").generation
        (orphan,) = victim.owned
        fill(kafka, "t", 30, partition=orphan[1])
        read = victim.wait_for_records(30)
        victim.kill()
    fill(kafka, "t", 10, partition=orphan[1])
    pass_half_sessions(kafka, log, ApiKey.HEARTBEAT, SESSION_MS)
    members.settle(*others, partitions=3)
    assert silent_ms(kafka, "victim") >= SESSION_MS
    assert look(kafka, "g").generation == generation + 1
    members.collect(10)
    assert read == [str(n) for n in range(30)]
    assert [(r.partition(), r.offset()) for m in others for r in m.records] == [
        (orphan[1], offset) for offset in range(30, 40)
    ]


@pytest.mark.covers("S213")
def test_slow_work_is_no_death_and_death_is_found_soon(
    kafka: Cluster, members: Members, log: RequestLog
) -> None:
    """Two timers: heartbeats go on while the application works, for twice the session and more;
    a killed process is out after one session; neither has to wait for the other's timer.
    """
    longest_ms = 60_000
    busy = members("g", "t", max_poll_interval_ms=longest_ms, **SHORT)
    members.settle(busy, partitions=4)
    before = look(kafka, "g")
    pass_half_sessions(kafka, log, ApiKey.HEARTBEAT, SESSION_MS, count=5)  # work: no poll
    assert look(kafka, "g") == before
    with MemberProcess(kafka, "g", "t", client_id="victim", **SHORT) as victim:
        members.until(lambda: agreed(kafka, victim.owned, busy.owned))
        victim.kill()
    pass_half_sessions(kafka, log, ApiKey.HEARTBEAT, SESSION_MS)
    members.settle(busy, partitions=4)
    assert SESSION_MS <= silent_ms(kafka, "victim") < longest_ms


@pytest.mark.covers("S212", "S213")
def test_a_member_that_does_not_poll_leaves_by_itself(
    kafka: Cluster, members: Members, log: RequestLog
) -> None:
    """At max.poll.interval.ms it says LeaveGroup, its partitions move; its next poll rejoins.

    Its session is as long: librdkafka allows none that is longer. A member whose Heartbeat has no
    answer for a session closes its connection to the coordinator, and then says no LeaveGroup.
    """
    longest_ms = 6_000
    hung = members(
        "g",
        "t",
        max_poll_interval_ms=longest_ms,
        session_timeout_ms=longest_ms,
        heartbeat_interval_ms=50,
    )
    other = members("g", "t", **PATIENT)
    members.settle(hung, other, partitions=4)
    log.clear()
    polled_ns = time.perf_counter_ns()
    hung.poll()
    members.settle(other, partitions=4, polling=[other])
    (left,) = log.of(ApiKey.LEAVE_GROUP)
    assert left.client_id == hung.name
    assert longest_ms <= (left.arrived_ns - polled_ns) / 1e6 < 20_000
    members.until(lambda: bool(hung.errors))
    assert hung.errors[0].code() == KafkaError._MAX_POLL_EXCEEDED
    members.settle(hung, other, partitions=4)
    assert "lost" in [event.kind for event in hung.events]


@pytest.mark.covers("S217")
def test_a_member_that_closes_is_gone_at_once(
    kafka: Cluster, members: Members, log: RequestLog
) -> None:
    """LeaveGroup, and the others have its partitions long before its session would have ended."""
    stays, leaves = members("g", "t", **PATIENT), members("g", "t", **PATIENT)
    members.settle(stays, leaves, partitions=4)
    started_s = time.monotonic()
    leaves.consumer.close()
    leaves.closed = True
    (left,) = log.of(ApiKey.LEAVE_GROUP)
    assert left.client_id == leaves.name
    members.settle(stays, partitions=4)
    assert seconds_since(started_s) < 10


@pytest.mark.covers("S221", "S180")
@pytest.mark.mock_kafka(topics={"t": 2})
def test_a_frozen_member_learns_late_that_it_lost_everything(
    kafka: Cluster, members: Members, log: RequestLog
) -> None:
    """The other owns everything once its session is over. Thawed, it is told that its
    partitions are lost, and joins again; what the other committed stands.
    """
    other = members("g", "t", **PATIENT)
    with MemberProcess(kafka, "g", "t", commits=True, **SHORT) as frozen:
        members.until(lambda: agreed(kafka, frozen.owned, other.owned))
        (cut,) = frozen.owned
        fill(kafka, "t", 5, partition=cut[1])
        frozen.wait_for_records(5)
        frozen.freeze()
        fill(kafka, "t", 5, partition=cut[1])
        pass_half_sessions(kafka, log, ApiKey.HEARTBEAT, SESSION_MS)
        members.settle(other, partitions=2)
        members.collect(5)  # what the frozen one had not committed
        assert [record.offset() for record in other.records] == list(range(5, 10))
        other.commit()
        frozen.thaw()
        frozen.wait_for(lambda lines: any(line.get("told") == "lost" for line in lines))
        members.until(lambda: agreed(kafka, frozen.owned, other.owned))
        assert other.committed(cut)[cut] == 10
