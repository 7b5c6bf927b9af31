"""Every message of every API, and of the internal topics, in every version.

First come, in order, the messages with something in every field: with each length and count at
each hostile value, and cut at each byte. Then the same messages with changes anywhere. They are
read as a broker reads those of strangers; what is read survives encoding.

Memory: a decoded element takes up to 30 times its bytes, so a message may take `ELEMENT_BYTES` for
each element it may have; a buffer of up to 16 KiB has room for few, and none is allowed there.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, cached_property
from io import BytesIO
from typing import Any, NamedTuple

from mockbroker_protocol.codec import EXPLAINED_BYTES_MAX, Codec
from mockbroker_protocol.composites import ArrayOf, Maybe, Shaped
from mockbroker_protocol.declarations import messages_of, module_names, schema_module
from mockbroker_protocol.exceptions import DecodeError, StringTooLongError
from mockbroker_protocol.primitives import Sized, read_uvarint
from mockbroker_protocol.tags import TagSection
from tests.fuzz.engine import SEED_STRIDE, Target
from tests.fuzz.mutate import mutated
from tests.fuzz.work import MEMORY_BYTES_MIN, Broken
from tests.support.populated import Populator

ELEMENTS_MAX = 20_000  # mockbroker.request.elements.max
ELEMENT_BYTES = 512
INPUT_BYTES_MAX = 64 * 1024
_INDEX_BYTES = 2

INT_MIN, INT_MAX = -(1 << 31), (1 << 31) - 1
HOSTILE = (INT_MIN, INT_MIN + 1, -2, -1, 0, INT_MAX - 1, INT_MAX)


class LengthField(NamedTuple):
    """Bytes `start` to `stop` of a message are a length or count; `width` 0 is a varint."""

    path: str
    start: int
    stop: int
    width: int

    def overwritten(self, data: bytes) -> Iterator[bytes]:
        """The message with each hostile value there."""
        left = len(data) - self.stop
        for value in (*HOSTILE, left, left + 1, left + 2):
            if self.width:
                low, high = -(1 << 8 * self.width - 1), (1 << 8 * self.width - 1) - 1
                number = min(max(value, low), high).to_bytes(self.width, "big", signed=True)
            else:
                number = _varint(value)
            yield data[: self.start] + number + data[self.stop :]
        if not self.width:
            yield data[: self.start] + b"\x80" * 5 + b"\1" + data[self.stop :]


def _varint(value: int) -> bytes:
    """A signed value as Java writes it; `uvarint` refuses those of strangers."""
    value &= 0xFFFFFFFF
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def length_fields(codec: Codec, data: bytes) -> list[LengthField]:
    """Every length and count in an encoded message, in order."""
    found: list[LengthField] = []
    _walk(codec.tree, BytesIO(data), codec.message.name, found)
    return found


def _walk(node: Any, stream: BytesIO, path: str, found: list[LengthField]) -> None:
    """Go over one node of the construct tree in the stream."""
    if isinstance(node, Shaped):
        for subcon in node.subcon.subcons:
            _walk(subcon.subcon, stream, f"{path}.{subcon.name}", found)
    elif isinstance(node, TagSection):
        for _ in range(_count(stream, path, 0, found)):
            tag = read_uvarint(stream, path, 0)
            size = _count(stream, f"{path}.{tag}", 0, found)
            if tag in node.known:
                _walk(node.known[tag][1], stream, f"{path}.{node.known[tag][0]}", found)
            else:
                stream.read(size)
    elif isinstance(node, ArrayOf):
        count = _count(stream, path, 0 if node.compact else node.prefix.size, found)
        for index in range(count - 1 if node.compact else count):
            _walk(node.element, stream, f"{path}[{index}]", found)
    elif isinstance(node, Sized):
        size = _count(stream, path, 0 if node.compact else node.prefix.size, found)
        stream.read(max(size - 1 if node.compact else size, 0))
    elif isinstance(node, Maybe):
        if _count(stream, path, 0 if node.tagged else 1, found) > 0:
            _walk(node.shaped, stream, path, found)
    else:
        stream.read(node.size)


def _count(stream: BytesIO, path: str, width: int, found: list[LengthField]) -> int:
    start = stream.tell()
    if width:
        value = int.from_bytes(stream.read(width), "big", signed=True)
    else:
        value = read_uvarint(stream, path, start)
    found.append(LengthField(path, start, stream.tell(), width))
    return value


class Codecs(Target):
    """An input is the number of a codec in two bytes, and a message."""

    name = "codecs"
    modules = ("mockbroker_protocol",)

    @cached_property
    def codecs(self) -> list[Codec]:
        return [
            Codec(schema, message, version)
            for schema in map(schema_module, module_names())
            for message in messages_of(schema)
            for version in range(message.versions.low, message.versions.high + 1)
        ]

    @cache  # noqa: B019  # there is one object of the class
    def populated(self, index: int) -> bytes:
        codec = self.codecs[index]
        message = Populator(codec._schema).struct(codec.message.shape)
        return b"".join(codec.encode(message))

    @cache  # noqa: B019
    def _cases_of(self, index: int) -> list[bytes]:
        data = self.populated(index)
        fields = length_fields(self.codecs[index], data)
        cut = [data[:end] for end in range(len(data) + 1)]
        return [*cut, *(bad for field in fields for bad in field.overwritten(data))]

    @cached_property
    def _ends(self) -> list[int]:
        """The number of the case after each codec's last."""
        ends, end = [], 0
        for index in range(len(self.codecs)):
            end += len(self._cases_of(index))
            ends.append(end)
        return ends

    @property
    def cases(self) -> int:
        """How many inputs are run in order."""
        return self._ends[-1]

    def draw(self, number: int) -> bytes:
        at = number % SEED_STRIDE
        if at < self.cases:
            # Each job has every codec: neighbours are far apart, and none is left out.
            at = at * STEP % self.cases
            index = _first_above(self._ends, at)
            start = self._ends[index - 1] if index else 0
            return index.to_bytes(_INDEX_BYTES, "big") + self._cases_of(index)[at - start]
        rng = self.rng(number)
        index = rng.randrange(len(self.codecs))
        others = (self.populated(rng.randrange(len(self.codecs))),)
        data = mutated(rng, self.populated(index), others, INPUT_BYTES_MAX)
        return index.to_bytes(_INDEX_BYTES, "big") + data

    def check(self, data: bytes) -> None:
        index = int.from_bytes(data[:_INDEX_BYTES], "big")
        if index >= len(self.codecs):
            return
        codec, message = self.codecs[index], memoryview(data)[_INDEX_BYTES:]
        try:
            decoded, end = codec.decode_untrusted(message, 0, ELEMENTS_MAX)
        except DecodeError as error:
            if not error.path or not 0 <= error.byte <= len(message):
                raise Broken(f"refused without a field or a byte: {error}") from error
            return
        if not 0 <= end <= len(message):
            raise Broken(f"decoded {end} bytes of {len(message)}")
        try:
            encoded = b"".join(codec.encode(decoded))
        except StringTooLongError:
            if "\ufffd" in repr(decoded):
                return  # for one byte that is no UTF-8, Java's replacement has three
            raise
        again, _ = codec.decode(encoded)
        if again != decoded and not _has_nan(decoded):
            raise Broken("what was decoded does not survive encoding")

    def memory_bytes_max(self, data: bytes) -> int:
        elements = ELEMENTS_MAX if len(data) - _INDEX_BYTES > EXPLAINED_BYTES_MAX else 0
        return 2 * len(data) + MEMORY_BYTES_MIN + ELEMENT_BYTES * min(elements, len(data))


STEP = 7_919


def _first_above(ends: list[int], at: int) -> int:
    from bisect import bisect_right

    return bisect_right(ends, at)


def _has_nan(message: object) -> bool:
    return "nan" in repr(message)
