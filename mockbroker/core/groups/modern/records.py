"""Records of `__consumer_offsets` as changes of groups.

Source: GroupCoordinatorRecordSerde.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from mockbroker_protocol.internal_topics import CONSUMER_OFFSETS
from mockbroker_protocol.records import Record

C = TypeVar("C")


def parse_change(
    record: Record, readers: Mapping[type, Callable[[Any, Any], C]]
) -> tuple[str, C] | None:
    """The group id and the change of a record, or None if its type of key has no reader.

    A reader makes the change from key and value. Raises DecodeError if key or value do not have the
    format of their version.
    """
    if record.key is None:
        return None
    key = CONSUMER_OFFSETS.decode_key(record.key)
    reader = readers.get(type(key))
    if reader is None:
        return None
    return key.group_id, reader(key, CONSUMER_OFFSETS.decode_value(key, record.value))
