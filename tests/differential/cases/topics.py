"""Topics: made, grown, deleted, described."""

from __future__ import annotations

from typing import Any

from mockbroker_protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from mockbroker_protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from mockbroker_protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from mockbroker_protocol.messages.describe_cluster import DescribeClusterRequest
from mockbroker_protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    RequestCursor,
    TopicRequest,
)
from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.differential.dialogue import make_topic, wait_for_leaders
from tests.differential.registry import case
from tests.differential.session import Session


def topic_spec(
    name: str, partitions: int = 1, factor: int = 1, assignments: Any = None, **configs: str | None
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in (assignments or [])
        ],
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )


def create(
    session: Session, *topics: CreatableTopic, version: int = 7, label: str = "", **o: Any
) -> Any:
    options: dict[str, Any] = {"timeout_ms": 10_000, **o}
    return session.ask(CreateTopicsRequest(topics=list(topics), **options), version, label=label)


@case()
def create_topics_every_version(session: Session) -> None:
    for version in range(2, 8):
        name = f"{session.name}-{version}"
        create(session, topic_spec(name, 2, cleanup_policy="compact"), version=version)
        create(session, topic_spec(name), version=version, label="again")
        create(
            session,
            topic_spec(name + "-dry", -1, -1),
            version=version,
            label="validate only",
            validate_only=True,
        )
        create(session, topic_spec(name + "-default", -1, -1), version=version, label="defaults")


@case()
def create_topics_refusals(session: Session) -> None:
    name = session.name
    create(session, topic_spec(f"{name}.a"))
    for label, spec in {
        "no name": topic_spec(""),
        "dot": topic_spec("."),
        "two dots": topic_spec(".."),
        "bad character": topic_spec(f"{name}!"),
        "non-ASCII": topic_spec("größe"),
        "249": topic_spec("x" * 249),
        "250": topic_spec("x" * 250),
        "collides": topic_spec(f"{name}_a"),
        "no partitions": topic_spec(name, 0),
        "negative partitions": topic_spec(name, -2),
        "no replicas": topic_spec(name, 1, 0),
        "negative replicas": topic_spec(name, 1, -2),
        "too many replicas": topic_spec(name, 1, 2),
        "assignment and partitions": topic_spec(name, 1, -1, [(0, [1])]),
        "assignment and factor": topic_spec(name, -1, 1, [(0, [1])]),
        "assignment with a gap": topic_spec(name, -1, -1, [(0, [1]), (2, [1])]),
        "assignment from 1": topic_spec(name, -1, -1, [(1, [1])]),
        "assignment twice": topic_spec(name, -1, -1, [(0, [1]), (0, [1])]),
        "empty assignment": topic_spec(name, -1, -1, [(0, [])]),
        "unknown broker": topic_spec(name, -1, -1, [(0, [7])]),
        "broker twice": topic_spec(name, -1, -1, [(0, [1, 1])]),
        "uneven": topic_spec(name, -1, -1, [(0, [1]), (1, [1, 1])]),
        "unknown config": topic_spec(name, nonsense="1"),
        "null config": topic_spec(name, retention_ms=None),
        "word for a number": topic_spec(name, retention_ms="never"),
        "out of range": topic_spec(name, retention_ms="-2"),
        "bad policy": topic_spec(name, cleanup_policy="burn"),
        "policy list": topic_spec(f"{name}-list", cleanup_policy="compact,delete"),
        "bad ratio": topic_spec(name, min_cleanable_dirty_ratio="2"),
        "bad codec": topic_spec(name, compression_type="rar"),
        "bad boolean": topic_spec(name, preallocate="maybe"),
        "bad min isr": topic_spec(name, min_insync_replicas="0"),
        "small segment": topic_spec(name, segment_bytes="1000"),
        "lags the wrong way": topic_spec(
            name, min_compaction_lag_ms="10", max_compaction_lag_ms="5"
        ),
        "timestamp type": topic_spec(name, message_timestamp_type="Never"),
    }.items():
        for version in (4, 7):
            create(session, spec, version=version, label=label, validate_only=True)
    create(session, topic_spec(name), topic_spec(name), label="twice in one request")
    create(session, topic_spec(name), topic_spec(name, 0), label="twice, one bad")
    create(session, label="nothing")
    create(session, topic_spec(f"{name}-manual", -1, -1, [(0, [1]), (1, [1])]), label="assignment")
    create(session, topic_spec(f"{name}-hurry"), label="no time", timeout_ms=0)


@case()
def delete_topics(session: Session) -> None:
    for version in range(1, 7):
        name = make_topic(session, f"-{version}")
        topic_id = wait_for_leaders(session, name)
        names = [name, "no-such-topic"]
        states = [DeleteTopicState(name=each) for each in names]
        states.append(DeleteTopicState(name=None, topic_id=b"\x08" * 16))
        request = DeleteTopicsRequest(topics=states, topic_names=names, timeout_ms=10_000)
        session.ask(request, version)
        session.ask(request, version, label="again")
        if version >= 6:
            other = make_topic(session, "-by-id")
            topic_id = wait_for_leaders(session, other)
            for label, state in {
                "both": DeleteTopicState(name=other, topic_id=topic_id),
                "neither": DeleteTopicState(name=None),
                "by id": DeleteTopicState(name=None, topic_id=topic_id),
            }.items():
                session.ask(DeleteTopicsRequest(topics=[state], timeout_ms=9000), 6, label=label)
    twice = make_topic(session, "-twice")
    request = DeleteTopicsRequest(topic_names=[twice, twice], timeout_ms=9000)
    session.ask(request, 5, label="twice")
    session.ask(DeleteTopicsRequest(timeout_ms=9000), 5, label="nothing")


