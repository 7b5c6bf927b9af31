"""When clients commit, what they commit, and what a restart makes of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from itertools import pairwise
from time import perf_counter_ns

import pytest
from confluent_kafka import Message, TopicPartition
from kafka import KafkaConsumer

from mockbroker import Cluster
from mockbroker_protocol import ApiKey
from tests.support.kafka_python import POLL_MS, poll, subscribe
from tests.support.member_process import MemberProcess
from tests.support.members import Member, Members, Partition, text_of
from tests.support.request_log import Exchange, RequestLog
from tests.support.waiting import wait_until
from tests.support.watched import fill

ONE = ("t", 0)
# A topic of one partition is what most of these need.
pytestmark = pytest.mark.mock_kafka(topics={"t": 1})


def offsets_of(commit: Exchange) -> dict[Partition, int]:
    return {
        (topic.name, each.partition_index): each.committed_offset
        for topic in commit.request.topics
        for each in topic.partitions
    }


def committed_in(log: RequestLog) -> dict[Partition, int]:
    """The last offset of each partition that any client has committed."""
    committed: dict[Partition, int] = {}
    for commit in log.of(ApiKey.OFFSET_COMMIT):
        committed |= offsets_of(commit)
    return committed


def stored(kafka: Cluster, group: str, *partitions: Partition) -> dict[Partition, int]:
    """The committed offsets as anybody may ask for them, -1001 where there is none."""
    asker = Member(kafka, group, [])
    found = asker.committed(*partitions)
    asker.close()
    return found


@pytest.mark.covers("S165")
@pytest.mark.mock_kafka(topics={"foo": 1, "bar": 1})
def test_automatic_commits_come_at_their_interval(
    kafka: Cluster, members: Members, log: RequestLog
) -> None:
    """Group test, topics foo and bar, an interval of 300 ms: what was read in between, and nothing
    when nothing was read.
    """
    member = members("test", "foo", "bar", enable_auto_commit=True, auto_commit_interval_ms=300)
    members.settle(member, partitions=2)
    began_ns = perf_counter_ns()
    for count in (1, 2, 3):
        fill(kafka, "foo", 1)
        fill(kafka, "bar", 2)
        members.collect(3 * count)
        # On a busy machine one topic is committed before the records of the other have come.
        everything = {("foo", 0): count, ("bar", 0): 2 * count}
        members.until(lambda wanted=everything: committed_in(log) == wanted)
    commits = log.of(ApiKey.OFFSET_COMMIT)
    assert all(offsets_of(one) != offsets_of(next_) for one, next_ in pairwise(commits))
    # Two intervals lie between the first commit and the third, however late the first one arrives.
    assert (commits[-1].arrived_ns - began_ns) / 1e6 >= 1.5 * 300


@pytest.mark.covers("S165")
def test_a_client_that_commits_while_polling_does_not_when_nobody_polls(
    kafka: Cluster, log: RequestLog
) -> None:
    """kafka-python, as Java: many intervals and heartbeats pass without a commit; the next poll
    brings it.
    """
    fill(kafka, "t", 5)
    consumer = KafkaConsumer(
        bootstrap_servers=kafka.bootstrap_servers,
        group_id="g",
        auto_offset_reset="earliest",
        heartbeat_interval_ms=100,
        auto_commit_interval_ms=50,
    )
    try:
        subscribe(consumer, "t")
        assert len(poll(consumer, 5)) == 5
        log.clear()
        log.wait_for(ApiKey.HEARTBEAT, count=6)

        def committed() -> bool:
            # A commit of what was read earlier may still have been on its way.
            return any(offsets_of(each) == {ONE: 5} for each in log.of(ApiKey.OFFSET_COMMIT))

        assert not committed()

        def committed_by_polling() -> bool:
            consumer.poll(timeout_ms=POLL_MS)
            return committed()

        wait_until(committed_by_polling)
    finally:
        consumer.close(autocommit=False)


@pytest.mark.covers("S166")
def test_closing_commits_what_was_read_before_it_leaves(
    kafka: Cluster, members: Members, log: RequestLog
) -> None:
    """Within the interval: the last OffsetCommit says 10, and LeaveGroup comes after it."""
    fill(kafka, "t", 10)
    member = members("g", "t", enable_auto_commit=True, auto_commit_interval_ms=3_600_000)
    members.collect(10)
    assert log.of(ApiKey.OFFSET_COMMIT) == []
    member.consumer.close()
    member.closed = True
    commit, leave = log.of(ApiKey.OFFSET_COMMIT, ApiKey.LEAVE_GROUP)
    assert (commit.api, leave.api) == (ApiKey.OFFSET_COMMIT, ApiKey.LEAVE_GROUP)
    assert offsets_of(commit) == {ONE: 10}
    assert stored(kafka, "g", ONE) == {ONE: 10}


@pytest.mark.covers("S166")
def test_a_killed_client_commits_nothing(kafka: Cluster, log: RequestLog) -> None:
    """Its interval had not passed, so whoever comes next reads everything again."""
    fill(kafka, "t", 10)
    with MemberProcess(
        kafka, "g", "t", enable_auto_commit=True, auto_commit_interval_ms=3_600_000
    ) as victim:
        victim.wait_for_records(10)
        victim.kill()
    assert log.of(ApiKey.OFFSET_COMMIT) == []
    assert stored(kafka, "g", ONE) == {ONE: -1001}


@pytest.mark.covers("S167")
def test_automatic_commits_can_run_ahead_of_the_work(
    kafka: Cluster, members: Members, log: RequestLog
) -> None:
    """Twenty records wait in the application's buffer, seven are done, and it dies after the
    automatic commit: thirteen are lost, exactly those between processed and committed.
    """
    values = fill(kafka, "t", 20)
    crashing = members("g", "t", enable_auto_commit=True, auto_commit_interval_ms=50)
    members.collect(20)
    processed = crashing.values()[:7]
    members.until(lambda: any(offsets_of(e) == {ONE: 20} for e in log.of(ApiKey.OFFSET_COMMIT)))
    crashing.close()
    fill(kafka, "t", 1)
    after = members("g", "t")
    members.collect(1, after)
    assert [record.offset() for record in after.records] == [20]
    lost = set(values) - set(processed)
    assert len(lost) == stored(kafka, "g", ONE)[ONE] - len(processed) == 13


class Shop:
    """An application that puts records into a database in batches, and commits after each."""

    def __init__(self, database: sqlite3.Connection, batch: int) -> None:
        self.database = database
        self.batch = batch
        self.buffer: list[Message] = []
        database.execute("CREATE TABLE IF NOT EXISTS sold (place INTEGER, value TEXT)")

    def insert(self) -> None:
        rows = [(each.offset(), text_of(each)) for each in self.buffer[: self.batch]]
        with self.database:
            self.database.executemany("INSERT INTO sold VALUES (?, ?)", rows)

    def commit(self, member: Member) -> None:
        last = self.buffer[self.batch - 1]
        member.commit((*ONE, last.offset() + 1))
        del self.buffer[: self.batch]


def crash(member: Member) -> None:
    """End a member that will not commit any more; the next one starts from what is committed."""
    member.close()


@pytest.mark.covers("S168")
def test_a_commit_after_each_batch_of_two_hundred(
    kafka: Cluster, members: Members, log: RequestLog
) -> None:
    """450 records: commits at 200 and 400; the 50 of the unfinished batch are read again."""
    fill(kafka, "t", 450)
    member = members("g", "t")
    shop = Shop(sqlite3.connect(":memory:"), 200)
    taken = 0
    while taken < 450:
        members.collect(taken + 1)
        shop.buffer += member.records[taken:]
        taken = len(member.records)
        while len(shop.buffer) >= shop.batch:
            shop.insert()
            shop.commit(member)
    assert [offsets_of(each)[ONE] for each in log.of(ApiKey.OFFSET_COMMIT)] == [200, 400]
    assert len(shop.buffer) == 50
    crash(member)
    after = members("g", "t")
    members.collect(50, after)
    assert [record.offset() for record in after.records] == list(range(400, 450))
    assert shop.database.execute("SELECT count(*) FROM sold").fetchone() == (400,)


@pytest.mark.covers("S169")
@pytest.mark.parametrize(("upsert", "rows", "duplicates"), [(False, 650, 200), (True, 450, 0)])
def test_a_crash_between_insert_and_commit_repeats_the_batch(
    kafka: Cluster, members: Members, upsert: bool, rows: int, duplicates: int
) -> None:
    """Rows 200 to 399 are inserted twice; with a key they are written twice and there once."""
    fill(kafka, "t", 450)
    database = sqlite3.connect(":memory:")
    key = "PRIMARY KEY" if upsert else ""
    database.execute(f"CREATE TABLE sold (place INTEGER {key}, value TEXT)")
    verb = "INSERT OR REPLACE" if upsert else "INSERT"

    def insert(records: Sequence[Message]) -> None:
        with database:
            pairs = [(each.offset(), text_of(each)) for each in records]
            database.executemany(f"{verb} INTO sold VALUES (?, ?)", pairs)

    first = members("g", "t")
    members.collect(450)
    insert(first.records[:200])
    first.commit((*ONE, 200))
    insert(first.records[200:400])
    crash(first)
    second = members("g", "t")
    members.collect(250, second)
    assert second.records[0].offset() == 200
    insert(second.records)
    assert database.execute("SELECT count(*) FROM sold").fetchone() == (rows,)
    twice = "SELECT count(*) FROM (SELECT place FROM sold GROUP BY place HAVING count(*) > 1)"
    assert database.execute(twice).fetchone() == (duplicates,)


@pytest.mark.covers("S170")
@pytest.mark.parametrize(("committed", "first"), [(42, 42), (41, 41)])
def test_what_is_committed_is_the_next_offset_to_read(
    kafka: Cluster, members: Members, committed: int, first: int
) -> None:
    """After record 41 that is 42; whoever commits 41 gets record 41 again."""
    fill(kafka, "t", 42)
    member = members("g", "t")
    members.collect(42)
    assert member.records[-1].offset() == 41
    member.commit((*ONE, committed))
    crash(member)
    fill(kafka, "t", 1)
    after = members("g", "t")
    members.collect(1, after)
    assert after.records[0].offset() == first


@pytest.mark.covers("S170")
@pytest.mark.mock_kafka(topics={"t": 4})
def test_a_commit_of_a_message_is_its_offset_plus_one_in_its_partition(
    kafka: Cluster, members: Members
) -> None:
    """Each partition for itself; those that were not committed stay without an offset."""
    fill(kafka, "t", 8)
    member = members("g", "t")
    members.collect(8)
    for record in member.records:
        if record.partition() in (1, 3):
            member.consumer.commit(record, asynchronous=False)
    partitions = [("t", index) for index in range(4)]
    assert member.committed(*partitions) == dict(zip(partitions, [-1001, 2, -1001, 2], strict=True))
    assert member.positions() == dict.fromkeys(partitions, 2)


@pytest.mark.covers("S172")
def test_committing_first_is_at_most_once(kafka: Cluster, members: Members) -> None:
    """Commit, then a crash before the work: nothing twice, and what was in hand is lost."""
    values = fill(kafka, "t", 10)
    member = members("g", "t")
    members.collect(10)
    member.commit()
    processed = member.values()[:4]
    crash(member)
    fill(kafka, "t", 1)
    after = members("g", "t")
    members.collect(1, after)
    processed += [text_of(r) for r in after.records if r.offset() < 10]
    assert len(processed) == len(set(processed))
    assert sorted(set(values) - set(processed), key=int) == values[4:]


@pytest.mark.covers("S173")
def test_a_failed_step_is_passed_over_until_the_restart(kafka: Cluster, members: Members) -> None:
    """Not committing does not bring the record back: the next poll goes on. A restart does."""
    fill(kafka, "t", 5)
    member = members("g", "t")
    members.collect(3)
    member.commit((*ONE, 2))  # record 2 failed
    members.collect(5)
    assert [record.offset() for record in member.records] == [0, 1, 2, 3, 4]
    crash(member)
    after = members("g", "t")
    members.collect(3, after)
    assert [record.offset() for record in after.records] == [2, 3, 4]


@pytest.mark.covers("S183", "S22")
def test_the_position_is_the_clients_and_the_committed_offset_the_brokers(
    kafka: Cluster, members: Members, log: RequestLog
) -> None:
    """Polls move the one, only OffsetCommit the other; the next member starts from the latter."""
    fill(kafka, "t", 6)
    member = members("g", "t")
    for count in range(1, 7):
        members.collect(count)
        assert member.positions()[ONE] >= count
        assert stored(kafka, "g", ONE) == {ONE: -1001}
    assert log.of(ApiKey.OFFSET_COMMIT) == []
    member.commit((*ONE, 1))
    assert (member.positions(), stored(kafka, "g", ONE)) == ({ONE: 6}, {ONE: 1})
    crash(member)
    after = members("g", "t")
    members.collect(5, after)
    assert [record.offset() for record in after.records] == [1, 2, 3, 4, 5]


@pytest.mark.covers("S178")
def test_a_new_group_has_no_offsets(kafka: Cluster, members: Members) -> None:
    """No error either: a consumer then goes where auto.offset.reset says."""
    fill(kafka, "t", 3)
    assert stored(kafka, "new", ONE) == {ONE: -1001}
    earliest = members("new", "t")
    members.collect(3, earliest)
    latest = members("other", "t", auto_offset_reset="latest")
    members.until(lambda: latest.positions() == {} and len(latest.owned) == 1)
    assert latest.records == []


@pytest.mark.covers("S181")
@pytest.mark.mock_kafka(topics={"t": 4})
def test_offsets_kept_in_a_store_of_ones_own(
    kafka: Cluster, members: Members, log: RequestLog
) -> None:
    """Saved when partitions are revoked, sought when they are assigned: over five forced rebalances
    nothing is missed and nothing comes twice, and Kafka has no offset of it.
    """
    store = sqlite3.connect(":memory:")
    store.execute("CREATE TABLE place (part INTEGER PRIMARY KEY, next INTEGER)")
    read: list[tuple[int, int]] = []

    def newcomer() -> Member:
        member = members("g", "t", partition_assignment_strategy="range")
        seen = 0

        def harvest() -> None:
            nonlocal seen
            read.extend((r.partition(), r.offset()) for r in member.records[seen:])
            seen = len(member.records)

        def save(partitions: list[TopicPartition]) -> None:
            harvest()
            for topic, index in sorted((p.topic, p.partition) for p in partitions):
                place = member.positions().get((topic, index))
                if place is not None:
                    store.execute("INSERT OR REPLACE INTO place VALUES (?, ?)", (index, place))

        def seek(partitions: list[TopicPartition]) -> None:
            for each in partitions:
                found = store.execute("SELECT next FROM place WHERE part = ?", (each.partition,))
                each.offset = (found.fetchone() or (0,))[0]
            member.consumer.assign(partitions)

        member.on_revoked, member.on_assigned = save, seek
        return member

    group = [newcomer()]
    members.settle(*group, partitions=4)
    total = 0
    for step in range(5):
        total += len(fill(kafka, "t", 40))
        members.until(lambda n=20 + step: sum(len(m.records) for m in members.all) >= n)
        if step % 2:
            group.pop().close()
        else:
            group.append(newcomer())
        members.settle(*group, partitions=4)
    members.until(lambda: sum(len(m.records) for m in members.all) >= total)
    for member in group:
        member.close()
    assert sorted(read) == [(part, offset) for part in range(4) for offset in range(total // 4)]
    assert set(stored(kafka, "g", *(("t", part) for part in range(4))).values()) == {-1001}
    assert log.of(ApiKey.OFFSET_COMMIT) == []
