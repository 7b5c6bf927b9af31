"""Members of share and streams groups in a soak: each does the work of its kind."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

import pytest

from bench import soak_members
from bench.soak_lives import TOPIC
from bench.soak_members import shared, streams
from mockbroker import Cluster
from mockbroker.client import Client
from mockbroker.server.config import TopicSpec
from tests.support.librdkafka import set_group_configs
from tests.support.waiting import wait_until

RECORDS = 30


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """What the members did."""
    counts: Counter[str] = Counter()
    monkeypatch.setattr(soak_members, "done", counts)
    return counts


@pytest.mark.parametrize(("kind", "use"), [("share", shared), ("streams", streams)])
def test_a_member_processes_all_records_and_leaves(
    kind: str,
    use: Callable[[str, str], None],
    done: Counter[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended = threading.Event()
    monkeypatch.setattr(soak_members, "ended", ended)
    configs = {"group.streams.initial.rebalance.delay.ms": "0"}
    with Cluster(brokers=1, topics=[TopicSpec(TOPIC, 3)], configs=configs) as kafka:
        servers = kafka.bootstrap_servers
        set_group_configs(servers, "share-0", share_auto_offset_reset="earliest")
        with Client(servers) as client:
            for number in range(RECORDS):
                client.produce(TOPIC, ["value"], partition=number % 3)
        member = threading.Thread(target=use, args=(servers, f"{kind}-0"))
        member.start()
        try:
            wait_until(lambda: done[kind] >= RECORDS, what="the records")
        finally:
            ended.set()
            member.join()
        if kind == "streams":
            with Client(servers) as client:
                committed = client.groups.committed("streams")
                described = client.groups.describe_streams("streams")
                counted = list(client.consume("streams-changelog"))
            assert committed == {(TOPIC, each): RECORDS // 3 for each in range(3)}
            assert sum(int(each.record.value or b"") for each in counted) == RECORDS
            assert described.members == []
