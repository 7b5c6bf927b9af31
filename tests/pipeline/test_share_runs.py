"""The audit of share groups at work: no false alarm, and bugs of a broker are found."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mockbroker import Cluster, TopicSpec
from mockbroker.client.client import Client
from mockbroker.client.errors import ClientError
from mockbroker.core.errors import ActionError
from mockbroker.core.share import in_flight
from mockbroker.core.share.in_flight import InFlightState
from mockbroker.core.share.partition import SharePartition
from mockbroker.core.share.states import (
    RECORD_TRANSITIONS,
    RETURN_STATES,
    RecordEvent,
    RecordState,
)
from tests.pipeline.convert.support import tables_of
from tests.support.share_members import ACCEPT, GROUP, RELEASE, ShareMember
from tests.support.waiting import wait_until

STATES = "__share_group_state"
RULES = (
    "delivered_above_limit",
    "delivered_again",
    "acquired_twice",
    "archived_unprocessed",
    "passed_over",
)
LOCK_MS = 15_000


@contextmanager
def running(brokers: int, partitions: int = 1) -> Iterator[Cluster]:
    configs = {
        "share.coordinator.state.topic.num.partitions": 2,
        "share.coordinator.state.topic.replication.factor": brokers,
        "share.coordinator.state.topic.min.isr": 1,
        "group.share.record.lock.duration.ms": LOCK_MS,
        "group.share.delivery.count.limit": 3,
    }
    topics = [TopicSpec("t", partitions, brokers)]
    with Cluster(brokers=brokers, configs=configs, topics=topics) as kafka:
        reset = {"share.auto.offset.reset": "earliest"}
        kafka.act("alter_configs", kind="group", name=GROUP, configs=reset)
        yield kafka


def members_of(kafka: Cluster, count: int, partitions: int = 1) -> list[ShareMember]:
    kafka.act("create_internal_topics")
    members = [ShareMember(kafka, f"m{n}", "t", partitions) for n in range(count)]
    for member in members:
        wait_until(lambda joining=member: joins(kafka, joining), what="a group coordinator")
    return members


def share_findings(kafka: Cluster) -> list[tuple[str, str, int | None, str | None]]:
    found = kafka.audit().findings
    return [(f.anomaly, f.verdict, f.offset, f.rule) for f in found if f.anomaly in RULES]


def joins(kafka: Cluster, member: ShareMember) -> bool:
    """Whether one of the brokers has taken the member into its group."""
    answers = [member.heartbeat(each.node_id) for each in kafka.brokers()]
    return any(answer is not None and answer.error_code == 0 for answer in answers)


def sessions(kafka: Cluster) -> int:
    return kafka.call(lambda cluster: len(cluster.brokers[1].share_partitions.sessions))


def fetch(member: ShareMember, node_id: int = 1, most: int = 500) -> None:
    """Fetch until something is acquired: the state may not be initialized yet."""
    wait_until(lambda: member.fetch(node_id, most) > 0, what="acquired records")


def produce(kafka: Cluster, count: int, partition: int = 0) -> None:
    with Client(kafka.bootstrap_servers) as client:
        client.produce(
            "t", [f"{partition}-{n}".encode() for n in range(count)], partition=partition
        )


def test_what_is_done_to_a_record_is_in_the_tables() -> None:
    """Each range once, with the state that it has then; a session, and the start offset."""
    with running(1) as kafka:
        produce(kafka, 6)
        one, other = members_of(kafka, 2)
        fetch(one)
        kafka.clock.freeze()  # else each renewed lock may have a deadline of its own
        assert one.acknowledge(1, (0, 0, 5), [1, 1, 2, 3, 4, 4]) == 0
        kafka.clock.advance(LOCK_MS + 1, only="locks")
        fetch(other)
        other.disconnect(1)
        wait_until(lambda: sessions(kafka) == 1, what="the end of the session")
        tables = tables_of(kafka)
        brief = [
            (row["change"], row["first_offset"], row["last_offset"], row["state"],
             row["delivery_count"], row["member"], row["reason"])
            for row in tables.rows("share_records")
        ]  # fmt: skip
        assert brief == [
            ("acquired", 0, 5, "Acquired", 1, "m0", None),
            ("renewed", 4, 5, "Acquired", 1, "m0", None),
            ("accepted", 0, 1, "Acknowledged", 1, "m0", None),
            ("released", 2, 2, "Available", 1, "m0", None),
            ("rejected", 3, 3, "Archived", 1, "m0", "rejected"),
            ("lock_expired", 4, 5, "Available", 1, "m0", None),
            ("acquired", 2, 2, "Acquired", 2, "m1", None),
            ("acquired", 4, 5, "Acquired", 2, "m1", None),
            ("session_ended", 2, 2, "Available", 2, "m1", None),
            ("session_ended", 4, 5, "Available", 2, "m1", None),
        ]
        assert {row["life"] for row in tables.rows("share_records")} == {1}
        assert [
            (row["change"], row["former_offset"], row["offset"])
            for row in tables.rows("share_starts")
        ] == [("initialized", None, None), ("reset", None, 0), ("moved", 0, 2)]
        assert [
            (row["member"], row["change"], row["reason"]) for row in tables.rows("share_sessions")
        ] == [("m0", "opened", None), ("m1", "opened", None), ("m1", "closed", "connection")]
        assert share_findings(kafka) == []
        one.close()


@pytest.mark.parametrize("seed", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_no_disturbance_gives_a_bug(seed: int) -> None:
    """Leaders and coordinators move, brokers and connections end, locks expire, records go."""
    dice = random.Random(seed)
    with running(3, partitions=2) as kafka:
        members = members_of(kafka, 3, partitions=2)
        for index in (0, 1):
            produce(kafka, 20, index)
        work_undisturbed(kafka, members[0])
        for _ in range(250):
            disturb(kafka, members, dice)
        report = kafka.audit()
        assert [found for found in report.findings if found.verdict == "bug"] == []
        tables = tables_of(kafka)
        changes = {row["change"] for row in tables.rows("share_records")}
        assert {
            "acquired",
            "accepted",
            "released",
            "lock_expired",
        } <= changes
        assert len({row["life"] for row in tables.rows("share_records")}) > 3
        for member in members:
            member.close()


def work_undisturbed(kafka: Cluster, member: ShareMember) -> None:
    """Each kind of change happens once, whatever the dice say."""
    leader = kafka.partition("t", 0).leader
    fetch(member, leader, most=4)
    index, first, _ = member.held[leader].pop()
    assert member.acknowledge(leader, (index, first, first + 1), [ACCEPT, RELEASE]) == 0
    kafka.clock.advance(LOCK_MS + 1, only="locks")


def disturb(kafka: Cluster, members: list[ShareMember], dice: random.Random) -> None:
    """One step of a member, or one disturbance."""
    member, node_id, index = dice.choice(members), dice.choice((1, 2, 3)), dice.choice((0, 1))
    throw = dice.random()
    if throw < 0.4:
        member.fetch(node_id, dice.choice((1, 5, 500)))
    elif throw < 0.75:
        member.acknowledge_some(node_id, dice)
    elif throw < 0.81:
        kafka.clock.advance(LOCK_MS + 1, only="locks")
    elif throw < 0.84:
        member.disconnect(node_id)
    elif throw < 0.88:
        with contextlib.suppress(ClientError):
            produce(kafka, dice.randint(1, 9), index)
    elif throw < 0.9:
        end = kafka.partition("t", index).delete_records
        with contextlib.suppress(ActionError):
            end(dice.randint(0, 10))
    else:
        with contextlib.suppress(ActionError):
            _move(kafka, node_id, index, dice)


def _move(kafka: Cluster, node_id: int, index: int, dice: random.Random) -> None:
    what = dice.choice(("leader", "coordinator", "stop", "unreachable"))
    if what == "leader":
        kafka.partition("t", index).move_leader(node_id)
    elif what == "coordinator":
        kafka.partition(STATES, index).move_leader(node_id)
    else:
        broker = kafka.broker(node_id)
        if what == "stop":
            broker.stop()
        else:
            broker.pause()
        kafka.clock.advance(10_000)
        if what == "stop":
            broker.start()
        else:
            broker.resume()


# -- bugs of a broker ------------------------------------------------------------------------------


def no_limit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(in_flight, "RETURN_STATES", dict.fromkeys(RETURN_STATES, RecordState.AVAILABLE))


def accepted_is_available(patch: pytest.MonkeyPatch) -> None:
    _leads_to(patch, RecordEvent.ACCEPT, RecordState.AVAILABLE)


def released_is_archived(patch: pytest.MonkeyPatch) -> None:
    _leads_to(patch, RecordEvent.RELEASE, RecordState.ARCHIVED)


def _leads_to(patch: pytest.MonkeyPatch, event: RecordEvent, state: RecordState) -> None:
    row = {**RECORD_TRANSITIONS[RecordState.ACQUIRED], event: state}
    patch.setattr(
        in_flight, "RECORD_TRANSITIONS", {**RECORD_TRANSITIONS, RecordState.ACQUIRED: row}
    )


def no_lock(patch: pytest.MonkeyPatch) -> None:
    acquire = InFlightState.acquire

    def acquired(self: InFlightState, member_id: str, deadline_ms: int) -> None:
        acquire(self, member_id, deadline_ms)
        self.state = RecordState.AVAILABLE

    patch.setattr(InFlightState, "acquire", acquired)


def available_is_final(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        SharePartition,
        "_is_final",
        staticmethod(lambda state: state.state is not RecordState.ACQUIRED),
    )


PLANTED = {
    "delivered_above_limit": no_limit,
    "delivered_again": accepted_is_available,
    "acquired_twice": no_lock,
    "archived_unprocessed": released_is_archived,
    "passed_over": available_is_final,
}


@pytest.mark.parametrize("anomaly", PLANTED)
def test_a_bug_of_the_broker_is_found(anomaly: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two members take turns; one gives everything back or accepts it, as the bug needs."""
    PLANTED[anomaly](monkeypatch)
    with running(1) as kafka:
        produce(kafka, 2)
        one, other = members_of(kafka, 2)
        kind = ACCEPT if anomaly == "delivered_again" else RELEASE
        fetch(one)
        for member in (one, other, one, other, one, other, one, other):
            for held in member.held.pop(1, []):
                member.acknowledge(1, held, [kind])
            (other if member is one else one).fetch(1)
        bugs = {(name, verdict) for name, verdict, _, _ in share_findings(kafka)}
        assert (anomaly, "bug") in bugs
        for member in (one, other):
            member.close()


