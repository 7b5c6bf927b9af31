"""CreatePartitions (37): more partitions for existing topics; the count is the new total."""

from __future__ import annotations

from mockbroker.core.cluster import Cluster
from mockbroker.core.errors import ApiError
from mockbroker.core.replication.control import plan_more_partitions
from mockbroker.handlers.base import RequestContext, api
from mockbroker.handlers.create_topics import RECORDS_MAX
from mockbroker.handlers.throttling import MutationQuota
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

STRICT_QUOTA_SINCE = 3


@api(ApiKey.CREATE_PARTITIONS, versions=(0, 3))
def create_partitions(
    ctx: RequestContext, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    """Add partitions to each topic or say why not."""
    names = [topic.name for topic in request.topics]
    results = [
        _result(name, ApiError(ErrorCode.INVALID_REQUEST, "The topic stands twice in the request."))
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
    quota = MutationQuota(ctx, STRICT_QUOTA_SINCE)
    for topic in request.topics:
        if names.count(topic.name) > 1:
            continue
        try:
            if request.timeout_ms <= 0:  # past its deadline before the controller comes to it
                raise ApiError(ErrorCode.REQUEST_TIMED_OUT)
            _grow(ctx.cluster, topic, quota, validate_only=request.validate_only)
        except ApiError as error:
            results.append(_result(topic.name, error))
        else:
            results.append(CreatePartitionsTopicResult(name=topic.name))
    return CreatePartitionsResponse(throttle_time_ms=quota.wait_ms, results=results)


def _grow(
    cluster: Cluster, wanted: CreatePartitionsTopic, quota: MutationQuota, *, validate_only: bool
) -> None:
    topic = cluster.topics.get(wanted.name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assignments = None if wanted.assignments is None else [a.broker_ids for a in wanted.assignments]
    if wanted.count - len(topic.partitions) > RECORDS_MAX:
        # More records than the controller's batch holds: it fails without words.
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    more = wanted.count - len(topic.partitions)
    if more > 0 and (assignments is None or len(assignments) == more):
        quota.draw(more)
    if validate_only:
        plan_more_partitions(cluster, topic, wanted.count, assignments)
    else:
        cluster.add_partitions(topic, wanted.count, assignments)


def _result(name: str, error: ApiError) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(
        name=name, error_code=error.error, error_message=error.message
    )
