"""The deliveries to real consumers, as rows."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaPythonPartition

from mockbroker import Cluster
from tests.pipeline.convert.support import Tables, seen, tables_of
from tests.support.kafka_python import poll
from tests.support.librdkafka import TIMEOUT_S, produce, settings
from tests.support.waiting import wait_until


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    with Cluster(brokers=2, topics={"t": 3}) as cluster:
        yield cluster


def send(kafka: Cluster, *values: str, partition: int = 0) -> None:
    """All in one batch."""
    produce(kafka.bootstrap_servers, "t", values, partition)


def reader(kafka: Cluster, **config: object) -> Consumer:
    defaults = {"client_id": "reader", "group_id": "g", "auto_offset_reset": "earliest"}
    return Consumer(settings(kafka.bootstrap_servers, **{**defaults, **config}))


def consumed(consumer: Consumer, count: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []

    def enough() -> bool:
        found.extend(seen(consumer.consume(100, 0.05)))
        return len(found) >= count

    wait_until(enough)
    return found


def by_partition(found: list[tuple[int, int]]) -> dict[int, list[int]]:
    offsets: dict[int, list[int]] = {}
    for partition, offset in found:
        offsets.setdefault(partition, []).append(offset)
    return offsets


def transactions(kafka: Cluster, ends: str, records: int = 3) -> None:
    """Transactions on partition 0: `c` is one that commits, `a` one that aborts."""
    producer = Producer(settings(kafka.bootstrap_servers, transactional_id="x"))
    producer.init_transactions(TIMEOUT_S)
    for end in ends:
        producer.begin_transaction()
        for number in range(records):
            producer.produce("t", f"{end}{number}", partition=0)
        assert producer.flush(TIMEOUT_S) == 0
        (producer.commit_transaction if end == "c" else producer.abort_transaction)(TIMEOUT_S)
    done = {"c": "CompleteCommit", "a": "CompleteAbort"}
    for end in set(ends):
        kafka.journal.wait(kind="transaction", state=done[end], count=ends.count(end))


def assert_one_read_span(tables: Tables, client_id: str) -> None:
    """Each fetch of a read span asks for what is behind the one before."""
    expected: dict[int, int] = {}
    for row in sorted(tables.rows("fetches", client_id=client_id), key=lambda r: r["response_seq"]):
        number = row["read_span"]
        assert (row["start"] is not None) == (number not in expected)
        assert row["fetch_offset"] == expected.get(number, row["fetch_offset"])
        if row["error"] is None:
            expected[number] = row["next_offset"]


@pytest.mark.covers("S337")
@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_deliveries_are_what_the_consumer_got(kafka, isolation):
    transactions(kafka, "cacaac")
    send(kafka, *map(str, range(20)), partition=1)
    count = 9 if isolation == "read_committed" else 18
    consumer = reader(kafka, isolation_level=isolation)
    consumer.subscribe(["t"])
    found = consumed(consumer, count + 20)
    consumer.close()
    tables = tables_of(kafka)
    assert tables.delivered("reader", "t") == by_partition(found)
    assert len(found) == count + 20
    level = {"read_uncommitted": 0, "read_committed": 1}[isolation]
    assert {row["isolation_level"] for row in tables.rows("fetches")} == {level}
    assert_one_read_span(tables, "reader")
    values = {(r["partition"], r["offset"]): r["value_hash"] for r in tables.rows("records")}
    for row in tables.rows("deliveries"):
        assert row["value_hash"] == values[row["partition"], row["offset"]]
    last = max(tables.rows("fetches", partition=0), key=lambda row: row["response_seq"])
    assert last["next_offset"] == 24  # behind the last marker
    assert last["last_stable_offset"] == last["high_watermark"] == 24


def test_the_deliveries_of_a_read_from_the_middle_of_a_batch_begin_there(kafka):
    send(kafka, *map(str, range(50)))
    consumer = reader(kafka, group_id="alone")
    consumer.assign([TopicPartition("t", 0, 17)])
    consumed(consumer, 33)
    consumer.close()
    tables = tables_of(kafka)
    assert tables.delivered("reader", "t") == {0: list(range(17, 50))}
    assert {row["group"] for row in tables.rows("fetches")} == {None}


def test_partitions_that_an_incremental_fetch_does_not_name_are_followed(kafka):
    consumer = KafkaConsumer(
        bootstrap_servers=kafka.bootstrap_servers,
        client_id="py",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        fetch_max_wait_ms=50,
    )
    places = [KafkaPythonPartition("t", number) for number in range(3)]
    consumer.assign(places)
    got: dict[int, list[int]] = {}
    for turn in range(6):
        send(kafka, f"turn {turn}", partition=turn % 3)
        for record in poll(consumer, 1):
            got.setdefault(record.partition, []).append(record.offset)
    consumer.close()
    tables = tables_of(kafka)
    assert got == {number: [0, 1] for number in range(3)}
    assert tables.delivered("py", "t") == got
    assert_one_read_span(tables, "py")
    assert {row["start"] for row in tables.rows("fetches")} <= {None, "connection", "reset"}


def test_a_seek_begins_another_read_span(kafka):
    send(kafka, *map(str, range(10)))
    consumer = reader(kafka, group_id="alone", fetch_wait_max_ms=10)
    consumer.assign([TopicPartition("t", 0, 0)])
    consumed(consumer, 10)
    consumer.seek(TopicPartition("t", 0, 4))
    consumed(consumer, 6)
    consumer.close()
    tables = tables_of(kafka)
    starts = [row["start"] for row in tables.rows("fetches") if row["start"]]
    assert starts[0] == "connection"
    assert "jump" in starts[1:] or "reset" in starts[1:]
    assert tables.delivered("reader", "t")[0] == [*range(10), *range(4, 10)]


@pytest.mark.covers("S306")
def test_a_rebalance_is_told_and_begins_other_read_spans(kafka):
    for partition in range(3):
        send(kafka, *map(str, range(5)), partition=partition)
    first = reader(kafka, client_id="first", fetch_wait_max_ms=10)
    first.subscribe(["t"])
    consumed(first, 15)
    second = reader(kafka, client_id="second", fetch_wait_max_ms=10)
    second.subscribe(["t"])

    def shared() -> bool:
        first.poll(0.05)
        second.poll(0.05)
        return bool(first.assignment()) and bool(second.assignment())

    wait_until(shared)
    for partition in range(3):
        send(kafka, "more", partition=partition)
    more: list[tuple[int, int]] = []

    def all_there() -> bool:
        more.extend(seen(first.consume(10, 0.05)))
        more.extend(seen(second.consume(10, 0.05)))
        return {(partition, 5) for partition in range(3)} <= set(more)

    wait_until(all_there)
    held = {"first": first.assignment(), "second": second.assignment()}
    first.close()
    second.close()
    tables = tables_of(kafka)
    generation = max(row["generation"] for row in tables.rows("assignments"))
    given: dict[str, set[int]] = {"first": set(), "second": set()}
    for row in tables.rows("assignments", group="g", generation=generation):
        given[row["client_id"]].add(row["partition"])
    if any(given.values()):
        wanted = {name: {each.partition for each in places} for name, places in held.items()}
        assert given == wanted
    states = [row["state"] for row in tables.rows("groups", group="g")]
    assert states.count("Stable") >= 2
    assert {row["protocol"] for row in tables.rows("groups")} == {"classic"}
    members = {row["member"]: row["client_id"] for row in tables.rows("assignments")}
    for row in tables.rows("fetches"):
        if row["member"] is not None:
            assert (row["group"], members[row["member"]]) == ("g", row["client_id"])
    assert any(row["member"] for row in tables.rows("fetches", client_id="second"))
    assert any(row["start"] == "rebalance" for row in tables.rows("fetches", client_id="first"))


def test_members_of_the_new_protocol_are_told_alike(kafka):
    send(kafka, *map(str, range(5)))
    consumer = reader(kafka, group_protocol="consumer")
    consumer.subscribe(["t"])
    consumed(consumer, 5)
    consumer.commit(asynchronous=False)
    consumer.close()
    tables = tables_of(kafka)
    assert {row["protocol"] for row in tables.rows("groups")} == {"consumer"}
    assert {row["partition"] for row in tables.rows("assignments", client_id="reader")} == {0, 1, 2}
    [brought] = [row for row in tables.rows("fetches") if row["delivered"]]
    assert brought["group"] == "g"
    assert brought["member"] == tables.rows("assignments")[0]["member"]
    commit = tables.rows("commits", partition=0)[-1]
    assert (commit["offset"], commit["reset"]) == (5, False)
    assert commit["member"] == brought["member"]


def test_aiokafka_is_told_alike(kafka):
    async def read() -> list[tuple[int, int]]:
        consumer = AIOKafkaConsumer(
            "t",
            bootstrap_servers=kafka.bootstrap_servers,
            client_id="aio",
            group_id="aio",
            auto_offset_reset="earliest",
        )
        await consumer.start()
        try:
            return [
                (each.partition, each.offset)
                for each in [await consumer.getone() for _ in range(9)]
            ]
        finally:
            await consumer.stop()

    for partition in range(3):
        send(kafka, *map(str, range(3)), partition=partition)
    found = asyncio.run(asyncio.wait_for(read(), TIMEOUT_S))
    tables = tables_of(kafka)
    assert tables.delivered("aio", "t") == by_partition(found)
    assert_one_read_span(tables, "aio")
    assert {row["group"] for row in tables.rows("fetches") if row["delivered"]} == {"aio"}


def test_commits_are_told_and_so_is_who_resets_them(kafka):
    send(kafka, *map(str, range(5)))
    consumer = reader(kafka, enable_auto_commit=False)
    consumer.subscribe(["t"])
    consumed(consumer, 5)
    consumer.commit(asynchronous=False)
    consumer.close()
    outsider = reader(kafka, client_id="outsider")
    outsider.commit(offsets=[TopicPartition("t", 0, 2)], asynchronous=False)
    outsider.close()
    tables = tables_of(kafka)
    by_member = [r for r in tables.rows("commits", partition=0) if r["client_id"] == "reader"]
    [last] = by_member[-1:]
    assert (last["offset"], last["applied"], last["reset"], last["error"]) == (5, True, False, None)
    assert last["member"].startswith("reader-")
    assert last["generation"] is not None
    [reset] = tables.rows("commits", client_id="outsider")
    assert (reset["offset"], reset["applied"], reset["reset"]) == (2, True, True)
    assert (reset["member"], reset["generation"]) == (None, None)


@pytest.mark.parametrize(
    "effect",
    [
        {"error_after": "INVALID_COMMIT_OFFSET_SIZE"},
        {"close": {"phase": "after"}},
        {"drop_reply": {"then": "close"}},
    ],
)
def test_a_commit_that_the_coordinator_took_is_told_whatever_became_of_the_answer(kafka, effect):
    kafka.faults.add(match={"api": "OffsetCommit"}, when={"times": 1}, do=effect)
    consumer = reader(kafka, enable_auto_commit=False)
    with contextlib.suppress(KafkaException):
        consumer.commit(offsets=[TopicPartition("t", 1, 7)], asynchronous=False)
    consumer.close()
    first = kafka.journal.events(kind="commit", group="g")[0]
    assert (first.topic, first.partition, first.offset) == ("t", 1, 7)
    assert (first.client_id, first.api) == ("reader", "OffsetCommit")
    [row] = tables_of(kafka).rows("commits", seq=first.request_seq)
    assert (row["offset"], row["applied"]) == (7, True)


def test_a_commit_that_a_rule_refuses_is_not_applied(kafka):
    kafka.faults.add(match={"api": "OffsetCommit"}, do={"error": "INVALID_COMMIT_OFFSET_SIZE"})
    consumer = reader(kafka, enable_auto_commit=False)
    with pytest.raises(KafkaException):
        consumer.commit(offsets=[TopicPartition("t", 1, 7)], asynchronous=False)
    consumer.close()
    assert kafka.journal.events(kind="commit") == []
    assert {row["applied"] for row in tables_of(kafka).rows("commits")} == {False}


def test_offsets_that_expire_or_are_deleted_give_rows(kafka):
    consumer = reader(kafka, enable_auto_commit=False)
    for partition in range(3):
        consumer.commit(offsets=[TopicPartition("t", partition, 7)], asynchronous=False)
    consumer.close()
    kafka.clock.advance("8d")
    removed = kafka.journal.wait(3, kind="offset_removed", group="g", reason="retention")
    rows = [row for row in tables_of(kafka).rows("commits", group="g") if row["offset"] is None]
    assert {(row["partition"], row["seq"]) for row in rows} == {
        (event.partition, event.seq) for event in removed
    }
    assert all(row["applied"] and row["reset"] for row in rows)


@pytest.mark.parametrize("state", ["CompleteCommit", "CompleteAbort", "Ongoing"])
def test_offsets_sent_to_a_transaction_count_when_it_commits(kafka, state):
    committed = state == "CompleteCommit"
    send(kafka, "a", "b")
    consumer = reader(kafka, enable_auto_commit=False)
    consumer.subscribe(["t"])
    consumed(consumer, 2)
    producer = Producer(settings(kafka.bootstrap_servers, transactional_id="x", client_id="eos"))
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    producer.send_offsets_to_transaction(
        [TopicPartition("t", 0, 2)], consumer.consumer_group_metadata(), TIMEOUT_S
    )
    if state != "Ongoing":
        (producer.commit_transaction if committed else producer.abort_transaction)(TIMEOUT_S)
    kafka.journal.wait(kind="transaction", state=state)
    consumer.close()
    [row] = tables_of(kafka).rows("commits", client_id="eos")
    assert (row["offset"], row["applied"]) == (2, committed)
    assert row["transaction"].endswith("/1")


@pytest.mark.covers("S267")
@pytest.mark.parametrize(
    ("effect", "offsets"),
    [
        ({"hide_records": {"offsets": [1, 3]}}, [0, 2, 4]),
        ({"duplicate_records": {"times": 2}}, [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]),
    ],
)
def test_deliveries_show_what_a_rule_made_of_an_answer(kafka, effect, offsets):
    send(kafka, *map(str, range(5)))
    kafka.faults.add(name="liar", match={"api": "Fetch", "topic": "t"}, do=effect)
    consumer = reader(kafka, group_id="alone", check_crcs=False)
    consumer.assign([TopicPartition("t", 0, 0)])
    consumed(consumer, 3)
    consumer.close()
    tables = tables_of(kafka)
    answer = next(row for row in tables.rows("fetches") if row["delivered"])
    assert answer["rules"] == ["liar"]
    brought = [
        row["offset"] for row in tables.rows("deliveries", response_seq=answer["response_seq"])
    ]
    assert brought == offsets
    assert answer["next_offset"] == 5


def test_a_dropped_answer_brought_nothing(kafka):
    send(kafka, *map(str, range(5)))
    kafka.faults.add(
        match={"api": "Fetch"}, when={"times": 1}, do={"drop_reply": {"then": "close"}}
    )
    consumer = reader(kafka, group_id="alone")
    consumer.assign([TopicPartition("t", 0, 0)])
    consumed(consumer, 5)
    consumer.close()
    tables = tables_of(kafka)
    assert tables.delivered("reader", "t") == {0: list(range(5))}
    dropped = [row for row in tables.rows("requests", api="Fetch") if row["outcome"]]
    assert dropped[0]["outcome"] == "answer dropped"


def test_a_watermark_never_goes_back_by_itself(kafka):
    """Whatever overlaps: parked fetches are answered behind others that were told more."""
    consumers = [reader(kafka, client_id=f"c{n}", group_id=f"g{n}") for n in range(3)]
    for consumer in consumers:
        consumer.assign([TopicPartition("t", 0, 0)])
    producer = Producer(settings(kafka.bootstrap_servers, linger_ms=0))
    for number in range(200):
        producer.produce("t", str(number), partition=0)
        producer.poll(0)
    assert producer.flush(TIMEOUT_S) == 0
    for consumer in consumers:
        consumed(consumer, 200)
        consumer.close()
    marks: dict[tuple[int, int], int] = {}
    rows = tables_of(kafka).rows("watermarks", partition=0)
    for row in sorted(rows, key=lambda row: row["seq"]):
        if row["high_watermark"] is not None and row["leader_epoch"] is not None:
            key = (row["broker"], row["leader_epoch"])
            assert row["high_watermark"] >= marks.get(key, 0)
            marks[key] = row["high_watermark"]
    assert marks


def test_requests_are_told_with_the_listener_that_they_came_by(kafka):
    """In the journal and in the tables, where it is among the columns."""
    Producer(settings(kafka.bootstrap_servers)).list_topics(timeout=TIMEOUT_S)
    [name] = {event.listener for event in kafka.journal.events(kind="request")}
    assert kafka.journal.events(kind="request", listener="no such name") == []
    assert name == "PLAINTEXT"
    assert {row["listener"] for row in tables_of(kafka).rows("requests")} == {name}


def test_the_journal_and_the_tables_tell_the_same_deliveries(kafka):
    """Also of transactions: what was aborted is delivered to those who want it uncommitted."""
    transactions(kafka, "aca")
    for isolation, count in (("read_committed", 3), ("read_uncommitted", 9)):
        consumer = reader(kafka, client_id=isolation, group_id=isolation, isolation_level=isolation)
        consumer.assign([TopicPartition("t", 0, 0)])
        consumed(consumer, count)
        consumer.close()
    tables = tables_of(kafka)
    for isolation, count in (("read_committed", 3), ("read_uncommitted", 9)):
        told = kafka.journal.events(kind="deliver", client_id=isolation)
        assert sum(event.records for event in told) == count
        assert len(tables.delivered(isolation, "t")[0]) == count
