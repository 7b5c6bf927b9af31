"""The journal over HTTP: pages, a stream, waiting, verdicts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka import Producer

from mockbroker import Cluster
from mockbroker.admin.bridge import ClusterBusyError
from mockbroker.admin.v1 import journal
from tests.support.http import HttpClient
from tests.support.librdkafka import TIMEOUT_S
from tests.support.logged import logged


@pytest.fixture(autouse=True)
def work(kafka: Cluster) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "client.id": "shop"})
    producer.produce("orders", "coffee", partition=0)
    assert producer.flush(TIMEOUT_S) == 0


def test_pages_go_on_where_the_last_one_ended(admin: HttpClient) -> None:
    newest = admin.get("/v1/journal", limit=1)["last_seq"]
    seen: list[tuple[int, int]] = []
    after = 0
    while after < newest:
        page = admin.get("/v1/journal", after=after, limit=7, messages="false")
        assert page["events"]
        seen += [(event["seq"], event.get("part", 0)) for event in page["events"]]
        after = page["next"]
    assert seen == sorted(set(seen))
    assert {seq for seq, _ in seen} >= set(range(1, newest + 1))


def test_conditions_stand_in_the_query(admin: HttpClient) -> None:
    page = admin.get("/v1/journal", kind=["append", "deliver"], topic="ord*", client_id="shop")
    assert {event["kind"] for event in page["events"]} == {"append"}
    wrong = admin.request("GET", "/v1/journal?topik=x")
    assert (wrong.status, wrong.body["field"]) == (400, "topik")
    assert admin.request("GET", "/v1/journal?api=Prodoce").body["field"] == "api"


def test_a_page_of_facts_ends_at_the_newest_entry_though_no_request_is_opened(
    kafka: Cluster, admin: HttpClient
) -> None:
    mark = kafka.journal.last_seq
    kafka.broker(3).pause("10m")
    kafka.broker(3).resume()
    page = admin.get("/v1/journal", kind=["broker", "action"], after=mark)
    assert {event["kind"] for event in page["events"]} == {"broker", "action"}
    assert page["next"] == page["last_seq"]
    assert admin.get("/v1/journal", kind="action", after=page["next"])["events"] == []
    opened = admin.get("/v1/journal", after=mark, messages="false")["events"]
    assert [each for each in opened if each["kind"] in ("broker", "action")] == page["events"]


def test_messages_can_be_left_out(admin: HttpClient) -> None:
    def messages(**query: object) -> list[object]:
        page = admin.get("/v1/journal", kind="request", api="Produce", **query)
        return [event.get("message") for event in page["events"]]

    assert all(messages())
    assert not any(messages(messages="false"))


def test_the_stream_tells_what_comes(kafka: Cluster, admin: HttpClient) -> None:
    mark = kafka.journal.last_seq
    stream = admin.stream(f"/v1/journal/stream?kind=append&after={mark}")
    try:
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.readline() == b": mockbroker journal\n"
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        producer.produce("orders", "tea", partition=1)
        assert producer.flush(TIMEOUT_S) == 0
        assert stream.readline() == b"\n"
        number, kind, data = (stream.readline().decode().rstrip() for _ in range(3))
        event = json.loads(data.removeprefix("data: "))
        assert (number, kind) == (f"id: {event['seq']}", "event: append")
        assert (event["topic"], event["partition"]) == ("orders", 1)
    finally:
        stream.close()


def test_the_stream_waits_for_a_busy_cluster(
    kafka: Cluster, admin: HttpClient, monkeypatch: pytest.MonkeyPatch, caplog
) -> None:
    """An answer that has begun cannot become an error: the stream goes on once there is one."""
    read = journal._page
    busy = iter([True, True, False])

    async def page(*arguments: Any, **options: Any) -> Any:
        if options.get("position") is not None and next(busy, False):
            raise ClusterBusyError("the cluster did not answer in 2 s")
        return await read(*arguments, **options)

    monkeypatch.setattr(journal, "_page", page)
    stream = admin.stream("/v1/journal/stream?kind=append")
    try:
        assert stream.readline() == b": mockbroker journal\n"
        assert stream.readline() == b"\n"
        assert stream.readline().startswith(b"id: ")
    finally:
        stream.close()
    assert next(busy, None) is None
    assert [each.getMessage() for each in logged(caplog) if each.exc_info] == []


def test_waiting_counts_what_was_and_gives_up_in_time(admin: HttpClient) -> None:
    [event] = admin.post("/v1/journal/wait", {"match": {"kind": "append", "client_id": "shop"}})
    assert event["topic"] == "orders"
    late = admin.request(
        "POST", "/v1/journal/wait", {"match": {"kind": "append", "topic": "x"}, "timeout_ms": 1}
    )
    assert late.status == 408
    assert "0 events match after 1 ms, not 1" in late.body["detail"]


def test_a_verdict_comes_with_its_reasons(admin: HttpClient) -> None:
    wrong = {"match": {"kind": "append", "client_id": "shop", "partition": 9}}
    verdict = admin.post("/v1/verify", wrong)
    assert not verdict["holds"]
    assert verdict["near"][0]["failed"] == {"partition": [["orders", 0]]}
    assert admin.post("/v1/verify", {"match": {"kind": "append", "client_id": "shop"}})["holds"]
    refused = admin.request("POST", "/v1/verify", {"match": {}, "exactly": 1, "at_least": 1})
    assert refused.status == 400
