"""Groups and their offsets."""

from __future__ import annotations

from mockbroker.core.security.acls import AclOperation, ResourceType
from mockbroker_protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from mockbroker_protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from mockbroker_protocol.messages.delete_groups import DeleteGroupsRequest
from mockbroker_protocol.messages.describe_groups import DescribeGroupsRequest
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.heartbeat import HeartbeatRequest
from mockbroker_protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from mockbroker_protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from mockbroker_protocol.messages.list_groups import ListGroupsRequest
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
from mockbroker_protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from mockbroker_protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TopicInfo,
    Topology,
)
from mockbroker_protocol.messages.sync_group import SyncGroupRequest
from tests.differential.secured.session import AclSession, case
from tests.support.waiting import wait_until

O, R = AclOperation, ResourceType  # noqa: E741
UNKNOWN_ID = bytes(range(16))


def join(group: str) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol("range", b"")],
    )


@case
def members_need_to_read_the_group(session: AclSession) -> None:
    group = session.name
    session.coordinator(group)
    for version in (0, 5, 6, 7, 9):
        session.ask(join(group), version)
    for version in (0, 3, 5):
        session.ask(SyncGroupRequest(group, 1, "m"), version)
    named = SyncGroupRequest(group, 1, "m", protocol_type="consumer", protocol_name="range")
    session.ask(named, 5)
    for version in (0, 4):
        session.ask(HeartbeatRequest(group, 1, "m"), version)
    for version in (0, 3, 5):
        session.ask(LeaveGroupRequest(group, "m", [MemberIdentity("m")]), version)
    session.allow(O.DESCRIBE, R.GROUP, group)
    session.ask(HeartbeatRequest(group, 1, "m"), 4)
    session.allow(O.READ, R.GROUP, group)
    session.ask(HeartbeatRequest(group, 1, "m"), 4)
    session.ask(join(group), 9)


@case
def groups_without_a_name(session: AclSession) -> None:
    session.ask(join(""), 9)
    session.ask(HeartbeatRequest("", 1, "m"), 4)
    session.ask(SyncGroupRequest("", 1, "m"), 5)
    session.ask(LeaveGroupRequest("", "m", [MemberIdentity("m")]), 5)
    session.ask(DescribeGroupsRequest([""]), 6)
    session.ask(DeleteGroupsRequest([""]), 2)


def beat(group: str, *topics: str, regex: str | None = None) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id="member",
        member_epoch=0,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=list(topics) if regex is None else None,
        subscribed_topic_regex=regex,
        topic_partitions=[],
    )


@case
def members_of_the_new_protocol(session: AclSession) -> None:
    group, topic = session.name, session.topic()
    session.coordinator(group)
    for version in (0, 1):
        session.ask(beat(group, topic), version)
    session.allow(O.READ, R.GROUP, group)
    session.ask(beat(group, topic), 1)
    session.ask(beat(group, "missing", topic), 1)
    session.allow(O.DESCRIBE, R.TOPIC, topic)
    session.ask(beat(group, topic, "missing"), 1)
    session.ask(beat(group, topic), 1)
    session.ask(ConsumerGroupDescribeRequest([group], True), 1)


@case
def regular_expressions_match_what_may_be_described(session: AclSession) -> None:
    group = session.name
    seen, _ = session.topic("-seen"), session.topic("-unseen")
    session.coordinator(group)
    session.allow(O.READ, R.GROUP, group)
    session.allow(O.DESCRIBE, R.TOPIC, seen)
    assigned: list[int] = []
    epoch = session.quietly(beat(group, regex=f"{group}.*"), 1).member_epoch

    def beats() -> bool:
        nonlocal epoch
        again = ConsumerGroupHeartbeatRequest(
            group_id=group, member_id="member", member_epoch=epoch
        )
        answer = session.quietly(again, 1)
        epoch = answer.member_epoch
        if answer.assignment is not None:
            assigned[:] = [len(t.partitions) for t in answer.assignment.topic_partitions]
        return bool(assigned)

    wait_until(beats, what="an assignment")
    session.note(assigned, "assigned")
    described = session.quietly(ConsumerGroupDescribeRequest([group], False), 1, "admin")
    (member,) = described.groups[0].members
    session.note([t.topic_name for t in member.assignment.topic_partitions], "topics")
    leave = ConsumerGroupHeartbeatRequest(group_id=group, member_id="member", member_epoch=-1)
    session.quietly(leave, 1)


