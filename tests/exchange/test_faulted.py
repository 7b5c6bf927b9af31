"""Every effect of rules on an exchange that has neither a cluster nor a socket behind it."""

from __future__ import annotations

from typing import Any, cast

import pytest

from mockbroker.core.faults.effects.connections import is_at_accept
from mockbroker.core.faults.effects.table import EFFECTS
from mockbroker.core.faults.rules import parse_plan
from mockbroker.core.validation import ValidationError
from mockbroker.handlers.base import NO_RESPONSE
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from mockbroker_protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from mockbroker_protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from mockbroker_protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from mockbroker_protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from mockbroker_protocol.records import Record, build_batch, iter_records, split_batches
from tests.support.lone_exchange import LoneExchange, Proxy, SeenTopic

ORDERS = SeenTopic("orders", bytes(15) + b"\1")
BATCH = build_batch([Record(timestamp=1, value=value) for value in (b"a", b"b")])


def upstream(request: Any) -> Any:
    """What a broker answers to the requests of these tests, in few words."""
    match request:
        case MetadataRequest():
            return MetadataResponse(
                brokers=[MetadataResponseBroker(1, "upstream", 9092)],
                topics=[
                    MetadataResponseTopic(
                        name="orders", partitions=[MetadataResponsePartition(0, 0, 1, 3)]
                    )
                ],
            )
        case ApiVersionsRequest():
            return ApiVersionsResponse(api_keys=[ApiVersion(0, 3, 13), ApiVersion(1, 4, 18)])
        case SaslAuthenticateRequest():
            return SaslAuthenticateResponse(auth_bytes=b"welcome")
        case FetchRequest():
            data = PartitionData(0, high_watermark=2, records=memoryview(BATCH))
            return FetchResponse(responses=[FetchableTopicResponse("orders", partitions=[data])])
        case ProduceRequest(acks=0):
            return NO_RESPONSE
        case ProduceRequest():
            return ProduceResponse(
                responses=[
                    TopicProduceResponse(
                        name=topic.name,
                        partition_responses=[
                            PartitionProduceResponse(each.index, base_offset=10)
                            for each in topic.partition_data
                        ],
                    )
                    for topic in request.topic_data
                ]
            )
    raise AssertionError(request)


@pytest.fixture
def proxy() -> Proxy:
    return Proxy(upstream, ORDERS)


def metadata(proxy: Proxy) -> LoneExchange:
    return proxy.ask(ApiKey.METADATA, 9, MetadataRequest([MetadataRequestTopic(name="orders")]))


def produce(proxy: Proxy, *partitions: int, acks: int = -1) -> LoneExchange:
    rows = [PartitionProduceData(each, memoryview(BATCH)) for each in partitions or (0,)]
    data = [TopicProduceData(name="orders", partition_data=rows)]
    return proxy.ask(ApiKey.PRODUCE, 8, ProduceRequest(acks=acks, topic_data=data))


def fetch(proxy: Proxy) -> LoneExchange:
    topics = [FetchTopic("orders", partitions=[FetchPartition(0)])]
    return proxy.ask(ApiKey.FETCH, 11, FetchRequest(topics=topics))


def authenticate(proxy: Proxy) -> LoneExchange:
    return proxy.ask(ApiKey.SASL_AUTHENTICATE, 1, SaslAuthenticateRequest(b"token"))


def versions(proxy: Proxy) -> LoneExchange:
    return proxy.ask(ApiKey.API_VERSIONS, 2, ApiVersionsRequest())


API_OF: dict[Any, str] = {
    metadata: "Metadata",
    produce: "Produce",
    fetch: "Fetch",
    authenticate: "SaslAuthenticate",
    versions: "ApiVersions",
}


class Session:
    """What rules touch of a connection's SASL session; this one has been renewed before."""

    def __init__(self) -> None:
        self.is_reauthenticating = True
        self.denied_next = ""
        self.expires_ms: int | None = None


def fetched(exchange: LoneExchange) -> bytes:
    return bytes(exchange.response.responses[0].partitions[0].records)


def produced(exchange: LoneExchange) -> dict[int, int]:
    """The error of each partition."""
    rows = exchange.response.responses[0].partition_responses
    return {row.index: row.error_code for row in rows}


# -- refusals and other answers --------------------------------------------------------------------


def test_error_refuses_all_of_a_request_unseen(proxy: Proxy) -> None:
    proxy.rule(match={"api": "Produce"}, do={"error": "INVALID_REQUIRED_ACKS"})
    exchange = produce(proxy, 0)
    assert produced(exchange) == {0: ErrorCode.INVALID_REQUIRED_ACKS}
    assert exchange.applied == []


