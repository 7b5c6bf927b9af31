"""`decode`: every byte gets a meaning, and damaged bytes are pointed at."""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise

import pytest

from mockbroker_protocol import ApiKey
from mockbroker_protocol.codec import response_codec
from mockbroker_protocol.exceptions import EncodeError, UnknownVersionError
from mockbroker_protocol.explain import explain, explain_request, explain_response
from mockbroker_protocol.framing import request_frame, response_frame
from mockbroker_protocol.headers import RequestHeader
from mockbroker_protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from mockbroker_protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from mockbroker_protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.protocol.strategies import all_codecs

REQUEST = bytes.fromhex("000000110012000300000001000163000278023100")
BATCH = bytes.fromhex(
    "00000000000000000000004a0000000002cbf04f280010000000010000018bcfe568000000018bcfe568050000"
    "0000000000070001000000050000000210000000026b0276001e000a02010476760402680278026e01"
)


def lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_a_request_frame_is_explained_byte_by_byte() -> None:
    """Size, header and body, each field with offset, bytes, path and value."""
    assert explain(REQUEST).splitlines() == [
        "API_VERSIONS request v3, 21 bytes",
        "",
        "     0  00000011                           size                     17",
        "     4  0012                               api_key                  18 API_VERSIONS",
        "     6  0003                               api_version              3",
        "     8  00000001                           correlation_id           1",
        "    12  000163                             client_id                'c'",
        "    15  00                                 _tags                    0 tags",
        "    16  0278                               client_software_name     'x'",
        "    18  0231                               client_software_version  '1'",
        "    20  00                                 _tags                    0 tags",
    ]


def test_the_size_may_be_missing() -> None:
    """Captures often hold what is inside the frame."""
    assert explain(REQUEST[4:]).startswith("API_VERSIONS request v3, 17 bytes\n")


def test_a_damaged_request_is_explained_up_to_the_byte_that_is_wrong() -> None:
    """The line with an exclamation mark names field, byte and reason."""
    last = explain(REQUEST[:-1]).splitlines()[-1].split()
    assert last[:4] == ["!", "20", "_tags", "needs"]
    assert ["!", "0", "00000011", "size", "17,", "but", "16", "bytes", "follow"] in lines(
        explain(REQUEST[:-1])
    )
    assert explain(REQUEST + b"\7").splitlines()[-1].split()[:3] == ["!", "21", "07"]


def test_a_version_that_does_not_exist_is_pointed_at() -> None:
    """The header is readable all the same."""
    newer = bytearray(REQUEST)
    newer[7] = 9
    text = explain(bytes(newer), "request")
    assert "ApiVersionsRequest has versions 0-4, not 9" in text
    assert text.splitlines()[-1].startswith("!    6 ")


def test_batches_inside_a_produce_request_are_explained_too() -> None:
    """Header fields, then each record."""
    topic = TopicProduceData("t", partition_data=[PartitionProduceData(1, BATCH)])
    header = RequestHeader(ApiKey.PRODUCE, 9, 4, "me")
    data = b"".join(request_frame(header, ProduceRequest(topic_data=[topic])))
    text = explain(data)
    assert "batch[0].producer_id" in text
    assert "offset 1, timestamp 1700000000005, key None, value b'vv'" in text
    assert "!" not in text


def test_batches_alone_are_recognised_and_a_wrong_checksum_shown() -> None:
    """The first flipped bit of a value shows in the checksum."""
    assert explain(BATCH).startswith("record batches, 86 bytes\n")
    damaged = bytearray(BATCH)
    damaged[-1] ^= 2
    marked = [line for line in explain(bytes(damaged)).splitlines() if line.startswith("!")]
    assert "crc" in marked[0]
    assert "does not match" in marked[0]


def test_a_batch_cut_short_says_how_much_is_missing() -> None:
    """The length field is the one that promises too much."""
    text = explain(BATCH[:-1], "records")
    assert "a batch of 86 bytes, 85 left" in text
    assert "16 bytes of a batch cut short" in explain(BATCH[:16], "records")


def test_a_batch_of_another_format_is_shown_as_a_whole() -> None:
    old = bytearray(BATCH)
    old[16] = 1
    text = explain(BATCH + bytes(old), "records")
    assert f"{len(old)} bytes of magic 1, no batch of format v2" in text


def test_a_response_needs_to_be_named_but_may_be_guessed() -> None:
    """Nothing in a response says what it answers."""
    response = MetadataResponse(topics=[MetadataResponseTopic(3, "a-topic")])
    data = b"".join(response_frame(ApiKey.METADATA, 12, 1, response))
    text = explain(data, "response Metadata 12")
    assert text.startswith("METADATA response v12, ")
    assert "3 UNKNOWN_TOPIC_OR_PARTITION" in text
    assert "METADATA response v12" in explain(data)


def test_a_body_alone_can_be_explained() -> None:
    """As `to_hex` of some other tool prints it."""
    text = explain(bytes.fromhex("0278023100"), "body ApiVersionsRequest 3")
    assert text.startswith("ApiVersionsRequest v3, 5 bytes\n")
    assert "client_software_version  '1'" in text


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff" * 5, bytes(40), b"GET / HTTP/1.1\r\n\r\n"])
def test_any_bytes_are_explained_without_raising(data: bytes) -> None:
    """Somebody will point a browser at a broker."""
    assert explain(data).strip()


def test_hints_that_mean_nothing_are_refused() -> None:
    """The message lists those that do."""
    with pytest.raises(ValueError, match="request, records, response NAME VERSION"):
        explain(b"", "frame")
    with pytest.raises(UnknownVersionError):
        explain(b"", "response Fetch 99")


def test_every_byte_of_every_default_message_belongs_to_exactly_one_field() -> None:
    """Spans follow each other without gap or overlap, whatever the message."""
    for codec in all_codecs():
        if not codec.message.name.endswith("Response") or codec.message.leading:
            continue
        key = ApiKey[codec._schema.__name__.rpartition(".")[2].upper()]
        classes = import_module(codec._schema.__name__.replace(".schemas.", ".messages."))
        message = getattr(classes, codec.message.name)()
        try:
            data = b"".join(response_frame(key, codec.version, 1, message))
        except EncodeError:
            continue  # the default of a nullable field may be null where the version has no null
        explanation = explain_response(data, key, codec.version)
        covered = [(span.start, span.end) for span in explanation.spans]
        assert covered[0][0] == 0
        assert all(before[1] == after[0] for before, after in pairwise(covered))
        assert covered[-1][1] == len(data)


def test_records_and_their_neighbours_cover_a_fetch_response() -> None:
    """The batches' own spans fill the place of the records field."""
    partition = PartitionData(records=BATCH * 2)
    response = FetchResponse(responses=[FetchableTopicResponse("t", partitions=[partition])])
    data = b"".join(response_frame(ApiKey.FETCH, 12, 1, response))
    assert response_codec(ApiKey.FETCH, 12).decode(data, 9)[1] == len(data)
    spans = explain_response(data, ApiKey.FETCH, 12).spans
    assert sum(span.end - span.start for span in spans) == len(data)
    assert explain_request(data).whole is False
