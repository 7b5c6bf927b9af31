"""kafka-python and aiokafka where not everyone may do everything."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import TopicAuthorizationFailedError as AioTopicError
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kafka.errors import ClusterAuthorizationFailedError, TopicAuthorizationFailedError

from mockbroker import Cluster
from mockbroker.core.security import acls
from tests.clients.authorized.ways import allow, python

TIMEOUT_S = 30.0


def acl(name: str) -> ACL:
    return ACL(
        "User:alice",
        "*",
        ACLOperation.WRITE,
        ACLPermissionType.ALLOW,
        ResourcePattern(ResourceType.TOPIC, name, ACLResourcePatternType.PREFIXED),
    )


def everything() -> ACLFilter:
    return ACLFilter(
        None,
        None,
        ACLOperation.ANY,
        ACLPermissionType.ANY,
        ResourcePatternFilter(ResourceType.TOPIC, None, ACLResourcePatternType.ANY),
    )


def test_acls_are_created_described_and_deleted(kafka: Cluster) -> None:
    admin: Any = KafkaAdminClient(**python(kafka, "admin"))
    try:
        created = admin.create_acls([acl("a"), acl("b")])
        assert created == {"succeeded": [acl("a"), acl("b")], "failed": []}
        found, _ = admin.describe_acls(everything())
        assert sorted(each.resource_pattern.resource_name for each in found) == ["a", "b"]
        ((_, deleted, error),) = admin.delete_acls([everything()])
        assert error.errno == 0
        assert sorted(each.resource_pattern.resource_name for each in deleted) == ["a", "b"]
        assert admin.describe_acls(everything())[0] == []
    finally:
        admin.close()


def test_who_may_not_alter_the_cluster_is_told(kafka: Cluster) -> None:
    admin: Any = KafkaAdminClient(**python(kafka))
    try:
        created = admin.create_acls([acl("a")])
        assert created["succeeded"] == []
        with pytest.raises(ClusterAuthorizationFailedError):
            admin.describe_acls(everything())
    finally:
        admin.close()


def test_kafka_python_writes_where_it_may(kafka: Cluster, topic: str) -> None:
    allow(kafka, acls.AclOperation.DESCRIBE, acls.ResourceType.TOPIC, topic)
    producer = KafkaProducer(**python(kafka), enable_idempotence=False)
    try:
        with pytest.raises(TopicAuthorizationFailedError):
            producer.send(topic, b"v").get(TIMEOUT_S)
        allow(kafka, acls.AclOperation.WRITE, acls.ResourceType.TOPIC, topic)
        assert producer.send(topic, b"v").get(TIMEOUT_S).offset == 0
    finally:
        producer.close()


def test_aiokafka_writes_where_it_may(kafka: Cluster, topic: str) -> None:
    allow(kafka, acls.AclOperation.DESCRIBE, acls.ResourceType.TOPIC, topic)

    async def write() -> int:
        producer = AIOKafkaProducer(**python(kafka))
        await producer.start()
        try:
            with pytest.raises(AioTopicError):
                await producer.send_and_wait(topic, b"v")
            allow(kafka, acls.AclOperation.WRITE, acls.ResourceType.TOPIC, topic)
            return int((await producer.send_and_wait(topic, b"v")).offset)
        finally:
            await producer.stop()

    assert asyncio.run(asyncio.wait_for(write(), TIMEOUT_S)) == 0
