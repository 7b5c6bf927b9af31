"""A cluster with an authorizer: its users, and rights given to them from outside."""

from __future__ import annotations

from typing import Any

from mockbroker import Cluster
from mockbroker.core.security.acls import (
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from mockbroker.core.security.authorizer import STANDARD_AUTHORIZER

USERS = {"admin": "admin-secret", "alice": "alice-secret"}


def authorized_cluster(**options: Any) -> Cluster:
    """Two brokers, `admin` a super user, delegation tokens enabled."""
    configs = {
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:admin",
        "delegation.token.secret.key": "secret",
        **options,
    }
    return Cluster(brokers=2, security_protocol="SASL_PLAINTEXT", users=USERS, configs=configs)


def librdkafka(kafka: Cluster, user: str = "alice") -> dict[str, Any]:
    """What librdkafka is told."""
    return {
        "bootstrap.servers": kafka.bootstrap_servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": USERS[user],
        "log_level": 0,
    }


def python(kafka: Cluster, user: str = "alice") -> dict[str, Any]:
    """What kafka-python and aiokafka are told alike."""
    return {
        "bootstrap_servers": kafka.bootstrap_servers.split(","),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": user,
        "sasl_plain_password": USERS[user],
    }


def java(kafka: Cluster, user: str = "alice") -> dict[str, str]:
    """What Java's clients are told."""
    return {
        "bootstrap.servers": kafka.bootstrap_servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": (
            "org.apache.kafka.common.security.plain.PlainLoginModule required"
            f' username="{user}" password="{USERS[user]}";'
        ),
    }


def _binding(operation: AclOperation, kind: ResourceType, name: str) -> AclBinding:
    return AclBinding(
        kind, name, PatternType.LITERAL, "User:alice", "*", operation, AclPermissionType.ALLOW
    )


def allow(kafka: Cluster, operation: AclOperation, kind: ResourceType, name: str) -> None:
    """Let alice do something, at once."""
    kafka.call(lambda cluster: cluster.acls.add(_binding(operation, kind, name)))


def revoke(kafka: Cluster, operation: AclOperation, kind: ResourceType, name: str) -> None:
    """Take it back."""
    wanted = AclFilter(kind, name, PatternType.LITERAL, "User:alice", operation=operation)
    found = kafka.call(lambda cluster: cluster.acls.find(wanted))
    assert found
    kafka.call(lambda cluster: cluster.acls.remove(found))
