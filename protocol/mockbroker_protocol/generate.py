"""Write the struct classes of `messages/` and the schema tables of the docs from the declarations.

    python -m mockbroker_protocol.generate [--check] [--docs FILE]

With `--check` nothing is written; the exit code is 1 if a file is out of date.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from types import ModuleType

from mockbroker_protocol.api_key import ApiKey
from mockbroker_protocol.declarations import (
    class_names,
    is_api,
    messages_of,
    module_names,
    schema_module,
    shapes_of,
    shares_default,
)
from mockbroker_protocol.declare import (
    NEVER,
    Array,
    Field,
    FieldType,
    Message,
    Scalar,
    Shape,
)
from mockbroker_protocol.tables import markdown_table, rows

PYTHON_TYPES: dict[Scalar, str] = {
    Scalar.BOOL: "bool",
    Scalar.INT8: "int",
    Scalar.INT16: "int",
    Scalar.INT32: "int",
    Scalar.INT64: "int",
    Scalar.UINT16: "int",
    Scalar.FLOAT64: "float",
    Scalar.UUID: "bytes",
    Scalar.STRING: "str",
    Scalar.BYTES: "bytes",
    Scalar.RECORDS: "Records",
}

DOCS_COLUMNS = ("field", "type", "versions", "nullable", "tag", "default", "names")

LINE_CHARS_MAX = 100
TYPE_NAMES = ("ZERO_UUID", "Records", "UnknownTags")

MESSAGES_DOCSTRING = '''"""Typed, version-free structs: what handlers and clients see of a message.

One module per API, generated from `schemas/` by `python -m mockbroker_protocol.generate`. A struct
has every field that exists in any version; a field that a version lacks holds Kafka's default after
decoding and is left out when encoding. Use keyword arguments: the order of the fields is not part
of the interface (codecs fill them by position, which is why they are not keyword-only).
"""
'''


def render_module(name: str, module: ModuleType) -> str:
    """The source of `messages/<name>.py`."""
    names = class_names(module)
    classes: dict[str, str] = {}
    messages = messages_of(module)
    frozen = {
        id(field.type)
        for message in messages
        for shape in shapes_of(message.shape)
        for field in shape.fields
        if shares_default(field)
    }
    for message in messages:
        for shape in shapes_of(message.shape):
            source = _render_class(shape, message, names, frozen=id(shape) in frozen)
            known = classes.setdefault(names[id(shape)], source)
            if known != source:
                raise ValueError(f"{name}: two different shapes are called {names[id(shape)]}")
    body = "\n\n".join(classes.values())
    return f"{_docstring(name, module)}\n\n{_imports(body)}\n\n{body}"


def _docstring(name: str, module: ModuleType) -> str:
    title = _title(name, module)
    if is_api(module):
        title += f", versions {module.REQUEST.versions}"
    source = f"Generated from `schemas/{name}.py`; change that, then run the generator."
    return f'"""{title}.\n\n{source}\n"""'


def _imports(body: str) -> str:
    msgspec = "Struct, field" if "default_factory=" in body else "Struct"
    names = [name for name in TYPE_NAMES if re.search(rf"\b{name}\b", body)]
    lines = ["from __future__ import annotations", "", f"from msgspec import {msgspec}"]
    if names:
        lines += ["", f"from mockbroker_protocol.types import {', '.join(names)}"]
    return "\n".join(lines) + "\n"


def _render_class(shape: Shape, message: Message, names: dict[int, str], *, frozen: bool) -> str:
    # Messages are trees, so the collector need not look at them: gc=False halves their cost.
    options = "gc=False, frozen=True" if frozen else "gc=False"
    lines = [f"class {names[id(shape)]}(Struct, {options}):"]
    for field in shape.fields:
        lines += _render_field(field, names)
    if message.flexible != NEVER:
        lines.append("    unknown_tags: UnknownTags = None")
    if len(lines) == 1:
        lines.append("    pass")
    return "\n".join(lines) + "\n"


def _render_field(field: Field, names: dict[int, str]) -> list[str]:
    """The field's lines, broken where the formatter would break them."""
    default = _default(field, names)
    line = f"    {field.name}: {_annotation(field, names)} = {default}"
    if len(line) <= LINE_CHARS_MAX:
        return [line]
    if isinstance(field.type, Array):
        element = _type_annotation(field.type.element, names)
        head, _, tail = line.partition(f"list[{element}]")
        return [f"{head}list[", f"        {element}", f"    ]{tail}"]
    if not default.endswith(")"):
        return [line]
    call, _, argument = default.removesuffix(")").partition("(")
    return [line.removesuffix(default) + f"{call}(", f"        {argument}", "    )"]


