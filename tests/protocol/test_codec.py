"""Every message in every version: emitted codecs and construct agree, on good bytes and bad."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from functools import partial
from io import BytesIO
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from mockbroker_protocol import ApiKey
from mockbroker_protocol.codec import (
    EXPLAINED_BYTES_MAX,
    Codec,
    named_codec,
    request_codec,
    response_codec,
)
from mockbroker_protocol.emit import compile_function, decode_source, encode_source
from mockbroker_protocol.exceptions import (
    DecodeError,
    EncodeError,
    TooManyElementsError,
    UnknownVersionError,
)
from mockbroker_protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from mockbroker_protocol.messages.consumer_offsets import (
    ClassicMemberMetadata,
    ConsumerGroupMemberMetadataValue,
)
from mockbroker_protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    RequestCursor,
    TopicRequest,
)
from mockbroker_protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    LeaderIdAndEpoch,
    PartitionData,
)
from mockbroker_protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from mockbroker_protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from mockbroker_protocol.slow import construct_decode, construct_encode, tracked
from tests.protocol.strategies import all_codecs, messages

EVERY_CODEC = pytest.mark.parametrize("codec", all_codecs(), ids=repr)
FEW = settings(
    max_examples=5,
    deadline=None,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
FLIPS = st.integers(0, 2**32)
# Of a message that is cut and flipped at each of its bytes.
DAMAGED_BYTES_MAX = 100
# The tests of a codec use the same emitted functions, which are made once on one worker.
pytestmark = pytest.mark.xdist_group("codecs")


class FellBackError(Exception):
    """The emitted function gave up and would have asked construct."""


@functools.cache
def emitted(codec: Codec) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The emitted functions alone, without construct to fall back on."""

    def again(*_: Any) -> None:
        raise FellBackError

    source, constants = decode_source(codec.tree, viewing=codec.message.leading)
    decode = compile_function(source, {**constants, "again": again}, "decode", "decode")
    source, constants = encode_source(codec.tree)
    encode = compile_function(source, {**constants, "again": again}, "encode", "encode")
    return decode, encode


@functools.cache
def emitted_bounded(codec: Codec) -> Callable[..., Any]:
    """The emitted function that reads at most as many elements as it is allowed."""
    source, constants = decode_source(codec.tree, viewing=codec.message.leading, bounded=True)
    failed = {"failed": lambda *_: FellBackError()}
    return compile_function(source, {**constants, **failed}, "decode", "decode")


# The first example of Hypothesis is the smallest, an empty message: one example would be no test.


@EVERY_CODEC
@FEW
@given(drawn=st.data())
def test_emitted_and_construct_agree_on_generated_messages(
    codec: Codec, drawn: st.DataObject
) -> None:
    """Both write the same bytes, both read the same struct back, and writing it again changes
    nothing. Unknown tags survive."""
    decode, encode = emitted(codec)
    message = drawn.draw(messages(codec))
    data = b"".join(encode(message))
    assert data == b"".join(construct_encode(codec, message))
    read, end = decode(data)
    assert end == len(data)
    assert (read, end) == construct_decode(codec, data)
    assert b"".join(encode(read)) == data
    assert read == message
    # A message may stand anywhere in a buffer, of any kind, with more behind it.
    assert decode(memoryview(b"\xff" * 3 + data + b"\x7f"), 3) == (read, end + 3)


@EVERY_CODEC
@settings(FEW, max_examples=2, derandomize=True)
@given(drawn=st.data(), flips=FLIPS)
def test_bytes_cut_short_or_flipped_are_read_alike_or_refused_by_both(
    codec: Codec, drawn: st.DataObject, flips: int
) -> None:
    """A message cut at any byte is refused; with any one byte changed, both ways of reading give
    the same struct or both refuse. The error names a path and a byte of the message."""
    decode, encode = emitted(codec)
    whole = b"".join(encode(drawn.draw(messages(codec, elements_max=2))))
    data = whole[:DAMAGED_BYTES_MAX]
    for cut in range(len(data)):
        agree(codec, decode, data[:cut], refused=data == whole)
    chance = random.Random(flips)
    for at in range(len(data)):
        flipped = bytearray(data)
        flipped[at] ^= 1 << chance.randrange(8)
        agree(codec, decode, bytes(flipped))


