"""Topologies of streams groups (KIP-1071): missing, stale, miscounted and invalid ones."""

from __future__ import annotations

from typing import Any

from mockbroker_protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from mockbroker_protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from mockbroker_protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from mockbroker_protocol.messages.heartbeat import HeartbeatRequest
from mockbroker_protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from mockbroker_protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from mockbroker_protocol.messages.list_groups import ListGroupsRequest
from mockbroker_protocol.messages.streams_group_heartbeat import (
    CopartitionGroup,
    KeyValue,
    RequestEndpoint,
    Subtopology,
    TopicInfo,
    Topology,
)
from mockbroker_protocol.messages.sync_group import SyncGroupRequest
from tests.differential.cases.streams_groups import (
    Member,
    beat,
    describe,
    joining,
    new_group,
    reading,
    topic_of,
)
from tests.differential.registry import case
from tests.differential.session import Session

TOPIC_RESOURCE = 2


def has_status(code: int | None) -> Any:
    """Whether an answer has a status of this code; None: whether it has no status at all."""
    if code is None:
        return lambda answer: not answer.status
    return lambda answer: any(each.status_code == code for each in answer.status)


@case()
def streams_topology_epochs(session: Session) -> None:
    topic, _ = topic_of(session, partitions=2)
    other, _ = topic_of(session, "-b", partitions=2)
    group = new_group(session)
    member = Member(session, group, "m1")
    member.join(reading(topic, epoch=3))
    for label, topology in {
        "stale": reading(topic, epoch=2),
        "stale and other": reading(other, epoch=1),
        "same": reading(topic, epoch=3),
        "changed": reading(other, epoch=3),
        "next": reading(topic, epoch=4),
        "next and changed": reading(other, epoch=4),
    }.items():
        session.ask(joining(group, "m2", topology), 0, label=label)
    member.beat()
    describe(session, group)


@case()
def streams_missing_source_topics(session: Session) -> None:
    group = new_group(session)
    names = [f"{session.name}-{n}" for n in range(5)]
    member = Member(session, group, "m1")
    member.join(reading(*names[:1]))
    member.beat()
    describe(session, group)

    def own(answer: Any) -> Any:
        answer.groups = [each for each in answer.groups if each.group_id == group]
        return answer

    for state in ("NotReady", "not_ready", "NOT_READY"):
        listing = ListGroupsRequest(states_filter=[state], types_filter=["Streams"])
        session.ask(listing, 5, label=f"list {state}", edit=own)
    topic_of(session, "-0", partitions=2)
    session.until(beat(group, "m1", member.epoch), 0, has_status(None))
    describe(session, group, label="the topic is there")
    many = new_group(session, "-many")
    session.ask(joining(many, "m1", reading(*names[1:])), 0, label="four are missing")
    endpoint = RequestEndpoint("h", 1)
    some = new_group(session, "-some")
    seen: dict[str, Any] = {"user_endpoint": endpoint, "endpoint_information_epoch": 7}
    session.ask(joining(some, "m1", reading(names[4]), **seen), 0, label="with an endpoint")
    describe(session, some)


@case()
def streams_internal_topics_are_created(session: Session) -> None:
    topic, _ = topic_of(session, partitions=3)
    name = session.name
    settings = [KeyValue("cleanup.policy", "compact"), KeyValue("segment.bytes", "1048576")]
    topology = Topology(
        0,
        [
            Subtopology("0", source_topics=[topic], repartition_sink_topics=[f"{name}-r"]),
            Subtopology(
                "1",
                repartition_source_topics=[TopicInfo(f"{name}-r", topic_configs=settings[1:])],
                state_changelog_topics=[TopicInfo(f"{name}-c", 0, 1, settings)],
            ),
        ],
    )
    group = new_group(session)
    member = Member(session, group, "m1")
    member.join(topology)
    describe(session, group)
    member.take(session.until(beat(group, "m1", member.epoch, {}), 0, has_status(None)))
    describe(session, group, label="ready")
    resources = [
        DescribeConfigsResource(TOPIC_RESOURCE, f"{name}-{each}", [pair.key for pair in settings])
        for each in "rc"
    ]
    session.ask(DescribeConfigsRequest(resources=resources), 4, label="configs")
    grown = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=topic, count=4, assignments=None)], timeout_ms=10_000
    )
    session.quietly(grown, 3)
    session.until(beat(group, "m1", member.epoch), 0, has_status(2))
    describe(session, group, label="the source has grown")


@case()
def streams_internal_topics_that_cannot_be_created(session: Session) -> None:
    topic, _ = topic_of(session, partitions=1)
    for label, changelog in {
        "replicas": TopicInfo(f"{session.name}-x", 0, 7),
        "config": TopicInfo(f"{session.name}-y", 0, 0, [KeyValue("no.such.config", "1")]),
    }.items():
        group = new_group(session, f"-{label}")
        topology = reading(topic, state_changelog_topics=[changelog])
        # A real broker looks for errors while the creation is under way: this answer may have one.
        joined = session.quietly(joining(group, "m1", topology), 0)
        session.until(
            beat(group, "m1", joined.member_epoch),
            0,
            lambda answer: "failed" in answer.status[0].status_detail,
        )


