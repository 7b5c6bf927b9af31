"""Writing, reading and deleting records."""

from __future__ import annotations

from mockbroker.core.security.acls import AclOperation, ResourceType
from mockbroker_protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from mockbroker_protocol.messages.describe_producers import (
    DescribeProducersRequest,
    TopicRequest,
)
from mockbroker_protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from mockbroker_protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from mockbroker_protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from mockbroker_protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.differential.dialogue import batch
from tests.differential.secured.session import AclSession, case

O, R = AclOperation, ResourceType  # noqa: E741
UNKNOWN_ID = bytes(range(16))


def produce(
    *topics: str, acks: int = 1, transactional_id: str | None = None, transactional: bool = False
) -> ProduceRequest:
    records = batch()
    if transactional:
        records = batch(transactional=True, producer_id=7, producer_epoch=0, base_sequence=0)
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=5000,
        topic_data=[TopicProduceData(t, partition_data=[_data(records)]) for t in topics],
    )


def _data(records: object) -> PartitionProduceData:
    return PartitionProduceData(index=0, records=records)  # type: ignore[arg-type]


@case
def records_are_written_by_who_may(session: AclSession) -> None:
    one, two = session.topic("-one"), session.topic("-two")
    for version in (3, 9, 12):
        session.ask(produce(one, "missing"), version)
    session.allow(O.WRITE, R.TOPIC, two)
    session.ask(produce(one, two), 9)
    session.ask(produce(two), 12)
    session.ask(produce(one, acks=-1), 12)
    session.no_answer(produce(one, acks=0), 9)
    session.no_answer(produce(one, two, acks=0), 9)


@case
def records_are_written_to_topic_ids_by_who_may(session: AclSession) -> None:
    one, two = session.topic("-one"), session.topic("-two")
    ids = [session.topic_id(one), session.topic_id(two), UNKNOWN_ID]

    def request(*wanted: bytes) -> ProduceRequest:
        return ProduceRequest(
            acks=1,
            timeout_ms=5000,
            topic_data=[
                TopicProduceData(topic_id=i, partition_data=[_data(batch())]) for i in wanted
            ],
        )

    for topic_id in ids:
        session.ask(request(topic_id), 13)
    session.allow(O.WRITE, R.TOPIC, two)
    for topic_id in ids:
        session.ask(request(topic_id), 13)
    answer = session.quietly(request(*ids), 13)
    found = {r.topic_id: r.partition_responses[0].error_code for r in answer.responses}
    session.note([found[topic_id] for topic_id in ids], "all at once")


@case
def transactional_records_need_their_id(session: AclSession) -> None:
    topic = session.topic()
    session.allow(O.WRITE, R.TOPIC, topic)
    own = session.name
    session.ask(produce(topic, transactional=True, transactional_id=own), 9)
    session.ask(produce(topic, transactional=True), 9)
    session.ask(produce(topic, transactional_id=own), 9)
    session.no_answer(produce(topic, acks=0, transactional=True, transactional_id=own), 9)


def fetch(
    *topics: tuple[str, bytes],
    session_id: int = 0,
    epoch: int = -1,
    replica: int = -1,
    forget: tuple[tuple[str, bytes], ...] = (),
) -> FetchRequest:
    partition = FetchPartition(partition=0, partition_max_bytes=1 << 20)
    return FetchRequest(
        replica_id=replica,
        replica_state=ReplicaState(replica, -1),
        max_wait_ms=0,
        min_bytes=1,
        session_id=session_id,
        session_epoch=epoch,
        topics=[FetchTopic(name, topic_id, [partition]) for name, topic_id in topics],
        forgotten_topics_data=[ForgottenTopic(name, i, [0]) for name, i in forget],
    )


@case
def records_are_read_by_who_may(session: AclSession) -> None:
    one, two = session.topic("-one"), session.topic("-two")
    session.quietly(produce(one, two), 9, "admin")
    ids = {one: session.topic_id(one), two: session.topic_id(two)}
    known = [(one, ids[one]), (two, ids[two])]
    for version in (4, 12, 13, 17):
        session.ask(fetch(*known), version)
    session.ask(fetch((one, ids[one]), ("missing", UNKNOWN_ID)), 12)
    session.ask(fetch((one, ids[one]), ("missing", UNKNOWN_ID)), 17)
    session.allow(O.READ, R.TOPIC, two)
    for version in (4, 12, 13, 17):
        session.ask(fetch(*known), version)
    session.allow(O.DESCRIBE, R.TOPIC, one)
    session.ask(fetch(*known), 17)


