"""Pages of partitions, and batches of a log."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from mockbroker import Cluster, TopicSpec
from tests.support.http import HttpClient
from tests.support.librdkafka import TIMEOUT_S

TOPICS = [
    TopicSpec("orders", partitions=6, replication_factor=3),
    TopicSpec("Orders-archive", partitions=2, replication_factor=3),
    TopicSpec("log", partitions=1, replication_factor=3),
]


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    with Cluster(brokers=3, topics=TOPICS, seed=1) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def admin(kafka: Cluster) -> HttpClient:
    return HttpClient(kafka.admin_url)


@pytest.fixture(scope="module")
def written(kafka: Cluster) -> None:
    """Two plain batches, and a committed transaction."""
    plain = Producer({"bootstrap.servers": kafka.bootstrap_servers, "client.id": "plain"})
    for text in ("red apple", "green Pear"):
        plain.produce("log", text, key="fruit", headers={"trace": b"\xff\x00"}, partition=0)
        assert plain.flush(TIMEOUT_S) == 0
    till = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "till"})
    till.init_transactions(TIMEOUT_S)
    till.begin_transaction()
    till.produce("log", b"x" * 5_000, partition=0)
    till.commit_transaction(TIMEOUT_S)


BATCHES = "/v1/topics/log/partitions/0/batches"


def names(page: dict[str, list[dict[str, object]]]) -> list[str]:
    return [f"{each['topic']}-{each['partition']}" for each in page["partitions"]]


def test_a_page_has_its_partitions_and_the_number_of_all(admin: HttpClient) -> None:
    page = admin.get("/v1/partitions/page", topic="ORDERS", offset=1, limit=3)
    assert names(page) == ["Orders-archive-1", "orders-0", "orders-1"]
    assert page["total"] == 8
    assert admin.get("/v1/partitions/page", offset=10_000)["partitions"] == []
    assert admin.get("/v1/partitions/page", topic="orders", exact="true")["total"] == 6
    assert admin.get("/v1/partitions/page", topic="order", exact="true")["total"] == 0


def test_partitions_with_a_trouble_are_found(kafka: Cluster, admin: HttpClient) -> None:
    def found(only: str) -> list[str]:
        return names(admin.get("/v1/partitions/page", topic="orders", only=only))

    assert found("under_replicated") == found("offline") == found("transaction") == []
    partition = kafka.partition("orders", 2)
    leader, *others = [each.node_id for each in partition.view().replicas]
    partition.move_leader(others[0])
    assert found("not_preferred") == ["orders-2"]
    partition.shrink_isr([leader])
    assert found("under_replicated") == ["orders-2"]
    partition.drop_leader()
    assert found("offline") == ["orders-2"]
    assert [each.partition for each in kafka.find_partitions("orders", only="offline")] == [2]
    everything = kafka.find_partitions()
    assert len(everything) == len(kafka.partitions())
    assert not everything[0].topic.startswith("__")  # internal topics come last
    replicated = kafka.find_partitions("orders", broker=1)
    assert all(1 in [each.node_id for each in view.replicas] for view in replicated)


@pytest.mark.usefixtures("written")
def test_batches_show_their_bounds_their_bytes_and_control_records(admin: HttpClient) -> None:
    page = admin.get(BATCHES)
    bounds = [(each["base_offset"], each["last_offset"]) for each in page["batches"]]
    assert bounds == [(0, 0), (1, 1), (2, 2), (3, 3)]
    assert (page["next"], page["looked_at"], page["log_end_offset"]) == (4, 4, 4)
    assert page["last_stable_offset"] == page["high_watermark"] == 4
    first, _, data, marker = page["batches"]
    [record] = first["records"]
    assert base64.b64decode(record["value"]) == b"red apple"
    assert record["headers"] == [["trace", base64.b64encode(b"\xff\x00").decode()]]
    assert (data["transactional"], data["control"]) == (True, False)
    assert (marker["control"], marker["records"][0]["control"]) == (True, "commit")


@pytest.mark.usefixtures("written")
def test_a_long_value_is_cut_and_its_size_is_told(admin: HttpClient) -> None:
    [batch] = admin.get(BATCHES, offset=2, limit=1, value_bytes_max=10)["batches"]
    [record] = batch["records"]
    assert base64.b64decode(record["value"]) == b"x" * 10
    assert (record["value_bytes"], record["key"], record["key_bytes"]) == (5_000, None, -1)


@pytest.mark.usefixtures("written")
def test_a_search_finds_text_in_keys_values_and_headers(kafka: Cluster, admin: HttpClient) -> None:
    def found(text: str) -> list[int]:
        return [each["base_offset"] for each in admin.get(BATCHES, text=text)["batches"]]

    assert found("pear") == [1]
    assert found("FRUIT") == found("trace") == [0, 1]
    assert found("nothing of the kind") == []
    page = kafka.partition("log", 0).batches(text="pear")
    assert [record.found for batch in page.batches for record in batch.records] == [True]
    assert page.looked_at == 4


@pytest.mark.usefixtures("written")
def test_a_search_by_time_begins_at_the_first_record_then(admin: HttpClient) -> None:
    batches = admin.get(BATCHES)["batches"]
    later = batches[1]["max_timestamp_ms"]
    assert admin.get(BATCHES, timestamp_ms=0)["batches"][0]["base_offset"] == 0
    assert admin.get(BATCHES, timestamp_ms=later)["batches"][0]["max_timestamp_ms"] >= later
    assert admin.get(BATCHES, timestamp_ms=later + 10**9)["batches"] == []


def test_a_page_ends_with_its_limit_and_the_next_one_goes_on(
    kafka: Cluster, admin: HttpClient
) -> None:
    for number in range(5):
        kafka.partition("orders", 0).produce(str(number))
    path = "/v1/topics/orders/partitions/0/batches"
    first = admin.get(path, limit=2)
    rest = admin.get(path, offset=first["next"])
    assert len(first["batches"]) == 2
    assert [each["base_offset"] for each in rest["batches"]] == [2, 3, 4]


def test_the_log_of_another_broker_can_be_read(kafka: Cluster, admin: HttpClient) -> None:
    partition = kafka.partition("orders", 1)
    follower = partition.view().replicas[1].node_id
    partition.shrink_isr([follower])
    partition.produce("unseen")
    path = "/v1/topics/orders/partitions/1/batches"
    assert len(admin.get(path)["batches"]) == 1
    assert admin.get(path, broker=follower)["batches"] == []
    assert admin.request("GET", f"{path}?broker=77").status == 404


def test_the_lag_of_a_group_is_that_of_its_partitions(kafka: Cluster, admin: HttpClient) -> None:
    for _ in range(3):
        kafka.partition("orders", 5).produce("x")
    kafka.group("billing").set_offsets({("orders", 5): 1, ("orders", 4): 0})
    [found] = [each for each in kafka.group_lags() if each.group == "billing"]
    assert (found.partitions, found.lag, found.lag_read_committed, found.pending) == (
        2,
        2,
        2,
        False,
    )
    assert {each["group"] for each in admin.get("/v1/lag/groups")} == {"billing"}


def test_the_configs_of_a_topic_have_their_sources(kafka: Cluster, admin: HttpClient) -> None:
    kafka.topic("Orders-archive").alter(configs={"retention.ms": 1_000})
    found = {each["name"]: each for each in admin.get("/v1/topics/Orders-archive/configs")}
    own, other = found["retention.ms"], found["cleanup.policy"]
    assert (own["value"], own["source"], own["default"]) == ("1000", "dynamic_topic", "604800000")
    assert (other["value"], other["source"], other["default"]) == ("delete", "default", "delete")
    assert "policy" in other["documentation"]
    assert [each.name for each in kafka.topic("Orders-archive").all_configs()] == sorted(found)
    assert admin.request("GET", "/v1/topics/nothing/configs").status == 404
