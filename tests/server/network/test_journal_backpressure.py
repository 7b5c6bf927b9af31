"""Clients wait for readers of a full journal, except stalled ones."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from mockbroker import Cluster
from mockbroker.core.journal.reader_positions import ReaderPosition
from mockbroker.server.network import journal_backpressure
from tests.support.http import HttpClient
from tests.support.librdkafka import TIMEOUT_S
from tests.support.timers import waiting_timers
from tests.support.waiting import wait_until

RECORDS = 150  # each in a request of its own: several times what the journal holds
JOURNAL_BYTES = 60_000


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    with Cluster(brokers=1, topics={"orders": 1}, journal_bytes=JOURNAL_BYTES) as cluster:
        yield cluster


class Produced(threading.Thread):
    """Sends records one by one; `errors` is what went wrong."""

    def __init__(self, kafka: Cluster) -> None:
        super().__init__()
        self.errors: list[str] = []
        self._producer = Producer(
            {"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 0, "log_level": 0}
        )
        self.start()

    def run(self) -> None:
        for number in range(RECORDS):
            self._producer.produce("orders", str(number), on_delivery=self._delivered)
            self._producer.flush(TIMEOUT_S)

    def _delivered(self, error: object, _message: object) -> None:
        if error is not None:
            self.errors.append(str(error))


def reader_of(kafka: Cluster) -> ReaderPosition:
    return kafka.call(lambda c: c.runtime.journal.readers.add(c.runtime.journal.last_seq))


def is_full(kafka: Cluster) -> bool:
    return bool(kafka.call(lambda c: c.runtime.journal.readers.full))


def test_a_slow_reader_misses_nothing(kafka: Cluster) -> None:
    """Clients are held up meanwhile, and go on as it reads. No thread is left of a wait."""
    before = waiting_timers()
    reader = reader_of(kafka)
    after = reader.position
    producing = Produced(kafka)
    wait_until(lambda: is_full(kafka))

    def read() -> list[int]:
        gap, entries = kafka.call(lambda c: c.runtime.journal.since(reader.position, 7))
        assert gap is None
        if entries:
            kafka.call(lambda _: reader.has_read(entries[-1].seq))
        return [entry.seq for entry in entries]

    found: list[int] = []
    while producing.is_alive():
        found += read()
    while more := read():
        found += more
    assert found == list(range(after + 1, found[-1] + 1))
    assert producing.errors == []
    assert len(kafka.records("orders")) == RECORDS
    assert waiting_timers() <= before


def test_no_thread_is_left_of_a_wait_that_the_end_of_the_cluster_ends() -> None:
    before = waiting_timers()
    with Cluster(brokers=1, topics={"orders": 1}, journal_bytes=JOURNAL_BYTES) as kafka:
        reader_of(kafka)
        one_each = {"batch.num.messages": 1, "log_level": 0}
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers} | one_each)
        for _ in range(RECORDS):
            producer.produce("orders", bytes(1000))
        wait_until(lambda: bool(waiting_timers() - before))
        producer.purge()
    assert waiting_timers() <= before


def test_a_reader_that_stands_still_is_not_waited_for(
    kafka: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In real time: the cluster's clock may stand still as well."""
    monkeypatch.setattr(journal_backpressure, "READER_TIMEOUT_S", 0.1)
    kafka.clock.freeze()
    reader = reader_of(kafka)
    producing = Produced(kafka)
    producing.join()
    assert producing.errors == []
    assert len(kafka.records("orders")) == RECORDS
    assert reader.has_given_up
    assert kafka.call(lambda c: c.runtime.journal.since(reader.position))[0] is not None


def test_a_reader_that_goes_away_lets_clients_go_on(kafka: Cluster) -> None:
    reader = reader_of(kafka)
    producing = Produced(kafka)
    wait_until(lambda: is_full(kafka))
    kafka.call(lambda _: reader.close())
    producing.join()
    assert producing.errors == []
    assert len(kafka.records("orders")) == RECORDS


def test_a_stream_of_the_journal_has_every_batch(kafka: Cluster) -> None:
    stream = HttpClient(kafka.admin_url).stream("/v1/journal/stream?kind=append")
    try:
        wait_until(lambda: bool(kafka.call(lambda c: c.runtime.journal.readers.all)))
        producing = Produced(kafka)
        offsets: list[int] = []
        while len(offsets) < RECORDS:
            line = stream.readline()
            if line.startswith(b"data: "):
                event = json.loads(line.removeprefix(b"data: "))
                assert event["kind"] == "append"
                offsets.append(event["first_offset"])
        producing.join()
    finally:
        stream.close()
    assert offsets == list(range(RECORDS))
    wait_until(lambda: not kafka.call(lambda c: c.runtime.journal.readers.all))


def test_with_drop_clients_wait_for_nobody() -> None:
    """A reader finds a gap then."""
    with Cluster(
        brokers=1, topics={"orders": 1}, journal_bytes=JOURNAL_BYTES, journal_overflow="drop"
    ) as kafka:
        reader = reader_of(kafka)
        producing = Produced(kafka)
        producing.join()
        assert producing.errors == []
        assert kafka.call(lambda c: c.runtime.journal.since(reader.position))[0] is not None
        assert not reader.has_given_up
