"""Committed offsets: who may commit when, what is fetched back, what is deleted."""

from __future__ import annotations

from typing import Any

from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from mockbroker_protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from mockbroker_protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.differential.cases.groups import (
    describe,
    join,
    leave,
    member_of,
    new_group,
    stable_group,
    sync,
    wait_for_rebalance,
)
from tests.differential.dialogue import make_topic, wait_for_leaders
from tests.differential.registry import case
from tests.differential.session import Session


def commit(
    group: str,
    topic: str,
    offset: int = 5,
    *,
    partition: int = 0,
    generation: int = -1,
    member_id: str = "",
    metadata: str | None = "note",
    topic_id: bytes = bytes(16),
    **options: Any,
) -> OffsetCommitRequest:
    item = OffsetCommitRequestPartition(
        partition_index=partition, committed_offset=offset, committed_metadata=metadata
    )
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=[OffsetCommitRequestTopic(name=topic, topic_id=topic_id, partitions=[item])],
        **options,
    )


def committed(
    group: str, topic: str | None, *partitions: int, **options: Any
) -> OffsetFetchRequest:
    """OffsetFetch in the form of v1 to v7 and of v8 on; without a topic: all."""
    partitions = partitions or (0, 1)
    old = (
        [OffsetFetchRequestTopic(name=topic, partition_indexes=list(partitions))] if topic else None
    )
    new = (
        [OffsetFetchRequestTopics(name=topic, partition_indexes=list(partitions))]
        if topic
        else None
    )
    return OffsetFetchRequest(
        group_id=group,
        topics=old,
        groups=[OffsetFetchRequestGroup(group_id=group, topics=new)],
        **options,
    )


@case()
def commit_and_fetch_every_version(session: Session) -> None:
    topic = make_topic(session, partitions=2)
    topic_id = wait_for_leaders(session, topic)
    for version in range(2, 11):
        group = new_group(session, f"-{version}")
        name = topic if version < 10 else ""
        request = commit(group, name, version, topic_id=topic_id)
        session.ask(request, version)
        for fetch_version in range(1, 10):
            session.ask(committed(group, topic), fetch_version, label="both partitions")
            if fetch_version >= 2:
                session.ask(committed(group, None), fetch_version, label="all")
        by_id = OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[0, 1])
        groups = [OffsetFetchRequestGroup(group_id=group, topics=[by_id])]
        session.ask(OffsetFetchRequest(groups=groups), 10, label="by id")
        groups = [OffsetFetchRequestGroup(group_id=group, topics=None)]
        session.ask(OffsetFetchRequest(groups=groups), 10, label="all by id")
        describe(session, group)


@case()
def fetch_what_was_never_committed(session: Session) -> None:
    topic = make_topic(session)
    group = new_group(session)
    for version in range(1, 10):
        session.ask(committed(group, topic), version, label="unknown group")
        session.ask(committed(group, "no-such-topic", 0), version, label="unknown topic")
    unknown = OffsetFetchRequestTopics(topic_id=b"\x05" * 16, partition_indexes=[0])
    groups = [OffsetFetchRequestGroup(group_id=group, topics=[unknown])]
    session.ask(OffsetFetchRequest(groups=groups), 10, label="unknown id")
    two = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in (group, "", "third")]
    session.ask(OffsetFetchRequest(groups=two[:2]), 8, label="two groups")
    session.ask(OffsetFetchRequest(groups=two[:1], require_stable=True), 8, label="stable")
    session.ask(committed(group, topic, 0, 7), 5, label="unknown partition")


@case()
def commit_refusals(session: Session) -> None:
    topic = make_topic(session)
    group = new_group(session)
    for version in (2, 5, 8, 9):
        session.ask(commit(group, topic, generation=3, member_id="m"), version, label="no group")
        session.ask(commit(group, "no-such-topic"), version, label="unknown topic")
        session.ask(commit(group, topic, partition=9), version, label="unknown partition")
        session.ask(commit(group, topic, metadata="x" * 4096), version, label="long note")
        session.ask(commit(group, topic, metadata="x" * 4097), version, label="too long a note")
        session.ask(commit(group, topic, metadata=None), version, label="no note")
        session.ask(commit(group, topic, -1), version, label="offset -1")
        session.ask(committed(group, topic, 0), 7)
    session.ask(commit(group, "", topic_id=b"\x06" * 16), 10, label="unknown id")
    session.ask(commit("", topic), 8, label="empty group id")
    session.ask(committed("", topic, 0), 7, label="empty group id")


