"""CreatePartitions (37): add partitions to topics; the count is the new total."""

from __future__ import annotations

from collections import Counter

from mockbroker.core.cluster import Cluster
from mockbroker.core.errors import ApiError
from mockbroker.core.replication.topic_plans import MAX_RECORDS_PER_USER_OP, plan_more_partitions
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import AuthHelper, by_handler, on_topic, requires, split
from mockbroker.handlers.base import RequestContext, api
from mockbroker.handlers.throttling import MutationQuota
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

STRICT_QUOTA_SINCE = 3


@api(
    ApiKey.CREATE_PARTITIONS,
    versions=(0, 3),
    authorize=by_handler(requires(on_topic(AclOperation.ALTER))),
    forwarded=True,
)
def create_partitions(
    ctx: RequestContext, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    """Add partitions to each topic, or answer its error."""
    auth = AuthHelper(ctx)
    names = Counter(topic.name for topic in request.topics)
    results = [
        _result(name, ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name."))
        for name, count in names.items()
        if count > 1
    ]
    granted, denied = split(
        (topic for topic in request.topics if names[topic.name] == 1),
        lambda topic: auth.topic(AclOperation.ALTER, topic.name),
    )
    quota = MutationQuota(ctx, STRICT_QUOTA_SINCE)
    for topic in granted:
        try:
            if request.timeout_ms <= 0:  # the controller handles it after its deadline
                raise ApiError(ErrorCode.REQUEST_TIMED_OUT)
            _grow(ctx.cluster, topic, quota, validate_only=request.validate_only)
        except ApiError as error:
            results.append(_result(topic.name, error))
        else:
            results.append(CreatePartitionsTopicResult(name=topic.name))
    results += [
        _result(topic.name, ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)) for topic in denied
    ]
    return CreatePartitionsResponse(throttle_time_ms=quota.wait_ms, results=results)


def _grow(
    cluster: Cluster, wanted: CreatePartitionsTopic, quota: MutationQuota, *, validate_only: bool
) -> None:
    topic = cluster.topics.get(wanted.name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assignments = None if wanted.assignments is None else [a.broker_ids for a in wanted.assignments]
    more = wanted.count - len(topic.partitions)
    if more > MAX_RECORDS_PER_USER_OP:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)  # a batch too large, without a message
    if more > 0 and (assignments is None or len(assignments) == more):
        quota.draw(more)
    if validate_only:
        plan_more_partitions(cluster.replication_control, topic, wanted.count, assignments)
    else:
        cluster.topic_control.add_partitions(topic, wanted.count, assignments)


def _result(name: str, error: ApiError) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(
        name=name, error_code=error.error, error_message=error.message
    )
