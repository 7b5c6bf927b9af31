"""The share coordinator: its five requests, their errors, and the records that it writes."""

from __future__ import annotations

from struct import pack
from typing import Any

from mockbroker.core.hashing.java_hash import coordinator_partition, uuid_hash
from mockbroker.core.hashing.java_hash_map import JavaHashMap
from mockbroker.core.share.coordinator import coordinator_key
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.internal_topics import SHARE_GROUP_STATE
from mockbroker_protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from mockbroker_protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from mockbroker_protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.initialize_share_group_state import InitializeStateData
from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from mockbroker_protocol.messages.read_share_group_state import ReadStateData
from mockbroker_protocol.messages.write_share_group_state import WriteStateData
from mockbroker_protocol.records import iter_records, split_batches
from tests.differential.registry import case
from tests.differential.session import Session
from tests.support.share_states import (
    ACKNOWLEDGED,
    ARCHIVED,
    AVAILABLE,
    Batch,
    delete_request,
    initialize_request,
    read_request,
    summary_request,
    write_request,
)

STATES = "__share_group_state"
TOPIC = 2
UNKNOWN_ID = bytes(15) + b"\x07"
NOT_READY = {
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
}


def first(answer: Any) -> Any:
    return answer.results[0].partitions[0]


def make_topic(session: Session, suffix: str = "", partitions: int = 4) -> bytes:
    """A topic whose share partitions have a coordinator; its id."""
    name = f"{session.name}{suffix}"
    request = CreateTopicsRequest([CreatableTopic(name, partitions, 1)], timeout_ms=10_000)
    session.quietly(request, 5)
    asked = MetadataRequest([MetadataRequestTopic(name=name)])
    topic = session.quietly(asked, 12).topics[0]
    while topic.error_code or any(line.error_code for line in topic.partitions):
        topic = session.quietly(asked, 12).topics[0]
    topic_id: bytes = topic.topic_id
    find = FindCoordinatorRequest(key_type=2, coordinator_keys=[coordinator_key("g", topic_id, 0)])
    while session.quietly(find, 6).coordinators[0].error_code:
        pass
    for partition in range(partitions):
        request = summary_request(topic_id, partition)
        while first(session.quietly(request, 0)).error_code in {
            *NOT_READY,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,  # the coordinator's metadata lag behind
        }:
            pass
    return topic_id


def look(session: Session, topic_id: bytes, *partitions: int, group: str = "g") -> None:
    """The whole state, as a reader without a leader epoch sees it."""
    for partition in partitions or (0,):
        session.ask(read_request(topic_id, partition, group=group, leader_epoch=-1), 0)
        session.ask(summary_request(topic_id, partition, group=group), 0)
        session.ask(summary_request(topic_id, partition, group=group), 1)


def write(session: Session, topic_id: bytes, *batches: Batch, label: str = "", **how: Any) -> None:
    session.ask(write_request(topic_id, {0: list(batches)}, **how), 1, label=label)


def records(session: Session, topic_id: bytes, partition: int = 0, group: str = "g") -> None:
    """Note the records of a share partition, byte for byte but for its topic id and the times."""
    index = coordinator_partition(coordinator_key(group, topic_id, partition), 50)
    wanted = FetchPartition(
        partition=index, fetch_offset=0, partition_max_bytes=1 << 20, log_start_offset=-1
    )
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        topics=[FetchTopic(topic=STATES, partitions=[wanted])],
    )
    stored = session.quietly(request, 12).responses[0].partitions[0].records
    for header, batch in split_batches(memoryview(bytearray(stored))):
        for record in iter_records(header, batch):
            assert record.key is not None
            key = SHARE_GROUP_STATE.decode_key(record.key)
            if (key.group_id, key.topic_id, key.partition) != (group, topic_id, partition):
                continue
            value = SHARE_GROUP_STATE.decode_value(key, record.value)
            written = None if record.value is None else bytes(record.value)
            for field in ("create_timestamp", "write_timestamp"):
                at_ms = getattr(value, field, 0)
                assert at_ms <= record.timestamp
                if written is not None and at_ms:
                    written = written.replace(pack(">q", at_ms), bytes(8))
            found = bytes(record.key).replace(topic_id, b"t" * 16), written, header.attributes
            session.note([str(each) for each in found], "record")


@case()
def share_state_topic(session: Session) -> None:
    """The configs with which the topic of states is created."""
    make_topic(session)

    def own(answer: Any) -> Any:
        """Only the topic's own configs, in order, without their synonyms. The replication of
        internal topics is given to the real broker.
        """
        result = answer.results[0]
        result.configs = sorted(
            (
                line
                for line in result.configs
                if line.config_source == 1 and line.name != "min.insync.replicas"
            ),
            key=lambda line: line.name,
        )
        for line in result.configs:
            line.synonyms = []
        return answer

    session.ask(DescribeConfigsRequest([DescribeConfigsResource(TOPIC, STATES)]), 4, edit=own)
    answer = session.quietly(MetadataRequest([MetadataRequestTopic(name=STATES)]), 12)
    topic = answer.topics[0]
    session.note([topic.is_internal, len(topic.partitions)], "topic")


