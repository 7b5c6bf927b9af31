"""The data source, called as by Spark, on a live cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from mockbroker import Cluster
from mockbroker.client import Client
from mockbroker.core.journal.events import JournalEvent
from mockbroker.pipeline import source
from mockbroker.pipeline.source import (
    AdmittedStreamReader,
    BatchReader,
    MockbrokerDataSource,
    SourceError,
    StreamReader,
    event_columns,
    settings_of,
)
from mockbroker.pipeline.tables import TABLES
from mockbroker_protocol.messages.describe_groups import DescribeGroupsRequest
from tests.support.librdkafka import TIMEOUT_S, settings

COLUMNS = event_columns()
SEQ, KIND = (list(COLUMNS).index(name) for name in ("seq", "kind"))


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    with Cluster(brokers=1, topics={"t": 1}) as cluster:
        send(cluster, *map(str, range(20)))
        yield cluster


def send(kafka: Cluster, *values: str) -> None:
    producer = Producer(settings(kafka.bootstrap_servers, linger_ms=0))
    for value in values:
        producer.produce("t", value, partition=0)
        assert producer.flush(TIMEOUT_S) == 0


def options(kafka: Cluster, **more: str) -> dict[str, str]:
    return {"url": kafka.admin_url, **more}


def read(reader: BatchReader | StreamReader, partition: object) -> list[object]:
    found: list[object] = []
    for each in reader.read(partition):
        if isinstance(each, pa.RecordBatch):
            found += each.to_pylist()
        else:
            found.append(each)
    return found


def test_a_batch_read_of_events_brings_what_the_journal_holds(kafka: Cluster) -> None:
    reader = MockbrokerDataSource(options(kafka)).reader(None)
    (partition,) = reader.partitions()
    rows = read(reader, partition)
    events = kafka.journal.events()
    assert [(row[SEQ], row[KIND]) for row in rows] == [(each.seq, each.kind) for each in events]
    assert MockbrokerDataSource(options(kafka)).schema().count(",") == len(COLUMNS) - 1


@pytest.mark.parametrize("table", ["records", "batches", "requests", "cluster", "removals"])
def test_a_batch_read_of_a_table_brings_its_rows(kafka: Cluster, table: str, tmp_path) -> None:
    asked = MockbrokerDataSource(options(kafka, table=table))
    (partition,) = asked.reader(None).partitions()
    rows = read(asked.reader(None), partition)
    run = kafka.journal.export(tmp_path)
    assert len(rows) == run.rows.get(table, 0)
    for row in rows:
        assert list(row) == [*(column.name for column in TABLES[table]), "run"]
        assert row["run"] == run.cluster_id
    assert asked.schema().endswith("`run` string")


@pytest.mark.parametrize("table", ["events", "requests", "records"])
def test_a_stream_brings_everything_once_in_batches_of_the_size_that_was_asked_for(
    kafka: Cluster, table: str
) -> None:
    reader = StreamReader(settings_of(options(kafka, table=table, maxEntriesPerBatch="7")))
    start = reader.initialOffset()
    streamed: list[object] = []
    last = kafka.journal.last_seq
    while start["seq"] < last:
        end = reader.latestOffset()
        assert 0 < end["seq"] - start["seq"] <= 7
        (partition,) = reader.partitions(start, end)
        once = read(reader, partition)
        assert read(reader, partition) == once  # as after a crash
        streamed += once
        reader.commit(end)
        start = end
    assert reader.latestOffset() == start
    assert reader.partitions(start, start) == []
    again = StreamReader(settings_of(options(kafka, maxEntriesPerBatch="7")))
    again.partitions({"seq": 5}, {"seq": 5})  # as when a query is restarted
    assert again.latestOffset() == {"seq": 12}
    asked = MockbrokerDataSource(options(kafka, table=table)).reader(None)
    whole = read(asked, asked.partitions()[0])
    assert len(streamed) == len(whole)
    key = str if table == "events" else lambda row: sorted(row.items(), key=str)
    assert sorted(streamed, key=str) == sorted(whole, key=str)
    assert key(streamed[0])


def test_where_spark_says_how_much_a_batch_may_hold_it_is_asked(
    kafka: Cluster, monkeypatch
) -> None:
    class Limit:
        def __init__(self, max_rows: int) -> None:
            self.max_rows = max_rows

    monkeypatch.setattr(source, "ReadMaxRows", Limit)
    reader = MockbrokerDataSource(options(kafka, maxEntriesPerBatch="9")).streamReader(None)
    assert isinstance(reader, AdmittedStreamReader)
    limit = reader.getDefaultReadLimit()
    assert limit.max_rows == 9
    assert reader.latestOffset({"seq": 4}, limit) == {"seq": 13}
    last = kafka.journal.last_seq
    assert reader.latestOffset({"seq": 4}, object()) == {"seq": last}  # all that is available
    assert reader.latestOffset({"seq": last}, limit) == {"seq": last}
    reader.prepareForTriggerAvailableNow()
    send(kafka, "later")
    assert reader.latestOffset({"seq": last}, limit) == {"seq": last}


def test_a_stream_may_begin_with_what_comes(kafka: Cluster) -> None:
    reader = StreamReader(settings_of(options(kafka, table="records", startingSeq="latest")))
    start = reader.initialOffset()
    assert start == {"seq": kafka.journal.last_seq}
    send(kafka, "new")
    (partition,) = reader.partitions(start, reader.latestOffset())
    (row,) = read(reader, partition)
    assert row["offset"] == len(kafka.records("t")) - 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({}, 'option "url" is the address'),
        ({"url": "ftp://x"}, 'option "url" is the address'),
        ({"url": "http://x", "table": "nonsense"}, "'nonsense' is not one of events, requests"),
        ({"url": "http://x", "maxEntriesPerBatch": "0"}, "is not a number from 1"),
        ({"url": "http://x", "startingSeq": "soon"}, "is not earliest, latest or a number"),
        ({"url": "http://x", "maxEntries": "1"}, "no option 'maxentries'"),
    ],
)
def test_wrong_options_are_named(wrong: dict[str, str], message: str) -> None:
    with pytest.raises(SourceError, match=message):
        MockbrokerDataSource(wrong).schema()


def test_a_cluster_that_is_not_there_is_told(kafka: Cluster) -> None:
    with Cluster(brokers=1) as gone:
        url = gone.admin_url
    reader = MockbrokerDataSource({"url": url}).reader(None)
    with pytest.raises(SourceError, match="no admin API answers at"):
        read(reader, reader.partitions()[0])
    with Cluster(brokers=1, journal_bytes=0) as silent:
        reader = MockbrokerDataSource({"url": silent.admin_url}).reader(None)
        with pytest.raises(SourceError, match=r"answers 409: .*journal_bytes is 0"):
            read(reader, reader.partitions()[0])


def test_an_event_that_names_several_groups_has_them_in_a_column_of_their_own(
    kafka: Cluster,
) -> None:
    """The columns for a single group are null then, in events as in the table of requests."""
    seq = kafka.journal.last_seq
    with Client(kafka.bootstrap_servers) as client:
        connection = client.coordinator("a")
        connection.send(DescribeGroupsRequest(groups=["a", "b"]))
        connection.send(DescribeGroupsRequest(groups=["c"]))
    wanted = [(None, ["a", "b"]), ("c", ["c"])]
    for table in ("events", "requests"):
        asked = MockbrokerDataSource(options(kafka, table=table, startingSeq=str(seq)))
        (partition,) = asked.reader(None).partitions()
        rows: list[dict[str, object]] = [
            dict(zip(COLUMNS, row, strict=True)) if isinstance(row, tuple) else row  # type: ignore[misc]
            for row in read(asked.reader(None), partition)
        ]
        described = [
            (row["group"], row["groups"])
            for row in rows
            if row["api"] == "DescribeGroups" and row.get("kind", "request") == "request"
        ]
        assert described == wanted


def test_every_field_of_an_event_is_a_column_but_for_those_with_structure() -> None:
    columns = set(event_columns())
    lists = {"groups", "transactional_ids"}
    assert columns - lists == set(JournalEvent.__struct_fields__) - {"targets", "message"}
    kinds = {name: event_columns()[name] for name in ("listener", "to_broker", "errors", "bytes")}
    assert list(kinds.values()) == ["string", "int", "array<string>", "bigint"]
