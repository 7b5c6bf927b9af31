"""Quotas and telemetry subscriptions by Kafka's own tools, and Java clients that are throttled."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.java.steps import Steps
from tests.clients.java.test_tools import TOOLS, run

pytestmark = [pytest.mark.java, pytest.mark.parametrize("tour", ["4.3.1"], indirect=True)]


def configs(java: Steps, *args: str) -> str:
    return run(java, "kafka.admin.ConfigCommand", *args)


def allow(java: Steps, client: str, quotas: str) -> None:
    """Set quotas of a client id, and wait until the brokers tell of them."""
    entity = ("--entity-type", "clients", "--entity-name", client)
    configs(java, *entity, "--alter", "--add-config", quotas)
    name = quotas.partition("=")[0]
    java.until(lambda: name in configs(java, *entity, "--describe"))


def test_config_command_sets_describes_and_removes_quotas(java: Steps) -> None:
    user, client = java.unique("user"), java.unique("client")
    both = ("--entity-type", "users", "--entity-name", user)
    both += ("--entity-type", "clients", "--entity-name", client)
    only_user = ("--entity-type", "users", "--entity-name", user)
    configs(java, *both, "--alter", "--add-config", "producer_byte_rate=1024,request_percentage=50")
    configs(java, *only_user, "--alter", "--add-config", "controller_mutation_rate=2.5")
    java.until(lambda: "controller_mutation_rate=2.5" in configs(java, *only_user, "--describe"))
    told = configs(java, *both, "--describe")
    assert f"user-principal '{user}'" in told
    assert f"client-id '{client}'" in told
    assert "producer_byte_rate=1024.0" in told
    assert "request_percentage=50.0" in told
    everybody = configs(java, "--entity-type", "users", "--entity-type", "clients", "--describe")
    assert f"'{client}'" in everybody
    configs(java, *both, "--alter", "--delete-config", "producer_byte_rate,request_percentage")
    configs(java, *only_user, "--alter", "--delete-config", "controller_mutation_rate")
    java.until(lambda: f"'{user}'" not in configs(java, "--entity-type", "users", "--describe"))


def test_config_command_sets_the_rate_of_connections_of_an_address(java: Steps) -> None:
    address = ("--entity-type", "ips", "--entity-name", "10.11.12.13")
    configs(java, *address, "--alter", "--add-config", "connection_creation_rate=77")
    java.until(lambda: "connection_creation_rate=77.0" in configs(java, *address, "--describe"))
    configs(java, *address, "--alter", "--delete-config", "connection_creation_rate")
    java.until(lambda: "10.11.12.13" not in configs(java, "--entity-type", "ips", "--describe"))


def test_client_metrics_command_keeps_subscriptions(java: Steps) -> None:
    def metrics(*args: str) -> str:
        return run(java, f"{TOOLS}.ClientMetricsCommand", *args)

    name = java.unique("subscription")
    metrics(
        *("--alter", "--name", name, "--metrics", "org.apache.kafka.consumer."),
        *("--interval", "60000", "--match", "client_id=nobody"),
    )
    java.until(lambda: name in metrics("--list").splitlines())
    told = metrics("--describe", "--name", name)
    assert "interval.ms=60000" in told
    assert "metrics=org.apache.kafka.consumer." in told
    assert "match=client_id=nobody" in told
    metrics("--delete", "--name", name)
    java.until(lambda: name not in metrics("--list").splitlines())


def test_metadata_quorum_command_tells_who_votes_and_refuses_to_take_the_vote_away(
    java: Steps,
) -> None:
    tool = f"{TOOLS}.MetadataQuorumCommand"
    replicas = run(java, tool, "describe", "--replication").splitlines()
    assert replicas[0].split()[:3] == ["NodeId", "DirectoryId", "LogEndOffset"]
    assert sum(line.split()[-1] == "Leader" for line in replicas) == 1
    stranger = ("--controller-id", "99", "--controller-directory-id", "A" * 20 + "BA")
    run(java, tool, "remove-controller", *stranger, exit_code=1)


def test_topic_command_hears_that_the_quota_of_changes_is_used_up(
    java: Steps, tmp_path: Path
) -> None:
    client, topic = java.unique("client"), java.unique("topic")
    allow(java, client, "controller_mutation_rate=0.01")
    properties = tmp_path / "client.properties"
    properties.write_text(f"client.id={client}\n")

    def create(name: str, exit_code: int) -> str:
        words = ("--create", "--topic", name, "--command-config", str(properties))
        return run(java, f"{TOOLS}.TopicCommand", *words, exit_code=exit_code)

    create(f"{topic}-1", 0)
    assert "quota has been exceeded" in create(f"{topic}-2", 1)


@pytest.mark.covers("S158")
def test_a_producer_sees_that_it_is_throttled(java: Steps) -> None:
    """A little more than ten seconds' worth at once has to wait for what is too much."""
    topic, client = java.topic(), java.unique("client")
    allow(java, client, "producer_byte_rate=2000")
    producer = java.producer(client_id=client)

    def waited() -> float:
        (sent,) = java.send(producer, {"value": "x" * 20_500}, topic=topic)
        assert "error" not in sent
        return float(java("metric", producer, metric="produce-throttle-time-max"))

    java.until(lambda: waited() > 0)
