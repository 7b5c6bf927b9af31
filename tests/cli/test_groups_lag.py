"""`mockbroker groups lag`: the lag of the admin API and of the journal's tables."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import Result
from confluent_kafka import Consumer, Producer, TopicPartition

from mockbroker import Cluster
from tests.support.librdkafka import TIMEOUT_S

Run = Callable[..., Result]


@pytest.mark.covers("S299")
@pytest.mark.mock_kafka(brokers=1)
def test_groups_lag_counts_both_ways(mock_kafka: Cluster, run: Run, monkeypatch) -> None:
    """To the high watermark, and to the last stable offset, which an open transaction holds."""
    kafka = mock_kafka
    kafka.topic("paid").create()
    monkeypatch.setenv("MOCKBROKER_ADMIN", kafka.admin_url)
    settings = {"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0}
    producer = Producer({**settings, "transactional.id": "till"})
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    producer.produce("paid", "one coffee")
    producer.commit_transaction(TIMEOUT_S)
    producer.begin_transaction()
    producer.produce("paid", "two teas")
    assert producer.flush(TIMEOUT_S) == 0
    consumer = Consumer({**settings, "group.id": "books", "isolation.level": "read_uncommitted"})
    consumer.assign([TopicPartition("paid", 0, 0)])
    assert len(consumer.consume(2, TIMEOUT_S)) == 2  # whose answers tell the journal the offsets
    consumer.commit(offsets=[TopicPartition("paid", 0, 1)], asynchronous=False)

    head, row = run("groups", "lag", "books").output.splitlines()
    assert head.split("  ")[0] == "GROUP"
    assert row.split() == ["books", "paid", "0", "1", "2", "3", "3", "2", "1"]
    [told] = json.loads(run("groups", "lag", "--json").output)
    assert (told["lag"], told["lag_read_committed"]) == (2, 1)
    measured = [row for row in kafka.audit().report.measures["lag"] if row["topic"] == "paid"]
    same = ("committed", "last_stable_offset", "high_watermark", "lag", "lag_read_committed")
    assert {name: measured[-1][name] for name in same} == {name: told[name] for name in same}
    producer.abort_transaction(TIMEOUT_S)
    consumer.close()
