"""Declarations as tables: the rows that `show` prints and the docs hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mockbroker_protocol.declare import (
    ALWAYS,
    NATURAL,
    NEVER,
    Array,
    EntityBy,
    Field,
    FieldType,
    Message,
    Shape,
    Versions,
)


class FieldRow(NamedTuple):
    """One field: `topics[].partitions[].index`, its type, versions, default and entity.

    The entity is in brackets if Kafka's definitions lack it. All are texts, perhaps empty.
    """

    path: str
    type: str
    versions: str
    nullable: str
    tag: str
    default: str
    names: str


def rows(message: Message, version: int | None = None) -> Iterator[FieldRow]:
    """The fields of a message in wire order; of one version, or of all."""
    return _rows(message.shape, "", message.versions, version)


def _rows(shape: Shape, prefix: str, span: Versions, version: int | None) -> Iterator[FieldRow]:
    for field in shape.fields:
        if version is not None and version not in field.versions:
            continue
        path = prefix + field.name
        yield FieldRow(
            path,
            type_text(field.type),
            _versions_text(field.versions, span),
            _nullable_text(field, version),
            "" if field.tag is None else str(field.tag),
            _default_text(field),
            _names_text(field),
        )
        yield from _inner(field.type, path, span, version)


def _inner(type_: FieldType, path: str, span: Versions, version: int | None) -> Iterator[FieldRow]:
    if isinstance(type_, Array):
        yield from _inner(type_.element, f"{path}[]", span, version)
    elif isinstance(type_, Shape):
        yield from _rows(type_, f"{path}.", span, version)


def type_text(type_: FieldType) -> str:
    """A type in words: `int32`, `array of string`, `array of FetchTopic`."""
    if isinstance(type_, Array):
        return f"array of {type_text(type_.element)}"
    return type_.name if isinstance(type_, Shape) else type_.value


def _versions_text(versions: Versions, span: Versions) -> str:
    return "all" if versions in (ALWAYS, span) else str(versions)


def _nullable_text(field: Field, version: int | None) -> str:
    if version is not None:
        return "yes" if version in field.nullable else ""
    if field.nullable == NEVER:
        return ""
    return "all" if field.nullable == ALWAYS else str(field.nullable)


def _default_text(field: Field) -> str:
    if field.default is None:
        return "null"
    if field.default is NATURAL:
        return "[]" if isinstance(field.type, Array) else "{}"
    if isinstance(field.default, bool):
        return str(field.default).lower()
    if isinstance(field.default, bytes):
        return "zero" if field.default else "empty"
    return str(field.default) if field.default != "" else "empty"


def _names_text(field: Field) -> str:
    if field.entity is not None:
        text = field.entity.value
    elif isinstance(field.own_entity, EntityBy):
        text = f"({field.own_entity})"
    else:
        text = "" if field.own_entity is None else f"({field.own_entity.value})"
    return ", ".join(filter(None, (text, "null: all topics" if field.null_is_all else "")))


def text_table(head: tuple[str, ...], body: list[tuple[str, ...]]) -> str:
    """Columns padded with spaces; columns that are empty throughout are left out."""
    used = [index for index in range(len(head)) if any(row[index] for row in body)]
    lines = [[row[index] for index in used] for row in (head, *body)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(used))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def markdown_table(head: tuple[str, ...], body: list[tuple[str, ...]]) -> str:
    """A table in Markdown; the first column in code type."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join([f"`{row[0]}`", *row[1:]]) + " |" for row in body]
    return "\n".join(lines)
