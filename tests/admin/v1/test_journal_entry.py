"""One entry of the journal: its bytes, its causes and effects, and the rules."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka.admin import AdminClient

from mockbroker import Cluster
from mockbroker.admin.v1.frames import EXPLAINED_BYTES_MAX
from mockbroker.client import Client
from tests.support.http import HttpClient
from tests.support.librdkafka import TIMEOUT_S

ENTRIES = "/v1/journal/entries"


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    with Cluster(brokers=1, topics={"orders": 1}) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def admin(kafka: Cluster) -> HttpClient:
    return HttpClient(kafka.admin_url)


@pytest.fixture
def shop(kafka: Cluster) -> Iterator[Client]:
    with closing(Client(kafka.bootstrap_servers, client_id="shop")) as client:
        yield client


def last_seq(kafka: Cluster, **conditions: str) -> int:
    return kafka.journal.events(**conditions)[-1].seq  # type: ignore[arg-type]


def test_a_request_is_explained_byte_by_byte(
    kafka: Cluster, admin: HttpClient, shop: Client
) -> None:
    shop.produce("orders", ["coffee"])
    found = admin.get(f"{ENTRIES}/{last_seq(kafka, kind='request', api='Produce')}")
    frame = found["frame"]
    data = bytes.fromhex(frame["hex"])
    assert len(data) == frame["bytes"] == found["events"][0]["bytes"]
    fields = {field["path"]: field for field in frame["fields"]}
    name = fields["client_id"]
    assert b"shop" in data[name["start"] : name["end"]]
    assert fields["api_key"]["text"] == "0 PRODUCE"
    assert "coffee" in next(f["text"] for p, f in fields.items() if p.endswith("records[0]"))
    covered = {at for f in frame["fields"] for at in range(f["start"], f["end"])}
    assert covered == set(range(len(data)))


def test_an_answer_is_explained_too_and_other_entries_have_no_bytes(
    kafka: Cluster, admin: HttpClient, shop: Client
) -> None:
    shop.produce("orders", ["coffee"])
    answer = admin.get(f"{ENTRIES}/{last_seq(kafka, kind='response', api='Produce')}")
    paths = [field["path"] for field in answer["frame"]["fields"]]
    assert "responses[0].partition_responses[0].base_offset" in paths
    append = admin.get(f"{ENTRIES}/{last_seq(kafka, kind='append')}")
    assert (append["frame"], append["events"][0]["kind"]) == (None, "append")


def test_a_large_frame_is_told_and_not_sent(
    kafka: Cluster, admin: HttpClient, shop: Client
) -> None:
    shop.produce("orders", ["x" * EXPLAINED_BYTES_MAX])
    found = admin.get(f"{ENTRIES}/{last_seq(kafka, kind='request', api='Produce')}")
    assert (found["frame"]["hex"], found["frame"]["fields"]) == ("", [])
    assert found["frame"]["bytes"] > EXPLAINED_BYTES_MAX
    assert "without its bytes" in found["frame"]["note"]


def test_an_unknown_entry_is_not_found(admin: HttpClient) -> None:
    wrong = admin.request("GET", f"{ENTRIES}/999999")
    assert wrong.status == 404
    assert "the journal has no entry 999999; it has 1 to " in wrong.body["detail"]
    assert admin.request("GET", f"{ENTRIES}/0/links").status == 404


def test_effects_of_a_request_are_its_append_its_answer_and_the_fetch_it_completes(
    kafka: Cluster, admin: HttpClient, shop: Client
) -> None:
    with closing(Client(kafka.bootstrap_servers, client_id="reader")) as reader:
        end = reader.list_offsets("orders")[0].offset
        polled = threading.Thread(target=lambda: reader.fetch("orders", 0, end, max_wait_ms=60_000))
        polled.start()
        kafka.journal.wait(kind="request", api="Fetch", client_id="reader")
        shop.produce("orders", ["coffee"])
        polled.join()
    seq = last_seq(kafka, kind="request", api="Produce")
    links = admin.get(f"{ENTRIES}/{seq}/links")
    effects = {each["relation"]: each["seq"] for each in links["effects"]}
    assert set(effects) == {"append", "completes", "response"}
    fetched = admin.get(f"{ENTRIES}/{effects['completes']}/links")
    assert {each["relation"] for each in fetched["causes"]} == {"request", "completes"}
    assert seq in [each["seq"] for each in fetched["causes"]]
    append = admin.get(f"{ENTRIES}/{effects['append']}/links")
    assert [(each["relation"], each["seq"]) for each in append["causes"]] == [("request", seq)]


def test_the_cause_of_an_election_is_the_action_before(kafka: Cluster, admin: HttpClient) -> None:
    kafka.act("stop_broker", node=1)
    kafka.act("start_broker", node=1)
    action = last_seq(kafka, kind="action", change="stop_broker")
    effects = admin.get(f"{ENTRIES}/{action}/links")["effects"]
    elections = [each["seq"] for each in effects if each["kind"] == "election"]
    assert elections
    [cause] = admin.get(f"{ENTRIES}/{elections[0]}/links")["causes"]
    assert (cause["relation"], cause["seq"]) == ("action", action)


def test_a_handler_call_is_the_cause_of_its_events(
    kafka: Cluster, admin: HttpClient, shop: Client
) -> None:
    shop.topics.create("menu", partitions=1)
    topics = kafka.journal.events(kind="topics")[-1]
    [cause] = admin.get(f"{ENTRIES}/{topics.seq}/links")["causes"]
    assert (cause["relation"], cause["seq"]) == ("request", topics.cause_seq)
    assert "CreateTopics" in cause["text"]


def test_each_rule_says_why_it_did_not_fire(
    kafka: Cluster, admin: HttpClient, shop: Client
) -> None:
    rules = {
        "fires": {"match": {"api": "Produce"}, "do": {"delay": "1ms"}},
        "others": {"match": {"api": "Fetch"}, "do": {"delay": "1ms"}},
        "menu": {"match": {"api": "Produce", "topic": "menu"}, "do": {"delay": "1ms"}},
        "later": {"match": {"api": "Produce"}, "when": {"nth": 100}, "do": {"delay": "1ms"}},
    }
    for name, rule in rules.items():
        kafka.faults.add({"name": name, **rule})
    try:
        shop.produce("orders", ["coffee"])
        seq = last_seq(kafka, kind="request", api="Produce")
        found = {each["rule"]: each for each in admin.get(f"{ENTRIES}/{seq}/links")["rules"]}
    finally:
        kafka.faults.clear()
    assert found["fires"]["fired"]
    assert found["others"]["why"] == "it is for Fetch, not for Produce"
    assert found["menu"]["why"] == ("its condition topic: menu does not hold; here it is orders")
    assert found["later"]["why"].startswith("it matches, but its `when` held it back (nth)")


def test_secrets_are_not_among_the_bytes() -> None:
    options = {"security_protocol": "SASL_PLAINTEXT", "users": {"ann": "pa55word"}}
    with Cluster(brokers=1, **options) as kafka:  # type: ignore[arg-type]
        client = AdminClient(
            {
                "bootstrap.servers": kafka.bootstrap_servers,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "ann",
                "sasl.password": "pa55word",
            }
        )
        client.list_topics(timeout=TIMEOUT_S)
        admin = HttpClient(kafka.admin_url)
        seq = last_seq(kafka, kind="request", api="SaslAuthenticate")
        frame = admin.get(f"{ENTRIES}/{seq}")["frame"]
    assert b"pa55word" not in bytes.fromhex(frame["hex"])
    assert "pa55word" not in str(frame)
    assert frame["note"] == "Secrets are left out of the bytes."
