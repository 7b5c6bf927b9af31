"""Kafka's own command-line classes, as its scripts call them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.clients.java.steps import Steps

pytestmark = [pytest.mark.java, pytest.mark.parametrize("tour", ["4.3.1"], indirect=True)]

TOOLS = "org.apache.kafka.tools"


def run(java: Steps, main: str, *args: str, stdin: str = "", exit_code: int = 0) -> str:
    """Run a tool with the cluster's address and return what it printed."""
    words = ["--bootstrap-server", java.peer.bootstrap_servers, *args]
    ended: dict[str, Any] = java.tour("tool", main=main, args=words, stdin=stdin)
    assert ended["exit"] == exit_code, ended
    return str(ended["out"] if exit_code == 0 else ended["out"] + ended["err"])


@pytest.mark.covers("S295")
def test_topic_command_creates_lists_describes_alters_and_deletes(java: Steps) -> None:
    def topics(*args: str, exit_code: int = 0) -> str:
        return run(java, f"{TOOLS}.TopicCommand", *args, exit_code=exit_code)

    name = java.unique("tool")
    topics("--create", "--topic", name, "--partitions", "2", "--config", "retention.ms=60000")
    java.until(lambda: name in topics("--list").splitlines())
    described = topics("--describe", "--topic", name)
    assert f"Topic: {name}\t" in described
    assert "PartitionCount: 2\tReplicationFactor: 1\t" in described
    assert "retention.ms=60000" in described
    assert len(re.findall(r"Partition: \d+\tLeader: \d+\tReplicas: \d+\tIsr: \d+", described)) == 2
    topics("--alter", "--topic", name, "--partitions", "3")
    java.until(lambda: "PartitionCount: 3" in topics("--describe", "--topic", name))
    refused = topics("--create", "--topic", name, exit_code=1)
    assert name in refused
    assert "already" in refused
    topics("--delete", "--topic", name)
    java.until(lambda: name not in topics("--list").splitlines())
    assert "does not exist" in topics("--describe", "--topic", name, exit_code=1)
    assert topics("--describe", "--under-replicated-partitions") == ""


@pytest.mark.covers("S296")
def test_console_producer_and_consumer_pass_lines_on(java: Steps) -> None:
    topic = java.topic()
    run(
        java,
        f"{TOOLS}.ConsoleProducer",
        *("--topic", topic, "--reader-property", "parse.key=true"),
        *("--reader-property", "key.separator=:"),
        stdin="k1:one\nk2:two\nk1:drei ✓\n",
    )
    lines = run(
        java,
        f"{TOOLS}.consumer.ConsoleConsumer",
        *("--topic", topic, "--from-beginning", "--max-messages", "3", "--timeout-ms", "20000"),
        *("--formatter-property", "print.key=true", "--formatter-property", "key.separator=:"),
        *("--formatter-property", "print.offset=true"),
    ).splitlines()
    assert lines[:3] == ["Offset:0:k1:one", "Offset:1:k2:two", "Offset:2:k1:drei ✓"]


def test_console_consumer_reads_the_offsets_topic(java: Steps) -> None:
    topic, group = java.topic(), java.unique("group")
    consumer = java.consumer(group)
    java("assign", consumer, partitions=[f"{topic}-0"])
    java("commit", consumer, offsets={f"{topic}-0": {"offset": 42, "metadata": "noted"}})
    printed = run(
        java,
        f"{TOOLS}.consumer.ConsoleConsumer",
        *("--topic", "__consumer_offsets", "--from-beginning", "--timeout-ms", "3000"),
        *("--formatter", f"{TOOLS}.consumer.OffsetsMessageFormatter"),
    )
    # The formatter ends no line.
    records = json.loads("[" + printed.strip().replace("}{", "},{") + "]")
    (ours,) = [each for each in records if each["key"]["data"]["group"] == group]
    assert ours["key"]["data"] == {"group": group, "topic": topic, "partition": 0}
    assert (ours["key"]["type"], ours["value"]["version"]) == (1, 4)
    value = ours["value"]["data"]
    assert (value["offset"], value["metadata"]) == (42, "noted")


