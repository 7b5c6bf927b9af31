"""CreateTopics (19)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping

from mockbroker.core.cluster import Cluster
from mockbroker.core.configs.views import ConfigEntry, created_topic_entries
from mockbroker.core.errors import ApiError
from mockbroker.core.replication.topic_plans import (
    EXCESSIVE_BATCH,
    MAX_RECORDS_PER_USER_OP,
    plan_topic,
)
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import (
    AuthHelper,
    by_handler,
    on_cluster,
    on_topic,
    requires,
    split,
)
from mockbroker.handlers.base import EncodedResponse, Parked, RequestContext, api
from mockbroker.handlers.encoded_rows import encode_in_slices
from mockbroker.handlers.slices import in_slices
from mockbroker.handlers.throttling import MutationQuota
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.codec import response_codec
from mockbroker_protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

STRICT_QUOTA_SINCE = 6
TOPICS_PER_SLICE = 200


@api(
    ApiKey.CREATE_TOPICS,
    versions=(2, 7),
    authorize=by_handler(
        requires(on_cluster(AclOperation.CREATE), on_topic(AclOperation.CREATE)),
        requires(
            on_topic(AclOperation.DESCRIBE_CONFIGS),
            about="each, for its configs",
            otherwise="`TOPIC_AUTHORIZATION_FAILED` in place of the configs",
        ),
    ),
    forwarded=True,
)
def create_topics(
    ctx: RequestContext, request: CreateTopicsRequest
) -> CreateTopicsResponse | EncodedResponse | Parked[CreateTopicsResponse | EncodedResponse]:
    """Create each topic, or answer its error; the response has the configs in force."""
    return in_slices(ctx, request, _create_and_encode(ctx, request), changes=True)


def create_for_broker(
    ctx: RequestContext, request: CreateTopicsRequest
) -> CreateTopicsResponse | Parked[CreateTopicsResponse]:
    """The same for the broker itself, which reads the response."""
    return in_slices(ctx, request, _create_all(ctx, request), changes=True)


def _create_and_encode(
    ctx: RequestContext, request: CreateTopicsRequest
) -> Generator[None, None, CreateTopicsResponse | EncodedResponse]:
    response = yield from _create_all(ctx, request)
    if len(response.topics) <= TOPICS_PER_SLICE:
        return response
    codec = response_codec(ApiKey.CREATE_TOPICS, ctx.api_version)
    return (yield from encode_in_slices(codec, response, "topics", TOPICS_PER_SLICE))


def _create_all(
    ctx: RequestContext, request: CreateTopicsRequest
) -> Generator[None, None, CreateTopicsResponse]:
    cluster = ctx.cluster
    names = Counter(topic.name for topic in request.topics)
    duplicates = {name for name, count in names.items() if count > 1}
    auth = AuthHelper(ctx)
    any_name = auth.cluster(AclOperation.CREATE)
    wanted, denied = split(
        (topic for topic in request.topics if topic.name not in duplicates),
        lambda topic: any_name or auth.topic(AclOperation.CREATE, topic.name),
    )
    quota = MutationQuota(ctx, STRICT_QUOTA_SINCE)
    whole = _refuse_whole(cluster, request.timeout_ms, wanted)
    if whole is not None:
        results = [_result(topic.name, whole) for topic in wanted]
    else:
        describe = _Descriptions(cluster)
        results = []
        for start in range(0, len(wanted), TOPICS_PER_SLICE):
            if start:
                yield
            with cluster.states.one_event():
                results += [
                    _create(auth, topic, quota, describe, validate_only=request.validate_only)
                    for topic in wanted[start : start + TOPICS_PER_SLICE]
                ]
    results += [
        _result(name, ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name."))
        for name in names
        if name in duplicates
    ]
    not_authorized = ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
    results += [_result(topic.name, not_authorized) for topic in denied]
    return CreateTopicsResponse(throttle_time_ms=quota.wait_ms, topics=results)


def _refuse_whole(
    cluster: Cluster, timeout_ms: int, topics: list[CreatableTopic]
) -> ApiError | None:
    """The error that all topics share, if any."""
    if timeout_ms <= 0:  # the controller handles it after its deadline
        return ApiError(ErrorCode.REQUEST_TIMED_OUT)
    default = cluster.config_int("num.partitions")
    counts = [
        len(topic.assignments) or (default if topic.num_partitions == -1 else topic.num_partitions)
        for topic in topics
    ]
    partitions = sum(count for count in counts if count > 0)
    if partitions > MAX_RECORDS_PER_USER_OP:
        return ApiError(
            ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
        )
    if (
        topics
        and partitions + sum(1 + len(topic.configs) for topic in topics) > MAX_RECORDS_PER_USER_OP
    ):
        return ApiError(ErrorCode.POLICY_VIOLATION, EXCESSIVE_BATCH)
    return None


def _create(
    auth: AuthHelper,
    topic: CreatableTopic,
    quota: MutationQuota,
    describe: _Descriptions,
    *,
    validate_only: bool,
) -> CreatableTopicResult:
    cluster = auth.ctx.cluster
    configs = {config.name: config.value for config in topic.configs}
    try:
        plans = plan_topic(
            cluster.replication_control,
            topic.name,
            topic.num_partitions,
            topic.replication_factor,
            assignments=[(a.partition_index, a.broker_ids) for a in topic.assignments],
            configs=configs,
        )
        quota.draw(len(plans))
    except ApiError as error:
        return _result(topic.name, error)
    overrides = {name: value for name, value in configs.items() if value is not None}
    if validate_only:
        # Kafka's response has an id here too, of no topic.
        topic_id = cluster.runtime.ids.uuid()
    else:
        topic_id = cluster.topic_control.add(topic.name, plans, overrides).topic_id
    if not auth.topic(AclOperation.DESCRIBE_CONFIGS, topic.name):
        return CreatableTopicResult(
            name=topic.name,
            topic_id=topic_id,
            error_message=None,
            topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        )
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=len(plans),
        replication_factor=len(plans[0].replicas),
        configs=describe(overrides),
    )


class _Descriptions:
    """The configs in force of the topics of one request; those with equal overrides share them."""

    __slots__ = ("_cluster", "_known")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[frozenset[tuple[str, str]], list[ConfigEntry]] = {}

    def __call__(self, overrides: Mapping[str, str]) -> list[CreatableTopicConfigs]:
        key = frozenset(overrides.items())
        entries = self._known.get(key)
        if entries is None:
            entries = self._known[key] = list(created_topic_entries(self._cluster, overrides))
        return [
            CreatableTopicConfigs(
                name=entry.name,
                value=entry.value,
                read_only=entry.read_only,
                config_source=entry.source,
                is_sensitive=entry.sensitive,
            )
            for entry in entries
        ]


def _result(name: str, error: ApiError) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=error.error, error_message=error.message)