def test_error_for_a_partition_leaves_the_others_to_upstream(proxy: Proxy) -> None:
    proxy.rule(
        match={"api": "Produce", "topic": "orders", "partition": 1},
        do={"error": "NOT_LEADER_OR_FOLLOWER"},
    )
    exchange = produce(proxy, 0, 1)
    assert produced(exchange) == {0: 0, 1: ErrorCode.NOT_LEADER_OR_FOLLOWER}
    (applied,) = exchange.applied
    assert [row.index for row in applied.topic_data[0].partition_data] == [0]


def test_record_errors_name_records(proxy: Proxy) -> None:
    proxy.rule(do={"record_errors": {"records": [1]}})
    (row,) = produce(proxy, 0).response.responses[0].partition_responses
    assert row.error_code == ErrorCode.INVALID_RECORD
    assert [each.batch_index for each in row.record_errors] == [1]


def test_error_after_hides_that_the_request_was_applied(proxy: Proxy) -> None:
    proxy.rule(match={"api": "Produce"}, do={"error_after": "REQUEST_TIMED_OUT"})
    exchange = produce(proxy, 0)
    assert produced(exchange) == {0: ErrorCode.REQUEST_TIMED_OUT}
    assert len(exchange.applied) == 1


def test_rewrite_changes_request_and_answer(proxy: Proxy) -> None:
    proxy.rule(
        match={"api": "Metadata"},
        do={
            "rewrite": {
                "request": {"allow_auto_topic_creation": False},
                "answer": {"cluster_id": "x"},
            }
        },
    )
    exchange = metadata(proxy)
    assert exchange.applied[0].allow_auto_topic_creation is False
    assert exchange.response.cluster_id == "x"


def test_metadata_and_api_versions_are_falsified(proxy: Proxy) -> None:
    proxy.rule(do={"falsify_metadata": {"leader": 5}})
    proxy.rule(do={"falsify_api_versions": {"hide": ["Fetch"]}})
    (topic,) = metadata(proxy).response.topics
    assert topic.partitions[0].leader_id == 5
    exchange = versions(proxy)
    assert [each.api_key for each in exchange.response.api_keys] == [0]


def test_observe_only_counts(proxy: Proxy) -> None:
    rule = proxy.rule(name="seen", match={"api": "Metadata"}, do={"observe": {}})
    exchange = metadata(proxy)
    assert exchange.response.topics
    assert rule.hits == 1
    assert exchange.marks is not None
    assert (exchange.marks.rules, exchange.marks.outcome) == (("seen",), "")


# -- delivery --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("effect", "applied", "fate", "ended"),
    [
        ({"drop_request": {}}, 0, "dropped", ""),
        ({"close": {"phase": "before"}}, 0, "closed", "FIN"),
        ({"close": {"phase": "after", "how": "rst"}}, 1, "closed", "RST"),
    ],
)
def test_a_request_that_is_not_answered(
    proxy: Proxy, effect: dict[str, Any], applied: int, fate: str, ended: str
) -> None:
    proxy.rule(match={"api": "Metadata"}, do=effect)
    exchange = metadata(proxy)
    assert (len(exchange.applied), exchange.fate, exchange.ended) == (applied, fate, ended)
    assert exchange.sent == b""


@pytest.mark.parametrize(("then", "ended"), [("keep", ""), ("close", "FIN"), ("reset", "RST")])
def test_drop_reply_loses_the_answer(proxy: Proxy, then: str, ended: str) -> None:
    proxy.rule(match={"api": "Metadata"}, do={"drop_reply": then})
    exchange = metadata(proxy)
    assert (len(exchange.applied), exchange.sent, exchange.ended) == (1, b"", ended)
    assert exchange.marks is not None
    assert exchange.marks.outcome == "answer dropped"


def test_delays_wait_for_the_clock_before_and_after(proxy: Proxy) -> None:
    proxy.rule(match={"api": "Metadata"}, do={"delay": 100})
    proxy.rule(match={"api": "Metadata"}, do={"delay": {"by": 50, "phase": "after"}})
    exchange = metadata(proxy)
    proxy.advance(99)
    assert exchange.applied == []
    proxy.advance(1)
    assert len(exchange.applied) == 1
    assert exchange.sent == b""
    proxy.advance(50)
    assert exchange.response.topics


