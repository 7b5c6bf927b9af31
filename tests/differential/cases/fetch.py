"""Fetch: bytes and limits, sessions, epochs, and what is refused."""

from __future__ import annotations

from typing import Any

from mockbroker_protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from mockbroker_protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from mockbroker_protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.differential.dialogue import batch, make_topic, produce_request, wait_for_leaders
from tests.differential.registry import case
from tests.differential.session import Session

SESSIONLESS_EPOCH = -1


def fetch(
    topic: str | bytes,
    *offsets: int,
    partition_max_bytes: int = 1 << 20,
    current_epoch: int = -1,
    last_epoch: int = -1,
    **options: Any,
) -> FetchRequest:
    """Fetch partitions 0, 1, … of one topic, by name or id, at the offsets given."""
    partitions = [
        FetchPartition(
            partition=index,
            fetch_offset=offset,
            partition_max_bytes=partition_max_bytes,
            current_leader_epoch=current_epoch,
            last_fetched_epoch=last_epoch,
        )
        for index, offset in enumerate(offsets)
    ]
    named = FetchTopic(topic=topic) if isinstance(topic, str) else FetchTopic(topic_id=topic)
    named.partitions = partitions
    defaults: dict[str, Any] = {"max_wait_ms": 100, "min_bytes": 1, "max_bytes": 1 << 25}
    return FetchRequest(**{**defaults, "topics": [named] if offsets else [], **options})


def fill(session: Session, topic: str, partition: int = 0, batches: int = 4) -> None:
    for n in range(batches):
        values = [b"%d-%d" % (n, i) * 10 for i in range(3)]
        session.quietly(produce_request(topic, batch(values), partition=partition), 9)


@case()
def fetch_every_version(session: Session) -> None:
    topic = make_topic(session)
    fill(session, topic)
    topic_id = wait_for_leaders(session, topic)
    for version in range(4, 19):
        name = topic if version < 13 else topic_id
        for isolation in (0, 1):
            for offset in (0, 4, 11, 12):
                request = fetch(name, offset, isolation_level=isolation, max_wait_ms=0)
                session.ask(request, version, label=f"at {offset}")


@case()
def fetch_out_of_range_and_unknown(session: Session) -> None:
    topic = make_topic(session)
    fill(session, topic)
    topic_id = wait_for_leaders(session, topic)
    for version in (4, 11, 12, 13, 16, 18):
        name = topic if version < 13 else topic_id
        missing = "no-such-topic" if version < 13 else b"\x07" * 16
        for offset in (-1, 13, 1000):
            session.ask(fetch(name, offset), version, label=f"at {offset}")
        session.ask(fetch(missing, 0), version, label="unknown topic")
        session.ask(fetch(name, 0, 0), version, label="unknown partition")


@case()
def fetch_leader_epochs(session: Session) -> None:
    topic = make_topic(session)
    fill(session, topic)
    topic_id = wait_for_leaders(session, topic)
    for version in (9, 12, 15, 16, 17):
        name = topic if version < 13 else topic_id
        for epoch in (0, 1, 5):
            session.ask(fetch(name, 0, current_epoch=epoch), version, label=f"current {epoch}")
        if version >= 12:
            for last in (0, 1, 7):
                for offset in (3, 12, 15):
                    request = fetch(name, offset, last_epoch=last, max_wait_ms=0)
                    session.ask(request, version, label=f"last {last} at {offset}")


@case()
def fetch_sizes(session: Session) -> None:
    topic = make_topic(session, partitions=3)
    for index in range(3):
        fill(session, topic, index)
    one = len(batch([b"0-%d" % i * 10 for i in range(3)]))
    for label, options in {
        "one byte": {"partition_max_bytes": 1},
        "one batch": {"partition_max_bytes": one},
        "two batches": {"partition_max_bytes": 2 * one},
        "max bytes 1": {"max_bytes": 1},
        "max bytes one batch": {"max_bytes": one},
        "max bytes two batches": {"max_bytes": 2 * one},
        "max bytes five batches": {"max_bytes": 5 * one},
        "min bytes reached": {"min_bytes": one},
        "min bytes out of reach": {"min_bytes": 1 << 24},
    }.items():
        session.ask(fetch(topic, 0, 0, 0, **options), 11, label=label)


