"""The cluster at an entry of its journal, compared with the cluster itself."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import msgspec
import pytest
from confluent_kafka import Consumer, Producer

from mockbroker import Cluster
from mockbroker.client import Client
from mockbroker.pipeline.past import checkpoints, views
from mockbroker.pipeline.saved import SavedJournal, open_journal
from tests.support.http import HttpClient
from tests.support.librdkafka import TIMEOUT_S

STATE = "/v1/journal/state"
LISTS = {
    "brokers": ("/v1/brokers", ()),
    "topics": ("/v1/topics", ()),
    "configs": ("/v1/configs", ()),
    "partitions": ("/v1/partitions", ("producers",)),
    "groups": ("/v1/groups", ()),
    "lag": ("/v1/lag", ()),
    "transactions": ("/v1/transactions", ()),
    "open_transactions": ("/v1/transactions/open", ()),
}


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    with Cluster(brokers=3) as cluster:
        cluster.topic("orders").create(2, 3)
        yield cluster


@pytest.fixture
def admin(kafka: Cluster) -> HttpClient:
    return HttpClient(kafka.admin_url)


def present(admin: HttpClient) -> dict[str, Any]:
    return {name: admin.get(path) for name, (path, _) in LISTS.items()}


def differences(now: Any, past: Any, path: str = "") -> list[str]:
    """Where the past says something else than the present; null says nothing."""
    if past is None:
        return []
    if isinstance(past, dict):
        return [
            each
            for name, value in past.items()
            for each in differences(now[name], value, f"{path}.{name}")
        ]
    if isinstance(past, list) and past and isinstance(past[0], dict):
        if len(now) != len(past):
            return [f"{path}: {len(now)} and {len(past)} rows"]
        pairs = zip(sorted(now, key=_key), sorted(past, key=_key), strict=True)
        return [each for a, b in pairs for each in differences(a, b, f"{path}[{_key(b)}]")]
    return [] if now == past else [f"{path}: {now!r} and {past!r}"]


def _key(row: dict[str, Any]) -> tuple[str, ...]:
    names = (
        *("node_id", "name", "group", "topic", "partition", "transactional_id", "member_id"),
        *("resource_type", "resource_name"),
    )
    return tuple(str(row.get(name, "")) for name in names)


def agree(now: dict[str, Any], past: dict[str, Any]) -> None:
    found = []
    for name, (_, left_out) in LISTS.items():
        rows = [{k: v for k, v in row.items() if k not in left_out} for row in past[name]]
        found += differences(now[name], rows, name)
    assert found == []


def busy(kafka: Cluster) -> tuple[Consumer, Producer]:
    """A member with a commit, and an open transaction."""
    with closing(Client(kafka.bootstrap_servers)) as client:
        client.produce("orders", ["tea"] * 7, partition=0)
    servers = {"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0}
    consumer = Consumer(
        {
            **servers,
            "group.id": "billing",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["orders"])
    assert consumer.poll(TIMEOUT_S) is not None
    consumer.commit(asynchronous=False)
    producer = Producer({**servers, "transactional.id": "till"})
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    producer.produce("orders", "coffee", partition=1)
    assert producer.flush(TIMEOUT_S) == 0
    return consumer, producer


def test_the_last_moment_is_the_present(kafka: Cluster, admin: HttpClient) -> None:
    consumer, producer = busy(kafka)
    alter(kafka, "46000")
    kafka.act("stop_broker", node=2)
    kafka.clock.freeze()
    agree(present(admin), admin.get(STATE))
    [open_one] = admin.get(STATE)["open_transactions"]
    assert (open_one["topic"], open_one["partition"], open_one["hangs"]) == ("orders", 1, False)
    kafka.act("cut_network", nodes=3, both_ways=False)
    kafka.act("delay_network", nodes=1, to=2, by="20ms")
    links = {(link["from"], link["to"]): link for link in admin.get(STATE)["links"]}
    assert [pair for pair, link in links.items() if not link["up"]] == [(3, 1), (3, 2)]
    assert links[1, 2]["delay_ms"] == 20
    kafka.clock.thaw()
    consumer.close()
    producer.purge()


def test_a_moment_stays_what_it_was(kafka: Cluster, admin: HttpClient) -> None:
    consumer, producer = busy(kafka)
    kafka.clock.freeze()
    seq, then = kafka.journal.last_seq, present(admin)
    kafka.clock.thaw()
    producer.commit_transaction(TIMEOUT_S)
    consumer.close()
    kafka.act("stop_broker", node=2)
    kafka.topic("menu").create(1, 1)
    agree(then, admin.get(STATE, seq=seq))
    agree(then, admin.get(STATE, seq=seq))  # from a checkpoint
    assert admin.get(STATE)["transactions"][0]["state"] == "CompleteCommit"
    assert [each["name"] for each in admin.get(STATE, seq=0)["topics"]] == []


def alter(kafka: Cluster, value: str | None) -> None:
    """Set a config of each type of resource, or delete it."""
    kafka.topic("orders").alter(configs={"retention.ms": value})
    for kind, name, config in (
        ("broker", "", "log.retention.ms"),
        ("broker", "2", "log.cleaner.backoff.ms"),
        ("broker", "2", "listener.name.internal.ssl.keystore.password"),
        ("group", "billing", "consumer.session.timeout.ms"),
        ("client_metrics", "all", "interval.ms"),
    ):
        kafka.act("alter_configs", kind=kind, name=name, configs={config: value})


def configs_at(admin: HttpClient, seq: int | None = None) -> dict[str, dict[str, str]]:
    past = admin.get(STATE) if seq is None else admin.get(STATE, seq=seq)
    found = {f"{c['resource_type']} {c['resource_name']}": c["configs"] for c in past["configs"]}
    return found | {topic["name"]: topic["configs"] for topic in past["topics"]}


def test_configs_are_those_of_the_moment(kafka: Cluster, admin: HttpClient) -> None:
    before = kafka.journal.last_seq
    alter(kafka, "46000")
    kafka.topic("menu").create(1, 1, configs={"segment.ms": "7"})
    changed = kafka.journal.last_seq
    alter(kafka, None)
    kafka.topic("menu").delete()
    was, own, now = configs_at(admin, before), configs_at(admin, changed), configs_at(admin)
    assert (was, now) == ({"broker ": {"min.insync.replicas": "1"}, "orders": {}},) * 2
    assert own == {
        "orders": {"retention.ms": "46000"},
        "menu": {"segment.ms": "7"},
        "broker ": {"log.retention.ms": "46000", "min.insync.replicas": "1"},
        "broker 2": {
            "log.cleaner.backoff.ms": "46000",
            "listener.name.internal.ssl.keystore.password": "[hidden]",
        },
        "group billing": {"consumer.session.timeout.ms": "46000"},
        "client_metrics all": {"interval.ms": "46000"},
    }
    assert not any("config" in sentence for sentence in admin.get(STATE)["unknown"])


def test_configs_of_a_journal_without_its_beginning_are_those_of_the_moment(
    kafka: Cluster, admin: HttpClient
) -> None:
    alter(kafka, "46000")
    kafka.journal.clear()
    seq, then = kafka.journal.last_seq, present(admin)
    alter(kafka, "47000")
    kafka.topic("orders").delete()
    past = admin.get(STATE, seq=seq)
    assert past["configs"] == then["configs"]
    assert then["configs"] != admin.get("/v1/configs")
    assert [topic["configs"] for topic in past["topics"]] == [{"retention.ms": "46000"}]


def test_a_saved_journal_tells_the_same(
    kafka: Cluster, admin: HttpClient, tmp_path_factory: pytest.TempPathFactory
) -> None:
    consumer, producer = busy(kafka)
    alter(kafka, "46000")
    kafka.clock.freeze()
    path = tmp_path_factory.mktemp("saved") / "journal.mbj"
    now = present(admin)
    kafka.journal.save_entries(path)
    kafka.clock.thaw()
    journal = open_journal(path)
    assert journal.image is not None
    past = checkpoints.Checkpoints()
    past.begin(journal.part(0, 2**62), journal.image)
    image = past.image_at(journal.part(0, journal.last_seq), journal.last_seq)
    assert {
        key: each.high_watermark for key, each in image.partitions.items() if key[0] == "orders"
    } == {
        (each["topic"], each["partition"]): each["high_watermark"]
        for each in now["partitions"]
        if each["topic"] == "orders"
    }
    assert image.groups["billing"].state == "Stable"
    assert [msgspec.to_builtins(each) for each in views.own_config_views(image)] == now["configs"]
    assert image.topics["orders"].configs == {"retention.ms": "46000"}
    consumer.close()
    producer.purge()


def test_a_journal_without_its_beginning_is_undone_from_the_present(
    kafka: Cluster, admin: HttpClient
) -> None:
    consumer, producer = busy(kafka)
    kafka.clock.freeze()
    kafka.journal.clear()
    before = present(admin)
    seq = kafka.journal.last_seq
    kafka.clock.thaw()
    with closing(Client(kafka.bootstrap_servers)) as client:
        client.produce("orders", ["late"] * 3, partition=0)
    producer.commit_transaction(TIMEOUT_S)
    consumer.close()
    kafka.act("stop_broker", node=2)
    past = admin.get(STATE, seq=seq)
    assert past["complete"]
    assert any(text.startswith("the changes before entry") for text in past["unknown"])
    agree(before, past)


def test_parts_and_one_topic_can_be_asked_for(kafka: Cluster, admin: HttpClient) -> None:
    kafka.topic("menu").create(1, 1)
    found = admin.get(STATE, parts="topics", topic="menu")
    assert [each["topic"] for each in found["partitions"]] == ["menu"]
    assert (found["groups"], found["cluster"], found["transactions"]) == (None, None, None)
    both = admin.get(STATE, parts=["groups", "cluster"])
    assert both["topics"] is None
    assert (both["groups"], both["cluster"]["brokers"]) == ([], 3)


def test_a_moment_outside_the_journal_is_not_found(kafka: Cluster, admin: HttpClient) -> None:
    answer = admin.request("GET", f"{STATE}?seq=999999")
    assert answer.status == 404
    assert "not 999999" in answer.body["detail"]


def test_every_moment_is_the_same_with_and_without_checkpoints(
    kafka: Cluster, admin: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer, producer = busy(kafka)
    alter(kafka, "46000")
    producer.abort_transaction(TIMEOUT_S)
    consumer.close()
    alter(kafka, None)
    journal = SavedJournal(_entries(admin), "journal")
    whole = journal.part(0, 2**62)
    monkeypatch.setattr(checkpoints, "STEP_ENTRIES", 17)
    steps = checkpoints.Checkpoints()
    steps.begin(whole, journal.image)
    for seq in itertools.chain(range(journal.last_seq, 0, -13), range(1, journal.last_seq, 11)):
        after = steps.needed_after(seq, journal.first_seq)
        stepped = steps.image_at(journal.part(after, seq), seq)
        fresh = checkpoints.Checkpoints()
        fresh.begin(whole, journal.image)
        direct = fresh.image_at(journal.part(0, seq), seq)
        assert stepped.__dict__ == direct.__dict__


def _entries(admin: HttpClient) -> list[Any]:
    from mockbroker.pipeline.spool.format import decode, whole

    return list(whole(decode(admin.raw("GET", "/v1/journal/entries").body)))


def test_a_run_that_was_killed_tells_what_its_entries_tell(
    kafka: Cluster, admin: HttpClient
) -> None:
    with closing(Client(kafka.bootstrap_servers)) as client:
        client.produce("orders", ["tea"] * 7, partition=0)
    entries = _entries(admin)[:-1]
    journal = SavedJournal(entries, "journal")
    past = checkpoints.Checkpoints()
    past.begin(journal.part(0, 2**62), journal.image)
    image = past.image_at(journal.part(0, journal.last_seq), journal.last_seq)
    assert not image.is_complete
    assert image.partitions["orders", 0].log_end_offset == 7
    assert msgspec.to_builtins(image.partitions["orders", 0]) is not None
