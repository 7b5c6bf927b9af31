"""The tagged section that ends every struct of a flexible version (KIP-482)."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any, TypeAlias

from construct import Construct

from mockbroker_protocol.primitives import Malformed, read_uvarint, remaining, take
from mockbroker_protocol.runtime import tag_section

if TYPE_CHECKING:
    from mockbroker_protocol.emit import DecodeWriter, EncodeWriter

Node: TypeAlias = Any
"""A `Primitive`, `Shaped` or anything else that parses, builds and emits."""

TAGS = "_tags"
"""The name of the tagged section among a shape's fields."""


class TagSection(Construct):  # type: ignore[misc]  # construct has no types
    """The tagged fields that end every struct of a flexible version (KIP-482).

    Known fields are written only where they differ from their default; unknown ones are kept. As
    in Kafka's generated readers, tags may come in any order, the last of equals wins, and the size
    of a known field is not looked at; writers sort.
    """

    def __init__(self, known: dict[int, tuple[str, Node]], defaults: Any) -> None:
        super().__init__()
        self.known = known
        self.defaults = defaults

    def _parse(self, stream: BytesIO, context: Any, path: str) -> dict[str, Any]:
        start = stream.tell()
        trace = getattr(stream, "trace", None)
        count = read_uvarint(stream, path, start)
        if trace is not None:
            trace(path, start, stream.tell(), range(max(count, 0)))
        values: dict[str, Any] = {}
        unknown: dict[int, bytes] = {}
        for _ in range(count):
            start = stream.tell()
            tag = read_uvarint(stream, path, start)
            size = read_uvarint(stream, path, start)
            if trace is not None:
                trace(path, start, stream.tell(), (tag, size))
            if tag in self.known:
                name, primitive = self.known[tag]
                values[name] = primitive._parsereport(stream, context, f"{path} -> {name}")
                continue
            if not 0 <= size <= remaining(stream):
                reason = f"tag {tag} of {size} bytes, {remaining(stream)} left"
                raise Malformed(reason, path, start)
            start = stream.tell()
            unknown[tag] = take(stream, size, path, start)
            if trace is not None:
                trace(path, start, stream.tell(), unknown[tag])
        return {**values, "unknown_tags": unknown or None}

    def _build(self, obj: Any, stream: BytesIO, context: Any, path: str) -> Any:
        bodies: dict[int, bytes] = dict(obj.unknown_tags or {})
        for tag, (name, primitive) in self.known.items():
            if tag in bodies:
                raise Malformed(f"unknown tag {tag} is known as {name}", path, stream.tell())
            value = getattr(obj, name)
            if value != getattr(self.defaults, name):
                body = BytesIO()
                primitive._build(value, body, context, f"{path} -> {name}")
                bodies[tag] = body.getvalue()
        stream.write(tag_section(bodies))
        return obj

    def emit_decode_tags(self, writer: DecodeWriter, defaults: Any) -> dict[str, str]:
        """Emit the section; returns the expression of each known field and of `unknown_tags`."""
        with writer.inside(TAGS):
            writer.mark()
        count = writer.fixed("B", "tags")
        unknown = writer.variable("unknown")
        values = {name: writer.variable(name) for name, _ in self.known.values()}
        writer.flush()
        for name, variable in values.items():
            writer.line(f"{variable} = {writer.literal(getattr(defaults, name))}")
        writer.line(f"{unknown} = None")
        with writer.block(f"if {count}:"):
            if not self.known and not writer.tracking:
                if writer.bounded:
                    self._emit_long_count(writer, count)
                    writer.spend(count, "_tags")
                helper = writer.helper("read_unknown_tags" if writer.bounded else "unknown_tags")
                writer.line(f"{unknown}, pos = {helper}(buf, pos, {count})")
            else:
                self._emit_decode_known(writer, count, unknown, values)
        return {**values, "unknown_tags": unknown}

    def _emit_decode_known(
        self, writer: DecodeWriter, count: str, unknown: str, values: dict[str, str]
    ) -> None:
        tag, size = writer.variable("tag"), writer.variable("tag_size")
        self._emit_long_count(writer, count)
        writer.spend(count, "_tags")
        with writer.block(f"for _ in range({count}):"):
            with writer.inside(TAGS):
                writer.mark()
            read = writer.helper("read_uvarint")
            writer.line(f"{tag}, pos = {read}(buf, pos)")
            writer.line(f"{size}, pos = {read}(buf, pos)")
            keyword = "if"
            for number, (name, primitive) in sorted(self.known.items()):
                with writer.block(f"{keyword} {tag} == {number}:"), writer.inside(name):
                    writer.mark()
                    expression = primitive.emit_decode(writer, name)
                    writer.flush()
                    writer.line(f"{values[name]} = {expression}")
                keyword = "elif"
            with writer.block("else:" if self.known else "if True:"):
                helper = writer.helper("keep_tag")
                writer.line(f"{unknown}, pos = {helper}(buf, pos, {tag}, {size}, {unknown})")

    def _emit_long_count(self, writer: DecodeWriter, count: str) -> None:
        writer.line(f"if {count} > 127:")
        writer.line(f"    {count}, pos = {writer.helper('long_count')}(buf, pos, {count})")

    def emit_encode_tags(self, writer: EncodeWriter, held: str, defaults: Any) -> None:
        if not self.known:
            unknown = writer.variable("unknown")
            writer.line(f"{unknown} = {held}.unknown_tags")
            with writer.fork(f"if not {unknown}:"):
                writer.zero()
            with writer.fork("else:"):
                writer.put(f"{writer.helper('tag_section')}({unknown})")
            writer.joined()
            return
        # The tests are cheapest first: nearly always all of them find the default.
        tests = [
            writer.is_default(f"{held}.{name}", getattr(defaults, name), primitive)
            for name, primitive in self.known.values()
        ]
        with writer.fork(f"if {' and '.join([*tests, f'not {held}.unknown_tags'])}:"):
            writer.zero()
        with writer.fork("else:"):
            bodies = writer.variable("bodies")
            writer.flush()
            unknown = f"{writer.helper('known_free')}({held}.unknown_tags, {set(self.known)!r})"
            writer.line(f"{bodies} = {unknown}")
            for (number, (name, primitive)), test in zip(self.known.items(), tests, strict=True):
                with writer.block(f"if not {test}:"), writer.aside() as aside:
                    primitive.emit_encode(writer, f"{held}.{name}")
                    writer.flush()
                    writer.line(f'{bodies}[{number}] = b"".join({aside})')
            writer.put(f"{writer.helper('tag_section')}({bodies})")
        writer.joined()
