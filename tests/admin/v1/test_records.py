"""Records over HTTP: forms of a body, lines with the number of a wrong one, and the journal."""

from __future__ import annotations

import base64
import json

import pytest

from mockbroker import Cluster
from tests.support.http import Answer, HttpClient

RECORDS = "/v1/topics/orders/records"


@pytest.fixture
def kafka(mock_kafka: Cluster) -> Cluster:
    mock_kafka.topic("orders").create(2)
    return mock_kafka


@pytest.fixture
def api(kafka: Cluster) -> HttpClient:
    return HttpClient(kafka.admin_url)


def post_lines(api: HttpClient, lines: bytes) -> Answer:
    return api.request(
        "POST", RECORDS, raw=lines, headers={"content-type": "application/x-ndjson; charset=utf-8"}
    )


@pytest.mark.parametrize(
    "body",
    [
        {"records": [{"value": "one coffee"}]},
        [{"value": "one coffee"}],
        {"value": "one coffee"},
        {"value_base64": base64.b64encode(b"one coffee").decode()},
    ],
    ids=["records", "list", "one", "base64"],
)
def test_a_body_is_an_object_with_records_a_list_of_them_or_one(
    kafka: Cluster, api: HttpClient, body: object
) -> None:
    assert api.post(RECORDS, body, 201) == [{"partition": 0, "offset": 0}]
    [record] = kafka.records("orders")
    assert (record.key, record.value) == (None, b"one coffee")


def test_keys_values_and_headers_are_texts_bytes_or_json(kafka: Cluster, api: HttpClient) -> None:
    record = {
        "key_json": {"table": 3},
        "value_json": [1, None, "ü"],
        "headers": {"waiter": "Ann"},
        "headers_base64": [["raw", "/w=="], ["none", None]],
        "partition": 1,
        "timestamp_ms": 5,
    }
    api.post(RECORDS, record, 201)
    [stored] = kafka.records("orders")
    assert json.loads(stored.key or b"") == {"table": 3}
    assert stored.value == '[1,null,"ü"]'.encode()
    assert stored.headers == (("waiter", b"Ann"), ("raw", b"\xff"), ("none", None))
    assert (stored.partition, stored.timestamp_ms) == (1, 5)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ([{"value": "a"}, {"value": 3}], "records[1].value"),
        ({"value": "a", "value_json": 1}, ""),
        ({"valu": "a"}, "valu"),
        ({"value_base64": "?"}, "value_base64"),
        ([{"headers_base64": [["name"]]}], "records[0].headers_base64[0]"),
    ],
    ids=str,
)
def test_a_wrong_record_is_named_and_nothing_is_appended(
    kafka: Cluster, api: HttpClient, body: object, field: str
) -> None:
    answer = api.request("POST", RECORDS, body)
    assert (answer.status, answer.body.get("field", "")) == (400, field)
    assert kafka.records("orders") == []


def test_lines_are_appended_and_counted(kafka: Cluster, api: HttpClient) -> None:
    lines = b"".join(b'{"value":"%d"}\n' % number for number in range(2_500))
    answer = post_lines(api, lines + b'\n{"value":"the last one","key":"k"}')
    assert answer.status == 201
    assert answer.body == {"records": 2_501, "partitions": {"0": 1_251, "1": 1_250}}
    values = {record.value for record in kafka.records("orders")}
    assert values == {b"the last one", *(b"%d" % number for number in range(2_500))}


@pytest.mark.parametrize(
    ("line", "title", "detail"),
    [
        (b'{"value":', "not JSON", "line 3: it cannot be read"),
        (b'{"valu":"a"}', "not valid", "line 3: valu: unknown field; did you mean 'value'?"),
        (b'{"value":' * 10_000, "not JSON", "line 3: it cannot be read"),
        (b'{"value_base64":"?"}', "not valid", "line 3: value_base64: it is no base64"),
    ],
)
def test_a_wrong_line_is_named_and_those_before_it_are_stored(
    kafka: Cluster, api: HttpClient, line: bytes, title: str, detail: str
) -> None:
    answer = post_lines(api, b'{"value":"a"}\n\n' + line + b'\n{"value":"b"}\n')
    assert (answer.status, answer.body["title"]) == (400, title)
    assert answer.body["detail"].startswith(detail)
    assert (answer.body["line"], answer.body["appended"]) == (3, 1)
    assert [record.value for record in kafka.records("orders")] == [b"a"]


