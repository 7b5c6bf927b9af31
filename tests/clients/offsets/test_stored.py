"""Where commits go: records of `__consumer_offsets`, which anybody may read, on one coordinator."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec
from kafka import KafkaAdminClient
from kafka import TopicPartition as PythonPartition

from mockbroker import Cluster
from mockbroker.cli import main
from mockbroker.client import Client
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.consumer_protocol import decode_assignment
from mockbroker_protocol.internal_topics import CONSUMER_OFFSETS
from mockbroker_protocol.messages.consumer_offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from tests.support.members import Member, Members, Partition, look, settings
from tests.support.request_log import RequestLog
from tests.support.watched import fill

OFFSETS = "__consumer_offsets"


def read_raw(kafka: Cluster) -> list[tuple[bytes, bytes | None, int]]:
    """Every record of the internal topic, by an ordinary consumer: key, value, partition."""
    consumer = Consumer(settings(kafka, group_id="reader", enable_partition_eof=True))
    partitions = [TopicPartition(OFFSETS, index, 0) for index in range(50)]
    consumer.assign(partitions)
    records = []
    ended = 0
    while ended < len(partitions):
        message = consumer.poll(5)
        assert message is not None
        if message.error() is not None:
            assert message.error().code() == KafkaError._PARTITION_EOF
            ended += 1
        else:
            records.append((message.key(), message.value(), message.partition()))
    consumer.close()
    return records


@pytest.mark.covers("S174")
def test_commits_and_groups_can_be_read_from_the_internal_topic(
    kafka: Cluster, members: Members
) -> None:
    """Keys of type 1 name group, topic and partition, with offset, leader epoch, metadata and time;
    keys of type 2 name the group, with its generation and its members.
    """
    fill(kafka, "t", 8)
    member = members("group-24", "t", client_id="reader-1", group_instance_id="i-1")
    members.collect(8)
    before_ms = int(time.time() * 1000)
    wanted = TopicPartition("t", 2, 2, metadata="half way", leader_epoch=0)
    member.consumer.commit(offsets=[wanted], asynchronous=False)
    after_ms = int(time.time() * 1000)
    commits = []
    groups = []
    for key, value, partition in read_raw(kafka):
        assert partition == 10  # Java's hash of "group-24", modulo 50
        decoded = CONSUMER_OFFSETS.decode_key(key)
        if key[:2] == b"\0\1":
            commits.append((decoded, CONSUMER_OFFSETS.decode_value(decoded, value)))
        else:
            assert key[:2] == b"\0\2"
            groups.append((decoded, CONSUMER_OFFSETS.decode_value(decoded, value)))
    ((key, commit),) = commits
    assert key == OffsetCommitKey("group-24", "t", 2)
    assert isinstance(commit, OffsetCommitValue)
    assert (commit.offset, commit.leader_epoch) == (2, 0)
    assert (
        commit.metadata.rstrip("\0") == "half way"
    )  # confluent-kafka sends its C string's end too
    assert before_ms - 1 <= commit.commit_timestamp <= after_ms + 1
    assert commit.topic_id == kafka.call(lambda cluster: cluster.topics["t"].topic_id)
    last_key, last = groups[-1]
    assert last_key == GroupMetadataKey("group-24")
    assert isinstance(last, GroupMetadataValue)
    assert (last.protocol_type, last.generation, last.protocol) == ("consumer", 1, "range")
    (stored,) = last.members
    assert (stored.client_id, stored.group_instance_id) == ("reader-1", "i-1")
    (assigned,) = decode_assignment(stored.assignment).assigned_partitions
    assert (assigned.topic, sorted(assigned.partitions)) == ("t", [0, 1, 2, 3])


@pytest.mark.covers("S175")
def test_a_commit_appends_one_record_for_each_partition(kafka: Cluster, members: Members) -> None:
    """Three partitions, three records, all in the group's own partition of the topic."""
    member = members("group-24", "t")
    members.settle(member, partitions=4)

    def ends() -> list[int]:
        with Client(kafka.bootstrap_servers) as client:
            return [each.offset for each in client.list_offsets(OFFSETS).values()]

    before = ends()
    member.commit(("t", 0, 1), ("t", 1, 2), ("t", 3, 3))
    after = ends()
    assert [new - old for new, old in zip(after, before, strict=True)] == [
        3 if index == 10 else 0 for index in range(50)
    ]


# ------------------------------------------------------------------------------------- by hand


def alter(admin: AdminClient, group: str, *offsets: tuple[str, int, int]) -> list[Any]:
    """The errors, partition by partition, of setting a group's offsets."""
    wanted = [TopicPartition(*each) for each in offsets]
    futures = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, wanted)])
    answered = futures[group].result(20).topic_partitions
    return [each.error and each.error.code() for each in answered]


