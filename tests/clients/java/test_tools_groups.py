"""ConsumerGroupCommand, GetOffsetShell and ConfigCommand with the options that people use."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.clients.java.steps import Steps
from tests.clients.java.test_consumer_protocol import open_member
from tests.clients.java.test_tools import TOOLS, run

pytestmark = [pytest.mark.java, pytest.mark.parametrize("tour", ["4.3.1"], indirect=True)]

GROUPS = f"{TOOLS}.consumer.group.ConsumerGroupCommand"


def groups(java: Steps, *args: str) -> str:
    return run(java, GROUPS, *args)


def rows(printed: str) -> list[list[str]]:
    """The lines of a table that the command printed, without the words above it."""
    return [line.split() for line in printed.splitlines() if line.strip()][1:]


def committed(java: Steps, group: str) -> dict[str, int]:
    return {p: each["offset"] for p, each in java.admin("groupOffsets", group=group).items()}


@pytest.mark.covers("S300")
def test_groups_are_listed_and_described_in_every_way(java: Steps) -> None:
    """A static member of three partitions, as offsets, members and state tell of it."""
    topic, group, client = java.topic(partitions=3), java.unique("group"), java.unique("client")
    java.fill(topic, range(10), partition=1)
    consumer = java.consumer(group, group_instance_id="i1", client_id=client)
    java("subscribe", consumer, topics=[topic])
    java.settle(consumer, partitions=3)
    java("commit", consumer, offsets={f"{topic}-0": 0, f"{topic}-1": 4, f"{topic}-2": 0})
    assert [group, "Stable"] in rows(groups(java, "--list", "--state"))
    assert [group, "Stable"] in rows(groups(java, "--list", "--state", "stable"))
    assert group not in groups(java, "--list", "--state", "empty")
    assert [group, "Classic"] in rows(groups(java, "--list", "--type"))
    describe = ("--describe", "--group", group)
    offsets = rows(groups(java, *describe, "--offsets"))
    assert [row[1:6] for row in offsets] == [
        [topic, "0", "0", "0", "0"],
        [topic, "1", "4", "10", "6"],
        [topic, "2", "0", "0", "0"],
    ]
    ((_, member, instance, host, told_client, count, *rest),) = rows(
        groups(java, *describe, "--members", "--verbose")
    )
    assert (instance, host, told_client, count) == ("i1", "/127.0.0.1", client, "3")
    assert member.startswith("i1-")
    assert f"{topic}:0,1,2" in rest
    state = groups(java, *describe, "--state")
    assert re.search(r"127\.0\.0\.1:\d+\s+\(\d+\)\s+range\s+Stable\s+1\b", state), state
    everybody = groups(java, "--describe", "--all-groups", "--state")
    assert group in everybody


def test_a_group_that_is_in_use_is_neither_deleted_nor_reset(java: Steps) -> None:
    topic, group = java.topic(), java.unique("group")
    java.fill(topic, range(3))
    consumer = java.consumer(group)
    java("subscribe", consumer, topics=[topic])
    java.settle(consumer, partitions=1)
    java("commit", consumer, offsets={f"{topic}-0": 2})
    which = ("--group", group)
    assert "GroupNotEmptyException" in groups(java, "--delete", *which)
    reset = groups(java, "--reset-offsets", *which, "--topic", topic, "--to-earliest", "--execute")
    assert f"only be reset if the group '{group}' is inactive" in reset
    kept = groups(java, "--delete-offsets", *which, "--topic", topic)
    assert "GroupSubscribedToTopicException" in kept
    unknown = groups(java, "--delete", "--group", java.unique("nobody"))
    assert "GroupIdNotFoundException" in unknown
    assert committed(java, group) == {f"{topic}-0": 2}


@pytest.mark.covers("S300")
def test_offsets_are_reset_by_every_rule(java: Steps, tmp_path: Path) -> None:
    """Ten records in one partition, a second apart; none in the other."""
    topic, group = java.topic(partitions=2), java.unique("group")
    for second in range(10):
        java.fill(topic, [second], partition=0, timestamp=1_000_000_000_000 + second * 1000)
    consumer = java.consumer(group)
    java("assign", consumer, partitions=[f"{topic}-0", f"{topic}-1"])
    java("commit", consumer, offsets={f"{topic}-0": 5, f"{topic}-1": 0})
    java.close(consumer)

    def reset(*rule: str, mode: str = "--execute", which: str = topic) -> int:
        """The new offset of partition 0, as the command tells it."""
        words = ("--reset-offsets", "--group", group, "--topic", which, *rule, mode)
        printed = groups(java, *words)
        (offset,) = re.findall(rf"^{group}\s+{topic}\s+0\s+(\d+)", printed, re.MULTILINE)
        return int(offset)

    assert reset("--to-latest", mode="--dry-run") == 10
    assert committed(java, group)[f"{topic}-0"] == 5
    assert reset("--to-current") == 5
    assert reset("--shift-by", "-2") == 3
    assert reset("--shift-by", "100") == 10  # no further than the end
    assert reset("--to-offset", "7", which=f"{topic}:0") == 7
    assert reset("--to-datetime", "2001-09-09T01:46:42.500") == 3
    assert reset("--by-duration", "PT1H") == 10  # nothing is as young as that
    assert reset("--to-earliest") == 0
    assert committed(java, group) == {f"{topic}-0": 0, f"{topic}-1": 0}
    file = tmp_path / "offsets.csv"
    file.write_text(f"{topic},0,8\n")
    which = ("--reset-offsets", "--group", group)
    groups(java, *which, "--from-file", str(file), "--execute")
    assert committed(java, group)[f"{topic}-0"] == 8
    exported = groups(java, *which, "--topic", topic, "--to-current", "--export", "--dry-run")
    assert sorted(exported.split()) == [f"{topic},0,8", f"{topic},1,0"]
    assert groups(java, "--delete-offsets", "--group", group, "--topic", f"{topic}:1")
    assert committed(java, group) == {f"{topic}-0": 8}


def test_members_of_the_new_protocol_show_their_epochs(java: Steps) -> None:
    topic, group = java.topic(partitions=2), java.unique("group")
    consumer = open_member(java, group)
    java("subscribe", consumer, topics=[topic])
    java.settle(consumer, partitions=2)
    describe = ("--describe", "--group", group)
    ((*_, count, epoch, assignment, target_epoch, target),) = rows(
        groups(java, *describe, "--members", "--verbose")
    )
    assert (count, assignment, target) == ("2", f"{topic}:0,1", f"{topic}:0,1")
    assert epoch == target_epoch
    state = groups(java, *describe, "--state", "--verbose")
    assert re.search(rf"uniform\s+Stable\s+{epoch}\s+{epoch}\s+1\b", state), state
    assert [group, "Consumer"] in rows(groups(java, "--list", "--type", "consumer"))


def test_get_offset_shell_takes_partitions_and_times(java: Steps) -> None:
    topic = java.topic(partitions=3)
    java.fill(topic, range(10), partition=1, timestamp=1000)
    java.fill(topic, range(5), partition=0, timestamp=2000)

    def offsets(*args: str, exit_code: int = 0) -> list[str]:
        printed = run(java, f"{TOOLS}.GetOffsetShell", *args, exit_code=exit_code)
        return [line.removeprefix(f"{topic}:") for line in printed.splitlines()]

    some = ("--topic-partitions", f"{topic}:0-2")
    assert offsets(*some, "--time", "earliest") == ["0:0", "1:0"]
    assert offsets(*some, "--time", "latest") == ["0:5", "1:10"]
    assert offsets(*some, "--time", "1500") == ["0:0"]
    assert offsets(*some, "--time", "max-timestamp") == ["0:0", "1:0"]
    assert offsets("--topic", topic, "--partitions", "1,2") == ["1:10", "2:0"]
    assert offsets("--topic", f"{topic}.*", "--exclude-internal-topics") == ["0:5", "1:10", "2:0"]
    (unknown,) = offsets("--topic", java.unique("none"), exit_code=1)
    assert "Could not match any topic-partitions" in unknown


def test_delete_records_command_takes_the_end_and_refuses_what_lies_behind(
    java: Steps, tmp_path: Path
) -> None:
    topic = java.topic(partitions=2)
    java.fill(topic, range(10), partition=1)
    wanted = [{"topic": topic, "partition": p, "offset": o} for p, o in ((1, -1), (0, 99))]
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps({"version": 1, "partitions": wanted}))
    printed = run(java, f"{TOOLS}.DeleteRecordsCommand", "--offset-json-file", str(file))
    assert f"partition: {topic}-1\tlow_watermark: 10" in printed
    assert re.search(rf"partition: {topic}-0\terror: .*OffsetOutOfRangeException", printed)


def configs(java: Steps, *args: str) -> str:
    return run(java, "kafka.admin.ConfigCommand", *args)


def test_config_command_alters_brokers_and_their_defaults(java: Steps) -> None:
    """A broker's own value outranks the default of all brokers, and both go again."""
    broker = ("--entity-type", "brokers", "--entity-name", "1")
    every = ("--entity-type", "brokers", "--entity-default")
    setting = "log.cleaner.backoff.ms"
    configs(java, *every, "--alter", "--add-config", f"{setting}=16000")
    configs(java, *broker, "--alter", "--add-config", f"{setting}=17000")
    java.until(lambda: f"{setting}=17000" in configs(java, *broker, "--describe"))
    told = configs(java, *broker, "--describe")
    assert f"DYNAMIC_BROKER_CONFIG:{setting}=17000" in told
    assert f"DYNAMIC_DEFAULT_BROKER_CONFIG:{setting}=16000" in told
    assert f"DEFAULT_CONFIG:{setting}=15000" in told
    assert f"{setting}=16000" in configs(java, *every, "--describe")
    configs(java, *broker, "--alter", "--delete-config", setting)
    configs(java, *every, "--alter", "--delete-config", setting)
    java.until(lambda: setting not in configs(java, *broker, "--describe"))
    java.until(lambda: setting not in configs(java, *every, "--describe"))


