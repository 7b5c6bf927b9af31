"""Records as tests give and expect them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, TypedDict

from mockbroker.core.views.stored import StoredRecord

ROWS_SHOWN = 20
CELL_CHARS_MAX = 40

Payload: TypeAlias = bytes | str | None


class RecordDict(TypedDict, total=False):
    """A record to append; see `Topic.produce`."""

    value: Payload
    key: Payload
    headers: Mapping[str, Payload] | Sequence[tuple[str, Payload]]
    partition: int
    timestamp_ms: int


def as_bytes(payload: Payload) -> bytes | None:
    """Text as UTF-8. Raises TypeError for what is neither bytes nor text."""
    if isinstance(payload, str):
        return payload.encode()
    if payload is None or isinstance(payload, bytes):
        return payload
    raise TypeError(f"keys and values are bytes, str or None, not {type(payload).__name__}")


def wrong_records(
    topic: str, wanted: int, found: Sequence[StoredRecord], waited_s: float | None
) -> str:
    """What is wrong about the records of a topic: a sentence, and a table of the records."""
    waited = "" if waited_s is None else f" after {waited_s:g} s"
    first = f"topic {topic!r} holds {len(found)} records, not {wanted}{waited}"
    if not found:
        return first
    rows = [
        (str(each.partition), str(each.offset), _cell(each.key), _cell(each.value))
        for each in found[:ROWS_SHOWN]
    ]
    heads = ("partition", "offset", "key", "value")
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]
    lines = [
        "  "
        + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [heads, *rows]
    ]
    if len(found) > ROWS_SHOWN:
        lines.append(f"  … and {len(found) - ROWS_SHOWN} more")
    return "\n".join([first, *lines])


def _cell(value: bytes | None) -> str:
    if value is None:
        return "null"
    text = repr(value)
    return text if len(text) <= CELL_CHARS_MAX else text[: CELL_CHARS_MAX - 1] + "…"
