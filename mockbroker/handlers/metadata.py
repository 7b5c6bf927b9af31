"""Metadata (3): brokers, topics, partitions, leaders.

Clients send it when they connect and at each change of a leader; some request all topics every few
seconds. So a topic is encoded once per version and listener, and the bytes are kept with the topic
until it changes. A response is joined from these bytes; a response about all topics is kept whole.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import NamedTuple

from mockbroker.core.configs.differences import AUTO_CREATED_AT_ONCE
from mockbroker.core.errors import ApiError
from mockbroker.core.metadata.image import Endpoint, MetadataImage
from mockbroker.core.metadata.topic import INTERNAL_TOPICS, Topic, why_invalid_name
from mockbroker.core.replication.partition import Partition
from mockbroker.core.security.acls import AclOperation, ResourceType
from mockbroker.core.security.authorized_operations import (
    NOT_ASKED,
    TOPIC_OPERATIONS,
)
from mockbroker.handlers.authorization import AuthHelper, by_handler, on_cluster, on_topic, requires
from mockbroker.handlers.base import EncodedResponse, Parked, RequestContext, api
from mockbroker.handlers.encoded_rows import around, array_count, place_of
from mockbroker.handlers.refusals import ErrorDetails, Refusal
from mockbroker.handlers.slices import at_once, in_slices
from mockbroker.handlers.throttling import MutationQuota
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.codec import response_codec
from mockbroker_protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from mockbroker_protocol.types import ZERO_UUID

TOPIC_IDS_SINCE = 12
# How many topics are created before other requests are handled.
CREATIONS_PER_SLICE = 32
CLUSTER_OPERATIONS_UNTIL = 10  # DescribeCluster has them since
_NONE_OFFLINE: list[int] = []  # shared by all partitions without offline replicas; never changed
_DENIED = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


class TopicEncoding(NamedTuple):
    """The parameters of a topic's bytes, besides the topic."""

    version: int
    listener: str
    operations: bool  # whether the response has topic authorized operations


def _name_all(response: MetadataResponse, request: MetadataRequest, details: ErrorDetails) -> None:  # noqa: ARG001
    """A topic of a request by id has the empty name in Kafka's error response, not null."""
    for topic in response.topics:
        topic.name = topic.name or ""


@api(
    ApiKey.METADATA,
    versions=(0, 13),
    authorize=by_handler(
        requires(on_topic(AclOperation.DESCRIBE), about="each one named"),
        requires(
            on_topic(AclOperation.DESCRIBE), about="when all are asked for", otherwise="left out"
        ),
        requires(
            on_cluster(AclOperation.CREATE),
            on_topic(AclOperation.CREATE),
            about="each one to be created automatically",
        ),
        requires(
            on_cluster(AclOperation.DESCRIBE), about="for its operations", otherwise="no operations"
        ),
    ),
    refusal=Refusal(rows=("topics",), finish=_name_all),
)
def metadata(
    ctx: RequestContext, request: MetadataRequest
) -> EncodedResponse | Parked[EncodedResponse]:
    """Describe the topics of the request, and create missing ones where Kafka would."""
    version, topics = ctx.api_version, request.topics
    encoding = TopicEncoding(version, ctx.listener, request.include_topic_authorized_operations)
    auth = AuthHelper(ctx)
    cluster_operations = NOT_ASKED
    if version <= CLUSTER_OPERATIONS_UNTIL and request.include_cluster_authorized_operations:
        cluster_operations = auth.cluster_operations()
    if topics is None or (version == 0 and not topics):
        return _all_topics(ctx, auth, encoding, cluster_operations)
    _check(topics, version)
    ids = dict.fromkeys(topic.topic_id for topic in topics if topic.topic_id != ZERO_UUID)
    if ids:  # names in the same request are ignored
        return _join(ctx, encoding, cluster_operations, _topics_by_id(auth, encoding, ids))
    names = dict.fromkeys(topic.name or "" for topic in topics)
    create = request.allow_auto_topic_creation

    def by_name() -> Generator[None, None, EncodedResponse]:
        encoded = yield from _topics_by_name(auth, encoding, names, create=create)
        return _join(ctx, encoding, cluster_operations, encoded)

    if len(names) <= CREATIONS_PER_SLICE:
        return at_once(by_name())
    return in_slices(ctx, request, by_name())


def _all_topics(
    ctx: RequestContext, auth: AuthHelper, encoding: TopicEncoding, cluster_operations: int
) -> EncodedResponse:
    image = ctx.image
    if ctx.cluster.authorizer is not None:
        encoded = [
            _existing(auth, topic, encoding)
            for topic in image.topics.values()
            if auth.topic(AclOperation.DESCRIBE, topic.name)
        ]
        return _join(ctx, encoding, cluster_operations, encoded)
    key = ("metadata", encoding, cluster_operations)
    whole = image.memo.get(key)
    if not isinstance(whole, EncodedResponse):
        encoded = [_encoded(image, topic, encoding) for topic in image.topics.values()]
        whole = image.memo[key] = _join(ctx, encoding, cluster_operations, encoded)
    return whole


