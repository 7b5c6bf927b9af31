"""DeleteTopics (20): by name, or by id from version 6 on (KIP-516)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping

from mockbroker.core.cluster import Cluster
from mockbroker.core.errors import ApiError
from mockbroker.core.metadata.topic import Topic
from mockbroker.core.quotas.throttling import ThrottledError
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import AuthHelper, by_handler, on_cluster, on_topic, requires
from mockbroker.handlers.base import Parked, RequestContext, api
from mockbroker.handlers.slices import PARTITIONS_PER_SLICE, in_slices
from mockbroker.handlers.throttling import MutationQuota
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from mockbroker_protocol.types import ZERO_UUID

DISABLED_SINCE = 3
STRICT_QUOTA_SINCE = 5
PARTITIONS_PER_TOPIC = 20  # a topic costs as much as so many of its partitions


@api(
    ApiKey.DELETE_TOPICS,
    versions=(1, 6),
    authorize=by_handler(
        requires(
            on_cluster(AclOperation.DELETE),
            on_topic(AclOperation.DELETE),
        ),
        requires(
            on_cluster(AclOperation.DELETE),
            on_topic(AclOperation.DESCRIBE),
            otherwise="the same, whether the topic exists or not",
        ),
    ),
    forwarded=True,
)
def delete_topics(
    ctx: RequestContext, request: DeleteTopicsRequest
) -> DeleteTopicsResponse | Parked[DeleteTopicsResponse]:
    """Delete each topic, or answer its error."""
    cluster = ctx.cluster
    if not cluster.config("delete.topic.enable"):
        if ctx.api_version < DISABLED_SINCE:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Topic deletion is disabled.")
        disabled = ErrorCode.TOPIC_DELETION_DISABLED
        raise ApiError(disabled, disabled.message)
    if request.timeout_ms <= 0:  # the controller handles it after its deadline
        raise ApiError(ErrorCode.REQUEST_TIMED_OUT)
    wanted = [DeleteTopicState(name=name) for name in request.topic_names] + request.topics
    names = Counter(
        each.name for each in wanted if each.name is not None and each.topic_id == ZERO_UUID
    )
    ids = Counter(each.topic_id for each in wanted if each.name is None)
    responses = [
        _invalid(each, "You may not specify both topic name and topic id.")
        for each in wanted
        if each.name is not None and each.topic_id != ZERO_UUID
    ]
    responses += [
        _invalid(DeleteTopicState(), "Neither topic name nor id were specified.")
        for _ in range(ids.pop(ZERO_UUID, 0))
    ]
    doomed: dict[str, bytes] = {}
    denied: list[DeletableTopicResult] = []
    responses += _check(AuthHelper(ctx), names, ids, doomed, denied)
    quota = MutationQuota(ctx, STRICT_QUOTA_SINCE)

    def delete_all() -> Generator[None, None, DeleteTopicsResponse]:
        deleted = yield from _delete(cluster, doomed, quota)
        rows = [*responses, *deleted, *denied]
        return DeleteTopicsResponse(throttle_time_ms=quota.wait_ms, responses=rows)

    return in_slices(ctx, request, delete_all(), changes=True)


def _check(
    auth: AuthHelper,
    names: Counter[str],
    ids: Counter[bytes],
    doomed: dict[str, bytes],
    denied: list[DeletableTopicResult],
) -> Iterator[DeletableTopicResult]:
    """Find the topics that are named once, by name or by id, and may be deleted."""
    cluster = auth.ctx.cluster
    may_delete_all = auth.cluster(AclOperation.DELETE)
    for topic_id, count in ids.items():
        topic = cluster.topics_by_id.get(topic_id)
        if count > 1:
            yield _invalid(DeleteTopicState(topic_id=topic_id), "Duplicate topic id.")
        elif topic is None:
            yield _result(DeleteTopicState(topic_id=topic_id), ErrorCode.UNKNOWN_TOPIC_ID)
        elif may_delete_all or auth.topic(AclOperation.DELETE, topic.name):
            doomed[topic.name] = topic_id
        else:
            # The name of a topic is for clients that may describe it.
            known = auth.topic(AclOperation.DESCRIBE, topic.name)
            denied.append(_denied(topic.name if known else None, topic_id))
    for name, count in names.items():
        state = DeleteTopicState(name=name)
        topic = cluster.topics.get(name)
        if count > 1:
            yield _invalid(state, "Duplicate topic name.")
        elif not (may_delete_all or auth.topic(AclOperation.DESCRIBE, name)):
            denied.append(_denied(name))  # for existing and missing topics
        elif topic is None:
            yield _result(state, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        elif not (may_delete_all or auth.topic(AclOperation.DELETE, name)):
            denied.append(_denied(name))
        elif topic.topic_id in ids:
            doomed.pop(name, None)
            state.topic_id = topic.topic_id
            yield _invalid(
                state, "The provided topic name maps to an ID that was already supplied."
            )
        else:
            doomed[name] = topic.topic_id


def _delete(
    cluster: Cluster, doomed: Mapping[str, bytes], quota: MutationQuota
) -> Generator[None, None, list[DeletableTopicResult]]:
    """Delete topics, very many in slices."""
    results: list[DeletableTopicResult] = []
    for number, names in enumerate(list(_slices(cluster, doomed))):
        if number:
            yield
        topics: list[Topic] = []
        results += [_take(cluster, name, doomed[name], quota, topics) for name in names]
        with cluster.states.one_event():
            cluster.delete_topics(topics)
    return results


def _slices(cluster: Cluster, names: Iterable[str]) -> Iterator[list[str]]:
    some: list[str] = []
    work = 0
    for name in names:
        some.append(name)
        work += PARTITIONS_PER_TOPIC + len(cluster.topics[name].partitions)
        if work >= PARTITIONS_PER_SLICE:
            yield some
            some, work = [], 0
    if some:
        yield some


def _take(
    cluster: Cluster, name: str, topic_id: bytes, quota: MutationQuota, topics: list[Topic]
) -> DeletableTopicResult:
    """The result for a topic, which joins `topics` if it is still there and within the quota."""
    topic = cluster.topics.get(name)
    if topic is None or topic.topic_id != topic_id:  # deleted between two slices
        state = DeleteTopicState(name, topic_id)
        return _result(state, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    try:
        quota.draw(len(topic.partitions))
    except ThrottledError as throttled:
        return DeletableTopicResult(name, topic_id, throttled.error, throttled.message)
    topics.append(topic)
    return DeletableTopicResult(name, topic_id, error_message=None)


def _result(topic: DeleteTopicState, error: ErrorCode, message: str = "") -> DeletableTopicResult:
    """A result with an error; its message is the error's sentence if none is given."""
    return DeletableTopicResult(topic.name, topic.topic_id, error, message or error.message)


def _invalid(topic: DeleteTopicState, message: str) -> DeletableTopicResult:
    return _result(topic, ErrorCode.INVALID_REQUEST, message)


def _denied(name: str | None, topic_id: bytes = ZERO_UUID) -> DeletableTopicResult:
    return _result(DeleteTopicState(name, topic_id), ErrorCode.TOPIC_AUTHORIZATION_FAILED)
