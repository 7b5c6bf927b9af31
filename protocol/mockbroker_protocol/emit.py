"""From a construct tree to the Python source of its codec.

A *writer* collects the lines of one function while the tree is walked. Its one trick is to put off
fields of fixed size until something else interrupts them: then one `struct` call reads or writes
the whole run, together with the first byte of the length that follows. What remains is what a
patient person would have written by hand: one call per run, varints of one byte inline, no loops
but those over arrays, rare cases left to `runtime`.

Emitted functions only notice that something is wrong, by any exception; then they hand the case to
`again`, which asks construct.
"""

from __future__ import annotations

import keyword
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any

from mockbroker_protocol import runtime
from mockbroker_protocol.composites import ArrayOf, Maybe, Shaped
from mockbroker_protocol.primitives import Records
from mockbroker_protocol.tags import TagSection
from mockbroker_protocol.types import ZERO_UUID

RESERVED = frozenset(keyword.kwlist) | {
    *("buf", "pos", "frame", "start", "limit", "stop", "at", "batch", "put", "out", "pieces"),
    *("message", "again", "bytes", "len", "list", "memoryview", "range", "str", "type"),
    *("left", "failed", "where"),
}


class Writer:
    """Lines, indentation, names and the constants that the source refers to."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.constants: dict[str, Any] = {}
        self._depth = 2
        self._uses: dict[str, int] = {}

    def line(self, text: str) -> None:
        self.lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        self.line(header)
        self._depth += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.line("pass")
        self._depth -= 1

    def variable(self, name: str) -> str:
        """A local name like `name` that nothing else uses."""
        number = self._uses.get(name, 0)
        self._uses[name] = number + 1
        if number == 0 and name not in RESERVED and not hasattr(runtime, name):
            return name
        return f"{name}_{number + 1}"

    def constant(self, name: str, value: Any) -> str:
        """A global name for `value`."""
        assert self.constants.setdefault(name, value) is value, name
        return name

    def helper(self, name: str) -> str:
        """The global name of something in `runtime`."""
        return self.constant(name, getattr(runtime, name))

    def struct_method(self, codes: str, method: str, prefix: str) -> str:
        name = f"{prefix}_{codes.replace('?', 't')}"
        if name not in self.constants:
            self.constants[name] = getattr(struct.Struct(">" + codes), method)
        return name


class DecodeWriter(Writer):
    """Collects the body of a `decode`. `viewing` says that `buf` is a memoryview, not bytes;
    `bounded`, that it counts the elements of all arrays and tagged sections; `tracking`, that it
    notes before each field where it is.

    Slicing bytes is twice as fast as slicing a memoryview when text is what comes out, but where
    records are sliced, they must not be copied.
    """

    def __init__(self, *, viewing: bool, bounded: bool = False, tracking: bool = False) -> None:
        super().__init__()
        self.viewing = viewing
        self.bounded = bounded
        self.tracking = tracking
        self._run: list[tuple[str, str]] = []
        self._path: list[str] = []
        self._indexes: list[str] = []

    def fixed(self, code: str, name: str) -> str:
        """Read one `struct` code into a variable that is there after the next flush."""
        variable = self.variable(name)
        self._run.append((code, variable))
        if self.tracking:
            self.flush()
        return variable

    @contextmanager
    def inside(self, part: str, *indexes: str) -> Iterator[None]:
        """What is emitted in the block reads `part`, a field or, as `[{}]`, an element."""
        self._path.append(part)
        self._indexes.extend(indexes)
        yield
        self._path.pop()
        del self._indexes[len(self._indexes) - len(indexes) :]

    def mark(self) -> None:
        """Emit that what the block is about begins here, if anybody tracks it."""
        if not self.tracking:
            return
        self.line("if pos > limit:")  # the field before this one fell short
        self.line(f"    raise {self.helper('Refused')}")
        path = ".".join(self._path).replace(".[", "[")
        self.line(f"at, where = pos, ({path!r}, {''.join(f'{each}, ' for each in self._indexes)})")

    def flush(self) -> None:
        """Emit the read of the fixed-size fields put off so far."""
        if not self._run:
            return
        codes = "".join(code for code, _ in self._run)
        names = ", ".join(name for _, name in self._run)
        size = struct.calcsize(">" + codes)
        if codes == "B":
            self.line(f"{names} = buf[pos]")
        else:
            comma = "," if len(self._run) == 1 else ""
            unpack = self.struct_method(codes, "unpack_from", "unpack")
            self.line(f"{names}{comma} = {unpack}(buf, pos)")
        self.line(f"pos += {size}")
        self._run.clear()

    def spend(self, count: str, name: str) -> None:
        """Emit that `count` elements of the array `name` follow, if anybody counts."""
        if self.bounded:
            self.line(f"left -= {count}")
            self.line("if left < 0:")
            self.line(f"    raise {self.helper('Exceeded')}({name!r}, pos)")

    def unpacker(self, codes: str, prefix: str) -> str:
        return self.struct_method(codes, "iter_unpack", prefix)

    def slice(self, start: str, stop: str) -> str:
        return f"buf[{start}:{stop}]"

    def view(self, start: str, stop: str) -> str:
        """A slice that shares memory with the frame."""
        assert self.viewing
        return self.slice(start, stop)

    def bytes(self, start: str, stop: str) -> str:
        """A slice as bytes of their own."""
        return f"bytes(buf[{start}:{stop}])" if self.viewing else f"buf[{start}:{stop}]"

    def text(self, slice_: str) -> str:
        if (
            self.bounded or self.tracking
        ):  # construct, which else decodes text that is no UTF-8, would take too long
            return f"{self.helper('java_text')}({slice_})"
        return f'str({slice_}, "utf-8")' if self.viewing else f"{slice_}.decode()"

    def literal(self, value: Any) -> str:
        """An expression for a default. Frozen structs are shared, other mutables made anew."""
        if value == [] and isinstance(value, list):
            return "[]"
        if value is ZERO_UUID or value == ZERO_UUID:
            return self.constant("ZERO_UUID", ZERO_UUID)
        cls = type(value)
        if not hasattr(cls, "__struct_config__"):
            return repr(value)
        if cls.__struct_config__.frozen:
            return self.constant(f"DEFAULT_{cls.__name__}", value)
        return f"{self.constant(cls.__name__, cls)}()"


class EncodeWriter(Writer):
    """Collects the body of an `encode`, whose `put` appends a piece of the output."""

    def __init__(self, *, scattering: bool) -> None:
        super().__init__()
        self.scattering = scattering
        self._run: list[tuple[str, str]] = []
        self._put = "put"

    def fixed(self, code: str, value: str) -> None:
        """Write one `struct` code, at the latest with the next flush."""
        self._run.append((code, value))

    def zero(self) -> None:
        """Write one zero byte: an empty tagged section."""
        self._run.append(("x", ""))

    def put(self, value: str) -> None:
        self.flush()
        self.line(f"{self._put}({value})")

    def flush(self) -> None:
        """Emit the write of the fixed-size fields put off so far."""
        if self._run:
            self.line(f"{self._put}({self._packed(self._run)})")
            self._run = []

    def _packed(self, run: list[tuple[str, str]]) -> str:
        codes = "".join(code for code, _ in run)
        if codes.strip("x") == "":
            return repr(bytes(len(codes)))
        arguments = ", ".join(value for code, value in run if code != "x")
        return f"{self.struct_method(codes, 'pack', 'pack')}({arguments})"

    def length(self, size: str, helper: str) -> None:
        """Write a compact length, fused with the run before it if one byte holds it."""
        long = f"{self.helper(helper)}({size})"
        if not self._run:
            byte = self.helper("BYTE")
            self.line(f"{self._put}({byte}[{size}] if {size} < 128 else {long})")
            return
        run, self._run = self._run, []
        self.line(f"if {size} < 128:")
        self.line(f"    {self._put}({self._packed([*run, ('B', size)])})")
        self.line("else:")
        self.line(f"    {self._put}({self._packed(run)})")
        self.line(f"    {self._put}({long})")

    @contextmanager
    def fork(self, header: str) -> Iterator[None]:
        """A branch that begins by writing the fields put off before it. End with `joined`."""
        run = list(self._run)
        with self.block(header):
            yield
            self.flush()
        self._run = run

    def joined(self) -> None:
        """All branches are written."""
        self._run = []

    @contextmanager
    def aside(self) -> Iterator[str]:
        """Write into a list of its own; gives the list's name."""
        assert not self._run
        aside, put = self.variable("aside"), self._put
        self.line(f"{aside} = []")
        self._put = f"{aside}.append"
        yield aside
        self._put = put

    def hold(self, value: str) -> str:
        """A variable that holds the value of an expression."""
        if value.isidentifier():
            return value
        variable = self.variable(value.rpartition(".")[2])
        self.line(f"{variable} = {value}")
        return variable

    def scatter(self, buffers: str, condition: str) -> None:
        """Hand over buffers as they are, behind all that was written before, if `condition`."""
        assert self.scattering
        self.flush()
        with self.block(f"if {condition}:"):
            self.line('pieces.append(b"".join(out))')
            self.line("out.clear()")
            self.line(f"pieces.extend({buffers})")

    def is_default(self, value: str, default: Any, primitive: Any) -> str:
        """A test whether a tagged field may be left out."""
        if default is None:
            return f"{value} is None"
        if default is False or (default == [] and not getattr(primitive, "nullable", False)):
            return f"not {value}"
        cls = type(default)
        if not hasattr(cls, "__struct_config__"):
            return f"{value} == {default!r}"
        name = self.constant(f"DEFAULT_{cls.__name__}", default)
        if cls.__struct_config__.frozen:
            return f"({value} is {name} or {value} == {name})"
        return f"{value} == {name}"