def _check(topics: list[MetadataRequestTopic], version: int) -> None:
    """Raise ApiError if a topic is named in a form that the version lacks."""
    if version < TOPIC_IDS_SINCE:
        if any(topic.name is None or topic.topic_id != ZERO_UUID for topic in topics):
            raise ApiError(ErrorCode.INVALID_REQUEST)
    elif any(topic.name is None for topic in topics) and all(
        topic.topic_id == ZERO_UUID for topic in topics
    ):
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)  # a broker has a NullPointerException


def _topics_by_id(auth: AuthHelper, encoding: TopicEncoding, ids: Iterable[bytes]) -> list[bytes]:
    """Unknown ids first, unauthorized topics last. Ids are not secret, so these have theirs."""
    unknown, described, denied = [], [], []
    for topic_id in ids:
        topic = auth.ctx.image.topics_by_id.get(topic_id)
        if topic is None:
            unknown.append(_error(encoding, ErrorCode.UNKNOWN_TOPIC_ID, None, topic_id))
        elif auth.topic(AclOperation.DESCRIBE, topic.name):
            described.append(_existing(auth, topic, encoding))
        else:
            denied.append(_error(encoding, _DENIED, None, topic_id))
    return unknown + described + denied


def _topics_by_name(
    auth: AuthHelper, encoding: TopicEncoding, names: Iterable[str], *, create: bool
) -> Generator[None, None, list[bytes]]:
    """Topics that exist, those that do not, those the client may not create or not describe.

    It yields between creations, which take long.
    """
    ctx = auth.ctx
    create = create and ctx.cluster.config("auto.create.topics.enable")
    existing, missing, not_created, denied = [], [], [], []
    creations = 0
    for name in names:
        topic = ctx.image.topics.get(name)
        if create and topic is None:
            creations += 1
            if creations % CREATIONS_PER_SLICE == 0:
                yield
        if not auth.topic(AclOperation.DESCRIBE, name):
            denied.append(_error(encoding, _DENIED, name))
        elif topic is not None:
            existing.append(_existing(auth, topic, encoding))
        elif create and not (
            auth.cluster(AclOperation.CREATE) or auth.topic(AclOperation.CREATE, name)
        ):
            internal = name in INTERNAL_TOPICS
            not_created.append(_error(encoding, _DENIED, name, is_internal=internal))
        elif create and auto_create(ctx, name) and ctx.cluster.config(AUTO_CREATED_AT_ONCE):
            existing.append(_existing(auth, ctx.image.topics[name], encoding))
        else:
            missing.append(_missing(auth, encoding, name))
    return existing + missing + not_created + denied


def _existing(auth: AuthHelper, topic: Topic, encoding: TopicEncoding) -> bytes:
    image = auth.ctx.image
    if not encoding.operations or auth.ctx.cluster.authorizer is None:
        return _encoded(image, topic, encoding)
    described = describe_topic(image, topic, encoding)
    described.topic_authorized_operations = auth.operations(ResourceType.TOPIC, topic.name)
    return _encode_topic(described, encoding.version)


def _missing(auth: AuthHelper, encoding: TopicEncoding, name: str) -> bytes:
    error = missing_topic_error(name)
    kind = ResourceType.TOPIC
    operations = auth.operations(kind, name) if encoding.operations else NOT_ASKED
    internal = name in INTERNAL_TOPICS
    return _error(encoding, error, name, is_internal=internal, operations=operations)


def _error(
    encoding: TopicEncoding,
    error: int,
    name: str | None,
    topic_id: bytes = ZERO_UUID,
    *,
    is_internal: bool = False,
    operations: int = NOT_ASKED,
) -> bytes:
    """A topic without partitions."""
    topic = MetadataResponseTopic(
        error_code=error,
        name=name,
        topic_id=topic_id,
        is_internal=is_internal,
        topic_authorized_operations=operations,
    )
    return _encode_topic(topic, encoding.version)


def missing_topic_error(name: str) -> ErrorCode:
    """The error of a topic that does not exist."""
    if why_invalid_name(name) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.INVALID_TOPIC_EXCEPTION


def auto_create(ctx: RequestContext, name: str) -> bool:
    """Create a topic; whether there is one now.

    Kafka answers before the controller has created the topic, so no error of the creation reaches
    the client, not even that of its quota.
    """
    cluster = ctx.cluster
    if why_invalid_name(name) is not None or not ctx.broker.has_newest_image:
        return False
    try:
        if cluster.quotas.throttling is not None:
            MutationQuota(ctx, strict_since=0).draw(cluster.config_int("num.partitions"))
        cluster.topic_control.auto_create(name)
    except ApiError:
        return False
    return name in ctx.image.topics


