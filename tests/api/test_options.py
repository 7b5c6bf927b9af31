"""The options of a test's cluster, and those that are wrong."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker import Cluster
from mockbroker.server.config import ListenerSpec, TopicSpec


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"broker": 3}, "a cluster has no option 'broker'; did you mean 'brokers'?"),
        ({"brokers": "3"}, "brokers: expected int, not str"),
        ({"node_ids": ["1"]}, "node_ids[0]: expected int, not str"),
        ({"racks": "abc"}, "racks: expected Sequence[str | None] | None, not str"),
        ({"topics": ["orders"]}, "topics[0]: expected TopicSpec, not str"),
        ({"topics": {"orders": "3"}}, "topics['orders']: expected int, not str"),
        (
            {"topics": [TopicSpec("orders", configs={"retention.ms": 5})]},  # type: ignore[dict-item]
            "topics[0].configs['retention.ms']: expected str, not int",
        ),
        (
            {"configs": {"num.partitions": None}},
            "configs['num.partitions']: expected str | int | float | bool, not None",
        ),
        ({"listeners": [ListenerSpec(port="1")]}, "listeners[0].port: expected int, not str"),  # type: ignore[arg-type]
        ({"users": ["alice"]}, "users: expected Mapping[str, str] | None, not list"),
        ({"strict": "yes"}, "strict: expected bool, not str"),
        ({"seed": 1.5}, "seed: expected int | None, not float"),
        ({"journal_bytes": "1 MB"}, "journal_bytes: expected int, not str"),
        ({"data_dir": 5}, "data_dir: expected str | PathLike[str] | None, not int"),
        ({"journal_dir": 5}, "journal_dir: expected str | PathLike[str] | None, not int"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], words: str) -> None:
    """Before anything starts, and with the part that is wrong."""
    with pytest.raises(TypeError) as found:
        Cluster(**options)
    assert str(found.value) == words


def test_a_wrong_choice_is_named_with_the_right_ones() -> None:
    with pytest.raises(ValueError, match="journal_overflow: 'lose' is not allowed here; known are"):
        Cluster(journal_overflow="lose")  # type: ignore[arg-type]


def test_a_cluster_that_is_renewed_with_a_wrong_option_goes_on() -> None:
    with Cluster(brokers=1, topics={"orders": 1}) as kafka:
        kafka.topic("orders").produce("a")
        with pytest.raises(TypeError, match="brokers: expected int"):
            kafka.renew(brokers="2")  # type: ignore[arg-type]
        assert [record.value for record in kafka.topic("orders").records()] == [b"a"]


def test_numbers_and_truth_are_configs_as_kafka_writes_them() -> None:
    configs = {"auto.create.topics.enable": False, "num.partitions": 4}
    with Cluster(brokers=1, configs=configs) as kafka:
        orders = kafka.topic("orders").create(
            configs={"preallocate": True, "min.cleanable.dirty.ratio": 0.25}
        )
        assert orders.configs == {"preallocate": "true", "min.cleanable.dirty.ratio": "0.25"}
        orders.alter(configs={"preallocate": False, "min.cleanable.dirty.ratio": None})
        assert orders.configs == {"preallocate": "false"}
        assert len(orders.partitions) == 4
        broker = {each.name: each.value for each in kafka.topic("orders").all_configs()}
        assert broker["preallocate"] == "false"


def test_wrong_types_of_configs_replicas_and_offsets_are_named() -> None:
    with Cluster(brokers=1, topics={"orders": 1}) as kafka:
        topic = kafka.topic("others")
        with pytest.raises(
            TypeError, match=r"^configs\['retention.ms'\]: expected str .*, not None"
        ):
            topic.create(configs={"retention.ms": None})  # type: ignore[dict-item]
        with pytest.raises(
            TypeError, match=r"^assignments\[0\]: expected Sequence\[int\], not int"
        ):
            topic.create(assignments={0: 1})  # type: ignore[dict-item]
        with pytest.raises(TypeError, match=r"^configs: expected Mapping\[.*\], not list"):
            kafka.topic("orders").alter(configs=["retention.ms"])  # type: ignore[arg-type]
        with pytest.raises(
            TypeError, match=r"^offsets: a key: expected tuple\[str, int\], not str"
        ):
            kafka.group("billing").set_offsets({"orders": 1})  # type: ignore[dict-item]
        assert {view.name for view in kafka.topics()} == {"orders"}


def test_names_and_numbers_of_another_type_are_named() -> None:
    with Cluster(brokers=1) as kafka:
        for make, words in (
            (lambda: kafka.topic(3), "name: expected str, not int"),  # type: ignore[arg-type]
            (lambda: kafka.topic("a").partition("0"), "index: expected int, not str"),  # type: ignore[arg-type]
            (lambda: kafka.partition(None, 0), "topic: expected str, not None"),  # type: ignore[arg-type]
            (lambda: kafka.group(5), "group_id: expected str, not int"),  # type: ignore[arg-type]
            (lambda: kafka.broker("1"), "node_id: expected int, not str"),  # type: ignore[arg-type]
            (lambda: kafka.transaction(b"t"), "transactional_id: expected str, not bytes"),  # type: ignore[arg-type]
        ):
            with pytest.raises(TypeError) as found:
                make()
            assert str(found.value) == words


def test_directories_may_be_any_path(tmpdir: Any) -> None:
    """Such as that of pytest's older fixture, which is no `pathlib.Path`."""
    with Cluster(brokers=1, data_dir=tmpdir / "data", journal_dir=tmpdir / "journal") as kafka:
        kafka.topic("orders").create().produce("a")
    assert {each.basename for each in tmpdir.listdir()} == {"data", "journal"}
