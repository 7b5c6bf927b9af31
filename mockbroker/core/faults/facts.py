"""The facts of a request that rules use, computed from the decoded message on first use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from mockbroker.core.faults.share_facts import acknowledgements
from mockbroker.core.ids import ZERO_UUID
from mockbroker_protocol import ApiKey
from mockbroker_protocol.declare import TRANSACTIONAL_ID, Entity
from mockbroker_protocol.entities import (
    ALL_PARTITIONS,
    Target,
    means_all_topics,
    targets,
    values,
)
from mockbroker_protocol.records import BatchHeader
from mockbroker_protocol.records.batch import HEADER_SIZE

if TYPE_CHECKING:
    from mockbroker_protocol.headers import RequestHeader

_FETCH = int(ApiKey.FETCH)
_SHARE_FETCH = int(ApiKey.SHARE_FETCH)
_PRODUCE = int(ApiKey.PRODUCE)
NO_BROKER = -1


class Peer(Protocol):
    """The other end of a connection."""

    id: int
    client_host: str
    client_port: int
    principal: str
    software_name: str
    software_version: str


class KnownTopic(Protocol):
    """A topic in a broker's metadata."""

    @property
    def name(self) -> str: ...
    @property
    def topic_id(self) -> bytes: ...


class KnownTopics(Protocol):
    """The topics in a broker's metadata. `epoch` grows with each change."""

    @property
    def epoch(self) -> int: ...
    @property
    def topics(self) -> Mapping[str, KnownTopic]: ...
    @property
    def topics_by_id(self) -> Mapping[bytes, KnownTopic]: ...


class FetchSessions(Protocol):
    """The fetch sessions of a broker (KIP-227)."""

    def keys_of(self, session_id: int) -> Iterable[tuple[str | bytes, int]]:
        """The partitions of a session, each by the topic's name or id and by its index; none for
        an unknown session.
        """
        ...


class KnownBroker(Protocol):
    """The receiving broker of a request: the part of it that rules use."""

    @property
    def node_id(self) -> int: ...
    @property
    def image(self) -> KnownTopics: ...
    @property
    def fetch_sessions(self) -> FetchSessions: ...

    def share_session_keys(self, group_id: str, member_id: str) -> Iterable[tuple[bytes, int]]:
        """The topic ids and indexes of the partitions of a share session (KIP-932); none without
        one.
        """
        ...


class ExchangeContext(Protocol):
    """The context of a request: connection, broker, metadata, sessions."""

    @property
    def broker(self) -> KnownBroker: ...
    @property
    def listener(self) -> str: ...
    @property
    def header(self) -> RequestHeader: ...
    @property
    def connection(self) -> Any: ...
    @property
    def seq(self) -> int: ...


