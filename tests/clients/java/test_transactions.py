"""KafkaProducer's transactions: 3.9.1 by the first protocol, 4.3.1 by the second (KIP-890)."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.clients.java.steps import Steps
from tests.support.java_pipe import JavaError

pytestmark = pytest.mark.java

Json = dict[str, Any]


class Transactional:
    """A producer with a transactional id, initialised; the second of an id fences the first."""

    def __init__(self, java: Steps, transactional_id: str | None = None, **config: object) -> None:
        self.java = java
        self.id = transactional_id or java.unique("txn")
        self.client = java.producer(transactional_id=self.id, **config)
        self("initTransactions")

    def __call__(self, op: str, /, **item: Any) -> Any:
        return self.java(op, self.client, **item)

    def send(self, topic: str, *values: object, partition: int = 0) -> list[Json]:
        records = ({"value": str(v), "partition": partition} for v in values)
        return self.java.send(self.client, *records, topic=topic)

    def transact(self, topic: str, *values: object, end: str = "commit") -> list[Json]:
        """One transaction; what became of its records."""
        self("begin")
        sent = self.send(topic, *values)
        self(end)
        return sent

    def described(self) -> Json:
        described: Json = self.java.admin("describeTransactions", ids=[self.id])[self.id]
        return described

    def settle(self, state: str) -> Json:
        self.java.until(lambda: self.described()["state"] == state)
        return self.described()


@pytest.fixture
def p(java: Steps) -> Transactional:
    return Transactional(java)


def committed(java: Steps, topic: str, count: int) -> list[str]:
    """The first records that a read_committed consumer gets."""
    records = java.read_all(topic, count, isolation_level="read_committed")
    return [each["value"] for each in records]


def shows_nothing(java: Steps, topic: str) -> bool:
    """Whether a read_committed consumer comes to the end without a record."""
    consumer = java.consumer(isolation_level="read_committed")
    java("assign", consumer, partitions=[f"{topic}-0"])
    records = java.poll(consumer, 1, timeout_ms=1500)
    end = java("endOffsets", consumer, partitions=[f"{topic}-0"])[f"{topic}-0"]
    return not records and java("position", consumer, partition=f"{topic}-0") == end


def ends(java: Steps, topic: str) -> tuple[int, int]:
    """High watermark and last stable offset."""
    found = []
    for isolation in ("read_uncommitted", "read_committed"):
        consumer = java.consumer(isolation_level=isolation)
        found.append(java("endOffsets", consumer, partitions=[f"{topic}-0"])[f"{topic}-0"])
        java.close(consumer)
    return found[0], found[1]


def second_protocol(java: Steps) -> bool:
    return java.tour.version.startswith("4")


@pytest.mark.covers("S239", "S241")
def test_committed_records_arrive_and_aborted_ones_never_do(java: Steps, p: Transactional) -> None:
    topic = java.topic()
    p.transact(topic, "a", "b")
    p.transact(topic, "x", "y", "z", end="abort")
    p.transact(topic, "c")
    java.until(lambda: ends(java, topic) == (9, 9))
    assert committed(java, topic, 3) == ["a", "b", "c"]
    everything = [each["value"] for each in java.read_all(topic, 6)]
    assert everything == ["a", "b", "x", "y", "z", "c"]


@pytest.mark.covers("S16", "S17")
def test_transactions_of_one_record_step_by_two(java: Steps, p: Transactional) -> None:
    """The other offset is the marker's: the last record is at the end minus two."""
    topic = java.topic()
    offsets = [p.transact(topic, n)[0]["offset"] for n in range(5)]
    assert offsets == [0, 2, 4, 6, 8]
    java.until(lambda: ends(java, topic) == (10, 10))
    consumer = java.consumer(isolation_level="read_committed")
    java("assign", consumer, partitions=[f"{topic}-0"])
    java("seek", consumer, partition=f"{topic}-0", offset=9)
    assert java.poll(consumer, 1, timeout_ms=1000) == []
    java("seek", consumer, partition=f"{topic}-0", offset=8)
    assert [each["value"] for each in java.poll(consumer, 1)] == ["4"]


@pytest.mark.covers("S8", "S9", "S19", "S241", "S253")
def test_an_open_transaction_holds_back_what_is_behind_it(java: Steps, p: Transactional) -> None:
    topic = java.topic()
    java.fill(topic, range(5))
    p("begin")
    p.send(topic, 5, 6, 7)
    java.fill(topic, (8, 9))
    assert ends(java, topic) == (10, 5)
    assert committed(java, topic, 5) == ["0", "1", "2", "3", "4"]
    assert len(java.read_all(topic, 10)) == 10
    p("commit")
    java.until(lambda: ends(java, topic) == (11, 11))
    assert committed(java, topic, 10) == [str(n) for n in range(10)]


