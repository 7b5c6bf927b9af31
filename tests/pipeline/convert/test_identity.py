"""The ids of records by the tracking of their topic."""

from __future__ import annotations

from pathlib import Path

import pytest

from mockbroker import Cluster
from mockbroker.core.journal.tracking import Tracking
from mockbroker.pipeline.convert.batches import OpenedBatch, open_batch
from mockbroker.pipeline.convert.identity import Identities
from mockbroker.pipeline.store import open_store
from mockbroker_protocol.records import BatchHeader, Record, build_batch
from tests.pipeline.convert.support import Tables
from tests.support.librdkafka import TIMEOUT_S, settings


def opened(tracking: Tracking, *records: Record, topic: str = "t") -> OpenedBatch:
    batch = memoryview(build_batch(records))
    header = BatchHeader(batch)
    identities = Identities()
    identities.begin([tracking])
    return identities.identified(topic, open_batch(header, batch), header, batch)


def test_a_member_of_the_value_is_the_id() -> None:
    """Text as it is, other JSON as JSON; none where it is missing, null or the value is no JSON."""
    values = (b'{"id": "a"}', b'{"id": 7}', b'{"id": {"y": 1, "x": 2}}', b"{}", b'{"id": null}',
              b"\xff", None, b'{"id":' * 100_000)  # fmt: skip
    found = opened(Tracking("t", key="$.id"), *(Record(value=value) for value in values))
    assert found.ids == ["a", "7", '{"x":2,"y":1}', None, None, None, None, None]


def test_a_header_is_the_id() -> None:
    """The last of its name, as Kafka's lastHeader; a header `mb-id` comes first."""
    named = Record(headers=(("order", b"1"), ("order", b"2"), ("order", None)))
    own = Record(headers=(("order", b"3"), ("mb-id", b"own")))
    assert opened(Tracking("t", header="order"), named, own, Record()).ids == ["2", "own", None]


def test_unique_values_are_ids_themselves() -> None:
    """Equal keys and values have equal ids."""
    records = (Record(key=b"k", value=b"v"), Record(value=b"v"), Record(key=b"k", value=b"v"))
    one, other, again = opened(Tracking("t", unique_values=True), *records).ids or ()
    assert one == again
    assert one != other


def test_other_topics_have_no_ids() -> None:
    tracking = Tracking("t", unique_values=True)
    assert opened(tracking, Record(value=b"v"), topic="u").ids is None
    assert opened(Tracking("t", key="$.id"), Record(value=b"v")).ids is None


@pytest.mark.parametrize("spooled", [False, True])
def test_a_run_has_the_ids(tmp_path: Path, spooled: bool) -> None:
    """Tables that are written along from the call on; an export has them for all records."""
    from confluent_kafka import Producer

    with Cluster(brokers=1, topics={"t": 1}, journal_dir=tmp_path if spooled else None) as kafka:
        producer = Producer(settings(kafka.bootstrap_servers))
        producer.produce("t", '{"id": 1}')
        assert producer.flush(TIMEOUT_S) == 0
        kafka.topic("t").track(key="$.id")
        producer.produce("t", '{"id": 2}')
        assert producer.flush(TIMEOUT_S) == 0
        run = kafka.journal_run
        if not spooled:
            run = kafka.journal.export(tmp_path).run
    assert open_store(tmp_path, [run]).runs[0].complete
    ids = [row["id"] for row in Tables(tmp_path, run).rows("records")]
    assert ids == ([None, "2"] if spooled else ["1", "2"])
