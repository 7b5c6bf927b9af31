"""Selected parts of a decoded message.

A rule *selects* targets (topic, topic id, and one or all partitions), some of several groups or
transactional ids, or both. Messages are never changed in place: take a `fresh` copy first. The copy
shares the records, which are read-only views.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from mockbroker.core.faults.paths import arrays_at
from mockbroker.core.faults.rows import RowArray
from mockbroker.core.ids import ZERO_UUID
from mockbroker_protocol.declare import (
    COORDINATOR_KEY,
    GROUP_ID,
    PARTITION,
    TOPIC_NAME,
    TRANSACTIONAL_ID,
    Entity,
)
from mockbroker_protocol.entities import ALL_PARTITIONS, Target

# The kinds of ids that a rule can select.
SELECTED_BY_ID = (GROUP_ID, TRANSACTIONAL_ID)


class RowTopic(NamedTuple):
    """The topic of the current row."""

    name: str | None
    topic_id: bytes


NO_TOPIC = RowTopic(None, ZERO_UUID)


class Selection:
    """The part of a message that a rule selects: everything when not `limited`.

    `targets` limits topics and partitions; `ids` limits groups and transactional ids. With
    `of_acknowledgements` only the acknowledgements of these partitions are selected (KIP-932).
    """

    __slots__ = ("_ids", "_names", "_of_topics", "ids", "of_acknowledgements", "targets")

    def __init__(
        self,
        targets: Iterable[Target] | None,
        ids: Mapping[Entity, Collection[str]] | None = None,
        *,
        of_acknowledgements: bool = False,
    ) -> None:
        self.of_acknowledgements = of_acknowledgements
        self._of_topics = targets is not None
        self.targets = list(targets or ())
        self.ids = ids or {}
        self._names: dict[str, set[int]] = {}
        self._ids: dict[bytes, set[int]] = {}
        for target in self.targets:
            if target.topic:
                self._names.setdefault(target.topic, set()).add(target.partition)
            if target.topic_id != ZERO_UUID:
                self._ids.setdefault(target.topic_id, set()).add(target.partition)

    @property
    def limited(self) -> bool:
        return self._of_topics or bool(self.ids)

    def partitions(self, name: str | None, topic_id: bytes) -> set[int] | None:
        """The selected partitions of a topic, by name or id; None if it is not selected."""
        found = self._names.get(name) if name else None
        return self._ids.get(topic_id) if found is None else found

    def has(self, name: str | None, topic_id: bytes, partition: int) -> bool:
        """Whether a partition is selected."""
        if not self._of_topics:
            return True
        found = self.partitions(name, topic_id)
        return found is not None and (partition in found or ALL_PARTITIONS in found)

    def fits(self, rows: RowArray, row: Any, topic: RowTopic) -> bool:
        """Whether a row in `topic` is selected, or may hold a selected row."""
        kind, name = rows.kind_of(row), rows.name_of(row)
        if rows.by is not None:
            return self._has_resource(kind, name)
        if kind is PARTITION:
            return self.has(topic.name, topic.topic_id, name)
        if kind is TOPIC_NAME:
            return not self._of_topics or self.partitions(name, rows.id_of(row)) is not None
        if kind is COORDINATOR_KEY:
            return not self.ids or any(name in ids for ids in self.ids.values())
        return kind is None or kind not in self.ids or name in self.ids[kind]

    def _has_resource(self, kind: Entity | None, name: str) -> bool:
        """Whether a resource is selected; each row of resources has its own kind."""
        if not self.limited:
            return True
        if kind is TOPIC_NAME:
            return self.partitions(name, ZERO_UUID) is not None
        return kind is not None and name in self.ids.get(kind, ())

    def is_whole(self, rows: RowArray, row: Any) -> bool:
        """Whether a selected row is selected with everything in it."""
        if not self._of_topics or rows.kind is not TOPIC_NAME:
            return not self._of_topics or rows.by is not None
        chosen = self.partitions(rows.name_of(row), rows.id_of(row))
        return chosen is not None and ALL_PARTITIONS in chosen


def fresh(value: Any) -> Any:
    """A copy of a decoded message for changes; buffers are shared."""
    if isinstance(value, msgspec.Struct):
        if value.__struct_config__.frozen:
            return value
        copy: Any = type(value)()
        for name in value.__struct_fields__:
            setattr(copy, name, fresh(getattr(value, name)))
        return copy
    if isinstance(value, list):
        return [fresh(item) for item in value]
    return value


# -- rows ------------------------------------------------------------------------------------------


def in_row(rows: RowArray, row: Any, topic: RowTopic) -> RowTopic:
    """The topic of the rows inside a row."""
    return RowTopic(rows.name_of(row), rows.id_of(row)) if rows.kind is TOPIC_NAME else topic


def selected_partitions(
    message: Any, layout: Sequence[RowArray], selection: Selection
) -> Iterator[tuple[Any, Any]]:
    """(row, partition) of every selected partition that has a struct."""
    return _partitions(message, layout, selection, NO_TOPIC)


def _partitions(
    holder: Any, layout: Sequence[RowArray], selection: Selection, topic: RowTopic
) -> Iterator[tuple[Any, Any]]:
    for rows in layout:
        for found in arrays_at(holder, rows.path):
            for row in () if rows.bare else found:
                if not selection.fits(rows, row, topic):
                    continue
                if rows.kind is PARTITION:
                    yield holder, row
                elif rows.inner:
                    yield from _partitions(row, rows.inner, selection, in_row(rows, row, topic))


def narrows(request: Any, layout: Sequence[RowArray], selection: Selection) -> bool:
    """Whether a selection by ids leaves out a row of a request."""
    return any(
        not selection.fits(rows, row, NO_TOPIC)
        for rows in layout
        for found in arrays_at(request, rows.path)
        for row in found
    )


# -- some of a request -----------------------------------------------------------------------------


def part(request: Any, layout: Sequence[RowArray], selection: Selection, *, selected: bool) -> Any:
    """A copy of a request with only the selected part, or only the rest; None if it is empty."""
    copy = fresh(request)
    return copy if _cut(copy, layout, selection, selected, NO_TOPIC) else None


def _cut(
    holder: Any, layout: Sequence[RowArray], selection: Selection, selected: bool, topic: RowTopic
) -> bool:
    """Remove the rows outside the part; returns whether any is left."""
    left = False
    for rows in layout:
        for found in arrays_at(holder, rows.path):
            found[:] = [row for row in found if _stays(rows, row, selection, selected, topic)]
            left = left or bool(found)
    return left


def _stays(rows: RowArray, row: Any, selection: Selection, selected: bool, topic: RowTopic) -> bool:
    if not selection.fits(rows, row, topic):
        return not selected
    if not any(found for each in rows.inner for found in arrays_at(row, each.path)):
        return selected
    return _cut(row, rows.inner, selection, selected, in_row(rows, row, topic))


# -- some of an answer -----------------------------------------------------------------------------


def merge(response: Any, other: Any, layout: Sequence[RowArray]) -> Any:
    """A copy of an answer in which the rows of another replace its own."""
    merged = fresh(response)
    _merge(merged, other, layout)
    return merged


def _merge(into: Any, other: Any, layout: Sequence[RowArray]) -> None:
    for rows in layout:
        known = next(arrays_at(into, rows.path), None)
        if known is None:
            continue
        at = {rows.key_of(row): place for place, row in enumerate(known)}
        for found in arrays_at(other, rows.path):
            for row in found:
                place = at.get(rows.key_of(row))
                if place is None:
                    known.append(row)
                elif rows.inner and not (rows.error and getattr(row, rows.error)):
                    _merge(known[place], row, rows.inner)
                else:
                    known[place] = row


def put_error(
    response: Any,
    layout: Sequence[RowArray],
    selection: Selection,
    error: int,
    blanks: Blanks,
    message: str,
) -> Any:
    """A copy of an answer with `error` in the selected parts: partitions, or whole rows.

    `blanks` are the field values of a struct with an error, where these are not the defaults.
    """
    changed = fresh(response)
    _put(changed, layout, selection, _Failure(error, blanks, message), NO_TOPIC)
    return changed


Blanks = dict[str, dict[str, object]]


class _Failure(NamedTuple):
    error: int
    blanks: Blanks
    message: str

    def blank(self, rows: RowArray, row: Any) -> Any:
        """A row with only its name or id, and the error."""
        blank = type(row)(**self.blanks.get(type(row).__name__, {}))
        kept = (rows.name, rows.topic_id, "" if rows.by is None else rows.by.field)
        for name in filter(None, kept):
            setattr(blank, name, getattr(row, name))
        self.say(rows, blank)
        return blank

    def say(self, rows: RowArray, row: Any) -> None:
        setattr(row, rows.error, self.error)
        if self.message and hasattr(row, "error_message"):
            row.error_message = self.message


def _put(
    holder: Any,
    layout: Sequence[RowArray],
    selection: Selection,
    failure: _Failure,
    topic: RowTopic,
) -> None:
    for rows in layout:
        for found in arrays_at(holder, rows.path):
            for at, row in enumerate(found):
                if rows.bare or not selection.fits(rows, row, topic):
                    continue
                if not rows.error or not (rows.kind is PARTITION or selection.is_whole(rows, row)):
                    _put(row, rows.inner, selection, failure, in_row(rows, row, topic))
                elif rows.kind is TOPIC_NAME and rows.by is None:
                    failure.say(rows, row)
                    for each in rows.inner:
                        setattr(row, each.path[0], [])
                else:
                    found[at] = failure.blank(rows, row)
