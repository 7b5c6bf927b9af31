"""`format("mockbroker")`: a live cluster's journal in Spark, without any jar.

    spark.dataSource.register(MockbrokerDataSource)
    spark.read.format("mockbroker").option("url", admin_url).load()
    spark.readStream.format("mockbroker").option("url", admin_url).option("table", "records").load()

Options: `url` of the admin API, `token` if it asks for one, `table` (the journal's "events", or any
table of a run), `startingSeq` (earliest, latest or a number: begin behind that entry) and, for
streams, `maxEntriesPerBatch`. Spark 4.2 and newer limit batches themselves (admission
control) and support Trigger.AvailableNow; with older ones the reader limits them.

Runs in Python workers, so mockbroker has to be installed there. Needs PySpark 4.0.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)

from mockbroker.core.journal.events import JournalEvent
from mockbroker.pipeline.tables import (
    KINDS,
    PLURALS,
    SPARK_TYPES,
    TABLES,
    single_or_all,
    spark_schema,
)

if TYPE_CHECKING:
    import pyarrow as pa

if TYPE_CHECKING:

    class SupportsTriggerAvailableNow:
        """A class of Spark 4.2; older versions lack it."""

    ReadMaxRows: Any
else:
    try:
        from pyspark.sql.streaming.datasource import ReadMaxRows, SupportsTriggerAvailableNow
    except ImportError:
        ReadMaxRows, SupportsTriggerAvailableNow = None, object

EVENTS = "events"
OPTIONS = ("url", "token", "table", "startingSeq", "maxEntriesPerBatch")
# Fields of events without a column, and the kinds of those that no table has.
_NOT_COLUMNS = ("targets", "message")
_KINDS = {
    "part": "int32",
    "cause_seq": "int64",
    "from_broker": "int32",
    "to_broker": "int32",
    "instance_id": "string",
    "bytes": "int64",
    "transactional": "bool",
}
DEFAULT_BATCH = 100_000
TIMEOUT_S = 30.0
_PAGE_EVENTS = 5_000


class SourceError(Exception):
    """The source cannot be read; the message has the reason and the remedy."""


def event_columns() -> dict[str, str]:
    """The columns of the table "events" and their types: the plain fields of an event.

    For an event with several groups or transactional ids, `groups` and `transactional_ids` have all
    of them, and the column for a single one is null.
    """
    names: list[str] = []
    for name in JournalEvent.__struct_fields__:
        if name not in _NOT_COLUMNS:
            names += [name, PLURALS[name]] if name in PLURALS else [name]
    return {name: SPARK_TYPES[_KINDS.get(name) or KINDS[name]] for name in names}


class SourceSettings(NamedTuple):
    """The options of one source, checked."""

    url: str
    token: str
    table: str
    starting: str
    batch_entries: int


def settings_of(options: Mapping[str, str]) -> SourceSettings:
    """The checked options. Raises SourceError that names an invalid one."""
    given = {name.lower(): value for name, value in options.items()}
    known = {name.lower(): name for name in OPTIONS}
    for name in given.keys() - known.keys() - {"path"}:
        raise SourceError(f"there is no option {name!r}; there are {', '.join(OPTIONS)}")
    url = given.get("url", "").rstrip("/")
    if not url.startswith("http://"):
        raise SourceError(
            'option "url" is the address of a cluster\'s admin API, http://HOST:PORT, which '
            "`mockbroker serve` prints and Cluster.admin_url is"
        )
    table = given.get("table", EVENTS)
    if table != EVENTS and table not in TABLES:
        tables = ", ".join((EVENTS, *TABLES))
        raise SourceError(f'option "table": {table!r} is not one of {tables}')
    starting = given.get("startingseq", "earliest")
    if starting not in ("earliest", "latest") and not starting.isdigit():
        raise SourceError(f'option "startingSeq": {starting!r} is not earliest, latest or a number')
    entries = given.get("maxentriesperbatch", str(DEFAULT_BATCH))
    if not entries.isdigit() or int(entries) < 1:
        raise SourceError(f'option "maxEntriesPerBatch": {entries!r} is not a number from 1')
    return SourceSettings(url, given.get("token", ""), table, starting, int(entries))


class MockbrokerDataSource(DataSource):
    """The data source; register it with `spark.dataSource.register`."""

    @classmethod
    def name(cls) -> str:
        return "mockbroker"

    def schema(self) -> str:
        table = settings_of(self.options).table
        if table == EVENTS:
            return ", ".join(f"`{name}` {kind}" for name, kind in event_columns().items())
        return spark_schema(table)

    def reader(self, schema: Any) -> DataSourceReader:  # noqa: ARG002
        return BatchReader(settings_of(self.options))

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: ARG002, N802
        settings = settings_of(self.options)
        return StreamReader(settings) if ReadMaxRows is None else AdmittedStreamReader(settings)


class SeqRange(InputPartition):  # type: ignore[misc, unused-ignore]
    """Entries behind `after`, up to `up_to`; None means to the end."""

    def __init__(self, after: int, up_to: int | None) -> None:
        super().__init__(after)
        self.after = after
        self.up_to = up_to


class BatchReader(DataSourceReader):  # type: ignore[misc, unused-ignore]
    """All entries in the journal at the time of reading."""

    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings

    def partitions(self) -> Sequence[InputPartition]:
        return [SeqRange(start_of(self._settings), None)]

    def read(self, partition: Any) -> Iterator[Any]:
        return rows_between(self._settings, partition.after, partition.up_to)


class StreamReader(DataSourceStreamReader):  # type: ignore[misc, unused-ignore]
    """The growing journal; for versions of Spark that do not pass the start of a batch."""

    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings
        self._planned: int | None = None  # the end of the planned batches

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        if self._planned is None:
            self._planned = start_of(self._settings)
        return {"seq": self._planned}

    def latestOffset(self, *_: Any) -> dict[str, int]:  # noqa: N802
        begin = self.initialOffset()["seq"]
        last = last_seq(self._settings)
        return {"seq": max(min(last, begin + self._settings.batch_entries), begin)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        # A restarted query passes its position here first, with an empty range.
        self._planned = end["seq"]
        return [] if start == end else [SeqRange(start["seq"], end["seq"])]

    def read(self, partition: Any) -> Iterator[Any]:
        return rows_between(self._settings, partition.after, partition.up_to)

    def commit(self, end: dict[str, int]) -> None:
        """No effect: the journal removes entries by itself."""


class AdmittedStreamReader(StreamReader, SupportsTriggerAvailableNow):
    """As `StreamReader`, for Spark 4.2, which passes the start of a batch and its limit."""

    _until: int | None = None  # the last entry of a query with availableNow

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        return ReadMaxRows(self._settings.batch_entries)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._until = last_seq(self._settings)

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # type: ignore[override] # noqa: N802
        last = last_seq(self._settings) if self._until is None else self._until
        most = getattr(limit, "max_rows", None)
        if most is not None:
            last = min(last, start["seq"] + most)
        return {"seq": max(last, start["seq"])}


# -- the admin API ---------------------------------------------------------------------------------


def start_of(settings: SourceSettings) -> int:
    """The entry behind which the query begins."""
    if settings.starting == "latest":
        return last_seq(settings)
    return 0 if settings.starting == "earliest" else int(settings.starting)


def last_seq(settings: SourceSettings) -> int:
    """The number of the newest entry."""
    page = json.loads(_get(settings, "/v1/journal", after=2**62, limit=1, messages="false"))
    last: int = page["last_seq"]
    return last


def rows_between(settings: SourceSettings, after: int, up_to: int | None) -> Iterator[Any]:
    """The rows between two entries: tuples of events, or batches of a table."""
    if settings.table == EVENTS:
        return _events_between(settings, after, up_to)
    return _table_between(settings, after, up_to)


def _events_between(
    settings: SourceSettings, after: int, up_to: int | None
) -> Iterator[tuple[object, ...]]:
    up_to = last_seq(settings) if up_to is None else up_to
    columns = event_columns()
    while after < up_to:
        page = json.loads(
            _get(settings, "/v1/journal", after=after, limit=_PAGE_EVENTS, messages="false")
        )
        for event in page["events"]:
            if event["seq"] > up_to:
                return
            yield _row(event, columns)
        if page["next"] <= after:
            return
        after = page["next"]


def _row(event: dict[str, Any], columns: Iterable[str]) -> tuple[object, ...]:
    fields = {"part": 0, **single_or_all(event)}
    return tuple(fields.get(name) for name in columns)


def _table_between(
    settings: SourceSettings, after: int, up_to: int | None
) -> Iterator[pa.RecordBatch]:
    from mockbroker.pipeline.convert.memory import table_between
    from mockbroker.pipeline.spool.format import decode, whole

    entries = whole(decode(_get(settings, "/v1/journal/entries")))
    return table_between(entries, settings.table, after, up_to)


def _get(settings: SourceSettings, path: str, **query: object) -> bytes:
    url = settings.url + path + ("?" + urlencode(query) if query else "")
    headers = {"authorization": f"Bearer {settings.token}"} if settings.token else {}
    try:
        with urlopen(Request(url, headers=headers), timeout=TIMEOUT_S) as answer:  # noqa: S310
            data: bytes = answer.read()
    except HTTPError as error:
        raise SourceError(f"{url} answers {error.code}: {_detail(error.read())}") from None
    except (URLError, OSError) as error:
        raise SourceError(
            f"no admin API answers at {settings.url} ({error}): start the cluster with its admin "
            "API, and give the address that its ready line names"
        ) from None
    return data


def _detail(text: bytes) -> str:
    try:
        return str(json.loads(text)["detail"])
    except (ValueError, KeyError, TypeError):
        return text.decode("utf-8", "replace").strip()
