"""What clients are answered where a rule has a say: refusals, errors after the fact, edits.

A refusal of some partitions leaves the others to the handler. Where the request changes something,
it is split: the handler sees what is left, and the errors are merged into its answer. Where it only
asks, the handler sees all of it and the errors replace what it said.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any

import msgspec

from mockbroker.core.faults.effects import answers, delivery, lies, records
from mockbroker.core.faults.layouts import request_layout, response_layout
from mockbroker.core.faults.partial import Selection, Target, fresh, merge, part, put_error
from mockbroker.core.faults.rules import api_key
from mockbroker.core.ids import ZERO_UUID
from mockbroker.handlers.base import Outcome, RequestContext
from mockbroker.handlers.error_responses import FIXED, error_response
from mockbroker_protocol import ApiKey, ErrorCode

Handle = Callable[[Any], Awaitable[Any]]
_Refusal = answers.Error | answers.RecordErrors

# APIs that change nothing, so that their answers may be made first and spoilt then.
_READS = frozenset(
    (
        ApiKey.FETCH,
        ApiKey.LIST_OFFSETS,
        ApiKey.METADATA,
        ApiKey.OFFSET_FETCH,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.DESCRIBE_PRODUCERS,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    )
)
_TOPIC_IDS_SINCE = 13  # of Fetch
_ROWS_UP_TO = 12  # the last version of a Fetch whose errors are told partition by partition

_EDITS = (answers.Rewrite, delivery.Throttle, lies.LieApiVersions, lies.LieMetadata)
_FETCH_EDITS = (records.CorruptBatch, records.DuplicateRecords, records.HideRecords)


@cache
def tells_partitions(key: int) -> bool:
    """Whether an API's answers have errors for topics or partitions."""
    topics = response_layout(key).topics
    return any(array.error or array.partition_error for array in topics)


# -- refusals --------------------------------------------------------------------------------------


async def refused(
    ctx: RequestContext, request: Any, selection: Selection, effect: _Refusal, handle: Handle
) -> Any:
    """The answer to a request that a rule refuses, all of it or some partitions."""
    key = ctx.header.api_key
    if not selection.limited or not tells_partitions(key):
        return _error_for(ctx, request, effect)
    if key in _READS:
        return await _spoilt(ctx, request, selection, effect, handle)
    layout = request_layout(key)
    chosen = part(request, layout, selection, selected=True)
    left = part(request, layout, selection, selected=False)
    if left is None:
        return _error_for(ctx, request, effect)
    response = await handle(left)
    if isinstance(response, Outcome):
        return response
    errors = _error_for(ctx, chosen, effect)
    if isinstance(errors, Outcome):
        return errors
    return merge(response, errors, response_layout(key))


def _error_for(ctx: RequestContext, chosen: Any, effect: _Refusal) -> Any:
    """The errors of the chosen part of a request."""
    error = answers.error_code(effect.code)
    response = error_for_all(ctx, chosen, error, effect.message)
    if isinstance(effect, answers.RecordErrors) and not isinstance(response, Outcome):
        layout = response_layout(ctx.header.api_key)
        return answers.with_record_errors(response, layout, Selection(None), effect)
    return response


def error_for_all(ctx: RequestContext, request: Any, error: ErrorCode, message: str | None) -> Any:
    """The answer that says `error` of everything a request asked for."""
    return error_response(
        ApiKey(ctx.header.api_key), ctx.api_version, request, error, message=message
    )


async def _spoilt(
    ctx: RequestContext, request: Any, selection: Selection, effect: _Refusal, handle: Handle
) -> Any:
    if ctx.header.api_key == ApiKey.FETCH:  # an error does not wait for records
        request = msgspec.structs.replace(request, max_wait_ms=0, min_bytes=0)
    response = await handle(request)
    if isinstance(response, Outcome):
        return response
    response = decoded(ctx, response)
    error = answers.error_code(effect.code)
    return _with_errors(ctx, response, selection, error, effect.message)


def _with_errors(
    ctx: RequestContext,
    response: Any,
    selection: Selection,
    error: ErrorCode,
    message: str | None,
) -> Any:
    key = ctx.header.api_key
    layout = response_layout(key)
    if key != ApiKey.FETCH:
        return put_error(response, layout, selection, int(error), FIXED, message or "")
    # An incremental Fetch answers only what has news: the errors are news.
    wanted = _fetch_of(selection.targets, by_id=ctx.api_version >= _TOPIC_IDS_SINCE)
    errors = error_response(ApiKey.FETCH, _ROWS_UP_TO, wanted, error)
    return merge(response, errors, layout)


def _fetch_of(targets: list[Target], *, by_id: bool) -> Any:
    from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic

    topics: dict[object, FetchTopic] = {}
    for target in targets:
        topic = FetchTopic(
            topic="" if by_id else target.topic,
            topic_id=target.topic_id if by_id else ZERO_UUID,
            partitions=[],
        )
        topic = topics.setdefault(target.topic_id if by_id else target.topic, topic)
        topic.partitions.append(FetchPartition(partition=target.partition))
    return FetchRequest(topics=list(topics.values()))


def applied_error(
    ctx: RequestContext,
    request: Any,
    response: Any,
    selection: Selection,
    effect: answers.ErrorAfter,
) -> Any:
    """The error that follows on work which was done all the same."""
    if not selection.limited or not tells_partitions(ctx.header.api_key):
        return error_for_all(ctx, request, effect.error, effect.message)
    return _with_errors(ctx, response, selection, effect.error, effect.message)


def decoded(ctx: RequestContext, response: Any) -> Any:
    """An answer as a struct, whoever encoded it already."""
    parts = getattr(response, "parts", None)
    if parts is None:
        return response
    from mockbroker_protocol.codec import response_codec

    codec = response_codec(ApiKey(ctx.header.api_key), ctx.api_version)
    return codec.decode(memoryview(b"".join(parts)), 0)[0]


# -- edits -----------------------------------------------------------------------------------------


def is_edit(effect: object, key: int) -> bool:
    """Whether an effect changes the decoded answer of an API."""
    return isinstance(effect, _EDITS) or (key == ApiKey.FETCH and isinstance(effect, _FETCH_EDITS))


def edited_answer(ctx: RequestContext, response: Any, selection: Selection, effect: object) -> Any:
    """A copy of an answer that is changed as the effect says."""
    layout = response_layout(ctx.header.api_key)
    match effect:
        case answers.Rewrite() if effect.answer:
            return answers.rewritten(response, layout, selection, effect.answer)
        case delivery.Throttle() if hasattr(response, "throttle_time_ms"):
            changed = fresh(response)
            changed.throttle_time_ms = effect.by
            return changed
        case lies.LieMetadata():
            return lies.metadata(response, layout, selection, effect)
        case lies.LieApiVersions():
            hidden = [int(api_key(api, "hide")) for api in effect.hide]
            caps = {int(api_key(api, "max")): cap for api, cap in effect.max.items()}
            return lies.api_versions(response, effect, hidden, caps)
        case records.CorruptBatch():
            change = lambda data: records.corrupted(data, effect)  # noqa: E731
        case records.DuplicateRecords():
            change = lambda data: records.duplicated(data, effect)  # noqa: E731
        case records.HideRecords():
            change = lambda data: records.hidden(data, effect)  # noqa: E731
        case _:
            return response
    return records.with_records(response, layout, selection, change)
