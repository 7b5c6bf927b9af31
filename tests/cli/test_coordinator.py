"""`mockbroker coordinator` agrees with FindCoordinator, and shows the hash."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from mockbroker import Cluster
from mockbroker.cli import main
from mockbroker.client import Client
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.support.librdkafka import open_consumer, produce

# Computed by Java's String.hashCode.
HASHES = {"billing": -109829509, "g": 103, "": 0, "polygenelubricants": -2147483648}


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    with Cluster(brokers=3, topics={"t": 1}) as cluster:
        yield cluster


def asked(kafka: Cluster, *arguments: str) -> str:
    result = CliRunner().invoke(
        main, ["coordinator", *arguments], env={"MOCKBROKER_ADMIN": kafka.admin_url}
    )
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.covers("S298")
def test_any_group_has_a_hash_a_partition_and_a_coordinator(kafka: Cluster) -> None:
    """Those that FindCoordinator leads clients to, whether there is such a group or not."""
    with open_consumer(kafka.bootstrap_servers, group_id="billing") as consumer:
        consumer.subscribe(["t"])
        produce(kafka.bootstrap_servers, "t", ["a"])
        assert consumer.poll(20) is not None
        consumer.commit(asynchronous=False)
        with Client(kafka.bootstrap_servers) as client:
            keys = list(HASHES)
            request = FindCoordinatorRequest(key_type=0, coordinator_keys=keys)
            found = client.router.any().send(request).coordinators
        leaders = {each.key: each.node_id for each in found}
        for key, hashed in HASHES.items():
            told = json.loads(asked(kafka, key, "--json"))
            expected = 0 if hashed == -(2**31) else abs(hashed) % 50
            assert (told["hash"], told["partition"], told["partitions"]) == (hashed, expected, 50)
            assert told["coordinator"] == leaders[key]
    stored = kafka.call(
        lambda c: [p.index for p in c.topics["__consumer_offsets"].partitions if p.log_end_offset]
    )
    assert stored == [json.loads(asked(kafka, "billing", "--json"))["partition"]]
    assert "hash         103\n" in asked(kafka, "g")


def test_a_transactional_id_is_placed_in_the_same_way(kafka: Cluster) -> None:
    """Before its topic exists nobody coordinates it."""
    told = asked(kafka, "g", "--transactional-id")
    assert told.splitlines()[1:] == [
        "partition    __transaction_state-3 (of 50)",
        "coordinator  none",
    ]
