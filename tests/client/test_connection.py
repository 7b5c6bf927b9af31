from __future__ import annotations

import struct
import threading

import pytest

from mockbroker import Cluster
from mockbroker.client import (
    ConnectError,
    Connection,
    ConnectionClosedError,
    RequestTimeoutError,
    ResponseError,
    UnsupportedVersionError,
)
from mockbroker.client.connection import api_key_of, encode_request
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.api_versions import ApiVersionsRequest
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.metadata import MetadataRequest
from mockbroker_protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.client.scripted import Peer, free_port, scripted_peer

# ApiVersions v3, correlation id 1, client id "c", software "x" version "1".
GOLDEN_REQUEST = bytes.fromhex("000000110012000300000001000163000278023100")


def connect(address: tuple[str, int], **options: float) -> Connection:
    return Connection(*address, **options)


def echo_correlation_id(peer: Peer, body: bytes) -> None:
    """Answer the next request with `body` after a response header v0."""
    peer.write_frame(peer.read_frame()[4:8] + body)


def test_a_request_has_the_bytes_of_the_protocol():
    request = ApiVersionsRequest(client_software_name="x", client_software_version="1")
    assert encode_request(request, 3, 1, "c") == GOLDEN_REQUEST


@pytest.mark.parametrize(
    ("message", "key"),
    [(MetadataRequest(), ApiKey.METADATA), (FindCoordinatorRequest(), ApiKey.FIND_COORDINATOR)],
)
def test_the_api_of_a_struct_is_known_from_its_module(message, key):
    assert api_key_of(message) is key


def test_typed_requests_are_answered_in_the_version_asked_for(mock_kafka: Cluster):
    with connect(mock_kafka.endpoint(1)) as connection:
        old = connection.send(MetadataRequest(topics=[]), 1)
        new = connection.send(MetadataRequest(topics=[]))
    assert [broker.node_id for broker in old.brokers] == [1, 2, 3]
    assert old.cluster_id is None  # a field of version 2 and up
    assert new.cluster_id


def test_without_a_version_the_newest_common_one_is_taken(mock_kafka: Cluster):
    with connect(mock_kafka.endpoint(1)) as connection:
        assert connection.version_of(ApiKey.METADATA) == 13
        assert connection.version_of(ApiKey.FETCH) == 12  # later ones know topics by id only
        assert connection.api_versions()[int(ApiKey.API_VERSIONS)] == (0, 4)


@pytest.mark.mock_kafka(kafka_version="3.9")
def test_an_api_that_the_broker_does_not_offer_is_an_error(mock_kafka: Cluster):
    with (
        connect(mock_kafka.endpoint(1)) as connection,
        pytest.raises(UnsupportedVersionError, match="does not offer SHARE_GROUP_HEARTBEAT"),
    ):
        connection.send(ShareGroupHeartbeatRequest())


def test_a_broker_that_refuses_our_api_versions_is_asked_in_its_own_version():
    def old_broker(peer: Peer) -> None:
        first = peer.read_frame()
        assert first[:4] == b"\x00\x12\x00\x04"
        # Version 0's shape: error 35, one entry, ApiVersions 0-1.
        peer.write_frame(first[4:8] + bytes.fromhex("0023 00000001 0012 0000 0001"))
        second = peer.read_frame()
        assert second[:4] == b"\x00\x12\x00\x01"
        keys = bytes.fromhex("0000 00000002 0003 0000 0005 0012 0000 0001 00000000")
        peer.write_frame(second[4:8] + keys)

    with scripted_peer(old_broker) as address, connect(address) as connection:
        assert connection.version_of(ApiKey.METADATA) == 5


def test_any_bytes_can_be_sent_and_frames_are_returned_as_they_came(mock_kafka: Cluster):
    with connect(mock_kafka.endpoint(1)) as connection:
        connection.send_raw(GOLDEN_REQUEST[:7])
        connection.send_raw(GOLDEN_REQUEST[7:])
        frame = connection.read_frame()
    assert frame[:6] == b"\0\0\0\1\0\0"  # correlation id 1, no error


def test_requests_can_be_sent_ahead_of_their_answers(mock_kafka: Cluster):
    with connect(mock_kafka.endpoint(1)) as connection:
        ids = [connection.write(MetadataRequest(topics=[]), 12) for _ in range(3)]
        answers = [connection.read(ApiKey.METADATA, 12, number) for number in ids]
    assert ids == [0, 1, 2]
    assert all(len(answer.brokers) == 3 for answer in answers)


