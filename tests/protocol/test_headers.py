"""Headers: which version goes with which request, and golden bytes."""

from __future__ import annotations

import pytest

from mockbroker_protocol import ApiKey
from mockbroker_protocol.declarations import declared_keys, messages_of, schema_module
from mockbroker_protocol.exceptions import DecodeError, TooManyElementsError
from mockbroker_protocol.headers import (
    RequestHeader,
    ResponseHeader,
    decode_request_header,
    decode_response_header,
    encode_request_header,
    encode_response_header,
    request_header_version,
    response_header_version,
)
from mockbroker_protocol.runtime import uvarint


def test_flexible_versions_have_headers_with_tags() -> None:
    for key in declared_keys():
        for message in messages_of(schema_module(key.name.lower())):
            for version in range(message.versions.low, message.versions.high + 1):
                flexible = version in message.flexible
                assert request_header_version(key, version) == (2 if flexible else 1)
                expected = flexible and key is not ApiKey.API_VERSIONS
                assert response_header_version(key, version) == expected


def test_the_client_id_of_a_flexible_header_keeps_its_int16_length() -> None:
    """KIP-482: header v2 is v1 and a tagged section."""
    header = RequestHeader(api_key=18, api_version=3, correlation_id=1, client_id="c")
    data = encode_request_header(header)
    assert data.hex() == "001200030000000100016300"
    assert decode_request_header(data) == (header, len(data))


@pytest.mark.parametrize(
    ("data", "client_id"),
    [
        ("0003000100000007ffff", None),
        ("00030001000000070000", ""),
        ("000300010000000700026162", "ab"),
    ],
)
def test_the_client_id_of_header_v1_may_be_null_or_empty(data: str, client_id: str | None) -> None:
    """Metadata v1 comes with header v1, which has no tags."""
    header, pos = decode_request_header(memoryview(bytes.fromhex("ffff" + data + "aa")), 2)
    assert header == RequestHeader(3, 1, 7, client_id)
    assert pos == 2 + len(data) // 2
    assert encode_request_header(header).hex() == data


def test_tags_of_a_header_are_kept() -> None:
    """None is defined yet, any may come."""
    header, pos = decode_request_header(bytes.fromhex("0012000300000001ffff01630261620000"))
    assert header.unknown_tags == {0x63: b"ab"}
    assert pos == 15


def test_an_api_versions_request_of_an_unknown_version_has_a_readable_header() -> None:
    """Newer clients ask with v5 first; to refuse, a broker must learn the correlation id."""
    header, pos = decode_request_header(bytes.fromhex("001200070000000900016300ffff"))
    assert (header.api_version, header.correlation_id, pos) == (7, 9, 12)


@pytest.mark.parametrize(
    ("data", "path", "byte"),
    [
        ("000300", "api_key", 0),
        ("00630001", "api_key", 0),
        ("ffff0001", "api_key", 0),
        ("000300010000", "correlation_id", 4),
        ("0003000100000001", "client_id", 8),
        ("00030001000000010005ab", "client_id", 8),
        ("0003000c00000001ffff", "_tags", 10),
    ],
)
def test_a_header_that_cannot_be_read_says_where(data: str, path: str, byte: int) -> None:
    """An API key without a declaration has no known header either."""
    with pytest.raises(DecodeError) as caught:
        decode_request_header(bytes.fromhex(data))
    assert (caught.value.path, caught.value.byte) == (path, byte)


def test_response_headers_have_tags_in_flexible_versions_but_for_api_versions() -> None:
    """KIP-511: whoever asks for the versions cannot know yet which header is spoken."""
    header = ResponseHeader(correlation_id=5)
    assert encode_response_header(header, ApiKey.METADATA, 8).hex() == "00000005"
    assert encode_response_header(header, ApiKey.METADATA, 9).hex() == "0000000500"
    assert encode_response_header(header, ApiKey.API_VERSIONS, 4).hex() == "00000005"
    assert decode_response_header(b"\0\0\0\5\0", ApiKey.METADATA, 9) == (header, 5)


def test_a_header_of_a_large_frame_has_a_bounded_number_of_tags() -> None:
    """A frame of a MiB has room for half a million: half a second, for everybody."""
    tags = 20_000
    head = bytes.fromhex("0003000c00000001ffff") + uvarint(tags)
    with pytest.raises(TooManyElementsError, match="_tags at byte 13: more elements"):
        decode_request_header(memoryview(head + b"\x01\x00" * tags))
    few = bytes.fromhex("0003000c00000001ffff01630161") + bytes(20_000)
    assert decode_request_header(memoryview(few))[0].unknown_tags == {0x63: b"a"}
