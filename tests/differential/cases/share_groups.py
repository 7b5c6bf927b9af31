"""Share groups (KIP-932): heartbeats, fencing, start offsets, and requests of other protocols.

Which partitions of a topic a member gets depends on the drawn topic id, because the assignor goes
by the order of Java's hash tables. So the cases compare only how many it gets; tests of the
assignor compare the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mockbroker_protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from mockbroker_protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from mockbroker_protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from mockbroker_protocol.messages.delete_groups import DeleteGroupsRequest
from mockbroker_protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from mockbroker_protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from mockbroker_protocol.messages.describe_groups import DescribeGroupsRequest
from mockbroker_protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from mockbroker_protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from mockbroker_protocol.messages.list_groups import ListGroupsRequest
from mockbroker_protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from mockbroker_protocol.messages.share_group_describe import ShareGroupDescribeRequest
from mockbroker_protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from mockbroker_protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.differential.cases.consumer_groups import joining as joining_consumer
from tests.differential.cases.consumer_groups import new_group, topic_of
from tests.differential.registry import case
from tests.differential.session import Session
from tests.support.group_node import (
    commit_request,
    fetch_request,
    heartbeat_request,
    join_request,
    leave_request,
    sync_request,
)

GROUP_RESOURCE = 32
SAFE_DOWNGRADE, UPGRADE = 2, 1
ATTEMPTS_MAX = 40_000


def beat(group: str, member: str, epoch: int, *topics: str, **options: Any) -> Any:
    """A heartbeat; with topics a full one."""
    return ShareGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        subscribed_topic_names=list(topics) or None,
        **options,
    )


def counts(answer: Any) -> Any:
    """An answer with the number of partitions in place of the partitions."""
    if answer.assignment is not None:
        for line in answer.assignment.topic_partitions:
            line.partitions = [len(line.partitions)]
        answer.assignment.topic_partitions.sort(key=lambda line: line.partitions)
    return answer


def described_counts(answer: Any) -> Any:
    """A description with such numbers; a real broker has groups and topics in drawn orders."""
    answer.groups.sort(key=lambda group: group.group_id)
    for group in answer.groups:
        group.members.sort(key=lambda member: member.member_id)
        for member in group.members:
            member.assignment.topic_partitions.sort(key=lambda line: line.topic_name)
            for line in member.assignment.topic_partitions:
                line.partitions = [len(line.partitions)]
    return answer


def without_assignment(answer: Any) -> Any:
    """An answer to a heartbeat without what the member is to have."""
    answer.assignment = None
    return answer


def described_coverage(answer: Any) -> Any:
    """A description of one group, with how much is assigned in place of what: the partitions that
    some member has, and the least that a member has (0 or 1).
    """
    (group,) = answer.groups
    group.members.sort(key=lambda member: member.member_id)
    assigned = [m.assignment.topic_partitions for m in group.members]
    covered = sorted({index for lines in assigned for line in lines for index in line.partitions})
    for member, lines in zip(group.members, assigned, strict=True):
        member.assignment = [min(1, sum(len(line.partitions) for line in lines)), covered]
    return answer


def describe(session: Session, *groups: str, label: str = "describe", **options: Any) -> Any:
    request = ShareGroupDescribeRequest(group_ids=list(groups), **options)
    return session.ask(request, 1, label=label, edit=described_counts)


def catch_up(session: Session, group: str, member: str, epoch: int) -> int:
    """Beat until the member's epoch moves on, which takes a real broker a moment: it initializes
    the share partitions first. Returns the epoch.
    """
    for _ in range(ATTEMPTS_MAX):
        answer = session.quietly(beat(group, member, epoch), 1)
        if answer.error_code or answer.member_epoch != epoch:
            return int(answer.member_epoch)
    raise AssertionError(f"{member} stays at epoch {epoch}")


def join(session: Session, group: str, member: str, *topics: str) -> int:
    """Join as the first member, and wait for the partitions; returns the epoch."""
    joined = session.ask(beat(group, member, 0, *topics), 1, label=f"{member} joins", edit=counts)
    return catch_up(session, group, member, joined.member_epoch)


def offsets(
    session: Session,
    group: str,
    topics: Mapping[str, Sequence[int]] | None = None,
    label: str = "offsets",
    *,
    answered: bool = True,
) -> None:
    """DescribeShareGroupOffsets in both versions."""
    wanted = None
    if topics is not None:
        wanted = [
            DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=list(ps))
            for name, ps in topics.items()
        ]

    def in_order(answer: Any) -> Any:
        for row in answer.groups:
            row.topics.sort(key=lambda topic: topic.topic_name)
            for topic in row.topics:
                topic.partitions.sort(key=lambda each: each.partition_index)
        return answer

    row = DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=wanted)
    request = DescribeShareGroupOffsetsRequest(groups=[row])
    for version in (0, 1):
        if answered:
            session.ask(request, version, label=label, edit=in_order)
        else:
            session.no_answer(request, version, f"silence {version}", label)


def altering(group: str, starts: Mapping[str, Mapping[int, int]]) -> AlterShareGroupOffsetsRequest:
    return AlterShareGroupOffsetsRequest(
        group_id=group,
        topics=[
            AlterShareGroupOffsetsRequestTopic(
                topic_name=name,
                partitions=[
                    AlterShareGroupOffsetsRequestPartition(partition_index=p, start_offset=at)
                    for p, at in offsets.items()
                ],
            )
            for name, offsets in starts.items()
        ],
    )


def forgetting(group: str, *topics: str) -> DeleteShareGroupOffsetsRequest:
    rows = [DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics]
    return DeleteShareGroupOffsetsRequest(group_id=group, topics=rows)


@case()
def share_heartbeat_invalid_requests(session: Session) -> None:
    group = new_group(session)
    for label, request in {
        "no group": beat("", "m", 0, "t"),
        "blank group": beat(" ", "m", 0, "t"),
        "no member": beat(group, "", 0, "t"),
        "blank member": beat(group, " ", 0, "t"),
        "long member": beat(group, "m" * 37, 0, "t"),
        "empty rack": beat(group, "m", 0, "t", rack_id=""),
        "no subscription": beat(group, "m", 0),
        "epoch -2": beat(group, "m", -2),
        "unknown group": beat(group, "m", 1),
        "unknown group, leave": beat(group, "m", -1),
        "topic that does not exist": beat(group, "m" * 36, 0, "no-such-topic"),
    }.items():
        session.ask(request, 1, label=label)
    describe(session, group, "", f"{group}-none")


@case()
def share_group_of_one(session: Session) -> None:
    topic, _ = topic_of(session)
    group = new_group(session)
    epoch = join(session, group, "m", topic)
    session.ask(beat(group, "m", epoch), 1, label="nothing new")
    session.ask(beat(group, "m", epoch, topic), 1, label="full request", edit=counts)
    session.ask(beat(group, "m", 0, topic), 1, label="joins again", edit=counts)
    describe(session, group)
    describe(session, group, label="with operations", include_authorized_operations=True)
    session.ask(beat(group, "m", epoch, rack_id="r"), 1, label="other rack")
    session.ask(beat(group, "m", epoch, "none"), 1, label="subscribes anew", edit=counts)
    describe(session, group)
    session.ask(DeleteGroupsRequest(groups_names=[group]), 2, label="not empty")
    session.ask(beat(group, "m", -1), 1, label="leaves")
    session.ask(beat(group, "m", epoch), 1, label="has left")
    describe(session, group)
    session.ask(DeleteGroupsRequest(groups_names=[group]), 2, label="empty")
    describe(session, group, label="gone")


@case()
def share_group_and_other_protocols(session: Session) -> None:
    topic, _ = topic_of(session)
    group = new_group(session)
    join(session, group, "m", topic)

    def ask_all(state: str) -> None:
        for version in (0, 5, 6):
            session.ask(DescribeGroupsRequest(groups=[group]), version, label=state)
        session.ask(ConsumerGroupDescribeRequest(group_ids=[group]), 1, label=state)
        session.ask(joining_consumer(group, "c", topic), 1, label=f"{state}, consumer joins")
        for version in (4, 9):
            session.ask(join_request(group), version, label=f"{state}, JoinGroup")
            session.ask(join_request(group, "x"), version, label=f"{state}, JoinGroup with id")
        session.ask(sync_request(group, "m", 1), 5, label=state)
        session.ask(heartbeat_request(group, "m", 1), 4, label=state)
        session.ask(leave_request(group, "m"), 5, label=state)
        for version in (8, 9):
            session.ask(commit_request({(topic, 0): 1}, group), version, label=state)
            session.ask(commit_request({(topic, 0): 1}, group, "m", 1), version, label=state)
            session.ask(fetch_request({topic: [0]}, group), version, label=state)
        session.ask(fetch_request(None, group), 9, label=f"{state}, all")
        row = OffsetDeleteRequestTopic(
            name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=0)]
        )
        session.ask(OffsetDeleteRequest(group_id=group, topics=[row]), 0, label=state)

    ask_all("stable")
    session.ask(beat(group, "m", -1), 1)
    ask_all("empty")
    describe(session, group)


@case()
def share_requests_to_other_groups(session: Session) -> None:
    topic, _ = topic_of(session)
    consumer, simple = new_group(session, "-consumer"), new_group(session, "-simple")
    session.ask(joining_consumer(consumer, "c", topic), 1)
    session.ask(commit_request({(topic, 0): 1}, simple), 9)
    for group in (consumer, simple):
        session.ask(beat(group, "m", 0, topic), 1, label="join")
        session.ask(beat(group, "m", 1), 1, label="stay")
        session.ask(beat(group, "m", -1), 1, label="leave")
        session.ask(altering(group, {topic: {0: 1}}), 0)
        session.ask(forgetting(group, topic), 0)
        offsets(session, group)
        offsets(session, group, {topic: [0]})
    describe(session, consumer, simple)


@case()
def share_groups_listed(session: Session) -> None:
    topic, _ = topic_of(session)
    group, empty = new_group(session), new_group(session, "-empty")
    session.ask(beat(group, "m", 0, topic), 1)
    session.ask(beat(empty, "m", 0, topic), 1)
    session.ask(beat(empty, "m", -1), 1)

    def mine(answer: Any) -> Any:
        answer.groups = sorted(
            (g for g in answer.groups if g.group_id in (group, empty)), key=lambda g: g.group_id
        )
        return answer

    for version in range(6):
        session.ask(ListGroupsRequest(), version, edit=mine)
    for states in (["stable"], ["EMPTY"], ["Dead"]):
        session.ask(ListGroupsRequest(states_filter=states), 5, label=f"{states}", edit=mine)
    for types in (["Share"], ["consumer"]):
        session.ask(ListGroupsRequest(types_filter=types), 5, label=f"{types}", edit=mine)


@case()
def share_group_fencing(session: Session) -> None:
    topic, _ = topic_of(session)
    group = new_group(session)
    epoch = join(session, group, "m", topic)
    session.ask(beat(group, "m", epoch + 1), 1, label="from the future")
    session.ask(beat(group, "m", epoch - 1), 1, label="previous")
    session.ask(beat(group, "nobody", epoch), 1, label="unknown")
    session.ask(beat(group, "nobody", -1), 1, label="unknown leaves")
    session.ask(beat(group, "n", 0, topic), 1, label="second", edit=counts)
    session.ask(beat(group, "m", epoch), 1, label="catches up", edit=counts)
    session.ask(beat(group, "m", epoch - 1), 1, label="older than the previous")
    session.ask(beat(group, "m", epoch), 1, label="previous again")


@case()
def share_group_shares(session: Session) -> None:
    """Members come and go; more of them than partitions, and fewer.

    Which of them gets a second partition after others have left depends on the drawn topic id.
    """
    topic, _ = topic_of(session, partitions=3)
    group = new_group(session)
    epochs = {"member-0": join(session, group, "member-0", topic)}

    def settle() -> None:
        for _ in range(2):
            for name, epoch in list(epochs.items()):
                answer = session.ask(
                    beat(group, name, epoch), 1, label=name, edit=without_assignment
                )
                epochs[name] = answer.member_epoch
        request = ShareGroupDescribeRequest(group_ids=[group])
        session.ask(request, 1, label="describe", edit=described_coverage)

    for number in range(1, 7):
        name = f"member-{number}"
        joined = session.ask(beat(group, name, 0, topic), 1, label=name, edit=without_assignment)
        epochs[name] = joined.member_epoch
        settle()
    for name in list(epochs)[::2]:
        session.ask(beat(group, name, -1), 1, label=f"{name} leaves")
        del epochs[name]
        settle()


@case()
def share_group_of_different_subscriptions(session: Session) -> None:
    one, _ = topic_of(session, "-one", 4)
    two, _ = topic_of(session, "-two", 1)
    group = new_group(session)
    epochs = {"one": join(session, group, "one", one)}
    joined = session.ask(beat(group, "both", 0, one, two), 1, label="both")
    epochs["both"] = catch_up(session, group, "both", joined.member_epoch)
    joined = session.ask(beat(group, "two", 0, two), 1, label="two", edit=counts)
    epochs["two"] = joined.member_epoch
    for _ in range(2):
        for name, epoch in list(epochs.items()):
            epochs[name] = session.quietly(beat(group, name, epoch), 1).member_epoch
    describe(session, group)
    session.ask(beat(group, "both", epochs["both"], two), 1, label="only two", edit=counts)
    for name, epoch in list(epochs.items()):
        session.quietly(beat(group, name, epoch), 1)
    describe(session, group)


@case()
def share_group_follows_its_topics(session: Session) -> None:
    """New partitions are initialized and then assigned; a deleted topic is forgotten."""
    topic, _ = topic_of(session, partitions=2)
    other, _ = topic_of(session, "-other", 1)
    group = new_group(session)
    epoch = join(session, group, "m", topic, other)
    offsets(session, group)
    grown = CreatePartitionsTopic(name=topic, count=4, assignments=None)
    session.quietly(CreatePartitionsRequest(topics=[grown], timeout_ms=10_000), 3)
    epoch = catch_up(session, group, "m", epoch)  # the metadata
    epoch = catch_up(session, group, "m", epoch)  # the new partitions
    describe(session, group, label="grown")
    offsets(session, group, label="grown")
    session.quietly(
        DeleteTopicsRequest(topics=[DeleteTopicState(name=other)], timeout_ms=10_000), 6
    )
    catch_up(session, group, "m", epoch)
    describe(session, group, label="deleted")
    offsets(session, group, label="deleted")


@case()
def share_group_offsets(session: Session) -> None:
    topic, _ = topic_of(session, partitions=2)
    group = new_group(session)
    nothing = {topic: [0, 1], "no-such-topic": [0]}
    missing = {topic: [0, 1, 5]}
    offsets(session, group, label="unknown group")
    offsets(session, group, nothing, label="unknown group")
    session.ask(forgetting(group, topic), 0, label="unknown group")
    session.ask(altering(group, {}), 0, label="nothing to alter")
    describe(session, group, label="nothing altered")
    join(session, group, "m", topic)
    offsets(session, group, label="not read yet")
    offsets(session, group, nothing, label="not read yet")
    offsets(session, group, missing, label="no such partition", answered=False)
    offsets(session, group, {}, label="no topics")
    session.ask(altering(group, {topic: {0: 1}}), 0, label="not empty")
    session.ask(forgetting(group, topic), 0, label="not empty")
    session.ask(beat(group, "m", -1), 1)
    starts = {topic: {0: 3, 1: 0, 7: 1}, "no-such-topic": {0: 1}}
    session.ask(altering(group, starts), 0, label="empty")
    offsets(session, group, label="altered")
    session.ask(altering(group, {topic: {0: -1}}), 0, label="back to uninitialized")
    session.ask(altering(group, {topic: {0: -5}}), 0, label="negative")
    session.ask(altering(group, {topic: {9: 1}}), 0, label="no such partition")
    offsets(session, group, label="altered again")
    session.ask(forgetting(group, topic, "no-such-topic"), 0, label="delete")
    session.ask(forgetting(group, topic), 0, label="delete again")
    offsets(session, group, label="deleted")
    offsets(session, group, {topic: [0]}, label="deleted")
    session.ask(forgetting("", topic), 0, label="no group")
    session.ask(altering("", {topic: {0: 1}}), 0, label="no group")
    session.ask(DeleteGroupsRequest(groups_names=[group]), 2)


@case()
def share_group_altered_into_being(session: Session) -> None:
    topic, _ = topic_of(session, partitions=2)
    group = new_group(session)
    session.ask(altering(group, {topic: {0: 3}}), 0)
    describe(session, group)
    offsets(session, group)
    epoch = join(session, group, "m", topic)
    offsets(session, group, label="all initialized")
    session.ask(beat(group, "m", -1), 1)
    session.ask(beat(group, "m", epoch), 1)
    session.ask(DeleteGroupsRequest(groups_names=[group]), 2)
    offsets(session, group, label="gone")


@case()
def share_group_configs(session: Session) -> None:
    group = new_group(session)

    def alter(name: str, value: str | None, operation: int = 0) -> None:
        config = AlterableConfig(name=name, config_operation=operation, value=value)
        resource = AlterConfigsResource(
            resource_type=GROUP_RESOURCE, resource_name=group, configs=[config]
        )
        session.ask(
            IncrementalAlterConfigsRequest(resources=[resource]), 1, label=f"{name}={value}"
        )

    for name, values in {
        "share.session.timeout.ms": ["1", "44999", "50000", "60001", "x"],
        "share.heartbeat.interval.ms": ["1", "6000", "15001"],
        "share.record.lock.duration.ms": ["999", "14999", "15000", "60001"],
        "share.delivery.count.limit": ["1", "2", "11"],
        "share.partition.max.record.locks": ["99", "100", "4001"],
        "share.assignment.interval.ms": ["-1", "0", "15001"],
        "share.auto.offset.reset": ["EARLIEST", "none", "by_duration:PT1H", "by_duration:-PT1H"],
        "share.isolation.level": ["read_committed", "READ_COMMITTED", "none"],
        "share.renew.acknowledge.enable": ["false", "no"],
        "share.no.such": ["1"],
    }.items():
        for value in values:
            alter(name, value)
    alter("share.session.timeout.ms", None, operation=1)


@case()
def share_version_off(session: Session) -> None:
    """Without the feature, each API answers UNSUPPORTED_VERSION."""
    topic, _ = topic_of(session)
    group = new_group(session)
    join(session, group, "m", topic)

    def set_level(level: int, kind: int, label: str) -> None:
        update = FeatureUpdateKey(
            feature="share.version", max_version_level=level, upgrade_type=kind
        )
        session.ask(UpdateFeaturesRequest(feature_updates=[update]), 2, label=label)

    def wait(error: bool) -> None:
        for _ in range(ATTEMPTS_MAX):
            answer = session.quietly(beat(group, "nobody", 1), 1)
            if (answer.error_code == 35) == error:
                return
        raise AssertionError("the feature never changed")

    set_level(0, UPGRADE, "no downgrade")
    set_level(2, UPGRADE, "too high")
    set_level(0, SAFE_DOWNGRADE, "off")
    try:
        wait(error=True)
        session.ask(beat(group, "m", 0, topic), 1)
        describe(session, group)
        offsets(session, group)
        session.ask(altering(group, {topic: {0: 1}}), 0)
        session.ask(forgetting(group, topic), 0)
    finally:
        set_level(1, UPGRADE, "on")
        wait(error=False)
