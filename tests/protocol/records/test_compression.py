from __future__ import annotations

import gzip as stdlib_gzip
import random
import struct

import cramjam
import hypothesis
import pytest
from hypothesis import strategies as st

from mockbroker_protocol.records import (
    CompressionError,
    CompressionType,
    DecompressedTooLargeError,
    compress,
    decompress,
)
from mockbroker_protocol.records.compression import snappy
from mockbroker_protocol.records.errors import BLOCKS_MAX
from tests.protocol.records.outcome import error_in
from tests.support.traced import traced

CODECS = list(CompressionType)[1:]
NOISE = random.Random(7).randbytes(300_000)
SAMPLES = {
    "empty": b"",
    "one byte": b"x",
    "repetitive": b"abcdefgh" * 50_000,
    "noise": NOISE,
    "mixed": NOISE[:70_000] + bytes(200_000) + NOISE[:10],
}


def bombs() -> dict[CompressionType, bytes]:
    zeros = bytes(8 << 20)
    return {codec: bytes(compress(codec, zeros)) for codec in CODECS}


@pytest.mark.covers("S326")
@pytest.mark.parametrize("codec", list(CompressionType))
@pytest.mark.parametrize("sample", SAMPLES)
def test_every_codec_gives_back_what_it_was_given(codec, sample):
    data = SAMPLES[sample]
    assert bytes(decompress(codec, compress(codec, data))) == data
    assert bytes(decompress(codec, memoryview(bytes(compress(codec, bytearray(data)))))) == data


@hypothesis.given(st.sampled_from(CODECS), st.binary(max_size=2000), st.integers(1, 60))
def test_round_trips_of_any_bytes(codec, data, times):
    assert bytes(decompress(codec, compress(codec, data * times))) == data * times


@pytest.mark.parametrize("codec", CODECS)
def test_the_limit_is_exact(codec):
    data = b"ab" * 40_000
    compressed = compress(codec, data)
    assert bytes(decompress(codec, compressed, decompressed_bytes_max=len(data))) == data
    with pytest.raises(CompressionError, match="79999 bytes when decompressed"):
        decompress(codec, compressed, decompressed_bytes_max=len(data) - 1)


@pytest.mark.parametrize(("codec", "bomb"), bombs().items())
def test_a_bomb_is_refused_without_taking_the_memory(codec, bomb):
    with traced() as memory, pytest.raises(CompressionError):
        decompress(codec, bomb, decompressed_bytes_max=1 << 20)
    assert memory.peak < 3 << 20


XERIAL = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
LZ4 = bytes.fromhex("04224d18604082")
ZSTD_FRAME = bytes.fromhex("28b52ffd0058")


@pytest.mark.parametrize(
    ("codec", "head", "block", "tail"),
    [
        pytest.param(CompressionType.GZIP, b"", stdlib_gzip.compress(b""), b"", id="gzip"),
        pytest.param(CompressionType.SNAPPY, XERIAL, b"\0\0\0\3\1\0a", b"", id="snappy"),
        pytest.param(CompressionType.LZ4, LZ4, b"\1\0\0\x80a", bytes(4), id="lz4"),
        pytest.param(CompressionType.LZ4, LZ4, b"\0\0\0\x80", bytes(4), id="empty lz4"),
        pytest.param(CompressionType.ZSTD, ZSTD_FRAME, bytes(3), b"\1\0\0", id="zstd blocks"),
        pytest.param(CompressionType.ZSTD, b"", ZSTD_FRAME + b"\1\0\0", b"", id="zstd frames"),
        pytest.param(
            CompressionType.ZSTD, b"", struct.pack("<II", 0x184D2A50, 0), b"", id="skippable zstd"
        ),
    ],
)
def test_a_payload_of_very_many_blocks_is_too_large(codec, head, block, tail):
    """Each takes some µs, of however few bytes it consists; ours have 32 KiB and more."""
    decompress(codec, head + block * (BLOCKS_MAX - 1) + tail)
    with pytest.raises(DecompressedTooLargeError, match=f"more than {BLOCKS_MAX} compressed"):
        decompress(codec, head + block * (BLOCKS_MAX + 1) + tail)


def test_gzip_members_of_any_size_follow_each_other():
    """A member ends anywhere in what is read at once, and the next one begins there."""
    parts = [b"", *(NOISE[:size] for size in (1, 200, 250, 260, 700, 3000)), b"", b"end"]
    members = b"".join(bytes(compress(CompressionType.GZIP, part)) for part in parts)
    assert bytes(decompress(CompressionType.GZIP, members)) == b"".join(parts)
    assert bytes(decompress(CompressionType.GZIP, members + b"behind")) == b"".join(parts)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unassigned_codecs_are_refused(codec):
    with pytest.raises(CompressionError, match=f"unknown compression codec {codec}"):
        decompress(codec, b"")
    with pytest.raises(ValueError, match="not a valid CompressionType"):
        compress(codec, b"")


@pytest.mark.parametrize("codec", CODECS)
def test_every_truncation_is_refused(codec):
    compressed = bytes(compress(codec, NOISE[:3000] + b"abc" * 3000))
    cuts = [*range(40), *range(40, len(compressed), 97), len(compressed) - 1]
    for cut in cuts:
        if codec is CompressionType.SNAPPY and cut == 16:
            continue  # a framed stream without blocks is a whole one: nothing was written
        with pytest.raises(CompressionError):
            decompress(codec, compressed[:cut])