class Facts:
    """One request, as rules see it.

    `request` is the decoded message. For an accepted connection it is None and `api_key` is -1.
    """

    __slots__ = (
        "_batches",
        "_targets",
        "api_key",
        "api_version",
        "broker",
        "client_id",
        "connection",
        "listener",
        "request",
        "seq",
    )

    def __init__(self, context: ExchangeContext, request: Any) -> None:
        header = context.header
        self.broker: KnownBroker = context.broker
        self.listener = context.listener
        self.connection: Peer = context.connection
        self.api_key = header.api_key
        self.api_version = header.api_version
        self.client_id = header.client_id or ""
        self.request = request
        self.seq = context.seq
        self._targets: list[Target] | None = None
        self._batches: list[BatchHeader] | None = None

    @classmethod
    def of_connection(cls, broker: KnownBroker, listener: str, connection: Peer) -> Facts:
        """The facts of an accepted connection."""
        facts: Facts = object.__new__(cls)
        facts.broker, facts.listener = broker, listener
        facts.connection, facts.api_key, facts.api_version = connection, -1, -1
        facts.client_id, facts.request, facts._targets, facts.seq = "", None, [], 0
        facts._batches = []
        return facts

    @property
    def from_broker(self) -> int:
        """The sender of a hop; -1 for a client's request."""
        return NO_BROKER

    @property
    def to_broker(self) -> int:
        """The receiver of a hop; -1 for a client's request."""
        return NO_BROKER

    # -- topics and partitions ---------------------------------------------------------------------

    @property
    def targets(self) -> list[Target]:
        """The partitions that the request names; (topic, id, -1) for a whole topic."""
        if self._targets is None:
            self._targets = list(self._all_targets())
        return self._targets

    def _all_targets(self) -> Iterator[Target]:
        if self.api_key == _FETCH:
            yield from self._session_targets()
        elif self.api_key == _SHARE_FETCH:
            yield from self._share_session_targets()
        image = self.broker.image
        if means_all_topics(self.request, self.api_version):
            for topic in image.topics.values():
                yield Target(topic.name, topic.topic_id, ALL_PARTITIONS)
        for target in targets(self.request, self.api_version, self._topic_name):
            known = image.topics.get(target.topic)
            yield target if known is None else target._replace(topic_id=known.topic_id)

    def _topic_name(self, topic_id: bytes) -> str | None:
        topic = self.broker.image.topics_by_id.get(topic_id)
        return None if topic is None else topic.name

    def _session_targets(self) -> Iterator[Target]:
        """The partitions of an incremental Fetch that are only in its session (KIP-227)."""
        if self.request.session_epoch <= 0:
            return
        said = {
            (topic.topic_id if topic.topic_id != ZERO_UUID else topic.topic, part.partition)
            for topic in self.request.topics
            for part in topic.partitions
        }
        for key in self.broker.fetch_sessions.keys_of(self.request.session_id):
            if key in said:
                continue
            topic, partition = key
            if isinstance(topic, bytes):
                yield self.target_of(topic, partition)
            else:
                known = self.broker.image.topics.get(topic)
                yield Target(topic, ZERO_UUID if known is None else known.topic_id, partition)

    def _share_session_targets(self) -> Iterator[Target]:
        """The partitions of a ShareFetch that are only in its share session (KIP-932)."""
        request = self.request
        if request.share_session_epoch <= 0:
            return
        said = {(t.topic_id, p.partition_index) for t in request.topics for p in t.partitions}
        for forgotten in request.forgotten_topics_data:
            said |= {(forgotten.topic_id, index) for index in forgotten.partitions}
        keys = self.broker.share_session_keys(request.group_id or "", request.member_id or "")
        for topic_id, partition in keys:
            if (topic_id, partition) not in said:
                yield self.target_of(topic_id, partition)

    def target_of(self, topic_id: bytes, partition: int) -> Target:
        """A partition that is named by the id of its topic."""
        return Target(self._topic_name(topic_id) or topic_id.hex(), topic_id, partition)

    @property
    def acknowledged(self) -> list[tuple[Target, frozenset[int]]]:
        """The partitions that the request acknowledges records of, with the acknowledge types."""
        return [
            (self.target_of(*partition), types)
            for partition, types in acknowledgements(self.api_key, self.request)
        ]

    # -- other facts -------------------------------------------------------------------------------

    def values(self, kind: Entity) -> list[Any]:
        """The values of one kind that the request names, each once; empty for a connection."""
        return [] if self.request is None else values(self.request, self.api_version, kind)

    def field(self, name: str) -> object:
        """A field at the top level of the request; None without it."""
        return getattr(self.request, name, None)

    @property
    def batches(self) -> list[BatchHeader]:
        """The header of the first batch of each partition of a Produce."""
        if self._batches is None:
            self._batches = []
            if self.api_key == _PRODUCE:
                self._batches = [
                    BatchHeader(part.records)
                    for topic in self.request.topic_data
                    for part in topic.partition_data
                    if part.records is not None and len(part.records) >= HEADER_SIZE
                ]
        return self._batches

    @property
    def transactional(self) -> bool:
        """Whether the request is part of a transaction."""
        return bool(self.values(TRANSACTIONAL_ID)) or any(b.is_transactional for b in self.batches)

    @property
    def software(self) -> str:
        """The name and version in ApiVersions: "librdkafka/2.6.0"."""
        return f"{self.connection.software_name}/{self.connection.software_version}"