def test_consumer_group_command_lists_describes_resets_and_deletes(java: Steps) -> None:
    def groups(*args: str, exit_code: int = 0) -> str:
        return run(java, f"{TOOLS}.consumer.group.ConsumerGroupCommand", *args, exit_code=exit_code)

    topic, group = java.topic(partitions=2), java.unique("group")
    java.fill(topic, range(10), partition=1)
    consumer = java.consumer(group)
    java("subscribe", consumer, topics=[topic])
    java.settle(consumer, partitions=2)
    java("commit", consumer, offsets={f"{topic}-0": 0, f"{topic}-1": 4})
    assert group in groups("--list").splitlines()
    rows = [line.split() for line in groups("--describe", "--group", group).splitlines() if line]
    assert rows[0][:6] == [
        "GROUP",
        "TOPIC",
        "PARTITION",
        "CURRENT-OFFSET",
        "LOG-END-OFFSET",
        "LAG",
    ]
    assert sorted(row[2:6] for row in rows[1:]) == [["0", "0", "0", "0"], ["1", "4", "10", "6"]]
    assert {row[-1] for row in rows[1:]} == {consumer}
    state = groups("--describe", "--group", group, "--state")
    assert re.search(r"\brange\s+Stable\s+1\b", state), state
    members = groups("--describe", "--group", group, "--members", "--verbose")
    assert f"{topic}:0,1" in members.replace(f"{topic}(0,1)", f"{topic}:0,1")
    java.close(consumer)
    reset = ("--reset-offsets", "--group", group, "--topic", topic)
    groups(*reset, "--shift-by", "2", "--execute")
    assert java.admin("groupOffsets", group=group)[f"{topic}-1"]["offset"] == 6
    groups(*reset, "--to-latest", "--execute")
    assert java.admin("groupOffsets", group=group)[f"{topic}-1"]["offset"] == 10
    groups("--delete-offsets", "--group", group, "--topic", f"{topic}:0")
    assert list(java.admin("groupOffsets", group=group)) == [f"{topic}-1"]
    groups("--delete", "--group", group)
    assert group not in groups("--list").splitlines()


def test_get_offset_shell_prints_the_ends_of_each_partition(java: Steps) -> None:
    topic = java.topic(partitions=2)
    java.fill(topic, range(5), partition=1)
    for spec, ends in (("-1", (0, 5)), ("-2", (0, 0)), ("max-timestamp", (-1, 4))):
        printed = run(java, f"{TOOLS}.GetOffsetShell", "--topic", topic, "--time", spec)
        lines = printed.splitlines()
        if spec == "max-timestamp":  # all five may share one timestamp, and the first counts
            assert lines[0].startswith(f"{topic}:")
        else:
            assert lines == [f"{topic}:0:{ends[0]}", f"{topic}:1:{ends[1]}"]


def test_config_command_alters_and_describes_topics_and_brokers(java: Steps) -> None:
    topic = java.topic()

    def configs(*args: str) -> str:
        return run(java, "kafka.admin.ConfigCommand", *args)

    entity = ("--entity-type", "topics", "--entity-name", topic)
    configs(*entity, "--alter", "--add-config", "retention.ms=777,cleanup.policy=[compact,delete]")
    java.until(lambda: "retention.ms=777 sensitive=false" in configs(*entity, "--describe"))
    assert "cleanup.policy=compact,delete sensitive=false" in configs(*entity, "--describe")
    configs(*entity, "--alter", "--delete-config", "retention.ms")
    java.until(lambda: "retention.ms" not in configs(*entity, "--describe"))
    assert "log.cleaner.threads" in configs(
        "--entity-type", "brokers", "--entity-name", "1", "--describe", "--all"
    )


@pytest.mark.covers("S307")
def test_delete_records_command_moves_the_low_watermark(java: Steps, tmp_path: Path) -> None:
    topic = java.topic()
    java.fill(topic, range(10))
    file = tmp_path / "offsets.json"
    partition = {"topic": topic, "partition": 0, "offset": 3}
    file.write_text(json.dumps({"version": 1, "partitions": [partition]}))
    printed = run(java, f"{TOOLS}.DeleteRecordsCommand", "--offset-json-file", str(file))
    assert f"partition: {topic}-0\tlow_watermark: 3" in printed


def test_broker_api_versions_command_finds_every_api_usable(java: Steps) -> None:
    printed = run(java, f"{TOOLS}.BrokerApiVersionsCommand")
    assert len(re.findall(r"\(id: \d+ rack: null isFenced: false\) -> \(", printed)) == (
        java.peer.brokers
    )
    for api in ("Produce(0): 0 to 13", "Fetch(1): 4 to 18", "ApiVersions(18): 0 to 4"):
        assert f"{api} [usable: " in printed


def test_log_dirs_command_prints_replicas(java: Steps) -> None:
    topic = java.topic()
    printed = run(
        java, f"{TOOLS}.LogDirsCommand", "--describe", "--topic-list", topic, "--broker-list", "1"
    )
    (line,) = [each for each in printed.splitlines() if each.startswith("{")]
    assert json.loads(line)["version"] == 1


def test_metadata_quorum_command_prints_the_leader(java: Steps) -> None:
    printed = run(java, f"{TOOLS}.MetadataQuorumCommand", "describe", "--status")
    assert re.search(r"LeaderId:\s+\d", printed)
    assert re.search(r"CurrentVoters:\s+\[.+\]", printed)


def test_producer_performance_sends_its_load(java: Steps) -> None:
    topic = java.topic()
    java.tour(
        "tool",
        main=f"{TOOLS}.ProducerPerformance",
        args=[
            *("--topic", topic, "--num-records", "2000", "--record-size", "100"),
            *("--throughput", "-1", "--bootstrap-server", java.peer.bootstrap_servers),
        ],
    )
    latest = java.admin("listOffsets", specs={f"{topic}-0": "latest"})
    assert latest[f"{topic}-0"]["offset"] == 2000
