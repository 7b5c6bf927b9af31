"""Codecs: the bytes of one message in one version, to a struct and back.

    codec = request_codec(ApiKey.METADATA, 12)
    request, end = codec.decode(frame, pos)

The functions are emitted when first used (about 2 ms each) and kept. They are fast and know only
that something is wrong; then construct goes over the same bytes, slowly, to say what and where.
`construct` itself is not imported before the first codec is emitted.
"""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

from mockbroker_protocol.api_key import ApiKey
from mockbroker_protocol.declarations import schema_module
from mockbroker_protocol.declare import Message
from mockbroker_protocol.exceptions import UnknownVersionError
from mockbroker_protocol.types import Buffer

if TYPE_CHECKING:
    from mockbroker_protocol.composites import Shaped


class Decode(Protocol):
    """Reads a message at `pos`; returns it and the position after it. Raises DecodeError."""

    def __call__(self, buf: Buffer, pos: int = 0) -> tuple[Any, int]: ...


class BoundedDecode(Protocol):
    """Reads a message of at most `left` elements, in all arrays together. Raises DecodeError."""

    def __call__(self, buf: Buffer, pos: int, left: int, /) -> tuple[Any, int]: ...


class Encode(Protocol):
    """Gives the bytes of a message, in order, as few pieces: record buffers are handed through,
    all else is joined. Raises EncodeError.
    """

    def __call__(self, message: Any) -> list[Buffer]: ...


# A buffer so small is decoded in some milliseconds whatever it holds, and explained in 150 ms.
EXPLAINED_BYTES_MAX = 16 * 1024


class Codec:
    """`decode` and `encode` of one message in one version; both are emitted on first use.

    Bytes left over after `decode` are the caller's to judge: compare `end` with the frame's.
    """

    __slots__ = ("_bounded", "_schema", "_tree", "decode", "encode", "message", "version")

    decode: Decode
    encode: Encode

    def __init__(self, schema: ModuleType, message: Message, version: int) -> None:
        if version not in message.versions:
            raise UnknownVersionError(
                f"{message.name} has versions {message.versions}, not {version}"
            )
        self.message = message
        self.version = version
        self._schema = schema
        self._tree: Shaped | None = None
        self._bounded: BoundedDecode | None = None

    def __repr__(self) -> str:
        return f"{self.message.name} v{self.version}"

    def __getattr__(self, name: str) -> Any:
        # Only called while the slot is empty, so a codec in use costs one attribute access.
        if name == "decode":
            from mockbroker_protocol.slow import emitted_decode

            self.decode = emitted_decode(self)
            return self.decode
        if name == "encode":
            from mockbroker_protocol.slow import emitted_encode

            self.encode = emitted_encode(self)
            return self.encode
        raise AttributeError(name)

    def decode_untrusted(self, buf: Buffer, pos: int, elements_max: int) -> tuple[Any, int]:
        """`decode` for bytes of any client, in bounded time and memory.

        A buffer of more than 16 KiB may hold at most `elements_max` elements, all arrays and tagged
        sections counted; an array of three bytes an element takes 30 times its bytes in memory.
        Raises DecodeError, which has no better reason than "does not parse" where the buffer is
        large.
        """
        if len(buf) <= EXPLAINED_BYTES_MAX:
            return self.decode(buf, pos)
        if self._bounded is None:
            from mockbroker_protocol.slow import emitted_bounded_decode

            self._bounded = emitted_bounded_decode(self)
        return self._bounded(buf, pos, elements_max)

    @property
    def flexible(self) -> bool:
        """Whether the version has compact forms and tagged fields."""
        return self.version in self.message.flexible

    @property
    def tree(self) -> Shaped:
        """The construct tree, built on first use."""
        if self._tree is None:
            from mockbroker_protocol.tree import message_construct

            self._tree = message_construct(self._schema, self.message, self.version)
        return self._tree


def api_schema(key: int) -> ModuleType:
    """The module that declares an API. Raises UnknownVersionError."""
    try:
        return schema_module(ApiKey(key).name.lower())
    except (ValueError, ModuleNotFoundError):
        raise UnknownVersionError(f"API key {key} has no declaration") from None


@cache
def request_codec(key: int, version: int) -> Codec:
    """The codec of the requests of an API. Raises UnknownVersionError."""
    schema = api_schema(key)
    return Codec(schema, schema.REQUEST, version)


@cache
def response_codec(key: int, version: int) -> Codec:
    """The codec of the responses of an API. Raises UnknownVersionError."""
    schema = api_schema(key)
    return Codec(schema, schema.RESPONSE, version)


@cache
def named_codec(module: str, name: str, version: int) -> Codec:
    """The codec of a message that belongs to no API: `named_codec("headers", "RequestHeader", 2)`.

    Raises UnknownVersionError.
    """
    schema = schema_module(module)
    for message in schema.MESSAGES:
        if message.name == name:
            return Codec(schema, message, version)
    raise UnknownVersionError(f"{module} declares no {name}")
