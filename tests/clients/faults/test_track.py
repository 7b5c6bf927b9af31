"""What identifies a record, told to the audit."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from mockbroker import Cluster


@pytest.mark.fault("track")
@pytest.mark.parametrize(
    "by", [{"key": "$.order.id"}, {"header": "order"}, {"unique_values": True}]
)
def test_a_retry_without_idempotence_is_found_by_an_id_of_the_tests_own(
    mock_kafka: Cluster, by: dict[str, object]
) -> None:
    """A test says what identifies the records of a topic."""
    mock_kafka.topic("orders").create()
    mock_kafka.topic("orders").track(**by)
    mock_kafka.faults.add(
        match={"api": "Produce"}, when={"times": 1}, do={"drop_reply": {"then": "reset"}}
    )
    producer = Producer({"bootstrap.servers": mock_kafka.bootstrap_servers})
    producer.produce("orders", '{"order": {"id": 17}}', headers={"order": "17"})
    assert producer.flush(30) == 0
    [twice] = mock_kafka.audit().of("duplicate")
    assert (twice.offset, twice.verdict) == (1, "report")
    if "unique_values" not in by:
        assert twice.subject == "id:17"
