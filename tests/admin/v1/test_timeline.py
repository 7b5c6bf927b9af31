"""The timeline: requests as spans, sampled and in pieces."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from mockbroker import Cluster
from mockbroker.client import Client
from mockbroker.client.errors import ClientError
from tests.support.http import HttpClient

TIMELINE = "/v1/journal/timeline"


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    with Cluster(brokers=1, topics={"orders": 1, "other": 1}) as cluster:
        yield cluster


@pytest.fixture
def admin(kafka: Cluster) -> HttpClient:
    return HttpClient(kafka.admin_url)


@pytest.fixture
def shop(kafka: Cluster) -> Iterator[Client]:
    with closing(Client(kafka.bootstrap_servers, client_id="shop")) as client:
        yield client


def test_a_request_is_a_span_from_its_arrival_to_its_answer(
    admin: HttpClient, shop: Client
) -> None:
    shop.produce("orders", ["coffee"])
    found = admin.get(TIMELINE, api="Produce")
    [span], [lane] = found["spans"], found["lanes"]
    assert (span["api"], span["client_id"], span["state"]) == ("Produce", "shop", "answered")
    assert span["targets"] == [["orders", 0]]
    assert span["start_ns"] <= span["end_ns"]
    assert (lane["connection"], lane["broker"], lane["client_id"]) == (
        span["connection"],
        1,
        "shop",
    )
    event = admin.get(f"/v1/journal/entries/{span['response_seq']}")["events"][0]
    assert (event["kind"], event["request_seq"]) == ("response", span["seq"])


def test_only_requests_that_meet_the_filter_are_shown(admin: HttpClient, shop: Client) -> None:
    shop.produce("orders", ["coffee"])
    shop.produce("other", ["tea"])
    topics = {tuple(span["targets"][0]) for span in admin.get(TIMELINE, topic="ot*")["spans"]}
    assert ("other", 0) in topics
    assert ("orders", 0) not in topics
    assert admin.get(TIMELINE, error="any")["spans"] == []
    wrong = admin.request("GET", f"{TIMELINE}?api=Prodoce")
    assert (wrong.status, wrong.body["field"]) == (400, "api")


def test_the_next_window_has_what_is_new_and_what_has_ended_since(
    kafka: Cluster, admin: HttpClient, shop: Client
) -> None:
    kafka.faults.add({"name": "stop", "match": {"api": "Produce"}, "do": {"hold": {}}})
    waiting = threading.Thread(target=lambda: shop.produce("orders", ["coffee"]))
    waiting.start()
    held = admin.post("/v1/held/wait", {})
    first = admin.get(TIMELINE, api="Produce")
    [span] = first["spans"]
    assert (span["state"], span["held_id"], span["end_ms"]) == ("held", held["id"], None)
    admin.post(f"/v1/held/{held['id']}", {}, 204)
    waiting.join()
    second = admin.get(TIMELINE, after=first["next"], api="Produce")
    [again] = second["spans"]
    assert (again["seq"], again["state"], again["rules"]) == (span["seq"], "answered", ["stop"])
    assert admin.get(TIMELINE, after=second["next"])["spans"] == []


def test_what_stands_out_is_kept_and_the_rest_is_sampled(
    kafka: Cluster, admin: HttpClient, shop: Client
) -> None:
    kafka.faults.add(
        {
            "name": "refuse",
            "match": {"api": "Produce"},
            "when": {"nth": 7},
            "do": {"error": "NOT_ENOUGH_REPLICAS"},
        }
    )
    leader = shop.leader("orders", 0)
    for number in range(40):
        try:
            shop.produce("orders", [f"{number}"])
        except Exception as error:
            assert "NOT_ENOUGH_REPLICAS" in str(error)  # noqa: PT017
    assert leader is shop.leader("orders", 0)
    whole = admin.get(TIMELINE, api="Produce", limit=1000)
    assert whole["left_out"] == 0
    few = admin.get(TIMELINE, api="Produce", limit=5)
    assert len(few["spans"]) == 5
    assert few["left_out"] == len(whole["spans"]) - 5
    assert ["NOT_ENOUGH_REPLICAS"] in [span["errors"] for span in few["spans"]]
    assert [span["seq"] for span in few["spans"]] == sorted(span["seq"] for span in few["spans"])


def test_events_of_the_cluster_are_marks(kafka: Cluster, admin: HttpClient) -> None:
    kafka.act("stop_broker", node=1)
    kafka.topic("orders").alter(configs={"retention.ms": "5"})
    kafka.clock.freeze()
    marks = admin.get(TIMELINE)["marks"]
    assert "topic=orders" in next(m["text"] for m in marks if m["kind"] == "configs")
    assert {"election", "broker", "configs", "action", "clock"} <= {mark["kind"] for mark in marks}
    assert "change=stop_broker" in next(m["text"] for m in marks if m["kind"] == "action")


def test_a_request_whose_connection_ends_is_lost(
    kafka: Cluster, admin: HttpClient, shop: Client
) -> None:
    kafka.faults.add({"name": "drop", "match": {"api": "Produce"}, "do": {"drop_request": {}}})
    waiting = threading.Thread(target=_produce_in_vain, args=(shop,))
    waiting.start()
    kafka.journal.wait(kind="response", api="Produce")
    [span] = admin.get(TIMELINE, api="Produce")["spans"]
    assert (span["state"], span["outcome"]) == ("lost", "dropped")
    kafka.act("stop_broker", node=1)
    waiting.join()


def _produce_in_vain(client: Client) -> None:
    with suppress(OSError, ClientError):
        client.produce("orders", ["coffee"])
