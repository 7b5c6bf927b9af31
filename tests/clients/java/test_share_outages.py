"""Java's share consumers while brokers stop, coordinators move and acquisition locks run out.

A group loses no record, whatever happens. It may have one twice: what a leader had acquired and not
yet written is Available again at the next one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mockbroker import Cluster
from mockbroker.core.cluster import Cluster as CoreCluster
from mockbroker.core.metadata.topic import GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC
from tests.clients.java.steps import Json, Peer, Steps
from tests.clients.java.test_share_consumer import counts
from tests.support.tour import Tour
from tests.support.waiting import wait_until
from tests.support.word_count import leader_of

pytestmark = [pytest.mark.java, pytest.mark.parametrize("tour", ["4.3.1"], indirect=True)]

SOON = {"metadata_max_age_ms": 300, "reconnect_backoff_ms": 50, "retry_backoff_ms": 50}
CONFIGS = {
    "group.share.heartbeat.interval.ms": 200,
    "group.share.min.heartbeat.interval.ms": 100,
    "share.coordinator.state.topic.num.partitions": 1,
}


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    with Cluster(brokers=3, configs=CONFIGS) as kafka:
        yield kafka


@pytest.fixture
def java(tour: Tour, kafka: Cluster) -> Iterator[Steps]:
    steps = Steps(tour, Peer("mockbroker", kafka.bootstrap_servers, 3))
    yield steps
    kafka.faults.clear()  # a client that closes waits for its held fetch
    steps.close_all()


class Queue:
    """Two members of one group at one topic: what is written, and what they get."""

    def __init__(self, java: Steps, kafka: Cluster, **configs: object) -> None:
        self.java = java
        self.kafka = kafka
        self.topic = java.topic(replicas=3)
        self.group = java.share_group(**configs)
        self.members = [self.join(), self.join()]
        self.written: list[str] = []
        self.got: list[Json] = []
        java.join_share_group(self.group, *self.members)

    def join(self) -> str:
        few = {"max_poll_records": 3, "share_acquire_mode": "record_limit"}
        return self.java.share_consumer(self.group, self.topic, **few, **SOON)

    def write(self, count: int) -> None:
        values = [str(len(self.written) + n) for n in range(count)]
        self.java.fill(self.topic, values)
        self.written += values

    @property
    def missing(self) -> set[str]:
        return {*self.written} - {record["value"] for record in self.got}

    def read(self) -> None:
        """Poll until all that was written has come."""

        def is_complete() -> bool:
            count = max(len(self.missing), 1)
            polled = self.java.poll_all(*self.members, count=count, timeout_ms=500)
            self.got += [record for records in polled.values() for record in records]
            return not self.missing

        self.java.until(is_complete)

    def check_finished(self) -> None:
        """Wait until every record is acknowledged."""

        def is_finished() -> bool:
            self.java.poll_all(*self.members, count=1, timeout_ms=50)
            offsets = self.java.admin("shareGroupOffsets", group=self.group)
            return bool(offsets[f"{self.topic}-0"]["lag"] == 0)

        self.java.until(is_finished)

    def leader_of(self, topic: str) -> int:
        """The leader of the partition that has this group's state, or records."""
        group = self.group

        def find(cluster: CoreCluster) -> int:
            index = 0
            if topic == GROUP_METADATA_TOPIC:
                index = cluster.find_coordinator_partition(group)
            return leader_of(cluster, topic, index)

        return self.kafka.call(find)


@pytest.fixture
def queue(java: Steps, kafka: Cluster) -> Queue:
    return Queue(java, kafka)


@pytest.mark.parametrize("how", ["controlled", "unclean"])
@pytest.mark.parametrize("whose", ["records", GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC])
def test_a_leader_stops(queue: Queue, kafka: Cluster, whose: str, how: str) -> None:
    """Of the records, of the group's coordinator or of the share coordinator."""
    queue.write(20)
    queue.read()
    queue.write(20)
    stopped = queue.leader_of(queue.topic if whose == "records" else whose)
    kafka.broker(stopped).stop(how=how)
    queue.read()
    queue.write(10)
    queue.read()
    queue.check_finished()
    kafka.broker(stopped).start()


