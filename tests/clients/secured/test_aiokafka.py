"""aiokafka on secured listeners."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Coroutine
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaError

from mockbroker import Cluster
from tests.clients.secured.ways import USER, Way, by_password, every_way, principals, python

TIMEOUT_S = 20.0
VALUES = {f"value {n}".encode() for n in range(20)}


class Tokens(AbstractTokenProvider):
    def __init__(self, kafka: Cluster) -> None:
        self._kafka = kafka

    async def token(self) -> str:
        return await asyncio.to_thread(self._kafka.token, USER)


def settings(kafka: Cluster, way: Way, password: str | None = None) -> dict[str, Any]:
    config = python(kafka, way) if password is None else python(kafka, way, password)
    if way.is_tls:
        context = ssl.create_default_context(cafile=kafka.tls.ca_path)
        if way.listener == "MTLS":
            files = kafka.tls.client(USER)
            context.load_cert_chain(files.certificate_path, files.key_path)
        config["ssl_context"] = context
    if way.mechanism == "OAUTHBEARER":
        config["sasl_oauth_token_provider"] = Tokens(kafka)
    return config


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(main, TIMEOUT_S))


@every_way
def test_records_go_there_and_back(kafka: Cluster, topic: str, way: Way) -> None:
    async def main() -> None:
        config = settings(kafka, way)
        async with AIOKafkaProducer(**config) as producer:
            for value in VALUES:
                await producer.send_and_wait(topic, value)
            assert principals(kafka, way) == {way.principal}
        consumer = AIOKafkaConsumer(
            topic, group_id=f"g-{topic}", auto_offset_reset="earliest", **config
        )
        async with consumer:
            found = {(await consumer.getone()).value for _ in VALUES}
            await consumer.commit()
        assert found == VALUES

    run(main())


@pytest.mark.covers("S290")
@by_password
def test_a_wrong_password_is_an_authentication_error(
    kafka: Cluster, way: Way, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        producer = AIOKafkaProducer(**settings(kafka, way, "wrong"))
        try:
            with pytest.raises(KafkaError):
                await producer.start()
        finally:
            await producer.stop()

    run(main())
    assert "Authentication failed" in caplog.text


def test_a_client_that_does_not_trust_the_authority_says_so(
    kafka: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        config = settings(kafka, Way("TLS"))
        config["ssl_context"] = ssl.create_default_context()
        producer = AIOKafkaProducer(**config)
        try:
            with pytest.raises(KafkaError):
                await producer.start()
        finally:
            await producer.stop()

    run(main())
    assert "CERTIFICATE_VERIFY_FAILED" in caplog.text
