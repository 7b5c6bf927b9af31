"""Produce: what is appended, what is refused, and what is not answered at all."""

from __future__ import annotations

import struct

from mockbroker_protocol.messages.init_producer_id import InitProducerIdRequest
from mockbroker_protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from mockbroker_protocol.records import Record, build_batch, update_crc
from tests.differential.dialogue import (
    TIMESTAMP_MS,
    batch,
    list_offsets,
    make_topic,
    produce_request,
    wait_for_leaders,
)
from tests.differential.registry import case
from tests.differential.session import Session

NOW_FAR_AHEAD_MS = 7_000_000_000_000


def latest(session: Session, topic: str) -> None:
    """Record how long the log has become."""
    session.ask(list_offsets(topic, -1), 7, label="log end")


@case()
def produce_every_version(session: Session) -> None:
    topic = make_topic(session)
    for version in range(3, 13):
        for acks in (-1, 1):
            session.ask(produce_request(topic, batch([b"a", b"b"]), acks=acks), version)
    topic_id = wait_for_leaders(session, topic)
    data = TopicProduceData(
        topic_id=topic_id, partition_data=[PartitionProduceData(index=0, records=batch())]
    )
    session.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data]), 13)
    data = TopicProduceData(
        topic_id=b"\x01" * 16, partition_data=[PartitionProduceData(index=0, records=batch())]
    )
    session.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data]), 13, label="no id")
    latest(session, topic)


@case()
def produce_acks_zero(session: Session) -> None:
    topic = make_topic(session)
    session.no_answer(produce_request(topic, batch(), acks=0), 9, label="appended")
    session.no_answer(produce_request("missing", batch(), acks=0), 9, label="unknown topic")
    session.no_answer(produce_request(topic, batch(), acks=0, partition=9), 9, label="partition")
    latest(session, topic)


@case()
def produce_refusals(session: Session) -> None:
    topic = make_topic(session)
    good = batch()
    for version in (3, 7, 8, 9, 12):
        session.ask(produce_request("no-such-topic", good), version, label="unknown topic")
        session.ask(produce_request(topic, good, partition=3), version, label="unknown partition")
        session.ask(produce_request("bad name!", good), version, label="bad name")
        session.ask(produce_request(topic, good, acks=2), version, label="acks 2")
        session.ask(produce_request(topic, good, acks=-2), version, label="acks -2")
        session.ask(produce_request(topic, b""), version, label="no batch")
        session.ask(produce_request(topic, good[:40]), version, label="cut header")
        session.ask(produce_request(topic, good[:-1]), version, label="cut batch")
        session.ask(produce_request(topic, good + batch()), version, label="two batches")
        session.ask(produce_request(topic, good + b"\0" * 5), version, label="bytes behind")
        session.ask(produce_request(topic, good + b"\0" * 30), version, label="more behind")
        session.ask(produce_request(topic, flipped(good, len(good) - 1)), version, label="crc")
        session.ask(
            produce_request(
                topic, batch(transactional=True, producer_id=5, producer_epoch=0, base_sequence=0)
            ),
            version,
            label="transactional without an id",
        )
        session.ask(produce_request(topic, batch(control=True)), version, label="control batch")
    latest(session, topic)


def flipped(data: bytearray, at: int) -> bytearray:
    changed = bytearray(data)
    changed[at] ^= 1
    return changed


def patched(data: bytearray, at: int, form: str, value: int, *, crc: bool = True) -> bytearray:
    """The batch with one header field replaced, and a checksum that fits."""
    changed = bytearray(data)
    struct.pack_into(form, changed, at, value)
    if crc:
        update_crc(changed)
    return changed


@case()
def produce_broken_headers(session: Session) -> None:
    topic = make_topic(session)
    good = batch([b"a", b"b", b"c"])
    for label, data in {
        "base offset 7": patched(good, 0, ">q", 7),
        "base offset -1": patched(good, 0, ">q", -1),
        "batch length 0": patched(good, 8, ">i", 0, crc=False),
        "batch length negative": patched(good, 8, ">i", -5, crc=False),
        "batch length too long": patched(good, 8, ">i", 10_000, crc=False),
        "magic 0": patched(good, 16, ">b", 0, crc=False),
        "magic 1": patched(good, 16, ">b", 1, crc=False),
        "magic 3": patched(good, 16, ">b", 3, crc=False),
        "codec 5": patched(good, 21, ">h", 5),
        "codec 7": patched(good, 21, ">h", 7),
        "unused attribute bits": patched(good, 21, ">h", 0x700),
        "last offset delta 1": patched(good, 23, ">i", 1),
        "last offset delta -1": patched(good, 23, ">i", -1),
        "last offset delta 9": patched(good, 23, ">i", 9),
        "count 0": patched(good, 57, ">i", 0),
        "count -1": patched(good, 57, ">i", -1),
        "count 2": patched(good, 57, ">i", 2),
        "count 4 of 3": patched(patched(good, 57, ">i", 4), 23, ">i", 3),
        "max timestamp wrong": patched(good, 35, ">q", TIMESTAMP_MS + 500),
        "producer id without sequence": patched(good, 43, ">q", 77),
        "gzip that is none": patched(good, 21, ">h", 1),
        "snappy that is none": patched(good, 21, ">h", 2),
        "lz4 that is none": patched(good, 21, ">h", 3),
        "zstd that is none": patched(good, 21, ">h", 4),
        "leader epoch 9": patched(good, 12, ">i", 9, crc=False),
    }.items():
        for version in (3, 9):
            session.ask(produce_request(topic, data), version, label=label)
    latest(session, topic)


