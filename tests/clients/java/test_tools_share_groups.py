"""ShareGroupCommand, which is kafka-share-groups.sh, with the options that people use."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from mockbroker.client.connection import Connection
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.clients.java.steps import Steps
from tests.clients.java.test_tools import TOOLS, run
from tests.clients.java.test_tools_groups import rows

pytestmark = [pytest.mark.java, pytest.mark.parametrize("tour", ["4.3.1"], indirect=True)]

SHARE_GROUPS = f"{TOOLS}.consumer.group.ShareGroupCommand"


def share_groups(java: Steps, *args: str) -> str:
    return run(java, SHARE_GROUPS, *args)


class Member:
    """A member of a share group that only heartbeats."""

    def __init__(self, connection: Connection, group: str) -> None:
        self._connection = connection
        self._group = group
        self.epoch = 0
        self.partitions: list[int] = []

    def beat(self, *topics: str, epoch: int | None = None) -> int:
        """Returns the error code."""
        request = ShareGroupHeartbeatRequest(
            self._group,
            "member",
            self.epoch if epoch is None else epoch,
            subscribed_topic_names=list(topics) or None,
        )
        answer = self._connection.send(request, 1)
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.partitions = [p for t in answer.assignment.topic_partitions for p in t.partitions]
        return int(answer.error_code)

    def leave(self) -> None:
        self.beat(epoch=-1)


@pytest.fixture
def joined(java: Steps) -> Iterator[Callable[[str, str], Member]]:
    """Join a group as its only member, which gets all three partitions of a topic."""
    with ExitStack() as opened:

        def connect(host: str, port: int) -> Connection:
            return opened.enter_context(
                closing(Connection(host, port, "tool-member", timeout_s=20))
            )

        def join(group: str, topic: str) -> Member:
            host, port = java.peer.bootstrap_servers.split(",")[0].rsplit(":", 1)
            bootstrap = connect(host, int(port))
            find = FindCoordinatorRequest(coordinator_keys=[group])
            java.until(lambda: bootstrap.send(find, 4).coordinators[0].error_code == 0)
            coordinator = bootstrap.send(find, 4).coordinators[0]
            member = Member(connect(coordinator.host, coordinator.port), group)
            java.until(lambda: member.beat(topic, epoch=0) == 0)
            java.until(lambda: member.beat() == 0 and member.partitions == [0, 1, 2])
            return member

        yield join


def test_share_groups_are_listed_and_described(
    java: Steps, joined: Callable[[str, str], Member]
) -> None:
    topic, group = java.topic(partitions=3), java.unique("share")
    member = joined(group, topic)
    assert group in share_groups(java, "--list").split()
    assert [group, "Stable"] in rows(share_groups(java, "--list", "--state"))
    assert group not in share_groups(java, "--list", "--state", "empty")
    describe = ("--describe", "--group", group)
    state = share_groups(java, *describe, "--state", "--verbose")
    assert re.search(rf"{group}\s+127\.0\.0\.1:\d+\s+\(\d+\)\s+Stable\s+\d+\s+\d+\s+1\b", state)
    ((_, name, host, client, count, assignment),) = rows(share_groups(java, *describe, "--members"))
    assert (name, host, client, count) == ("member", "/127.0.0.1", "tool-member", "3")
    assert assignment == f"{topic}:0,1,2"
    offsets = rows(share_groups(java, *describe, "--offsets"))
    assert [row[1:] for row in offsets] == [[topic, str(p), "-", "-"] for p in range(3)]
    member.leave()


def test_start_offsets_are_reset_and_deleted(
    java: Steps, joined: Callable[[str, str], Member]
) -> None:
    topic, group = java.topic(partitions=3), java.unique("share")
    java.fill(topic, range(10), partition=1)
    member = joined(group, topic)
    reset = ("--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute")
    refused = run(java, SHARE_GROUPS, *reset, exit_code=1)
    assert f"Share group '{group}' is not empty." in refused
    member.leave()
    printed = sorted(rows(share_groups(java, *reset)))
    assert [row[-3:] for row in printed] == [[topic, str(p), "0"] for p in range(3)]
    described = rows(share_groups(java, "--describe", "--group", group, "--offsets"))
    assert [row[1:4] for row in described] == [[topic, str(p), "0"] for p in range(3)]
    assert [row[4] for row in described] == ["0", "10", "0"]
    deleted = share_groups(java, "--delete-offsets", "--group", group, "--topic", topic)
    assert [topic, "Successful"] in rows(deleted)
    none = share_groups(java, "--describe", "--group", group, "--offsets")
    assert "has no offset information" in none


def test_only_an_empty_share_group_is_deleted(
    java: Steps, joined: Callable[[str, str], Member]
) -> None:
    topic, group = java.topic(partitions=3), java.unique("share")
    member = joined(group, topic)
    delete = ("--delete", "--group", group)
    refused = share_groups(java, *delete)
    assert f"Share group '{group}' is not EMPTY." in refused
    member.leave()
    assert "was successful" in share_groups(java, *delete)
    assert group not in share_groups(java, "--list").split()
