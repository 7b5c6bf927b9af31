"""`mockbroker configs`, for topics, brokers and groups."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from mockbroker import Cluster
from mockbroker.cli import main
from tests.cli.conftest import Run, table

CASES = [
    ("topic", "orders", "retention.ms", "5000"),
    ("broker", "2", "log.cleaner.threads", "2"),
    ("broker", "all", "message.max.bytes", "2000000"),
    ("group", "billing", "consumer.session.timeout.ms", "50000"),
]


@pytest.mark.parametrize(("kind", "name", "config", "value"), CASES)
def test_configs_are_altered_described_listed_and_deleted(
    on_cluster: Run, mock_kafka: Cluster, kind: str, name: str, config: str, value: str
):
    mock_kafka.topic("orders").create()
    source = {"2": "broker", "all": "all brokers"}.get(name, kind)
    row = {"kind": kind, "name": name, "config": config, "value": value, "source": source}
    altered = json.loads(
        on_cluster("configs", "alter", kind, name, f"{config}={value}", "--json").stdout
    )
    assert altered == {"kind": kind, "name": name, "set": {config: value}, "deleted": []}
    for arguments in (("describe", kind, name), ("list", kind)):
        assert row in json.loads(on_cluster("configs", *arguments, "--json").stdout)
    assert [name, config, value] in table(on_cluster("configs", "list", kind))
    deleted = on_cluster("configs", "delete", kind, name, config).stdout
    assert deleted == f"altered {kind} {name}\n"
    described = json.loads(on_cluster("configs", "describe", kind, name, "--json").stdout)
    assert config not in [each["config"] for each in described]


def test_the_journal_has_the_values_in_its_lines(on_cluster: Run, mock_kafka: Cluster):
    mock_kafka.topic("orders").create()
    on_cluster("configs", "alter", "topic", "orders", "retention.ms=5000")
    shown = CliRunner().invoke(main, ["journal", "kind=configs", "--admin", mock_kafka.admin_url])
    (line,) = shown.stdout.splitlines()
    assert "retention.ms=5000" in line


def test_defaults_are_shown_on_demand(on_cluster: Run, mock_kafka: Cluster):
    mock_kafka.topic("orders").create(configs={"retention.ms": 5000})
    rows = table(on_cluster("configs", "describe", "topic", "orders", "--all"))
    assert rows[0] == ["CONFIG", "VALUE", "SOURCE"]
    assert ["retention.ms", "5000", "topic"] in rows
    assert ["cleanup.policy", "delete", "default"] in rows


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("alter", "topic", "nobody", "retention.ms=1"), 1, "configs of topic nobody"),
        (("alter", "topic", "orders", "retention.ms=x"), 1, "retention.ms"),
        (("alter", "topic", "orders", "retention.ms"), 2, "is not NAME=VALUE"),
        (("describe", "broker", "first"), 2, "neither a broker's id nor all"),
        (("describe", "planet", "earth"), 2, "planet"),
    ],
)
def test_a_wrong_name_or_value_is_one_line(
    on_cluster: Run, mock_kafka: Cluster, arguments: tuple[str, ...], status: int, said: str
):
    mock_kafka.topic("orders").create()
    assert said in on_cluster("configs", *arguments, status=status).output
