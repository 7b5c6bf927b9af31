"""Frames, order and refusals on one connection, in raw bytes."""

from __future__ import annotations

import logging
import socket
import struct

import pytest

from mockbroker import Cluster
from mockbroker.core.cluster import Cluster as CoreCluster
from mockbroker.core.timing.timers import TIMERS_PER_TURN
from mockbroker.handlers.base import APIS
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.codec import request_codec, response_codec
from mockbroker_protocol.headers import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
)
from mockbroker_protocol.messages.api_versions import ApiVersionsRequest
from mockbroker_protocol.messages.delete_groups import DeleteGroupsRequest
from mockbroker_protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from mockbroker_protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from mockbroker_protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from mockbroker_protocol.messages.metadata import MetadataRequest
from mockbroker_protocol.runtime import uvarint
from tests.support.logged import logged
from tests.support.waiting import wait_until

TIMEOUT_S = 10.0
LONG_TIMEOUT_S = 60.0


def request(api: ApiKey, version: int, message: object, correlation_id: int = 1) -> bytes:
    """A whole frame, size included."""
    header = RequestHeader(int(api), version, correlation_id, "raw")
    body = b"".join(request_codec(api, version).encode(message))
    frame = encode_request_header(header) + body
    return struct.pack(">i", len(frame)) + frame


class Raw:
    """A client that says exactly what it is told to."""

    def __init__(self, kafka: Cluster, address: str = "", listener: str | None = None) -> None:
        self.socket = socket.create_connection(
            kafka.endpoint(1, listener), timeout=TIMEOUT_S, source_address=(address, 0)
        )

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive(self, n: int) -> bytes:
        data = b""
        while len(data) < n:
            chunk = self.socket.recv(n - len(data))
            if not chunk:
                raise EOFError(f"closed after {len(data)} of {n} bytes")
            data += chunk
        return data

    def frame(self) -> bytes:
        (size,) = struct.unpack(">i", self.receive(4))
        return self.receive(size)

    def correlation_id(self) -> int:
        return int.from_bytes(self.frame()[:4], "big")

    def closed_without_an_answer(self) -> bool:
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True


def waits(kafka: Cluster) -> bool:
    """Whether a request of some client is parked."""

    def look(_: object) -> bool:
        hosts = kafka.server.socket_servers.values()
        return any(connection.parked for host in hosts for connection in host._connections)

    return kafka.call(look)


@pytest.fixture
def kafka():
    with Cluster(brokers=1, topics={"orders": 2}) as cluster:
        yield cluster


@pytest.fixture
def raw(kafka: Cluster):
    client = Raw(kafka)
    yield client
    client.socket.close()


def api_versions(correlation_id: int = 1) -> bytes:
    message = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
    return request(ApiKey.API_VERSIONS, 4, message, correlation_id)


@pytest.mark.covers("S313")
def test_pipelined_requests_are_answered_in_order(raw: Raw) -> None:
    """A hundred requests in one segment get a hundred answers, in the order they were sent."""
    raw.send(b"".join(api_versions(n) for n in range(100)))
    assert [raw.correlation_id() for _ in range(100)] == list(range(100))


def test_a_frame_may_arrive_one_byte_at_a_time(raw: Raw) -> None:
    """Sizes and headers that are cut anywhere are put together again."""
    raw.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in api_versions(7):
        raw.send(bytes([byte]))
    assert raw.correlation_id() == 7


def test_two_frames_and_a_half_in_one_segment(raw: Raw) -> None:
    """The half that is left over waits for its rest."""
    frames = api_versions(1) + api_versions(2) + api_versions(3)
    raw.send(frames[:-5])
    assert [raw.correlation_id(), raw.correlation_id()] == [1, 2]
    raw.send(frames[-5:])
    assert raw.correlation_id() == 3


def test_a_frame_larger_than_the_buffer_is_read_whole(raw: Raw) -> None:
    """A Metadata request for 20,000 topics spans many reads."""
    from mockbroker_protocol.messages.metadata import MetadataRequestTopic

    topics = [MetadataRequestTopic(name=f"missing-topic-{n}") for n in range(20_000)]
    message = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    raw.send(request(ApiKey.METADATA, 12, message))
    frame = memoryview(raw.frame())
    _, position = decode_response_header(frame, int(ApiKey.METADATA), 12)
    response, end = response_codec(ApiKey.METADATA, 12).decode(frame, position)
    assert end == len(frame)
    assert len(response.topics) == 20_000


