from __future__ import annotations

import json

import pytest

from mockbroker import Cluster
from tests.cli.conftest import Run, table


def test_a_topic_is_created_listed_described_and_deleted(on_cluster: Run):
    created = on_cluster("topics", "create", "t", "-p", 2, "-r", 3, "--config", "retention.ms=5000")
    assert created.stdout == "created topic t\n"
    head, row = table(on_cluster("topics", "list"))
    assert head == ["TOPIC", "PARTITIONS", "REPLICAS", "ID"]
    assert row[:3] == ["t", "2", "3"]
    described = on_cluster("topics", "describe", "t").stdout
    assert described.splitlines()[0].split() == ["t", row[3]]
    assert "retention.ms  5000" in described
    assert on_cluster("topics", "delete", "t").stdout == "deleted topic t\n"
    assert table(on_cluster("topics", "list")) == [head]


def test_topics_are_listed_as_json(on_cluster: Run, mock_kafka: Cluster):
    mock_kafka.topic("t").create(2)
    [listed] = json.loads(on_cluster("topics", "list", "--json").stdout)
    assert len(listed.pop("topic_id")) == 22
    assert listed == {"name": "t", "internal": False, "partitions": 2, "replication_factor": 1}


def test_internal_topics_are_shown_when_asked_for(on_cluster: Run):
    on_cluster("groups", "describe", "g", status=1)  # looks the coordinator up
    assert json.loads(on_cluster("topics", "list", "--json").stdout) == []
    [listed] = json.loads(on_cluster("topics", "list", "--internal", "--json").stdout)
    assert (listed["name"], listed["internal"]) == ("__consumer_offsets", True)


def test_a_description_as_json_has_partitions_offsets_and_set_configs(
    on_cluster: Run, mock_kafka: Cluster
):
    mock_kafka.topic("t").create(2, 3, configs={"cleanup.policy": "compact"})
    on_cluster("produce", "t", "--partition", 1, "--key", "k", stdin="a\nb\n")
    described = json.loads(on_cluster("topics", "describe", "t", "--json").stdout)
    assert described["configs"] == {"cleanup.policy": "compact"}
    first, second = described["partitions"]
    assert (first["partition"], first["start"], first["end"]) == (0, 0, 0)
    assert (second["partition"], second["start"], second["end"]) == (1, 0, 2)
    assert sorted(second["replicas"]) == sorted(second["isr"]) == [1, 2, 3]


def test_all_configs_are_shown_when_asked_for(on_cluster: Run, mock_kafka: Cluster):
    mock_kafka.topic("t").create()
    few = json.loads(on_cluster("topics", "describe", "t", "--json").stdout)
    many = json.loads(on_cluster("topics", "describe", "t", "--all-configs", "--json").stdout)
    assert few["configs"] == {}
    assert many["configs"]["cleanup.policy"] == "delete"


def test_a_topic_that_exists_is_refused_unless_that_is_fine(on_cluster: Run):
    on_cluster("topics", "create", "t")
    result = on_cluster("topics", "create", "t", status=1)
    assert result.stderr.endswith("(TOPIC_ALREADY_EXISTS)\n")
    again = on_cluster("topics", "create", "t", "--if-not-exists", "--json")
    assert json.loads(again.stdout) == {"name": "t", "created": False}


@pytest.mark.parametrize(
    "arguments",
    [
        ["--partitions", "0"],
        ["--partitions", "x"],
        ["--replication-factor", "0"],
        ["--config", "retention.ms"],
        ["--config", "=5"],
    ],
)
def test_values_that_make_no_sense_are_wrong_usage(run: Run, arguments: list[str]):
    result = run("topics", "create", "t", *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("mockbroker topics create: Invalid value for '")
    assert result.stderr.count("\n") == 1


def test_a_config_that_kafka_does_not_know_is_its_refusal(on_cluster: Run):
    result = on_cluster("topics", "create", "t", "--config", "no.such=1", status=1)
    assert result.stderr.endswith("(INVALID_CONFIG)\n")


def test_describing_a_missing_topic_says_so(on_cluster: Run):
    result = on_cluster("topics", "describe", "nosuch", status=1)
    assert result.stderr == "mockbroker: there is no topic nosuch\n"


@pytest.mark.covers("S294")
def test_offsets_are_printed_as_kafka_s_own_tool_does(on_cluster: Run, mock_kafka: Cluster):
    mock_kafka.topic("t").create(2)
    on_cluster("produce", "t", "--partition", 0, stdin="a\nb\n")
    assert on_cluster("topics", "offsets", "t").stdout == "t:0:2\nt:1:0\n"
    assert on_cluster("topics", "offsets", "t", "--time", "earliest").stdout == "t:0:0\nt:1:0\n"
    assert on_cluster("topics", "offsets", "t", "--time", "0").stdout == "t:0:0\nt:1:\n"
    as_json = on_cluster("topics", "offsets", "t", "--time", "max-timestamp", "--json")
    assert json.loads(as_json.stdout)["1"] == -1
    assert on_cluster("topics", "offsets", "t", "--time", "soon", status=2).stderr.count("\n") == 1


def test_a_topic_is_altered(on_cluster: Run, mock_kafka: Cluster):
    topic = mock_kafka.topic("t").create(1, configs={"retention.ms": 5000})
    arguments = ("-p", 3, "--config", "segment.ms=1000", "--delete-config", "retention.ms")
    altered = json.loads(on_cluster("topics", "alter", "t", *arguments, "--json").stdout)
    assert altered == {
        "name": "t",
        "partitions": 3,
        "set": {"segment.ms": "1000"},
        "deleted": ["retention.ms"],
    }
    assert len(topic.partitions) == 3
    assert topic.configs == {"segment.ms": "1000"}
    assert on_cluster("topics", "alter", "t", "-p", 4).stdout == "altered topic t\n"


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("t",), 2, "nothing to alter"),
        (("t", "-p", 1), 1, "partitions of topic t"),
        (("nobody", "-p", 3), 1, "there is no topic nobody"),
        (("t", "--config", "nonsense=1"), 1, "nonsense"),
    ],
)
def test_what_cannot_be_altered_is_said(
    on_cluster: Run, mock_kafka: Cluster, arguments: tuple[object, ...], status: int, said: str
):
    mock_kafka.topic("t").create(2)
    assert said in on_cluster("topics", "alter", *arguments, status=status).output