def test_a_held_request_goes_on_with_what_was_edited(proxy: Proxy) -> None:
    proxy.rule(match={"api": "Metadata"}, do={"hold": "before"})
    exchange = metadata(proxy)
    (held,) = proxy.engine.held.values()
    held.edit({"allow_auto_topic_creation": False})
    held.release()
    assert exchange.applied[0].allow_auto_topic_creation is False
    assert exchange.response.topics
    assert proxy.engine.held == {}


def test_a_held_answer_is_replaced_or_goes_by_itself(proxy: Proxy) -> None:
    proxy.rule(match={"api": "Produce"}, do={"hold": {"phase": "after", "at_most": 1000}})
    one, other = produce(proxy, 0), produce(proxy, 0)
    next(iter(proxy.engine.held.values())).answer("NOT_LEADER_OR_FOLLOWER")
    assert produced(one) == {0: ErrorCode.NOT_LEADER_OR_FOLLOWER}
    assert other.sent == b""
    proxy.advance(1000)
    assert produced(other) == {0: 0}


def test_a_request_without_an_answer_is_held_after_it_was_applied(proxy: Proxy) -> None:
    proxy.rule(match={"api": "Produce"}, do={"hold": "after"})
    exchange = produce(proxy, 0, acks=0)
    (held,) = proxy.engine.held.values()
    assert held.response is None
    with pytest.raises(ValidationError, match="the request is applied and gets no answer"):
        held.edit({"acks": 1})
    held.release()
    assert (exchange.sent, exchange.ended, len(exchange.applied)) == (b"", "", 1)


@pytest.mark.parametrize("count", [b"\xff\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\1"])
def test_a_batch_of_any_count_of_records_is_corrupted(proxy: Proxy, count: bytes) -> None:
    proxy.rule(match={"api": "Produce"}, do={"corrupt_batch": "count"})
    batch = bytearray(BATCH)
    batch[57:61] = count
    rows = [PartitionProduceData(0, memoryview(batch))]
    data = [TopicProduceData(name="orders", partition_data=rows)]
    exchange = proxy.ask(ApiKey.PRODUCE, 8, ProduceRequest(acks=-1, topic_data=data))
    [topic] = exchange.applied[0].topic_data
    applied = bytes(topic.partition_data[0].records)
    assert applied[61:] == bytes(batch[61:])
    assert int.from_bytes(applied[57:61], "big") == (int.from_bytes(count, "big") + 3) % (1 << 32)


def test_throttle_is_told_and_kept(proxy: Proxy) -> None:
    proxy.rule(match={"api": "Metadata"}, do={"throttle": 300})
    exchange = metadata(proxy)
    assert exchange.response.throttle_time_ms == 300
    assert exchange.muted_ms == 300