@case
def groups_are_described_by_who_may(session: AclSession) -> None:
    group, topic = session.name, session.topic()
    session.coordinator(group)
    session.quietly(beat(group, topic), 1, "admin")
    classic = f"{group}-classic"
    session.coordinator(classic)
    _commit_quietly(session, classic, topic)
    for version in (0, 3, 6):
        session.ask(DescribeGroupsRequest([classic], version >= 3), version)
    session.ask(ConsumerGroupDescribeRequest([group], True), 1)
    session.allow(O.DESCRIBE, R.GROUP, group, prefixed=True)
    session.ask(DescribeGroupsRequest([classic, "other"], True), 6)
    session.ask(ConsumerGroupDescribeRequest([group, "other"], True), 1)
    session.allow(O.DESCRIBE, R.TOPIC, topic)
    session.allow(O.DELETE, R.GROUP, classic)
    session.ask(DescribeGroupsRequest([classic], True), 5)

    def anonymous(answer: object) -> object:
        for line in answer.groups:  # type: ignore[attr-defined]
            for member in line.members:
                member.client_id = "client"
        return answer

    session.ask(ConsumerGroupDescribeRequest([group], True), 1, edit=anonymous)
    leave = ConsumerGroupHeartbeatRequest(group_id=group, member_id="member", member_epoch=-1)
    session.quietly(leave, 1, "admin")


def _own(session: AclSession) -> list[str]:
    answer = session.quietly(ListGroupsRequest(), 5)
    assert answer.error_code == 0
    return sorted(g.group_id for g in answer.groups if g.group_id.startswith(session.name))


@case
def groups_are_listed_and_deleted_by_who_may(session: AclSession) -> None:
    topic = session.topic()
    groups = [f"{session.name}-{n}" for n in "abc"]
    for group in groups:
        session.coordinator(group)
        _commit_quietly(session, group, topic)
    session.note(_own(session), "listed with no rights")
    session.allow(O.READ, R.GROUP, groups[1])
    session.note(_own(session), "listed with a right on one")
    session.allow(O.DESCRIBE, R.CLUSTER)
    session.note(_own(session), "listed with a right on the cluster")
    session.allow(O.DELETE, R.GROUP, groups[0])
    session.ask(DeleteGroupsRequest([*groups, "none"]), 2)
    session.note(_own(session), "listed afterwards")


@case
def coordinators_are_told_to_who_may(session: AclSession) -> None:
    group = session.name
    session.coordinator(group)
    session.coordinator(group, 1)
    for key_type in (0, 1, 2):
        for version in (0, 1, 3) if key_type == 0 else (1, 3):
            session.ask(FindCoordinatorRequest(group, key_type), version)
        for version in (4, 6):
            wanted = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[group, "other"])
            session.ask(wanted, version)
    session.allow(O.DESCRIBE, R.GROUP, group)
    session.allow(O.WRITE, R.TRANSACTIONAL_ID, group)
    for key_type in (0, 1):
        session.ask(FindCoordinatorRequest(group, key_type), 3)
        wanted = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["other", group])
        session.ask(wanted, 6)
    session.ask(FindCoordinatorRequest(group, 7), 3)


# -- offsets ---------------------------------------------------------------------------------------


def commit(group: str, *topics: str, ids: tuple[bytes, ...] = ()) -> OffsetCommitRequest:
    partitions = [OffsetCommitRequestPartition(0, 5), OffsetCommitRequestPartition(9, 5)]
    return OffsetCommitRequest(
        group_id=group,
        topics=[
            *(OffsetCommitRequestTopic(name=t, partitions=partitions) for t in topics),
            *(OffsetCommitRequestTopic(topic_id=i, partitions=partitions) for i in ids),
        ],
    )


def _commit_quietly(session: AclSession, group: str, *topics: str) -> None:
    lines = [
        OffsetCommitRequestTopic(t, partitions=[OffsetCommitRequestPartition(0, 5)]) for t in topics
    ]
    session.without_error(
        OffsetCommitRequest(group_id=group, topics=lines),
        9,
        lambda answer: any(t.partitions[0].error_code for t in answer.topics),
    )


