"""A real broker whose one listener for clients wants SASL PLAIN or SCRAM-SHA-256."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from typing import Any

from mockbroker.client.errors import ClientError
from mockbroker_protocol.messages.metadata import MetadataRequest
from tests.support.real_kafka import RealKafka
from tests.support.sasl import SaslConnection

ADMIN, ADMIN_PASSWORD = "admin", "admin-secret"
_JAAS = "org.apache.kafka.common.security.{} required {};"


def sasl_configs(users: Mapping[str, str]) -> dict[str, str]:
    """The configs of a broker that these users, `admin` among them, log in to by PLAIN."""
    logins = " ".join(f'user_{name}="{password}"' for name, password in users.items())
    own = f'username="{ADMIN}" password="{ADMIN_PASSWORD}" '
    return {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.plaintext.plain.sasl.jaas.config": _JAAS.format(
            "plain.PlainLoginModule", own + logins
        ),
        "listener.name.plaintext.scram-sha-256.sasl.jaas.config": _JAAS.format(
            "scram.ScramLoginModule", ""
        ),
    }


class RealSaslKafka(RealKafka):
    """One node, configured by `sasl_configs`; ready when `admin` gets an answer."""

    def endpoint(self, node_id: int, listener: str | None = None) -> tuple[str, int]:
        return self.addresses[node_id]

    def _wait(self, deadline: float) -> None:
        for process in self._processes:
            while not self._ready():
                assert process.poll() is None, self.output()[-4000:]
                assert time.monotonic() < deadline, self.output()[-4000:]

    def _ready(self) -> bool:
        here: Any = self
        with contextlib.suppress(ClientError), SaslConnection(here) as connection:
            if connection.plain(ADMIN, ADMIN_PASSWORD).error_code == 0:
                return bool(connection.send(MetadataRequest(), 12).brokers)
        return False
