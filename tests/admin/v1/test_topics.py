"""Topics over HTTP: valid and invalid requests."""

from __future__ import annotations

import pytest

from mockbroker import Cluster
from mockbroker.core.errors import ActionError
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


@pytest.mark.mock_kafka(brokers=1)
def test_configs_change_without_a_broker(mock_kafka: Cluster):
    """The last broker can be removed, and another one be added later."""
    mock_kafka.topic("old").create(1)
    mock_kafka.broker(1).remove()
    mock_kafka.topic("old").alter(configs={"retention.ms": 5})
    mock_kafka.act("alter_configs", kind="topic", name="old", configs={"segment.ms": "6"})
    mock_kafka.act("alter_configs", kind="broker", name="", configs={"message.max.bytes": "7"})
    assert mock_kafka.topic("old").view().configs == {"retention.ms": "5", "segment.ms": "6"}
    shown = {each.name: each.value for each in mock_kafka.topic("old").all_configs()}
    assert (shown["max.message.bytes"], shown["retention.ms"]) == ("7", "5")
    with pytest.raises(ActionError, match="there is no broker '1'"):
        mock_kafka.act("alter_configs", kind="broker", name="1", configs={"message.max.bytes": "7"})
    mock_kafka.act("add_broker", node=2)
    mock_kafka.topic("new").create(1)
    assert mock_kafka.topic("new").partition(0).view().leader_id == 2