def carries_records(node: Any) -> bool:
    """Whether there is a records field anywhere in a tree."""
    if isinstance(node, ArrayOf):
        return carries_records(node.element)
    if isinstance(node, Maybe):
        return carries_records(node.shaped)
    if isinstance(node, Shaped):
        return any(carries_records(subcon.subcon) for subcon in node.subcon.subcons)
    if isinstance(node, TagSection):
        return any(carries_records(primitive) for _, primitive in node.known.values())
    return isinstance(node, Records)


def decode_source(
    tree: Shaped, *, viewing: bool = False, bounded: bool = False, tracking: bool = False
) -> tuple[str, dict[str, Any]]:
    """The source of `decode(frame, start)` for a message, and its globals but for `again`.

    `viewing` says that the buffer is not to be copied even if the message has no records. With
    `bounded` it is `decode(frame, start, left)`, which counts elements, and the missing global is
    `failed`. With `tracking` it returns None or, where it fails, the path and byte of the field.
    """
    viewing = viewing or carries_records(tree)
    writer = DecodeWriter(viewing=viewing, bounded=bounded, tracking=tracking)
    wanted = "memoryview" if viewing else "bytes"
    writer.line(f"if type(buf) is not {wanted}:")
    writer.line(f"    buf = {wanted}(buf)")
    writer.line("limit = len(buf)")
    message = tree.emit_decode(writer, "message")
    writer.line(f"message = {message}")
    # Slices do not fail at the end of the buffer; but where one fell short, pos ran past it.
    writer.line("if pos > limit:")
    writer.line(f"    raise {writer.helper('Refused')}")
    writer.line("return None" if tracking else "return message, pos")
    arguments, failure = (
        "frame, start=0",
        ["    except Exception:", "        return again(frame, start)"],
    )
    if bounded:
        arguments = "frame, start, left"
        failure = [
            "    except Exception as error:",
            "        raise failed(frame, start, error) from None",
        ]
    head = [f"def decode({arguments}):", "    buf = frame", "    pos = start", "    try:"]
    if tracking:
        head.insert(1, "    at, where = start, ('',)")
        failure = ["    except Exception:", "        return where[0].format(*where[1:]), at"]
    tail = [*failure, ""]
    return "\n".join([*head, *writer.lines, *tail]), writer.constants


def encode_source(tree: Shaped) -> tuple[str, dict[str, Any]]:
    """The source of `encode(message)`, and its globals but for `again`."""
    scattering = carries_records(tree)
    writer = EncodeWriter(scattering=scattering)
    if scattering:
        writer.line("pieces = []")
    writer.line("out = []")
    writer.line("put = out.append")
    tree.emit_encode(writer, "message")
    writer.flush()
    if scattering:
        writer.line("if out:")
        writer.line('    pieces.append(b"".join(out))')
        writer.line("return pieces")
    else:
        writer.line('return [b"".join(out)]')
    head = ["def encode(message):", "    try:"]
    tail = ["    except Exception:", "        return again(message)", ""]
    return "\n".join([*head, *writer.lines, *tail]), writer.constants


def compile_function(
    source: str, constants: dict[str, Any], name: str, title: str
) -> Callable[..., Any]:
    """Run emitted source and take the function `name` out of it."""
    code: CodeType = compile(source, f"<{title}>", "exec")
    namespace = dict(constants)
    exec(code, namespace)  # noqa: S102  # the source is made here, of declarations only
    function: Callable[..., Any] = namespace[name]
    return function