# -- actions ---------------------------------------------------------------------------------------


def test_an_action_that_hands_records_out_twice_is_the_cause() -> None:
    with running(1) as kafka:
        produce(kafka, 2)
        one, other = members_of(kafka, 2)
        fetch(one)
        kafka.act("hand_out_twice", group=GROUP, topic="t", partition=0)
        fetch(other)
        assert share_findings(kafka) == [
            ("acquired_twice", "report", offset, "hand_out_twice") for offset in (0, 1)
        ]
        for member in (one, other):
            member.close()


def test_an_action_that_archives_records_is_the_cause() -> None:
    with running(1) as kafka:
        produce(kafka, 2)
        (one,) = members_of(kafka, 1)
        fetch(one)
        kafka.act("archive_records", group=GROUP, topic="t", partition=0, offsets=[1])
        assert share_findings(kafka) == [("archived_unprocessed", "report", 1, "archive_records")]
        one.close()


def test_an_action_that_forgets_deliveries_is_the_cause() -> None:
    """The limit is three; the broker counts anew, and delivers four times."""
    with running(1) as kafka:
        produce(kafka, 1)
        (one,) = members_of(kafka, 1)
        for _ in range(2):
            fetch(one)
            assert one.acknowledge(1, (0, 0, 0), [RELEASE]) == 0
        kafka.act("set_delivery_count", group=GROUP, topic="t", partition=0, count=1)
        fetch(one)
        assert one.acknowledge(1, (0, 0, 0), [RELEASE]) == 0
        fetch(one)
        assert share_findings(kafka) == [
            ("delivered_above_limit", "report", 0, "set_delivery_count")
        ]
        one.close()


def test_a_poison_record_is_reported_when_the_group_gives_it_up() -> None:
    """After its last delivery it is archived; no member has accepted it."""
    with running(1) as kafka:
        produce(kafka, 1)
        (one,) = members_of(kafka, 1)
        for _ in range(3):
            fetch(one)
            assert one.acknowledge(1, (0, 0, 0), [RELEASE]) == 0
        assert share_findings(kafka) == [("archived_unprocessed", "report", 0, None)]
        one.close()
