"""DeleteTopics (20): by name, or by id from version 6 on (KIP-516)."""

from __future__ import annotations

from collections.abc import Iterator

from mockbroker.core.cluster import Cluster
from mockbroker.core.quotas.throttling import ThrottledError
from mockbroker.handlers.base import RequestContext, api
from mockbroker.handlers.throttling import MutationQuota
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from mockbroker_protocol.types import ZERO_UUID

STRICT_QUOTA_SINCE = 5


@api(ApiKey.DELETE_TOPICS, versions=(1, 6))
def delete_topics(ctx: RequestContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    """Delete each topic or say why not."""
    cluster = ctx.cluster
    wanted = [DeleteTopicState(name=name) for name in request.topic_names] + request.topics
    if not cluster.config("delete.topic.enable"):
        older = ctx.api_version < 3
        error = ErrorCode.INVALID_REQUEST if older else ErrorCode.TOPIC_DELETION_DISABLED
        message = "The brokers delete no topics." if older else error.sentence
        return DeleteTopicsResponse(responses=[_result(t, error, message) for t in wanted])
    if request.timeout_ms <= 0:  # past its deadline before the controller comes to it
        error = ErrorCode.REQUEST_TIMED_OUT
        return DeleteTopicsResponse(responses=[_result(t, error, None) for t in wanted])
    quota = MutationQuota(ctx, STRICT_QUOTA_SINCE)
    responses = list(_refused(wanted))
    with cluster.states.together():
        responses += _delete(cluster, wanted, quota)
    return DeleteTopicsResponse(throttle_time_ms=quota.wait_ms, responses=responses)


def _result(topic: DeleteTopicState, error: ErrorCode, message: str | None) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=topic.name, topic_id=topic.topic_id, error_code=error, error_message=message
    )


def _refused(wanted: list[DeleteTopicState]) -> Iterator[DeletableTopicResult]:
    """Results for entries that are malformed, and one for each name or id that stands twice."""
    invalid = ErrorCode.INVALID_REQUEST
    for topic in wanted:
        if topic.name is None and topic.topic_id == ZERO_UUID:
            yield _result(topic, invalid, "A topic needs a name or an id.")
        elif topic.name is not None and topic.topic_id != ZERO_UUID:
            yield _result(topic, invalid, "A topic has both a name and an id here.")
    for name in dict.fromkeys(topic.name for topic in _by_name(wanted)):
        if sum(topic.name == name for topic in _by_name(wanted)) > 1:
            yield _result(
                DeleteTopicState(name=name), invalid, "The name stands twice in the request."
            )
    for topic_id in dict.fromkeys(topic.topic_id for topic in _by_id(wanted)):
        if sum(topic.topic_id == topic_id for topic in _by_id(wanted)) > 1:
            yield _result(
                DeleteTopicState(topic_id=topic_id), invalid, "The id stands twice in the request."
            )


def _by_name(wanted: list[DeleteTopicState]) -> list[DeleteTopicState]:
    return [t for t in wanted if t.name is not None and t.topic_id == ZERO_UUID]


def _by_id(wanted: list[DeleteTopicState]) -> list[DeleteTopicState]:
    return [t for t in wanted if t.name is None and t.topic_id != ZERO_UUID]


def _delete(
    cluster: Cluster, wanted: list[DeleteTopicState], quota: MutationQuota
) -> Iterator[DeletableTopicResult]:
    """Delete what is named once, by name or by id, and tell how that went."""
    ids = [topic.topic_id for topic in _by_id(wanted)]
    names = [topic.name or "" for topic in _by_name(wanted)]
    doomed: dict[str, bytes] = {}
    for topic_id in ids:
        if ids.count(topic_id) > 1:
            continue
        topic = cluster.topics_by_id.get(topic_id)
        if topic is None:
            error = ErrorCode.UNKNOWN_TOPIC_ID
            yield _result(DeleteTopicState(topic_id=topic_id), error, error.sentence)
        else:
            doomed[topic.name] = topic_id
    for name in names:
        if names.count(name) > 1:
            continue
        topic = cluster.topics.get(name)
        if topic is None:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            yield _result(DeleteTopicState(name=name), error, error.sentence)
        elif topic.topic_id in ids:
            doomed.pop(name, None)
            yield _result(
                DeleteTopicState(name=name, topic_id=topic.topic_id),
                ErrorCode.INVALID_REQUEST,
                "The topic stands in the request by its id as well.",
            )
        else:
            doomed[name] = topic.topic_id
    for name, topic_id in doomed.items():
        state = DeleteTopicState(name=name, topic_id=topic_id)
        try:
            quota.draw(len(cluster.topics[name].partitions))
        except ThrottledError as throttled:
            yield _result(state, throttled.error, throttled.message)
            continue
        cluster.delete_topic(name)
        yield _result(state, ErrorCode.NONE, None)