@pytest.mark.covers("S182")
def test_offsets_are_set_by_hand_while_nobody_is_in_the_group(
    kafka: Cluster, members: Members, admin: AdminClient
) -> None:
    """To the start, the end, a timestamp, or a shift of what is there; the next member begins
    there. UNKNOWN_MEMBER_ID while the group is in use.
    """
    fill(kafka, "t", 40, partition=0)
    one = ("t", 0)
    member = members("g", "t")
    members.collect(40)
    member.commit((*one, 40))
    assert alter(admin, "g", (*one, 0)) == [KafkaError.UNKNOWN_MEMBER_ID]
    assert member.committed(one) == {one: 40}
    member.close()
    partition = TopicPartition(*one)
    at_ms = kafka.records("t", 0)[25].timestamp_ms
    first_at_ms = next(r.offset for r in kafka.records("t", 0) if r.timestamp_ms >= at_ms)
    for spec, expected in (
        (OffsetSpec.earliest(), 0),
        (OffsetSpec.latest(), 40),
        (OffsetSpec.for_timestamp(at_ms), first_at_ms),
    ):
        offset = admin.list_offsets({partition: spec})[partition].result(20).offset
        assert offset == expected
        assert alter(admin, "g", (*one, offset)) == [None]
        assert Member(kafka, "g", []).committed(one) == {one: expected}
    shifted = first_at_ms - 5 if first_at_ms >= 5 else first_at_ms + 5
    assert alter(admin, "g", (*one, shifted)) == [None]
    again = members("g", "t")
    members.collect(40 - shifted, again)
    assert again.records[0].offset() == shifted


@pytest.mark.covers("S182")
@pytest.mark.parametrize(("to", "offset"), [("earliest", 0), ("latest", 10), ("7", 7)])
def test_the_command_line_resets_a_group(
    kafka: Cluster, members: Members, to: str, offset: int
) -> None:
    """`mockbroker groups reset`: where its next member begins."""
    fill(kafka, "t", 40)
    member = members("g", "t")
    members.collect(40)
    member.commit(*(("t", index, 5) for index in range(4)))
    arguments = ["groups", "reset", "g", "t", "--to", to]
    environment = {"MOCKBROKER_BOOTSTRAP": kafka.bootstrap_servers}
    busy = CliRunner().invoke(main, arguments, env=environment)
    assert busy.exit_code != 0
    assert "UNKNOWN_MEMBER_ID" in busy.output
    partitions = [("t", index) for index in range(4)]
    assert member.committed(*partitions) == dict.fromkeys(partitions, 5)
    member.close()
    done = CliRunner().invoke(main, arguments, env=environment)
    assert done.exit_code == 0, done.output
    assert Member(kafka, "g", []).committed(*partitions) == dict.fromkeys(partitions, offset)


def test_a_consumer_without_a_group_protocol_may_commit(kafka: Cluster, admin: AdminClient) -> None:
    """Assigned partitions instead of a subscription: the group is simple and has offsets."""
    fill(kafka, "t", 8)
    consumer = Consumer(settings(kafka, group_id="simple", auto_offset_reset="earliest"))
    consumer.assign([TopicPartition("t", 1)])
    message = consumer.poll(20)
    assert message is not None
    assert message.error() is None
    consumer.commit(message, asynchronous=False)
    consumer.close()
    described = admin.describe_consumer_groups(["simple"])["simple"].result(20)
    assert (described.is_simple_consumer_group, described.members) == (True, [])
    again = Consumer(settings(kafka, group_id="simple", auto_offset_reset="earliest"))
    again.assign([TopicPartition("t", 1)])
    message = again.poll(20)
    assert message is not None
    assert message.offset() == 1
    again.close()


def test_a_simple_commit_into_a_group_in_use_is_refused(kafka: Cluster, members: Members) -> None:
    """UNKNOWN_MEMBER_ID: its members alone say how far they have come."""
    members.settle(members("g", "t"), partitions=4)
    stranger = Consumer(settings(kafka, group_id="g"))
    stranger.assign([TopicPartition("t", 0)])
    with pytest.raises(KafkaException) as refused:
        stranger.commit(offsets=[TopicPartition("t", 0, 3)], asynchronous=False)
    assert refused.value.args[0].code() == KafkaError.UNKNOWN_MEMBER_ID
    stranger.close()


