"""Working on some of the topics and partitions of a decoded message and leaving the others alone.

What a rule has *selected* is a set of targets: topic, topic id, and a partition or all of them.
Messages are never changed in place: who wants to, takes a `fresh` copy first. Records are shared
with the original, for they are views that nobody writes to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from mockbroker.core.faults.layouts import Layout, TopicArray, arrays_at
from mockbroker.core.ids import ZERO_UUID

ALL = -1


class Target(NamedTuple):
    """A partition of a request, or (-1) a topic that the request names without partitions."""

    topic: str
    topic_id: bytes
    partition: int


class Selection:
    """The targets that a rule is for, quick to ask; every one of a request when not `limited`."""

    __slots__ = ("_ids", "_names", "limited", "targets")

    def __init__(self, targets: Iterable[Target] | None) -> None:
        self.limited = targets is not None
        self.targets = list(targets or ())
        self._names: dict[str, set[int]] = {}
        self._ids: dict[bytes, set[int]] = {}
        for target in self.targets:
            if target.topic:
                self._names.setdefault(target.topic, set()).add(target.partition)
            if target.topic_id != ZERO_UUID:
                self._ids.setdefault(target.topic_id, set()).add(target.partition)

    def partitions(self, name: str | None, topic_id: bytes) -> set[int] | None:
        """The partitions of a topic, known by its name or its id; None when it is not selected."""
        found = self._names.get(name) if name else None
        return self._ids.get(topic_id) if found is None else found

    def has(self, name: str | None, topic_id: bytes, partition: int) -> bool:
        """Whether a partition is selected."""
        if not self.limited:
            return True
        found = self.partitions(name, topic_id)
        return found is not None and (partition in found or ALL in found)


def fresh(value: Any) -> Any:
    """A copy of a decoded message that may be changed; buffers are shared."""
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


def name_of(row: Any, array: TopicArray) -> str | None:
    name: str | None = getattr(row, array.name) if array.name else None
    return name


def id_of(row: Any, array: TopicArray) -> bytes:
    topic_id: bytes = getattr(row, array.topic_id) if array.topic_id else ZERO_UUID
    return topic_id


def index_of(item: Any, array: TopicArray) -> int:
    index: int = getattr(item, array.number) if array.number else item
    return index


def rows(message: Any, layout: Layout) -> Iterator[tuple[TopicArray, Any]]:
    """Every topic's row of a message."""
    for array in layout.topics:
        for found in arrays_at(message, array.path):
            for row in found:
                yield array, row


def selected_partitions(
    message: Any, layout: Layout, selection: Selection
) -> Iterator[tuple[Any, Any]]:
    """(row, partition) of every selected partition that a message has structs for."""
    for array, row in rows(message, layout):
        if not (array.partitions and array.number):
            continue
        name, topic_id = name_of(row, array), id_of(row, array)
        for item in getattr(row, array.partitions) or ():
            if selection.has(name, topic_id, index_of(item, array)):
                yield row, item


# -- some of a request -----------------------------------------------------------------------------


def part(request: Any, layout: Layout, selection: Selection, *, selected: bool) -> Any | None:
    """A copy of a request with only what is selected, or only what is not.

    None when nothing is left of it.
    """
    copy = fresh(request)
    left = False

    def keep(name: str | None, topic_id: bytes, partition: int) -> bool:
        return selection.has(name, topic_id, partition) is selected

    for array in layout.topics:
        for found in arrays_at(copy, array.path):
            found[:] = [row for row in found if _keeps(row, array, keep, selection, selected)]
            left = left or bool(found)
    for field in layout.names:
        names = getattr(copy, field)
        if names:
            names[:] = [name for name in names if keep(name, ZERO_UUID, ALL)]
            left = left or bool(names)
    return copy if left else None


def _keeps(
    row: Any,
    array: TopicArray,
    keep: Callable[[str | None, bytes, int], bool],
    selection: Selection,
    selected: bool,
) -> bool:
    name, topic_id = name_of(row, array), id_of(row, array)
    partitions = getattr(row, array.partitions) if array.partitions else None
    if not partitions:
        return (selection.partitions(name, topic_id) is not None) is selected
    kept = [item for item in partitions if keep(name, topic_id, index_of(item, array))]
    setattr(row, array.partitions, kept)
    return bool(kept)


# -- some of an answer -----------------------------------------------------------------------------


def merge(response: Any, other: Any, layout: Layout) -> Any:
    """A copy of an answer in which the topics and partitions of another replace its own."""
    merged = fresh(response)
    for array in layout.topics:
        into = next(arrays_at(merged, array.path), None)
        for found in arrays_at(other, array.path):
            if into is not None:
                for row in found:
                    _merge_row(into, row, array)
    return merged


def _merge_row(into: list[Any], row: Any, array: TopicArray) -> None:
    for at, known in enumerate(into):
        if name_of(known, array) != name_of(row, array) or id_of(known, array) != id_of(row, array):
            continue
        if not array.partitions:
            into[at] = row
            return
        partitions = getattr(known, array.partitions)
        new = {index_of(item, array): item for item in getattr(row, array.partitions)}
        kept = [new.pop(index_of(item, array), item) for item in partitions]
        setattr(known, array.partitions, [*kept, *new.values()])
        return
    into.append(row)


def put_error(
    response: Any, layout: Layout, selection: Selection, error: int, blanks: Blanks, message: str
) -> Any:
    """A copy of an answer that says `error` of the selected partitions, or topics as a whole.

    `blanks` are what the fields of a struct hold in an error, where that is not their default.
    """
    changed = fresh(response)
    for array, row in rows(changed, layout):
        name, topic_id = name_of(row, array), id_of(row, array)
        chosen = selection.partitions(name, topic_id)
        if selection.limited and chosen is None:
            continue
        if array.error and (chosen is None or ALL in chosen):
            setattr(row, array.error, error)
            _say(row, message)
            if array.partitions:
                setattr(row, array.partitions, [])
        elif array.partition_error:
            items = getattr(row, array.partitions)
            for at, item in enumerate(items):
                if selection.has(name, topic_id, index_of(item, array)):
                    items[at] = _blank(item, array, error, blanks, message)
    return changed


Blanks = dict[str, dict[str, object]]


def _blank(item: Any, array: TopicArray, error: int, blanks: Blanks, message: str) -> Any:
    blank = type(item)(**blanks.get(type(item).__name__, {}))
    setattr(blank, array.number, getattr(item, array.number))
    setattr(blank, array.partition_error, error)
    _say(blank, message)
    return blank


def _say(struct: Any, message: str) -> None:
    if message and hasattr(struct, "error_message"):
        struct.error_message = message
