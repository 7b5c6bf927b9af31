"""The answers that rules make: refusals, errors after the request was applied, edits.

A rule may refuse some groups, ids or partitions of a request. If the request changes something, the
handler gets the rest, and the errors are merged into its response. If it only reads, the handler
gets all of it, and the errors replace parts of its response.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from typing import Any, get_args, get_type_hints

import msgspec

from mockbroker.core.faults.effects import answers, delivery, falsify, records
from mockbroker.core.faults.partial import Selection, fresh, merge, part, put_error
from mockbroker.core.faults.paths import arrays_at
from mockbroker.core.faults.rows import RowArray, every, request_rows, response_rows
from mockbroker.core.faults.rules import api_key
from mockbroker.core.faults.share_facts import ACKNOWLEDGING
from mockbroker.core.ids import ZERO_UUID
from mockbroker.handlers.base import Outcome
from mockbroker.handlers.error_responses import error_response, refusal_of
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.entities import Target
from mockbroker_protocol.headers import RequestHeader

Handle = Callable[[Any], Awaitable[Any]]
_Refusal = answers.Error | answers.RecordErrors

# APIs that change nothing: their handler may run before the errors are put in.
_READS = frozenset(
    (
        ApiKey.FETCH,
        ApiKey.LIST_OFFSETS,
        ApiKey.METADATA,
        ApiKey.OFFSET_FETCH,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.DESCRIBE_PRODUCERS,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    )
)
_FETCHES = frozenset((ApiKey.FETCH, ApiKey.SHARE_FETCH))
_TOPIC_IDS_SINCE = 13  # of Fetch

_EDITS = (answers.Rewrite, delivery.Throttle, falsify.FalsifyApiVersions, falsify.FalsifyMetadata)
_FETCH_EDITS = (records.CorruptBatch, records.DuplicateRecords, records.HideRecords)


@cache
def has_partial_errors(key: int) -> bool:
    """Whether an API's response has errors of single groups, ids, topics or partitions."""
    return any(rows.error for rows in every(response_rows(key)))


# -- refusals --------------------------------------------------------------------------------------


async def refused(
    header: RequestHeader, request: Any, selection: Selection, effect: _Refusal, handle: Handle
) -> Any:
    """The answer to a request that a rule refuses, all of it or some parts."""
    key = header.api_key
    if not selection.limited or not has_partial_errors(key):
        return _error_for(header, request, effect)
    if key in ACKNOWLEDGING:
        from mockbroker.handlers.faulty_share_answers import without_acknowledgements

        response = await handle(without_acknowledgements(key, request, selection))
        if isinstance(response, Outcome):
            return response
        error = answers.error_code(effect.code)
        return _with_errors(header, decoded(header, response), selection, error, effect.message)
    if key in _READS:
        return await _read_then_errors(header, request, selection, effect, handle)
    layout = request_rows(key)
    chosen = part(request, layout, selection, selected=True)
    left = part(request, layout, selection, selected=False)
    if chosen is None:  # one group and one topic, but of different groups
        return await handle(request)
    if left is None:
        return _error_for(header, request, effect)
    response = await handle(left)
    if isinstance(response, Outcome):
        return response
    errors = _error_for(header, chosen, effect)
    if isinstance(errors, Outcome):
        return errors
    add_error_rows(errors, chosen, key, selection, answers.error_code(effect.code), effect.message)
    return merge(response, errors, response_rows(key))


def add_error_rows(
    errors: Any,
    chosen: Any,
    key: int,
    selection: Selection,
    error: ErrorCode,
    message: str | None,
) -> None:
    """Add a row with the error for each row of the chosen part of a request.

    Kafka's error response of some APIs, such as OffsetDelete, has one error and no rows.
    """
    ids = {target.topic: target.topic_id for target in selection.targets}

    def made(kind: type, rows: RowArray, asked: RowArray, row: Any) -> Any:
        new: Any = kind()
        if rows.name and asked.name:
            setattr(new, rows.name, asked.name_of(row))
        if rows.topic_id:
            known = ids.get(asked.name_of(row) or "", ZERO_UUID)
            setattr(new, rows.topic_id, asked.id_of(row) if asked.topic_id else known)
        if rows.error:
            setattr(new, rows.error, int(error))
            if message and hasattr(new, "error_message"):
                new.error_message = message
        else:
            fill(new, rows.inner, row, asked.inner)
        return new

    def fill(into: Any, layout: Sequence[RowArray], asking: Any, asked: Sequence[RowArray]) -> None:
        for rows in layout:
            like = next((each for each in asked if each.kind is rows.kind), None)
            field, *deeper = rows.path
            if like is None or like.by or rows.bare or like.bare or deeper:
                continue
            if getattr(into, field):
                continue  # Kafka's response has them
            kind = _element_of(type(into), field)
            found = [row for each in arrays_at(asking, like.path) for row in each]
            setattr(into, field, [made(kind, rows, like, row) for row in found])

    fill(errors, response_rows(key), chosen, request_rows(key))


def _element_of(struct: type, field: str) -> type:
    """The class of the elements of an array of structs."""
    element: type = get_args(get_type_hints(struct)[field])[0]
    return element


