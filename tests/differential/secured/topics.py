"""Topics: seen, created, changed and deleted."""

from __future__ import annotations

from mockbroker.core.security.acls import AclOperation, ResourceType
from mockbroker_protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from mockbroker_protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from mockbroker_protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from mockbroker_protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    RequestCursor,
    TopicRequest,
)
from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.differential.secured.session import AclSession, case

O, R = AclOperation, ResourceType  # noqa: E741
UNKNOWN_ID = bytes(range(16))


def metadata(*names: str, create: bool = False, operations: bool = False) -> MetadataRequest:
    return MetadataRequest(
        [MetadataRequestTopic(name=name) for name in names], create, operations, operations
    )


@case
def topics_are_seen_by_who_may(session: AclSession) -> None:
    one, two = session.topic("-one"), session.topic("-two")
    for version in (0, 1, 4, 8, 10, 12, 13):
        session.ask(metadata(one, "missing", operations=version >= 8), version)
    session.allow(O.DESCRIBE, R.TOPIC, two)
    session.allow(O.ALTER_CONFIGS, R.TOPIC, two)
    for version in (1, 9, 13):
        session.ask(metadata(one, two, operations=version >= 8), version)
    session.allow(O.DESCRIBE, R.TOPIC, "missing")
    session.ask(metadata("missing", operations=True), 10)
    session.allow(O.DESCRIBE, R.CLUSTER)
    session.ask(metadata(two, operations=True), 10)
    session.allow(O.ALL, R.TOPIC, two)
    session.ask(metadata(two, operations=True), 13)


@case
def all_topics_are_those_that_may_be_seen(session: AclSession) -> None:
    session.topic("-one")
    two = session.topic("-two")
    for version in (0, 9, 13):
        everything = MetadataRequest([] if version == 0 else None)
        session.ask(everything, version)
    session.allow(O.WRITE, R.TOPIC, two)
    for version in (0, 9, 13):
        session.ask(MetadataRequest([] if version == 0 else None), version)
    session.ask(MetadataRequest(None, False, False, True), 13)
    session.ask(MetadataRequest([]), 9)


@case
def topics_are_seen_by_id(session: AclSession) -> None:
    one, two = session.topic("-one"), session.topic("-two")
    ids = [session.topic_id(one), session.topic_id(two), UNKNOWN_ID]

    def ask(version: int) -> None:
        for topic_id in ids:
            request = MetadataRequest([MetadataRequestTopic(topic_id, None)], False)
            session.ask(request, version)
        request = MetadataRequest([MetadataRequestTopic(i, None) for i in ids], False)
        answer = session.quietly(request, version)
        session.note([t.error_code for t in answer.topics], "all at once")

    ask(12)
    session.allow(O.DESCRIBE, R.TOPIC, two)
    ask(13)


@case
def topics_are_made_on_the_way_by_who_may(session: AclSession) -> None:
    name = session.name
    session.ask(metadata(name, create=True), 9)
    session.allow(O.DESCRIBE, R.TOPIC, name, prefixed=True)
    session.ask(metadata(name, create=True), 9)
    session.ask(metadata(name), 9)
    session.ask(metadata("__consumer_offsets", create=True), 9)
    session.ask(metadata("not/a/name", create=True), 9)
    session.allow(O.CREATE, R.TOPIC, name)
    session.ask(metadata(name, f"{name}-other", create=True), 9)
    session.topic_id(name)
    session.ask(metadata(name), 9)
    session.allow(O.CREATE, R.CLUSTER)
    session.ask(metadata(f"{name}-other", create=True), 9)
    session.topic_id(f"{name}-other")
    session.ask(metadata(f"{name}-other"), 9)


@case
def topics_are_described_page_by_page_to_who_may(session: AclSession) -> None:
    one, two = session.topic("-1", 2), session.topic("-2", 2)
    three = session.topic("-3", 2)

    def request(*names: str, cursor: str | None = None) -> DescribeTopicPartitionsRequest:
        return DescribeTopicPartitionsRequest(
            [TopicRequest(name) for name in names],
            3,
            None if cursor is None else RequestCursor(cursor, 0),
        )

    session.ask(request(one, two, "missing"), 0)
    session.ask(request(), 0)
    session.allow(O.DESCRIBE, R.TOPIC, one)
    session.allow(O.ALTER, R.TOPIC, three)
    session.ask(request(one, two, three, "missing"), 0)
    session.ask(request(), 0)
    session.ask(request(one, two, three, cursor=two), 0)


@case
def topics_are_created_by_who_may(session: AclSession) -> None:
    name = session.name

    def request(*names: str) -> CreateTopicsRequest:
        return CreateTopicsRequest([CreatableTopic(n, 1, 1) for n in names], 10_000, True)

    for version in (2, 4, 5, 7):
        session.ask(request(name, f"{name}-other"), version)
    session.ask(request(name, name), 7)
    session.allow(O.CREATE, R.TOPIC, name)
    session.ask(request(name, f"{name}-other"), 7)
    session.allow(O.DESCRIBE, R.TOPIC, name)
    session.ask(request(name), 7)
    session.allow(O.DESCRIBE_CONFIGS, R.TOPIC, name)
    for version in (2, 5, 7):
        answer = session.quietly(request(name), version).topics[0]
        session.note((answer.error_code, answer.num_partitions, len(answer.configs) > 9), "configs")
    session.allow(O.CREATE, R.CLUSTER)
    session.ask(request(f"{name}-other", "not/a/name"), 7)


@case
def topics_grow_by_who_may(session: AclSession) -> None:
    one, two = session.topic("-one"), session.topic("-two")

    def request(*names: str) -> CreatePartitionsRequest:
        topics = [CreatePartitionsTopic(name, 3, None) for name in names]
        return CreatePartitionsRequest(topics, 10_000, True)

    for version in (0, 3):
        session.ask(request(one), version)
        session.ask(request("missing"), version)
    session.allow(O.ALTER, R.TOPIC, two)
    session.ask(request(two), 3)
    answer = session.quietly(request(one, two), 3)
    session.note(sorted((r.name, r.error_code, r.error_message) for r in answer.results), "both")
    session.ask(request(one, one), 3)


@case
def topics_are_deleted_by_who_may(session: AclSession) -> None:
    one, two, three = session.topic("-one"), session.topic("-two"), session.topic("-three")
    ids = [session.topic_id(t) for t in (one, two, three)]

    def by_name(*names: str) -> DeleteTopicsRequest:
        return DeleteTopicsRequest([DeleteTopicState(name=n) for n in names], [], 10_000)

    def by_id(*wanted: bytes) -> DeleteTopicsRequest:
        return DeleteTopicsRequest([DeleteTopicState(None, i) for i in wanted], [], 10_000)

    for version in (1, 4, 5):
        session.ask(DeleteTopicsRequest([], [one, "missing"], 10_000), version)
    session.ask(by_name(one, "missing"), 6)
    session.ask(by_id(ids[0], UNKNOWN_ID), 6)
    session.allow(O.DESCRIBE, R.TOPIC, one)
    session.allow(O.DESCRIBE, R.TOPIC, "missing")
    session.ask(by_name(one, "missing"), 6)
    session.ask(by_id(ids[0]), 6)
    session.ask(by_name(two, two), 6)
    session.allow(O.DELETE, R.TOPIC, two)
    session.ask(by_name(one, two), 6)
    session.allow(O.DELETE, R.TOPIC, three)
    session.ask(by_id(ids[0], ids[2]), 6)
    session.allow(O.DELETE, R.CLUSTER)
    session.ask(by_name(one), 6)