# -- encoding --------------------------------------------------------------------------------------


def describe_topic(
    image: MetadataImage, topic: Topic, encoding: TopicEncoding
) -> MetadataResponseTopic:
    """An existing topic, with all operations if the encoding has operations."""
    reachable = image.reachable_brokers(encoding.listener)
    intact = _brokers_without_failed_dirs(image, encoding.listener)
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[
            # By position, and without a loop over the replicas: there may be ten thousand.
            MetadataResponsePartition(
                0, p.index, p.leader_id, p.leader_epoch, p.replicas, p.isr, _NONE_OFFLINE
            )
            if p.leader_id in reachable and intact.issuperset(p.replicas)
            else _describe_partition(image, reachable, p, encoding)
            for p in topic.partitions
        ],
        topic_authorized_operations=TOPIC_OPERATIONS if encoding.operations else NOT_ASKED,
    )


def _brokers_without_failed_dirs(image: MetadataImage, listener: str) -> frozenset[int]:
    """The reachable brokers without a failed log directory: none of their replicas is offline."""
    key = ("brokers without failed directories", listener)
    known = image.memo.get(key)
    if not isinstance(known, frozenset):
        known = image.memo[key] = frozenset(
            node_id
            for node_id in image.reachable_brokers(listener)
            if not image.brokers[node_id].log_dirs.failed
        )
    return known


def _describe_partition(
    image: MetadataImage,
    reachable: dict[int, Endpoint],
    partition: Partition,
    encoding: TopicEncoding,
) -> MetadataResponsePartition:
    """A partition that may have offline replicas or no leader."""
    replicas, isr = partition.replicas, partition.isr
    offline = image.offline_replicas(partition, reachable)
    leader_id = partition.leader_id
    error = 0
    if encoding.version == 0 and offline:
        replicas = [node_id for node_id in replicas if node_id in reachable]
        isr = [node_id for node_id in isr if node_id in reachable]
        error = int(ErrorCode.REPLICA_NOT_AVAILABLE)
    if leader_id not in reachable:
        lacks_listener = leader_id in image.brokers and encoding.version >= 6
        error = ErrorCode.LISTENER_NOT_FOUND if lacks_listener else ErrorCode.LEADER_NOT_AVAILABLE
        leader_id = -1
    return MetadataResponsePartition(
        error_code=error,
        partition_index=partition.index,
        leader_id=leader_id,
        leader_epoch=partition.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=offline,
    )


def _encoded(image: MetadataImage, topic: Topic, encoding: TopicEncoding) -> bytes:
    """The bytes of a topic, kept until it changes."""
    encoded = topic.memo.get(encoding)
    if not isinstance(encoded, bytes):
        encoded = _encode_topic(describe_topic(image, topic, encoding), encoding.version)
        topic.memo[encoding] = encoded
    return encoded


_CUTS: dict[int, slice] = {}  # by version: the place of a topic in a response with nothing else


def _encode_topic(topic: MetadataResponseTopic, version: int) -> bytes:
    """One element of the array of topics, cut out of a response with nothing else."""
    codec = response_codec(ApiKey.METADATA, version)
    response = MetadataResponse(topics=[topic])
    cut = _CUTS.get(version)
    if cut is None:
        envelope = around(codec, response, "topics")
        cut = _CUTS[version] = place_of(1, *envelope, flexible=codec.flexible)
    return b"".join(codec.encode(response))[cut]


def _join(
    ctx: RequestContext, encoding: TopicEncoding, cluster_operations: int, topics: list[bytes]
) -> EncodedResponse:
    """The response about encoded topics."""
    head, tail = _envelope(ctx, encoding, cluster_operations)
    flexible = response_codec(ApiKey.METADATA, encoding.version).flexible
    count = array_count(len(topics), flexible=flexible)
    return EncodedResponse([b"".join((head, count, *topics, tail))])


def _envelope(
    ctx: RequestContext, encoding: TopicEncoding, cluster_operations: int
) -> tuple[bytes, bytes]:
    """The response's bytes before the count of topics, and after the topics."""
    image = ctx.image
    key = ("metadata envelope", encoding.version, encoding.listener, cluster_operations)
    known = image.memo.get(key)
    if isinstance(known, tuple):
        return known
    reachable = image.reachable_brokers(encoding.listener)
    response = MetadataResponse(
        topics=[MetadataResponseTopic()],
        brokers=[
            MetadataResponseBroker(
                node_id, endpoint.host, endpoint.port, image.brokers[node_id].rack
            )
            for node_id, endpoint in reachable.items()
        ],
        cluster_id=ctx.cluster.cluster_id,
        controller_id=image.controller_id,
        cluster_authorized_operations=cluster_operations,
    )
    envelope = around(response_codec(ApiKey.METADATA, encoding.version), response, "topics")
    image.memo[key] = envelope
    return envelope
