"""Java's clients on secured listeners: TLS, client certificates, every SASL mechanism."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mockbroker import Cluster
from tests.clients.secured.ways import (
    MECHANISMS,
    USER,
    Way,
    by_password,
    every_way,
    principals,
    secured_cluster,
)
from tests.clients.secured.ways import java as settings
from tests.support.java_pipe import JavaError
from tests.support.tour import Tour

pytestmark = pytest.mark.java

TIMEOUT_S = 30.0
VALUES = {f"value {n}" for n in range(20)}


@pytest.fixture(scope="module")
def secured() -> Iterator[Cluster]:
    with secured_cluster() as cluster:
        yield cluster


class Clients:
    """Java clients by name; all are closed when the test ends."""

    def __init__(self, tour: Tour, config: dict[str, str]) -> None:
        self.tour = tour
        self.config = config
        self._open: list[tuple[str, str]] = []

    def open(self, kind: str, **config: object) -> str:
        name = f"{kind}-{len(self._open)}"
        more = {key.replace("_", "."): str(value) for key, value in config.items()}
        self.tour(f"{kind}.open", name=name, config={**self.config, **more})
        self._open.append((kind, name))
        return name

    def send(self, producer: str, topic: str, *values: str) -> list[dict[str, Any]]:
        records = [{"topic": topic, "value": value} for value in values]
        sent: list[dict[str, Any]] = self.tour("producer.send", name=producer, records=records)
        return sent

    def close(self) -> None:
        for kind, name in self._open:
            self.tour(f"{kind}.close", name=name)


@pytest.fixture
def connect(tour: Tour, tmp_path: Path) -> Iterator[Any]:
    """`connect(kafka, way)`: the clients of one version, told how to get in."""
    opened: list[Clients] = []

    def connect(kafka: Cluster, way: Way, password: str | None = None) -> Clients:
        token = tmp_path / "token"
        url = token.as_uri()
        if way.mechanism == "OAUTHBEARER":
            token.write_text(kafka.token(USER, claims={"scope": "kafka"}))
            tour("security.allowUrl", url=url)
        config = (
            settings(kafka, way, token=url) if password is None else settings(kafka, way, password)
        )
        clients = Clients(tour, config)
        opened.append(clients)
        return clients

    yield connect
    for clients in opened:
        clients.close()


@every_way
def test_records_go_there_and_back(tour: Tour, secured: Cluster, connect: Any, way: Way) -> None:
    topic = f"{way}-{tour.version}"
    secured.topic(topic).create(2)
    clients = connect(secured, way)
    producer = clients.open("producer")
    assert not [each for each in clients.send(producer, topic, *VALUES) if "error" in each]
    assert principals(secured, way) == {way.principal}
    consumer = clients.open("consumer", group_id=f"g-{topic}", auto_offset_reset="earliest")
    tour("consumer.subscribe", name=consumer, topics=[topic])
    found = tour("consumer.poll", name=consumer, count=len(VALUES), timeoutMs=20_000)
    assert {record["value"] for record in found} == VALUES
    tour("consumer.commit", name=consumer)


@pytest.mark.covers("S290")
@by_password
def test_a_wrong_password_is_an_authentication_error(
    secured: Cluster, connect: Any, way: Way
) -> None:
    clients = connect(secured, way, "wrong")
    (sent,) = clients.send(clients.open("producer"), "any", "x")
    assert sent["error"] == "SaslAuthenticationException"
    if way.mechanism == "PLAIN":
        assert sent["message"] == "Authentication failed: Invalid username or password"
    else:
        assert sent["message"].endswith(f"invalid credentials with SASL mechanism {way.mechanism}")


def test_a_mechanism_that_is_not_offered_is_named(connect: Any) -> None:
    configs = {"sasl.enabled.mechanisms": "SCRAM-SHA-512"}
    with secured_cluster(configs=configs) as kafka:
        clients = connect(kafka, Way("LOGIN", "PLAIN"))
        (sent,) = clients.send(clients.open("producer"), "any", "x")
        assert sent["error"] == "UnsupportedSaslMechanismException"
        assert "SCRAM-SHA-512" in sent["message"]
        clients.close()
        clients._open.clear()


def test_a_client_that_does_not_trust_the_authority_says_so(secured: Cluster, connect: Any) -> None:
    clients = connect(secured, Way("TLS"))
    for name in list(clients.config):
        if name.startswith("ssl.truststore"):
            del clients.config[name]
    (sent,) = clients.send(clients.open("producer"), "any", "x")
    assert sent["error"] == "SslAuthenticationException"


def test_a_client_without_the_certificate_it_needs_says_so(secured: Cluster, connect: Any) -> None:
    clients = connect(secured, Way("MTLS"))
    for name in list(clients.config):
        if name.startswith(("ssl.key.", "ssl.keystore")):
            del clients.config[name]
    (sent,) = clients.send(clients.open("producer"), "any", "x")
    assert sent["error"] == "SslAuthenticationException"


@pytest.mark.parametrize("mechanism", MECHANISMS[:3])
def test_sessions_are_renewed_in_the_midst_of_producing(connect: Any, mechanism: str) -> None:
    """The client proves itself again once most of the session's time is over (KIP-368)."""
    with secured_cluster(configs={"connections.max.reauth.ms": 1500}) as kafka:
        kafka.topic("t").create()
        clients = connect(kafka, Way("LOGIN", mechanism))
        producer = clients.open("producer")
        sent, renewed = 0, 0.0
        deadline = time.monotonic() + TIMEOUT_S
        while renewed < 2 and time.monotonic() < deadline:
            assert "error" not in clients.send(producer, "t", "x")[0]
            sent += 1
            renewed = clients.tour(
                "producer.metric", name=producer, metric="successful-reauthentication-total"
            )
        assert renewed >= 2
        assert len(kafka.records("t")) == sent
        clients.close()
        clients._open.clear()


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_admin_changes_who_may_log_in(
    tour: Tour, secured: Cluster, connect: Any, mechanism: str
) -> None:
    admin = connect(secured, Way("SECURE", "SCRAM-SHA-256")).config
    user = f"new-{mechanism}-{tour.version}"
    change = {"config": admin, "user": user, "mechanism": mechanism}
    tour("security.alterScram", **change, password="new-secret", iterations=8192)
    assert tour("security.describeScram", config=admin)[user] == {mechanism: 8192}
    clients = connect(secured, Way("LOGIN", mechanism), "new-secret")
    clients.config["sasl.jaas.config"] = clients.config["sasl.jaas.config"].replace(USER, user, 1)
    topic = f"topic-{user}"
    secured.topic(topic).create()
    assert "error" not in clients.send(clients.open("producer"), topic, "x")[0]
    tour("security.alterScram", **change)
    assert user not in tour("security.describeScram", config=admin)
    (sent,) = clients.send(clients.open("producer"), topic, "x")
    assert sent["error"] == "SaslAuthenticationException"


def test_too_few_iterations_are_refused(tour: Tour, secured: Cluster, connect: Any) -> None:
    admin = connect(secured, Way("LOGIN", "PLAIN")).config
    with pytest.raises(JavaError, match="UnacceptableCredentialException"):
        tour(
            "security.alterScram",
            config=admin,
            user="weak",
            mechanism="SCRAM-SHA-256",
            password="x",
            iterations=4095,
        )