def test_config_command_alters_quotas_of_users_and_clients(java: Steps) -> None:
    user, client = java.unique("user"), java.unique("client")
    both = ("--entity-type", "users", "--entity-name", user)
    both += ("--entity-type", "clients", "--entity-name", client)
    rates = "producer_byte_rate=1024,consumer_byte_rate=2048"
    configs(java, *both, "--alter", "--add-config", rates)
    java.until(lambda: "producer_byte_rate=1024" in configs(java, *both, "--describe"))
    told = configs(java, *both, "--describe")
    assert f"Quota configs for user-principal '{user}', client-id '{client}'" in told
    assert "consumer_byte_rate=2048" in told
    configs(java, *both, "--alter", "--delete-config", "producer_byte_rate,consumer_byte_rate")
    java.until(lambda: configs(java, *both, "--describe").strip() == "")


def test_config_command_alters_groups_and_credentials(java: Steps) -> None:
    group, user = java.unique("group"), java.unique("user")
    which = ("--entity-type", "groups", "--entity-name", group)
    setting = "consumer.session.timeout.ms"
    configs(java, *which, "--alter", "--add-config", f"{setting}=50000")
    java.until(lambda: f"{setting}=50000" in configs(java, *which, "--describe"))
    configs(java, *which, "--alter", "--delete-config", setting)
    java.until(lambda: f"{setting}=50000" not in configs(java, *which, "--describe"))
    who = ("--entity-type", "users", "--entity-name", user)
    scram = "SCRAM-SHA-256=[iterations=4096,password=secret]"
    configs(java, *who, "--alter", "--add-config", scram)
    credentials = f"SCRAM credential configs for user-principal '{user}' are SCRAM-SHA-256="
    java.until(lambda: f"{credentials}iterations=4096" in configs(java, *who, "--describe"))
    configs(java, *who, "--alter", "--delete-config", "SCRAM-SHA-256")
    java.until(lambda: "SCRAM" not in configs(java, *who, "--describe"))