@EVERY_CODEC
@settings(FEW, max_examples=2)
@given(drawn=st.data(), flips=FLIPS)
def test_bytes_of_strangers_are_read_as_others_within_the_limit(
    codec: Codec, drawn: st.DataObject, flips: int
) -> None:
    """A message has some number of elements. With as many allowed it is read alike, whole or
    flipped; with one less it is refused, at the array where they ran out."""
    bounded = emitted_bounded(codec)
    _, encode = emitted(codec)
    data = b"".join(encode(drawn.draw(messages(codec, elements_max=3))))
    count = elements_in(codec, data)
    assert bounded(data, 0, count) == codec.decode(data)
    if count:
        with pytest.raises(FellBackError):
            bounded(data, 0, count - 1)
    chance = random.Random(flips)
    for _ in range(20 if data else 0):
        flipped = bytearray(data)
        flipped[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        other = attempt(codec.decode, bytes(flipped))
        if isinstance(other, DecodeError):
            with pytest.raises(FellBackError):
                bounded(bytes(flipped), 0, 1 << 31)
        else:
            read, end = bounded(bytes(flipped), 0, 1 << 31)
            assert end == other[1]
            assert b"".join(codec.encode(read)) == b"".join(codec.encode(other[0]))


@EVERY_CODEC
@settings(FEW, max_examples=2, derandomize=True)
@given(drawn=st.data(), flips=FLIPS)
def test_a_large_buffer_is_refused_at_the_field_at_fault(
    codec: Codec, drawn: st.DataObject, flips: int
) -> None:
    """Construct is too slow for these. What tracks instead names the same field and byte, cut at
    any byte or with a byte changed."""
    _, encode = emitted(codec)
    track = tracked(codec)
    data = b"".join(encode(drawn.draw(messages(codec, elements_max=2))))[:DAMAGED_BYTES_MAX]
    chance = random.Random(flips)
    for at in range(len(data)):
        flipped = bytearray(data)
        flipped[at] ^= 1 << chance.randrange(8)
        for bad in (data[:at], bytes(flipped)):
            error = attempt(partial(construct_decode, codec), bad)
            expected = (error.path, error.byte) if isinstance(error, DecodeError) else None
            assert track(bad, 0) == expected, bad.hex()


def elements_in(codec: Codec, data: bytes) -> int:
    """The elements of all arrays and tagged sections, as construct reads them."""
    stream = BytesIO(data)
    count = 0

    def trace(_path: str, _start: int, _end: int, value: object) -> None:
        nonlocal count
        count += len(value) if isinstance(value, range) else 0

    stream.trace = trace  # type: ignore[attr-defined]
    codec.tree.parse_stream(stream)
    return count


def test_a_large_message_of_a_stranger_is_not_read_by_construct() -> None:
    """It takes 6 µs a byte. The error names the byte. Text that is no UTF-8 is read as in Java."""
    codec = request_codec(ApiKey.METADATA, 12)
    topics = [MetadataRequestTopic(name=f"topic-{index}") for index in range(2_000)]
    data = b"".join(codec.encode(MetadataRequest(topics=topics)))
    assert len(data) > EXPLAINED_BYTES_MAX
    assert codec.decode_untrusted(data, 0, 2_000)[0].topics == topics
    with pytest.raises(TooManyElementsError, match="topics at byte 2: more elements"):
        codec.decode_untrusted(data, 0, 1_999)
    with pytest.raises(DecodeError, match=r"topics\[\d+\]\.\w+ at byte \d+: does not"):
        codec.decode_untrusted(data[:-100], 0, 2_000)
    damaged = data.replace(b"topic-1999", b"topic-\xff\xed\xa0\x80")
    read, _ = codec.decode_untrusted(damaged, 0, 2_000)
    assert read.topics[-1].name == "topic-��"
    small = data[:EXPLAINED_BYTES_MAX]
    with pytest.raises(DecodeError, match=r"topics at byte 0: 2000 elements|topics\[\d+\]"):
        codec.decode_untrusted(small, 0, 2_000)


def agree(codec: Codec, decode: Callable[..., Any], data: bytes, *, refused: bool = False) -> None:
    fast = attempt(decode, data)
    slow = attempt(partial(construct_decode, codec), data)
    if isinstance(slow, DecodeError):
        assert isinstance(fast, FellBackError)
        assert slow.path
        assert slow.reason
        assert 0 <= slow.byte <= len(data)
    elif isinstance(fast, FellBackError):
        # Kafka reads text that is no UTF-8; only construct knows how.
        assert "�" in repr(slow)
    else:
        assert not refused
        assert fast == slow or repr(fast) == repr(slow)  # NaN equals nothing


def attempt(decode: Callable[[bytes], Any], data: bytes) -> Any:
    try:
        return decode(data)
    except (DecodeError, FellBackError) as error:
        return error


def test_path_and_byte_of_the_first_field_that_cannot_be_read_are_named() -> None:
    """The path counts elements from 0, the byte is where the field begins in the buffer."""
    request = FetchRequest(
        topics=[FetchTopic("a", partitions=[FetchPartition()] * 2), FetchTopic("b")]
    )
    data = request_codec(ApiKey.FETCH, 4).encode(request)[0]
    # 17 bytes of fixed fields, count, name (2 + 1), count, then partitions of 4 + 8 + 4 bytes
    with pytest.raises(DecodeError) as caught:
        request_codec(ApiKey.FETCH, 4).decode(data[: 17 + 4 + 3 + 4 + 16 + 4 + 7])
    assert caught.value.path == "topics[0].partitions[1].fetch_offset"
    assert caught.value.byte == 17 + 4 + 3 + 4 + 16 + 4
    assert caught.value.reason == "needs 8 bytes, 7 left"
    assert str(caught.value) == (
        "topics[0].partitions[1].fetch_offset at byte 48: needs 8 bytes, 7 left"
    )


@pytest.mark.parametrize(
    ("data", "path", "reason"),
    [
        ("00", "client_software_name", "null where none is allowed"),
        ("0278", "client_software_version", "needs 1 bytes, 0 left"),
        ("7f78", "client_software_name", "needs 126 bytes, 1 left"),
        ("ffffffff08", "client_software_name", "null where none is allowed"),
        ("ffffffff07", "client_software_name", "string of 2147483646 bytes, at most 32767"),
        ("818002" + "61" * 32768, "client_software_name", "string of 32768 bytes, at most 32767"),
        ("8080808080", "client_software_name", "varint longer than 5 bytes"),
        ("02780278", "_tags", "needs 1 bytes, 0 left"),
        ("0278027801050261", "_tags", "tag 5 of 2 bytes, 1 left"),
    ],
)
def test_what_kafkas_own_reader_refuses_is_refused(data: str, path: str, reason: str) -> None:
    """The cases were tried on the classes of kafka-clients 4.3.1."""
    with pytest.raises(DecodeError) as caught:
        request_codec(ApiKey.API_VERSIONS, 3).decode(bytes.fromhex(data))
    assert (caught.value.path, caught.value.reason) == (path, reason)


@pytest.mark.parametrize(
    ("data", "name", "tags"),
    [
        ("820078" + "0278" + "00", "x", None),  # a varint longer than it need be
        ("03ff41" + "0278" + "00", "�A", None),  # no UTF-8
        ("04eda080" + "0278" + "00", "�", None),  # a surrogate: one replacement, as in Java
        ("0278" + "0278" + "0205016104016" + "2", "x", {5: b"a", 4: b"b"}),  # tags not ascending
        ("0278" + "0278" + "02050161050162", "x", {5: b"b"}),  # one tag twice
        ("0278" + "0278" + "ffffffff0f", "x", None),  # minus one tags
    ],
)
def test_what_kafkas_own_reader_lets_pass_passes(
    data: str, name: str, tags: dict[int, bytes] | None
) -> None:
    """The cases were tried on the classes of kafka-clients 4.3.1."""
    request, end = request_codec(ApiKey.API_VERSIONS, 3).decode(bytes.fromhex(data))
    assert request.client_software_name == name
    assert request.unknown_tags == tags
    assert end == len(data) // 2


def test_a_tag_of_32_bits_survives() -> None:
    """Java reads it as a negative number."""
    codec = request_codec(ApiKey.API_VERSIONS, 3)
    data = bytes.fromhex("0278" + "0278" + "01" + "99c5ad810f" + "0161")
    request, _ = codec.decode(data)
    assert request.unknown_tags == {-265_592_167: b"a"}
    assert b"".join(codec.encode(request)) == data


def test_any_negative_length_is_null_where_null_is_allowed() -> None:
    """Kafka's readers ask whether a length is negative, not whether it is -1."""
    assert request_codec(ApiKey.METADATA, 1).decode(b"\xff\xff\xff\xfb") == (
        MetadataRequest(topics=None),
        4,
    )
    with pytest.raises(DecodeError, match="null where none is allowed"):
        request_codec(ApiKey.METADATA, 0).decode(b"\xff\xff\xff\xfb")


def test_a_count_beyond_the_bytes_left_is_refused_before_anything_is_allocated() -> None:
    """Memory is bounded by the frame: each element takes a byte at least."""
    with pytest.raises(DecodeError) as caught:
        request_codec(ApiKey.METADATA, 0).decode(b"\x7f\xff\xff\xff\x00\x01a")
    assert caught.value.path == "topics"
    assert caught.value.reason == "2147483647 elements, 3 bytes left"


@pytest.mark.parametrize("records", [b"batch", b"", None])
def test_records_are_views_also_where_a_text_is_not_utf_8(records: bytes | None) -> None:
    """Construct reads such a message, and replaces what is no text as Java does."""
    codec = request_codec(ApiKey.PRODUCE, 9)
    partition = PartitionProduceData(index=3, records=records)
    request = ProduceRequest(topic_data=[TopicProduceData("abc", partition_data=[partition])])
    frame = b"".join(codec.encode(request)).replace(b"abc", b"a\xffc")
    decoded, end = codec.decode(bytearray(frame))
    [topic] = decoded.topic_data
    assert (topic.name, end) == ("a\ufffdc", len(frame))
    found = topic.partition_data[0].records
    assert found == records
    assert isinstance(found, memoryview | None)


def test_records_are_views_of_the_frame_and_leave_as_the_buffers_they_came_in() -> None:
    """No record byte is copied on the way in or out."""
    codec = request_codec(ApiKey.PRODUCE, 9)
    batches = bytearray(b"batch" * 100)
    partition = PartitionProduceData(index=3, records=[batches, memoryview(b"more")])
    request = ProduceRequest(topic_data=[TopicProduceData("t", partition_data=[partition])])
    pieces = codec.encode(request)
    assert pieces[1] is batches
    assert pieces[2] == b"more"
    frame = bytearray(b"".join(pieces))
    decoded, end = codec.decode(frame)
    records = decoded.topic_data[0].partition_data[0].records
    assert end == len(frame)
    assert isinstance(records, memoryview)
    assert records == b"".join((batches, b"more"))
    at = frame.index(b"batch")
    frame[at] = ord("B")
    assert records[:5] == b"Batch"


def test_empty_and_null_records_differ_and_take_no_piece_of_their_own() -> None:
    """A Fetch answer without data is one piece."""
    codec = response_codec(ApiKey.FETCH, 12)
    partitions = [
        PartitionData(records=None),
        PartitionData(records=b""),
        PartitionData(records=[]),
    ]
    response = FetchResponse(responses=[FetchableTopicResponse("t", partitions=partitions)])
    (piece,) = codec.encode(response)
    decoded, _ = codec.decode(piece)
    assert [part.records for part in decoded.responses[0].partitions] == [None, b"", b""]


def test_fields_that_a_version_lacks_are_dropped_and_come_back_as_kafkas_default() -> None:
    """Structs are version-free: a handler fills in all it knows."""
    codec = response_codec(ApiKey.API_VERSIONS, 0)
    response = ApiVersionsResponse(error_code=35, throttle_time_ms=7, finalized_features_epoch=4)
    assert codec.decode(codec.encode(response)[0])[0] == ApiVersionsResponse(error_code=35)
    assert ApiVersionsResponse().finalized_features_epoch == -1


def test_a_tagged_struct_is_left_out_while_it_equals_its_default() -> None:
    """A leader hint in Fetch is absent unless set, and the shared default cannot be changed."""
    codec = response_codec(ApiKey.FETCH, 12)

    def encoded(**fields: Any) -> bytes:
        topic = FetchableTopicResponse("t", partitions=[PartitionData(**fields)])
        return b"".join(codec.encode(FetchResponse(responses=[topic])))

    assert encoded() == encoded(current_leader=LeaderIdAndEpoch(-1, -1))
    assert len(encoded(current_leader=LeaderIdAndEpoch(2, -1))) == len(encoded()) + 2 + 9
    with pytest.raises(AttributeError):
        PartitionData().current_leader.leader_id = 1  # type: ignore[misc]


def test_a_nullable_struct_has_a_presence_byte() -> None:
    """DescribeTopicPartitions' cursor: ff for null, 01 and the fields otherwise."""
    codec = request_codec(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0)
    request = DescribeTopicPartitionsRequest(topics=[TopicRequest("t")])
    assert codec.encode(request)[0].hex() == "02027400" + "000007d0" + "ff" + "00"
    request.cursor = RequestCursor("t", 1)
    data = codec.encode(request)[0]
    assert data.hex() == "02027400" + "000007d0" + "01" + "027400000001" + "00" + "00"
    assert codec.decode(data) == (request, len(data))


def test_a_nullable_struct_in_a_tag_has_a_varint_for_its_presence() -> None:
    """The only place where Kafka's generator counts presence as 0 and 1."""
    codec = named_codec("consumer_offsets", "ConsumerGroupMemberMetadataValue", 0)
    value = ConsumerGroupMemberMetadataValue(
        classic_member_metadata=ClassicMemberMetadata(session_timeout_ms=9)
    )
    data = codec.encode(value)[0]
    assert data.hex().endswith("01" + "00" + "07" + "01" + "00000009" + "01" + "00")
    assert codec.decode(data) == (value, len(data))
    null = bytes(data[:-8]) + b"\x01\x00"
    value = ConsumerGroupMemberMetadataValue(classic_member_metadata=None)
    assert codec.decode(null) == (value, len(null))
    assert codec.encode(value) == [null]


@pytest.mark.covers("S324")
def test_every_response_with_a_throttle_time_writes_it_and_it_is_0_unless_set() -> None:
    """Where the schema has the field, four bytes of it are on the wire."""
    throttled = [
        codec
        for codec in all_codecs()
        for field in codec.message.shape.fields
        if field.name == "throttle_time_ms" and codec.version in field.versions
    ]
    assert len(throttled) > 150
    for codec in throttled:
        message = default_message(codec)
        assert message.throttle_time_ms == 0
        message.throttle_time_ms = 0x7EADBEEF
        assert b"\x7e\xad\xbe\xef" in b"".join(codec.encode(message))


def default_message(codec: Codec) -> Any:
    """A message with its defaults, and what must not be null in this version filled in."""
    message = codec.tree.cls()
    for field in codec.message.shape.fields:
        if getattr(message, field.name) is None and codec.version not in field.nullable:
            setattr(message, field.name, "")
    return message


@pytest.mark.covers("S321")
def test_find_coordinator_answers_one_key_or_from_v4_on_several() -> None:
    """Throttle time, error, node, host and port; KIP-699 moved them into a list."""
    single = FindCoordinatorResponse(node_id=2, host="h", port=9092)
    data = response_codec(ApiKey.FIND_COORDINATOR, 1).encode(single)[0]
    assert data.hex() == "00000000000000000000000200016800002384"
    batched = FindCoordinatorResponse(
        coordinators=[Coordinator("g", 2, "h", 9092), Coordinator("i")]
    )
    codec = response_codec(ApiKey.FIND_COORDINATOR, 4)
    data = codec.encode(batched)[0]
    assert data.hex().startswith("000000000302670000000202680000238400000100")
    assert codec.decode(data)[0] == batched


@pytest.mark.parametrize(
    ("request_", "path", "reason"),
    [
        (MetadataRequest(topics=None), "topics", "null where none is allowed"),
        (
            MetadataRequest(topics=[MetadataRequestTopic(name=None)]),
            "topics[0].name",
            "null where none is allowed",
        ),
        (
            MetadataRequest(topics=[MetadataRequestTopic(name="x" * 40000)]),
            "topics[0].name",
            "string of 40000 bytes, at most 32767",
        ),
        (
            MetadataRequest(topics=[MetadataRequestTopic(name=7)]),  # type: ignore[arg-type]
            "topics[0].name",
            "7 is no string",
        ),
    ],
)
def test_what_the_wire_cannot_carry_is_named_when_encoding(
    request_: MetadataRequest, path: str, reason: str
) -> None:
    """EncodeError gives the path of the field at fault."""
    with pytest.raises(EncodeError) as caught:
        request_codec(ApiKey.METADATA, 0).encode(request_)
    assert (caught.value.path, caught.value.reason) == (path, reason)


def test_numbers_out_of_range_are_named_when_encoding() -> None:
    """The int32 of a session id does not take 2³¹."""
    with pytest.raises(EncodeError, match="session_id: 2147483648 is no int32"):
        response_codec(ApiKey.FETCH, 12).encode(FetchResponse(session_id=2**31))


def test_an_unknown_tag_under_a_known_number_is_refused_when_encoding() -> None:
    """Otherwise one tag would be written twice."""
    with pytest.raises(EncodeError, match="unknown tag 0 is known as supported_features"):
        response_codec(ApiKey.API_VERSIONS, 3).encode(ApiVersionsResponse(unknown_tags={0: b""}))


@pytest.mark.parametrize(("key", "version"), [(18, 5), (18, -1), (4, 0), (93, 0)])
def test_codecs_exist_only_for_declared_versions(key: int, version: int) -> None:
    """UnknownVersionError is how a connection learns that it must close."""
    with pytest.raises(UnknownVersionError):
        request_codec(key, version)
    with pytest.raises(UnknownVersionError):
        response_codec(key, version)
    with pytest.raises(UnknownVersionError):
        named_codec("headers", "NoHeader", 0)


def test_a_codec_is_made_once_and_its_functions_when_first_used() -> None:
    """The same key and version give the same object."""
    codec = request_codec(ApiKey.API_VERSIONS, 4)
    assert codec is request_codec(18, 4)
    assert codec.decode is codec.decode
    request = ApiVersionsRequest("a", "1")
    assert codec.decode(codec.encode(request)[0])[0] == request
    assert codec.flexible
    assert not request_codec(18, 2).flexible
