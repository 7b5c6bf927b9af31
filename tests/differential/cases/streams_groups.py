"""Streams groups (KIP-1071): joins, fencing, tasks of several members, standbys, leaving.

Member and process ids are the cases' own, and the brokers' delays are 0: so what the assignor gives
to whom is the same on both brokers.
"""

from __future__ import annotations

import itertools
from typing import Any
from weakref import WeakKeyDictionary

from mockbroker.core.hashing.java_hash import coordinator_partition
from mockbroker_protocol.messages.delete_groups import DeleteGroupsRequest
from mockbroker_protocol.messages.describe_groups import DescribeGroupsRequest
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
    OffsetFetchRequestTopics,
)
from mockbroker_protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from mockbroker_protocol.messages.streams_group_heartbeat import (
    KeyValue,
    RequestEndpoint,
    ResponseTaskIds,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TopicInfo,
    Topology,
)
from tests.differential.cases.consumer_groups import joining as consumer_joining
from tests.differential.cases.consumer_groups import new_group as new_consumer_group
from tests.differential.cases.consumer_groups import topic_of as consumer_topic_of
from tests.differential.cases.consumer_groups import wait_for_coordinator
from tests.differential.registry import case
from tests.differential.session import Session

Tasks = dict[str, list[int]]
PARTITIONS = 50  # of __consumer_offsets


class Known:
    """The topics and groups of a case: each group's coordinator has to know each topic.

    A real broker tells the partitions of `__consumer_offsets` of new metadata one after the other.
    """

    def __init__(self) -> None:
        self.topics: list[tuple[str, int]] = []
        self.groups: list[str] = []


_KNOWN: WeakKeyDictionary[Session, Known] = WeakKeyDictionary()


def new_group(session: Session, suffix: str = "", **configs: str) -> str:
    """As of consumer groups; its coordinator knows the topics of the case."""
    group = new_consumer_group(session, suffix, **configs)
    known = _KNOWN.setdefault(session, Known())
    known.groups.append(group)
    for topic, partitions in known.topics:
        wait_for_coordinator(session, topic, partitions, _beside(group))
    return group


def topic_of(session: Session, suffix: str = "", partitions: int = 4) -> tuple[str, bytes]:
    """As of consumer groups; the coordinators of the case's groups know it."""
    name, topic_id = consumer_topic_of(session, suffix, partitions)
    known = _KNOWN.setdefault(session, Known())
    known.topics.append((name, partitions))
    for group in known.groups:
        wait_for_coordinator(session, name, partitions, _beside(group))
    return name, topic_id


def _beside(group: str) -> str:
    """A group id in the same partition of `__consumer_offsets`."""
    wanted = coordinator_partition(group, PARTITIONS)
    names = (f"{group}-probe-{n}" for n in itertools.count())
    return next(each for each in names if coordinator_partition(each, PARTITIONS) == wanted)


def beat(
    group: str,
    member: str,
    epoch: int,
    active: Tasks | None = None,
    standby: Tasks | None = None,
    **options: Any,
) -> StreamsGroupHeartbeatRequest:
    """A heartbeat that says what the member owns, if it does."""
    told = active is not None
    return StreamsGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        active_tasks=lines(active or {}) if told else None,
        standby_tasks=lines(standby or {}) if told else None,
        warmup_tasks=[] if told else None,
        **options,
    )


def lines(tasks: Tasks) -> list[ResponseTaskIds]:
    return [ResponseTaskIds(subtopology_id=s, partitions=ps) for s, ps in tasks.items()]


def reading(*topics: str, epoch: int = 0, **more: Any) -> Topology:
    """A topology of one subtopology that reads topics."""
    return Topology(epoch, [Subtopology("0", source_topics=list(topics), **more)])


def joining(
    group: str, member: str, topology: Topology | None, **options: Any
) -> StreamsGroupHeartbeatRequest:
    """The heartbeat of a member that joins."""
    defaults: dict[str, Any] = {"rebalance_timeout_ms": 30_000, "process_id": f"p-{member}"}
    return beat(group, member, 0, {}, topology=topology, **{**defaults, **options})


