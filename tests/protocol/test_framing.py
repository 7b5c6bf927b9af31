"""Frames: golden bytes, and the sizes that are refused."""

from __future__ import annotations

import pytest

from mockbroker_protocol import ApiKey
from mockbroker_protocol.codec import response_codec
from mockbroker_protocol.framing import (
    FRAME_BYTES_MAX,
    FrameError,
    frame_size,
    request_frame,
    response_frame,
)
from mockbroker_protocol.headers import RequestHeader
from mockbroker_protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from mockbroker_protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from mockbroker_protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)


def test_an_api_versions_request_is_the_known_bytes() -> None:
    """Computed by another implementation."""
    header = RequestHeader(ApiKey.API_VERSIONS, 3, 1, "c")
    (frame,) = request_frame(header, ApiVersionsRequest("x", "1"))
    assert frame.hex() == "000000110012000300000001000163000278023100"


def test_an_api_versions_response_is_the_known_bytes() -> None:
    """Computed by another implementation; features are tagged fields 0, 1 and 2."""
    response = ApiVersionsResponse(
        api_keys=[ApiVersion(18, 0, 4)],
        supported_features=[SupportedFeatureKey("transaction.version", 0, 2)],
        finalized_features_epoch=7,
        finalized_features=[FinalizedFeatureKey("transaction.version", 2, 2)],
    )
    (frame,) = response_frame(ApiKey.API_VERSIONS, 3, 1, response)
    assert frame[4:].hex() == (
        "00000001"
        "0000"
        "02"
        "0012"
        "0000"
        "0004"
        "00"
        "00000000"
        "03"
        "001a02147472616e73616374696f6e2e76657273696f6e0000000200"
        "01080000000000000007"
        "021a02147472616e73616374696f6e2e76657273696f6e0002000200"
    )
    assert frame_size(frame) == len(frame) - 4


def test_an_api_versions_request_too_new_is_answered_in_the_shape_of_v0() -> None:
    """Error 35 and the range of ApiVersions itself."""
    response = ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(18, 0, 4)])
    (frame,) = response_frame(ApiKey.API_VERSIONS, 0, 1, response)
    assert frame.hex() == "0000001000000001002300000001001200000004"


def test_the_size_counts_record_buffers_that_are_pieces_of_their_own() -> None:
    """A Fetch answer is sent as: head, batches, tail."""
    batches = memoryview(bytes(1000))
    partition = PartitionData(records=[batches, batches])
    response = FetchResponse(responses=[FetchableTopicResponse("t", partitions=[partition])])
    pieces = response_frame(ApiKey.FETCH, 12, 77, response)
    assert pieces[1] is batches
    assert pieces[2] is batches
    frame = b"".join(pieces)
    assert frame_size(frame) == len(frame) - 4
    assert frame[4:9] == b"\0\0\0\x4d\0"
    assert response_codec(ApiKey.FETCH, 12).decode(frame, 9)[1] == len(frame)


def test_a_produce_request_keeps_its_batches_apart() -> None:
    """The header goes with the first piece."""
    batch = bytes(100)
    topic = TopicProduceData("t", partition_data=[PartitionProduceData(records=batch)])
    pieces = request_frame(
        RequestHeader(ApiKey.PRODUCE, 9, 1, None), ProduceRequest(topic_data=[topic])
    )
    assert pieces[1] is batch
    assert frame_size(pieces[0]) == sum(map(len, pieces)) - 4


@pytest.mark.parametrize("size", ["ffffffff", "06400001", "7fffffff"])
def test_sizes_that_end_a_connection(size: str) -> None:
    """Negative, or above socket.request.max.bytes."""
    with pytest.raises(FrameError):
        frame_size(bytes.fromhex(size))


def test_the_largest_frame_is_the_default_of_socket_request_max_bytes() -> None:
    """100 MiB."""
    assert frame_size(FRAME_BYTES_MAX.to_bytes(4)) == 104857600
    with pytest.raises(FrameError, match="the limit is 10"):
        frame_size(b"\0\0\0\x0b", frame_bytes_max=10)