@case()
def share_state_life(session: Session) -> None:
    """Initialized, written, read, initialized again, deleted."""
    topic_id = make_topic(session)
    look(session, topic_id)
    session.ask(initialize_request(topic_id, start=-1), 0)
    look(session, topic_id)
    write(session, topic_id, (10, 19, ACKNOWLEDGED, 1), start=10, complete=10)
    look(session, topic_id)
    write(session, topic_id, (15, 24, ARCHIVED, 5), (30, 30, AVAILABLE, 1), complete=15)
    look(session, topic_id)
    request = write_request(topic_id, {0: [(31, 33, AVAILABLE, 1)]})
    session.ask(request, 0, label="v0 has no count")
    look(session, topic_id)
    session.ask(read_request(topic_id, leader_epoch=3), 0, label="new leader")
    write(session, topic_id, (40, 40, AVAILABLE, 2), leader_epoch=3, start=16)
    look(session, topic_id)
    session.ask(initialize_request(topic_id, state_epoch=7, start=100), 0)
    look(session, topic_id)
    write(session, topic_id, (100, 100, AVAILABLE, 1), state_epoch=7, label="old leader")
    write(
        session, topic_id, (100, 100, AVAILABLE, 1), state_epoch=7, leader_epoch=3, label="leader"
    )
    session.ask(delete_request(topic_id), 0)
    look(session, topic_id)
    session.ask(delete_request(topic_id), 0, label="again")
    session.ask(initialize_request(topic_id, state_epoch=1, start=5), 0, label="anew")
    look(session, topic_id)
    records(session, topic_id)


@case()
def share_state_fencing(session: Session) -> None:
    topic_id = make_topic(session)
    session.ask(initialize_request(topic_id, state_epoch=4, start=0), 0)
    session.ask(read_request(topic_id, leader_epoch=6), 0)
    for epoch in (-1, 3, 4, 5):
        session.ask(initialize_request(topic_id, 1, state_epoch=epoch), 0, label=f"new {epoch}")
        write(session, topic_id, state_epoch=epoch, leader_epoch=6, label=f"state {epoch}")
    for epoch in (-1, 5, 6, 7):
        write(session, topic_id, state_epoch=4, leader_epoch=epoch, label=f"leader {epoch}")
    for epoch in (-1, 5, 6, 7, 6):
        session.ask(read_request(topic_id, leader_epoch=epoch), 0, label=f"leader {epoch}")
        session.ask(summary_request(topic_id, leader_epoch=epoch), 1, label=f"leader {epoch}")
    session.ask(initialize_request(topic_id, state_epoch=3), 0, label="older state epoch")
    session.ask(initialize_request(topic_id, state_epoch=-1), 0, label="no state epoch")
    look(session, topic_id)
    write(session, topic_id, state_epoch=3, leader_epoch=7, label="fenced by what was seen")
    session.ask(read_request(topic_id, leader_epoch=6), 0, label="fenced by what was seen")
    records(session, topic_id)
    records(session, topic_id, 1)


@case()
def share_state_errors(session: Session) -> None:
    """Each way in which a request can be wrong, for each of the requests."""
    topic_id = make_topic(session)
    session.ask(initialize_request(topic_id, start=0), 0)
    for label, an_id, partition in (
        ("uninitialized", topic_id, 1),
        ("negative", topic_id, -1),
        ("beyond", topic_id, 4),
        ("unknown topic", UNKNOWN_ID, 0),
        ("no topic", bytes(16), 0),
    ):
        session.ask(read_request(an_id, partition), 0, label=label)
        session.ask(write_request(an_id, {partition: []}), 1, label=label)
        session.ask(summary_request(an_id, partition), 1, label=label)
        session.ask(delete_request(an_id, partition), 0, label=label)
        if label != "uninitialized":
            session.ask(initialize_request(an_id, partition), 0, label=label)
    requests = (
        (initialize_request, InitializeStateData, 0),
        (read_request, ReadStateData, 0),
        (lambda an_id, **how: write_request(an_id, {0: []}, **how), WriteStateData, 1),
        (delete_request, None, 0),
        (summary_request, None, 1),
    )
    for make, data, version in requests:
        session.ask(make(topic_id, group=""), version, label="no group")  # type: ignore[operator]
        request = make(topic_id)  # type: ignore[operator]
        request.topics = []
        session.ask(request, version, label="no topics")
        request = make(topic_id)  # type: ignore[operator]
        request.topics[0].partitions = []
        session.ask(request, version, label="no partitions")
        if data is not None:
            request = make(topic_id)  # type: ignore[operator]
            request.topics.append(data(UNKNOWN_ID, []))
            session.ask(request, version, label="a topic without partitions")