def owned(answer: Any, before: tuple[Tasks, Tasks] = ({}, {})) -> tuple[Tasks, Tasks]:
    """The active and standby tasks of an answer; `before` if it is silent."""
    if answer.active_tasks is None:
        return before
    return (
        {each.subtopology_id: list(each.partitions) for each in answer.active_tasks},
        {each.subtopology_id: list(each.partitions) for each in answer.standby_tasks},
    )


class Member:
    """A member that owns what it is told to."""

    def __init__(self, session: Session, group: str, name: str) -> None:
        self.session = session
        self.group = group
        self.name = name
        self.epoch = 0
        self.tasks: tuple[Tasks, Tasks] = ({}, {})

    def take(self, answer: Any) -> Any:
        if answer.error_code == 0:
            self.epoch = answer.member_epoch
            self.tasks = owned(answer, self.tasks)
        return answer

    def join(self, topology: Topology | None, **options: Any) -> Any:
        request = joining(self.group, self.name, topology, **options)
        return self.take(self.session.ask(request, 0, label=f"{self.name} joins"))

    def beat(self, **options: Any) -> Any:
        request = beat(self.group, self.name, self.epoch, *self.tasks, **options)
        return self.take(self.session.ask(request, 0, label=f"{self.name} beats"))

    def leave(self, **options: Any) -> Any:
        request = beat(self.group, self.name, -1, **options)
        return self.session.ask(request, 0, label=f"{self.name} leaves")


def settle(*members: Member, rounds: int = 4) -> None:
    """Members beat and give up what they must until nothing moves any more."""
    for _ in range(rounds):
        for member in members:
            member.beat()


def describe(session: Session, *groups: str, label: str = "describe") -> Any:
    return session.ask(
        StreamsGroupDescribeRequest(group_ids=list(groups)), 0, label=label, edit=_sorted_members
    )


def _sorted_members(answer: Any) -> Any:
    for group in answer.groups:
        group.members.sort(key=lambda member: member.member_id)
    return answer


# --------------------------------------------------------------------------------- bad requests


@case()
def streams_heartbeat_invalid_requests(session: Session) -> None:
    group = new_group(session)
    topology = reading("t")
    changelog = TopicInfo("c", partitions=3)
    for label, request in {
        "no group": joining("", "m", topology),
        "blank group": joining(" ", "m", topology),
        "no member": joining(group, "", topology),
        "instance": joining(group, "m", topology, instance_id="i"),
        "empty rack": joining(group, "m", topology, rack_id=""),
        "no timeout": joining(group, "m", topology, rebalance_timeout_ms=-1),
        "no topology": joining(group, "m", None),
        "says nothing of tasks": beat(
            group, "m", 0, None, topology=topology, rebalance_timeout_ms=1
        ),
        "owns a task": beat(
            group, "m", 0, {"0": [0]}, topology=topology, rebalance_timeout_ms=1, process_id="p"
        ),
        "owns a standby": beat(
            group, "m", 0, {}, {"0": [0]}, topology=topology, rebalance_timeout_ms=1
        ),
        "epoch -2": beat(group, "m", -2),
        "epoch -3": beat(group, "m", -3),
        "unknown group": beat(group, "m", 1, {}),
        "unknown group leaves": beat(group, "m", -1),
        "topology later": beat(group, "m", 1, {}, topology=topology),
        "regex": joining(group, "m", Topology(0, [Subtopology("0", source_topic_regex=["a.*"])])),
        "counted changelog": joining(group, "m", reading("t", state_changelog_topics=[changelog])),
        "internal topic": joining(group, "m", reading("__consumer_offsets")),
        "invalid topic": joining(group, "m", reading("a b", "c/d")),
        "negative epoch": joining(group, "m", reading("t", epoch=-1)),
        "equal ids": joining(group, "m", Topology(0, [Subtopology("0"), Subtopology("0")])),
        "equal tags": joining(
            group, "m", topology, client_tags=[KeyValue("a", "1"), KeyValue("a", "2")]
        ),
    }.items():
        session.ask(request, 0, label=label)
    some = beat(group, "m", 1, {})
    some.standby_tasks = None
    session.ask(some, 0, label="a kind of tasks is missing")
    warm = beat(group, "m", 1, {})
    warm.warmup_tasks = lines({"0": [0]})
    session.ask(warm, 0, label="warm-up")