def test_a_close_by_the_broker_is_seen(mock_kafka: Cluster):
    with connect(mock_kafka.endpoint(1)) as connection:
        connection.send_raw(struct.pack(">ihhi", 8, 9999, 0, 1))  # an API that does not exist
        assert connection.wait_closed(5)
        with pytest.raises(ConnectionClosedError):
            connection.read_frame()


def test_an_open_connection_is_not_taken_for_a_closed_one(mock_kafka: Cluster):
    with connect(mock_kafka.endpoint(1)) as connection:
        assert not connection.wait_closed(0.01)
        assert connection.send(MetadataRequest(topics=[]), 12).brokers


def test_a_reset_is_a_close_too():
    def reset_after_a_request(peer: Peer) -> None:
        peer.read_frame()
        peer.reset()

    with scripted_peer(reset_after_a_request) as address, connect(address) as connection:
        connection.send_raw(GOLDEN_REQUEST)
        assert connection.wait_closed()


def test_a_close_inside_an_answer_says_how_much_had_come():
    def cut(peer: Peer) -> None:
        peer.read_frame()
        peer.socket.sendall(struct.pack(">i", 100) + b"x" * 20)

    with scripted_peer(cut) as address, connect(address) as connection:
        connection.send_raw(GOLDEN_REQUEST)
        with pytest.raises(ConnectionClosedError, match="after 24 bytes of an answer") as caught:
            connection.read_frame()
    assert caught.value.bytes_read == 24
    assert caught.value.retriable


def test_a_silent_broker_times_out():
    done = threading.Event()
    with (
        scripted_peer(lambda _: done.wait(20)) as address,
        connect(address, timeout_s=0.05) as connection,
    ):
        connection.send_raw(GOLDEN_REQUEST)
        with pytest.raises(RequestTimeoutError, match=r"no answer .* within 0\.05 s"):
            connection.read_frame()
        done.set()


def test_a_timeout_that_is_set_later_counts():
    done = threading.Event()
    with scripted_peer(lambda _: done.wait(20)) as address, connect(address) as connection:
        connection.timeout_s = 0.05
        connection.send_raw(GOLDEN_REQUEST)
        with pytest.raises(RequestTimeoutError, match=r"no answer .* within 0\.05 s"):
            connection.read_frame()
        assert not connection.wait_closed(0.01)
        assert connection.timeout_s == 0.05
        done.set()


def test_nobody_listening_is_one_clear_sentence():
    port = free_port()
    with pytest.raises(ConnectError, match=f"cannot connect to 127.0.0.1:{port}: connection refu"):
        Connection("127.0.0.1", port)


def test_an_answer_to_another_request_is_refused():
    def wrong_id(peer: Peer) -> None:
        peer.read_frame()
        peer.write_frame(struct.pack(">i", 77) + b"\0" * 6)

    with (
        scripted_peer(wrong_id) as address,
        connect(address) as connection,
        pytest.raises(ResponseError, match="correlation id 77 instead of 0"),
    ):
        connection.send(ApiVersionsRequest(), 0)


def test_bytes_after_an_answer_are_refused():
    def long_answer(peer: Peer) -> None:
        echo_correlation_id(peer, b"\0" * 6 + b"xyz")

    with (
        scripted_peer(long_answer) as address,
        connect(address) as connection,
        pytest.raises(ResponseError, match="3 bytes after the ApiVersionsResponse"),
    ):
        connection.send(ApiVersionsRequest(), 0)


@pytest.mark.parametrize("size", [-1, 2**31 - 1])
def test_a_size_that_no_frame_has_is_refused(size):
    def giant(peer: Peer) -> None:
        peer.socket.sendall(struct.pack(">i", size))

    with (
        scripted_peer(giant) as address,
        connect(address) as connection,
        pytest.raises(ResponseError, match=f"a frame of {size} bytes"),
    ):
        connection.read_frame()


def test_the_end_of_our_requests_can_be_told(mock_kafka: Cluster):
    with connect(mock_kafka.endpoint(1)) as connection:
        connection.write(MetadataRequest(topics=[]), 12)
        connection.shutdown_write()
        assert connection.read(ApiKey.METADATA, 12).brokers
        assert connection.wait_closed(5)


def test_a_null_client_id_can_be_sent(mock_kafka: Cluster):
    with Connection(*mock_kafka.endpoint(1), client_id=None) as connection:
        assert connection.send(ApiVersionsRequest(), 0).error_code == ErrorCode.NONE
