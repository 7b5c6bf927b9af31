"""A run that a test tells the converter entry by entry, without a cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mockbroker.core.events import AnyEvent
from mockbroker.core.ids import uuid_text
from mockbroker.core.journal.entries import EventEntry, FactEntry, RequestEntry, ResponseEntry
from mockbroker.core.journal.journal import Gap
from mockbroker.pipeline.convert.converter import Converter
from mockbroker.pipeline.spool.format import FORMAT, ClientIdentified, InitialTopic, RunStarted
from mockbroker_protocol import ApiKey
from mockbroker_protocol.codec import request_codec, response_codec
from mockbroker_protocol.headers import RequestHeader, encode_request_header
from mockbroker_protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ResponseTopicPartitions,
)
from mockbroker_protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from tests.pipeline.convert.support import Kept, Row

TOPIC_ID = bytes(15) + b"\1"
CLIENT = "c"
FETCH, HEARTBEAT = (ApiKey.FETCH, 12), (ApiKey.CONSUMER_GROUP_HEARTBEAT, 0)

# (group, member, candidates) of a Fetch.
Reader = tuple[str | None, str | None, list[str] | None]
NOBODY: Reader = (None, None, None)


class ToldRun:
    """Topic `t` with two partitions, both led by broker 1. All clients have one client id."""

    def __init__(self) -> None:
        self._kept = Kept()
        self.converter = Converter(self._kept)
        self._seq = 0
        self._apis: dict[int, tuple[int, ApiKey, int]] = {}
        topic = InitialTopic("t", uuid_text(TOPIC_ID), [(1, 0), (1, 0)])
        self.converter.convert(RunStarted(FORMAT, "r", "c", 0, 0, 0, [topic]))

    def _next(self) -> tuple[int, int, int]:
        self._seq += 1
        return self._seq, self._seq, self._seq

    def rows(self, table: str) -> list[Row]:
        self.converter.flush()
        return self._kept.of(table)

    # -- entries -----------------------------------------------------------------------------------

    def client(self, connection: int, host: str) -> None:
        self.converter.convert(ClientIdentified(connection, host, 1, "PLAINTEXT", "", "", ""))

    def request(
        self, connection: int, api: tuple[ApiKey, int], message: Any, node_id: int = 1
    ) -> int:
        """A request arrives; returns its number."""
        key, version = api
        header = encode_request_header(RequestHeader(key, version, 1, CLIENT))
        frame = b"".join((header, *request_codec(key, version).encode(message)))
        entry = RequestEntry(*self._next(), node_id, connection, frame)
        self._apis[entry.seq] = (connection, key, version)
        self.converter.convert(entry)
        return entry.seq

    def answer(
        self, request_seq: int, message: Any, node_id: int = 1, *, outcome: str = ""
    ) -> None:
        """The answer to a request; with an `outcome` it was not sent whole."""
        connection, key, version = self._apis[request_seq]
        body = response_codec(key, version).encode(message)
        seq, virtual_ms, real_ns = self._next()
        entry = ResponseEntry(
            seq,
            virtual_ms,
            real_ns,
            node_id,
            connection,
            request_seq,
            key,
            version,
            1,
            body,
            outcome,
            (),
        )
        self.converter.convert(entry)

    def event(self, event: AnyEvent) -> None:
        self.converter.convert(EventEntry(*self._next(), event))

    def gap(self) -> None:
        """An entry is missing."""
        seq, _, _ = self._next()
        self.converter.convert(Gap(seq, seq))

    def fact(self, kind: str, **facts: Any) -> None:
        self.converter.convert(FactEntry(*self._next(), kind, facts))

    def closed(self, connection: int) -> None:
        self.fact("connection", change="closed", connection=connection)

    # -- Fetches and heartbeats --------------------------------------------------------------------

    def fetch(
        self,
        connection: int,
        asked: dict[int, int],
        brought: Iterable[int] | None = None,
        *,
        session: int = 0,
        epoch: int = -1,
        node_id: int = 1,
    ) -> None:
        """A Fetch of partitions from offsets, and its answer about these or other partitions."""
        seq = self.fetch_begins(connection, asked, session=session, epoch=epoch, node_id=node_id)
        self.fetch_ends(seq, asked if brought is None else brought, session, node_id=node_id)

    def fetch_begins(
        self,
        connection: int,
        asked: dict[int, int],
        *,
        session: int = 0,
        epoch: int = -1,
        node_id: int = 1,
    ) -> int:
        partitions = [FetchPartition(index, fetch_offset=offset) for index, offset in asked.items()]
        message = FetchRequest(
            session_id=session if epoch > 0 else 0,
            session_epoch=epoch,
            topics=[FetchTopic("t", partitions=partitions)] if asked else [],
        )
        return self.request(connection, FETCH, message, node_id)

    def fetch_ends(
        self,
        seq: int,
        brought: Iterable[int],
        session: int = 0,
        *,
        node_id: int = 1,
        outcome: str = "",
        **told: int,
    ) -> None:
        """The answer; `told` are fields of each of its partitions."""
        data = [PartitionData(index, **{"high_watermark": 9, **told}) for index in brought]
        responses = [FetchableTopicResponse("t", partitions=data)]
        message = FetchResponse(session_id=session, responses=responses)
        self.answer(seq, message, node_id, outcome=outcome)

    def fetched(self) -> list[tuple[int, int]]:
        """Partition and offset of each Fetch."""
        return [(row["partition"], row["fetch_offset"]) for row in self.rows("fetches")]

    def readers(self) -> list[Reader]:
        """Who sent each Fetch."""
        return [(row["group"], row["member"], row["candidates"]) for row in self.rows("fetches")]

    def heartbeat(
        self,
        connection: int,
        member: str,
        partitions: Iterable[int] | None = None,
        *,
        group: str = "g",
        epoch: int = 1,
    ) -> None:
        """A member's heartbeat, with an answer that assigns partitions; None: with no assignment.

        A member with epoch -1 leaves.
        """
        request = ConsumerGroupHeartbeatRequest(group, member, epoch)
        seq = self.request(connection, HEARTBEAT, request)
        assignment = None
        if partitions is not None:
            assignment = Assignment([ResponseTopicPartitions(TOPIC_ID, list(partitions))])
        response = ConsumerGroupHeartbeatResponse(
            member_id=member, member_epoch=epoch, assignment=assignment
        )
        self.answer(seq, response)
