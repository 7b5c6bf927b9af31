"""The client as one object: `Client("host:port")`."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Self

from mockbroker.client.configs import Configs
from mockbroker.client.connection import DEFAULT_TIMEOUT_S, Connection
from mockbroker.client.consuming import (
    EARLIEST,
    LATEST,
    READ_UNCOMMITTED,
    ConsumedRecord,
    Consumer,
    ListedOffset,
    check_partitions,
    start_offsets,
)
from mockbroker.client.groups import Groups
from mockbroker.client.membership import Member, consume_as_member
from mockbroker.client.producing import ALL_REPLICAS, Produced, Producer
from mockbroker.client.router import Router
from mockbroker.client.topics import Topics
from mockbroker_protocol.messages.metadata import MetadataResponse
from mockbroker_protocol.records import CompressionType, Record


class Client:
    """A blocking client of one cluster; a context manager. Not for use from several threads.

    `bootstrap` is HOST:PORT,… (else ValueError). Connections are made at their first use. `topics`,
    `groups` and `configs` have the administration of these.
    """

    def __init__(
        self,
        bootstrap: str,
        client_id: str = "mockbroker-client",
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> None:
        self.router = Router(bootstrap, client_id, timeout_s=timeout_s)
        self._producer = Producer(self.router)
        self._consumer = Consumer(self.router)
        self.topics = Topics(self.router)
        self.groups = Groups(self.router, self._consumer)
        self.configs = Configs(self.router)
        self._bootstrap = bootstrap
        self._client_id = client_id

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections; may be called again."""
        self.router.close()

    def metadata(self, topics: list[str] | None = None) -> MetadataResponse:
        """Metadata of the named topics, or of all."""
        return self.router.metadata(topics)

    def leader(self, topic: str, partition: int) -> Connection:
        """The connection to a partition's leader."""
        return self.router.node(self.router.leader(topic, partition))

    def coordinator(self, group: str) -> Connection:
        """The connection to a group's coordinator."""
        return self.router.retrying(lambda: self.router.coordinator(group))

    def produce(
        self,
        topic: str,
        records: Iterable[Record | bytes | str],
        *,
        partition: int | None = None,
        acks: int = ALL_REPLICAS,
        codec: int = CompressionType.NONE,
    ) -> list[Produced]:
        """Send records (or bare values) and wait for the acknowledgements; see `Producer`."""
        return self._producer.produce(
            topic,
            (_as_record(record) for record in records),
            partition=partition,
            acks=acks,
            codec=codec,
        )

    def list_offsets(
        self,
        topic: str,
        timestamp: int = LATEST,
        partitions: Iterable[int] | None = None,
        *,
        isolation_level: int = READ_UNCOMMITTED,
    ) -> dict[int, ListedOffset]:
        """The offset at a timestamp (ms, EARLIEST, LATEST or MAX_TIMESTAMP) of each partition."""
        return self._consumer.list_offsets(
            topic, timestamp, partitions, isolation_level=isolation_level
        )

    def fetch(
        self,
        topic: str,
        partition: int,
        offset: int,
        *,
        max_wait_ms: int = 500,
        isolation_level: int = READ_UNCOMMITTED,
    ) -> list[Record]:
        """The records of one Fetch."""
        return self._consumer.fetch(
            topic, partition, offset, max_wait_ms=max_wait_ms, isolation_level=isolation_level
        )

    def consume(
        self,
        topic: str,
        *,
        partitions: list[int] | None = None,
        start: int | dict[int, int] = EARLIEST,
        follow: bool = False,
        idle_timeout_s: float | None = None,
        isolation_level: int = READ_UNCOMMITTED,
    ) -> Generator[ConsumedRecord, None, None]:
        """Records from `start` on (EARLIEST, LATEST, an offset, or {partition: offset}).

        Ends at the log end of the beginning; with `follow` it waits for more, at most
        `idle_timeout_s` at a time.
        """
        indexes = check_partitions(self.router, topic, partitions)
        until = None
        if not follow:
            ends = self.list_offsets(topic, LATEST, indexes, isolation_level=isolation_level)
            until = {index: end.offset for index, end in ends.items()}
        return self._consumer.consume(
            topic,
            start
            if isinstance(start, dict)
            else start_offsets(self._consumer, topic, indexes, start),
            until=until,
            idle_timeout_s=idle_timeout_s,
            isolation_level=isolation_level,
        )

    def consume_as_member(
        self,
        group: str,
        topic: str,
        *,
        start: int = LATEST,
        idle_timeout_s: float | None = None,
        isolation_level: int = READ_UNCOMMITTED,
    ) -> Generator[ConsumedRecord, None, None]:
        """Records of a topic as a member of a group, from its committed offsets on.

        Partitions without one begin at `start` (EARLIEST or LATEST). Offsets of records that were
        handed out are committed every few seconds, before a rebalance, and when the iterator is
        closed; then the member leaves. Ends after `idle_timeout_s` without a record.
        """
        # Requests to the coordinator do not wait behind a Fetch on the same connection.
        router = Router(self._bootstrap, self._client_id, timeout_s=self.router.timeout_s)
        member = Member(router, group, topic)
        return consume_as_member(
            member,
            self.router,
            self._consumer,
            start=start,
            idle_timeout_s=idle_timeout_s,
            isolation_level=isolation_level,
        )


def _as_record(record: Record | bytes | str) -> Record:
    if isinstance(record, Record):
        return record
    return Record(value=record.encode() if isinstance(record, str) else record)