@case
def a_fetch_session_is_judged_anew_each_time(session: AclSession) -> None:
    one, two = session.topic("-one"), session.topic("-two")
    session.quietly(produce(one, two), 9, "admin")
    known = [(one, session.topic_id(one)), (two, session.topic_id(two))]
    session.allow(O.READ, R.TOPIC, two)
    opened = session.ask(fetch(*known, epoch=0), 17)
    session.ask(fetch(session_id=opened.session_id, epoch=1), 17)
    session.allow(O.READ, R.TOPIC, one)
    session.ask(fetch(session_id=opened.session_id, epoch=2), 17)
    session.clear()
    session.ask(fetch(session_id=opened.session_id, epoch=3), 17)


@case
def followers_need_to_act_for_the_cluster(session: AclSession) -> None:
    topic = session.topic()
    known = [(topic, session.topic_id(topic)), ("missing", UNKNOWN_ID)]
    session.allow(O.READ, R.TOPIC, topic)
    session.ask(fetch(*known, replica=1), 12)
    session.ask(fetch(*known, replica=1), 17)
    session.allow(O.CLUSTER_ACTION, R.CLUSTER)
    session.ask(fetch((topic, known[0][1]), replica=9), 12)


@case
def offsets_are_listed_for_who_may(session: AclSession) -> None:
    one, two = session.topic("-one"), session.topic("-two")

    def request() -> ListOffsetsRequest:
        partitions = [ListOffsetsPartition(0, -1, -1), ListOffsetsPartition(9, -1, -1)]
        return ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(t, partitions) for t in (one, two, "missing")]
        )

    for version in (1, 4, 7, 11):
        session.ask(request(), version)
    session.allow(O.READ, R.TOPIC, two)
    session.ask(request(), 7)
    session.allow(O.DESCRIBE, R.TOPIC, "*")
    session.ask(request(), 7)
    session.deny(O.DESCRIBE, R.TOPIC, two)
    session.ask(request(), 7)


@case
def epochs_are_told_to_who_may(session: AclSession) -> None:
    one, two = session.topic("-one"), session.topic("-two")
    request = OffsetForLeaderEpochRequest(
        topics=[
            OffsetForLeaderTopic(t, [OffsetForLeaderPartition(0, -1, 0)])
            for t in (one, two, "missing")
        ]
    )
    for version in (2, 4):
        session.ask(request, version)
    session.allow(O.DESCRIBE, R.TOPIC, two)
    session.ask(request, 4)
    session.allow(O.CLUSTER_ACTION, R.CLUSTER)
    session.ask(request, 4)


@case
def records_are_deleted_by_who_may(session: AclSession) -> None:
    one, two = session.topic("-one"), session.topic("-two")
    request = DeleteRecordsRequest(
        [DeleteRecordsTopic(t, [DeleteRecordsPartition(0, 0)]) for t in (one, two, "missing")],
        1000,
    )
    for version in (0, 2):
        session.ask(request, version)
    session.allow(O.DELETE, R.TOPIC, two)
    session.ask(request, 2)


@case
def producers_are_described_to_who_may(session: AclSession) -> None:
    one, two = session.topic("-one"), session.topic("-two")
    names = (one, two, "missing", "not/a/name")
    request = DescribeProducersRequest([TopicRequest(t, [0, 1]) for t in names])
    session.ask(request, 0)
    session.allow(O.READ, R.TOPIC, two)
    session.ask(request, 0)


@case
def rights_come_from_patterns_wildcards_hosts_and_everyone(session: AclSession) -> None:
    name = session.topic()
    session.allow(O.WRITE, R.TOPIC, name[:-2], prefixed=True)
    session.ask(produce(name), 9, label="by prefix")
    session.clear()
    session.allow(O.WRITE, R.TOPIC, f"{name}x", prefixed=True)
    session.allow(O.WRITE, R.TOPIC, name[:-2])
    session.ask(produce(name), 9, label="by what only looks like it")
    session.allow(O.ALL, R.TOPIC, name, user="*")
    session.ask(produce(name), 9, label="by everyone's right to everything")
    session.clear()
    session.allow(O.WRITE, R.TOPIC, "*", host="10.1.2.3")
    session.ask(produce(name), 9, label="from elsewhere only")
    session.allow(O.WRITE, R.TOPIC, "*", host="127.0.0.1")
    session.ask(produce(name), 9, label="from here")
    session.deny(O.READ, R.TOPIC, name)
    session.ask(produce(name), 9, label="not to read")
    session.deny(O.WRITE, R.TOPIC, name[:3], prefixed=True, user="*")
    session.ask(produce(name), 9, label="denied to everyone by prefix")
    session.ask(produce(name), 9, "admin", label="but not to a super user")
