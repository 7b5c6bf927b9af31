"""No answer of the admin API has a password, a token or a key in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress

import pytest
from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from mockbroker import Cluster
from mockbroker.admin import ServerTarget, start_admin
from tests.support.http import HttpClient, RawAnswer
from tests.support.librdkafka import TIMEOUT_S, settings

# Each stands in one place where a tester puts a secret.
USERS_PASSWORD = "alices-own-words"
WRONG_PASSWORD = "no-words-of-alice"
NEW_PASSWORD = "words-for-bob-alone"
KEY_PASSWORD = "words-that-open-a-key"
KEY_CONFIG = "listener.name.x.ssl.key.password"
ADMIN_TOKEN = "open-sesame-and-more"
SECRETS = (USERS_PASSWORD, WRONG_PASSWORD, NEW_PASSWORD, KEY_PASSWORD, ADMIN_TOKEN)


@pytest.fixture(scope="module")
def secured() -> Iterator[Cluster]:
    """A cluster whose clients have used secrets in every way that they can."""
    with Cluster(
        brokers=1,
        topics={"orders": 1},
        security_protocol="SASL_PLAINTEXT",
        users={"alice": USERS_PASSWORD},
    ) as kafka:
        login = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "alice",
            "sasl.password": USERS_PASSWORD,
        }
        wrong = Consumer(
            settings(
                kafka.bootstrap_servers,
                group_id="g",
                **{**login, "sasl.password": WRONG_PASSWORD},
            )
        )
        with pytest.raises(KafkaException):
            wrong.list_topics(timeout=2)
        wrong.close()
        admin = AdminClient(settings(kafka.bootstrap_servers, **login))
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        change = UserScramCredentialUpsertion("bob", info, NEW_PASSWORD.encode())
        admin.alter_user_scram_credentials([change])["bob"].result(TIMEOUT_S)
        broker = ConfigResource(ResourceType.BROKER, "1")
        broker.add_incremental_config(
            ConfigEntry(KEY_CONFIG, KEY_PASSWORD, incremental_operation=AlterConfigOpType.SET)
        )
        with suppress(KafkaException):  # there is no key that it could open
            admin.incremental_alter_configs([broker])[broker].result(TIMEOUT_S)
        kafka.faults.add(name="slow", match={"api": "Metadata"}, do={"delay": "1ms"})
        yield kafka


@pytest.fixture(scope="module")
def api(secured: Cluster) -> Iterator[HttpClient]:
    target = secured.call(lambda _: ServerTarget(secured.server))
    server = start_admin(target, secret=ADMIN_TOKEN)
    yield HttpClient(server.url)
    assert server.stop()


def test_no_answer_shows_one(api: HttpClient) -> None:
    """Everything that GET answers; streams, which have no end, are the journal's pages again."""
    described = json.loads(answered(api, "/openapi.json").body)
    seen = {}
    for path, methods in described["paths"].items():
        if "get" in methods and not path.endswith("/stream"):
            named = path.replace("{topic}", "orders").replace("{group}", "g")
            answer = answered(api, named.replace("{name}", "slow").replace("{id}", "1"))
            seen[path] = str(answer.headers).encode() + answer.body
    assert len(seen) > 20
    shown = [(path, secret) for path in seen for secret in SECRETS if secret.encode() in seen[path]]
    assert shown == []
    assert b"AlterUserScramCredentials" in seen["/v1/journal"]
    assert KEY_CONFIG.encode() in seen["/v1/journal"]
    assert KEY_CONFIG.encode() in seen["/v1/journal/entries"]


def answered(api: HttpClient, path: str) -> RawAnswer:
    """The answer to the administrator, whatever its type and its status but 401."""
    answer = api.raw("GET", path, headers={"authorization": f"Bearer {ADMIN_TOKEN}"})
    assert answer.status != 401, path
    return answer


@pytest.mark.parametrize("given", [f"Basic {ADMIN_TOKEN}", f"{ADMIN_TOKEN}", "Bearer wrong"])
def test_a_refusal_does_not_repeat_what_was_sent(api: HttpClient, given: str) -> None:
    answer = api.request("GET", "/v1/cluster", headers={"authorization": given})
    assert answer.status == 401
    assert given.rsplit(maxsplit=1)[-1] not in json.dumps([answer.body, dict(answer.headers)])
