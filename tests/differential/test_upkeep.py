"""Retention and compaction leave the same log as the real broker's do.

The peers look at their logs several times a second here, so these are clusters of their own. What
is to happen at one go is held back by a config until everything is written.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from mockbroker import Cluster
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from mockbroker_protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from mockbroker_protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from mockbroker_protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from mockbroker_protocol.records import BatchHeader, Record, build_batch, split_batches
from tests.differential.dialogue import TIMESTAMP_MS, list_offsets, make_topic, produce_request
from tests.differential.registry import Case
from tests.differential.session import Exchange, Session
from tests.differential.test_differential import check_alike
from tests.differential.transacting import TV1, TV2, Producer, producer, producers, read
from tests.support.real_kafka import RealKafka

pytestmark = [pytest.mark.real_kafka, pytest.mark.java, pytest.mark.xdist_group("real_kafka")]

CONFIGS = {
    "log.cleaner.backoff.ms": "100",
    "log.initial.task.delay.ms": "0",
    "log.retention.check.interval.ms": "100",
}
NEVER_OLD_MS = 4_000_000_000_000
TOPIC = 2  # the resource type
QUESTIONS_MAX = 50_000  # each takes a part of a millisecond or more
SEGMENT = {"segment.ms": "1000", "message.timestamp.after.max.ms": str(2**63 - 1)}
KEEP = {"retention.ms": "-1", **SEGMENT}
NOT_YET = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1", **SEGMENT}


@pytest.fixture(scope="module")
def real() -> Iterator[tuple[str, int]]:
    with RealKafka(configs=CONFIGS) as kafka:
        yield kafka.addresses[1]


@pytest.fixture(scope="module")
def ours() -> Iterator[Cluster]:
    with Cluster(brokers=1, configs=CONFIGS) as kafka:
        yield kafka


# -- phrases ---------------------------------------------------------------------------------------


def alter(session: Session, topic: str, **configs: str) -> None:
    """Set configs of the topic; `a_b="1"` means a.b."""
    changes = [AlterableConfig(key.replace("_", "."), 0, value) for key, value in configs.items()]
    resource = AlterConfigsResource(TOPIC, topic, changes)
    answer = session.quietly(IncrementalAlterConfigsRequest([resource]), 1)
    assert answer.responses[0].error_code == ErrorCode.NONE


def write(
    session: Session,
    topic: str,
    *records: tuple[bytes | None, bytes | None],
    at_ms: int = TIMESTAMP_MS,
    **options: object,
) -> None:
    """Append one batch."""
    full = [Record(0, at_ms + index, key, value) for index, (key, value) in enumerate(records)]
    batch = build_batch(full, **options)  # type: ignore[arg-type]
    answer = session.quietly(produce_request(topic, batch), 9)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE


def offset(session: Session, topic: str, timestamp: int) -> int:
    answer = session.quietly(list_offsets(topic, timestamp), 7)
    found: int = answer.topics[0].partitions[0].offset
    return found


def fetch(topic: str, offset: int) -> FetchRequest:
    wanted = FetchPartition(fetch_offset=offset, partition_max_bytes=1 << 25)
    return FetchRequest(max_bytes=1 << 25, topics=[FetchTopic(topic, partitions=[wanted])])


def wait(condition: Callable[[], bool]) -> None:
    """Ask until it holds."""
    for _ in range(QUESTIONS_MAX):
        if condition():
            return
    raise AssertionError("the peer did not get there")


def first_batch(answer: Any) -> Any:
    """A fetch answer without the batches that the real broker may leave for the next one, and their
    aborted transactions: it reads one segment at a time, and how segments are joined depends on how
    many rounds the cleaner has made.
    """
    partition = answer.responses[0].partitions[0]
    for header, batch in split_batches(partition.records):
        partition.records = bytes(batch)
        partition.aborted_transactions = [
            each
            for each in partition.aborted_transactions or ()
            if each.first_offset < header.next_offset
        ]
        break
    return answer


def batches(session: Session, topic: str) -> Iterator[BatchHeader]:
    """Every batch of a log, by as many fetches as it takes."""
    at, end = offset(session, topic, -2), offset(session, topic, -1)
    while at < end:
        answer = session.quietly(fetch(topic, at), 12).responses[0].partitions[0]
        for header, _ in split_batches(answer.records):
            yield header
            at = header.next_offset


def base_at(session: Session, topic: str, offset: int) -> int:
    """The base offset of the batch that a fetch begins with."""
    answer = session.quietly(fetch(topic, offset), 12).responses[0].partitions[0]
    return next(split_batches(answer.records))[0].base_offset


def show_log(session: Session, topic: str) -> None:
    """Record all that clients can find out about a log."""
    end = offset(session, topic, -1)
    for timestamp in (-1, -2, -3, -4):
        session.ask(list_offsets(topic, timestamp), 8, label=f"special {timestamp}")
    for epoch in (0, 1):
        asked = OffsetForLeaderTopic(
            topic, [OffsetForLeaderPartition(partition=0, leader_epoch=epoch)]
        )
        session.ask(OffsetForLeaderEpochRequest(-1, [asked]), 4, label=f"epoch {epoch}")
    for at in range(end + 2):
        session.ask(fetch(topic, at), 12, label=f"fetch {at}", edit=first_batch)
    shapes = [_shape(header) for header in batches(session, topic)]
    session.exchanges.append(Exchange("shapes", ApiKey.FETCH, 12, shapes))


def _shape(header: BatchHeader) -> str:
    """A batch in one line. Compressors differ, and so do the times at which a cleaner comes by;
    all other batches are equal to the last bit.
    """
    shape = f"{header.base_offset}-{header.last_offset} n={header.count}"
    shape += f" pid={header.producer_id >= 0} codec={header.codec} at={header.attributes:#x}"
    if header.is_control:
        return shape  # markers are of now
    shape += f" max={header.max_timestamp}"
    if not header.codec and not header.has_delete_horizon and header.producer_id < 0:
        shape += f" size={header.size} crc={header.crc:#x}"
    return shape


def show_size(session: Session, topic: str) -> None:
    request = DescribeLogDirsRequest([DescribableLogDirTopic(topic, [0])])
    answer = session.quietly(request, 4)
    size = answer.results[0].topics[0].partitions[0].partition_size
    session.exchanges.append(Exchange("size", ApiKey.DESCRIBE_LOG_DIRS, 4, size))


# -- cases -----------------------------------------------------------------------------------------


def retention_by_time(session: Session) -> None:
    """Two old segments, two that never grow old."""
    topic = make_topic(session, configs=KEEP)
    for at_ms in (TIMESTAMP_MS, TIMESTAMP_MS + 2000, NEVER_OLD_MS, NEVER_OLD_MS + 2000):
        write(session, topic, (b"k", b"1"), (b"k", b"2"), (b"k", b"3"), at_ms=at_ms)
    alter(session, topic, retention_ms="60000")
    wait(lambda: offset(session, topic, -2) == 6)
    show_log(session, topic)
    show_size(session, topic)
    for at_ms in (0, TIMESTAMP_MS, NEVER_OLD_MS + 1, NEVER_OLD_MS + 1999, NEVER_OLD_MS + 9999):
        session.ask(list_offsets(topic, at_ms), 7, label=f"at {at_ms}")


def retention_of_everything(session: Session) -> None:
    """The active segment goes as well, and the log goes on from its end."""
    topic = make_topic(session, configs=KEEP)
    for at_ms in (TIMESTAMP_MS, TIMESTAMP_MS + 2000):
        write(session, topic, (b"k", b"1"), (b"k", b"2"), at_ms=at_ms)
    alter(session, topic, retention_ms="60000")
    wait(lambda: offset(session, topic, -2) == 4)
    show_log(session, topic)
    show_size(session, topic)
    alter(session, topic, retention_ms="-1")
    write(session, topic, (b"k", b"3"), (b"k", b"4"))
    show_log(session, topic)


def retention_stops_at_a_young_segment(session: Session) -> None:
    topic = make_topic(session, configs=KEEP)
    for at_ms in (TIMESTAMP_MS, NEVER_OLD_MS, TIMESTAMP_MS + 2000, TIMESTAMP_MS + 9000):
        write(session, topic, (b"k", b"1"), at_ms=at_ms)
    alter(session, topic, retention_ms="60000")
    wait(lambda: offset(session, topic, -2) > 0)
    show_log(session, topic)


def retention_by_bytes(session: Session) -> None:
    """Segments of 1 MiB: how many batches fit, and which go."""
    topic = make_topic(session, configs={"segment.bytes": "1048576", "retention.ms": "-1"})
    for _ in range(8):
        write(session, topic, (b"k", b"x" * 300_000))
    show_size(session, topic)
    alter(session, topic, retention_bytes="700000")
    wait(lambda: offset(session, topic, -2) > 0)
    session.ask(list_offsets(topic, -2), 7)
    show_size(session, topic)


def deleted_records_and_their_segments(session: Session) -> None:
    topic = make_topic(session, configs=KEEP)
    for at in range(4):
        write(session, topic, (b"k", b"1"), (b"k", b"2"), at_ms=TIMESTAMP_MS + 2000 * at)
    for upto in (1, 3, 7, -1):
        wanted = DeleteRecordsTopic(topic, [DeleteRecordsPartition(0, upto)])
        session.ask(DeleteRecordsRequest([wanted], 5000), 2, label=f"up to {upto}")
        session.ask(list_offsets(topic, -2), 7)
        session.ask(fetch(topic, 1), 12, edit=first_batch)
    # All but the active segment have been dropped once the size is that of one batch.
    request = DescribeLogDirsRequest([DescribableLogDirTopic(topic, [0])])

    def size() -> int:
        answer = session.quietly(request, 4)
        found: int = answer.results[0].topics[0].partitions[0].partition_size
        return found

    wait(lambda: size() < 200)
    show_size(session, topic)
    session.ask(list_offsets(topic, -3), 8, label="max timestamp")


def compaction(session: Session) -> None:
    """Keys, tombstones, nulls in all codecs, in one round; then more, in another."""
    topic = make_topic(session, configs=NOT_YET)
    draw = Random(11)
    keys = [b"a", b"b", b"c", b"", b"d" * 100]
    write(session, topic, (b"first", b"1"), at_ms=TIMESTAMP_MS - 5000)
    for number in range(60):
        records = [
            (draw.choice(keys), draw.choice([None, b"", b"v%d" % number, b"x" * 200]))
            for _ in range(draw.randrange(1, 9))
        ]
        at_ms = TIMESTAMP_MS + 700 * number  # every second or third begins a segment
        write(session, topic, *records, at_ms=at_ms, codec=draw.randrange(5))
    write(session, topic, (b"first", b"2"), at_ms=TIMESTAMP_MS + 100_000)
    write(session, topic, (b"active", b"1"), at_ms=TIMESTAMP_MS + 200_000)
    alter(session, topic, min_cleanable_dirty_ratio="0.01")
    wait(lambda: base_at(session, topic, 0) > 0)
    show_log(session, topic)
    for at_ms in range(TIMESTAMP_MS, TIMESTAMP_MS + 60_000, 1700):
        session.ask(list_offsets(topic, at_ms), 7, label=f"at {at_ms}")


def compaction_of_producers(session: Session) -> None:
    """Idempotent producers whose records all have newer ones, and what they may send next."""
    topic = make_topic(session, configs=NOT_YET)
    write(session, topic, (b"first", b"1"))

    def write_as(producer_id: int, sequence: int, at: int, *keys: bytes) -> None:
        write(
            session,
            topic,
            *((key, b"%d" % at) for key in keys),
            at_ms=TIMESTAMP_MS + 2000 * at,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            codec=at % 5,
        )

    write_as(7001, 0, 1, b"a", b"b")
    write_as(7001, 2, 2, b"a", b"b", b"c")
    write_as(7002, 0, 3, b"a")
    write_as(7003, 0, 4, b"a", b"only")
    write(session, topic, (b"a", b"z"), (b"b", b"z"), (b"c", b"z"), at_ms=TIMESTAMP_MS + 10_000)
    write(session, topic, (b"first", b"2"), at_ms=TIMESTAMP_MS + 20_000)
    write(session, topic, (b"active", b"1"), at_ms=TIMESTAMP_MS + 30_000)
    alter(session, topic, min_cleanable_dirty_ratio="0.01")
    wait(lambda: base_at(session, topic, 0) > 0)
    show_log(session, topic)
    for producer_id, sequence in ((7001, 5), (7002, 0), (7002, 1), (7003, 3)):
        batch = build_batch(
            [Record(0, TIMESTAMP_MS + 30_000, b"new", b"v")],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
        )
        request = produce_request(topic, batch)
        session.ask(request, 9, label=f"{producer_id} at {sequence}")


def tombstones_that_are_outlived(session: Session) -> None:
    """With delete.retention.ms=0 they go in the round after the one that met them."""
    topic = make_topic(session, configs={**NOT_YET, "delete.retention.ms": "0"})
    write(session, topic, (b"first", b"1"))
    write(session, topic, (b"a", b"1"), (b"b", b"1"), at_ms=TIMESTAMP_MS + 2000)
    write(session, topic, (b"a", None), (b"b", b"2"), at_ms=TIMESTAMP_MS + 4000, codec=3)
    write(session, topic, (b"c", None), at_ms=TIMESTAMP_MS + 6000)
    write(session, topic, (b"first", b"2"), at_ms=TIMESTAMP_MS + 8000)
    write(session, topic, (b"active", b"1"), at_ms=TIMESTAMP_MS + 10_000)
    alter(session, topic, min_cleanable_dirty_ratio="0.01")
    wait(lambda: base_at(session, topic, 0) > 0)
    show_log(session, topic)
    write(session, topic, (b"active", b"2"), at_ms=TIMESTAMP_MS + 12_000)
    # The round that follows takes in the first "active", and looks at all that is older.
    wait(lambda: base_at(session, topic, 5) > 5)
    show_log(session, topic)


def compaction_of_transactions(session: Session) -> None:
    """Aborted data goes at once, markers once they have no data and their horizon has passed; the
    aborted transactions that consumers are told of shrink along.
    """
    topic = make_topic(session, configs={**NOT_YET, "delete.retention.ms": "0"})
    # Records lie in the future, so that the markers, which are of now, begin no segment.
    clock = itertools.count(NEVER_OLD_MS, 2000)
    rounds: list[int] = []

    def plain(*records: tuple[bytes | None, bytes | None]) -> None:
        write(session, topic, *records, at_ms=next(clock))

    def transact(
        p: Producer, sequence: int, *keys: bytes, committed: bool, version: int = TV2
    ) -> None:
        records = [Record(0, NEVER_OLD_MS, key, b"%d" % sequence) for key in keys]
        batch = build_batch(
            records,
            transactional=True,
            producer_id=p.pid,
            producer_epoch=p.epoch,
            base_sequence=sequence,
        )
        request = produce_request(topic, batch)
        request.transactional_id = p.id
        if version == TV1:
            session.quietly(p.add(topic), 3)
        answer = session.quietly(request, 12 if version == TV2 else 9)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        p.finish(version, committed=committed)

    def next_round() -> None:
        """Close a segment and wait until the round that takes it in is over."""
        plain((b"round", b"%d" % len(rounds)))
        rounds.append(offset(session, topic, -1) - 1)
        if len(rounds) > 2:
            gone = rounds[-3]
            wait(lambda: base_at(session, topic, gone) > gone)

    old, new = producer(session, "-old"), producer(session, "-new")
    plain((b"a", b"plain"), (b"b", b"plain"))
    transact(new, 0, b"a", b"c", committed=True)
    transact(new, 0, b"b", b"d", committed=False)
    transact(old, 0, b"c", b"e", committed=False, version=TV1)
    transact(old, 2, b"e", committed=True, version=TV1)
    plain((b"f", b"plain"))
    transact(old, 3, b"f", committed=False, version=TV1)
    transact(new, 0, b"g", committed=True)
    plain((b"a", b"last"), (b"g", b"last"))
    for _ in range(2):
        next_round()
    alter(session, topic, min_cleanable_dirty_ratio="0.01")
    wait(lambda: base_at(session, topic, 5) > 5)  # the first aborted batch
    show_transactions(session, topic)
    for _ in range(4):
        next_round()
        show_transactions(session, topic)
    transact(old, 4, b"e", committed=True, version=TV1)
    for _ in range(4):
        next_round()
        show_transactions(session, topic)
    producers(session, topic)


def show_transactions(session: Session, topic: str) -> None:
    """Record the shape of a log, and what a read_committed consumer is told of aborts."""
    shapes = [_shape(header) for header in batches(session, topic)]
    session.exchanges.append(Exchange("shapes", ApiKey.FETCH, 12, shapes))
    for at in range(0, offset(session, topic, -1), 3):
        session.ask(read(topic, offset=at), 12, label=f"from {at}", edit=first_batch)


CASES = [
    retention_by_time,
    retention_of_everything,
    retention_stops_at_a_young_segment,
    retention_by_bytes,
    deleted_records_and_their_segments,
    compaction,
    compaction_of_producers,
    tombstones_that_are_outlived,
    compaction_of_transactions,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_logs_are_kept_as_the_real_broker_keeps_them(
    case: Callable[[Session], None], real: tuple[str, int], ours: Cluster
) -> None:
    """Whatever clients can ask of the log is answered alike."""
    check_alike(Case(case.__name__, case, "kept"), real, ours)
