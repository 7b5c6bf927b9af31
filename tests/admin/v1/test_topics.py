"""Topics over HTTP: valid and invalid requests."""

from __future__ import annotations

import pytest

from mockbroker import Cluster
from tests.support.http import HttpClient


@pytest.mark.parametrize("partitions", [0, 10_002, 2**31 - 1])
def test_one_request_makes_no_more_partitions_than_in_kafka(mock_kafka: Cluster, partitions: int):
    """Kafka's controller creates at most 10,000 at a time; more would only fill the memory."""
    api = HttpClient(mock_kafka.admin_url)
    mock_kafka.topic("old").create(1)
    answer = api.request("POST", "/v1/topics", {"name": "new", "partitions": partitions})
    assert (answer.status, answer.body["field"]) == (400, "partitions")
    answer = api.request("PATCH", "/v1/topics/old", {"partitions": partitions})
    assert answer.status == (409 if partitions else 400)
    assert "partitions: " in answer.body["detail"]
    assert [each.name for each in mock_kafka.topics()] == ["old"]
