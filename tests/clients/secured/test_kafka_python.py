"""kafka-python on secured listeners."""

from __future__ import annotations

import ssl
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError
from kafka.net.sasl.oauth import AbstractTokenProvider

from mockbroker import Cluster
from tests.clients.secured.ways import USER, Way, by_password, every_way, principals, python
from tests.support.kafka_python import refused_client

TIMEOUT_S = 20.0
PATIENCE_MS = (1_000, 5_000, 25_000)
VALUES = {f"value {n}".encode() for n in range(20)}


class Tokens(AbstractTokenProvider):
    def __init__(self, kafka: Cluster) -> None:
        super().__init__()
        self._kafka = kafka

    def token(self) -> str:
        return self._kafka.token(USER, algorithm="RS256")


def settings(kafka: Cluster, way: Way, password: str | None = None) -> dict[str, Any]:
    config = python(kafka, way) if password is None else python(kafka, way, password)
    if way.is_tls:
        config["ssl_cafile"] = str(kafka.tls.ca_path)
    if way.listener == "MTLS":
        files = kafka.tls.client(USER)
        config["ssl_certfile"] = str(files.certificate_path)
        config["ssl_keyfile"] = str(files.key_path)
    if way.mechanism == "OAUTHBEARER":
        config["sasl_oauth_token_provider"] = Tokens(kafka)
    return config


@every_way
def test_records_go_there_and_back(kafka: Cluster, topic: str, way: Way) -> None:
    config = settings(kafka, way)
    producer = KafkaProducer(**config)
    try:
        for future in [producer.send(topic, value) for value in VALUES]:
            future.get(TIMEOUT_S)
        assert principals(kafka, way) == {way.principal}
    finally:
        producer.close()
    consumer = KafkaConsumer(
        topic,
        group_id=f"g-{topic}",
        auto_offset_reset="earliest",
        consumer_timeout_ms=int(TIMEOUT_S * 1000),
        **config,
    )
    try:
        found: set[bytes] = set()
        for record in consumer:
            found.add(record.value)
            if len(found) == len(VALUES):
                break
        consumer.commit()
    finally:
        consumer.close()
    assert found == VALUES


def try_in_vain(config: dict[str, Any], caplog: pytest.LogCaptureFixture, *reasons: str) -> None:
    """Connect, which must fail, until the client's log tells of one of the reasons.

    The client stops at the end of its time whether it was answered or not, and on a busy machine
    it may not have been; so it gets more time then.
    """
    for timeout_ms in PATIENCE_MS:
        with (
            refused_client() as held,
            pytest.raises(KafkaError),
            caplog.at_level("WARNING", logger="kafka"),
        ):
            KafkaAdminClient(**config, **held, bootstrap_timeout_ms=timeout_ms)
        if any(reason in caplog.text for reason in reasons):
            return
    raise AssertionError(f"the client was not told of {reasons}: {caplog.text}")


@pytest.mark.covers("S290")
@by_password
def test_a_wrong_password_is_an_authentication_error(
    kafka: Cluster, way: Way, caplog: pytest.LogCaptureFixture
) -> None:
    """The client goes on trying until its time is over; its log says what it was told."""
    since = kafka.journal.last_seq
    # On a busy machine this client reads the answer together with the end of the connection, and
    # its transport then gives up the answer.
    try_in_vain(
        settings(kafka, way, "wrong"), caplog, "SaslAuthenticationFailed", "socket disconnected"
    )
    ends = kafka.journal.events(kind="connection", change="closed")
    reasons = " ".join(str(each.reason) for each in ends if each.seq > since)
    assert f"failed authentication ({way.mechanism})" in reasons


def test_a_client_that_does_not_trust_the_authority_says_so(
    kafka: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    config = settings(kafka, Way("TLS"))
    config["ssl_context"] = ssl.create_default_context()
    try_in_vain(config, caplog, "CERTIFICATE_VERIFY_FAILED")