@case()
def produce_null_records_hang(session: Session) -> None:
    topic = make_topic(session)
    session.no_answer(produce_request(topic, None), 9, label="null records")
    latest(session, topic)


@case()
def produce_zstd_by_version(session: Session) -> None:
    topic = make_topic(session)
    for version in (3, 6, 7, 9):
        session.ask(produce_request(topic, batch(codec=4)), version)
    latest(session, topic)


@case()
def produce_to_internal_topics(session: Session) -> None:
    make_topic(session)
    for topic in ("__consumer_offsets", "__transaction_state"):
        session.ask(produce_request(topic, batch()), 9)


@case()
def produce_size_limits(session: Session) -> None:
    topic = make_topic(session, configs={"max.message.bytes": "200"})
    for size in (90, 100, 120, 129, 130, 131, 132, 140, 500):
        session.ask(produce_request(topic, batch([b"x" * size])), 9, label=f"{size}")
    latest(session, topic)


@case()
def produce_timestamps(session: Session) -> None:
    created = make_topic(session, "-create", configs={"message.timestamp.before.max.ms": "1000"})
    append = make_topic(session, "-append", configs={"message.timestamp.type": "LogAppendTime"})
    plain = make_topic(session, "-plain")
    for label, times in {
        "old": [TIMESTAMP_MS],
        "none": [-1],
        "mixed": [-1, TIMESTAMP_MS, NOW_FAR_AHEAD_MS],
        "ahead": [NOW_FAR_AHEAD_MS],
        "negative": [-5],
    }.items():
        data = build_batch([Record(0, at, b"k", b"v", ()) for at in times])
        for topic in (created, append, plain):
            for version in (7, 9):
                session.ask(produce_request(topic, data), version, label=label)
        stamped = patched(data, 21, ">h", 8)
        session.ask(produce_request(plain, stamped), 9, label=f"{label} LogAppendTime bit")
    for topic in (created, append, plain):
        latest(session, topic)


@case()
def produce_compacted_null_key(session: Session) -> None:
    topic = make_topic(session, configs={"cleanup.policy": "compact"})
    records = [Record(0, TIMESTAMP_MS, key, b"v", ()) for key in (b"a", None, b"c", None)]
    for codec in (0, 1, 4):
        for version in (7, 8, 9):
            data = build_batch(records, codec=codec)
            session.ask(produce_request(topic, data), version)
    session.ask(produce_request(topic, build_batch(records[:1])), 9, label="good")
    latest(session, topic)


@case()
def produce_min_insync(session: Session) -> None:
    topic = make_topic(session, configs={"min.insync.replicas": "2"})
    for acks in (-1, 1):
        session.ask(produce_request(topic, batch(), acks=acks), 9, label="capped by replicas")


@case()
def produce_idempotent(session: Session) -> None:
    topic = make_topic(session)
    answer = session.until(
        InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=2**31 - 1),
        4,
        lambda response: response.error_code == 0,
    )

    def send(sequence: int, count: int, label: str, epoch: int = 0, version: int = 9) -> None:
        data = batch(
            [b"v"] * count,
            producer_id=answer.producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
        session.ask(produce_request(topic, data), version, label=label)

    send(5, 1, "a first batch may start anywhere")
    send(6, 2, "next")
    send(6, 2, "duplicate")
    send(5, 1, "older duplicate")
    send(7, 1, "part of a duplicate")
    send(9, 1, "gap")
    for n in range(6):
        send(8 + n, 1, f"fill {n}")
    send(6, 2, "beyond the window")
    send(8, 1, "just beyond the window")
    send(9, 1, "oldest in the window")
    send(3, 1, "epoch 1 not from 0", epoch=1)
    send(0, 1, "epoch 1 from 0", epoch=1)
    send(14, 1, "old epoch", epoch=0)
    send(1, 1, "epoch 1 on", epoch=1)
    send(0, 1, "epoch 9 from 0", epoch=9)
    latest(session, topic)


@case()
def produce_sequence_wraps(session: Session) -> None:
    topic = make_topic(session)
    for sequence, count in ((2**31 - 2, 2), (0, 1), (1, 1)):
        data = batch([b"v"] * count, producer_id=99, producer_epoch=0, base_sequence=sequence)
        session.ask(produce_request(topic, data), 9, label=f"{sequence}")
    data = batch([b"v"] * 4, producer_id=98, producer_epoch=0, base_sequence=2**31 - 2)
    session.ask(produce_request(topic, data), 9, label="straddles")
    data = batch([b"v"], producer_id=98, producer_epoch=0, base_sequence=2)
    session.ask(produce_request(topic, data), 9, label="after the wrap")


@case()
def produce_several_partitions(session: Session) -> None:
    topic = make_topic(session, partitions=3)
    good, bad = batch(), flipped(batch(), 66)
    data = [
        PartitionProduceData(index=index, records=records)
        for index, records in ((0, good), (1, bad), (2, batch([b"z"])), (7, batch()))
    ]
    topics = [TopicProduceData(name=topic, partition_data=data)]
    topics.append(
        TopicProduceData(
            name="nowhere", partition_data=[PartitionProduceData(index=0, records=batch())]
        )
    )
    session.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics), 9)
    session.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[]), 9, label="empty")


@case()
def init_producer_id(session: Session) -> None:
    for version in range(6):
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
        session.until(request, version, lambda response: response.error_code == 0)
    request = InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=-5, producer_id=7, producer_epoch=3
    )
    session.ask(request, 4, label="an id is given")
    session.ask(
        InitProducerIdRequest(transactional_id="", transaction_timeout_ms=5), 4, label="empty id"
    )
