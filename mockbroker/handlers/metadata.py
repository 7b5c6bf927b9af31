"""Metadata (3): brokers, topics, partitions, leaders.

The hottest of the administrative requests: clients ask on connecting, on every leader change, and
some for all topics every few seconds. So each topic is encoded once per version and kept with the
topic until it changes, and an answer is put together from those pieces; full answers are kept
whole. Ten thousand partitions are then one join of bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mockbroker.core.errors import ApiError
from mockbroker.core.image import Endpoint, Image
from mockbroker.core.partition import Partition
from mockbroker.core.security.authorized_operations import (
    CLUSTER_OPERATIONS,
    NOT_ASKED,
    TOPIC_OPERATIONS,
)
from mockbroker.core.topic import INTERNAL_TOPICS, Topic, why_invalid_name
from mockbroker.handlers.base import EncodedResponse, RequestContext, api
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

FIRST_FLEXIBLE_VERSION = 9
_NONE_OFFLINE: list[int] = []  # of all partitions with nothing amiss; never written to
CLUSTER_OPERATIONS_UNTIL = 10  # DescribeCluster tells them afterwards


class Shape(NamedTuple):
    """What decides the bytes of a topic's piece."""

    version: int
    listener: str
    operations: bool  # topic authorized operations asked for


@api(ApiKey.METADATA, versions=(0, 13))
def metadata(ctx: RequestContext, request: MetadataRequest) -> EncodedResponse | MetadataResponse:
    """Answer for the topics asked for, creating missing ones where Kafka would."""
    image, version = ctx.image, ctx.api_version
    shape = Shape(version, ctx.listener, request.include_topic_authorized_operations)
    topics = request.topics
    asked = version <= CLUSTER_OPERATIONS_UNTIL and request.include_cluster_authorized_operations
    cluster_operations = CLUSTER_OPERATIONS if asked else NOT_ASKED
    if topics is None or asks_for_all(request, version):
        key = ("metadata", shape, cluster_operations)
        whole = image.memo.get(key)
        if not isinstance(whole, EncodedResponse):
            pieces = [piece(image, topic, shape) for topic in image.topics.values()]
            whole = assemble(ctx, shape, cluster_operations, pieces)
            image.memo[key] = whole
        return whole
    malformed = why_malformed(topics, version)
    if malformed is not None:
        return _refuse(topics, malformed)
    return assemble(ctx, shape, cluster_operations, _named_pieces(ctx, request, topics, shape))


def asks_for_all(request: MetadataRequest, version: int) -> bool:
    """Whether a request is about every topic."""
    return request.topics is None or (version == 0 and not request.topics)


def why_malformed(topics: list[MetadataRequestTopic], version: int) -> ErrorCode | None:
    """Names came first; ids may stand in for them from version 12 on."""
    if version < 12:
        if any(topic.name is None or topic.topic_id != ZERO_UUID for topic in topics):
            return ErrorCode.INVALID_REQUEST
    elif any(topic.name is None for topic in topics) and all(
        topic.topic_id == ZERO_UUID for topic in topics
    ):
        return ErrorCode.UNKNOWN_SERVER_ERROR  # a broker stumbles over the null
    return None


def _refuse(topics: list[MetadataRequestTopic], error: ErrorCode) -> MetadataResponse:
    return MetadataResponse(
        error_code=error,
        topics=[
            MetadataResponseTopic(
                error_code=error,
                name=topic.name or "",
                topic_id=topic.topic_id,
            )
            for topic in topics
        ],
    )


def _named_pieces(
    ctx: RequestContext,
    request: MetadataRequest,
    topics: list[MetadataRequestTopic],
    shape: Shape,
) -> list[bytes]:
    image = ctx.image
    ids = dict.fromkeys(topic.topic_id for topic in topics if topic.topic_id != ZERO_UUID)
    if ids:  # names in the same request are not looked at
        found = [(topic_id, image.topics_by_id.get(topic_id)) for topic_id in ids]
        return [
            piece(image, topic, shape)
            if topic is not None
            else encode_topic(
                MetadataResponseTopic(
                    error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id
                ),
                shape.version,
            )
            for topic_id, topic in found
        ]
    may_create = request.allow_auto_topic_creation and ctx.cluster.config(
        "auto.create.topics.enable"
    )
    pieces = []
    for name in dict.fromkeys(topic.name or "" for topic in topics):
        topic = image.topics.get(name)
        if topic is not None:
            pieces.append(piece(image, topic, shape))
            continue
        error = missing_topic_error(name)
        if may_create and error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            auto_create(ctx, name)
        missing = MetadataResponseTopic(
            error_code=error,
            name=name,
            is_internal=name in INTERNAL_TOPICS,
            topic_authorized_operations=TOPIC_OPERATIONS if shape.operations else NOT_ASKED,
        )
        pieces.append(encode_topic(missing, shape.version))
    return pieces


def missing_topic_error(name: str) -> ErrorCode:
    """What a topic that does not exist is answered with."""
    if why_invalid_name(name) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.INVALID_TOPIC_EXCEPTION