@case
def offsets_are_committed_by_who_may(session: AclSession) -> None:
    group = session.name
    one, two = session.topic("-one"), session.topic("-two")
    ids = (session.topic_id(one), session.topic_id(two), UNKNOWN_ID)
    session.coordinator(group)
    for version in (2, 9):
        session.ask(commit(group, one, "missing"), version)
    session.ask(commit(group, ids=ids), 10)
    session.allow(O.READ, R.GROUP, group)
    for version in (2, 9):
        session.ask(commit(group, one, "missing"), version)
    session.ask(commit(group, ids=ids), 10)
    session.allow(O.READ, R.TOPIC, two)
    session.ask(commit(group, one, two), 9)
    session.ask(commit(group, ids=ids[:2]), 10)
    session.ask(commit("other", one), 9)


@case
def offsets_are_fetched_by_who_may(session: AclSession) -> None:
    group = session.name
    one, two = session.topic("-one"), session.topic("-two")
    ids = {one: session.topic_id(one), two: session.topic_id(two)}
    session.coordinator(group)
    _commit_quietly(session, group, one, two)

    def ask() -> None:
        for topics in ((one, two), ("missing", two), None):
            old = None if topics is None else [OffsetFetchRequestTopic(t, [0, 1]) for t in topics]
            for version in (1, 2, 7) if topics is not None else (2, 7):
                session.ask(OffsetFetchRequest(group_id=group, topics=old), version)
            new = None
            if topics is not None:
                new = [OffsetFetchRequestTopics(t, partition_indexes=[0]) for t in topics]
            groups = [OffsetFetchRequestGroup(g, topics=new) for g in (group, "other")]
            session.ask(OffsetFetchRequest(groups=groups), 9)
        wanted = [OffsetFetchRequestTopics("", i, [0]) for i in (*ids.values(), UNKNOWN_ID)]
        for each in (wanted, None):
            session.ask(
                OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group, topics=each)]), 10
            )

    ask()
    session.allow(O.DESCRIBE, R.GROUP, group)
    ask()
    session.allow(O.DESCRIBE, R.TOPIC, two)
    ask()


@case
def offsets_are_deleted_by_who_may(session: AclSession) -> None:
    group = session.name
    one, two = session.topic("-one"), session.topic("-two")
    session.coordinator(group)
    _commit_quietly(session, group, one, two)
    request = OffsetDeleteRequest(
        group,
        [
            OffsetDeleteRequestTopic(t, [OffsetDeleteRequestPartition(0)])
            for t in (one, two, "missing")
        ],
    )
    session.ask(request, 0)
    session.allow(O.DELETE, R.GROUP, group)
    session.ask(request, 0)
    session.allow(O.READ, R.TOPIC, two)
    session.ask(request, 0)
    other = OffsetDeleteRequest("other", request.topics[:1])
    session.ask(other, 0)
    session.allow(O.ALL, R.GROUP, "other")
    session.ask(other, 0)


def streams_beat(
    group: str, source: str, changelog: str, epoch: int = 0
) -> StreamsGroupHeartbeatRequest:
    """A heartbeat of a streams member; it brings its topology when it joins."""
    stateful = Subtopology(
        "0", source_topics=[source], state_changelog_topics=[TopicInfo(changelog)]
    )
    return StreamsGroupHeartbeatRequest(
        group_id=group,
        member_id="member",
        member_epoch=epoch,
        rebalance_timeout_ms=30_000,
        topology=None if epoch else Topology(0, [stateful]),
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        process_id="process",
    )


@case
def members_of_a_streams_group(session: AclSession) -> None:
    """Internal topics are created with the rights of the member."""
    group, topic = session.name, session.topic()
    changelog = f"{topic}-changelog"
    session.coordinator(group)
    joining = streams_beat(group, topic, changelog)
    session.ask(joining, 0)
    session.allow(O.READ, R.GROUP, group)
    session.ask(joining, 0)
    session.ask(streams_beat(group, "__consumer_offsets", changelog), 0)
    session.allow(O.DESCRIBE, R.TOPIC, topic)
    session.ask(joining, 0)
    session.allow(O.DESCRIBE, R.TOPIC, changelog)
    session.ask(joining, 0, label="may not create")
    session.ask(StreamsGroupDescribeRequest([group, f"{group}-other"], True), 0)
    session.allow(O.DESCRIBE, R.GROUP, group)
    session.ask(StreamsGroupDescribeRequest([group, f"{group}-other"], True), 0)
    session.deny(O.DESCRIBE, R.TOPIC, changelog)
    session.ask(StreamsGroupDescribeRequest([group], False), 0, label="an unseen topic")
