"""Whole runs: live ones, with gaps, without secrets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from mockbroker import Cluster
from mockbroker.pipeline.convert.run import (
    BROKER_GONE,
    convert_export,
    convert_run,
    convert_spool,
    follow_spool,
)
from mockbroker.pipeline.spool.format import FORMAT, RunEnded, RunStarted, encode
from mockbroker.pipeline.spool.writer import SpoolWriter
from mockbroker.pipeline.store import StoreError, open_store
from mockbroker.server.config import TopicSpec
from tests.pipeline.convert.support import Tables, tables_of
from tests.support.librdkafka import TIMEOUT_S, produce, settings
from tests.support.waiting import wait_until


def send(kafka: Cluster, *values: str, **config: object) -> None:
    produce(kafka.bootstrap_servers, "t", values, **config)


def test_a_cluster_with_a_journal_dir_leaves_a_complete_run(tmp_path: Path) -> None:
    with Cluster(brokers=1, topics={"t": 1}, journal_dir=tmp_path) as kafka:
        send(kafka, "a", "b", "c")
        run = kafka.journal_run
    tables = Tables(tmp_path, run)
    assert [row["offset"] for row in tables.rows("records")] == [0, 1, 2]
    assert tables.rows("gaps") == []
    assert next(row["change"] for row in tables.rows("cluster", topic="t")) == "TopicsChanged"
    assert tables.store.runs[0].last_seq > 0
    assert not (tmp_path / "_spool").exists()


def test_each_changed_config_is_a_row_with_its_resource_and_its_request(tmp_path: Path) -> None:
    with Cluster(brokers=1, topics={"t": 1}, journal_dir=tmp_path) as kafka:
        kafka.topic("u").create(1, 1, configs={"segment.ms": "7"})
        topic = ConfigResource(ConfigResource.Type.TOPIC, "t")
        for name, value in (("retention.ms", "5"), ("segment.ms", "9")):
            entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            topic.add_incremental_config(entry)
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        admin.incremental_alter_configs([topic])[topic].result(TIMEOUT_S)
        [told] = kafka.journal.events(kind="configs", topic="t")
        [asked] = kafka.journal.events(kind="request", api="IncrementalAlterConfigs")
        assert told.cause_seq == asked.seq
        kafka.act("alter_configs", kind="broker", name="1", configs={"log.cleaner.threads": "2"})
        run = kafka.journal_run
    tables = Tables(tmp_path, run)
    topic_id = tables.rows("cluster", topic="t", change="TopicsChanged")[0]["topic_id"]
    rows = tables.rows("cluster", change="ConfigsChanged")
    assert [(row["topic"], row["topic_id"], row["broker"]) for row in rows] == [
        ("t", topic_id, None),
        ("t", topic_id, None),
        (None, None, 1),
    ]
    assert json.loads(rows[0]["details"]) == {
        "resource_type": "topic",
        "resource_name": "t",
        "name": "retention.ms",
        "former": None,
        "value": "5",
    }
    [created] = tables.rows("cluster", topic="u", change="TopicsChanged")
    assert json.loads(created["details"])["configs"] == {"segment.ms": "7"}


def test_what_brokers_send_each_other_adds_no_row_to_any_table(tmp_path: Path) -> None:
    """Followers' fetches are not those of consumers, and no rule did anything."""
    with Cluster(topics=[TopicSpec("t", 1, 3)], journal_dir=tmp_path, journal_hops=True) as kafka:
        send(kafka, "a", "b", "c", acks="all")
        hops = kafka.journal.at_least(4, kind=["hop", "hop_answer"], api="Fetch", topic="t")
        run = kafka.journal_run
    tables = Tables(tmp_path, run)
    assert [row["offset"] for row in tables.rows("records")] == [0, 1, 2]
    for table in ("gaps", "faults", "fetches", "deliveries"):
        assert tables.rows(table) == []
    asked = {row["seq"] for row in tables.rows("requests")}
    assert asked.isdisjoint(hop.seq for hop in hops)
    assert tables.store.runs[0].last_seq >= hops[-1].seq


def test_two_clusters_share_a_directory(tmp_path: Path) -> None:
    for _ in range(2):
        with Cluster(brokers=1, topics={"t": 1}, journal_dir=tmp_path) as kafka:
            send(kafka, "a")
    store = open_store(tmp_path)
    store.check()
    assert len(store.runs) == 2


def test_tables_grow_while_the_run_goes_on(tmp_path: Path) -> None:
    """The spool is followed here, in this process; a run that is not over is not complete."""
    with Cluster(brokers=1, topics={"t": 1}) as kafka:
        writer = kafka.call(lambda cluster: SpoolWriter(cluster, tmp_path, "r"))
        send(kafka, "a")
        grown = False

        def lives() -> bool:
            nonlocal grown
            (run,) = open_store(tmp_path).runs
            assert not run.complete
            if not grown and run.rows.get("records") == 1:
                grown = True
                send(kafka, "b")
                kafka.call(lambda _: writer.stop())
                writer.close()
            return True

        done = follow_spool(tmp_path, "r", lives, roll_s=0, poll_s=0.01)
    assert done.complete
    assert done.rows["records"] == 2


def test_a_spool_that_breaks_off_gives_an_incomplete_run_of_what_is_there(tmp_path: Path) -> None:
    with Cluster(brokers=1, topics={"t": 1}) as kafka:
        writer = kafka.call(lambda cluster: SpoolWriter(cluster, tmp_path, "r"))
        send(kafka, "a", "b")
        kafka.call(lambda _: writer.stop(is_clean=False))
        writer.close()
    [file] = (tmp_path / "_spool" / "r").iterdir()
    file.write_bytes(file.read_bytes()[:-7])
    done = convert_spool(tmp_path)
    assert not done.complete
    assert "000000.spool at byte" in done.reason
    assert done.rows["records"] == 2
    with pytest.raises(StoreError, match=r"000000\.spool at byte"):
        open_store(tmp_path).check()


