"""A trace shows requests and answers without secrets."""

from __future__ import annotations

import pytest

from mockbroker import Cluster
from mockbroker.client.connection import Connection
from mockbroker.server.network.trace import trace_line
from mockbroker_protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from mockbroker_protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from mockbroker_protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.sasl import SaslConnection


@pytest.fixture(scope="module")
def lines() -> str:
    """What is traced of a client that handles secrets in every way there is."""
    traced: list[str] = []
    config = [
        AlterableConfig(name, "key-secret")
        for name in ("ssl.key.password", "listener.name.x.sasl.jaas.config")
    ]
    plain = [AlterableConfig("num.io.threads", "7")]
    with (
        Cluster(
            brokers=1,
            security_protocol="SASL_PLAINTEXT",
            users={"alice": "alice-secret"},
            trace=lambda *seen: traced.append(trace_line(*seen)),
        ) as kafka,
        SaslConnection(kafka) as client,
        SaslConnection(kafka) as intruder,
    ):
        intruder.plain("alice", "wrong-secret")
        client.scram("alice", "alice-secret")
        client.send(MetadataRequest([MetadataRequestTopic(name="orders")]), 12)
        resource = AlterConfigsResource(4, "1", [*config, *plain])
        client.send(AlterConfigsRequest([resource], True), 2)
        upsertion = ScramCredentialUpsertion("bob", 1, 4096, b"salt-secret", b"salted-secret")
        client.send(AlterUserScramCredentialsRequest([], [upsertion]), 0)
    return "\n".join(traced)


def test_each_exchange_is_a_line(lines):
    assert [line.split()[4] for line in lines.splitlines()] == [
        "SASL_HANDSHAKE",
        "SASL_AUTHENTICATE",
        "SASL_HANDSHAKE",
        "SASL_AUTHENTICATE",
        "SASL_AUTHENTICATE",
        "METADATA",
        "ALTER_CONFIGS",
        "ALTER_USER_SCRAM_CREDENTIALS",
    ]


def test_what_is_no_secret_is_shown(lines):
    assert "name=orders" in lines
    assert "name=num.io.threads value=7" in lines
    assert "mechanism=SCRAM-SHA-256" in lines
    assert "Invalid username or password" in lines


def test_no_secret_is_shown(lines):
    assert "-secret" not in lines
    assert "name=ssl.key.password value=[hidden]" in lines
    assert "name=listener.name.x.sasl.jaas.config value=[hidden]" in lines


def test_a_request_that_is_never_answered_shows_in_trace_and_journal() -> None:
    """A client that hangs shows nothing itself."""
    traced: list[str] = []
    with Cluster(brokers=1, trace=lambda *seen: traced.append(trace_line(*seen))) as kafka:
        host, port = kafka.endpoint(1)
        with Connection(host, port, "batcher", timeout_s=10) as client:
            client.write(AddPartitionsToTxnRequest(), 4)
            (entry,) = kafka.journal.wait(kind="unanswered", timeout_s=10)
    assert entry.client_id == "batcher"
    assert entry.api == "ADD_PARTITIONS_TO_TXN"
    assert "the request names no transaction" in entry.reason
    (line,) = (line for line in traced if "ADD_PARTITIONS_TO_TXN" in line)
    assert "-> (no answer, as by Kafka: the request names no transaction" in line