def test_slow_answers_leave_in_slices(proxy: Proxy) -> None:
    proxy.rule(match={"api": "Metadata"}, do={"slow": {"pause": 10, "slice_bytes": 20}})
    exchange = metadata(proxy)
    assert len(exchange.sent) == 20
    proxy.advance(10)
    assert len(exchange.sent) == 40
    for _ in range(10):
        proxy.advance(10)
    assert exchange.response.topics
    assert exchange.pieces == -(-len(exchange.sent) // 20)


def test_slices_without_a_pause_let_others_have_a_turn(proxy: Proxy) -> None:
    proxy.rule(match={"api": "Metadata"}, do={"slow": {"pause": 0, "slice_bytes": 20}})
    exchange = metadata(proxy)
    assert len(exchange.sent) == 20
    for _ in range(10):
        proxy.advance(0)
    assert exchange.response.topics


def test_truncated_damaged_and_doubled_answers(proxy: Proxy) -> None:
    proxy.rule(name="whole", match={"api": "Metadata"}, do={"observe": {}})
    whole = metadata(proxy).sent
    proxy.engine.clear()
    proxy.rule(match={"api": "Metadata"}, when={"times": 1}, do={"truncate_reply": {"bytes": 9}})
    cut = metadata(proxy)
    assert (cut.sent, cut.ended) == (whole[:9], "FIN")
    proxy.engine.clear()
    proxy.rule(match={"api": "Metadata"}, do={"corrupt_reply": {"how": "oversize"}})
    damaged = metadata(proxy)
    assert damaged.sent == b"\x7f\xff\xff\xff" + whole[4:]
    assert damaged.marks is not None
    assert damaged.marks.outcome == "answer damaged"
    proxy.engine.clear()
    proxy.rule(match={"api": "Metadata"}, do={"duplicate_reply": 3})
    assert metadata(proxy).sent == whole * 3


def test_reordered_answers_let_the_next_request_pass(proxy: Proxy) -> None:
    proxy.rule(match={"api": "Metadata"}, do={"reorder_replies": 250})
    exchange = metadata(proxy)
    assert proxy.order == ["next within 250 ms"]
    assert exchange.response.topics


def test_no_answer_is_sent_after_the_next_request_closed_the_connection(proxy: Proxy) -> None:
    proxy.rule(match={"api": "Metadata"}, do={"reorder_replies": 250})
    proxy.next_closes = True
    exchange = metadata(proxy)
    assert (exchange.sent, exchange.fate, exchange.ended) == (b"", "closed", "FIN")


# -- records ---------------------------------------------------------------------------------------


def test_batches_are_damaged_on_their_way_in(proxy: Proxy) -> None:
    proxy.rule(match={"api": "Produce"}, do={"corrupt_batch": "crc"})
    (applied,) = produce(proxy, 0).applied
    records = bytes(applied.topic_data[0].partition_data[0].records)
    assert records != BATCH
    assert len(records) == len(BATCH)


@pytest.mark.parametrize(
    ("effect", "size", "wanted"),
    [
        ({"duplicate_records": 2}, 2 * len(BATCH), [b"a", b"b", b"a", b"b"]),
        ({"hide_records": {"offsets": [0]}}, None, [b"b"]),
    ],
)
def test_records_of_a_fetch_are_doubled_or_hidden(
    proxy: Proxy, effect: dict[str, Any], size: int | None, wanted: list[bytes]
) -> None:
    proxy.rule(match={"api": "Fetch", "topic": "orders"}, do=effect)
    data = fetched(fetch(proxy))
    assert size is None or len(data) == size
    assert values(data) == wanted


def test_records_of_a_fetch_are_damaged(proxy: Proxy) -> None:
    proxy.rule(match={"api": "Fetch", "topic": "orders"}, do={"corrupt_batch": "crc"})
    data = fetched(fetch(proxy))
    assert data != BATCH
    assert len(data) == len(BATCH)


def values(data: bytes) -> list[bytes | None]:
    return [
        record.value
        for header, batch in split_batches(data)
        for record in iter_records(header, batch)
    ]


# -- connections -----------------------------------------------------------------------------------


def test_a_stalled_sasl_exchange_goes_on_after_its_time(proxy: Proxy) -> None:
    proxy.rule(do={"stall_handshake": {"at": "sasl", "for": 700}})
    exchange = authenticate(proxy)
    proxy.advance(699)
    assert exchange.applied == []
    proxy.advance(1)
    assert exchange.response.auth_bytes == b"welcome"


def test_a_rule_that_stays_keeps_nothing_of_stalls_that_are_over(proxy: Proxy) -> None:
    rule = proxy.rule(do={"stall_handshake": {"at": "sasl", "for": 700}})
    stalled = [authenticate(proxy) for _ in range(3)]
    assert len(rule.removal) == 3
    proxy.advance(700)
    assert [each.response.auth_bytes for each in stalled] == [b"welcome"] * 3
    assert len(rule.removal) == 0


def test_a_stall_without_end_goes_on_when_its_rule_is_removed(proxy: Proxy) -> None:
    proxy.rule(name="stall", do={"stall_handshake": {"at": "sasl"}})
    exchange = authenticate(proxy)
    assert exchange.applied == []
    proxy.engine.remove("stall")
    assert exchange.response.auth_bytes == b"welcome"


def test_a_client_that_closes_ends_its_stall(proxy: Proxy) -> None:
    rule = proxy.rule(do={"stall_handshake": {"at": "sasl"}})
    exchange = authenticate(proxy)
    exchange.closed_by_client()
    assert (exchange.applied, exchange.fate, exchange.ended) == ([], "closed", "FIN")
    assert (len(rule.removal), exchange.on_close) == (0, [])


def test_a_session_runs_out_and_its_renewal_is_refused(proxy: Proxy) -> None:
    session = Session()
    proxy.connection.sasl = cast("Any", session)
    proxy.rule(match={"api": "Metadata"}, do={"expire_credential": "session"})
    metadata(proxy)
    assert session.expires_ms == proxy.now_ms - 1
    proxy.rule(do={"fail_reauthentication": "not you"})
    authenticate(proxy)
    assert session.denied_next == "not you"


@pytest.mark.parametrize("phase", ["before", "after"])
def test_a_paused_broker_neither_applies_nor_answers(proxy: Proxy, phase: str) -> None:
    proxy.rule(match={"api": "Metadata"}, do={"delay": {"by": 10, "phase": phase}})
    exchange = metadata(proxy)
    proxy.paused = []
    proxy.advance(10)
    assert len(exchange.applied) == (phase == "after")
    assert exchange.sent == b""
    proxy.resume()
    assert exchange.response.topics


def test_no_slice_of_an_answer_leaves_a_paused_broker(proxy: Proxy) -> None:
    proxy.rule(match={"api": "Metadata"}, do={"slow": {"pause": 10, "slice_bytes": 20}})
    exchange = metadata(proxy)
    assert len(exchange.sent) == 20
    proxy.paused = []
    proxy.advance(1000)
    assert len(exchange.sent) == 20
    proxy.resume()
    for _ in range(10):
        proxy.advance(10)
    assert exchange.response.topics


def test_a_produce_without_acks_has_no_answer_to_lose(proxy: Proxy) -> None:
    proxy.rule(match={"api": "Produce"}, do={"corrupt_reply": {"how": "garbage"}, "throttle": 50})
    exchange = produce(proxy, 0, acks=0)
    assert len(exchange.applied) == 1
    assert (exchange.sent, exchange.ended, exchange.muted_ms) == (b"", "", 50)


# -- what needs a cluster --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ({"match": {"topic": "orders"}, "when": {"after_offset": 5}}, "rules[0].when.after_offset"),
        (
            {"match": {"topic": "orders"}, "when": {"after_records": 5}},
            "rules[0].when.after_records",
        ),
        ({"when": {"state": {"broker": {"node": 1, "state": "paused"}}}}, "rules[0].when.state"),
        ({"match": {"between_brokers": True}}, "rules[0].match"),
        ({"do": {"stop_broker": 1}}, "rules[0].do.stop_broker"),
    ],
)
def test_rules_that_need_a_cluster_are_refused_without(
    proxy: Proxy, rule: dict[str, Any], path: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        proxy.engine.add(parse_plan({"do": {"observe": {}}} | rule, "needy"))
    assert refused.value.path == path
    assert not proxy.engine.has_client_rules
    assert proxy.engine.plans == {}


def test_timelines_are_refused_without_a_cluster(proxy: Proxy) -> None:
    plan = parse_plan({"timeline": [{"at": 5, "do": {"stop_broker": 1}}]}, "later")
    with pytest.raises(ValidationError, match="timeline: actions need a cluster"):
        proxy.engine.add(plan)


# -- all of them -----------------------------------------------------------------------------------

# The least that each effect on requests takes.
LEAST: dict[str, Any] = {
    "error": "INVALID_REQUEST",
    "record_errors": {"records": [0]},
    "error_after": "REQUEST_TIMED_OUT",
    "drop_request": {},
    "drop_reply": {},
    "close": {},
    "delay": 5,
    "hold": {"at_most": 5},
    "throttle": 5,
    "rewrite": {"answer": {"throttle_time_ms": 1}},
    "slow": {"pause": 1, "slice_bytes": 8},
    "truncate_reply": {},
    "corrupt_reply": {"how": "bit_flips"},
    "corrupt_batch": {},
    "duplicate_reply": {},
    "reorder_replies": {},
    "duplicate_records": {},
    "hide_records": {},
    "stall_handshake": {"at": "sasl", "for": 5},
    "fail_reauthentication": {},
    "expire_credential": {},
    "falsify_api_versions": {"hide": ["Fetch"]},
    "falsify_metadata": {"leader": 5},
    "observe": {},
}


def test_every_effect_is_for_requests_or_for_accepting() -> None:
    assert set(EFFECTS) - set(LEAST) == {"refuse_connection"}
    assert is_at_accept(EFFECTS["refuse_connection"]())


@pytest.mark.parametrize("name", LEAST)
def test_every_effect_comes_to_an_end_without_a_cluster(proxy: Proxy, name: str) -> None:
    """The request is answered, or it is on record that it is not."""
    proxy.connection.sasl = cast("Any", Session())
    ask = {
        "stall_handshake": authenticate,
        "fail_reauthentication": authenticate,
        "falsify_api_versions": versions,
        "falsify_metadata": metadata,
        "duplicate_records": fetch,
        "hide_records": fetch,
    }.get(name, produce)
    rule = proxy.rule(match={"api": API_OF[ask]}, do={name: LEAST[name]})
    exchange = ask(proxy)
    for _ in range(200):
        proxy.advance(1)
    assert rule.hits == 1
    lost = exchange.marks is not None and exchange.marks.outcome == "answer dropped"
    assert bool(exchange.sent) is not (bool(exchange.fate) or lost)