def test_coordinators_and_leaders_move(queue: Queue, kafka: Cluster) -> None:
    """No process dies: another broker leads, and finds what was written."""
    queue.write(20)
    queue.read()
    for topic in (GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC, queue.topic):
        queue.write(20)
        following = queue.leader_of(topic) % 3 + 1
        if topic == GROUP_METADATA_TOPIC:
            kafka.group(queue.group).move_coordinator(following)
        else:
            kafka.partition(topic, 0).move_leader(following)
        queue.read()
    queue.check_finished()
    assert len(queue.got) < 2 * len(queue.written)


def test_brokers_are_restarted_one_after_the_other(queue: Queue, kafka: Cluster) -> None:
    for broker in (1, 2, 3):
        queue.write(10)
        kafka.broker(broker).stop()
        queue.read()
        queue.write(10)
        kafka.broker(broker).start()
        queue.read()
    queue.check_finished()


def explicit(java: Steps, group: str, topic: str) -> str:
    mode = {"share_acknowledgement_mode": "explicit"}
    return java.share_consumer(group, topic, **mode, **SOON)


def fetch_no_more(kafka: Cluster, member: str) -> None:
    """Hold the next fetches of a member and wait for the answer to the present one.

    The client fetches in the background: it would get the records of the test once more.
    """
    fetches = {"api": "ShareFetch", "client_id": member}
    rule = kafka.faults.add(match=fetches, do={"hold": {}})

    def all_are_held() -> bool:
        sent = len(kafka.journal.events(kind="request", **fetches))
        return sent - len(kafka.journal.events(kind="response", **fetches)) == rule.hits

    wait_until(all_are_held, what="an answer to the fetch that is under way")


def test_a_lock_runs_out(java: Steps, kafka: Cluster) -> None:
    """The records go to another member, and the late acknowledgement is refused."""
    topic, group = java.topic(), java.share_group()
    java.fill(topic, range(3))
    slow = explicit(java, group, topic)
    assert counts(java.poll(slow, 3)) == [(0, 1), (1, 1), (2, 1)]
    other = explicit(java, group, topic)
    asked = {"kind": "request", "api": "ShareFetch", "client_id": other}
    while not kafka.journal.events(**asked):
        assert java.poll(other, 1, timeout_ms=50) == []
    count, got = 1, []
    # The slow client goes on fetching in the background, and may get them once more.
    while not got and count < 4:
        count += 1
        kafka.clock.advance("31s", only="locks")
        got = counts(java.poll(other, 3, timeout_ms=3_000))
    assert got == [(0, count), (1, count), (2, count)]
    partition = f"{topic}-0"
    java("acknowledge", slow, partition=partition, offsets=[0, 1, 2], type="ACCEPT")
    assert java("commit", slow) == {partition: "InvalidRecordStateException"}
    assert java("told", slow) == [[partition, [0, 1, 2], "InvalidRecordStateException"]]
    java("acknowledge", other, partition=partition, offsets=[0, 1, 2], type="ACCEPT")
    assert java("commit", other) == {partition: None}


def test_a_renewed_lock_does_not_run_out(java: Steps, kafka: Cluster) -> None:
    topic, group = java.topic(), java.share_group(record_lock_duration_ms=60_000)
    java.fill(topic, range(2))
    slow = explicit(java, group, topic)
    assert counts(java.poll(slow, 2)) == [(0, 1), (1, 1)]
    kafka.clock.advance("30s", only="locks")
    partition = f"{topic}-0"
    java("acknowledge", slow, partition=partition, offsets=[0], type="RENEW")
    assert java("commit", slow) == {partition: None}
    fetch_no_more(kafka, slow)
    # The clock runs on by itself: the renewed lock has half a minute for what follows.
    kafka.clock.advance("30s", only="locks")
    other = explicit(java, group, topic)
    assert counts(java.poll(other, 1)) == [(1, 2)]