@case()
def commit_in_every_state(session: Session) -> None:
    topic = make_topic(session)
    group = new_group(session)

    def ask(label: str, generation: int, member_id: str, version: int = 8, **o: Any) -> None:
        request = commit(group, topic, generation=generation, member_id=member_id, **o)
        session.ask(request, version, label=label)

    first = member_of(session, group)
    ask("pending member", 0, first)
    generation = session.ask(join(group, first), 5).generation_id
    ask("completing", generation, first)
    ask("completing, standalone", -1, "")
    session.ask(sync(group, generation, first, {first: b"x"}), 3)
    ask("stable", generation, first)
    ask("stable, old generation", generation - 1, first)
    ask("stable, newer generation", generation + 1, first)
    ask("stable, unknown member", generation, "other")
    ask("stable, unknown instance", generation, first, group_instance_id="nobody")
    ask("stable, standalone", -1, "")
    ask("stable, member without a generation", -1, first)
    second = member_of(session, group, "second")
    joining = session.start(join(group, second), 5, "second")
    wait_for_rebalance(session, group, generation, first)
    ask("preparing", generation, first)
    ask("preparing, standalone", -1, "")
    ask("preparing, newcomer", generation, second)
    session.ask(leave(group, (first, None)), 3)
    joined = joining()
    session.ask(leave(group, (second, None)), 3)
    ask("empty, generation", joined.generation_id, second)
    ask("empty, standalone", -1, "")
    session.ask(committed(group, topic, 0), 7)


@case()
def commit_several(session: Session) -> None:
    topic = make_topic(session, partitions=3)
    group = new_group(session)
    partitions = [
        OffsetCommitRequestPartition(
            partition_index=index, committed_offset=index * 10, committed_leader_epoch=index
        )
        for index in (0, 2, 9)
    ]
    topics = [
        OffsetCommitRequestTopic(name=topic, partitions=partitions),
        OffsetCommitRequestTopic(name="nowhere", partitions=partitions[:1]),
    ]
    session.ask(OffsetCommitRequest(group_id=group, topics=topics), 7)
    session.ask(committed(group, topic, 0, 1, 2), 7)
    session.ask(OffsetCommitRequest(group_id=group), 7, label="nothing")


@case()
def delete_offsets(session: Session) -> None:
    topic = make_topic(session, partitions=2)
    other = make_topic(session, "-other")

    def ask(label: str, group: str, name: str, *partitions: int) -> None:
        items = [OffsetDeleteRequestPartition(partition_index=index) for index in partitions]
        request = OffsetDeleteRequest(
            group_id=group, topics=[OffsetDeleteRequestTopic(name=name, partitions=items)]
        )
        session.ask(request, 0, label=label)

    group = new_group(session)
    ask("unknown group", group, topic, 0)
    ask("no group id", "", topic, 0)
    session.ask(commit(group, topic), 7)
    ask("simple group", group, topic, 0, 1)
    ask("unknown partition and topic", group, topic, 9)
    ask("unknown topic", group, "no-such-topic", 0)
    session.ask(committed(group, topic), 7)
    describe(session, group)
    busy = new_group(session, "-busy")
    member_id, generation = stable_group(session, busy)
    for name in (topic, other):
        session.ask(commit(busy, name, generation=generation, member_id=member_id), 7)
    ask("a topic that is not subscribed", busy, other, 0)
    session.ask(committed(busy, other, 0), 7)
    connect = new_group(session, "-connect")
    options = {"protocol_type": "connect"}
    member_id = member_of(session, connect, **options)
    session.ask(join(connect, member_id, **options), 5)
    ask("not a consumer group", connect, topic, 0)


@case()
def find_coordinator_answers(session: Session) -> None:
    new_group(session)
    for version in range(7):
        for key_type in (0, 2, 3, -1) if version else (0,):
            for key in (session.name, "", "g:topic:0"):
                request = FindCoordinatorRequest(key=key, key_type=key_type, coordinator_keys=[key])
                session.ask(request, version, label=f"type {key_type} {key!r}")
    request = FindCoordinatorRequest(coordinator_keys=["a", "b", "a"])
    session.ask(request, 4, label="several")
    session.ask(FindCoordinatorRequest(coordinator_keys=[]), 4, label="none")