@pytest.mark.parametrize("ended", [True, False])
def test_a_spool_is_complete_if_its_run_has_ended(tmp_path: Path, ended: bool) -> None:
    """Each of its entries is whole; the last one says whether more would have come."""
    entries = [RunStarted(FORMAT, "r", "c", 1, 2, 0, []), RunEnded(0, 1, 2)]
    file = tmp_path / "_spool" / "r" / "000000.spool"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"".join(map(encode, entries if ended else entries[:1])))
    done = convert_spool(tmp_path)
    assert (done.complete, done.reason) == (ended, "" if ended else BROKER_GONE)


def test_a_journal_that_forgot_its_beginning_says_so(tmp_path: Path) -> None:
    with Cluster(brokers=1, topics={"t": 1}, journal_bytes=60_000) as kafka:
        for number in range(100):
            send(kafka, f"{number}" * 300)
        tables = tables_of(kafka)
    [gap] = tables.rows("gaps")
    assert gap["first_seq"] == 1
    records = tables.rows("records")
    assert 0 < len(records) < 100
    assert min(row["append_seq"] for row in records) > gap["last_seq"]
    assert {row["topic_id"] for row in records} != {None}


def test_going_back_to_a_snapshot_is_a_gap(tmp_path: Path) -> None:
    with Cluster(brokers=1, topics={"t": 1}, journal_dir=tmp_path) as kafka:
        send(kafka, "a")
        image = kafka.snapshot()
        send(kafka, "b")
        kafka.restore(image)
        send(kafka, "c")
        run = kafka.journal_run
    tables = Tables(tmp_path, run)
    [gap] = tables.rows("gaps")
    assert gap["first_seq"] == gap["last_seq"]
    told_seq = gap["first_seq"]
    records = tables.rows("records")
    before = [row["offset"] for row in records if row["append_seq"] < told_seq]
    after = [row["offset"] for row in records if row["append_seq"] > told_seq]
    assert (before, after) == ([0, 1], [1])


def test_no_secret_reaches_the_disk(tmp_path: Path) -> None:
    secrets = [b"alices-password", b"wrong-password", b"bobs-new-password"]
    with Cluster(
        brokers=1,
        topics={"t": 1},
        security_protocol="SASL_PLAINTEXT",
        users={"alice": "alices-password"},
    ) as kafka:
        writer = kafka.call(lambda cluster: SpoolWriter(cluster, tmp_path, "r"))
        login = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "alice",
            "sasl.password": "alices-password",
        }
        send(kafka, "a", **login)
        mistaken = {**login, "sasl.password": "wrong-password"}
        wrong = Consumer(settings(kafka.bootstrap_servers, group_id="g", **mistaken))
        with pytest.raises(KafkaException):
            wrong.list_topics(timeout=2)
        wrong.close()
        admin = AdminClient(settings(kafka.bootstrap_servers, **login))
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        change = UserScramCredentialUpsertion("bob", info, b"bobs-new-password")
        admin.alter_user_scram_credentials([change])["bob"].result(TIMEOUT_S)
        kafka.call(lambda _: writer.stop())
        writer.close()
    raw = b"".join(file.read_bytes() for file in (tmp_path / "_spool").rglob("*.spool"))
    convert_spool(tmp_path)
    tables = Tables(tmp_path)
    requests = tables.rows("requests", api="SaslAuthenticate")
    assert requests
    assert any(row["errors"] == ["SASL_AUTHENTICATION_FAILED"] for row in requests)
    assert any(row["errors"] == [] for row in requests)
    assert {row["principal"] for row in tables.rows("requests", api="Produce")} == {"User:alice"}
    assert tables.rows("requests", api="AlterUserScramCredentials")
    assert b"User:alice" in raw
    for secret in secrets:
        assert secret not in raw


def test_a_run_that_is_there_is_not_overwritten_by_an_export(tmp_path: Path) -> None:
    entries = [RunStarted(1, "r", "c", 1, 2, 0, []), RunEnded(0, 1, 2)]
    assert convert_run(entries, tmp_path, "r").complete
    with pytest.raises(StoreError, match="has a run r already"):
        convert_run(entries, tmp_path, "r")


def test_an_export_without_a_name_has_that_of_its_cluster_and_its_last_entry(
    tmp_path: Path,
) -> None:
    entries = [RunStarted(1, "r", "c", 1, 2, 0, []), RunEnded(7, 1, 2)]
    made = convert_export(b"".join(map(encode, entries)), tmp_path)
    assert (made.run, made.last_seq) == ("c-7", 7)
    with pytest.raises(StoreError, match="is not whole"):
        convert_export(encode(entries[0]), tmp_path)


def test_the_ways_of_a_run_give_the_same_tables(tmp_path: Path) -> None:
    with Cluster(brokers=1, topics={"t": 1}) as kafka:
        send(kafka, "a", "b")
        wait_until(lambda: len(kafka.records("t")) == 2)
        writer = kafka.call(lambda cluster: SpoolWriter(cluster, tmp_path / "spooled", "r"))
        kafka.call(lambda _: writer.stop())
        kafka.journal.export(tmp_path / "exported", "r")
        writer.close()
    convert_spool(tmp_path / "spooled")
    spooled, exported = Tables(tmp_path / "spooled"), Tables(tmp_path / "exported")
    assert spooled.store.runs[0].rows == exported.store.runs[0].rows
    for table in spooled.store.runs[0].rows:
        assert spooled.rows(table) == exported.rows(table)