def test_a_poison_record_is_given_up(java: Steps, kafka: Cluster) -> None:
    """A record that everybody releases is delivered as often as the group's limit says."""
    topic, group = java.topic(), java.share_group(delivery_count_limit=3)
    java.fill(topic, ["good", "poison", "better"])
    member = explicit(java, group, topic)
    partition = f"{topic}-0"
    polled = java.poll(member, 3)
    java("acknowledge", member, partition=partition, offsets=[0, 2], type="ACCEPT")
    deliveries = counts(polled)
    while polled:
        java("acknowledge", member, partition=partition, offsets=[1], type="RELEASE")
        assert java("commit", member) == {partition: None}
        polled = java.poll(member, 1, timeout_ms=1000)
        deliveries += counts(polled)
    assert deliveries == [(0, 1), (1, 1), (2, 1), (1, 2), (1, 3)]
    java.fill(topic, ["after"])
    assert counts(java.poll(member, 1)) == [(3, 1)]


def test_records_of_aborted_transactions_are_left_out(java: Steps) -> None:
    topic, group = java.topic(), java.share_group(isolation_level="read_committed")
    producer = java.producer(transactional_id=java.unique("id"))
    java("initTransactions", producer)
    for value, end in (("a", "commit"), ("lost", "abort"), ("b", "commit")):
        java("begin", producer)
        java.send(producer, {"value": value}, topic=topic)
        java(end, producer)
    member = java.share_consumer(group, topic)
    assert [record["value"] for record in java.poll(member, 2)] == ["a", "b"]
    java("begin", producer)
    java.send(producer, {"value": "c"}, topic=topic)
    assert java.poll(member, 1, timeout_ms=500) == []
    java("commit", producer)
    assert [record["value"] for record in java.poll(member, 1)] == ["c"]


def test_a_restore_makes_acquired_records_available(java: Steps, kafka: Cluster) -> None:
    """What was acknowledged before the snapshot stays so; what was in hand comes again."""
    topic, group = java.topic(replicas=3), java.share_group()
    java.fill(topic, range(4))
    member = explicit(java, group, topic)
    java.poll(member, 4)
    partition = f"{topic}-0"
    java("acknowledge", member, partition=partition, offsets=[0, 2], type="ACCEPT")
    assert java("commit", member) == {partition: None}
    snapshot = kafka.snapshot()
    java("acknowledge", member, partition=partition, offsets=[1, 3], type="ACCEPT")
    assert java("commit", member) == {partition: None}
    kafka.restore(snapshot)
    other = explicit(java, group, topic)
    polled = java.poll_all(member, other, count=2)  # a fetch of the first may have been under way
    assert sorted(record["offset"] for each in polled.values() for record in each) == [1, 3]


def test_a_data_directory_keeps_what_was_acknowledged(tour: Tour, tmp_path: Path) -> None:
    where = {"data_dir": tmp_path / "data", "brokers": 1, "configs": CONFIGS}
    with Cluster(**where) as kafka:  # type: ignore[arg-type]
        java = Steps(tour, Peer("mockbroker", kafka.bootstrap_servers, 1))
        topic, group = java.topic(), java.share_group()
        java.fill(topic, range(4))
        member = explicit(java, group, topic)
        java.poll(member, 4)
        partition = f"{topic}-0"
        java("acknowledge", member, partition=partition, offsets=[0, 1, 3], type="ACCEPT")
        assert java("commit", member) == {partition: None}
        java.close_all()
    with Cluster(**where) as kafka:  # type: ignore[arg-type]
        java = Steps(tour, Peer("mockbroker", kafka.bootstrap_servers, 1))
        other = explicit(java, group, topic)
        assert [record["offset"] for record in java.poll(other, 1)] == [2]
        java.close_all()
