"""Finds brokers, leaders and coordinators for requests, and retries when they move."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import msgspec

from mockbroker.client.connection import DEFAULT_TIMEOUT_S, Connection
from mockbroker.client.errors import (
    BootstrapError,
    BrokerError,
    ClientError,
    ConnectError,
    UnknownTopicError,
    check,
)
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from mockbroker_protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

T = TypeVar("T")

DEFAULT_PORT = 9092
PORT_MAX = 65535
BACKOFF_S = 0.02
BACKOFF_S_MAX = 0.5
GROUP_KEY_TYPE = 0

_ADDRESS = re.compile(r"(\[(?P<ipv6>[0-9a-fA-F:.]+)\]|(?P<host>[^\[\]:\s]+))(:(?P<port>\d{1,5}))?")


class Address(msgspec.Struct, frozen=True):
    """Host and port of a broker."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def parse_bootstrap(text: str) -> list[Address]:
    """HOST[:PORT],… as addresses; an IPv6 address stands in brackets. Raises ValueError."""
    addresses = []
    for part in text.split(","):
        found = _ADDRESS.fullmatch(part.strip())
        port = int(found["port"] or DEFAULT_PORT) if found else 0
        if found is None or port > PORT_MAX:
            raise ValueError(f"{part.strip()!r} is not HOST:PORT")
        addresses.append(Address(found["ipv6"] or found["host"], port))
    return addresses


class Router:
    """Connections to a cluster's brokers, made when needed, and the newest metadata seen."""

    def __init__(
        self,
        bootstrap: str,
        client_id: str = "mockbroker-client",
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> None:
        self._bootstrap = parse_bootstrap(bootstrap)
        self._client_id = client_id
        self.timeout_s = timeout_s
        self._brokers: dict[int, Address] = {}
        self._connections: dict[Address, Connection] = {}
        self._topics: dict[str, MetadataResponseTopic] = {}

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    # ---- connections

    def connect(self, address: Address) -> Connection:
        """The connection to an address. Raises `ConnectError`."""
        connection = self._connections.get(address)
        if connection is None:
            connection = Connection(
                address.host, address.port, self._client_id, timeout_s=self.timeout_s
            )
            self._connections[address] = connection
        return connection

    def any(self) -> Connection:
        """A connection to any reachable broker. Raises `BootstrapError`."""
        failures: dict[Address, ConnectError] = {}
        for address in [*self._connections, *self._brokers.values(), *self._bootstrap]:
            if address in failures:
                continue
            try:
                return self.connect(address)
            except ConnectError as error:
                failures[address] = error
        raise BootstrapError("; ".join(str(error) for error in failures.values()))

    def node(self, node_id: int) -> Connection:
        """The connection to a broker by its id. Raises `ConnectError` and `BrokerError`."""
        if node_id not in self._brokers:
            self.metadata([])
        address = self._brokers.get(node_id)
        if address is None:
            raise BrokerError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {node_id}")
        return self.connect(address)

    def nodes(self) -> list[int]:
        """The ids of all live brokers."""
        return sorted(broker.node_id for broker in self.metadata([]).brokers)

    def drop(self, connection: Connection) -> None:
        """Close a connection, for instance one whose response nobody will read."""
        connection.close()
        self._connections = {a: c for a, c in self._connections.items() if c is not connection}

    # ---- metadata

    def metadata(
        self, topics: list[str] | None = None, *, auto_create: bool = False
    ) -> MetadataResponse:
        """Metadata of the named topics, of all (None) or of none (an empty list)."""
        request = MetadataRequest(
            topics=None if topics is None else [MetadataRequestTopic(name=name) for name in topics],
            allow_auto_topic_creation=auto_create,
        )
        response: MetadataResponse = self.any().send(request)
        self._brokers = {
            broker.node_id: Address(broker.host, broker.port) for broker in response.brokers
        }
        for topic in response.topics:
            if topic.name is not None:
                self._topics[topic.name] = topic
        return response

    def topic(self, name: str, *, auto_create: bool = False) -> MetadataResponseTopic:
        """A topic from the newest metadata. Raises `UnknownTopicError` and `BrokerError`."""
        topic = self._topics.get(name)
        if topic is None or topic.error_code:
            self.metadata([name], auto_create=auto_create)
            topic = self._topics[name]
        if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and not auto_create:
            raise UnknownTopicError(f"there is no topic {name}")
        check(topic.error_code, f"topic {name}")
        return topic

    def partitions(self, name: str, *, auto_create: bool = False) -> list[int]:
        """The partitions of a topic, in order."""
        topic = self.topic(name, auto_create=auto_create)
        return sorted(partition.partition_index for partition in topic.partitions)

    def partition(self, name: str, index: int) -> MetadataResponsePartition:
        """One partition. Raises `UnknownTopicError` when the topic has no such partition."""
        topic = self.topic(name)
        for partition in topic.partitions:
            if partition.partition_index == index:
                return partition
        raise UnknownTopicError(
            f"topic {name} has no partition {index}, only 0-{len(topic.partitions) - 1}"
        )

    def leader(self, name: str, index: int) -> int:
        """The leader's node id. Raises `BrokerError` (LEADER_NOT_AVAILABLE) without a leader."""
        partition = self.partition(name, index)
        if partition.leader_id < 0:
            raise BrokerError(ErrorCode.LEADER_NOT_AVAILABLE, f"{name}-{index}")
        return partition.leader_id

    def coordinator(self, group: str) -> Connection:
        """The connection to a group's coordinator. Raises `BrokerError`."""
        connection = self.any()
        request = FindCoordinatorRequest(
            key=group, key_type=GROUP_KEY_TYPE, coordinator_keys=[group]
        )
        response: FindCoordinatorResponse = connection.send(request)
        found = response.coordinators[0] if response.coordinators else response
        check(found.error_code, f"coordinator of group {group}", found.error_message)
        return self.connect(Address(found.host, found.port))

    # ---- retries

    def forget(self) -> None:
        """Forget the topics: the next use requests metadata."""
        self._topics.clear()

    def retrying(self, action: Callable[[], T]) -> T:
        """Run `action` until it succeeds, fails with a non-retriable error, or the timeout is over.

        Between attempts the metadata is forgotten, and connections are closed unless a broker
        answered.
        """
        deadline = time.monotonic() + self.timeout_s
        for backoff_s in _backoffs():
            try:
                return action()
            except ClientError as error:
                if not error.retriable or time.monotonic() + backoff_s > deadline:
                    raise
                if not isinstance(error, BrokerError):
                    self.close()
            self.forget()
            time.sleep(backoff_s)
        raise AssertionError("unreachable: the backoffs never end")

    def send_any(self, message: object) -> Any:
        """Send a request that every broker can answer."""
        return self.any().send(message)


def _backoffs() -> Iterator[float]:
    backoff_s = BACKOFF_S
    while True:
        yield backoff_s
        backoff_s = min(2 * backoff_s, BACKOFF_S_MAX)
