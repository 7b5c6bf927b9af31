"""What rules ask about a request: its facts, read off the decoded message when first asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

from mockbroker.core.faults.layouts import Layout, arrays_at, request_layout, values_at
from mockbroker.core.faults.partial import ALL, Target, id_of, index_of, name_of
from mockbroker.core.ids import ZERO_UUID
from mockbroker_protocol import ApiKey
from mockbroker_protocol.records import BatchHeader
from mockbroker_protocol.records.batch import HEADER_SIZE

if TYPE_CHECKING:
    from mockbroker.core.broker import Broker
    from mockbroker.core.cluster import Cluster
    from mockbroker_protocol.headers import RequestHeader

_FETCH = int(ApiKey.FETCH)
_PRODUCE = int(ApiKey.PRODUCE)
_FIND_COORDINATOR = int(ApiKey.FIND_COORDINATOR)
_GROUP_KEY, _TRANSACTION_KEY = 0, 1

# What each fact is called in the requests that have it.
GROUPS = ("group_id", "group_ids", "groups_names")
MEMBERS = ("member_id",)
INSTANCES = ("group_instance_id", "instance_id")
TRANSACTIONS = ("transactional_id", "v3_and_below_transactional_id", "transactional_ids")
PRODUCERS = ("producer_id", "v3_and_below_producer_id")


class Peer(Protocol):
    """Who is at the other end of a connection."""

    id: int
    client_host: str
    client_port: int
    principal: str
    software_name: str
    software_version: str


class Surroundings(Protocol):
    """What is known of a request besides itself."""

    @property
    def broker(self) -> Broker: ...
    @property
    def listener(self) -> str: ...
    @property
    def header(self) -> RequestHeader: ...
    @property
    def connection(self) -> Any: ...
    @property
    def seq(self) -> int: ...


class Facts:
    """One request, as rules see it. `request` is the decoded message, None for a connection that is
    just being accepted; `api_key` is -1 then.
    """

    __slots__ = (
        "_batches",
        "_layout",
        "_targets",
        "api_key",
        "api_version",
        "broker",
        "client_id",
        "cluster",
        "connection",
        "listener",
        "request",
        "seq",
    )

    def __init__(self, cluster: Cluster, context: Surroundings, request: Any) -> None:
        header = context.header
        self.cluster = cluster
        self.broker = context.broker
        self.listener = context.listener
        self.connection: Peer = context.connection
        self.api_key = header.api_key
        self.api_version = header.api_version
        self.client_id = header.client_id or ""
        self.request = request
        self.seq = context.seq
        self._targets: list[Target] | None = None
        self._layout: Layout | None = None
        self._batches: list[BatchHeader] | None = None

    @classmethod
    def of_connection(cls, broker: Broker, listener: str, connection: Peer) -> Facts:
        """The facts of a connection that is being accepted."""
        facts: Facts = object.__new__(cls)
        facts.cluster, facts.broker, facts.listener = broker.cluster, broker, listener
        facts.connection, facts.api_key, facts.api_version = connection, -1, -1
        facts.client_id, facts.request, facts._targets, facts.seq = "", None, [], 0
        facts._layout, facts._batches = None, []
        return facts

    @property
    def layout(self) -> Layout:
        """Where things stand in this kind of request."""
        if self._layout is None:
            self._layout = request_layout(self.api_key)
        return self._layout

    # -- topics and partitions ---------------------------------------------------------------------

    @property
    def targets(self) -> list[Target]:
        """The partitions that the request is about; (topic, id, -1) for a topic as a whole."""
        if self._targets is None:
            self._targets = list(self._all_targets())
        return self._targets

    def _all_targets(self) -> Iterator[Target]:
        layout = self.layout
        if self.api_key == _FETCH:
            yield from self._session_targets()
        for array in layout.topics:
            listed = list(arrays_at(self.request, array.path))
            if not listed and len(array.path) == 1 and getattr(self.request, array.field) is None:
                for topic in self.broker.image.topics.values():  # null stands for all topics
                    yield Target(topic.name, topic.topic_id, ALL)
            for rows in listed:
                for row in rows:
                    name, topic_id = self._known(name_of(row, array), id_of(row, array))
                    partitions = getattr(row, array.partitions) if array.partitions else None
                    if not partitions:
                        yield Target(name, topic_id, ALL)
                    for item in partitions or ():
                        yield Target(name, topic_id, index_of(item, array))
        for field in layout.names:
            for bare in getattr(self.request, field) or ():
                name, topic_id = self._known(bare, ZERO_UUID)
                yield Target(name, topic_id, ALL)

    def _session_targets(self) -> Iterator[Target]:
        """What an incremental Fetch asks for without saying so again (KIP-227)."""
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
                name, topic_id = self._known(None, topic)
            else:
                name, topic_id = self._known(topic, ZERO_UUID)
            yield Target(name, topic_id, partition)

    def _known(self, name: str | None, topic_id: bytes) -> tuple[str, bytes]:
        """Name and id of a topic, of which a request may have but one."""
        if name:
            topic = self.broker.image.topics.get(name)
            return name, topic_id if topic is None else topic.topic_id
        topic = self.broker.image.topics_by_id.get(topic_id)
        return "" if topic is None else topic.name, topic_id

    # -- other facts -------------------------------------------------------------------------------

    def values(self, names: tuple[str, ...]) -> Iterator[Any]:
        """Every value of the fields with these names, wherever they stand in the request."""
        if self.request is None:
            return
        scalars = self.layout.scalars
        for name in names:
            for path in scalars.get(name, ()):
                for value in values_at(self.request, path):
                    if value is not None:
                        yield value

    @property
    def groups(self) -> list[str]:
        """The groups that the request is about."""
        found: list[str] = list(self.values(GROUPS))
        if self.api_key == int(ApiKey.DESCRIBE_GROUPS):
            found += self.request.groups
        if self.api_key == _FIND_COORDINATOR and self.request.key_type == _GROUP_KEY:
            found += self._coordinator_keys()
        return found

    @property
    def members(self) -> list[str]:
        return list(self.values(MEMBERS))

    @property
    def instances(self) -> list[str]:
        return list(self.values(INSTANCES))

    @property
    def transactional_ids(self) -> list[str]:
        """The transactional ids that the request is about."""
        found: list[str] = [each for each in self.values(TRANSACTIONS) if each]
        if self.api_key == _FIND_COORDINATOR and self.request.key_type == _TRANSACTION_KEY:
            found += self._coordinator_keys()
        return found

    def _coordinator_keys(self) -> list[str]:
        keys: list[str] = [*self.request.coordinator_keys]
        return [*keys, self.request.key] if self.request.key else keys

    @property
    def producer_ids(self) -> list[int]:
        """The producers that the request is about; those of a Produce stand in its batches."""
        if self.api_key == _PRODUCE:
            return [batch.producer_id for batch in self.batches]
        return list(self.values(PRODUCERS))

    @property
    def batches(self) -> list[BatchHeader]:
        """The headers of the first batches of a Produce."""
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
        return bool(self.transactional_ids) or any(b.is_transactional for b in self.batches)

    @property
    def software(self) -> str:
        """The client's library as ApiVersions names it: "librdkafka/2.6.0"."""
        return f"{self.connection.software_name}/{self.connection.software_version}"