@case()
def fetch_sessions(session: Session) -> None:
    topic = make_topic(session, partitions=3)
    fill(session, topic, 0, 1)

    def ask(label: str, *offsets: int, version: int = 12, **options: Any) -> Any:
        return session.ask(fetch(topic, *offsets, max_wait_ms=0, **options), version, label=label)

    answer = ask("full", 0, 0, 0, session_epoch=0)
    known = answer.session_id
    ask("incremental, nothing new", session_id=known, session_epoch=1)
    ask("position moved", 3, session_id=known, session_epoch=2)
    fill(session, topic, 1, 1)
    ask("incremental, partition 1 grew", session_id=known, session_epoch=3)
    ask("same epoch again", session_id=known, session_epoch=3)
    ask("too new an epoch", session_id=known, session_epoch=9)
    ask("unknown session", session_id=known + 1, session_epoch=1)
    ask(
        "forget two",
        session_id=known,
        session_epoch=4,
        forgotten_topics_data=[ForgottenTopic(topic=topic, partitions=[1, 2])],
    )
    fill(session, topic, 2, 1)
    ask("forgotten ones stay away", session_id=known, session_epoch=5)
    ask("add one again", 3, 3, session_id=known, session_epoch=6)
    ask("out of range in a session", 99, session_id=known, session_epoch=7)
    ask("error is not repeated", session_id=known, session_epoch=8)
    ask("position mended", 3, session_id=known, session_epoch=9)
    ask(
        "forget all",
        session_id=known,
        session_epoch=10,
        forgotten_topics_data=[ForgottenTopic(topic=topic, partitions=[0, 1])],
    )
    ask("closed because it was empty", session_id=known, session_epoch=11)
    again = ask("another", 0, session_epoch=0)
    ask("final epoch closes", 0, session_id=again.session_id, session_epoch=SESSIONLESS_EPOCH)
    ask("gone", session_id=again.session_id, session_epoch=1)
    third = ask("third", 0, session_epoch=0)
    ask("replaced by a full one", 0, session_id=third.session_id, session_epoch=0)
    ask("the old one is gone", session_id=third.session_id, session_epoch=1)
    ask("epoch 5 of session 0", 0, session_id=0, session_epoch=5)


@case()
def fetch_session_of_names_and_ids(session: Session) -> None:
    topic = make_topic(session)
    topic_id = wait_for_leaders(session, topic)
    by_name = session.ask(fetch(topic, 0, session_epoch=0, max_wait_ms=0), 12)
    request = fetch(topic_id, 0, session_id=by_name.session_id, session_epoch=1, max_wait_ms=0)
    session.ask(request, 13, label="ids in a session of names")
    by_id = session.ask(fetch(topic_id, 0, session_epoch=0, max_wait_ms=0), 13)
    request = fetch(topic, 0, session_id=by_id.session_id, session_epoch=1, max_wait_ms=0)
    session.ask(request, 12, label="names in a session of ids")
    unknown = session.ask(fetch(b"\x09" * 16, 0, session_epoch=0, max_wait_ms=0), 13)
    request = fetch(b"", session_id=unknown.session_id, session_epoch=1, max_wait_ms=0)
    session.ask(request, 13, label="unknown id again")


@case()
def fetch_zstd_by_version(session: Session) -> None:
    topic = make_topic(session, configs={"compression.type": "zstd"})
    session.ask(produce_request(topic, batch()), 9)
    for version in (4, 9, 10, 11):
        session.ask(fetch(topic, 0), version)


@case()
def fetch_nothing(session: Session) -> None:
    for version in (4, 7, 12, 13):
        session.ask(FetchRequest(max_wait_ms=60_000, min_bytes=1), version, label="no topics")


@case()
def fetch_as_another_replica(session: Session) -> None:
    topic = make_topic(session)
    fill(session, topic)
    for replica in (-1, -2, 77):
        request = fetch(topic, 0, replica_id=replica, max_wait_ms=0)
        session.ask(request, 11, label=f"replica {replica}")


@case()
def offsets_for_leader_epochs(session: Session) -> None:
    topic = make_topic(session)
    fill(session, topic)

    def ask(epoch: int, current: int = -1, name: str = topic, partition: int = 0) -> None:
        for version in (2, 3, 4):
            item = OffsetForLeaderPartition(
                partition=partition, current_leader_epoch=current, leader_epoch=epoch
            )
            request = OffsetForLeaderEpochRequest(
                replica_id=-1, topics=[OffsetForLeaderTopic(topic=name, partitions=[item])]
            )
            session.ask(request, version, label=f"{epoch} under {current}")

    for epoch in (-1, 0, 1, 9):
        ask(epoch)
    for current in (0, 1, 9):
        ask(0, current)
    ask(0, name="no-such-topic")
    ask(0, partition=4)


@case()
def delete_records(session: Session) -> None:
    topic = make_topic(session)
    compacted = make_topic(session, "-compacted", configs={"cleanup.policy": "compact"})
    both = make_topic(session, "-both", configs={"cleanup.policy": "compact,delete"})
    for name in (topic, compacted, both):
        fill(session, name)

    def ask(offset: int, name: str = topic, partition: int = 0, version: int = 2) -> None:
        item = DeleteRecordsPartition(partition_index=partition, offset=offset)
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=name, partitions=[item])], timeout_ms=5000
        )
        session.ask(request, version, label=f"{name} {offset}")

    for version in (0, 1, 2):
        for offset in (4, 2, 13, -2, 0):
            ask(offset, version=version)
    session.ask(fetch(topic, 3), 11, label="below the start")
    session.ask(fetch(topic, 4), 11, label="at the start")
    ask(-1)
    session.ask(fetch(topic, 12, max_wait_ms=0), 11, label="all gone")
    ask(3, compacted)
    ask(3, both)
    ask(1, "no-such-topic")
    ask(1, partition=8)
    ask(0, "__consumer_offsets")
