"""The rows of messages hold the entities that the messages name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from mockbroker.core.faults.paths import arrays_at
from mockbroker.core.faults.rows import RowArray, every, request_rows, response_rows
from mockbroker.core.ids import ZERO_UUID
from mockbroker_protocol import ApiKey
from mockbroker_protocol.declarations import declared_keys, schema_module
from mockbroker_protocol.declare import GROUP_ID, PARTITION, TOPIC_NAME, TRANSACTIONAL_ID
from mockbroker_protocol.entities import targets, values
from tests.support.populated import populated

# A request begins or an answer goes on behind these, which are no rows.
CURSORS = {ApiKey.DESCRIBE_TOPIC_PARTITIONS}
# Names here and there in what describes a group: nothing that can be taken out of the answer.
WITHIN_GROUPS = {
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    ApiKey.SHARE_GROUP_DESCRIBE,
    ApiKey.STREAMS_GROUP_DESCRIBE,
}


def in_rows(holder: Any, layout: Sequence[RowArray], topic: str = "") -> Iterator[tuple[str, int]]:
    """Topic and partition of the rows of a message; -1 for a topic without partitions."""
    for rows in layout:
        for found in arrays_at(holder, rows.path):
            for row in found:
                if rows.kind is PARTITION:
                    yield topic, rows.name_of(row)
                elif rows.kind_of(row) is not TOPIC_NAME:
                    yield from in_rows(row, rows.inner)
                else:
                    topic_id = rows.id_of(row)
                    name = rows.name_of(row) or (topic_id.hex() if topic_id != ZERO_UUID else "")
                    inner = list(in_rows(row, rows.inner, name))
                    yield from inner or ([(name, -1)] if name else [])


@pytest.mark.parametrize("is_request", [True, False], ids=["request", "response"])
@pytest.mark.parametrize("key", declared_keys(), ids=lambda key: key.name)
def test_rows_hold_every_topic_and_partition_that_a_message_names(
    key: ApiKey, is_request: bool
) -> None:
    layout = (request_rows if is_request else response_rows)(key)
    schema = schema_module(key.name.lower())
    versions = (schema.REQUEST if is_request else schema.RESPONSE).versions
    for version in range(versions.low, versions.high + 1):
        message = populated(key, version, request=is_request)
        named = {(each.topic, each.partition) for each in targets(message, version, lambda _: None)}
        held = set(in_rows(message, layout))
        if key in WITHIN_GROUPS:
            assert held == set()
        elif key in CURSORS:
            assert held < named
            assert len(named) == len(held) + 1
        else:
            assert held == named


@pytest.mark.parametrize("kind", [GROUP_ID, TRANSACTIONAL_ID], ids=lambda kind: kind.value)
@pytest.mark.parametrize("key", declared_keys(), ids=lambda key: key.name)
def test_a_request_that_names_several_groups_or_ids_has_them_in_rows(
    key: ApiKey, kind: Any
) -> None:
    """A rule can be for one of them."""
    schema = schema_module(key.name.lower())
    for version in range(schema.REQUEST.versions.low, schema.REQUEST.versions.high + 1):
        request = populated(key, version)
        several = values(request, version, kind)
        held = {
            rows.name_of(row)
            for rows in request_rows(key)
            for found in arrays_at(request, rows.path)
            for row in found
        }
        assert len(several) < 2 or set(several) <= held


def test_every_row_with_an_error_has_a_name_or_an_id() -> None:
    """By its name or its id: otherwise no error could be put where it belongs."""
    for key in declared_keys():
        for rows in every(response_rows(key)):
            assert rows.bare or rows.name or rows.topic_id, (key, rows.whole_path)
