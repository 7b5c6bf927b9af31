"""Metadata: the topics that a client may know of, and what it may do with them.

Whoever may not describe a topic is told so whether it exists or not. Encoded topics are shared with
those who may do everything, except where the client's own operations are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mockbroker.core.security.acls import Operation, ResourceType
from mockbroker.core.security.authorized_operations import NOT_ASKED
from mockbroker.core.topic import INTERNAL_TOPICS, Topic
from mockbroker.handlers.authorization.access import Access, Go, after, cluster, guard, needs, topic
from mockbroker.handlers.metadata import (
    CLUSTER_OPERATIONS_UNTIL,
    Shape,
    asks_for_all,
    assemble,
    auto_create,
    describe_topic,
    encode_topic,
    missing_topic_error,
    piece,
    why_malformed,
)
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
)
from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataResponseTopic
from mockbroker_protocol.types import ZERO_UUID

O = Operation  # noqa: E741 - as in the tables of Kafka
DENIED = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)

# -- Metadata --------------------------------------------------------------------------------------


@guard(
    ApiKey.METADATA,
    needs(
        topic(O.DESCRIBE), about="each one named", otherwise="`TOPIC_AUTHORIZATION_FAILED` for it"
    ),
    needs(topic(O.DESCRIBE), about="when all are asked for", otherwise="left out"),
    needs(
        cluster(O.CREATE),
        topic(O.CREATE),
        about="each one to be created on the way",
        otherwise="`TOPIC_AUTHORIZATION_FAILED` for it",
    ),
    needs(cluster(O.DESCRIBE), about="for its operations", otherwise="no operations"),
)
def metadata(access: Access, request: MetadataRequest, go: Go) -> object:
    """The handler's part is done here: its answer is in bytes already."""
    version = access.ctx.api_version
    teller = _Teller(access, request)
    if asks_for_all(request, version):
        pieces = list(teller.all_topics())
    elif why_malformed(request.topics or [], version) is not None:
        return go(request)
    else:
        ids = dict.fromkeys(t.topic_id for t in request.topics or () if t.topic_id != ZERO_UUID)
        pieces = teller.by_id(ids) if ids else teller.by_name()
    asked = version <= CLUSTER_OPERATIONS_UNTIL and request.include_cluster_authorized_operations
    operations = access.cluster_operations() if asked else NOT_ASKED
    return assemble(access.ctx, teller.shape, operations, pieces)


class _Teller:
    """Topics as bytes, as far as one client may know of them."""

    def __init__(self, access: Access, request: MetadataRequest) -> None:
        ctx = access.ctx
        self._access = access
        self._image = ctx.image
        self._cluster = ctx.cluster
        self._request = request
        operations = request.include_topic_authorized_operations
        self.shape = Shape(ctx.api_version, ctx.listener, operations)

    def all_topics(self) -> Iterator[bytes]:
        for each in self._image.topics.values():
            if self._access.topic(O.DESCRIBE, each.name):
                yield self._existing(each)

    def by_id(self, ids: Iterable[bytes]) -> list[bytes]:
        """An id gives nothing away, so that an unknown one is called unknown; those come first."""
        unknown, told, unseen = [], [], []
        for topic_id in ids:
            found = self._image.topics_by_id.get(topic_id)
            if found is None:
                unknown.append(self._bare(int(ErrorCode.UNKNOWN_TOPIC_ID), None, topic_id))
            elif self._access.topic(O.DESCRIBE, found.name):
                told.append(self._existing(found))
            else:
                unseen.append(self._bare(DENIED, None, topic_id))
        return unknown + told + unseen

    def by_name(self) -> list[bytes]:
        """What may be told first, then what may not be created, then what may not be known."""
        told, uncreated, unseen = [], [], []
        may_create = self._request.allow_auto_topic_creation and self._cluster.config(
            "auto.create.topics.enable"
        )
        for name in dict.fromkeys(t.name or "" for t in self._request.topics or ()):
            found = self._image.topics.get(name)
            if not self._access.topic(O.DESCRIBE, name):
                unseen.append(self._bare(DENIED, name))
            elif found is not None:
                told.append(self._existing(found))
            elif may_create and not self._may_create(name):
                uncreated.append(self._bare(DENIED, name, is_internal=name in INTERNAL_TOPICS))
            else:
                told.append(self._missing(name, create=bool(may_create)))
        return told + uncreated + unseen

    def _may_create(self, name: str) -> bool:
        return self._access.cluster(O.CREATE) or self._access.topic(O.CREATE, name)

    def _existing(self, found: Topic) -> bytes:
        if not self.shape.operations:
            return piece(self._image, found, self.shape)
        described = describe_topic(self._image, found, self.shape)
        described.topic_authorized_operations = self._operations(found.name)
        return encode_topic(described, self.shape.version)

    def _missing(self, name: str, *, create: bool) -> bytes:
        error = missing_topic_error(name)
        if create and error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            auto_create(self._access.ctx, name)
        operations = self._operations(name) if self.shape.operations else NOT_ASKED
        internal = name in INTERNAL_TOPICS
        return self._bare(error, name, is_internal=internal, operations=operations)

    def _operations(self, name: str) -> int:
        return self._access.operations(ResourceType.TOPIC, name)

    def _bare(
        self,
        error: int,
        name: str | None,
        topic_id: bytes = ZERO_UUID,
        *,
        is_internal: bool = False,
        operations: int = NOT_ASKED,
    ) -> bytes:
        """A topic without partitions."""
        bare = MetadataResponseTopic(
            error_code=error,
            name=name,
            topic_id=topic_id,
            is_internal=is_internal,
            topic_authorized_operations=operations,
        )
        return encode_topic(bare, self.shape.version)


# -- DescribeTopicPartitions -----------------------------------------------------------------------


@guard(
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    needs(
        topic(O.DESCRIBE), about="each one named", otherwise="`TOPIC_AUTHORIZATION_FAILED` for it"
    ),
    needs(topic(O.DESCRIBE), about="when all are asked for", otherwise="left out"),
)
def describe_topic_partitions(
    access: Access, request: DescribeTopicPartitionsRequest, go: Go
) -> object:
    """The handler asks about each topic when its turn comes, for only some get into a page."""

    def tell(response: DescribeTopicPartitionsResponse) -> DescribeTopicPartitionsResponse:
        if any(t.error_code == ErrorCode.INVALID_REQUEST for t in response.topics):
            return response
        for line in response.topics:
            name = line.name or ""
            line.topic_authorized_operations = access.operations(ResourceType.TOPIC, name)
        cursor = request.cursor
        first = "" if cursor is None else cursor.topic_name
        names = sorted({t.name for t in request.topics if t.name >= first})
        response.topics += [
            DescribeTopicPartitionsResponseTopic(error_code=DENIED, name=name)
            for name in names
            if not access.topic(O.DESCRIBE, name)
        ]
        return response

    return after(go(request), tell)
