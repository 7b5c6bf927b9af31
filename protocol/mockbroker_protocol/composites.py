"""The nodes of the construct trees: arrays, nested structs, nullable structs.

Like the leaves (`primitives`) they parse and build through construct and emit straight-line Python.
"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

from construct import Adapter
from construct import Struct as ConstructStruct

from mockbroker_protocol.primitives import (
    Fixed,
    Malformed,
    Primitive,
    Sized,
    read_uvarint,
    remaining,
    take,
)
from mockbroker_protocol.tags import TAGS, Node, TagSection

if TYPE_CHECKING:
    from mockbroker_protocol.emit import DecodeWriter, EncodeWriter

INT32 = Fixed("int32", "i")
"""The element of most arrays of scalars, which have a shortcut."""

ROWS_MIN = 4
"""From this many elements on, an array of fixed-size structs is unpacked as one block."""


class ArrayOf(Sized):
    """An array behind an int32 or compact count. More elements than bytes left are refused."""

    def __init__(self, element: Node, *, compact: bool, nullable: bool) -> None:
        super().__init__(compact=compact, nullable=nullable)
        self.element = element

    def _parse(self, stream: BytesIO, context: Any, path: str) -> list[Any] | None:
        start = stream.tell()
        count = self.read_length(stream, path, start)
        trace = getattr(stream, "trace", None)
        if trace is not None:
            trace(path, start, stream.tell(), None if count is None else range(count))
        if count is None:
            return None
        if count > remaining(stream):
            raise Malformed(f"{count} elements, {remaining(stream)} bytes left", path, start)
        return [
            self.element._parsereport(stream, context, f"{path}[{index}]") for index in range(count)
        ]

    def _build(self, obj: Any, stream: BytesIO, context: Any, path: str) -> Any:
        if obj is not None and not isinstance(obj, list | tuple):
            raise self.refuse(f"{obj!r} is no list", stream, path)
        self.write_length(None if obj is None else len(obj), stream, path)
        for index, item in enumerate(obj or ()):
            self.element._build(item, stream, context, f"{path}[{index}]")
        return obj

    def emit_decode(self, writer: DecodeWriter, name: str) -> str:
        size = self.emit_length(writer, name)
        items = writer.variable(name)
        writer.flush()
        slack = " + 1" if self.compact else ""
        if self.compact:
            writer.line(f"if {size} > 127:")
            writer.line(f"    {size}, pos = {writer.helper('long_size')}(buf, pos, {size})")
        present = f"{size} > 0" if self.compact else f"{size} >= 0"
        refuse = f"raise {writer.helper('Refused')}"
        if self.nullable:
            with writer.block(f"if {present}:"):
                writer.line(f"if {size} > limit - pos{slack}:")
                writer.line(f"    {refuse}")
                self._emit_items(writer, name, items, size)
            with writer.block("else:"):
                writer.line(f"{items} = None")
        else:
            low = "0 < " if self.compact else "0 <= "
            writer.line(f"if not {low}{size} <= limit - pos{slack}:")
            writer.line(f"    {refuse}")
            self._emit_items(writer, name, items, size)
        return items

    def _emit_items(self, writer: DecodeWriter, name: str, items: str, size: str) -> None:
        count = f"{size} - 1" if self.compact else size
        writer.spend(count, name)
        if writer.tracking:
            self._emit_loop(writer, name, items, count)
            return
        if isinstance(self.element, Fixed):
            self._emit_scalars(writer, items, count)
            return
        layout = self.element.fixed_layout() if isinstance(self.element, Shaped) else None
        if layout is None:
            self._emit_loop(writer, name, items, count)
            return
        # Fixed-size structs: let one iter_unpack take them all, unless one of them carries tags.
        least = ROWS_MIN + (1 if self.compact else 0)
        writer.line(f"stop = pos + {layout.size} * ({count})")
        condition = f"{size} >= {least}"
        if layout.tagged:
            last = writer.bytes(f"pos + {layout.size - 1}", f"stop:{layout.size}")
            condition += f' and not {last}.strip(b"\\0")'
        with writer.block(f"if {condition}:"):
            rows = f"{writer.unpacker(layout.codes, 'iter')}({writer.slice('pos', 'stop')})"
            writer.line(f"{items} = {self.element.rows_expression(writer, layout, rows)}")
            writer.line("pos = stop")
        with writer.block("else:"):
            self._emit_loop(writer, name, items, count)

    def _emit_scalars(self, writer: DecodeWriter, items: str, count: str) -> None:
        if self.element.code == "16s":
            writer.line(f"stop = pos + 16 * ({count})")
            each = writer.bytes("at", "at + 16")
            writer.line(f"{items} = [{each} for at in range(pos, stop, 16)]")
            writer.line("pos = stop")
            return
        unpack = writer.helper("unpack_from")
        writer.line(f'{items} = list({unpack}(f">{{{count}}}{self.element.code}", buf, pos))')
        writer.line(f"pos += {self.element.size} * ({count})")

    def _emit_loop(self, writer: DecodeWriter, name: str, items: str, count: str) -> None:
        append = writer.variable(f"add_{singular(name)}")
        writer.line(f"{items} = []")
        writer.line(f"{append} = {items}.append")
        index = writer.variable("index") if writer.tracking else "_"
        with writer.block(f"for {index} in range({count}):"), writer.inside("[{}]", index):
            if not isinstance(self.element, Shaped):
                writer.mark()
            expression = self.element.emit_decode(writer, singular(name))
            writer.flush()
            writer.line(f"{append}({expression})")

    def emit_encode(self, writer: EncodeWriter, value: str) -> None:
        name = value.rpartition(".")[2]
        items, size = writer.variable(name), writer.variable("size")
        extra = " + 1" if self.compact else ""
        writer.line(f"{items} = {value}")
        if self.nullable:
            writer.line(f"if {items} is None:")
            writer.line(f"    {items} = ()")
            writer.line(f"    {size} = {0 if self.compact else -1}")
            writer.line("else:")
            writer.line(f"    {size} = len({items}){extra}")
        else:
            writer.line(f"{size} = len({items}){extra}")
        if self.compact and self.element is INT32:
            self._emit_encode_int32s(writer, items, size)
            return
        if self.compact:
            writer.length(size, "uvarint")
        else:
            writer.fixed("i", size)
            writer.flush()
        if isinstance(self.element, Fixed) and self.element.code != "16s":
            pack = writer.helper("pack")
            writer.put(f'{pack}(f">{{len({items})}}{self.element.code}", *{items})')
            return
        item = writer.variable(singular(name))
        with writer.block(f"for {item} in {items}:"):
            self.element.emit_encode(writer, item)
            writer.flush()

    def _emit_encode_int32s(self, writer: EncodeWriter, items: str, size: str) -> None:
        """Replica lists and the like: nearly always short, and many in a Metadata answer."""
        writer.flush()
        table = writer.helper("INT32_ARRAYS")
        with writer.block(f"if {size} < len({table}):"):
            writer.put(f"{table}[{size}]({size}, *{items})")
        with writer.block("else:"):
            writer.put(f"{writer.helper('uvarint')}({size})")
            writer.put(f'{writer.helper("pack")}(f">{{len({items})}}i", *{items})')


def singular(name: str) -> str:
    """A name for one element of `name`."""
    return name[:-1] if name.endswith("s") and len(name) > 1 else f"{name}_item"


class Layout:
    """How a fixed-size struct lies on the wire: `struct` codes, field names, size in bytes."""

    __slots__ = ("codes", "names", "size", "tagged")

    def __init__(self, codes: str, names: list[str], size: int, *, tagged: bool) -> None:
        self.codes = codes
        self.names = names
        self.size = size
        self.tagged = tagged


class Shaped(Adapter):  # type: ignore[misc]  # construct has no types
    """An ordinary `construct.Struct` of one version, handed over as a struct class's instance."""

    subcon: Any  # the construct.Struct; construct types it as less than that

    def __init__(self, cls: type[Any], fields: ConstructStruct) -> None:
        super().__init__(fields)
        self.cls = cls
        self.defaults = cls()

    def _parse(self, stream: BytesIO, context: Any, path: str) -> Any:
        values = dict(self.subcon._parsereport(stream, context, path))
        values.pop("_io", None)
        values.update(values.pop(TAGS, {}))
        return self.cls(**values)

    def _build(self, obj: Any, stream: BytesIO, context: Any, path: str) -> Any:
        if not isinstance(obj, self.cls):
            raise Malformed(f"{obj!r} is no {self.cls.__name__}", path, stream.tell())
        values = {
            subcon.name: obj if subcon.name == TAGS else getattr(obj, subcon.name)
            for subcon in self.subcon.subcons
        }
        self.subcon._build(values, stream, context, path)
        return obj

    def fixed_layout(self) -> Layout | None:
        """The layout if all fields are of fixed size and no tagged field is known, else None."""
        codes, names, size, tagged = "", [], 0, False
        for subcon in self.subcon.subcons:
            inner = subcon.subcon
            if isinstance(inner, Fixed):
                codes += inner.code
                names.append(subcon.name)
                size += inner.size
            elif isinstance(inner, TagSection):
                codes += "x"
                size += 1
                tagged = True
            else:
                return None
        return Layout(codes, names, size, tagged=tagged) if names else None

    def rows_expression(self, writer: DecodeWriter, layout: Layout, rows: str) -> str:
        """The list of structs made of `rows`, an iterable of tuples of the layout's fields."""
        cls = writer.constant(self.cls.__name__, self.cls)
        fields = list(self.cls.__struct_fields__)
        if fields[: len(layout.names)] == layout.names:
            return f"list({writer.helper('starmap')}({cls}, {rows}))"
        arguments = self._arguments(writer, {name: f"{name}_" for name in layout.names})
        targets = ", ".join(f"{name}_" for name in layout.names)
        comma = "," if len(layout.names) == 1 else ""
        return f"[{cls}({arguments}) for {targets}{comma} in {rows}]"

    def _arguments(self, writer: DecodeWriter, values: dict[str, str]) -> str:
        """Positional arguments, Kafka's default standing in for fields this version lacks."""
        fields = list(self.cls.__struct_fields__)
        while fields and fields[-1] not in values:
            fields.pop()
        return ", ".join(
            values.get(name) or writer.literal(getattr(self.defaults, name)) for name in fields
        )

    def emit_decode(self, writer: DecodeWriter, name: str) -> str:  # noqa: ARG002
        values: dict[str, str] = {}
        for subcon in self.subcon.subcons:
            if isinstance(subcon.subcon, TagSection):
                values.update(subcon.subcon.emit_decode_tags(writer, self.defaults))
            else:
                with writer.inside(subcon.name):
                    writer.mark()
                    values[subcon.name] = subcon.subcon.emit_decode(writer, subcon.name)
        writer.flush()
        cls = writer.constant(self.cls.__name__, self.cls)
        return f"{cls}({self._arguments(writer, values)})"

    def emit_encode(self, writer: EncodeWriter, value: str) -> None:
        held = writer.hold(value)
        for subcon in self.subcon.subcons:
            if isinstance(subcon.subcon, TagSection):
                subcon.subcon.emit_encode_tags(writer, held, self.defaults)
            else:
                subcon.subcon.emit_encode(writer, f"{held}.{subcon.name}")