@case()
def create_partitions(session: Session) -> None:
    name = make_topic(session, partitions=2)

    def grow(count: int, assignments: Any = None, topic: str = name, **o: Any) -> Any:
        version = o.pop("version", 3)
        wanted = None
        if assignments is not None:
            wanted = [CreatePartitionsAssignment(broker_ids=brokers) for brokers in assignments]
        item = CreatePartitionsTopic(name=topic, count=count, assignments=wanted)
        request = CreatePartitionsRequest(topics=[item], timeout_ms=10_000, **o)
        return session.ask(request, version, label=f"{count} {assignments}")

    for count in (-1, 0, 1, 2):
        for version in range(4):
            grow(count, version=version)
    grow(3, topic="no-such-topic")
    grow(3, [])
    grow(3, [[1], [1]])
    grow(3, [[7]])
    grow(3, [[1, 1]])
    grow(3, [[]])
    grow(4, validate_only=True)
    grow(3, [[1]])
    grow(5)
    twice = [CreatePartitionsTopic(name=name, count=9, assignments=None)] * 2
    session.ask(CreatePartitionsRequest(topics=twice, timeout_ms=1000), 3, label="twice")
    wait_for_leaders(session, name, partitions=5)
    metadata(session, name, version=12)


def only(session: Session) -> Any:
    """Leaves the topics of other cases out of an answer about all topics."""

    def edit(answer: Any) -> Any:
        answer.topics = sorted(
            (topic for topic in answer.topics if (topic.name or "").startswith(session.name)),
            key=lambda topic: topic.name,
        )
        return answer

    return edit


def metadata(session: Session, *names: str | None, version: int = 12, **o: Any) -> None:
    topics = [MetadataRequestTopic(name=name) for name in names]
    options: dict[str, Any] = {"allow_auto_topic_creation": False, **o}
    session.ask(MetadataRequest(topics=topics, **options), version, label=f"{names}"[:60])


@case()
def metadata_every_version(session: Session) -> None:
    name = make_topic(session, partitions=3)
    topic_id = wait_for_leaders(session, name)
    for version in range(14):
        if version:
            request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
            session.ask(request, version, label="all", edit=only(session))
            metadata(session, version=version)
        if version >= 4:
            metadata(session, "no-such-topic", version=version)
            metadata(session, "bad name!", "", "..", version=version)
        metadata(session, name, name, version=version)
        if version >= 8:
            metadata(
                session,
                name,
                version=version,
                include_topic_authorized_operations=True,
                include_cluster_authorized_operations=True,
            )
        if version >= 10:
            for label, item in {
                "id and name": MetadataRequestTopic(name=name, topic_id=topic_id),
                "id": MetadataRequestTopic(name=None, topic_id=topic_id),
                "neither": MetadataRequestTopic(name=None),
                "unknown id": MetadataRequestTopic(name=None, topic_id=b"\x03" * 16),
            }.items():
                if version < 12 and item.name is None:
                    continue
                request = MetadataRequest(topics=[item], allow_auto_topic_creation=False)
                session.ask(request, version, label=label)


@case()
def metadata_creates_topics(session: Session) -> None:
    for version in (1, 4, 12):
        name = f"{session.name}-{version}"
        metadata(session, name, version=version, allow_auto_topic_creation=True)
        wait_for_leaders(session, name)
        metadata(session, name, version=version)
    metadata(session, "bad name!", version=12, allow_auto_topic_creation=True)


@case()
def describe_cluster(session: Session) -> None:
    for version in range(3):
        for kind in (1, 2, 3, 0):
            if version == 0 and kind != 1:
                continue
            request = DescribeClusterRequest(
                endpoint_type=kind, include_cluster_authorized_operations=kind == 1
            )
            session.ask(request, version, label=f"type {kind}")
    session.ask(DescribeClusterRequest(include_fenced_brokers=True), 2, label="fenced too")


@case()
def describe_topic_partitions(session: Session) -> None:
    names = [make_topic(session, suffix, partitions=3) for suffix in ("-b", "-a", "-c")]
    for name in names:
        wait_for_leaders(session, name)

    def ask(label: str, *topics: str, limit: int = 2000, cursor: Any = None) -> None:
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in topics],
            response_partition_limit=limit,
            cursor=cursor and RequestCursor(topic_name=cursor[0], partition_index=cursor[1]),
        )
        session.ask(request, 0, label=label)

    ask("three", *names)
    ask("unknown", "no-such-topic", names[0])
    ask("invalid", "bad name!")
    ask("twice", names[0], names[0])
    for limit in (1, 2, 3, 4, 9, 0, -1):
        ask(f"limit {limit}", *names, limit=limit)
    ask("from b 1", *names, cursor=(names[0], 1))
    ask("from b 3", *names, cursor=(names[0], 3))
    ask("from b -1", *names, cursor=(names[0], -1))
    ask("from a topic not asked", names[0], cursor=(names[1], 1))
    ask("from beyond", *names, cursor=("zzz", 0))
    ask("cursor and limit", *names, cursor=(names[1], 2), limit=2)