@pytest.mark.covers("S313")
@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("negative size", struct.pack(">i", -1)),
        ("size above socket.request.max.bytes", struct.pack(">i", 104857601)),
        ("an empty frame", struct.pack(">i", 0)),
        ("no room for a header", struct.pack(">i", 3) + b"\0\x12\0"),
        ("unknown API", struct.pack(">ihhih", 10, 999, 0, 1, -1)),
        ("removed API", struct.pack(">ihhih", 10, 4, 0, 1, -1)),
        ("version too new", struct.pack(">ihhih", 10, 3, 99, 1, -1)),
        ("version too old", struct.pack(">ihhih", 10, 1, 3, 1, -1)),
        ("negative version", struct.pack(">ihhih", 10, 3, -1, 1, -1)),
        ("short body", struct.pack(">ihhihi", 14, 3, 1, 1, -1, 5)),
        ("giant array", struct.pack(">ihhihi", 14, 3, 1, 1, -1, 0x7FFFFFFF)),
        ("client id longer than the frame", struct.pack(">ihhih", 10, 3, 1, 1, 500)),
        ("flexible body that is missing", struct.pack(">ihhihb", 11, 3, 12, 1, -1, 0)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_kafka_would_not_answer_closes_only_that_connection(
    kafka: Cluster, raw: Raw, name: str, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """One log line with the peer, no answer, and the next connection works."""
    with caplog.at_level(logging.WARNING, logger="mockbroker"):
        raw.send(data)
        assert raw.closed_without_an_answer(), name
    host, port = raw.socket.getsockname()
    lines = [record.getMessage() for record in logged(caplog)]
    assert len(lines) == 1
    assert f"{host}:{port}" in lines[0]
    other = Raw(kafka)
    other.send(api_versions(5))
    assert other.correlation_id() == 5
    other.socket.close()


def test_a_request_of_too_many_elements_is_refused_before_it_is_decoded(
    kafka: Cluster, raw: Raw, caplog: pytest.LogCaptureFixture
) -> None:
    """Topics of three bytes each: a frame of a MiB would keep everybody waiting for seconds."""
    count = 350_000
    body = struct.pack(">iiiibii", -1, 0, 0, 0x7FFFFFFF, 0, 0, -1) + uvarint(count + 1)
    frame = struct.pack(">hhihx", 1, 12, 1, -1) + body + b"\1\1\0" * count + b"\1\1\0"
    with caplog.at_level(logging.WARNING, logger="mockbroker"):
        raw.send(struct.pack(">i", len(frame)) + frame)
        assert raw.closed_without_an_answer()
    (line,) = (record.getMessage() for record in logged(caplog))
    assert "FETCH v12: topics at byte 39: more elements than a message may have" in line
    assert "the limit is mockbroker.request.elements.max" in line
    assert kafka.server.stats.limits_exceeded == {"mockbroker.request.elements.max": 1}


def configs_of(*resources: tuple[int, str]) -> bytes:
    wanted = [DescribeConfigsResource(kind, name) for kind, name in resources]
    message = DescribeConfigsRequest(wanted, include_synonyms=True, include_documentation=True)
    return request(ApiKey.DESCRIBE_CONFIGS, 4, message)


def test_others_are_served_while_a_long_answer_is_made(kafka: Cluster, raw: Raw) -> None:
    """The configs of 2,000 groups take a second, and are made in slices."""
    raw.socket.settimeout(LONG_TIMEOUT_S)
    other = Raw(kafka)
    raw.send(configs_of(*((32, f"group-{number}") for number in range(2_000))))
    other.send(api_versions(5))
    assert other.correlation_id() == 5
    (size,) = struct.unpack(">i", raw.receive(4))
    raw.receive(size)
    responses = {event.api: event.seq for event in kafka.journal.events(kind="response")}
    assert responses["ApiVersions"] < responses["DescribeConfigs"]
    other.socket.close()


def test_a_response_that_is_too_large_closes_the_connection(
    kafka: Cluster, raw: Raw, caplog: pytest.LogCaptureFixture
) -> None:
    """The configs of a broker, 4,000 times, in a frame of 20 kB: they would take 120 MB."""
    with caplog.at_level(logging.WARNING, logger="mockbroker"):
        raw.send(configs_of(*[(4, "1")] * 4_000))
        assert raw.closed_without_an_answer()
    (line,) = (record.getMessage() for record in logged(caplog))
    assert "DESCRIBE_CONFIGS v4: a response of " in line
    assert "the limit is mockbroker.response.bytes.max" in line
    assert kafka.server.stats.limits_exceeded == {"mockbroker.response.bytes.max": 1}


def test_a_message_that_no_string_can_carry_is_a_warning(
    raw: Raw, caplog: pytest.LogCaptureFixture
) -> None:
    """It repeats what the client sent. Kafka answers UNKNOWN_SERVER_ERROR as well."""
    configs = [AlterableConfig("retention.ms", 0, "x" * 32_760)]
    message = IncrementalAlterConfigsRequest([AlterConfigsResource(2, "orders", configs)])
    with caplog.at_level(logging.WARNING, logger="mockbroker"):
        raw.send(request(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, message))
        frame = raw.frame()
    _, start = decode_response_header(frame, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1)
    answer, _ = response_codec(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1).decode(frame, start)
    assert answer.responses[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    (record,) = logged(caplog)
    assert record.levelno == logging.WARNING
    assert not record.exc_info
    assert "responses[0].error_message: string of " in record.getMessage()


@pytest.mark.covers("S315")
def test_a_varint_that_does_not_end_is_refused(raw: Raw) -> None:
    """Six continuation bytes where a compact length stands close the connection."""
    body = bytes.fromhex("808080808001")
    frame = struct.pack(">hhih", 3, 12, 1, -1) + b"\0" + body
    raw.send(struct.pack(">i", len(frame)) + frame)
    assert raw.closed_without_an_answer()


def test_bad_utf8_is_read_as_java_reads_it(raw: Raw) -> None:
    """Java decodes what is no UTF-8 as U+FFFD, so the topic's name is invalid: 17, no close."""
    raw.send(struct.pack(">ihhihih3s", 19, 3, 1, 1, -1, 1, 3, b"\xff\xfe\xfd"))
    frame = memoryview(raw.frame())
    response, _ = response_codec(ApiKey.METADATA, 1).decode(frame, 4)
    assert [topic.error_code for topic in response.topics] == [17]


@pytest.mark.parametrize("version", [5, 6, 99, 32767])
def test_a_too_new_api_versions_is_answered_in_the_oldest_shape(raw: Raw, version: int) -> None:
    """kafka-clients 4.4 and franz-go send v5: error 35 in v0's shape tells them what to send."""
    message = ApiVersionsRequest(client_software_name="new", client_software_version="9")
    header = encode_request_header(RequestHeader(18, 4, 42, "new"))
    body = b"".join(request_codec(ApiKey.API_VERSIONS, 4).encode(message)) + b"future fields"
    frame = struct.pack(">hh", 18, version) + header[4:] + body
    raw.send(struct.pack(">i", len(frame)) + frame)
    answer = raw.frame()
    assert answer == struct.pack(">ihihhh", 42, 35, 1, 18, 0, 4)
    raw.send(api_versions(43))
    assert raw.correlation_id() == 43


def test_bytes_after_a_request_are_ignored(raw: Raw) -> None:
    """A 4.3 broker does not mind them, and librdkafka's Metadata v13 has some."""
    frame = api_versions(3)
    raw.send(struct.pack(">i", len(frame) - 4 + 3) + frame[4:] + b"abc" + api_versions(4))
    assert [raw.correlation_id(), raw.correlation_id()] == [3, 4]


def test_a_null_client_id_is_served(raw: Raw) -> None:
    """Null counts as the empty string."""
    raw.send(struct.pack(">ihhih", 10, 18, 0, 9, -1))
    assert raw.correlation_id() == 9


def test_a_handler_that_fails_is_an_unknown_server_error_to_the_client(
    raw: Raw, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The traceback is for the log; the connection stays."""

    def fail(*_: object) -> object:
        raise KeyError("what nobody foresaw")

    monkeypatch.setattr(APIS[ApiKey.LIST_GROUPS], "handle", fail)
    raw.send(request(ApiKey.LIST_GROUPS, 4, ListGroupsRequest()) + api_versions(2))
    frame = memoryview(raw.frame())
    _, position = decode_response_header(frame, int(ApiKey.LIST_GROUPS), 4)
    response, _ = response_codec(ApiKey.LIST_GROUPS, 4).decode(frame, position)
    assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert raw.correlation_id() == 2
    (record,) = [record for record in logged(caplog) if record.exc_info]
    assert "handling LIST_GROUPS failed" in record.getMessage()


def test_an_answer_that_cannot_be_written_is_a_failure_too(
    raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nonsense(*_: object) -> object:
        return ListGroupsResponse(groups=[ListedGroup(group_id=None)])  # type: ignore[arg-type]

    monkeypatch.setattr(APIS[ApiKey.LIST_GROUPS], "handle", nonsense)
    raw.send(request(ApiKey.LIST_GROUPS, 4, ListGroupsRequest()))
    frame = memoryview(raw.frame())
    _, position = decode_response_header(frame, int(ApiKey.LIST_GROUPS), 4)
    response, _ = response_codec(ApiKey.LIST_GROUPS, 4).decode(frame, position)
    assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("groups", [0, 1, 3])
def test_a_reply_that_is_gathered_is_sent_once_all_of_it_is_there(
    raw: Raw, kafka: Cluster, groups: int
) -> None:
    """The parts of a DeleteGroups are replicated one by one; any kind of parked reply may wait."""
    names = [f"group-{number}" for number in range(groups)]
    raw.send(request(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest(groups_names=names)))
    frame = memoryview(raw.frame())
    _, position = decode_response_header(frame, int(ApiKey.DELETE_GROUPS), 2)
    response, _ = response_codec(ApiKey.DELETE_GROUPS, 2).decode(frame, position)
    assert [each.group_id for each in response.results] == names
    # Nobody has asked for a coordinator yet.
    assert {each.error_code for each in response.results} <= {ErrorCode.NOT_COORDINATOR}


def test_counters_follow_what_the_clients_do(kafka: Cluster, raw: Raw) -> None:
    """Requests are counted by API, connections and refusals one by one."""
    raw.send(api_versions(1))
    raw.frame()
    bad = Raw(kafka)
    bad.send(struct.pack(">i", -5))
    assert bad.closed_without_an_answer()
    stats = kafka.server.stats
    assert stats.requests == {int(ApiKey.API_VERSIONS): 1}
    assert stats.connections_opened == 2
    assert stats.protocol_errors == 1


def test_stopping_closes_the_connections_of_clients_that_wait() -> None:
    """A parked fetch does not hold up the end of the cluster."""
    from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic

    with Cluster(brokers=1, topics={"orders": 1}) as kafka:
        raw = Raw(kafka)
        partitions = [FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=100)]
        message = FetchRequest(
            max_wait_ms=600_000,
            min_bytes=1,
            topics=[FetchTopic(topic="orders", partitions=partitions)],
        )
        raw.send(request(ApiKey.FETCH, 11, message))
        wait_until(lambda: waits(kafka))
    assert raw.closed_without_an_answer()
    raw.socket.close()


@pytest.mark.covers("S148")
def test_an_idle_connection_is_closed_and_a_waiting_one_is_not() -> None:
    """After connections.max.idle.ms without a request; a parked Fetch is no idleness."""
    from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic

    with Cluster(brokers=1, topics={"orders": 1}) as kafka:
        kafka.clock.freeze()
        idle, busy, waiting = Raw(kafka), Raw(kafka), Raw(kafka)
        for client in (idle, busy, waiting):
            client.send(api_versions())
            client.frame()
        partitions = [FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=100)]
        topics = [FetchTopic(topic="orders", partitions=partitions)]
        message = FetchRequest(max_wait_ms=900_000, min_bytes=1, topics=topics)
        waiting.send(request(ApiKey.FETCH, 11, message))
        kafka.clock.advance("9m", extend_sessions=False)
        busy.send(api_versions())
        busy.frame()
        kafka.clock.advance("1m", extend_sessions=False)
        assert idle.closed_without_an_answer()
        busy.send(api_versions(7))
        assert busy.correlation_id() == 7
        kafka.clock.advance("5m", extend_sessions=False)
        assert waiting.frame()
        for client in (idle, busy, waiting):
            client.socket.close()


def test_timers_that_are_due_run_before_requests_that_waited() -> None:
    """After a stall of the process both are there at once; the timer was first."""
    happened: list[str] = []
    with Cluster(brokers=1, trace=lambda *_: happened.append("request")) as kafka:
        client = Raw(kafka)

        def stall(core: CoreCluster) -> None:
            runtime = core.runtime
            client.send(request(ApiKey.API_VERSIONS, 0, ApiVersionsRequest(), 1))
            runtime.timers.call_at(runtime.now_ms(), lambda: happened.append("timer"))

        for _ in range(30):  # the event loop wakes tasks in any order
            kafka.call(stall)
            client.frame()
        client.socket.close()
    assert happened == ["timer", "request"] * 30


def test_very_many_timers_that_are_due_leave_turns_to_others() -> None:
    """The request waits for all of them, and other work goes on meanwhile."""
    happened: list[str] = []
    many = 5 * TIMERS_PER_TURN
    with Cluster(brokers=1, trace=lambda *_: happened.append("request")) as kafka:
        client = Raw(kafka)

        def stall(core: CoreCluster) -> None:
            runtime = core.runtime
            client.send(request(ApiKey.API_VERSIONS, 0, ApiVersionsRequest(), 1))
            for _ in range(many):
                runtime.timers.call_at(runtime.now_ms(), lambda: happened.append("timer"))
            runtime.timers.call_soon(lambda: happened.append("other work"))
            runtime.timers.call_soon(lambda: happened.append("other work"))

        kafka.call(stall)
        client.frame()
        client.socket.close()
    assert [each for each in happened if each != "other work"] == ["timer"] * many + ["request"]
    first, second = (n for n, each in enumerate(happened) if each == "other work")
    assert 0 <= first < second < many