@case()
def streams_describe_and_list(session: Session) -> None:
    topic, _ = topic_of(session, partitions=2)
    group = new_group(session)
    describe(session, "", f"{group}-unknown")
    member = Member(session, group, "m1")
    member.join(reading(topic), client_tags=[KeyValue("zone", "a")], rack_id="r")
    describe(session, group)
    session.ask(DescribeGroupsRequest(groups=[group]), 6, label="as a classic group")

    def own(answer: Any) -> Any:
        answer.groups = [each for each in answer.groups if each.group_id == group]
        return answer

    for states, types in (([], []), ([], ["streams"]), (["stable"], []), (["empty"], [])):
        request = ListGroupsRequest(states_filter=states, types_filter=types)
        session.ask(request, 5, label=f"list {states} {types}", edit=own)
    session.ask(DeleteGroupsRequest(groups_names=[group]), 2, label="delete in use")
    session.ask(consumer_joining(group, "c", topic), 1, label="a consumer joins")
    member.leave()
    describe(session, group, label="empty")
    session.ask(DeleteGroupsRequest(groups_names=[group]), 2, label="delete")
    describe(session, group, label="deleted")


# --------------------------------------------------------------------------------- members


@case()
def streams_members_share_the_tasks(session: Session) -> None:
    topic, _ = topic_of(session, partitions=5)
    group = new_group(session)
    members = [Member(session, group, f"m{n}") for n in range(1, 4)]
    for member in members:
        member.join(reading(topic))
        settle(*members[: members.index(member) + 1])
    describe(session, group)
    members[0].leave()
    settle(*members[1:])
    describe(session, group, label="without the first")


@case()
def streams_threads_of_one_process(session: Session) -> None:
    """Two processes of two threads each, and two subtopologies."""
    first, _ = topic_of(session, "-a", partitions=3)
    second, _ = topic_of(session, "-b", partitions=4)
    topology = Topology(
        0, [Subtopology("0", source_topics=[first]), Subtopology("1", source_topics=[second])]
    )
    group = new_group(session)
    members = [Member(session, group, f"t{n}") for n in range(4)]
    for number, member in enumerate(members):
        member.join(topology, process_id=f"process-{number % 2}")
    settle(*members)
    describe(session, group)


@case()
def streams_epochs_are_fenced(session: Session) -> None:
    topic, _ = topic_of(session, partitions=2)
    group = new_group(session)
    member = Member(session, group, "m1")
    member.join(reading(topic))
    for label, request in {
        "greater": beat(group, "m1", member.epoch + 1, {}),
        "smaller": beat(group, "m1", 1, {"0": [0, 1, 7]}),
        "previous without tasks": beat(group, "m1", 1, None),
        "unknown member": beat(group, "m2", 1, {}),
        "unknown member leaves": beat(group, "m2", -1),
        "unknown subtopology": beat(group, "m1", member.epoch, {"7": [0]}),
        "unknown task": beat(group, "m1", member.epoch, {"0": [5]}),
        "rejoins": joining(group, "m1", reading(topic)),
    }.items():
        session.ask(request, 0, label=label)


@case()
def streams_tasks_are_revoked_before_they_move(session: Session) -> None:
    topic, _ = topic_of(session, partitions=4)
    group = new_group(session)
    first, second = Member(session, group, "m1"), Member(session, group, "m2")
    first.join(reading(topic))
    second.join(reading(topic))
    keeps = dict(first.tasks[0])
    session.ask(beat(group, "m1", first.epoch, keeps), 0, label="keeps all")
    second.beat()
    describe(session, group)
    first.tasks = ({"0": [0, 1]}, {})
    first.beat()
    second.beat()
    describe(session, group, label="moved")
    settle(first, second, rounds=2)


