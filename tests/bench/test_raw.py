"""The raw client reads whole answers, however large, and percentiles are of the values seen."""

from __future__ import annotations

import socket

import pytest

from bench import raw
from bench.workloads.support import percentile
from mockbroker import Cluster


def address(kafka: Cluster) -> tuple[str, int]:
    host, port = kafka.bootstrap_servers.split(",")[0].rsplit(":", 1)
    return host, int(port)


def test_an_answer_larger_than_the_buffer_is_read_whole() -> None:
    topics = {f"topic-{number}": 100 for number in range(40)}
    with (
        Cluster(brokers=1, topics=topics) as kafka,
        raw.RawConnection(address(kafka)) as connection,
    ):
        small = connection.round_trip(raw.api_versions())
        assert int.from_bytes(small[:4], "big") == len(small) - 4
        large = connection.round_trip(raw.metadata_of_all_topics())
        assert int.from_bytes(large[:4], "big") == len(large) - 4
        assert len(large) > 1 << 16
        assert bytes(large[4:8]) == b"\0\0\0\1", "the correlation id"


def test_the_brokers_of_a_cluster_are_counted() -> None:
    with Cluster(brokers=3) as kafka:
        assert raw.brokers_seen(address(kafka)) == 3


def test_nobody_there_counts_as_no_brokers() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # taken, but nobody listens
        assert raw.brokers_seen(bound.getsockname()) == 0


@pytest.mark.parametrize(("percent", "value"), [(0, 1.0), (50, 3.0), (80, 4.0), (99, 5.0)])
def test_a_percentile_is_one_of_the_values(percent: float, value: float) -> None:
    assert percentile([5.0, 3.0, 1.0, 4.0, 2.0], percent) == value