@pytest.mark.parametrize("codec", CODECS)
def test_flips_give_bytes_or_the_one_error(codec):
    data = NOISE[:200] + b"abc" * 500
    compressed = bytes(compress(codec, data))
    for position in range(len(compressed)):
        for flip in (0x01, 0x40, 0xFF):
            broken = bytearray(compressed)
            broken[position] ^= flip
            error = error_in(lambda data=broken: decompress(codec, data))
            assert error is None or isinstance(error, CompressionError)


# ---- gzip


def test_gzip_members_are_joined_and_what_follows_them_is_let_go():
    members = stdlib_gzip.compress(b"one ") + stdlib_gzip.compress(b"two")
    assert bytes(decompress(CompressionType.GZIP, members)) == b"one two"
    assert bytes(decompress(CompressionType.GZIP, members + b"junk")) == b"one two"


# ---- snappy


@pytest.mark.covers("S326")
def test_snappy_is_written_in_xerial_s_framing_with_32_kib_blocks():
    framed = bytes(compress(CompressionType.SNAPPY, NOISE[:70_000]))
    assert framed[:16] == b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
    lengths = []
    pos = 16
    while pos < len(framed):
        size = struct.unpack_from(">i", framed, pos)[0]
        lengths.append(cramjam.snappy.decompress_raw_len(framed[pos + 4 : pos + 4 + size]))
        pos += 4 + size
    assert lengths == [32768, 32768, 70_000 - 65536]


@pytest.mark.covers("S326")
@pytest.mark.parametrize("sample", SAMPLES)
def test_snappy_is_read_as_one_raw_block_too(sample):
    raw = snappy.compress_raw(SAMPLES[sample])
    assert bytes(decompress(CompressionType.SNAPPY, raw)) == SAMPLES[sample]


def test_snappy_versions_in_little_endian_and_appended_streams_are_read():
    framed = bytearray(compress(CompressionType.SNAPPY, b"one "))
    framed[8:16] = struct.pack("<ii", 1, 1)
    both = framed + compress(CompressionType.SNAPPY, b"two")
    assert bytes(decompress(CompressionType.SNAPPY, both)) == b"one two"


def test_snappy_with_a_false_length_allocates_nothing():
    with pytest.raises(CompressionError, match="cannot be true"):
        decompress(CompressionType.SNAPPY, b"\xff\xff\xff\x7f" + b"\0" * 20)


# ---- lz4


@pytest.mark.covers("S326")
@pytest.mark.parametrize("sample", SAMPLES)
def test_lz4_frames_are_what_java_accepts(sample):
    frame = bytes(compress(CompressionType.LZ4, SAMPLES[sample]))
    assert frame[:4] == b"\x04\x22\x4d\x18"
    assert frame[4] == 0b0110_0000  # version 1, independent blocks, nothing optional
    assert frame[5] == 0x40  # 64 KiB blocks
    assert frame[6] == 0x82  # the second byte of the xxh32 of the two before; cramjam checks it
    assert frame[-4:] == bytes(4)
    assert bytes(cramjam.lz4.decompress(frame)) == SAMPLES[sample]


def test_lz4_blocks_that_would_grow_are_stored():
    frame = bytes(compress(CompressionType.LZ4, NOISE[:65536]))
    assert struct.unpack_from("<I", frame, 7)[0] == 65536 | 0x80000000
    assert len(frame) == 7 + 4 + 65536 + 4


def test_lz4_linked_blocks_and_checksums_are_read():
    frame = bytes(cramjam.lz4.compress(SAMPLES["mixed"]))
    assert not frame[4] & 0x20
    assert frame[4] & 0x14
    assert bytes(decompress(CompressionType.LZ4, frame)) == SAMPLES["mixed"]


def test_lz4_needs_the_right_header_checksum():
    frame = bytearray(compress(CompressionType.LZ4, b"new"))
    frame[6] ^= 0x55
    with pytest.raises(CompressionError, match="lz4"):
        decompress(CompressionType.LZ4, frame)


# ---- zstd


def test_zstd_is_read_without_a_content_size():
    compressor = cramjam.zstd.Compressor()
    compressor.compress(SAMPLES["mixed"])
    frame = bytes(compressor.finish())
    assert frame[4] >> 6 == 0
    assert not frame[4] & 0x20
    assert bytes(decompress(CompressionType.ZSTD, frame)) == SAMPLES["mixed"]


def test_zstd_frames_are_joined_and_skippable_ones_passed_over():
    one, two = (bytes(compress(CompressionType.ZSTD, part)) for part in (b"one ", b"two"))
    skippable = struct.pack("<II", 0x184D2A53, 3) + b"xyz"
    assert bytes(decompress(CompressionType.ZSTD, one + skippable + two)) == b"one two"


def test_zstd_of_a_thousand_flushes_is_read_though_its_bound_is_far_above_the_limit():
    compressor = cramjam.zstd.Compressor()
    parts = []
    for index in range(1000):
        compressor.compress(b"%d" % index)
        parts.append(bytes(compressor.flush()))
    parts.append(bytes(compressor.finish()))
    expected = b"".join(b"%d" % index for index in range(1000))
    frame = b"".join(parts)
    assert bytes(decompress(CompressionType.ZSTD, frame, decompressed_bytes_max=5000)) == expected