def _annotation(field: Field, names: dict[int, str]) -> str:
    text = _type_annotation(field.type, names)
    nullable = field.nullable != NEVER or field.default is None
    return f"{text} | None" if nullable and text != "Records" else text


def _type_annotation(type_: FieldType, names: dict[int, str]) -> str:
    if isinstance(type_, Array):
        return f"list[{_type_annotation(type_.element, names)}]"
    if isinstance(type_, Shape):
        return names[id(type_)]
    return PYTHON_TYPES[type_]


def _default(field: Field, names: dict[int, str]) -> str:
    if field.default is None:
        return "None"
    if isinstance(field.type, Array):
        return "[]"
    if isinstance(field.type, Shape):
        name = names[id(field.type)]
        return f"{name}()" if shares_default(field) else f"field(default_factory={name})"
    if field.type is Scalar.UUID:
        return "ZERO_UUID"
    if isinstance(field.default, str | bytes):
        return repr(field.default).replace("'", '"')
    return repr(field.default)


DOCS_HEAD = """# Message schemas

Every message that the protocol package reads and writes, in the versions that Apache Kafka 4.3
speaks. This page is generated from the declarations in `protocol/mockbroker_protocol/schemas/` by
`python -m mockbroker_protocol.generate --docs docs/appendix/messages.md`.

*Versions* says where a field exists and *nullable* where it may be null ("all": in every version of
its message). A field with a *tag* stands in the tagged section, and only if it differs from its
*default*; elsewhere the default is what a struct holds when its version lacks the field. *Names*
is what a value names: Kafka's `entityType`, or in brackets one that we add because Kafka has none.
"""


def render_docs() -> str:
    """The page with the table of every message."""
    parts = [DOCS_HEAD]
    modules = [(name, schema_module(name)) for name in module_names()]
    modules.sort(key=lambda each: ApiKey[each[0].upper()] if is_api(each[1]) else 1000)
    for name, module in modules:
        parts.append(f"## {_title(name, module)}\n")
        for message in messages_of(module):
            flexible = "no flexible version"
            if message.flexible != NEVER:
                flexible = f"flexible {message.flexible}"
            parts.append(f"### {message.name}\n")
            parts.append(f"Versions {message.versions}, {flexible}.\n")
            body = [tuple(row) for row in rows(message)]
            parts.append(markdown_table(DOCS_COLUMNS, body) + "\n" if body else "No fields.\n")
    return "\n".join(parts)


def _title(name: str, module: ModuleType) -> str:
    if is_api(module):
        title: str = module.REQUEST.name.removesuffix("Request")
        return f"{title} (key {ApiKey[name.upper()].value})"
    return str(module.__doc__).partition("\n")[0].rstrip(".")


def render_all() -> dict[Path, str]:
    """Every file of `messages/` with the text it should hold."""
    folder = Path(__file__).parent / "messages"
    files = {folder / "__init__.py": MESSAGES_DOCSTRING}
    for name in module_names():
        files[folder / f"{name}.py"] = render_module(name, schema_module(name))
    return files


def main(arguments: list[str] | None = None) -> int:
    """Write or check the files; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m mockbroker_protocol.generate")
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    parser.add_argument("--docs", type=Path, help="the page of tables to write or check as well")
    options = parser.parse_args(arguments)
    files = render_all()
    if options.docs is not None:
        files[options.docs] = render_docs()
    stale = [
        path for path, text in files.items() if not path.exists() or path.read_text("utf-8") != text
    ]
    stale += _strays(files)
    for path in stale:
        sys.stdout.write(f"{'differs' if options.check else 'writing'}: {path.name}\n")
        if options.check:
            continue
        if path in files:
            path.parent.mkdir(exist_ok=True)
            path.write_text(files[path], "utf-8")
        else:
            path.unlink()
    return 1 if options.check and stale else 0


def _strays(files: dict[Path, str]) -> list[Path]:
    folder = Path(__file__).parent / "messages"
    return [path for path in folder.glob("*.py") if path not in files]


if __name__ == "__main__":
    sys.exit(main())
