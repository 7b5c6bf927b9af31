"""Topics over HTTP: what one request may ask for."""

from __future__ import annotations

import pytest

from mockbroker import Cluster
from tests.support.http import HttpClient


@pytest.mark.parametrize("partitions", [0, 10_001, 2**31 - 1])
def test_one_request_makes_no_more_partitions_than_in_kafka(mock_kafka: Cluster, partitions: int):
    """Kafka's controller creates at most 10,000 at a time; more would only fill the memory."""
    api = HttpClient(mock_kafka.admin_url)
    mock_kafka.topic("old").create(1)
    for method, path, body in (
        ("POST", "/v1/topics", {"name": "new", "partitions": partitions}),
        ("PATCH", "/v1/topics/old", {"partitions": partitions}),
    ):
        answer = api.request(method, path, body)
        assert answer.status == 400
        assert answer.body["field"] == "partitions"
    assert [each.name for each in mock_kafka.topics()] == ["old"]
