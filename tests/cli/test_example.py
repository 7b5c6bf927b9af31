"""`serve --example`: an included cluster with records."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import TopicPartition

from mockbroker.cli import main
from mockbroker.cli.config_file import load, server_config
from mockbroker.server.config import ServerError
from tests.support.librdkafka import (
    TIMEOUT_S,
    admin_client,
    delete_records,
    open_consumer,
    poll,
    values,
)
from tests.support.serving import Served

TOPICS = {
    "T-TRADE-CHK",
    "T-EOD-SNP",
    "T-DBMS-CHK",
    "T-CAPTURE",
    "T-TEST",
    "T-TEST-SNP",
    "T-TRADE",
    "T-TRADE-SNP",
    "krp",
    "hermes.demo.pandc",
}


@pytest.mark.covers("S51")
def test_the_topics_of_a_trading_system_have_the_offsets_of_its_stories() -> None:
    """Partition 2 of T-CAPTURE ends at 2002; without all before 1992 there are ten records."""
    with Served("--example", "trading") as served:
        bootstrap = served.bootstrap_servers
        told = admin_client(bootstrap).list_topics(timeout=TIMEOUT_S).topics
        assert set(told) == TOPICS
        assert len(told["hermes.demo.pandc"].partitions) == 2
        with open_consumer(bootstrap) as consumer:

            def ends(topic: str, partition: int) -> tuple[int, int]:
                asked = TopicPartition(topic, partition)
                found: tuple[int, int] = consumer.get_watermark_offsets(asked, TIMEOUT_S)
                return found

            assert ends("T-CAPTURE", 2) == (0, 2002)
            assert ends("krp", 0) == (0, 10)
            assert [ends("hermes.demo.pandc", index)[1] for index in (0, 1)] == [9, 5]
            assert delete_records(bootstrap, "T-CAPTURE", 1992, 2) == 1992
            assert ends("T-CAPTURE", 2) == (1992, 2002)
            consumer.assign([TopicPartition("T-CAPTURE", 2, 1992)])
            expected = [str(offset) for offset in range(1992, 2002)]
            assert values(poll(consumer, 10)) == expected


def test_a_filling_has_a_bound(tmp_path: Path) -> None:
    """A digit too many took all the memory of the machine."""
    path = tmp_path / "c.toml"
    path.write_text('[[topics]]\nname = "t"\nfill = [5000000000]\n')
    with pytest.raises(ServerError, match="topic t: fill has at most 1,000,000 records in all"):
        server_config(load(path))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("brokers = 100000000", "a cluster has at most 1,000 brokers, not 100000000"),
        (
            '[[topics]]\nname = "t"\npartitions = 100001',
            "topic t: at most 100,000 partitions, not 100001",
        ),
    ],
)
def test_numbers_that_are_too_large_are_refused(tmp_path: Path, text: str, error: str) -> None:
    path = tmp_path / "c.toml"
    path.write_text(text)
    with pytest.raises(ServerError, match=error):
        server_config(load(path)).specs()


@pytest.mark.parametrize("fill", ["[1, 2]", "[-1]"])
def test_a_filling_fits_the_partitions(tmp_path: Path, fill: str) -> None:
    path = tmp_path / "cluster.toml"
    path.write_text(f'[[topics]]\nname = "t"\nfill = {fill}\n')
    with pytest.raises(ServerError, match="topic t: fill is a number of records"):
        server_config(load(path))


def test_an_example_is_a_whole_description(tmp_path: Path) -> None:
    """A file beside it is refused."""
    path = tmp_path / "cluster.toml"
    path.write_text("brokers = 1")
    flags = ["--example", "trading", "--config-file", str(path), "--no-admin"]
    result = CliRunner().invoke(main, ["serve", *flags])
    assert result.exit_code == 2
    assert "--example and --config-file exclude each other" in result.stderr