@pytest.mark.mock_kafka(brokers=1, configs={"mockbroker.admin.records.bytes.max": "20"})
@pytest.mark.parametrize("rest", [b"", b"\n", b'\n{"value": "c"}\n'])
def test_a_line_above_the_limit_is_named_wherever_it_ends(
    kafka: Cluster, api: HttpClient, rest: bytes
) -> None:
    assert post_lines(api, b'{"value": "a"}\n{"value": "1234567"}').status == 201
    answer = post_lines(api, b'{"value": "b"}\n{"value": "12345678"}' + rest)
    assert (answer.status, answer.body["line"], answer.body["appended"]) == (413, 2, 1)
    assert answer.body["detail"] == (
        "line 2: a line has at most 20 bytes (mockbroker.admin.records.bytes.max)"
    )
    assert {record.value for record in kafka.records("orders")} == {b"a", b"1234567", b"b"}


def test_a_client_may_send_everything_before_it_reads_of_a_wrong_line(
    kafka: Cluster, api: HttpClient
) -> None:
    """More than the sockets hold."""
    answer = post_lines(api, b"nonsense\n" + b'{"value":"a"}\n' * 1_000_000)
    assert (answer.status, answer.body["line"]) == (400, 1)
    assert kafka.records("orders") == []


def test_a_refused_append_says_how_many_records_are_stored(kafka: Cluster, api: HttpClient) -> None:
    kafka.topic("orders").alter(configs={"max.message.bytes": 200})
    body = [{"value": "a", "partition": 0}, {"value": "b" * 300, "partition": 1}]
    answer = api.request("POST", RECORDS, body)
    assert (answer.status, answer.body["error"]) == (409, "MESSAGE_TOO_LARGE")
    assert answer.body["appended"] == 1
    assert [record.value for record in kafka.records("orders")] == [b"a"]


def test_an_append_needs_as_many_replicas_as_acks_all(kafka: Cluster, api: HttpClient) -> None:
    kafka.topic("slow").create(1, 3)
    kafka.topic("slow").alter(configs={"min.insync.replicas": 3})
    leader = kafka.partition("slow", 0).leader
    stopped = next(node for node in (1, 2, 3) if node != leader)
    kafka.broker(stopped).stop()
    answer = api.request("POST", "/v1/topics/slow/records", {"value": "a"})
    assert (answer.status, answer.body["error"]) == (409, "NOT_ENOUGH_REPLICAS")
    assert "appended" not in answer.body


def test_the_journal_and_the_audit_have_the_records(kafka: Cluster, api: HttpClient) -> None:
    """Request, append and answer, as of a Produce: so the audit finds such a record when it is
    lost.
    """
    kafka.topic("payments").create(1, 3)
    kafka.partition("payments", 0).move_leader(1)
    api.post("/v1/topics/payments/records", {"value": "ten euros"}, 201)
    [append] = kafka.journal.events(kind="append", topic="payments")
    assert (append.api, append.client_id, append.records) == ("Produce", "mockbroker-admin", 1)
    kafka.journal.in_order(
        {"kind": "request", "api": "Produce"}, {"kind": "append"}, {"kind": "response"}
    )
    kafka.audit().assert_clean()
    for node in (2, 3):
        kafka.broker(node).stop()
    api.post("/v1/topics/payments/records", {"value": "two euros"}, 201)
    kafka.broker(1).kill()
    kafka.broker(2).start()
    kafka.partition("payments", 0).elect_unclean(2)
    assert [finding.anomaly for finding in kafka.audit().reports] == ["lost_write"]


def test_internal_topics_are_not_written(kafka: Cluster, api: HttpClient) -> None:
    kafka.group("billing").set_offsets({("orders", 0): 0})
    answer = api.request("POST", "/v1/topics/__consumer_offsets/records", {"value": "a"})
    assert (answer.status, answer.body["error"]) == (409, "INVALID_TOPIC_EXCEPTION")