@case()
def streams_copartitioned_topics(session: Session) -> None:
    three, _ = topic_of(session, "-three", partitions=3)
    five, _ = topic_of(session, "-five", partitions=5)
    name = session.name

    def with_group(
        sources: list[str], repartition: list[TopicInfo], group: CopartitionGroup
    ) -> Topology:
        sinks = [each.name for each in repartition]
        return Topology(
            0,
            [
                Subtopology("0", source_topics=[three], repartition_sink_topics=sinks),
                Subtopology(
                    "1",
                    source_topics=sources,
                    repartition_source_topics=repartition,
                    copartition_groups=[group],
                ),
            ],
        )

    both = CopartitionGroup([0, 1], [], [])
    one_each = CopartitionGroup([0], [], [0])
    for number, (label, topology) in enumerate(
        {
            "two sources": with_group([three, five], [], both),
            "follows its source": with_group([five], [TopicInfo(f"{name}-r1")], one_each),
            "fixed otherwise": with_group([five], [TopicInfo(f"{name}-r2", 4)], one_each),
            "fixed alike": with_group([five], [TopicInfo(f"{name}-r3", 5)], one_each),
            "two fixed": with_group(
                [],
                [TopicInfo(f"{name}-r4", 2), TopicInfo(f"{name}-r5", 3)],
                CopartitionGroup([], [], [0, 1]),
            ),
            "one fixed": with_group(
                [],
                [TopicInfo(f"{name}-r6", 2), TopicInfo(f"{name}-r7")],
                CopartitionGroup([], [], [0, 1]),
            ),
            "no such index": with_group([five], [], CopartitionGroup([3], [], [])),
        }.items()
    ):
        group = new_group(session, f"-{number}")
        session.ask(joining(group, "m1", topology), 0, label=label)
        describe(session, group, label=label)


@case()
def streams_topologies_that_cannot_be(session: Session) -> None:
    topic, _ = topic_of(session, partitions=2)
    name = session.name
    for number, (label, subtopologies) in enumerate(
        {
            "nothing to read": [Subtopology("0")],
            "no subtopology": [],
            "a loop": [
                Subtopology(
                    "0",
                    repartition_source_topics=[TopicInfo(f"{name}-a")],
                    repartition_sink_topics=[f"{name}-a"],
                )
            ],
            "nobody writes": [
                Subtopology(
                    "0",
                    source_topics=[topic],
                    repartition_source_topics=[TopicInfo(f"{name}-b")],
                )
            ],
            "negative count": [
                Subtopology(
                    "0",
                    source_topics=[topic],
                    repartition_source_topics=[TopicInfo(f"{name}-c", -3)],
                )
            ],
            "only sinks": [Subtopology("0", repartition_sink_topics=[f"{name}-d"])],
        }.items()
    ):
        group = new_group(session, f"-{number}")
        session.ask(joining(group, "m1", Topology(0, subtopologies)), 0, label=label)
        describe(session, group, label=label)


@case()
def streams_group_after_and_before_a_classic_group(session: Session) -> None:
    topic, _ = topic_of(session, partitions=1)
    group = new_group(session)
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]

    def join(label: str, member: str = "") -> Any:
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id=member,
            protocol_type="consumer",
            protocols=protocols,
        )
        return session.ask(request, 3, label=label)

    member = Member(session, group, "m1")
    member.join(reading(topic))
    join("a classic member joins a streams group")
    join("with an id", "x")
    session.ask(HeartbeatRequest(group, 1, "m1"), 4, label="classic heartbeat")
    session.ask(SyncGroupRequest(group, 1, "m1"), 4, label="sync")
    session.ask(LeaveGroupRequest(group, members=[MemberIdentity("m1")]), 4, label="leave")
    session.ask(ConsumerGroupDescribeRequest([group]), 1, label="as a consumer group")
    member.leave()
    joined = join("the group is empty")
    session.ask(joining(group, "m1", reading(topic)), 0, label="the classic group is in use")
    describe(session, group)
    assert joined.error_code == 0


@case()
def streams_configs_of_the_group(session: Session) -> None:
    """The heartbeat interval is the group's; a change of the standby replicas is a rebalance."""
    group = new_group(session, **{"streams.heartbeat.interval.ms": "7000"})
    topic, _ = topic_of(session, partitions=2)
    member = Member(session, group, "m1")
    member.join(reading(topic))
    before = member.epoch
    new_group(session, **{"streams.num.standby.replicas": "1"})
    topic_of(session, "-later", partitions=1)
    session.until(beat(group, "m1", member.epoch), 0, lambda answer: answer.member_epoch != before)
    describe(session, group)
