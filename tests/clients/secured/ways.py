"""The ways in: each listener and mechanism, with what each client has to be told of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from mockbroker import Cluster
from mockbroker.core.security.principals import ANONYMOUS
from mockbroker.handlers.base import ConnectionInfo
from mockbroker.server.config import ListenerSpec

USER, PASSWORD = "alice", "alice-secret"
USERS = {USER: PASSWORD, "bob": "bob-secret"}
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")

LISTENERS = [
    ListenerSpec("TLS", security_protocol="SSL"),
    ListenerSpec("MTLS", security_protocol="SSL", configs={"ssl.client.auth": "required"}),
    ListenerSpec("LOGIN", security_protocol="SASL_PLAINTEXT"),
    ListenerSpec("SECURE", security_protocol="SASL_SSL"),
]
_PROTOCOLS = {listener.name: listener.security_protocol for listener in LISTENERS}


def secured_cluster(**options: Any) -> Cluster:
    """Two brokers on all of the listeners."""
    return Cluster(brokers=2, listeners=LISTENERS, users=USERS, **options)


@dataclass(frozen=True)
class Way:
    """A listener, and the mechanism where it has SASL."""

    listener: str
    mechanism: str = ""

    @property
    def protocol(self) -> str:
        return _PROTOCOLS[self.listener]

    @property
    def is_tls(self) -> bool:
        return self.protocol.endswith("SSL")

    @property
    def principal(self) -> str:
        """Who the brokers should take the client for."""
        if self.listener == "MTLS":
            return f"User:CN={USER},OU=tests,O=mockbroker"
        return f"User:{USER}" if self.mechanism else ANONYMOUS

    def __str__(self) -> str:
        return f"{self.listener}-{self.mechanism}".rstrip("-")


WAYS = [
    Way("TLS"),
    Way("MTLS"),
    *(Way(name, mechanism) for name in ("LOGIN", "SECURE") for mechanism in MECHANISMS),
]
every_way = pytest.mark.parametrize("way", WAYS, ids=str)
by_password = pytest.mark.parametrize(
    "way", [way for way in WAYS if way.mechanism not in ("", "OAUTHBEARER")], ids=str
)


def librdkafka(kafka: Cluster, way: Way, password: str = PASSWORD) -> dict[str, Any]:
    """What librdkafka is told."""
    config: dict[str, Any] = {
        "bootstrap.servers": kafka.bootstrap(way.listener),
        "security.protocol": way.protocol,
        "log_level": 0,
    }
    if way.is_tls:
        config["ssl.ca.location"] = str(kafka.tls.ca_path)
    if way.listener == "MTLS":
        files = kafka.tls.client(USER)
        config["ssl.certificate.location"] = str(files.certificate_path)
        config["ssl.key.location"] = str(files.key_path)
    if way.mechanism:
        config["sasl.mechanism"] = way.mechanism
        if way.mechanism == "OAUTHBEARER":
            config["oauth_cb"] = lambda _: (kafka.token(USER), 2e9)
        else:
            config |= {"sasl.username": USER, "sasl.password": password}
    return config


def python(kafka: Cluster, way: Way, password: str = PASSWORD) -> dict[str, Any]:
    """What kafka-python and aiokafka are told alike: all but the TLS context and tokens."""
    config: dict[str, Any] = {
        "bootstrap_servers": kafka.bootstrap(way.listener).split(","),
        "security_protocol": way.protocol,
    }
    if way.mechanism:
        config["sasl_mechanism"] = way.mechanism
        if way.mechanism != "OAUTHBEARER":
            config |= {"sasl_plain_username": USER, "sasl_plain_password": password}
    return config


def java(kafka: Cluster, way: Way, password: str = PASSWORD, token: str = "") -> dict[str, str]:
    """What Java's clients are told; `token` is the URL of a file that holds one."""
    config = {
        "bootstrap.servers": kafka.bootstrap(way.listener),
        "security.protocol": way.protocol,
    }
    if way.is_tls:
        config["ssl.truststore.location"] = str(kafka.tls.truststore_path)
        config["ssl.truststore.password"] = kafka.tls.password
        config["ssl.truststore.type"] = "PKCS12"
    if way.listener == "MTLS":
        files = kafka.tls.client(USER)
        config["ssl.keystore.location"] = str(files.keystore_path)
        config["ssl.keystore.password"] = config["ssl.key.password"] = files.password
        config["ssl.keystore.type"] = "PKCS12"
    if way.mechanism:
        config["sasl.mechanism"] = way.mechanism
        config["sasl.jaas.config"] = _jaas(way.mechanism, password)
    if way.mechanism == "OAUTHBEARER":
        config["sasl.oauthbearer.token.endpoint.url"] = token
        config["sasl.login.callback.handler.class"] = (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
        )
    return config


def _jaas(mechanism: str, password: str) -> str:
    module = {
        "PLAIN": "plain.PlainLoginModule",
        "OAUTHBEARER": "oauthbearer.OAuthBearerLoginModule",
    }.get(mechanism, "scram.ScramLoginModule")
    who = "" if mechanism == "OAUTHBEARER" else f' username="{USER}" password="{password}"'
    return f"org.apache.kafka.common.security.{module} required{who};"


def principals(kafka: Cluster, way: Way) -> set[str]:
    """Who the brokers take the clients of a listener for, once these have proved it."""
    return kafka.call(
        lambda _: {
            connection._info.principal
            for host in kafka.server.socket_servers.values()
            for connection in host._connections
            if connection._listener == way.listener and _has_proved_it(connection._info, way)
        }
    )


def _has_proved_it(info: ConnectionInfo, way: Way) -> bool:
    """Whether a client is past its handshakes: others are about to say who they are."""
    if info.sasl is not None:
        return bool(info.sasl.complete)
    return way.principal == ANONYMOUS or info.principal != ANONYMOUS