def _error_for(header: RequestHeader, chosen: Any, effect: _Refusal) -> Any:
    """The errors of the chosen part of a request."""
    error = answers.error_code(effect.code)
    response = error_for_all(header, chosen, error, effect.message)
    if isinstance(effect, answers.RecordErrors) and not isinstance(response, Outcome):
        layout = response_rows(header.api_key)
        return answers.with_record_errors(response, layout, Selection(None), effect)
    return response


def error_for_all(
    header: RequestHeader, request: Any, error: ErrorCode, message: str | None
) -> Any:
    """The API's error response."""
    key = ApiKey(header.api_key)
    return error_response(key, header.api_version, request, error, message=message)


async def _read_then_errors(
    header: RequestHeader, request: Any, selection: Selection, effect: _Refusal, handle: Handle
) -> Any:
    if header.api_key == ApiKey.FETCH:  # an error does not wait for records
        request = msgspec.structs.replace(request, max_wait_ms=0, min_bytes=0)
    response = await handle(request)
    if isinstance(response, Outcome):
        return response
    response = decoded(header, response)
    error = answers.error_code(effect.code)
    return _with_errors(header, response, selection, error, effect.message)


def _with_errors(
    header: RequestHeader,
    response: Any,
    selection: Selection,
    error: ErrorCode,
    message: str | None,
) -> Any:
    key = header.api_key
    layout = response_rows(key)
    if key in ACKNOWLEDGING:
        from mockbroker.handlers.faulty_share_answers import with_errors

        return with_errors(key, response, selection, error, message)
    if key != ApiKey.FETCH:
        return put_error(
            response, layout, selection, int(error), dict(refusal_of(key).fixed), message or ""
        )
    # An incremental Fetch has changed partitions only; those with errors are added.
    by_id = header.api_version >= _TOPIC_IDS_SINCE
    return merge(response, _fetch_errors(selection.targets, error, by_id=by_id), layout)


def _fetch_errors(targets: list[Target], error: ErrorCode, *, by_id: bool) -> Any:
    """The response to a Fetch with an error of partitions (FetchResponse.partitionResponse)."""
    from mockbroker_protocol.messages.fetch import (
        FetchableTopicResponse,
        FetchResponse,
        PartitionData,
    )

    topics: dict[object, FetchableTopicResponse] = {}
    for target in targets:
        topic = FetchableTopicResponse(
            topic="" if by_id else target.topic,
            topic_id=target.topic_id if by_id else ZERO_UUID,
            partitions=[],
        )
        topic = topics.setdefault(target.topic_id if by_id else target.topic, topic)
        topic.partitions.append(
            PartitionData(
                partition_index=target.partition,
                error_code=int(error),
                high_watermark=-1,
                records=b"",
            )
        )
    return FetchResponse(responses=list(topics.values()))


def applied_error(
    header: RequestHeader,
    request: Any,
    response: Any,
    selection: Selection,
    effect: answers.ErrorAfter,
) -> Any:
    """The error after the request was applied."""
    if not selection.limited or not has_partial_errors(header.api_key):
        return error_for_all(header, request, effect.error, effect.message)
    return _with_errors(header, response, selection, effect.error, effect.message)


def decoded(header: RequestHeader, response: Any) -> Any:
    """A response as a struct, also if its handler encoded it."""
    parts = getattr(response, "parts", None)
    if parts is None:
        return response
    from mockbroker_protocol.codec import response_codec

    codec = response_codec(ApiKey(header.api_key), header.api_version)
    return codec.decode(memoryview(b"".join(parts)), 0)[0]


# -- edits -----------------------------------------------------------------------------------------


def is_edit(effect: object, key: int) -> bool:
    """Whether an effect edits the response of an API."""
    return isinstance(effect, _EDITS) or (key in _FETCHES and isinstance(effect, _FETCH_EDITS))


def edited_answer(
    header: RequestHeader, response: Any, selection: Selection, effect: object
) -> Any:
    """A copy of a response, edited by an effect."""
    layout = response_rows(header.api_key)
    change: records.Change
    match effect:
        case answers.Rewrite() if effect.answer:
            return answers.rewritten(response, layout, selection, effect.answer)
        case delivery.Throttle() if hasattr(response, "throttle_time_ms"):
            changed = fresh(response)
            changed.throttle_time_ms = effect.by
            return changed
        case falsify.FalsifyMetadata():
            return falsify.metadata(response, layout, selection, effect)
        case falsify.FalsifyApiVersions():
            hidden = [int(api_key(api, "hide")) for api in effect.hide]
            caps = {int(api_key(api, "max")): cap for api, cap in effect.max.items()}
            return falsify.api_versions(response, effect, hidden, caps)
        case records.CorruptBatch():
            change = lambda data: records.corrupted(data, effect)  # noqa: E731
        case records.DuplicateRecords():
            change = lambda data: records.duplicated(data, effect)  # noqa: E731
        case records.HideRecords():
            change = lambda data: records.hidden(data, effect)  # noqa: E731
        case _:
            return response
    return records.with_records(response, layout, selection, change)
