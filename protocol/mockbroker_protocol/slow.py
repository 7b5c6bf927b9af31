"""Codecs off the hot path: emitting their functions, and errors from construct."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from io import BytesIO
from typing import Any

from mockbroker_protocol.codec import BoundedDecode, Codec, Decode, Encode
from mockbroker_protocol.emit import compile_function, decode_source, encode_source
from mockbroker_protocol.exceptions import (
    DecodeError,
    EncodeError,
    StringTooLongError,
    TooManyElementsError,
)
from mockbroker_protocol.primitives import Malformed, StringTooLong
from mockbroker_protocol.runtime import Exceeded
from mockbroker_protocol.types import Buffer


def emitted_decode(codec: Codec) -> Decode:
    """Emit `decode`; on any failure construct reads the same bytes and decides."""
    source, constants = decode_source(codec.tree, viewing=codec.message.leading)
    constants["again"] = partial(construct_decode, codec)
    return compile_function(source, constants, "decode", f"decode {codec}")


def emitted_bounded_decode(codec: Codec) -> BoundedDecode:
    """Emit `decode_bounded`. After a failure `tracked` finds the field: construct does not read a
    large buffer, because it takes 6 µs a byte.
    """
    source, constants = decode_source(codec.tree, viewing=codec.message.leading, bounded=True)
    constants["failed"] = partial(_failure, codec)
    return compile_function(source, constants, "decode", f"decode_bounded {codec}")


def _failure(codec: Codec, buf: Buffer, start: int, error: Exception) -> DecodeError:
    """The error of a bounded decoder. One that fails has read few elements, and `tracked` reads
    these again.
    """
    if isinstance(error, Exceeded):
        return TooManyElementsError(error.name, error.pos, "more elements than a message may have")
    path, byte = tracked(codec)(buf, start) or (codec.message.name, start)
    return DecodeError(path, byte, f"does not parse, with {len(buf) - byte} bytes left")


@cache
def tracked(codec: Codec) -> Callable[[Buffer, int], tuple[str, int] | None]:
    """A function that decodes and returns the path and byte of the field at fault; None if there
    is none. It takes three times as long as `decode`.
    """
    source, constants = decode_source(codec.tree, viewing=codec.message.leading, tracking=True)
    return compile_function(source, constants, "decode", f"track {codec}")


def emitted_encode(codec: Codec) -> Encode:
    """Emit `encode`; after a failure construct builds the same message and raises the error."""
    source, constants = encode_source(codec.tree)
    constants["again"] = partial(construct_encode, codec)
    return compile_function(source, constants, "encode", f"encode {codec}")


def construct_decode(codec: Codec, buf: Buffer, pos: int = 0) -> tuple[Any, int]:
    """Decode by construct. Raises DecodeError with the path and byte of the field at fault."""
    stream = BytesIO(bytes(buf))
    stream.seek(pos)
    try:
        message = codec.tree.parse_stream(stream)
    except Malformed as error:
        raise DecodeError(readable_path(error.path), error.byte, error.reason) from None
    return message, stream.tell()


def construct_encode(codec: Codec, message: Any) -> list[Buffer]:
    """Encode by construct. Raises EncodeError with the path of the field at fault."""
    stream = BytesIO()
    try:
        codec.tree.build_stream(message, stream)
    except Malformed as error:
        kind = StringTooLongError if isinstance(error, StringTooLong) else EncodeError
        raise kind(readable_path(error.path), error.reason) from None
    return [stream.getvalue()]


def readable_path(path: str) -> str:
    """Turn construct's `(parsing) -> topics[2] -> _tags -> name` into `topics[2].name`."""
    parts = [part for part in path.split(" -> ")[1:] if part != "_tags"]
    if path.endswith(" -> _tags"):
        parts.append("_tags")
    return ".".join(parts)