def auto_create(ctx: RequestContext, name: str) -> None:
    """Create a topic for the next request to see.

    Kafka sends the creation to the controller and answers before it is done; what fails there, the
    client never hears of, its quota of changes included.
    """
    cluster = ctx.cluster
    if not ctx.broker.hears_controller:
        return
    try:
        if cluster.quotas.throttling is not None:
            MutationQuota(ctx, strict_since=0).draw(cluster.config_int("num.partitions"))
        cluster.auto_create_topic(name)
    except ApiError:
        return


# -- topics to bytes
# ---------------------------------------------------------------------------------


def describe_topic(image: Image, topic: Topic, shape: Shape) -> MetadataResponseTopic:
    """What Metadata tells of an existing topic."""
    reachable = image.reachable_brokers(shape.listener)
    sound = _sound_brokers(image, shape.listener)
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[
            # By position and without a look at each replica: there may be ten thousand.
            MetadataResponsePartition(
                0, p.index, p.leader_id, p.leader_epoch, p.replicas, p.isr, _NONE_OFFLINE
            )
            if p.leader_id in reachable and sound.issuperset(p.replicas)
            else _describe_partition(image, reachable, p, shape)
            for p in topic.partitions
        ],
        topic_authorized_operations=TOPIC_OPERATIONS if shape.operations else NOT_ASKED,
    )


def _sound_brokers(image: Image, listener: str) -> frozenset[int]:
    """The reachable ones with all their log directories: no replica on them is offline."""
    key = ("sound brokers", listener)
    known = image.memo.get(key)
    if not isinstance(known, frozenset):
        known = image.memo[key] = frozenset(
            node_id
            for node_id in image.reachable_brokers(listener)
            if not image.brokers[node_id].log_dirs.failed
        )
    return known


def _describe_partition(
    image: Image, reachable: dict[int, Endpoint], partition: Partition, shape: Shape
) -> MetadataResponsePartition:
    """What Metadata tells of a partition that may lack a leader or replicas."""
    replicas, isr = partition.replicas, partition.isr
    offline = image.offline_replicas(partition, reachable)
    leader_id = partition.leader_id
    error = 0
    if shape.version == 0 and offline:
        replicas = [node_id for node_id in replicas if node_id in reachable]
        isr = [node_id for node_id in isr if node_id in reachable]
        error = int(ErrorCode.REPLICA_NOT_AVAILABLE)
    if leader_id not in reachable:
        lacks_listener = leader_id in image.brokers and shape.version >= 6
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


def piece(image: Image, topic: Topic, shape: Shape) -> bytes:
    """The bytes of `topic` inside an answer of this shape, kept until the topic changes."""
    encoded = topic.memo.get(shape)
    if not isinstance(encoded, bytes):
        encoded = encode_topic(describe_topic(image, topic, shape), shape.version)
        topic.memo[shape] = encoded
    return encoded


_CUTS: dict[int, slice] = {}  # by version: where the topic of an otherwise empty answer stands


def _encode(response: MetadataResponse, version: int) -> bytes:
    return b"".join(response_codec(ApiKey.METADATA, version).encode(response))


def encode_topic(topic: MetadataResponseTopic, version: int) -> bytes:
    """One element of the array of topics, cut out of an answer that holds nothing else."""
    cut = _CUTS.get(version)
    if cut is None:
        end_of_count, tail = _around_topics(MetadataResponse(), version)
        cut = _CUTS[version] = slice(end_of_count, -len(tail) or None)
    return _encode(MetadataResponse(topics=[topic]), version)[cut]


def _around_topics(response: MetadataResponse, version: int) -> tuple[int, bytes]:
    """Where the count of topics ends in `response`, which has none, and the bytes behind it.

    The answers without and with a topic are equal up to the last byte of the count.
    """
    without = _encode(response, version)
    response.topics = [MetadataResponseTopic()]
    with_one = _encode(response, version)
    response.topics = []
    end = next(i for i, byte in enumerate(without) if byte != with_one[i]) + 1
    return end, without[end:]


def assemble(
    ctx: RequestContext, shape: Shape, cluster_operations: int, pieces: Iterable[bytes]
) -> EncodedResponse:
    pieces = list(pieces)
    head, tail = _envelope(ctx, shape, cluster_operations)
    count = _array_count(len(pieces), shape.version)
    return EncodedResponse([b"".join((head, count, *pieces, tail))])


def _envelope(ctx: RequestContext, shape: Shape, cluster_operations: int) -> tuple[bytes, bytes]:
    """The answer's bytes before the count of topics and after the topics."""
    image = ctx.image
    key = ("metadata envelope", shape.version, shape.listener, cluster_operations)
    known = image.memo.get(key)
    if isinstance(known, tuple):
        return known
    reachable = image.reachable_brokers(shape.listener)
    response = MetadataResponse(
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
    end, tail = _around_topics(response, shape.version)
    start = end - len(_array_count(0, shape.version))
    envelope = (_encode(response, shape.version)[:start], tail)
    image.memo[key] = envelope
    return envelope


def _array_count(count: int, version: int) -> bytes:
    """The length of an array as it stands on the wire in this version."""
    if version < FIRST_FLEXIBLE_VERSION:
        return count.to_bytes(4, "big")
    number = count + 1
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
