"""Topics and partitions."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

from mockbroker.admin.v1.records import AppendedRecord
from mockbroker.api.aio.actions import AsyncPartitionActions, AsyncTopicActions
from mockbroker.api.aio.handle import AsyncHandle
from mockbroker.api.expected import Expectations, Expected, RecordDict
from mockbroker.api.payloads import Payload, as_bytes
from mockbroker.api.transport import AsyncTransport
from mockbroker.core.configs.texts import GivenConfig, config_text, config_texts
from mockbroker.core.type_checks import check_type
from mockbroker.core.views.browse import BatchPage
from mockbroker.core.views.configs import ConfigView
from mockbroker.core.views.stored import StoredRecord
from mockbroker.core.views.topics import PartitionView, RecordView, TopicView

# In real time.
EXPECT_TIMEOUT_S = 30.0
# Bytes of records in one request, before base64.
REQUEST_BYTES_MAX = 8 << 20
_RECORD_OVERHEAD_BYTES = 100
# The number of records of a log in one answer.
LOG_RECORDS_MAX = 1_000

TOPICS = "/v1/topics"
TOPIC = "/v1/topics/{topic}"


class AsyncRecords(AsyncHandle):
    """Records of a topic, or of one partition of it."""

    def __init__(self, transport: AsyncTransport, topic: str, partition: int | None) -> None:
        super().__init__(transport)
        self._topic = topic
        self._partition = partition

    async def read(self) -> list[StoredRecord]:
        """All records, by partition and offset."""
        found: list[StoredRecord] = []
        start: tuple[int, int] | None = (0 if self._partition is None else self._partition, 0)
        while start is not None:
            page = await self._ask(
                "GET",
                f"{TOPIC}/records",
                at={"topic": self._topic},
                query={
                    "partition": self._partition,
                    "from_partition": start[0],
                    "from_offset": start[1],
                },
            )
            found += page.records
            start = page.next
        return found

    async def append_one(self, record: RecordDict) -> AppendedRecord:
        """Append a record whose fields are the arguments of a function."""
        check_type(record, RecordDict, "")
        body, _ = self._body(record)
        return (await self._send([body]))[0]

    async def append(self, records: Iterable[RecordDict | Payload]) -> list[AppendedRecord]:
        """Append records, in as many requests as their size requires."""
        if isinstance(records, str | bytes | Mapping) or not isinstance(records, Iterable):
            raise TypeError(f"records: expected a list of records, not {type(records).__name__}")
        done: list[AppendedRecord] = []
        pending: list[dict[str, object]] = []
        size = 0
        for index, given in enumerate(records):
            record: RecordDict = given if isinstance(given, dict) else {"value": given}
            check_type(record, RecordDict, f"records[{index}]")
            body, bytes_ = self._body(record)
            pending.append(body)
            size += bytes_
            if size > REQUEST_BYTES_MAX:
                done += await self._send(pending)
                pending, size = [], 0
        return done + (await self._send(pending) if pending else [])

    async def _send(self, records: list[dict[str, object]]) -> list[AppendedRecord]:
        done: list[AppendedRecord] = await self._ask(
            "POST", f"{TOPIC}/records", at={"topic": self._topic}, body={"records": records}
        )
        return done

    def _body(self, record: RecordDict) -> tuple[dict[str, object], int]:
        size = _RECORD_OVERHEAD_BYTES
        body: dict[str, object] = {}
        for name, payload in (("key", record.get("key")), ("value", record.get("value"))):
            data = as_bytes(payload, name)
            if data is not None:
                body[f"{name}_base64"] = base64.b64encode(data).decode()
                size += len(data)
        headers = record.get("headers") or {}
        pairs = headers.items() if isinstance(headers, Mapping) else headers
        encoded = []
        for name, payload in pairs:
            data = as_bytes(payload, f"headers[{name!r}]")
            size += len(data or b"") + len(name)
            encoded.append([name, None if data is None else base64.b64encode(data).decode()])
        if encoded:
            body["headers_base64"] = encoded
        partition = record.get("partition")
        if partition is None:
            partition = self._partition
        if partition is not None:
            body["partition"] = partition
        timestamp_ms = record.get("timestamp_ms")
        if timestamp_ms is not None:
            body["timestamp_ms"] = timestamp_ms
        return body, size


class AsyncTopic(AsyncTopicActions):
    """A topic, which need not exist yet. Made by `kafka.topic(NAME)`."""

    def __init__(self, transport: AsyncTransport, name: str) -> None:
        check_type(name, str, "name")
        super().__init__(transport)
        self.name = name

    def __repr__(self) -> str:
        return f"<topic {self.name}>"

    # -- the topic ---------------------------------------------------------------------------------

    async def create(
        self,
        partitions: int | None = None,
        replication_factor: int | None = None,
        *,
        assignments: Mapping[int, Sequence[int]] | None = None,
        configs: Mapping[str, GivenConfig] | None = None,
    ) -> Self:
        """Create it without a client; returns itself.

        Without numbers the brokers' defaults apply. `assignments` ({partition: [replica, …]}) place
        the replicas; the first one is the preferred leader. Raises ApiError as CreateTopics.
        """
        body: dict[str, object] = {"name": self.name}
        if partitions is not None:
            body["partitions"] = partitions
        if replication_factor is not None:
            body["replication_factor"] = replication_factor
        if assignments is not None:
            check_type(assignments, Mapping[int, Sequence[int]], "assignments")
            body["assignments"] = {str(index): list(each) for index, each in assignments.items()}
        if configs:
            check_type(configs, Mapping[str, GivenConfig], "configs")
            body["configs"] = config_texts(configs)
        await self._ask("POST", TOPICS, body=body)
        return self

    async def alter(
        self,
        *,
        partitions: int | None = None,
        configs: Mapping[str, GivenConfig | None] | None = None,
    ) -> None:
        """Add partitions, up to `partitions` in all; set `configs`, or remove them with None.

        Raises ApiError as CreatePartitions and IncrementalAlterConfigs.
        """
        body: dict[str, object] = {}
        if partitions is not None:
            body["partitions"] = partitions
        if configs:
            check_type(configs, Mapping[str, GivenConfig | None], "configs")
            body["configs"] = {
                name: None if value is None else config_text(value)
                for name, value in configs.items()
            }
        await self._ask("PATCH", TOPIC, at=self._at, body=body)

    async def delete(self) -> None:
        """Delete it with its records. Raises ApiError if there is no such topic."""
        await self._ask("DELETE", TOPIC, at=self._at)

    async def view(self) -> TopicView:
        """The present state of the topic. Raises ApiError if there is no such topic."""
        found: TopicView = await self._ask("GET", TOPIC, at=self._at)
        return found

    @property
    async def configs(self) -> dict[str, str]:
        """The topic's own configs."""
        return (await self.view()).configs

    async def all_configs(self) -> list[ConfigView]:
        """All its configs with their sources, by name. Raises ApiError as `view`."""
        found: list[ConfigView] = await self._ask("GET", f"{TOPIC}/configs", at=self._at)
        return found

    @property
    async def partitions(self) -> list[PartitionView]:
        """The present state of its partitions: leader, ISR, offsets, replicas, producers."""
        found: list[PartitionView] = await self._ask("GET", f"{TOPIC}/partitions", at=self._at)
        return found

    def partition(self, index: int) -> AsyncPartition:
        """One of its partitions."""
        return AsyncPartition(self._transport, self.name, index)

    # -- records -----------------------------------------------------------------------------------

    async def produce(
        self,
        value: Payload = None,
        *,
        key: Payload = None,
        headers: Mapping[str, Payload] | Sequence[tuple[str, Payload]] = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> AppendedRecord:
        """Append one record, as a producer with acks=all; returns its partition and offset.

        Text is stored as UTF-8. Without a `partition` the key decides as in Java's producer.
        `timestamp_ms` is since the epoch; its default is the time of the cluster's clock. Raises
        ApiError.
        """
        record: RecordDict = {"value": value, "key": key, "headers": headers}
        if partition is not None:
            record["partition"] = partition
        if timestamp_ms is not None:
            record["timestamp_ms"] = timestamp_ms
        return await AsyncRecords(self._transport, self.name, None).append_one(record)

    async def produce_all(self, records: Iterable[RecordDict | Payload]) -> list[AppendedRecord]:
        """Append records: dicts with the arguments of `produce`, or mere values.

        Returns their partitions and offsets. Raises ApiError; records before the refused ones are
        then stored.
        """
        return await AsyncRecords(self._transport, self.name, None).append(records)

    async def records(self, partition: int | None = None) -> list[StoredRecord]:
        """Every stored record, by partition and offset; control records are left out.

        Raises ApiError if there is no such topic or partition.
        """
        return await AsyncRecords(self._transport, self.name, partition).read()

    async def expect_records(
        self,
        expected: Expected,
        *,
        in_order: bool = False,
        allow_others: bool = False,
        timeout_s: float = EXPECT_TIMEOUT_S,
    ) -> list[StoredRecord]:
        """Wait for so many records, or for those in a list, and no others; return them.

        Items of the list are values or dicts of `value`, `value_json`, `key`, `key_json`,
        `headers`, `partition` and `timestamp_ms`; what a dict leaves out is not compared. The
        records are returned in the order of the list. With `in_order` their offsets must rise with
        it in each partition. `allow_others` passes further records. Raises AssertionError, with a
        table of what is missing beside the nearest records, after `timeout_s` of real time, or once
        too many records are there. Raises TypeError for a wrong item, ApiError without a topic.
        """
        __tracebackhide__ = True
        wanted = Expectations(self.name, expected, ordered=in_order, allow_others=allow_others)
        begin = time.monotonic()
        awaited = wanted.count
        while True:
            left_s = max(0.0, timeout_s - (time.monotonic() - begin))
            held = await self._ask(
                "POST",
                f"{TOPIC}/records/wait",
                at=self._at,
                body={"count": awaited, "timeout_ms": round(left_s * 1000)},
                wait_s=left_s,
            )
            if held.count == 0 and wanted.count == 0:
                return []
            found = await self.records()
            met = wanted.met_by(found)
            if met is not None:
                return met
            late = held.count < awaited
            if late or not wanted.can_be_met_after(found):
                waited_s = timeout_s if late else time.monotonic() - begin
                raise AssertionError(wanted.failure(found, waited_s))
            awaited = len(found) + 1

    @property
    def _at(self) -> dict[str, object]:
        return {"topic": self.name}


class AsyncPartition(AsyncPartitionActions):
    """A partition. Made by `kafka.partition(TOPIC, INDEX)`."""

    def __init__(self, transport: AsyncTransport, topic: str, index: int) -> None:
        check_type(topic, str, "topic")
        check_type(index, int, "index")
        super().__init__(transport)
        self.topic = topic
        self.index = index

    def __repr__(self) -> str:
        return f"<partition {self.topic}-{self.index}>"

    async def view(self) -> PartitionView:
        """The present state of the partition. Raises ApiError if there is no such partition."""
        found: PartitionView = await self._ask(
            "GET",
            f"{TOPIC}/partitions/{{partition}}",
            at={"topic": self.topic, "partition": self.index},
        )
        return found

    @property
    async def leader(self) -> int:
        """The node id of its leader, -1 without one."""
        return (await self.view()).leader_id

    @property
    async def isr(self) -> list[int]:
        """The node ids of its in-sync replicas."""
        return (await self.view()).isr

    @property
    async def high_watermark(self) -> int:
        """Its high watermark."""
        return (await self.view()).high_watermark

    async def log(
        self, offset: int = 0, *, limit: int = LOG_RECORDS_MAX, broker: int | None = None
    ) -> list[RecordView]:
        """Records of a log, with data of their batches: codec, producer, leader epoch. Control
        records are included. It is the leader's log, or that of a `broker`. Raises ApiError if
        there is no such partition or replica.
        """
        found: list[RecordView] = await self._ask(
            "GET",
            f"{TOPIC}/partitions/{{partition}}/records",
            at={"topic": self.topic, "partition": self.index},
            query={"offset": offset, "limit": limit, "broker": broker},
        )
        return found

    async def batches(
        self,
        offset: int = 0,
        *,
        text: str = "",
        limit: int = LOG_RECORDS_MAX,
        broker: int | None = None,
    ) -> BatchPage:
        """Record batches of a log with their records, raw bytes and control records included, until
        they have `limit` records. With `text`, those that have it in a key, a value or a header.
        The log goes on at the page's `next`. Raises ApiError as `log`.
        """
        found: BatchPage = await self._ask(
            "GET",
            f"{TOPIC}/partitions/{{partition}}/batches",
            at={"topic": self.topic, "partition": self.index},
            query={"offset": offset, "text": text, "limit": limit, "broker": broker},
        )
        return found

    async def records(self) -> list[StoredRecord]:
        """Every stored record, by offset; control records are left out."""
        return await AsyncRecords(self._transport, self.topic, self.index).read()

    async def produce(
        self,
        value: Payload = None,
        *,
        key: Payload = None,
        headers: Mapping[str, Payload] | Sequence[tuple[str, Payload]] = (),
        timestamp_ms: int | None = None,
    ) -> AppendedRecord:
        """Append one record, as `Topic.produce` does."""
        record: RecordDict = {"value": value, "key": key, "headers": headers}
        if timestamp_ms is not None:
            record["timestamp_ms"] = timestamp_ms
        return await AsyncRecords(self._transport, self.topic, self.index).append_one(record)