class Maybe(Primitive):
    """A struct that may be null: an int8 before it is negative for null, 1 otherwise.

    In a tagged field it is an unsigned varint instead, 0 for null, 1 otherwise; so says the code of
    Kafka's generator.
    """

    def __init__(self, shaped: Shaped, *, tagged: bool = False) -> None:
        super().__init__()
        self.shaped = shaped
        self.tagged = tagged

    def _parse(self, stream: BytesIO, context: Any, path: str) -> Any:
        start = stream.tell()
        if self.tagged:
            null = read_uvarint(stream, path, start) <= 0
        else:
            null = take(stream, 1, path, start)[0] > 127
        trace = getattr(stream, "trace", None)
        if trace is not None:
            trace(path, start, stream.tell(), None if null else "present")
        return None if null else self.shaped._parsereport(stream, context, path)

    def _build(self, obj: Any, stream: BytesIO, context: Any, path: str) -> Any:
        if obj is None:
            stream.write(b"\x00" if self.tagged else b"\xff")
        else:
            stream.write(b"\x01")
            self.shaped._build(obj, stream, context, path)
        return obj

    def emit_decode(self, writer: DecodeWriter, name: str) -> str:
        value = writer.variable(name)
        if self.tagged:
            present = writer.variable(f"{name}_present")
            writer.flush()
            writer.line(f"{present}, pos = {writer.helper('read_uvarint')}(buf, pos)")
            null = f"{present} <= 0"
        else:
            present = writer.fixed("b", f"{name}_present")
            writer.flush()
            null = f"{present} < 0"
        with writer.block(f"if {null}:"):
            writer.line(f"{value} = None")
        with writer.block("else:"):
            expression = self.shaped.emit_decode(writer, name)
            writer.line(f"{value} = {expression}")
        return value

    def emit_encode(self, writer: EncodeWriter, value: str) -> None:
        held = writer.hold(value)
        writer.fixed("b", f"{0 if self.tagged else -1} if {held} is None else 1")
        writer.flush()
        with writer.block(f"if {held} is not None:"):
            self.shaped.emit_encode(writer, held)
            writer.flush()
