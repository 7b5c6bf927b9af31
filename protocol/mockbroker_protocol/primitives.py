"""The leaves of the construct trees: one class per wire type, each able to emit its own Python.

A primitive can do the same thing in two ways. As a `construct.Construct` it parses from and builds
to a stream, one call per field: slow, but it knows at every moment where it is, so it can say which
field is wrong at which byte, or trace the meaning of each byte. As a part of an emitted codec it
contributes a few lines of straight-line source (`emit` has the writers). Tests hold both equal.

What is refused follows Kafka's generated classes and `ByteBufferAccessor`, not prose about them:
any negative length means null; a compact length is a Java int, which may wrap; a string longer than
32767 bytes is refused in either form; invalid UTF-8 is not refused, Java puts U+FFFD in its place.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

from construct import Construct, ConstructError

from mockbroker_protocol.runtime import STRING_BYTES_MAX, as_int32, java_text, uvarint

if TYPE_CHECKING:
    from mockbroker_protocol.emit import DecodeWriter, EncodeWriter

UVARINT_BYTES_MAX = 5


class Malformed(ConstructError):  # type: ignore[misc]  # noqa: N818  # construct has no types
    """A field that cannot be read or built; becomes a `DecodeError` or `EncodeError`."""

    path: str

    def __init__(self, reason: str, path: str, byte: int) -> None:
        super().__init__(reason, path=path)
        self.reason = reason
        self.byte = byte


class StringTooLong(Malformed):
    """A string that a message cannot carry; becomes a `StringTooLongError`."""


def take(stream: BytesIO, count: int, path: str, start: int) -> bytes:
    """Read exactly `count` bytes; the field they belong to began at `start`."""
    data = stream.read(count)
    if len(data) < count:
        raise Malformed(f"needs {count} bytes, {len(data)} left", path, start)
    return data


def remaining(stream: BytesIO) -> int:
    return len(stream.getbuffer()) - stream.tell()


def read_uvarint(stream: BytesIO, path: str, start: int) -> int:
    """Read an unsigned varint into a Java int: five bytes at most, the excess bits fall off."""
    value = 0
    for index in range(UVARINT_BYTES_MAX):
        byte = take(stream, 1, path, start)[0]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return as_int32(value)
    raise Malformed("varint longer than 5 bytes", path, start)


class Primitive(Construct):  # type: ignore[misc]  # construct has no types
    """A leaf. Subclasses say how to `read` and `write`, and how to emit both."""

    def _parse(self, stream: BytesIO, context: Any, path: str) -> Any:  # noqa: ARG002
        start = stream.tell()
        value = self.read(stream, path, start)
        trace = getattr(stream, "trace", None)
        if trace is not None:
            trace(path, start, stream.tell(), value)
        return value

    def _build(self, obj: Any, stream: BytesIO, context: Any, path: str) -> Any:  # noqa: ARG002
        self.write(obj, stream, path)
        return obj

    def read(self, stream: BytesIO, path: str, start: int) -> Any:
        raise NotImplementedError

    def write(self, value: Any, stream: BytesIO, path: str) -> None:
        raise NotImplementedError

    def emit_decode(self, writer: DecodeWriter, name: str) -> str:
        """Emit code that reads the value; return the expression for it, valid after a flush."""
        raise NotImplementedError

    def emit_encode(self, writer: EncodeWriter, value: str) -> None:
        """Emit code that writes the value of the expression `value`."""
        raise NotImplementedError

    def refuse(self, reason: str, stream: BytesIO, path: str) -> Malformed:
        return Malformed(reason, path, stream.tell())


class Fixed(Primitive):
    """A type of fixed size in `struct`: the integers, bool, float64; a uuid as 16 bytes."""

    def __init__(self, title: str, code: str) -> None:
        super().__init__()
        self.title = title
        self.code = code
        self.struct = struct.Struct(">" + code)
        self.size = self.struct.size

    def read(self, stream: BytesIO, path: str, start: int) -> Any:
        return self.struct.unpack(take(stream, self.size, path, start))[0]

    def write(self, value: Any, stream: BytesIO, path: str) -> None:
        try:
            stream.write(self.struct.pack(value))
        except struct.error:
            raise self.refuse(f"{value!r} is no {self.title}", stream, path) from None

    def emit_decode(self, writer: DecodeWriter, name: str) -> str:
        return writer.fixed(self.code, name)

    def emit_encode(self, writer: EncodeWriter, value: str) -> None:
        writer.fixed(self.code, value)


class Sized(Primitive):
    """Bytes behind a length. The plain form has an int16 or int32 before it, where a negative one
    means null; the compact form an unsigned varint of the length plus one, where 0 means null.
    """

    plain_code = "i"

    def __init__(self, *, compact: bool, nullable: bool) -> None:
        super().__init__()
        self.compact = compact
        self.nullable = nullable
        self.prefix = struct.Struct(">" + self.plain_code)

    def read_length(self, stream: BytesIO, path: str, start: int) -> int | None:
        if self.compact:
            length = as_int32(read_uvarint(stream, path, start) - 1)
        else:
            length = self.prefix.unpack(take(stream, self.prefix.size, path, start))[0]
        if length >= 0:
            return length
        if self.nullable:
            return None
        raise Malformed("null where none is allowed", path, start)

    def write_length(self, length: int | None, stream: BytesIO, path: str) -> None:
        if length is None:
            if not self.nullable:
                raise self.refuse("null where none is allowed", stream, path)
            length = -1
        try:
            stream.write(uvarint(length + 1) if self.compact else self.prefix.pack(length))
        except (ValueError, struct.error):
            raise self.refuse(f"length {length} is too large", stream, path) from None

    def emit_length(self, writer: DecodeWriter, name: str) -> str:
        """Emit code that reads the prefix into a variable: the length plus one, at most 0 for null.

        The compact form holds the length plus one anyway, and one test then finds both null and
        lengths of one byte.
        """
        if self.compact:
            return writer.fixed("B", f"{name}_size")
        return writer.fixed(self.plain_code, f"{name}_size")


def _too_long(size: int) -> str:
    return f"string of {size} bytes, at most {STRING_BYTES_MAX}"


class String(Sized):
    """UTF-8 text behind an int16 or compact length."""

    plain_code = "h"

    def read(self, stream: BytesIO, path: str, start: int) -> str | None:
        length = self.read_length(stream, path, start)
        if length is None:
            return None
        if length > STRING_BYTES_MAX:
            raise Malformed(_too_long(length), path, start)
        return java_text(take(stream, length, path, start))

    def write(self, value: Any, stream: BytesIO, path: str) -> None:
        if value is not None and not isinstance(value, str):
            raise self.refuse(f"{value!r} is no string", stream, path)
        try:
            data = None if value is None else value.encode()
        except UnicodeEncodeError as error:
            raise self.refuse(str(error), stream, path) from None
        if data is not None and len(data) > STRING_BYTES_MAX:
            raise StringTooLong(_too_long(len(data)), path, stream.tell())
        self.write_length(None if data is None else len(data), stream, path)
        stream.write(data or b"")

    def emit_decode(self, writer: DecodeWriter, name: str) -> str:
        size = self.emit_length(writer, name)
        text = writer.variable(name)
        writer.flush()
        stop = writer.variable("stop")
        helper = "nullable_string" if self.nullable else "string"
        if self.compact:
            writer.line(f"if 0 < {size} < 128:")
            writer.line(f"    {stop} = pos + {size} - 1")
        else:
            writer.line(f"if {size} >= 0:")
            writer.line(f"    {stop} = pos + {size}")
        writer.line(f"    {text} = {writer.text(f'buf[pos:{stop}]')}")
        writer.line(f"    pos = {stop}")
        writer.line("else:")
        if self.compact:
            call = writer.helper(f"long_{helper}")
            writer.line(f"    {text}, pos = {call}(buf, pos, {size})")
        elif self.nullable:
            writer.line(f"    {text} = None")
        else:
            writer.line(f"    raise {writer.helper('Refused')}")
        return text

    def emit_encode(self, writer: EncodeWriter, value: str) -> None:
        data, size = writer.variable("data"), writer.variable("size")
        extra = " + 1" if self.compact else ""
        if self.nullable:
            held = writer.hold(value)
            writer.line(f"if {held} is None:")
            writer.line(f'    {data} = b""')
            writer.line(f"    {size} = {0 if self.compact else -1}")
            writer.line("else:")
            writer.line(f"    {data} = {held}.encode()")
            writer.line(f"    {size} = len({data}){extra}")
        else:
            writer.line(f"{data} = {value}.encode()")
            writer.line(f"{size} = len({data}){extra}")
        if self.compact:
            writer.length(size, "string_length")
        else:
            writer.fixed("h", size)
        writer.put(data)


class Bytes(Sized):
    """Bytes behind an int32 or compact length."""

    def read(self, stream: BytesIO, path: str, start: int) -> bytes | None:
        length = self.read_length(stream, path, start)
        if length is None:
            return None
        if length > remaining(stream):
            raise Malformed(f"{length} bytes, {remaining(stream)} left", path, start)
        return take(stream, length, path, start)

    def write(self, value: Any, stream: BytesIO, path: str) -> None:
        if value is not None and not isinstance(value, bytes | bytearray | memoryview):
            raise self.refuse(f"{value!r} is no buffer", stream, path)
        self.write_length(None if value is None else len(value), stream, path)
        stream.write(value or b"")

    def emit_decode(self, writer: DecodeWriter, name: str) -> str:
        return self.emit_slice(writer, name, writer.bytes)

    def emit_slice(self, writer: DecodeWriter, name: str, convert: Any) -> str:
        size = self.emit_length(writer, name)
        data = writer.variable(name)
        writer.flush()
        if self.compact:
            writer.line(f"if {size} > 127:")
            writer.line(f"    {size}, pos = {writer.helper('long_size')}(buf, pos, {size})")
            writer.line(f"if {size} > 0:")
            writer.line(f"    stop = pos + {size} - 1")
        else:
            writer.line(f"if {size} >= 0:")
            writer.line(f"    stop = pos + {size}")
        writer.line(f"    {data} = {convert('pos', 'stop')}")
        writer.line("    pos = stop")
        writer.line("else:")
        if self.nullable:
            writer.line(f"    {data} = None")
        else:
            writer.line(f"    raise {writer.helper('Refused')}")
        return data

    def emit_encode(self, writer: EncodeWriter, value: str) -> None:
        data, size = writer.variable("data"), writer.variable("size")
        extra = " + 1" if self.compact else ""
        writer.line(f"{data} = {value}")
        if self.nullable:
            writer.line(f"if {data} is None:")
            writer.line(f'    {data} = b""')
            writer.line(f"    {size} = {0 if self.compact else -1}")
            writer.line("else:")
            writer.line(f"    {size} = len({data}){extra}")
        else:
            writer.line(f"{size} = len({data}){extra}")
        if self.compact:
            writer.length(size, "uvarint")
        else:
            writer.fixed("i", size)
        writer.put(data)


class Records(Bytes):
    """Record batches: bytes that pass through. Several buffers may stand for one."""

    def read(self, stream: BytesIO, path: str, start: int) -> memoryview | None:  # type: ignore[override]
        data = super().read(stream, path, start)
        return None if data is None else memoryview(data)

    def write(self, value: Any, stream: BytesIO, path: str) -> None:
        if value is None:
            self.write_length(None, stream, path)
            return
        pieces = [value] if isinstance(value, bytes | bytearray | memoryview) else value
        if not isinstance(pieces, Sequence) or isinstance(pieces, str):
            raise self.refuse(f"{value!r} is no sequence of buffers", stream, path)
        self.write_length(sum(len(piece) for piece in pieces), stream, path)
        for piece in pieces:
            stream.write(piece)

    def emit_decode(self, writer: DecodeWriter, name: str) -> str:
        return self.emit_slice(writer, name, writer.view)

    def emit_encode(self, writer: EncodeWriter, value: str) -> None:
        data, size = writer.variable("batches"), writer.variable("size")
        writer.line(f"{data} = {value}")
        writer.line(f"if {data} is None:")
        if self.nullable:
            writer.line(f"    {data} = ()")
            writer.line(f"    {size} = {0 if self.compact else -1}")
        else:
            writer.line(f"    raise {writer.helper('Refused')}")
        writer.line(f"elif type({data}) in {writer.helper('BUFFERS')}:")
        writer.line(f"    {size} = len({data}){' + 1' if self.compact else ''}")
        writer.line(f"    {data} = ({data},)")
        writer.line("else:")
        writer.line(f"    {size} = {1 if self.compact else 0}")
        writer.line(f"    for batch in {data}:")
        writer.line(f"        {size} += len(batch)")
        if self.compact:
            writer.length(size, "uvarint")
        else:
            writer.fixed("i", size)
        writer.scatter(data, f"{size} > {1 if self.compact else 0}")
