"""Records as tests give and expect them.

An *expectation* compares a few fields of a record. Each expectation takes one record, so a vague
one leaves a record to an exact one where both match it. A failed comparison is a table: each
expectation without a record beside its *near miss*, the record most like it, with the fields that
differ.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias, TypedDict

from mockbroker.api.matching import in_order, pairs
from mockbroker.api.nearness import Field, field_of, near_miss
from mockbroker.api.payloads import Payload
from mockbroker.core.shortening import shown_bytes
from mockbroker.core.validation import nearest
from mockbroker.core.views.stored import StoredRecord

ROWS_SHOWN = 20

# A pattern is searched for, as by `pytest.raises(match=…)`.
ExpectedPayload: TypeAlias = bytes | str | re.Pattern[str] | re.Pattern[bytes] | None


class RecordDict(TypedDict, total=False):
    """A record to append; see `Topic.produce`."""

    value: Payload
    key: Payload
    headers: Mapping[str, Payload] | Sequence[tuple[str, Payload]]
    partition: int | None
    timestamp_ms: int | None


class ExpectedRecord(TypedDict, total=False):
    """A record to expect. Fields that are left out are not compared.

    Text stands for its UTF-8, None for null. A pattern is searched for. `value_json` and `key_json`
    are compared as JSON values; what is in them may be any object with `==`, as
    `unittest.mock.ANY`. A mapping of `headers` names those that must be there, a sequence of pairs
    is all headers in their order.
    """

    value: ExpectedPayload
    value_json: object
    key: ExpectedPayload
    key_json: object
    headers: Mapping[str, ExpectedPayload] | Sequence[tuple[str, ExpectedPayload]]
    partition: int
    timestamp_ms: int


Expected: TypeAlias = int | Sequence[ExpectedRecord | ExpectedPayload]


class Expectations:
    """What a test expects of the records of a topic: their number, or each of them.

    Raises TypeError for what is neither.
    """

    def __init__(
        self, topic: str, expected: Expected, *, ordered: bool, allow_others: bool
    ) -> None:
        if isinstance(expected, bool | str | bytes) or not isinstance(expected, int | Sequence):
            raise TypeError(
                "a number or a list of records is expected, not " + type(expected).__name__
            )
        self._topic = topic
        self._ordered = ordered
        self._allow_others = allow_others
        self._each = (
            None
            if isinstance(expected, int)
            else [_fields(each, f"expected[{n}]") for n, each in enumerate(expected)]
        )
        self.count = expected if isinstance(expected, int) else len(expected)

    def met_by(self, found: Sequence[StoredRecord]) -> list[StoredRecord] | None:
        """The expected records among those found, in the order of the expectations; else None."""
        if len(found) < self.count or (len(found) > self.count and not self._allow_others):
            return None
        if self._each is None:
            return list(found)
        match = in_order if self._ordered else pairs
        taken = [index for index in match(self._each, found) if index is not None]
        return [found[index] for index in taken] if len(taken) == self.count else None

    def can_be_met_after(self, found: Sequence[StoredRecord]) -> bool:
        """Whether more records may help: without others, each one that came must be expected."""
        return self._allow_others or len(found) < self.count

    def failure(self, found: Sequence[StoredRecord], waited_s: float) -> str:
        """What is wrong about the records: a sentence, and a table."""
        after = f"after {round(waited_s, 2):g} s"
        if self._each is None:
            first = f"topic {self._topic!r} holds {len(found)} records, not {self.count} {after}"
            return "\n".join([first, *_records_table("record", found)])
        taken = pairs(self._each, found)
        missing = [index for index, record in enumerate(taken) if record is None]
        if not missing and (self._allow_others or len(found) == self.count):
            first = f"holds the {self.count} expected records in another order"
            return "\n".join([f"topic {self._topic!r} {first} {after}", *self._order_table(found)])
        unmatched = sorted({*range(len(found))} - {*taken})
        others = [] if self._allow_others else [found[index] for index in unmatched]
        wrong = []
        if missing:
            wrong.append(f"lacks {len(missing)} of {self.count} expected records")
        if others:
            noun = "record" if len(others) == 1 else "records"
            wrong.append(f"holds {len(others)} {noun} not expected")
        return "\n".join(
            [
                f"topic {self._topic!r} {' and '.join(wrong)} {after}",
                *self._missing_table(missing, taken, found),
                *_records_table("not expected", others),
            ]
        )

    def _missing_table(
        self, missing: list[int], taken: list[int | None], found: Sequence[StoredRecord]
    ) -> list[str]:
        assert self._each is not None
        owners = {record: index for index, record in enumerate(taken) if record is not None}
        rows = []
        for index in missing[:ROWS_SHOWN]:
            near = near_miss(self._each[index], found, taken=owners)
            if near is None:
                rows.append((self._shown(index), "none", ""))
                continue
            differs = ", ".join(near.differences) or f"expected as [{owners[near.record]}]"
            rows.append((self._shown(index), place(found[near.record]), differs))
        return _table(("missing", "nearest", "differs"), rows, len(missing))

    def _order_table(self, found: Sequence[StoredRecord]) -> list[str]:
        """Where the expected records stand, and which stands before an earlier one."""
        assert self._each is not None
        rows = []
        newest: dict[int, tuple[int, int]] = {}
        taken = pairs(self._each, found)
        for index, at in enumerate(taken[:ROWS_SHOWN]):
            assert at is not None
            record = found[at]
            offset, before = newest.get(record.partition, (-1, 0))
            late = record.offset < offset
            if not late:
                newest[record.partition] = (record.offset, index)
            rows.append((self._shown(index), place(record), f"before [{before}]" if late else ""))
        return _table(("expected", "stands at", ""), rows, len(taken))

    def _shown(self, index: int) -> str:
        assert self._each is not None
        fields = self._each[index]
        if not fields:
            return f"[{index}] any record"
        return f"[{index}] " + " ".join(f"{each.name}={each.shown}" for each in fields)


def place(record: StoredRecord) -> str:
    """Where a record stands."""
    return f"{record.topic}-{record.partition} offset {record.offset}"


def _fields(given: ExpectedRecord | ExpectedPayload, path: str) -> list[Field]:
    """The fields that an expectation compares. Raises TypeError with the path of a wrong one."""
    if not isinstance(given, Mapping):
        return [field_of("value", given, path)]
    fields: Mapping[str, object] = given
    names = ExpectedRecord.__annotations__
    for name in fields:
        if name not in names:
            raise TypeError(f"{path}: unknown field {name!r}{nearest(str(name), names)}")
    for name in ("value", "key"):
        if name in fields and f"{name}_json" in fields:
            raise TypeError(f"{path}: {name} and {name}_json exclude each other")
    return [field_of(name, fields[name], f"{path}.{name}") for name in names if name in fields]


def _records_table(head: str, records: Sequence[StoredRecord]) -> list[str]:
    rows = [
        (place(each), shown_bytes(each.key), shown_bytes(each.value))
        for each in records[:ROWS_SHOWN]
    ]
    return _table((head, "key", "value"), rows, len(records))


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]], total: int) -> list[str]:
    """Lines of a table that shows some rows of a total; none without a row."""
    if not rows:
        return []
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]
    lines = [
        "  "
        + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [heads, *rows]
    ]
    return [*lines, f"  … and {total - len(rows)} more"] if total > len(rows) else lines
