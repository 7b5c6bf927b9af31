"""The states of share partitions in a data directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mockbroker import Cluster
from mockbroker.client.connection import Connection
from tests.support.share_states import (
    ACKNOWLEDGED,
    initialize_request,
    read_request,
    summary_request,
    write_request,
)


def ask(kafka: Cluster, request: Any, version: int) -> Any:
    connection = Connection(*kafka.endpoint(1), "share", timeout_s=10.0)
    try:
        answer = connection.send(request, version)
    finally:
        connection.close()
    return answer.results[0].partitions[0]


def topic_id_of(kafka: Cluster) -> bytes:
    from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

    connection = Connection(*kafka.endpoint(1), "share", timeout_s=10.0)
    try:
        request = MetadataRequest([MetadataRequestTopic(name="t")])
        found: bytes = connection.send(request, 12).topics[0].topic_id
    finally:
        connection.close()
    return found


def find(kafka: Cluster, topic_id: bytes) -> None:
    """The first FindCoordinator creates the topic of the states."""
    from mockbroker.core.share.coordinator import coordinator_key
    from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest

    connection = Connection(*kafka.endpoint(1), "share", timeout_s=10.0)
    try:
        key = coordinator_key("g", topic_id, 0)
        answer = connection.send(FindCoordinatorRequest(key_type=2, coordinator_keys=[key]), 6)
    finally:
        connection.close()
    assert answer.coordinators[0].error_code == 0


def test_the_next_process_has_the_states(tmp_path: Path) -> None:
    with Cluster(brokers=1, topics={"t": 1}, data_dir=tmp_path) as kafka:
        topic_id = topic_id_of(kafka)
        find(kafka, topic_id)
        assert ask(kafka, initialize_request(topic_id, state_epoch=4, start=2), 0).error_code == 0
        request = write_request(topic_id, {0: [(2, 5, ACKNOWLEDGED, 1)]}, state_epoch=4, complete=4)
        assert ask(kafka, request, 1).error_code == 0
        assert ask(kafka, read_request(topic_id, leader_epoch=9), 0).error_code == 0
    with Cluster(brokers=1, data_dir=tmp_path) as kafka:
        summary = ask(kafka, summary_request(topic_id), 1)
        assert (summary.state_epoch, summary.leader_epoch) == (4, 9)
        assert (summary.start_offset, summary.delivery_complete_count) == (2, 4)
        (batch,) = ask(kafka, read_request(topic_id, leader_epoch=9), 0).state_batches
        assert (batch.first_offset, batch.last_offset) == (2, 5)
