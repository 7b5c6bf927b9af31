"""Kafka's command-line share consumers: console, performance and verifiable."""

from __future__ import annotations

import json

import pytest

from tests.clients.java.steps import Steps
from tests.clients.java.test_tools import TOOLS, run

pytestmark = [pytest.mark.java, pytest.mark.parametrize("tour", ["4.3.1"], indirect=True)]


def test_the_console_share_consumer_prints_and_rejects(java: Steps) -> None:
    """A rejected record is not given to the group again."""
    topic, group = java.topic(), java.share_group()
    java.fill(topic, ["one", "two", "three"])
    main = f"{TOOLS}.consumer.ConsoleShareConsumer"
    where = ("--bootstrap-server", java.peer.bootstrap_servers, "--topic", topic)
    how = ("--group", group, "--max-messages", "3", "--reject", "--timeout-ms", "20000")
    printed = java.tour("tool", main=main, args=[*where, *how])
    assert printed["out"].split() == ["one", "two", "three"]
    member = java.share_consumer(group, topic)
    java.fill(topic, ["four"])
    assert [record["value"] for record in java.poll(member, 1)] == ["four"]


def test_the_performance_tool_consumes_all(java: Steps) -> None:
    topic, group = java.topic(), java.share_group()
    java.fill(topic, range(500))
    options = ("--topic", topic, "--group", group, "--num-records", "500", "--hide-header")
    fields = run(java, f"{TOOLS}.ShareConsumerPerformance", *options).splitlines()[-1].split(", ")
    assert int(fields[5]) == 500
    offsets = java.admin("shareGroupOffsets", group=group)[f"{topic}-0"]
    assert offsets["lag"] == 0


def test_the_verifiable_share_consumer_tells_each_step(java: Steps) -> None:
    """It prints a JSON object for each: joining, records, acknowledged offsets, the end."""
    topic, group = java.topic(), java.unique("verified")
    java.fill(topic, range(20))
    options = ("--topic", topic, "--group-id", group, "--max-messages", "20")
    printed = run(
        java,
        f"{TOOLS}.VerifiableShareConsumer",
        *(*options, "--offset-reset-strategy", "earliest", "--verbose"),
    )
    told = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    names = [each["name"] for each in told]
    assert names[:2] == ["startup_complete", "offset_reset_strategy_set"]
    assert names[-1] == "shutdown_complete"
    consumed = sum(each["count"] for each in told if each["name"] == "records_consumed")
    acknowledged = [each for each in told if each["name"] == "offsets_acknowledged"]
    assert consumed == 20
    assert sum(each["count"] for each in acknowledged) == 20
    assert all(each["success"] for each in acknowledged)