@pytest.mark.covers("S139")
def test_a_poll_may_be_empty_although_the_position_moves(java: Steps, p: Transactional) -> None:
    topic = java.topic()
    for n in range(5):
        p.transact(topic, n, end="abort")
    java.until(lambda: ends(java, topic) == (10, 10))
    consumer = java.consumer(isolation_level="read_committed")
    java("assign", consumer, partitions=[f"{topic}-0"])
    assert java.poll(consumer, 1, timeout_ms=1500) == []
    assert java("position", consumer, partition=f"{topic}-0") == 10


def test_each_end_raises_the_epoch_by_the_second_protocol_only(
    java: Steps, p: Transactional
) -> None:
    topic = java.topic()
    first = p.described()
    assert (first["state"], first["epoch"], first["startMs"]) == ("Empty", 0, None)
    for n in range(3):
        p.transact(topic, n, end="abort" if n == 1 else "commit")
    after = p.settle("CompleteCommit")
    assert after["epoch"] == (3 if second_protocol(java) else 0)
    assert after["producerId"] == first["producerId"]


@pytest.mark.covers("S254")
def test_administrators_see_an_open_transaction(java: Steps, p: Transactional) -> None:
    topic = java.topic(partitions=2)
    java.fill(topic, ["before"], partition=1)
    p("begin")
    p.send(topic, "open", partition=1)
    line = p.described()
    assert (line["state"], line["partitions"], line["timeoutMs"]) == (
        "Ongoing",
        [f"{topic}-1"],
        60_000,
    )
    assert abs(line["startMs"] - time.time() * 1000) < 60_000
    listed = java.admin("listTransactions", states=["Ongoing"])
    assert listed[p.id] == {"state": "Ongoing", "producerId": line["producerId"]}
    assert p.id not in java.admin("listTransactions", states=["Empty", "CompleteCommit"])
    states = java.admin("describeProducers", partitions=[f"{topic}-1"])[f"{topic}-1"]
    (state,) = [each for each in states if each["id"] == line["producerId"]]
    assert (state["txnStart"], state["lastSequence"]) == (1, 0)
    p("commit")
    p.settle("CompleteCommit")
    assert p.described()["partitions"] == []
    states = java.admin("describeProducers", partitions=[f"{topic}-1"])[f"{topic}-1"]
    (state,) = [each for each in states if each["id"] == line["producerId"]]
    assert (state["txnStart"], state["coordinatorEpoch"] is None) == (None, False)


@pytest.mark.covers("S238", "S245")
def test_a_second_producer_of_the_same_id_fences_the_first(java: Steps, p: Transactional) -> None:
    """What the first had open is aborted, and nothing it does counts any more."""
    topic = java.topic()
    p("begin")
    p.send(topic, "lost")
    q = Transactional(java, p.id)
    java.until(lambda: ends(java, topic) == (2, 2))
    with pytest.raises(JavaError, match=r"ProducerFenced|InvalidProducerEpoch"):
        p("commit")
    q.transact(topic, "kept")
    java.until(lambda: ends(java, topic) == (4, 4))
    assert committed(java, topic, 1) == ["kept"]


def test_administrators_can_fence_a_producer(java: Steps, p: Transactional) -> None:
    topic = java.topic()
    p.transact(topic, "before")
    java.admin("fenceProducers", ids=[p.id])
    p("begin")
    sent = p.send(topic, "after")
    assert "error" in sent[0]
    with pytest.raises(JavaError):
        p("commit")
    assert committed(java, topic, 1) == ["before"]


@pytest.mark.covers("S251")
def test_a_transaction_left_open_is_aborted(java: Steps) -> None:
    """After its timeout, at the coordinator's next scan."""
    topic = java.topic()
    p = Transactional(java, transaction_timeout_ms=2000)
    p("begin")
    p.send(topic, "late")
    java.until(lambda: ends(java, topic) == (2, 2))
    p.settle("CompleteAbort")
    with pytest.raises(JavaError):
        p("commit")
    q = Transactional(java, p.id)
    q.transact(topic, "next")
    java.until(lambda: ends(java, topic) == (4, 4))
    assert committed(java, topic, 1) == ["next"]


@pytest.mark.covers("S239", "S247")
def test_offsets_are_committed_with_the_records(java: Steps, p: Transactional) -> None:
    """consume, transform, produce: what was read and what came of it count together."""
    source, target, group = java.topic(), java.topic(), java.unique("group")
    java.fill(source, range(100))
    consumer = java.consumer(group, isolation_level="read_committed", max_poll_records=10)
    java("subscribe", consumer, topics=[source])
    done = 0
    while done < 100:
        records = java.poll(consumer, 1)
        p("begin")
        p.send(target, *(f"<{each['value']}>" for each in records))
        member = java("groupMetadata", consumer)
        p(
            "sendOffsets",
            offsets={f"{source}-0": records[-1]["offset"] + 1},
            group=group,
            **{name: value for name, value in member.items() if value is not None},
        )
        p("commit")
        done += len(records)
    assert committed(java, target, 100) == [f"<{n}>" for n in range(100)]
    java.until(lambda: java("committed", consumer, partitions=[f"{source}-0"]) is not None)
    found = java("committed", consumer, partitions=[f"{source}-0"])[f"{source}-0"]
    assert found["offset"] == 100


