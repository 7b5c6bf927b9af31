"""Rules, actions and the clock over HTTP, and their effects on a client."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from mockbroker import Cluster
from tests.support.http import HttpClient
from tests.support.librdkafka import TIMEOUT_S

LOSE_ONE_ACK = {
    "name": "lose-one-ack",
    "rules": [
        {
            "match": {"api": "Produce", "topic": "orders"},
            "when": {"times": 1},
            "do": {"drop_reply": {"then": "reset"}},
        }
    ],
}


@pytest.fixture(autouse=True)
def clean(kafka: Cluster) -> None:
    kafka.faults.clear()


def produced(kafka: Cluster, value: str) -> None:
    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True, "log_level": 0}
    )
    producer.produce("orders", value, partition=0)
    assert producer.flush(TIMEOUT_S) == 0


def test_a_lost_ack_is_sent_again_and_stored_once(kafka: Cluster, admin: HttpClient) -> None:
    added = admin.post("/v1/faults", LOSE_ONE_ACK, 201)
    assert (added["name"], added["rules"][0]["hits"]) == ("lose-one-ack", 0)
    before = kafka.journal.last_seq
    produced(kafka, "coffee")
    rule = admin.post("/v1/faults/lose-one-ack/wait", {"hits": 1})
    assert (rule["hits"], rule["left"]) == (1, 0)
    assert rule["last"]["api"] == "Produce"
    answered = kafka.journal.at_least(2, kind="response", api="Produce", after_seq=before)
    assert answered[0].request_seq != answered[1].request_seq
    kafka.journal.exactly(1, kind="append", topic="orders", after_seq=before)
    assert admin.get("/v1/faults/lose-one-ack")["rules"][0]["hits"] == 1


def test_sets_are_added_whole_listed_and_taken_away(admin: HttpClient) -> None:
    admin.post("/v1/faults", LOSE_ONE_ACK, 201)
    assert admin.request("POST", "/v1/faults", LOSE_ONE_ACK).status == 409
    two = {"rules": [{"do": {"delay": "1s"}}, {"match": {"topik": "x"}, "do": {"delay": "1s"}}]}
    refused = admin.request("POST", "/v1/faults", two)
    assert (refused.status, refused.body["field"]) == (400, "rules[1].match.topik")
    assert "did you mean 'topic'" in refused.body["detail"]
    assert [each["name"] for each in admin.get("/v1/faults")] == ["lose-one-ack"]
    assert admin.request("DELETE", "/v1/faults/lose-one-ack").status == 204
    assert admin.request("DELETE", "/v1/faults/lose-one-ack").status == 404
    assert admin.get("/v1/faults") == []


def test_a_rule_without_a_name_gets_one(admin: HttpClient) -> None:
    one = {"match": {"api": "Fetch"}, "do": {"delay": "5ms"}}
    assert admin.post("/v1/faults", one, 201)["name"] == "fault-1"
    assert admin.post("/v1/faults", one, 201)["name"] == "fault-2"
    assert admin.request("DELETE", "/v1/faults").status == 204


def test_a_rule_that_does_not_fire_says_why(kafka: Cluster, admin: HttpClient) -> None:
    rule = {"match": {"api": "Produce", "client_id": "nobody"}, "do": {"drop_request": {}}}
    admin.post("/v1/faults", {"name": "never", **rule}, 201)
    produced(kafka, "tea")
    answer = admin.request("POST", "/v1/faults/never/wait", {"timeout_ms": 1})
    assert answer.status == 408
    assert "client_id" in answer.body["detail"]


def test_what_is_held_is_shown_edited_and_let_go(kafka: Cluster, admin: HttpClient) -> None:
    rule = {"match": {"api": "Produce"}, "when": {"times": 1}, "do": {"hold": {"phase": "before"}}}
    admin.post("/v1/faults", {"name": "stop", **rule}, 201)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    producer.produce("orders", "juice", partition=0)
    producer.poll(0)
    admin.post("/v1/faults/stop/wait", {"hits": 1})
    [held] = admin.get("/v1/held")
    assert (held["rule"], held["phase"], held["api"]) == ("stop", "before", "Produce")
    assert held["request"]["topic_data"]
    wrong = admin.request("POST", f"/v1/held/{held['id']}", {"verdict": "release", "error": 3})
    assert (wrong.status, wrong.body["field"]) == (400, "error")
    assert admin.request("POST", "/v1/held/999", {}).status == 404
    assert admin.request("POST", f"/v1/held/{held['id']}", {}).status == 204
    assert producer.flush(TIMEOUT_S) == 0


def test_an_action_changes_the_cluster_and_is_told(kafka: Cluster, admin: HttpClient) -> None:
    admin.post("/v1/actions", {"stop_broker": {"node": 3, "how": "unclean"}})
    assert admin.get("/v1/brokers")[2]["state"] == "stopped"
    again = admin.request("POST", "/v1/actions", {"stop_broker": {"node": 3}})
    assert (again.status, again.body["detail"]) == (409, "broker 3 is stopped already")
    admin.post("/v1/actions", {"start_broker": {"node": 3}})
    assert admin.get("/v1/brokers")[2]["state"] == "running"
    kafka.journal.in_order(
        {"kind": "action", "change": "stop_broker"},
        {"kind": "action", "change": "start_broker"},
    )


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"stop_broke": {"node": 3}}, 400, "did you mean 'stop_broker'"),
        ({"stop_broker": {"nod": 3}}, 400, "did you mean 'node'"),
        ({"stop_broker": {"node": 9}}, 409, "9"),
        ({"add_broker": {"node": 2**31}}, 409, "2147483648 cannot be"),
        ({"add_broker": {"node": 10**30}}, 400, "too large a number"),
        ({"add_broker": {"node": 9, "rack": "x" * 1001}}, 400, "1000 characters"),
        ({"pause_broker": {"node": 3, "fence_after": "9" * 15 + "d"}}, 400, "a hundred years"),
        ({}, 400, "one action"),
        ({"stop_broker": {"node": 3}, "start_broker": {"node": 3}}, 400, "one action"),
    ],
    ids=str,
)
def test_an_action_that_cannot_be_is_refused(
    admin: HttpClient, body: object, status: int, words: str
) -> None:
    answer = admin.request("POST", "/v1/actions", body)
    assert answer.status == status
    assert words in answer.body["detail"]


def test_the_clock_is_frozen_moved_and_let_go(admin: HttpClient) -> None:
    frozen = admin.post("/v1/clock", {"freeze": True})
    assert frozen["rate"] == 0
    assert admin.get("/v1/clock") == frozen
    moved = admin.post("/v1/clock", {"advance_ms": "1h"})
    assert moved["now_ms"] == frozen["now_ms"] + 3_600_000
    assert admin.post("/v1/clock", {"freeze": False})["rate"] == 1
    admin.post("/v1/clock", {"advance_ms": 1000, "only": "retention"})


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"rate": -1}, "rate"),
        ({"freeze": True, "rate": 2}, "rate"),
        ({"advance_ms": "soon"}, "advance_ms"),
        ({"only": "retention"}, "only"),
        ({"advance_ms": 1, "only": "everything"}, "only"),
        ({"speed": 2}, "speed"),
    ],
    ids=str,
)
def test_a_clock_that_cannot_be_is_refused(admin: HttpClient, body: object, field: str) -> None:
    answer = admin.request("POST", "/v1/clock", body)
    assert (answer.status, answer.body["field"]) == (400, field)