@case()
def share_state_several(session: Session) -> None:
    """Requests with several share partitions; the answer has the order of Java's hash maps."""
    topics = [make_topic(session, f"-{number}", 20) for number in range(3)]

    hashed: JavaHashMap[bytes, None] = JavaHashMap(uuid_hash)
    for topic_id in topics:
        hashed.compute_if_absent(topic_id, lambda: None)

    def in_order(answer: Any) -> Any:
        found = [line.topic_id for line in answer.results]
        session.note(found == list(hashed), "topics in hash order")
        answer.results.sort(key=lambda line: topics.index(line.topic_id))
        return answer

    request = initialize_request(topics[0], *reversed(range(20)))
    for topic_id in topics[1:]:
        request.topics += initialize_request(topic_id, 7, 19, 3, 16, 35, 0, -5).topics
    session.ask(request, 0, edit=in_order)
    reads = read_request(topics[0], 1, 9, 1, 17, 33, 0)
    for topic_id in topics[1:]:
        reads.topics += read_request(topic_id, 3, 19, 2).topics
    session.ask(reads, 0, edit=in_order)
    twice = write_request(topics[0], {0: [(0, 4, ACKNOWLEDGED, 1)]}, state_epoch=1)
    twice.topics += write_request(topics[0], {0: [(2, 9, ARCHIVED, 2)], 99: []}).topics
    session.ask(twice, 1, label="one twice")
    look(session, topics[0])


@case()
def share_state_batches(session: Session) -> None:
    """How batches that overlap are combined."""
    topic_id = make_topic(session)
    session.ask(initialize_request(topic_id, start=0), 0)
    available, acknowledged, archived = AVAILABLE, ACKNOWLEDGED, ARCHIVED
    for batches in (
        [(0, 9, available, 1), (10, 19, available, 1), (20, 29, available, 2)],
        [(5, 14, acknowledged, 1)],
        [(5, 14, available, 1)],
        [(0, 40, archived, 1)],
        [(12, 50, available, 3), (12, 45, archived, 2), (44, 60, acknowledged, 3)],
        [(61, 70, acknowledged, 3), (71, 71, acknowledged, 3)],
        [(100, 110, available, 1), (90, 99, available, 1), (95, 105, available, 1)],
        [(100, 100, acknowledged, 1), (102, 104, archived, 9), (103, 108, archived, 9)],
    ):
        write(session, topic_id, *batches)
        look(session, topic_id)
    write(session, topic_id, start=15, complete=3)
    look(session, topic_id)
    write(session, topic_id, (0, 20, available, 7), (16, 18, acknowledged, 7), start=17)
    look(session, topic_id)
    write(session, topic_id, start=-1, complete=-1)
    look(session, topic_id)
    records(session, topic_id)


@case()
def share_state_snapshots(session: Session) -> None:
    """After 500 updates the next record is a snapshot, also if the state begins anew in between."""
    topic_id = make_topic(session)
    session.ask(initialize_request(topic_id, start=0), 0)
    for number in range(400):
        request = write_request(topic_id, {0: [(number, number, ACKNOWLEDGED, 1)]}, start=number)
        session.quietly(request, 1)
    session.ask(initialize_request(topic_id, state_epoch=2, start=400), 0)
    for number in range(400, 510):
        request = write_request(
            topic_id,
            {0: [(number, number, ACKNOWLEDGED, 1), (number, number + 1, AVAILABLE, 1)]},
            state_epoch=2,
            start=number - 5,
            complete=number % 7,
        )
        session.quietly(request, 1)
    look(session, topic_id)
    records(session, topic_id)


@case()
def share_state_of_a_deleted_topic(session: Session) -> None:
    """Its state gets a tombstone, and its share partitions are unknown."""
    topic_id = make_topic(session)
    session.ask(initialize_request(topic_id, 0, 1, start=0), 0)
    request = DeleteTopicsRequest([DeleteTopicState(name=session.name)], timeout_ms=10_000)
    session.quietly(request, 6)
    summary = summary_request(topic_id)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    while first(session.quietly(summary, 1)).error_code != unknown:
        pass
    # The share coordinator hears of the deletion later than the metadata cache.
    while first(session.quietly(read_request(topic_id), 0)).error_code == unknown:
        pass
    session.ask(initialize_request(topic_id, start=0), 0)
    session.ask(read_request(topic_id), 0)
    session.ask(write_request(topic_id, {0: []}), 1)
    session.ask(summary, 1)
    session.ask(delete_request(topic_id), 0)
    records(session, topic_id)
    records(session, topic_id, 1)
