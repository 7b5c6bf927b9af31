"""Java's clients and Kafka's own tools where not everyone may do everything."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mockbroker import Cluster
from mockbroker.core.security.acls import AclOperation, ResourceType
from tests.clients.authorized.ways import allow, authorized_cluster, java, revoke
from tests.support.tour import Tour
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.java, pytest.mark.parametrize("tour", ["4.3.1"], indirect=True)]

TOOLS = "org.apache.kafka.tools"
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    with authorized_cluster() as cluster:
        yield cluster


def tool(
    tour: Tour,
    kafka: Cluster,
    folder: Path,
    main: str,
    *args: str,
    user: str = "admin",
    exit_code: int = 0,
) -> str:
    """What one of Kafka's tools prints."""
    config = folder / f"{user}.properties"
    config.write_text("".join(f"{name}={value}\n" for name, value in java(kafka, user).items()))
    words = ["--bootstrap-server", kafka.bootstrap_servers, "--command-config", str(config), *args]
    ended: dict[str, Any] = tour("tool", main=f"{TOOLS}.{main}", args=words, stdin="")
    assert ended["exit"] == exit_code, ended
    return str(ended["out"] + ended["err"])


def send(tour: Tour, config: dict[str, str], topic: str, producer: str = "once") -> str:
    """The class of the exception that a record meets with, or nothing."""
    once = producer == "once"
    if once:
        tour("producer.open", name=producer, config=config)
    (sent,) = tour("producer.send", name=producer, records=[{"topic": topic, "value": "v"}])
    if once:
        tour("producer.close", name=producer)
    return str(sent.get("error", ""))


def test_acl_command_adds_lists_and_removes(tour: Tour, kafka: Cluster, tmp_path: Path) -> None:
    def acls(*args: str, user: str = "admin", exit_code: int = 0) -> str:
        name = "AclCommand"
        return tool(tour, kafka, tmp_path, name, *args, user=user, exit_code=exit_code)

    kafka.topic("tool").create(1)
    assert send(tour, java(kafka), "tool") == "TopicAuthorizationException"
    who = ("--allow-principal", "User:alice")
    acls("--add", *who, "--producer", "--topic", "tool")
    wait_until(lambda: send(tour, java(kafka), "tool") == "")  # brokers learn of it one by one
    acls("--add", *who, "--consumer", "--topic", "to", "--resource-pattern-type", "prefixed",
         "--group", "read")  # fmt: skip
    acls("--add", "--deny-principal", "User:bob", "--deny-host", "10.0.0.1", "--operation", "Read",
         "--topic", "tool")  # fmt: skip
    match = ("--resource-pattern-type", "match")
    lines = (
        "resourceType=TOPIC, name=tool, patternType=LITERAL",
        "(principal=User:alice, host=*, operation=WRITE, permissionType=ALLOW)",
        "(principal=User:alice, host=*, operation=CREATE, permissionType=ALLOW)",
        "(principal=User:bob, host=10.0.0.1, operation=READ, permissionType=DENY)",
        "resourceType=TOPIC, name=to, patternType=PREFIXED",
    )

    def all_listed() -> bool:
        listed = acls("--list", "--topic", "tool", *match)
        return all(line in listed for line in lines)

    wait_until(all_listed)
    wait_until(lambda: "operation=READ" in acls("--list", "--group", "readers", *match))
    refused = acls("--list", user="alice", exit_code=1)
    assert "ClusterAuthorizationException" in refused
    acls("--remove", *who, "--producer", "--topic", "tool", "--force")
    # There is no topic left that an idempotent producer may write to.
    wait_until(lambda: send(tour, java(kafka), "tool") == "ClusterAuthorizationException")
    acls("--remove", "--topic", "tool", "--force")
    wait_until(lambda: "operation=" not in acls("--list", "--topic", "tool"))


def test_a_right_that_is_taken_back_ends_with_the_next_request(tour: Tour, kafka: Cluster) -> None:
    kafka.topic("open").create(1)
    allow(kafka, AclOperation.WRITE, TOPIC, "open")
    tour("producer.open", name="stays", config=java(kafka))
    try:
        assert send(tour, {}, "open", "stays") == ""
        revoke(kafka, AclOperation.WRITE, TOPIC, "open")
        assert send(tour, {}, "open", "stays") == "TopicAuthorizationException"
        allow(kafka, AclOperation.WRITE, TOPIC, "open")
        wait_until(lambda: send(tour, {}, "open", "stays") == "", what="the right is seen")
    finally:
        tour("producer.close", name="stays")


def test_delegation_token_command(tour: Tour, kafka: Cluster, tmp_path: Path) -> None:
    """Make a token, log in with it, let it expire."""

    def tokens(*args: str, user: str = "alice") -> str:
        return tool(tour, kafka, tmp_path, "DelegationTokenCommand", *args, user=user)

    kafka.topic("token").create(1)
    allow(kafka, AclOperation.WRITE, TOPIC, "token")
    made = tokens("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:admin")
    row = made.splitlines()[-1].split()
    token_id, secret = row[0], row[1]
    assert "User:alice" in row
    config = java(kafka) | {
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": (
            f'{SCRAM} required username="{token_id}" password="{secret}" tokenauth="true";'
        ),
    }
    assert send(tour, config, "token") == ""
    assert token_id in tokens("--describe", "--owner-principal", "User:alice")
    renewed = tokens("--renew", "--renew-time-period", "3600000", "--hmac", secret, user="admin")
    assert re.search(r"renew", renewed, re.IGNORECASE)
    tokens("--expire", "--expiry-time-period", "-1", "--hmac", secret)
    assert token_id not in tokens("--describe", "--owner-principal", "User:alice")
    assert send(tour, config, "token") == "SaslAuthenticationException"
