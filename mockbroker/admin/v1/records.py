"""Records: append, read and wait for them."""

from __future__ import annotations

import base64
import binascii
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any, NamedTuple, cast

import msgspec

from mockbroker.admin.v1.backend import AdminBackend
from mockbroker.admin.v1.declaring import ApiEndpoints
from mockbroker.admin.v1.endpoint import EndpointCall, Line, LineError
from mockbroker.admin.v1.problems import Problem, ProblemError, problem_of
from mockbroker.admin.v1.waiting import until
from mockbroker.core.cluster import Cluster
from mockbroker.core.faults.schemas import InputSchemas
from mockbroker.core.limits import ADMIN_RECORDS_BYTES_MAX
from mockbroker.core.validation import Count, Count64, Length, Ms, Range, ValidationError, convert
from mockbroker.core.views.stored import StoredPage, TopicWatch, record_count, stored_page
from mockbroker.server.appending import TIMEOUT_MS, Appender, AppendError
from mockbroker_protocol.records import Record

RECORDS_MAX = 1_000_000
PAGE_RECORDS_MAX = 100_000
# The number of lines that are appended together.
LINES = 1_000
LINES_BYTES = 4 << 20
# The limit of an append in real time; on the cluster's clock, a Produce has a timeout of its own.
APPEND_TIMEOUT_S = TIMEOUT_MS / 1000

Value = Annotated[str, Length(0, 2**31 - 1)]  # the limit of the body is lower
Placed = tuple[int | None, Record]

endpoints = ApiEndpoints()

RECORDS = "/v1/topics/{topic}/records"


class NewRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record. Key, value and header values are texts; `key_base64`, `value_base64` and
    `headers_base64` are for bytes, `key_json` and `value_json` for any JSON value, which is stored
    as JSON without spaces. Missing ones are null.

    Without a `partition`, the key decides as in Java's producer; without a key, partitions take
    turns. `timestamp_ms` is since the epoch; its default is the time of the cluster's clock.
    """

    key: Value | None = None
    key_base64: Value | None = None
    key_json: object = msgspec.UNSET
    value: Value | None = None
    value_base64: Value | None = None
    value_json: object = msgspec.UNSET
    headers: dict[str, str | None] = {}
    headers_base64: list[list[str | None]] = []
    partition: Count | None = None
    timestamp_ms: Count64 | None = None

    def __post_init__(self) -> None:
        for name in ("key", "value"):
            ways = (name, f"{name}_base64", f"{name}_json")
            given = [each for each in ways if getattr(self, each) not in (None, msgspec.UNSET)]
            if len(given) > 1:
                raise ValueError(f"{' and '.join(given)} exclude each other")


class AppendRecords(msgspec.Struct, frozen=True):
    """Records to append; the answer is sent when they are replicated, as with acks=all."""

    records: Annotated[list[NewRecord], Length(0, RECORDS_MAX)]


class AppendedRecord(msgspec.Struct, frozen=True):
    """The place of an appended record."""

    partition: int
    offset: int


class AppendedLines(msgspec.Struct, frozen=True):
    """The number of records that were appended from lines, and of these in each partition."""

    records: int
    partitions: dict[int, int]


class StoredQuery(msgspec.Struct):
    """All partitions or one; from the page that starts at `from_partition` and `from_offset`."""

    partition: Count | None = None
    from_partition: Count = 0
    from_offset: Count64 = 0
    limit: Annotated[int, Range(1, PAGE_RECORDS_MAX)] = 10_000


class RecordsWait(msgspec.Struct, frozen=True):
    """Wait until the topic, which need not exist yet, has `count` records; the timeout is real
    time.
    """

    count: Count
    timeout_ms: Ms = 30_000


class RecordsView(msgspec.Struct, frozen=True):
    """The number of records in a topic, also if it is smaller than the awaited one."""

    count: int


def _schema(taken: InputSchemas) -> dict[str, Any]:
    """An object with records, a list of records, or one record."""
    several = Annotated[list[NewRecord], Length(0, RECORDS_MAX)]
    return {"anyOf": [taken.struct(AppendRecords), taken.of(several), taken.struct(NewRecord)]}


@endpoints.post(
    RECORDS,
    "Append records: several, one, or those of a file of lines",
    body=object,
    body_schema=_schema,
    body_limit=ADMIN_RECORDS_BYTES_MAX,
    lines=NewRecord,
    created=True,
    problems=(404, 408, 409),
)
async def append(backend: AdminBackend, call: EndpointCall) -> list[AppendedRecord] | AppendedLines:
    records = _given(call.body) if call.lines is None else []
    appender = await backend.cluster(lambda cluster: Appender(cluster, call.path["topic"]))
    if call.lines is not None:
        return await _append_lines(backend, appender, call.lines)
    return [AppendedRecord(*each) for each in await _append(backend, appender, records)]


@endpoints.view(
    RECORDS,
    "Its records of all partitions, with bytes as base64",
    query=StoredQuery,
    problems=(404,),
)
def read(
    cluster: Cluster,
    topic: str,
    partition: int | None,
    from_partition: int,
    from_offset: int,
    limit: int,
) -> StoredPage:
    return stored_page(cluster, topic, partition, (from_partition, from_offset), limit)


@endpoints.post(f"{RECORDS}/wait", "Wait until it holds so many records", body=RecordsWait)
async def wait(backend: AdminBackend, call: EndpointCall) -> RecordsView:
    wanted: RecordsWait = call.body
    topic: str = call.path["topic"]

    def enough(cluster: Cluster) -> int | None:
        count = record_count(cluster, topic)
        return count if count >= wanted.count else None

    count = await until(
        backend,
        lambda cluster, changed: TopicWatch(cluster, topic, wanted.count, changed).stop,
        enough,
        wanted.timeout_ms / 1000,
    )
    if count is None:
        count = await backend.cluster(lambda cluster: record_count(cluster, topic))
    return RecordsView(count)


def _given(body: object) -> list[Placed]:
    """The records of a body of any of these forms. Raises ValidationError."""
    if isinstance(body, list):
        given, at = convert({"records": body}, AppendRecords, "").records, "records"
    elif isinstance(body, dict) and "records" not in body:
        one = convert(body, NewRecord, "")
        return [(one.partition, _record(one, ""))]
    else:
        given, at = convert(body, AppendRecords, "").records, "records"
    return [(each.partition, _record(each, f"{at}[{n}]")) for n, each in enumerate(given)]


async def _append_lines(
    backend: AdminBackend, appender: Appender, lines: AsyncIterator[Line]
) -> AppendedLines:
    counts: Counter[int] = Counter()
    async for part in _in_parts(lines):
        try:
            places = await _append(backend, appender, part.records)
        except ProblemError as refused:
            raise _of_lines(refused.problem, part.first, part.last, counts) from None
        counts.update(partition for partition, _ in places)
        if part.error is not None:
            number = part.error.number
            raise _of_lines(part.error.problem, number, number, counts)
    return AppendedLines(counts.total(), dict(sorted(counts.items())))


async def _append(
    backend: AdminBackend, appender: Appender, records: Sequence[Placed]
) -> list[tuple[int, int]]:
    """Append, and wait until the records are replicated. Raises ProblemError."""
    try:
        with backend.limit(APPEND_TIMEOUT_S):
            return await backend.run(lambda: appender.append(records), 2 * APPEND_TIMEOUT_S)
    except AppendError as error:
        problem = problem_of(error.error)
        assert problem is not None
        raise ProblemError.of(msgspec.structs.replace(problem, appended=error.appended)) from None
    raise ProblemError(408, "timeout", f"the records were not replicated in {APPEND_TIMEOUT_S:g} s")


class _Part(NamedTuple):
    """The records of some lines, and the error of the line behind them, which ends the append."""

    first: int
    last: int
    records: list[Placed]
    error: LineError | None = None


async def _in_parts(lines: AsyncIterator[Line]) -> AsyncIterator[_Part]:
    first = last = size = 0
    records: list[Placed] = []
    error = None
    try:
        async for line in lines:
            try:
                record = _record(line.item, "")
            except ValidationError as wrong:
                raise LineError(line.number, cast("Problem", problem_of(wrong))) from None
            first, last, size = first or line.number, line.number, size + line.size
            records.append((line.item.partition, record))
            if len(records) == LINES or size > LINES_BYTES:
                yield _Part(first, last, records)
                first, size, records = 0, 0, []
    except LineError as found:
        error = found
    yield _Part(first, last, records, error)


def _of_lines(problem: Problem, first: int, last: int, counts: Counter[int]) -> ProblemError:
    """A problem with its lines and the number of records that are stored."""
    where = f"line {first}" if first == last else f"lines {first} to {last}"
    return ProblemError.of(
        msgspec.structs.replace(
            problem,
            detail=f"{where}: {problem.detail}",
            line=first,
            appended=counts.total() + problem.appended,
        )
    )


def _record(given: NewRecord, path: str) -> Record:
    timestamp = -1 if given.timestamp_ms is None else given.timestamp_ms
    headers = [
        (name, None if value is None else value.encode()) for name, value in given.headers.items()
    ]
    for number, pair in enumerate(given.headers_base64):
        at = _at(path, f"headers_base64[{number}]")
        if len(pair) != 2 or pair[0] is None:
            raise ValidationError(at, "a header is a list of its name and its value")
        value = None if pair[1] is None else _decoded(pair[1], at)
        headers.append((pair[0], value))
    return Record(
        0,
        timestamp,
        _payload(given.key, given.key_base64, given.key_json, _at(path, "key_base64")),
        _payload(given.value, given.value_base64, given.value_json, _at(path, "value_base64")),
        tuple(headers),
    )


def _payload(text: str | None, encoded: str | None, json: object, path: str) -> bytes | None:
    if json is not msgspec.UNSET:
        return msgspec.json.encode(json)
    if encoded is not None:
        return _decoded(encoded, path)
    return None if text is None else text.encode()


def _decoded(encoded: str, path: str) -> bytes:
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValidationError(path, f"it is no base64: {error}") from None


def _at(path: str, field: str) -> str:
    return f"{path}.{field}" if path else field