@case()
def streams_standby_replicas(session: Session) -> None:
    """A stateful subtopology: its changelog is created, and other processes keep copies."""
    configs = {"streams.num.standby.replicas": "1"}
    group = new_group(session, **configs)
    topic, _ = topic_of(session, partitions=3)
    topology = reading(topic, state_changelog_topics=[TopicInfo(f"{session.name}-changelog")])
    members = [Member(session, group, f"m{n}") for n in range(1, 4)]
    members[0].join(topology)
    session.until(beat(group, "m1", members[0].epoch), 0, lambda answer: not answer.status)
    members[0].take(session.ask(joining(group, "m1", topology), 0, label="m1 again"))
    for member in members[1:]:
        member.join(topology)
        settle(*members[: members.index(member) + 1])
    describe(session, group)
    members[1].leave()
    settle(members[0], members[2])
    describe(session, group, label="one is gone")


@case()
def streams_endpoints(session: Session) -> None:
    topic, _ = topic_of(session, partitions=2)
    group = new_group(session)
    first, second = Member(session, group, "m1"), Member(session, group, "m2")
    first.join(reading(topic), user_endpoint=RequestEndpoint("one", 1))
    first.beat()
    second.join(reading(topic), user_endpoint=RequestEndpoint("two", 2))
    for epoch in range(4):
        first.beat(endpoint_information_epoch=epoch)
        second.beat(endpoint_information_epoch=epoch)
    describe(session, group)


@case()
def streams_shutdown_is_told_to_all(session: Session) -> None:
    topic, _ = topic_of(session, partitions=2)
    group = new_group(session)
    first, second = Member(session, group, "m1"), Member(session, group, "m2")
    first.join(reading(topic))
    second.join(reading(topic))
    second.leave(shutdown_application=True)
    first.beat()
    third = Member(session, group, "m3")
    third.join(reading(topic))
    first.leave()
    third.leave()
    again = Member(session, group, "m4")
    again.join(reading(topic), shutdown_application=True)
    again.beat()
    again.beat(shutdown_application=True)
    again.beat()


@case()
def streams_offsets_are_fenced(session: Session) -> None:
    topic, topic_id = topic_of(session, partitions=2)
    other, other_id = topic_of(session, "-other", partitions=1)
    group = new_group(session)
    first, second = Member(session, group, "m1"), Member(session, group, "m2")
    first.join(reading(topic))
    second.join(reading(topic))
    settle(first, second)

    def commit(member: str, epoch: int, name: str, topic_id: bytes, label: str) -> None:
        partitions = [OffsetCommitRequestPartition(index, 1) for index in (0, 1)]
        for version in (8, 9, 10):
            session.ask(
                OffsetCommitRequest(
                    group_id=group,
                    generation_id_or_member_epoch=epoch,
                    member_id=member,
                    topics=[OffsetCommitRequestTopic(name, topic_id, partitions)],
                ),
                version,
                label=label,
            )

    for epoch in (first.epoch, first.epoch - 1, first.epoch + 1, 1, -1):
        commit("m1", epoch, topic, topic_id, f"commit {epoch - first.epoch}")
    commit("m1", first.epoch - 1, other, other_id, "a topic of no subtopology")
    commit("m9", first.epoch, topic, topic_id, "an unknown member")
    for member, epoch in (("m1", first.epoch), ("m1", 1), ("m9", 1), (None, -1)):
        wanted = OffsetFetchRequestGroup(
            group_id=group,
            member_id=member,
            member_epoch=epoch,
            topics=[OffsetFetchRequestTopics(topic, partition_indexes=[0, 1])],
        )
        session.ask(OffsetFetchRequest(groups=[wanted]), 9, label=f"fetch {member} {epoch}")
    for name in (topic, other):
        gone = OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(0)])
        session.ask(OffsetDeleteRequest(group, [gone]), 0, label=f"delete offsets of {name}")