def test_commits_for_what_is_not_there_fail_one_by_one(kafka: Cluster, members: Members) -> None:
    """An unknown partition does not spoil the commit of the others."""
    member = members("g", "t")
    members.settle(member, partitions=4)
    wanted = [TopicPartition("t", 0, 1), TopicPartition("t", 9, 1)]
    with pytest.raises(KafkaException) as refused:
        member.consumer.commit(offsets=wanted, asynchronous=False)
    assert refused.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert member.committed(("t", 0)) == {("t", 0): 1}


def test_metadata_of_a_commit_has_a_limit(kafka: Cluster, members: Members) -> None:
    """4,096 bytes are kept and given back, one more is refused."""
    member = members("g", "t")
    members.settle(member, partitions=4)
    # confluent-kafka sends the end of its C string too.
    for size, code in ((4095, None), (4096, KafkaError.OFFSET_METADATA_TOO_LARGE)):
        wanted = [TopicPartition("t", 0, size, metadata="m" * size)]
        try:
            (answered,) = member.consumer.commit(offsets=wanted, asynchronous=False)
            error = answered.error
        except KafkaException as refused:
            error = refused.args[0]
        assert (error and error.code()) == code
    (kept,) = member.consumer.committed([TopicPartition("t", 0)], timeout=20)
    assert (kept.offset, kept.metadata) == (4095, "m" * 4095)


# ------------------------------------------------------------------------------ the coordinator


@pytest.fixture
def python_admin(kafka: Cluster) -> Iterator[KafkaAdminClient]:
    made = KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
    yield made
    made.close()


def lead_elsewhere(kafka: Cluster, admin: KafkaAdminClient, group: str) -> tuple[int, int]:
    """Move the group's partition of the internal topic to another leader: from where to where."""

    def leader(cluster: Any) -> tuple[int, int]:
        index = cluster.find_coordinator_partition(group)
        return index, cluster.topics[OFFSETS].partitions[index].leader_id

    index, before = kafka.call(leader)
    others = [node for node in (1, 2, 3) if node != before]
    partition = PythonPartition(OFFSETS, index)
    assert admin.alter_partition_reassignments({partition: others}) == {partition: None}
    deadline = time.monotonic() + 20
    while admin.list_partition_reassignments():
        assert time.monotonic() < deadline
    after = kafka.call(leader)[1]
    assert after in others
    return before, after


@pytest.mark.covers("S179", "S184")
def test_a_coordinator_moves_with_everything_it_knows(
    kafka: Cluster,
    members: Members,
    python_admin: KafkaAdminClient,
    admin: AdminClient,
    log: RequestLog,
) -> None:
    """The old one answers NOT_COORDINATOR, the client looks it up again; committed offsets,
    generation and members are read back from the log, and nobody has to rebalance.
    """
    fill(kafka, "t", 8)
    member = members("g", "t", session_timeout_ms=60_000)
    members.collect(8)
    member.commit()
    owned: dict[Partition, int] = member.committed(*member.owned)
    before = look(kafka, "g")
    member.told()
    log.clear()
    old, new = lead_elsewhere(kafka, python_admin, "g")
    members.until(lambda: any(each.node_id == new for each in log.of(ApiKey.HEARTBEAT)))
    beats = log.of(ApiKey.HEARTBEAT)
    refused = [each for each in beats if each.response.error_code == ErrorCode.NOT_COORDINATOR]
    assert {each.node_id for each in refused} == {old}
    assert log.of(ApiKey.FIND_COORDINATOR, client_id=member.name)
    assert member.committed(*owned) == owned
    assert look(kafka, "g") == before
    assert member.told() == []
    assert admin.describe_consumer_groups(["g"])["g"].result(20).coordinator.id == new
    fill(kafka, "t", 4)
    members.collect(12)
    member.commit()
    assert member.committed(*owned) == dict.fromkeys(owned, 3)
    assert log.of(ApiKey.JOIN_GROUP) == []


def test_lag_is_what_is_behind_the_committed_offsets(kafka: Cluster, members: Members) -> None:
    """`mockbroker groups describe` while the member is at work: who, where, how far behind."""
    fill(kafka, "t", 40)
    member = members("g", "t", client_id="worker")
    members.collect(40)
    member.commit(*(("t", index, 4) for index in range(4)))
    environment = {"MOCKBROKER_BOOTSTRAP": kafka.bootstrap_servers}
    shown = CliRunner().invoke(main, ["groups", "describe", "g", "--json"], env=environment)
    assert shown.exit_code == 0, shown.output
    described = json.loads(shown.output)
    assert (described["state"], described["lag"]) == ("Stable", 24)
    assert [each["lag"] for each in described["partitions"]] == [6, 6, 6, 6]