@pytest.mark.covers("S247")
def test_offsets_of_an_aborted_transaction_do_not_count(java: Steps, p: Transactional) -> None:
    source, group = java.topic(), java.unique("group")
    reader = java.consumer(group)
    for end, offset, expected in (("abort", 7, None), ("commit", 8, 8), ("abort", 9, 8)):
        p("begin")
        p("sendOffsets", offsets={f"{source}-0": offset}, group=group)
        p(end)
        found = java("committed", reader, partitions=[f"{source}-0"])[f"{source}-0"]
        assert (found and found["offset"]) == expected


@pytest.mark.covers("S249")
def test_a_member_of_an_old_generation_cannot_commit(java: Steps, p: Transactional) -> None:
    topic, group = java.topic(), java.unique("group")
    consumer = java.consumer(group)
    java("subscribe", consumer, topics=[topic])
    java.settle(consumer, partitions=1)
    member = java("groupMetadata", consumer)["member"]
    p("begin")
    p.send(topic, "lost")
    with pytest.raises(JavaError, match="CommitFailed"):
        p("sendOffsets", offsets={f"{topic}-0": 1}, group=group, generation=0, member=member)
    p("abort")
    java.until(lambda: ends(java, topic) == (2, 2))
    assert shows_nothing(java, topic)


@pytest.mark.covers("S248")
def test_who_cannot_send_offsets_aborts_and_reads_again(java: Steps, p: Transactional) -> None:
    """The results of the failed attempt never count: in the end each input has come out once."""
    source, target, group = java.topic(), java.topic(), java.unique("group")
    java.fill(source, range(10))
    consumer = java.consumer(group, isolation_level="read_committed", max_poll_records=5)
    java("subscribe", consumer, topics=[source])
    done, refused = 0, False
    while done < 10:
        records = java.poll(consumer, 1)
        p("begin")
        p.send(target, *(f"<{each['value']}>" for each in records))
        member = java("groupMetadata", consumer)
        attempt = {"offsets": {f"{source}-0": records[-1]["offset"] + 1}, "group": group}
        if done and not refused:
            refused = True
            stale = attempt | {"member": member["member"], "generation": member["generation"] - 1}
            with pytest.raises(JavaError, match="CommitFailed"):
                p("sendOffsets", **stale)
            p("abort")
            java("seek", consumer, partition=f"{source}-0", offset=done)
            continue
        p("sendOffsets", **attempt, generation=member["generation"], member=member["member"])
        p("commit")
        done += len(records)
    assert refused
    assert committed(java, target, 10) == [f"<{n}>" for n in range(10)]
    found = java("committed", consumer, partitions=[f"{source}-0"])[f"{source}-0"]
    assert found["offset"] == 10


def test_a_transaction_that_hangs_is_ended_by_an_administrator(
    java: Steps, p: Transactional
) -> None:
    """A partition cannot tell a transaction that hangs from one that is open."""
    topic = java.topic()
    p("begin")
    p.send(topic, "hangs")
    (state,) = java.admin("describeProducers", partitions=[f"{topic}-0"])[f"{topic}-0"]
    java.admin(
        "abortTransaction",
        partition=f"{topic}-0",
        producerId=state["id"],
        epoch=state["epoch"],
        coordinatorEpoch=0,
    )
    java.until(lambda: ends(java, topic) == (2, 2))
    assert shows_nothing(java, topic)


def test_many_partitions_are_committed_together(java: Steps, p: Transactional) -> None:
    topics = [java.topic(partitions=2) for _ in range(2)]
    for end in ("abort", "commit"):
        p("begin")
        for topic in topics:
            for partition in range(2):
                p.send(topic, f"{end} {partition}", partition=partition)
        p(end)
    p.settle("CompleteCommit")
    for topic in topics:
        read = java.read_all(topic, 2, partitions=2, isolation_level="read_committed")
        assert sorted(each["value"] for each in read) == ["commit 0", "commit 1"]


def test_a_hundred_transactions_in_a_row(java: Steps, p: Transactional) -> None:
    """The next one begins while the markers of the one before are on their way."""
    topic = java.topic()
    for n in range(100):
        p.transact(topic, n, end="abort" if n % 3 == 0 else "commit")
    p.settle("CompleteAbort")
    assert committed(java, topic, 66) == [str(n) for n in range(100) if n % 3]


def test_the_protocol_follows_the_feature_while_producers_run(java: Steps) -> None:
    """transaction.version 1 and back to 2: by the next transactions the epochs rise no more."""
    topic = java.topic()
    p = Transactional(java)
    epochs = []
    try:
        for level in (2, 1, 2):
            java.admin("updateFeatures", levels={"transaction.version": level})
            p = Transactional(java)
            for n in range(2):
                p.transact(topic, n)
            epochs.append(p.settle("CompleteCommit")["epoch"])
    finally:
        java.admin("updateFeatures", levels={"transaction.version": 2})
    assert epochs == ([2, 0, 2] if second_protocol(java) else [0, 0, 0])
